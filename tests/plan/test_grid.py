"""The grid: spacing as the seed's, lengths and depths as people write them, cells in order."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.errors import UsageError
from needlepoint.plan.grid import (
    Grid,
    apply_limit,
    format_length,
    parse_depths,
    parse_lengths,
    seed_spacing,
)
from needlepoint.types import Cell

# --- the seed's spacing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minimum", "maximum", "count", "expected"),
    [
        (1000, 32000, 10, [1000, 4444, 7889, 11333, 14778, 18222, 21667, 25111, 28556, 32000]),
        (0, 100, 10, [0, 11, 22, 33, 44, 56, 67, 78, 89, 100]),
        (1000, 8000, 5, [1000, 2750, 4500, 6250, 8000]),
        (0, 5, 3, [0, 2, 5]),  # 2.5 rounds to the even 2
        (0, 7, 3, [0, 4, 7]),  # and 3.5 to the even 4
        (0, 100, 1, [0]),
        (0, 100, 2, [0, 100]),
        (5, 5, 3, [5, 5, 5]),
        (1, 3, 6, [1, 1, 2, 2, 3, 3]),
        (0, 5e-324, 3, [0, 0, 0]),
    ],
)
def test_seed_spacing_gives_the_values_that_numpy_gives(
    minimum: float, maximum: float, count: int, expected: list[int]
) -> None:
    assert seed_spacing(minimum, maximum, count) == expected


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 200))
def test_seed_spacing_equals_numpy_where_numpy_is_there(start: int, span: int, count: int) -> None:
    numpy = pytest.importorskip("numpy")
    expected = numpy.round(numpy.linspace(start, start + span, num=count, endpoint=True)).astype(int).tolist()
    assert seed_spacing(start, start + span, count) == expected


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(2, 300))
def test_seed_spacing_rises_from_the_minimum_to_the_maximum(start: int, span: int, count: int) -> None:
    values = seed_spacing(start, start + span, count)
    assert len(values) == count
    assert (values[0], values[-1]) == (start, start + span)
    assert values == sorted(values)


# --- lengths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (4000, (4000,)),
        (4000.0, (4000,)),
        ("4000", (4000,)),
        ("32_000", (32000,)),
        ("1k,4K,32k,1m", (1000, 4000, 32000, 1_000_000)),
        (" 1k , 4k ", (1000, 4000)),
        ("1.5k", (1500,)),
        ("0.5k", (500,)),
        ("1.25M", (1_250_000,)),
        ("4Ki,1Mi,1ki", (4096, 1_048_576, 1024)),
        ("0.5Ki", (512,)),
        ([1000, "4k", 8e3], (1000, 4000, 8000)),
        (range(1000, 4000, 1000), (1000, 2000, 3000)),
        (("1k:4k:4",), (1000, 2000, 3000, 4000)),
        ("8k,1k,8000,2k", (8000, 1000, 2000)),
        ("1k:32k:10", (1000, 4444, 7889, 11333, 14778, 18222, 21667, 25111, 28556, 32000)),
        ("1k:32k:6:log", (1000, 2000, 4000, 8000, 16000, 32000)),
        ("1k : 16k : 5 : LOG", (1000, 2000, 4000, 8000, 16000)),
        ("1k,4k:32k:4:log,64k", (1000, 4000, 8000, 16000, 32000, 64000)),
        ("1k:9k:1", (1000,)),
        ("1k:9k:1:log", (1000,)),
        ("1k:9k:1:sigmoid", (1000,)),
        ("4k:4k:5", (4000,)),
        ("10:12:20", (10, 11, 12)),
        ("1000000000", (10**9,)),
    ],
)
def test_lengths_are_read_as_people_write_them(spec: object, expected: tuple[int, ...]) -> None:
    lengths = parse_lengths(spec)
    assert lengths == expected
    assert all(type(length) is int for length in lengths)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("", "no length is given"),
        ("   ", "no length is given"),
        ([], "no length is given"),
        ("1k,,2k", "empty"),
        ("1k,", "empty"),
        ("a lot", "not a length"),
        ("1x", "not a length"),
        ("1e6", "not a length"),
        ("+1k", "not a length"),
        ("1__0", "not a length"),
        ("٣", "not a length"),
        ("9" * 5000, "not a length"),
        (None, "not a length"),
        (True, "not a length"),
        ([1000, False], "not a length"),
        (b"1k", "not a length"),
        ({"min": 1}, "not a length"),
        (1 + 2j, "not a length"),
        ("-1k", "negative"),
        (-5, "negative"),
        (0, "at least 1 token"),
        ("0k", "at least 1 token"),
        ("0:4k:3", "at least 1 token"),
        (1000.5, "whole number"),
        ("1.2345k", "whole number"),
        (math.nan, "finite"),
        (math.inf, "finite"),
        ("nan", "finite"),
        ("-inf", "finite"),
        ("1001m", "at most 1,000,000,000"),
        (10**400, "at most 1,000,000,000"),
        ([10**5000], "at most 1,000,000,000"),
        ("4k:1k:3", "begins above its end"),
        ("1k:4k", "three or four parts"),
        ("1k:4k:3:log:x", "three or four parts"),
        ("1k:4k:0", "outside 1 to 100,000"),
        ("1k:4k:-3", "outside 1 to 100,000"),
        ("1k:4k:100001", "outside 1 to 100,000"),
        ("1k:4k:2.5", "not a whole number"),
        ("1k:4k:many", "not a whole number"),
        ("1k:4k:" + "9" * 5000, "not a whole number"),
        ("1k:4k:3:lgo", "Did you mean 'log'?"),
        ("1k:4k:3:sigmod", "Did you mean 'sigmoid'?"),
        ("1k:4k:3:", "not a spacing"),
        ("1:60k:60000,1:60k:60000", "more than 100,000"),
        (range(1, 10**12), "at most 100,000"),
    ],
)
def test_a_wrong_length_is_refused_with_the_flag_the_value_and_what_is_accepted(spec: object, why: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_lengths(spec, flag="--lengths")
    message = str(refusal.value)
    assert message.startswith("--lengths ")
    assert why in message
    assert "Accepted: numbers as 4000, 4k, 1.5k, 32Ki, 1m; lists" in message
    assert len(message.splitlines()) == 2
    assert len(message) < 400


def test_the_refused_value_stands_in_the_message() -> None:
    with pytest.raises(UsageError, match=r"--context '1x': this is not a length\."):
        parse_lengths("4k,1x", flag="--context")


@given(st.integers(1, 10**9))
def test_a_formatted_length_is_read_back_as_itself(length: int) -> None:
    assert parse_lengths(format_length(length)) == (length,)


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 60), st.sampled_from(["linear", "log", "sigmoid"]))
def test_a_range_is_sorted_distinct_and_keeps_its_ends(start: int, span: int, count: int, spacing: str) -> None:
    lengths = parse_lengths(f"{start}:{start + span}:{count}:{spacing}")
    assert lengths[0] == start
    assert lengths[-1] == (start + span if count > 1 else start)
    assert list(lengths) == sorted(set(lengths))
    assert len(lengths) <= count


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=50))
def test_a_list_keeps_its_order_and_drops_repeats(lengths: list[int]) -> None:
    assert parse_lengths(lengths) == tuple(dict.fromkeys(lengths))
    assert parse_lengths(",".join(map(str, lengths))) == tuple(dict.fromkeys(lengths))


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    for parse in (parse_lengths, parse_depths):
        try:
            values = parse(text)
        except UsageError as refusal:
            assert "Accepted:" in str(refusal)
        else:
            assert values


# --- depths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (50, (50.0,)),
        (12.5, (12.5,)),
        ("0,50%,100", (0.0, 50.0, 100.0)),
        ("33.33333", (33.333,)),
        ("12.5 %", (12.5,)),
        ([100, 0, "25"], (100.0, 0.0, 25.0)),
        ("50,50.0,50%", (50.0,)),
        ("0:100:5", (0.0, 25.0, 50.0, 75.0, 100.0)),
        ("0%:100%:3", (0.0, 50.0, 100.0)),
        ("0:100:4", (0.0, 33.333, 66.667, 100.0)),
        ("0:100:1", (0.0,)),
        ("0:100:5:sigmoid", (0.0, 7.586, 50.0, 92.414, 100.0)),
        (-0.0, (0.0,)),
        ("-0", (0.0,)),
    ],
)
def test_depths_are_read_as_people_write_them(spec: object, expected: tuple[float, ...]) -> None:
    depths = parse_depths(spec)
    assert depths == expected
    assert all(type(depth) is float and math.copysign(1, depth) == 1 for depth in depths)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("", "no depth is given"),
        (101, "from 0 to 100"),
        ("100.1%", "from 0 to 100"),
        (-1, "from 0 to 100"),
        ("-0.5", "from 0 to 100"),
        (10**400, "from 0 to 100"),
        (math.nan, "finite"),
        ("inf", "finite"),
        ("half", "not a depth"),
        ("1k", "not a depth"),
        ("50%%", "not a depth"),
        (True, "not a depth"),
        ("50:0:3", "begins above its end"),
        ("1:100:3:log", "log spacing is for lengths"),
        ("1:100:3:lin", "not a spacing"),
        ("1:100:0", "outside 1 to 100,000"),
    ],
)
def test_a_wrong_depth_is_refused_with_the_flag_the_value_and_what_is_accepted(spec: object, why: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_depths(spec, flag="--depths")
    message = str(refusal.value)
    assert message.startswith("--depths ")
    assert why in message
    assert "Accepted: percent from 0 to 100" in message


@given(st.integers(2, 200))
def test_sigmoid_depths_are_symmetric_and_lie_closer_together_at_both_ends(count: int) -> None:
    depths = parse_depths(f"0:100:{count}:sigmoid")
    assert depths[0] == 0 and depths[-1] == 100
    assert all(a + b == pytest.approx(100, abs=0.002) for a, b in zip(depths, reversed(depths), strict=True))
    assert list(depths) == sorted(set(depths))


# --- the grid ---------------------------------------------------------------------------------------------------------


def test_cells_come_in_product_order_with_lengths_outside() -> None:
    grid = Grid(lengths=(2000, 1000), depths=(50.0, 0.0))
    assert [(cell.context_length, cell.depth_percent) for cell in grid.cells("english")] == [
        (2000, 50.0),
        (2000, 0.0),
        (1000, 50.0),
        (1000, 0.0),
    ]
    assert grid.cells("chinese")[0] == Cell(subset="chinese", context_length=2000, depth_percent=50.0)
    assert grid.merged == 0
    assert grid.note() is None


def test_coinciding_cells_are_merged_and_a_note_says_how_many() -> None:
    grid = Grid.from_seed(context_lengths_min=1000, context_lengths_max=1000, context_lengths_num_intervals=10)
    assert len(grid.cells("english")) == 10
    assert grid.merged == 90
    assert grid.note() == (
        "90 of 100 cells per subset coincide with another in length and depth; each is asked once: 10 cells remain."
    )


def test_a_range_that_rounds_to_fewer_lengths_is_told_of() -> None:
    grid = Grid.from_specs("10:12:4", 50)
    assert len(grid.cells("english")) == 3
    assert grid.note() == (
        "1 of 4 cells per subset coincides with another in length and depth; each is asked once: 3 cells remain."
    )


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.lists(st.integers(0, 20), min_size=1, max_size=12))
def test_merged_counts_exactly_the_cells_that_are_missing(lengths: list[int], depths: list[int]) -> None:
    grid = Grid(lengths=tuple(lengths), depths=tuple(map(float, depths)))
    cells = grid.cells("english")
    assert len(set(cells)) == len(cells) == len(lengths) * len(depths) - grid.merged
    assert (grid.note() is None) == (grid.merged == 0)


def test_the_seeds_defaults_give_a_hundred_cells() -> None:
    grid = Grid.from_seed()
    assert grid.lengths == (1000, 4444, 7889, 11333, 14778, 18222, 21667, 25111, 28556, 32000)
    assert grid.depths == (0.0, 11.0, 22.0, 33.0, 44.0, 56.0, 67.0, 78.0, 89.0, 100.0)
    assert all(type(depth) is float for depth in grid.depths)
    assert len(grid.cells("english")) == 100


def test_the_seeds_parameters_take_fractions_as_numpy_does() -> None:
    grid = Grid.from_seed(context_lengths_min=1000.5, context_lengths_max=2000, context_lengths_num_intervals=2.0)  # type: ignore[arg-type]
    assert grid.lengths == (1000, 2000)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"context_lengths_min": 5000, "context_lengths_max": 1000}, "context_lengths_min=5000 is above"),
        ({"context_lengths_min": -1}, "context_lengths_min=-1"),
        ({"context_lengths_min": 0}, "context_lengths_min=0 gives a context of no tokens"),
        ({"context_lengths_min": 0.4}, "context_lengths_min=0.4"),
        ({"context_lengths_min": "1000"}, "context_lengths_min='1000' is not a number"),
        ({"context_lengths_min": True}, "context_lengths_min=True is not a number"),
        ({"context_lengths_min": None}, "context_lengths_min=None is not a number"),
        ({"context_lengths_max": math.nan}, "context_lengths_max=nan"),
        ({"context_lengths_max": math.inf}, "context_lengths_max=inf"),
        ({"context_lengths_max": 10**10}, "context_lengths_max=10000000000"),
        ({"context_lengths_max": 10**5000}, "context_lengths_max=(a number of more than 60 digits)"),
        ({"context_lengths_num_intervals": 0}, "context_lengths_num_intervals=0"),
        ({"context_lengths_num_intervals": -3}, "context_lengths_num_intervals=-3"),
        ({"context_lengths_num_intervals": 2.5}, "context_lengths_num_intervals=2.5 is not a whole number"),
        ({"context_lengths_num_intervals": math.nan}, "context_lengths_num_intervals=nan is not a whole number"),
        ({"context_lengths_num_intervals": math.inf}, "context_lengths_num_intervals=inf"),
        ({"context_lengths_num_intervals": "ten"}, "context_lengths_num_intervals='ten' is not a whole number"),
        ({"context_lengths_num_intervals": True}, "context_lengths_num_intervals=True is not a whole number"),
        ({"context_lengths_num_intervals": 10**400}, "context_lengths_num_intervals="),
        ({"document_depth_percent_min": -1}, "document_depth_percent_min=-1"),
        ({"document_depth_percent_max": 101}, "document_depth_percent_max=101"),
        ({"document_depth_percent_max": [100]}, "document_depth_percent_max=[100] is not a number"),
        (
            {"document_depth_percent_min": 60, "document_depth_percent_max": 40},
            "document_depth_percent_min=60 is above document_depth_percent_max=40",
        ),
        ({"document_depth_percent_intervals": 0}, "document_depth_percent_intervals=0"),
    ],
)
def test_a_wrong_seed_parameter_is_refused_by_its_name(parameters: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as refusal:
        Grid.from_seed(**parameters)
    assert named in str(refusal.value)
    assert len(str(refusal.value)) < 250


def test_a_grid_of_too_many_cells_is_refused() -> None:
    with pytest.raises(UsageError, match=r"1,000 lengths x 101 depths = 101,000 cells; at most 100,000"):
        Grid.from_specs("1000:1999:1000", "0:100:101")


def test_an_empty_grid_is_refused() -> None:
    with pytest.raises(UsageError, match="The grid is empty"):
        Grid(lengths=(), depths=(0.0,))


# --- small helpers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_tokens", "text"),
    [
        (1000, "1k"),
        (1500, "1.5k"),
        (32000, "32k"),
        (1_000_000, "1M"),
        (1_500_000, "1.5M"),
        (1_250_000, "1250k"),
        (1234, "1234"),
        (32768, "32768"),
        (999, "999"),
        (100, "100"),
        (0, "0"),
    ],
)
def test_a_length_is_formatted_short_and_never_rounded(n_tokens: int, text: str) -> None:
    assert format_length(n_tokens) == text


@pytest.mark.parametrize(
    ("limit", "kept"), [(None, 10), (1, 1), (10, 10), (99, 10), (10**30, 10), (0.5, 5), (0.19, 1), (1.0, 10)]
)
def test_a_limit_keeps_the_first_items(limit: float | None, kept: int) -> None:
    assert list(apply_limit(range(10), limit)) == list(range(kept))


@pytest.mark.parametrize("limit", [0, -1, 0.0, -0.5, 1.5, 10.0, math.nan, math.inf, True, False, "10", [1]])
def test_a_limit_that_means_nothing_is_refused(limit: Any) -> None:
    with pytest.raises(UsageError, match=r"^--limit .* is not a limit\. Accepted: a count"):
        apply_limit(range(10), limit)


def test_a_count_written_as_a_float_is_refused_with_the_count() -> None:
    with pytest.raises(UsageError, match=r"Did you mean 10\?"):
        apply_limit(range(100), 10.0)


def test_a_share_that_would_keep_nothing_is_refused_rather_than_asking_nothing() -> None:
    with pytest.raises(UsageError, match="keeps nothing of 10"):
        apply_limit(range(10), 0.05)
    assert list(apply_limit([], 0.05)) == []
