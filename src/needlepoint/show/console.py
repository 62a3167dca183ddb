"""Where words go: results to stdout, notes and progress to stderr; safe to print whatever a file or name holds."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from ..text.cache import Progress

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_PIPE_WIDTH = 200


def printable(text: str) -> str:
    """`text` without control characters, direction overrides and halves of surrogate pairs."""
    return _UNPRINTABLE.sub("\ufffd", text)


def out_console(*, stderr: bool = False) -> Console:
    """A console that prints text as it is: no markup, no guessing, and no line breaks of its own in a pipe."""
    from rich.console import Console

    wide = not (sys.stderr if stderr else sys.stdout).isatty() and "COLUMNS" not in os.environ
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=_PIPE_WIDTH if wide else None)


def notify(message: str) -> None:
    """One message for people."""
    print(f"needlepoint: {printable(message)}", file=sys.stderr, flush=True)


@contextmanager
def downloads() -> Iterator[Progress]:
    """A progress bar for files that come in; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda name, done, total: None
        return
    from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    bars = Bars(*columns, console=out_console(stderr=True), transient=True)
    tasks: dict[str, TaskID] = {}

    def report(name: str, done: int, total: int | None) -> None:
        """The bars are on the screen only while something comes in: what follows may draw there, too."""
        if name not in tasks:
            tasks[name] = bars.add_task(printable(name), total=total)
        bars.update(tasks[name], completed=done, total=total)
        if bars.finished:
            bars.stop()
        elif not bars.live.is_started:
            bars.start()

    try:
        yield report
    finally:
        bars.stop()


@contextmanager
def counting(noun: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar that counts to `total`; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Bars(*columns, console=out_console(stderr=True), transient=True) as bars:
        task = bars.add_task(noun, total=total)
        yield lambda: bars.advance(task)
