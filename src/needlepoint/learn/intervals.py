"""How far a measured share can be off: intervals for cells, and for rows, columns and runs whose texts repeat.

A `Rate` is a share with what its uncertainty rests on. Independent trials (the replicates of one cell, each of another
text) get Jeffreys' interval: over p uniform it covers 95 % on average for every n, and never less than 85 %; Wilson's
falls to 79 % at n = 1 (a test computes both). Scores between 0 and 1 enter as fractions of a success, which is safe:
no score on [0, 1] varies more than a yes or no of the same mean.

Trials that share a text are not independent. A row, a column or a whole run is a set of clusters, one for each
replicate, and gets Wilson's interval with Student's t on `n / design effect`. The design effect is the variance between
clusters over that of as many independent trials, never below 1. Few clusters, or few that differ, say little about it;
it then leans on a cautious guess, an intra-class correlation of `PRIOR_CORRELATION`, and where the variance hangs on
one or two bad texts, t has fewer degrees of freedom. docs/methods.md has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .distributions import beta_cdf, beta_quantile, normal_quantile, t_quantile

LEVEL = 0.95
FEWEST_CLUSTERS = 3
"""Below this, nothing can be said about other texts."""
PRIOR_CORRELATION = 0.15
PRIOR_WEIGHT = 4.0
"""What is assumed of how much a text's trials have in common, and how many telling clusters outweigh it by half."""

Over = Literal["texts", "trials"]


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends, from 0 to 1."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def pair(self) -> list[float]:
        """As reports have it."""
        return [round(self.low, 6), round(self.high, 6)]


class Sums(NamedTuple):
    """One cluster's scores: their sum, how many, and how many distinct prompts they are answers to."""

    total: float
    n: int
    prompts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A measured share: `p` of `n` trials, worth `n_effective` independent ones.

    `df` is None for independent trials. `over` says what the interval speaks about: other texts, too, or only more
    trials on the texts that were taken.
    """

    p: float
    n: int
    n_effective: float
    df: float | None
    over: Over

    def interval(self, level: float = LEVEL) -> Interval:
        """Two-sided, with equal tails."""
        if self.df is None:
            return jeffreys(self.p * self.n_effective, self.n_effective, level=level)
        return _wilson(self.p, self.n_effective, t_quantile(0.5 + level / 2, self.df))

    def lower(self, confidence: float = LEVEL) -> float:
        """What the true share exceeds with at least this confidence: Clopper and Pearson's bound, never too bold.

        For clusters on Korn and Graubard's effective n, which also pays for the few degrees of freedom.
        """
        n = self._bold_n(confidence)
        return beta_quantile(1 - confidence, self.p * n, n - self.p * n + 1) if self.p > 0 else 0.0

    def upper(self, confidence: float = LEVEL) -> float:
        """What the true share stays under, in the same way."""
        n = self._bold_n(confidence)
        return beta_quantile(confidence, self.p * n + 1, n - self.p * n) if self.p < 1 else 1.0

    def surely_above(self, share: float, confidence: float = LEVEL) -> bool:
        """Whether `lower` is at least this share; faster, since the bound itself need not be found."""
        n = self._bold_n(confidence)
        return self.p > 0 and beta_cdf(share, self.p * n, n - self.p * n + 1) <= 1 - confidence

    def surely_below(self, share: float, confidence: float = LEVEL) -> bool:
        """Whether `upper` is under this share."""
        n = self._bold_n(confidence)
        return self.p < 1 and beta_cdf(share, self.p * n + 1, n - self.p * n) > confidence

    def _bold_n(self, confidence: float) -> float:
        if self.df is None:
            return self.n_effective
        return self.n_effective * (normal_quantile(confidence) / t_quantile(confidence, self.df)) ** 2


def jeffreys(successes: float, n: float, *, level: float = LEVEL) -> Interval:
    """Equal tails of Beta(successes + 1/2, failures + 1/2); open to 0 without a success, to 1 without a failure."""
    failures = n - successes
    low = beta_quantile((1 - level) / 2, successes + 0.5, failures + 0.5) if successes > 0 else 0.0
    high = beta_quantile((1 + level) / 2, successes + 0.5, failures + 0.5) if failures > 0 else 1.0
    share = successes / n
    return Interval(min(low, share), max(high, share))  # a sum of small scores may lie outside


def wilson(successes: float, n: float, *, level: float = LEVEL) -> Interval:
    """The score interval: all p from which the measured share is within the normal quantile."""
    return _wilson(successes / n, n, normal_quantile(0.5 + level / 2))


def cell(scores: Iterable[float], *, level: float = LEVEL) -> Interval | None:
    """The interval of independent scores from 0 to 1; None where there are none."""
    found = list(scores)
    return independent(sum(found), len(found)).interval(level) if found else None


def independent(total: float, n: int, *, n_effective: float | None = None, over: Over = "trials") -> Rate:
    """The rate of independent trials with this sum of scores; of fewer than `n` where some repeat a prompt."""
    return Rate(p=_share(total, n), n=n, n_effective=n if n_effective is None else n_effective, df=None, over=over)


def over_clusters(strata: Sequence[Sequence[Sums]]) -> Rate | None:
    """The rate over clusters, in strata; None where a stratum has fewer than three.

    The share is a ratio of sums, so its variance is that of the clusters' residuals `total - p n` around their
    stratum's mean (Cochran's linearisation), compared with p (1 - p) / prompts.
    """
    groups = [[sums for sums in stratum if sums.n] for stratum in strata]
    groups = [group for group in groups if group]
    clusters = [sums for group in groups for sums in group]
    if not clusters or min(len(group) for group in groups) < FEWEST_CLUSTERS:
        return None
    total, n = math.fsum(sums.total for sums in clusters), sum(sums.n for sums in clusters)
    prompts = sum(sums.prompts for sums in clusters)
    p = _share(total, n)
    variance, squares = 0.0, []
    for group in groups:
        residuals = [sums.total - p * sums.n for sums in group]
        middle = math.fsum(residuals) / len(group)
        own = [(residual - middle) ** 2 for residual in residuals]
        variance += len(group) / (len(group) - 1) * math.fsum(own)
        squares += own
    spread = p * (1 - p) / prompts
    measured = variance / n**2 / spread if spread > 0 else 0.0
    size = sum(sums.prompts**2 for sums in clusters) / prompts
    guess = 1 + (size - 1) * PRIOR_CORRELATION
    telling = min(sum(sums.total > 0 for sums in clusters), sum(sums.total < sums.n for sums in clusters))
    weight = PRIOR_WEIGHT / (PRIOR_WEIGHT + telling)
    effect = max(1.0, measured, weight * guess + (1 - weight) * measured)
    df = _degrees(squares, len(clusters) - len(groups), effect)
    return Rate(p=p, n=n, n_effective=prompts / effect, df=df, over="texts")


def _degrees(squares: Sequence[float], most: int, effect: float) -> float:
    """Degrees of freedom of a variance that hangs on these squared residuals (Satterthwaite's match of two moments).

    The variance of a sample variance grows with the kurtosis K: ν = 2 C / (K - (C - 3) / (C - 1)). Only the part above
    that of independent trials is estimated, hence the factor. Never fewer than two.
    """
    sum_of_squares = math.fsum(squares)
    if effect <= 1 or sum_of_squares <= 0:
        return float(most)
    n = len(squares)
    kurtosis = n * math.fsum(square * square for square in squares) / sum_of_squares**2
    spread = kurtosis - (n - 3) / (n - 1)
    found = max(1.0, 2 * n / spread) if spread > 0 else math.inf
    return min(float(most), max(2.0, found * (effect / (effect - 1)) ** 2))


def _wilson(p: float, n: float, quantile: float) -> Interval:
    square = quantile * quantile / n
    centre = (p + square / 2) / (1 + square)
    half = math.sqrt(p * (1 - p) * square + square * square / 4) / (1 + square)
    return Interval(max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half)))


def _share(total: float, n: int) -> float:
    return min(1.0, max(0.0, total / n))
