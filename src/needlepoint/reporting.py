"""What a user may ask for of a run's report: which files, in which language and colours.

`ReportFields.drawing()` is what a run keeps of it, so that a report made again without a word looks the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator

from .errors import MissingExtra, did_you_mean
from .fields import one_of, shown
from .show.colours import Scale
from .show.labels import Lang

Format = Literal["png", "svg", "html", "md", "json", "csv", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
USUAL: tuple[Format, ...] = ("json", "png", "svg", "html", "md")
"""What `eval` and `report` make where nothing is said."""
LANGS: tuple[Lang, ...] = get_args(Lang)
PALETTES: tuple[Scale, ...] = get_args(Scale)
_NONE = "none"


def formats_of(value: object) -> list[Format]:
    """`png,html`, a list of names, `all` or `none`, as formats in their own order. Raises ValueError."""
    return [name for name in FORMATS if name in chosen(value, "format", FORMATS)]


def formats_here(formats: Sequence[Format], notify: Callable[[str], None] | None = None) -> tuple[Format, ...]:
    """These formats, if all of them can be made here; of all that there are, those that can. Raises MissingExtra."""
    if "parquet" in formats and find_spec("polars") is None:
        missing = MissingExtra("Parquet", "polars")
        if len(formats) < len(FORMATS):
            raise missing
        if notify is not None:
            notify(f"No trials.parquet: {missing}")
        return tuple(name for name in formats if name != "parquet")
    return tuple(formats)


def chosen(value: object, noun: str, known: Sequence[str]) -> set[str]:
    """The names of `known` that a user gave, between commas or as a list; `all` of them, or `none`."""
    parts = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else None
    if parts is None or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"must be names of {noun}s, not {shown(value)}")
    names = [name.strip() for part in parts for name in part.split(",") if name.strip()]
    for name in names:
        if name not in (*known, "all", _NONE):
            near = did_you_mean(name, known)
            raise ValueError(f"unknown {noun} {shown(name)}.{near} Known: {', '.join(known)}, all")
    if _NONE in names and len(set(names)) > 1:
        raise ValueError(f"'none' excludes all others, so {shown(','.join(names))} says nothing")
    return set(known) if "all" in names else set(names) - {_NONE}


class ReportFields(BaseModel):
    """The settings of a run that say what is made of it at its end."""

    report: Annotated[list[Format], BeforeValidator(formats_of)] | None = None
    lang: Annotated[Lang, one_of("language", LANGS)] = "en"
    palette: Annotated[Scale, one_of("palette", PALETTES)] = "default"

    @property
    def formats(self) -> tuple[Format, ...]:
        return USUAL if self.report is None else tuple(self.report)

    def drawing(self, *, show_score: bool) -> dict[str, Any]:
        """What of it isn't as usual, for the run's free settings."""
        told = {"lang": self.lang, "palette": self.palette, "show_score": show_score}
        return {name: value for name, value in told.items() if value not in ("en", "default", False)}
