"""What a run found, as `report.json` has it: scores with coverage, by cell, length, depth and subset.

Accuracy is over valid trials only; coverage, the share of trials that are valid, always stands beside it. Intervals are
None until there is a method for them: what is not known is null, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..types import VALID_OUTCOMES, Reply, Score, Trial


@dataclass(slots=True)
class Tally:
    """Scores of some trials."""

    n: int = 0
    valid: int = 0
    total: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    lengths: list[int] = field(default_factory=list)
    depths: list[float] = field(default_factory=list)

    def add(self, trial: Trial, score: Score) -> None:
        self.n += 1
        self.outcomes[score.outcome] += 1
        if score.outcome in VALID_OUTCOMES and score.score is not None:
            self.valid += 1
            self.total += score.score
        if trial.achieved_length is not None:
            self.lengths.append(trial.achieved_length)
        if trial.achieved_depth_percent is not None:
            self.depths.append(trial.achieved_depth_percent)

    def json(self) -> dict[str, Any]:
        return {
            "score": round(self.total / self.valid, 6) if self.valid else None,
            "interval": None,
            "n": self.n,
            "valid": self.valid,
            "coverage": round(self.valid / self.n, 6) if self.n else None,
        }


@dataclass(slots=True)
class _Tokens:
    """Sums of what was counted; None as long as nobody counted."""

    sent: int | None = None
    prompt: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    prefilled: int | None = None
    difference_max: int | None = None

    def add(self, trial: Trial, reply: Reply) -> None:
        usage = reply.usage
        self.prompt = _plus(self.prompt, usage.prompt)
        self.completion = _plus(self.completion, usage.completion)
        self.reasoning = _plus(self.reasoning, usage.reasoning)
        self.cached = _plus(self.cached, usage.cached)
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
            "difference_max": self.difference_max,
        }


def summarise(rows: Iterable[tuple[Trial, Reply, Score]], *, head: Mapping[str, Any]) -> dict[str, Any]:
    """The report of scored trials. `head` has what only the run knows: model, corpora, tokenizer, versions, ..."""
    overall, tokens = Tally(), _Tokens()
    groups: dict[tuple[str, str, Hashable], Tally] = {}
    for trial, reply, score in rows:
        tokens.add(trial, reply)
        cell = (trial.context_length, trial.depth_percent)
        for key in (("subset", None), ("length", cell[0]), ("depth", cell[1]), ("cell", cell)):
            groups.setdefault((trial.subset, *key), Tally()).add(trial, score)
        overall.add(trial, score)
    subsets = [_subset(name, groups) for name in dict.fromkeys(key[0] for key in groups)]
    return {
        "schema": 1,
        **head,
        "overall": overall.json(),
        "subsets": subsets,
        "outcomes": dict(overall.outcomes.most_common()),
        "effective_length": None,
        "tokens": tokens.json(),
        "prefix": {
            "naive_tokens": tokens.sent,
            "bound_tokens": None,
            "planned_tokens": None,
            "prefilled_tokens": tokens.prefilled,
            "cached_tokens": tokens.cached,
        },
    }


def _subset(name: str, groups: Mapping[tuple[str, str, Hashable], Tally]) -> dict[str, Any]:
    def rows(kind: str, describe: Callable[[Any], dict[str, Any]]) -> list[dict[str, Any]]:
        found = sorted((key[2], tally) for key, tally in groups.items() if key[:2] == (name, kind))
        return [{**describe(key), **tally.json()} for key, tally in found]

    cells = []
    for row in rows("cell", lambda cell: {"context_length": cell[0], "depth_percent": _plain(cell[1])}):
        tally = groups[name, "cell", (row["context_length"], float(row["depth_percent"]))]
        middle = {"achieved_length": _mean(tally.lengths), "achieved_depth_percent": _mean(tally.depths)}
        cells.append({**row, **middle, "outcomes": dict(tally.outcomes.most_common())})
    return {
        "name": name,
        **groups[name, "subset", None].json(),
        "lengths": rows("length", lambda length: {"context_length": length}),
        "depths": rows("depth", lambda depth: {"depth_percent": _plain(depth)}),
        "cells": cells,
    }


def _mean(values: list[int] | list[float]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None


def _plus(total: int | None, more: int | None) -> int | None:
    return total if more is None else more if total is None else total + more


def _plain(number: float) -> float | int:
    return int(number) if float(number).is_integer() else number
