"""Effective context length: how far a model can be trusted with its context.

At a threshold t it is the longest length such that accuracy is at least t at every length up to it: over the mean of
depths, and over the worst depth. Lengths are those that were measured; nothing is assumed of the curve between or
beyond them, nor that it falls.

Its bounds need no correction for the number of lengths where they test in a fixed order and stop at the first that
fails. Going up from the shortest, "every length up to L reaches t" is wrong only if the first length that doesn't was
taken for one that does: one test of level α (Maurer, Hothorn, Lehmacher 1995). Going down from the longest, "it ends
below L" is wrong only if the very effective length was taken for too long: again one test. Only a dip in the middle is
sought at each length with Bonferroni's share, for half of the upper α. docs/methods.md has it in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from ..types import VALID_OUTCOMES
from .intervals import LEVEL, Rate
from .tally import Tally

THRESHOLD = 0.85
ENOUGH_COVERAGE = 0.9
RULER, NOLIMA = 0.856, 0.85
Preset = Literal["ruler", "nolima"]
PRESETS: tuple[str, ...] = get_args(Preset)
_TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What accuracy has to reach. `ruler`: 85.6 %; `nolima`: 85 % of the model's own score at its shortest length."""

    threshold: float = THRESHOLD
    preset: Preset | None = None

    def at(self, base: float | None) -> float | None:
        """The threshold for a model with this score at its shortest length; None where that says nothing."""
        if self.preset == "nolima":
            return NOLIMA * base if base else None
        return RULER if self.preset == "ruler" else self.threshold


def bar_of(report: Mapping[str, Any]) -> Bar | None:
    """The bar that a report was made with; None where it doesn't say."""
    found = report.get("effective_length")
    if not isinstance(found, Mapping):
        return None
    threshold, preset = found.get("threshold"), found.get("preset")
    if preset in PRESETS:
        return Bar(preset=preset)
    return Bar(threshold=float(threshold)) if isinstance(threshold, int | float) and 0 < threshold <= 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """What was found at one length: all trials, and those of each depth."""

    length: int
    whole: Tally
    depths: Mapping[float, Tally] = field(repr=False)

    @property
    def covered(self) -> bool:
        return (self.whole.coverage or 0.0) >= ENOUGH_COVERAGE - _TINY


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far accuracy holds. `length` None: not even at the shortest one. `at_least`: it never fell.

    `interval` has the level of the report; an end of 0 is below the shortest length. `certified` is the longest length
    up to which each accuracy's lower bound reaches the threshold, with 95 % confidence; None where nothing is, or
    where there are too few texts to speak of others. `reason` is a sentence for people.
    """

    length: int | None
    at_least: bool
    interval: tuple[int, int] | None
    certified: int | None
    stopped_by: Literal["score", "coverage"] | None
    reason: str

    def json(self) -> dict[str, Any]:
        found = asdict(self)
        return {**found, "interval": None if self.interval is None else list(self.interval)}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveLength:
    """The effective length at a threshold, over the mean of depths and over the worst one."""

    threshold: float
    preset: Preset | None
    mean: Reach
    worst_depth: Reach

    def json(self) -> dict[str, Any]:
        return {
            "threshold": round(self.threshold, 6),
            "preset": self.preset,
            "mean": self.mean.json(),
            "worst_depth": self.worst_depth.json(),
        }


def effective_length(
    rungs: Iterable[Rung], bar: Bar | None = None, *, level: float = LEVEL, confidence: float = LEVEL
) -> EffectiveLength | None:
    """The effective length of these lengths; None without a length, or where the bar cannot be known."""
    bar = Bar() if bar is None else bar
    ladder = sorted(rungs, key=lambda rung: rung.length)
    base = next((rung.whole.score for rung in ladder if rung.whole.score is not None), None)
    threshold = bar.at(base)
    if not ladder or threshold is None:
        return None
    means = [_Step.of_mean(rung) for rung in ladder]
    worst = [_Step.of_depths(rung) for rung in ladder]
    return EffectiveLength(
        threshold=threshold,
        preset=bar.preset,
        mean=_reach(means, threshold, level, confidence),
        worst_depth=_reach(worst, threshold, level, confidence),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One length as its rates: all of them have to reach the threshold."""

    length: int
    lost: str | None
    """Why it cannot be told, where it cannot."""
    rates: Sequence[tuple[str, Rate]]

    @classmethod
    def of_mean(cls, rung: Rung) -> _Step:
        rate = rung.whole.rate()
        rates = [] if rate is None else [("", rate)]
        return cls(length=rung.length, lost=_lost(rung), rates=rates)

    @classmethod
    def of_depths(cls, rung: Rung) -> _Step:
        rates = [(depth, tally.rate_of_trials()) for depth, tally in sorted(rung.depths.items())]
        lost = _lost(rung)
        if lost is None and (empty := [depth for depth, rate in rates if rate is None]):
            lost = f"no valid trial at depth {empty[0]:.4g}% of {rung.length:,} tokens"
        known = [(f"depth {depth:.4g}% of ", rate) for depth, rate in rates if rate is not None]
        return cls(length=rung.length, lost=lost, rates=known)

    def worst(self) -> tuple[str, Rate]:
        return min(self.rates, key=lambda named: named[1].p)

    def surely_reaches(self, threshold: float, confidence: float) -> bool:
        """Every one of its rates does: each is tested at the full level, since all must pass."""
        return self.lost is None and all(rate.surely_above(threshold, confidence) for _, rate in self.rates)

    def surely_fails(self, threshold: float, alpha: float) -> bool:
        """Some rate does, with Bonferroni's share for each."""
        if self.lost is not None:
            return False
        return any(rate.surely_below(threshold, 1 - alpha / len(self.rates)) for _, rate in self.rates)


def _lost(rung: Rung) -> str | None:
    if rung.covered:
        return None
    lost = ", ".join(f"{n:,} {outcome.replace('_', ' ')}" for outcome, n in _invalid(rung.whole))
    return f"only {rung.whole.valid:,} of {rung.whole.n:,} trials at {rung.length:,} tokens are valid ({lost})"


def _invalid(tally: Tally) -> list[tuple[str, int]]:
    return [(outcome, n) for outcome, n in tally.outcomes.most_common() if outcome not in VALID_OUTCOMES]


def _reach(steps: Sequence[_Step], threshold: float, level: float, confidence: float) -> Reach:
    stop = next((i for i, step in enumerate(steps) if step.lost is not None), len(steps))
    told = steps[:stop]  # past lost coverage nothing counts: the effective length ends there
    fall = next((i for i, step in enumerate(told) if step.worst()[1].p < threshold - _TINY), len(told))
    stopped_by: Literal["score", "coverage"] | None = None
    if fall < len(told):
        stopped_by = "score"
        where, rate = told[fall].worst()
        reason = f"{_below(rate.p, threshold)} is below {_bar(threshold)} at {where}{told[fall].length:,} tokens"
    elif stop < len(steps):
        stopped_by = "coverage"
        reason = steps[stop].lost or ""
    else:
        reason = f"it never fell below {_bar(threshold)}, up to {steps[-1].length:,} tokens, the longest"
    alpha = (1 - level) / 2
    return Reach(
        length=told[fall - 1].length if fall else None,
        at_least=stopped_by is None,
        interval=(_climb(told, threshold, 1 - alpha), _descend(told, threshold, alpha)) if told else None,
        certified=_climb(_over_texts(told), threshold, confidence) or None,
        stopped_by=stopped_by,
        reason=reason,
    )


def _below(share: float, threshold: float) -> str:
    """A share in percent, with as many digits as tell it from the threshold."""
    digits = next((n for n in (1, 2, 3) if round(share * 100, n) < round(threshold * 100, n)), 4)
    return f"{share:.{digits}%}"


def _bar(threshold: float) -> str:
    return f"{threshold * 100:.4g}%"


def _climb(steps: Sequence[_Step], threshold: float, confidence: float) -> int:
    """The longest length up to which every accuracy surely reaches the threshold; 0 where the first doesn't."""
    reached = 0
    for step in steps:
        if not step.surely_reaches(threshold, confidence):
            break
        reached = step.length
    return reached


def _descend(steps: Sequence[_Step], threshold: float, alpha: float) -> int:
    """The longest length that may still be the effective one; 0 where even the first surely fails."""
    end = len(steps)
    while end and steps[end - 1].surely_fails(threshold, alpha / 2):
        end -= 1
    share = alpha / 2 / len(steps)
    end = next((i for i in range(end) if steps[i].surely_fails(threshold, share)), end)
    return steps[end - 1].length if end else 0


def _over_texts(steps: Sequence[_Step]) -> Sequence[_Step]:
    """The steps before the first that has too few texts to speak of others."""
    few = (i for i, step in enumerate(steps) if any(rate.over != "texts" for _, rate in step.rates))
    return steps[: next(few, len(steps))]
