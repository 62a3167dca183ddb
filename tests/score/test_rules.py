from __future__ import annotations

import pytest

from needlepoint.score.rules import found_each, score
from needlepoint.types import Failure, Needle, Reply, Trial, Usage


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
