"""How likely a server holds given tokens, without giving up what it has kept: each is forced as the next one.

    prompt ── 4 ── 8 ── 2 ── 1        a value: a way of tokens; those of several share their beginnings
              │    └─── 7 ── 0        each point is one question for one token, with logarithms
              └─ 9 ── …               the prompt itself is never computed again

Asking for one token that it has to take, a server tells that token's log-probability as the model gave it, before the
constraint. The prompt stays where it is, in a slot or a prefix cache, so that a margin costs some dozens of single
tokens instead of one whole prompt for each value. llama.cpp and vLLM have the words for it; whether a server does as it
says is found out before a run, since some settings make it tell the constrained value, which is 0 for all.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

LEAST: Final = -104.0
"""Stands for what a server tells as impossible: less than the smallest number that it can hold."""
_BESIDE = 8
_MANY = (1_000, 1 << 20)
_NEAR = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one kind of server is told to take a token, and where in its answer the logarithms are."""

    path: str
    body: Callable[[Sequence[int], int, int], dict[str, Any]]
    """(tokens so far, the one to take, how many likely ones to tell besides) → what is sent."""
    told: Callable[[Any], dict[int, float]]
    """An answer → token → log-probability, the token that was taken first. KeyError and the like where it has none."""
    computed: Callable[[Any], int | None] = lambda answer: None
    """An answer → how many tokens of the prompt were computed for it, where it says so."""


class NothingKeptError(Exception):
    """The server computes the whole prompt again for each token."""


@dataclass(slots=True)
class _Point:
    """What was asked of one beginning: the tokens that may follow, and where they lead."""

    next: dict[int, _Point] = field(default_factory=dict)
    told: dict[int, float] = field(default_factory=dict)


class Forced:
    """Asks one server. `ask` sends a body and gives the answer's JSON, or None where there was none.

    llama.cpp holds back what is only the beginning of a character, with its logarithm. There `anchor` is taken, a token
    that is a text of its own, and the one that is asked about is looked for among the likely ones, then among all.
    """

    def __init__(
        self, dialect: Dialect, ask: Callable[[dict[str, Any]], Awaitable[Any]], *, anchor: int | None = None
    ) -> None:
        self._dialect = dialect
        self._ask = ask
        self._anchor = anchor

    async def works(self, before: Sequence[int], token: int) -> bool:
        """Whether forced tokens are told as they would be unforced: one behind `before`, and the likely ones beside it.

        A likely one of which nothing is told says nothing; one that is told otherwise than before says no.
        """
        first = await self._told(before, token, _BESIDE)
        if first is None or sum(map(math.exp, first.values())) > 1 + _NEAR:
            return False
        agreed = 0
        for one, value in first.items():
            found = None if one == token else await self._told(before, one, 1)
            if found is not None and abs(found[one] - value) > _NEAR * max(1.0, abs(value)):
                return False
            agreed += found is not None
        return agreed > 0

    async def values(
        self, before: Sequence[int], continuations: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...] | None]:
        """For each continuation the log-probability of each of its tokens; None where the server didn't say.

        Raises NothingKeptError where every token costs the whole of `before`.
        """
        root = _Point()
        for one in continuations:
            at = root
            for token in one:
                at = at.next.setdefault(token, _Point())
        await self._walk(root, before)
        return [_along(root, one) for one in continuations]

    async def _walk(self, root: _Point, before: Sequence[int]) -> None:
        """Depth first, so that each question goes on from the one before it."""
        left: list[tuple[_Point, list[int]]] = [(root, [])]
        while left:
            point, way = left.pop()
            for token in point.next:
                if token in point.told:
                    continue
                ids, beside = [*before, *way], _BESIDE if len(point.next) > 1 else 1
                found = await self._told(ids, token, beside, most=len(before) if way else None)
                if found is None and self._anchor is not None:
                    found = await self._among_many(ids, token, self._anchor)
                if found is None:
                    return
                point.told |= {one: value for one, value in found.items() if one in point.next}
            left += [(then, [*way, token]) for token, then in reversed(point.next.items()) if then.next]

    async def _among_many(self, ids: Sequence[int], token: int, anchor: int) -> dict[int, float] | None:
        """What was told of a token beside another that was taken."""
        for many in _MANY:
            found = await self._told(ids, anchor, many)
            if found is None or token in found:
                return found
        return None

    async def _told(
        self, ids: Sequence[int], token: int, beside: int, *, most: int | None = None
    ) -> dict[int, float] | None:
        """What was told of `token` and of likely others; None where the server took another, or told no numbers."""
        answer = await self._ask(self._dialect.body(ids, token, beside))
        try:
            found = self._dialect.told(answer)
            computed = self._dialect.computed(answer)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            return None
        if most is not None and computed is not None and computed >= most > 0:
            raise NothingKeptError
        if next(iter(found), None) != token or any(map(math.isnan, found.values())):
            return None
        return {one: value if value > LEAST else LEAST for one, value in found.items()}


def _along(root: _Point, tokens: Sequence[int]) -> tuple[float, ...] | None:
    found, at = [], root
    for token in tokens:
        if token not in at.told:
            return None
        found.append(at.told[token])
        at = at.next[token]
    return tuple(found)


# --- who takes a token, and how ---------------------------------------------------------------------------------------


def _llama_body(ids: Sequence[int], token: int, beside: int) -> dict[str, Any]:
    return {
        "prompt": list(ids),
        "n_predict": 1,
        "temperature": 0.0,
        "n_probs": beside,
        "logit_bias": [[token, 1e6]],
        "cache_prompt": True,
        "response_fields": ["completion_probabilities", "timings"],
    }


def _llama_told(answer: Any) -> dict[int, float]:
    first = answer["completion_probabilities"][0]
    told = {int(first["id"]): float(first["logprob"])}
    return told | {int(one["id"]): float(one["logprob"]) for one in first["top_logprobs"]}


def _llama_computed(answer: Mapping[str, Any]) -> int | None:
    found = (answer.get("timings") or {}).get("prompt_n")
    return found if type(found) is int else None


def _vllm_body(ids: Sequence[int], token: int, beside: int) -> dict[str, Any]:
    return {
        "prompt": list(ids),
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": beside,
        "allowed_token_ids": [token],
        "return_tokens_as_token_ids": True,
    }


def _vllm_told(answer: Any) -> dict[int, float]:
    logprobs = answer["choices"][0]["logprobs"]
    told = {_numbered(logprobs["tokens"][0]): float(logprobs["token_logprobs"][0])}
    return told | {_numbered(name): float(value) for name, value in logprobs["top_logprobs"][0].items()}


def _vllm_computed(answer: Any) -> int | None:
    usage = answer["usage"]
    details = usage.get("prompt_tokens_details") or {}
    return usage["prompt_tokens"] - details["cached_tokens"] if details.get("cached_tokens") is not None else None


def _numbered(name: Any) -> int:
    """The number in vLLM's `token_id:216`."""
    return int(str(name).removeprefix("token_id:"))


LLAMA = Dialect(path="/completion", body=_llama_body, told=_llama_told, computed=_llama_computed)
VLLM = Dialect(path="/completions", body=_vllm_body, told=_vllm_told, computed=_vllm_computed)
