"""The other charts: what each draws, of what, and that it is not made where nothing is known."""

from __future__ import annotations

import copy
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from reports import cell, effective, grid, report, subset

from needlepoint.show import charts
from needlepoint.show.charts import ChartLook, fonts
from needlepoint.show.charts.axes import length_axis

LENGTHS, DEPTHS = (1_000, 4_000, 32_000, 128_000), (0, 25, 50, 75, 100)


def falling(length: int, depth: float) -> dict[str, Any]:
    if length == 128_000:
        return cell(length, depth, None, overflow=4)
    return cell(length, depth, 0.5 if length == 32_000 and depth == 50 else 1.0, n=4)


PACE = [
    {
        "subset": name,
        "context_length": length,
        "n": 20,
        "seconds": {"p10": 1.0, "median": 2.0, "p90": 3.0},
        "first_token_seconds": None,
        "tokens": {"prompt": float(length), "cached": 0.0, "prefilled": None, "completion": 12.5, "reasoning": None},
    }
    for name in ("english", "chinese")
    for length in (1_000, 4_000)
]
RECALL = [
    {
        "subset": "english",
        "context_length": length,
        "needle_count": 3,
        "n": 8,
        "score": 0.75,
        "all_found": 0.25,
        "needles": [1.0, 0.5, 0.75],
    }
    for length in (1_000, 4_000)
]
MARGIN = {
    "unit": "nats",
    "subsets": [
        {
            "name": "english",
            "lengths": [
                {"context_length": 1_000, "mean": 8.5, "interval": [8.0, 9.0], "n": 10, "ahead": 1.0},
                {"context_length": 4_000, "mean": -0.25, "interval": [-1.25, 0.75], "n": 10, "ahead": 0.4},
            ],
        },
        {
            "name": "chinese",
            "lengths": [{"context_length": 1_000, "mean": 7.0, "interval": None, "n": 1, "ahead": 1.0}],
        },
    ],
}
RUN = report(
    subset("english", grid(LENGTHS, DEPTHS, falling), effective(4_000)),
    subset("chinese", grid(LENGTHS, DEPTHS)),
    effective_length=effective(4_000),
    pace=PACE,
    recall=RECALL,
    margin=MARGIN,
)


def marks(spec: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


def test_every_chart_of_a_run_is_drawn_in_both_languages_and_themes() -> None:
    for look in (ChartLook(), ChartLook(lang="zh", theme="dark", scale="classic", numbers=True)):
        specs = charts.specs_of(RUN, look)
        assert list(specs) == [
            "needle_haystack_heatmap_english",
            "needle_haystack_heatmap_chinese",
            "accuracy_by_length",
            "accuracy_by_depth",
            "outcomes_by_length",
            "latency_by_length",
            "tokens_by_length",
            "recall_of_needles",
            "margin_by_length",
        ]
        for name, spec in specs.items():
            json.dumps(spec, allow_nan=False)
            drawn = charts.svg(spec)
            assert drawn.startswith("<svg") and ("NaN" not in drawn and "undefined" not in drawn), name


def test_what_a_report_does_not_know_has_no_chart() -> None:
    bare = {"subsets": [{"name": "english", "cells": [{"context_length": 1_000, "depth_percent": 0, "score": 1.0}]}]}
    assert list(charts.specs_of(bare)) == ["needle_haystack_heatmap_english", "accuracy_by_length"]
    assert charts.specs_of({}) == {}


def test_accuracy_has_a_band_only_where_intervals_are_known() -> None:
    spec = charts.accuracy_spec(RUN)
    assert spec is not None and marks(spec, "area")
    assert spec["title"]["subtitle"] == ["band: 95% interval; no valid measurement at 128k"]
    without = copy.deepcopy(RUN)
    for row in without["subsets"]:
        for length in row["lengths"]:
            length["interval"] = None
    bare = charts.accuracy_spec(without)
    assert bare is not None and not marks(bare, "area")
    assert bare["title"]["subtitle"] == ["no valid measurement at 128k"]


def test_margins_go_below_0_and_have_bands_where_their_intervals_are_known() -> None:
    spec = charts.margin_spec(RUN)
    assert spec is not None and marks(spec, "area")
    assert spec["title"]["subtitle"] == ["band: 95% interval; above 0 the right value is likelier than any wrong one"]
    told = [(row["series"], row["place"], row["value"], row["shown"]) for row in spec["data"]["values"]]
    assert told == [
        ("english", 1_000, 8.5, "8.50"),
        ("english", 4_000, -0.25, "−0.25"),
        ("chinese", 1_000, 7.0, "7.00"),
    ]
    assert [row["ends"] for row in spec["data"]["values"]] == ["8.00 – 9.00", "−1.25 – 0.75", "–"]
    assert "domain" not in marks(spec, "line")[0]["encoding"]["y"]["scale"]
    assert charts.margin_spec({**RUN, "margin": None}) is None


def test_accuracy_marks_the_threshold_and_the_effective_length() -> None:
    spec = charts.accuracy_spec(RUN)
    assert spec is not None
    said = [row["says"] for layer in spec["layer"] for row in layer.get("data", {}).get("values", ()) if "says" in row]
    assert "85%" in said and "effective length 4k" in said
    assert not [x for x in charts.accuracy_spec({**RUN, "effective_length": None})["layer"] if "data" in x]  # type: ignore[index]


def test_lengths_without_a_measurement_break_the_line_and_are_no_zero() -> None:
    spec = charts.accuracy_spec(RUN)
    assert spec is not None
    row = next(row for row in spec["data"]["values"] if row["series"] == "english" and row["place"] == 128_000)
    assert row["value"] is None and row["low"] is None and row["shown"] == "–"


def test_lengths_that_double_stand_evenly_and_even_ones_too() -> None:
    assert length_axis((1_000, 2_000, 4_000, 8_000, 64_000), 560, "")[0]["type"] == "log"
    assert "type" not in length_axis([1_000 + 3_444 * i for i in range(10)], 560, "")[0]
    scale, axis = length_axis((4_000,), 560, "")
    assert scale["domain"][0] < 4_000 < scale["domain"][1] and axis["values"] == [4_000]


def test_labels_of_many_lengths_are_thinned_and_the_last_is_kept() -> None:
    lengths = [2**i * 100 for i in range(40)]
    values = length_axis(lengths, 300, "")[1]["values"]
    assert values[-1] == lengths[-1] and 3 < len(values) < 20


def test_outcomes_are_stacked_to_the_whole_with_the_invalid_in_grey() -> None:
    spec = charts.outcomes_spec(RUN)
    assert spec is not None
    shares: dict[tuple[str, str], float] = {}
    for row in spec["data"]["values"]:
        place = row["subset"], row["x"]
        shares[place] = shares.get(place, 0.0) + row["share"]
    assert len(shares) == 8 and all(math.isclose(share, 1.0) for share in shares.values())
    domain = spec["spec"]["encoding"]["color"]["scale"]["domain"]
    assert domain == ["correct", "wrong", "overflow"]


def test_latency_has_only_what_was_timed() -> None:
    spec = charts.latency_spec(RUN)
    assert spec is not None
    assert {row["kind"] for row in spec["data"]["values"]} == {"whole answer"}
    assert charts.latency_spec({**RUN, "pace": []}) is None


def test_tokens_not_counted_are_left_out_and_none_cached_is_a_zero() -> None:
    spec = charts.tokens_spec(RUN)
    assert spec is not None
    kinds = {row["kind"]: row["value"] for row in spec["data"]["values"]}
    assert set(kinds) == {"prompt", "cached", "answer"} and kinds["cached"] == 0


def test_recall_has_a_row_for_each_needle_the_mean_and_all() -> None:
    spec = charts.recall_spec(RUN)
    assert spec is not None
    assert spec["encoding"]["y"]["scale"]["domain"] == ["1", "2", "3", "mean recall", "all needles found"]
    assert [row["says"] for row in spec["layer"][0].get("data", spec["data"])["values"]][:5] == [
        "1", ".50", ".75", ".75", ".25",
    ]  # fmt: skip


def test_a_difference_is_taken_only_where_both_measured() -> None:
    after = copy.deepcopy(RUN)
    after["model"] = "gpt-5"
    after["subsets"][0]["cells"] = grid(LENGTHS, DEPTHS)
    spec = charts.difference_spec(RUN, after, "english", ChartLook(numbers=True), notable=[(32_000, 50.0)])
    assert spec is not None
    rows = {(row["context_length"], row["depth_percent"]): row for row in spec["layer"][0]["data"]["values"]}
    assert len(rows) == 15 and rows[32_000, 50]["difference"] == 0.5 and rows[32_000, 50]["says"] == "+.50"
    hatched = next(layer for layer in spec["layer"] if layer["mark"].get("style") == "hatch")["data"]["values"]
    assert {row["context_length"] for row in hatched} == {128_000} and len(hatched) == 5
    (outline,) = [layer for layer in spec["layer"] if layer["mark"].get("style") == "outline"]
    assert len(outline["data"]["values"]) == 1
    assert spec["title"]["text"] == ["gpt-5 against gpt-4 · english"]
    assert spec["title"]["subtitle"] == ["Mean difference +3.3 points; gpt-5 better: 1; gpt-4 better: 0; the same: 14"]
    assert charts.difference_spec(RUN, after, "french") is None


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_several_runs_stand_side_by_side_on_the_same_axes(count: int) -> None:
    runs = {f"model {i}": RUN for i in range(count)}
    specs = charts.specs_of_several(runs)
    assert ("difference_english" in specs) == (count == 2)
    spec = specs["needle_haystack_heatmaps_english"]
    assert [view["title"]["text"] for view in spec["concat"]] == list(runs)
    assert len({json.dumps(view["encoding"]["x"]["scale"]) for view in spec["concat"]}) == 1
    legends = [view["layer"][0]["encoding"]["color"]["legend"] for view in spec["concat"]]
    assert sum(legend is not None for legend in legends) == 1
    for drawn in map(charts.svg, specs.values()):
        assert drawn.startswith("<svg")


def test_all_subsets_of_a_run_in_one_picture() -> None:
    spec = charts.overview_spec(RUN)
    assert spec is not None and [view["title"]["text"] for view in spec["concat"]] == ["english", "chinese"]
    assert spec["title"]["subtitle"][0].startswith("Finds ")
    assert charts.overview_spec({}) is None


def test_hostile_names_are_only_text_on_every_chart() -> None:
    evil = "<script>alert(1)</script>\u202e\x1b]0;x\x07" + "長" * 5_000
    run = json.loads(json.dumps(RUN).replace('"english"', json.dumps(evil)).replace('"gpt-4"', json.dumps(evil)))
    specs = {**charts.specs_of(run), **charts.specs_of_several({"a": run, "b": run})}
    for spec in specs.values():
        drawn = charts.svg(spec)
        assert "<script" not in drawn and "\u202e" not in drawn and "\x1b" not in drawn and len(drawn) < 200_000


def test_a_spec_that_names_a_url_is_not_followed() -> None:
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "data": {"url": "http://127.0.0.1:9/x.json"},
        "mark": "point",
    }
    with pytest.raises(ValueError, match=r"(?i)not allowed|denied|unauthorized|access"):
        charts.svg(spec)


def test_a_chinese_font_is_looked_for_in_the_users_own_folders_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    own = tmp_path / "deep" / "SourceHanSansSC-Regular.otf"
    own.write_bytes(b"")
    monkeypatch.setenv(fonts.FONTS, str(tmp_path))
    fonts.chinese_font.cache_clear()
    assert fonts.chinese_font() == own
    fonts.chinese_font.cache_clear()
