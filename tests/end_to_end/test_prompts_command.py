"""`needlepoint prompts` and `needlepoint.prompts`: what they write, say and promise."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import needlepoint
from needlepoint.cli import main
from needlepoint.connect import connect
from needlepoint.plan.prompt import PROMPT_TEMPLATE, SYSTEM_PROMPT
from needlepoint.show.prompts import figure

FILES = {"english": "PaulGraham_Essays.txt", "chinese": "Journey_to_the_West.txt"}
NEEDLE = "\nThe best thing to do in San Francisco is eat a sandwich and sit in Dolores Park on a sunny day.\n"
QUESTION = "What is the best thing to do in San Francisco?"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory, prose: dict[str, Callable[..., str]]) -> Path:
    """The canonical dataset's two files, with made-up prose in them."""
    place = tmp_path_factory.mktemp("texts")
    (place / FILES["english"]).write_text(prose["en"](4_000), "utf-8")
    (place / FILES["chinese"]).write_text(prose["zh"](4_000), "utf-8")
    return place


@pytest.fixture
def seed(texts: Path) -> Callable[..., list[str]]:
    """The seed's command, its texts from a folder."""

    def argv(*more: str, subsets: tuple[str, ...] | None = None, **extra: Any) -> list[str]:
        given: dict[str, Any] = {"local_path": str(texts), "extra_params": extra}
        if subsets is not None:
            given["subset_list"] = list(subsets)
        return [
            "prompts",
            "--datasets",
            "needle_haystack",
            "--dataset-args",
            json.dumps({"needle_haystack": given}),
            *more,
        ]

    return argv


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    """A command line that succeeds: what it wrote to stdout and to stderr."""

    def command(argv: list[str]) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["needlepoint", *argv])
        with pytest.raises(SystemExit) as ended:
            main()
        written = capfd.readouterr()
        assert ended.value.code == 0, written.err
        return written.out, written.err

    return command


def process(argv: list[str], **more: Any) -> subprocess.Popen[bytes]:
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen([sys.executable, "-m", "needlepoint.cli", *argv], **given)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def recipe(texts: Path, *names: str, **more: str) -> list[str]:
    """A small exact run over made-up texts."""
    corpora = [f"--corpus={name}={texts / FILES[name]}" for name in names or ("english",)]
    flags = {"lengths": "600,1k", "depths": "0,50,100", **more}
    return ["prompts", *corpora, *(part for name, value in flags.items() for part in (f"--{name}", value))]


# --- the seed's samples -----------------------------------------------------------------------------------------------


def test_a_sample_has_the_shape_of_the_seed(
    run: Callable[..., tuple[str, str]], seed: Callable[..., list[str]], tmp_path: Path, texts: Path
) -> None:
    out = tmp_path / "o.jsonl"
    run(seed("--limit", "10", "--out", str(out)))
    written = rows(out)
    assert Counter(row["metadata"]["subset"] for row in written) == {"english": 10, "chinese": 10}
    for subset in FILES:
        of_subset = [row for row in written if row["metadata"]["subset"] == subset]
        assert [row["id"] for row in of_subset] == list(range(10))
        assert [row["group_id"] for row in of_subset] == list(range(10))
        assert [row["metadata"]["depth_percent"] for row in of_subset] == [0, 11, 22, 33, 44, 56, 67, 78, 89, 100]
    for row in written:
        assert list(row) == ["input", "target", "id", "group_id", "metadata"]
        assert list(row["metadata"])[:3] == ["context", "context_length", "depth_percent"]
        system, user = row["input"]
        assert list(system) == list(user) == ["id", "role", "content"]
        assert all(re.fullmatch("[0-9a-f]{8}", message["id"]) for message in row["input"])
        assert (system["role"], system["content"]) == ("system", SYSTEM_PROMPT)
        context = row["metadata"]["context"]
        assert user["content"] == PROMPT_TEMPLATE.format(context=context, question=QUESTION)
        assert row["target"] == NEEDLE and context.count(NEEDLE) == 1
        assert row["metadata"]["context_length"] == 1000 and row["metadata"]["length_mode"] == "evalscope"
    ids = [message["id"] for row in written for message in row["input"]]
    assert len(set(ids)) == len(ids)


def test_every_line_says_which_text_and_licence_it_is_of(
    run: Callable[..., tuple[str, str]], seed: Callable[..., list[str]], tmp_path: Path, texts: Path
) -> None:
    out = tmp_path / "o.jsonl"
    run(seed("--limit", "2", "--out", str(out)))
    digests = {name: hashlib.sha256((texts / file).read_bytes()).hexdigest() for name, file in FILES.items()}
    for row in rows(out):
        corpus = row["metadata"]["corpus"]
        assert corpus["sha256"] == digests[row["metadata"]["subset"]]
        assert corpus["name"].startswith("needle-haystack-corpus/") and corpus["licence"]
        assert row["metadata"]["tokenizer"]["fingerprint"] and row["metadata"]["prompt_sha256"]


@pytest.mark.parametrize(("limit", "samples"), [("10", 20), ("0.5", 100), ("1000", 200), (None, 200)])
def test_the_limit_counts_per_subset(limit: str | None, samples: int, texts: Path) -> None:
    plan = needlepoint.prompts(
        datasets="needle_haystack",
        dataset_args={"needle_haystack": {"local_path": texts}},
        limit=None if limit is None else json.loads(limit),
    )
    assert len(plan) == samples


def test_one_subset_can_be_chosen(
    run: Callable[..., tuple[str, str]], seed: Callable[..., list[str]], tmp_path: Path
) -> None:
    stdout, _ = run(seed("--json", "--limit", "3", subsets=("chinese",)))
    assert [subset["name"] for subset in json.loads(stdout)["subsets"]] == ["chinese"]


def test_the_seeds_parameters_arrive(
    run: Callable[..., tuple[str, str]], seed: Callable[..., list[str]], tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"
    extra = {
        "needles": ["The ferry to Orm leaves at 5.12.", "The ferry to Tarn leaves at 6.34."],
        "retrieval_question": "When do the ferries leave?",
        "context_lengths_min": 400,
        "context_lengths_max": 800,
        "context_lengths_num_intervals": 2,
        "document_depth_percent_min": 10,
        "document_depth_percent_max": 90,
        "document_depth_percent_intervals": 3,
        "tokenizer_path": "cl100k_base",
        "show_score": True,
    }
    run(seed("--out", str(out), subsets=("english",), **extra))
    written = rows(out)
    cells = [(row["metadata"]["context_length"], row["metadata"]["depth_percent"]) for row in written]
    assert cells == list(itertools.product([400, 800], [10, 50, 90]))
    for row in written:
        assert row["target"] == "\n".join(extra["needles"])  # type: ignore[arg-type]
        assert all(needle in row["input"][1]["content"] for needle in extra["needles"])  # type: ignore[attr-defined]
        assert "When do the ferries leave?" in row["input"][1]["content"]
        assert row["metadata"]["tokenizer"]["fingerprint"] == connect("cl100k_base").tokenizer.fingerprint


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_statistics_agree_with_the_written_file(
    run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    out = tmp_path / "o.jsonl"
    argv = [*recipe(texts, "english", "chinese"), "--out", str(out)]
    said = json.loads(run([*argv, "--json"])[0])
    screen, _ = run(argv)
    written = rows(out)
    for name, part in [("total", said["total"]), *((subset["name"], subset) for subset in said["subsets"])]:
        chosen = [row for row in written if name in ("total", row["metadata"]["subset"])]
        characters = [sum(len(message["content"]) for message in row["input"]) for row in chosen]
        assert part["samples"] == len(chosen)
        assert part["prompt_characters"] == {
            "mean": round(statistics.mean(characters), 2),
            "min": min(characters),
            "max": max(characters),
            "std": round(statistics.stdev(characters), 2),
        }
        assert part["prompt_tokens"]["max"] == 1000
        shown = re.escape(f"{name} {len(chosen)} ") + " ".join(
            re.escape(figure(part["prompt_characters"][key])) for key in ("mean", "min", "max", "std")
        )
        assert re.search(shown, re.sub(" +", " ", screen)), screen
    assert said["corpora"][0]["sha256"][:12] in screen


def test_without_a_file_the_same_numbers_are_said(
    run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path
) -> None:
    argv = [*recipe(texts), "--json"]
    without, with_file = json.loads(run(argv)[0]), json.loads(run([*argv, "--out", str(tmp_path / "o.jsonl")])[0])
    assert without.pop("out") is None and with_file.pop("out") == str(tmp_path / "o.jsonl")
    assert without == with_file


def test_one_prompt_has_no_deviation(run: Callable[..., tuple[str, str]], texts: Path) -> None:
    said = json.loads(run([*recipe(texts, lengths="600", depths="50"), "--json"])[0])
    assert said["total"]["prompt_characters"]["std"] == 0


@pytest.mark.parametrize("width", [60, 100])
def test_the_tables_fit_the_screen(
    width: int, run: Callable[..., tuple[str, str]], texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    screen, _ = run(recipe(texts, "english", "chinese", lengths="1k,200k", depths="50"))
    assert max(map(len, screen.splitlines())) <= width
    assert "…" not in screen and "english" in screen


def test_in_a_pipe_facts_are_not_broken_into_lines(
    run: Callable[..., tuple[str, str]], texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    screen, _ = run(recipe(texts, depths="50"))
    assert re.search(r"^Lengths +exact: .* equal", screen, re.MULTILINE)


# --- where words go ---------------------------------------------------------------------------------------------------


def test_stdout_holds_results_only(run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    stdout, stderr = run([*recipe(texts, lengths="1k,90k"), "--json", "--out", str(out)])
    assert json.loads(stdout)["total"]["samples"] == 6
    assert "needlepoint: Wrote 6 prompts (" in stderr and "longer contexts repeat it" in stderr
    stdout, stderr = run(recipe(texts))
    assert "Prompt length" in stdout and stderr == ""


def test_prompts_go_to_stdout_and_tables_to_stderr(
    run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path
) -> None:
    stdout, stderr = run([*recipe(texts), "--out", "-"])
    run([*recipe(texts), "--out", str(tmp_path / "o.jsonl")])
    assert stdout == (tmp_path / "o.jsonl").read_text("utf-8")
    assert "Prompt length" in stderr and "Wrote" not in stderr


def test_head_is_satisfied_quietly(texts: Path) -> None:
    with process([*recipe(texts, lengths="8k", repeats="500"), "--out", "-"]) as running:
        assert running.stdout is not None and running.stderr is not None
        assert json.loads(running.stdout.readline())["id"] == 0
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_write_leaves_nothing(number: signal.Signals, code: int, texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    out.write_text("of yesterday", "utf-8")
    argv = [*recipe(texts, lengths="8k", repeats="5000"), "--out", str(out)]
    with process(argv) as running:
        deadline = time.monotonic() + 60
        while not any(draft.stat().st_size for draft in tmp_path.glob(".*.part")):
            assert time.monotonic() < deadline and running.poll() is None
            time.sleep(0.01)
        running.send_signal(number)
        _, stderr = running.communicate(timeout=60)
    assert running.returncode == code
    assert b"Traceback" not in stderr and len(stderr.splitlines()) <= 1
    assert [path.name for path in tmp_path.iterdir()] == ["o.jsonl"]
    assert out.read_text("utf-8") == "of yesterday"


def test_the_file_is_streamed(texts: Path, tmp_path: Path) -> None:
    """60 prompts of 200k tokens need hardly more memory than one."""
    code = (
        "import sys, resource\nfrom needlepoint.cli import main\n"
        "try: main()\nexcept SystemExit as ended: assert ended.code == 0\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )

    def peak(depths: str) -> int:
        argv = [*recipe(texts, lengths="200k", depths=depths), "--json", "--out", str(tmp_path / "o.jsonl")]
        done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True)
        return int(done.stdout.splitlines()[-1])

    one, many = peak("50"), peak("0:100:60")
    size = (tmp_path / "o.jsonl").stat().st_size
    assert len(rows(tmp_path / "o.jsonl")) == 60 and size > 60_000_000
    assert many - one < size / 10


# --- what decides a prompt --------------------------------------------------------------------------------------------


def test_one_seed_gives_the_same_bytes_and_another_other_facts(
    run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path
) -> None:
    data: dict[str, bytes] = {}
    for name, number in {"a": "7", "b": "7", "c": "8"}.items():
        out = tmp_path / f"{name}.jsonl"
        run([*recipe(texts, "english", "chinese"), "--needle-set", "number", "--seed", number, "--out", str(out)])
        data[name] = out.read_bytes()
    assert data["a"] == data["b"] != data["c"]
    targets = [{row["target"] for row in map(json.loads, data[name].splitlines())} for name in "ac"]
    assert len(targets[0]) == 2 and not targets[0] & targets[1]


def test_replicates_are_other_texts_and_facts_and_repeats_the_same_prompt(
    run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"
    run([*recipe(texts), "--needle-set", "word", "--replicates", "3", "--repeats", "2", "--out", str(out)])
    written = rows(out)
    assert len(written) == 2 * 3 * 3 * 2
    assert [row["id"] for row in written] == list(range(36))
    assert [row["group_id"] for row in written] == [n // 2 for n in range(36)]
    for one, again in zip(written[::2], written[1::2], strict=True):
        assert (one["metadata"]["repeat"], again["metadata"]["repeat"]) == (0, 1)
        assert one["metadata"]["prompt_sha256"] == again["metadata"]["prompt_sha256"]
        assert [m["content"] for m in one["input"]] == [m["content"] for m in again["input"]]
        assert one["input"][0]["id"] != again["input"][0]["id"]
    by_replicate = {n: [row for row in written if row["metadata"]["replicate"] == n] for n in range(3)}
    assert len({rows_[0]["target"] for rows_ in by_replicate.values()}) == 3
    assert len({rows_[0]["metadata"]["context"][-300:] for rows_ in by_replicate.values()}) == 3
    assert len({row["metadata"]["prompt_sha256"] for row in written}) == 18


def test_every_exact_prompt_has_its_length_and_its_needle(
    run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"
    run([*recipe(texts, "english", "chinese"), "--needle-set", "uuid", "--needle-count", "3", "--out", str(out)])
    for row in rows(out):
        facts = row["metadata"]
        assert facts["achieved_length"] == facts["context_length"] and facts["length_mode"] == "exact"
        assert len(facts["needles"]) == len(facts["placements"]) == len(facts["answers"]) == 3
        assert all(facts["context"].count(needle["text"]) == 1 for needle in facts["needles"])
        assert all(answer in facts["context"] and answer not in facts["question"] for answer in facts["answers"])
        assert facts["placements"][0]["achieved_depth_percent"] == facts["achieved_depth_percent"]


def test_verify_counts_every_prompt_again(run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    screen, _ = run([*recipe(texts), "--verify", "--out", str(out)])
    assert all(row["metadata"]["recounted"] for row in rows(out))
    assert "all 6 prompts encoded again and equal" in screen
    screen, _ = run([*recipe(texts), "--out", str(out)])
    assert [row["metadata"]["recounted"] for row in rows(out)] == [True, False, False, False, False, True]
    assert "2 of 6 prompts encoded again and equal" in screen


def test_system_prompt_and_template_come_as_text_or_file(
    run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path
) -> None:
    out, template, system = tmp_path / "o.jsonl", tmp_path / "template.txt", tmp_path / "system.md"
    template.write_text("{context}\n\n{{Q}}: {question}", "utf-8")
    system.write_text("Antworte kurz – 简短.", "utf-8")
    run([*recipe(texts), "--prompt-template", str(template), "--system-prompt", str(system), "--out", str(out)])
    for row in rows(out):
        assert row["input"][0]["content"] == "Antworte kurz – 简短."
        assert row["input"][1]["content"] == f"{row['metadata']['context']}\n\n{{Q}}: {QUESTION}"
        assert row["metadata"]["achieved_length"] == row["metadata"]["context_length"]
    run([*recipe(texts), "--prompt-template", "Q {question} A {context}", "--system-prompt", "", "--out", str(out)])
    for row in rows(out):
        assert [message["role"] for message in row["input"]] == ["user"]
        assert row["input"][0]["content"] == f"Q {QUESTION} A {row['metadata']['context']}"


def test_dataset_arguments_replace_them_too(run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path) -> None:
    given = {"local_path": str(texts), "system_prompt": "", "prompt_template": "{context} / {question}"}
    out = tmp_path / "o.jsonl"
    arguments = json.dumps({"needle_haystack": given})
    run(["prompts", "--datasets", "needle_haystack", "--dataset-args", arguments, "--limit", "1", "--out", str(out)])
    for row in rows(out):
        (user,) = row["input"]
        assert user["content"] == f"{row['metadata']['context']} / {QUESTION}"


def test_several_texts_have_their_own_names(run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    argv = recipe(texts, "english", "chinese", lengths="600", depths="50")
    run([*argv, "--corpus", str(texts / FILES["english"]), "--out", str(out)])
    assert [row["metadata"]["subset"] for row in rows(out)] == ["english", "chinese", "paulgraham-essays"]
    assert all(row["metadata"]["corpus"]["licence"] == "user's own" for row in rows(out))


# --- batch files ------------------------------------------------------------------------------------------------------


def test_batch_lines_are_what_providers_take(run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    argv = [*recipe(texts, "english", "chinese", repeats="2"), "--format", "openai-batch", "--model", "gpt-4o"]
    run([*argv, "--max-tokens", "64", "--out", str(out)])
    written = rows(out)
    fingerprints = {hashlib.sha256((texts / name).read_bytes()).hexdigest()[:8] for name in FILES.values()}
    assert len({line["custom_id"] for line in written}) == len(written) == 24
    for line in written:
        assert list(line) == ["custom_id", "method", "url", "body"]
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        assert line["custom_id"].split("-")[-2] in fingerprints
        assert len(line["custom_id"]) <= 64 and re.fullmatch(r"[\w.-]+", line["custom_id"])
        assert {key: line["body"][key] for key in ("model", "max_tokens")} == {"model": "gpt-4o", "max_tokens": 64}
        assert [list(message) for message in line["body"]["messages"]] == [["role", "content"]] * 2
    run([*argv, "--out", str(out)])
    assert all(list(line["body"]) == ["model", "messages"] for line in rows(out))


# --- from Python ------------------------------------------------------------------------------------------------------


def test_python_makes_the_same_prompts(run: Callable[..., tuple[str, str]], texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    run([*recipe(texts), "--out", str(out)])
    plan = needlepoint.prompts(corpus=f"english={texts / FILES['english']}", lengths=[600, "1k"], depths=(0, 50, 100))
    assert len(plan) == 6
    for row, prompt in zip(rows(out), plan, strict=True):
        assert row["metadata"]["prompt_sha256"] == prompt.sha256
        assert [m["content"] for m in row["input"]] == [m["content"] for m in prompt.messages()]


def test_a_plan_is_lazy(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from needlepoint.text.tokenizers import SplintrTokenizer

    encoded: list[int] = []
    original = SplintrTokenizer.encode

    def counting(self: SplintrTokenizer, text: str, *, special: bool = False) -> Any:
        encoded.append(len(text))
        return original(self, text, special=special)

    monkeypatch.setattr(SplintrTokenizer, "encode", counting)
    plan = needlepoint.prompts(corpus=texts / FILES["english"], lengths="1k,50k", depths="0:100:11", replicates=100)
    assert len(plan) == 2_200
    assert sum(encoded) < 10_000
    some = list(itertools.islice(plan, 5))
    assert [prompt.n_tokens for prompt in some] == [1_000] * 5
    assert sum(encoded) < 1_000_000
    first, again = next(iter(plan)), next(iter(plan))
    assert first.sha256 == again.sha256 == some[0].sha256


def test_messages_reach_the_caller(texts: Path) -> None:
    heard: list[str] = []
    needlepoint.prompts(
        corpus=texts / FILES["english"], lengths="1k", depths="50", model="mystery-9b", notify=heard.append
    )
    assert len(heard) == 1 and "mystery-9b" in heard[0] and "unproven" in heard[0]


# --- help -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [[], ["prompts"], ["assets"], ["assets", "list"], ["assets", "fetch"]])
def test_help_fits_80_columns(
    verb: list[str], run: Callable[..., tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stdout, stderr = run([*verb, "--help"])
    assert stdout.startswith("Usage: needlepoint") and stderr == ""
    assert max(map(len, stdout.splitlines())) <= 80


def test_no_verb_gives_help_and_version_its_number(run: Callable[..., tuple[str, str]]) -> None:
    assert run([])[0] == run(["--help"])[0]
    assert run(["--version"])[0] == f"needlepoint {needlepoint.__version__}\n"


def test_help_comes_fast() -> None:
    """Under 0.4 s, of processor time: other work on the machine does not count."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "needlepoint.cli", "--help"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    assert (after.children_user + after.children_system) - (before.children_user + before.children_system) < 0.4


def test_assets_are_listed_as_they_are(run: Callable[..., tuple[str, str]]) -> None:
    screen, _ = run(["assets", "list"])
    listed = json.loads(run(["assets", "list", "--json"])[0])
    assert [asset["name"] for asset in listed["assets"]] == ["sotu", "sanguo", "smollm2"]
    assert all(asset["ok"] is None for asset in listed["assets"])
    assert len(re.findall(r"\bno\s*$", screen, re.MULTILINE)) == 3
    assert listed["cache"] in screen
    _, stderr = run(["assets", "clear"])
    assert "nothing to remove" in stderr
