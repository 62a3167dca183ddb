"""Several needles in one prompt: how many of them are found, and which. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..score.rules import found_each
from ..types import VALID_OUTCOMES, Reply, Score, Trial


@dataclass(slots=True)
class _Recall:
    n: int = 0
    total: float = 0.0
    all_found: int = 0
    needles: list[int] = field(default_factory=list)

    def add(self, found: list[bool], share: float) -> None:
        self.n += 1
        self.total += share
        self.all_found += share >= 1
        self.needles += [0] * (len(found) - len(self.needles))
        for place, one in enumerate(found):
            self.needles[place] += one


def recall(rows: Iterable[tuple[Trial, Reply, Score]]) -> list[dict[str, Any]]:
    """One row for each subset, length and count of needles of trials with several, as `report.json` has it.

    `score` is the mean share found, `all_found` the share of trials with every needle, `needles` the share found of
    each, in the order in which they stand in the text. Which ones are found is seen by the rules.
    """
    found: dict[tuple[str, int, int], _Recall] = {}
    for trial, reply, score in rows:
        if score.outcome not in VALID_OUTCOMES or score.score is None or len(trial.answers) < 2:
            continue
        seen = _in_order(trial, found_each(trial, reply)) if reply.text else []
        place = (trial.subset, trial.context_length, len(trial.answers))
        found.setdefault(place, _Recall()).add(seen, score.score)
    return [
        {
            "subset": subset,
            "context_length": length,
            "needle_count": count,
            "n": one.n,
            "score": round(one.total / one.n, 6),
            "all_found": round(one.all_found / one.n, 6),
            "needles": [round(n / one.n, 6) for n in one.needles],
        }
        for (subset, length, count), one in sorted(found.items())
    ]


def _in_order(trial: Trial, seen: list[bool]) -> list[bool]:
    """In the order in which their needles stand in the text, where that is known."""
    places = [one.needle for one in sorted(trial.placements, key=lambda one: one.tokens_before)]
    return [seen[place] for place in places] if sorted(places) == list(range(len(seen))) else seen
