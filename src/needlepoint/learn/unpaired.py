"""Two runs that asked different prompts, as two separate samples: the difference of their rates. Pure.

The interval puts those of both rates together: for d = p₂ − p₁ the lower end is d − √((p₂ − l₂)² + (u₁ − p₁)²), the
upper one likewise (Newcombe 1998; Zou, Donner 2008). It takes over what the two rest on, texts as the unit included.
The p value is the level at which the interval just reaches no difference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from .change import Comparison, CoverageChange, Sight
from .compare import equivalence
from .distributions import t_quantile
from .intervals import LEVEL, Rate
from .pairing import Row, question_of
from .parts import Part, Where, parts_of
from .power import ALPHA, POWER
from .tally import Tally, measured

_SMALLEST = 1e-9


@dataclass(frozen=True, slots=True)
class Gap:
    """`other` less `one`."""

    one: Rate
    other: Rate

    @property
    def mean(self) -> float:
        return self.other.p - self.one.p

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        a, b = self.one.interval(level), self.other.interval(level)
        low = self.mean - math.hypot(self.other.p - b.low, a.high - self.one.p)
        high = self.mean + math.hypot(b.high - self.other.p, self.one.p - a.low)
        return max(-1.0, low), min(1.0, high)

    def p_value(self) -> float:
        """Two-sided."""
        if self.mean == 0:
            return 1.0

        def reaches(alpha: float) -> bool:
            low, high = self.interval(1 - alpha)
            return low <= 0 <= high

        low, high = math.log(_SMALLEST), 0.0
        if not reaches(_SMALLEST):
            return _SMALLEST
        for _ in range(36):
            middle = (low + high) / 2
            low, high = (middle, high) if reaches(math.exp(middle)) else (low, middle)
        return math.exp(high)

    def visible_drop(self, *, power: float, alpha: float) -> float | None:
        """The smallest drop that is found with this chance, from the level of both together; None where none is."""
        n = self.one.n_effective, self.other.n_effective
        p = (self.one.p * n[0] + self.other.p * n[1] + 0.5) / (sum(n) + 1)
        df = min((rate.df for rate in (self.one, self.other) if rate.df is not None), default=math.inf)
        reach, drop = t_quantile(1 - alpha / 2, df) + t_quantile(power, df), 0.0
        for _ in range(8):  # the error at the lower rate depends on the drop
            lower = max(0.0, p - drop)
            drop = reach * math.sqrt(p * (1 - p) / n[0] + lower * (1 - lower) / n[1])
        return drop if drop <= self.one.p else None


def compare_samples(
    one: Sequence[Row],
    other: Sequence[Row],
    *,
    names: tuple[str, str],
    scorer: str,
    margin: float | None = None,
    notes: Iterable[str] = (),
) -> Comparison:
    """Two runs that asked different prompts, in the cells that both asked about."""
    shared = {_place(row) for row in one} & {_place(row) for row in other}
    sides = [[row for row in rows if _place(row) in shared] for rows in (one, other)]
    items = [(side, row) for side, rows in enumerate(sides) for row in rows]
    parts = parts_of(items, lambda item: _place(item[1]), _part)
    gap = _gap(items, is_cell=False)
    return Comparison(
        one=names[0],
        other=names[1],
        paired=False,
        scorer=scorer,
        texts=len({(trial.subset, trial.replicate) for trial, _, _ in sides[0]}),
        parts=parts,
        coverage=_coverage(*sides),
        equivalence=None if gap is None else equivalence(gap.interval, margin),
        sight=None if gap is None else Sight(n=gap.one.n, drop=gap.visible_drop(power=POWER, alpha=ALPHA)),
        notes=tuple(notes),
    )


def _part(items: Sequence[tuple[int, Row]], where: Where) -> Part | None:
    gap = _gap(items, is_cell=where.context_length is not None and where.depth_percent is not None)
    if gap is None:
        return None
    return Part(
        where=where,
        n=gap.one.n,
        one=gap.one.p,
        other=gap.other.p,
        difference=gap.mean,
        interval=gap.interval(),
        p_value=gap.p_value(),
        over="texts" if gap.one.over == gap.other.over == "texts" else "trials",
        method="two_samples",
    )


def _gap(items: Sequence[tuple[int, Row]], *, is_cell: bool) -> Gap | None:
    """None where one of both measured nothing."""
    tallies = Tally(), Tally()
    seen: set[Hashable] = set()
    for side, (trial, _, score) in items:
        prompt = side, question_of(trial)
        fresh = measured(score) is not None and prompt not in seen
        if fresh:
            seen.add(prompt)
        tallies[side].add(trial, score, fresh=fresh)
    a, b = (tally.rate_of_trials() if is_cell else tally.rate() for tally in tallies)
    return None if a is None or b is None else Gap(a, b)


def _coverage(one: Sequence[Row], other: Sequence[Row]) -> CoverageChange:
    """Where the second sample measured a smaller share, the trials that it lacks for the first one's."""
    valid = [sum(measured(score) is not None for _, _, score in rows) for rows in (one, other)]
    expected = round(valid[0] / len(one) * len(other)) if one else 0
    broken = Counter(score.outcome for _, _, score in other if measured(score) is None)
    lost = max(0, expected - valid[1])
    return CoverageChange(
        asked=len(other),
        one=expected,
        other=valid[1],
        lost=lost,
        regained=max(0, valid[1] - expected),
        reasons=dict(broken.most_common()) if lost else {},
    )


def _place(row: Row) -> tuple[str, int, float]:
    trial = row[0]
    return trial.subset, trial.context_length, trial.depth_percent
