"""Sentences as answers: which words an answer must bring, however it puts them.

A needle such as "The best thing to do … is eat a sandwich and sit in Dolores Park" can be said in many ways. What
counts are its parts (eat a sandwich | sit in Dolores Park), and in each the words that carry it: names and numbers more
than nouns, nouns more than everyday verbs, words of the question not at all. A part is said where half of that weight
is said; the whole, where every part is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .folding import CJK, fold, has_cjk, phrase_of, words_of
from .lexicon import COMMON, FUNCTION, same, stem
from .numerals import number_of
from .sentences import sentences
from .values import Mention, NumberValue, Said

_HALF = 0.5
_MOST = 0.6
_STRONG = 0.5
_REACH = 3  # sentences that may share in saying it
_BEHIND = 0.5  # what a word weighs that only says where or when, where that was not asked
_AHEAD = 0.3  # and one that stands before what the question named
_PLACES = frozenset("in on at during with by near under over behind beside from within inside through along".split())


@dataclass(frozen=True, slots=True)
class Item:
    """A word, a number or a stretch of Chinese that an answer should bring."""

    forms: frozenset[str]
    weight: float
    part: int
    kind: str = "word"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a wording some sentences bring: the share of the parts, and where."""

    share: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence as what its answer must bring; `phrase` is the sentence itself, as it would be quoted."""

    phrase: str
    items: tuple[Item, ...]
    n_parts: int

    @property
    def number(self) -> NumberValue | None:
        """Its number, where it has just one."""
        found = [form for item in self.items if item.kind == "number" for form in item.forms]
        return NumberValue(found[0]) if len(found) == 1 else None

    def quoted(self, said: Said) -> list[Mention]:
        """Where it stands word by word."""
        return [Mention(start, end, self.phrase) for start, end in said.words.find(self.phrase)]

    def stated(self, said: Said) -> list[Mention]:
        """Where single sentences, or else a few together, say all of it."""
        if not self._may_be_in(said):
            return []
        spans = sentences(said.text)
        found = [
            Mention(one.start, one.end, self.phrase) for one in map(self._of(said), spans) if one and one.share >= 1
        ]
        if found:
            return found
        best = self._best(said, spans)
        return [Mention(best.start, best.end, self.phrase)] if best is not None and best.share >= 1 else []

    def partly(self, said: Said) -> Coverage | None:
        """The best that any few sentences bring, where that is at least a part."""
        return self._best(said, sentences(said.text)) if self._may_be_in(said) else None

    def _may_be_in(self, said: Said) -> bool:
        for item in self.items:
            if item.kind == "number" or (item.kind == "stretch" and any(form in said.text for form in item.forms)):
                return True
            if item.kind == "word" and item.weight >= _STRONG:
                if any(f" {form} " in said.stems.line for form in item.forms):
                    return True
                if said.has_cjk and any(form in said.text for form in item.forms if not form.isascii()):
                    return True
        return False

    def _best(self, said: Said, spans: Sequence[tuple[int, int]]) -> Coverage | None:
        measure = self._of(said)
        best: Coverage | None = None
        for n in range(1, _REACH + 1):
            for at in range(len(spans) - n + 1):
                one = measure((spans[at][0], spans[at + n - 1][1]))
                if one is not None and (best is None or one.share > best.share):
                    best = one
        return best

    def _of(self, said: Said) -> Callable[[tuple[int, int]], Coverage | None]:
        """What measures any span of the answer, which is read once."""
        hits = [(start, end, place) for place, item in enumerate(self.items) for start, end in _hits(item, said)]
        hits.sort()

        def measure(span: tuple[int, int]) -> Coverage | None:
            first, last = bisect_left(hits, (span[0],)), bisect_left(hits, (span[1],))
            inside = [one for one in hits[first:last] if one[1] <= span[1]]
            if not inside:
                return None
            seen = {place for _, _, place in inside}
            share = self._share(seen)
            return Coverage(share, inside[0][0], max(end for _, end, _ in inside)) if share else None

        return measure

    def _share(self, seen: set[int]) -> float:
        total = [0.0] * self.n_parts
        got = [0.0] * self.n_parts
        for place, item in enumerate(self.items):
            total[item.part] += item.weight
            if place in seen:
                got[item.part] += item.weight
        numbers = [place for place, item in enumerate(self.items) if item.kind == "number"]
        said = [part for part in range(self.n_parts) if got[part] >= _HALF * total[part] - 1e-9]
        all_of_it = len(said) == self.n_parts and sum(got) >= _MOST * sum(total) - 1e-9
        if all_of_it and all(place in seen for place in numbers):
            return 1.0
        if self.n_parts > 1:
            return min(len(said), self.n_parts - 1) / self.n_parts
        return _HALF if sum(got) >= _HALF * sum(total) - 1e-9 else 0.0


def _hits(item: Item, said: Said) -> list[tuple[int, int]]:
    if item.kind == "number":
        (digits,) = item.forms
        return [(one.start, one.end) for one in NumberValue(digits).stated(said)]
    if item.kind == "stretch":
        return _stretches(item, said.text)
    found = []
    for match in _WORD.finditer(said.text):
        if stem(match[0]) in item.forms:
            found.append(match.span())
    if not found and said.has_cjk:
        for form in item.forms:
            if not form.isascii():
                at = said.text.find(form)
                if at >= 0:
                    found.append((at, at + len(form)))
    return found


_WORD = re.compile(rf"[^\W_{CJK}]+(?:'[^\W_{CJK}]+)*")


def _stretches(item: Item, text: str) -> list[tuple[int, int]]:
    """Where a stretch of Chinese stands, or most of its pairs of characters close by."""
    (form,) = item.forms
    found = [match.span() for match in re.finditer(re.escape(form), text)]
    if found or len(form) < 4:
        return found
    pairs = _pairs(form)
    places = sorted(match.span() for pair in set(pairs) for match in re.finditer(re.escape(pair), text))
    for start, _ in places:
        near = [(begin, end) for begin, end in places if start <= begin and end <= start + 2 * len(form)]
        if len({text[begin:end] for begin, end in near}) >= _MOST * len(set(pairs)):
            return [(start, near[-1][1])]
    return []


# --- making one -------------------------------------------------------------------------------------------------------


def wording_of(answer: str, question: str, *, is_declared: bool) -> Wording | None:
    """An expected answer as a wording; None where it holds no word. `is_declared`: it isn't its needle's sentence."""
    phrase = phrase_of(answer)
    if not phrase:
        return None
    items = _chinese(answer, question, is_declared) if has_cjk(answer) else _worded(answer, question, is_declared)
    if not items:
        return None
    n_parts = 1 + max(item.part for item in items)
    return Wording(phrase, tuple(items), n_parts)


_TOKEN = re.compile(r"[^\W_]+(?:['’.,:/-][^\W_]+)*|[,;]")


def _worded(answer: str, question: str, is_declared: bool) -> list[Item]:
    asked = {stem(word) for word in words_of(fold(question).text)}
    wants_place = re.match(r"\W*(?:where|when|how|in which|at which|on which)\b", question, re.I) is not None
    drafts: list[tuple[str, str, float, int]] = []  # token, stem, weight, part
    part = 0
    is_behind = False
    is_first = True
    for match in _TOKEN.finditer(answer):
        token = match[0]
        folded = fold(token).text
        if token in ",;" or folded in ("and", "then", "&"):
            part, is_behind = part + 1, False
            continue
        if folded in _PLACES and drafts and not is_declared and not wants_place:
            is_behind = True
        weight = _weight(token, folded, is_first)
        is_first = False
        if weight:
            drafts.append((folded, stem(folded), weight * (_BEHIND if is_behind else 1), part))
    if not is_declared:
        drafts = _without_the_question(drafts, asked)
    parts = _merged(drafts)
    return [
        Item(frozenset({number}), weight, parts[place], "number")
        if (number := _number(word)) is not None
        else Item(same(base), weight, parts[place])
        for word, base, weight, place in drafts
    ]


def _number(word: str) -> str | None:
    return number_of(word) if word[:1].isdigit() or word in _NUMBERS else None


_NUMBERS = frozenset(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty thirty forty fifty sixty seventy eighty ninety".split()
)


def _weight(token: str, folded: str, is_first: bool) -> float:
    if folded in FUNCTION:
        return 0.0
    if _number(folded) is not None or any(char.isdigit() for char in folded):
        return 3.0
    if token[:1].isupper() and not is_first:
        return 1.5
    return 0.4 if folded in COMMON or stem(folded) in COMMON else 1.0


def _without_the_question(
    drafts: list[tuple[str, str, float, int]], asked: set[str]
) -> list[tuple[str, str, float, int]]:
    """The words that are news to who asked. What stands before the question's own words weighs less."""
    named = [place for place, draft in enumerate(drafts) if draft[1] in asked]
    news = [place for place, draft in enumerate(drafts) if draft[1] not in asked]
    if not news or sum(drafts[place][2] for place in news) < 1:
        return drafts
    behind = [place for place in news if named and place > named[0]]
    weighty = sum(drafts[place][2] for place in behind) >= 1
    found = []
    for place in news:
        word, base, weight, part = drafts[place]
        if weighty and place < named[0]:
            weight *= _AHEAD
        found.append((word, base, weight, part))
    return found


def _merged(drafts: Sequence[tuple[str, str, float, int]]) -> dict[int, int]:
    """Parts renumbered: one without a word of weight joins the one before; the first, the one behind."""
    weights: dict[int, float] = {}
    for _, _, weight, part in drafts:
        weights[part] = max(weights.get(part, 0), weight)
    renumbered: dict[int, int] = {}
    current = -1
    for part in sorted(weights):
        if weights[part] >= 0.75 or current < 0:
            current += 1
        renumbered[part] = current
    first = min(weights)
    if weights[first] < 0.75 and current > 0:
        renumbered = {part: max(0, number - 1) for part, number in renumbered.items()}
    return renumbered


_BREAK_ZH = re.compile(
    r"[，。；：、！？“”\"'（）()\s,.;:!?]|莫过于|一个|一只|一份|一下|一个个|这个|那个|时候|的|了|在|和|与|及|是|上|里|中|并|着|地|得|就|也|都|为|于|把|被|最|挑"
)


_KANA = re.compile(r"[\u3040-\u30ff]")
_BREAK_JA = re.compile(r"[、。「」『』！？\s,.!?()]|です|ます|でした|ました|である|は|が|を|の|に")
_LONG_ZH = 5
_STRONG_ZH = 3
_SINGLE = 0.4
_EACH = 0.5


def _chinese(answer: str, question: str, is_declared: bool) -> list[Item]:
    """Stretches between the little words, weighed by their characters; of a long one, its pairs of characters."""
    asked = fold(question).text
    told = fold(answer).text
    stretches = [one for one in (_BREAK_JA if _KANA.search(told) else _BREAK_ZH).split(told) if one]
    news = [one for one in stretches if one not in asked and not set(_pairs(one)) <= set(_pairs(asked))]
    if not is_declared and any(len(one) > 1 for one in news):
        stretches = news
    parts = _parts_zh(stretches) if is_declared else [0] * len(stretches)
    return [item for one, part in zip(stretches, parts, strict=True) for item in _stretch(one, part)]


def _parts_zh(stretches: Sequence[str]) -> list[int]:
    """Each stretch of some length is a part; a single character belongs to the next one, two to the one before."""
    strong = [place for place, one in enumerate(stretches) if len(one) >= _STRONG_ZH]
    if not strong:
        return [0] * len(stretches)
    found = []
    for place, one in enumerate(stretches):
        before = sum(at <= place for at in strong) - 1
        found.append(min(len(strong) - 1, before + 1) if len(one) == 1 else max(0, before))
    return found


def _stretch(one: str, part: int) -> list[Item]:
    number = number_of(one) if one.isdigit() or len(one) > 1 else None
    if number is not None:
        return [Item(frozenset({number}), 3.0, part, "number")]
    if len(one) < _LONG_ZH:
        return [Item(frozenset({one}), _SINGLE if len(one) == 1 else _EACH * len(one), part, "stretch")]
    pairs = _pairs(one)
    return [Item(frozenset({pair}), _EACH * len(one) / len(pairs), part, "stretch") for pair in pairs]


def _pairs(text: str) -> list[str]:
    return [text[at : at + 2] for at in range(len(text) - 1)] or [text]
