"""The heatmap in characters: structure, never bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable

import pytest
from rich.cells import cell_len
from rich.console import Console

from needlepoint.show.cells import CellState, GridState, grids_of, grids_of_report, include
from needlepoint.show.colours import INDEXED
from needlepoint.show.grid import Heatmaps, Look, draw, draw_all, look_of, plain
from needlepoint.types import Cell

from ..work import lines_run

LENGTHS = (1_000, 4_444, 16_000, 64_000)
DEPTHS = (0.0, 50.0, 100.0)
PLAIN = Look()
COLOURS = Look(colours="truecolor")


def grid(name: str = "english", lengths: Iterable[int] = LENGTHS, depths: Iterable[float] = DEPTHS) -> GridState:
    cells = [Cell(subset=name, context_length=n, depth_percent=d) for n in lengths for d in depths]
    return grids_of(cells)[0]


def square(size: int, name: str = "english") -> GridState:
    return grid(name, [1_000 * (i + 1) for i in range(size)], [100 * i / (size - 1) for i in range(size)])


def filled(state: GridState, score: float = 1.0) -> GridState:
    for cell in state.cells.values():
        cell.add("correct", score)
    return state


def printed(what: Heatmaps, **settings: object) -> str:
    stream = io.StringIO()
    defaults: dict[str, object] = {"width": 80, "height": 40, "force_terminal": True, "color_system": "truecolor"}
    Console(file=stream, **(defaults | settings)).print(what)  # type: ignore[arg-type]
    return stream.getvalue()


def test_depths_go_down_and_lengths_across_like_the_published_heatmap() -> None:
    state = grid()
    state.cells[64_000, 0.0].add("correct", 1.0)
    state.cells[1_000, 100.0].add("wrong", 0.0)
    lines = plain(draw(state, 40, look=PLAIN)).splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == ["0%", "50%", "100%"]
    assert lines[-1].split() == ["1k", "4.4k", "16k", "64k"]
    assert lines[1].endswith("██████")
    assert lines[3].split()[1].startswith("░░░░░░")


def test_each_state_of_a_cell_has_its_own_mark() -> None:
    state = grid(lengths=[1_000], depths=range(0, 100, 10))
    marks = [(1.0, "█"), (0.8, "▓"), (0.3, "▒"), (0.0, "░")]
    cells = list(state.cells.values())
    for cell, (score, _) in zip(cells, marks, strict=False):
        cell.add("partial", score)
    cells[4].add("overflow", None)
    cells[5].in_flight = 1
    rows = plain(draw(state, 40, look=PLAIN, phase=1)).splitlines()[1:]
    shown = [row.split("%")[1].strip()[:1] for row in rows[:7]]
    assert shown == ["█", "▓", "▒", "░", "╱", "•", "·"]


def test_only_exactly_all_and_exactly_nothing_have_the_end_marks() -> None:
    for look, low, high in ((PLAIN, "░", "█"), (Look(ascii=True), "0", "#")):
        for score in (0.001, 0.5, 0.999):
            row = plain(draw(filled(grid(), score), 40, look=look)).splitlines()[1].split("%")[1]
            assert low not in row
            assert high not in row


def test_an_invalid_cell_has_no_colour_of_the_scale() -> None:
    state = grid(lengths=[1_000], depths=[0.0])
    state.cells[1_000, 0.0].add("failed", None)
    for look in (COLOURS, Look(colours="256")):
        row = draw(state, 40, look=look)[1]
        assert row[1] == ("╱" * 6, "")


def test_a_cell_that_is_partly_invalid_keeps_its_colour_and_gets_a_hatch() -> None:
    state = grid(lengths=[1_000], depths=[0.0])
    state.cells[1_000, 0.0].add("correct", 1.0)
    whole = draw(state, 40, look=COLOURS)[1][1]
    state.cells[1_000, 0.0].add("failed", None)
    text, style = draw(state, 40, look=COLOURS)[1][1]
    assert (text.strip(), style) == ("╱", whole[1])


def test_cells_that_are_not_in_the_plan_are_blank() -> None:
    cells = [Cell(subset="english", context_length=n, depth_percent=d) for n, d in ((1_000, 0.0), (2_000, 50.0))]
    rows = plain(draw(grids_of(cells)[0], 40, look=PLAIN)).splitlines()
    assert [row.count("·") for row in rows[1:3]] == [1, 1]


def test_the_title_says_coverage_beside_accuracy() -> None:
    state = filled(grid())
    state.cells[1_000, 0.0].add("overflow", None)
    title = plain(draw(state, 60, look=PLAIN)).splitlines()[0]
    assert title == "english  100% of 12 valid, 1 invalid"
    assert plain(draw(state, 24, look=PLAIN)).splitlines()[0] == "english  100% 12/13"


def test_numbers_are_percent_and_never_rounded_up_to_100() -> None:
    text = plain(draw(filled(grid(), 0.999), 60, look=PLAIN, numbers=True))
    assert re.findall(r"\b\d+\b(?!%)", text.splitlines()[1].split("%")[1]) == ["99"] * 4


@pytest.mark.parametrize("size", [1, 3, 10, 35])
@pytest.mark.parametrize("look", [PLAIN, COLOURS, Look(ascii=True)], ids=["plain", "colours", "ascii"])
def test_no_line_is_wider_than_the_window(size: int, look: Look) -> None:
    names = ("english", "西游记 " * 20, "")
    grids = [filled(square(size, name) if size > 1 else grid(name, [1_000_000], [12.5])) for name in names]
    for width in (*range(1, 40), 60, 79, 80, 120, 200, 400):
        lines = draw_all(grids, width, look=look, numbers=size % 2 == 1)
        assert max(cell_len(text) for text in plain(lines).splitlines()) <= max(width, 4)


@pytest.mark.parametrize("height", [12, 24, 40, 80])
def test_where_the_height_is_small_neighbouring_depths_share_a_row_and_the_legend_says_so(height: int) -> None:
    grids = [filled(square(35, name)) for name in ("english", "chinese")]
    lines = draw_all(grids, 120, height=height, look=PLAIN)
    assert len(lines) <= height
    rows = sum(line[0][0].strip().endswith("%") for line in lines)
    assert ("depths a row" in plain(lines)) == (rows < 35)


def test_a_shared_row_shows_the_mean_of_its_cells() -> None:
    state = filled(grid(lengths=[1_000], depths=range(0, 100, 10)))
    state.cells[1_000, 0].add("wrong", 0.0)
    rows = plain(draw(state, 40, height=7, look=PLAIN)).splitlines()[1:-1]
    assert [row.split("%")[1].strip()[0] for row in rows] == ["▒" if 2 / 3 < 0.6 else "▓", *"████"]


def test_two_grids_stand_side_by_side_where_there_is_room_else_below_one_another() -> None:
    grids = [square(10, "english"), square(10, "西游记")]
    wide, narrow = (plain(draw_all(grids, width, look=PLAIN)) for width in (80, 30))
    assert "english" in wide.splitlines()[0] and "西游记" in wide.splitlines()[0]
    assert "西游记" not in narrow.splitlines()[0]


def test_columns_stay_aligned_beside_titles_of_wide_characters() -> None:
    grids = [square(10, "西游记 红楼梦 水浒传"), square(10, "english")]
    lines = plain(draw_all(grids, 100, look=PLAIN)).splitlines()
    starts = {cell_len(line[: line.rindex("%")]) for line in lines[1:11]}
    assert len(starts) == 1
    assert cell_len(lines[0][: lines[0].index("english")]) == starts.pop() - len("11.1")


def test_below_one_column_a_length_each_length_has_a_line() -> None:
    lines = plain(draw(filled(square(35), 0.5), 30, look=PLAIN)).splitlines()
    assert len(lines) == 36
    assert re.fullmatch(r" 1k ▒+ 50\.0%", lines[1])
    assert re.fullmatch(r"35k ▒+ 50\.0%", lines[-1])


@pytest.mark.parametrize("name", ["\x1b[31mred\x1b]0;title\x07", "a\rb\nc", "\u202eesrever", "\x9b2J", "lone \ud800"])
def test_hostile_names_are_made_printable(name: str) -> None:
    text = plain(draw(grid(name), 40, look=PLAIN))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
    assert len(text.splitlines()) == 5


def test_long_names_are_cut_and_leave_room_for_the_figures() -> None:
    title = plain(draw(filled(grid("a very long name of a subset " * 9)), 40, look=PLAIN)).splitlines()[0]
    assert "…  100% " in title
    assert len(title) <= 40


def test_the_axis_names_the_first_and_the_last_length_without_overlap() -> None:
    axis = plain(draw(square(35), 45, look=PLAIN)).splitlines()[-1].split()
    assert (axis[0], axis[-1]) == ("1k", "35k")
    assert all(re.fullmatch(r"\d+k", label) for label in axis)


def test_true_colour_256_colours_and_none_each_use_what_the_terminal_has() -> None:
    heatmaps = Heatmaps(grids=[filled(grid(), 0.5)])
    assert "48;2;" in printed(heatmaps)
    indexed = re.findall(r"48;5;(\d+)", printed(heatmaps, color_system="256"))
    assert indexed and {int(number) for number in indexed} <= {*INDEXED["default"]}
    for settings in ({"no_color": True}, {"color_system": "standard"}, {"color_system": None}):
        text = printed(heatmaps, **settings)
        assert "▒▒▒" in text
        assert not re.search(r"\x1b\[[0-9;]*[34]8;", text)


def test_a_terminal_of_another_encoding_gets_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    assert look_of(Console(file=stream)) == PLAIN.__class__(ascii=True)
    assert plain(draw_all([filled(grid("西游记"), 0.55)], 40, look=Look(ascii=True))).isascii()


def test_a_report_is_drawn_as_the_run_was() -> None:
    state = filled(grid(), 0.5)
    state.cells[64_000, 0.0] = CellState(invalid={"overflow": 1})
    rows = []
    for (length, depth), cell in state.cells.items():
        outcomes = {"partial": cell.valid, **cell.invalid}
        counts = {"n": cell.done, "valid": cell.valid, "score": cell.mean, "outcomes": outcomes}
        rows.append({"context_length": length, "depth_percent": depth, **counts})
    again = grids_of_report({"subsets": [{"name": "english", "cells": rows}]})
    assert draw_all(again, 60, look=COLOURS) == draw_all([state], 60, look=COLOURS)


def test_an_imported_report_without_counts_is_drawn_from_its_scores() -> None:
    rows = [{"context_length": 1_000, "depth_percent": 0, "score": 1.0}, {"score": 0.5}]
    (state,) = grids_of_report({"subsets": [{"name": None, "cells": rows}, {"name": "empty"}]})
    assert [(cell.valid, cell.done) for cell in state.cells.values()] == [(1, 1)]
    assert grids_of_report({}) == []


def test_a_cell_found_on_the_way_becomes_part_of_the_grid() -> None:
    grids = [grid()]
    include(grids, Cell(subset="english", context_length=90_000, depth_percent=25.0)).add("correct", 1.0)
    include(grids, Cell(subset="new", context_length=1_000, depth_percent=0.0))
    assert (grids[0].lengths[-1], grids[0].depths) == (90_000, (0.0, 25.0, 50.0, 100.0))
    assert len(plain(draw_all(grids, 100, look=PLAIN)).splitlines()) == 7


def test_nothing_to_draw_draws_nothing() -> None:
    assert draw_all([], 80, look=PLAIN) == []


def test_drawing_is_work_in_proportion_to_the_cells() -> None:
    def work(side: int) -> int:
        grids = [filled(square(side, name), 0.5) for name in ("english", "chinese")]
        return lines_run(lambda: printed(Heatmaps(grids=grids, height=40), width=120))

    assert work(32) < 6 * work(16) < 150_000
