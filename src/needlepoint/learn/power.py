"""What a comparison can see: the chance of finding a drop, and the smallest drop that is found most of the time. Pure.

A drop δ means that of every question a share `churn + δ` turns bad and a share `churn` turns good: an answer may flip
for no reason at all, and the more do, the harder a drop is to see. For McNemar's test the chance is exact: the flips
are Binomial(n, 2 churn + δ), the gained among them Binomial(flips, churn / (2 churn + δ)). Where texts are the unit, or
scores are shares, it is that of Student's t with a standard error of √(effect · (2 churn + δ − δ²) / n), by the usual
approximation of the noncentral t (Abramowitz, Stegun 26.7.10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from .distributions import binomial_cdf, binomial_pmf, normal_cdf, normal_quantile, t_quantile

ALPHA = 0.05
POWER = 0.8
_MOST_STEPS = 160
_MOST_TRIALS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How much was asked of both: `n` questions, of which a share `churn` turns good by chance, and as many bad.

    `effect` and `df` are those of `paired.Shift`; `exact` says that right and wrong are counted by McNemar's test.
    """

    n: int
    churn: float = 0.0
    effect: float = 1.0
    df: float | None = None
    exact: bool = True

    def power(self, drop: float, *, alpha: float = ALPHA) -> float:
        """P(the drop is found: a two-sided p value below `alpha`, and worse)."""
        bad = self.churn + drop
        if self.exact and self.df is None:
            return _mcnemar_power(self.n, bad, self.churn, alpha)
        variance = self.effect * (bad + self.churn - drop * drop) / self.n
        if variance <= 0:
            return 1.0 if drop > 0 else 0.0
        away = drop / math.sqrt(variance)
        if self.df is None:
            return normal_cdf(away + normal_quantile(alpha / 2))
        quantile, df = t_quantile(1 - alpha / 2, self.df), self.df
        return normal_cdf((away - quantile * (1 - 1 / (4 * df))) / math.sqrt(1 + quantile * quantile / (2 * df)))

    def visible_drop(self, *, power: float = POWER, alpha: float = ALPHA) -> float | None:
        """The smallest drop that is found with this chance; None where not even the largest possible one is."""
        most = 1 - 2 * self.churn
        if most <= 0 or self.power(most, alpha=alpha) < power:
            return None
        return _smallest(lambda drop: self.power(drop, alpha=alpha) >= power, most)

    def trials_needed(self, drop: float, *, power: float = POWER, alpha: float = ALPHA) -> int | None:
        """How many questions would find this drop with this chance; None where they are too many to count."""
        if not 0 < drop <= 1 - 2 * self.churn:
            return None
        few = high = max(8, self.n if self.df is not None else 8)

        def found(n: int) -> bool:
            return replace(self, n=n).power(drop, alpha=alpha) >= power

        while not found(high):
            few, high = high, high * 2
            if high > _MOST_TRIALS:
                return None
        while high - few > max(1, few // 200):
            middle = (few + high) // 2
            few, high = (few, middle) if found(middle) else (middle, high)
        return high


def _mcnemar_power(n: int, bad: float, good: float, alpha: float) -> float:
    flips = min(1.0, bad + good)
    if flips <= 0:
        return 0.0
    middle, reach = n * flips, 8 * math.sqrt(n * flips * (1 - flips)) + 8
    first, last = max(0, math.floor(middle - reach)), min(n, math.ceil(middle + reach))
    step = max(1, (last - first) // _MOST_STEPS)
    found = weight = 0.0
    for m in range(first, last + 1, step):
        chance = binomial_pmf(m, n, flips)
        weight += chance
        if chance > 1e-12 and (most := _most_gained(m, alpha)) is not None:
            found += chance * binomial_cdf(most, m, good / (bad + good))
    return found / weight if weight > 0 else 0.0


@lru_cache(maxsize=16_384)
def _most_gained(flips: int, alpha: float) -> int | None:
    """The most gained of so many flips at which McNemar's mid-p is below `alpha`; None where it never is."""

    def rare(gained: int) -> bool:
        return 2 * binomial_cdf(gained, flips, 0.5) - binomial_pmf(gained, flips, 0.5) < alpha

    if flips < 1 or not rare(0):
        return None
    low, high = 0, flips // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rare(middle) else (low, middle)
    return low


def _smallest(holds: Callable[[float], bool], most: float) -> float:
    low, high = 0.0, most
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
        if high - low < 1e-5:
            break
    return high
