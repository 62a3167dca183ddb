from __future__ import annotations

import json

import pytest

from needlepoint.score.verdict import RubricName, Unreadable, Verdict, read_verdict, worth


def grade(text: str, rubric: RubricName = "binary", n_facts: int = 1) -> float | None:
    found = read_verdict(text, rubric, n_facts=n_facts)
    if isinstance(found, Unreadable):
        assert found.problem
        return None
    return found.grade


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"case": "X", "reason": "states it", "score": 1}', 1),
        ('{"score": 0}', 0),
        ('{"score": 1.0}', 1),
        ('```json\n{"score": 1, "reason": "ok"}\n```', 1),
        ('```\n{"score": 0}\n```\n', 0),
        ('Here is my verdict: {"reason": "it does", "score": 1}. Thank you!', 1),
        ('{"score": 1}\n{"score": 1}', 1),
        ("CORRECT", 1),
        ("INCORRECT", 0),
        (" **Incorrect.** ", 0),
        ("wrong", 0),
        ("Verdict: correct. " + '{"score": 1}', 1),
        ('{"score": 1, "correct": true, "verdict": "CORRECT"}', 1),
        ('Consider {the case}. {"score": 0}', 0),
        ('{"reason": "a } in a text { is fine", "score": 0}', 0),
    ],
)
def test_a_clear_verdict_is_read(text: str, wanted: float) -> None:
    assert grade(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "10/10",
        "1",
        "0",
        "Score: 1",
        "The answer is good.",
        "The answer is CORRECT, I would say 1.",
        "not correct",
        "It is INCORRECT to call this CORRECT.",
        '{"score": "1"}',
        '{"score": true}',
        '{"score": false}',
        '{"score": null}',
        '{"score": [1]}',
        '{"score": {"value": 1}}',
        '{"score": NaN}',
        '{"score": Infinity}',
        '{"score": 1e999}',
        '{"score": 0.5}',
        '{"score": 2}',
        '{"score": 10}',
        '{"score": -1}',
        '{"score": 0.999}',
        '{"verdict": {"score": 1}}',
        '{"rating": 1}',
        '{"score": 1',
        '{"score":',
        '["score", 1]',
        '{"score": 1} {"score": 0}',
        '```json\n{"score": 1}\n```\nOn second thought:\n```json\n{"score": 0}\n```',
        '{"score": 1, "score": 0}',
        '{"score": 1, "score": true}',
        '{"score": 1, "verdict": "INCORRECT"}',
        '{"score": 0, "correct": true}',
        'INCORRECT. {"score": 1}',
        'Verdict: incorrect {"score": 1}',
        'The answer is not correct. {"score": 1}',
        '{"score": 1, "reason": "The answer is incorrect."}',
        "CORRECT INCORRECT",
        "[[1]]",
        "score: {1}",
        "{" * 50_000,
        '{"a":' * 3_000 + "1" + "}" * 3_000,
        "blah " * 100_000,
        '{"score": ' + "9" * 5_000 + "}",
    ],
    ids=lambda text: text[:40] or "empty",
)
def test_anything_else_is_no_verdict(text: str) -> None:
    assert grade(text) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"score": 1}', 1),
        ('{"score": 7}', 7),
        ('{"score": 10}', 10),
        ("10/10", 10),
        ("Score: 8 / 10.", 8),
        ("Rating: [[7]]", 7),
        ("[[7]] ... so: [[7]]", 7),
        ("3 out of 10", 3),
    ],
)
def test_on_the_scale_of_ten_its_usual_forms_are_read(text: str, wanted: float) -> None:
    assert grade(text, "1-10") == wanted


@pytest.mark.parametrize(
    "text",
    ['{"score": 0}', '{"score": 11}', '{"score": 7.5}', "[[7]] or [[8]]", "8/10 or 9/10", "CORRECT", "8", "12/10",
     "0/10", "I give it 8/10, since the answer is good"],
)  # fmt: skip
def test_off_the_scale_of_ten_is_no_verdict(text: str) -> None:
    assert grade(text, "1-10") is None


def test_the_scale_of_ten_ends_at_a_tenth_and_the_others_at_zero() -> None:
    assert (worth(1, "1-10"), worth(10, "1-10"), worth(0, "binary"), worth(0.25, "0-1")) == (0.1, 1.0, 0.0, 0.25)


@pytest.mark.parametrize(("said", "wanted"), [(0.67, 2 / 3), (0.33, 1 / 3), (1, 1), (0, 0), (0.5, None), (0.7, None)])
def test_with_several_facts_the_grade_is_a_share_of_them(said: float, wanted: float | None) -> None:
    found = grade(json.dumps({"score": said}), n_facts=3)
    assert found == (None if wanted is None else pytest.approx(wanted))


def test_one_word_says_too_little_where_there_are_several_facts() -> None:
    assert grade("CORRECT", n_facts=3) == 1
    assert grade("INCORRECT", n_facts=3) is None


def test_the_graded_rubric_takes_any_share() -> None:
    assert grade('{"score": 0.4}', "0-1") == 0.4
    assert grade('{"score": 1.1}', "0-1") is None


def test_case_and_reason_come_along() -> None:
    found = read_verdict('{"case": "BCDFGH", "reason": "  it says\\nso ", "score": 1}', "binary")
    assert found == Verdict(grade=1, reason="it says so", case="BCDFGH")
