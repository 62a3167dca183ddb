"""Numbers as people and models write them: 4827193, 4,827,193, ４８２７１９３, "four million …", 四百八十二万.

All on folded text. A number is its digits as a string, without separators, so that an identifier keeps its zeros.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number in a text. `readings` are what it may mean: 4.827 is a decimal to some and a thousand to others."""

    start: int
    end: int
    readings: tuple[str, ...]


_GROUPED = re.compile(
    r"\d{1,3}(?P<mark>,|'|_|\.|\{,\}|\\,)\d{3}(?:(?P=mark)\d{3})*(?!\d)(?:(?!(?P=mark))[.,]\d+)?|\d+(?:\.\d+)?"
)
_LOOSE = re.compile(r"\d(?:[ .,'_/-]{0,2}\d)+")
_SCALE = re.compile(r"\s*(?:(thousand|million|billion|trillion|bn|k)(?![a-z])|([万萬亿億])(\d{1,8})?)")
_SCALES = {
    "thousand": 10**3, "k": 10**3, "million": 10**6, "billion": 10**9, "bn": 10**9, "trillion": 10**12,
    "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8,
}  # fmt: skip
_UNIT = re.compile(r"[a-z]{1,3}(?![a-z0-9])")
_LONG = 5


def numerals(text: str) -> list[Numeral]:
    """Every number of a folded text that is written in digits, and is not a part of a word, a code or a range."""
    found = []
    for match in _GROUPED.finditer(text):
        start, end = match.span()
        if not _is_apart(text, start, end):
            continue
        readings = _readings(match)
        if scaled := _SCALE.match(text, end):
            factor = _SCALES[scaled[1] or scaled[2]]
            value = Decimal(readings[0]) * factor + int(scaled[3] or 0)
            readings, end = (_plain(value),), scaled.end()
        if _is_negative(text, start):
            readings = tuple(f"-{one}" for one in readings)
        found.append(Numeral(start, end, readings))
    return found


def _readings(match: re.Match[str]) -> tuple[str, ...]:
    written, mark = match[0], match["mark"]
    if mark is None:
        return (trimmed(written),)
    digits = written.replace(mark, "").replace(",", ".")
    if mark == "." and written.count(".") == 1:
        return trimmed(written), trimmed(digits)
    return (trimmed(digits),)


def trimmed(digits: str) -> str:
    """Without zeros behind the point: 12.50 is 12.5, 12.0 is 12."""
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _plain(value: Decimal) -> str:
    return trimmed(format(value, "f"))


def _is_apart(text: str, start: int, end: int) -> bool:
    before = text[start - 1] if start else " "
    earlier = text[start - 2] if start > 1 else " "
    after = text[end] if end < len(text) else " "
    later = text[end + 1] if end + 1 < len(text) else " "
    is_long = end - start >= _LONG
    if before.isascii() and before.isalpha() and text[max(0, start - 2) : start] not in ("no", "nr"):
        return False
    if (
        before in ("-_" if is_long else "-/:_")
        and earlier.isalnum()
        and earlier.isascii()
        and not (before == ":" and earlier.isalpha())
    ):
        return False
    if before in ".,'" and earlier.isdigit():
        return False
    if after.isascii() and after.isalpha():
        return not is_long and _UNIT.match(text, end) is not None
    if after in ("-_" if is_long else "-/_") and later.isascii() and later.isalnum():
        return not is_long and later.isalpha() and after == "-"
    return not (after in ".,'" and later.isdigit())


def _is_negative(text: str, start: int) -> bool:
    return start > 1 and text[start - 1] == "-" and text[start - 2] in " ("


def spaced(text: str, digits: str) -> tuple[int, int] | None:
    """Where long `digits` stand with separators anywhere between them: 482-7193, 4 8 2 7 1 9 3."""
    if len(digits) < _LONG or not digits.isdigit():
        return None
    for match in _LOOSE.finditer(text):
        if len(match[0]) == len(digits):
            continue
        if "".join(char for char in match[0] if char.isdigit()) == digits and _is_apart(text, *match.span()):
            return match.span()
    return None


# --- in words ---------------------------------------------------------------------------------------------------------

_SMALL = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
} | {"oh": 0}
_TENS = {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}
_BIG = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_NUMBER_WORD = "|".join(sorted([*_SMALL, *_TENS, *_BIG, "hundred"], key=len, reverse=True))
_SPELLED = re.compile(rf"(?<![\w-])(?:{_NUMBER_WORD})(?:(?:[\s,-]+(?:and\s+)?)(?:{_NUMBER_WORD}))*(?![\w])")
_DIGITS_ZH = {
    **{char: value for value, char in enumerate("零一二三四五六七八九")},
    **{char: value for value, char in enumerate("〇壹贰叁肆伍陆柒捌玖")},
    "两": 2, "兩": 2, "貳": 2, "參": 3, "陸": 6,
}  # fmt: skip
_UNITS_ZH = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_BIG_ZH = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_SPELLED_ZH = re.compile(f"[{''.join([*_DIGITS_ZH, *_UNITS_ZH, *_BIG_ZH])}]+")
_HINT_ZH = re.compile(f"[{''.join(_DIGITS_ZH)}十拾]")


def spelled(text: str) -> Iterator[Numeral]:
    """Every number of a folded text that is written in English words or Chinese characters."""
    for match in _SPELLED.finditer(text):
        if (value := _from_words(re.findall(r"[a-z]+", match[0]))) is not None:
            yield Numeral(match.start(), match.end(), (value,))
    if not text.isascii() and _HINT_ZH.search(text):
        for match in _SPELLED_ZH.finditer(text):
            if (value := _from_chinese(match[0])) is not None:
                yield Numeral(match.start(), match.end(), (value,))


def _from_words(words: list[str]) -> str | None:
    words = [word for word in words if word != "and"]
    if len(words) > 1 and all(_SMALL.get(word, 10) < 10 for word in words):
        return "".join(str(_SMALL[word]) for word in words)
    pairs = _pairs(words)
    if pairs is not None and len(pairs) == 2 and pairs[0] >= 10:
        return f"{pairs[0]}{pairs[1]:02d}"  # nineteen thirty-two
    total = part = 0
    for word in words:
        if word in _BIG:
            total, part = total + (part or 1) * _BIG[word], 0
        elif word == "hundred":
            part = (part or 1) * 100
        else:
            part += _SMALL.get(word, 0) + _TENS.get(word, 0)
    return str(total + part)


def _pairs(words: list[str]) -> list[int] | None:
    """Numbers below 100 one after the other, as years are read; None where there is anything else."""
    found: list[int] = []
    open_tens = False
    for word in words:
        if word in _TENS:
            found.append(_TENS[word])
        elif word in _SMALL and open_tens and 0 < _SMALL[word] < 10:
            found[-1] += _SMALL[word]
        elif word in _SMALL:
            found.append(_SMALL[word])
        else:
            return None
        open_tens = word in _TENS
    return found


def _from_chinese(written: str) -> str | None:
    if all(char in _DIGITS_ZH for char in written):
        return "".join(str(_DIGITS_ZH[char]) for char in written)
    total = section = digit = 0
    for char in written:
        if char in _DIGITS_ZH:
            digit = _DIGITS_ZH[char]
        elif char in _UNITS_ZH:
            section += (digit or 1) * _UNITS_ZH[char]
            digit = 0
        else:
            section += digit
            if not section and not total:
                return None
            if _BIG_ZH[char] == 10**8:
                total = (total + section) * 10**8
            else:
                total += section * 10**4
            section = digit = 0
    return str(total + section + digit)


_UNIT_BEHIND = re.compile(
    r"\s*(?:percent|per cent|km|kilomet(?:er|re)s?|miles?|m|met(?:er|re)s?|kg|kilograms?|g|grams?|lbs?|pounds?|"
    r"dollars?|euros?|usd|eur|yuan|hours?|minutes?|seconds?|days?|weeks?|months?|years?|degrees|o'clock|元|公里|米|千米|公斤|克|"
    r"岁|年|天|小时|分钟|个|度)$"
)


def number_of(text: str) -> str | None:
    """The number that a whole folded text is, in digits or in words; a sign of currency, percent or unit aside."""
    bare = text.strip()
    bare = _UNIT_BEHIND.sub("", bare) or bare
    bare = bare.strip(" \n\t.,;:!\"'()[]*$€£¥#%°。，")
    for one in (*numerals(bare), *spelled(bare)):
        if (one.start, one.end) == (0, len(bare)):
            return one.readings[-1]
    return None
