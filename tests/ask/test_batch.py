"""Results of provider batch files: matched by id, errors as data, strays reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from needlepoint.ask.batch import read_answer, read_batch_results
from needlepoint.errors import InputError
from needlepoint.types import Reply


def a_body(text: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5},
    }


def a_result(name: str, **changes: Any) -> dict[str, Any]:
    response = {"status_code": 200, "request_id": "r", "body": a_body(f"answer {name}")}
    return {"id": "batch_req_1", "custom_id": name, "response": response, "error": None, **changes}


def a_file(folder: Path, *results: Any) -> Path:
    path = folder / "results.jsonl"
    path.write_text("".join(json.dumps(result) + "\n" for result in results))
    return path


def test_results_come_with_the_ids_of_their_prompts_in_any_order(tmp_path: Path) -> None:
    found = read_batch_results(a_file(tmp_path, a_result("b"), a_result("a")), ["a", "b"])
    replies = dict(found)
    assert list(replies) == ["b", "a"]
    assert replies["a"].text == "answer a" and replies["a"].usage.prompt == 100
    assert replies["a"].finish == "stop" and replies["a"].error is None
    assert found.notes() == []


def test_strays_are_left_out_and_reported(tmp_path: Path) -> None:
    path = a_file(tmp_path, a_result("a"), a_result("x"), a_result("a"))
    found = read_batch_results(path, ["a", "b", "c", "d", "e"])
    assert [name for name, _ in found] == ["a", "a"]
    assert (found.missing, found.unknown, found.repeated) == (["b", "c", "d", "e"], ["x"], ["a"])
    missing, unknown, repeated = found.notes()
    assert "4 have no result (b, c, d, …). They count as not asked yet." in missing
    assert "1 are of other prompts (x)" in unknown and "1 came more than once (a)" in repeated
    assert len(list(found)) == 2 and found.unknown == ["x"], "a second reading counts anew"


OVERFLOW = {
    "error": {
        "message": "This model's maximum context length is 8192 tokens, your messages resulted in 9000 tokens.",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    }
}


@pytest.mark.parametrize(
    ("changes", "kind", "status"),
    [
        ({"response": {"status_code": 400, "body": OVERFLOW}}, "overflow", 400),
        (
            {"response": {"status_code": 400, "body": {"error": {"message": "bad", "type": "invalid"}}}},
            "bad_request",
            400,
        ),
        ({"response": {"status_code": 429, "body": None}}, "rate_limit", 429),
        ({"response": {"status_code": 500, "body": "oops"}}, "server", 500),
        ({"response": {"status_code": 401, "body": {}}}, "auth", 401),
        ({"response": None, "error": {"code": "batch_expired", "message": "ran out"}}, "timeout", None),
        ({"response": None, "error": {"code": "batch_cancelled", "message": "ended"}}, "stopped", None),
        ({"response": None, "error": {"code": "server_error", "message": "oops"}}, "server", 200),
        ({"response": {"status_code": 200, "body": "text"}}, "bad_answer", None),
        ({"response": {"status_code": 200, "body": {"choices": []}}}, "bad_answer", None),
        ({"response": {"body": {"error": {"message": "oops", "type": "server_error"}}}}, "server", 200),
    ],
)
def test_an_error_is_a_reply_that_says_what_kind(
    tmp_path: Path, changes: dict[str, Any], kind: str, status: int | None
) -> None:
    ((name, reply),) = read_batch_results(a_file(tmp_path, a_result("a", **changes)), ["a"])
    assert name == "a" and reply.error is not None
    assert (reply.error.kind, reply.error.status) == (kind, status)
    assert reply.error.message and "\n" not in reply.error.message


def test_bodies_can_be_read_by_another_reader(tmp_path: Path) -> None:
    found = read_batch_results(a_file(tmp_path, a_result("a")), ["a"], parse=lambda body: Reply(text="own"))
    assert [reply.text for _, reply in found] == ["own"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "is no JSON"),
        ("[]", "is no JSON object"),
        ("{}", "has no custom_id"),
        ('{"custom_id":5}', "has no custom_id"),
        ('{"custom_id":"a"}', "neither a response nor an error"),
        ('{"custom_id":"a","response":[]}', "neither a response nor an error"),
        ('{"custom_id":"a","response":{"status_code":"200","body":{}}}', "status_code that is no whole number"),
    ],
)
def test_a_wrong_line_is_named_with_its_number(tmp_path: Path, line: str, says: str) -> None:
    path = a_file(tmp_path, a_result("a"))
    path.write_text(path.read_text() + "\n" + line)
    with pytest.raises(InputError, match=rf"results\.jsonl, line 3: .*{says}"):
        list(read_batch_results(path, ["a"]))


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot read .*gone"):
        list(read_batch_results(tmp_path / "gone", []))


def test_a_thought_is_told_from_the_answer() -> None:
    reply = read_answer(a_body("<think>hm</think>4711"))
    assert (reply.text, reply.reasoning) == ("4711", "hm")
