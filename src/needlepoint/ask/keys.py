"""Where an API key comes from, and the extra headers of a request. No message of this module shows a secret."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from needlepoint.errors import UsageError

KEYRING_SERVICE = "needlepoint"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMING = frozenset("accept-encoding connection content-encoding content-length host te transfer-encoding".split())


def api_key_of(value: str | None, api_url: str | None) -> str | None:
    """The key that `value` stands for: itself, `env:NAME`, or `keyring:NAME` (service `needlepoint`).

    Without a value: NEEDLEPOINT_API_KEY, which may be written in the same three ways; then OPENAI_API_KEY, but only for
    api.openai.com itself, so that nobody else is sent it.
    """
    if value is None or not value.strip():
        value = os.environ.get("NEEDLEPOINT_API_KEY", "")
    if not value.strip() and _host(api_url) == "api.openai.com":
        value = os.environ.get("OPENAI_API_KEY", "")
    value = value.strip()
    kind, colon, name = value.partition(":")
    if colon and kind == "env":
        return _from_environment(name.strip())
    if colon and kind == "keyring":
        return _from_keyring(name.strip())
    return value or None


def judge_key_of(value: str | None, api_url: str | None, *, fallback: str | None) -> str | None:
    """A judge's key, written in the same three ways: `value`, else NEEDLEPOINT_JUDGE_API_KEY, else `fallback`, which is
    the asked model's where the judge is served at the same place; else OPENAI_API_KEY for api.openai.com itself."""
    value = (value or "").strip() or os.environ.get("NEEDLEPOINT_JUDGE_API_KEY", "").strip()
    if not value and fallback is None and _host(api_url) == "api.openai.com":
        value = os.environ.get("OPENAI_API_KEY", "")
    return api_key_of(value, api_url) if value.strip() else fallback


def headers_of(lines: Sequence[str]) -> dict[str, str]:
    """`["X-Team: red"]` → `{"X-Team": "red"}`, as `--header` takes them."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise UsageError("--header must look like 'Name: value'; one of them has no colon.")
        headers[name.strip()] = value.strip()
    check_headers(headers)
    return headers


def check_headers(headers: dict[str, str]) -> None:
    """Raise where a header could not be sent, or would decide how a request is framed. Values are not shown."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise UsageError("A header's name must be a word such as X-Team (--header 'X-Team: red').")
        if name.lower() in _FRAMING:
            raise UsageError(f"The header {name} is set by the connection itself and can't be given.")
        if not value.isascii() or not all(character.isprintable() or character == "\t" for character in value):
            raise UsageError(f"The value of the header {name} holds characters that no HTTP header can carry.")


def _from_environment(name: str) -> str:
    key = os.environ.get(name, "").strip()
    if not key:
        raise UsageError(f"--api-key env:{name} names an environment variable that is not set. Set {name}.")
    return key


def _from_keyring(name: str) -> str:
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        raise UsageError(
            f"--api-key keyring:{name} needs an optional package. Install it with: pip install keyring"
        ) from None
    try:
        key = keyring.get_password(KEYRING_SERVICE, name)
    except Exception as error:  # each backend has errors of its own
        raise UsageError(f"The keyring cannot be read ({type(error).__name__}). Unlock it, or use env:NAME.") from None
    if not key:
        raise UsageError(f"The keyring has no key called {name!r}. Store it with: keyring set {KEYRING_SERVICE} {name}")
    return str(key).strip()


def _host(api_url: str | None) -> str | None:
    try:
        return urlsplit((api_url or "").strip()).hostname
    except ValueError:
        return None
