"""How long answers took and how many tokens they cost, by length. Pure.

Only trials that were answered count. Times are quantiles, since one slow request says nothing of the others; tokens are
means, since they add up. What nobody measured is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..types import Reply, Score, Trial


@dataclass(slots=True)
class _Pace:
    n: int = 0
    total: list[float] = field(default_factory=list)
    first_token: list[float] = field(default_factory=list)
    tokens: dict[str, list[int]] = field(default_factory=dict)

    def add(self, reply: Reply) -> None:
        self.n += 1
        for values, seconds in ((self.total, reply.times.total), (self.first_token, reply.times.first_token)):
            if seconds is not None:
                values.append(seconds)
        usage = reply.usage
        counted = {
            "prompt": usage.prompt,
            "cached": usage.cached,
            "prefilled": reply.prefilled_tokens,
            "completion": usage.completion,
            "reasoning": usage.reasoning,
        }
        for name, count in counted.items():
            if count is not None:
                self.tokens.setdefault(name, []).append(count)

    def json(self) -> dict[str, Any]:
        names = ("prompt", "cached", "prefilled", "completion", "reasoning")
        return {
            "n": self.n,
            "seconds": quantiles(self.total),
            "first_token_seconds": quantiles(self.first_token),
            "tokens": {name: _mean(self.tokens.get(name, [])) for name in names},
        }


def pace(rows: Iterable[tuple[Trial, Reply, Score]]) -> list[dict[str, Any]]:
    """One row for each subset and length that was answered, as `report.json` has it under `pace`."""
    found: dict[tuple[str, int], _Pace] = {}
    for trial, reply, _ in rows:
        if reply.error is None:
            found.setdefault((trial.subset, trial.context_length), _Pace()).add(reply)
    subsets = list(dict.fromkeys(subset for subset, _ in found))
    places = sorted(found, key=lambda place: (subsets.index(place[0]), place[1]))
    rows_ = [{"subset": subset, "context_length": length, **found[subset, length].json()} for subset, length in places]
    return [row for row in rows_ if row["seconds"] is not None or any(row["tokens"].values())]


def quantiles(values: Sequence[float]) -> dict[str, float] | None:
    """The 10th percentile, the median and the 90th, between neighbours by linear interpolation."""
    if not values:
        return None
    ordered = sorted(values)
    return {name: round(_quantile(ordered, share), 4) for name, share in (("p10", 0.1), ("median", 0.5), ("p90", 0.9))}


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _mean(values: Sequence[int]) -> float | None:
    return round(sum(values) / len(values), 2) if values else None
