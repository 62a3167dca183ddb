"""An OpenAI-compatible server on the loopback that fails as servers do, by seed, and keeps a log of what it did.

    python tests/ask/chaos_server.py --seed 7 --faults 0.3        prints its URL, serves until its stdin closes

Which attempt at which prompt fails, and how, depends on nothing but the seed, the prompt and the number of the attempt:
no prompt fails more than `MOST_FAULTS` times, whatever the order of requests. Its answers depend on the prompt alone.
`GET /chaos/log` tells, for each prompt (sha256 of its messages), how each request ended, and the most in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import socket
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

FAULTS = (
    "429 with Retry-After",
    "429",
    "500",
    "502 page",
    "503",
    "reset",
    "hang",
    "cut body",
    "invalid JSON",
    "HTML page",
    "empty choices",
    "wrong types",
    "100 MB",
)
MOST_FAULTS = 3
_PAGE = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
_JUNK = b" " * (1 << 20)
_FACT = re.compile(r"[^.。\n]*best thing to do in San Francisco is[^.。\n]*\.")


def fault_of(seed: int, key: str, attempt: int, share: float) -> str | None:
    """How attempt number `attempt` (from 0) at the prompt `key` goes wrong, if it does."""
    rng = Random(f"{seed}:{key}:{attempt}")
    return rng.choice(FAULTS) if attempt < MOST_FAULTS and rng.random() < share else None


def answer_of(prompt: str) -> str:
    """The seed's needle where the prompt holds it; anyhow something that no other prompt is answered."""
    fact = _FACT.search(prompt)
    return (
        fact.group().strip() if fact else "I don't know."
    ) + f" [{hashlib.sha256(prompt.encode()).hexdigest()[:12]}]"


class Chaos:
    """One server. `limit_tokens` (words, here) makes it refuse longer prompts, as vLLM words it."""

    def __init__(self, *, seed: int = 0, share: float = 0.3, latency_s: float = 0.0, limit_tokens: int | None = None):
        self.seed = seed
        self.share = share
        self.latency_s = latency_s
        self.limit_tokens = limit_tokens
        self.log: dict[str, list[str]] = {}
        self.in_flight = self.most_in_flight = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, path, _ = head.split(" ", 2)
                found = re.search(r"content-length: *(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(found.group(1)) if found else 0)
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
                try:
                    await self.answer(method, path, body, writer)
                    await writer.drain()
                finally:
                    self.in_flight -= 1
                if writer.is_closing():
                    break
        writer.close()

    async def answer(self, method: str, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if method == "GET":
            values = {
                "/v1/models": {"object": "list", "data": [{"id": "chaos", "object": "model"}]},
                "/chaos/log": {"log": self.log, "most_in_flight": self.most_in_flight},
            }
            send(writer, 200 if path in values else 404, values.get(path, {"error": {"message": "Not Found"}}))
            return
        if not path.endswith("/chat/completions"):
            send(writer, 404, {"error": {"message": "Not Found"}})
            return
        asked = json.loads(body)
        prompt = "\n".join(message["content"] for message in asked["messages"])
        key = hashlib.sha256(prompt.encode()).hexdigest()
        ends = self.log.setdefault(key, [])
        fault = fault_of(self.seed, key, len(ends), self.share)
        n_tokens = len(prompt.split())
        too_long = self.limit_tokens is not None and n_tokens + asked.get("max_tokens", 0) > self.limit_tokens
        ends.append("overflow" if too_long else fault or "answer")
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        if too_long:
            message = (
                f"This model's maximum context length is {self.limit_tokens} tokens. However, you requested "
                f"{n_tokens} tokens in the messages. Please reduce the length of the messages."
            )
            send(writer, 400, {"object": "error", "message": message, "type": "BadRequestError", "code": 400})
        elif fault is not None:
            await self.fail(fault, asked, writer)
        else:
            usage = {"prompt_tokens": n_tokens, "completion_tokens": 12, "total_tokens": n_tokens + 12}
            deliver(writer, answer_of(prompt), usage, stream=bool(asked.get("stream")))

    async def fail(self, fault: str, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        stream = bool(asked.get("stream"))
        match fault:
            case "429 with Retry-After":
                send(writer, 429, {"error": {"message": "Rate limit reached."}}, "Retry-After: 0.05\r\n")
            case "429":
                send(writer, 429, {"error": {"message": "Rate limit reached."}})
            case "500":
                send(writer, 500, {"error": {"message": "Internal server error."}})
            case "502 page":
                send(writer, 502, _PAGE)
            case "503":
                send(writer, 503, {"error": {"message": "The model is overloaded."}})
            case "reset":
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            case "hang":
                await asyncio.sleep(3_600)
            case "cut body":
                whole = completion("This answer is cut", {}) if not stream else event("This answer is cut")
                writer.write(headers(200, stream=stream) + f"Content-Length: {len(whole) + 500}\r\n\r\n".encode())
                writer.write(whole[: len(whole) - (0 if stream else 20)])
                await writer.drain()
                writer.close()
            case "invalid JSON":
                send(writer, 200, b'{"choices": [{"message": {"content": "He said "hello""}}]', stream=False)
            case "HTML page":
                send(writer, 200, _PAGE)
            case "empty choices":
                if stream:
                    send(writer, 200, b'data: {"choices": []}\n\ndata: [DONE]\n\n', stream=True)
                else:
                    send(writer, 200, {"choices": []})
            case "wrong types":
                broken = {"choices": [{"index": 0, "message": {"content": {"text": 3}}, "delta": {"content": 7}}]}
                if stream:
                    send(writer, 200, b"data: " + json.dumps(broken).encode() + b"\n\ndata: [DONE]\n\n", stream=True)
                else:
                    send(writer, 200, broken)
            case "100 MB":
                writer.write(headers(200, stream=stream) + f"Content-Length: {100 * len(_JUNK)}\r\n\r\n".encode())
                for _ in range(100):
                    writer.write(_JUNK)
                    await writer.drain()


def headers(status: int, *, stream: bool = False, kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Type: {'text/event-stream' if stream else kind}\r\n".encode()


def send(
    writer: asyncio.StreamWriter, status: int, body: bytes | dict[str, Any], more: str = "", *, stream: bool = False
) -> None:
    kind = "text/html" if isinstance(body, bytes) and body.startswith(b"<") else "application/json"
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    writer.write(
        headers(status, stream=stream, kind=kind) + f"{more}Content-Length: {len(data)}\r\n\r\n".encode() + data
    )


def completion(text: str, usage: dict[str, int]) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


def event(text: str | None, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"


def deliver(writer: asyncio.StreamWriter, text: str, usage: dict[str, int], *, stream: bool) -> None:
    if not stream:
        send(writer, 200, completion(text, usage))
        return
    last = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n"
    half = len(text) // 2
    send(writer, 200, event(text[:half]) + event(text[half:]) + event(None, "stop") + last, stream=True)


# --- serving ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Served:
    """A chaos server in a process of its own."""

    url: str

    def log(self) -> dict[str, list[str]]:
        """Prompt → how each request for it ended, in order."""
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/chaos/log") as answer:
            log: dict[str, list[str]] = json.load(answer)["log"]
            return log


@contextmanager
def chaos(
    *, seed: int = 0, share: float = 0.3, latency_s: float = 0.0, limit_tokens: int | None = None
) -> Iterator[Served]:
    """Run one, and end it."""
    command = [sys.executable, str(Path(__file__)), f"--seed={seed}", f"--faults={share}", f"--latency={latency_s}"]
    command += [] if limit_tokens is None else [f"--limit-tokens={limit_tokens}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield Served(process.stdout.readline().strip())
        finally:
            process.stdin.close()
            process.terminate()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=float, default=0.3, metavar="SHARE")
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--limit-tokens", type=int, default=None, metavar="WORDS")
    given = parser.parse_args()
    served = Chaos(seed=given.seed, share=given.faults, latency_s=given.latency, limit_tokens=given.limit_tokens)
    server = await asyncio.start_server(served.serve, "127.0.0.1", given.port, limit=1 << 27)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
