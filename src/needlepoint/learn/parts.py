"""A difference in its parts: as a whole, and by subset, length, depth and cell. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

from .intervals import Over
from .paired import benjamini_hochberg
from .power import ALPHA

Method = Literal["mcnemar_mid_p", "sign_flips", "student_t", "two_samples"]
T = TypeVar("T")


class Where(NamedTuple):
    """A part of the grid; what is None is not told apart."""

    subset: str | None = None
    context_length: int | None = None
    depth_percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The difference at one place.

    `n` are the questions that both measured (of separate samples: those of the first), `difference` is the second
    run's score less the first's. `q_value` is Benjamini and Hochberg's among the parts of its kind. `lost` and `gained`
    count flipped questions.
    """

    where: Where
    n: int
    one: float
    other: float
    difference: float
    interval: tuple[float, float]
    p_value: float
    q_value: float | None = None
    lost: int | None = None
    gained: int | None = None
    over: Over
    method: Method

    @property
    def is_worse(self) -> bool:
        """More than chance, were this the only part that is looked at."""
        return self.difference < 0 and self.p_value < ALPHA

    @property
    def is_better(self) -> bool:
        return self.difference > 0 and self.p_value < ALPHA

    @property
    def is_notable(self) -> bool:
        """More than chance among all the parts of its kind."""
        return self.q_value is not None and self.q_value < ALPHA

    def json(self) -> dict[str, Any]:
        place = {name: value for name, value in self.where._asdict().items() if value is not None}
        return {
            **place,
            "n": self.n,
            "one": round(self.one, 6),
            "other": round(self.other, 6),
            "difference": round(self.difference, 6),
            "interval": [round(end, 6) for end in self.interval],
            "interval_over": self.over,
            "p_value": short(self.p_value),
            "q_value": None if self.q_value is None else short(self.q_value),
            "lost": self.lost,
            "gained": self.gained,
            "method": self.method,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Every part with at least one question that both measured."""

    whole: Part | None
    subsets: tuple[Part, ...]
    lengths: tuple[Part, ...]
    depths: tuple[Part, ...]
    cells: tuple[Part, ...]


def parts_of(
    items: Sequence[T], place: Callable[[T], tuple[str, int, float]], part: Callable[[Sequence[T], Where], Part | None]
) -> Parts:
    """Sort `items` into the places where they stand, and make a part of each; q values are within one kind."""
    places = [place(item) for item in items]
    order = {subset: number for number, subset in enumerate(dict.fromkeys(subset for subset, _, _ in places))}

    def family(by_length: bool, by_depth: bool) -> tuple[Part, ...]:
        groups: dict[tuple[str, int | None, float | None], list[T]] = {}
        for item, (subset, length, depth) in zip(items, places, strict=True):
            key = subset, length if by_length else None, depth if by_depth else None
            groups.setdefault(key, []).append(item)
        keys = sorted(groups, key=lambda key: (order[key[0]], key[1] or 0, key[2] or 0.0))
        found = [one for key in keys if (one := part(groups[key], Where(*key))) is not None]
        q_values = benjamini_hochberg([one.p_value for one in found])
        return tuple(replace(one, q_value=q) for one, q in zip(found, q_values, strict=True))

    return Parts(
        whole=part(items, Where()),
        subsets=family(False, False),
        lengths=family(True, False),
        depths=family(False, True),
        cells=family(True, True),
    )


def short(p_value: float) -> float:
    """Four digits are enough of a p value."""
    return float(f"{p_value:.4g}")
