"""What an OpenAI-compatible server answers: JSON and event streams → `Reply`. Pure; every size is bounded.

Knows nothing of connections, and of errors that come instead of an answer (`refusals` does).
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from needlepoint.ask.models.refusals import Refusal, RefusedError, bad_answer
from needlepoint.types import Failure, Reply, Times, Usage

ROOM_BYTES = 8 << 20
ROOM_BYTES_PER_TOKEN = 4096
_PIECE_BYTES = 1 << 20
_MOST_LINES = _MOST_THOUGHTS = 64

_FINISHES = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "complete": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
}
_WRITTEN = ("created_cache_tokens", "cache_creation_tokens", "cache_write_tokens")  # vLLM, LiteLLM, OpenRouter
_BROKEN_FINISHES = frozenset(("error", "abort", "insufficient_system_resource", "network_error"))
_THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
)


class EventStream:
    """Server-sent events, put together from pieces of any size: the JSON value of each.

    Lenient where servers are loose: any line end, comments, no blank line between events, bare JSON lines.
    """

    def __init__(self) -> None:
        self.done = False
        self._pieces: list[bytes] = []
        self._data: list[str] = []
        self._event = ""

    def feed(self, data: bytes) -> Iterator[tuple[str, Any]]:
        """(event's name, its value) for each event that is whole now."""
        self._pieces.append(data)
        if b"\n" not in data and b"\r" not in data:
            return
        lines = b"".join(self._pieces).splitlines(keepends=True)
        last = b"" if lines[-1].endswith(b"\n") else lines.pop()  # a lone \r may be half of a line end
        self._pieces = [last] if last else []
        for line in lines:
            yield from self._line(line.rstrip(b"\r\n"))

    def end(self) -> Iterator[tuple[str, Any]]:
        """What the last line says, where the stream ended without a line end."""
        line, self._pieces = b"".join(self._pieces), []
        yield from self._line(line.rstrip(b"\r\n"))
        if self._data and not self.done:
            raise bad_answer("The stream of the answer ends in the middle of an event.")

    def _line(self, line: bytes) -> Iterator[tuple[str, Any]]:
        if not line:
            self._event = ""
            if self._data:
                raise bad_answer(f"The stream of the answer holds invalid JSON: {self._data[0][:80]!r}.")
            return
        name, _, rest = line.partition(b":")
        if name == b"event":
            self._event = rest.decode("utf-8", "replace").strip()
        elif name == b"data":
            yield from self._value(rest.decode("utf-8", "replace").strip())
        elif line[:1] == b"{":
            yield from self._value(line.decode("utf-8", "replace"))

    def _value(self, data: str) -> Iterator[tuple[str, Any]]:
        if data == "[DONE]":
            self.done = True
            return
        if not data or self.done:
            return
        if len(self._data) >= _MOST_LINES:
            raise bad_answer(f"The stream of the answer holds invalid JSON: {self._data[0][:80]!r}.")
        self._data.append(data)
        try:
            value = json.loads("\n".join(self._data))
        except (ValueError, RecursionError):
            return  # the next line may complete it; a blank one ends it
        self._data = []
        yield self._event, value


class Unpacker:
    """A body as it comes → as it is meant, never more than `room_bytes`: a bomb is not unpacked."""

    def __init__(self, encoding: str, room_bytes: int) -> None:
        self._room = self._left = room_bytes
        encoding = encoding.strip().lower()
        if encoding in ("gzip", "x-gzip", "deflate"):
            self._inflate: Any = zlib.decompressobj(47 if encoding != "deflate" else 15)
        elif encoding in ("", "identity"):
            self._inflate = None
        else:
            raise bad_answer(f"The answer is packed as {encoding[:40]!r}, which was not asked for.")

    def unpack(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate is None:
                piece, data = data, b""
            else:
                try:
                    piece = self._inflate.decompress(data, min(self._left + 1, _PIECE_BYTES))
                except zlib.error:
                    raise bad_answer("The answer is packed, and damaged.") from None
                data = self._inflate.unconsumed_tail
                if not piece and not data:
                    return
            self._left -= len(piece)
            if self._left < 0:
                raise bad_answer(f"The answer has more than {self._room / 1e6:,.0f} MB; the rest was not read.")
            yield piece


class Draft:
    """A reply in the making: `add` each event of a stream, or the one JSON value of an answer that comes whole."""

    def __init__(self) -> None:
        self.started = False
        """Whether anything was generated yet."""
        self.finish: str | None = None
        self._chosen = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._logprobs: list[float] = []
        self._usage: Mapping[str, Any] = {}
        self._timings: Mapping[str, Any] = {}

    def add(self, value: Any, *, whole: bool = False) -> Refusal | None:
        """Take one value in. An error that the server put where an answer belongs comes back."""
        if isinstance(value, list) and value and isinstance(value[0], dict) and "error" in value[0]:
            return Refusal.of_value(200, value)
        if not isinstance(value, dict):
            raise bad_answer(f"The answer is a JSON {_kind(value)}, not an object.")
        if value.get("error"):
            return Refusal.of_value(200, value)
        nested = value.get("x_groq")
        usage = value.get("usage") or (nested.get("usage") if isinstance(nested, dict) else None)
        if isinstance(usage, dict):
            self._usage = usage
        if isinstance(timings := value.get("timings"), dict):
            self._timings = timings
        choices = value.get("choices")
        if choices is None and not whole:
            return None
        if not isinstance(choices, list):
            raise bad_answer(f"The answer's choices are a JSON {_kind(choices)}, not a list.")
        for choice in choices:
            if not isinstance(choice, dict):
                raise bad_answer(f"The answer's choice is a JSON {_kind(choice)}, not an object.")
            if choice.get("index") in (None, 0):
                self._choose(choice, whole=whole)
        return None

    def reply(self, times: Times, *, opened: bool = False, clean: Callable[[str], str] = str) -> Reply:
        """The reply. Raises where there was none. `opened`: the prompt's own end began a thought."""
        if not self._chosen:
            raise bad_answer("The answer has no choices.")
        if self.finish in _BROKEN_FINISHES:
            broke = f"The server gave up in the middle of its answer ({self.finish})."
            raise RefusedError(Failure(kind="server", message=broke, status=200))
        text, reasoning = "".join(self._text), "".join(self._reasoning) or None
        opened = opened and self.finish == "length"
        text, thought = split_reasoning(text, opened=opened, told=reasoning is not None)
        if thought is not None:
            reasoning = f"{reasoning}\n{thought}" if reasoning else thought
        usage, prefilled = usage_of(self._usage, self._timings)
        return Reply(
            text=clean(_whole_characters(text)),
            reasoning=None if reasoning is None else clean(_whole_characters(reasoning)),
            finish=None if self.finish is None else clean(_whole_characters(self.finish))[:40],
            logprobs=tuple(self._logprobs) or None,
            usage=usage,
            prefilled_tokens=prefilled,
            times=times,
        )

    def _choose(self, choice: Mapping[str, Any], *, whole: bool) -> None:
        part = choice.get("message") if choice.get("message") is not None else choice.get("delta")
        if part is None and "text" in choice:
            part = {"content": choice["text"]}
        if part is None and not whole:
            part = {}
        if not isinstance(part, dict):
            raise bad_answer(f"The answer's message is a JSON {_kind(part)}, not an object.")
        self._chosen = True
        text, reasoning = _words(part.get("content"))
        for key in ("reasoning_content", "reasoning"):
            if isinstance(said := part.get(key), str) and said:
                reasoning += said
                break  # servers that have both fields say the same in both
        refusal = part.get("refusal")
        if not text and isinstance(refusal, str):
            text = refusal
        if text:
            self._text.append(text)
        if reasoning:
            self._reasoning.append(reasoning)
        self.started = self.started or bool(text or reasoning)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self.finish = _FINISHES.get(finish.casefold(), finish)
        self._logprobs += _logprobs(choice.get("logprobs"))


def read_whole(body: bytes) -> Any:
    """The JSON value of an answer that is no stream; a clear failure where it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        begin = body[:200].decode("utf-8", "replace").strip()
    if begin[:1] == "<":
        raise bad_answer("The answer is a web page, not JSON. Is this the address of the model's API?")
    if not begin:
        raise bad_answer("The answer is empty.")
    raise bad_answer("The answer is not valid JSON; it may be cut off.")


def split_reasoning(text: str, *, opened: bool = False, told: bool = False) -> tuple[str, str | None]:
    """Text → (what is meant as the answer, what was thought before it; None where nothing was).

    A thought that was never ended is all thought. One whose beginning is missing was begun by the chat template, unless
    the server `told` the reasoning apart already; with `opened`, it did so even where the end is missing too.
    """
    thoughts: list[str] = []
    rest = text
    for _ in range(_MOST_THOUGHTS):
        bare = rest.lstrip()
        pair = next((pair for pair in _THOUGHTS if bare.startswith(pair[0])), None)
        if pair is None:
            break
        thought, end, rest = bare[len(pair[0]) :].partition(pair[1])
        thoughts.append(thought.strip())
        if not end:
            rest = ""
    if thoughts:
        return rest.lstrip(), "\n".join(filter(None, thoughts))
    if not told:
        for begin, end in _THOUGHTS:
            at = text.find(end)
            if at >= 0 and begin not in text[:at]:
                return text[at + len(end) :].lstrip(), text[:at].strip()
        if opened:
            return "", text.strip()
    return text, None


def usage_of(usage: Mapping[str, Any], timings: Mapping[str, Any]) -> tuple[Usage, int | None]:
    """(tokens as the server counts them, prompt tokens that it really computed)."""
    read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    hit, missed = _count(usage, "prompt_cache_hit_tokens"), _count(usage, "prompt_cache_miss_tokens")
    prompt = _count(usage, "prompt_tokens")
    if prompt is None and (prompt := _count(usage, "input_tokens")) is not None:
        prompt += (read or 0) + (written or 0)  # Anthropic counts only what no cache had to do with
    if prompt is None and hit is not None and missed is not None:
        prompt = hit + missed
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    more = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    cached = _first(
        _count(details, "cached_tokens"), hit, read, _count(usage, "cached_tokens"), _count(timings, "cache_n")
    )
    prefilled = _count(timings, "prompt_n")
    if prefilled is None and prompt is not None and cached is not None and cached <= prompt:
        prefilled = prompt - cached
    found = Usage(
        prompt=prompt,
        completion=_first(_count(usage, "completion_tokens"), _count(usage, "output_tokens")),
        reasoning=_first(_count(more, "reasoning_tokens"), _count(usage, "reasoning_tokens")),
        cached=cached,
        cache_written=_first(written, *(_count(details, key) for key in _WRITTEN)),
    )
    return found, prefilled


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _count(where: Any, key: str) -> int | None:
    value = where.get(key) if isinstance(where, dict) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None


def _words(content: Any) -> tuple[str, str]:
    """(text, reasoning) of a message's content: a text, nothing, or a list of parts."""
    if isinstance(content, str):
        return content, ""
    if content is None:
        return "", ""
    if not isinstance(content, list):
        raise bad_answer(f"The answer's content is a JSON {_kind(content)}, not a text.")
    text, reasoning = "", ""
    for part in content:
        if isinstance(part, str):
            text += part
        elif isinstance(part, dict) and isinstance(said := part.get("text"), str):
            text += said
        elif isinstance(part, dict) and (thought := part.get("thinking")) is not None:
            reasoning += "".join(_words(thought))
    return text, reasoning


def _logprobs(found: Any) -> list[float]:
    if not isinstance(found, dict):
        return []
    content = found.get("content")
    if isinstance(content, list):
        values = [one.get("logprob") for one in content if isinstance(one, dict)]
    else:
        values = found["token_logprobs"] if isinstance(found.get("token_logprobs"), list) else []
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return [number if math.isfinite(number) else -9999.0 for number in numbers]  # -9999: as vLLM writes minus infinity


def _whole_characters(text: str) -> str:
    """Halves of a surrogate pair, as they come from split escapes, put together; a lone one replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _kind(value: Any) -> str:
    names = {dict: "object", list: "list", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")
