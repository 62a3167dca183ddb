"""Where an OpenAI-compatible API lives, from whatever part of its address a person has at hand. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from needlepoint.errors import UsageError

_VERSION = re.compile(r"/v\d\w*(?=/|$)")
_TAILS = ("/chat/completions", "/completions", "/models")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """`bases` are the places where `/chat/completions` may be, likeliest first; `shown` is safe to print."""

    bases: tuple[str, ...]
    root: str
    shown: str
    loopback: bool
    secure: bool
    query: str = field(default="", repr=False)
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, api_url: str) -> Address:
        """From a root, `/v1`, any other prefix, or a whole `/chat/completions` address, its query kept.

        A path with a version in it (`/compatible-mode/v1`, `/v1beta/openai`) or a whole address is taken as it is; of
        any other, `/v1` below it is tried first, then itself.
        """
        try:
            parts = urlsplit(api_url.strip())
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
            good = good and not re.search(r"[\x00-\x20\x7f]", api_url.strip())
        except ValueError:
            good = False
        if not good:
            raise UsageError("The API URL must look like http://host:port/v1 (--api-url).")
        path = parts.path.rstrip("/")
        tail = next((tail for tail in _TAILS if path.endswith(tail)), "")
        path = path.removesuffix(tail).rstrip("/")
        if tail or _VERSION.search(path):
            paths: tuple[str, ...] = (path,)
        else:
            paths = (f"{path}/v1", path)
        host = parts.netloc.rpartition("@")[2]
        root = urlunsplit((parts.scheme, host, re.sub(r"/v1$", "", path), "", ""))
        return cls(
            bases=tuple(urlunsplit((parts.scheme, host, one, "", "")) for one in paths),
            root=root,
            shown=urlunsplit((parts.scheme, host, path, "", "")),
            loopback=is_loopback(parts.hostname or ""),
            secure=parts.scheme == "https",
            query=parts.query,
            credentials=(unquote(parts.username), unquote(parts.password or "")) if parts.username else None,
        )

    def url(self, base: str, path: str) -> str:
        return base + path + (f"?{self.query}" if self.query else "")

    def secrets(self) -> list[str]:
        """What of the address is nobody's business: the password, and the query's values."""
        found = [value for _, value in parse_qsl(self.query)]
        return [*found, self.credentials[1]] if self.credentials else found


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


class Cleaner:
    """Takes secrets out of words that come from elsewhere, before anything else is done with them."""

    def __init__(self, secrets: list[str]) -> None:
        # A shorter one hides nothing, and would be found in the middle of words.
        known = {secret for secret in secrets if len(secret) >= 4}
        self._secrets = sorted({*known, *(quote(one, safe="") for one in known)}, key=len, reverse=True)

    def __call__(self, words: str) -> str:
        for secret in self._secrets:
            if secret in words:
                words = words.replace(secret, "***")
        return words
