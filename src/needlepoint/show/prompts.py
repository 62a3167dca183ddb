"""What prompts are like, on a screen: the seed's *Data Statistics*, and what the lengths rest on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..text.cache import redact
from .console import out_console, printable

if TYPE_CHECKING:
    from rich.table import Table

    from ..plan.statistics import Statistics
    from ..plan.task import Plan

_LONGEST_LICENCE = 32
_MODES = {"exact": "exact: whole prompts, chat included", "evalscope": "evalscope: its prompts, its labels"}
_BOUNDARIES = {"sentence": "sentence ends", "clause": "clause ends", "word": "word ends"}


def show_statistics(plan: Plan, statistics: Statistics, *, stderr: bool = False) -> None:
    """The table of lengths, then one line each on tokenizer, texts, lengths and depths."""
    from rich.table import Table

    console = out_console(stderr=stderr)
    console.print(_lengths(statistics))
    console.print()
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for name, says in _facts(plan, statistics):
        facts.add_row(name, says)
    console.print(facts)


def _lengths(statistics: Statistics) -> Table:
    from rich import box
    from rich.table import Table

    figures = statistics.json()
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Prompt length", no_wrap=True)
    for column in ("Samples", "Mean", "Min", "Max", "Std"):
        table.add_column(column, justify="right", no_wrap=True)
    for unit in ("characters", "tokens"):
        table.add_row(f"in {unit}", style="bold")
        for row in (*figures["subsets"], {"name": "total", **figures["total"]}):
            spread = (figure(row[f"prompt_{unit}"][name]) for name in ("mean", "min", "max", "std"))
            table.add_row(f"  {printable(row['name'])}", f"{row['samples']:,}", *spread)
    return table


def _facts(plan: Plan, statistics: Statistics) -> Iterator[tuple[str, str]]:
    endpoint = plan.endpoint
    name, template = endpoint.tokenizer.name, endpoint.template_name or "none"
    yield "Tokenizer", printable(f"{redact(name)} ({endpoint.tokenizer.fingerprint}), chat format {template}")
    for corpus in plan.corpora:
        licence = corpus.licence
        if len(licence) > _LONGEST_LICENCE:
            licence = licence[: _LONGEST_LICENCE - 1] + "…"
        yield "Text", printable(f"{corpus.subset}: {corpus.name} ({corpus.sha256[:12]}, {licence})")
    yield "Lengths", f"{_MODES[plan.task.length_mode]}; {_proof(len(plan), statistics.recounted)}"
    places = ", ".join(f"{_BOUNDARIES[kind]} {count:,}" for kind, count in statistics.boundaries.items())
    if places:
        yield "Depths", f"off by at most {statistics.largest_depth_error_percent:g} points; needles at {places}"


def _proof(total: int, recounted: int) -> str:
    if recounted == total:
        return f"all {total:,} prompts encoded again and equal"
    if recounted:
        return f"{recounted:,} of {total:,} prompts encoded again and equal (--verify for all)"
    return "not encoded again (--verify does it)"


def figure(value: float | None) -> str:
    """A number for a table: thousands marked, two decimals where they say something."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}" if abs(value) < 100_000 else f"{value:,.0f}"
