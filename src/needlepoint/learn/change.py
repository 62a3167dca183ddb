"""What a comparison of two runs found, as values. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from .parts import Part, Parts, short
from .power import ALPHA, POWER


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one run made of a question."""

    outcome: str
    score: float | None
    answer: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A question that one run answered better. `change` goes from −1, lost, to +1, gained."""

    subset: str
    context_length: int
    depth_percent: float
    replicate: int
    repeat: int
    trial: str
    """The id of the first run's trial."""
    question: str
    expected: tuple[str, ...]
    change: float
    one: Side
    other: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAt:
    """How many trials were lost at one length, of those that the first run measured there."""

    subset: str
    context_length: int
    lost: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageChange:
    """How much both measured of the `asked` questions of the first run.

    `lost` was measured by the first run and not by the second; `reasons` are the second's outcomes, or `not_asked`.
    Of separate samples `lost` is the drop of coverage, in trials of the second.
    """

    asked: int
    one: int
    other: int
    lost: int
    regained: int
    reasons: dict[str, int] = field(default_factory=dict)
    lengths: tuple[LostAt, ...] = ()

    @property
    def share_lost(self) -> float:
        """Of what the first run measured."""
        return self.lost / self.one if self.one else 0.0

    def json(self) -> dict[str, Any]:
        return {
            "asked": self.asked,
            "one": self.one,
            "other": self.other,
            "lost": self.lost,
            "share_lost": round(self.share_lost, 6),
            "regained": self.regained,
            "reasons": self.reasons,
            "lengths": [asdict(one) for one in self.lengths],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Two one-sided tests at 5 % each: is the 90 % interval inside of the margin (Schuirmann 1987)?"""

    margin: float
    interval: tuple[float, float]

    @property
    def is_equivalent(self) -> bool:
        return -self.margin < self.interval[0] and self.interval[1] < self.margin

    @property
    def is_not_worse(self) -> bool:
        """By no more than the margin."""
        return -self.margin < self.interval[0]

    def json(self) -> dict[str, Any]:
        return {
            "margin": self.margin,
            "interval_90": [round(end, 6) for end in self.interval],
            "equivalent": self.is_equivalent,
            "not_worse": self.is_not_worse,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What these questions can see: the smallest `drop` found with `power` at a two-sided `alpha`; None: none is.

    `churn` is the share of answers that turn good without a reason, and as many bad, as seen here. A drop of `wanted`
    would take `needed` questions.
    """

    n: int
    drop: float | None
    churn: float | None = None
    power: float = POWER
    alpha: float = ALPHA
    wanted: float | None = None
    needed: int | None = None

    def json(self) -> dict[str, Any]:
        rounded = {name: None if (value := getattr(self, name)) is None else round(value, 6) for name in _SHARES}
        return {**asdict(self), **rounded}


_SHARES = ("drop", "churn")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginChange:
    """By how much margins moved, in nats, over the questions of which both runs have one.

    Parts are as those of accuracy, in nats; `lost` counts margins that fell from above 0 to 0 or below, `gained` those
    that rose from there. A place with one question only has no spread, and so no part.
    """

    parts: Parts
    whole: Part
    one: int
    """Trials that have a margin in the first run."""
    lost: int
    """Those of them that the other run measured without one, or didn't measure."""
    p_adjusted: float | None = None

    @property
    def difference(self) -> float:
        """The mean margin of the other run less that of the first."""
        return self.whole.difference

    @property
    def interval(self) -> tuple[float, float]:
        return self.whole.interval

    @property
    def p_value(self) -> float:
        """Two-sided; adjusted where several runs are compared with the first."""
        return self.whole.p_value if self.p_adjusted is None else self.p_adjusted

    @property
    def is_worse(self) -> bool:
        """By more than chance."""
        return self.difference < 0 and self.p_value < ALPHA

    @property
    def is_better(self) -> bool:
        return self.difference > 0 and self.p_value < ALPHA

    def json(self) -> dict[str, Any]:
        return {
            "unit": "nats",
            "trials": self.one,
            "lost": self.lost,
            "overall": self.whole.json(),
            "p_adjusted": None if self.p_adjusted is None else short(self.p_adjusted),
            **_parts_json(self.parts),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The run `other` against the run `one`. `parts.whole` is None where no question was measured by both.

    `texts` counts the texts that both read. `p_adjusted` is Holm's, where several runs are compared with the first.
    `logprob_margin` is there where both runs measured margins (`--metric logprob`).
    """

    one: str
    other: str
    paired: bool
    scorer: str
    texts: int
    parts: Parts
    coverage: CoverageChange
    flips: tuple[Flip, ...] = field(default=(), repr=False)
    equivalence: Equivalence | None = None
    sight: Sight | None = None
    logprob_margin: MarginChange | None = None
    p_adjusted: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> Part | None:
        return self.parts.whole

    @property
    def difference(self) -> float | None:
        """The score of `other` less that of `one`, over the questions that both measured."""
        return None if self.whole is None else self.whole.difference

    @property
    def interval(self) -> tuple[float, float] | None:
        """That of the difference, at 95 %."""
        return None if self.whole is None else self.whole.interval

    @property
    def p_value(self) -> float | None:
        """Two-sided; adjusted where several runs are compared with the first."""
        if self.p_adjusted is not None:
            return self.p_adjusted
        return None if self.whole is None else self.whole.p_value

    @property
    def is_worse(self) -> bool:
        """By more than chance."""
        return (self.difference or 0) < 0 and (self.p_value or 0) < ALPHA

    @property
    def is_better(self) -> bool:
        return (self.difference or 0) > 0 and (self.p_value or 0) < ALPHA

    @property
    def lost(self) -> tuple[Flip, ...]:
        """Questions that `one` answered better, the worst first."""
        return tuple(flip for flip in self.flips if flip.change < 0)

    @property
    def gained(self) -> tuple[Flip, ...]:
        """Questions that `other` answered better, the best first."""
        return tuple(flip for flip in reversed(self.flips) if flip.change > 0)

    def notable(self, subset: str) -> list[tuple[int, float]]:
        """Cells of a subset, by length and depth, that stand out among all cells."""
        found = (part.where for part in self.parts.cells if part.is_notable and part.where.subset == subset)
        return [(where.context_length or 0, where.depth_percent or 0.0) for where in found]

    def json(self) -> dict[str, Any]:
        return {
            "one": self.one,
            "other": self.other,
            "paired": self.paired,
            "scorer": self.scorer,
            "texts": self.texts,
            "overall": None if self.whole is None else self.whole.json(),
            "p_adjusted": None if self.p_adjusted is None else short(self.p_adjusted),
            "verdict": "worse" if self.is_worse else "better" if self.is_better else "no_change_seen",
            "coverage": self.coverage.json(),
            "equivalence": None if self.equivalence is None else self.equivalence.json(),
            "sight": None if self.sight is None else self.sight.json(),
            "logprob_margin": None if self.logprob_margin is None else self.logprob_margin.json(),
            **_parts_json(self.parts),
            "flips": [asdict(flip) for flip in self.flips],
            "notes": list(self.notes),
        }


def _parts_json(parts: Parts) -> dict[str, Any]:
    return {name: [part.json() for part in getattr(parts, name)] for name in _KINDS}


_KINDS = ("subsets", "lengths", "depths", "cells")
