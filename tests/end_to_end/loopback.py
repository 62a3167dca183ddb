"""A loopback OpenAI-compatible server for the end-to-end tests: it reads the prompt and answers with the needle."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], str | tuple[int, dict[str, Any]]]
_NEEDLE = re.compile(r"The best thing to do in San Francisco is[^.\n]*\.")


def finds_the_needle(body: dict[str, Any]) -> str:
    text = body["messages"][-1]["content"]
    found = _NEEDLE.search(text)
    return found[0] if found else "The text does not say."


@dataclass
class Server:
    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answer: Answer = finds_the_needle
    models: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "m", "object": "model"}])
    cached: Callable[[dict[str, Any]], int] | None = None
    count: Callable[[dict[str, Any]], int] = lambda body: sum(len(m["content"]) for m in body["messages"]) // 4


@contextmanager
def serving(answer: Answer = finds_the_needle, **more: Any) -> Iterator[Server]:
    """`with serving() as server:` then `server.url`, `server.requests`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            if self.path == "/v1/models":
                self._send(200, json.dumps({"object": "list", "data": server.models}).encode())
            else:
                self._send(404, b'{"error": {"message": "not found"}}')

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path != "/v1/chat/completions":
                self._send(404, b'{"error": {"message": "not found"}}')
                return
            body = json.loads(raw)
            server.requests.append(body)
            server.headers.append(dict(self.headers))
            found = server.answer(body)
            if isinstance(found, tuple):
                self._send(found[0], json.dumps(found[1]).encode())
                return
            usage: dict[str, Any] = {"prompt_tokens": server.count(body), "completion_tokens": 20}
            if server.cached is not None:
                usage["prompt_tokens_details"] = {"cached_tokens": server.cached(body)}
            head = {"id": "c", "model": body["model"], "created": 1}
            if not body.get("stream"):
                choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": found}}
                self._send(200, json.dumps({**head, "choices": [choice], "usage": usage}).encode())
                return
            events = [
                {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": found}}]},
                {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                {**head, "choices": [], "usage": usage},
            ]
            text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
            self._send(200, text.encode(), "text/event-stream")

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    server = Server(url=f"http://127.0.0.1:{httpd.server_port}/v1", answer=answer, **more)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()
