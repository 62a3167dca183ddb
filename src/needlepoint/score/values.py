"""Answers that are one value: a number, a date, a UUID, a code, a name or a few words. Where an answer states them, and
what else of the same kind it names.

What counts as another value depends on the kind: any other UUID, any other date, a number of about as many digits, a
code of the same shape. Few words have no shape: there another value is what a list sets beside the one, or another
drawn code name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ..plan.vocabulary import EN_CODE_ADJECTIVES, EN_CODE_NOUNS, ZH_CODE_ADJECTIVES, ZH_CODE_NOUNS
from .dates import Day, date_of, dates
from .folding import Folded, Words, has_cjk, line_of, phrase_of, places_of_words
from .lexicon import stem
from .lists import bullets_beside, words_beside
from .numerals import Numeral, number_of, numerals, spaced, spelled

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mention:
    """A value that a folded text names; `value` tells equal ones from different ones."""

    start: int
    end: int
    value: str


class Said:
    """An answer as the kinds read it: folded once, its words in a line once, and only where they are needed."""

    def __init__(self, folded: Folded) -> None:
        self.folded = folded
        self.text = folded.text

    @cached_property
    def words(self) -> Words:
        return line_of(self.text)

    @cached_property
    def stems(self) -> Words:
        return Words(f" {' '.join(map(stem, self.words.line.split()))} ", self.text)

    @cached_property
    def numerals(self) -> list[Numeral]:
        return numerals(self.text)

    @cached_property
    def has_cjk(self) -> bool:
        return has_cjk(self.text)


# --- kinds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NumberValue:
    digits: str

    def stated(self, said: Said) -> list[Mention]:
        plain = self.digits.lstrip("0") or "0"
        found = [
            Mention(one.start, one.end, self.digits)
            for one in said.numerals
            if any(reading == self.digits or (reading.lstrip("0") or "0") == plain for reading in one.readings)
        ]
        if not found and (span := spaced(said.text, self.digits)):
            found = [Mention(*span, self.digits)]
        if not found:
            found = [Mention(one.start, one.end, self.digits) for one in spelled(said.text) if plain in one.readings]
        return found

    def others(self, said: Said) -> list[Mention]:
        n = len(self.digits)
        found = [one for one in said.numerals if self.digits not in one.readings]
        if n >= _SHORT and self.digits.isdigit():
            slack = 1 if n > _SHORT else 0
            return [
                Mention(one.start, one.end, one.readings[-1])
                for one in found
                if one.readings[-1].isdigit()
                and abs(len(one.readings[-1]) - n) <= slack
                and (_is_year(self.digits) or not _is_year(one.readings[-1]))
            ]
        return [*_beside(self.stated(said), [Mention(one.start, one.end, one.readings[-1]) for one in found], said)]


_SHORT = 4
_YEARS = range(1500, 2100)


def _is_year(digits: str) -> bool:
    return len(digits) == _SHORT and int(digits) in _YEARS


@dataclass(frozen=True, slots=True)
class DateValue:
    day: Day

    def stated(self, said: Said) -> list[Mention]:
        return [Mention(one.start, one.end, str(self.day)) for one in dates(said.text) if self.day in one.readings]

    def others(self, said: Said) -> list[Mention]:
        month = (*self.day[:2], None)
        return [
            Mention(one.start, one.end, str(sorted(map(str, one.readings))))
            for one in dates(said.text)
            if one.readings and self.day not in one.readings and month not in one.readings
        ]

    def parts(self, said: Said) -> Mention | None:
        """Where the month is told without the day."""
        month = (*self.day[:2], None)
        return next((Mention(one.start, one.end, "") for one in dates(said.text) if month in one.readings), None)


_UUID = re.compile(r"(?<![0-9a-z])[0-9a-f]{8}(?:[-\s]{0,2}[0-9a-f]{4}){3}[-\s]{0,2}[0-9a-f]{12}(?![0-9a-z])")


@dataclass(frozen=True, slots=True)
class UuidValue:
    digits: str

    def stated(self, said: Said) -> list[Mention]:
        return [one for one in _uuids(said.text) if one.value == self.digits]

    def others(self, said: Said) -> list[Mention]:
        return [one for one in _uuids(said.text) if one.value != self.digits]


def _uuids(text: str) -> Iterable[Mention]:
    for match in _UUID.finditer(text):
        yield Mention(match.start(), match.end(), re.sub(r"[-\s]", "", match[0]))


_CODE = re.compile(r"[a-z0-9]+(?:[-_/.:#+@]+[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class CodeValue:
    """Letters and digits together, such as XK-4471-B, whatever stands between its parts."""

    letters: str
    shape: str
    phrase: str

    def stated(self, said: Said) -> list[Mention]:
        found = [one for one in _codes(said.text) if one.value == self.letters]
        return found or [Mention(*span, self.letters) for span in said.words.find(self.phrase)]

    def others(self, said: Said) -> list[Mention]:
        return [one for one in _codes(said.text) if one.value != self.letters and _shape(one.value) == self.shape]


def _codes(text: str) -> Iterable[Mention]:
    for match in _CODE.finditer(text):
        yield Mention(match.start(), match.end(), re.sub(r"[^a-z0-9]", "", match[0]))


def _shape(letters: str) -> str:
    return re.sub(r"\d", "9", re.sub(r"[a-z]", "a", letters))


@dataclass(frozen=True, slots=True)
class PhraseValue:
    """A few words that only count together and in order: a name, a code name."""

    phrase: str
    stems: str = ""
    is_code_name: bool = False

    def stated(self, said: Said) -> list[Mention]:
        spans = said.words.find(self.phrase)
        if not spans and self.stems[1:3] in said.text:
            spans = said.stems.find(self.stems) or said.words.find(f" {self.phrase.replace(' ', '')} ")
        return [Mention(*span, self.phrase) for span in spans]

    def others(self, said: Said) -> list[Mention]:
        if self.is_code_name:
            return [one for one in _code_names(said) if one.value != self.phrase]
        spans = {
            span
            for one in self.stated(said)
            for span in (
                *words_beside(said.text, one.start, one.end),
                *bullets_beside(said.text, one.start, one.end),
            )
        }
        return [Mention(*span, said.text[slice(*span)]) for span in sorted(spans)]


_EN_ADJECTIVES = frozenset(EN_CODE_ADJECTIVES)
_EN_NOUNS = frozenset(EN_CODE_NOUNS)
_ZH_NAME = re.compile(f"(?:{'|'.join(ZH_CODE_ADJECTIVES)})(?:{'|'.join(ZH_CODE_NOUNS)})")


def _is_code_name(phrase: str) -> bool:
    words = phrase.split()
    if len(words) == 2 and words[0] in _EN_ADJECTIVES and words[1] in _EN_NOUNS:
        return True
    return _ZH_NAME.fullmatch("".join(words)) is not None


def _code_names(said: Said) -> Iterable[Mention]:
    """Drawn code names in a text. They are pairs of everyday words, so few texts hold one by chance."""
    words = said.words.line.split()
    places: list[Span] | None = None
    for at, (one, other) in enumerate(pairwise(words)):
        if one in _EN_ADJECTIVES and other in _EN_NOUNS:
            places = places or places_of_words(said.text)
            yield Mention(places[at][0], places[at + 1][1], f" {one} {other} ")
    if said.has_cjk:
        for match in _ZH_NAME.finditer(said.text):
            yield Mention(match.start(), match.end(), f" {' '.join(match[0])} ")


def _beside(stated: list[Mention], found: list[Mention], said: Said) -> Iterable[Mention]:
    """Those of `found` that stand beside what is stated as another choice: 6 or 7; 5, 6, 7."""
    chain = sorted([*stated, *found], key=lambda one: one.start)
    values = {one.value for one in stated}
    for one, other in pairwise(chain):
        between = said.text[one.end : other.start]
        if _CHOICE.fullmatch(between):
            yield from (each for each in (one, other) if each.value not in values)


_CHOICE = re.compile(
    r"(?:\s*(?:[ap]m|%|o'clock))?\s*(?:,|,?\s*\bor\b|/|、|或者?|还是|,\s*and)\s*(?:maybe |perhaps |possibly )?"
)

Value = NumberValue | DateValue | UuidValue | CodeValue | PhraseValue


# --- which kind -------------------------------------------------------------------------------------------------------

_LINKS = frozenset("a an the of to in on at by for from with and or is was are were as that his her its their".split())
_MOST_WORDS = 4
_MOST_CHARACTERS_ZH = 8


def value_of(answer: str, fold: Callable[[str], Folded]) -> Value | None:
    """An expected answer as a value; None where it is a sentence or more than a few words."""
    folded = fold(answer).text.strip()
    if len(folded) > 120:
        return None
    if (number := number_of(folded)) is not None:
        return NumberValue(number)
    if (day := date_of(folded)) is not None:
        return DateValue(day)
    bare = folded.strip("\"'`*.,;:!?()[]{}<> ")
    if (match := _UUID.fullmatch(bare)) is not None:
        return UuidValue(re.sub(r"[-\s]", "", match[0]))
    phrase = phrase_of(answer)
    if not phrase:
        return None
    if _CODE.fullmatch(bare) and re.search(r"\d", bare) and re.search(r"[a-z]", bare):
        letters = re.sub(r"[^a-z0-9]", "", bare)
        return CodeValue(letters, _shape(letters), phrase)
    if has_cjk(folded):
        few = len(phrase.split()) <= _MOST_CHARACTERS_ZH and not re.search(r"[，。；,;]", bare)
        return PhraseValue(phrase, phrase, is_code_name=_is_code_name(phrase)) if few else None
    words = phrase.split()
    if len(words) > _MOST_WORDS or _LINKS.intersection(words[1:]):
        return None
    if words[0] in ("a", "an", "the") and len(words) > 1:
        phrase = f" {' '.join(words[1:])} "
    stems = f" {' '.join(map(stem, phrase.split()))} "
    return PhraseValue(phrase, stems, is_code_name=_is_code_name(phrase))
