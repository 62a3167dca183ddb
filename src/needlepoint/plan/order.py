"""In which order prompts are asked, so that whatever keeps prefixes computes each shared token once.

Pure: from the prompts' segments, without their texts. A cache of one slot needs depth-first order and nothing else. A
radix cache, asked many at a time, needs rounds: a prompt that shares tokens with another must not start beside it. A
cache of recorded points needs them recorded in ascending order, each before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..types import CacheKind
from .trie import Branch, Node, Trie, pairs

ROOM_FOR = 8
"""Longest prompts that a radix cache of unknown size is taken to hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Tokens to be prefilled: by whoever keeps nothing, at best, and in the planned order; the same as attention.

    `*_attention` are query-key pairs: what a token costs grows with its place.
    """

    naive_tokens: int = 0
    bound_tokens: int = 0
    planned_tokens: int = 0
    naive_attention: int = 0
    bound_attention: int = 0

    def plus(self, other: Forecast, *, shared: int = 0, kept: bool = True) -> Forecast:
        """Both together, where they have their first `shared` tokens in common, which whoever prefills has `kept`."""
        return Forecast(
            naive_tokens=self.naive_tokens + other.naive_tokens,
            bound_tokens=self.bound_tokens + other.bound_tokens - shared,
            planned_tokens=self.planned_tokens + other.planned_tokens - shared * kept,
            naive_attention=self.naive_attention + other.naive_attention,
            bound_attention=self.bound_attention + other.bound_attention - pairs(shared),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Prompts by their numbers, in waves: none of a wave begins before all of the wave before it have ended."""

    waves: tuple[tuple[int, ...], ...]
    forecast: Forecast

    @property
    def sequence(self) -> tuple[int, ...]:
        return tuple(item for wave in self.waves for item in wave)


def order(
    prompts: Sequence[Branch],
    cache: CacheKind,
    *,
    as_given: bool = False,
    capacity_tokens: int | None = None,
    block: int = 1,
) -> Order:
    """The order for a kind of cache, and what it will prefill.

    `capacity_tokens` is what a radix cache holds: prompts are then taken in groups whose tokens fit, each group with
    its own rounds. `block` is what caches share by (vLLM: 16 tokens).
    """
    trie = Trie(prompts)
    waves: list[list[int]]
    if as_given or cache == "none":
        waves = [list(range(len(prompts)))]
    elif cache == "slot":
        waves = [trie.ascending()]
    elif cache == "points":
        waves = _recorded(trie)
    else:
        waves = []
        for group in groups(prompts, trie, capacity_tokens):
            rounds = Trie([prompts[item] for item in group]).paths()
            waves += [[group[item] for item in round_] for round_ in rounds]
    found = tuple(tuple(wave) for wave in waves if wave)
    return Order(waves=found, forecast=forecast(trie, found, cache, block=block, one_by_one=as_given))


def groups(prompts: Sequence[Branch], trie: Trie, capacity_tokens: int | None) -> list[list[int]]:
    """The prompts in ascending order, cut into groups whose tries fit a cache of `capacity_tokens`."""
    lengths = [leaf.end for leaf in trie.leaves]
    capacity = capacity_tokens or ROOM_FOR * max(lengths, default=0)
    found: list[list[int]] = []
    size = 0
    before: int | None = None
    for item in trie.ascending():
        new = lengths[item] - (0 if before is None else _common(trie.leaves[before], trie.leaves[item]))
        if before is None or size + new > capacity:
            found.append([])
            size, new = 0, lengths[item]
        found[-1].append(item)
        size += new
        before = item
    return found


def forecast(
    trie: Trie, waves: Sequence[Sequence[int]], cache: CacheKind, *, block: int = 1, one_by_one: bool = False
) -> Forecast:
    """What asking in these waves prefills. `one_by_one`: each prompt finds what the one before it has left."""
    if one_by_one:
        waves = [(item,) for wave in waves for item in wave]
    lengths = [leaf.end for leaf in trie.leaves]
    naive = sum(lengths)
    planned = naive
    if cache == "slot":
        asked = [item for wave in waves for item in wave]
        planned -= sum(_found(trie.leaves[one], trie.leaves[other]) for one, other in pairwise(asked))
    elif cache == "radix":
        planned -= sum(
            min(found - found % block, _last_block(lengths[item], block)) for item, found in _kept(trie, waves)
        )
    elif cache == "points":
        planned -= sum(_read(trie, waves))
    return Forecast(
        naive_tokens=naive,
        bound_tokens=trie.n_tokens,
        planned_tokens=planned,
        naive_attention=sum(map(pairs, lengths)),
        bound_attention=trie.attention,
    )


def _found(before: Node, now: Node) -> int:
    """Tokens of a prompt that a slot holds from the one before. The same prompt again is computed whole: its last token
    alone would be rounded in another way."""
    common = _common(before, now)
    return 0 if common == before.end == now.end else min(common, now.end - 1)


def _last_block(length: int, block: int) -> int:
    """Tokens in front of the last block: that one is always computed, since its end is what answers."""
    return (length - 1) // block * block


def _kept(trie: Trie, waves: Iterable[Sequence[int]]) -> Iterable[tuple[int, int]]:
    """(prompt, how many of its tokens an earlier wave has computed)."""
    seen: set[Node] = set()
    for wave in waves:
        for item in wave:
            yield item, next((node.end for node in trie.leaves[item].path() if node in seen), 0)
        for item in wave:
            for node in trie.leaves[item].path():
                if node in seen:
                    break
                seen.add(node)


def _read(trie: Trie, waves: Iterable[Sequence[int]]) -> Iterable[int]:
    """How many tokens each prompt finds recorded: up to the last point of an earlier wave that stands in it."""
    points: dict[Node, list[int]] = {}
    for wave in waves:
        for item in wave:
            marks = [at for node in trie.leaves[item].path() for at in points.get(node, ())]
            yield max(marks, default=0)
        for item in wave:
            fork = trie.forks[item]
            node = next((one for one in trie.leaves[item].path() if one.start < fork <= one.end), None)
            if node is not None:
                points.setdefault(node, []).append(fork)


def _recorded(trie: Trie) -> list[list[int]]:
    """Ascending; of those that leave at one point the first goes ahead and records it, the others follow together."""
    waves: list[list[int]] = []
    before: tuple[int, int] | None = None
    for item in trie.ascending():
        fork = trie.forks[item]
        node = next((one for one in trie.leaves[item].path() if one.start < fork <= one.end), trie.root)
        place = id(node), fork
        if place != before:
            waves += [[item], []]
        else:
            waves[-1].append(item)
        before = place
    return waves


def _common(one: Node, other: Node) -> int:
    above = set(one.path())
    return next(node.end for node in other.path() if node in above)
