from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from needlepoint.learn.summary import summarise
from needlepoint.types import Needle, Outcome, Reply, Score, Trial, Usage

BASE = Trial(
    id="t", dataset="needle_haystack", subset="english", layout="classic", length_mode="exact", replicate=0, repeat=0,
    context_length=1_000, depth_percent=0, achieved_length=1_000, achieved_depth_percent=0.5, boundary="sentence",
    needles=(Needle(text="n"),), placements=(), question="?", answers=("n",), corpus="c", corpus_sha256="0",
    tokenizer="t", tokenizer_fingerprint="f", prompt_sha256="p", sent_tokens=1_000, length_proven=True,
)  # fmt: skip


def row(
    length: int, depth: float, outcome: Outcome, value: float | None, subset: str = "english"
) -> tuple[Trial, Reply, Score]:
    trial = replace(BASE, subset=subset, context_length=length, depth_percent=depth, sent_tokens=length)
    reply = Reply(text="x", usage=Usage(prompt=length + 3, completion=5, cached=10), prefilled_tokens=length - 10)
    return trial, reply, Score(outcome=outcome, score=value, reason="r", span=None, scorer="rules")


def report(*rows: tuple[Trial, Reply, Score]) -> dict[str, Any]:
    return summarise(rows, head={"model": "m"})


def test_invalid_trials_lower_coverage_and_never_the_score() -> None:
    found = report(row(1_000, 0, "correct", 1.0), row(1_000, 50, "wrong", 0.0), row(2_000, 0, "overflow", None))
    assert found["overall"] == {
        "score": 0.5,
        "interval": [pytest.approx(0.06083), pytest.approx(0.93917)],
        "interval_over": "trials",
        "n": 3,
        "valid": 2,
        "coverage": pytest.approx(2 / 3, abs=1e-6),
    }
    assert found["outcomes"] == {"correct": 1, "wrong": 1, "overflow": 1}
    lengths = found["subsets"][0]["lengths"]
    assert [(one["context_length"], one["score"], one["coverage"]) for one in lengths] == [
        (1_000, 0.5, 1.0),
        (2_000, None, 0.0),
    ]


def test_cells_rows_and_columns_are_numbers_in_order() -> None:
    found = report(
        row(2_000, 12.5, "partial", 0.5), row(1_000, 100, "correct", 1.0), row(1_000, 0, "correct", 1.0, "chinese")
    )
    english, chinese = found["subsets"]
    assert [(c["context_length"], c["depth_percent"]) for c in english["cells"]] == [(1_000, 100), (2_000, 12.5)]
    assert english["cells"][1]["outcomes"] == {"partial": 1}
    assert [d["depth_percent"] for d in english["depths"]] == [12.5, 100]
    assert chinese["n"] == 1


def test_tokens_are_summed_and_what_nobody_counted_is_null() -> None:
    found = report(row(1_000, 0, "correct", 1.0), row(2_000, 0, "correct", 1.0))
    assert found["tokens"] == {
        "sent": 3_000,
        "prompt": 3_006,
        "completion": 10,
        "reasoning": None,
        "cached": 20,
        "difference_max": 3,
    }
    assert found["prefix"]["prefilled_tokens"] == 2_980
    assert found["prefix"]["bound_tokens"] is None


def test_an_empty_run_has_no_score() -> None:
    found = report()
    assert found["overall"]["score"] is None and found["overall"]["coverage"] is None and found["subsets"] == []
