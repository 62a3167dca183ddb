"""Published results as run folders: `needlepoint import` and `import_results`.

Everything is read and checked before the first folder is made. Results of several models, tools or named runs become a
run folder each. Nothing that wasn't published is made up: what isn't known stays None.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from .ask.settings import RunSettings
from .ask.store import RunFolder
from .ask.trials import trial_id
from .config import DATASETS
from .errors import InputError, UsageError
from .evaluation import TaskResult, versions
from .fields import user_path
from .interop.opened import Opened
from .interop.recognised import read_results
from .interop.row import DepthUnit, Row
from .interop.settled import settle
from .plan.grid import format_length
from .score.imported import IMPORTED, Scale, imported_score
from .scoring import RULES, score_by_rules, write_report
from .text.cache import Notify
from .types import Reply, Times, Trial

WORK_DIR = "outputs"
_NO_MODEL = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The results that become one run folder."""

    tool: str
    model: str
    run: str | None
    rows: list[Row]


def import_results(
    *paths: str | os.PathLike[str],
    work_dir: str | os.PathLike[str] = WORK_DIR,
    model: str | None = None,
    scale: Scale | None = None,
    depth_unit: DepthUnit | None = None,
    notify: Notify | None = None,
) -> list[TaskResult]:
    """Turn published results into run folders below `work_dir`, one for each model, and sum each up.

    `paths` are files and folders of results. `model` names the model where the files don't; `scale` has the ends of
    the scores' scale, and `depth_unit` says what depths are, where the results don't tell. `notify` takes one-line
    messages. Raises InputError with file and line for whatever cannot be read; then no folder was made.
    """
    if not paths:
        raise UsageError("There is nothing to import. Give files or folders of results.")
    _check_settings(model, scale, depth_unit)
    say = notify or (lambda text: None)
    read: list[Opened] = []
    notes: list[str] = []
    given = [(user_path(os.fspath(path)), os.fspath(path)) for path in paths]
    rows = list(read_results(given, read, notes))
    if not rows:
        raise InputError(f"{', '.join(name for _, name in given)}: there is no result in it.")
    runs = [
        replace(run, rows=settle(run.rows, scale=scale, depth_unit=depth_unit)) for run in _runs(rows, given, model)
    ]
    for note in notes:
        say(note)
    files = [{"name": file.name, "sha256": file.sha256} for file in read]
    results: list[TaskResult] = []
    try:
        for run in runs:
            results.append(_write(run, user_path(os.fspath(work_dir)), files, say))
    except BaseException:
        for result in results:
            shutil.rmtree(result.folder, ignore_errors=True)
        raise
    return results


def _check_settings(model: str | None, scale: Scale | None, depth_unit: str | None) -> None:
    if model is not None and not model.strip():
        raise UsageError("--model is empty. Give the model's name, or leave it out.")
    if depth_unit is not None and depth_unit not in get_args(DepthUnit):
        raise UsageError(f"--depth-unit must be percent or fraction, not {depth_unit!r}.")
    if scale is not None and not (len(scale) == 2 and -1e9 <= scale[0] < scale[1] <= 1e9):
        raise UsageError(f"--scale must be two numbers, the lower one first, such as 1:10; not {scale!r}.")


def _runs(rows: Iterable[Row], given: Sequence[tuple[Path, str]], model: str | None) -> list[_Run]:
    """The rows of each run, in the order in which runs appear. A name that the rows lack is the user's, or a file's."""
    fallback = model or (given[0][0].stem if len(given) == 1 and given[0][0].is_file() else _NO_MODEL)
    found: dict[tuple[str, str, str | None], list[Row]] = {}
    for row in rows:
        found.setdefault((row.tool, row.model or fallback, row.run), []).append(row)
    return [_Run(tool=tool, model=name, run=run, rows=some) for (tool, name, run), some in found.items()]


def _write(run: _Run, work_dir: Path, files: list[dict[str, str]], say: Notify) -> TaskResult:
    rows, doubled = _distinct(run.rows)
    has_scores = any(row.raw is not None for row in rows)
    settings = RunSettings(
        identity={"model": run.model, "datasets": [DATASETS[0]]},
        versions=versions(),
        imported=_provenance(run, rows, files),
    )
    folder = RunFolder.create(work_dir, model=run.model, settings=settings)
    try:
        with folder:
            for trial, row in _trials(run.model, rows):
                reply = _reply(row)
                folder.append(trial, reply)
                if has_scores:
                    score = imported_score(trial, reply, raw=row.raw, scale=row.scale, tool=row.tool, why=row.why)
                    folder.append_score(trial, reply, score)
            costs = [row.cost for row in rows if row.cost is not None]
            facts = {"model": run.model, "planned": len(rows), "cost": round(sum(costs), 9) if costs else None}
            if not has_scores:
                score_by_rules(folder)
            report = write_report(folder, IMPORTED if has_scores else RULES, facts)
    except BaseException:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise
    for note in _notes(run, rows, doubled, report):
        say(note)
    return TaskResult(folder=folder.path, report=report, asked=0)


def _provenance(run: _Run, rows: Sequence[Row], files: list[dict[str, str]]) -> dict[str, Any]:
    """What run.json says of where the results are from; what was filled in is named."""
    scales = sorted({row.scale for row in rows if row.scale is not None})
    times = sorted(row.at for row in rows if row.at is not None)
    return {
        "tool": run.tool,
        "files": files,
        "has_answers": any(row.text is not None for row in rows),
        "scales": [list(scale) for scale in scales],
        "assumed": sorted({name for row in rows for name in row.assumed}),
        **({"run": run.run} if run.run is not None else {}),
        **({"asked": [times[0], times[-1]]} if times else {}),
    }


def _distinct(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """The rows without those that are another one again: the same attempt (by version, seed or time) with the same
    answer, score and duration. Rows that nothing tells apart are attempts of their own."""
    seen: set[bytes] = set()
    found = []
    for row in rows:
        if row.again is not None or row.at is not None:
            place = (row.subset, row.context_length, row.depth, row.again, row.at)
            parts = (*place, row.raw, row.text, row.error, row.total_s)
            key = hashlib.sha256(repr(parts).encode(errors="replace")).digest()
            if key in seen:
                continue
            seen.add(key)
        found.append(row)
    return found, len(rows) - len(found)


def _trials(model: str, rows: Iterable[Row]) -> Iterable[tuple[Trial, Row]]:
    """A trial for each row. Several rows of one cell are replicates, or, where the prompt is known to be the very same
    one, its repeats."""
    replicates: Counter[tuple[str, int, float]] = Counter()
    prompts: dict[tuple[object, ...], list[int]] = {}
    for row in rows:
        place = (row.subset, row.context_length, row.depth)
        known = prompts.get((*place, row.prompt_sha256)) if row.prompt_sha256 is not None else None
        if known is not None:
            known[1] += 1
            yield _trial(model, row, known[0], known[1]), row
            continue
        replicate = replicates[place]
        replicates[place] += 1
        if row.prompt_sha256 is not None:
            prompts[(*place, row.prompt_sha256)] = [replicate, 0]
        yield _trial(model, row, replicate, 0), row


def _trial(model: str, row: Row, replicate: int, repeat: int) -> Trial:
    trial = Trial(
        id="",
        dataset=DATASETS[0],
        subset=row.subset,
        layout="classic",
        length_mode=row.length_mode,
        replicate=replicate,
        repeat=repeat,
        context_length=row.context_length,
        depth_percent=row.depth,
        achieved_length=None,
        achieved_depth_percent=row.achieved_depth_percent,
        boundary=None,
        needles=row.needles,
        placements=(),
        question=row.question,
        answers=row.answers,
        corpus=row.corpus,
        corpus_sha256=None,
        tokenizer=None,
        tokenizer_fingerprint=None,
        prompt_sha256=row.prompt_sha256,
        sent_tokens=None,
        length_proven=False,
    )
    return replace(trial, id=trial_id(trial, model=model, sampling=None))


def _reply(row: Row) -> Reply:
    known = row.text is not None or row.error is not None
    return Reply(
        text="" if row.error is not None else row.text or "",
        reasoning=row.reasoning,
        finish=row.finish,
        usage=row.usage,
        times=Times(total=row.total_s),
        attempts=1 if known else 0,
        error=row.error,
    )


def _notes(run: _Run, rows: Sequence[Row], doubled: int, report: dict[str, Any]) -> Iterable[str]:
    """What people should know of this import."""
    lengths = sorted({row.context_length for row in rows})
    span = format_length(lengths[0]) + (f" to {format_length(lengths[-1])}" if len(lengths) > 1 else "")
    cells = len({(row.subset, row.context_length, row.depth) for row in rows})
    yield f"{run.model}: {len(rows):,} results of {run.tool} in {cells:,} cells, lengths {span}."
    if doubled:
        yield f"{doubled:,} results were there twice, and count once."
    if scales := sorted({row.scale for row in rows if row.scale is not None and row.raw is not None}):
        ends = ", ".join(f"{low:g} to {high:g}" for low, high in scales)
        if scales != [(0.0, 1.0)]:
            yield f"Scores are on a scale from {ends}; its ends are 0 and 1 here, and the raw scores are kept."
    missing = sum(row.raw is None and row.error is None for row in rows)
    if report["scorer"] == RULES:
        yield "No answer has a score: needlepoint's own rules have scored them."
    elif missing:
        yield f"{missing:,} results have no score: they are unjudged, not 0."
    overflow = sum(row.error is not None and row.error.kind == "overflow" and row.raw is not None for row in rows)
    if overflow:
        yield (
            f"{overflow:,} answers are a server's complaint that the prompt is too long. {run.tool} scored them; here "
            "they are overflow, and not in the score."
        )
    if assumed := sorted({name for row in rows for name in row.assumed}):
        what, verb = (assumed[0], "is") if len(assumed) == 1 else (" and the ".join(assumed), "are")
        yield f"The {what} {verb} not in the results: taken to be the benchmark's own."
