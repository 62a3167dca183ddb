"""Rows as JSON and back: nothing is lost, and nothing wrong gets in."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.ask.records import digest, dump, from_json, load, to_json
from needlepoint.types import Failure, Reply, Score, Times, Trial

from .rows import REPLY, TRIAL, replies, scores, trials


@given(trials | replies | scores)
def test_a_row_comes_back_from_its_line_as_it_was(row: Trial | Reply | Score) -> None:
    line = dump(to_json(row))
    assert b"\n" not in line
    assert from_json(type(row), load(line)) == row


@given(replies)
def test_a_reply_keeps_its_digest_through_a_line(reply: Reply) -> None:
    assert digest(to_json(from_json(Reply, load(dump(to_json(reply)))))) == digest(to_json(reply))


@given(replies, replies)
def test_different_replies_have_different_digests(one: Reply, other: Reply) -> None:
    assert (digest(to_json(one)) == digest(to_json(other))) == (one == other)


def test_what_is_none_is_left_out_and_comes_back_as_none() -> None:
    row = to_json(Reply(text="x"))
    assert row == {"text": "x", "usage": {}, "times": {}, "attempts": 1}
    assert from_json(Reply, row) == Reply(text="x")


def test_fields_of_a_newer_version_are_ignored() -> None:
    row = {**to_json(TRIAL), "colour": "red", "needles": [{"text": "n", "weight": 2}]}
    assert from_json(Trial, row).needles[0].text == "n"


def test_a_whole_number_will_do_where_a_number_is_meant() -> None:
    depth = from_json(Trial, {**to_json(TRIAL), "depth_percent": 50}).depth_percent
    assert depth == 50.0 and type(depth) is float


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("text", 5, "reply.text is 5, not a text"),
        ("text", None, "reply.text is null, not a text"),
        ("attempts", True, "reply.attempts is true, not a whole number"),
        ("attempts", 1.0, "reply.attempts is 1.0, not a whole number"),
        ("attempts", "1", 'reply.attempts is "1", not a whole number'),
        ("usage", [], "reply.usage is list, not an object"),
        ("usage", {"prompt": "12"}, 'reply.usage.prompt is "12", not a whole number'),
        ("times", {"total": math.inf}, "reply.times.total is Infinity, not a number"),
        ("times", {"total": 10**400}, "reply.times.total is 1000"),
        ("times", {"total": True}, "reply.times.total is true, not a number"),
        ("logprobs", "abc", 'reply.logprobs is "abc", not a list'),
        ("logprobs", [-1.0, None], r"reply.logprobs\[1\] is null, not a number"),
        ("error", {"kind": "magic", "message": "m"}, 'reply.error.kind is "magic", not one of overflow'),
        ("error", {"kind": "server"}, "reply.error.message is missing"),
        ("finish", "x" * 10**6 and ["x"], "reply.finish is list, not a text"),
    ],
)
def test_a_wrong_type_is_named_with_its_field(field: str, value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        from_json(Reply, {**to_json(REPLY), field: value})


def test_a_missing_field_that_must_be_there_is_named() -> None:
    row = to_json(TRIAL)
    del row["subset"]
    with pytest.raises(ValueError, match=r"trial\.subset is missing"):
        from_json(Trial, row)


@pytest.mark.parametrize("span", [[1], [1, 2, 3], "12", [1.5, 2]])
def test_a_span_is_two_whole_numbers(span: Any) -> None:
    with pytest.raises(ValueError, match=r"score\.span"):
        from_json(Score, {"outcome": "wrong", "reason": "", "scorer": "s", "span": span})


@pytest.mark.parametrize("value", [None, [], "reply", 3, True])
def test_what_is_no_object_is_no_row(value: Any) -> None:
    with pytest.raises(ValueError, match="not an object"):
        from_json(Reply, value)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"NaN", b'{"a":Infinity}', b"\xff\xfe", b"[" * 200_000, b"1" * 9_000, b'{"a":1}x']
)
def test_what_is_no_json_is_an_error_and_never_a_crash(data: bytes) -> None:
    with pytest.raises(ValueError):
        load(data)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        from_json(Reply, load(data))


def test_measurements_that_are_no_numbers_are_left_out_so_that_the_reply_is_kept() -> None:
    broken = Reply(
        text="4711",
        logprobs=(-0.1, -math.inf),
        times=Times(queued=1.0, total=math.nan),
        error=Failure(kind="rate_limit", message="m", retry_after_s=math.inf),
    )
    kept = from_json(Reply, load(dump(to_json(broken))))
    assert kept.text == "4711" and kept.logprobs is None
    assert kept.times == Times(queued=1.0)
    assert kept.error == Failure(kind="rate_limit", message="m")


def test_a_score_that_is_no_number_is_an_error() -> None:
    with pytest.raises(ValueError):
        to_json(Score(outcome="wrong", score=math.nan, reason="", span=None, scorer="s"))


def test_texts_stay_readable_and_halves_of_surrogate_pairs_survive() -> None:
    assert "三明治" in dump({"a": "三明治"}).decode()
    assert load(dump({"a": "三\ud800"})) == {"a": "三\ud800"}
    assert json.loads(dump({"a": 1}, indent=2)) == {"a": 1}
