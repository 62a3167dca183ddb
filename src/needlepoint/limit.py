"""How much context can be used? A search in a run folder: decide → ask → learn, until the answer is known.

What is asked next is decided by `learn.adaptive`, who is asked and where it is kept is as in every run. Each step is
written to `search.jsonl` before it is asked, so a run that was killed goes on where it stood: the steps that there are
first, as far as they lack answers, then those that follow from them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from .ask.interrupts import install_interrupts
from .ask.progress import RunnerState, RunResult
from .ask.settings import RunSettings
from .ask.store import RunFolder, settings_of
from .asking import Asking
from .errors import UsageError
from .evaluation import TaskResult, ended, opened_folder, run_settings
from .fields import user_path
from .learn.adaptive import next_step
from .learn.limit import Limit, read_limit
from .learn.search import Answer, Search, State, Step, begin
from .limit_settings import AT_ONCE, LimitConfig
from .plan.draws import Draws
from .plan.task import Plan
from .prepare import Prepared, key_of, prepared, with_model
from .scoring import Row
from .searched import STEPS, answer_of, search_of
from .text.cache import Notify, Progress
from .types import Cell, Reply, Score, Trial


class Onlooker(Protocol):
    """Someone who looks on while a limit is searched for."""

    def begin(self, search: Search) -> None: ...
    def looking(self, step: Step) -> None: ...
    def learned(self, step: Step, answers: Sequence[Answer], search: Search, state: State) -> None: ...
    def state(self, state: RunnerState) -> None: ...
    def end(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitResult:
    """What a search found, and the run that it made. `stopped` says why it isn't at its end."""

    limit: Limit
    run: TaskResult

    @property
    def folder(self) -> Path:
        return self.run.folder

    @property
    def report(self) -> Mapping[str, Any]:
        """What `report.json` holds; `limit` is its 'search'."""
        return self.run.report

    @property
    def length(self) -> int | None:
        """The effective length, as it is estimated; None where not even the shortest length holds, or nobody knows."""
        return None if self.limit.estimate is None else self.limit.estimate.length

    @property
    def interval(self) -> tuple[int | None, int | None] | None:
        """The 95 % between its ends; an end of None is below the shortest length."""
        return None if self.limit.estimate is None else self.limit.estimate.interval

    @property
    def certified(self) -> int | None:
        """The longest length at which accuracy reaches the threshold with the confidence that was asked for."""
        return self.limit.certified

    @property
    def stopped(self) -> str | None:
        if self.run.stopped is not None:
            return self.run.stopped
        end = self.limit.end
        return None if end is None or end.kind == "done" else end.why

    def trials(self) -> Iterator[Row]:
        """Every question with its reply and what that is worth."""
        return self.run.trials()


async def afind_limit(
    *,
    onlooker: Onlooker | None = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
    interrupts: bool = False,
    config: LimitConfig | None = None,
    **settings: Any,
) -> LimitResult:
    """Find out how much context a model can use, and certify a length. `settings` are those of `LimitConfig`.

    With `interrupts`, Ctrl-C once finishes what is in flight and a second one stops at once; both keep what was found.
    """
    config = LimitConfig.of(settings) if config is None else config
    config = await with_model(config)
    config.check()
    before = None if config.use_cache is None else _search_before(settings_of(user_path(config.use_cache)))
    key = key_of(config)
    async with prepared(config, notify=notify, progress=progress) as ready:
        assert isinstance(ready.prompts, Plan)
        config = config.searching(ready.endpoint.limit_tokens)
        draws = Draws(config.task(), ready.prompts.corpora, ready.planned, verify=config.verify_mode)
        ready = replace(ready, prompts=draws)
        search = config.search(
            [corpus.subset for corpus in draws.corpora],
            at_once=_at_once(config, ready) if before is None else before.at_once,
        )
        made = run_settings(config, draws, ready.planned, ready.endpoint, ready.sampling)
        with opened_folder(config, _with_search(made, search), [key] if key else []) as folder:
            watcher = _Watcher(onlooker or _Nobody())
            asking = Asking(config, ready, folder, watcher)
            with install_interrupts(asking.runner) if interrupts else contextlib.nullcontext():
                found, planned = await _search(search, draws, folder, asking, watcher)
            if notify is not None:
                for note in draws.notes:
                    notify(note)
            known = {"prefix": asking.prefix}
            run = await ended(config, draws, planned, folder, found, asking.budget, None, known, notify=notify)
    limit = read_limit(run.report.get("search"))
    assert limit is not None
    return LimitResult(limit=limit, run=run)


def find_limit(**settings: Any) -> LimitResult:
    """`afind_limit` for people: blocks until the search has ended. Works inside a notebook, too.

    `settings` have the names of the command's flags: `model`, `api_url`, `corpus`, `needle_set`, `threshold`, `preset`,
    `confidence`, `min_length`, `max_length`, `depths`, `budget_tokens`, `max_cost`, `seed`, `work_dir`, `resume`, ...
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(afind_limit(**settings))
    with ThreadPoolExecutor(1) as pool:  # a notebook has a running loop of its own
        return pool.submit(lambda: asyncio.run(afind_limit(**settings))).result()


async def _search(
    search: Search, draws: Draws, folder: RunFolder, asking: Asking, watcher: _Watcher
) -> tuple[RunResult, int]:
    """Ask step after step; how the asking ended, and how many trials were planned."""
    state, planned = begin(search), 0
    recorded = iter(list(folder.rows(STEPS, Step)))
    watcher.onlooker.begin(search)
    found = RunResult(asked=0, failed=0, overflow=0, unfinished=0, requests=0, elapsed_s=0.0)
    try:
        while found.stopped is None:
            step = next(recorded, None)
            if step is None:
                following = next_step(search, state)
                if not isinstance(following, Step):
                    break
                step = following
                folder.append_row(STEPS, step)
            planned += len(step.asks)
            watcher.onlooker.looking(step)
            places = {(ask.subset, ask.context_length, ask.depth_percent, ask.number) for ask in step.asks}
            found = await asking.ask(draws.among(places), total=planned)
            if all(ask.number in watcher.answers for ask in step.asks):
                answers = [watcher.answers[ask.number] for ask in step.asks]
                state = state.after(search, step, answers)
                watcher.onlooker.learned(step, answers, search, state)
    finally:
        watcher.onlooker.end()
    return found, planned


def _with_search(settings: RunSettings, search: Search) -> RunSettings:
    """The settings of the run with what the search was given beside those that the user gave."""
    given = settings.identity["search"]
    assert isinstance(given, dict)
    more = {"subsets": list(search.subsets), "at_once": search.at_once, "answer_tokens": search.answer_tokens}
    return replace(settings, identity={**settings.identity, "search": {**given, **more}})


def _search_before(settings: RunSettings) -> Search:
    if (found := search_of(settings)) is None:
        raise UsageError("This run was no search for a limit. Go on with it by: needlepoint eval --resume RUN")
    return found


def _at_once(config: LimitConfig, ready: Prepared) -> int:
    """Trials of one step: as many as are asked at once, for each that waits for no answer is chosen less wisely.

    A local engine answers one after the other, so there is nothing to win by more than one.
    """
    if ready.model.wave > 1:
        return 1
    places = config.runner().concurrency
    return AT_ONCE if places == "auto" else min(AT_ONCE, places)


@dataclass(slots=True)
class _Watcher:
    """Gathers the answers of trials, by number."""

    onlooker: Onlooker
    answers: dict[int, Answer] = field(default_factory=dict)

    def begin(self, cells: list[Cell]) -> None: ...
    def started(self, trial: Trial) -> None: ...
    def note(self, text: str) -> None: ...
    def end(self) -> None: ...

    def restored(self, trial: Trial, reply: Reply, score: Score) -> None:
        self.answers[trial.replicate] = answer_of(trial, reply, score)

    def finished(self, trial: Trial, reply: Reply, score: Score) -> None:
        self.answers[trial.replicate] = answer_of(trial, reply, score)

    def state(self, state: RunnerState, cost: float | None) -> None:
        self.onlooker.state(state)


class _Nobody:
    """An onlooker who doesn't look."""

    def begin(self, search: Search) -> None: ...
    def looking(self, step: Step) -> None: ...
    def learned(self, step: Step, answers: Sequence[Answer], search: Search, state: State) -> None: ...
    def state(self, state: RunnerState) -> None: ...
    def end(self) -> None: ...
