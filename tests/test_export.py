"""Files appear whole or not at all, wherever they are to be."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needlepoint.errors import CorpusError, OutputError, UsageError
from needlepoint.export import Line, check_target, lines, sample, write
from needlepoint.plan.grid import Grid
from needlepoint.plan.prompt import Prompt
from needlepoint.plan.statistics import Spread, Statistics
from needlepoint.plan.task import Plan, Task
from needlepoint.types import Corpus, Endpoint


@pytest.fixture(scope="module")
def plan(english: Corpus, endpoint_of: Callable[[str], Endpoint]) -> Plan:
    task = Task(grid=Grid(lengths=(300, 600), depths=(0.0, 12.5)), repeats=2, seed=5, max_tokens=9)
    return Plan(task, [english], endpoint_of("qwen3"))


@pytest.fixture(scope="module")
def prompt(plan: Plan) -> Prompt:
    return next(iter(plan))


@pytest.fixture
def three(prompt: Prompt) -> list[Line]:
    return [Line(prompt, b"one\n"), Line(prompt, b"two\n"), Line(prompt, b"three\n")]


def ignore(line: Line) -> None:
    pass


def test_a_file_is_written_and_nothing_beside_it(three: list[Line], tmp_path: Path) -> None:
    seen: list[bytes] = []
    size = write(three, str(tmp_path / "o.jsonl"), on_line=lambda line: seen.append(line.data))
    assert (tmp_path / "o.jsonl").read_bytes() == b"one\ntwo\nthree\n" == b"".join(seen)
    assert size == 14 and [path.name for path in tmp_path.iterdir()] == ["o.jsonl"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, UsageError, SystemExit])
def test_a_failure_half_way_leaves_what_was_there(
    failure: type[BaseException], three: list[Line], tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"
    out.write_bytes(b"old")

    def failing() -> Iterator[Line]:
        yield three[0]
        raise failure

    with pytest.raises(failure):
        write(failing(), str(out), on_line=ignore)
    assert out.read_bytes() == b"old" and list(tmp_path.iterdir()) == [out]


def test_a_link_stays_a_link(three: list[Line], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real" / "o.jsonl")
    write(three, str(tmp_path / "link.jsonl"), on_line=ignore)
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real" / "o.jsonl").read_bytes() == b"one\ntwo\nthree\n"


def test_a_pipe_is_written_in_place(three: list[Line], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(three, str(tmp_path / "pipe"), on_line=ignore)
    reader.join()
    assert got == [b"one\ntwo\nthree\n"] and (tmp_path / "pipe").is_fifo()


def test_dev_stdout_is_never_replaced(three: list[Line]) -> None:
    target = Path("/dev/fd") / str(os.open(os.devnull, os.O_WRONLY))
    before = target.readlink()
    write(three, str(target), on_line=ignore)
    assert target.readlink() == before
    os.close(int(target.name))


def test_a_dash_is_standard_output(three: list[Line], monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw))
    assert write(three, "-", on_line=ignore) == 14
    assert raw.getvalue() == b"one\ntwo\nthree\n"


@pytest.mark.parametrize("target", ["", "a\0b", "/", "/nowhere/o.jsonl", "/dev/null/o.jsonl"])
def test_what_cannot_be_written_is_seen_beforehand(target: str) -> None:
    with pytest.raises(OutputError):
        check_target(target)


def test_lines_count_the_characters_that_the_seed_counts(plan: Plan) -> None:
    for line in lines(plan):
        row = json.loads(line.data)
        assert line.prompt.n_characters == sum(len(message["content"]) for message in row["input"])
        assert row["metadata"]["depth_percent"] in (0, 12.5)
    assert '"depth_percent":0,' in next(lines(plan)).data.decode(), "whole numbers have no point"


def test_both_formats_hold_the_same_messages(plan: Plan) -> None:
    for one, other in zip(lines(plan), lines(plan, format_="openai-batch", model="m"), strict=True):
        messages = [(m["role"], m["content"]) for m in json.loads(one.data)["input"]]
        assert messages == [(m["role"], m["content"]) for m in json.loads(other.data)["body"]["messages"]]


def test_a_batch_needs_a_model(plan: Plan) -> None:
    with pytest.raises(UsageError, match="--model"):
        next(lines(plan, format_="openai-batch"))


def test_a_sample_is_a_recipe(plan: Plan, prompt: Prompt) -> None:
    metadata = json.loads(sample(prompt, 0, 0, plan))["metadata"]
    assert (metadata["seed"], metadata["replicate"], metadata["repeat"]) == (5, 0, 0)
    assert metadata["prompt_sha256"] == prompt.sha256
    assert metadata["achieved_length"] == metadata["context_length"] == 300


def test_spread_is_the_samples() -> None:
    assert Spread.of([]).json() == {"mean": None, "min": None, "max": None, "std": None}
    assert Spread.of([4]).json() == {"mean": 4, "min": 4, "max": 4, "std": 0}
    assert Spread.of([1, 2, 4]).json() == {"mean": 2.33, "min": 1, "max": 4, "std": 1.53}


def test_statistics_add_up(plan: Plan) -> None:
    figures = Statistics()
    for prompt in plan:
        figures.add(prompt)
    said = figures.json()
    assert said["total"]["samples"] == len(plan) == 8
    assert {key: said["total"][key] for key in said["subsets"][0] if key != "name"} == said["total"]
    assert sum(said["boundaries"].values()) == 8
    assert said["total"]["prompt_tokens"] == {"mean": 450, "min": 300, "max": 600, "std": 160.36}


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(
        alphabet=st.sampled_from('ab .\\"/\x00\x01\x08\x0b\x1b\t\n\r\x7f\x85é中\u2028😀'), min_size=1, max_size=400
    ),
    needle=st.sampled_from(["plain", 'a "quote"', "back\\slash", "tab\there", "中文“引号”😀"]),
)
def test_a_context_is_escaped_as_json_does_it(text: str, needle: str, endpoint_of, corpus_from) -> None:  # type: ignore[no-untyped-def]
    corpus = corpus_from("One. " + text)
    task = Task(grid=Grid(lengths=(400,), depths=(50,)), length_mode="evalscope", needles=(needle,), question='Q "?"')
    plan = Plan(task, [corpus], endpoint_of("qwen3"))
    try:
        (line,) = lines(plan)
    except CorpusError:  # no full stop of its own
        return
    row = json.loads(line.data)
    assert row["metadata"]["context"] == line.prompt.context()
    assert [message["content"] for message in row["input"]] == [m["content"] for m in line.prompt.messages()]
    assert row["metadata"]["prompt_sha256"] == line.prompt.sha256
    assert line.data == json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
