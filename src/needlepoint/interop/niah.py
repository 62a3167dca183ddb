"""Rows of needlehaystack 2 (gkamradt, 2026, the command `niah`): JSON lines, schema version 2.

A row is a recipe: it names the haystack and where each needle went, and never holds the prompt. Its lengths count the
haystack alone, by cl100k_base; its scorers give 0 to 1. A seed draws other needles, so a seed is a replicate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..ask.models.overflow import find_overflow
from ..types import Failure, Needle, Usage
from .row import (
    Row,
    WrongValue,
    count_of,
    depth_of,
    key_of,
    length_of,
    mapping_of,
    name_of,
    score_of,
    seconds_of,
    shown,
    text_of,
)

TOOL = "needlehaystack 2"
SCHEMA = 2
_LONGEST_ERROR = 500


def is_row(value: Mapping[str, Any]) -> bool:
    """Whether an object is one of its rows."""
    return "target_depth_percent" in value and "recipe" in value


def read_row(value: Mapping[str, Any], where: str) -> Row:
    schema = value.get("schema_version", SCHEMA)
    if schema != SCHEMA:
        raise WrongValue(f"schema_version is {shown(schema)}, and this needlepoint reads {SCHEMA}. Update needlepoint")
    recipe, usage = mapping_of(value["recipe"]), mapping_of(value.get("usage"))
    needles, answers = _facts(value, recipe)
    error = None
    if value.get("status", "ok") != "ok":
        error = _failure(text_of(value.get("error"), "error") or "the run says no more than that it failed")
    score = value.get("score")
    return Row(
        tool=TOOL,
        where=where,
        model=name_of(value.get("model_id"), "model_id"),
        run=name_of(value.get("run_name"), "run_name"),
        subset=name_of(value.get("task_type"), "task_type") or "single",
        context_length=length_of(value.get("context_length"), "context_length"),
        depth=depth_of(value["target_depth_percent"], "target_depth_percent")[0],
        achieved_depth_percent=_achieved(recipe),
        raw=score_of(score.get("value") if isinstance(score, Mapping) else score, "score.value"),
        scale=(0.0, 1.0),
        text=text_of(value.get("response"), "response"),
        error=error,
        usage=Usage(prompt=count_of(usage.get("input_tokens")), completion=count_of(usage.get("output_tokens"))),
        total_s=seconds_of(value.get("duration_seconds")),
        cost=seconds_of(value.get("cost_usd")),
        needles=needles,
        answers=answers,
        question=text_of(value.get("prompt_question"), "prompt_question") or "",
        corpus=_corpus(recipe),
        again=key_of(value.get("seed")),
        at=key_of(value.get("timestamp_utc")),
    )


def _facts(value: Mapping[str, Any], recipe: Mapping[str, Any]) -> tuple[tuple[Needle, ...], tuple[str, ...]]:
    """The needles, and what a right answer states: the task's fragments where it has several, else its one answer."""
    placements = recipe.get("needle_placements")
    texts = [
        text
        for one in (placements if isinstance(placements, list) else ())
        if isinstance(text := mapping_of(one).get("text"), str)
    ]
    fragments = mapping_of(value.get("needle_metadata")).get("expected_fragments")
    answers: tuple[str, ...] = ()
    if isinstance(fragments, list) and fragments and all(isinstance(one, str) for one in fragments):
        answers = tuple(fragments)
    elif expected := text_of(value.get("expected_answer"), "expected_answer"):
        answers = (expected,)
    if len(answers) == len(texts):
        return tuple(Needle(text=text, answers=(one,)) for text, one in zip(texts, answers, strict=True)), answers
    return tuple(Needle(text=text) for text in texts), answers


def _achieved(recipe: Mapping[str, Any]) -> float | None:
    placements = recipe.get("needle_placements")
    if not isinstance(placements, list) or len(placements) != 1:
        return None
    depth = mapping_of(placements[0]).get("actual_depth_percent")
    return float(depth) if isinstance(depth, int | float) and 0 <= depth <= 100 else None


def _corpus(recipe: Mapping[str, Any]) -> str | None:
    """The haystack's name: of a path, its last part."""
    haystack = mapping_of(recipe.get("haystack"))
    path = haystack.get("path")
    if isinstance(path, str) and (parts := [part for part in re.split(r"[/\\]", path) if part]):
        return name_of(parts[-1], "recipe.haystack.path")
    return None


def _failure(message: str) -> Failure:
    words = " ".join(message.split())[:_LONGEST_ERROR]
    return Failure(kind="overflow" if find_overflow(message) else "server", message=words)
