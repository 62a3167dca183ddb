"""Intervals: exact coverage of cells, simulated coverage of clusters, second implementations."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.learn.distributions import beta_cdf, binomial_pmf, t_quantile
from needlepoint.learn.intervals import (
    Interval,
    Rate,
    Sums,
    cell,
    independent,
    jeffreys,
    over_clusters,
    wilson,
)

Method = Callable[[float, float], Interval]


def exact_coverage(method: Method, n: int) -> tuple[float, float]:
    """Mean and least coverage over p uniform, with no simulation: between the ends of all n + 1 intervals coverage is a
    sum of binomial probabilities, whose mean is a difference of beta functions and whose least value is at an end."""
    intervals = [method(k, n) for k in range(n + 1)]
    mean = 0.0
    for k, one in enumerate(intervals):  # the integral of C(n,k) p^k (1-p)^(n-k) is that of a beta density, over n + 1
        mean += (beta_cdf(one.high, k + 1, n - k + 1) - beta_cdf(one.low, k + 1, n - k + 1)) / (n + 1)
    least = 1.0
    ends = sorted({0.0, 1.0, *(end for one in intervals for end in (one.low, one.high))})
    for left, right in pairwise(ends):
        inside = [k for k, one in enumerate(intervals) if one.low <= left and right <= one.high]
        for step in range(9):  # the pieces are short; unimodal, so that the ends decide, but look between them, too
            p = left + (right - left) * step / 8
            least = min(least, sum(binomial_pmf(k, n, p) for k in inside))
    return mean, least


@pytest.mark.parametrize("n", range(1, 51))
def test_cells_cover_what_they_promise_for_every_number_of_trials(n: int) -> None:
    mean, least = exact_coverage(lambda k, m: cell([1.0] * int(k) + [0.0] * int(m - k)) or Interval(0, 1), n)
    assert mean >= 0.94
    assert least >= 0.80


def test_wilsons_interval_would_not_do_for_cells_of_one_trial() -> None:
    assert exact_coverage(wilson, 1)[1] < 0.80
    assert exact_coverage(jeffreys, 1)[1] == pytest.approx(0.8532, abs=1e-3)


def test_they_equal_scipys() -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy, the second implementation, is not installed")
    for n in (1, 2, 7, 30, 400):
        for k in {0, 1, n // 3, n - 1, n}:
            theirs = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
            ours = wilson(k, n)
            assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
            mine = jeffreys(k, n, level=0.9)
            assert mine.low == pytest.approx(0 if k == 0 else stats.beta.ppf(0.05, k + 0.5, n - k + 0.5), abs=1e-10)
            assert mine.high == pytest.approx(1 if k == n else stats.beta.ppf(0.95, k + 0.5, n - k + 0.5), abs=1e-10)
            exact = stats.binomtest(k, n).proportion_ci(0.9, method="exact")
            rate = independent(k, n)
            assert (rate.lower(0.95), rate.upper(0.95)) == pytest.approx((exact.low, exact.high), abs=1e-10)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_an_interval_holds_its_score_within_0_and_1(scores: list[float]) -> None:
    one = cell(scores)
    assert one is not None
    assert 0 <= one.low <= sum(scores) / len(scores) + 1e-12
    assert sum(scores) / len(scores) - 1e-12 <= one.high <= 1
    assert one.low < one.high


def clustered(
    scores_by_cluster: Mapping[Hashable, Sequence[float]], *, strata: Mapping[Hashable, Hashable] | None = None
) -> Interval | None:
    """The interval of scores that share a text within a cluster; `strata` says which subset a cluster is from."""
    groups: dict[Hashable, list[Sums]] = {}
    for name, scores in scores_by_cluster.items():
        sums = Sums(math.fsum(scores), len(scores), len(scores))
        groups.setdefault(None if strata is None else strata[name], []).append(sums)
    rate = over_clusters(list(groups.values()))
    return None if rate is None else rate.interval()


def test_no_scores_have_no_interval() -> None:
    assert cell([]) is None
    assert clustered({}) is None


def test_more_trials_are_never_less_sure() -> None:
    widths = [one.high - one.low for n in range(2, 200, 2) for one in [jeffreys(n // 2, n)]]
    assert widths == sorted(widths, reverse=True)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=12), min_size=3, max_size=9))
def test_an_interval_over_clusters_holds_its_score(clusters: list[list[float]]) -> None:
    one = clustered(dict(enumerate(clusters)))
    flat = [score for scores in clusters for score in scores]
    assert one is not None
    assert one.low >= 0 and one.high <= 1
    assert one.low - 1e-12 <= sum(flat) / len(flat) <= one.high + 1e-12


def test_under_three_texts_nothing_is_said_about_others() -> None:
    assert clustered({"a": [1, 0, 1], "b": [1, 1, 1]}) is None
    assert clustered({"a": [1, 0], "b": [1, 1], "c": [0, 1]}) is not None
    assert clustered({"a": [1, 0], "b": [1, 1], "c": [0, 1], "d": []}) is not None


def test_a_design_effect_is_what_the_definition_says() -> None:
    """Clusters of equal size that differ: n_eff = n p (1 - p) / variance, by hand."""
    totals = [10, 9, 4, 10, 3, 10, 9, 1, 10, 2, 8, 0]
    rate = over_clusters([[Sums(total, 10, 10) for total in totals]])
    assert rate is not None
    p = sum(totals) / 120
    variance = sum((total - 10 * p) ** 2 for total in totals) * 12 / 11 / 120**2
    assert rate.n_effective == pytest.approx(p * (1 - p) / variance)
    assert rate.df == 11 and rate.over == "texts"
    square = t_quantile(0.975, 11) ** 2 / rate.n_effective
    centre = (p + square / 2) / (1 + square)
    one = rate.interval()
    assert (one.low + one.high) / 2 == pytest.approx(centre)


def test_what_differs_between_strata_is_no_uncertainty() -> None:
    scores: dict[Hashable, Sequence[float]] = {
        **{f"en{i}": [1.0] * 9 + [float(i % 2)] for i in range(6)},
        **{f"zh{i}": [0.0] * 5 + [1.0] * 4 + [float(i % 2)] for i in range(6)},
    }
    blind = clustered(scores)
    aware = clustered(scores, strata={name: str(name)[:2] for name in scores})
    assert blind is not None and aware is not None
    assert aware.high - aware.low < blind.high - blind.low


def test_asking_a_prompt_again_is_not_another_trial() -> None:
    once = over_clusters([[Sums(4, 5, 5), Sums(5, 5, 5), Sums(3, 5, 5), Sums(5, 5, 5)]])
    thrice = over_clusters([[Sums(12, 15, 5), Sums(15, 15, 5), Sums(9, 15, 5), Sums(15, 15, 5)]])
    assert once is not None and thrice is not None
    assert thrice.n == 60 and thrice.n_effective == pytest.approx(once.n_effective)


def test_a_perfect_score_of_few_texts_stays_modest() -> None:
    """Ten cells of each of five texts, all right: fifty independent trials would say 92.9 % at least."""
    one = clustered({i: [1.0] * 10 for i in range(5)})
    assert one is not None and one.high == 1
    assert 0.7 < one.low < wilson(50, 50).low


@given(st.integers(0, 40), st.integers(1, 40), st.sampled_from([None, 4.0, 17.0]), st.floats(0.01, 0.99))
def test_bounds_and_their_quick_forms_agree(k: int, n: int, df: float | None, share: float) -> None:
    rate = Rate(p=min(k, n) / n, n=n, n_effective=n, df=df, over="texts")
    if abs(rate.lower(0.95) - share) > 1e-9:
        assert rate.surely_above(share, 0.95) == (rate.lower(0.95) >= share)
    if abs(rate.upper(0.95) - share) > 1e-9:
        assert rate.surely_below(share, 0.95) == (rate.upper(0.95) < share)


def simulated(dice: random.Random, texts: int, cells: int, p: float, correlation: float) -> list[Sums]:
    """Trials of which those of one text are alike: its own share is drawn from a beta distribution."""
    a, b = p * (1 - correlation) / correlation, (1 - p) * (1 - correlation) / correlation
    found = []
    for _ in range(texts):
        share = dice.betavariate(a, b)
        found.append(Sums(sum(dice.random() < share for _ in range(cells)), cells, cells))
    return found


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(("texts", "cells", "correlation"), [(5, 5, 0.1), (5, 25, 0.3), (8, 10, 0.1), (20, 25, 0.3)])
def test_intervals_over_texts_cover_the_truth(texts: int, cells: int, correlation: float, p: float) -> None:
    """Benchmarks/intervals.py has it in full."""
    dice = random.Random(f"cover:{texts}:{cells}:{correlation}:{p}")
    rates = [over_clusters([simulated(dice, texts, cells, p, correlation)]) for _ in range(1_000)]
    assert sum(rate is not None and p in rate.interval() for rate in rates) / len(rates) >= 0.93


@pytest.mark.parametrize("p", [0.7, 0.85, 0.95])
def test_one_sided_bounds_are_not_too_bold(p: float) -> None:
    dice = random.Random(f"bounds:{p}")
    rates: list[Rate] = [rate for _ in range(1_000) if (rate := over_clusters([simulated(dice, 6, 10, p, 0.1)]))]
    assert sum(rate.lower(0.95) > p for rate in rates) / len(rates) <= 0.05
    assert sum(rate.upper(0.95) < p for rate in rates) / len(rates) <= 0.05
