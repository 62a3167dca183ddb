"""llama.cpp's one slot: it keeps the last prompt, and the next one goes on from where the two part.

Knows which tokens the slot holds, so that a prompt is computed in batches that round alike whatever came before it:
what is asked here has the same logits to the last bit with and without reuse, where a prompt has enough new tokens.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from needlepoint.ask.models.forced import LLAMA, Forced
from needlepoint.ask.models.llama_engine import Engine, first_part
from needlepoint.ask.models.llama_reply import body_of
from needlepoint.ask.models.neural.trie import shared

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class Completion:
    """What came of one prompt: HTTP status and JSON, and the answer to the part of it that went ahead, if any."""

    status: int
    answer: Any
    ahead: Mapping[str, Any]


class Slot:
    """The slot of an engine that this owns; `close` both. What goes wrong on the way comes as httpx2's errors."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.client: httpx2.AsyncClient = engine.client()
        self._held: array[int] | None = None

    async def close(self) -> None:
        """End the connection. The engine is closed by whoever can wait for it."""
        await self.client.aclose()

    async def complete(
        self, ids: Sequence[int], max_tokens: int, options: Mapping[str, Any], *, reuse: bool
    ) -> Completion:
        """Answer a prompt. The same one again is computed whole: from its last token alone it would round otherwise."""
        tokens = array("I", ids)
        reuse = reuse and tokens != self._held
        ahead = await self._ahead(tokens, reuse=reuse)
        body = body_of(ids, max_tokens, options, reuse=reuse or bool(ahead))
        self._held = tokens
        response = await self.client.post("/completion", json=body)
        return Completion(response.status_code, response.json(), ahead)

    async def values(
        self, ids: Sequence[int], continuations: Sequence[Sequence[int]], *, anchor: int | None
    ) -> list[tuple[float, ...] | None]:
        """For each continuation of a prompt, the log-probability of each of its tokens."""
        if (tokens := array("I", ids)) != self._held:  # whole, so that a value's tokens always come one by one
            await self._ahead(tokens, reuse=True)
            await self._ask(body_of(ids, 0, {}))
            self._held = tokens
        return await Forced(LLAMA, self._ask, anchor=anchor).values(ids, continuations)

    async def _ahead(self, tokens: array[int], *, reuse: bool) -> Mapping[str, Any]:
        """Compute what of a prompt has to go ahead, so that its end isn't computed among too few tokens: the answer."""
        n_kept = shared(self._held, tokens) if reuse and self._held is not None else 0
        if not (first := first_part(len(tokens) - n_kept)):
            return {}
        answer = await self._ask(body_of(tokens[: n_kept + first], 0, {}, reuse=reuse))
        return answer if isinstance(answer, dict) else {}

    async def _ask(self, body: dict[str, Any]) -> Any:
        return (await self.client.post("/completion", json={**body, "id_slot": 0})).json()
