"""Short words for screens: shares, counts, durations, and names cut to the columns that they have.

Pure. A share is never rounded to a whole that it is not: 0.9996 is 99.9%, and 0.0001 is 0.1%.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, get_args

from ..plan.grid import format_length
from ..types import Outcome
from .console import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_RANK = {outcome: i for i, outcome in enumerate(get_args(Outcome))}
_ASCII = str.maketrans({"–": "-", "—": "-", "…": "~", "·": ",", "≥": ">=", "×": "x", "╱": "/"})


def percent(share: float | None) -> str:
    """`97.3%`; `100%` and `0%` only where it is so; a dash where it is not known."""
    if share is None:
        return "–"
    if share <= 0 or share >= 1:
        return f"{share:.0%}"
    return f"{min(max(share * 100, 0.1), 99.9):.1f}%"


def percent_whole(share: float) -> int:
    """Whole points; 100 and 0 only where it is so."""
    return round(share * 100) if share <= 0 or share >= 1 else min(max(round(share * 100), 1), 99)


def length_label(n_tokens: int) -> str:
    """For an axis, at most five columns: exact where that is short, else rounded (`4.4k` for 4444, `131k`)."""
    exact = format_length(n_tokens)
    if n_tokens < 1_000 or (len(exact) <= 4 and not exact.isdigit()):
        return exact
    size, unit = (n_tokens / 1_000, "k") if n_tokens < 999_500 else (n_tokens / 1_000_000, "M")
    return (f"{size:.0f}" if size >= 9.95 else f"{size:.1f}".removesuffix(".0")) + unit


def depth_label(depth_percent: float) -> str:
    """For an axis: `50%`, `12.5%`, at most one decimal."""
    return f"{round(depth_percent, 1):g}%"


def short_number(value: float) -> str:
    """`740`, `12.3k`, `1.2M`: three figures at most where there are more."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit * 0.9995:
            scaled = value / unit
            return (f"{scaled:.1f}" if scaled < 99.95 else f"{scaled:.0f}").removesuffix(".0") + name
    return f"{value:.0f}" if value >= 9.95 or value == round(value) else f"{value:.1f}"


def in_nats(margin: float) -> str:
    """`8.21`, `−0.31`."""
    return f"{margin:,.2f}".replace("-", "−").replace("−0.00", "0.00")


def duration(seconds: float) -> str:
    """`40 s`, `2 min`, `1 h 20 min`, `3 d 4 h`: what one says, not what one measures."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    large, small, names = (
        (*divmod(minutes, 60), ("h", "min")) if minutes < 48 * 60 else (*divmod(round(minutes / 60), 24), ("d", "h"))
    )
    return f"{large} {names[0]} {small} {names[1]}" if small else f"{large} {names[0]}"


def in_order(outcomes: Mapping[str, int]) -> list[tuple[str, int]]:
    """Outcomes as `types` orders them: valid ones first, unknown ones last."""
    return sorted(outcomes.items(), key=lambda item: (_RANK.get(item[0], len(_RANK)), item[0]))


def counts(outcomes: Iterable[tuple[str, int]]) -> str:
    """`38 correct, 1 wrong`; outcome names read as words."""
    return ", ".join(f"{n:,} {outcome.replace('_', ' ')}" for outcome, n in outcomes)


def one_line(text: str) -> str:
    """`text` made printable, on one line."""
    return " ".join(printable(text).split())


def ascii_only(text: str) -> str:
    """`text` for a screen that has nothing else."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def width_of(text: str) -> int:
    """The columns that `text` takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int, mark: str = "…") -> str:
    """`text` in at most `width` columns, with a mark where something was cut off."""
    if width_of(text) <= width:
        return text
    if width < 1:
        return ""
    kept, used = "", 1
    for character in text:
        used += width_of(character)
        if used > width:
            break
        kept += character
    while kept and (kept[-1].isspace() or unicodedata.combining(kept[-1])):
        kept = kept[:-1]
    return kept + mark
