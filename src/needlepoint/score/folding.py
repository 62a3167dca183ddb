"""Text as the rules compare it: one case, one width, one kind of quote, dash and digit; and the way back.

Character by character, so that a place in the folded text is a place in the answer: full-width and other digits become
0–9, Latin letters lose case and accents, curly quotes and long dashes become plain, what has no width goes.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

CJK = r"\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Characters of which each counts as a word: Chinese, Japanese. For use inside of a regular expression's class."""

_PLAIN = {
    **dict.fromkeys("‘’‚‛ʼ`´′", "'"),
    **dict.fromkeys("“”„‟«»″", '"'),
    **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
    "\u00ad": "",
    "\n": "\n",
}
_IS_CJK = re.compile(rf"[{CJK}]")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_WORD_OR_CJK = re.compile(rf"[{CJK}]|[^\W_{CJK}]+(?:'[^\W_{CJK}]+)*")
_JOINED = re.compile(r"[\s\S][\u1160-\u11ff\u3099\u309a]+")  # letters that other scripts write as several characters


class _Table(dict[int, str]):
    """What each character becomes, worked out when it is first met. `uneven` are those that don't become just one."""

    def __init__(self) -> None:
        super().__init__()
        self.uneven: set[str] = set()

    def __missing__(self, code: int) -> str:
        char = chr(code)
        folded = self[code] = _folded(char)
        if len(folded) != 1:
            self.uneven.add(char)
        return folded


_TABLE = _Table()


def _folded(char: str) -> str:
    if char in _PLAIN:
        return _PLAIN[char]
    if char.isspace():
        return " "
    category = unicodedata.category(char)
    if category == "Cf" or "\u0300" <= char <= "\u036f" or "\ufe00" <= char <= "\ufe0f":
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(char))
    folded = unicodedata.normalize("NFKC", char).casefold()
    bare = "".join(one for one in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(one))
    return bare if bare.isascii() and bare else folded


@dataclass(frozen=True, slots=True)
class Folded:
    """A text, folded. `places` says where each character came from, None where each is at its own place."""

    text: str
    places: tuple[int, ...] | None = field(default=None, repr=False)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text that was given `start` to `end` of the folded one stand."""
        if self.places is None or end <= start:
            return start, end
        return self.places[start], self.places[end - 1] + 1


def fold(text: str) -> Folded:
    if text.isascii():
        return Folded(text.lower())
    if _JOINED.search(text):
        return _fold_joined(text)
    folded = text.translate(_TABLE)
    if _TABLE.uneven.isdisjoint(text):
        return Folded(folded)
    places = [place for place, char in enumerate(text) for _ in _TABLE[ord(char)]]
    return Folded(folded, tuple(places))


def _fold_joined(text: str) -> Folded:
    out: list[str] = []
    places: list[int] = []
    at = 0
    for match in [*_JOINED.finditer(text), None]:
        begin = len(text) if match is None else match.start()
        for place in range(at, begin):
            piece = _TABLE[ord(text[place])]
            out.append(piece)
            places += [place] * len(piece)
        if match is not None:
            piece = unicodedata.normalize("NFC", match[0]).translate(_TABLE)
            out.append(piece)
            places += [match.start()] * len(piece)
            at = match.end()
    return Folded("".join(out), tuple(places))


def has_cjk(text: str) -> bool:
    return not text.isascii() and _IS_CJK.search(text) is not None


def words_of(folded: str) -> list[str]:
    """The words of a folded text, each Chinese or Japanese character one; no punctuation, no apostrophes."""
    found: list[str] = (_WORD if folded.isascii() else _WORD_OR_CJK).findall(folded)
    return [word.removesuffix("'s").replace("'", "") for word in found] if "'" in folded else found


def places_of_words(folded: str) -> list[tuple[int, int]]:
    return [match.span() for match in (_WORD if folded.isascii() else _WORD_OR_CJK).finditer(folded)]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a folded text in one line, ` like this one `, in which a phrase is found as a whole."""

    line: str
    folded: str = field(repr=False)

    def find(self, phrase: str) -> list[tuple[int, int]]:
        """Where ` a phrase ` (a blank on both sides) stands, as spans of the folded text."""
        at = self.line.find(phrase)
        if at < 0:
            return []
        if len(plain := _standing(self.folded, phrase[1:-1])) == self.line.count(phrase):
            return plain
        places = places_of_words(self.folded)
        n_words = phrase.count(" ") - 1
        found = []
        while at >= 0:
            first = self.line.count(" ", 0, at)
            found.append((places[first][0], places[first + n_words - 1][1]))
            at = self.line.find(phrase, at + 1)
        return found


def _standing(text: str, words: str) -> list[tuple[int, int]]:
    """Where words stand letter by letter, as a whole: the quick way for what is quoted as it is."""
    found = []
    at = text.find(words)
    while at >= 0:
        end = at + len(words)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            found.append((at, end))
        at = text.find(words, end)
    return found


def line_of(folded: str) -> Words:
    return Words(f" {' '.join(words_of(folded))} ", folded)


def phrase_of(text: str) -> str:
    """A phrase as `Words.find` takes it; empty where it has no word."""
    words = words_of(fold(text).text)
    return f" {' '.join(words)} " if words else ""
