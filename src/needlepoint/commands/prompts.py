"""`needlepoint prompts`: make the prompts, write them, and say what they are like."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_args

from ..config import PromptsConfig
from ..errors import UsageError, did_you_mean
from ..export import BATCH_BYTES, BATCH_REQUESTS, Format, Line, Statistics, lines, write
from ..pipeline import plan_prompts
from ..plan.task import Plan
from ..show.console import downloads, notify, out_console, printable

if TYPE_CHECKING:
    from collections.abc import Callable


def make_prompts(settings: Mapping[str, Any], *, out: str | None, format_: str, as_json: bool) -> None:
    """What the command does, from its flags to its tables."""
    if format_ not in get_args(Format):
        known = get_args(Format)
        raise UsageError(f"Unknown format {format_!r}.{did_you_mean(format_, known)} Known: {', '.join(known)}.")
    chosen: Format = "openai-batch" if format_ == "openai-batch" else "samples"
    config = PromptsConfig.of(settings)
    if chosen == "openai-batch" and out is None:
        raise UsageError("--format openai-batch writes a file. Name it with --out FILE, or --out - for stdout.")
    if out == "-" and as_json:
        raise UsageError("--json and --out - both write to stdout. Give --out a file.")
    with downloads() as progress:
        plan = plan_prompts(config, notify=notify, progress=progress)
    statistics = Statistics()
    size = 0
    with _counting(len(plan)) as count:

        def on_line(line: Line) -> None:
            statistics.add(line.prompt, line.n_characters)
            count()

        if out is None:
            for prompt in plan:
                statistics.add(prompt)
                count()
        else:
            size = write(lines(plan, format_=chosen, model=config.model), out, on_line=on_line)
    for note in plan.notes:
        notify(note)
    if chosen == "openai-batch" and (size > BATCH_BYTES or len(plan) > BATCH_REQUESTS):
        notify(
            f"The batch has {len(plan):,} requests and {size / 1e6:,.0f} MB; OpenAI takes at most {BATCH_REQUESTS:,} "
            f"and {BATCH_BYTES / 1e6:,.0f} MB in one file. Split it, by --limit or fewer --lengths, say."
        )
    if as_json:
        print(json.dumps(_json(plan, statistics, out), ensure_ascii=False, indent=2))
    else:
        _tables(plan, statistics, stderr=out == "-")
    if out is not None and out != "-":
        notify(f"Wrote {len(plan):,} prompts ({size / 1e6:,.1f} MB) to {out}")


def _json(plan: Plan, statistics: Statistics, out: str | None) -> dict[str, Any]:
    endpoint = plan.endpoint
    return {
        "schema": 1,
        "dataset": plan.task.dataset,
        "layout": plan.task.layout,
        "length_mode": plan.task.length_mode,
        "corpora": [
            {
                "subset": corpus.subset,
                "name": corpus.name,
                "licence": corpus.licence,
                "sha256": corpus.sha256,
                "source": corpus.source,
            }
            for corpus in plan.corpora
        ],
        "tokenizer": {
            "name": endpoint.tokenizer.name,
            "fingerprint": endpoint.tokenizer.fingerprint,
            "chat_template": endpoint.template_name,
            "length_proven": endpoint.proven,
        },
        **statistics.json(),
        "notes": list(plan.notes),
        "out": None if out is None else out,
    }


def _tables(plan: Plan, statistics: Statistics, *, stderr: bool) -> None:
    from rich import box
    from rich.table import Table

    console = out_console(stderr=stderr)
    figures = statistics.json()
    for title, key in (
        ("Prompt length in characters", "prompt_characters"),
        ("Prompt length in tokens", "prompt_tokens"),
    ):
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("Subset", "Samples", "Mean", "Min", "Max", "Std"):
            table.add_column(column, justify="left" if column == "Subset" else "right")
        rows = [*figures["subsets"], {"name": "total", **figures["total"]}]
        for number, row in enumerate(rows):
            spread = row[key]
            if number == len(rows) - 1:
                table.add_section()
            table.add_row(
                printable(row["name"]),
                f"{row['samples']:,}",
                *(_figure(spread[name]) for name in ("mean", "min", "max", "std")),
            )
        console.print(table)
    endpoint = plan.endpoint
    template = endpoint.template_name or "none"
    tokenizer = f"{printable(endpoint.tokenizer.name)} ({endpoint.tokenizer.fingerprint})"
    console.print(f"Tokenizer  {tokenizer}, chat {printable(template)}")
    for corpus in plan.corpora:
        console.print(
            f"Text       {corpus.subset}: {printable(corpus.name)} ({corpus.sha256[:12]}, {printable(corpus.licence)})"
        )
    mode = {"exact": "exact: whole prompts, chat included", "evalscope": "evalscope: its prompts, its labels"}
    console.print(f"Lengths    {mode[plan.task.length_mode]}; {_proof(plan, statistics)}")
    worst = statistics.largest_depth_error_percent
    console.print(f"Depths     off by at most {worst:g} points; needles at {_boundaries(statistics)}")


def _proof(plan: Plan, statistics: Statistics) -> str:
    total = len(plan)
    if statistics.recounted == total:
        return f"all {total:,} prompts encoded again and equal"
    if statistics.recounted:
        return f"{statistics.recounted:,} of {total:,} prompts encoded again and equal (--verify for all)"
    return "not encoded again (--verify does it)"


def _boundaries(statistics: Statistics) -> str:
    names = {"sentence": "sentence ends", "clause": "clause ends", "word": "word ends"}
    return ", ".join(f"{names[kind]} {count:,}" for kind, count in statistics.boundaries.items()) or "no place"


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


@contextmanager
def _counting(total: int) -> Iterator[Callable[[], None]]:
    """A bar that counts prompts, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import Progress

    with Progress(console=out_console(stderr=True), transient=True) as bars:
        task = bars.add_task("prompts", total=total)
        yield lambda: bars.advance(task)
