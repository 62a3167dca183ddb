"""`needlepoint score RUN`: score a finished run again, show how it did, and write one row a trial."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ..evaluation import TaskResult
from ..files import checked_target, write_text
from ..rescoring import ScoreConfig, ascore_run, rows_text
from ..show.console import downloads, notify
from ..show.table import show_report
from ..sources import settings_from


def score_again(run: str, flags: Mapping[str, Any], *, config_file: str | None, rows: str | None, as_json: bool) -> int:
    """What the command does; returns its exit code."""
    if as_json and rows == "-":
        raise UsageError("--json and --rows - both want standard output. Write one of them to a file.")
    out = None if rows is None or rows == "-" else checked_target(rows, "--rows")
    known = dict.fromkeys([*ScoreConfig.model_fields, "judge_model_args", "judge_strategy"])
    config = ScoreConfig.of(settings_from(flags, known, file=config_file))
    with downloads() as progress:
        result = asyncio.run(ascore_run(run, config, notify=notify, progress=progress, interrupts=True))
    if out is not None:
        write_text(out, rows_text(result.folder))
    if rows == "-":
        for line in rows_text(result.folder):
            sys.stdout.write(line)
    elif as_json:
        print(json.dumps(result.report, ensure_ascii=False, indent=2))
    else:
        show_report(result.report)
    for file in result.files:
        notify(f"Made anew: {file}")
    notify(f"Run folder: {result.folder}")
    return exit_code(result)


def exit_code(result: TaskResult) -> int:
    """3 where judges could not finish or nothing could be measured, 130 where they were stopped, else 0."""
    judged = result.judged
    if judged is not None and judged.stopped is not None:
        notify(f"Judging stopped: {judged.stopped.rstrip('.')}. Go on with: needlepoint score {result.folder}, as now.")
        return 128 + signal.SIGINT if judged.stop_kind == "user" else 3
    if judged is not None and judged.unjudged:
        notify(f"{judged.unjudged:,} answers are unjudged; the same command judges them again.")
    if not result.report["overall"]["valid"]:
        notify("Not one answer could be measured: see the outcomes above for the reason.")
        return 3
    return 0
