"""Things that were looked at, each with how it is and what to do about it: the table that `doctor` ends with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .console import out_console, printable

Status = Literal["ok", "warn", "fail"]
_COLOURS: dict[Status, str] = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: how it is, what was found, and what to do."""

    name: str
    status: Status
    found: str
    advice: str = ""


def show_checks(checks: Sequence[Check], verdict: str) -> None:
    """A table on stdout, and the verdict below it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in ("Check", ""):
        table.add_column(column, no_wrap=True)
    for column in ("Found", "What to do"):
        table.add_column(column, overflow="fold")
    for check in checks:
        status = Text(check.status, style=_COLOURS[check.status])
        table.add_row(check.name, status, printable(check.found), printable(check.advice))
    console = out_console()
    console.print(table)
    console.print(f"\n{verdict}")
