"""Settings as plain JSON values, and without secrets: what may be stored, compared and hashed.

Secrets are known by their value (the key that a run uses) or by the name that they go by (`api_key`, `Authorization`).
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ..errors import UsageError
from ..text.cache import redact

HIDDEN = "***"
_SHORTEST_TO_SEARCH = 8
_SECRET_NAME = re.compile(  # not max_tokens, eos_token or price_per_token
    r"(?:^|_)(?:api_?keys?|authori[sz]ation|auth|bearer|passwords?|passwd|secrets?|(?:secret|access|private)_?key"
    r"|subscription_?key|credentials?|cookies?)$"
    r"|(?:^|_)(?:access|api|auth|bearer|hub|hf|id|modelscope|refresh|secret|security|session|user)_?token$|^token$"
)
_HEADERS_NAME = re.compile(r"(?:^|_)headers?$")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_IN_QUERY = re.compile(r"(?i)([?&](?:api[-_]?key|key|token|access[-_]?token|sig|signature|secret|password)=)[^&#\s]+")


def plain(value: object, name: str) -> Any:
    """`value` as JSON has it, equal for equal meaning: 1.0 is 1, a tuple is a list, a path is its text.

    UsageError where JSON has nothing for it; `name` says which setting that was.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(f"{name} is {value}, which is no number that a file or a request can hold.")
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise UsageError(f"{name} has the key {key!r}. Keys must be texts.")
        return {str(key): plain(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item, name) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [plain(item, f"{name}[{place}]") for place, item in enumerate(value)]
    raise UsageError(f"{name} is a {type(value).__name__}, which JSON cannot hold. Use texts, numbers, lists, objects.")


def scrub(value: Any, secrets: Collection[str] = ()) -> Any:
    """Plain JSON values without secrets: those with a secret's name, in headers, in URLs, and `secrets` anywhere."""
    if isinstance(value, str):
        address = "//" in value and not re.search(r"\s", value)  # and no needle that mentions one
        return hide(_IN_QUERY.sub(rf"\1{HIDDEN}", redact(value)) if address else value, secrets)
    if isinstance(value, dict):
        return {hide(key, secrets): _scrub_entry(key, item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [scrub(item, secrets) for item in value]
    return value


def _scrub_entry(name: str, value: Any, secrets: Collection[str]) -> Any:
    words = _WORDS.sub("_", name).strip("_").lower()
    if _HEADERS_NAME.search(words):
        return _scrub_headers(value)
    if _SECRET_NAME.search(words) and not isinstance(value, bool):
        return HIDDEN if value else value
    return scrub(value, secrets)


def _scrub_headers(value: Any) -> Any:
    """The names of headers without their values: any gateway may call its key as it likes."""
    if isinstance(value, dict):
        return dict.fromkeys(value, HIDDEN)
    if isinstance(value, list):
        return [_scrub_headers(item) for item in value]
    if isinstance(value, str):
        name, colon, _ = value.partition(":")
        return f"{name}{colon} {HIDDEN}" if colon else HIDDEN
    return value


def hide(text: str, secrets: Collection[str]) -> str:
    """`text` without `secrets`. Very short ones ("EMPTY") are only hidden where they are the whole text."""
    for secret in secrets:
        if secret and (text == secret or (is_telling(secret) and secret in text)):
            text = HIDDEN if text == secret else text.replace(secret, HIDDEN)
    return text


def is_telling(secret: str) -> bool:
    """Whether a secret is long enough to be searched for in what others wrote: "none" may well be an answer."""
    return len(secret) >= _SHORTEST_TO_SEARCH


def spellings(secret: str) -> set[str]:
    """A secret as it may stand in a text, in JSON and in HTML."""
    quoted = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return {secret, html.escape(secret), html.escape(secret, quote=False), *quoted}


def hide_deep(value: Any, secrets: Collection[str]) -> Any:
    """JSON values whose texts hold no secret by its value; names and shape are left alone."""
    if isinstance(value, str):
        return hide(value, secrets)
    if isinstance(value, dict):
        return {key: hide_deep(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [hide_deep(item, secrets) for item in value]
    return value
