"""EvalScope 1.x: what a model answered (`predictions`), what that was worth (`reviews`), and the grid (`reports`).

A judged score is a rubric's 1 to 10 divided by ten, so that a miss is 0.1; a score by its rule is 0 or 1. The answer
to a prompt that was too long is the server's complaint, which EvalScope scores like any other: here it is an overflow.

Predictions hold the prompt: its fingerprint is taken, and the text is not kept. It is needlepoint's own fingerprint, so
that the same question in a run of length mode `evalscope` is known to be the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..ask.models.overflow import find_overflow
from ..plan.needles import SEED_NEEDLE
from ..plan.prompt import fingerprint
from ..score.imported import Scale
from ..types import Failure, Message, Usage
from .row import (
    NO_SUBSET,
    Facts,
    Row,
    WrongValue,
    count_of,
    depth_of,
    facts_of,
    holds_seed,
    length_of,
    mapping_of,
    name_of,
    score_of,
    seconds_of,
    text_of,
)

TOOL = "EvalScope"
BENCHMARK = "needle_haystack"
JUDGED: Scale = (0.1, 1.0)
BY_RULE: Scale = (0.0, 1.0)
_CELL = re.compile(r"Context#(\d+) Depth#(\d+(?:\.\d+)?)")
_QUESTION = re.compile(r"<question>\n(.*?)\n</question>", re.DOTALL)
_LONGEST_ERROR = 500
_FINISH = {"max_tokens": "length", "unknown": None}


def is_prediction(value: Mapping[str, Any]) -> bool:
    return "model_output" in value and "index" in value


def is_review(value: Mapping[str, Any]) -> bool:
    return "sample_score" in value and "index" in value


def is_report(value: Mapping[str, Any]) -> bool:
    return "dataset_name" in value and isinstance(value.get("metrics"), list)


def subset_of(file_name: str) -> str | None:
    """`english` of `needle_haystack_english.jsonl`; None for the file of another benchmark."""
    stem = file_name.rpartition(".")[0]
    if stem == BENCHMARK:
        return NO_SUBSET
    return stem.removeprefix(f"{BENCHMARK}_") if stem.startswith(f"{BENCHMARK}_") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A prediction or a review, or both, of one sample. What one of them lacks the other may have."""

    where: str
    index: int
    model: str | None = None
    cell: tuple[int, float] | None = None
    text: str | None = None
    reasoning: str | None = None
    finish: str | None = None
    error: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    total_s: float | None = None
    question: str | None = None
    prompt_sha256: str | None = None
    targets: tuple[str, ...] = ()
    raw: float | None = None
    scale: Scale | None = None
    why: str | None = None
    reviewed: bool = False


def read_prediction(value: Mapping[str, Any], where: str) -> Sample:
    output = mapping_of(value["model_output"])
    choices = output.get("choices")
    choice = mapping_of(choices[0]) if isinstance(choices, list) and choices else {}
    text, reasoning = _content(mapping_of(choice.get("message")).get("content"))
    stop, counted = choice.get("stop_reason"), mapping_of(output.get("usage"))
    usage = Usage(
        prompt=count_of(counted.get("input_tokens")),
        completion=count_of(counted.get("output_tokens")),
        reasoning=count_of(counted.get("reasoning_tokens")),
        cached=count_of(counted.get("input_tokens_cache_read")),
        cache_written=count_of(counted.get("input_tokens_cache_write")),
    )
    told = text_of(output.get("error"), "model_output.error")
    error = None
    if stop == "model_length" or (not usage.prompt and text and find_overflow(text)):
        error = Failure(kind="overflow", message=_words(text or told or "the prompt is longer than the model takes"))
    elif told or not choice:
        kind = "overflow" if told and find_overflow(told) else "server"
        error = Failure(kind=kind, message=_words(told or "no answer is in the prediction"))  # type: ignore[arg-type]
    return Sample(
        where=where,
        index=_index(value),
        model=name_of(value.get("model"), "model"),
        cell=_cell(value.get("metadata")),
        text=text,
        reasoning=reasoning,
        finish=_FINISH.get(stop, stop) if isinstance(stop, str) else None,
        error=error,
        usage=usage,
        total_s=seconds_of(output.get("time")),
        **_prompt(value.get("messages")),
    )


def read_review(value: Mapping[str, Any], where: str) -> Sample:
    sample = mapping_of(value["sample_score"])
    score = mapping_of(sample.get("score"))
    raw, cell = _value(score)
    judge = mapping_of(score.get("judge_summary") or score.get("judge_detail"))
    judged = bool(judge) or mapping_of(score.get("metadata")).get("source") == "llm_judge"
    why = None
    if raw is None:
        said = judge.get("error") or score.get("status")
        why = f"{TOOL} gave no score" + (f": {_words(said)}" if isinstance(said, str) and said != "success" else "")
    answer = text_of(score.get("prediction"), "prediction")
    target = value.get("target")
    found = _prompt(value.get("messages"))
    return Sample(
        where=where,
        index=_index(value),
        cell=_cell(sample.get("sample_metadata")) or cell,
        text=answer,
        targets=tuple(
            line.strip()
            for one in ([target] if isinstance(target, str) else target if isinstance(target, list) else [])
            if isinstance(one, str)
            for line in one.splitlines()
            if line.strip()
        ),
        raw=raw,
        scale=JUDGED if judged else BY_RULE,
        why=why,
        reviewed=True,
        question=found["question"],
        prompt_sha256=found["prompt_sha256"],
    )


def joined(prediction: Sample | None, review: Sample | None, *, model: str | None, subset: str) -> Row:
    """One result of a prediction and its review, either of which may be missing."""
    first = prediction or review
    assert first is not None
    cell = first.cell or (review.cell if review is not None else None)
    if cell is None:
        raise WrongValue("its metadata name no context_length and depth_percent; EvalScope was told to leave them out")
    facts = _facts(first, review)
    scored = review if review is not None else first
    return Row(
        tool=TOOL,
        where=first.where,
        model=first.model or model,
        subset=subset,
        context_length=cell[0],
        depth=cell[1],
        length_mode="evalscope",
        raw=scored.raw,
        scale=scored.scale or BY_RULE,
        why=scored.why if scored.reviewed else f"{TOOL} has no review of it",
        text=first.text if first.text is not None else scored.text,
        reasoning=first.reasoning,
        finish=first.finish,
        error=first.error,
        usage=first.usage,
        total_s=first.total_s,
        needles=facts.needles,
        answers=facts.answers,
        question=facts.question,
        assumed=facts.assumed,
        prompt_sha256=first.prompt_sha256 or scored.prompt_sha256,
        again=str(first.index),
    )


def read_report(value: Mapping[str, Any], where: str) -> Iterator[Row]:
    """One row for each cell of a report: its mean score, however many answers that is of."""
    if value["dataset_name"] != BENCHMARK:
        raise WrongValue(f"it is a report of {name_of(value['dataset_name'], 'dataset_name')}, not of {BENCHMARK}")
    judged = bool(value.get("judge_summary"))
    model = name_of(value.get("model_name"), "model_name")
    for metric in value["metrics"]:
        identity = mapping_of(mapping_of(metric).get("identity"))
        cell = _cell(identity.get("dimensions")) or _named_cell(mapping_of(metric).get("name"))
        if cell is None:
            continue
        for category in _objects(metric.get("categories")):
            for subset in _objects(category.get("subsets")):
                if not subset.get("is_aggregate"):
                    yield Row(
                        tool=TOOL,
                        where=where,
                        model=model,
                        subset=name_of(subset.get("name"), "subsets.name") or NO_SUBSET,
                        context_length=cell[0],
                        depth=cell[1],
                        length_mode="evalscope",
                        raw=score_of(subset.get("score")),
                        scale=JUDGED if judged else BY_RULE,
                    )


# --- parts ------------------------------------------------------------------------------------------------------------


def _index(value: Mapping[str, Any]) -> int:
    index = count_of(value["index"])
    if index is None:
        raise WrongValue("index is no whole number")
    return index


def _cell(metadata: object) -> tuple[int, float] | None:
    found = mapping_of(metadata)
    if "context_length" not in found or "depth_percent" not in found:
        return None
    return length_of(found["context_length"], "context_length"), depth_of(found["depth_percent"], "depth_percent")[0]


def _named_cell(name: object) -> tuple[int, float] | None:
    """Before version 1.5 or so a cell was in the metric's name."""
    match = _CELL.search(name) if isinstance(name, str) else None
    return (length_of(match[1], "the metric's name"), depth_of(match[2], "the metric's name")[0]) if match else None


def _value(score: Mapping[str, Any]) -> tuple[float | None, tuple[int, float] | None]:
    """The score of a review, and its cell where the score's name tells it."""
    values = mapping_of(score.get("value"))
    main = score.get("main_score_name")
    for name in (main if isinstance(main, str) else "", "acc", "accuracy", *values):
        if name in values:
            return score_of(values[name], f"score.value.{name}"), _named_cell(name)
    return None, None


def _content(content: object) -> tuple[str | None, str | None]:
    """A message's visible text and its reasoning; parts are joined as they come."""
    if isinstance(content, str):
        return content, None
    texts, thoughts = [], []
    for part in _objects(content):
        if isinstance(text := part.get("text"), str):
            texts.append(text)
        if isinstance(thought := part.get("reasoning"), str):
            thoughts.append(thought)
    return "".join(texts) if content is not None else None, "".join(thoughts) or None


def _prompt(messages: object) -> dict[str, Any]:
    """The fingerprint of what was asked and the question in it; of the needle only that it is the benchmark's own."""
    asked = [one for one in _objects(messages) if one.get("role") != "assistant"]
    texts = [(one.get("role"), _content(one.get("content"))[0]) for one in asked]
    if not texts or any(not isinstance(role, str) or text is None for role, text in texts):
        return {"question": None, "prompt_sha256": None, "targets": ()}
    prompt = [Message(role=str(role), content=text or "") for role, text in texts]
    last = prompt[-1]["content"]
    questions = _QUESTION.findall(last[-20_000:])
    return {
        "question": questions[-1] if questions else None,
        "prompt_sha256": fingerprint([_whole(message) for message in prompt]),
        "targets": (SEED_NEEDLE,) if holds_seed(last) else (),
    }


def _whole(message: Message) -> Message:
    """The message with half surrogate pairs replaced, which no fingerprint can be taken of."""
    content = message["content"].encode(errors="replace").decode()
    return Message(role=message["role"].encode(errors="replace").decode(), content=content)


def _facts(first: Sample, review: Sample | None) -> Facts:
    targets = review.targets if review is not None and review.targets else first.targets
    question = first.question or (review.question if review is not None else None)
    return facts_of(targets, question, else_seed=False)


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _words(message: object) -> str:
    return " ".join(str(message).split())[:_LONGEST_ERROR]
