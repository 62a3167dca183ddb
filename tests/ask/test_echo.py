"""Log-probabilities of given texts from servers: both manners, texts in pieces, and servers that don't tell."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

import needlepoint
from needlepoint.ask.models.openai import OpenAIModel
from needlepoint.connect import connect
from needlepoint.errors import UsageError
from needlepoint.types import TellsLogprobs

from ..conftest import english_prose

ANSWER = "It is not said."


def logprob_of(token: str, before: str) -> float:
    return -1 - zlib.crc32(f"{before[-40:]}|{token}".encode()) % 1000 / 250


def pieces_of(text: str) -> list[str]:
    return re.findall(r"\s?[^\s]{1,3}|\s", text)


class Handler(BaseHTTPRequestHandler):
    manner = "echo"
    asked: ClassVar[list[dict[str, Any]]] = []

    def log_message(self, *arguments: object) -> None: ...

    def do_GET(self) -> None:
        self._say({"object": "list", "data": [{"id": "m", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/chat/completions":
            message = {"role": "assistant", "content": ANSWER}
            self._say({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        elif self.path != "/v1/completions":
            self._say({"error": {"message": "not found"}}, 404)
        else:
            type(self).asked.append(body)
            self._say(self._completion(body))

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        pieces = pieces_of(body["prompt"])
        told = [logprob_of(one, "".join(pieces[:at])) if at else None for at, one in enumerate(pieces)]
        choice: dict[str, Any] = {"index": 0, "text": " so", "finish_reason": "length"}
        if self.manner in ("echo", "split") and body.get("echo"):
            shown = ["\ufffd" * len(one) if self.manner == "split" else one for one in pieces]
            choice["logprobs"] = {"tokens": [*shown, " so"], "token_logprobs": [*told, -0.1]}
        if self.manner == "vllm" and "prompt_logprobs" in body:
            choice["prompt_logprobs"] = [
                None if value is None else {str(at): {"logprob": value, "rank": 1, "decoded_token": one}}
                for at, (one, value) in enumerate(zip(pieces, told, strict=True))
            ]
        return {"choices": [choice], "usage": {"prompt_tokens": len(pieces), "completion_tokens": 1}}

    def _say(self, value: Any, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server() -> Iterator[tuple[str, type[Handler]]]:
    handler = type("Own", (Handler,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{found.server_address[1]}/v1", handler
        found.shutdown()
        thread.join()


class Ask:
    n_tokens, sha256, max_tokens = 7, "0" * 64, None

    def messages(self) -> list[Any]:
        return [{"role": "user", "content": "Which number?"}]

    def text(self) -> str:
        return "user: Which number?\nassistant:"

    def token_ids(self) -> Any:
        raise NotImplementedError


async def told_by(url: str, texts: list[str], lead: str) -> tuple[frozenset[str], list[Any]]:
    model = OpenAIModel("m", api_url=url, local=lambda: connect("Qwen/Qwen3-0.6B"), logprobs=True)
    try:
        endpoint = await model.connect()
        assert isinstance(model, TellsLogprobs)
        return endpoint.capabilities, await model.logprob(Ask(), texts, lead=lead)  # type: ignore[arg-type]
    finally:
        await model.close()


@pytest.mark.parametrize("manner", ["echo", "vllm"])
def test_the_tokens_of_a_value_are_told_and_no_others(server: tuple[str, type[Handler]], manner: str) -> None:
    url, handler = server
    handler.manner = manner
    capabilities, found = asyncio.run(told_by(url, [" 4821937", " amber kite"], "The number is"))
    assert "logprob" in capabilities
    for value, values in zip((" 4821937", " amber kite"), found, strict=True):
        before, wanted = "user: Which number?\nassistant:The number is", []
        for piece in pieces_of(value):
            wanted.append(logprob_of(piece, before))
            before += piece
        assert values == pytest.approx(wanted)
    assert all(body["max_tokens"] == 1 for body in handler.asked)


def test_characters_in_several_tokens_are_told_by_their_number(server: tuple[str, type[Handler]]) -> None:
    url, handler = server
    handler.manner = "echo"

    async def run() -> Any:
        model = OpenAIModel("m", api_url=url, local=lambda: connect("Qwen/Qwen3-0.6B"), logprobs=True)
        await model.connect()
        handler.manner = "split"
        found = await model.logprob(Ask(), ["琥珀风筝", "ascii"])  # type: ignore[arg-type]
        await model.close()
        return found

    chinese, ascii_ = asyncio.run(run())
    assert len(chinese) == connect("Qwen/Qwen3-0.6B").tokenizer.count("琥珀风筝")
    assert ascii_ is None


def test_a_server_that_does_not_tell_has_not_the_capability(server: tuple[str, type[Handler]]) -> None:
    url, handler = server
    handler.manner = "none"
    with pytest.raises(UsageError, match="tells no log-probabilities"):
        asyncio.run(told_by(url, ["x"], ""))


def test_a_whole_run_has_a_margin_for_each_trial(server: tuple[str, type[Handler]], tmp_path: Any) -> None:
    url, handler = server
    text = tmp_path / "text.txt"
    text.write_text(english_prose(200))
    settings: dict[str, Any] = {
        "model": "m",
        "api_url": url,
        "tokenizer": "Qwen/Qwen3-0.6B",
        "lengths": "500",
        "depths": "0,100",
        "corpus": [str(text)],
        "needle_set": "number",
        "metric": "logprob",
        "work_dir": str(tmp_path),
        "report": "none",
    }
    result = needlepoint.run_task(settings)
    margins = [reply.margin for _, reply, _ in result.trials()]
    assert all(margin is not None and margin.tokens == 3 for margin in margins)
    assert result.report["margin"]["overall"]["n"] == 2
    handler.manner = "none"
    with pytest.raises(UsageError, match="--metric logprob needs log-probabilities of given texts"):
        needlepoint.run_task(settings)
