"""Two measurements of the same things: is there a difference, and how large is it? Pure.

A difference is that of two scores on one question, from −1 (lost) to +1 (gained). Right and wrong alone give McNemar's
test: under no change each flipped answer is as likely lost as gained, so the lost are Binomial(flips, ½). Its mid-p
version counts half of what is exactly as rare as the observed: exact tests of small counts are far too careful, this
one keeps its level closely (Fagerland, Lydersen, Laake 2013). Where texts are the unit, all differences of a text
change sign together: sign flips of the texts' sums. Shares of scores go by sign flips, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from .distributions import binomial_cdf, binomial_pmf, normal_quantile, t_quantile
from .intervals import LEVEL

DRAWS = 20_000
_ALL_FLIPS = 16
_MOST_BITS = 8_000_000
_SCALES = (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 20, 60)
_TINY = 1e-9


def mcnemar_mid_p(lost: int, gained: int) -> float:
    """Two-sided: 2 · P(K < k) + P(K = k) for k the fewer of both and K ~ Binomial(lost + gained, ½)."""
    flips, fewer = lost + gained, min(lost, gained)
    if lost == gained:
        return 1.0
    return min(1.0, 2 * binomial_cdf(fewer, flips, 0.5) - binomial_pmf(fewer, flips, 0.5))


def sign_flips(differences: Sequence[float], *, seed: int = 0) -> float:
    """Two-sided mid-p: P(|a sum of these with random signs| > |their sum|), and half the chance that it is as large.

    Exact where they are whole numbers of some small share, as right and wrong are, or few; else by `DRAWS` seeded
    draws, of which the observed one counts as one more (Phipson, Smyth 2010).
    """
    moved = [difference for difference in differences if abs(difference) > _TINY]
    observed = abs(math.fsum(moved))
    if observed <= _TINY:
        return 1.0
    whole = _whole(moved)
    if whole is not None and sum(whole) * (len(whole) + 1) <= _MOST_BITS:
        return _counted(whole, abs(sum(sign * one for sign, one in zip(_signs(moved), whole, strict=True))))
    slack = _TINY * len(moved)

    def rarity(value: float) -> float:
        return 1.0 if abs(value) > observed + slack else 0.5 if abs(value) >= observed - slack else 0.0

    if len(moved) <= _ALL_FLIPS:
        sums = signed_sums(moved)
        return math.fsum(map(rarity, sums)) / len(sums)
    dice = Random(f"{seed}:sign flips:{len(moved)}")
    found = 1.0
    for _ in range(DRAWS):
        bits = dice.getrandbits(len(moved))
        found += rarity(math.fsum(one if bits >> place & 1 else -one for place, one in enumerate(moved)))
    return found / (DRAWS + 1)


def signed_sums(values: Sequence[float]) -> list[float]:
    """The sums of these values with every choice of signs: twice as many with each value more."""
    sums = [0.0]
    for value in values:
        sums = [before + signed for before in sums for signed in (value, -value)]
    return sums


def _signs(values: Sequence[float]) -> list[int]:
    return [1 if value > 0 else -1 for value in values]


def _whole(values: Sequence[float]) -> list[int] | None:
    """Sizes as whole numbers of one small share; None where there is no such share."""
    for scale in _SCALES:
        if all(abs(value * scale - round(value * scale)) < 1e-6 for value in values):
            return [abs(round(value * scale)) for value in values]
    return None


def _counted(sizes: Sequence[int], observed: int) -> float:
    """The same for whole numbers: how many of all 2^C choices of signs give such a sum, counted exactly.

    With T the sum of those that are positive, the signed sum is 2T − Σ. The ways to each T are held as one number,
    `width` bits for each T, so that one more size is one shift and one addition.
    """
    total, width = sum(sizes), len(sizes) + 1
    ways = 1
    for size in sizes:
        ways += ways << size * width
    mask, last = (1 << width) - 1, (total - observed) // 2
    counts = [ways >> place * width & mask for place in range(last + 1)]
    return min(1.0, (2 * sum(counts[:-1]) + counts[-1]) / (1 << len(sizes)))


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """q values: at most a share q of those with a q up to it are false, on average (Benjamini, Hochberg 1995)."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i], reverse=True)
    found, least = [1.0] * len(p_values), 1.0
    for rank, i in zip(range(len(p_values), 0, -1), order, strict=True):
        least = min(least, p_values[i] * len(p_values) / rank)
        found[i] = least
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """p values that keep the chance of any false alarm among all of them at the level (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    found, most = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        most = min(1.0, max(most, p_values[i] * (len(p_values) - rank)))
        found[i] = most
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A mean difference, and what its uncertainty rests on: `error` is a standard error around `centre`.

    `centre` is a little nearer to no change than the mean itself. `df` is None where trials are taken as independent;
    `effect` is how many times larger the variance is than that of independent ones.
    """

    mean: float
    centre: float
    error: float
    df: float | None
    n: int
    effect: float = 1.0

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        quantile = normal_quantile(0.5 + level / 2) if self.df is None else t_quantile(0.5 + level / 2, self.df)
        low, high = self.centre - quantile * self.error, self.centre + quantile * self.error
        return max(-1.0, min(low, self.mean)), min(1.0, max(high, self.mean))


def shift_of_trials(differences: Sequence[float]) -> Shift:
    """That of independent questions: one more lost and one more gained are added first (Bonett, Price 2012)."""
    n = len(differences)
    total = math.fsum(differences)
    squares = math.fsum(one * one for one in differences) + 2
    centre = total / (n + 2)
    variance = max(0.0, squares / (n + 2) - centre * centre)
    return Shift(mean=total / n, centre=centre, error=math.sqrt(variance / (n + 2)), df=None, n=n)


def shift_of_texts(differences: Sequence[Sequence[Sequence[float]]]) -> Shift:
    """That of texts, in strata: the variance between them, never less than that of as many independent questions.

    `differences` are stratum → text → question. Sums are compared as in `intervals.over_clusters`.
    """
    alone = shift_of_trials([one for stratum in differences for text in stratum for one in text])
    between = variance_between(differences, alone.mean)
    effect = max(1.0, between / alone.error**2)
    df = sum(len(stratum) - 1 for stratum in differences)
    return Shift(
        mean=alone.mean, centre=alone.centre, error=alone.error * math.sqrt(effect), df=df, n=alone.n, effect=effect
    )


def variance_between(differences: Sequence[Sequence[Sequence[float]]], mean: float) -> float:
    """The variance of their mean, as the texts of a stratum differ from each other."""
    variance, n = 0.0, 0
    for stratum in differences:
        residuals = [math.fsum(text) - mean * len(text) for text in stratum]
        middle = math.fsum(residuals) / len(residuals)
        spread = math.fsum((residual - middle) ** 2 for residual in residuals)
        variance += len(residuals) / (len(residuals) - 1) * spread
        n += sum(map(len, stratum))
    return variance / n**2
