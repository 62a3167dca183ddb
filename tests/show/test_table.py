"""The final table: coverage beside accuracy, dashes for what is not known, words for what is missing."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from needlepoint.show.table import report_words, show_report


def tally(outcomes: dict[str, int], interval: object = None) -> dict[str, Any]:
    valid = sum(outcomes.get(name, 0) for name in ("correct", "wrong"))
    n = sum(outcomes.values())
    score = outcomes.get("correct", 0) / valid if valid else None
    return {"score": score, "interval": interval, "n": n, "valid": valid, "coverage": valid / n if n else None}


def subset(name: str, by_length: dict[int, dict[str, int]], interval: object = None) -> dict[str, Any]:
    cells = [
        {"context_length": length, "depth_percent": 50, **tally(outcomes), "outcomes": outcomes}
        for length, outcomes in by_length.items()
    ]
    lengths = [{"context_length": length, **tally(found, interval)} for length, found in by_length.items()]
    return {"name": name, **tally(total(by_length.values()), interval), "lengths": lengths, "cells": cells}


def total(counts: Any) -> dict[str, int]:
    whole: dict[str, int] = {}
    for found in counts:
        for name, n in found.items():
            whole[name] = whole.get(name, 0) + n
    return whole


def report(*subsets: dict[str, Any], **more: Any) -> dict[str, Any]:
    outcomes = total(cell["outcomes"] for one in subsets for cell in one["cells"])
    return {"schema": 1, "overall": tally(outcomes), "subsets": list(subsets), "outcomes": outcomes, **more}


BROKEN = report(
    subset("english", {1_000: {"correct": 10}, 4_444: {"correct": 8, "wrong": 2}, 32_000: {"overflow": 10}}),
    subset("chinese 西游记", {1_000: {"correct": 9, "failed": 1}, 32_000: {"correct": 2, "overflow": 8}}),
)


def shown(what: dict[str, Any], width: int = 120, **settings: Any) -> str:
    stream = io.StringIO()
    heatmaps = settings.pop("heatmaps", False)
    show_report(what, console=Console(file=stream, width=width, **settings), heatmaps=heatmaps)
    return stream.getvalue()


def row(text: str, name: str) -> list[str]:
    return re.split(r"\s{2,}", next(line for line in text.splitlines() if line.strip().startswith(name)).strip())


def test_accuracy_never_stands_without_coverage() -> None:
    text = shown(BROKEN)
    assert row(text, "Score") == ["Score", "Interval", "n", "Valid", "Coverage", "Outcomes"]
    assert row(text, "english") == ["english", "90.0%", "–", "30", "20", "66.7%", "18 correct, 2 wrong, 10 overflow"]
    assert row(text, "4444") == ["4444", "80.0%", "–", "10", "10", "100%", "8 correct, 2 wrong"]
    assert row(text, "32k") == ["32k", "–", "–", "10", "0", "0%", "10 overflow"]
    assert row(text, "overall")[1:6] == ["93.5%", "–", "50", "31", "62.0%"]
    assert row(text, "overall")[6] == "29 correct, 2 wrong, 18 overflow, 1 failed"


def test_what_is_missing_is_said_in_words_with_the_reason_and_the_place() -> None:
    said = [line for line in report_words(BROKEN) if "overage" in line or line.startswith("  ")]
    assert said == [
        "Coverage is 62.0%: 19 of 50 trials gave no valid measurement and are not in the score.",
        "  18 overflow: the prompt is longer than the model takes (english 32k; chinese 西游记 32k)",
        "  1 failed: no reply came, after the retries (chinese 西游记 1k)",
    ]


def test_nothing_is_said_of_coverage_when_nothing_is_missing() -> None:
    assert list(report_words(report(subset("english", {1_000: {"correct": 3}})))) == ["Outcomes: 3 correct"]


def test_many_places_are_summed_up() -> None:
    lengths = {1_000 * i: {"overflow": 1} if i > 2 else {"correct": 1} for i in range(1, 12)}
    said = "\n".join(report_words(report(*(subset(f"text {i}", lengths) for i in range(6)))))
    assert "text 0 9 lengths from 3k to 11k; " in said
    assert "and 2 more subsets" in said


@pytest.mark.parametrize("interval", [[0.8415, 0.9991], (0.8415, 0.9991), {"low": 0.8415, "high": 0.9991}])
def test_intervals_are_shown_where_there_are_any(interval: object) -> None:
    text = shown(report(subset("english", {1_000: {"correct": 9, "wrong": 1}}, interval)))
    assert row(text, "1k")[2] == "84.2–99.9%"


@pytest.mark.parametrize("interval", [None, [], [0.5], "0.5–0.9", {"low": 0.5}, [None, 1.0], [float("nan"), 1.0]])
def test_broken_intervals_are_a_dash(interval: object) -> None:
    assert row(shown(report(subset("english", {1_000: {"correct": 9}}, interval))), "1k")[2] == "–"


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("heatmaps", [True, False])
def test_every_line_fits_and_ends_without_blanks(width: int, heatmaps: bool) -> None:
    lines = shown(BROKEN, width, heatmaps=heatmaps).splitlines()
    assert max(cell_len(line) for line in lines) <= width
    assert all(line == line.rstrip() for line in lines)


def test_narrow_tables_keep_the_figures_and_shorten_the_outcomes() -> None:
    assert row(shown(BROKEN, 60), "Score") == ["Score", "Interval", "n", "Valid", "Coverage"]
    assert row(shown(BROKEN, 80), "english")[-1] == "2 wrong, 10 overflow"
    assert "Not correct" in shown(BROKEN, 80)
    assert row(shown(BROKEN, 80), "overall")[5] == "62.0%"


def test_one_subset_has_no_overall_row() -> None:
    assert "overall" not in shown(report(subset("english", {1_000: {"correct": 3}})))


def test_a_share_is_not_rounded_to_a_whole_that_it_is_not() -> None:
    text = shown(
        report(subset("english", {1_000: {"correct": 9_999, "wrong": 1}, 2_000: {"correct": 1, "wrong": 9_999}}))
    )
    assert row(text, "1k")[1] == "99.9%"
    assert row(text, "2k")[1] == "0.1%"


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"overall": None, "subsets": None, "outcomes": None, "tokens": None, "prefix": None},
        {"overall": {"score": None, "n": None}, "subsets": [{"name": None, "lengths": [{}], "cells": [{}]}, {}]},
        {"overall": {"score": 0.5, "coverage": 0.5}, "outcomes": {"failed": None, "correct": 2}},
    ],
)
def test_parts_that_a_report_lacks_are_dashes_never_zero(broken: dict[str, Any]) -> None:
    text = shown(broken, heatmaps=True)
    assert "–" in text
    assert not re.search(r"(?<![\d.])0(?!\.?\d)", text)


def test_tokens_and_cost_are_said_where_known() -> None:
    tokens = {"sent": 1_000_000, "prompt": 1_000_200, "completion": 420, "reasoning": 20, "cached": 500_100}
    more = {"tokens": tokens, "prefix": {"prefilled_tokens": 500_100}, "cost": 0.01234, "effective_length": 32_000}
    said = list(report_words(report(subset("english", {1_000: {"correct": 1}}), **more)))
    assert "Effective length: 32k" in said
    read = "1M read, 500k of them from a cache (50.0%), 500k prefilled"
    assert f"Tokens: {read}, 420 written, 20 of them reasoning" in said
    assert "Cost: 0.0123" in said


def test_a_pipe_gets_no_escapes_and_a_terminal_has_the_heatmap_in_colour() -> None:
    assert "\x1b" not in shown(BROKEN, heatmaps=True)
    assert "48;2;" in shown(BROKEN, heatmaps=True, force_terminal=True, color_system="truecolor")


def test_hostile_names_are_made_printable_and_cut() -> None:
    name = "\x1b]0;owned\x07\u202e [bold]=HYPERLINK(1)\n" * 50
    text = shown(report(subset(name, {1_000: {"correct": 1, "overflow": 1}})), 80, heatmaps=True)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert max(cell_len(line) for line in text.splitlines()) <= 80


def test_a_pipe_without_unicode_gets_ascii() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    show_report(BROKEN, console=Console(file=stream, width=100))
    assert raw.getvalue().isascii()
    assert b"english" in raw.getvalue()


def test_it_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    show_report(BROKEN)
    captured = capsys.readouterr()
    assert "overall" in captured.out
    assert captured.err == ""
