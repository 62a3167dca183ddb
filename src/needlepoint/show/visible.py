"""Foreign text made safe to look at: nothing in it turns, hides or controls anything. Pure.

Model answers, needles and corpora may hold terminal escapes, marks that turn the direction of what follows, and halves
of surrogate pairs. On a page they are shown as what they are: control characters by their Unicode pictures, direction
marks by their number.
"""

from __future__ import annotations

import re

_KEPT = "\t\n"
_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in _KEPT} | {0x7F: "␡"}
_NUMBERED = [*range(0x80, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF]
_MARKS: dict[int, str] = _PICTURES | {code: f"[U+{code:04X}]" for code in _NUMBERED}
_ODD = re.compile("[" + "".join(re.escape(chr(code)) for code in _MARKS) + "\ud800-\udfff]")
_STACKED = re.compile(r"([\u0300-\u036f\u0483-\u0489\u20d0-\u20ff]{4})[\u0300-\u036f\u0483-\u0489\u20d0-\u20ff]+")


def visible(text: str) -> str:
    """`text` with line ends as `\\n`, and a sign for everything that would act instead of being read."""
    if text.isascii() and text.isprintable():
        return text
    marked: str = _ODD.sub(_mark, text.replace("\r\n", "\n"))
    return _STACKED.sub(r"\1", marked)


def visible_line(text: str, longest: int = 200) -> str:
    """The same on one line, cut where it is longer than anybody reads."""
    line = " ".join(visible(text[: longest * 4]).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _mark(found: re.Match[str]) -> str:
    return _MARKS.get(ord(found[0]), "\N{REPLACEMENT CHARACTER}")
