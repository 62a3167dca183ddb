from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needlepoint.plan.needles import fixed_facts
from needlepoint.score.panel import PASS
from needlepoint.score.rules import found_each, score
from needlepoint.types import VALID_OUTCOMES, Failure, Needle, Reply, Trial, Usage

from ..work import lines_run


def trial(*answers: str, sent_tokens: int | None = 1_000, proven: bool = True) -> Trial:
    return Trial(
        id="t",
        dataset="needle_haystack",
        subset="english",
        layout="classic",
        length_mode="exact",
        replicate=0,
        repeat=0,
        context_length=1_000,
        depth_percent=50,
        achieved_length=1_000,
        achieved_depth_percent=50.1,
        boundary="sentence",
        needles=tuple(Needle(text=answer, answers=(answer,)) for answer in answers),
        placements=(),
        question="?",
        answers=answers,
        corpus="c",
        corpus_sha256="0",
        tokenizer="t",
        tokenizer_fingerprint="f",
        prompt_sha256="p",
        sent_tokens=sent_tokens,
        length_proven=proven,
    )


SEED = "eat a sandwich and sit in Dolores Park"


@pytest.mark.parametrize(
    ("answers", "reply", "outcome", "value"),
    [
        ([SEED], "Eat a sandwich and sit in Dolores Park on a sunny day.", "correct", 1.0),
        ([SEED], "**EAT a sandwich, and  sit in Dolores\nPark!**", "correct", 1.0),
        ([SEED], "Visit the Golden Gate Bridge.", "wrong", 0.0),
        (["4815162"], "The code is 4815162.", "correct", 1.0),
        (["4815162"], "The code is ４８１５１６２。", "correct", 1.0),
        (["4815162"], "The code is 48151623.", "wrong", 0.0),
        (["4815162"], "The code is 4,815,162", "correct", 1.0),
        (["ten"], "It was often so.", "wrong", 0.0),
        (["ten"], "It was ten.", "correct", 1.0),
        (["1987年3月14日"], "日期是1987年3月14日。", "correct", 1.0),
        (["七号"], "密码是七号，对吗", "correct", 1.0),
        (["amber-kettle"], "The phrase is amber kettle", "correct", 1.0),
        (["a1", "b2", "c3"], "a1 and c3", "partial", 2 / 3),
        (["a1", "b2"], "a1, b2", "correct", 1.0),
        ([SEED], "The text does not mention San Francisco.", "not_found", 0.0),
        ([SEED], "文中没有提到旧金山。", "not_found", 0.0),
        ([SEED], "I'm sorry, I can't help with that.", "refused", 0.0),
        ([SEED], "", "wrong", 0.0),
        ([SEED], "!!!!!!!!!!!!", "wrong", 0.0),
    ],
)
def test_an_answer_has_its_outcome(answers: list[str], reply: str, outcome: str, value: float) -> None:
    found = score(trial(*answers), Reply(text=reply, finish="stop"))
    assert (found.outcome, found.score) == (outcome, pytest.approx(value))
    assert found.reason


def test_the_span_is_where_the_answer_stands() -> None:
    text = "Well: the code is “４８１５１６２”, I think."
    found = score(trial("4815162"), Reply(text=text))
    assert found.span is not None
    assert text[slice(*found.span)] == "４８１５１６２"


def test_reasoning_is_not_an_answer() -> None:
    found = score(trial("4815162"), Reply(text="Some number.", reasoning="It says 4815162."))
    assert found.outcome == "wrong"


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply(error=Failure(kind="overflow", message="too long")), "overflow"),
        (Reply(error=Failure(kind="timeout", message="no answer in 60 s")), "failed"),
        (Reply(text="4815162", usage=Usage(prompt=900)), "truncated"),
        (Reply(text="", reasoning="hm", finish="length"), "out_of_room"),
    ],
)
def test_a_broken_measurement_is_no_miss(reply: Reply, outcome: str) -> None:
    found = score(trial("4815162"), reply)
    assert (found.outcome, found.score) == (outcome, None)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="!!!!", finish="length"),
        Reply(text="", finish="stop"),
        Reply(text="", finish="length"),
        Reply(text="so it goes", finish="length", reasoning="hm"),
    ],
)
def test_gibberish_and_instant_stops_are_wrong_not_invalid(reply: Reply) -> None:
    assert score(trial("4815162"), reply).outcome == "wrong"


def test_truncation_needs_a_proven_length_and_more_than_counting_noise() -> None:
    short = Reply(text="no", usage=Usage(prompt=900))
    assert score(trial("4815162", proven=False), short).outcome == "wrong"
    assert score(trial("4815162"), Reply(text="no", usage=Usage(prompt=969))).outcome == "wrong"
    assert score(trial("4815162"), Reply(text="no", usage=Usage(prompt=967))).outcome == "truncated"


def test_it_is_told_which_of_several_needles_an_answer_states() -> None:
    three = trial("a1", "b2", "c3")
    assert found_each(three, Reply(text="c3 and a1")) == [True, False, True]
    assert found_each(three, Reply(text="<think>b2</think>")) == [False] * 3


LOOPS = {
    "a word": "a ",
    "the value": "4827193 ",
    "values": "4827193, 6150942 and 9308571. ",
    "denials": "I cannot find it. It does not say. ",
    "corrections": "No, wait, 6150942. ",
    "negations": "not 4827193, ",
    "digits": "4,8-2 7",
    "quotes": '"',
    "bullets": "- amber falcon\n",
    "the phrase": "Eat a sandwich and sit in Dolores Park. ",
    "dates": "5 March 1932 ",
    "thoughts": "<think>x</think>",
    "Chinese": "没有四百万",
}


@pytest.mark.parametrize("piece", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("answer", [SEED, "4827193", "amber falcon", "5 March 1932"])
def test_an_answer_of_twice_the_length_is_not_four_times_the_work(piece: str, answer: str) -> None:
    asked = trial(answer)

    def work(n: int) -> int:
        return lines_run(lambda: score(asked, Reply(text=piece * n, finish="length")))

    work(10)  # what is read once
    assert work(800) < 2.6 * work(400) + 200


def test_an_ordinary_answer_is_a_few_hundred_lines_of_work() -> None:
    text = (
        "Based on the context provided, the code is 4827193.\n\n"
        'The context states: "The code is 4827193." This is stated plainly, without any alternatives.'
    )
    asked, reply = trial("4827193"), Reply(text=text)
    score(asked, reply)
    assert lines_run(lambda: score(asked, reply)) < 700


def test_published_answers_get_the_judges_pass_or_fail(shared_data: Path) -> None:
    text = (shared_data / "reference" / "claude21_answers.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.strip().split("\n")]
    facts = fixed_facts("seed", "en")
    asked_for = replace(trial(*facts.needles[0].answers), needles=facts.needles, question=facts.question)
    agreed = 0
    for row in rows:
        found = score(asked_for, Reply(text=row["model_response"], finish="stop"))
        assert found.score is not None
        agreed += (found.score >= PASS) is (row["score"] >= 7)
    assert agreed / len(rows) >= 0.99


@given(
    st.text(max_size=300), st.sampled_from([SEED, "4827193", "amber falcon", "5 March 1932", "坐在公园吃一个肉夹馍"])
)
@settings(max_examples=300, deadline=None)
def test_any_text_has_an_outcome_and_a_span_inside_of_it(text: str, answer: str) -> None:
    for said in (text, f"{text}{answer}{text}"):
        found = score(trial(answer), Reply(text=said))
        assert found.outcome in VALID_OUTCOMES and found.score is not None and 0 <= found.score <= 1
        assert found.span is None or 0 <= found.span[0] < found.span[1] <= len(said)
