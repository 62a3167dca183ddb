"""A model being asked in a run: what is settled isn't asked again, and every reply goes into the run folder at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from .ask.budget import UNPROVEN, Budget
from .ask.files import FilePrompt
from .ask.progress import RunnerState
from .ask.runner import Job, Runner, RunResult
from .ask.store import RunFolder
from .ask.trials import trial_of
from .config import DATASETS, TaskConfig
from .plan.alternatives import alternatives_of
from .plan.order import Forecast
from .plan.prompt import Prompt
from .prepare import Prepared
from .score import rules
from .selfcheck import SelfCheck
from .turns import Turns, prefix_facts
from .types import Cell, Endpoint, Reply, Sampling, Score, Trial


class Watcher(Protocol):
    """Someone who looks on while a model is asked: the live grid, or nobody."""

    def begin(self, cells: list[Cell]) -> None: ...
    def restored(self, trial: Trial, reply: Reply, score: Score) -> None: ...
    def started(self, trial: Trial) -> None: ...
    def finished(self, trial: Trial, reply: Reply, score: Score) -> None: ...
    def state(self, state: RunnerState, cost: float | None) -> None: ...
    def note(self, text: str) -> None: ...
    def end(self) -> None: ...


class Asking:
    """Prompts on their way to one model. `ask` may be called again, until it says that the run was stopped."""

    def __init__(self, config: TaskConfig, ready: Prepared, folder: RunFolder, watcher: Watcher) -> None:
        self._config, self._ready, self._folder, self._watcher = config, ready, folder, watcher
        self.budget = budget = Budget(
            prices=config.token_prices(),
            max_cost=config.max_cost,
            max_tokens=config.max_tokens_total,
            doubt=1.0 if ready.planned.proven else UNPROVEN,
            **_spent(folder, config),
        )
        self.runner = Runner(
            ready.model,
            ready.sampling,
            config.runner(),
            on_reply=self._keep,
            budget=budget,
            limit_tokens=ready.endpoint.limit_tokens if ready.planned.proven else None,
            on_state=lambda state: watcher.state(state, budget.cost),
        )
        self._check = None if config.self_check is None else SelfCheck(config.self_check, config.seed)
        self._forecasts: list[Forecast | None] = []

    async def ask(self, prompts: Iterable[Prompt | FilePrompt], *, total: int) -> RunResult:
        """Ask those of these prompts that have no answer yet, in the order that the model's cache likes."""
        turns = Turns.of(
            self._config,
            prompts,
            self._ready.endpoint.cache,
            self._ready.endpoint,
            is_open=self._is_open if self._folder.n_replies else None,
            on_prompt=None if self._check is None else self._check.sees,
        )
        found = await self.runner.run(self._jobs(turns), total=total)
        self._forecasts.append(turns.forecast if found.stopped is None else None)
        return found

    async def check(self) -> dict[str, Any] | None:
        """What asking some prompts again without reuse has shown, where that is wanted."""
        if self._check is None:
            return None
        return await self._check.ask(self._ready.model, self._ready.sampling, self._answer)

    @property
    def prefix(self) -> dict[str, int] | None:
        """What was planned to be computed; None where not all is known, not all was asked, or not in one go."""
        only = self._forecasts[0] if len(self._forecasts) == 1 else None
        return prefix_facts(only)

    def _jobs(self, turns: Turns) -> Iterator[Job]:
        for prompt, wave in turns:
            trial = self._trial(prompt)
            self._watcher.started(trial)
            if self._config.metric == "logprob" and isinstance(prompt, Prompt):
                prompt = replace(prompt, alternatives=alternatives_of(prompt))
            yield Job(trial, prompt, wave)

    def _is_open(self, prompt: Prompt | FilePrompt) -> bool:
        """Whether a prompt has no answer yet that stays."""
        trial = self._trial(prompt)
        entry = self._folder.latest(trial)
        if entry is None:
            return True
        score = rules.score(entry.trial, entry.reply)
        if not self._folder.is_settled(trial, score.outcome):
            return True
        self._watcher.restored(entry.trial, entry.reply, score)
        return False

    def _answer(self, prompt: Prompt | FilePrompt) -> tuple[Trial, Reply] | None:
        entry = self._folder.latest(self._trial(prompt))
        return None if entry is None else (entry.trial, entry.reply)

    def _trial(self, prompt: Prompt | FilePrompt) -> Trial:
        return trial_for(self._config, prompt, self._ready.planned, self._ready.sampling)

    def _keep(self, job: Job, reply: Reply) -> None:
        self._folder.append(job.trial, reply)
        self._watcher.finished(job.trial, reply, rules.score(job.trial, reply))


def trial_for(config: TaskConfig, prompt: Prompt | FilePrompt, planned: Endpoint, sampling: Sampling) -> Trial:
    """The recipe of a prompt in the run of these settings."""
    return trial_of(prompt, dataset=DATASETS[0], endpoint=planned, model=config.model_name, sampling=sampling)


def _spent(folder: RunFolder, config: TaskConfig) -> dict[str, Any]:
    """What a run that goes on has used so far."""
    if config.use_cache is None:
        return {}
    prices = config.token_prices()
    tokens, cost = 0, 0.0
    for reply in folder.all_replies():
        tokens += (reply.usage.prompt or 0) + (reply.usage.completion or 0)
        cost += (prices.cost(reply.usage) or 0.0) if prices is not None else 0.0
    return {"tokens": tokens, "cost": cost}
