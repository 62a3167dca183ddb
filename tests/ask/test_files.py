"""Prompts read from a file: the very prompts that were written, or a clear error with the line."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.ask.batch import custom_id
from needlepoint.ask.files import FilePrompt, read_prompts
from needlepoint.ask.trials import recipe_id, trial_of
from needlepoint.errors import InputError
from needlepoint.export import batch_request, lines
from needlepoint.plan.grid import Grid
from needlepoint.plan.needles import SEED_NEEDLE
from needlepoint.plan.task import Plan, Task
from needlepoint.types import Askable, Corpus, Endpoint, Sampling

SAMPLING = Sampling(max_tokens=100)


@pytest.fixture(scope="module")
def endpoint(endpoint_of: Callable[[str], Endpoint]) -> Endpoint:
    return endpoint_of("qwen3")


@pytest.fixture(scope="module")
def plan(english: Corpus, chinese: Corpus, endpoint: Endpoint) -> Plan:
    grid = Grid(lengths=(1000, 2000), depths=(0, 33.3, 100))
    return Plan(Task(grid=grid, needle_set="word", repeats=2, replicates=2), [english, chinese], endpoint)


@pytest.fixture(scope="module")
def written(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    path.write_bytes(b"".join(line.data for line in lines(plan)))
    return path


def plain_sample(number: int = 0, **changes: Any) -> dict[str, Any]:
    """As EvalScope writes them: no roles, no recipe."""
    question = "<text>\nA long text.\n</text>\n\n<question>\nWhich city?\n</question>\n\nShort."
    return {
        "input": [{"id": "aaaaaaaa", "content": "Be short."}, {"id": "bbbbbbbb", "content": question}],
        "target": SEED_NEEDLE,
        "id": number,
        "group_id": number,
        "metadata": {"context": "A long text.", "context_length": 1000, "depth_percent": 33},
        **changes,
    }


def a_file(folder: Path, *samples: Any) -> Path:
    path = folder / "samples.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8")
    return path


# --- what needlepoint wrote -------------------------------------------------------------------------------------------


def test_a_written_file_gives_the_very_prompts_and_recipes_of_its_plan(
    plan: Plan, written: Path, endpoint: Endpoint
) -> None:
    found = read_prompts(written, endpoint=endpoint)
    assert len(found) == len(plan) == 48
    assert list(found.places()) == list(plan.places()) and found.notes == ()
    about = {"dataset": "needle_haystack", "endpoint": endpoint, "model": "m", "sampling": SAMPLING}
    for one, other in zip(found, plan, strict=True):
        assert isinstance(one, Askable)
        assert one.messages() == other.messages() and one.sha256 == other.sha256
        assert one.text() == other.text() and one.token_ids() == other.token_ids()
        assert one.n_tokens == other.n_tokens
        assert trial_of(one, **about) == trial_of(other, **about)  # type: ignore[arg-type]


def test_another_tokenizer_makes_lengths_unknown_but_the_question_the_same(
    plan: Plan, written: Path, endpoint: Endpoint, endpoint_of: Callable[[str], Endpoint]
) -> None:
    other = replace(endpoint_of("llama3"), proven=True)
    about = {"dataset": "needle_haystack", "sampling": SAMPLING}
    prompt = next(iter(read_prompts(written, endpoint=other)))
    trial = trial_of(prompt, endpoint=other, model="n", **about)  # type: ignore[arg-type]
    planned = trial_of(next(iter(plan)), endpoint=endpoint, model="m", **about)  # type: ignore[arg-type]
    assert prompt.n_tokens is None and trial.sent_tokens is None and not trial.length_proven
    assert trial.tokenizer_fingerprint == endpoint.tokenizer.fingerprint, "the recipe is its maker's"
    assert recipe_id(trial) == recipe_id(planned) and trial.id != planned.id


def test_a_file_read_without_an_endpoint_has_messages_but_no_lengths(written: Path) -> None:
    prompt = next(iter(read_prompts(written)))
    assert prompt.n_tokens is None
    assert prompt.text() == "\n\n".join(message["content"] for message in prompt.messages())
    with pytest.raises(InputError, match="without a tokenizer"):
        prompt.token_ids()


def test_proven_lengths_stay_proven_where_the_other_side_counts_alike(written: Path, endpoint: Endpoint) -> None:
    proven = replace(endpoint, proven=True)
    assert all(prompt.origin.length_proven for prompt in read_prompts(written, endpoint=proven))


def test_batch_files_and_prompts_files_call_their_prompts_alike(plan: Plan, written: Path) -> None:
    for number, (one, other) in enumerate(zip(read_prompts(written), plan, strict=True)):
        sent = json.loads(batch_request(other, number, model="m"))["custom_id"]
        assert custom_id(one, number) == custom_id(other, number) == sent


def test_the_file_may_be_read_several_times_and_knows_its_own_sha256(written: Path) -> None:
    import hashlib

    found = read_prompts(written)
    assert [prompt.sha256 for prompt in found] == [prompt.sha256 for prompt in found]
    assert found.sha256 == hashlib.sha256(written.read_bytes()).hexdigest()


def test_only_one_line_is_held_at_a_time(tmp_path: Path) -> None:
    content = "word " * 200_000
    path = tmp_path / "large.jsonl"
    with path.open("w") as file:
        for number in range(20):
            sample = plain_sample(input=[{"role": "user", "content": f"{number} {content}"}])
            file.write(json.dumps(sample) + "\n")
    tracemalloc.start()
    for prompt in list(read_prompts(path)):
        assert len(prompt.messages()) == 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000 < path.stat().st_size


# --- EvalScope's own samples ------------------------------------------------------------------------------------------


def test_a_sample_without_roles_and_recipe_is_read_with_what_it_has(tmp_path: Path, endpoint: Endpoint) -> None:
    found = read_prompts(a_file(tmp_path, plain_sample()), endpoint=endpoint)
    (prompt,) = found
    assert "1 of 1 prompts" in found.notes[0] and list(found.places()) == [prompt.cell]
    assert [message["role"] for message in prompt.messages()] == ["system", "user"]
    assert (prompt.cell.subset, prompt.cell.context_length, prompt.cell.depth_percent) == ("default", 1000, 33.0)
    assert prompt.question == "Which city?"
    assert prompt.answers == ("eat a sandwich and sit in Dolores Park",)
    assert prompt.n_tokens is None and prompt.placements == () and not prompt.has_recipe
    trial = trial_of(prompt, dataset="d", endpoint=endpoint, model="m", sampling=SAMPLING)
    assert (trial.achieved_length, trial.achieved_depth_percent, trial.boundary) == (None, None, None)
    assert trial.tokenizer is None and trial.length_mode == "evalscope" and not trial.length_proven


@pytest.mark.parametrize(
    ("target", "answers"),
    [
        ("\nThe code is 5.\n", ("The code is 5.",)),
        ("\nA.\n\n\nB.\n", ("A.", "B.")),
        (["A.", " B. "], ("A.", "B.")),
        ("", ()),
        (None, ()),
        (5, ()),
    ],
)
def test_the_target_says_what_a_right_answer_holds(tmp_path: Path, target: Any, answers: tuple[str, ...]) -> None:
    (prompt,) = read_prompts(a_file(tmp_path, plain_sample(target=target)))
    assert prompt.answers == answers


@pytest.mark.parametrize(
    ("given", "roles"),
    [
        ("only a text", ["user"]),
        ([{"content": "a"}], ["user"]),
        ([{"role": "developer", "content": "a"}, {"role": "user", "content": "b"}], ["developer", "user"]),
    ],
)
def test_roles_are_taken_as_given_or_by_their_order(tmp_path: Path, given: Any, roles: list[str]) -> None:
    (prompt,) = read_prompts(a_file(tmp_path, plain_sample(input=given)))
    assert [message["role"] for message in prompt.messages()] == roles


def test_equal_samples_of_another_tool_are_repeats(tmp_path: Path) -> None:
    other = plain_sample(metadata={"context_length": 2000, "depth_percent": 33})
    found = list(read_prompts(a_file(tmp_path, plain_sample(0), other, plain_sample(1), plain_sample(2))))
    assert [prompt.repeat for prompt in found] == [0, 0, 1, 2]


def test_empty_lines_windows_line_ends_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "windows.jsonl"
    sample = json.dumps(plain_sample()).encode()
    path.write_bytes(b"\xef\xbb\xbf" + sample + b"\r\n\r\n" + sample)
    found = list(read_prompts(path))
    assert [prompt.line for prompt in found] == [1, 3]
    assert [len(prompt.messages()) for prompt in found] == [2, 2]


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"[1]", "is no JSON object"),
        (b"{}", "'input' is no list"),
        (b'{"custom_id":"0","body":{}}', "--format samples"),
        ({"input": []}, "'input' is no list"),
        ({"input": [5]}, r"input\[0\] is no message"),
        ({"input": [{"content": [{"type": "text", "text": "a"}]}]}, r"input\[0\] is no message with a text"),
        ({"input": [{"content": "a"}] * 3}, r"input\[0\] has no role"),
        ({"input": [{"content": "a"}, {"role": "user", "content": "b"}]}, r"input\[0\] has no role"),
        ({"input": [{"role": 5, "content": "a"}]}, r"input\[0\] has no role"),
        ({"input": "half \ud800"}, "is not a prompt"),
        ({"metadata": None}, "metadata is null, not an object"),
        ({"metadata": {"depth_percent": 1}}, r"metadata\.context_length is missing"),
        ({"metadata": {"context_length": "1000", "depth_percent": 1}}, r'metadata\.context_length is "1000"'),
        ({"metadata": {"context_length": 1000, "depth_percent": 1, "schema": 2}}, "schema is 2"),
        ({"metadata": {"context_length": 1000, "depth_percent": 1, "needles": [5]}}, r"metadata\.needles\[0\] is 5"),
        ({"metadata": {"context_length": 1000, "depth_percent": 1, "tokenizer": {}}}, r"tokenizer\.name is missing"),
        ({"metadata": {"context_length": 1000, "depth_percent": 1, "prompt_sha256": "ab" * 32}}, "was changed since"),
    ],
)
def test_a_wrong_line_is_named_with_its_number(tmp_path: Path, line: Any, says: str) -> None:
    path = a_file(tmp_path, plain_sample())
    data = line if isinstance(line, bytes) else json.dumps(plain_sample(**line)).encode()
    path.write_bytes(path.read_bytes() + data + b"\n")
    with pytest.raises(InputError, match=rf"samples\.jsonl, line 2: .*{says}"):
        read_prompts(path)


def test_a_changed_prompt_is_refused(written: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.jsonl"
    data = written.read_bytes().splitlines(keepends=True)
    data[3] = data[3].replace(b"<question>", b"<question> ")
    changed.write_bytes(b"".join(data))
    with pytest.raises(InputError, match=r"changed\.jsonl, line 4: was changed since it was made"):
        read_prompts(changed)


def test_the_same_prompt_twice_is_refused(written: Path, tmp_path: Path) -> None:
    twice = tmp_path / "twice.jsonl"
    data = written.read_bytes().splitlines(keepends=True)
    twice.write_bytes(b"".join([*data, data[5]]))
    with pytest.raises(InputError, match=r"twice\.jsonl, line 49: asks the very same as line 6"):
        read_prompts(twice)


def test_a_file_that_changes_while_it_is_used_is_noticed(tmp_path: Path) -> None:
    path = a_file(tmp_path, plain_sample())
    (prompt,) = read_prompts(path)
    a_file(tmp_path, plain_sample(input="something else"))
    with pytest.raises(InputError, match=r"line 1: was changed while the file was in use"):
        prompt.messages()
    path.unlink()
    with pytest.raises(InputError, match="Cannot read"):
        prompt.messages()


def test_what_is_no_file_of_prompts_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n\n")
    for name, says in (("gone.jsonl", "No such file"), ("", "Is a directory"), ("empty.jsonl", "holds no prompts")):
        with pytest.raises(InputError, match=says):
            read_prompts(tmp_path / name)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("scratch") / "any.jsonl"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(data=st.data())
def test_any_json_in_any_field_is_a_prompt_or_an_input_error(scratch: Path, data: st.DataObject) -> None:
    sample = plain_sample()
    where = data.draw(st.sampled_from(["input", "target", "metadata", "one message", "one metadata"]))
    value = data.draw(_JSON)
    if where == "one message":
        sample["input"][1] = {"content": value, "role": data.draw(_JSON)}
    elif where == "one metadata":
        name = data.draw(
            st.sampled_from(["answers", "needles", "placements", "repeat", "corpus", "tokenizer", "subset"])
        )
        sample["metadata"][name] = value
    else:
        sample[where] = value
    scratch.write_text(json.dumps(sample))
    try:
        (prompt,) = read_prompts(scratch)
    except InputError as error:
        assert "line 1" in str(error)
    else:
        assert isinstance(prompt, FilePrompt) and prompt.messages()
