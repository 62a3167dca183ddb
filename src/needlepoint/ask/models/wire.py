"""One bounded JSON request after another to one server, and one clear message for whatever goes wrong.

For the small questions that come before a run: which tokens, which template, which limit. Knows no endpoint by name.
No message and no repr shows the API key, or the credentials and the query of a URL.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit, urlunsplit

from needlepoint.errors import TokenizerError

if TYPE_CHECKING:
    import httpx2

_ROOM_BYTES = 2 << 20
_ROOM_PER_BYTE = 64
_BYTES_PER_S = 200_000

PairsHook = Callable[[list[tuple[str, Any]]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back: the status, and the JSON value or, where it is no JSON, None and how it begins."""

    status: int
    value: Any
    is_json: bool
    excerpt: str
    location: str = ""

    def error_text(self) -> str:
        """The server's own words, in one line, from the usual places in an error answer."""
        found: Any = self.value
        for key in ("error", "message", "detail"):
            if isinstance(found, Mapping) and key in found:
                found = found[key]
        return " ".join(found.split())[:300] if isinstance(found, str) else ""


class Wire:
    """A connection to one server. Used from one thread at a time; `close` it, or use it in a `with`."""

    def __init__(
        self, url: str, *, api_key: str | None = None, timeout_s: float = 10.0, socket: Path | None = None
    ) -> None:
        import httpx2

        self.root, credentials = server_root(url)
        self.shown = self.root
        self._timeout_s = timeout_s
        self._secrets = [secret for secret in (api_key, credentials[1] if credentials else None) if secret]
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if api_key:
            if not api_key.isascii() or not api_key.isprintable():
                raise TokenizerError(f"The API key for {self.shown} holds characters that no HTTP header can carry.")
            headers["Authorization"] = f"Bearer {api_key}"
        self._client = httpx2.Client(
            headers=headers,
            auth=credentials if credentials and not api_key else None,
            transport=httpx2.HTTPTransport(uds=str(socket)) if socket else None,
            trust_env=not _is_loopback(urlsplit(self.root).hostname or ""),  # no proxy leads to this very machine
        )

    def __repr__(self) -> str:
        return f"Wire({self.shown!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, *, params: Mapping[str, str] | None = None) -> Answer:
        return self._send("GET", path, b"", params=params)

    def post(self, path: str, body: Mapping[str, Any], *, hook: PairsHook | None = None) -> Answer:
        try:
            data = json.dumps(body, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise TokenizerError("The text holds half of a surrogate pair, which is no character.") from None
        return self._send("POST", path, data, hook=hook)

    def ask(self, path: str, body: Mapping[str, Any], *, hook: PairsHook | None = None) -> dict[str, Any]:
        """`post`, where only a JSON object with status 200 will do."""
        return self.object_of(self.post(path, body, hook=hook), path)

    def object_of(self, answer: Answer, path: str) -> dict[str, Any]:
        """The JSON object of a good answer; else the error that fits."""
        if answer.status in (401, 403):
            raise TokenizerError(f"{self.shown} refused {path} (HTTP {answer.status}). Check the API key (--api-key).")
        if 300 <= answer.status < 400:
            to = urlsplit(answer.location)
            to_shown = urlunsplit((to.scheme, to.netloc.rpartition("@")[2], to.path, "", ""))
            raise TokenizerError(f"{self.shown} redirects {path} to {to_shown or 'nowhere'}. Use that address.")
        if answer.status != 200:
            words = self._clean(answer.error_text() or answer.excerpt)
            raise TokenizerError(
                f"{self.shown} answered {path} with HTTP {answer.status}" + (f": {words}" * bool(words))
            )
        if not answer.is_json:
            kind = "HTML" if answer.excerpt.lstrip().startswith("<") else "something that is not JSON"
            raise TokenizerError(f"{self.shown} answered {path} with {kind}. Is this the address of the model's API?")
        if not isinstance(answer.value, dict):
            raise self.unusable(path, f"a JSON {type(answer.value).__name__}, not an object")
        return answer.value

    def unusable(self, path: str, why: str) -> TokenizerError:
        return TokenizerError(f"{self.shown} answered {path} with something unusable: {self._clean(why)}.")

    def _send(
        self,
        method: str,
        path: str,
        data: bytes,
        *,
        params: Mapping[str, str] | None = None,
        hook: PairsHook | None = None,
    ) -> Answer:
        import httpx2

        room = _ROOM_BYTES + _ROOM_PER_BYTE * len(data)
        patience_s = self._timeout_s + len(data) / _BYTES_PER_S
        for attempt in (1, 2):
            try:
                return self._read(method, path, data, room, patience_s, params, hook)
            except httpx2.RemoteProtocolError:
                if attempt == 2:
                    raise TokenizerError(f"{self.shown} broke the connection during {path}.") from None
            except httpx2.TimeoutException:
                raise self._too_slow(path, patience_s) from None
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
                words = self._clean(str(error) or type(error).__name__)
                raise TokenizerError(
                    f"{self.shown} cannot be reached ({words}). Is the server running, and the address right?"
                ) from None
        raise AssertionError("unreachable")

    def _read(
        self,
        method: str,
        path: str,
        data: bytes,
        room: int,
        patience_s: float,
        params: Mapping[str, str] | None,
        hook: PairsHook | None,
    ) -> Answer:
        deadline = time.monotonic() + patience_s
        request: Any = {"content": data} if method == "POST" else {"params": dict(params or {})}
        body = bytearray()
        with self._client.stream(method, self.root + path, timeout=self._timeout(patience_s), **request) as response:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > room:
                    raise TokenizerError(f"{self.shown} answered {path} with more than {room / 1e6:.0f} MB: not read.")
                if time.monotonic() > deadline:
                    raise self._too_slow(path, patience_s)
            status, location = response.status_code, response.headers.get("location", "")
        excerpt = " ".join(bytes(body[:400]).decode("utf-8", "replace").split())[:200]
        try:
            value = json.loads(body, object_pairs_hook=hook)
        except (ValueError, TypeError, RecursionError):
            return Answer(status=status, value=None, is_json=False, excerpt=excerpt, location=location)
        return Answer(status=status, value=value, is_json=True, excerpt=excerpt, location=location)

    def _timeout(self, patience_s: float) -> httpx2.Timeout:
        import httpx2

        return httpx2.Timeout(patience_s, connect=self._timeout_s)

    def _too_slow(self, path: str, patience_s: float) -> TokenizerError:
        return TokenizerError(f"{self.shown} did not answer {path} within {patience_s:.0f} s.")

    def _clean(self, words: str) -> str:
        for secret in self._secrets:
            if len(secret) >= 4:  # a shorter one hides nothing, and would be found in the middle of words
                words = words.replace(secret, "***")
        return words


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def server_root(url: str) -> tuple[str, tuple[str, str] | None]:
    """`http://u:p@host:1/x/v1/chat/completions?k=1` → (`http://host:1/x`, (`u`, `p`))."""
    try:
        parts = urlsplit(url.strip())
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise TokenizerError("The API URL must look like http://host:port/v1 (--api-url).")
    path = parts.path.rstrip("/")
    for tail in ("/completions", "/chat", "/v1"):
        path = path.removesuffix(tail).rstrip("/")
    credentials = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", "")), credentials
