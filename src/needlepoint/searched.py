"""A search in its run folder: the steps that it took, what came of them, and how its report speaks of it.

The lengths of a search are chosen by what was answered before, and it stops when it knows enough. Ordinary intervals
don't hold for counts that came about like that, so the report of such a run has none, and says what it has instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .ask.settings import RunSettings
from .ask.store import RunFolder
from .learn.effective import PRESETS, Bar
from .learn.limit import Limit, limit_of
from .learn.search import Answer, Search, State, Step, begin
from .learn.tally import measured
from .types import Reply, Score, Trial

STEPS = "search.jsonl"
_LOST = frozenset({"timeout", "connection", "bad_answer"})
_NOTE = (
    "The lengths of these trials were chosen by the answers before them, and the search stopped when it knew enough: "
    "ordinary intervals don't hold for such counts, so none is given. What was found is under 'search'."
)

Record = list[tuple[Step, Sequence[Answer]]]


def search_of(settings: RunSettings) -> Search | None:
    """What was searched for in a run; None for a run that was no search."""
    identity = settings.identity
    found = identity.get("search")
    if not isinstance(found, Mapping):
        return None
    preset, lengths, depths = found.get("preset"), identity["lengths"], identity["depths"]
    assert isinstance(lengths, list) and isinstance(depths, list)
    return Search(
        lengths=tuple(lengths),
        depths=tuple(map(float, depths)),
        subsets=tuple(found["subsets"]),
        bar=Bar(preset=preset) if preset in PRESETS else Bar(threshold=found["threshold"]),
        confidence=found["confidence"],
        seed=int(str(identity.get("seed", 0))),
        at_once=found["at_once"],
        budget_tokens=budget if isinstance(budget := settings.free.get("budget_tokens"), int) else None,
        answer_tokens=found["answer_tokens"],
    )


def answer_of(trial: Trial, reply: Reply, score: Score) -> Answer:
    """What a trial tells a search, and the uncached tokens that it took, as far as they are known."""
    usage, kind = reply.usage, None if reply.error is None else reply.error.kind
    if kind is not None:
        tokens = trial.sent_tokens or trial.context_length if kind in _LOST else 0
    else:
        prompt = usage.prompt if usage.prompt is not None else trial.sent_tokens or trial.context_length
        tokens = max(0, prompt - (usage.cached or 0)) + (usage.completion or 0)
    return Answer(score=measured(score), outcome=score.outcome, tokens=tokens)


def record_of(folder: RunFolder, rows: Sequence[tuple[Trial, Reply, Score]]) -> Record:
    """The steps of a search with the answers there are; asks without one are left out."""
    answers = {trial.replicate: answer_of(trial, reply, score) for trial, reply, score in rows}
    record: Record = []
    for step in folder.rows(STEPS, Step):
        if asks := tuple(ask for ask in step.asks if ask.number in answers):
            record.append((replace(step, asks=asks), [answers[ask.number] for ask in asks]))
    return record


def state_of(search: Search, record: Record) -> State:
    state = begin(search)
    for step, answers in record:
        state = state.after(search, step, answers)
    return state


def with_search(
    report: Mapping[str, Any], folder: RunFolder, rows: Sequence[tuple[Trial, Reply, Score]]
) -> dict[str, Any]:
    """The report of a run that was a search; any other stays as it is."""
    search = search_of(folder.settings)
    if search is None:
        return dict(report)
    record = record_of(folder, rows)
    limit: Limit = limit_of(search, record, state_of(search, record))
    found: dict[str, Any] = _without_intervals(report)
    notes = [_NOTE, *(note for note in report.get("notes") or () if not note.startswith("There is no interval"))]
    return {**found, "notes": notes, "search": limit.json()}


def _without_intervals(value: Any) -> Any:
    """Nested rows without what an adaptive choice of trials makes invalid."""
    if isinstance(value, list):
        return [_without_intervals(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    invalid = {"interval", "interval_over", "effective_length", "position"}
    return {name: None if name in invalid else _without_intervals(item) for name, item in value.items()}
