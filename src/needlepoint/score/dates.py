"""Dates as people and models write them: 5 March 1932, March 5th, 1932, 1932-03-05, 05/03/1932, 1932年3月5日.

All on folded text. 05/03/1932 may be in March or in May: it has two readings, and either counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .numerals import spelled

Day = tuple[int, int, int | None]
"""Year, month, day; no day where only the month is told."""


@dataclass(frozen=True, slots=True)
class DateMention:
    start: int
    end: int
    readings: frozenset[Day]


_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sept sep", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_DAYS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(),
        start=1,
    )
} | {"thirtieth": 30, "thirty-first": 31} | {
    f"twenty-{word}": 20 + number
    for number, word in enumerate("first second third fourth fifth sixth seventh eighth ninth".split(), start=1)
}  # fmt: skip
_DAY = rf"(?P<day>\d{{1,2}}(?:\s?(?:st|nd|rd|th))?|{'|'.join(sorted(_DAYS, key=len, reverse=True))})"
_YEAR = r"(?P<year>\d{4})(?!\d)"
_WORDED = re.compile(
    rf"(?<![\w]){_DAY}\s*(?:day\s+)?(?:of\s+)?[-\s]*{_MONTH}[-,\s]*(?:of\s+)?{_YEAR}"
    rf"|(?<![\w]){_MONTH.replace('month', 'month2')}\s*(?:the\s+)?{_DAY.replace('day', 'day2')}[,\s]+"
    rf"{_YEAR.replace('year', 'year2')}"
    rf"|(?<![\w]){_MONTH.replace('month', 'month3')},?\s+(?:of\s+)?{_YEAR.replace('year', 'year3')}"
)
_WRITTEN = re.compile(
    r"(?<![\w.])(?P<y>\d{4})\s?(?P<mark>[-/.])\s?(?P<m>\d{1,2})\s?(?P=mark)\s?(?P<d>\d{1,2})(?![\w]|\.\d)"
    r"|(?<![\w.])(?P<a>\d{1,2})(?P<mark2>[-/.])\s?(?P<b>\d{1,2})(?P=mark2)\s?(?P<y2>\d{4})(?![\w]|\.\d)"
)
_NUMBER_ZH = r"[\d〇零一二三四五六七八九十]"
_CHINESE = re.compile(
    rf"(?P<y>{_NUMBER_ZH}{{4}})\s*年\s*(?P<m>{_NUMBER_ZH}{{1,3}})\s*月(?:份)?(?:\s*(?P<d>{_NUMBER_ZH}{{1,3}})\s*[日号號])?"
)
_HINT = re.compile(r"\d{4}|年")


def dates(text: str) -> Iterator[DateMention]:
    """Every date of a folded text that tells at least year and month."""
    if not _HINT.search(text):
        return
    for match in _WORDED.finditer(text):
        named = match.groupdict()
        month = named["month"] or named["month2"] or named["month3"]
        day = named["day"] or named["day2"]
        year = named["year"] or named["year2"] or named["year3"]
        yield _mention(match, {(int(year), _MONTHS[month], None if day is None else _day(day))})
    for match in _WRITTEN.finditer(text):
        if match["y"]:
            yield _mention(match, {(int(match["y"]), int(match["m"]), int(match["d"]))})
        else:
            one, other, year = int(match["a"]), int(match["b"]), int(match["y2"])
            yield _mention(match, {(year, other, one), (year, one, other)})
    for match in _CHINESE.finditer(text):
        day = match["d"]
        yield _mention(match, {(_zh(match["y"]), _zh(match["m"]), None if day is None else _zh(day))})


def _mention(match: re.Match[str], readings: set[Day]) -> DateMention:
    real = {one for one in readings if 1 <= one[1] <= 12 and (one[2] is None or 1 <= one[2] <= 31)}
    return DateMention(match.start(), match.end(), frozenset(real))


def _day(written: str) -> int:
    return _DAYS[written] if written in _DAYS else int(re.match(r"\d+", written)[0])  # type: ignore[index]


def _zh(written: str) -> int:
    if written.isdigit() and written.isascii():
        return int(written)
    return int(next((one.readings[0] for one in spelled(written)), "0"))


def date_of(text: str) -> Day | None:
    """The date that a whole folded text is, where it is one with a day."""
    bare = text.strip(" \n\t.,;:!\"'()[]*。，")
    for one in dates(bare):
        if (one.start, one.end) == (0, len(bare)) and len(one.readings) == 1:
            (day,) = one.readings
            return day if day[2] is not None else None
    return None
