"""Rows of two runs for tests: a grid of questions, answered as a test wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from needlepoint.types import Needle, Reply, Score, Trial

Row = tuple[Trial, Reply, Score]
BASE = Trial(
    id="t", dataset="needle_haystack", subset="english", layout="classic", length_mode="exact", replicate=0, repeat=0,
    context_length=1_000, depth_percent=0.0, achieved_length=1_000, achieved_depth_percent=0.5, boundary="sentence",
    needles=(Needle(text="It is 4711.", answers=("4711",)),), placements=(), question="What is it?", answers=("4711",),
    corpus="c", corpus_sha256="0", tokenizer="t", tokenizer_fingerprint="f", prompt_sha256="p", sent_tokens=1_000,
    length_proven=True,
)  # fmt: skip


def trials(
    lengths: Iterable[int] = (1_000, 2_000),
    depths: Iterable[float] = (0.0, 50.0),
    replicates: int = 1,
    repeats: int = 1,
    subsets: Iterable[str] = ("english",),
    **changes: Any,
) -> Iterator[Trial]:
    for subset, text, length, depth, repeat in product(subsets, range(replicates), lengths, depths, range(repeats)):
        yield replace(
            BASE, id=f"{subset}{text}-{length}-{depth}-{repeat}", subset=subset, replicate=text, repeat=repeat,
            context_length=length, depth_percent=depth, prompt_sha256=f"{subset}{text}-{length}-{depth}", **changes,
        )  # fmt: skip


def answered(questions: Iterable[Trial], score: Callable[[int, Trial], float | str]) -> list[Row]:
    """`score` gives a value from 0 to 1, or the name of an invalid outcome."""
    return [row(trial, score(number, trial)) for number, trial in enumerate(questions)]


def row(trial: Trial, value: float | str) -> Row:
    if isinstance(value, str):
        invalid = Score(outcome=value, score=None, reason="lost", span=None, scorer="rules")  # type: ignore[arg-type]
        return trial, Reply(text=""), invalid
    outcome = "correct" if value == 1 else "wrong" if value == 0 else "partial"
    score = Score(outcome=outcome, score=value, reason="told", span=None, scorer="rules")  # type: ignore[arg-type]
    return trial, Reply(text="4711" if value else "nothing"), score
