"""Margins of two runs on the same questions: by second implementations, by simulation, and where there are none."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from scipy import stats

from needlepoint.learn.change import MarginChange
from needlepoint.learn.compare import compare_pairs
from needlepoint.learn.gate import Gate
from needlepoint.learn.pairing import pair_rows
from needlepoint.types import Margin, Trial

from .rows import Row, answered, trials

DEPTHS = tuple(float(depth) for depth in range(0, 100, 10))


def with_margins(questions: list[Trial], margin: Callable[[Trial], float | None], score: float = 1.0) -> list[Row]:
    """A run in which the margin of a trial is as told; None: it has none."""
    rows = answered(questions, lambda *_: score)
    values = [margin(trial) for trial, _, _ in rows]
    made = [None if value is None else Margin(gold=value - 9, wrong=-9.0, rival="4712", tokens=2) for value in values]
    return [(trial, replace(reply, margin=one), found) for (trial, reply, found), one in zip(rows, made, strict=True)]


def changed(one: list[Row], other: list[Row]) -> MarginChange | None:
    return compare_pairs(pair_rows(one, other), names=("a", "b"), scorer="rules").logprob_margin


def drawn(questions: list[Trial], seed: object, *, mean: float = 0.0, between: float = 0.0) -> Callable[[Trial], float]:
    """Margins by question: a normal one of each, and one more that a text's questions share."""
    dice = random.Random(f"{seed}")
    texts = {(trial.subset, trial.replicate): dice.gauss(0, between) for trial in questions}
    values = {trial.id: texts[trial.subset, trial.replicate] + dice.gauss(mean, 1) for trial in questions}
    return lambda trial: values[trial.id]


def test_questions_give_students_interval_and_p_value() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    before, after = drawn(questions, "a", mean=8), drawn(questions, "b", mean=7.2)
    found = changed(with_margins(questions, before), with_margins(questions, after))
    moved = [after(trial) - before(trial) for trial in questions]
    truth = stats.ttest_1samp(moved, 0)
    assert found is not None and (found.whole.over, found.whole.method) == ("trials", "student_t")
    assert found.p_value == pytest.approx(truth.pvalue)
    assert found.interval == pytest.approx(tuple(truth.confidence_interval()))
    assert found.difference == pytest.approx(found.whole.other - found.whole.one) == pytest.approx(sum(moved) / 20)


def test_eight_texts_are_the_unit_and_flip_their_signs() -> None:
    seven = list(trials((1_000,), DEPTHS[:3], 7))
    found = changed(with_margins(seven, lambda _: 1.0), with_margins(seven, drawn(seven, "b")))
    assert found is not None and found.whole.over == "trials"
    questions = list(trials((1_000,), DEPTHS[:3], 8))
    after = drawn(questions, "b", mean=0.3, between=1)
    found = changed(with_margins(questions, lambda _: 1.0), with_margins(questions, lambda trial: 1 + after(trial)))
    assert found is not None and found.whole.over == "texts"
    sums = [sum(after(trial) for trial in questions if trial.replicate == text) for text in range(8)]
    flipped = [abs(sum(s * v for s, v in zip(signs, sums, strict=True))) for signs in product((1, -1), repeat=8)]
    seen = abs(sum(sums))
    rarer, alike = sum(one > seen + 1e-9 for one in flipped), sum(abs(one - seen) <= 1e-9 for one in flipped)
    assert found.whole.method == "sign_flips" and found.p_value == pytest.approx((rarer + alike / 2) / 2**8)
    truth = stats.t.interval(0.95, 7, sum(sums) / 24, stats.sem([one / 3 for one in sums]))
    assert found.interval == pytest.approx(truth)


def test_a_few_margins_that_moved_by_the_very_same_are_no_proof() -> None:
    questions = list(trials((1_000,), (0.0, 50.0, 100.0)))
    found = changed(with_margins(questions, lambda _: 8.0), with_margins(questions, lambda _: 7.875))
    assert found is not None and found.difference == -0.125
    assert found.p_value == 1 / 8 and not found.is_worse


@pytest.mark.parametrize(("texts", "between"), [(1, 0.0), (8, 0.5), (16, 0.5)])
def test_margins_of_one_model_seldom_differ(texts: int, between: float) -> None:
    questions = list(trials((1_000,), DEPTHS[:4] if texts > 1 else DEPTHS * 2, texts))
    questions = [replace(trial, id=f"{n}", prompt_sha256=f"{n}") for n, trial in enumerate(questions)]
    alarms = 0
    for seed in range(150):
        one, other = (drawn(questions, f"{seed}{side}", between=between) for side in "ab")
        found = changed(with_margins(questions, one), with_margins(questions, other))
        assert found is not None
        alarms += found.is_worse or found.is_better
    assert alarms <= 15  # 7.5 on average; more than 15 four times in a thousand


def test_lengths_and_depths_whose_margins_fell_stand_out_while_no_answer_flips() -> None:
    questions = list(trials((1_000, 2_000, 4_000), DEPTHS, 10))
    before, noise = drawn(questions, "a", mean=9), drawn(questions, "b")

    def after(trial: Trial) -> float:
        fell = 1.0 * (trial.context_length == 4_000) + 1.5 * (trial.depth_percent == 50)
        return before(trial) + 0.3 * noise(trial) - fell

    one, other = with_margins(questions, before), with_margins(questions, after)
    found = compare_pairs(pair_rows(one, other), names=("a", "b"), scorer="rules")
    assert found.difference == 0 and not found.flips
    change = found.logprob_margin
    assert change is not None and change.is_worse and change.parts.lengths[2].difference < -1
    worst = [part.where.depth_percent for part in change.parts.depths if part.is_notable and part.difference < -1]
    assert worst == [50.0] and change.parts.lengths[2].is_notable
    assert not Gate(fail_if_worse=0.0).shortfalls(found)  # the bars are accuracy's


def test_repeats_of_a_prompt_are_averaged_and_crossings_counted() -> None:
    questions = list(trials((1_000,), (0.0, 50.0), repeats=2))
    one = with_margins(questions, lambda trial: 1.0 if trial.depth_percent == 0 else -1.0)
    other = with_margins(questions, lambda trial: -3.0 + 4 * trial.repeat if trial.depth_percent == 0 else 0.5)
    found = changed(one, other)
    assert found is not None and found.whole.n == 2
    assert (found.whole.one, found.whole.other) == (0.0, -0.25)
    assert (found.whole.lost, found.whole.gained) == (1, 1)


def test_only_questions_that_have_a_margin_in_both_runs_count() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    whole = with_margins(questions, lambda _: 8.0)
    some = with_margins(questions, lambda trial: 7.0 if trial.context_length == 1_000 else None)
    found = changed(whole, some)
    assert found is not None and found.whole.n == 10
    assert [part.where.context_length for part in found.parts.lengths] == [1_000]
    assert not found.parts.cells  # one question each: no spread
    assert changed(whole, with_margins(questions, lambda _: None)) is None
    assert changed(whole[:1], whole[:1]) is None


def test_what_was_no_measurement_has_no_margin_to_compare() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    one = with_margins(questions, lambda _: 8.0)
    cut = [(trial, reply, replace(score, outcome="truncated", score=None)) for trial, reply, score in one[:5]]
    found = changed(one, [*cut, *one[5:]])
    assert found is not None and found.whole.n == 15 and found.p_value == 1.0


def test_a_bar_on_margins_fails_where_they_fell_by_as_much_and_no_answer_flipped() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    before, noise = drawn(questions, "a", mean=9), drawn(questions, "b")
    one = with_margins(questions, before)
    other = with_margins(questions, lambda trial: before(trial) - 0.8 + 0.2 * noise(trial))
    found = compare_pairs(pair_rows(one, other), names=("a", "b"), scorer="rules")
    for bar, falls_short in ((0.0, True), (0.5, True), (1.0, False)):
        gate = Gate(fail_if_worse=None, fail_if_margin_worse=bar)
        assert [short.bar for short in gate.shortfalls(found)] == (["margin"] if falls_short else [])
        assert gate.bars == ("coverage", "margin")
    (told,) = Gate(fail_if_worse=0.02, fail_if_margin_worse=0.5).shortfalls(found)
    assert re.fullmatch(r"margins are 0\.\d+ nats lower \(p < 0\.001\), and 0\.5 nats or more is too much", told.says)
    back = compare_pairs(pair_rows(other, one), names=("b", "a"), scorer="rules")
    assert not Gate(fail_if_worse=0.0, fail_if_margin_worse=0.0).shortfalls(back)


def test_margins_that_are_lost_fail_their_bar_as_lost_trials_do() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    whole = with_margins(questions, lambda _: 8.0)
    some = with_margins(questions, lambda trial: 8.0 if trial.context_length == 1_000 else None)
    found = compare_pairs(pair_rows(whole, some), names=("a", "b"), scorer="rules")
    (told,) = Gate(fail_if_worse=None, fail_if_margin_worse=0.5).shortfalls(found)
    assert told.says == "10 of 20 margins that the first run has are lost"
    assert not Gate(fail_if_worse=None, fail_if_margin_worse=0.5, max_lost=0.5).shortfalls(found)
    none = compare_pairs(pair_rows(whole, with_margins(questions, lambda _: None)), names=("a", "b"), scorer="rules")
    assert [short.bar for short in Gate(fail_if_worse=0.0, fail_if_margin_worse=0.5).shortfalls(none)] == ["margin"]


def test_the_json_of_margins_is_plain() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    one, other = (with_margins(questions, drawn(questions, side, mean=5)) for side in "ab")
    found = compare_pairs(pair_rows(one, other), names=("a", "b"), scorer="rules")
    told = json.loads(json.dumps(found.json(), allow_nan=False))["logprob_margin"]
    assert told["unit"] == "nats" and told["overall"]["n"] == 20 and len(told["lengths"]) == 2
    assert told["overall"]["interval"][0] < told["overall"]["difference"] < told["overall"]["interval"][1]
    plain = compare_pairs(pair_rows(one, answered(questions, lambda *_: 1.0)), names=("a", "b"), scorer="rules")
    assert plain.json()["logprob_margin"] is None
