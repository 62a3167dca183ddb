"""What prompts are like, as numbers: the seed's *Data Statistics* and how well cells were met."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from .prompt import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Total, mean, extremes and sample standard deviation of some counts; None where there are none."""

    mean: float | None
    min: int | None
    max: int | None
    std: float | None

    @classmethod
    def of(cls, values: list[int]) -> Spread:
        if not values:
            return cls(mean=None, min=None, max=None, std=None)
        return cls(
            mean=round(statistics.fmean(values), 2),
            min=min(values),
            max=max(values),
            std=round(statistics.stdev(values), 2) if len(values) > 1 else 0.0,
        )

    def json(self) -> dict[str, float | int | None]:
        return {"mean": self.mean, "min": self.min, "max": self.max, "std": self.std}


@dataclass(slots=True)
class _Tally:
    characters: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        return {
            "samples": len(self.characters),
            "prompt_characters": Spread.of(self.characters).json(),
            "prompt_tokens": Spread.of(self.tokens).json(),
            "target_characters_mean": round(statistics.fmean(self.targets), 2) if self.targets else None,
        }


class Statistics:
    """The seed's *Data Statistics*: characters of system and user message as the seed counts them, and tokens."""

    def __init__(self) -> None:
        self._all = _Tally()
        self._subsets: dict[str, _Tally] = {}
        self.recounted = 0
        self.boundaries: dict[str, int] = {}
        self.largest_depth_error_percent = 0.0

    def add(self, prompt: Prompt) -> None:
        n_characters = prompt.n_characters
        for tally in (self._all, self._subsets.setdefault(prompt.cell.subset, _Tally())):
            tally.characters.append(n_characters)
            tally.tokens.append(prompt.n_tokens)
            tally.targets.append(len(prompt.target))
        self.recounted += prompt.recounted
        self.boundaries[prompt.boundary] = self.boundaries.get(prompt.boundary, 0) + 1
        for placement in prompt.placements:
            error = abs(placement.achieved_depth_percent - placement.depth_percent)
            self.largest_depth_error_percent = round(max(self.largest_depth_error_percent, error), 3)

    def json(self) -> dict[str, Any]:
        return {
            "total": self._all.json(),
            "subsets": [{"name": name, **tally.json()} for name, tally in self._subsets.items()],
            "recounted": self.recounted,
            "boundaries": dict(self.boundaries),
            "largest_depth_error_percent": self.largest_depth_error_percent,
        }
