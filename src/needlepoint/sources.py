"""Where settings come from, strongest first: flags, the environment (`NEEDLEPOINT_LENGTHS=1k,4k`), a TOML file."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import InputError, UsageError, did_you_mean
from .fields import user_path

_OTHER_VARIABLES = frozenset({"api_key", "judge_api_key", "cache", "debug", "fonts", "hub_timeout", "offline"})
_PREFIX = "NEEDLEPOINT_"


def settings_from(flags: Mapping[str, Any], known: Mapping[str, Any], *, file: str | None = None) -> dict[str, Any]:
    """All settings together. `known` are the names that exist, `file` the TOML file if there is one."""
    found: dict[str, Any] = {} if file is None else _from_file(file, known)
    found.update(_from_environment(known))
    found.update((name, value) for name, value in flags.items() if value is not None)
    return found


def _from_file(file: str, known: Mapping[str, Any]) -> dict[str, Any]:
    path = user_path(file)
    try:
        with path.open("rb") as source:
            found = tomllib.load(source)
    except OSError as error:
        raise InputError(f"Cannot read the settings {file}: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not valid TOML: {error}.") from None
    named = {name.replace("-", "_"): value for name, value in found.items()}
    for name in named:
        if name in ("api_key", "judge_api_key"):
            variable = f"{_PREFIX}{name.upper()}"
            raise UsageError(f"{file} holds an {name}. Keys don't belong in files: set {variable} instead.")
        if "judge" in name and any(map(_is_secret, _keys_in(named[name]))):
            raise UsageError(
                f"{file} holds a judge's api_key. Keys don't belong in files: write it as 'env:NAME' with --judge, or "
                "set NEEDLEPOINT_JUDGE_API_KEY instead."
            )
        if name not in known:
            raise UsageError(f"{file}: unknown setting {name!r}.{did_you_mean(name, known)}")
    return named


def _keys_in(value: object) -> Iterator[object]:
    """Whatever is called `api_key` inside of a setting."""
    if isinstance(value, str) and "api_key" in value:
        try:
            value = json.loads(value)
        except ValueError:
            yield value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from [inner] if name == "api_key" else _keys_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys_in(inner)


def _is_secret(key: object) -> bool:
    """Whether it is a key itself, not the name of one; EvalScope's `EMPTY` is nobody's secret."""
    return bool(key) and key != "EMPTY" and not str(key).startswith(("env:", "keyring:"))


def _from_environment(known: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable, text in os.environ.items():
        name = variable.removeprefix(_PREFIX).lower()
        if variable.startswith(_PREFIX) and name not in _OTHER_VARIABLES and text:
            if name not in known:
                hint = did_you_mean(name, known).replace("'", "")
                raise UsageError(f"{variable} is set, and there is no setting {name!r}.{hint} Unset it.")
            found[name] = _read(text)
    return found


def _read(text: str) -> Any:
    """A number, true, false, a list or an object where it is written as one; else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
