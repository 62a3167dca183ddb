"""A whole run: connect → plan → ask → score → learn, into a run folder. `needlepoint eval` and `run_task` are this."""

from __future__ import annotations

import asyncio
import contextlib
import platform
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__
from .ask.batch import custom_id, read_batch_results
from .ask.budget import HOSTED_SPEED, LOCAL_SPEEDS, Budget, Estimate, estimate
from .ask.interrupts import install_interrupts
from .ask.models import cache_by_name, is_local
from .ask.runner import RunnerState, RunResult
from .ask.settings import RunSettings, refuse_imported
from .ask.store import RunFolder, settings_of
from .asking import Asking, Watcher, trial_for
from .config import TaskConfig
from .errors import NeedlepointError
from .fields import user_path
from .jury import SeatedJury, seated
from .learn.effective import EffectiveLength
from .learn.intervals import Interval
from .learn.results import (
    PositionResult,
    RowResult,
    SubsetResult,
    effective_result,
    position_result,
    row_result,
    subset_result,
)
from .plan.task import Plan
from .prepare import Prepared, Prompts, key_of, limit_of, prepared, unasked, with_model
from .reporting import formats_here
from .score import rules
from .score.judge import Judged
from .scoring import Row, score_by_rules, scored, write_report
from .text.cache import Notify, Progress
from .turns import Turns, prefix_facts
from .types import Cell, Endpoint, Reply, Sampling, Score, Trial

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What a run found. `report` is what `report.json` holds; `stopped` says why not everything was asked."""

    folder: Path
    report: Mapping[str, Any] = field(repr=False)
    asked: int
    stopped: str | None = None
    stop_kind: str | None = None
    judged: Judged | None = None
    """How the judging went, where answers were sent to judges now."""
    files: tuple[Path, ...] = ()
    """What was made of the run: its page, its pictures, its tables."""

    @property
    def score(self) -> float | None:
        """Accuracy over valid trials; None where there is none."""
        value: float | None = self.report["overall"]["score"]
        return value

    @property
    def coverage(self) -> float | None:
        """The share of trials that are valid measurements."""
        value: float | None = self.report["overall"]["coverage"]
        return value

    @property
    def interval(self) -> Interval | None:
        """That of the score; `overall.interval_over` says what it speaks about."""
        return self.overall.interval

    @property
    def overall(self) -> RowResult:
        return row_result(self.report["overall"])

    @property
    def subsets(self) -> dict[str, SubsetResult]:
        """Each text's numbers by length, depth and cell, with its effective length and position test."""
        found = (subset_result(subset) for subset in self.report["subsets"])
        return {subset.name: subset for subset in found}

    @property
    def effective_length(self) -> EffectiveLength | None:
        """How far the model can be trusted with its context: over the mean of depths, and over the worst."""
        return effective_result(self.report.get("effective_length"))

    @property
    def position(self) -> PositionResult | None:
        """Whether the middle of a context is read worse than its edges."""
        return position_result(self.report.get("position"))

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be known to read the intervals."""
        return tuple(self.report.get("notes") or ())

    @property
    def outcomes(self) -> dict[str, int]:
        return dict(self.report["outcomes"])

    def to_polars(self) -> polars.DataFrame:
        """The trials as a table with one row each; needs `pip install 'needlepoint[polars]'`."""
        from .frames import polars_frame

        return polars_frame(self._table())

    def to_pandas(self) -> pandas.DataFrame:
        """The trials as a table with one row each; needs `pip install 'needlepoint[pandas]'`."""
        from .frames import pandas_frame

        return pandas_frame(self._table())

    def _table(self) -> Iterator[dict[str, Any]]:
        from .frames import table_of

        with RunFolder.open(self.folder, for_writing=False) as run:
            yield from table_of([run])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from .report import look_of
        from .show.notebook import notebook_html

        look = None
        with contextlib.suppress(NeedlepointError):  # the folder may have gone since
            look = look_of(settings_of(self.folder).free)
        return notebook_html(self.report, str(self.folder), look)

    def trials(self) -> Iterator[Row]:
        """Every question with its reply and what that is worth."""
        with RunFolder.open(self.folder, for_writing=False) as run:
            yield from scored(run)


async def arun_task(
    task_cfg: TaskConfig | Mapping[str, Any],
    *,
    watcher: Watcher | None = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
    interrupts: bool = False,
) -> TaskResult:
    """Ask a model everything that `task_cfg` says, keep it in a run folder, and sum it up.

    With `interrupts`, Ctrl-C once finishes what is in flight and a second one stops at once; both keep what was found.
    """
    config = task_cfg if isinstance(task_cfg, TaskConfig) else TaskConfig.of(task_cfg)
    if config.batch_results is None:
        config = await with_model(config)
    config.check()
    if "parquet" in config.formats:
        formats_here(config.formats)
    key = key_of(config)
    jury = config.judges(key)
    secrets = [*([key] if key else []), *(jury.secrets if jury is not None else [])]
    if config.use_cache is not None:
        refuse_imported(settings_of(user_path(config.use_cache)))
    watcher = watcher or _Nobody()
    async with seated(jury, notify=notify, progress=progress, interrupts=interrupts) as judges:
        if config.batch_results is not None:
            return await _read_batch(config, watcher, secrets, judges, notify=notify, progress=progress)
        async with prepared(config, notify=notify, progress=progress) as ready:
            settings = run_settings(config, ready.prompts, ready.planned, ready.endpoint, ready.sampling)
            with opened_folder(config, settings, secrets) as folder:
                return await _run(config, ready, folder, watcher, judges, interrupts=interrupts, notify=notify)


def run_task(task_cfg: TaskConfig | Mapping[str, Any], **options: Any) -> TaskResult:
    """`arun_task` for people: blocks until the run has ended. Works inside a notebook, too."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(arun_task(task_cfg, **options))
    with ThreadPoolExecutor(1) as pool:  # a notebook has a running loop of its own
        return pool.submit(lambda: asyncio.run(arun_task(task_cfg, **options))).result()


async def forecast(config: TaskConfig, *, notify: Notify | None = None, progress: Progress | None = None) -> Forecast:
    """What a run would take. Asks nobody and needs no key: lengths rest on what is known without a server."""
    config.check()
    prices, settings, sampling = config.token_prices(), config.runner(), config.sampling()
    local = config.api_url is None and is_local(config.model_name)
    limit = limit_of(config)
    exact = config.prompts is None and config.resolved_length_mode == "exact"
    prompts, _ = unasked(config, counted=not exact, notify=notify, progress=progress)
    cache = cache_by_name(config.model_name, config.api_url, config.cache_hints)
    turns = Turns.of(config, prompts, cache)
    counts = [prompt.n_tokens for prompt, _ in turns]
    asked = [n for n in counts if n is None or limit is None or n + sampling.max_tokens <= limit]
    prefix = prefix_facts(turns.forecast)
    found = estimate(
        asked,
        computed_tokens=prefix["planned_tokens"] if local and prefix and len(asked) == len(counts) else None,
        max_tokens=sampling.max_tokens,
        prices=prices,
        speed=LOCAL_SPEEDS.get(config.model_name) if local else HOSTED_SPEED,
        concurrency=1 if local else settings.concurrency if isinstance(settings.concurrency, int) else 8,
        rpm=settings.rpm,
        tpm=settings.tpm,
    )
    return Forecast(
        cells=len(set(prompts.places())),
        estimate=found,
        model=config.model_name,
        local=local,
        limit_tokens=limit,
        too_long=len(counts) - len(asked),
        prefix=prefix,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The answer to `--dry-run`. `too_long` prompts don't fit into the model's `limit_tokens`: they are not sent."""

    cells: int
    estimate: Estimate
    model: str
    local: bool = False
    limit_tokens: int | None = None
    too_long: int = 0
    prefix: Mapping[str, int] | None = None
    """Prompt tokens to be computed: `naive_tokens`, `planned_tokens` in the run's order, `bound_tokens` at best."""


# --- one run ----------------------------------------------------------------------------------------------------------


def run_settings(
    config: TaskConfig, prompts: Prompts, planned: Endpoint, endpoint: Endpoint, sampling: Sampling
) -> RunSettings:
    corpora: dict[str, object] = {}
    if isinstance(prompts, Plan):
        corpora = {
            corpus.subset: {"name": corpus.name, "sha256": corpus.sha256, "licence": corpus.licence}
            for corpus in prompts.corpora
        }
    return RunSettings(
        identity=config.identity(),
        max_tokens=sampling.max_tokens,
        limit_tokens=endpoint.limit_tokens,
        free=config.free(),
        versions=versions(),
        endpoint={**endpoint.facts, "proven": endpoint.proven},
        corpora=corpora,
        tokenizer={
            "name": planned.tokenizer.name,
            "fingerprint": planned.tokenizer.fingerprint,
            "chat_template": planned.template_name,
        },
    )


@contextlib.contextmanager
def opened_folder(config: TaskConfig, settings: RunSettings, secrets: list[str]) -> Iterator[RunFolder]:
    if config.use_cache is not None:
        with RunFolder.open(user_path(config.use_cache), for_writing=True, secrets=secrets) as folder:
            folder.resume(settings)
            yield folder
    else:
        work_dir = user_path(config.work_dir)
        with RunFolder.create(work_dir, model=config.model_name, settings=settings, secrets=secrets) as folder:
            yield folder


async def _run(
    config: TaskConfig,
    ready: Prepared,
    folder: RunFolder,
    watcher: Watcher,
    judges: SeatedJury | None,
    *,
    interrupts: bool,
    notify: Notify | None,
) -> TaskResult:
    asking = Asking(config, ready, folder, watcher)
    places = list(ready.prompts.places())
    watcher.begin(places)
    try:
        with install_interrupts(asking.runner) if interrupts else contextlib.nullcontext():
            found = await asking.ask(ready.prompts, total=len(places))
        for note in ready.prompts.notes:
            watcher.note(note)
        checked = await asking.check() if found.stop_kind != "user" else None
    finally:
        watcher.end()
    known = {"prefix": asking.prefix, "self_check": checked}
    return await ended(config, ready.prompts, len(places), folder, found, asking.budget, judges, known, notify=notify)


async def _read_batch(
    config: TaskConfig,
    watcher: Watcher,
    secrets: list[str],
    judges: SeatedJury | None,
    *,
    notify: Notify | None,
    progress: Progress | None,
) -> TaskResult:
    """The run that a provider's batch was: its answers taken from a file, nobody asked."""
    prompts, planned = unasked(config, notify=notify, progress=progress)
    sampling = config.sampling()
    settings = run_settings(config, prompts, planned, planned, sampling)
    with opened_folder(config, settings, secrets) as folder:
        trials: dict[str, Trial] = {}
        for number, prompt in enumerate(prompts):
            trials[custom_id(prompt, number)] = trial_for(config, prompt, planned, sampling)
        answers = read_batch_results(user_path(config.batch_results or ""), trials)
        asked = 0
        for name, reply in answers:
            folder.append(trials[name], reply)
            asked += 1
        for note in answers.notes():
            watcher.note(note)
        found = RunResult(asked=asked, failed=0, overflow=0, unfinished=0, requests=0, elapsed_s=0.0)
        return await ended(config, prompts, len(trials), folder, found, None, judges, notify=notify)


async def ended(
    config: TaskConfig,
    prompts: Prompts,
    planned: int,
    folder: RunFolder,
    found: RunResult,
    budget: Budget | None,
    judges: SeatedJury | None,
    known: Mapping[str, Any] | None = None,
    *,
    notify: Notify | None,
) -> TaskResult:
    """Score what was answered, sum it up, and draw it. Who stopped the run doesn't want to wait for judges."""
    scorer, judged = rules.SCORER, None
    if judges is None or found.stop_kind == "user" or config.score_by == "both":
        score_by_rules(folder)
    if judges is not None and found.stop_kind != "user":
        scorer, judged = await judges.judge(folder)
    facts = {
        "model": config.model_name,
        "length_mode": config.resolved_length_mode if folder.n_replies == 0 else None,
        "planned": planned,
        "stopped": found.stopped,
        "cost": None if budget is None else budget.cost,
        **(known or {}),
    }
    from .report import draw

    report = write_report(folder, scorer, facts, bar=config.bar())
    return TaskResult(
        folder=folder.path,
        report=report,
        files=draw(folder, report, config.formats, prompts=prompts, notify=notify),
        asked=found.asked,
        stopped=found.stopped,
        stop_kind=found.stop_kind,
        judged=judged,
    )


def versions() -> dict[str, str]:
    """What made the run, for the record."""
    found = {"needlepoint": __version__, "python": platform.python_version()}
    for package in ("splintr-rs", "tokenizers", "xllamacpp", "httpx2"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


class _Nobody:
    """A watcher who doesn't look."""

    def begin(self, cells: list[Cell]) -> None: ...
    def restored(self, trial: Trial, reply: Reply, score: Score) -> None: ...
    def started(self, trial: Trial) -> None: ...
    def finished(self, trial: Trial, reply: Reply, score: Score) -> None: ...
    def state(self, state: RunnerState, cost: float | None) -> None: ...
    def note(self, text: str) -> None: ...
    def end(self) -> None: ...
