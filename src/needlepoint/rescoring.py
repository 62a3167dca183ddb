"""A finished run scored again, with today's rules or with judges: each scoring stays beside the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ValidationError

from .ask.policy import RunnerSettings
from .ask.settings import RunSettings
from .ask.store import RunFolder, settings_of
from .config import mistake
from .errors import UsageError
from .evaluation import TaskResult
from .fields import Number, Text, places, user_path, whole
from .judging import JudgeFields, Jury, prepare_judge
from .jury import seated
from .report import draw
from .score.imported import IMPORTED
from .scoring import RULES, chosen_scorer, score_by_rules, scored, write_report
from .text.cache import Notify, Progress
from .types import Reply, Score, Trial


class ScoreConfig(JudgeFields):
    """How to score a run again. The judge's settings are those of a run; the others say how fast it is asked."""

    eval_batch_size: Annotated[int, whole(1, 4_096)] | None = None
    concurrency: Annotated[int | Literal["auto"], BeforeValidator(places)] | None = None
    timeout: Number | None = None
    max_attempts: Annotated[int, whole(1, 100)] | None = None
    rpm: Number | None = None
    tpm: Number | None = None
    prices: Text | None = None

    def __init__(self, **values: Any) -> None:
        """The settings; those that are None count as not given. Raises UsageError."""
        given = {name: value for name, value in values.items() if value is not None}
        prepare_judge(given)
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise UsageError(mistake(error, type(self))) from None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        return cls(**values)

    def judges(self, *, seed: int) -> Jury | None:
        """Who judges; None for the rules alone."""
        wanted = self.concurrency if self.concurrency is not None else self.eval_batch_size
        runner = RunnerSettings(
            concurrency=8 if wanted is None else wanted,
            rpm=self.rpm,
            tpm=self.tpm,
            timeout_s=self.timeout,
            max_attempts=5 if self.max_attempts is None else self.max_attempts,
        )
        return self.jury(runner, seed=seed, api_url=None, api_key=None, prices=self.prices)


async def ascore_run(
    run: str | Path,
    config: ScoreConfig | Mapping[str, Any] | None = None,
    *,
    notify: Notify | None = None,
    progress: Progress | None = None,
    interrupts: bool = False,
) -> TaskResult:
    """Score the run in folder `run` again, and make its report anew on the new numbers.

    Refused where another process writes into the folder, and where the answers themselves are not known.
    """
    config = config if isinstance(config, ScoreConfig) else ScoreConfig.of(config or {})
    path = user_path(str(run))
    settings = settings_of(path)
    _check_answers(settings, path)
    seed = settings.identity.get("seed", 0)
    jury = config.judges(seed=seed if isinstance(seed, int) else 0)
    secrets = [] if jury is None else jury.secrets
    async with seated(jury, notify=notify, progress=progress, interrupts=interrupts) as judges:
        with RunFolder.open(path, for_writing=True, secrets=secrets) as folder:
            scorer, judged = RULES, None
            rows = score_by_rules(folder) if config.score_by != "judge" else None
            if judges is not None:
                scorer, judged = await judges.judge(folder)
            report = write_report(folder, scorer, rows=rows if scorer == RULES else None)
            files = draw(folder, report, notify=notify)
            return TaskResult(folder=folder.path, report=report, asked=0, judged=judged, files=files)


def score_run(run: str | Path, *, notify: Notify | None = None, **settings: Any) -> TaskResult:
    """Score a finished run again, by `score="rules"`, `"judge"` or `"both"`. Blocks; works inside a notebook, too.

    `settings` have the names of the command's flags: `judge`, `judge_model`, `judge_api_url`, `judge_api_key`,
    `judge_rubric`, `judge_repeats` and the others of `ScoreConfig`.
    """
    config = ScoreConfig.of(settings)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(ascore_run(run, config, notify=notify))
    with ThreadPoolExecutor(1) as pool:  # a notebook has a running loop of its own
        return pool.submit(lambda: asyncio.run(ascore_run(run, config, notify=notify))).result()


def _check_answers(settings: RunSettings, path: Path) -> None:
    imported = settings.imported
    if imported and not imported.get("has_answers"):
        raise UsageError(
            f"{path} was imported from {imported.get('tool', 'another tool')} without its answers, so there is "
            "nothing to score. Its imported scores stand as they are."
        )


def score_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """One row for each trial of a run, on the scorer that its numbers rest on; plain values, None where not known."""
    with RunFolder.open(user_path(str(path)), for_writing=False) as folder:
        imported: dict[str, Score] = {}
        if IMPORTED in folder.scorers():
            imported = {trial.id: score for trial, _, score in scored(folder, IMPORTED)}
        for trial, reply, score in scored(folder, chosen_scorer(folder)):
            yield _row(trial, reply, score, imported.get(trial.id))


def _row(trial: Trial, reply: Reply, score: Score, imported: Score | None) -> dict[str, Any]:
    theirs = None if imported is None else imported.score if imported.raw is None else imported.raw
    return {
        "id": trial.id,
        "dataset": trial.dataset,
        "subset": trial.subset,
        "context_length": trial.context_length,
        "depth_percent": trial.depth_percent,
        "achieved_length": trial.achieved_length,
        "achieved_depth_percent": trial.achieved_depth_percent,
        "replicate": trial.replicate,
        "repeat": trial.repeat,
        "scorer": score.scorer,
        "score": score.score,
        "outcome": score.outcome,
        "reason": score.reason,
        "span": None if score.span is None else list(score.span),
        "raw": score.raw,
        "scale": None if score.scale is None else list(score.scale),
        "imported_score": theirs,
        "question": trial.question,
        "answers": list(trial.answers),
        "answer": reply.text,
        "finish": reply.finish,
        "prompt_tokens": reply.usage.prompt,
        "completion_tokens": reply.usage.completion,
    }


def rows_text(path: str | Path) -> Iterator[str]:
    """The same as lines of JSON."""
    for row in score_rows(path):
        yield json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
