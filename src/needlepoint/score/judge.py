"""Judges at work: asks them about every reply that can be judged, keeps what each said, and scores.

    judgments/<scorer>.json    who judges, by which contract
    judgments/<scorer>.jsonl   one line for each reply of a judge, with its tokens and price
    scores/<scorer>.jsonl      what that makes each answer worth

A judge's valid verdict on a reply is never asked for again; a failed one is, whenever the scoring goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from ..ask.budget import Prices
from ..ask.plain import plain
from ..ask.policy import RunnerSettings
from ..ask.records import digest, to_json
from ..ask.runner import Job, Runner, RunnerState
from ..ask.store import RunFolder
from ..errors import UsageError
from ..types import Model, Reply, Sampling, Score, Trial
from . import rules
from .case import Case, case_of
from .panel import Judgment, Panel, decide, judgment_of, settled, unjudgeable
from .reasoning import visible

_MOST_NAMES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """One judge of a panel: its id, the model behind it, and how that is asked."""

    id: str
    model: Model
    sampling: Sampling
    settings: RunnerSettings
    prices: Prices | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How the judging went. `stopped` says why not every reply was judged, where that is so."""

    asked: int
    unjudged: int
    stopped: str | None = None
    stop_kind: str | None = None


class Bench:
    """The judges of one scoring of one run. `judge` asks them and scores."""

    def __init__(self, folder: RunFolder, panel: Panel, judges: Sequence[Judge], *, scorer: str) -> None:
        self._folder = folder
        self._panel = panel
        self._judges = judges
        self._scorer = scorer
        self._said: dict[tuple[str, str], list[Judgment]] = {}

    async def judge(
        self,
        *,
        on_state: Callable[[str, RunnerState], None] | None = None,
        interrupts: Callable[[Runner], AbstractContextManager[None]] | None = None,
    ) -> Judged:
        """Ask every judge what it has not judged yet, one judge after the other; then score every reply."""
        for judgment in self._folder.rows(journal_of(self._scorer), Judgment):
            self._keep(judgment)
        asked, stopped, kind = 0, None, None
        for judge in self._judges:
            runner = self._runner(judge, on_state)
            total = sum(1 for _ in self._jobs(judge))
            with interrupts(runner) if interrupts is not None else contextlib.nullcontext():
                found = await runner.run(self._jobs(judge), total=total)
            asked += found.asked
            if found.stopped is not None:
                stopped, kind = f"{judge.id}: {found.stopped}", found.stop_kind
            if found.stop_kind == "user":
                break
        return Judged(asked=asked, unjudged=self._score(), stopped=stopped, stop_kind=kind)

    def _runner(self, judge: Judge, on_state: Callable[[str, RunnerState], None] | None) -> Runner:
        def on_reply(job: Job, reply: Reply) -> None:
            case = job.prompt
            assert isinstance(case, Case)
            cost = None if judge.prices is None else judge.prices.cost(reply.usage)
            judgment = judgment_of(case, reply, judge=judge.id, cost=cost)
            self._folder.append_row(journal_of(self._scorer), judgment)
            self._keep(judgment)

        return Runner(
            judge.model,
            judge.sampling,
            judge.settings,
            on_reply=on_reply,
            on_state=None if on_state is None else lambda state: on_state(judge.id, state),
        )

    def _jobs(self, judge: Judge) -> Iterator[Job]:
        """What this judge has not judged, or not so that it could be read."""
        for trial, _, case in self._cases():
            if isinstance(case, Case):
                valid = {one.repeat for one in self._said_of(case) if one.judge == judge.id and one.grade is not None}
                for repeat in sorted(set(range(self._panel.repeats)) - valid):
                    yield Job(trial, replace(case, repeat=repeat))

    def _cases(self) -> Iterator[tuple[Trial, Reply, Case | Score]]:
        """Every reply with the case that it makes, or with its score where it makes none."""
        for trial, reply in self._folder.replies():
            by_rules = rules.score(trial, reply)
            is_empty = not visible(reply.text).strip()
            score = settled(by_rules, self._panel, is_empty=is_empty, scorer=self._scorer)
            if score is not None:
                yield trial, reply, score
                continue
            case = case_of(trial, reply, self._panel.contract, seed=self._panel.seed, digest=digest(to_json(reply)))
            yield trial, reply, case if isinstance(case, Case) else unjudgeable(case, self._scorer)

    def _score(self) -> int:
        """Score every reply by what was said of it; how many are unjudged."""
        unjudged = 0
        before = {trial.id: score for trial, _, score in self._folder.scored(self._scorer)}
        for trial, reply, case in self._cases():
            score = case
            if isinstance(case, Case):
                by_rules = rules.score(trial, reply)
                said = self._said_of(case)
                score = decide(case, said, self._panel, by_rules=by_rules, scorer=self._scorer)
            assert isinstance(score, Score)
            unjudged += score.outcome == "unjudged"
            if score != before.get(trial.id):
                self._folder.append_score(trial, reply, score)
        return unjudged

    def _said_of(self, case: Case) -> list[Judgment]:
        return self._said.get((case.trial.id, case.digest), [])

    def _keep(self, judgment: Judgment) -> None:
        """Take in what was said; a verdict takes the place of an earlier failure, and nothing takes a verdict's."""
        said = self._said.setdefault((judgment.trial, judgment.reply), [])
        place = (judgment.judge, judgment.repeat)
        if any((one.judge, one.repeat) == place and one.grade is not None for one in said):
            return
        said[:] = [*(one for one in said if (one.judge, one.repeat) != place), judgment]


def journal_of(scorer: str) -> str:
    return f"judgments/{scorer}.jsonl"


def settings_of(scorer: str) -> str:
    return f"judgments/{scorer}.json"


def scorer_for(folder: RunFolder, stem: str, identity: Mapping[str, Any]) -> str:
    """The scoring that was made with the very same judges and contract, to go on with; else a name that is free."""
    for number in range(1, _MOST_NAMES):
        name = stem if number == 1 else f"{stem}-{number}"
        before = folder.read_json(settings_of(name))
        if before.get("identity") == plain(identity, "judge"):
            return name
        if not before and name not in folder.scorers():
            return name
    raise UsageError(f"{folder.path} holds too many scorings called {stem}.")


def account(folder: RunFolder, scorer: str) -> dict[str, Any] | None:
    """What `report.json` says of the judges behind a scoring, their tokens and price booked apart; None without one."""
    settings = folder.read_json(settings_of(scorer))
    if not settings:
        return None
    requests, failed = 0, 0
    tokens: dict[str, int | None] = {"prompt": None, "completion": None, "cached": None}
    cost: float | None = None
    for one in folder.rows(journal_of(scorer), Judgment):
        requests += one.attempts
        failed += one.grade is None
        for name, count in (
            ("prompt", one.usage.prompt),
            ("completion", one.usage.completion),
            ("cached", one.usage.cached),
        ):
            if count is not None:
                tokens[name] = (tokens[name] or 0) + count
        if one.cost is not None:
            cost = (cost or 0.0) + one.cost
    told = {name: value for name, value in settings.items() if name != "identity"}
    return {"scorer": scorer, **told, "requests": requests, "failed": failed, "tokens": tokens, "cost": cost}
