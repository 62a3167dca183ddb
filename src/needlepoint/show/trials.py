"""The trials of a run as the page carries them: columns, with texts held once and cut to a budget. Pure.

A page is sent on by mail, so it has a size: answers, reasoning and excerpts share a budget of bytes, and long ones are
cut around what decided them. Where even that isn't enough, failures and one trial of each cell come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..learn.pairing import pair_key
from ..types import Needle, Reply, Score, Trial
from .visible import visible

MOST_TRIALS = 20_000
TEXT_BYTES = 5_000_000
_LONGEST = (4_000, 1_500, 600, 240, 100)
_LONGEST_LABEL = 2_000

Row = tuple[Trial, Reply, Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """The text on both sides of a needle; both empty where the needle isn't found in it."""

    before: str
    after: str


class Texts:
    """Texts that several trials share, each held once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int | None:
        if text is None:
            return None
        return self._numbers.setdefault(visible(text[:_LONGEST_LABEL]), len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


def trial_columns(
    rows: Iterable[Row],
    *,
    texts: Texts,
    excerpts: Mapping[str, Sequence[Excerpt]],
    paired: bool,
    most: int = MOST_TRIALS,
    text_bytes: int = TEXT_BYTES,
) -> dict[str, Any]:
    """Columns of equal length; `{"all": value}` where every trial has the same. `paired`: what pairs it."""
    kept = chosen(list(rows), most)
    longest = _longest([(reply, score) for _, reply, score in kept], text_bytes)
    needle_sets: dict[tuple[Needle, ...], int] = {}
    columns: dict[str, list[Any]] = {}
    for trial, reply, score in kept:
        row = _facts(trial, reply, score, texts)
        row["needles"] = needle_sets.setdefault(trial.needles, len(needle_sets))
        known = bool(reply.text or reply.attempts or reply.error)
        row["answer"] = answer_parts(reply.text, score.span, longest) if known else None
        row["reasoning"] = _reasoning(reply, longest)
        row["placements"] = [
            [_rounded(p.depth_percent, 2), _rounded(p.achieved_depth_percent, 2), texts.number(p.boundary)]
            for p in trial.placements or ()
        ] or None
        found = excerpts.get(trial.prompt_sha256) if trial.prompt_sha256 else None
        row["excerpts"] = found and [[texts.number(e.before), texts.number(e.after)] for e in found]
        if paired:
            row["recipe"] = pair_key(trial) if trial.prompt_sha256 else None
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    sets = [
        [[texts.number(needle.text), [texts.number(answer) for answer in needle.answers]] for needle in needles]
        for needles in needle_sets
    ]
    return {"n": len(kept), "needle_sets": sets, "columns": {name: _column(values) for name, values in columns.items()}}


def chosen(rows: list[Row], most: int) -> list[Row]:
    """All, or as many as fit, in their own order; see `by_interest`."""
    return rows if len(rows) <= most else [rows[number] for number in sorted(by_interest(rows)[:most])]


def by_interest(rows: Sequence[Row]) -> list[int]:
    """The numbers of the rows, those first that people look at first: one of each cell, failures, the rest."""
    seen: set[tuple[Any, ...]] = set()
    ranked: list[tuple[int, int]] = []
    for number, (trial, _, score) in enumerate(rows):
        cell = (trial.subset, trial.context_length, trial.depth_percent)
        ranked.append((0 if cell not in seen else 1 if score.outcome != "correct" else 2, number))
        seen.add(cell)
    return [number for _, number in sorted(ranked)]


def answer_parts(text: str | None, span: tuple[int, int] | None, longest: int) -> str | list[Any] | None:
    """An answer to be looked at: the text, or [before, what decided, after, characters left out]."""
    if text is None:
        return None
    if span is None or not 0 <= span[0] < span[1] <= len(text):
        if len(text) <= longest:
            return visible(text)
        return [visible(text[:longest]), "", "", len(text) - longest]
    start, end = span
    hit = text[start:end][:longest]
    room = longest - len(hit)
    after = text[end : end + max(room // 2, room - start)]
    before = text[max(0, start - (room - len(after))) : start] if room > len(after) else ""
    left_out = len(text) - len(before) - len(hit) - len(after)
    return [visible(before), visible(hit), visible(after), left_out]


def _facts(trial: Trial, reply: Reply, score: Score, texts: Texts) -> dict[str, Any]:
    usage, times, error, margin = reply.usage, reply.times, reply.error, reply.margin
    return {
        "id": trial.id,
        "subset": texts.number(trial.subset),
        "length": trial.context_length,
        "depth": trial.depth_percent,
        "replicate": trial.replicate,
        "repeat": trial.repeat,
        "layout": texts.number(trial.layout),
        "achieved_length": trial.achieved_length,
        "achieved_depth": _rounded(trial.achieved_depth_percent, 2),
        "boundary": texts.number(trial.boundary),
        "proven": trial.length_proven,
        "question": texts.number(trial.question),
        "outcome": texts.number(score.outcome),
        "score": _rounded(score.score, 4),
        "raw": _rounded(score.raw, 4),
        "scale": None if score.scale is None else list(score.scale),
        "reason": texts.number(score.reason),
        "scorer": texts.number(score.scorer),
        "finish": texts.number(reply.finish),
        "error": texts.number(None if error is None else error.kind),
        "sent": trial.sent_tokens,
        "margin": None
        if margin is None
        else [_rounded(margin.gold, 4), _rounded(margin.wrong, 4), texts.number(margin.rival)],
        "prompt": usage.prompt,
        "completion": usage.completion,
        "thought": usage.reasoning,
        "cached": usage.cached,
        "first": _rounded(times.first_token, 3),
        "total": _rounded(times.total, 3),
        "attempts": reply.attempts,
    }


def _longest(rows: Sequence[tuple[Reply, Score]], budget: int) -> int:
    """The longest answer that is kept whole, so that all together stay in the budget."""
    sizes = [(_size(reply.text), _size(reply.reasoning)) for reply, _ in rows]
    for longest in _LONGEST[:-1]:
        whole = sum(min(answer, 3 * longest) + min(thought, 3 * longest) for answer, thought in sizes)
        if whole <= budget:
            return longest
    return _LONGEST[-1]


def _size(text: str | None) -> int:
    """Bytes of a text's beginning; what is longer is cut anyway."""
    return 0 if not text else len(text[: _LONGEST[0]].encode(errors="replace"))


def _reasoning(reply: Reply, longest: int) -> list[Any] | None:
    """The end of what was thought, where it came to its answer, and how many characters stand before it."""
    text = reply.reasoning
    if not text or not text.strip() or longest < _LONGEST[2]:
        return None
    return [visible(text[-longest:]), max(0, len(text) - longest)]


def _column(values: list[Any]) -> Any:
    first = values[0]
    return {"all": first} if all(value == first and type(value) is type(first) for value in values) else values


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
