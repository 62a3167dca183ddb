"""The trials of runs as a table with one row each: for CSV, Parquet, polars and pandas.

A CSV file is opened by spreadsheets, which run what begins like a formula, so foreign text is disarmed in it and cut to
what a cell holds; the other shapes have every text as it is.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .ask.store import RunFolder
from .errors import MissingExtra
from .scoring import Row, scored
from .show.visible import visible

if TYPE_CHECKING:
    import pandas
    import polars

COLUMNS: Mapping[str, type] = {
    "run": str,
    "model": str,
    "dataset": str,
    "layout": str,
    "length_mode": str,
    "subset": str,
    "context_length": int,
    "depth_percent": float,
    "replicate": int,
    "repeat": int,
    "achieved_length": int,
    "achieved_depth_percent": float,
    "boundary": str,
    "length_proven": bool,
    "outcome": str,
    "score": float,
    "scorer": str,
    "reason": str,
    "raw_score": float,
    "scale_low": float,
    "scale_high": float,
    "question": str,
    "needles": list,
    "answers": list,
    "reply": str,
    "span_start": int,
    "span_end": int,
    "reasoning": str,
    "finish": str,
    "error": str,
    "attempts": int,
    "sent_tokens": int,
    "prompt_tokens": int,
    "completion_tokens": int,
    "reasoning_tokens": int,
    "cached_tokens": int,
    "prefilled_tokens": int,
    "logprob_gold": float,
    "logprob_wrong": float,
    "logprob_margin": float,
    "rival": str,
    "first_token_s": float,
    "total_s": float,
    "corpus": str,
    "tokenizer": str,
    "prompt_sha256": str,
    "id": str,
}
"""Names and kinds of the columns; `needles` and `answers` are lists of texts. What is not known is None."""

LONGEST_CELL = 32_000
"""Spreadsheets hold 32,767 characters in a cell, and put what is beyond into the next one."""
_FORMULA = re.compile(r"""(^|[;\t\n])(["\s]*)([=+\-@＝＋－＠])""")
"""A formula at the beginning, or at that of a piece for spreadsheets that split at semicolons or tabs."""


def table_of(folders: Iterable[RunFolder]) -> Iterator[dict[str, Any]]:
    """A row for each trial, by the scorer that its run's numbers rest on."""
    for folder in folders:
        name, model = folder.path.resolve().name, folder.settings.identity.get("model")
        for row in scored(folder):
            yield {"run": name, "model": model, **_facts(row)}


def _facts(row: Row) -> dict[str, Any]:
    trial, reply, score = row
    usage, times, error, margin = reply.usage, reply.times, reply.error, reply.margin
    low, high = score.scale or (None, None)
    start, end = score.span or (None, None)
    return {
        "dataset": trial.dataset,
        "layout": trial.layout,
        "length_mode": trial.length_mode,
        "subset": trial.subset,
        "context_length": trial.context_length,
        "depth_percent": float(trial.depth_percent),
        "replicate": trial.replicate,
        "repeat": trial.repeat,
        "achieved_length": trial.achieved_length,
        "achieved_depth_percent": trial.achieved_depth_percent,
        "boundary": trial.boundary,
        "length_proven": trial.length_proven,
        "outcome": score.outcome,
        "score": score.score,
        "scorer": score.scorer,
        "reason": score.reason,
        "raw_score": score.raw,
        "scale_low": low,
        "scale_high": high,
        "question": trial.question,
        "needles": [needle.text for needle in trial.needles],
        "answers": list(trial.answers),
        "reply": reply.text if reply.text or reply.attempts else None,
        "span_start": start,
        "span_end": end,
        "reasoning": reply.reasoning,
        "finish": reply.finish,
        "error": None if error is None else f"{error.kind}: {error.message}",
        "attempts": reply.attempts,
        "sent_tokens": trial.sent_tokens,
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "reasoning_tokens": usage.reasoning,
        "cached_tokens": usage.cached,
        "prefilled_tokens": reply.prefilled_tokens,
        "logprob_gold": None if margin is None else margin.gold,
        "logprob_wrong": None if margin is None else margin.wrong,
        "logprob_margin": None if margin is None else margin.value,
        "rival": None if margin is None else margin.rival,
        "first_token_s": times.first_token,
        "total_s": times.total,
        "corpus": trial.corpus,
        "tokenizer": trial.tokenizer,
        "prompt_sha256": trial.prompt_sha256,
        "id": trial.id,
    }


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """The table as RFC 4180 CSV, with the mark that tells spreadsheets that it is UTF-8; every text in quotes."""
    lines = [",".join(COLUMNS)]
    lines += (",".join(_cell(row[name]) for name in COLUMNS) for row in rows)
    return "\ufeff" + "\r\n".join(lines) + "\r\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return '"' + disarmed(text).replace('"', '""') + '"'


def disarmed(text: str) -> str:
    """Text that no spreadsheet takes for a formula and no terminal for a command, as long as a cell is."""
    safe = _FORMULA.sub(r"\1\2'\3", visible(text[:LONGEST_CELL]))[:LONGEST_CELL]
    return safe if len(text) <= LONGEST_CELL else f"{safe}… ({len(text):,} characters)"


def polars_frame(rows: Iterable[Mapping[str, Any]]) -> polars.DataFrame:
    """The table as a polars DataFrame. Raises MissingExtra where polars is not installed."""
    pl = need("polars", "A polars table")
    kinds = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean, list: pl.List(pl.String)}
    schema = {name: kinds[kind] for name, kind in COLUMNS.items()}
    frame: polars.DataFrame = pl.DataFrame(_columns(rows), schema=schema)
    return frame


def pandas_frame(rows: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """The table as a pandas DataFrame, with its nullable kinds. Raises MissingExtra where pandas is not installed."""
    pd = need("pandas", "A pandas table")
    kinds = {str: "string", int: "Int64", float: "Float64", bool: "boolean", list: "object"}
    columns = _columns(rows)
    frame: pandas.DataFrame = pd.DataFrame(
        {name: pd.Series(columns[name], dtype=kinds[kind]) for name, kind in COLUMNS.items()}
    )
    return frame


def parquet_bytes(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The table as a Parquet file. Raises MissingExtra where polars is not installed."""
    out = io.BytesIO()
    polars_frame(rows).write_parquet(out)
    return out.getvalue()


def need(package: str, feature: str) -> Any:
    """An optional package, or how to get it."""
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError:
        raise MissingExtra(feature, package) from None


def _columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, Sequence[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for row in rows:
        for name, values in found.items():
            value = row[name]
            values.append([_whole(text) for text in value] if isinstance(value, list) else _whole(value))
    return dict(found)


def _whole(value: Any) -> Any:
    """A text without halves of surrogate pairs, which no file holds."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
