"""By how much the right value is likelier than the likeliest wrong one: means by length, depth and cell. Pure.

Accuracy only says on which side of a threshold an answer fell; the margin, in nats, says how far from it. It moves long
before answers do. Trials of one text are not independent: with three texts or more the interval is Student's over the
texts' means, weighted by their trials, else over trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..types import VALID_OUTCOMES, Reply, Score, Trial
from .distributions import t_quantile
from .intervals import FEWEST_CLUSTERS, LEVEL

Row = tuple[Trial, Reply, Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanMargin:
    """A mean of margins in nats, with its interval where there is one; `ahead` is the share of those above 0."""

    mean: float
    interval: tuple[float, float] | None
    over: str | None
    n: int
    ahead: float

    def json(self) -> dict[str, Any]:
        interval = None if self.interval is None else [round(end, 4) for end in self.interval]
        return {
            "mean": round(self.mean, 4),
            "interval": interval,
            "interval_over": self.over,
            "n": self.n,
            "ahead": round(self.ahead, 6),
        }


def mean_margin(trials: Sequence[tuple[Hashable, float]], level: float = LEVEL) -> MeanMargin | None:
    """The mean of (text, margin)s. One trial has no interval."""
    if not trials:
        return None
    texts: dict[Hashable, list[float]] = {}
    for text, value in trials:
        texts.setdefault(text, []).append(value)
    over = "texts" if len(texts) >= FEWEST_CLUSTERS else "trials"
    groups = list(texts.values()) if over == "texts" else [[value] for _, value in trials]
    n = len(trials)
    mean = math.fsum(value for _, value in trials) / n
    interval = None
    if len(groups) > 1:
        off = math.fsum((math.fsum(group) - len(group) * mean) ** 2 for group in groups)
        error = math.sqrt(off * len(groups) / (len(groups) - 1)) / n
        half = t_quantile((1 + level) / 2, len(groups) - 1) * error
        interval = (mean - half, mean + half)
    ahead = sum(value > 0 for _, value in trials) / n
    return MeanMargin(mean=mean, interval=interval, over=over if interval else None, n=n, ahead=ahead)


def margins(rows: Iterable[Row]) -> dict[str, Any] | None:
    """What `report.json` has under `margin`; None where no trial has one."""
    found = [
        (trial, reply.margin.value)
        for trial, reply, score in rows
        if reply.margin is not None and score.outcome in VALID_OUTCOMES
    ]
    if not found:
        return None
    subsets: dict[str, list[tuple[Trial, float]]] = {}
    for trial, value in found:
        subsets.setdefault(trial.subset, []).append((trial, value))
    return {
        "unit": "nats",
        "overall": _mean(found),
        "subsets": [{"name": name, **(_mean(some) or {}), **_by_place(some)} for name, some in subsets.items()],
    }


def _by_place(some: Sequence[tuple[Trial, float]]) -> dict[str, Any]:
    length, depth = "context_length", "depth_percent"
    return {
        "lengths": _grouped(some, lambda trial: {length: trial.context_length}),
        "depths": _grouped(some, lambda trial: {depth: trial.depth_percent}),
        "cells": _grouped(some, lambda trial: {length: trial.context_length, depth: trial.depth_percent}),
    }


def _grouped(
    some: Sequence[tuple[Trial, float]], place_of: Callable[[Trial], Mapping[str, float]]
) -> list[dict[str, Any]]:
    groups: dict[tuple[float, ...], tuple[Mapping[str, float], list[tuple[Trial, float]]]] = {}
    for trial, value in some:
        place = place_of(trial)
        groups.setdefault(tuple(place.values()), (place, []))[1].append((trial, value))
    return [{**place, **(_mean(group) or {})} for _, (place, group) in sorted(groups.items(), key=lambda one: one[0])]


def _mean(some: Sequence[tuple[Trial, float]]) -> dict[str, Any] | None:
    found = mean_margin([((trial.subset, trial.replicate), value) for trial, value in some])
    return None if found is None else found.json()
