"""The OpenAI-compatible model against a real server on the loopback: every way to answer, and every way to fail."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from needlepoint.ask import keys
from needlepoint.ask.models.address import Address
from needlepoint.ask.models.listed import read_models
from needlepoint.ask.models.openai import OpenAIModel
from needlepoint.connect import connect
from needlepoint.errors import UsageError
from needlepoint.types import Askable, Encoding, Endpoint, Message, Model, Reply, Sampling, Usage

KEY = "sk-very-secret-123"
SAMPLING = Sampling(max_tokens=32, options={"temperature": 0})


@dataclass(frozen=True)
class Ask:
    """A prompt as a model sees it."""

    words: str = "What is the best thing?"
    n_tokens: int | None = 7
    sha256: str = "0" * 64
    max_tokens: int | None = None

    def messages(self) -> list[Message]:
        return [Message(role="user", content=self.words)]

    def text(self) -> str:
        return f"<s>user: {self.words}\nassistant:"

    def token_ids(self) -> array[int]:
        return array("I", [1, 2, 3])


# --- the server ------------------------------------------------------------------------------------------------------


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int


@dataclass
class Raw:
    """Bytes for the wire, in pieces; then the connection is kept, closed or reset."""

    pieces: tuple[bytes, ...]
    then: str = "keep"
    pause_s: float = 0.0
    hold: asyncio.Event | None = None


Handler = Callable[[Seen], "Raw | Awaitable[Raw]"]


def http(
    body: bytes | Any, *, status: int = 200, type_: str = "application/json", headers: Mapping[str, str] | None = None
) -> Raw:
    data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {type_}", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return Raw(("\r\n".join([*lines, "", ""]).encode() + data,))


def chunked(*parts: bytes, ended: bool = True, then: str = "keep", pause_s: float = 0.0) -> Raw:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts]
    return Raw((head, *pieces, *([b"0\r\n\r\n"] if ended else [])), then=then, pause_s=pause_s)


def event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def delta(text: str | None = None, finish: str | None = None, **more: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text, **more}, "finish_reason": finish}]})


USAGE = {"prompt_tokens": 100, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 64}}
DONE = event(b"[DONE]")
STREAM = (
    delta("", role="assistant"),
    delta("Dolores "),
    delta("Park"),
    delta(None, "stop"),
    event({"choices": [], "usage": USAGE}),
    DONE,
)


def answer(text: Any = "Dolores Park", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE, **more}


def error(message: str, status: int = 400, **more: Any) -> Raw:
    return http({"error": {"message": message, **more}}, status=status)


def polite(seen: Seen) -> Raw:
    """A server as it should be."""
    if seen.method == "GET":
        return error("not here", 404)
    return chunked(*STREAM) if seen.body.get("stream") else http(answer())


@dataclass
class Loopback:
    handler: Handler
    seen: list[Seen] = field(default_factory=list)
    open: int = 0
    most_open: int = 0
    connections: int = 0
    url: str = ""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await self.talk(reader, writer, self.connections)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            self.tasks.discard(task)
            writer.close()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first, *rest = head.decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
            body = await reader.readexactly(int(headers.get("content-length") or 0))
            method, path, _ = first.split(" ")
            seen = Seen(method, path, headers, json.loads(body) if body else None, number)
            del body
            self.seen.append(seen)
            found = self.handler(seen)
            raw = found if isinstance(found, Raw) else await found
            for piece in raw.pieces:
                writer.write(piece)
                await writer.drain()
                if raw.pause_s:
                    await asyncio.sleep(raw.pause_s)
            if raw.hold is not None:
                waiting = asyncio.ensure_future(raw.hold.wait())
                gone = asyncio.ensure_future(reader.read(1))
                await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                gone.cancel()
                return
            if raw.then == "reset":
                writer.transport.abort()
                return
            if raw.then == "close":
                return

    @property
    def asked(self) -> list[Seen]:
        return [
            seen for seen in self.seen if seen.method == "POST" and seen.path.partition("?")[0].endswith("completions")
        ]


@asynccontextmanager
async def serving(handler: Handler = polite) -> AsyncIterator[Loopback]:
    loopback = Loopback(handler)
    server = await asyncio.start_server(loopback.serve, "127.0.0.1", 0, limit=1 << 23, backlog=1024)
    loopback.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield loopback
    finally:
        server.close()
        for task in list(loopback.tasks):
            task.cancel()
        await asyncio.sleep(0)
        await server.wait_closed()


@asynccontextmanager
async def talking(handler: Handler = polite, **more: Any) -> AsyncIterator[tuple[OpenAIModel, Loopback]]:
    async with serving(handler) as server:
        model = OpenAIModel("org/smol", **{"api_url": server.url, "api_key": KEY, **more})
        try:
            yield model, server
        finally:
            await model.close()


async def ask(model: OpenAIModel, prompt: Askable | None = None, sampling: Sampling = SAMPLING) -> Reply:
    replies = [reply async for reply in model.ask([prompt or Ask()], sampling)]
    assert len(replies) == 1
    return replies[0]


def run(work: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(bounded())


def once(handler: Handler, prompt: Askable | None = None, sampling: Sampling = SAMPLING, **more: Any) -> Any:
    """(the reply to one question, what the server saw)."""

    async def work() -> tuple[Reply, Loopback]:
        async with talking(handler, **more) as (model, server):
            return await ask(model, prompt, sampling), server

    return run(work())


# --- answers ---------------------------------------------------------------------------------------------------------


def test_it_is_a_model() -> None:
    model = OpenAIModel("m", api_url="http://127.0.0.1:1")
    assert isinstance(model, Model)
    assert model.wave == 1
    assert isinstance(Ask(), Askable)


def test_a_streamed_answer_comes_with_its_usage_and_the_time_of_its_first_token() -> None:
    reply, server = once(lambda seen: replace(chunked(*STREAM), pause_s=0.01))
    assert (reply.text, reply.finish, reply.error) == ("Dolores Park", "stop", None)
    assert reply.usage == Usage(prompt=100, completion=3, cached=64)
    assert reply.prefilled_tokens == 36
    assert 0 < reply.times.first_token < reply.times.total
    body = server.asked[0].body
    assert server.asked[0].path == "/v1/chat/completions"
    assert body == {
        "model": "org/smol",
        "messages": [{"role": "user", "content": "What is the best thing?"}],
        "max_tokens": 32,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_an_answer_that_comes_whole_is_the_same() -> None:
    reply, server = once(polite, stream=False)
    assert (reply.text, reply.finish, reply.usage.cached, reply.times.first_token) == ("Dolores Park", "stop", 64, None)
    assert "stream" not in server.asked[0].body
    reply, server = once(polite, sampling=Sampling(max_tokens=5, options={"stream": False}))
    assert "stream" not in server.asked[0].body
    assert reply.text == "Dolores Park"


def test_a_whole_answer_to_a_request_for_a_stream_is_taken_and_the_other_way_round() -> None:
    assert once(lambda _: http(answer()))[0].text == "Dolores Park"
    assert once(lambda _: chunked(*STREAM), stream=False)[0].text == "Dolores Park"
    assert once(lambda _: http(b"".join(STREAM), type_="text/plain"))[0].text == "Dolores Park"
    assert (
        once(lambda _: http(b"\n\n: hello\n" + b"".join(STREAM), type_="application/octet-stream"))[0].finish == "stop"
    )


def test_completions_get_the_rendered_text() -> None:
    whole = {"choices": [{"text": " Dolores", "finish_reason": "length"}], "usage": USAGE}
    parts = [event({"choices": [{"index": 0, "text": part, "finish_reason": None}]}) for part in (" Dolo", "res")]

    def handler(seen: Seen) -> Raw:
        return (
            chunked(*parts, event({"choices": [{"text": "", "finish_reason": "length"}]}), DONE)
            if seen.body.get("stream")
            else http(whole)
        )

    for stream in (True, False):
        reply, server = once(handler, completions=True, stream=stream)
        assert (reply.text, reply.finish) == (" Dolores", "length")
        assert server.asked[0].path == "/v1/completions"
        assert server.asked[0].body["prompt"] == Ask().text()
        assert "messages" not in server.asked[0].body


def test_generation_settings_go_into_the_request_whole() -> None:
    options = {
        "temperature": 0.5,
        "seed": 7,
        "chat_template_kwargs": {"enable_thinking": False},
        "extra_body": {"top_k": 3, "chat_template_kwargs": {"tone": "dry"}, "temperature": 0.1},
    }
    _, server = once(polite, Ask(max_tokens=9), Sampling(max_tokens=5, options=options))
    body = server.asked[0].body
    assert (body["temperature"], body["seed"], body["top_k"], body["max_tokens"]) == (0.1, 7, 3, 9)
    assert body["chat_template_kwargs"] == {"enable_thinking": False, "tone": "dry"}
    assert "extra_body" not in body
    _, server = once(polite, sampling=Sampling(max_tokens=5, options={"max_completion_tokens": 8}))
    assert server.asked[0].body["max_completion_tokens"] == 8
    assert "max_tokens" not in server.asked[0].body


@pytest.mark.parametrize(
    "options", [{"messages": []}, {"extra_body": {"model": "x"}}, {"extra_body": 5}, {"x": object()}]
)
def test_settings_that_cannot_be_sent_are_an_error_of_the_user(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        once(polite, sampling=Sampling(max_tokens=5, options=options))


def test_reasoning_is_kept_apart_in_streams_and_timings_are_read() -> None:
    stream = (
        delta(None, reasoning_content="Let me "),
        delta(None, reasoning_content="see."),
        delta("Dolores"),
        event({"choices": [{"delta": {}, "finish_reason": "stop"}], "timings": {"prompt_n": 30, "cache_n": 70}}),
        DONE,
    )
    reply, _ = once(lambda _: chunked(*stream))
    assert (reply.text, reply.reasoning) == ("Dolores", "Let me see.")
    assert (reply.prefilled_tokens, reply.usage.cached, reply.usage.prompt) == (30, 70, None)
    assert reply.times.first_token is not None


def test_big_prompts_arrive_whole() -> None:
    words = "北京🙂 needle " * 200_000
    reply, server = once(polite, Ask(words))
    assert reply.error is None
    assert server.asked[0].body["messages"][0]["content"] == words


def test_connections_are_used_again() -> None:
    async def work() -> None:
        async with talking() as (model, server):
            for _ in range(5):
                assert (await ask(model)).error is None
            assert server.connections == 1

    run(work())


def test_a_server_that_leaves_the_stream_open_after_its_end_does_not_hold_us() -> None:
    begun = time.monotonic()
    reply, _ = once(lambda _: replace(chunked(*STREAM, ended=False), hold=asyncio.Event()))
    assert reply.text == "Dolores Park"
    assert time.monotonic() - begun < 10


def test_hundreds_in_flight_have_a_connection_each() -> None:
    async def work() -> None:
        gate, n = asyncio.Event(), 400  # this process holds both ends, and may have only 1024 open

        async def handler(seen: Seen) -> Raw:
            if len(server.asked) == n:
                gate.set()
            await gate.wait()
            return http(answer())

        async with talking(handler) as (model, server):
            replies = await asyncio.gather(*(ask(model) for _ in range(n)))
            assert all(reply.text == "Dolores Park" for reply in replies)
            assert server.most_open == n

    run(work())


def test_a_prompt_is_forgotten_once_it_is_sent() -> None:
    import tracemalloc

    class Big(Ask):
        def messages(self) -> list[Message]:
            return [Message(role="user", content="needle " * 300_000)]

    async def work() -> int:
        gate, arrived, n = asyncio.Event(), asyncio.Event(), 8

        async def handler(seen: Seen) -> Raw:
            seen.body = None
            if len(server.asked) == n:
                arrived.set()
            await gate.wait()
            return http(answer())

        async with talking(handler) as (model, server):
            tasks = [asyncio.ensure_future(ask(model, Big())) for _ in range(n)]
            await arrived.wait()
            await asyncio.sleep(0.05)
            held, _ = tracemalloc.get_traced_memory()
            gate.set()
            assert all(reply.text for reply in await asyncio.gather(*tasks))
            return held

    tracemalloc.start()
    try:
        assert run(work()) < 6_000_000  # of 17 MB
    finally:
        tracemalloc.stop()


# --- failures --------------------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[Handler, str]] = {
    "429": (lambda _: error("slow down", 429), "rate_limit"),
    "500": (lambda _: error("boom", 500), "server"),
    "502 page": (lambda _: http(b"<html><title>502</title>", status=502, type_="text/html"), "server"),
    "401": (lambda _: error("bad key", 401), "auth"),
    "400": (lambda _: error("no", 400), "bad_request"),
    "overflow": (lambda _: error("prompt is too long: 9 tokens > 8 maximum"), "overflow"),
    "reset before the answer": (lambda _: Raw((), then="reset"), "connection"),
    "closed before the answer": (lambda _: Raw((), then="close"), "connection"),
    "no http": (lambda _: Raw((b"\x00\x01garbage\r\n\r\n",), then="close"), "connection"),
    "endless header": (lambda _: Raw((b"HTTP/1.1 200 OK\r\nX: " + b"x" * 500_000,), then="close"), "connection"),
    "cut body": (
        lambda _: replace(http(answer()), pieces=(http(answer()).pieces[0][:-20],), then="close"),
        "connection",
    ),
    "reset body": (
        lambda _: replace(http(answer()), pieces=(http(answer()).pieces[0][:-20],), then="reset"),
        "connection",
    ),
    "cut stream": (lambda _: chunked(*STREAM[:3], ended=False, then="close"), "connection"),
    "stream that stops early": (lambda _: chunked(*STREAM[:3]), "connection"),
    "stream cut in an event": (lambda _: chunked(*STREAM[:2], STREAM[2][:20]), "bad_answer"),
    "empty stream": (lambda _: chunked(), "connection"),
    "only the end": (lambda _: chunked(DONE), "bad_answer"),
    "empty": (lambda _: http(b""), "bad_answer"),
    "no content": (lambda _: Raw((b"HTTP/1.1 204 No Content\r\n\r\n",)), "bad_answer"),
    "invalid json": (lambda _: http(b'{"choices": [}'), "bad_answer"),
    "web page": (lambda _: http(b"<html>hello</html>", type_="text/html"), "bad_answer"),
    "no choices": (lambda _: http({"choices": []}), "bad_answer"),
    "wrong types": (lambda _: http({"choices": [{"message": {"content": 5}}]}), "bad_answer"),
    "wrong types in a stream": (lambda _: chunked(event({"choices": 5}), DONE), "bad_answer"),
    "list": (lambda _: http([1, 2]), "bad_answer"),
    "error with a good status": (lambda _: http({"error": {"message": "boom", "code": 503}}), "server"),
    "error in a stream": (lambda _: chunked(STREAM[1], event({"error": {"message": "boom", "code": 500}})), "server"),
    "named error in a stream": (
        lambda _: chunked(STREAM[1], b"event: error\n" + event({"type": "overloaded_error"})),
        "server",
    ),
    "overflow in a stream": (
        lambda _: chunked(event({"error": {"message": "prompt is too long", "code": 400}})),
        "overflow",
    ),
    "given up": (lambda _: chunked(delta("x", "error"), DONE), "server"),
    "unknown packing": (lambda _: http(b"x", headers={"Content-Encoding": "br"}), "bad_answer"),
    "bomb": (lambda _: http(gzip.compress(b" " * 200_000_000), headers={"Content-Encoding": "gzip"}), "bad_answer"),
    "bomb as a stream": (
        lambda _: http(
            gzip.compress(b": x\n" * 20_000_000), type_="text/event-stream", headers={"Content-Encoding": "gzip"}
        ),
        "bad_answer",
    ),
    "redirect": (lambda _: http(b"", status=307, headers={"Location": "http://evil.example/v1?k=1"}), "bad_request"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_whatever_a_server_does_is_a_failure_of_the_right_kind_and_one_request(name: str) -> None:
    handler, kind = FAULTS[name]
    reply, server = once(handler)
    assert reply.error is not None
    assert reply.error.kind == kind, reply.error
    assert reply.text == ""
    assert reply.times.total is not None
    assert len(server.asked) == 1
    assert server.url in reply.error.message
    assert len(reply.error.message) < 500


def test_after_each_fault_the_next_question_is_answered() -> None:
    async def work() -> None:
        faults = [handler for handler, _ in FAULTS.values()]

        def handler(seen: Seen) -> Raw | Awaitable[Raw]:
            number = len(server.asked) - 1
            return polite(seen) if number % 2 else faults[number // 2](seen)

        async with talking(handler) as (model, server):
            for _ in faults:
                assert (await ask(model)).error is not None
                assert (await ask(model)).text == "Dolores Park"

    run(work())


def test_an_endless_answer_is_not_read_to_its_end() -> None:
    sent = 0

    class Endless(Raw):
        pass

    async def work() -> None:
        for stream in (True, False):
            async with serving(lambda _: http({})) as server:

                async def pour(
                    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int, stream: bool = stream
                ) -> None:
                    nonlocal sent
                    await reader.readuntil(b"\r\n\r\n")
                    kind = b"text/event-stream" if stream else b"application/json"
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nContent-Length: 100000000\r\n\r\n")
                    sent = 0
                    for _ in range(100):
                        writer.write(b"x" * 1_000_000)
                        await writer.drain()
                        sent += 1

                server.talk = pour  # type: ignore[method-assign]
                model = OpenAIModel("m", api_url=server.url)
                reply = await ask(model)
                assert reply.error is not None
                assert reply.error.kind == "bad_answer"
                assert "MB" in reply.error.message
                assert sent < 40
                await model.close()

    run(work())


def test_a_stream_that_ends_without_saying_so_is_whole_once_the_answer_is() -> None:
    assert once(lambda _: chunked(*STREAM[:-1]))[0].usage.prompt == 100
    for then in ("close", "reset"):
        reply, _ = once(lambda _, then=then: chunked(*STREAM[:4], ended=False, then=then))
        assert (reply.text, reply.finish, reply.error) == ("Dolores Park", "stop", None)


def test_nobody_there_is_a_failed_connection() -> None:
    async def work() -> Reply:
        async with serving() as server:
            url = server.url
        model = OpenAIModel("m", api_url=url, api_key=KEY)
        reply = await ask(model)
        await model.close()
        return reply

    reply = run(work())
    assert reply.error.kind == "connection"
    assert "no connection" in reply.error.message


def test_the_wait_that_is_asked_for_is_told() -> None:
    reply, _ = once(lambda _: http(b"{}", status=429, headers={"Retry-After": "7"}))
    assert reply.error.retry_after_s == 7.0


def test_rate_limit_headers_are_noted() -> None:
    async def work() -> None:
        async with talking(lambda _: http(answer(), headers={"X-RateLimit-Limit-Requests": "60"})) as (model, _):
            await ask(model)
            assert model.rate_headers == {"x-ratelimit-limit-requests": "60"}

    run(work())


def test_cancelling_closes_the_connection_and_leaves_the_model_usable() -> None:
    async def work() -> None:
        arrived = asyncio.Event()

        async def handler(seen: Seen) -> Raw:
            if len(server.asked) > 2:
                return http(answer())
            arrived.set()
            never = asyncio.Event()
            return (
                replace(chunked(*STREAM[:2], ended=False), hold=never)
                if len(server.asked) == 2
                else Raw((), hold=never)
            )

        async with talking(handler) as (model, server):
            for _ in range(2):
                arrived.clear()
                task = asyncio.ensure_future(ask(model))
                await arrived.wait()
                await asyncio.sleep(0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                async with asyncio.timeout(5):
                    while server.open:
                        await asyncio.sleep(0.01)
            assert (await ask(model)).text == "Dolores Park"

    run(work())


# --- what a server does not take -------------------------------------------------------------------------------------


def test_a_server_that_takes_no_stream_is_asked_without_from_then_on() -> None:
    async def work() -> None:
        def handler(seen: Seen) -> Raw:
            return error("Unknown field: stream_options", 400) if "stream" in seen.body else http(answer())

        async with talking(handler) as (model, server):
            for _ in range(3):
                reply = await ask(model)
                assert (reply.text, reply.attempts) == ("Dolores Park", 1)
            assert ["stream" in seen.body for seen in server.asked] == [True, False, False, False]

    run(work())


def test_a_server_that_wants_max_completion_tokens_gets_them_from_then_on() -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."

    async def work() -> None:
        def handler(seen: Seen) -> Raw:
            if "max_tokens" in seen.body:
                return error(words, 400, param="max_tokens", code="unsupported_parameter")
            return http(answer())

        async with talking(handler) as (model, server):
            assert all(reply.text for reply in await asyncio.gather(*(ask(model) for _ in range(8))))
            assert (await ask(model)).attempts == 1
            assert len(server.asked) <= 17
            assert server.asked[-1].body["max_completion_tokens"] == 32
            assert "max_tokens" not in server.asked[-1].body

    run(work())


def test_an_overflow_that_speaks_of_max_tokens_and_streams_is_asked_once() -> None:
    words = (
        "'max_tokens' or 'max_completion_tokens' is too large, use less instead: stream. This model's maximum context "
        "length is 4096 tokens and your request has 4000 input tokens"
    )
    reply, server = once(lambda _: error(words))
    assert reply.error.kind == "overflow"
    assert len(server.asked) == 1


def test_an_api_without_v1_is_found_and_remembered() -> None:
    async def work() -> None:
        def handler(seen: Seen) -> Raw:
            return http(answer()) if seen.path == "/api/chat/completions" else http(b"404 page not found", status=404)

        async with serving(handler) as server:
            model = OpenAIModel("m", api_url=f"{server.url}/api/")
            for _ in range(2):
                assert (await ask(model)).text == "Dolores Park"
            assert [seen.path for seen in server.asked] == [
                "/api/v1/chat/completions",
                "/api/chat/completions",
                "/api/chat/completions",
            ]
            await model.close()

    run(work())


def test_an_api_that_is_nowhere_is_looked_for_once() -> None:
    async def work() -> None:
        async with talking(lambda _: http(b"404 page not found", status=404)) as (model, server):
            replies = [await ask(model) for _ in range(3)]
            assert {reply.error.kind for reply in replies if reply.error} == {"bad_request"}
            assert len(server.asked) == 4

    run(work())


# --- addresses and secrets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h:1/", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        (" http://h:1/v1/ ", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions"),
        ("https://h/compatible-mode/v1", "https://h/compatible-mode/v1/chat/completions"),
        ("https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions"),
        ("https://h/api/v3", "https://h/api/v3/chat/completions"),
        ("https://h/gate", "https://h/gate/v1/chat/completions"),
        ("https://h/d/x/chat/completions?api-version=7", "https://h/d/x/chat/completions?api-version=7"),
        ("http://u:p@[::1]:8000/v1", "http://[::1]:8000/v1/chat/completions"),
    ],
)
def test_any_part_of_an_address_will_do(given: str, first: str) -> None:
    address = Address.of(given)
    assert address.url(address.bases[0], "/chat/completions") == first
    assert "p@" not in repr(address)
    assert "api-version" not in repr(address)


@pytest.mark.parametrize(
    "given",
    ["", "h:1", "ftp://h", "http://", "http://h:0", "http://h:99999", "http://h/\x01a", "http://[", "http://h/a b"],
)
def test_an_address_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="must look like"):
        Address.of(given)


def test_no_secret_is_ever_shown() -> None:
    headers = {"api-key": "header-secret-9", "X-Auth": "Token other-secret-8"}

    def handler(seen: Seen) -> Raw:
        told = f"your key {seen.headers.get('authorization')}, {headers}, {seen.path}"
        if seen.method == "GET":
            told_headers = {"Server": f"echo {KEY}"}
            return http({"data": [{"id": f"m-{KEY}", "owned_by": KEY}]}, headers=told_headers)
        return (
            error(told, 401),
            error(told, 400),
            chunked(event({"error": told})),
            chunked(delta(told, f"f {KEY}"), DONE),
        )[len(server_seen) % 4]

    server_seen: list[Reply] = []

    async def work() -> None:
        async with serving(handler) as server:
            url = server.url.replace("//", "//user:url-secret-7@", 1) + "/v1?k=query-secret-6"
            model = OpenAIModel("org/smol", api_url=url, api_key=KEY, headers=headers, endpoint=connect("qwen3"))
            endpoint = await model.connect()
            shown = [repr(model), repr(model.address), repr(endpoint)]
            for _ in range(4):
                server_seen.append(await ask(model))
            await model.close()
        shown += [repr(reply) for reply in server_seen]
        for secret in (KEY, "header-secret-9", "other-secret-8", "url-secret-7", "query-secret-6"):
            assert not [text for text in shown if secret in text], secret
        assert server.asked[0].headers["api-key"] == "header-secret-9"
        assert server.asked[0].path.endswith("?k=query-secret-6")

    run(work())


@pytest.mark.parametrize("headers", [{"bad name": "x"}, {"X": "a\nb"}, {"X": "é"}, {"Content-Length": "5"}, {"": "x"}])
def test_headers_that_cannot_be_sent_are_refused_without_showing_them(headers: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        OpenAIModel("m", api_url="http://h", headers=headers)
    assert "a\nb" not in str(caught.value)


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    with pytest.raises(UsageError) as caught:
        OpenAIModel("m", api_url="http://h", api_key="sk-sécret")
    assert "sk-" not in str(caught.value)


def test_redirects_are_told_and_not_followed() -> None:
    async def work() -> None:
        async with serving() as other:

            def handler(seen: Seen) -> Raw:
                return http(b"", status=308, headers={"Location": f"{other.url}/v1/chat/completions?k=1"})

            async with talking(handler) as (model, _):
                reply = await ask(model)
            assert reply.error is not None
            assert f"{other.url}/v1/chat/completions. Give" in reply.error.message
            assert other.seen == []

    run(work())


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert once(polite)[0].text == "Dolores Park"


def test_a_proxy_of_the_environment_is_asked_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with serving() as proxy:
            for name in ("HTTP_PROXY", "http_proxy"):
                monkeypatch.setenv(name, proxy.url)
            for name in ("NO_PROXY", "no_proxy"):
                monkeypatch.delenv(name, raising=False)
            model = OpenAIModel("m", api_url="http://model.example/v1")
            assert (await ask(model)).text == "Dolores Park"
            assert proxy.asked[0].path == "http://model.example/v1/chat/completions"
            await model.close()

    run(work())


# --- connecting ------------------------------------------------------------------------------------------------------


def listing(*models: dict[str, Any], **routes: Any) -> Handler:
    def handler(seen: Seen) -> Raw:
        path = seen.path.partition("?")[0]
        if path in routes:
            return http(routes[path], headers={"Server": "uvicorn"})
        if path == "/v1/models" and models:
            return http({"object": "list", "data": list(models)}, headers={"Server": "uvicorn"})
        return polite(seen) if path.endswith("completions") else http({"detail": "Not Found"}, status=404)

    return handler


def introduced(handler: Handler, name: str = "org/smol", **more: Any) -> Any:
    async def work() -> tuple[Endpoint, Loopback]:
        async with serving(handler) as server:
            given = {"api_key": KEY, "local": lambda: connect("qwen3"), **more}
            model = OpenAIModel(name, api_url=server.url, **given)
            try:
                return await model.connect(), server
            finally:
                await model.close()

    return run(work())


@pytest.mark.parametrize(
    ("entry", "limit"),
    [
        ({"max_model_len": 4096}, 4096),
        ({"context_length": 8192}, 8192),
        ({"context_window": 131072}, 131072),
        ({"max_context_length": 32768}, 32768),
        ({"meta": {"n_ctx_train": 2048}}, 2048),
        ({"meta": {"n_ctx": 1024, "n_ctx_train": 2048}}, 1024),
        ({"max_model_len": "4096"}, None),
        ({"max_model_len": True, "context_length": -5}, None),
        ({}, None),
    ],
)
def test_the_limit_is_read_from_the_list_of_models(entry: dict[str, Any], limit: int | None) -> None:
    endpoint, _ = introduced(listing({"id": "org/smol", **entry}, {"id": "other", "max_model_len": 5}))
    assert endpoint.limit_tokens == limit
    assert endpoint.facts["server"] == "uvicorn"
    assert endpoint.facts["models"] == ["org/smol", "other"]
    assert not endpoint.proven


def test_the_limit_is_read_from_llama_cpp_s_props_and_the_user_s_word_comes_first() -> None:
    props = {"default_generation_settings": {"n_ctx": 2048}, "build_info": "b9999"}
    entry = {"id": "toy.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}
    endpoint, _ = introduced(listing(entry, **{"/props": props}), "any")
    assert endpoint.limit_tokens == 2048
    assert endpoint.facts["version"] == "b9999"
    endpoint, _ = introduced(listing(entry, **{"/props": props}), "any", max_model_len=1000)
    assert (endpoint.limit_tokens, endpoint.facts["limit_from"]) == (1000, "user")


def test_a_server_without_a_list_of_models_is_connected_all_the_same() -> None:
    endpoint, _ = introduced(listing())
    assert endpoint.limit_tokens is None
    assert endpoint.tokenizer.name


def test_a_chosen_tokenizer_is_taken_as_it_is() -> None:
    chosen = connect("qwen3")
    endpoint, server = introduced(listing({"id": "org/smol", "max_model_len": 4096}), endpoint=chosen)
    assert endpoint.tokenizer is chosen.tokenizer
    assert endpoint.limit_tokens == 4096
    assert "/tokenize" not in [seen.path for seen in server.seen]


def test_a_tokenizer_of_the_server_s_that_cannot_be_used_is_noted() -> None:
    endpoint, _ = introduced(listing({"id": "org/smol"}, **{"/tokenize": {"tokens": "no"}}))
    assert any("own tokenizer can't be used" in note for note in endpoint.notes)


def test_a_model_that_is_not_listed_is_noted_with_what_is() -> None:
    endpoint, _ = introduced(listing({"id": "org/smol-2"}))
    assert any(
        "does not list the model 'org/smol'. It serves 'org/smol-2': --model org/smol-2" in note
        for note in endpoint.notes
    )
    endpoint, _ = introduced(listing({"id": "org/smol-2"}, {"id": "big"}))
    assert any("Did you mean 'org/smol-2'?" in note for note in endpoint.notes)


def test_a_model_that_the_server_denies_is_an_error_that_names_what_it_serves() -> None:
    def handler(seen: Seen) -> Raw:
        if seen.path in ("/tokenize", "/v1/chat/completions"):
            return error(f"The model `{seen.body['model']}` does not exist.", 404, code=404)
        return listing({"id": "org/large"})(seen)  # type: ignore[return-value]

    with pytest.raises(UsageError, match="It serves 'org/large': --model org/large"):
        introduced(handler)

    async def work() -> None:
        async with talking(handler, endpoint=connect("qwen3")) as (model, _):
            await model.connect()
            reply = await ask(model)
            assert reply.error is not None
            assert reply.error.kind == "bad_request"
            assert "--model org/large" in reply.error.message

    run(work())


def test_a_refused_key_and_nobody_there_are_errors_when_connecting() -> None:
    with pytest.raises(UsageError, match="Check the API key"):
        introduced(lambda _: error("no", 401))
    with pytest.raises(UsageError, match="Is the server running"):
        introduced(lambda _: Raw((), then="reset"))


def test_a_server_s_own_tokenizer_is_preferred_and_proven() -> None:
    def tokenize(seen: Seen) -> Raw:
        text = seen.body.get("prompt")
        if "messages" in seen.body:
            text = (
                "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>" for m in seen.body["messages"])
                + "<think>\n"
            )
        tokens = [letter if letter not in " \n\t" else {" ": "Ġ", "\n": "Ċ", "\t": "ĉ"}[letter] for letter in text]
        data = text.encode()
        shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
        letters = {byte: chr(byte) for byte in shown}
        for byte in range(256):
            letters.setdefault(byte, chr(256 + len(letters) - len(shown)))
        tokens = [letters[byte] for byte in data]
        return http({"count": len(data), "max_model_len": 4096, "tokens": list(data), "token_strs": tokens})

    def handler(seen: Seen) -> Raw:
        if seen.path == "/tokenize":
            return tokenize(seen)
        if seen.path == "/detokenize":
            return http({"prompt": bytes(seen.body["tokens"]).decode("utf-8", "replace")})
        if seen.path.endswith("completions"):
            return http(
                answer("so the user asks", usage=USAGE)
                | {"choices": [{"message": {"content": "so the user"}, "finish_reason": "length"}]}
            )
        found = listing(
            {"id": "org/smol", "owned_by": "vllm", "max_model_len": 8192}, **{"/version": {"version": "0.32"}}
        )(seen)
        assert isinstance(found, Raw)
        return found

    async def work() -> None:
        async with talking(handler) as (model, _):
            endpoint = await model.connect()
            assert endpoint.proven
            assert endpoint.limit_tokens == 4096
            assert endpoint.facts["version"] == "0.32"
            assert endpoint.facts["engine"] == "vllm"
            assert (await ask(model)).reasoning == "so the user"  # its template begins a thought, which never ended
            kwargs = Sampling(max_tokens=5, options={"chat_template_kwargs": {"enable_thinking": False}})
            assert (await ask(model, sampling=kwargs)).text == "so the user"

    run(work())


def test_lists_of_models_come_in_several_shapes() -> None:
    assert [one.id for one in read_models({"models": [{"name": "a"}]}) or ()] == ["a"]
    assert [one.id for one in read_models([{"id": "a"}, 5, {"id": None}]) or ()] == ["a"]
    assert read_models({"data": "x"}) is None
    assert read_models("x") is None


# --- keys ------------------------------------------------------------------------------------------------------------


def test_a_key_is_itself_or_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert keys.api_key_of("sk-1", "http://h") == "sk-1"
    assert keys.api_key_of(None, "http://h") is None
    assert keys.api_key_of("  ", None) is None
    monkeypatch.setenv("MINE", " sk-2\n")
    assert keys.api_key_of("env:MINE", "http://h") == "sk-2"
    monkeypatch.setenv("NEEDLEPOINT_API_KEY", "env:MINE")
    assert keys.api_key_of(None, "http://h") == "sk-2"
    with pytest.raises(UsageError, match="Set NOWHERE"):
        keys.api_key_of("env:NOWHERE", "http://h")


def test_openai_s_key_goes_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    assert keys.api_key_of(None, "https://api.openai.com/v1") == "sk-openai"
    for other in ("https://api.openai.com.evil.example/v1", "http://localhost:8000", "http://[", None):
        assert keys.api_key_of(None, other) is None
    monkeypatch.setenv("NEEDLEPOINT_API_KEY", "sk-3")
    assert keys.api_key_of(None, "https://api.openai.com/v1") == "sk-3"


def test_a_key_from_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(UsageError, match="pip install keyring"):
        keys.api_key_of("keyring:work", "http://h")
    ring = types.ModuleType("keyring")
    ring.get_password = lambda service, name: {"work": "sk-4"}.get(name)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert keys.api_key_of("keyring:work", "http://h") == "sk-4"
    with pytest.raises(UsageError, match="keyring set needlepoint home"):
        keys.api_key_of("keyring:home", "http://h")


def test_header_lines_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys.headers_of(["X-Team: red", "Y:z:1"]) == {"X-Team": "red", "Y": "z:1"}
    with pytest.raises(UsageError, match="no colon") as caught:
        keys.headers_of(["secret"])
    assert "secret" not in str(caught.value)


def test_encodings_of_the_stand_in_are_real() -> None:
    assert len(Encoding(array("I", [1]), array("I", [1]))) == 1
