"""Rows of a run folder: the nouns of `types` as JSON, and strictly back, since a file may come from anywhere.

What is None is left out; what is missing is None, or the field's own default. Unknown fields are ignored, so that a
newer version's rows can be read. Knows nothing of files.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from ..types import Failure, Reply, Score, Times, Trial
from .plain import plain

T = TypeVar("T")
_Read = Callable[[object, str], Any]
_SHOWN_CHARACTERS = 40


def to_json(value: Trial | Reply | Score) -> dict[str, Any]:
    """A row as plain JSON values. ValueError where a number that must be known isn't finite."""
    if isinstance(value, Reply):
        value = _finite(value)
    row: dict[str, Any] = _written(value)
    return row


def from_json(kind: type[T], value: object, *, name: str | None = None) -> T:
    """A row from JSON values; ValueError says which field is not what it must be (`reply.usage.prompt: ...`)."""
    read: T = _reader(cast(Hashable, kind))(value, name or kind.__name__.lower())
    return read


def dump(value: object, *, indent: int | None = None) -> bytes:
    """JSON in one line without a line end; ValueError for what JSON cannot hold.

    Texts stay readable UTF-8, unless one holds half a surrogate pair: then all are escaped.
    """
    write = partial(json.dumps, value, allow_nan=False, indent=indent, separators=None if indent else (",", ":"))
    try:
        return write(ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return write().encode()


def load(data: bytes) -> Any:
    """The JSON value in `data`; ValueError for anything else, NaN and bottomless nesting included."""
    try:
        return json.loads(data.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def digest(reply: Mapping[str, Any]) -> str:
    """16 hex digits that tell one reply (as JSON) from another: a score belongs to the very reply it was given for."""
    canonical = json.dumps(plain(reply, "reply"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


# --- writing ----------------------------------------------------------------------------------------------------------


_AS_IT_IS = (str, int)


def _written(value: Any) -> Any:
    if value is None or isinstance(value, _AS_IT_IS):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} cannot be written as JSON.")
        return value
    if isinstance(value, Mapping):
        return {str(key): _written(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_written(item) for item in value]
    return {
        name: _written(item)
        for name in _names(cast(Hashable, type(value)))
        if (item := getattr(value, name)) is not None
    }


@cache
def _names(kind: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cast(Any, kind)))


def _finite(reply: Reply) -> Reply:
    """The reply without measurements that are no numbers: a server may send NaN, and no reply is lost for it."""
    if reply.logprobs is not None and not all(map(math.isfinite, reply.logprobs)):
        reply = replace(reply, logprobs=None)
    times = reply.times
    if not (_known(times.queued) and _known(times.first_token) and _known(times.total)):
        kept = {name: seconds for name in _names(Times) if _known(seconds := getattr(times, name))}
        reply = replace(reply, times=Times(**kept))
    error: Failure | None = reply.error
    if error is not None and not _known(error.retry_after_s):
        reply = replace(reply, error=replace(error, retry_after_s=None))
    return reply


def _known(number: float | None) -> bool:
    return number is None or math.isfinite(number)


# --- reading ----------------------------------------------------------------------------------------------------------


@cache
def _reader(kind: Hashable) -> _Read:
    """What reads one kind of value; made once for each."""
    if kind in _PLAIN:
        return _plain_reader(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _choice_reader(inner)
    if origin in (Union, UnionType):
        (one,) = [item for item in inner if item is not NoneType]
        some = _reader(one)
        return lambda value, at: None if value is None else some(value, at)
    if origin is tuple:
        return _tuple_reader(inner)
    if is_dataclass(kind):
        return _dataclass_reader(kind)
    raise TypeError(f"No reader for {kind}.")


_PLAIN: dict[Any, str] = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def _plain_reader(kind: Any) -> _Read:
    def read(value: object, at: str) -> Any:
        if type(value) is kind:
            if kind is float and not math.isfinite(value):  # type: ignore[arg-type]
                raise _not(value, _PLAIN[float], at)
            return value
        if kind is float and type(value) is int and abs(value) < 1 << 1023:
            return float(value)
        raise _not(value, _PLAIN[kind], at)

    return read


def _choice_reader(choices: tuple[Any, ...]) -> _Read:
    def read(value: object, at: str) -> Any:
        if isinstance(value, str) and value in choices:
            return value
        raise _not(value, "one of " + ", ".join(map(str, choices)), at)

    return read


def _tuple_reader(inner: tuple[Any, ...]) -> _Read:
    if len(inner) == 2 and inner[1] is Ellipsis:
        item = _reader(inner[0])

        def read_all(value: object, at: str) -> Any:
            if not isinstance(value, list):
                raise _not(value, "a list", at)
            return tuple([item(one, f"{at}[{place}]") for place, one in enumerate(value)])

        return read_all
    items = [_reader(one) for one in inner]

    def read(value: object, at: str) -> Any:
        if not isinstance(value, list) or len(value) != len(items):
            raise _not(value, f"a list of {len(items)}", at)
        return tuple(
            read_one(one, f"{at}[{place}]") for place, (read_one, one) in enumerate(zip(items, value, strict=True))
        )

    return read


def _dataclass_reader(kind: Any) -> _Read:
    hints = get_type_hints(kind)
    parts = [(field.name, _reader(hints[field.name]), _absent(field, hints[field.name])) for field in fields(kind)]

    def read(value: object, at: str) -> Any:
        if not isinstance(value, dict):
            raise _not(value, "an object", at)
        found = {}
        for name, read_field, absent in parts:
            if name in value:
                found[name] = read_field(value[name], f"{at}.{name}")
            elif absent is MISSING:
                raise ValueError(f"{at}.{name} is missing")
            else:
                found[name] = absent
        return kind(**found)

    return read


def _absent(field: Field[Any], hint: Any) -> Any:
    """What a field is where a row doesn't have it; MISSING where it must."""
    return None if NoneType in get_args(hint) else field.default


def _not(value: object, what: str, at: str) -> ValueError:
    shown = json.dumps(value) if value is None or isinstance(value, str | int | float) else type(value).__name__
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[: _SHOWN_CHARACTERS - 1] + "…"
    return ValueError(f"{at} is {shown}, not {what}")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
