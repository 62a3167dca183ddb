"""The order in which a run asks its prompts, and what they will cost whoever keeps prefixes.

One text and replicate at a time: prompts of others share no more than the chat's first words. Only positions are held
meanwhile, and the texts of one haystack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from .ask.files import FilePrompt
from .config import TaskConfig
from .plan.order import Forecast, Order, order
from .plan.prompt import Prompt
from .types import CacheKind, Endpoint, Segment

Asked = Prompt | FilePrompt
_BLOCK = 16
"""Tokens of a file's prompt that are compared at a time."""


@dataclass(frozen=True, slots=True)
class _Branch:
    segments: Sequence[Segment]
    fork: int


class Turns:
    """Prompts in the order that is best for a `cache`; iterate to get (prompt, its wave).

    `forecast` is of the whole once all were iterated, whether or not they are still `open` (to be asked); None where
    a prompt's tokens are not known. `as_given` keeps the order of the plan.
    """

    def __init__(
        self,
        prompts: Iterable[Asked],
        cache: CacheKind,
        *,
        as_given: bool = False,
        capacity_tokens: int | None = None,
        block: int = 1,
        is_open: Callable[[Asked], bool] | None = None,
        on_prompt: Callable[[Asked], None] | None = None,
    ) -> None:
        self._prompts = prompts
        self._cache: CacheKind = cache
        self._as_given = as_given
        self._capacity = capacity_tokens
        self._block = block
        self._is_open = is_open
        self._on_prompt = on_prompt or (lambda prompt: None)
        self._last: Sequence[Segment] = ()
        self._known = True
        self._forecast: Forecast | None = None

    @classmethod
    def of(
        cls,
        config: TaskConfig,
        prompts: Iterable[Asked],
        cache: CacheKind,
        endpoint: Endpoint | None = None,
        **hooks: Any,
    ) -> Turns:
        """The turns of a run with these settings. A model whose name says no more than what cache it may have, and one
        that is not known to keep prefixes, is asked in the same order, but for nothing is waited."""
        facts = {} if endpoint is None else endpoint.facts
        sure = config.cache_tokens is not None or (endpoint is not None and "prefixes" in endpoint.capabilities)
        told, block = facts.get("cache_tokens"), facts.get("cache_block")
        return cls(
            prompts,
            "none" if config.no_reuse else "slot" if cache == "radix" and not sure else cache,
            as_given=config.order == "as-given",
            capacity_tokens=config.cache_tokens or (told * 9 // 10 if isinstance(told, int) else None),  # answers, too
            block=block if isinstance(block, int) else 1,
            **hooks,
        )

    @property
    def forecast(self) -> Forecast | None:
        return self._forecast if self._known else None

    def __iter__(self) -> Iterator[tuple[Asked, int]]:
        self._forecast, self._known, self._last = Forecast(), True, ()
        wave = 0
        for group in self._groups():
            for prompt in group:
                self._on_prompt(prompt)
            branches = [_branch(prompt) for prompt in group]
            whole = self._order(branches)
            self._add(branches, whole)
            still = list(range(len(group)))
            found = whole
            if self._is_open is not None:
                still = [number for number in still if self._is_open(group[number])]
                if len(still) < len(group):
                    found = self._order([branches[number] for number in still])
            for numbers in found.waves:
                for number in numbers:
                    yield group[still[number]], wave
                wave += 1
            if self._as_given or self._cache not in ("radix", "points"):
                wave = 0  # no need to wait for anything

    def _groups(self) -> Iterator[list[Asked]]:
        """Planned prompts by text and replicate; those of a file all together, in whatever order they stand there."""
        files: list[Asked] = []
        for key, group in groupby(self._prompts, key=_group):
            if key is None:
                files += group
            else:
                yield list(group)
        if files:
            yield files

    def _order(self, branches: Sequence[_Branch]) -> Order:
        return order(branches, self._cache, as_given=self._as_given, capacity_tokens=self._capacity, block=self._block)

    def _add(self, branches: Sequence[_Branch], found: Order) -> None:
        if any(not branch.segments for branch in branches):
            self._known = False
        if not self._known or self._forecast is None or not branches:
            return
        first = branches[found.sequence[0]].segments
        shared = _shared(self._last, first)
        self._forecast = self._forecast.plus(found.forecast, shared=shared, kept=self._cache != "none")
        self._last = branches[found.sequence[-1]].segments


def prefix_facts(forecast: Forecast | None) -> dict[str, int] | None:
    """What a report says of the plan; None where it isn't known."""
    if forecast is None:
        return None
    return {
        "naive_tokens": forecast.naive_tokens,
        "bound_tokens": forecast.bound_tokens,
        "planned_tokens": forecast.planned_tokens,
    }


def _group(prompt: Any) -> tuple[str, int] | None:
    return (prompt.cell.subset, prompt.replicate) if isinstance(prompt, Prompt) else None


def _branch(prompt: Asked) -> _Branch:
    if isinstance(prompt, Prompt):
        return _Branch(prompt.segments, prompt.fork)
    if prompt.n_tokens is None:
        return _Branch((), 0)
    ids = prompt.token_ids()
    blocks = (ids[at : at + _BLOCK] for at in range(0, len(ids), _BLOCK))
    return _Branch([Segment(block.tobytes().hex(), len(block)) for block in blocks], 0)


def _shared(one: Sequence[Segment], other: Sequence[Segment]) -> int:
    """Tokens that two prompts have in common at their beginning."""
    total = 0
    for mine, theirs in zip(one, other, strict=False):
        if (mine.source, mine.start) != (theirs.source, theirs.start):
            break
        total += min(mine.n_tokens, theirs.n_tokens)
        if mine.n_tokens != theirs.n_tokens:
            break
    return total
