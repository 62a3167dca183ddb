"""`needlepoint eval`: ask a model, keep what it says, show how it did."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..ask.progress import RunnerState
from ..config import TaskConfig
from ..evaluation import Forecast, TaskResult, arun_task, forecast
from ..learn.gate import shortfall
from ..show.colours import Scale
from ..show.console import downloads, notify, out_console
from ..show.live import Live
from ..show.table import show_report
from ..sources import settings_from
from ..types import Cell, Reply, Score, Trial
from .score import exit_code

_ALIASES = ("resume", "judge_model_args", "judge_strategy")


def evaluate(flags: Mapping[str, Any], *, config_file: str | None, as_json: bool) -> int:
    """What the command does; returns its exit code."""
    known = dict.fromkeys([*TaskConfig.model_fields, *_ALIASES])
    config = TaskConfig.of(settings_from(flags, known, file=config_file))
    with downloads() as progress:
        if config.dry_run:
            _show_forecast(asyncio.run(forecast(config, notify=notify, progress=progress)), as_json=as_json)
            return 0
        result = asyncio.run(
            arun_task(config, watcher=LiveWatcher(config.palette), notify=notify, progress=progress, interrupts=True)
        )
    if as_json:
        print(json.dumps(result.report, ensure_ascii=False, indent=2))
    else:
        show_report(result.report, numbers=config.arguments.extra_params.show_score, scale=config.palette)
    for file in result.files:
        notify(f"Made: {file}")
    notify(f"Run folder: {result.folder}")
    return _exit_code(result, config.fail_under)


def _exit_code(result: TaskResult, bar: float | None) -> int:
    if result.stopped is not None:
        left = result.report["planned"] - result.report["overall"]["n"]
        notify(f"{result.stopped.rstrip('.')}. {left:,} questions are left; go on with: --resume {result.folder}")
        return 128 + signal.SIGINT if result.stop_kind == "user" else 3
    code = exit_code(result)
    missed = None if code or bar is None else shortfall(result.report, bar)
    if missed is None:
        return code
    notify(f"FAILED --fail-under {bar:g}: {missed.says}.")
    return 1


def _show_forecast(found: Forecast, *, as_json: bool) -> None:
    guess = found.estimate
    if as_json:
        fields = (name for name in guess.__slots__ if name != "speed")
        head = {"model": found.model, "cells": found.cells, "limit_tokens": found.limit_tokens}
        head["prefix"] = found.prefix
        speed = None if guess.speed is None else asdict(guess.speed)
        told = {name: getattr(guess, name) for name in fields}
        print(json.dumps({**head, "too_long": found.too_long, **told, "assumed_speed": speed}))
        return
    rows = [
        ("Model", found.model),
        ("Cells", f"{found.cells:,}, {guess.requests:,} prompts to ask"),
        ("Prompt tokens", "not known before asking" if guess.prompt_tokens is None else f"{guess.prompt_tokens:,}"),
        ("Answer tokens", f"about {guess.completion_tokens_typical:,}, at most {guess.completion_tokens_worst:,}"),
    ]
    if found.too_long and found.limit_tokens is not None:
        rows.insert(2, ("Too long", f"{found.too_long:,} prompts, for the {found.limit_tokens:,} tokens of the model"))
    if found.prefix is not None:
        naive, planned, bound = (found.prefix[f"{name}_tokens"] for name in ("naive", "planned", "bound"))
        rows.append(("Computed", f"{planned:,} of them, {planned / max(1, naive):.0%}; at best {bound:,}"))
    if guess.cost_typical is not None and guess.cost_worst is not None:
        rows.append(("Cost", f"about {guess.cost_typical:,.4g}, at most {guess.cost_worst:,.4g} without retries"))
    elif not found.local:
        rows.append(("Cost", "not known: give --price-in and --price-out, or --prices FILE"))
    if guess.seconds is not None and (pace := guess.speed) is not None:
        assumed = f"assuming {pace.prefill_per_s:,.0f} prompt and {pace.decode_per_s:,.0f} answer tokens a second"
        each = " for each request" if not found.local else ""
        rows.append(("Time", f"about {_duration(guess.seconds)}, {assumed}{each}"))
    width = max(len(name) for name, _ in rows)
    console = out_console()
    for name, value in rows:
        console.print(f"{name:<{width}}  {value}", markup=False)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3600:.1f} h"


class LiveWatcher:
    """The live grid, told what happens."""

    def __init__(self, scale: Scale = "default") -> None:
        self._live: Live | None = None
        self._scale = scale

    def begin(self, cells: list[Cell]) -> None:
        self._live = Live(cells, stream=sys.stderr, scale=self._scale)
        self._live.__enter__()

    def restored(self, trial: Trial, reply: Reply, score: Score) -> None:
        if self._live is not None:
            self._live.restored(trial, score.outcome, score.score)

    def started(self, trial: Trial) -> None:
        if self._live is not None:
            self._live.started(trial)

    def finished(self, trial: Trial, reply: Reply, score: Score) -> None:
        if self._live is not None:
            self._live.finished(trial, score.outcome, score.score, usage=reply.usage)

    def state(self, state: RunnerState, cost: float | None) -> None:
        if self._live is not None:
            self._live.state(
                in_flight=state.in_flight,
                tokens_per_s=state.tokens_per_s,
                eta_s=state.eta_s,
                waiting=state.waiting,
                concurrency=state.concurrency,
                cost=cost,
            )

    def note(self, text: str) -> None:
        if self._live is None:
            notify(text)
        else:
            self._live.note(text)

    def end(self) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)
            self._live = None
