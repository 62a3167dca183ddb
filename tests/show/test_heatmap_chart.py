"""The heatmap as a Vega-Lite spec and as a picture: what is coloured, hatched, empty, labelled."""

from __future__ import annotations

import json
import re
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import itertools

from reports import cell, effective, grid, report, subset

from needlepoint.show import charts
from needlepoint.show.charts import ChartLook, hatch, heatmap_spec, heatmap_specs
from needlepoint.show.colours import ANCHORS, colour

LENGTHS, DEPTHS = (1_000, 4_000, 32_000, 1_000_000), (0, 50, 100)


def mixed(length: int, depth: float) -> dict[str, Any] | None:
    if length == 1_000_000:
        return cell(length, depth, None, overflow=2) if depth else None
    if length == 32_000 and depth == 50:
        return cell(length, depth, 0.5, correct=1, wrong=1, failed=1)
    return cell(length, depth, 1.0, n=3)


MIXED = report(subset("english", grid(LENGTHS, DEPTHS, mixed), effective(4_000)))


def values(spec: dict[str, Any], style: str) -> list[dict[str, Any]]:
    return [row for layer in styled(spec, style) for row in layer["data"]["values"]]


def styled(spec: dict[str, Any], *styles: str) -> list[dict[str, Any]]:
    return [layer for layer in spec["layer"] if layer["mark"].get("style") in styles]


def notes(spec: dict[str, Any]) -> str:
    return "\n".join(row["says"] for row in values(spec, "note"))


def test_only_measured_cells_have_a_colour_and_invalid_ones_are_hatched() -> None:
    spec = heatmap_spec(MIXED, "english")
    coloured = values(spec, "square")
    assert len(coloured) == 9 and all(row["score"] is not None for row in coloured)
    hatched = values(spec, "hatch")
    assert {(row["context_length"], row["depth_percent"]) for row in hatched} == {(1_000_000, 50.0), (1_000_000, 100.0)}
    assert hatched == values(spec, "broken") and "score" not in hatched[0]
    (corner,) = values(spec, "corner")
    assert (corner["context_length"], corner["depth_percent"]) == (32_000, 50)
    assert "hatched: no valid measurement (4 overflow)" in notes(spec)
    assert "blank: not asked" in notes(spec)


def test_axes_are_lengths_as_people_say_them_and_depth_from_the_top() -> None:
    spec = heatmap_spec(MIXED, "english")
    assert spec["encoding"]["x"]["scale"]["domain"] == ["1k", "4k", "32k", "1M"]
    assert spec["encoding"]["y"]["scale"]["domain"] == ["0%", "50%", "100%"]


def test_lengths_that_would_read_the_same_are_written_out() -> None:
    cells = grid((131_072, 131_400, 1_000), (0, 100))
    domain = heatmap_spec(report(subset("english", cells)), "english")["encoding"]["x"]["scale"]["domain"]
    assert domain == ["1k", "131,072", "131,400"]


def test_colours_are_those_of_the_terminal() -> None:
    for scale in ("default", "classic"):
        spec = heatmap_spec(MIXED, "english", ChartLook(scale=scale))  # type: ignore[arg-type]
        told = spec["layer"][0]["encoding"]["color"]["scale"]
        assert told["range"] == list(ANCHORS[scale])  # type: ignore[index]
        assert told["domain"][0] == 0 and told["domain"][-1] == 1
        drawn = charts.svg(spec)
        half = colour(0.5, scale)  # type: ignore[arg-type]
        red, green, blue = (int(half[i : i + 2], 16) for i in (1, 3, 5))
        assert f"rgb({red}, {green}, {blue})" in drawn


def test_the_tooltip_tells_score_interval_and_trials() -> None:
    spec = heatmap_spec(MIXED, "english")
    row = next(row for row in values(spec, "square") if row["depth_percent"] == 50 and row["context_length"] == 32_000)
    assert (row["shown"], row["ends"]) == ("50.0%", "30.0% – 60.0%")
    assert row["trials"] == "3 (valid: 2)" and row["came"] == "1 correct, 1 wrong, 1 failed"
    titles = [one["title"] for one in spec["layer"][0]["encoding"]["tooltip"]]
    assert titles == ["Context length (tokens)", "Needle depth", "Score", "95% interval", "Trials", "Outcomes"]


def test_title_names_the_model_and_the_subtitle_the_result() -> None:
    title = heatmap_spec(MIXED, "english")["title"]
    assert " ".join(title["text"]) == "Needle in a Haystack · gpt-4 · english"
    said = " ".join(title["subtitle"])
    assert said.startswith("Finds 96.2% [93.2, 98.2] of needles up to 32k; ")
    assert "83.9% of trials measured" in said and "effective length 4k at 85%" in said


def test_the_effective_length_is_marked_behind_its_column() -> None:
    spec = heatmap_spec(MIXED, "english")
    assert values(spec, "effective") == [{"x": "4k", "says": "effective length 4k"}]
    never = report(subset("english", grid(LENGTHS, DEPTHS), effective(1_000_000, at_least=True)))
    assert values(heatmap_spec(never, "english"), "effective-label")[0]["says"] == "effective length ≥ 1M"
    nowhere = report(subset("english", grid(LENGTHS, DEPTHS), effective(None)))
    assert not values(heatmap_spec(nowhere, "english"), "effective")
    assert not values(heatmap_spec(report(subset("english", grid(LENGTHS, DEPTHS))), "english"), "effective")


def test_numbers_are_shown_where_asked_and_where_they_fit() -> None:
    def texts(spec: dict[str, Any]) -> set[str]:
        found = [layer for layer in spec["layer"] if layer["mark"]["type"] == "text" and "style" not in layer["mark"]]
        return {row["says"] for layer in found for row in layer["data"]["values"]}

    assert texts(heatmap_spec(MIXED, "english", ChartLook(numbers=True))) == {"1", ".50"}
    assert not texts(heatmap_spec(MIXED, "english"))
    fine = report(subset("english", grid(range(1_000, 36_000, 1_000), range(35))))
    assert not texts(heatmap_spec(fine, "english", ChartLook(numbers=True)))


def test_labels_of_a_fine_grid_do_not_touch() -> None:
    fine = report(subset("english", grid([1_000 + 3_735 * i for i in range(35)], [i / 0.34 for i in range(35)])))
    spec = heatmap_spec(fine, "english")
    step = spec["width"] / 35
    domain, shown = spec["encoding"]["x"]["scale"]["domain"], spec["encoding"]["x"]["axis"]["values"]
    places = [domain.index(label) for label in shown]
    assert places[0] == 0 and places[-1] == 34
    assert all((b - a) * step > 6.0 * len(shown[1]) for a, b in itertools.pairwise(places))


def test_chinese_labels() -> None:
    spec = heatmap_spec(MIXED, "english", ChartLook(lang="zh"))
    assert spec["title"]["text"] == ["大海捞针 · gpt-4 · 英文"]
    assert spec["encoding"]["x"]["axis"]["title"] == "上下文长度（词元）"
    assert "斜线" in notes(spec)
    assert spec["config"]["font"].startswith("Noto Sans CJK")


def test_dark_and_light_differ_in_the_config_only() -> None:
    light, dark = (heatmap_spec(MIXED, "english", ChartLook(theme=theme)) for theme in ("light", "dark"))  # type: ignore[arg-type]
    assert light["config"] != dark["config"]
    assert {**light, "config": 0} == {**dark, "config": 0}


def test_the_same_spec_gives_the_same_bytes_and_a_picture_of_twice_its_size() -> None:
    spec = heatmap_spec(MIXED, "english")
    drawn = charts.svg(spec)
    picture = charts.png(spec)
    assert drawn == charts.svg(spec) and picture == charts.png(spec) == charts.png_of_svg(drawn)
    wide, high = (float(size) for size in re.search(r'width="([\d.]+)" height="([\d.]+)"', drawn).groups())  # type: ignore[union-attr]
    assert struct.unpack(">II", picture[16:24]) == (round(2 * wide), round(2 * high))
    assert len(picture) < 150_000


def test_hostile_names_are_only_text() -> None:
    model = "<script>alert(1)</script>\u202egpj.exe\x1b[31m" + "x" * 1_000_000
    hostile = report(subset("</text><script>", grid(LENGTHS, DEPTHS)), model=model)
    ((name, spec),) = heatmap_specs(hostile).items()
    assert re.fullmatch(r"[\w.-]+", name)
    drawn = charts.svg(spec)
    assert "<script" not in drawn and "\u202e" not in drawn and "\x1b" not in drawn
    assert len(drawn) < 100_000 and spec["width"] < 1_000
    assert charts.png_of_svg(drawn).startswith(b"\x89PNG")


def test_subsets_with_one_slug_have_files_of_their_own() -> None:
    two = report(subset("a/b", grid(LENGTHS, DEPTHS)), subset("a b", grid(LENGTHS, DEPTHS)))
    assert list(heatmap_specs(two)) == ["needle_haystack_heatmap_a-b", "needle_haystack_heatmap_a-b-2"]


@pytest.mark.parametrize(
    "lacking",
    [
        {},
        {"subsets": None},
        {"subsets": [{"name": None, "cells": [{"context_length": 1_000, "depth_percent": None}]}]},
        {"subsets": [{"cells": [{"context_length": 1_000, "depth_percent": 0, "score": 0.7}]}]},
    ],
)
def test_what_an_imported_report_lacks_is_left_out(lacking: dict[str, Any]) -> None:
    for spec in heatmap_specs(lacking).values():
        json.dumps(spec, allow_nan=False)
        assert charts.svg(spec).startswith("<svg")
        row = values(spec, "square")[0]
        assert (row["trials"], row["ends"]) == ("–", "–")


def test_a_grid_without_one_valid_measurement_is_drawn_hatched() -> None:
    nothing = report(subset("english", grid(LENGTHS, DEPTHS, lambda a, b: cell(a, b, None, failed=1))))
    spec = heatmap_spec(nothing, "english")
    assert not values(spec, "square") and len(values(spec, "hatch")) == 12
    assert spec["title"]["subtitle"][0].startswith("Not one valid measurement")
    assert charts.svg(spec).startswith("<svg")


def test_stripes_stay_in_their_rectangle() -> None:
    for path in (hatch.stripes(40, 18), hatch.corner(40, 18), hatch.stripes(3, 3)):
        points = re.findall(r"(-?[\d.]+),(-?[\d.]+)", path)
        assert points and all(abs(float(x)) <= 20 and abs(float(y)) <= 9 for x, y in points)
