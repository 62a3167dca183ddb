"""Trials as tables: what spreadsheets, polars and pandas get."""

from __future__ import annotations

import csv
import io
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from needlepoint.ask.settings import RunSettings
from needlepoint.ask.store import RunFolder
from needlepoint.errors import MissingExtra
from needlepoint.frames import COLUMNS, csv_text, disarmed, pandas_frame, parquet_bytes, polars_frame, table_of
from needlepoint.types import Needle

from .show.page_runs import a_row, a_trial

FORMULAS = [
    '=HYPERLINK("http://x.test")',
    "+1+1",
    "-2",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " =1",
    "＝1",
    "\n=cmd|' /C calc'!A0",
]
EVIL = [
    *FORMULAS,
    "a;=1;b",
    'a;"=1',
    "a\t=1",
    "a\n=1",
    'say "x",=1',
    "\x1b]0;title\x07\x1b[2J",
    "\u202egnp.exe",
    "x" * 1_000_000,
    "\ud800",
]


@pytest.fixture
def rows(tmp_path: Path) -> list[dict[str, Any]]:
    """A trial for each evil text, which is everything in it that is text."""
    settings = RunSettings(identity={"model": "=model()"})
    with RunFolder.create(tmp_path, model="m", settings=settings) as folder:
        for number, text in enumerate(EVIL):
            trial = a_trial(text.encode(errors="replace").decode(), 1_000, float(number))
            trial = replace(trial, needles=(Needle(text=text, answers=(text,)),), question=text, answers=(text, "b"))
            folder.append(trial, replace(a_row(trial)[1], text=text, reasoning=text, finish=text))
        return list(table_of([folder]))


def test_no_cell_of_a_csv_file_is_a_formula_or_a_command(rows: list[dict[str, Any]]) -> None:
    text = csv_text(rows)
    assert text.startswith("\ufeff") and "\x1b" not in text and "\u202e" not in text and "\x07" not in text
    found = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    assert len(found) == len(EVIL) and list(found[0]) == list(COLUMNS)
    for row in found:
        for name, value in row.items():
            assert not value.strip().startswith(tuple("=@+＝＋＠")), (name, value[:40])
            assert not value.startswith("-") or COLUMNS[name] in (int, float)
            assert len(value) < 32_767
    shorter = re.sub("x{1000,}", "x", text)
    for delimiter in ";\t":  # as spreadsheets of other countries split
        for row in csv.reader(io.StringIO(shorter, newline=""), delimiter=delimiter):
            assert not any(cell.strip(" \"'").startswith(("=", "@")) and cell.strip()[0] != "'" for cell in row), row


def test_numbers_stay_numbers_and_what_is_not_known_is_empty(rows: list[dict[str, Any]]) -> None:
    line = csv_text(rows[:1]).splitlines()[1]
    found = dict(zip(COLUMNS, next(csv.reader([line])), strict=True))
    assert found["context_length"] == "1000" and found["depth_percent"] == "0.0" and found["length_proven"] == "true"
    assert found["raw_score"] == "" and found["error"] == ""


def test_a_harmless_text_is_left_as_it_is() -> None:
    for text in ("", "It is 4711.", "第一行\n第二行", "a\tb", "1-2", "x=1", "'=1"):
        assert disarmed(text) == text


def test_polars_and_parquet_have_every_text_as_it_is(rows: list[dict[str, Any]]) -> None:
    pl = pytest.importorskip("polars")
    frame = polars_frame(rows)
    assert frame.columns == list(COLUMNS) and frame.height == len(EVIL)
    assert frame["reply"].to_list()[:-1] == EVIL[:-1]
    assert frame["context_length"].dtype == pl.Int64 and frame["raw_score"].null_count() == len(EVIL)
    assert frame["answers"].to_list()[0] == [EVIL[0], "b"]
    assert pl.read_parquet(parquet_bytes(rows)).equals(frame)
    assert parquet_bytes(rows) == parquet_bytes(rows)
    assert polars_frame([]).schema == frame.schema


def test_pandas_has_nulls_and_not_zeros(rows: list[dict[str, Any]]) -> None:
    pytest.importorskip("pandas")
    frame = pandas_frame(rows)
    assert list(frame.columns) == list(COLUMNS) and len(frame) == len(EVIL)
    assert str(frame["attempts"].dtype) == "Int64" and frame["raw_score"].isna().all()
    assert frame["reply"][0] == EVIL[0]


@pytest.mark.parametrize(
    ("make", "extra"), [(polars_frame, "polars"), (pandas_frame, "pandas"), (parquet_bytes, "polars")]
)
def test_a_missing_package_is_named_with_its_install_line(
    make: Any, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'needlepoint\[{extra}\]'"):
        make([])
