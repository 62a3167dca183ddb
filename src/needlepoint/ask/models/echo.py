"""How likely a server holds a given text: `/v1/completions` that says its prompt again with each token's logarithm.

vLLM and SGLang do so with `echo` and `logprobs`, others with `prompt_logprobs`. One question for each text, and none
can use what the server kept of an earlier prompt: a margin costs one prefill for each value that is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from needlepoint.ask.models.answers import ROOM_BYTES
from needlepoint.ask.models.channel import Channel

_BYTES_PER_CHARACTER = 512
_TRIES = 3
_MANNERS: tuple[Mapping[str, object], ...] = ({"echo": True, "logprobs": 1}, {"prompt_logprobs": 0})


class Echo:
    """Asks one server. `works` finds out whether it tells, and in which manner."""

    def __init__(self, channel: Channel, url: str, model: str, extra: Mapping[str, object]) -> None:
        self._channel, self._url = channel, url
        self._base = {"model": model, "max_tokens": 1, "temperature": 0, **extra}
        self._manner: Mapping[str, object] | None = None

    async def works(self) -> bool:
        """Whether the server says its prompt again."""
        for manner in _MANNERS:
            self._manner = manner
            if await self._once("The needle lies in the", " haystack", None) is not None:
                return True
        self._manner = None
        return False

    async def values(self, before: str, value: str, n_tokens: int) -> tuple[float, ...] | None:
        """The log-probability of each token of `value` after `before`; None where the server doesn't say.

        `n_tokens` is what the value has by our own count, for texts whose tokens can't be read as texts.
        """
        for _ in range(_TRIES):
            if (found := await self._once(before, value, n_tokens)) is not None:
                return found
        return None

    async def _once(self, before: str, value: str, n_tokens: int | None) -> tuple[float, ...] | None:
        assert self._manner is not None
        body = {**self._base, **self._manner, "prompt": before + value}
        room = ROOM_BYTES + _BYTES_PER_CHARACTER * len(before)
        answer = await self._channel.question(self._url, body, room)
        told = _told(answer)
        return None if told is None else _of_value(told, value, n_tokens)


def _told(answer: Any) -> list[tuple[str, float | None]] | None:
    """The prompt's tokens with their log-probabilities, without what was written after them."""
    try:
        choice = answer["choices"][0]
        if isinstance(prompt := choice.get("prompt_logprobs") or answer.get("prompt_logprobs"), list):
            return [_entry(one) for one in prompt]
        logprobs = choice["logprobs"]
        pairs = list(zip(logprobs["tokens"], logprobs["token_logprobs"], strict=True))
        written = int((answer.get("usage") or {}).get("completion_tokens", 1))
        return [(str(token), value) for token, value in pairs[: len(pairs) - written]]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None


def _entry(one: Any) -> tuple[str, float | None]:
    """A position of vLLM's `prompt_logprobs`: {id: {logprob, decoded_token}}; the first has none."""
    if not one:
        return "", None
    found = next(iter(one.values()))
    return str(found.get("decoded_token") or ""), found.get("logprob")


def _of_value(told: Sequence[tuple[str, float | None]], value: str, n_tokens: int | None) -> tuple[float, ...] | None:
    """Of a text's tokens those that its end, `value`, is made of."""
    if value.isascii():
        first, text = len(told), ""
        while first and len(text) < len(value):
            first -= 1
            text = told[first][0].replace("Ġ", " ").replace("▁", " ") + text
        if not text.endswith(value):
            return None
    elif n_tokens is None:
        return None
    else:  # characters in several tokens: servers show those as nothing or as U+FFFD, so their number has to tell
        first = len(told) - n_tokens
    found = [number for _, number in told[max(first, 0) :]]
    if not found or any(not isinstance(number, int | float) for number in found):
        return None
    return tuple(float(number) for number in found if number is not None)
