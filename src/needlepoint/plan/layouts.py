"""How each layout makes the prompts of one text: `maker` gives a function from a cell to its prompt.

Where needles stand depends on the whole grid for `lattice` and `woven`, never on which of its cells are asked: a cell's
prompt is the same in a part of the run, in a resumed one, and when it is made again alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Protocol

from ..types import Cell, Corpus
from . import lattice, woven
from .exact import Spot, fit
from .haystack import Haystack
from .keyed import KeyedFact, keyed_facts
from .needles import Facts
from .parity import ParityText, build
from .prompt import Frame, Prompt
from .splice import Splicer

FrameOf = Callable[[str, str], Frame]
"""(question, salt) → what stands around a context."""
_SAMPLE = 24  # facts that are looked at to know how long one can be


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What the prompts of one text and replicate are made from."""

    corpus: Corpus
    replicate: int
    seed: int
    haystack: Haystack
    frame: FrameOf
    cells: Sequence[Cell]
    """All cells of the text's grid."""


class Maker(Protocol):
    """Makes the prompts of one text. `salt` goes in front of all, where shared prefixes are not wanted."""

    splicer: Splicer

    def __call__(self, cell: Cell, salt: str) -> Prompt: ...


class Classic:
    """The needles of each cell by themselves."""

    def __init__(self, ground: Ground, facts: Facts) -> None:
        self.splicer = Splicer(ground.haystack)
        self.ground = ground
        self.facts = facts

    def __call__(self, cell: Cell, salt: str) -> Prompt:
        return self._fit(cell, salt, None)

    def _fit(self, cell: Cell, salt: str, at: Spot | None) -> Prompt:
        around = self.ground.frame(self.facts.question, salt)
        needles, question = self.facts.needles, self.facts.question
        replicate = self.ground.replicate
        return fit(self.splicer, around, cell=cell, replicate=replicate, needles=needles, question=question, at=at)


class Parity:
    """EvalScope's prompts."""

    def __init__(self, ground: Ground, facts: Facts) -> None:
        self._text = ParityText(ground.haystack, facts.needles)
        self.splicer = self._text.splicer
        self._ground = ground
        self._question = facts.question

    def __call__(self, cell: Cell, salt: str) -> Prompt:
        around = self._ground.frame(self._question, salt)
        return build(self._text, around, cell=cell, replicate=self._ground.replicate, question=self._question)


class Lattice(Classic):
    """One needle, at places that lengths have in common."""

    @cached_property
    def _spots(self) -> dict[Cell, Spot]:
        around = self.ground.frame(self.facts.question, "")
        taken = self.splicer.count(around.before) + self.splicer.count(around.after)
        taken += self.splicer.count(" " + self.facts.needles[0].text)
        rooms = {cell: max(1, cell.context_length - taken) for cell in self.ground.cells}
        return lattice.spots(self.ground.haystack, rooms)

    def __call__(self, cell: Cell, salt: str) -> Prompt:
        return replace(self._fit(cell, salt, self._spots[cell]), layout="lattice")


class Woven:
    """Each cell's own needle, all in one stream, or in a few."""

    def __init__(self, ground: Ground, family: str) -> None:
        self.splicer = Splicer(ground.haystack)
        self._ground = ground
        self._family = family

    @cached_property
    def _streams(self) -> dict[Cell, woven.Stream]:
        ground, count = self._ground, self.splicer.count
        name = f"{ground.corpus.subset}:{ground.replicate}"
        longest: int | None = None
        drawn = keyed_facts(
            self._family,
            ground.corpus.language,
            random.Random(f"{ground.seed}:woven:{name}"),
            ground.corpus.text.__contains__,
            lambda text: longest is None or count(" " + text) <= longest,
        )
        facts: list[KeyedFact] = list(islice(drawn, _SAMPLE))
        sizes = [count(" " + fact.needle.text) for fact in facts]
        longest = max(sizes)
        if (bearable := woven.bearable(min(cell.context_length for cell in ground.cells))) < longest:
            longest = max(bearable, min(sizes))  # a vocabulary that spells this language at length: take short facts
            facts = [fact for fact, size in zip(facts, sizes, strict=True) if size <= longest]
        taken = sum(self._taken(fact) for fact in facts) // len(facts)
        rooms = {cell: max(1, cell.context_length - taken) for cell in ground.cells}
        found: dict[Cell, woven.Stream] = {}
        for number, sites in enumerate(woven.sites(rooms, longest)):
            facts += islice(drawn, max(0, len(sites) - len(facts)))
            pairing = random.Random(f"{ground.seed}:pairing:{name}:{number}")
            stream = woven.weave(self.splicer, sites, facts[: len(sites)], self._room, pairing)
            facts = facts[len(sites) :]
            found |= dict.fromkeys(stream.asked, stream)
        return found

    def _taken(self, fact: KeyedFact) -> int:
        """Tokens around the text of a prompt that asks for this fact, and of its needle."""
        around, count = self._ground.frame(fact.question, ""), self.splicer.count
        return count(around.before) + count(around.after) + woven.size_of(fact.needle, self.splicer)

    def _room(self, cell: Cell, fact: KeyedFact) -> int:
        return max(1, cell.context_length - self._taken(fact))

    def __call__(self, cell: Cell, salt: str) -> Prompt:
        stream = self._streams[cell]
        around = self._ground.frame(stream.facts[stream.asked[cell]].question, salt)
        return woven.draw(cell, stream, self.splicer, around, replicate=self._ground.replicate)
