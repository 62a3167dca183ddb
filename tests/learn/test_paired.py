"""Tests of paired differences, each against a second way to the same number."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needlepoint.learn.paired import (
    benjamini_hochberg,
    holm,
    mcnemar_mid_p,
    shift_of_texts,
    shift_of_trials,
    sign_flips,
)

stats = pytest.importorskip("scipy.stats", reason="scipy, the second implementation, is not installed")


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (1, 0), (0, 3), (24, 4), (4, 24), (7, 7), (120, 90)])
def test_mcnemars_mid_p_is_the_exact_p_less_the_chance_of_the_observed(lost: int, gained: int) -> None:
    n, fewer = lost + gained, min(lost, gained)
    if lost == gained:
        assert mcnemar_mid_p(lost, gained) == 1.0
        return
    exact = stats.binomtest(fewer, n, 0.5).pvalue
    assert mcnemar_mid_p(lost, gained) == pytest.approx(exact - stats.binom.pmf(fewer, n, 0.5), abs=1e-12)


def by_hand(differences: list[float]) -> float:
    observed = abs(math.fsum(differences))
    found = 0.0
    for signs in product((1, -1), repeat=len(differences)):
        value = abs(math.fsum(sign * one for sign, one in zip(signs, differences, strict=True)))
        found += 1.0 if value > observed + 1e-9 else 0.5 if value > observed - 1e-9 else 0.0
    return found / 2 ** len(differences)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_sign_flips_of_whole_numbers_are_counted_exactly(differences: list[int]) -> None:
    moved = [float(one) for one in differences]
    expected = 1.0 if sum(differences) == 0 else by_hand(moved)
    assert sign_flips(moved) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 5)), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_sign_flips_of_shares_are_counted_exactly_where_they_are_few(differences: list[float]) -> None:
    if abs(math.fsum(differences)) > 1e-6:
        assert sign_flips(differences) == pytest.approx(by_hand(differences), abs=1e-9)


def test_sign_flips_of_single_questions_are_mcnemars_test() -> None:
    assert sign_flips([-1.0] * 24 + [1.0] * 4 + [0.0] * 372) == pytest.approx(mcnemar_mid_p(24, 4), rel=1e-9)


def test_many_shares_are_drawn_by_seed_and_come_near_the_normal() -> None:
    dice = random.Random(3)
    differences = [dice.gauss(-0.05, 0.3) for _ in range(200)]
    found = sign_flips(differences, seed=1)
    assert found == sign_flips(differences, seed=1)
    z = math.fsum(differences) / math.sqrt(math.fsum(one * one for one in differences))
    assert found == pytest.approx(2 * stats.norm.sf(abs(z)), abs=0.01)


def test_no_difference_is_no_sign_of_one() -> None:
    assert sign_flips([]) == sign_flips([0.0, 0.0]) == sign_flips([0.5, -0.5]) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_q_values_are_scipys(p_values: list[float]) -> None:
    assert benjamini_hochberg(p_values) == pytest.approx(list(stats.false_discovery_control(p_values)), abs=1e-12)


def test_holms_p_values_grow_and_stay_below_one() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_interval_of_trials_is_bonett_and_prices() -> None:
    n, lost, gained = 400, 24, 4
    found = shift_of_trials([-1.0] * lost + [1.0] * gained + [0.0] * (n - lost - gained))
    bad, good = (lost + 1) / (n + 2), (gained + 1) / (n + 2)
    error = math.sqrt((bad + good - (good - bad) ** 2) / (n + 2))
    expected = good - bad - 1.959964 * error, good - bad + 1.959964 * error
    assert found.interval() == pytest.approx(expected, abs=1e-6)
    assert found.mean == -0.05


def test_an_interval_of_nothing_flipped_still_has_a_width_and_holds_the_mean() -> None:
    low, high = shift_of_trials([0.0] * 100).interval()
    assert -0.05 < low < 0 < high < 0.05
    low, high = shift_of_trials([1.0] * 3).interval()
    assert high == 1.0 and low < 1.0


def test_texts_that_rise_and_fall_together_widen_the_interval() -> None:
    together = [[[-1.0] * 10 if text < 2 else [0.0] * 10 for text in range(10)]]
    apart = [[[-1.0] * 2 + [0.0] * 8 for _ in range(10)]]
    one, other = shift_of_texts(together), shift_of_texts(apart)
    assert one.mean == other.mean == pytest.approx(-0.2)
    assert one.effect > 3 and other.effect == 1.0
    assert one.interval()[0] < other.interval()[0]


def test_intervals_of_differences_cover_what_they_promise() -> None:
    dice = random.Random("paired coverage")
    hits = {"trials": 0, "texts": 0}
    for _ in range(400):
        shares = [dice.betavariate(1.2, 18.8) for _ in range(10)]  # a text's own share of lost answers, 6 % on average
        texts = [
            [-1.0 if (u := dice.random()) < share else 1.0 if u > 0.99 else 0.0 for _ in range(20)] for share in shares
        ]
        low, high = shift_of_texts([texts]).interval()
        hits["texts"] += low <= -0.05 <= high
        independent = [-1.0 if (u := dice.random()) < 0.06 else 1.0 if u > 0.99 else 0.0 for _ in range(100)]
        low, high = shift_of_trials(independent).interval()
        hits["trials"] += low <= -0.05 <= high
    assert hits["texts"] >= 0.93 * 400 and hits["trials"] >= 0.93 * 400
