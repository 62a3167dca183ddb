"""Position bias: middle against edges, within texts and lengths; exact where that can be had."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import combinations, product

import pytest

from needlepoint.learn.position import Place, position_test
from needlepoint.learn.tally import Tally
from needlepoint.types import Needle, Outcome, Score, Trial

BASE = Trial(
    id="t", dataset="needle_haystack", subset="english", layout="classic", length_mode="exact", replicate=0, repeat=0,
    context_length=1_000, depth_percent=0, achieved_length=1_000, achieved_depth_percent=0.5, boundary="sentence",
    needles=(Needle(text="n"),), placements=(), question="?", answers=("n",), corpus="c", corpus_sha256="0",
    tokenizer="t", tokenizer_fingerprint="f", prompt_sha256="p", sent_tokens=1_000, length_proven=True,
)  # fmt: skip


def scored(value: float | None) -> Score:
    kind: Outcome = "failed" if value is None else "correct" if value == 1 else "partial" if value else "wrong"
    return Score(outcome=kind, score=value, reason="r", span=None, scorer="rules")


DEPTHS = (0.0, 12.5, 37.5, 50.0, 62.5, 87.5, 100.0)


def cells(
    *rows: tuple[int, int, str], depths: tuple[float, ...] = DEPTHS, subset: str = "english"
) -> dict[Place, Tally]:
    """Rows of (text, length, marks): one mark a depth, `1` right, `0` wrong, `.` half right, `x` invalid."""
    found: dict[Place, Tally] = {}
    for text, length, marks in rows:
        for depth, mark in zip(depths, marks, strict=True):
            trial = replace(BASE, subset=subset, replicate=text, context_length=length, depth_percent=depth)
            value = None if mark == "x" else 0.5 if mark == "." else float(mark)
            found.setdefault((length, depth), Tally()).add(trial, scored(value))
    return found


def test_a_worse_middle_is_seen_and_said() -> None:
    test = position_test(cells(*((text, 1_000, "1100011") for text in range(6))))
    assert test is not None
    assert (test.middle, test.edges, test.difference) == (0, 1, -1)
    assert test.p_value == pytest.approx(1 / 64)  # all of 2^6 sign flips
    assert test.over == "texts" and test.texts == 6
    assert test.interval[1] < 0
    assert test.verdict.startswith("The middle is worse than the edges: 0.0% against 100.0%, -100.0 points")


def test_a_better_middle_is_not_worse() -> None:
    test = position_test(cells(*((text, 1_000, "0011100") for text in range(6))))
    assert test is not None and test.p_value == 1
    assert test.verdict.startswith("No sign that the middle is worse")


def test_a_perfect_model_shows_no_difference_and_says_what_is_not_ruled_out() -> None:
    test = position_test(cells(*((text, 1_000, "1111111") for text in range(6))))
    assert test is not None and test.difference == 0 and test.p_value == 1
    assert test.verdict.startswith("Nothing differs: 100.0% against 100.0%; a middle up to ")
    assert -0.2 < test.interval[0] < 0 < test.interval[1]


def test_lengths_that_fail_are_not_taken_for_a_position() -> None:
    """Long contexts fail at every depth; only the lengths' own differences count."""
    rows = [(0, 1_000, "1111111"), (0, 2_000, "1111111"), (0, 64_000, "0000000")]
    test = position_test(cells(*rows))
    assert test is not None and test.difference == 0 and test.p_value == 1


def test_one_text_is_compared_within_its_rows_and_says_so() -> None:
    test = position_test(cells((0, 1_000, "1100011"), (0, 2_000, "1110011")))
    assert test is not None and test.over == "trials"
    assert "on these texts" in test.verdict


@pytest.mark.parametrize("marks", [("1100011", "1110011"), ("1111111", "1011101"), ("0100010", "1010101")])
def test_dealing_out_again_is_exact(marks: tuple[str, str]) -> None:
    """A second implementation: every way of choosing which three places of each row are the middle."""
    test = position_test(cells((0, 1_000, marks[0]), (0, 2_000, marks[1])))
    assert test is not None
    observed = sum(int(mark) for row in marks for mark in row[2:5])
    sums = [[sum(int(row[i]) for i in chosen) for chosen in combinations(range(7), 3)] for row in marks]
    ways = [one + other <= observed for one, other in product(*sums)]
    assert test.p_value == pytest.approx(sum(ways) / len(ways))


def test_partial_scores_are_compared_by_the_variance_of_dealing_out() -> None:
    test = position_test(cells(*((0, 1_000 * i, "1.00.11") for i in range(1, 9))))
    assert test is not None
    scores = [1, 0.5, 0, 0, 0.5, 1, 1]
    mean = sum(scores) / 7
    variance = 3 * 4 / 7 * sum((score - mean) ** 2 for score in scores) / 6
    z = 8 * (0.5 - 3 * mean) / math.sqrt(8 * variance)
    assert test.p_value == pytest.approx(0.5 * math.erfc(-z / math.sqrt(2)))


def test_a_text_with_one_row_does_not_outweigh_one_with_many() -> None:
    many = [(0, 1_000 * (i + 1), "1100011" if i % 2 else "1101111") for i in range(12)]
    test = position_test(cells(*many, (1, 1_000, "0011111")))
    assert test is not None and test.over == "trials" and test.texts == 2
    assert test.p_value < 0.001 and test.interval[1] < 0
    assert test.difference == pytest.approx((12 * -2 / 3 + 1 / 2) / 13)


def test_scores_in_between_leave_a_narrower_interval_than_right_and_wrong() -> None:
    halves = position_test(cells((0, 1_000, "......."), (0, 2_000, ".......")))
    marks = position_test(cells((0, 1_000, "1010101"), (0, 2_000, "0101010")))
    assert halves is not None and marks is not None
    assert halves.interval[1] - halves.interval[0] < marks.interval[1] - marks.interval[0]


def test_many_texts_are_compared_by_students_t() -> None:
    dice = random.Random("many")
    rows = [(text, 1_000, "".join(dice.choice("1110") for _ in DEPTHS)) for text in range(20)]
    test = position_test(cells(*rows))
    assert test is not None
    stats = pytest.importorskip("scipy.stats", reason="scipy, the second implementation, is not installed")
    differences = [
        sum(map(int, marks[2:5])) / 3 - (sum(map(int, marks[:2])) + sum(map(int, marks[5:]))) / 4 for *_, marks in rows
    ]
    assert test.p_value == pytest.approx(stats.ttest_1samp(differences, 0, alternative="less").pvalue)


def test_without_a_middle_or_an_edge_there_is_no_test() -> None:
    assert position_test({}) is None
    assert position_test(cells((0, 1_000, "11"), depths=(0.0, 100.0))) is None
    assert position_test(cells((0, 1_000, "xx1"), depths=(0.0, 100.0, 50.0))) is None


def test_invalid_trials_are_left_out() -> None:
    test = position_test(cells((0, 1_000, "11xx011"), (0, 2_000, "xxxx0xx")))
    assert test is not None and test.rows == 1 and test.middle == 0


@pytest.mark.parametrize("texts", [1, 6])
def test_false_alarms_are_as_rare_as_promised(texts: int) -> None:
    """No position effect, but texts and lengths that differ."""
    dice = random.Random(f"alarms:{texts}")
    alarms, runs = 0, 400
    for _ in range(runs):
        rows = []
        for text in range(texts):
            hard = dice.uniform(-0.2, 0.1)
            for i, share in enumerate((0.95, 0.85, 0.6)):
                mine = min(1.0, share + hard)
                rows.append((text, 1_000 * (i + 1), "".join("1" if dice.random() < mine else "0" for _ in DEPTHS)))
        test = position_test(cells(*rows))
        alarms += test is not None and test.p_value < 0.05
    assert alarms / runs <= 0.07
