"""Which trials of two runs are the same question: one place decides it, for comparisons and for the page. Pure.

Two trials pair where they stand in the same place (subset, length, depth, replicate, repeat, layout) and asked the same
prompt, by its sha256, for the same answers. Where an imported run doesn't know its prompts, the place decides, and the
question and answers as far as both tell them; such pairs are counted as unproven.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from ..types import Reply, Score, Trial

Row = tuple[Trial, Reply, Score]


@dataclass(frozen=True, slots=True)
class Pair:
    """One question, and what both runs made of it."""

    one: Row
    other: Row

    @property
    def trial(self) -> Trial:
        return self.one[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Two runs, question by question.

    `differing` are those that stand in the same place and asked something else: such runs are no pair at all, whatever
    else they share. `only_one` and `only_other` were asked in one run alone, `unproven` counts the pairs whose prompts
    are not known to be the same.
    """

    pairs: Sequence[Pair] = field(repr=False)
    only_one: Sequence[Row] = field(repr=False)
    only_other: Sequence[Row] = field(repr=False)
    differing: Sequence[Pair] = field(repr=False)
    unproven: int


def pair_key(trial: Trial) -> str:
    """16 hex digits that two trials share where they are the same question."""
    key = repr((place_of(trial), trial.layout, trial.prompt_sha256))
    return hashlib.blake2b(key.encode(errors="replace"), digest_size=8).hexdigest()


def place_of(trial: Trial) -> tuple[str, int, float, int, int]:
    """Where in the grid a trial stands, and the how manieth it is there."""
    return trial.subset, trial.context_length, round(trial.depth_percent, 4), trial.replicate, trial.repeat


def question_of(trial: Trial) -> Hashable:
    """The same for every repeat of one prompt."""
    return *place_of(trial)[:-1], trial.prompt_sha256


def layouts_of(rows: Iterable[Row]) -> frozenset[str]:
    return frozenset(trial.layout for trial, _, _ in rows)


def pair_rows(one: Sequence[Row], other: Sequence[Row]) -> Pairing:
    """Pair two runs' rows, in the order of `one`."""
    by_key: dict[str, list[int]] = {}
    by_place: dict[Hashable, list[int]] = {}
    for number, (trial, _, _) in enumerate(other):
        by_key.setdefault(pair_key(trial), []).append(number)
        by_place.setdefault(place_of(trial), []).append(number)
    taken: set[int] = set()
    pairs: list[Pair] = []
    differing: list[Pair] = []
    only_one: list[Row] = []
    unproven = 0
    for row in one:
        trial = row[0]
        here = [number for number in by_place.get(place_of(trial), []) if number not in taken]
        same = [number for number in by_key.get(pair_key(trial), []) if number not in taken]
        match = next((number for number in [*same, *here] if _same_question(trial, other[number][0])), None)
        if match is None:
            if here:
                taken.add(here[0])
                differing.append(Pair(row, other[here[0]]))
            else:
                only_one.append(row)
            continue
        taken.add(match)
        pairs.append(Pair(row, other[match]))
        unproven += trial.prompt_sha256 is None or other[match][0].prompt_sha256 is None
    left = [row for number, row in enumerate(other) if number not in taken]
    return Pairing(pairs=pairs, only_one=only_one, only_other=left, differing=differing, unproven=unproven)


def _same_question(one: Trial, other: Trial) -> bool:
    if one.layout != other.layout:
        return False
    if one.prompt_sha256 is not None and other.prompt_sha256 is not None:
        return one.prompt_sha256 == other.prompt_sha256 and one.answers == other.answers
    asked = one.question, other.question
    answers = one.answers, other.answers
    return (asked[0] == asked[1] or not all(asked)) and (answers[0] == answers[1] or not all(answers))
