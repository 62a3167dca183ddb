"""Bars that a user sets, for CI: did a run, or a change, fall short? Pure.

A bar on accuracy always is one on coverage, too: what was not measured might have been anything, and a model that
answers nothing would otherwise pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .change import Comparison
from .effective import ENOUGH_COVERAGE

Bar = Literal["accuracy", "coverage", "margin"]
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A bar that was missed, and by what, in a sentence."""

    bar: Bar
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a run may be worse by. Accuracy falls short where it is worse by `fail_if_worse` or more and by more than
    chance (p < 0.05, two-sided); coverage where more than a share `max_lost` of what the first run measured is lost;
    margins where they are lower by `fail_if_margin_worse` nats or more and by more than chance, or too many lost."""

    fail_if_worse: float | None
    max_lost: float = 0.0
    fail_if_margin_worse: float | None = None

    @property
    def bars(self) -> tuple[Bar, ...]:
        """Those that are set; coverage always is."""
        accuracy: tuple[Bar, ...] = () if self.fail_if_worse is None else ("accuracy",)
        margin: tuple[Bar, ...] = () if self.fail_if_margin_worse is None else ("margin",)
        return (*accuracy, "coverage", *margin)

    def shortfalls(self, comparison: Comparison) -> tuple[Shortfall, ...]:
        found: list[Shortfall] = []
        change, p_value = comparison.difference, comparison.p_value
        bar = self.fail_if_worse
        if bar is not None and change is not None and comparison.is_worse and -change >= bar - _TINY:
            told = f"accuracy is {-change * 100:.1f} points worse ({_chance(p_value)})"
            found.append(Shortfall("accuracy", f"{told}, and {_drop(bar)} is too much"))
        coverage = comparison.coverage
        if coverage.share_lost > self.max_lost + _TINY:
            why = ", ".join(f"{n:,} {outcome.replace('_', ' ')}" for outcome, n in coverage.reasons.items())
            told = f"{coverage.lost:,} of {coverage.one:,} trials that the first run measured are lost"
            allowed = f"; {self.max_lost:.4g} may be" if self.max_lost else ""
            found.append(Shortfall("coverage", f"{told}{f' ({why})' if why else ''}{allowed}"))
        return (*found, *self._of_margins(comparison))

    def _of_margins(self, comparison: Comparison) -> Iterator[Shortfall]:
        bar, change = self.fail_if_margin_worse, comparison.logprob_margin
        if bar is None:
            return
        if change is None:
            yield Shortfall("margin", "no two questions have a margin in both runs")
            return
        told = []
        if change.is_worse and -change.difference >= bar - _TINY:
            drop = f"margins are {-change.difference:.3g} nats lower ({_chance(change.p_value)})"
            told.append(f"{drop}, and {_fall(bar)} is too much")
        if change.lost > self.max_lost * change.one + _TINY:
            told.append(f"{change.lost:,} of {change.one:,} margins that the first run has are lost")
        if told:
            yield Shortfall("margin", "; ".join(told))

    def too_much(self) -> str:
        """`2 points or more, or margins lower by 0.5 nats or more`."""
        told = [] if self.fail_if_worse is None else [_drop(self.fail_if_worse)]
        if (bar := self.fail_if_margin_worse) is not None:
            told.append(f"margins lower by {_fall(bar)}" if bar else f"{_fall(bar)} of margins")
        return ", or ".join(told)


def _drop(bar: float) -> str:
    return f"{points_of(bar)} or more" if bar else "any drop"


def _fall(bar: float) -> str:
    return f"{bar:g} nats or more" if bar else "any fall"


def _chance(p_value: float | None) -> str:
    return "p < 0.001" if (p_value or 0) < 0.001 else f"p = {p_value:.2g}"


def shortfall(report: Mapping[str, Any], bar: float) -> Shortfall | None:
    """Why a run's report falls short of a bar on its score; None where it doesn't.

    The score must reach it, and would have to if all that was lost were misses; and at each length 90 % of the trials
    must be measurements, as for the effective length.
    """
    overall = report["overall"]
    score, n, valid = overall["score"], overall["n"], overall["valid"]
    if score is None:
        return Shortfall("coverage", f"not one of {n:,} trials is a measurement")
    if score < bar - _TINY:
        return Shortfall("accuracy", f"the score is {_percent(score, bar)}, below {bar * 100:.4g}%")
    for subset in report["subsets"]:
        for row in subset["lengths"]:
            if row["coverage"] is not None and row["coverage"] < ENOUGH_COVERAGE - _TINY:
                place = f"{subset['name']} at {row['context_length']:,} tokens"
                told = f"coverage is {_percent(row['coverage'], ENOUGH_COVERAGE)} for {place}, below 90%"
                return Shortfall("coverage", f"{told}: {row['valid']:,} of {row['n']:,} trials are measurements")
    worst = score * valid / n
    if worst < bar - _TINY:
        told = f"{n - valid:,} of {n:,} trials are no measurements: had they been misses, the score would be"
        return Shortfall("coverage", f"{told} {_percent(worst, bar)}, below {bar * 100:.4g}%")
    return None


def points_of(share: float) -> str:
    """A bar as it is said: `1 point`, `2.5 points`."""
    return f"{share * 100:g} point{'' if round(share, 9) == 0.01 else 's'}"


def _percent(share: float, bar: float) -> str:
    """With as many digits as tell it from the bar."""
    digits = next((n for n in (1, 2, 3) if round(share * 100, n) < round(bar * 100, n)), 4)
    return f"{share:.{digits}%}"
