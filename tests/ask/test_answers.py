"""JSON and event streams → replies: usage, reasoning, finish, and everything that is wrong with answers."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.ask.models.answers import Draft, EventStream, Unpacker, read_whole, split_reasoning, usage_of
from needlepoint.ask.models.refusals import RefusedError
from needlepoint.types import Reply, Times, Usage


def whole(message: Any, **more: Any) -> Reply:
    draft = Draft()
    draft.add({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **more}, whole=True)
    return draft.reply(Times())


def streamed(data: bytes, sizes: int = 7) -> list[Any]:
    stream, found = EventStream(), []
    for at in range(0, len(data), sizes):
        found += [value for _, value in stream.feed(data[at : at + sizes])]
    return found + [value for _, value in stream.end()]


# --- events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [1, 2, 3, 5, 8, 1000])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_events_are_put_together_from_pieces_of_any_size(sizes: int, line_end: str) -> None:
    lines = [
        ": a comment",
        'data: {"a": "北京🙂"}',
        "",
        'data:{"b": 1}',
        "",
        "id: 7",
        "retry: 5",
        'data: {"c":',
        "data: 2}",
        "",
    ]
    assert streamed(line_end.join([*lines, ""]).encode(), sizes) == [{"a": "北京🙂"}, {"b": 1}, {"c": 2}]


def test_events_without_blank_lines_and_without_an_end_are_read() -> None:
    assert streamed(b'data: {"a":1}\ndata: {"b":2}\ndata: {"c":3}') == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert streamed(b'{"error": {"message": "x"}}\n') == [{"error": {"message": "x"}}]


def test_nothing_after_the_end_of_a_stream_counts() -> None:
    stream = EventStream()
    assert [value for _, value in stream.feed(b'data: {"a":1}\n\ndata: [DONE]\n\ndata: {"b":2}\n\n')] == [{"a": 1}]
    assert stream.done


def test_an_event_s_name_is_told() -> None:
    assert list(EventStream().feed(b'event: error\ndata: {"m":1}\n\ndata: {"n":1}\n\n')) == [
        ("error", {"m": 1}),
        ("", {"n": 1}),
    ]


@pytest.mark.parametrize("data", [b"data: {bad}\n\n", b"data: {\ndata: }}\n\n", b'data: {"a', b"data: x\n" * 100])
def test_a_stream_of_invalid_json_is_a_bad_answer(data: bytes) -> None:
    with pytest.raises(RefusedError) as error:
        streamed(data)
    assert error.value.failure.kind == "bad_answer"


@given(st.lists(st.text(), min_size=1), st.integers(1, 40))
def test_any_text_survives_a_stream(texts: list[str], sizes: int) -> None:
    texts = [text.encode("utf-16", "replace").decode("utf-16", "replace") for text in texts]
    data = "".join(f"data: {json.dumps({'t': text}, ensure_ascii=False)}\n\n" for text in texts).encode()
    assert [value["t"] for value in streamed(data, sizes)] == texts


# --- packed bodies ---------------------------------------------------------------------------------------------------


def unpacked(encoding: str, data: bytes, room: int) -> bytes:
    unpacker = Unpacker(encoding, room)
    return b"".join(piece for at in range(0, len(data), 50) for piece in unpacker.unpack(data[at : at + 50]))


def test_packed_answers_are_unpacked() -> None:
    text = b"needle " * 500
    assert unpacked("gzip", gzip.compress(text), 1 << 20) == text
    assert unpacked("deflate", zlib.compress(text), 1 << 20) == text
    assert unpacked("identity", text, 1 << 20) == text


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(b"\0" * 50_000_000)),
        ("", b"x" * 2_000_000),
        ("br", b"x"),
        ("gzip", b"not packed at all"),
    ],
)
def test_what_is_too_large_or_not_as_it_says_is_a_bad_answer(encoding: str, data: bytes) -> None:
    with pytest.raises(RefusedError) as error:
        unpacked(encoding, data, 1 << 20)
    assert error.value.failure.kind == "bad_answer"


# --- answers ---------------------------------------------------------------------------------------------------------


def test_a_whole_answer_becomes_a_reply() -> None:
    reply = whole({"role": "assistant", "content": "Dolores Park"}, usage={"prompt_tokens": 9, "completion_tokens": 2})
    assert (reply.text, reply.finish, reply.reasoning, reply.error) == ("Dolores Park", "stop", None, None)
    assert reply.usage == Usage(prompt=9, completion=2)
    assert reply.attempts == 1


def test_no_words_at_all_are_a_reply_too() -> None:
    assert whole({"content": None}).text == ""
    assert whole({}).text == ""
    assert whole({"content": []}).text == ""


def test_only_the_first_choice_counts() -> None:
    draft = Draft()
    draft.add({"choices": [{"index": 1, "message": {"content": "b"}}, {"index": 0, "message": {"content": "a"}}]})
    assert draft.reply(Times()).text == "a"


def test_a_refusal_in_its_own_field_is_the_answer() -> None:
    assert whole({"content": None, "refusal": "I can't help."}).text == "I can't help."


def test_halves_of_a_character_from_two_events_are_one_again() -> None:
    draft = Draft()
    for half in ("\ud83d", "\ude42", "\ud83d"):
        draft.add({"choices": [{"delta": {"content": half}}]})
    assert draft.reply(Times()).text == "🙂\ufffd"


BAD = [
    None,
    5,
    "text",
    [],
    {},
    {"choices": None},
    {"choices": []},
    {"choices": {}},
    {"choices": "x"},
    {"choices": [None]},
    {"choices": [5]},
    {"choices": [{}]},
    {"choices": [{"message": "text"}]},
    {"choices": [{"message": {"content": 5}}]},
    {"choices": [{"message": {"content": {"a": 1}}}]},
    {"choices": [{"text": 5}]},
]


@pytest.mark.parametrize("value", BAD, ids=map(str, BAD))
def test_answers_of_wrong_shape_are_bad_answers(value: Any) -> None:
    draft = Draft()
    with pytest.raises(RefusedError) as error:
        assert draft.add(value, whole=True) is None
        draft.reply(Times())
    assert error.value.failure.kind == "bad_answer"


@pytest.mark.parametrize("body", [b"", b" ", b"{", b"<html>", b"[" * 100_000, b"9" * 10_000, b"\xff", b'{"a":1} x'])
def test_bodies_that_are_no_json_are_bad_answers(body: bytes) -> None:
    with pytest.raises(RefusedError) as error:
        read_whole(body)
    assert error.value.failure.kind == "bad_answer"


@pytest.mark.parametrize("where", [{"error": {"message": "x"}}, {"error": "x"}, [{"error": {"message": "x"}}]])
def test_an_error_where_an_answer_belongs_is_found(where: Any) -> None:
    refusal = Draft().add(where, whole=True)
    assert refusal is not None
    assert refusal.words == "x"


def test_strange_fields_do_no_harm() -> None:
    reply = whole(
        {"content": "ok", "reasoning": 5, "reasoning_content": [], "refusal": {}},
        usage={"prompt_tokens": "9", "completion_tokens": -1, "prompt_tokens_details": [], "total_tokens": None},
        timings=[],
    )
    assert (reply.text, reply.reasoning, reply.usage) == ("ok", None, Usage())
    assert whole({"content": "ok"}, usage=[1]).usage == Usage()


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("eos_token", "stop"),
        ("end_turn", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        (None, None),
        (5, None),
    ],
)
def test_finish_reasons_are_brought_to_one_spelling(said: Any, finish: str | None) -> None:
    draft = Draft()
    draft.add({"choices": [{"message": {"content": "x"}, "finish_reason": said}]}, whole=True)
    assert draft.reply(Times()).finish == finish


@pytest.mark.parametrize("finish", ["error", "abort", "insufficient_system_resource"])
def test_an_answer_that_the_server_gave_up_is_a_failure(finish: str) -> None:
    draft = Draft()
    draft.add({"choices": [{"message": {"content": "The best thi"}, "finish_reason": finish}]}, whole=True)
    with pytest.raises(RefusedError) as error:
        draft.reply(Times())
    assert error.value.failure.kind == "server"


def test_logprobs_of_chats_and_of_completions_are_read() -> None:
    draft = Draft()
    for values in ([-0.1], [-0.2, -1]):
        content = [{"token": "x", "logprob": value} for value in values]
        draft.add({"choices": [{"delta": {"content": "x"}, "logprobs": {"content": content}}]})
    assert draft.reply(Times()).logprobs == (-0.1, -0.2, -1.0)
    draft = Draft()
    draft.add({"choices": [{"text": "x", "logprobs": {"token_logprobs": [None, -0.5, float("-inf"), True]}}]})
    assert draft.reply(Times()).logprobs == (-0.5, -9999.0)


# --- usage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "usage", "timings", "expected", "prefilled"),
    [
        ("nothing", {}, {}, Usage(), None),
        (
            "openai",
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 15},
            },
            {},
            Usage(prompt=100, completion=20, reasoning=15, cached=64),
            36,
        ),
        (
            "vllm 0.32",
            {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 0, "created_cache_tokens": 96}},
            {},
            Usage(prompt=100, cached=0, cache_written=96),
            100,
        ),
        ("vllm without details", {"prompt_tokens": 100, "prompt_tokens_details": None}, {}, Usage(prompt=100), None),
        ("sglang", {"prompt_tokens": 9, "reasoning_tokens": 3}, {}, Usage(prompt=9, reasoning=3), None),
        (
            "deepseek",
            {"prompt_tokens": 100, "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40},
            {},
            Usage(prompt=100, cached=60),
            40,
        ),
        (
            "deepseek, parts",
            {"prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 4},
            {},
            Usage(prompt=10, cached=6),
            4,
        ),
        ("moonshot", {"prompt_tokens": 100, "cached_tokens": 60}, {}, Usage(prompt=100, cached=60), 40),
        (
            "anthropic",
            {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 10},
            {},
            Usage(prompt=100, completion=5, cached=80, cache_written=10),
            20,
        ),
        (
            "anthropic, through a gateway",
            {"prompt_tokens": 100, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 10},
            {},
            Usage(prompt=100, cached=80, cache_written=10),
            20,
        ),
        ("llama.cpp", {"prompt_tokens": 100}, {"prompt_n": 30, "cache_n": 70}, Usage(prompt=100, cached=70), 30),
        ("floats", {"prompt_tokens": 100.0, "completion_tokens": 1.5}, {}, Usage(prompt=100), None),
        ("more cached than there is", {"prompt_tokens": 9, "cached_tokens": 60}, {}, Usage(prompt=9, cached=60), None),
    ],
)
def test_usage_is_read_in_every_server_s_words(
    name: str, usage: Any, timings: Any, expected: Usage, prefilled: int | None
) -> None:
    assert usage_of(usage, timings) == (expected, prefilled)


def test_the_last_usage_of_a_stream_counts() -> None:
    draft = Draft()
    draft.add({"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 9, "completion_tokens": 1}})
    draft.add({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": None})
    draft.add({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
    assert draft.reply(Times()).usage == Usage(prompt=9, completion=2)


# --- reasoning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer", "thought"),
    [
        ("plain", "plain", None),
        ("<think>hm</think>\n\nDolores", "Dolores", "hm"),
        ("\n <think>\nhm\n</think>Dolores", "Dolores", "hm"),
        ("<think>\n\n</think>\n\nDolores", "Dolores", ""),
        ("<think>never ending", "", "never ending"),
        ("begun by the template</think>\n\nDolores", "Dolores", "begun by the template"),
        ("<think>a</think> <think>b</think> Dolores", "Dolores", "a\nb"),
        ("I use <think>tags</think> in the middle", "I use <think>tags</think> in the middle", None),
        ("[THINK]hm[/THINK]Dolores", "Dolores", "hm"),
        ("<|channel|>analysis<|message|>hm<|channel|>final<|message|>Dolores", "Dolores", "hm"),
        ("", "", None),
    ],
)
def test_thoughts_are_told_from_answers(text: str, answer: str, thought: str | None) -> None:
    assert split_reasoning(text) == (answer, thought)


def test_a_server_that_tells_thoughts_apart_itself_is_believed() -> None:
    assert split_reasoning("the tag </think> ends a thought", told=True) == ("the tag </think> ends a thought", None)


def test_thousands_of_thoughts_take_no_time() -> None:
    answer, _ = split_reasoning("<think></think>" * 200_000)
    assert answer


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_in_a_field_of_its_own_is_kept_apart(field: str) -> None:
    reply = whole({"content": "Dolores", field: "hm"})
    assert (reply.text, reply.reasoning) == ("Dolores", "hm")
    assert whole({"content": "x", "reasoning": "hm", "reasoning_content": "hm"}).reasoning == "hm"


def test_reasoning_in_parts_of_the_content_is_kept_apart() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Dolores"}]
    reply = whole({"content": parts})
    assert (reply.text, reply.reasoning) == ("Dolores", "hm")


def test_an_answer_cut_while_a_thought_of_the_template_s_is_open_is_all_thought() -> None:
    def cut(finish: str, opened: bool, **more: Any) -> tuple[str, str | None]:
        draft = Draft()
        draft.add({"choices": [{"message": {"content": "so the user", **more}, "finish_reason": finish}]}, whole=True)
        reply = draft.reply(Times(), opened=opened)
        return reply.text, reply.reasoning

    assert cut("length", True) == ("", "so the user")
    assert cut("stop", True) == ("so the user", None)
    assert cut("length", False) == ("so the user", None)
    assert cut("length", True, reasoning="hm") == ("so the user", "hm")
