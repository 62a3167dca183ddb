"""Runs for the page's tests: trials made by hand, summed up as a real run's are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from needlepoint.ask.trials import trial_id
from needlepoint.learn.margins import margins
from needlepoint.learn.summary import summarise
from needlepoint.show.page import PageRun
from needlepoint.show.trials import Excerpt
from needlepoint.types import Failure, Margin, Needle, Placement, Reply, Sampling, Score, Times, Trial, Usage

LENGTHS = (1_000, 4_000, 16_000, 32_000)
DEPTHS = (0.0, 25.0, 50.0, 75.0, 100.0)
Row = tuple[Trial, Reply, Score]


def a_trial(subset: str, length: int, depth: float, replicate: int = 0, *, model: str = "m", **changes: Any) -> Trial:
    trial = Trial(
        id="",
        dataset="needle_haystack",
        subset=subset,
        layout="classic",
        length_mode="exact",
        replicate=replicate,
        repeat=0,
        context_length=length,
        depth_percent=depth,
        achieved_length=length,
        achieved_depth_percent=min(100.0, depth + 0.3),
        boundary="sentence",
        needles=(Needle(text="\nThe gate code is 4711.\n", answers=("4711",), key="gate"),),
        placements=(
            Placement(
                needle=0, depth_percent=depth, achieved_depth_percent=depth, tokens_before=length, boundary="sentence"
            ),
        ),
        question="What is the gate code?",
        answers=("4711",),
        corpus="test/english",
        corpus_sha256="c" * 64,
        tokenizer="test",
        tokenizer_fingerprint="f" * 16,
        prompt_sha256=f"{subset}-{length}-{depth}-{replicate}".encode().hex()[:64],
        sent_tokens=length,
        length_proven=True,
    )
    trial = replace(trial, **changes)
    return replace(trial, id=trial_id(trial, model=model, sampling=Sampling(max_tokens=64)))


def a_row(trial: Trial, outcome: str = "correct", text: str | None = None) -> Row:
    """A trial with a reply and a score that fit its outcome."""
    usage = Usage(prompt=trial.context_length, completion=9, cached=trial.context_length // 4)
    reply = Reply(
        text="", finish="stop", usage=usage, times=Times(first_token=0.2, total=0.5 + trial.context_length / 20_000)
    )
    if outcome == "correct":
        text = "The gate code is 4711, of course." if text is None else text
        score = Score(outcome="correct", score=1.0, reason="states it", span=(17, 21), scorer="rules")
    elif outcome in {"failed", "overflow"}:
        reply = Reply(error=Failure(kind="server", message="HTTP 500 from the server", status=500), attempts=5)
        score = Score(outcome=outcome, score=None, reason="HTTP 500 from the server", span=None, scorer="rules")  # type: ignore[arg-type]
    else:
        text = "It is raining in the valley." if text is None else text
        score = Score(outcome=outcome, score=0.0, reason="does not state it", span=None, scorer="rules")  # type: ignore[arg-type]
    return trial, replace(reply, text=text or ""), score


def some_rows(
    *, model: str = "m", seed: int = 0, subsets: Sequence[str] = ("english", "chinese"), replicates: int = 2
) -> list[Row]:
    """A small run: deeper is worse, one cell failed whole, one in part, one was never asked."""
    rng = random.Random(f"{seed}:{model}")
    rows = []
    for subset in subsets:
        for length in LENGTHS:
            for depth in DEPTHS:
                for replicate in range(replicates):
                    if (length, depth) == (32_000, 100.0):
                        continue
                    lost = (length, depth) == (32_000, 75.0) or ((length, depth, replicate) == (16_000, 75.0, 1))
                    missed = rng.random() < 0.5 * (length > 4_000) * (0 < depth < 100)
                    outcome = "failed" if lost else rng.choice(["wrong", "not_found"]) if missed else "correct"
                    rows.append(a_row(a_trial(subset, length, depth, replicate, model=model), outcome))
    return rows


def with_margins(rows: Sequence[Row]) -> list[Row]:
    """The same with the margin of each reply: the longer the text the smaller, at 32k below 0."""
    return [
        (trial, reply, score)
        if reply.error
        else (
            trial,
            replace(
                reply, margin=Margin(gold=-1.5, wrong=-4.0 + trial.context_length / 10_000, rival="4712", tokens=4)
            ),
            score,
        )
        for trial, reply, score in rows
    ]


def many_rows(n: int, *, wide: bool = False) -> list[Row]:
    """`n` trials with answers of a real length: few cells of many trials, or (`wide`) a cell for each hundred."""
    rng = random.Random(n)
    lengths, depths = (100, n // 100) if wide else (10, 10)
    rows = []
    for number in range(n):
        length, depth = 1_000 * (1 + number % lengths), 100 * (number // lengths % depths) / (depths - 1)
        words = " ".join(rng.choice(["the", "gate", "code", "of", "river", "stone", "is"]) for _ in range(40))
        trial = a_trial("english", length, round(depth, 3), number // (lengths * depths))
        outcome = "correct" if rng.random() < 0.7 else rng.choice(["wrong", "not_found", "refused"])
        rows.append(a_row(trial, outcome, f"{words} {number}"))
    return rows


def a_page_run(rows: Sequence[Row], *, model: str = "test/model-1b", excerpts: bool = True, **changes: Any) -> PageRun:
    """What the page takes, of these trials."""
    head = {
        "model": model,
        "dataset": "needle_haystack",
        "layout": "classic",
        "length_mode": "exact",
        "scorer": "rules",
        "cost": 0.0123,
    }
    surroundings = {
        trial.prompt_sha256: (Excerpt(before="The ferry came late. ", after=" Nobody saw it."),)
        for trial, _, _ in rows
        if trial.prompt_sha256 is not None
    }
    run = PageRun(
        report={**summarise(rows, head=head), "margin": margins(rows)},
        trials=rows,
        folder="20261119T000000Z_model",
        excerpts=surroundings if excerpts else {},
        settings={
            "created": "2026-11-19T00:00:00Z",
            "identity": {"model": model, "lengths": list(LENGTHS)},
            "versions": {"needlepoint": "0.1.0", "python": "3.11"},
            "corpora": {"english": {"name": "test/english", "sha256": "c" * 64, "licence": "public domain"}},
        },
    )
    return replace(run, **changes)
