"""Where to look next: the lengths of the next trials, and the length that is worth certifying.

Locating asks where one answer tells most of the effective length for its price, information / cost^0.5: a power below 1
since cheap trials alone, far from where the curve falls, say ever less. Trials that are asked at once are chosen one by
one, each as if those before it had been answered as expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .psychometric import Posterior

COST_POWER = 0.5
LADDER_STEP = 0.25
"""Doublings between the lengths that are considered."""
FAIR, GOOD = 0.3, 0.6
"""The least chance to pass that a length is tried with: the first one, and a longer one than is certified."""
WORTH_CLIMBING = 0.45
"""Doublings."""
SLACK = 1.3
"""How many times the trials that the best bet needs on average are allowed for."""


def next_lengths(
    posterior: Posterior, lengths: Sequence[int], n: int, *, cost: Callable[[int], float]
) -> tuple[int, ...]:
    """The lengths of the next `n` trials, of those that can be asked (ascending)."""
    chosen: list[int] = []
    for _ in range(n):
        best = max(
            lengths,
            key=lambda length: (
                posterior.information(length, shortest=lengths[0], longest=lengths[-1]) / cost(length) ** COST_POWER
            ),
        )
        chosen.append(best)
        if len(chosen) < n:
            posterior = posterior.updated(best, posterior.mean(best))
    return tuple(sorted(chosen))


def pass_probability(posterior: Posterior, length: int, *, alpha: float, trials: float, wealth: float = 1.0) -> float:
    """How likely it is that `trials` more take this wealth to 1/alpha, as far as the curve is known."""
    if trials <= 0:
        return 0.0
    needed = max(1e-12, SLACK * math.log(1 / (alpha * max(wealth, 1e-300))) / trials)
    rates = posterior.curves.growth(length)
    return sum(weight for rate, weight in zip(rates, posterior.weights, strict=True) if rate >= needed)


def length_to_certify(
    posterior: Posterior,
    lengths: Sequence[int],
    *,
    alpha: float,
    trials: Callable[[int], float],
    certified: int | None = None,
) -> int | None:
    """Of these lengths (ascending) the one to certify, within `trials` of each; None where none has a good chance.

    The most promising bet: the chance to pass, times the doublings that it would win over what is certified; with
    nothing certified, the shortest length is worth one. A climb that wins little, or is no more than fair, isn't tried.
    """
    best, most = None, 0.0
    for length in lengths:
        won = 1 + math.log2(length / lengths[0]) if certified is None else math.log2(length / certified)
        if certified is not None and won < WORTH_CLIMBING:
            continue
        chance = pass_probability(posterior, length, alpha=alpha, trials=trials(length))
        if chance >= (FAIR if certified is None else GOOD) and chance * won > most:
            best, most = length, chance * won
    return best


def ladder(shortest: int, longest: int) -> tuple[int, ...]:
    """Lengths from shortest to longest, a quarter of a doubling apart, rounded to what people read easily."""
    n = max(1, round(math.log2(longest / shortest) / LADDER_STEP)) if longest > shortest else 1
    inner = (_rounded(shortest * (longest / shortest) ** (i / n)) for i in range(1, n))
    return tuple(sorted({shortest, longest, *(length for length in inner if shortest < length < longest)}))


def _rounded(length: float) -> int:
    """To two digits, and to a third one below 2: 1,190, 1,410, 1,680, 2,000, 2,400."""
    unit: int = 10 ** max(0, math.floor(math.log10(length / 2)) - 1)
    return round(length / unit) * unit
