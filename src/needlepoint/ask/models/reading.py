"""How a simulated model reads: it finds the question in a chat, and the sentences of the text that answer it.

Nobody tells it the needle. It takes the words of the question (pairs of characters in Chinese), weighs each by how rare
it is in this very text, and picks the sentences that share most of that weight: log((sentences + 1) / (sentences with
the word + ½)) for each word. Only rare words are looked up one by one, so a megabyte takes a fraction of a second.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from needlepoint.text.boundaries import sentence_ends
from needlepoint.types import Message

_ASKED = re.compile(r"(?is)<question>\s*(.*?)\s*</question>")
_EDGE_CHARS = 3_000
_MOST_HITS = 400  # of one word; those of frequent words are found by the rare ones beside them
_MOST_OF_RAREST = 10_000
_MOST_SENTENCES = 32
_REACH = 600
_SHORT_LINE = 240
_NEAR_TIE = 0.85
_LEAST_SHARE = 0.34
_LEAST_REST = 0.12
_MOST_TOGETHER = 3
"""So many things may be asked for before the best sentence can hold less of the question than `_LEAST_SHARE`."""

_CJK = r"\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\U00020000-\U0003ffff"
_TERM = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+(?:['’\-][^\W{_CJK}]+)*")
_IS_CJK = re.compile(rf"[{_CJK}]")
_ASKING_ZH = re.compile(
    r"什么|多少|分别|哪一天|哪[个些里儿]|为什么|怎么样?|如何|是谁|谁|几|请问|吗|呢|[的是在了于和与及有]"
)
_ASKING_EN = frozenset(
    "a an and any are as at be been by can did do does for from had has have how i in is it its many me much of on or "
    "that the their them there these they this those to was were what when where which who whom whose why will with "
    "you your".split()
)
_LISTED = re.compile(r", (?:and )?| and |、|和")


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence that answers, and where it stands: 0 at the beginning of the text, 1 at its end."""

    sentence: str
    depth: float
    start: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What a chat asks, of which text, and what the text has to say."""

    question: str
    text: str = field(repr=False)
    findings: tuple[Finding, ...]

    @property
    def is_chinese(self) -> bool:
        return _IS_CJK.search(self.question) is not None

    def elsewhere(self, at: float) -> str | None:
        """The sentence at `at` (0–1) of the text, or the next one that is not what was asked for."""
        begin = int(at * len(self.text))
        for _ in range(8):
            start, end = sentence_around(self.text, min(begin, max(0, len(self.text) - 1)))
            sentence = self.text[start:end].strip()
            apart = all(not (start < one.start + len(one.sentence) and one.start < end) for one in self.findings)
            if sentence and apart and not any(one.sentence in sentence for one in self.findings):
                return sentence
            begin = end + 1 if end + 1 < len(self.text) else 0
        return None


def read(messages: Sequence[Message]) -> Reading:
    """Read a chat as a model does: the last message of the user holds a text and a question."""
    content = next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    question, text = question_and_text(content)
    return Reading(question=question, text=text, findings=tuple(find(question, text)))


def question_and_text(content: str) -> tuple[str, str]:
    """What is asked, and of which text: by their tags, else the question at one of the ends, and all the rest."""
    tagged = [*_ASKED.finditer(content, max(0, len(content) - _EDGE_CHARS)), *_ASKED.finditer(content, 0, _EDGE_CHARS)]
    if tagged:
        question, (start, end) = tagged[0][1], tagged[0].span()
    else:
        start, end = _bare_question(content)
        question = content[start:end].strip()
    opened = content.find("<text>")
    closed = content.rfind("</text>")
    if 0 <= opened < closed:
        return question, content[opened + len("<text>") : closed]
    return question, content[:start] + "\n" + content[end:]


def _bare_question(content: str) -> tuple[int, int]:
    """The line near an end that is one question; where none is, the last one that holds one; else the last line."""
    shift = max(0, len(content) - _EDGE_CHARS)
    last = [(shift + start, shift + end) for start, end in _lines(content[shift:])[-3:]]
    first = _lines(content[:_EDGE_CHARS])[:3]
    holding = []
    for start, end in [*reversed(last), *first]:
        line = content[start:end].rstrip()
        ask = max(line.rfind("?"), line.rfind("？")) + 1
        if not ask or len(line) > _REACH:
            continue
        begin = max((cut for cut in sentence_ends(line[: ask - 1]) if cut < ask - 1), default=0)
        if begin == 0 and ask == len(line):
            return start, end
        holding.append((start + begin, start + ask))
    return (holding or last[-1:] or [(0, 0)])[0]


def _lines(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"[^\n]*\S[^\n]*", text)]


def find(question: str, text: str) -> Iterator[Finding]:
    """The sentences of `text` that answer `question`, the best first; none where nothing fits well."""
    folded = text.lower()
    if len(folded) != len(text):  # a letter that grows in lower case: places would shift
        folded = text
    terms = terms_of(question)
    n_sentences = max(10, sum(map(text.count, ".!?。！？\n")))
    counts = {term: folded.count(term) for term in terms}
    weights = {term: max(0.05, math.log((n_sentences + 1) / (count + 0.5))) for term, count in counts.items()}
    sentences = _candidates(folded, text, terms, counts)
    if not sentences:
        return
    held = {span: {term for term in terms if has_term(folded, term, *span)} for span in sentences}
    scores = {span: math.fsum(map(weights.__getitem__, found)) for span, found in held.items()}  # in any order
    ranked = sorted(scores, key=lambda span: (-scores[span], span))
    best = scores[ranked[0]]
    wanted = 1 + len(_LISTED.findall(question))
    if best < _LEAST_SHARE * math.fsum(weights.values()) / max(1, wanted / _MOST_TOGETHER):
        return
    chosen = [span for span in ranked if scores[span] >= _NEAR_TIE * best][:_MOST_SENTENCES]
    told = set().union(*(held[span] for span in chosen))
    while len(chosen) < min(wanted, len(ranked)):  # a question for several things: what does each sentence add?
        rest = {span: math.fsum(weights[term] for term in held[span] - told) for span in ranked if span not in chosen}
        span = max(rest, key=lambda span: (rest[span], -span[0]))
        if rest[span] < _LEAST_REST * best:
            break
        chosen.append(span)
        told |= held[span]
    for start, end in chosen:
        sentence = text[start:end].strip()
        yield Finding(sentence, (start + end) / 2 / max(1, len(text)), start)


def terms_of(question: str) -> list[str]:
    """The words of a question that say what it is about; pairs of characters where words are not set apart."""
    terms: dict[str, None] = {}
    for match in _TERM.finditer(question.lower()):
        word = match[0]
        if not _IS_CJK.match(word):
            if word not in _ASKING_EN:
                terms[word.removesuffix("'s").removesuffix("’s")] = None
            continue
        for run in filter(None, _ASKING_ZH.split(word)):
            for at in range(max(1, len(run) - 1)):
                terms[run[at : at + 2]] = None
    return list(terms)


def _candidates(folded: str, text: str, terms: Sequence[str], counts: dict[str, int]) -> list[tuple[int, int]]:
    """Sentences that hold a rare term: the rarest first, until there are enough."""
    spans: dict[tuple[int, int], None] = {}
    for term in sorted(terms, key=counts.__getitem__):
        if counts[term] > _MOST_HITS and spans:
            break
        for at in _places(folded, term, _MOST_HITS if spans else _MOST_OF_RAREST):
            spans[sentence_around(text, at)] = None
    return list(spans)


def _places(folded: str, term: str, most: int) -> Iterator[int]:
    at = folded.find(term)
    while at >= 0 and most:
        if _stands_alone(folded, at, at + len(term)):
            most -= 1
            yield at
        at = folded.find(term, at + 1)


def has_term(folded: str, term: str, start: int, end: int) -> bool:
    at = folded.find(term, start, end)
    while at >= 0:
        if _stands_alone(folded, at, at + len(term)):
            return True
        at = folded.find(term, at + 1, end)
    return False


def _stands_alone(folded: str, start: int, end: int) -> bool:
    """Whether a word is no part of a longer one; characters of scripts without spaces always are apart."""
    if _IS_CJK.match(folded[start]):
        return True
    before, behind = folded[start - 1 : start], folded[end : end + 1]
    return not (_in_word(before) or _in_word(behind))


def _in_word(char: str) -> bool:
    return char.isalnum() and not _IS_CJK.match(char)


def sentence_around(text: str, at: int) -> tuple[int, int]:
    """Where the sentence at `at` begins and ends; a short line is taken whole."""
    low, high = max(0, at - _REACH), min(len(text), at + _REACH)
    line_start, line_end = text.rfind("\n", low, at) + 1, text.find("\n", at, high)
    begin = line_start if line_start > 0 else low
    end = line_end if line_end >= 0 else high
    if end - begin <= _SHORT_LINE and (line_start > 0 or low == 0) and (line_end >= 0 or high == len(text)):
        return begin, end
    first = begin
    for cut in sentence_ends(text[begin:end]):
        if begin + cut > at:
            return first, begin + cut
        first = begin + cut
    return first, end
