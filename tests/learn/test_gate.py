"""Bars for CI: a score, a drop, and coverage in either."""

from __future__ import annotations

from typing import Any

import pytest

from needlepoint.learn.compare import compare_pairs
from needlepoint.learn.gate import Gate, shortfall
from needlepoint.learn.pairing import pair_rows
from needlepoint.learn.summary import summarise

from .rows import answered, trials

DEPTHS = tuple(float(depth) for depth in range(0, 100, 5))


def report(score: Any) -> dict[str, Any]:
    return summarise(answered(trials((1_000, 2_000), DEPTHS), score), head={})


def test_a_score_at_the_bar_passes_and_one_below_it_does_not() -> None:
    found = report(lambda number, _: float(number >= 2))  # 38 of 40
    assert shortfall(found, 0.95) is None
    missed = shortfall(found, 0.951)
    assert missed is not None and missed.bar == "accuracy" and "95.0%, below 95.1%" in missed.says


def test_a_length_that_lost_more_than_a_tenth_falls_short_whatever_the_score() -> None:
    missed = shortfall(report(lambda number, _: "overflow" if number >= 37 else 1.0), 0.5)
    assert missed is not None and missed.bar == "coverage"
    assert missed.says == ("coverage is 85.0% for english at 2,000 tokens, below 90%: 17 of 20 trials are measurements")
    assert shortfall(report(lambda number, _: "overflow" if number >= 38 else 1.0), 0.5) is None


def test_a_bar_that_is_only_reached_without_the_lost_trials_is_missed() -> None:
    found = report(lambda number, _: "failed" if number in (0, 20) else 1.0)  # 38 of 40 measured, all right
    assert shortfall(found, 0.95) is None
    missed = shortfall(found, 0.96)
    assert missed is not None and missed.bar == "coverage" and "had they been misses" in missed.says


def test_nothing_measured_falls_short() -> None:
    missed = shortfall(report(lambda *_: "failed"), 0.1)
    assert missed is not None and missed.bar == "coverage"


@pytest.mark.parametrize(("bad", "bar", "falls"), [(4, 0.0, False), (6, 0.0, True), (6, 0.15, True), (6, 0.2, False)])
def test_a_drop_fails_where_it_is_as_large_as_the_bar_and_more_than_chance(bad: int, bar: float, falls: bool) -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    one = answered(questions, lambda *_: 1.0)
    other = answered(questions, lambda number, _: float(number >= bad))
    found = compare_pairs(pair_rows(one, other), names=("a", "b"), scorer="rules")
    assert [short.bar for short in Gate(fail_if_worse=bar).shortfalls(found)] == (["accuracy"] if falls else [])


def test_a_gain_never_fails() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    one = answered(questions, lambda number, _: float(number >= 20))
    found = compare_pairs(pair_rows(one, answered(questions, lambda *_: 1.0)), names=("a", "b"), scorer="rules")
    assert found.is_better and not Gate(fail_if_worse=0.0).shortfalls(found)
