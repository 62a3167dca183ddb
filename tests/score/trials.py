"""Trials for tests, made up."""

from __future__ import annotations

from dataclasses import replace

from needlepoint.types import Needle, Trial


def trial(*answers: str, id: str = "t", sent_tokens: int | None = 1_000) -> Trial:
    return Trial(
        id=id,
        dataset="needle_haystack",
        subset="english",
        layout="classic",
        length_mode="exact",
        replicate=0,
        repeat=0,
        context_length=123_456,
        depth_percent=50,
        achieved_length=1_000,
        achieved_depth_percent=50.1,
        boundary="sentence",
        needles=tuple(Needle(text=f"It is {answer}.", answers=(answer,)) for answer in answers),
        placements=(),
        question="What is it?",
        answers=answers,
        corpus="c",
        corpus_sha256="0",
        tokenizer="t",
        tokenizer_fingerprint="f",
        prompt_sha256="0123456789",
        sent_tokens=sent_tokens,
        length_proven=True,
    )


def asked(*needles: Needle, question: str) -> Trial:
    """A trial that asks `question` of a text with these needles in it."""
    answers = tuple(answer for needle in needles for answer in needle.answers)
    return replace(trial(), needles=needles, answers=answers, question=question)
