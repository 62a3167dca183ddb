"""Where words go: results to stdout, notes and progress to stderr; safe to print whatever a file or name holds."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from ..text.cache import Progress

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """`text` without control characters and direction overrides."""
    return _UNPRINTABLE.sub("\ufffd", text)


def out_console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=not (sys.stderr if stderr else sys.stdout).isatty())


def notify(message: str) -> None:
    """One line for people."""
    print(f"needlepoint: {printable(message)}", file=sys.stderr, flush=True)


@contextmanager
def downloads() -> Iterator[Progress]:
    """A progress bar for files that come in; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda name, done, total: None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Bars(*columns, console=out_console(stderr=True), transient=True) as bars:
        tasks = {}

        def report(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(printable(name), total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield report
