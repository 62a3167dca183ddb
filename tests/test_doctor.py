"""`needlepoint doctor` against stand-in servers: good ones, poor ones and none."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from needlepoint.commands.doctor import DoctorSettings, judge_counts, run_doctor
from needlepoint.connect import connect
from needlepoint.errors import UsageError

KEY = "sk-very-secret-123"
QWEN = connect("qwen3")
HANGS_UP = 0


class StandIn(ThreadingHTTPServer):
    """A server that counts as Qwen3 does. What it can't do is left out by the attributes."""

    daemon_threads = True
    model: str | None = "Qwen/Qwen3-0.6B"
    key: str | None = None
    more_tokens = 0
    cuts_at: int | None = None
    limit: int | None = 40960
    has_usage = True
    has_cache = True
    has_logprobs = True
    streams = True
    thinks = ""  # "", "can stop" or "always"
    lowest_limit = 1
    breaks: Callable[[dict[str, Any]], tuple[int, Any] | None] = staticmethod(lambda body: None)

    def handle_error(self, *_: Any) -> None:
        """Somebody hung up in the middle of an answer, as is their right."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.known: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, body: dict[str, Any]) -> tuple[int, Any]:
        if (broken := self.breaks(body)) is not None:
            return broken
        if body["max_tokens"] < self.lowest_limit:
            return 400, {"error": {"message": f"max_tokens must be at least {self.lowest_limit}"}}
        if body.get("stream") and not self.streams:
            return 400, {"error": {"message": "stream is not supported"}}
        assert QWEN.render is not None
        text = QWEN.render(body["messages"])
        n_prompt = QWEN.tokenizer.count(text, special=True) + self.more_tokens
        n_prompt = min(n_prompt, self.cuts_at or n_prompt)
        thinking = body.get("chat_template_kwargs", {}).get("enable_thinking", True) or self.thinks == "always"
        message = {"content": "42", **({"reasoning_content": "17 + 25"} if self.thinks and thinking else {})}
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        if body.get("logprobs") and self.has_logprobs:
            choice["logprobs"] = {"content": [{"token": "42", "logprob": -0.1}]}
        usage: dict[str, Any] = {"prompt_tokens": n_prompt, "completion_tokens": 1}
        if self.has_cache:
            usage["prompt_tokens_details"] = {"cached_tokens": n_prompt - 1 if text in self.known else 0}
        self.known.add(text)
        told = {"usage": usage} if self.has_usage else {}
        part = "delta" if body.get("stream") else "message"
        return 200, {"choices": [{**choice, part: message}], **told}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: StandIn

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        standing, value = self.server, None
        status = 404
        if standing.key and self.headers.get("Authorization") != f"Bearer {standing.key}":
            status, value = 401, {"error": {"message": f"bad key {self.headers.get('Authorization')}"}}
        elif self.path == "/v1/models" and standing.model:
            entry = {"id": standing.model, **({"max_model_len": standing.limit} if standing.limit else {})}
            status, value = 200, {"data": [entry]}
        elif self.path == "/v1/chat/completions":
            status, value = standing.answer(body)
        if status == HANGS_UP:
            self.close_connection = True
            return
        data = json.dumps(value).encode()
        kind = "application/json"
        if status == 200 and body.get("stream"):
            data, kind = b"data: " + data + b"\n\ndata: [DONE]\n\n", "text/event-stream"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("X-RateLimit-Limit-Requests", "60")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _answer  # noqa: N815


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as standing:
        thread = threading.Thread(target=standing.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield standing
        standing.shutdown()
        thread.join()


@pytest.fixture
def examine(server: StandIn, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """(exit code, the JSON; its checks by name)."""

    def run(**more: Any) -> tuple[int, dict[str, Any]]:
        code = run_doctor(DoctorSettings(**{"api_url": server.url, "as_json": True, **more}))
        told = capsys.readouterr()
        assert KEY not in told.out + told.err
        found: dict[str, Any] = json.loads(told.out)
        found["by_name"] = {check["name"]: check for check in found["checks"]}
        return code, found

    return run


Examine = Callable[..., tuple[int, dict[str, Any]]]


def statuses(found: dict[str, Any]) -> dict[str, str]:
    return {name: check["status"] for name, check in found["by_name"].items()}


def test_a_good_endpoint_passes_every_check(server: StandIn, examine: Examine) -> None:
    server.key = KEY
    code, found = examine(api_key=KEY)
    assert code == 0
    assert found["measurable"]
    assert found["model"] == "Qwen/Qwen3-0.6B"
    assert found["limit_tokens"] == 40960
    assert set(statuses(found).values()) == {"ok"}, found["checks"]
    assert list(found["by_name"]) == [
        "reachable",
        "model",
        "limit",
        "answers",
        "streaming",
        "tokenizer",
        "cached tokens",
        "logprobs",
        "reasoning",
        "rate headers",
    ]
    assert "agrees with the server at" in found["by_name"]["tokenizer"]["found"]
    assert found["by_name"]["tokenizer"]["found"].count(",") >= 2
    assert "ratelimit" in found["by_name"]["rate headers"]["found"]


def test_a_server_that_hangs_up_now_and_then_is_asked_again(server: StandIn, examine: Examine) -> None:
    asked: list[str] = []

    def every_other_time(body: dict[str, Any]) -> tuple[int, Any] | None:
        asked.append("")
        return (HANGS_UP, None) if len(asked) % 2 else None

    server.breaks = every_other_time  # type: ignore[method-assign, assignment]
    code, found = examine()
    assert code == 0 and len(asked) > 10
    assert set(statuses(found).values()) == {"ok"}


def test_a_poor_endpoint_can_still_be_measured_and_is_told_what_is_missing(server: StandIn, examine: Examine) -> None:
    server.limit, server.has_cache, server.has_logprobs, server.streams = None, False, False, False
    server.lowest_limit = 16
    code, found = examine(model="Qwen/Qwen3-0.6B")
    assert code == 0
    poor = {"limit", "streaming", "cached tokens", "logprobs"}
    assert {name for name, status in statuses(found).items() if status == "warn"} == poor
    assert all(found["by_name"][name]["advice"] for name in poor)
    assert "--enable-prompt-tokens-details" in found["by_name"]["cached tokens"]["advice"]


def test_a_server_without_usage_can_be_measured_but_not_proven(server: StandIn, examine: Examine) -> None:
    server.has_usage = False
    code, found = examine()
    assert code == 0
    assert "counts no prompt tokens" in found["by_name"]["tokenizer"]["found"]


def test_a_server_that_cuts_prompts_off_cannot_be_measured(server: StandIn, examine: Examine) -> None:
    server.cuts_at = 2048
    code, found = examine()
    assert code == 2
    assert found["by_name"]["tokenizer"]["status"] == "fail"
    assert "cut prompts off" in found["by_name"]["tokenizer"]["found"]


def test_another_tokenizer_than_the_server_s_is_seen(examine: Examine) -> None:
    code, found = examine(tokenizer="llama3")
    assert code == 0
    assert found["by_name"]["tokenizer"]["status"] == "warn"
    assert "--tokenizer" in found["by_name"]["tokenizer"]["advice"]


@pytest.mark.parametrize(
    ("thinks", "status", "says"), [("can stop", "ok", "can be told not to"), ("always", "warn", "does not stop")]
)
def test_reasoning_is_seen_and_whether_it_can_be_switched_off(
    server: StandIn, examine: Examine, thinks: str, status: str, says: str
) -> None:
    server.thinks = thinks
    _, found = examine()
    assert found["by_name"]["reasoning"]["status"] == status
    assert says in found["by_name"]["reasoning"]["found"]


def test_the_lengths_asked_stay_within_the_limit(server: StandIn, examine: Examine) -> None:
    server.limit = 600
    asked: list[int] = []
    server.breaks = lambda body: asked.append(len(json.dumps(body))) or None  # type: ignore[func-returns-value, assignment]
    code, _ = examine()
    assert code == 0
    assert max(asked) < 600 * 4


def test_a_prompt_that_is_too_long_for_an_unknown_limit_is_no_failure(server: StandIn, examine: Examine) -> None:
    server.limit = None
    too_long = 400, {"error": {"message": "This model's maximum context length is 2048 tokens."}}
    server.breaks = lambda body: too_long if len(json.dumps(body)) > 9000 else None
    code, found = examine()
    assert code == 0
    assert "--max-model-len" in found["by_name"]["tokenizer"]["advice"]


def test_a_wrong_key_nobody_there_and_no_model_end_the_visit(server: StandIn, examine: Examine) -> None:
    server.key = KEY
    code, found = examine(api_key="another")
    assert (code, statuses(found)) == (2, {"reachable": "fail"})
    server.key, server.model = None, None
    code, found = examine()
    assert (code, statuses(found)) == (2, {"reachable": "ok", "model": "fail"})
    assert "--model" in found["by_name"]["model"]["advice"]
    code, found = examine(api_url="http://127.0.0.1:9")
    assert (code, statuses(found)) == (2, {"reachable": "fail"})
    assert "Is the server running" in found["by_name"]["reachable"]["found"]


def test_a_model_that_answers_nothing_cannot_be_measured(server: StandIn, examine: Examine) -> None:
    server.breaks = lambda body: (404, {"error": {"message": f"The model `{body['model']}` does not exist."}})
    code, found = examine(model="Qwen/Qwen3-0.6")
    assert code == 2
    assert found["by_name"]["model"]["status"] == "warn"
    assert "--model Qwen/Qwen3-0.6B" in found["by_name"]["answers"]["found"]


def test_a_server_that_never_answers_is_not_waited_for(server: StandIn, examine: Examine) -> None:
    gate = threading.Event()
    server.breaks = lambda body: gate.wait(20) and None  # type: ignore[assignment, return-value]
    try:
        code, found = examine(patience_s=0.2)
    finally:
        gate.set()
    assert code == 2
    assert "no answer within" in found["by_name"]["answers"]["found"]


def test_the_table_goes_to_stdout_with_a_verdict(server: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    server.limit = None
    assert run_doctor(DoctorSettings(api_url=server.url)) == 0
    told = capsys.readouterr()
    assert "does not say how many tokens it takes" in told.out
    assert "Give --max-model-len." in told.out
    assert told.out.rstrip().endswith("This endpoint can be measured.")


def test_a_malformed_header_or_address_is_an_error_of_the_user() -> None:
    with pytest.raises(UsageError, match="no colon"):
        run_doctor(DoctorSettings(api_url="http://127.0.0.1:9", header=["nonsense"]))
    with pytest.raises(UsageError, match="must look like"):
        run_doctor(DoctorSettings(api_url="nonsense"))
    assert KEY not in repr(DoctorSettings(api_url="http://h", api_key=KEY, header=[f"X: {KEY}"]))


@pytest.mark.parametrize(
    ("pairs", "proven", "status", "says"),
    [
        ([(10, 10), (1000, 1000), (4000, 4000)], True, "ok", "agrees"),
        ([(10, 14), (1000, 1004), (4000, 4004)], False, "warn", "4 more"),
        ([(10, 8), (1000, 998), (4000, 3998)], False, "warn", "2 fewer"),
        ([(10, 14), (1000, 1004), (4000, 4004)], True, "fail", "is not the server's"),
        ([(10, 12), (1000, 1300), (4000, 5200)], False, "warn", "is not the server's"),
        ([(10, 10), (1000, 1000), (4000, 2048)], False, "fail", "cut prompts off"),
        ([(100, 60), (1000, 600), (4000, 2400)], False, "warn", "is not the server's"),
        ([(94, 83), (1105, 1038), (4520, 4096)], False, "warn", "is not the server's"),
        ([(94, 83), (1105, 1038), (4520, 2048)], False, "fail", "cut prompts off"),
        ([(10, 14), (1000, 512), (4000, 512)], False, "fail", "cut prompts off"),
    ],
)
def test_counts_are_judged_by_how_they_differ(
    pairs: list[tuple[int, int]], proven: bool, status: str, says: str
) -> None:
    check = judge_counts("qwen3", pairs, proven=proven)
    assert check.status == status
    assert says in check.found
