"""What is asked of llama.cpp's `/completion`, and what its answer means. Values in, values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from needlepoint.ask.models.answers import split_reasoning
from needlepoint.errors import UsageError
from needlepoint.types import Askable, Failure, Reply, Sampling, Times, Usage

_OURS = frozenset(("prompt", "messages", "model", "n", "stream", "stream_options", "id_slot", "response_fields"))
_OTHER_NAMES = {
    "max_tokens": "n_predict",
    "max_completion_tokens": "n_predict",
    "repetition_penalty": "repeat_penalty",
    "top_logprobs": "n_probs",
}
_FINISHES = {"eos": "stop", "word": "stop", "limit": "length"}
_FIELDS = ("content", "stop_type", "tokens_evaluated", "tokens_predicted", "truncated", "timings")


def options_of(sampling: Sampling) -> dict[str, Any]:
    """OpenAI's options by llama.cpp's names; greedy where nothing is said, and what we don't know as it is."""
    merged = dict(sampling.options)
    extra = merged.pop("extra_body", None) or {}
    if not isinstance(extra, Mapping):
        raise UsageError("extra_body must be a JSON object.")
    merged |= extra
    if merged.pop("n", 1) not in (1, None):
        raise UsageError("n must be 1: repeats are asked for with --repeats.")
    for name in ("stream", "stream_options"):
        merged.pop(name, None)
    if taken := sorted(_OURS & set(merged)):
        raise UsageError(f"The generation settings can't set {', '.join(taken)}: needlepoint does.")
    wants_logprobs = merged.pop("logprobs", False)
    options: dict[str, Any] = {"temperature": 0.0, "seed": 0}
    options |= {_OTHER_NAMES.get(name, name): value for name, value in merged.items() if value is not None}
    if wants_logprobs and not options.get("n_probs"):
        options["n_probs"] = 1
    if isinstance(stop := options.get("stop"), str):
        options["stop"] = [stop]
    return options


def answer_limit(prompt: Askable, sampling: Sampling) -> int:
    return sampling.max_tokens if prompt.max_tokens is None else prompt.max_tokens


def body_of(ids: Sequence[int], max_tokens: int, options: Mapping[str, Any], *, reuse: bool = True) -> dict[str, Any]:
    fields = [*_FIELDS, "completion_probabilities"] if options.get("n_probs") else list(_FIELDS)
    return {
        "prompt": list(ids),
        "n_predict": max_tokens,
        "cache_prompt": reuse,
        "id_slot": 0,
        "response_fields": fields,
        **options,
    }


def reply_of(
    answer: Mapping[str, Any],
    *,
    ends: Sequence[str],
    opened: bool,
    total_s: float,
    queued_s: float,
    ahead: Mapping[str, Any] | None = None,
) -> Reply:
    """The reply in a good answer. `ends` are control tokens that may stand at its end; `opened` as in answers.py.

    `ahead` is the answer to a part of the prompt that was computed before, where there was one.
    """
    stop = answer.get("stop_type")
    finish = _FINISHES.get(stop, stop) if isinstance(stop, str) else None
    text, reasoning = split_reasoning(
        trimmed(str(answer.get("content") or ""), ends), opened=opened and finish == "length"
    )
    timings, earlier = _timings(answer), _timings(ahead or {})
    computed, kept = _count(timings.get("prompt_n")), _count(timings.get("cache_n"))
    prompt_ms = timings.get("prompt_ms")
    if earlier:
        computed = None if computed is None else computed + (_count(earlier.get("prompt_n")) or 0)
        kept = _count(earlier.get("cache_n"))
    return Reply(
        text=text,
        reasoning=reasoning,
        finish=finish,
        logprobs=_logprobs(answer.get("completion_probabilities")),
        usage=Usage(
            prompt=_count(answer.get("tokens_evaluated")),
            completion=_count(answer.get("tokens_predicted")),
            cached=kept,
        ),
        prefilled_tokens=computed,
        times=Times(
            queued=queued_s,
            first_token=(prompt_ms + earlier.get("prompt_ms", 0)) / 1000
            if isinstance(prompt_ms, int | float)
            else None,
            total=total_s,
        ),
    )


def trimmed(text: str, ends: Sequence[str]) -> str:
    """`text` without the control tokens that end a turn."""
    while end := next((end for end in ends if end and text.rstrip().endswith(end)), None):
        text = text.rstrip().removesuffix(end)
    return text


def failure_of(status: int, answer: Any) -> Failure:
    """What an HTTP error of the engine means."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    error = error if isinstance(error, Mapping) else {}
    words = " ".join(str(error.get("message") or "").split())[:300] or f"HTTP {status}"
    if error.get("type") == "exceed_context_size_error":
        return Failure(kind="overflow", message=f"llama.cpp: {words}", status=status)
    return Failure(kind="server" if status >= 500 else "bad_request", message=f"llama.cpp: {words}", status=status)


def _logprobs(found: Any) -> tuple[float, ...] | None:
    if not isinstance(found, list):
        return None
    values = [one.get("logprob") if isinstance(one, Mapping) else None for one in found]
    return tuple(float(value) for value in values if isinstance(value, int | float))


def _timings(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    found = answer.get("timings")
    return found if isinstance(found, Mapping) else {}


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
