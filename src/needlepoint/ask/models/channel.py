"""HTTP to one API, for asking: pooled, bounded, safe to cancel. Every way to fail comes out as one `BrokenError`.

Sends what it is given and reads no meaning into what comes back. No deadline of its own but that for connecting: who
asks sets them, by cancelling. Redirects are not followed, so the key goes nowhere else.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from needlepoint.ask.models.address import Address, Cleaner
from needlepoint.ask.models.answers import ROOM_BYTES, Unpacker
from needlepoint.ask.models.refusals import RefusedError, shown_words
from needlepoint.types import FailureKind

if TYPE_CHECKING:
    import httpx2

MOST_IN_FLIGHT = 512
CONNECT_S = 10.0
_QUESTION_S = 10.0
_IDLE_S = 4.0  # servers end idle connections after 5 s and more: be first, so that no request meets the end of one
_PIECE_BYTES = 1 << 16
_NO_LIMITS = {"connect": CONNECT_S, "read": None, "write": None, "pool": None}


class BrokenError(Exception):
    """No answer came, or not all of it. `words` are for people."""

    def __init__(self, kind: FailureKind, words: str) -> None:
        super().__init__(words)
        self.kind = kind
        self.words = words


class Incoming:
    """An answer whose head is here and whose body is coming."""

    def __init__(self, response: httpx2.Response, clean: Cleaner) -> None:
        self._response = response
        self._clean = clean
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def pieces(self, room_bytes: int) -> AsyncGenerator[bytes]:
        """The body, unpacked; more than `room_bytes` of it is a refusal (`bad_answer`). To be closed by the caller."""
        unpacker = Unpacker(self.headers.get("content-encoding", ""), room_bytes)
        with _breaking(self._clean):
            async with aclosing(self._response.aiter_raw()) as raw:
                async for data in raw:
                    for piece in unpacker.unpack(data):
                        yield piece

    async def beginning(self, room_bytes: int) -> bytes:
        """The body's first `room_bytes`, for errors: what is left is of no interest."""
        body = bytearray()
        with suppress(RefusedError):
            async with aclosing(self.pieces(room_bytes)) as pieces:
                async for piece in pieces:
                    body += piece
        return bytes(body)


class Channel:
    """A pool of connections to one address. Belongs to one event loop; `close` it there."""

    def __init__(self, address: Address, *, api_key: str | None, headers: Mapping[str, str]) -> None:
        self.address = address
        self._headers = _headers(address, api_key, headers)
        values = [*headers.values(), self._headers.get(b"Authorization", b"").decode()]
        self.clean = Cleaner([*address.secrets(), *values, *(value.partition(" ")[2] for value in values)])
        self._client: httpx2.AsyncClient | None = None
        self._urls: dict[str, httpx2.URL] = {}

    def post(self, url: str, body: bytes) -> AbstractAsyncContextManager[Incoming]:
        """Send, and hold the connection for as long as the context lasts; it is closed when left early."""
        return self._exchange("POST", url, [body])

    async def get(self, url: str) -> tuple[int, Mapping[str, str], bytes]:
        """(status, headers, body) of a small question, within 10 seconds."""
        try:
            async with asyncio.timeout(_QUESTION_S), self._exchange("GET", url, []) as incoming:
                return incoming.status, incoming.headers, await incoming.beginning(ROOM_BYTES)
        except TimeoutError:
            raise BrokenError("timeout", f"no answer within {_QUESTION_S:.0f} s") from None

    async def question(self, url: str, body: Mapping[str, object], room_bytes: int) -> Any:
        """The JSON that a server answers with; None where it refuses, breaks off or says something else."""
        try:
            async with self.post(url, json.dumps(body).encode()) as incoming:
                if incoming.status != 200:
                    return None
                async with aclosing(incoming.pieces(room_bytes)) as pieces:
                    return json.loads(b"".join([piece async for piece in pieces]))
        except (BrokenError, RefusedError, ValueError):
            return None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _exchange(self, method: str, url: str, body: list[bytes]) -> AsyncIterator[Incoming]:
        import httpx2

        client = self._client or self._open()
        to = self._urls.get(url) or self._urls.setdefault(url, httpx2.URL(url))
        headers = {b"Host": to.netloc, **self._headers}
        if body:
            headers[b"Content-Length"] = b"%d" % len(body[0])
        request = httpx2.Request(
            method,
            to,
            headers=headers,
            stream=_sending()(body),
            extensions={"timeout": _NO_LIMITS},
        )
        with _breaking(self.clean):
            response = await client.send(request, stream=True)
        try:
            yield Incoming(response, self.clean)
        finally:
            with _breaking(self.clean):
                await response.aclose()

    def _open(self) -> httpx2.AsyncClient:
        import httpx2

        plain = self.address.loopback and not self.address.secure
        self._client = httpx2.AsyncClient(
            limits=httpx2.Limits(
                max_connections=MOST_IN_FLIGHT, max_keepalive_connections=MOST_IN_FLIGHT, keepalive_expiry=_IDLE_S
            ),
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,  # saves loading certificates
            trust_env=not self.address.loopback,  # no proxy leads to this very machine
        )
        return self._client


@contextmanager
def _breaking(clean: Cleaner) -> Iterator[None]:
    """Turn every way in which a connection can fail into one."""
    import httpx2

    try:
        yield
    except httpx2.ConnectTimeout:
        raise BrokenError("connection", f"no connection within {CONNECT_S:.0f} s") from None
    except httpx2.TimeoutException:
        raise BrokenError("timeout", "it took too long") from None
    except httpx2.ConnectError as error:
        raise BrokenError("connection", f"no connection ({shown_words(str(error), clean)})") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise BrokenError("connection", shown_words(str(error), clean) or type(error).__name__) from None


def shown_target(location: str) -> str:
    """Where a redirect leads, fit to print."""
    to = urlsplit(location)
    return urlunsplit((to.scheme, to.netloc.rpartition("@")[2], to.path, "", ""))


@cache
def _sending() -> Any:
    """The class of a body in pieces that is forgotten once sent: prompts are big, and answers slow."""
    import httpx2

    class Sending(httpx2.AsyncByteStream):
        def __init__(self, body: list[bytes]) -> None:
            self._left = body

        async def __aiter__(self) -> AsyncIterator[bytes]:
            if not self._left:
                return
            whole = self._left.pop()
            if len(whole) <= _PIECE_BYTES:
                yield whole
                return
            view = memoryview(whole)
            del whole
            for at in range(0, len(view), _PIECE_BYTES):
                yield bytes(view[at : at + _PIECE_BYTES])

    return Sending


def _headers(address: Address, api_key: str | None, headers: Mapping[str, str]) -> dict[bytes, bytes]:
    found = {
        "Accept": "application/json, text/event-stream",
        "Accept-Encoding": "identity",
        "Connection": "keep-alive",
        "Content-Type": "application/json",
        "User-Agent": "needlepoint",
    }
    if api_key:
        found["Authorization"] = f"Bearer {api_key}"
    elif address.credentials:
        packed = base64.b64encode(":".join(address.credentials).encode()).decode()
        found["Authorization"] = f"Basic {packed}"
    given = {name.lower() for name in headers}
    chosen = {name: value for name, value in found.items() if name.lower() not in given} | dict(headers)
    return {name.encode(): value.encode() for name, value in chosen.items()}
