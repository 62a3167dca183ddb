"""The grid: which context lengths, at which depths.

Pure. It knows how people write lengths and depths, how the seed spaces them, and which cells follow; it knows nothing
of texts and tokens. Every refusal is a `UsageError` that names the setting, the value and what is accepted.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeVar

from needlepoint.errors import UsageError, did_you_mean
from needlepoint.types import Cell

MAX_LENGTH = 1_000_000_000
MAX_CELLS = 100_000

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "ki": 1_024, "mi": 1_024**2}
_LENGTH = re.compile(r"(-?)([0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?)(k|m|ki|mi|)", re.IGNORECASE)
_DEPTH = re.compile(r"(-?)([0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?)\s*%?")
_COUNT = re.compile(r"-?[0-9]+(?:_[0-9]+)*")
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_LONGEST_NUMBER = 40  # characters; more is never meant, and Python refuses to read integers of 4,300 digits

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Context lengths in tokens × depths in percent, both in the order that was asked for."""

    lengths: tuple[int, ...]
    depths: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.lengths or not self.depths:
            raise UsageError("The grid is empty. Give at least one length and one depth.")
        if (asked := len(self.lengths) * len(self.depths)) > MAX_CELLS:
            raise UsageError(
                f"The grid has {len(self.lengths):,} lengths x {len(self.depths):,} depths = {asked:,} cells; "
                f"at most {MAX_CELLS:,} are accepted. Ask for fewer lengths or depths."
            )

    @classmethod
    def from_specs(
        cls, lengths: object, depths: object, *, lengths_flag: str = "--lengths", depths_flag: str = "--depths"
    ) -> Grid:
        """The grid that `parse_lengths` and `parse_depths` give, with repeats kept so that `note` can tell of them."""
        return cls(
            lengths=tuple(_expand_lengths(lengths, lengths_flag)), depths=tuple(_expand_depths(depths, depths_flag))
        )

    @classmethod
    def from_seed(
        cls,
        *,
        context_lengths_min: float = 1000,
        context_lengths_max: float = 32000,
        context_lengths_num_intervals: int = 10,
        document_depth_percent_min: float = 0,
        document_depth_percent_max: float = 100,
        document_depth_percent_intervals: int = 10,
    ) -> Grid:
        """The seed's grid, spaced and rounded as EvalScope does; the parameters have the seed's names and defaults."""
        names = ("context_lengths_min", "context_lengths_max", "context_lengths_num_intervals")
        shortest, longest = context_lengths_min, context_lengths_max
        _check_seed_range(names, shortest, longest, context_lengths_num_intervals, limit=MAX_LENGTH, unit="tokens")
        if round(shortest) < 1:
            raise UsageError(f"{names[0]}={_show(shortest)} gives a context of no tokens. Accepted: 1 or more.")
        lengths = seed_spacing(shortest, longest, int(context_lengths_num_intervals))

        names = ("document_depth_percent_min", "document_depth_percent_max", "document_depth_percent_intervals")
        first, last = document_depth_percent_min, document_depth_percent_max
        _check_seed_range(names, first, last, document_depth_percent_intervals, limit=100, unit="percent")
        depths = seed_spacing(first, last, int(document_depth_percent_intervals))
        return cls(lengths=tuple(lengths), depths=tuple(float(depth) for depth in depths))

    @property
    def merged(self) -> int:
        """How many cells of one subset coincide with an earlier one, and are therefore asked once only."""
        return len(self.lengths) * len(self.depths) - len(set(self.lengths)) * len(set(self.depths))

    def note(self) -> str | None:
        """A message for people about merged cells, or None where there are none."""
        if not self.merged:
            return None
        asked = len(self.lengths) * len(self.depths)
        left = asked - self.merged
        verb = "coincides" if self.merged == 1 else "coincide"
        return (
            f"{self.merged:,} of {asked:,} cells per subset {verb} with another in length and depth; "
            f"each is asked once: {left:,} {'cell remains' if left == 1 else 'cells remain'}."
        )

    def cells(self, subset: str) -> tuple[Cell, ...]:
        """The cells of one subset: lengths outer, depths inner, coinciding ones once, where they first occur."""
        pairs = product(dict.fromkeys(self.lengths), dict.fromkeys(self.depths))
        return tuple(Cell(subset=subset, context_length=length, depth_percent=depth) for length, depth in pairs)


def seed_spacing(minimum: float, maximum: float, count: int) -> list[int]:
    """`numpy.round(numpy.linspace(minimum, maximum, num=count)).astype(int)`, to the last bit, without numpy."""
    return [round(value) for value in _linear(minimum, maximum, count)]


def parse_lengths(spec: object, *, flag: str = "--lengths") -> tuple[int, ...]:
    """Lengths in tokens from a number, a list or text as `1k,4k:32k:8:log`; in the order given, each once."""
    return tuple(dict.fromkeys(_expand_lengths(spec, flag)))


def parse_depths(spec: object, *, flag: str = "--depths") -> tuple[float, ...]:
    """Depths in percent from a number, a list or text as `0,50%,100` or `0:100:11`; in the order given, each once."""
    return tuple(dict.fromkeys(_expand_depths(spec, flag)))


def format_length(n_tokens: int) -> str:
    """A length as people write it, never rounded: `1k`, `1.5k`, `32k`, `1M`, `1234`."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if n_tokens >= unit and n_tokens % (unit // 10) == 0:
            whole, tenths = divmod(n_tokens // (unit // 10), 10)
            return f"{whole}.{tenths}{name}" if tenths else f"{whole}{name}"
    return str(n_tokens)


def apply_limit(items: Sequence[T], limit: float | None, *, flag: str = "--limit") -> Sequence[T]:
    """The first `limit` items: a count, or as a float in (0, 1] a share, rounded down as EvalScope does."""
    if limit is None:
        return items
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise _limit_error(flag, limit)
    if isinstance(limit, int):
        if limit < 1:
            raise _limit_error(flag, limit)
        return items[:limit]
    if not 0 < limit <= 1:  # also NaN
        hint = f" Did you mean {int(limit)}?" if math.isfinite(limit) and limit > 1 and limit.is_integer() else ""
        raise _limit_error(flag, limit, hint)
    kept = int(len(items) * limit)
    if items and not kept:
        raise UsageError(
            f"{flag} {_show(limit)} keeps nothing of {len(items)}: a share is rounded down. "
            f"Accepted: a larger share, or a count such as 1."
        )
    return items[:kept]


def _limit_error(flag: str, limit: object, hint: str = "") -> UsageError:
    return UsageError(
        f"{flag} {_show(limit)} is not a limit. "
        f"Accepted: a count of 1 or more, or a share above 0.0 and up to 1.0.{hint}"
    )


# --- what people write ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """What differs between lengths and depths; `number` reads one value, `rounded` finishes one that was spaced."""

    noun: str
    accepted: str
    spacings: tuple[str, ...]
    number: Callable[[object, str], float]
    rounded: Callable[[float], float]

    def refuse(self, flag: str, value: object, why: str) -> UsageError:
        return UsageError(f"{flag} {_show(value)}: {why}\nAccepted: {self.accepted}")


def _expand_lengths(spec: object, flag: str) -> list[int]:
    return [int(value) for value in _expand(spec, flag, _LENGTHS)]


def _expand_depths(spec: object, flag: str) -> list[float]:
    return [float(value) for value in _expand(spec, flag, _DEPTHS)]


def _expand(spec: object, flag: str, axis: _Axis) -> list[float]:
    pieces: Sequence[object]
    if isinstance(spec, str):
        pieces = spec.split(",") if spec.strip() else []
    elif isinstance(spec, list | tuple | range):
        pieces = spec
    else:
        pieces = [spec]
    if not pieces:
        raise axis.refuse(flag, spec, f"no {axis.noun} is given.")
    if len(pieces) > MAX_CELLS:
        raise axis.refuse(flag, f"({len(pieces):,} entries)", f"at most {MAX_CELLS:,} {axis.noun}s are accepted.")
    values: list[float] = []
    for piece in pieces:
        if isinstance(piece, str) and ":" in piece:
            values += _range(piece.strip(), flag, axis)
        else:
            values.append(axis.number(piece, flag))
        if len(values) > MAX_CELLS:
            raise axis.refuse(flag, spec, f"these are more than {MAX_CELLS:,} {axis.noun}s.")
    return values


def _range(piece: str, flag: str, axis: _Axis) -> list[float]:
    parts = [part.strip() for part in piece.split(":")]
    if len(parts) not in (3, 4):
        raise axis.refuse(flag, piece, "a range has three or four parts.")
    low, high = axis.number(parts[0], flag), axis.number(parts[1], flag)
    if low > high:
        raise axis.refuse(flag, piece, f"the range begins above its end ({parts[0]} > {parts[1]}).")
    if len(parts[2]) > _LONGEST_NUMBER or not _COUNT.fullmatch(parts[2]):
        raise axis.refuse(flag, piece, f"the count {_show(parts[2])} is not a whole number.")
    if not 1 <= (count := int(parts[2])) <= MAX_CELLS:
        raise axis.refuse(flag, piece, f"the count {count} is outside 1 to {MAX_CELLS:,}.")
    spacing = parts[3].casefold() if len(parts) == 4 else "linear"
    if spacing == "log" and "log" not in axis.spacings:
        raise axis.refuse(flag, piece, f"log spacing is for lengths, not for {axis.noun}s.")
    if spacing not in axis.spacings:
        hint = did_you_mean(spacing, axis.spacings)
        raise axis.refuse(flag, piece, f"{_show(parts[3])} is not a spacing.{hint}")
    return [axis.rounded(value) for value in _SPACINGS[spacing](low, high, count)]


def _length(value: object, flag: str) -> int:
    if isinstance(value, str):
        text = value.strip()
        match = _LENGTH.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
        if match is None:
            raise _LENGTHS.refuse(flag, value, _why_garbage(text, "a length"))
        sign, digits, unit = match.groups()
        if sign:
            raise _LENGTHS.refuse(flag, value, "a length cannot be negative.")
        exact = Fraction(digits) * _UNITS[unit.casefold()]
    else:
        exact = Fraction(_finite(value, flag, _LENGTHS))
    if exact < 0:
        raise _LENGTHS.refuse(flag, value, "a length cannot be negative.")
    if exact == 0:
        raise _LENGTHS.refuse(flag, value, "a length must be at least 1 token.")
    if exact > MAX_LENGTH:
        raise _LENGTHS.refuse(flag, value, f"a length can be at most {MAX_LENGTH:,} tokens.")
    if exact.denominator != 1:
        raise _LENGTHS.refuse(flag, value, "this is not a whole number of tokens.")
    return int(exact)


def _depth(value: object, flag: str) -> float:
    if isinstance(value, str):
        text = value.strip()
        match = _DEPTH.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
        if match is None:
            raise _DEPTHS.refuse(flag, value, _why_garbage(text, "a depth"))
        sign, digits = match.groups()
        percent = float(sign + digits)
    else:
        percent = _finite(value, flag, _DEPTHS)
    if not 0 <= percent <= 100:
        raise _DEPTHS.refuse(flag, value, "a depth is a percentage from 0 to 100.")
    return _round_depth(percent)


def _finite(value: object, flag: str, axis: _Axis) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise axis.refuse(flag, value, f"this is not a {axis.noun}.")
    if isinstance(value, numbers.Integral):
        return int(value)
    if not math.isfinite(number := float(value)):
        raise axis.refuse(flag, value, "this is not a finite number.")
    return number


def _why_garbage(text: str, noun: str) -> str:
    if not text:
        return "an entry is empty."
    if text.lstrip("+-").casefold() in _NOT_FINITE:
        return "this is not a finite number."
    return f"this is not {noun}."


def _round_depth(percent: float) -> float:
    return round(float(percent), 3) + 0.0  # + 0.0 turns -0.0 into 0.0


# --- spacings: ends pinned, `count` of 1 gives the beginning ----------------------------------------------------------


def _linear(low: float, high: float, count: int) -> list[float]:
    start, stop = float(low), float(high)
    if count == 1:
        return [start]
    steps = count - 1
    step = (stop - start) / steps
    if step == 0.0:  # equal ends, or a difference that underflows; numpy has the same branch
        values = [i / steps * (stop - start) + start for i in range(steps)]
    else:
        values = [i * step + start for i in range(steps)]
    return [*values, stop]


def _log(low: float, high: float, count: int) -> list[float]:
    if count == 1:
        return [low]
    steps = count - 1
    return [low, *(low * (high / low) ** (i / steps) for i in range(1, steps)), high]


def _sigmoid(low: float, high: float, count: int) -> list[float]:
    if count == 1:
        return [low]
    steps = count - 1
    inner = (1 / (1 + math.exp(-10 * (i / steps - 0.5))) for i in range(1, steps))
    return [low, *(low + (high - low) * share for share in inner), high]


_SPACINGS = {"linear": _linear, "log": _log, "sigmoid": _sigmoid}

_LENGTHS = _Axis(
    noun="length",
    accepted="numbers as 4000, 4k, 1.5k, 32Ki, 1m; lists as 1k,4k,32k; "
    "ranges MIN:MAX:COUNT[:linear|log|sigmoid] as 1k:128k:8:log.",
    spacings=("linear", "log", "sigmoid"),
    number=_length,
    rounded=round,
)
_DEPTHS = _Axis(
    noun="depth",
    accepted="percent from 0 to 100 as 50, 12.5, 50%; lists as 0,50,100; "
    "ranges MIN:MAX:COUNT[:linear|sigmoid] as 0:100:11.",
    spacings=("linear", "sigmoid"),
    number=_depth,
    rounded=_round_depth,
)


# --- the seed's parameters --------------------------------------------------------------------------------------------


def _check_seed_range(
    names: tuple[str, str, str], low: object, high: object, count: object, *, limit: int, unit: str
) -> None:
    start = _seed_number(names[0], low, limit, unit)
    stop = _seed_number(names[1], high, limit, unit)
    if start > stop:
        raise UsageError(f"{names[0]}={_show(low)} is above {names[1]}={_show(high)}. Exchange the two.")
    accepted = f"Accepted: a whole number from 1 to {MAX_CELLS:,}."
    if isinstance(count, bool) or not isinstance(count, int | float) or (count != count // 1):  # also NaN
        raise UsageError(f"{names[2]}={_show(count)} is not a whole number. {accepted}")
    if not 1 <= count <= MAX_CELLS:
        raise UsageError(f"{names[2]}={_show(count)} is outside the range. {accepted}")


def _seed_number(name: str, value: object, limit: int, unit: str) -> float:
    accepted = f"Accepted: a number from 0 to {limit:,} ({unit})."
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{name}={_show(value)} is not a number. {accepted}")
    if not 0 <= value <= limit:  # also NaN and infinity
        raise UsageError(f"{name}={_show(value)} is outside the range. {accepted}")
    return value


def _show(value: object, longest: int = 60) -> str:
    """A value for a message: short, quoted where it is text, never failing."""
    if isinstance(value, int) and value.bit_length() > 200:
        return "(a number of more than 60 digits)"
    try:
        text = repr(value)
    except ValueError:  # a list that holds an integer of thousands of digits
        text = f"({type(value).__name__})"
    return text if len(text) <= longest else text[: longest - 1] + "…"
