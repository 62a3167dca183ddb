"""Results of gkamradt's LLMTest_NeedleInAHaystack (2023, needlehaystack 0.1): one JSON object for each answer.

Answers were judged by a model on a rubric from 1 to 10. `version` tells attempts at one cell apart. Lengths are those
asked for, less a buffer, in the tokens of a library that isn't named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..types import Usage
from .row import Row, depth_of, facts_of, key_of, length_of, name_of, score_of, seconds_of, text_of

TOOL = "needlehaystack 0.1"
RUBRIC = (1.0, 10.0)


def is_row(value: Mapping[str, Any]) -> bool:
    """Whether an object is one of its answers."""
    return (
        "context_length" in value
        and "depth_percent" in value
        and any(name in value for name in ("model_response", "needle", "test_duration_seconds"))
    )


def read_row(value: Mapping[str, Any], where: str) -> Row:
    facts = facts_of(value.get("needle", value.get("needles")), _question(value), else_seed=True)
    return Row(
        tool=TOOL,
        where=where,
        model=name_of(value.get("model"), "model"),
        context_length=length_of(value["context_length"], "context_length"),
        depth=depth_of(value["depth_percent"], "depth_percent")[0],
        raw=score_of(value.get("score")),
        text=text_of(value.get("model_response"), "model_response"),
        needles=facts.needles,
        answers=facts.answers,
        question=facts.question,
        assumed=facts.assumed,
        usage=Usage(),
        total_s=seconds_of(value.get("test_duration_seconds")),
        again=key_of(value.get("version")),
        at=key_of(value.get("test_timestamp_utc")),
    )


def _question(value: Mapping[str, Any]) -> str | None:
    for name in ("retrieval_question", "question"):
        if (text := text_of(value.get(name), name)) is not None:
            return text
    return None
