"""A known truth: how likely a simulated model finds a fact, by the prompt's length and the fact's depth.

`Recall.of("cliff+noise", at=16000, p=0.02)` is a product of simple surfaces, each with its formula at its function.
Pure; knows nothing of prompts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from needlepoint.errors import UsageError, did_you_mean
from needlepoint.plan.grid import parse_lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A number that a surface or a fault takes."""

    default: float
    lowest: float
    highest: float
    is_length: bool = False

    def read(self, name: str, value: str) -> float:
        """The number that a user wrote: `0.3`, `20%`, and `16k` where it is a length."""
        if self.is_length:
            found = parse_lengths(value, flag=f"simulated: {name}")
            if len(found) == 1:
                return float(found[0])
        try:
            number = float(value[:-1]) / 100 if value.endswith("%") else float(value)
        except ValueError:
            number = math.nan
        if not self.lowest <= number <= self.highest:
            example = "a length such as 16k" if self.is_length else f"a number from {self.lowest:g} to {self.highest:g}"
            raise UsageError(f"The simulated model's {name} must be {example}, not {value!r}.")
        return number


Surface = Callable[[float, float, Mapping[str, float]], float]


def _perfect(length: float, depth: float, knobs: Mapping[str, float]) -> float:
    return 1.0


def _cliff(length: float, depth: float, knobs: Mapping[str, float]) -> float:
    """1 up to `at` tokens, then `floor`. With a `width`, 1 / (1 + 16^(log2(length / at) / width)): it falls from 0.8 to
    0.2 in `width` doublings."""
    steps = math.log2(max(length, 1.0) / knobs["at"])
    if knobs["width"] == 0:
        share = 1.0 if steps <= 0 else 0.0
    else:
        share = 1 / (1 + math.exp(min(500.0, math.log(16) * steps / knobs["width"])))
    return knobs["floor"] + (1 - knobs["floor"]) * share


def _middle(length: float, depth: float, knobs: Mapping[str, float]) -> float:
    """1 − dip · g · (1 − (2 · depth − 1)²), lost in the middle; g grows with log2(length) from `short` to `long`."""
    return 1 - knobs["dip"] * _grown(length, knobs["short"], knobs["long"]) * (1 - (2 * depth - 1) ** 2)


def _slope(length: float, depth: float, knobs: Mapping[str, float]) -> float:
    """From 1 at `start` tokens down to 0 at `end`, straight over log2(length)."""
    return 1 - _grown(length, knobs["start"], knobs["end"])


def _noise(length: float, depth: float, knobs: Mapping[str, float]) -> float:
    """1 − p everywhere."""
    return 1 - knobs["p"]


def _grown(length: float, low: float, high: float) -> float:
    if high <= low:
        return float(length > low)
    return min(1.0, max(0.0, math.log2(max(length, 1.0) / low) / math.log2(high / low)))


def _length(default: float) -> Knob:
    return Knob(default=default, lowest=1, highest=1e9, is_length=True)


def _share(default: float) -> Knob:
    return Knob(default=default, lowest=0, highest=1)


KINDS: Mapping[str, Surface] = {
    "perfect": _perfect,
    "cliff": _cliff,
    "middle": _middle,
    "slope": _slope,
    "noise": _noise,
}
KNOBS: Mapping[str, Mapping[str, Knob]] = {
    "perfect": {},
    "cliff": {"at": _length(16_000), "width": Knob(default=0, lowest=0, highest=20), "floor": _share(0)},
    "middle": {"dip": _share(0.8), "short": _length(1_000), "long": _length(32_000)},
    "slope": {"start": _length(1_000), "end": _length(128_000)},
    "noise": {"p": _share(0.1)},
}


@dataclass(frozen=True, slots=True)
class Recall:
    """A surface over (length in tokens, depth 0–1): the product of its kinds."""

    kinds: tuple[str, ...] = ("perfect",)
    knobs: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, kind: str = "perfect", /, **knobs: float) -> Recall:
        """The surface of `kind`, or of several as `cliff+noise`; knobs that are not given have their defaults."""
        kinds = tuple(part.strip() for part in kind.split("+"))
        for one in kinds:
            if one not in KINDS:
                hint = did_you_mean(one, KINDS)
                raise UsageError(f"Unknown kind of simulated model {one!r}.{hint} Known: {', '.join(KINDS)}.")
        known = {name: knob for one in kinds for name, knob in KNOBS[one].items()}
        for name in knobs:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise UsageError(f"A simulated {kind!r} has no setting {name!r}. Its own: {listed}.")
        values = {name: knob.default for name, knob in known.items()} | knobs
        return cls(kinds, tuple(sorted(values.items())))

    def __call__(self, length_tokens: float, depth: float) -> float:
        knobs = dict(self.knobs)
        depth = min(1.0, max(0.0, depth))
        return math.prod(min(1.0, max(0.0, KINDS[kind](length_tokens, depth, knobs))) for kind in self.kinds)
