"""Trials and replies for tests: made by hand, and by hypothesis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from needlepoint.ask.trials import trial_id
from needlepoint.types import Failure, Needle, Placement, Reply, Sampling, Score, Times, Trial, Usage

TRIAL = Trial(
    id="",
    dataset="needle_haystack",
    subset="english",
    layout="classic",
    length_mode="exact",
    replicate=0,
    repeat=0,
    context_length=4000,
    depth_percent=50.0,
    achieved_length=4000,
    achieved_depth_percent=49.9,
    boundary="sentence",
    needles=(Needle(text="The gate code is 4711.", answers=("4711",), key="gate code"),),
    placements=(
        Placement(needle=0, depth_percent=50.0, achieved_depth_percent=49.9, tokens_before=1900, boundary="sentence"),
    ),
    question="What is the gate code?",
    answers=("4711",),
    corpus="test/english",
    corpus_sha256="c" * 64,
    tokenizer="test",
    tokenizer_fingerprint="f" * 16,
    prompt_sha256="a" * 64,
    sent_tokens=4000,
    length_proven=True,
)
REPLY = Reply(text="4711", finish="stop", usage=Usage(prompt=4000, completion=3), times=Times(total=0.5))


def a_trial(number: int = 0, *, max_tokens: int = 512, **changes: Any) -> Trial:
    trial = replace(TRIAL, repeat=number, **changes)
    return replace(trial, id=trial_id(trial, model="m", sampling=Sampling(max_tokens=max_tokens)))


def a_failure(kind: Any = "server", message: str = "HTTP 500") -> Reply:
    return Reply(error=Failure(kind=kind, message=message, status=500), attempts=3)


texts = st.text(st.characters(exclude_categories=()), max_size=20)  # halves of surrogate pairs too
whole = st.none() | st.integers(0, 2**63)
numbers = st.floats(allow_nan=False, allow_infinity=False)
seconds = st.none() | numbers
usages = st.builds(Usage, prompt=whole, completion=whole, reasoning=whole, cached=whole, cache_written=whole)
failures = st.builds(
    Failure,
    kind=st.sampled_from(["overflow", "rate_limit", "server", "timeout", "stopped"]),
    message=texts,
    status=st.none() | st.integers(100, 599),
    retry_after_s=seconds,
)
replies = st.builds(
    Reply,
    text=texts,
    reasoning=st.none() | texts,
    finish=st.none() | texts,
    logprobs=st.none() | st.lists(numbers, max_size=4).map(tuple),
    usage=usages,
    prefilled_tokens=whole,
    times=st.builds(Times, queued=seconds, first_token=seconds, total=seconds),
    attempts=st.integers(0, 9),
    error=st.none() | failures,
)
needles = st.builds(Needle, text=texts, answers=st.lists(texts, max_size=3).map(tuple), key=st.none() | texts)
placements = st.builds(
    Placement,
    needle=st.integers(0, 9),
    depth_percent=numbers,
    achieved_depth_percent=numbers,
    tokens_before=st.integers(0, 10**9),
    boundary=st.sampled_from(["sentence", "clause", "word"]),
)
trials = st.builds(
    Trial,
    id=texts,
    dataset=texts,
    subset=texts,
    layout=texts,
    length_mode=texts,
    replicate=st.integers(0, 9),
    repeat=st.integers(0, 9),
    context_length=st.integers(0, 10**7),
    depth_percent=numbers,
    achieved_length=whole,
    achieved_depth_percent=seconds,
    boundary=st.none() | texts,
    needles=st.lists(needles, max_size=3).map(tuple),
    placements=st.lists(placements, max_size=3).map(tuple),
    question=texts,
    answers=st.lists(texts, max_size=3).map(tuple),
    corpus=texts,
    corpus_sha256=texts,
    tokenizer=texts,
    tokenizer_fingerprint=texts,
    prompt_sha256=texts,
    sent_tokens=whole,
    length_proven=st.booleans(),
)
scores = st.builds(
    Score,
    outcome=st.sampled_from(["correct", "wrong", "overflow"]),
    score=seconds,
    reason=texts,
    span=st.none() | st.tuples(st.integers(0, 99), st.integers(0, 99)),
    scorer=texts,
)
