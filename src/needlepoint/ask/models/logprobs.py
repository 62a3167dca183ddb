"""How likely a server holds given texts, in the cheapest way that it has.

    forced   llama.cpp, vLLM with its prefix cache: some dozens of single tokens behind the prompt, which stays kept
    echo     any server whose /completions says its prompt again with logarithms: one whole prompt for each value

Which one is found out by asking; a server that has none is not asked for margins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Self

from needlepoint.ask.models.caching import LLAMA_NAMES
from needlepoint.ask.models.channel import Channel
from needlepoint.ask.models.echo import Echo
from needlepoint.ask.models.forced import LLAMA, VLLM, Dialect, Forced, NothingKeptError
from needlepoint.ask.models.own_tokens import anchor_of, continuation, own_ids
from needlepoint.types import Askable, Endpoint

_TRIES = 3
_ROOM_BYTES = 64 << 20  # every token of a vocabulary with its logarithm
_PROBE = "The needle lies in the haystack"


class Logprobs:
    """The ways of one server. `values` may be called for several prompts at once."""

    def __init__(self, endpoint: Endpoint, forced: Forced | None, echo: Echo | None, *, sent: Callable[[str], str]):
        self._endpoint = endpoint
        self._forced = forced
        self._echo = echo
        self._sent = sent
        self._counting = asyncio.Lock()  # a server's tokenizer is asked one question at a time

    @property
    def manner(self) -> str:
        """For the record."""
        return "echo" if self._forced is None else "forced"

    @classmethod
    async def found(
        cls,
        channel: Channel,
        *,
        name: str,
        base: str,
        engine: object,
        endpoint: Endpoint,
        counts_itself: bool,
        extra: dict[str, object],
        sent: Callable[[str], str],
    ) -> Self | None:
        """The server's ways, or None where it tells nothing. `sent` makes of a rendered chat what the server is sent.

        Tokens are forced where the server itself has counted them (`counts_itself`) and keeps prefixes.
        """
        if endpoint.render is None:
            return None
        forced: Forced | None = None
        if counts_itself and (anchor := anchor_of(endpoint.tokenizer)) is not None:
            if engine in LLAMA_NAMES:
                forced = _forced(channel, LLAMA, channel.address.root, {"model": name}, anchor)
            elif engine == "vllm" and endpoint.facts.get("cache_prefixes"):
                forced = _forced(channel, VLLM, base, {"model": name}, anchor)
            if forced is not None and not await forced.works(endpoint.tokenizer.encode(_PROBE).ids, anchor):
                forced = None
        echo: Echo | None = None
        if forced is None or engine == "vllm":  # its cache may be too small to keep what is asked
            echo = Echo(channel, channel.address.url(base, "/completions"), name, extra)
            echo = echo if await echo.works() else None
        return None if forced is None and echo is None else cls(endpoint, forced, echo, sent=sent)

    async def values(self, prompt: Askable, continuations: Sequence[str], lead: str) -> list[tuple[float, ...] | None]:
        """For each continuation, the log-probability of each of its tokens after prompt, lead and those before it."""
        if self._forced is not None:
            try:
                return await self._by_force(self._forced, prompt, continuations, lead)
            except NothingKeptError:
                if self._echo is None:
                    return [None] * len(continuations)
        assert self._echo is not None
        before = self._sent(prompt.text()) + lead
        count = self._endpoint.tokenizer.count
        n_lead = count(lead)
        return [await self._echo.values(before, one, count(lead + one) - n_lead) for one in continuations]

    async def _by_force(
        self, forced: Forced, prompt: Askable, continuations: Sequence[str], lead: str
    ) -> list[tuple[float, ...] | None]:
        async with self._counting:
            ids, made = await asyncio.to_thread(self._tokens, prompt, continuations, lead)
        found = await forced.values(ids, [one for one, _ in made])
        return [one and one[n_lead:] for one, (_, n_lead) in zip(found, made, strict=True)]

    def _tokens(
        self, prompt: Askable, continuations: Sequence[str], lead: str
    ) -> tuple[Sequence[int], list[tuple[Sequence[int], int]]]:
        tokenizer = self._endpoint.tokenizer
        return own_ids(prompt, self._endpoint), [continuation(tokenizer, lead, one) for one in continuations]


def _forced(channel: Channel, dialect: Dialect, base: str, extra: dict[str, Any], anchor: int) -> Forced:
    url = channel.address.url(base, dialect.path)

    async def ask(body: dict[str, Any]) -> Any:
        for _ in range(_TRIES):
            if (answer := await channel.question(url, {**extra, **body}, _ROOM_BYTES)) is not None:
                return answer
        return None

    return Forced(dialect, ask, anchor=anchor)
