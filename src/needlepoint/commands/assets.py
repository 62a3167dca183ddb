"""`needlepoint assets`: what is fetched once and kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from ..show.console import downloads, notify, out_console, printable
from ..text.assets import ASSETS, asset_path, clear_assets, fetch_asset, list_assets
from ..text.cache import cache_dir

_HERE = {True: "yes", False: "broken", None: "no"}


def show_assets(*, as_json: bool) -> None:
    states = list_assets()
    if as_json:
        rows = [{**asdict(state), "path": str(state.path)} for state in states]
        print(json.dumps({"cache": str(cache_dir()), "assets": rows}, ensure_ascii=False, indent=2))
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("Name", overflow="fold")
    table.add_column("What")
    table.add_column("Licence")
    table.add_column("Size", justify="right", no_wrap=True)
    table.add_column("Here", no_wrap=True)
    for state in states:
        texts = (printable(text) for text in (state.name, state.title, state.licence))
        table.add_row(*texts, _size(state.size), _HERE[state.ok])
    console = out_console()
    console.print(table)
    console.print(f"Cache  {cache_dir()}", soft_wrap=True)


def fetch(names: Sequence[str]) -> None:
    wanted = list(ASSETS) if "all" in names else list(dict.fromkeys(names))
    for name in wanted:
        asset_path(name)  # an unknown name is refused before anything is fetched
    for name in wanted:
        with downloads() as progress:
            path = fetch_asset(name, progress=progress, notify=notify)
        print(path)


def clear(names: Sequence[str] | None) -> None:
    removed = clear_assets(names or None)
    for name, size in removed:
        print(f"removed {printable(name)} ({_size(size)})")
    if not removed:
        notify("There was nothing to remove.")


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"
