"""A task and its plan: which prompts a benchmark asks, in which order, made one at a time.

`Plan` is the whole of this room's product: it knows corpora, grid, needles and endpoint, and yields prompts lazily. Of
each haystack only one encoding is held while its prompts are made.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Literal

from ..errors import CorpusError, LengthError, UsageError
from ..text.boundaries import sentence_ends
from ..text.clean import clean, lookalike
from ..types import Cell, Corpus, Endpoint, Layout, LengthMode, Needle
from .grid import Grid, apply_limit
from .haystack import Haystack
from .keyed import WOVEN_SETS
from .layouts import Classic, Ground, Lattice, Maker, Parity, Woven
from .needles import FIXED_SETS, SEED_QUESTION, Facts, draw_facts, fixed_facts, given_facts
from .prompt import PROMPT_TEMPLATE, SYSTEM_PROMPT, Frame, Prompt, check_template, frame

Verify = Literal["none", "sample", "all"]
_OFFSET_REACH = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to measure, as values: everything that decides the prompts, apart from the corpora and the tokenizer."""

    grid: Grid
    dataset: str = "needle_haystack"
    layout: Layout = "classic"
    length_mode: LengthMode = "exact"
    needle_set: str = "seed"
    needle_count: int = 1
    needles: tuple[str, ...] | None = None
    question: str | None = None
    system_prompt: str | None = SYSTEM_PROMPT
    prompt_template: str = PROMPT_TEMPLATE
    replicates: int = 1
    repeats: int = 1
    seed: int = 0
    limit: float | None = None
    max_tokens: int | None = None
    bust: bool = False
    """Whether every prompt begins with a salt of its own, so that none shares a prefix with another."""

    @property
    def woven_family(self) -> str:
        """How alike the needles of the layout `woven` are: `distinct` where nothing is said."""
        return self.needle_set if self.needle_set in WOVEN_SETS else WOVEN_SETS[0]

    def facts(self, corpus: Corpus, replicate: int) -> Facts:
        """The needles and the question of one replicate."""
        if self.needles is not None:
            return given_facts(self.needles, self.question or SEED_QUESTION, unique=self.length_mode == "exact")
        if self.needle_set in FIXED_SETS:
            facts = fixed_facts(self.needle_set, corpus.language)
        else:
            rng = random.Random(f"{self.seed}:facts:{corpus.subset}:{replicate}")
            facts = draw_facts(self.needle_set, self.needle_count, corpus.language, rng, corpus.text.__contains__)
        return facts if self.question is None else replace(facts, question=self.question)


@dataclass(frozen=True, slots=True)
class _Item:
    corpus: Corpus
    replicate: int
    cell: Cell


class Plan:
    """The prompts of a task. Iterate to make them; `len()` counts them without making any."""

    def __init__(self, task: Task, corpora: Sequence[Corpus], endpoint: Endpoint, *, verify: Verify = "sample") -> None:
        check_template(task.prompt_template)
        _check_counts(task)
        if not corpora:
            raise UsageError("There is no corpus to hide needles in.")
        self.task = task
        self.corpora = tuple(corpora)
        self.endpoint = endpoint
        self.verify: Verify = verify
        self._items = tuple(item for corpus in self.corpora for item in self._items_of(corpus))
        self._notes: dict[str, None] = {}
        self._frames: dict[str, Frame] = {}
        if merged := task.grid.note():
            self._note(merged)
        for note in endpoint.notes:
            self._note(note)
        if endpoint.needs_system and not task.system_prompt:
            self._note(
                f"Without a system prompt the chat template {endpoint.template_name} writes one of its own, which "
                "differs between revisions of a model: lengths are unproven."
            )
        self._check_needles()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Each cell once."""
        return tuple(dict.fromkeys(item.cell for item in self._items))

    def places(self) -> Iterator[Cell]:
        """The cell of each prompt, in order, without making any."""
        for item in self._items:
            for _ in range(self.task.repeats):
                yield item.cell

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know; grows while prompts are made (a text that had to be repeated, say)."""
        return tuple(self._notes)

    def __len__(self) -> int:
        return len(self._items) * self.task.repeats

    def __iter__(self) -> Iterator[Prompt]:
        for _, group in groupby(self._items, key=lambda item: (item.corpus.subset, item.replicate)):
            yield from self._group(list(group))

    def only(self, place: tuple[str, int, float], replicate: int) -> Iterator[Prompt]:
        """The prompts of one cell and replicate. Its haystack is as long as in the whole plan, so equal to the byte."""
        return self.among({(*place, replicate)})

    def among(self, places: Collection[tuple[str, int, float, int]]) -> Iterator[Prompt]:
        """The prompts of these (subset, length, depth, replicate), in the plan's order, and no others are made."""
        for _, group in groupby(self._items, key=lambda item: (item.corpus.subset, item.replicate)):
            items = list(group)
            keys = [(c.subset, c.context_length, c.depth_percent, items[0].replicate) for c in (i.cell for i in items)]
            wanted = [item.cell for item, key in zip(items, keys, strict=True) if key in places]
            if wanted:
                yield from self._group(items, only=frozenset(wanted))

    def _items_of(self, corpus: Corpus) -> Sequence[_Item]:
        cells = self.task.grid.cells(corpus.subset)
        items = [_Item(corpus, replicate, cell) for replicate in range(self.task.replicates) for cell in cells]
        return apply_limit(items, self.task.limit)

    def _group(self, items: Sequence[_Item], only: Collection[Cell] | None = None) -> Iterator[Prompt]:
        """The prompts of one subset and replicate: they share one haystack and its encoding."""
        corpus, make = items[0].corpus, self._maker(items)
        for number, item in enumerate(items):
            if only is not None and item.cell not in only:
                continue
            made: Prompt | None = None
            for repeat in range(self.task.repeats):
                if made is None or self.task.bust:
                    salt = self._salt(item, repeat) if self.task.bust else ""
                    made = self._checked(make, item.cell, salt, is_checked=self._is_checked(number, len(items)))
                yield replace(made, repeat=repeat, max_tokens=self.task.max_tokens, corpus=corpus)

    def _checked(self, make: Maker, cell: Cell, salt: str, *, is_checked: bool) -> Prompt:
        """A prompt, proven by a count of its whole text where it is one that is checked."""
        prompt = make(cell, salt)
        if not is_checked:
            return prompt
        exact = self.task.length_mode == "exact"
        recount = prompt.recount()
        if recount != prompt.n_tokens:  # joined windows misled: from here on encode whole prompts
            make.splicer.encode_whole()
            prompt = make(cell, salt)
            recount = prompt.recount()
        if recount != prompt.n_tokens or (exact and recount != cell.context_length):
            raise LengthError(
                f"The tokenizer {prompt.haystack.tokenizer.name!r} counts {recount} tokens in a prompt made to be "
                f"{prompt.n_tokens}: it gives different tokens for equal text. Use --length-mode evalscope."
            )
        return replace(prompt, recounted=True)

    def _maker(self, items: Sequence[_Item]) -> Maker:
        corpus, replicate = items[0].corpus, items[0].replicate
        cells = self.task.grid.cells(corpus.subset)
        asked = [item.cell for item in items]
        longest = max(cell.context_length for cell in (asked if self.task.layout == "classic" else cells))
        ground = Ground(
            corpus=corpus,
            replicate=replicate,
            seed=self.task.seed,
            haystack=self._haystack(corpus, replicate, longest),
            frame=self._frame,
            cells=cells,
        )
        if self.task.layout == "woven":
            return Woven(ground, self.task.woven_family)
        facts = self.task.facts(corpus, replicate)
        if self.task.length_mode == "evalscope":
            return Parity(ground, facts)
        return (Lattice if self.task.layout == "lattice" else Classic)(ground, facts)

    def _salt(self, item: _Item, repeat: int) -> str:
        cell = item.cell
        place = f"{cell.subset}:{cell.context_length}:{cell.depth_percent:g}:{item.replicate}:{repeat}"
        rng = random.Random(f"{self.task.seed}:salt:{place}")
        return f"{rng.getrandbits(48):012x}"

    def _alone(self, corpus: Corpus, cell: Cell, replicate: int) -> Iterator[Prompt]:
        """One prompt with a haystack of its own, of any cell and replicate."""
        return self._group([_Item(corpus, replicate, cell)])

    def _is_checked(self, number: int, count: int) -> bool:
        if self.verify == "sample":
            return self.task.length_mode == "exact" and number in (0, count - 1)
        return self.verify == "all"

    def _frame(self, question: str, salt: str) -> Frame:
        """The frame of a question, remembered where it has no salt: of most tasks there is only one."""
        found = None if salt else self._frames.get(question)
        if found is None:
            system, template = self.task.system_prompt, self.task.prompt_template
            if salt and system:
                system = f"{salt}\n{system}"
            elif salt:
                template = f"{salt}\n{template}"
            found = frame(self.endpoint, system_prompt=system, prompt_template=template, question=question)
            if not salt:
                self._frames[question] = found
        return found

    def _haystack(self, corpus: Corpus, replicate: int, n_tokens: int) -> Haystack:
        tokenizer = self.endpoint.tokenizer
        exact = self.task.length_mode == "exact"
        offset = self._offset(corpus, replicate)
        key = f"{corpus.sha256}:{tokenizer.fingerprint}:{offset}:{exact}"
        haystack = Haystack(
            corpus.text,
            tokenizer,
            n_tokens,
            fingerprint=hashlib.sha256(key.encode()).hexdigest()[:16],
            offset=offset,
            joint="\n\n" if exact else "\n",
            clean=partial(clean, special_tokens=tokenizer.special_tokens) if exact else None,
        )
        if haystack.repeats_after is not None and n_tokens > haystack.repeats_after:
            self._note(
                f"The text {corpus.name} ends after {haystack.repeats_after:,} tokens; longer contexts repeat it."
            )
        return haystack

    def _offset(self, corpus: Corpus, replicate: int) -> int:
        """Where a replicate's text begins: replicate 0 at the start, the others at some sentence's start."""
        if replicate == 0:
            return 0
        rng = random.Random(f"{self.task.seed}:offset:{corpus.subset}:{replicate}")
        at = rng.randrange(len(corpus.text))
        end = next(sentence_ends(corpus.text[at : at + _OFFSET_REACH]), 0)
        return (at + end) % len(corpus.text)

    def _check_needles(self) -> None:
        """Raise where a needle cannot be told from the text, before any prompt is made."""
        if self.task.layout == "woven":
            return  # its needles are drawn so that the text holds none of them
        for corpus in self.corpora:
            facts = self.task.facts(corpus, 0)
            for needle in facts.needles:
                if self.task.length_mode == "exact":
                    _check_spelling(needle, self.endpoint)
                if (plain := needle.text.strip()) in corpus.text:
                    self._meet_twin(plain, corpus)

    def _meet_twin(self, needle: str, corpus: Corpus) -> None:
        """The text already holds the needle: an error, but in the parity mode, whose prompts are what they are."""
        says = f"The text {corpus.name} already says {needle[:60]!r}, so finding it would prove nothing."
        if self.task.length_mode == "exact":
            raise CorpusError(f"{says} Choose another needle or corpus.")
        self._note(says)

    def _note(self, note: str) -> None:
        self._notes[note] = None


def _check_spelling(needle: Needle, endpoint: Endpoint) -> None:
    spelled = lookalike(needle.text, endpoint.tokenizer.special_tokens)
    if spelled is not None:
        raise UsageError(
            f"The needle {needle.text.strip()[:60]!r} spells {spelled!r}, a control token of "
            f"{endpoint.tokenizer.name!r}. Write it differently."
        )


def _check_counts(task: Task) -> None:
    for flag, value in (("--replicates", task.replicates), ("--repeats", task.repeats)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000:
            raise UsageError(f"{flag} must be a whole number from 1 to 10000, not {value!r}.")
    if task.layout == "classic":
        if task.needle_set in WOVEN_SETS:
            raise UsageError(f"The needle set {task.needle_set!r} is for --layout woven.")
        if task.bust and task.length_mode == "evalscope":
            raise UsageError("--cache bust changes every prompt, so none equals EvalScope's. Add --length-mode exact.")
        return
    if task.length_mode != "exact":
        raise UsageError(f"--layout {task.layout} has exact lengths only. Leave out --length-mode evalscope.")
    if task.layout == "lattice" and (task.needle_count > 1 or len(task.needles or ()) > 1):
        raise UsageError("--layout lattice hides one needle in a prompt. Give one, or use --layout classic.")
    if task.layout == "lattice" and task.needle_set in WOVEN_SETS:
        raise UsageError(f"The needle set {task.needle_set!r} is for --layout woven.")
    if task.layout == "woven" and (task.needles is not None or task.question is not None or task.needle_count > 1):
        raise UsageError(
            "--layout woven draws a needle and a question for each cell: --needle, --needle-count and "
            "--question don't go with it."
        )
    if task.layout == "woven" and task.needle_set not in ("seed", *WOVEN_SETS):
        raise UsageError(f"--layout woven has the needle sets {', '.join(WOVEN_SETS)}, not {task.needle_set!r}.")
