"""A certificate that may be stopped at any time: "accuracy is at least t", wrong with probability α at most.

The wealth of a gambler who bets that scores are above t. As long as their mean is t or less the game is unfair to him,
so his wealth, which begins at 1, ever reaches 1/α with probability α at most (Ville 1939), however long he plays and
whenever he stops; that is why the number of trials may depend on what they say. A bet on p₁ > t multiplies wealth by

    1 + λ (score − t),   λ = (p₁ − t) / (t (1 − t))

which is p₁/t for a hit and (1 − p₁)/(1 − t) for a miss: the likelihood ratio, and as fair for scores between 0 and 1
(Waudby-Smith and Ramdas 2024). The wealth is spread over many p₁, half evenly, half as earlier trials suggest (mixture
method, Robbins 1970). Scores must be fresh: none that had a say in which length is certified.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_STEPS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Wealth:
    """What bets on `aims` (each a p₁ above the threshold) have grown to. The sum is the e-value."""

    threshold: float
    aims: Sequence[float]
    parts: Sequence[float]

    @classmethod
    def before(cls, threshold: float, shares: Iterable[tuple[float, float]] = ()) -> Wealth:
        """Before the first trial. `shares` are what earlier trials make likely: (share found, its probability)."""
        room = 1 - threshold
        aims = [threshold + room * (i + 0.5) / _STEPS for i in range(_STEPS)]
        guess = [0.0] * _STEPS
        for share, weight in shares:
            if share > threshold:
                guess[min(_STEPS - 1, int((share - threshold) / room * _STEPS))] += weight
        total = math.fsum(guess)
        even = 1 / _STEPS
        parts = [0.5 * even + 0.5 * part / total if total > 0 else even for part in guess]
        return cls(threshold=threshold, aims=aims, parts=parts)

    def after(self, score: float) -> Wealth:
        t = self.threshold
        parts = [
            part * (1 + (aim - t) / (t * (1 - t)) * (score - t))
            for part, aim in zip(self.parts, self.aims, strict=True)
        ]
        return Wealth(threshold=t, aims=self.aims, parts=parts)

    @property
    def total(self) -> float:
        return math.fsum(self.parts)


def growth(share: float, threshold: float) -> float:
    """How fast log wealth grows at best, a trial: the Kullback–Leibler divergence of `share` from the threshold."""
    if share <= threshold:
        return 0.0
    miss = (1 - share) * math.log((1 - share) / (1 - threshold)) if share < 1 else 0.0
    return share * math.log(share / threshold) + miss
