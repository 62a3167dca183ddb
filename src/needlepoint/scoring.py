"""The scorings of a run: which there are, which one its numbers rest on, and the report made of that one.

A run has any number of scorings beside each other, `scores/<scorer>.jsonl` each. Rules are free, so what they have not
scored yet they score when it is read. Scores that were imported are never made again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .ask.store import RunFolder
from .config import DATASETS
from .learn.agreement import agreement
from .learn.effective import Bar, bar_of
from .learn.margins import margins
from .learn.pace import pace
from .learn.recall import recall
from .learn.summary import summarise
from .score import rules
from .score.imported import IMPORTED
from .score.judge import account
from .searched import with_search
from .types import Reply, Score, Trial

REPORT = "report.json"
RULES = rules.SCORER
_CARRIED = ("prefix", "self_check", "planned", "stopped", "cost", "length_mode", "layout", "dataset", "model")
"""What only the asking knew: a later scoring takes it from the report that there is."""

_PLANNED = ("naive_tokens", "bound_tokens", "planned_tokens")

Row = tuple[Trial, Reply, Score]


def scorings(folder: RunFolder) -> list[str]:
    """The scorers that a run can be read with, the latest last."""
    return folder.scorers() or [RULES]


def chosen_scorer(folder: RunFolder) -> str:
    """The scorer that the run's numbers rest on: its report's, else the imported one, else the rules."""
    known = scorings(folder)
    wanted = folder.read_report().get("scorer")
    if isinstance(wanted, str) and wanted in known:
        return wanted
    return IMPORTED if IMPORTED in known else RULES if RULES in known else known[-1]


def scored(folder: RunFolder, scorer: str | None = None) -> Iterator[Row]:
    """Every question of a run with its reply and its score by `scorer`, else by the one its numbers rest on."""
    scorer = scorer or chosen_scorer(folder)
    for trial, reply, score in folder.scored(scorer):
        yield trial, reply, score or _unscored(trial, reply, scorer)


def _unscored(trial: Trial, reply: Reply, scorer: str) -> Score:
    if scorer == RULES:
        return rules.score(trial, reply)
    reason = f"not scored by {scorer} yet: needlepoint score scores what is missing"
    return Score(outcome="unjudged", score=None, reason=reason, span=None, scorer=scorer)


def score_by_rules(folder: RunFolder) -> list[Row]:
    """Bring the scoring of the rules up to date: what is new, and what today's rules see in another way.

    Returns all of it, so that a report need not read it again.
    """
    rows = []
    for trial, reply, before in list(folder.scored(RULES)):
        score = rules.score(trial, reply)
        if score != before:
            folder.append_score(trial, reply, score)
        rows.append((trial, reply, score))
    return rows


def write_report(
    folder: RunFolder,
    scorer: str,
    facts: Mapping[str, Any] | None = None,
    *,
    bar: Bar | None = None,
    rows: list[Row] | None = None,
) -> dict[str, Any]:
    """Make `report.json`, as `report_of` has it; returns it."""
    report = report_of(folder, scorer, facts, bar=bar, rows=rows)
    folder.write_text(REPORT, json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    return report


def report_of(
    folder: RunFolder,
    scorer: str,
    facts: Mapping[str, Any] | None = None,
    *,
    bar: Bar | None = None,
    rows: list[Row] | None = None,
) -> dict[str, Any]:
    """What `report.json` says, from what the folder holds, on the numbers of `scorer`.

    `facts` are those of the asking (`planned`, `stopped`, `cost`, ...), `bar` is that of the effective length; without
    them the report that there is tells. `rows` are the scoring's, where they are at hand.
    """
    rows = list(scored(folder, scorer)) if rows is None else rows
    before = folder.read_report()
    carried = {name: before.get(name) for name in _CARRIED if name in before} if facts is None else dict(facts)
    settings = folder.settings
    first = rows[0][0] if rows else None
    head = {
        "model": settings.identity.get("model"),
        "dataset": DATASETS[0] if first is None else first.dataset,
        "layout": "classic" if first is None else first.layout,
        "length_mode": None if first is None else first.length_mode,
        "planned": None,
        "stopped": None,
        "cost": None,
        **{name: value for name, value in carried.items() if value is not None},
        "scorer": scorer,
        "judge": _judge(folder, scorer),
        "agreement": _agreement(folder, rows, scorer),
        "corpus": settings.corpora,
        "tokenizer": settings.tokenizer,
        "endpoint": settings.endpoint,
        "versions": settings.versions,
    }
    plan = head.pop("prefix", None) or {}
    report = summarise(rows, head=head, bar=bar or bar_of(before))
    report["prefix"] |= {name: plan[name] for name in _PLANNED if plan.get(name) is not None}
    found = {**report, "pace": pace(rows), "recall": recall(rows), "margin": margins(rows)}
    return with_search(found, folder, rows)


def _judge(folder: RunFolder, scorer: str) -> dict[str, Any] | None:
    """The judges behind the numbers; else those of the latest scoring that was a judge's."""
    for name in [scorer, *reversed(folder.scorers())]:
        if (found := account(folder, name)) is not None:
            return found
    return None


def _agreement(folder: RunFolder, rows: list[Row], scorer: str) -> dict[str, Any] | None:
    """The chosen scoring against one more, where there is one: a judge's and an imported one against the rules."""
    others = [name for name in scorings(folder) if name != scorer]
    other = RULES if RULES in others else others[-1] if others else None
    if other is None:
        return None
    found = {trial.id: score for trial, _, score in scored(folder, other)}
    return agreement(
        ((trial, reply, score, found[trial.id]) for trial, reply, score in rows if trial.id in found),
        scorer=scorer,
        other=other,
    )
