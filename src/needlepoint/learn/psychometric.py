"""How likely a fact is found at a length, as far as it is known: a posterior over falling curves.

A curve over x = log2(length) has four parameters, as in QUEST+ (Watson 2017) and the psi method (Kontsevich and Tyler
1999): where it crosses the threshold t, how steeply it falls, what it misses on short texts (lapse) and what it still
finds on endless ones (floor):

    ψ(x) = floor + (1 − lapse − floor) · σ(k (m − x)),   ψ(crossing) = t

Written by its crossing, the effective length is a parameter itself, and all else is nuisance. The posterior is a plain
list of weights on a grid of curves; lengths are tokens outside and doublings inside. Nothing here knows what is asked.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul

from .certificate import growth

STEP = 0.25
"""Doublings between two crossings that are told apart."""
WIDTHS = (0.2, 0.6, 1.5, 3.5, 7.0)
"""Doublings in which a curve falls from 3/4 to 1/4 of its height."""
LAPSES = (0.05, 0.3, 0.7)
"""Shares of 1 − t: a model that misses more never reaches t, and its crossing lies below the shortest length."""
FLOORS = (0.0, 0.4, 0.8)
"""Shares of t."""
BEYOND = (0.25, 0.75, 1.5, 3.0)
"""Doublings outside of the range at which a crossing may lie, too."""
PRIOR_BELOW, PRIOR_ABOVE = 0.1, 0.2
"""What is thought likely before the first answer: that not even the shortest length holds, that the longest does."""
_EDGE = 1e-4


class Curves:
    """A grid of curves over lengths from `shortest` to `longest`, in the order of their crossings."""

    def __init__(self, shortest: int, longest: int, threshold: float) -> None:
        self.threshold = threshold
        low, high = math.log2(shortest), math.log2(longest)
        n = max(1, math.ceil((high - low) / STEP - 1e-9))
        step = (high - low) / n
        inside = [low + (i + 0.5) * step for i in range(n)]
        below = [low - far for far in reversed(BEYOND)]
        above = [high + far for far in BEYOND]
        self.crossings = (*below, *inside, *above)
        self.edges = (*below, *(low + i * step for i in range(n + 1)), *above[1:], math.inf)
        """Where each crossing's stretch begins; the last end is that of the last one."""
        self.shapes = [(width, lapse, floor) for width in WIDTHS for lapse in LAPSES for floor in FLOORS]
        shares = [PRIOR_BELOW / len(below)] * len(below) + [(1 - PRIOR_BELOW - PRIOR_ABOVE) / n] * n
        shares += [PRIOR_ABOVE / len(above)] * len(above)
        self.prior = [share / len(self.shapes) for share in shares for _ in self.shapes]
        self._found: dict[int, list[float]] = {}
        self._growth: dict[int, list[float]] = {}

    def found(self, length: int) -> list[float]:
        """The share that each curve finds at this length; remembered."""
        if length not in self._found:
            x, t = math.log2(length), self.threshold
            table = []
            for crossing in self.crossings:
                for width, lapse, floor in self.shapes:
                    top, bottom = 1 - (1 - t) * lapse, t * floor
                    at = (t - bottom) / (top - bottom)
                    z = math.log(at / (1 - at)) + 2 * math.log(3) / width * (crossing - x)
                    share = bottom + (top - bottom) / (1 + math.exp(-max(-500.0, min(500.0, z))))
                    table.append(min(1 - _EDGE, max(_EDGE, share)))
            self._found[length] = table
        return self._found[length]

    def growth(self, length: int) -> list[float]:
        """How fast a certificate at this length would come about by each curve, a trial; remembered."""
        if length not in self._growth:
            self._growth[length] = [growth(share, self.threshold) for share in self.found(length)]
        return self._growth[length]


@lru_cache(maxsize=8)
def curves_between(shortest: int, longest: int, threshold: float) -> Curves:
    """The same curves for the same search: their tables are made once."""
    return Curves(shortest, longest, threshold)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Weights of curves, given the answers so far; they sum to 1. `updated` gives another one."""

    curves: Curves
    weights: Sequence[float]

    @classmethod
    def before(cls, curves: Curves) -> Posterior:
        return cls(curves, curves.prior)

    def updated(self, length: int, score: float) -> Posterior:
        """After one more score from 0 to 1 at this length: by ψ^score · (1 − ψ)^(1 − score)."""
        found = self.curves.found(length)
        if score >= 1:
            weights = list(map(mul, self.weights, found))
        elif score <= 0:
            weights = [weight * (1 - share) for weight, share in zip(self.weights, found, strict=True)]
        else:
            miss = 1 - score
            weights = [
                weight * share**score * (1 - share) ** miss for weight, share in zip(self.weights, found, strict=True)
            ]
        total = sum(weights)
        return Posterior(self.curves, [weight / total for weight in weights])

    def mean(self, length: int) -> float:
        """The share that is expected to be found at this length."""
        return sum(weight * share for weight, share in zip(self.weights, self.curves.found(length), strict=True))

    def shares(self, length: int) -> list[tuple[float, float]]:
        """What may be found at this length, and how likely that is."""
        return list(zip(self.curves.found(length), self.weights, strict=True))

    def stretches(self) -> list[float]:
        """How likely the crossing lies in each of the curves' stretches."""
        n = len(self.curves.shapes)
        return [sum(self.weights[at : at + n]) for at in range(0, len(self.weights), n)]

    def quantile(self, share: float) -> float:
        """The length (in doublings) below which the crossing lies with this probability; −inf or inf outside of all."""
        begin, end, inside = self._stretch(share)
        return begin + (end - begin) * inside if math.isfinite(end) else math.inf

    def interval(self, level: float) -> tuple[float, float]:
        """Where the crossing lies with this probability at least: the whole stretches that hold its quantiles."""
        tail = (1 - level) / 2
        return self._stretch(tail)[0], self._stretch(1 - tail)[1]

    def _stretch(self, share: float) -> tuple[float, float, float]:
        """The stretch that holds this quantile, and how far into it that lies."""
        sums = list(accumulate(self.stretches()))
        at = min(bisect_left(sums, share), len(sums) - 1)
        before = sums[at - 1] if at else 0.0
        weight = sums[at] - before
        inside = min(1.0, (share - before) / weight) if weight > 0 else 1.0
        return self.curves.edges[at], self.curves.edges[at + 1], inside

    def information(self, length: int, *, shortest: int, longest: int) -> float:
        """Bits that one answer at this length is expected to tell of the effective length from shortest to longest.

        The mutual information of the answer and the crossing, the curve's shape averaged out (Prins 2013). All
        crossings beyond an end count as one.
        """
        n = len(self.curves.shapes)
        products = list(map(mul, self.weights, self.curves.found(length)))
        low, high = math.log2(shortest), math.log2(longest)
        first = next((i for i, at in enumerate(self.curves.crossings) if at > low), 0)
        last = next((i for i, at in enumerate(self.curves.crossings) if at >= high), len(self.curves.crossings))
        cuts = [0, *(i * n for i in range(first, last + 1)), len(products)]
        told = _entropy(sum(products), 1.0)
        for begin, end in pairwise(cuts):
            told -= _entropy(sum(products[begin:end]), sum(self.weights[begin:end]))
        return max(0.0, told)


def _entropy(hits: float, weight: float) -> float:
    """`weight` times the entropy, in bits, of a yes that comes with probability hits / weight."""
    if weight <= 0:
        return 0.0
    p = min(1 - 1e-12, max(1e-12, hits / weight))
    return -weight * (p * math.log2(p) + (1 - p) * math.log2(1 - p))
