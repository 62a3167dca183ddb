"""The kinds of values that settings have, and what is said where one is of another kind.

Knows pydantic, and nothing of which settings there are.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from .errors import InputError, UsageError, did_you_mean

_TEXT_FILES = (".txt", ".md", ".jinja", ".tmpl")


def shown(value: object, longest: int = 60) -> str:
    """A value for a message: short, quoted where it is text, never failing."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return f"(a very large {type(value).__name__})"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def user_path(text: str) -> Path:
    """The path that a user wrote, `~` expanded; a home that does not exist stays as it is written."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 (Path.expanduser raises for a home that does not exist)


def _text(value: object) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise ValueError(f"must be a text, not {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"is not Unicode text: it has a broken character at position {error.start + 1}") from None
    return value


def texts_of(value: object) -> object:
    """A list of texts; one text where a list is meant."""
    if isinstance(value, str | os.PathLike):
        return [value]
    if isinstance(value, tuple | list):
        return list(value)
    raise ValueError(f"must be a text or a list of texts, not {shown(value)}")


def _sentence_text(value: str) -> str:
    text = _text(value)
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, not {shown(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"must be a finite number, not {value}")
    return value


def whole(lowest: int, highest: int) -> BeforeValidator:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"must be a whole number, not {shown(value)}")
        if not lowest <= value <= highest:
            raise ValueError(f"must be from {lowest:,} to {highest:,}, not {shown(value)}")
        return value

    return BeforeValidator(check)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {shown(value)}")
    return value


def one_of(noun: str, known: Sequence[str]) -> BeforeValidator:
    def check(value: object) -> str:
        text = _text(value)
        if text not in known:
            raise ValueError(f"unknown {noun} {shown(text)}.{did_you_mean(text, known)} Known: {', '.join(known)}")
        return text

    return BeforeValidator(check)


Text = Annotated[str, BeforeValidator(_text)]
Sentence = Annotated[str, BeforeValidator(_sentence_text)]
Texts = Annotated[list[Text], BeforeValidator(texts_of)]
Number = Annotated[int | float, BeforeValidator(_number)]
Count = Annotated[int, whole(1, 10_000)]
Truth = Annotated[bool, BeforeValidator(_truth)]


def parse_json(text: str, flag: str) -> Any:
    """JSON from a flag, with the place of a mistake in the message."""

    def refuse(constant: str) -> float:
        raise UsageError(f"{flag} holds {constant}, which no setting can be. Write a plain number.")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        around = text[max(0, error.pos - 20) : error.pos + 20]
        raise UsageError(
            f"{flag} is not valid JSON: {error.msg} at character {error.pos + 1}, near {around!r}."
        ) from None
    except ValueError:  # Python reads no integers of more than 4,300 digits
        raise UsageError(f"{flag} is not usable JSON: it holds a number of thousands of digits.") from None
    except RecursionError:
        raise UsageError(f"{flag} is not usable JSON: it is nested too deeply.") from None


def parse_options(text: str, flag: str) -> Any:
    """A JSON object, or `k=v,k=v` with values that are read as JSON where they can be."""
    if text.lstrip().startswith("{"):
        return parse_json(text, flag)
    found: dict[str, Any] = {}
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{flag} must be a JSON object or k=v,k=v; {pair.strip()!r} is neither.")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value.strip()
    return found


def share(value: object) -> object:
    """A share above 0, up to 1: `0.85` or `85%`."""
    number = value
    if isinstance(value, str) and value.strip().endswith("%"):
        with contextlib.suppress(ValueError):
            number = float(value.strip()[:-1]) / 100
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= 1:
        raise ValueError(f"must be a share above 0 and up to 1, such as 0.85 or 85%, not {shown(value)}")
    return float(number)


def places(value: object) -> object:
    """How many requests at once: a whole number, or `auto`."""
    if value == "auto":
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4_096:
        raise ValueError(f"must be a whole number from 1 to 4,096, or auto, not {shown(value)}")
    return value


def text_or_file(flag_value: str | None, argument: str | None, flag: str) -> str | None:
    """A flag's value is text, or the path of a file that holds it; a dataset argument is always text."""
    if flag_value is None:
        return argument
    path = user_path(flag_value)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # a text that no file can be called
        is_file = False
    if is_file:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"Cannot read the file given by {flag}, {path}: {error}.") from None
    if flag_value.endswith(_TEXT_FILES) and not any(character.isspace() for character in flag_value):
        raise InputError(f"There is no file {flag_value}, given by {flag}.")
    return flag_value
