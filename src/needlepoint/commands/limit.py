"""`needlepoint limit`: how much context can be used? Shows where it looks, ends with an answer and a certificate."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from ..ask.progress import RunnerState
from ..learn.adaptive import estimate
from ..learn.search import Answer, Search, State, Step
from ..limit import LimitResult, afind_limit
from ..limit_settings import LimitConfig, most_tokens
from ..plan.grid import format_length
from ..prepare import limit_of
from ..show.console import downloads, notify
from ..show.limit import estimate_words, opening, show_limit, step_line
from ..sources import settings_from


def find(flags: Mapping[str, Any], *, config_file: str | None, as_json: bool) -> int:
    """What the command does; returns its exit code."""
    known = dict.fromkeys([*LimitConfig.model_fields, "resume"])
    config = LimitConfig.of(settings_from(flags, known, file=config_file))
    if config.dry_run:
        _show_forecast(config, as_json=as_json)
        return 0
    with downloads() as progress:
        result = asyncio.run(
            afind_limit(config=config, onlooker=Lines(), notify=notify, progress=progress, interrupts=True)
        )
    if as_json:
        head = {"model": result.report["model"], "folder": str(result.folder), "stopped": result.stopped}
        print(json.dumps(head | {"search": result.report["search"]}, ensure_ascii=False, indent=2))
    else:
        show_limit(result.limit)
    for file in result.run.files:
        notify(f"Made: {file}")
    notify(f"Run folder: {result.folder}")
    return _exit_code(result)


def _exit_code(result: LimitResult) -> int:
    run, end = result.run, result.limit.end
    if run.stopped is not None:
        notify(f"{run.stopped.rstrip('.')}. Go on with: --resume {result.folder}")
        return 128 + signal.SIGINT if run.stop_kind == "user" else 3
    if end is not None and end.kind == "budget":
        notify(f"--budget-tokens: {end.why}. Go on with a larger one and --resume {result.folder}")
        return 3
    if not run.coverage:
        notify("Not one answer could be measured: see the outcomes in the run folder for the reason.")
        return 3
    return 0 if end is not None and end.kind == "done" else 3


def _show_forecast(config: LimitConfig, *, as_json: bool) -> None:
    config.check()
    config = config.searching(limit_of(config))
    search = config.search(["text"])
    locating, certifying = most_tokens(search)
    prices = config.token_prices()
    cost = None if prices is None else prices.worst(locating + certifying, 0)
    if as_json:
        found = {"lengths": search.lengths, "locating_tokens": locating, "certifying_tokens": certifying, "cost": cost}
        print(json.dumps({"model": config.model_name} | found))
        return
    first, last = format_length(search.lengths[0]), format_length(search.lengths[-1])
    rows = [
        ("Model", config.model_name),
        ("Lengths", f"{len(search.lengths)} from {first} to {last}"),
        ("Locating", f"at most about {locating:,} uncached tokens"),
        ("Certifying", f"at most about {certifying:,} for each length tried, less for shorter ones; three at most"),
    ]
    if cost is not None:
        rows.append(("Cost", f"about {cost:,.4g} at most with one length tried"))
    for name, value in rows:
        print(f"{name:<10}  {value}")


class Lines:
    """A line on stderr for each step, and for what the run waits for."""

    def __init__(self) -> None:
        self._phase: tuple[str, int] | None = None
        self._waiting: str | None = None
        self._known = ""

    def begin(self, search: Search) -> None:
        notify(opening(search))

    def looking(self, step: Step) -> None:
        phase = step.phase, step.attempt
        if phase != self._phase and step.phase == "certify":
            known = f"Effective length {self._known}. " if self._known else ""
            why = f"{step.why[:1].upper()}{step.why[1:]}"
            notify(f"{known}{why}: certifying {format_length(step.longest)} on fresh trials.")
        self._phase = phase

    def learned(self, step: Step, answers: Sequence[Answer], search: Search, state: State) -> None:
        found = estimate(search, state)
        self._known = "" if found is None else estimate_words(found, search.lengths[0])
        notify(step_line(step, answers, search, state))

    def state(self, state: RunnerState) -> None:
        waiting = None if state.waiting is None else state.waiting.partition(":")[0]
        if waiting is not None and waiting != self._waiting:
            notify(state.waiting or "")
        self._waiting = waiting

    def end(self) -> None: ...
