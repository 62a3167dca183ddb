"""Which refusals mean that a prompt is too long, what else refusals mean, and how long they ask to wait."""

from __future__ import annotations

import json
from typing import Any

import pytest

from needlepoint.ask.models.overflow import find_overflow
from needlepoint.ask.models.refusals import Refusal, retry_after

NOW = 1_790_000_000.0


def refused(status: int, body: Any, headers: dict[str, str] | None = None, *, clean: Any = str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Refusal.of_body(status, data).failure(headers or {}, now=NOW, clean=clean, http_status=status)


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


OVERFLOWS: list[tuple[str, int, Any, int | None, int | None]] = [
    (
        "openai",
        400,
        said(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens. "
            "Please reduce the length of the messages.",
            code="context_length_exceeded",
        ),
        10000,
        8192,
    ),
    ("openai, new", 400, said("Your input exceeds the context window of this model.", code="x"), None, None),
    (
        "openai, limit of the organisation",
        400,
        said("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens."),
        300000,
        272000,
    ),
    (
        "openai, characters",
        400,
        said(
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but got a "
            "string with length 2000000 instead.",
            code="string_above_max_length",
        ),
        None,
        None,
    ),
    ("any, by its code alone", 400, said("too much", code="context_length_exceeded"), None, None),
    (
        "vllm, deepseek",
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 "
            "in the messages, 100 in the completion). Please reduce the length of the messages or completion.",
            "type": "BadRequestError",
            "code": 400,
        },
        4900,
        4096,
    ),
    (
        "vllm, input",
        400,
        said("This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens."),
        5000,
        4096,
    ),
    (
        "vllm 0.32",
        400,
        said(
            "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input "
            "tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
            "prompt. (parameter=input_tokens, value=8193)",
            type="BadRequestError",
            param="input_tokens",
            code=400,
        ),
        8193,
        8192,
    ),
    (
        "vllm, room",
        400,
        said(
            "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 4096 "
            "tokens and your request has 4000 input tokens (1000 > 4096 - 4000)."
        ),
        4000,
        4096,
    ),
    (
        "vllm, newest",
        400,
        said(
            "You passed 5000 input tokens and requested 100 output tokens. However, the model's context length is only "
            "4096 tokens, resulting in a maximum input length of 3996 tokens.",
            param="input_tokens",
        ),
        5000,
        4096,
    ),
    (
        "vllm, engine",
        400,
        said("The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that ..."),
        5000,
        4096,
    ),
    (
        "sglang",
        400,
        said("The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
        5000,
        4096,
    ),
    (
        "sglang, total",
        400,
        said(
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of "
            "5100 tokens: 5000 tokens from the input messages and 100 tokens for the completion."
        ),
        5000,
        4096,
    ),
    (
        "sglang, allowed",
        400,
        said("Input length (5000 tokens) exceeds the maximum allowed length (4091 tokens). Use a shorter input."),
        5000,
        4091,
    ),
    (
        "llama.cpp",
        400,
        said(
            "the request exceeds the available context size. try increasing the context size",
            type="exceed_context_size_error",
            code=400,
            n_prompt_tokens=5000,
            n_ctx=4096,
        ),
        5000,
        4096,
    ),
    (
        "llama.cpp, new",
        400,
        said("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it"),
        5000,
        4096,
    ),
    ("llama.cpp, old", 500, said("the request exceeds the available context size"), None, None),
    ("ollama", 400, said("the input length exceeds the context length"), None, None),
    ("ollama, new", 400, said("prompt too long; exceeded max context length by 12 tokens"), None, None),
    (
        "tgi",
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` "
            "tokens and 100 `max_new_tokens`",
            "error_type": "validation",
        },
        5000,
        4096,
    ),
    (
        "tgi, input",
        422,
        {"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000"},
        5000,
        4095,
    ),
    (
        "anthropic",
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
        },
        210000,
        200000,
    ),
    (
        "anthropic, room",
        400,
        said("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length"),
        190000,
        200000,
    ),
    ("anthropic, bytes", 413, {"type": "error", "error": {"type": "request_too_large", "message": "x"}}, None, None),
    (
        "gemini",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1100000) exceeds the maximum number of tokens "
                    "allowed (1048576).",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        1100000,
        1048576,
    ),
    (
        "gemini, without a count",
        400,
        [said("The input token count exceeds the maximum number of tokens allowed 1048576.")],
        None,
        1048576,
    ),
    (
        "mistral",
        400,
        {
            "object": "error",
            "message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
            "context length",
            "type": "invalid_request_prompt",
        },
        40000,
        32768,
    ),
    (
        "xai",
        400,
        {"error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."},
        537812,
        131072,
    ),
    (
        "openrouter",
        400,
        said(
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (39000 "
            "of text input, 1000 in the output). Please reduce the length of either one."
        ),
        39000,
        32768,
    ),
    (
        "openrouter, from upstream",
        400,
        said("Provider returned error", metadata={"raw": json.dumps(said("prompt is too long: 9 tokens > 8 maximum"))}),
        9,
        8,
    ),
    (
        "moonshot",
        400,
        said("Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)"),
        140000,
        131072,
    ),
    (
        "dashscope",
        400,
        said("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"),
        None,
        129024,
    ),
    (
        "cerebras",
        400,
        said("Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192"),
        9000,
        8192,
    ),
    ("zhipu", 400, said("Prompt exceeds max length", code="1261"), None, None),
    ("bedrock", 400, {"message": "Input is too long for requested model."}, None, None),
    (
        "github models",
        413,
        said("Request body too large for gpt-4o model. Max size: 8000 tokens.", code="tokens_limit_reached"),
        None,
        8000,
    ),
    ("a proxy", 413, b"<html><head><title>413 Request Entity Too Large</title></head></html>", None, None),
    ("payload without words", 413, b"", None, None),
]


@pytest.mark.parametrize("case", OVERFLOWS, ids=[case[0] for case in OVERFLOWS])
def test_every_server_s_way_to_say_too_long_is_an_overflow(case: tuple[str, int, Any, int | None, int | None]) -> None:
    _, status, body, prompt, limit = case
    failure = refused(status, body)
    assert failure.kind == "overflow"
    assert failure.status == status
    assert failure.retry_after_s is None
    if prompt is not None or limit is not None:
        found = find_overflow(Refusal.of_body(status, json.dumps(body).encode()).text)
        assert found is not None
        assert (found.prompt_tokens, found.limit_tokens) == (prompt, limit)


def test_a_prompt_that_fits_but_not_with_its_answer_says_so() -> None:
    room = next(body for name, _, body, *_ in OVERFLOWS if name == "vllm, room")
    assert "(The prompt of 4,000 tokens fits, but not with the room for its answer.)" in refused(400, room).message
    too_long = next(body for name, _, body, *_ in OVERFLOWS if name == "vllm, input")
    assert "room for" not in refused(400, too_long).message


OTHERS: list[tuple[str, int, Any, str]] = [
    (
        "answer limit of the model",
        400,
        said("max_tokens is too large: 100000. This model supports at most 16384 completion tokens."),
        "bad_request",
    ),
    (
        "answer limit, as vllm 0.32 says it",
        400,
        said("max_tokens=9000 cannot be greater than max_model_len=8192. Please request fewer output tokens."),
        "bad_request",
    ),
    (
        "unsupported value",
        400,
        said("Unsupported value: 'temperature' does not support 0 with this model.", code="unsupported_value"),
        "bad_request",
    ),
    ("no such model", 404, said("The model `x` does not exist.", code="model_not_found"), "bad_request"),
    (
        "validation",
        422,
        {"detail": [{"loc": ["body", "seed"], "msg": "Input should be a valid integer"}]},
        "bad_request",
    ),
    ("wrong key", 401, said("Incorrect API key provided"), "auth"),
    ("forbidden", 403, b"<html>Forbidden</html>", "auth"),
    ("no money", 402, said("Insufficient Balance"), "auth"),
    (
        "no quota",
        429,
        said("You exceeded your current quota", type="insufficient_quota", code="insufficient_quota"),
        "auth",
    ),
    ("rate limit", 429, said("Rate limit reached for requests", code="rate_limit_exceeded"), "rate_limit"),
    (
        "rate limit that speaks of length",
        429,
        said("Too many tokens per minute; reduce the length of your prompt"),
        "rate_limit",
    ),
    (
        "one request above the minute's quota",
        429,
        said("Request too large for gpt-x in organization o on tokens per min (TPM): Limit 30000, Requested 40000."),
        "bad_request",
    ),
    (
        "the same, as groq sends it",
        413,
        said("Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 8000"),
        "bad_request",
    ),
    ("server", 500, b"Internal Server Error", "server"),
    ("loading", 503, said("Loading model", type="unavailable_error"), "server"),
    ("overloaded", 529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "server"),
    ("gateway", 502, b"<html><title>502 Bad Gateway</title></html>", "server"),
    ("gateway's patience", 504, b"", "timeout"),
    ("request's patience", 408, b"", "timeout"),
    ("in a good answer", 200, said("boom", code=503), "server"),
    ("in a good answer, by type", 200, said("slow down", type="rate_limit_error"), "rate_limit"),
    ("in a good answer, without a word", 200, said("boom"), "server"),
    ("in a good answer, too long", 200, said("prompt is too long: 9 tokens > 8 maximum"), "overflow"),
    ("not even JSON", 400, b"\xff\xfe{", "bad_request"),
    ("deeply nested", 400, b"[" * 60_000, "bad_request"),
]


@pytest.mark.parametrize("case", OTHERS, ids=[case[0] for case in OTHERS])
def test_other_refusals_keep_their_kind(case: tuple[str, int, Any, str]) -> None:
    _, status, body, kind = case
    assert refused(status, body).kind == kind


def test_the_server_s_own_words_are_short_and_printable() -> None:
    message = refused(400, said("bad\x1b[31m\u202e thing\n" + "x" * 5000)).message
    assert message.startswith("HTTP 400: bad [31m thing xxx")
    assert len(message) < 340
    assert refused(502, b"<html><TITLE>502 Bad Gateway</TITLE>").message == "HTTP 502: a web page (502 Bad Gateway)"


def test_a_secret_is_taken_out_before_the_words_are_cut() -> None:
    words = "x" * 290 + " key sk-secret-123"
    message = refused(400, said(words), clean=lambda text: text.replace("sk-secret-123", "***")).message
    assert "sk-" not in message


@pytest.mark.parametrize(
    ("headers", "text", "wait_s"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after": "Mon, 21 Sep 2026 14:13:35 GMT"}, "", 15.0),
        ({"retry-after": "Mon, 21 Sep 2020 14:13:35 GMT"}, "", 0.0),
        ({"retry-after": "1e99"}, "", 86400.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after-ms": "1500", "retry-after": "2"}, "", 1.5),
        ({"x-ratelimit-reset-requests": "120ms"}, "", 0.12),
        ({"x-ratelimit-reset-tokens": "6m0s"}, "", 360.0),
        ({"x-ratelimit-reset-tokens": "1h2m3.5s"}, "", 3723.5),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "9s"}, "", 9.0),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-reset-tokens": "9s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-remaining-tokens": "500",
            },
            "",
            1.0,
        ),
        ({"x-ratelimit-reset": str(NOW + 30)}, "", 30.0),
        ({"x-ratelimit-reset": str(int((NOW + 30) * 1000))}, "", 30.0),
        ({"x-ratelimit-reset": "12"}, "", 12.0),
        ({}, "Please try again in 1.5s. Visit ...", 1.5),
        ({}, "Please try again in 250ms.", 0.25),
        ({}, "Please retry after 26 seconds.", 26.0),
        ({}, "try again in 2 minutes", 120.0),
        ({}, '{"retryDelay": "32s"}', 32.0),
        ({}, "no idea", None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(headers: dict[str, str], text: str, wait_s: float | None) -> None:
    wait = retry_after(headers, text, now=NOW)
    assert wait == (None if wait_s is None else pytest.approx(wait_s, abs=0.01))


def test_only_what_can_pass_says_how_long_to_wait() -> None:
    headers = {"retry-after": "7"}
    assert refused(429, b"", headers).retry_after_s == 7.0
    assert refused(503, b"", headers).retry_after_s == 7.0
    assert refused(400, b"", headers).retry_after_s is None
