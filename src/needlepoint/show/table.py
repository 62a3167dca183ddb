"""The final table: what was found, of how much, and in words what is missing and why.

Input is a report as `report.json` has it, of this program or imported, with any part absent: what is not known is a
dash, never 0. Accuracy never stands without its coverage.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..plan.grid import format_length
from ..types import VALID_OUTCOMES
from .cells import grids_of_report
from .colours import Scale
from .console import out_console
from .facts import layout_of
from .findings import findings
from .grid import Heatmaps
from .scorers import scoring_words
from .words import ascii_only, counts, cut, in_order, one_line, percent, short_number

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_OUTCOMES_FROM = 96  # columns; below, the column only tells what is not correct,
_NOT_CORRECT_FROM = 76  # and below this there is none
_LONGEST_NAME = 24
_MOST_PLACES = 4
_WHY = {
    "overflow": "the prompt is longer than the model takes",
    "truncated": "the server counted fewer tokens than were sent",
    "out_of_room": "the answer limit was used up by reasoning",
    "failed": "no reply came, after the retries",
    "unjudged": "the judge failed",
}


def show_report(
    report: Mapping[str, Any],
    *,
    console: Console | None = None,
    heatmaps: bool = True,
    numbers: bool = False,
    scale: Scale = "default",
) -> None:
    """Heatmaps and table on stdout (or the console that is given)."""
    from rich.padding import Padding
    from rich.text import Text

    console = console or out_console()
    plain_ascii = not console.encoding.startswith("utf")
    if heatmaps and (grids := grids_of_report(report)):
        console.print(Heatmaps(grids=grids, numbers=numbers, scale=scale))
        console.print()
    _print(console, _table(report, console.width, plain_ascii))
    says = list(report_words(report))
    if says:
        console.print()
    for line in says:
        text = Text((ascii_only(line) if plain_ascii else line).strip())
        _print(console, Padding(text, (0, 0, 0, len(line) - len(line.lstrip()))))


def _print(console: Console, what: RenderableType) -> None:
    """Print without the blanks that rich fills lines up with; they are in the way once the text is copied or piped."""
    from rich.text import Text

    for segments in console.render_lines(what, pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments), no_wrap=True)
        line.rstrip()
        console.print(line, soft_wrap=True)


def report_words(report: Mapping[str, Any]) -> Iterator[str]:
    """Sentences that belong to the table: what is missing and why, then tokens, prefixes and cost where known."""
    if (layout := layout_of(report)) is not None:
        yield f"Layout: {layout}, which measures something else than other layouts do"
    if outcomes := _all_outcomes(report):
        yield f"Outcomes: {counts(in_order(outcomes))}"
    yield from _missing(report)
    yield from scoring_words(report)
    yield from findings(report)
    if margin := _margin(report):
        yield f"Margin: {margin}"
    if tokens := _tokens(report):
        yield f"Tokens: {tokens}"
    if counted := _counted(report):
        yield f"Lengths: {counted}"
    if isinstance(cost := report.get("cost"), int | float):
        yield f"Cost: {cost:,.{2 if cost >= 1 else 4}f}"


# --- the table --------------------------------------------------------------------------------------------------------


def _table(report: Mapping[str, Any], width: int, plain_ascii: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    wide, some = width >= _OUTCOMES_FROM, width >= _NOT_CORRECT_FROM
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for name in ("Score", "Interval", "n", "Valid", "Coverage"):
        table.add_column(name, justify="right", no_wrap=True)
    if some:
        table.add_column("Outcomes" if wide else "Not correct", overflow="fold")

    def add(name: str, row: Mapping[str, Any], outcomes: Mapping[str, int], style: str = "", end: bool = False) -> None:
        n, valid = (_count(row.get(key)) for key in ("n", "valid"))
        shown = [name, percent(_number(row.get("score"))), _interval(row.get("interval")), n, valid, _coverage(row)]
        if some:
            told = counts(item for item in in_order(outcomes) if wide or item[0] != "correct")
            shown.append(told if outcomes else "–")
        texts = [Text(ascii_only(text) if plain_ascii else text) for text in shown]
        coverage = _share(row)
        if coverage is not None and coverage < 1:
            texts[5].stylize("bold")
        table.add_row(*texts, style=style, end_section=end)

    room = _LONGEST_NAME if wide else 16 if some else 12
    subsets = _rows(report.get("subsets"))
    for subset in subsets:
        add(cut(one_line(_name(subset)), room), subset, _outcomes_of(subset), "bold")
        lengths = _rows(subset.get("lengths"))
        by_length = _outcomes_by_length(subset)
        for i, row in enumerate(lengths):
            length = _length(row)
            name = "?" if length is None else format_length(length)
            add(f"  {name}", row, _known(row.get("outcomes")) or by_length.get(length, {}), end=i == len(lengths) - 1)
    if len(subsets) != 1:
        add("overall", report.get("overall") or {}, _all_outcomes(report), "bold")
    return table


def _interval(value: object) -> str:
    """`[94.1%, 99.0%]` of a pair or of {low, high}."""
    ends = [value.get("low"), value.get("high")] if isinstance(value, Mapping) else value
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
        return "–"
    low, high = _number(ends[0]), _number(ends[1])
    return "–" if low is None or high is None else f"{percent(low).rstrip('%')}–{percent(high)}"


def _coverage(row: Mapping[str, Any]) -> str:
    return percent(_share(row))


def _share(row: Mapping[str, Any]) -> float | None:
    """Coverage as the report says it, else from its counts."""
    told = _number(row.get("coverage"))
    n, valid = _number(row.get("n")), _number(row.get("valid"))
    return told if told is not None else valid / n if n and valid is not None else None


# --- in words ---------------------------------------------------------------------------------------------------------


def _missing(report: Mapping[str, Any]) -> Iterator[str]:
    overall = report.get("overall") or {}
    coverage = _share(overall)
    if coverage is None or coverage >= 1:
        return
    n, valid = _number(overall.get("n")), _number(overall.get("valid"))
    lost = f"{n - valid:,.0f} of {n:,.0f} trials gave" if n is not None and valid is not None else "some trials gave"
    yield f"Coverage is {percent(coverage)}: {lost} no valid measurement and are not in the score."
    for outcome, found in in_order(_all_outcomes(report)):
        if outcome not in VALID_OUTCOMES:
            why = _WHY.get(outcome)
            where = _places(report, outcome)
            name = one_line(outcome.replace("_", " "))
            yield f"  {found:,} {name}{f': {why}' if why else ''}{f' ({where})' if where else ''}"


def _places(report: Mapping[str, Any], outcome: str) -> str:
    """`english 16k, 32k; chinese 32k`: the lengths at which an outcome came, a few of them."""
    places = []
    for subset in _rows(report.get("subsets")):
        by_length = _outcomes_by_length(subset)
        lengths = sorted(length for length, found in by_length.items() if length is not None and found.get(outcome))
        if not lengths:
            continue
        if len(lengths) == len(by_length) > 1:
            says = "all lengths"
        elif len(lengths) > _MOST_PLACES:
            says = f"{len(lengths)} lengths from {format_length(lengths[0])} to {format_length(lengths[-1])}"
        else:
            says = ", ".join(map(format_length, lengths))
        places.append(f"{cut(one_line(_name(subset)), _LONGEST_NAME)} {says}")
    more = f"; and {len(places) - _MOST_PLACES} more subsets" if len(places) > _MOST_PLACES else ""
    return "; ".join(places[:_MOST_PLACES]) + more


def _margin(report: Mapping[str, Any]) -> str | None:
    """How much likelier the right value was than the likeliest wrong one, overall and where it is least."""
    found = report.get("margin") or {}
    whole = found.get("overall") or {}
    if (mean := _number(whole.get("mean"))) is None:
        return None
    says = f"the right value is likelier than any wrong one by {mean:,.2f} nats on average"
    if interval := whole.get("interval"):
        says += f" ({interval[0]:,.2f} to {interval[1]:,.2f})"
    says += f", ahead in {percent(whole['ahead'])} of {whole['n']:,}"
    rows = [
        (row["mean"], _name(subset), row["context_length"]) for subset in found["subsets"] for row in subset["lengths"]
    ]
    if len(rows) > 1:
        least, name, length = min(rows)
        says += f"; least at {format_length(length)} of {one_line(name)}: {least:,.2f}"
    return says


def _tokens(report: Mapping[str, Any]) -> str:
    tokens, prefix = report.get("tokens") or {}, report.get("prefix") or {}
    figures = {name: _number(tokens.get(name)) for name in ("sent", "prompt", "completion", "reasoning", "cached")}
    read = figures["prompt"] if figures["prompt"] is not None else figures["sent"]
    says = [f"{short_number(read)} read"] if read is not None else []
    if figures["cached"] is not None:
        share = f" ({percent(figures['cached'] / read)})" if read else ""
        says.append(f"{short_number(figures['cached'])} of them from a cache{share}")
    if (prefilled := _number(prefix.get("prefilled_tokens"))) is not None:
        says.append(f"{short_number(prefilled)} prefilled")
    if figures["completion"] is not None:
        reasoning = figures["reasoning"]
        says.append(
            f"{short_number(figures['completion'])} written"
            + (f", {short_number(reasoning)} of them reasoning" if reasoning else "")
        )
    return ", ".join(says)


def _counted(report: Mapping[str, Any]) -> str:
    """How far the server's counts of the prompts are from ours, and what that proves."""
    tokens, endpoint, tokenizer = (report.get(name) or {} for name in ("tokens", "endpoint", "tokenizer"))
    difference = _number(tokens.get("difference_max"))
    if difference is None:
        return ""
    if difference == 0:
        return "every prompt was counted as it was planned"
    how = "more" if difference > 0 else "fewer"
    says = f"the server counted up to {abs(difference):,.0f} tokens {how} in a prompt than were planned"
    if endpoint.get("proven") or report.get("length_mode") != "exact":
        return says
    return f"{says} with {one_line(str(tokenizer.get('name')))}; name its own with --tokenizer for exact ones"


# --- what reports hold ------------------------------------------------------------------------------------------------


def _rows(value: object) -> list[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list | tuple) else []


def _name(subset: Mapping[str, Any]) -> str:
    return str(subset.get("name") or "all")


def _length(row: Mapping[str, Any]) -> int | None:
    length = _number(row.get("context_length"))
    return None if length is None else int(length)


def _outcomes_by_length(subset: Mapping[str, Any]) -> dict[int | None, Counter[str]]:
    found: dict[int | None, Counter[str]] = {}
    for cell in _rows(subset.get("cells")):
        found.setdefault(_length(cell), Counter()).update(_known(cell.get("outcomes")))
    return found


def _outcomes_of(subset: Mapping[str, Any]) -> Mapping[str, int]:
    told = _known(subset.get("outcomes"))
    return told or sum(_outcomes_by_length(subset).values(), Counter())


def _all_outcomes(report: Mapping[str, Any]) -> Mapping[str, int]:
    told = _known(report.get("outcomes"))
    return told or sum((Counter(_outcomes_of(subset)) for subset in _rows(report.get("subsets"))), Counter())


def _known(outcomes: object) -> dict[str, int]:
    if not isinstance(outcomes, Mapping):
        return {}
    return {str(name): n for name, n in outcomes.items() if isinstance(n, int) and n > 0}


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def _count(value: object) -> str:
    number = _number(value)
    return "–" if number is None else f"{number:,.0f}"


def _demo() -> None:
    """A report that is made up, so that this module shows itself."""
    import random

    dice = random.Random("demo")
    subsets: list[dict[str, Any]] = []
    whole: Counter[str] = Counter()
    for name in ("english", "chinese 西游记"):
        by_length: dict[int, Counter[str]] = {}
        cells = []
        for length in (1_000, 4_444, 16_000, 64_000):
            for depth in range(0, 101, 10):
                over = length == 64_000 and depth > 40
                outcome = "overflow" if over else "wrong" if dice.random() < 0.1 else "correct"
                by_length.setdefault(length, Counter())[outcome] += 1
                place = {"context_length": length, "depth_percent": depth}
                cells.append({**place, **_tally({outcome: 1}), "outcomes": {outcome: 1}})
        found = sum(by_length.values(), Counter())
        lengths = [{"context_length": length, **_tally(some)} for length, some in by_length.items()]
        subsets.append({"name": name, **_tally(found), "lengths": lengths, "cells": cells})
        whole += found
    tokens = {"sent": 1_834_212, "prompt": 1_834_530, "completion": 4_211, "cached": 1_402_118}
    head = {"overall": _tally(whole), "outcomes": dict(whole), "tokens": tokens, "cost": 0.4213}
    show_report({**head, "subsets": subsets})


def _tally(found: Mapping[str, int]) -> dict[str, Any]:
    valid, n = found.get("correct", 0) + found.get("wrong", 0), sum(found.values())
    score = found.get("correct", 0) / valid if valid else None
    interval = None if score is None else [max(0.0, score - 0.08), min(1.0, score + 0.05)]
    return {"score": score, "interval": interval, "n": n, "valid": valid, "coverage": valid / n}


if __name__ == "__main__":
    _demo()
