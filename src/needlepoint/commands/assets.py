"""`needlepoint assets`: what is fetched once and kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..show.console import downloads, notify, out_console, printable
from ..text.assets import ASSETS, clear_assets, fetch_asset, list_assets
from ..text.cache import cache_dir


def show_assets(*, as_json: bool) -> None:
    states = list_assets()
    if as_json:
        rows: list[dict[str, Any]] = [
            {name: str(value) if hasattr(value, "is_file") else value for name, value in asdict(state).items()}
            for state in states
        ]
        print(json.dumps({"cache": str(cache_dir()), "assets": rows}, ensure_ascii=False, indent=2))
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("Name", "What", "Licence", "Size", "Here"):
        table.add_column(column, justify="right" if column == "Size" else "left")
    for state in states:
        table.add_row(
            printable(state.name),
            printable(state.title),
            printable(state.licence),
            _size(state.size),
            "yes" if state.path else "no",
        )
    console = out_console()
    console.print(table)
    console.print(f"Cache  {cache_dir()}")


def fetch(names: Sequence[str]) -> None:
    for name in list(ASSETS) if list(names) == ["all"] else names:
        with downloads() as progress:
            path = fetch_asset(name, progress=progress, notify=notify)
        print(path)


def clear(names: Sequence[str] | None) -> None:
    removed = clear_assets(names or None)
    for name, size in removed:
        print(f"removed {printable(name)} ({_size(size)})")
    if not removed:
        notify("There was nothing to remove.")


def _size(size: int | None) -> str:
    if size is None:
        return "–"
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"
