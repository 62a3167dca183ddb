"""What a run found, as `report.json` has it: scores with interval and coverage, by cell, length, depth and subset.

Accuracy is over valid trials only; coverage, the share of trials that are valid, always stands beside it. Intervals
speak of other texts where every subset has three replicates or more, else only of more trials on the same texts, and
`interval_over` and `notes` say which. What is not known is null, never 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..types import Reply, Score, Trial
from .effective import Bar, EffectiveLength, Rung, effective_length
from .intervals import FEWEST_CLUSTERS, LEVEL
from .position import Place, position_test
from .tally import Tally, measured, merged, over_texts, texts_of_each


@dataclass(slots=True)
class _Middle:
    """The mean of what was counted; None as long as nobody counted."""

    total: float = 0.0
    n: int = 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total += value
            self.n += 1

    def json(self) -> float | None:
        return round(self.total / self.n, 3) if self.n else None


@dataclass(slots=True)
class _Tokens:
    """Sums of what was counted; None as long as nobody counted."""

    sent: int | None = None
    prompt: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    written: int | None = None
    prefilled: int | None = None
    difference_max: int | None = None

    def add(self, trial: Trial, reply: Reply) -> None:
        usage = reply.usage
        self.prompt = _plus(self.prompt, usage.prompt)
        self.completion = _plus(self.completion, usage.completion)
        self.reasoning = _plus(self.reasoning, usage.reasoning)
        self.cached = _plus(self.cached, usage.cached)
        self.written = _plus(self.written, usage.cache_written)
        self.prefilled = _plus(self.prefilled, reply.prefilled_tokens)
        if reply.error is None:
            self.sent = _plus(self.sent, trial.sent_tokens)
        if usage.prompt is not None and trial.sent_tokens is not None:
            difference = usage.prompt - trial.sent_tokens
            if self.difference_max is None or abs(difference) > abs(self.difference_max):
                self.difference_max = difference

    def json(self) -> dict[str, int | None]:
        return {
            "sent": self.sent,
            "prompt": self.prompt,
            "completion": self.completion,
            "reasoning": self.reasoning,
            "cached": self.cached,
            "cache_written": self.written,
            "difference_max": self.difference_max,
        }


@dataclass(slots=True)
class _Cell:
    """One cell: its scores, and where it came to be."""

    tally: Tally
    length: _Middle
    depth: _Middle


class _Grid:
    """One subset's trials, or those of all subsets together, and what is learned of them."""

    def __init__(self, cells: Mapping[Place, Tally]) -> None:
        self.cells = dict(sorted(cells.items()))
        self.whole = merged(self.cells.values())
        self.lengths = {length: merged(tallies) for length, tallies in self._by(0).items()}
        self.depths = {depth: merged(tallies) for depth, tallies in self._by(1).items()}

    def _by(self, part: int) -> dict[Any, list[Tally]]:
        groups: dict[Any, list[Tally]] = {}
        for place, tally in self.cells.items():
            groups.setdefault(place[part], []).append(tally)
        return dict(sorted(groups.items()))

    def effective(self, bar: Bar) -> EffectiveLength | None:
        by_length: dict[int, dict[float, Tally]] = {}
        for (length, depth), tally in self.cells.items():
            by_length.setdefault(length, {})[depth] = tally
        rungs = [Rung(length=at, whole=self.lengths[at], depths=depths) for at, depths in by_length.items()]
        return effective_length(rungs, bar)

    def learned(self, bar: Bar) -> dict[str, Any]:
        """`effective_length` and `position`."""
        effective = self.effective(bar)
        return {
            "effective_length": None if effective is None else effective.json(),
            "position": self._position() if self.cells else None,
        }

    def _position(self) -> dict[str, Any]:
        test = position_test(self.cells)
        keys = ("depth_percent", "score", "interval", "interval_over", "n", "valid", "coverage")
        curve = [{key: row[key] for key in keys} for row in self.depth_rows()]
        return {"curve": curve, "test": None if test is None else test.json()}

    def length_rows(self) -> list[dict[str, Any]]:
        return [{"context_length": length, **tally.json(tally.rate())} for length, tally in self.lengths.items()]

    def depth_rows(self) -> list[dict[str, Any]]:
        return [{"depth_percent": _plain(depth), **tally.json(tally.rate())} for depth, tally in self.depths.items()]


def summarise(
    rows: Iterable[tuple[Trial, Reply, Score]], *, head: Mapping[str, Any], bar: Bar | None = None
) -> dict[str, Any]:
    """The report of scored trials. `head` has what only the run knows: model, corpora, tokenizer, versions, ...

    `bar` is what accuracy has to reach for the effective length; 85 % where none is given.
    """
    bar = Bar() if bar is None else bar
    tokens, asked_again, missed, cut = _Tokens(), 0, 0, 0
    seen: set[Hashable] = set()
    subsets: dict[str, dict[Place, _Cell]] = {}
    for trial, reply, score in rows:
        tokens.add(trial, reply)
        asked_again += trial.repeat > 0
        place = trial.context_length, trial.depth_percent
        cells = subsets.setdefault(trial.subset, {})
        cell = cells.get(place)
        if cell is None:
            cell = cells[place] = _Cell(Tally(), _Middle(), _Middle())
        fresh = False
        if (value := measured(score)) is not None:
            missed += value < 1
            cut += value < 1 and reply.finish == "length"
            prompt = (trial.subset, place, trial.replicate, trial.prompt_sha256)
            fresh = prompt not in seen
            seen.add(prompt)
        cell.tally.add(trial, score, fresh=fresh)
        cell.length.add(trial.achieved_length)
        cell.depth.add(trial.achieved_depth_percent)
    grids = {name: _Grid({place: cell.tally for place, cell in cells.items()}) for name, cells in subsets.items()}
    together: dict[Place, list[Tally]] = {}
    for grid in grids.values():
        for place, tally in grid.cells.items():
            together.setdefault(place, []).append(tally)
    whole = _Grid({place: merged(tallies) for place, tallies in together.items()})
    return {
        "schema": 1,
        **head,
        "interval_level": LEVEL,
        "replicates": min(texts_of_each(whole.whole.clusters).values(), default=0),
        "overall": whole.whole.json(whole.whole.rate()),
        "subsets": [_subset(name, grid, subsets[name], bar) for name, grid in grids.items()],
        "outcomes": dict(whole.whole.outcomes.most_common()),
        **whole.learned(bar),
        "notes": list(_notes(whole.whole, asked_again, missed=missed, cut=cut)),
        "tokens": tokens.json(),
        "prefix": {
            "naive_tokens": tokens.sent,
            "bound_tokens": None,
            "planned_tokens": None,
            "prefilled_tokens": tokens.prefilled,
            "cached_tokens": tokens.cached,
        },
    }


def _subset(name: str, grid: _Grid, cells: Mapping[Place, _Cell], bar: Bar) -> dict[str, Any]:
    return {
        "name": name,
        **grid.whole.json(grid.whole.rate()),
        "replicates": len(grid.whole.clusters),
        "lengths": grid.length_rows(),
        "depths": grid.depth_rows(),
        "cells": [_cell(place, cells[place]) for place in grid.cells],
        **grid.learned(bar),
    }


def _cell(place: Place, cell: _Cell) -> dict[str, Any]:
    return {
        "context_length": place[0],
        "depth_percent": _plain(place[1]),
        **cell.tally.json(cell.tally.rate_of_trials()),
        "achieved_length": cell.length.json(),
        "achieved_depth_percent": cell.depth.json(),
        "outcomes": dict(cell.tally.outcomes.most_common()),
    }


def _notes(whole: Tally, asked_again: int, *, missed: int, cut: int) -> Iterable[str]:
    """What has to be known to read the scores and the intervals."""
    if cut:
        yield (
            f"{cut:,} of {missed:,} answers without the whole fact ended where no more could be written: it may have "
            "come later. More --max-tokens would tell; a model that never stops stays wrong."
        )
    if whole.valid and not over_texts(whole.clusters):
        fewest = min(texts_of_each(whole.clusters).values())
        texts = f"{fewest} text{'s' if fewest > 1 else ''}"
        yield (
            f"There is no interval over texts: a subset has {texts}, and {FEWEST_CLUSTERS} are needed. The intervals "
            "only say what more trials on these texts could give, taken as independent; nothing is certified. "
            "--replicates 5 or more asks about other texts, too."
        )
    if asked_again:
        yield "Asking the same prompt again is no independent trial: intervals count each prompt once."


def _plus(total: int | None, more: int | None) -> int | None:
    return total if more is None else more if total is None else total + more


def _plain(number: float) -> float | int:
    return int(number) if float(number).is_integer() else number
