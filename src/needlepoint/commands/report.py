"""`needlepoint report RUN...`: the pictures, the page and the tables of runs, made again from their folders."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..report import make_report, wanted_formats
from ..show.console import downloads, notify, out_console


def report_on(runs: list[str], *, formats: list[str] | None, open_page: bool, **wanted: Any) -> None:
    """What the command does; the paths of what was made go to stdout."""
    if open_page and "html" not in wanted_formats(formats):
        raise UsageError("--open shows the page, and --format leaves it out. Add html to it.")
    with downloads() as progress:
        made = make_report(*runs, formats=formats, notify=notify, progress=progress, **wanted)
    console = out_console()
    for path in made:
        console.print(str(path), markup=False, soft_wrap=True)
    if open_page:
        show_page(next(path for path in made if path.suffix == ".html"))


def show_page(page: Path) -> None:
    """The page in the user's browser; where there is none, its address is said."""
    address = page.resolve().as_uri()
    try:
        opened = webbrowser.open(address)
    except (OSError, webbrowser.Error):
        opened = False
    if not opened:
        notify(f"There is no browser to open it with. Its address: {address}")
