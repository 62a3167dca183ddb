"""Which trials pair: the same question, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from needlepoint.learn.pairing import pair_key, pair_rows

from .rows import answered, trials


def right(number: int, trial: object) -> float:
    return 1.0


def test_the_same_prompts_pair_whatever_their_order() -> None:
    one = answered(trials(replicates=2, repeats=2), right)
    found = pair_rows(one, list(reversed(one)))
    assert [pair.one for pair in found.pairs] == [pair.other for pair in found.pairs] == one
    assert not found.differing and not found.only_one and not found.only_other and not found.unproven


def test_another_prompt_in_the_same_place_differs() -> None:
    one = answered(trials(), right)
    other = [(replace(trial, prompt_sha256="another"), reply, score) for trial, reply, score in one]
    found = pair_rows(one, other)
    assert not found.pairs and len(found.differing) == 4


def test_the_same_prompt_with_other_answers_expected_differs() -> None:
    one = answered(trials(), right)
    other = [(replace(trial, answers=("4712",)), reply, score) for trial, reply, score in one]
    assert len(pair_rows(one, other).differing) == 4


def test_what_only_one_run_asked_is_told() -> None:
    one, other = answered(trials((1_000, 2_000)), right), answered(trials((2_000, 4_000)), right)
    found = pair_rows(one, other)
    assert len(found.pairs) == len(found.only_one) == len(found.only_other) == 2


def test_prompts_that_nobody_told_pair_by_place_and_are_counted() -> None:
    one = answered(trials(), right)
    other = [(replace(trial, prompt_sha256=None), reply, score) for trial, reply, score in one]
    assert pair_rows(one, other).unproven == pair_rows(other, other).unproven == 4
    asked = [(replace(trial, question="What else?"), reply, score) for trial, reply, score in other]
    assert len(pair_rows(one, asked).differing) == 4


def test_layouts_never_pair() -> None:
    one = answered(trials(), right)
    other = [(replace(trial, layout="woven"), reply, score) for trial, reply, score in one]
    assert not pair_rows(one, other).pairs
    assert pair_key(one[0][0]) != pair_key(other[0][0])


def test_a_key_is_of_the_question_alone() -> None:
    trial = next(iter(trials()))
    assert pair_key(trial) == pair_key(replace(trial, id="x", dataset="d", length_mode="evalscope", corpus=None))
    for change in ({"replicate": 1}, {"repeat": 1}, {"subset": "s"}, {"context_length": 7}, {"prompt_sha256": "q"}):
        assert pair_key(trial) != pair_key(replace(trial, **change))
