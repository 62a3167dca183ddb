"""The distributions that intervals and tests rest on: normal, Student's t, beta, binomial. Pure, standard library only.

Everything but the normal goes back to one function, the regularised incomplete beta function, computed by its continued
fraction (NIST Digital Library of Mathematical Functions, 8.17.22) with Lentz's method as modified by Thompson and
Barnett. Quantiles are found by bisection on it, sped up by Newton's steps: slower than a dedicated approximation, as
exact as the function itself, and the same for all arguments. Callers who need many are helped by the caches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

_TINY = 1e-300
_EPSILON = 1e-15


def normal_cdf(x: float) -> float:
    """P(Z ≤ x) for a standard normal Z."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


@lru_cache(maxsize=4_096)
def normal_quantile(p: float) -> float:
    """The x with P(Z ≤ x) = p, for 0 < p < 1."""
    from statistics import NormalDist  # takes a while to import

    return NormalDist().inv_cdf(p)


@lru_cache(maxsize=65_536)
def beta_cdf(x: float, a: float, b: float) -> float:
    """P(X ≤ x) for X ~ Beta(a, b), a and b > 0: the regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    log_front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    if x * (a + b + 2) < a + 1:  # the fraction converges fast on this side of the mean
        return min(1.0, math.exp(log_front) * _beta_fraction(x, a, b) / a)
    return max(0.0, 1.0 - math.exp(log_front) * _beta_fraction(1 - x, b, a) / b)


@lru_cache(maxsize=65_536)
def beta_quantile(p: float, a: float, b: float) -> float:
    """The x with P(X ≤ x) = p for X ~ Beta(a, b)."""
    if p <= 0 or p >= 1:
        return 0.0 if p <= 0 else 1.0
    log_scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)

    def density(x: float) -> float:
        exponent = log_scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x)
        return math.exp(exponent) if exponent < 700 else math.inf

    return _root(lambda x: beta_cdf(x, a, b) - p, density, 0.0, 1.0, a / (a + b))


@lru_cache(maxsize=65_536)
def t_cdf(x: float, df: float) -> float:
    """P(T ≤ x) for Student's t with `df` > 0 degrees of freedom."""
    if math.isinf(df):
        return normal_cdf(x)
    if abs(x) <= 1:
        half = 0.5 * beta_cdf(x * x / (df + x * x), 0.5, df / 2)
        return 0.5 + math.copysign(half, x)
    tail = 0.5 * beta_cdf(df / (df + x * x), df / 2, 0.5)  # exact where the tail is small
    return 1 - tail if x > 0 else tail


@lru_cache(maxsize=4_096)
def t_quantile(p: float, df: float) -> float:
    """The x with P(T ≤ x) = p for Student's t with `df` > 0 degrees of freedom, 0 < p < 1."""
    if math.isinf(df):
        return normal_quantile(p)
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -t_quantile(1 - p, df)
    # T² / (df + T²) is Beta(1/2, df/2), so its complement is Beta(df/2, 1/2), whose small values are the far tail
    rest = beta_quantile(2 * p, df / 2, 0.5)
    return -math.inf if rest <= 0 else -math.sqrt(df * (1 - rest) / rest)


def binomial_pmf(k: int, n: int, p: float) -> float:
    """P(K = k) for K ~ Binomial(n, p)."""
    if not 0 <= k <= n:
        return 0.0
    if p <= 0 or p >= 1:
        return float(k == (0 if p <= 0 else n))
    log_ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log_ways + k * math.log(p) + (n - k) * math.log1p(-p))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(K ≤ k) for K ~ Binomial(n, p)."""
    if k < 0 or k >= n:
        return 0.0 if k < 0 else 1.0
    return beta_cdf(1 - p, n - k, k + 1)


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of I_x(a, b), for x left of the mean."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 + term * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + term / c
            c = c if abs(c) > _TINY else _TINY
            value *= c * d
        if abs(c * d - 1) < _EPSILON:
            break
    return value


def _root(
    function: Callable[[float], float], slope: Callable[[float], float], low: float, high: float, start: float
) -> float:
    """Where an increasing function is 0: Newton's steps, halving where they would leave the bracket."""
    x = start
    for _ in range(2_000):  # a bracket that shrinks towards 0 may need one step for each halving of a double
        value = function(x)
        if value == 0:
            return x
        low, high = (x, high) if value < 0 else (low, x)
        steep = slope(x)
        step = value / steep if 0 < steep < math.inf else math.inf
        nearer = x - step
        if not low < nearer < high:
            nearer = low + (high - low) / 2
        if abs(nearer - x) <= 4e-16 * abs(nearer) or not low < nearer < high:
            return nearer
        x = nearer
    return x
