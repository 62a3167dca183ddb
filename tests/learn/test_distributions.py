"""The distributions against scipy's, where it is there, and against what they must be."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.learn.distributions import (
    beta_cdf,
    beta_quantile,
    binomial_cdf,
    binomial_pmf,
    normal_cdf,
    normal_quantile,
    t_cdf,
    t_quantile,
)

shapes = st.floats(0.5, 2_000)
shares = st.floats(1e-6, 1 - 1e-6)


@given(shares, shapes, shapes)
def test_a_beta_quantile_is_where_the_cdf_has_that_value(p: float, a: float, b: float) -> None:
    x = beta_quantile(p, a, b)
    around = beta_cdf(math.nextafter(x, 0), a, b), beta_cdf(math.nextafter(x, 1), a, b)
    assert around[0] - 1e-8 <= p <= around[1] + 1e-8


@given(st.floats(0, 1), shapes, shapes)
def test_the_beta_cdf_mirrors(x: float, a: float, b: float) -> None:
    mirrored = 1 - x
    if 1 - mirrored == x:
        assert beta_cdf(x, a, b) == pytest.approx(1 - beta_cdf(mirrored, b, a), abs=1e-10)


@given(shares, st.floats(1, 1e5))
def test_t_quantiles_invert_the_cdf_and_are_odd(p: float, df: float) -> None:
    assert t_cdf(t_quantile(p, df), df) == pytest.approx(p, abs=1e-8)
    assert t_quantile(p, df) == pytest.approx(-t_quantile(1 - p, df), rel=1e-6, abs=1e-8)


@given(st.integers(1, 300), shares)
def test_binomial_probabilities_sum_to_one(n: int, p: float) -> None:
    assert math.fsum(binomial_pmf(k, n, p) for k in range(n + 1)) == pytest.approx(1)
    k = n // 2
    assert binomial_cdf(k, n, p) == pytest.approx(math.fsum(binomial_pmf(i, n, p) for i in range(k + 1)), abs=1e-10)


def test_ends_are_exact() -> None:
    assert (beta_cdf(0, 2, 3), beta_cdf(1, 2, 3), beta_quantile(0, 2, 3), beta_quantile(1, 2, 3)) == (0, 1, 0, 1)
    assert (binomial_cdf(-1, 5, 0.3), binomial_cdf(5, 5, 0.3)) == (0, 1)
    assert (binomial_pmf(0, 5, 0), binomial_pmf(5, 5, 1), binomial_pmf(6, 5, 0.5)) == (1, 1, 0)
    assert t_quantile(0.5, 3) == 0


def test_known_values() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054, rel=1e-12)
    assert t_quantile(0.975, 4) == pytest.approx(2.7764451051977987, rel=1e-12)
    assert t_quantile(0.975, math.inf) == normal_quantile(0.975)
    assert t_cdf(1, 1) == pytest.approx(0.75, rel=1e-12)  # Cauchy
    assert beta_cdf(0.3, 1, 1) == pytest.approx(0.3, rel=1e-12)


def test_all_equal_scipys() -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy, the second implementation, is not installed")
    dice = random.Random("distributions")
    for _ in range(300):
        a, b, x, p = 10 ** dice.uniform(-1, 4), 10 ** dice.uniform(-1, 4), dice.random(), dice.random()
        assert beta_cdf(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), rel=1e-8, abs=1e-200)
        assert beta_quantile(p, a, b) == pytest.approx(stats.beta.ppf(p, a, b), rel=1e-7, abs=1e-200)
        df, t = 10 ** dice.uniform(0, 4), dice.uniform(-9, 9)
        assert t_cdf(t, df) == pytest.approx(stats.t.cdf(t, df), rel=1e-8)
        assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-6)
        assert normal_cdf(t) == pytest.approx(stats.norm.cdf(t), rel=1e-12)
        n = dice.randint(1, 3_000)
        k = dice.randint(0, n)
        assert binomial_pmf(k, n, x) == pytest.approx(stats.binom.pmf(k, n, x), rel=1e-8, abs=1e-200)
        assert binomial_cdf(k, n, x) == pytest.approx(stats.binom.cdf(k, n, x), rel=1e-8, abs=1e-200)
