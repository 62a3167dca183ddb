"""The parity mode against EvalScope's own prompts, and against a plain second implementation of its procedure."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import needlepoint
from needlepoint.connect import connect
from needlepoint.errors import CorpusError, LengthError, TokenizerError
from needlepoint.plan.grid import Grid
from needlepoint.plan.task import Plan, Task
from needlepoint.types import Corpus, Tokenizer

SEED_NEEDLE = "\nThe best thing to do in San Francisco is eat a sandwich and sit in Dolores Park on a sunny day.\n"


def reference(tokenizer: Tokenizer, text: str, longest: int, length: int, depth: float, needles: list[str]) -> str:
    """EvalScope's procedure, word for word from its description: whole token lists, no shortcuts."""
    context = text
    tokens = list(tokenizer.encode(context).ids)
    while len(tokens) < longest:
        context += "\n" + text
        tokens = list(tokenizer.encode(context).ids)
    encoded = [list(tokenizer.encode(needle).ids) for needle in needles]
    tokens = tokens[: length - 150 - sum(map(len, encoded))]
    stops = set(tokenizer.encode(".").ids) | set(tokenizer.encode("。").ids)
    step = (100 - depth) / len(needles)
    for needle in encoded:
        if depth == 100:
            tokens = tokens + needle
            continue
        at = int(len(tokens) * (depth / 100))
        while at > 0 and tokens[at - 1] not in stops:
            at -= 1
        tokens = tokens[:at] + needle + tokens[at:]
        depth += step
    return tokenizer.decode(tokens)


@settings(max_examples=40, deadline=None)
@given(
    length=st.integers(300, 3_000),
    depth=st.integers(0, 100),
    needles=st.lists(
        st.sampled_from([SEED_NEEDLE, "A. B. C.", "密码是七。", " x", "Dot. ", "plain words"]),
        min_size=1,
        max_size=5,
        unique=True,
    ),
    language=st.sampled_from(["en", "zh"]),
    size=st.integers(5, 400),
)
def test_any_cell_equals_the_plain_procedure(
    length: int,
    depth: int,
    needles: list[str],
    language: str,
    size: int,
    tokenizer_of,
    prose,
    corpus_from,  # type: ignore[no-untyped-def]
) -> None:
    text = prose[language](size)
    task = Task(grid=Grid(lengths=(length,), depths=(depth,)), length_mode="evalscope", needles=tuple(needles))
    (prompt,) = Plan(task, [corpus_from(text)], connect("Qwen/Qwen3-0.6B"), verify="all")
    assert prompt.context() == reference(tokenizer_of("qwen3"), text, length, length, depth, needles)
    assert prompt.n_tokens == prompt.recount()


def test_reference_prompts_are_byte_identical(shared_data: Path) -> None:
    recorded = json.loads((shared_data / "reference" / "evalscope_prompts.json").read_text())["small"]
    plan = needlepoint.prompts(
        datasets=["needle_haystack"],
        dataset_args={
            "needle_haystack": {"local_path": str(shared_data / "corpus"), "extra_params": recorded["extra_params"]}
        },
    )
    ours = {
        (p.cell.subset, p.cell.context_length, p.cell.depth_percent): hashlib.sha256(
            p.messages()[-1]["content"].encode()
        ).hexdigest()
        for p in plan
    }
    theirs = {
        (row["subset"], row["context_length"], row["depth_percent"]): row["sha256"] for row in recorded["prompts"]
    }
    assert len(theirs) == 50
    assert ours == theirs


def test_the_english_prompt_of_1000_tokens_has_3898_characters(shared_data: Path) -> None:
    plan = needlepoint.prompts(
        datasets="needle_haystack",
        limit=1,
        dataset_args={"needle_haystack": {"local_path": str(shared_data / "corpus"), "subset_list": ["english"]}},
    )
    (prompt,) = plan
    assert sum(len(message["content"]) for message in prompt.messages()) == 3898


def test_a_character_cut_in_half_becomes_a_replacement_character_as_in_evalscope(tokenizer_of, corpus_from) -> None:  # type: ignore[no-untyped-def]
    text = "前言。" + "𠀀𠀁𠀂𠀃" * 200
    found = set()
    for length in range(400, 412):
        task = Task(grid=Grid(lengths=(length,), depths=(100,)), length_mode="evalscope")
        (prompt,) = Plan(task, [corpus_from(text)], connect(None), verify="all")
        assert prompt.context() == reference(tokenizer_of("qwen3"), text, length, length, 100, [SEED_NEEDLE])
        found.add("\ufffd" in prompt.context())
    assert found == {True, False}


def test_a_length_without_text_is_refused_and_the_shortest_is_named(english: Corpus) -> None:
    plan = Plan(Task(grid=Grid(lengths=(160,), depths=(50,)), length_mode="evalscope"), [english], connect(None))
    with pytest.raises(LengthError, match="175 or more"):
        list(plan)
    (prompt,) = Plan(Task(grid=Grid(lengths=(175,), depths=(50,)), length_mode="evalscope"), [english], connect(None))
    assert prompt.hay_tokens == 1


def test_a_text_without_a_full_stop_is_refused(corpus_from) -> None:  # type: ignore[no-untyped-def]
    plan = Plan(
        Task(grid=Grid(lengths=(500,), depths=(50,)), length_mode="evalscope"),
        [corpus_from("no stop here " * 400)],
        connect(None),
    )
    with pytest.raises(CorpusError, match="--length-mode exact"):
        list(plan)


def test_a_tokenizer_with_bos_is_refused(english: Corpus) -> None:
    plan = Plan(
        Task(grid=Grid(lengths=(500,), depths=(50,)), length_mode="evalscope"),
        [english],
        connect("meta-llama/Llama-3.1-8B-Instruct"),
    )
    with pytest.raises(TokenizerError, match="BOS"):
        list(plan)


def test_a_needle_comes_out_as_the_tokenizer_spells_it(english: Corpus) -> None:
    """Qwen's tokenizer brings text to NFC, so EvalScope's decoded needle is in NFC, too."""
    needles = ("Cafe\u0301 is the word.", "No. \u212b", "plain")
    task = Task(grid=Grid(lengths=(400,), depths=(0, 50, 100)), length_mode="evalscope", needles=needles)
    for prompt in Plan(task, [english], connect("Qwen/Qwen3-0.6B"), verify="all"):
        context = prompt.context()
        assert "Caf\u00e9 is the word." in context and "No. \u00c5" in context and "plain" in context
        assert prompt.target == "\n".join(needles)


def test_a_tokenizer_that_changes_the_text_is_refused(english: Corpus) -> None:
    endpoint = connect("Qwen/Qwen3-0.6B")
    endpoint.tokenizer.rewrites = True  # type: ignore[misc]
    plan = Plan(Task(grid=Grid(lengths=(500,), depths=(50,)), length_mode="evalscope"), [english], endpoint)
    with pytest.raises(TokenizerError, match="another text"):
        list(plan)
