"""Two runs against each other: differences, alarms, coverage, separate samples."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from needlepoint.learn.change import Comparison
from needlepoint.learn.compare import compare_pairs
from needlepoint.learn.gate import Gate
from needlepoint.learn.paired import mcnemar_mid_p
from needlepoint.learn.pairing import pair_rows
from needlepoint.learn.unpaired import compare_samples
from needlepoint.types import Trial

from .rows import Row, answered, trials

DEPTHS = tuple(float(depth) for depth in range(0, 100, 10))


def compared(one: list[Row], other: list[Row], **settings: float) -> Comparison:
    return compare_pairs(pair_rows(one, other), names=("a", "b"), scorer="rules", **settings)  # type: ignore[arg-type]


def drawn(seed: str, p: float, questions: list[Trial]) -> list[Row]:
    dice = random.Random(seed)
    return answered(questions, lambda number, trial: float(dice.random() < p))


def turned(bad: int, good: int, questions: list[Trial], seed: int = 0) -> tuple[list[Row], list[Row]]:
    """A run with nine of ten right, and one of which so many turned bad, and so many good."""
    dice = random.Random(seed)
    first = {trial.id: float(number % 10 > 0) for number, trial in enumerate(questions)}
    second = dict(first)
    right, wrong = ([trial.id for trial in questions if first[trial.id] == value] for value in (1.0, 0.0))
    for chosen, value in ((dice.sample(right, bad), 0.0), (dice.sample(wrong, good), 1.0)):
        second |= dict.fromkeys(chosen, value)
    return answered(questions, lambda _, trial: first[trial.id]), answered(questions, lambda _, trial: second[trial.id])


def test_a_drop_of_five_points_in_400_is_found_with_its_size_and_its_flips() -> None:
    one, other = turned(24, 4, list(trials(range(1_000, 41_000, 1_000), DEPTHS)))
    found = compared(one, other)
    assert found.whole is not None and found.whole.n == 400
    assert found.difference == pytest.approx(-0.05)
    assert found.p_value == pytest.approx(mcnemar_mid_p(24, 4)) and found.whole.method == "mcnemar_mid_p"
    assert found.interval is not None and found.interval[1] < 0
    assert (len(found.lost), len(found.gained)) == (24, 4)
    assert found.is_worse and found.lost[0].one.answer == "4711" and found.lost[0].other.outcome == "wrong"


@pytest.mark.parametrize(("replicates", "lengths"), [(1, 40), (4, 10), (8, 5), (20, 2), (40, 1)])
def test_six_percent_turned_bad_and_one_good_are_found_nine_times_of_ten(replicates: int, lengths: int) -> None:
    questions = list(trials([1_000 * i for i in range(1, lengths + 1)], DEPTHS, replicates))
    found = 0
    for seed in range(40):
        dice = random.Random(f"{replicates}:{seed}")
        one = drawn(f"{replicates}:{seed}:one", 0.9, questions)
        other = [_turned(row, dice) for row in one]
        found += compared(one, other).is_worse
    assert found >= 35  # 36 of 40 on average at the very least


def _turned(row: Row, dice: random.Random) -> Row:
    """6 % of all turn bad, 1 % of all turn good."""
    right = row[2].score == 1.0
    flips = dice.random() < (0.06 / 0.9 if right else 0.01 / 0.1)
    return answered([row[0]], lambda *_: float(right != flips))[0]


def test_two_runs_of_one_model_seldom_differ() -> None:
    alarms = {1: 0, 10: 0}
    for replicates in alarms:
        questions = list(trials((1_000, 2_000, 4_000, 8_000), DEPTHS, replicates))
        for seed in range(100):
            one, other = (drawn(f"{replicates}:{seed}:{side}", 0.8, questions) for side in "ab")
            found = compared(one, other)
            alarms[replicates] += found.is_worse or found.is_better
    assert sum(alarms.values()) <= 18  # 10 of 200 on average; more than 18 once in a hundred times


def test_eight_texts_speak_of_others_and_fewer_of_themselves() -> None:
    for texts, over, method in ((7, "trials", "mcnemar_mid_p"), (8, "texts", "sign_flips")):
        one, other = turned(10, 2, list(trials((1_000, 2_000), DEPTHS, texts)))
        whole = compared(one, other).whole
        assert whole is not None and (whole.over, whole.method) == (over, method)


def test_repeats_of_a_prompt_are_one_question() -> None:
    questions = list(trials((1_000,), DEPTHS, repeats=3))
    one = answered(questions, lambda *_: 1.0)
    other = answered(questions, lambda _, trial: 0.0 if trial.depth_percent == 0 and trial.repeat == 1 else 1.0)
    whole = compared(one, other).whole
    assert whole is not None and whole.n == 10
    assert whole.difference == pytest.approx(-1 / 30)
    assert whole.p_value == 1.0 * 0.5 * 2 * 0.5  # one flip of one sign: ½ each way, counted half


def test_partial_scores_count_by_their_size() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    one = answered(questions, lambda *_: 1.0)
    other = answered(questions, lambda number, _: 0.5 if number < 8 else 1.0)
    found = compared(one, other)
    assert found.difference == pytest.approx(-0.2) and found.whole is not None
    assert found.whole.method == "sign_flips" and found.whole.p_value == pytest.approx(2 * 0.5**8 * 0.5)


def test_lost_coverage_is_no_difference_and_fails_alone() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    one = answered(questions, lambda *_: 1.0)
    other = answered(questions, lambda _, trial: "overflow" if trial.context_length == 2_000 else 1.0)
    found = compared(one, other)
    assert found.difference == 0 and not found.is_worse
    assert (found.coverage.lost, found.coverage.reasons) == (10, {"overflow": 10})
    assert [(at.context_length, at.lost, at.of) for at in found.coverage.lengths] == [(2_000, 10, 10)]
    assert [short.bar for short in Gate(fail_if_worse=0.02).shortfalls(found)] == ["coverage"]
    assert not Gate(fail_if_worse=0.02, max_lost=0.5).shortfalls(found)


def test_what_was_never_asked_is_lost_and_what_was_asked_more_is_left_out() -> None:
    one = answered(trials((1_000, 2_000), DEPTHS), lambda *_: 1.0)
    other = answered(trials((2_000, 4_000), DEPTHS), lambda *_: 1.0)
    found = compared(one, other)
    assert found.coverage.reasons == {"not_asked": 10} and found.coverage.asked == 20
    assert found.whole is not None and found.whole.n == 10


def test_a_trial_that_the_first_run_lost_is_regained() -> None:
    questions = list(trials())
    one = answered(questions, lambda number, _: "failed" if number == 0 else 1.0)
    found = compared(one, answered(questions, lambda *_: 1.0))
    assert (found.coverage.regained, found.coverage.lost, found.coverage.asked) == (1, 0, 4)


def test_without_one_common_measurement_there_is_no_difference() -> None:
    questions = list(trials())
    found = compared(answered(questions, lambda *_: 1.0), answered(questions, lambda *_: "failed"))
    assert found.whole is None and found.difference is None and found.p_value is None and found.sight is None
    assert found.json()["overall"] is None


def test_a_cell_that_falls_stands_out_among_all() -> None:
    questions = list(trials((1_000, 2_000, 4_000), DEPTHS, 12))
    one = answered(questions, lambda *_: 1.0)
    bad = (4_000, 50.0)
    other = answered(questions, lambda _, trial: float((trial.context_length, trial.depth_percent) != bad))
    found = compared(one, other)
    assert found.notable("english") == [bad]
    assert [part.where.context_length for part in found.parts.lengths if part.is_notable] == [4_000]
    assert len(found.parts.cells) == 30 and len(found.parts.depths) == 10


def test_alike_within_a_margin_takes_enough_questions() -> None:
    many, few = (list(trials([1_000 * i for i in range(1, n + 1)], DEPTHS)) for n in (40, 2))
    for questions, alike in ((many, True), (few, False)):
        run = answered(questions, lambda *_: 1.0)
        found = compared(run, run, margin=0.02).equivalence
        assert found is not None and found.is_equivalent is alike
    one, other = turned(30, 0, many)
    found = compared(one, other, margin=0.02).equivalence
    assert found is not None and not found.is_equivalent and not found.is_not_worse


def test_what_can_be_seen_and_what_more_would_take_is_told() -> None:
    one, other = turned(8, 8, list(trials(range(1_000, 41_000, 1_000), DEPTHS)))
    sight = compared(one, other, wanted=0.01).sight
    assert sight is not None and sight.churn == pytest.approx(0.02)
    assert sight.drop is not None and 0.03 < sight.drop < 0.05
    assert sight.needed is not None and sight.needed > 2_000


def test_the_json_of_a_comparison_is_plain() -> None:
    import json

    one, other = turned(5, 1, list(trials((1_000, 2_000), DEPTHS)))
    told = json.loads(json.dumps(compared(one, other, margin=0.02, wanted=0.01).json(), allow_nan=False))
    assert told["overall"]["difference"] == -0.2 and told["verdict"] in ("worse", "no_change_seen")
    assert told["flips"][0]["one"]["answer"] == "4711" and told["flips"][0]["expected"] == ["4711"]


# --- separate samples -------------------------------------------------------------------------------------------------


def other_prompts(rows: list[Row]) -> list[Row]:
    return [(replace(trial, prompt_sha256=f"other {trial.prompt_sha256}"), *rest) for trial, *rest in rows]  # type: ignore[misc]


def test_separate_samples_differ_where_the_models_do() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS, 12))
    found = compare_samples(
        drawn("a", 0.95, questions), other_prompts(drawn("b", 0.75, questions)), names=("a", "b"), scorer="rules"
    )
    assert found.is_worse and not found.paired and not found.flips
    assert found.whole is not None and found.whole.method == "two_samples" and found.whole.over == "texts"
    assert found.interval is not None and found.interval[0] < -0.2 < found.interval[1]


def test_separate_samples_of_one_model_seldom_differ() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    alarms = 0
    for seed in range(150):
        one, other = (drawn(f"{seed}{side}", 0.8, questions) for side in "ab")
        found = compare_samples(one, other_prompts(other), names=("a", "b"), scorer="rules")
        alarms += found.is_worse or found.is_better
    assert alarms <= 15  # 7.5 on average


def test_only_cells_that_both_have_count_in_separate_samples() -> None:
    one = answered(trials((1_000, 2_000), DEPTHS), lambda *_: 1.0)
    other = answered(trials((2_000, 4_000), DEPTHS), lambda _, trial: float(trial.context_length == 2_000))
    found = compare_samples(one, other, names=("a", "b"), scorer="rules")
    assert found.difference == 0 and found.whole is not None and found.whole.n == 10


def test_separate_samples_fail_on_lost_coverage_too() -> None:
    questions = list(trials((1_000, 2_000), DEPTHS))
    one = answered(questions, lambda *_: 1.0)
    other = answered(questions, lambda number, _: "failed" if number < 5 else 1.0)
    found = compare_samples(one, other, names=("a", "b"), scorer="rules")
    assert [short.bar for short in Gate(fail_if_worse=0.0).shortfalls(found)] == ["coverage"]
