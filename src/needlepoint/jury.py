"""A run's judges: their models connected before anything else is asked, and at work on what a run folder holds."""

from __future__ import annotations

import asyncio
import contextlib
import json
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from .ask.interrupts import install_interrupts
from .ask.models import create, is_local
from .ask.plain import plain, scrub
from .ask.runner import Runner, RunnerState
from .ask.settings import now
from .ask.store import RunFolder
from .errors import NeedlepointError, UsageError
from .judging import Jury, Seat
from .score.judge import Bench, Judge, Judged, scorer_for, settings_of
from .score.panel import identity_of
from .score.structured import StructuredModel
from .text.cache import Notify, Progress
from .types import Encoding, Endpoint

_TELL_EVERY_S = 15.0
_FLOOR = "score = grade / 10, as EvalScope's judge has it: a total miss is 0.1, so no average reaches 0"


@contextlib.asynccontextmanager
async def seated(
    jury: Jury | None,
    *,
    notify: Notify | None = None,
    progress: Progress | None = None,
    interrupts: bool = False,
) -> AsyncIterator[SeatedJury | None]:
    """The judges with their models connected, so that a wrong key or address is found before anything is spent."""
    if jury is None:
        yield None
        return
    judges = []
    async with contextlib.AsyncExitStack() as stack:
        for seat in jury.seats:
            try:
                local = seat.api_url is None
                model = create(
                    seat.model,
                    api_url=seat.api_url,
                    api_key=seat.api_key,
                    stream=seat.stream,
                    endpoint=None if local else Endpoint(tokenizer=_Uncounted(), render=None),
                    notify=notify,
                    progress=progress,
                )
                stack.push_async_callback(model.close)
                endpoint = await model.connect()
            except NeedlepointError as error:
                raise type(error)(_of_judge(seat, str(error))) if _is_plain(error) else error from None
            for note in endpoint.notes:
                if notify is not None:
                    notify(f"Judge {seat.id}: {note}")
            judges.append(
                Judge(
                    id=seat.id,
                    model=StructuredModel(model, native=is_local(seat.model) and local),
                    sampling=seat.sampling,
                    settings=seat.settings,
                    prices=seat.prices,
                )
            )
        yield SeatedJury(jury=jury, judges=tuple(judges), notify=notify, interrupts=interrupts)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatedJury:
    """Judges who are ready to be asked."""

    jury: Jury
    judges: tuple[Judge, ...]
    notify: Notify | None
    interrupts: bool

    async def judge(self, folder: RunFolder) -> tuple[str, Judged]:
        """Have every answer of a run judged, or the rest of them: (the scorer's name, how it went)."""
        jury, notify = self.jury, self.notify
        facts = {seat.id: seat.facts() for seat in jury.seats}
        identity: dict[str, Any] = scrub(plain(identity_of(jury.panel, facts), "judge"), jury.secrets)
        scorer = scorer_for(folder, jury.panel.stem, identity)
        text = json.dumps(_settings(jury, identity), ensure_ascii=False, indent=2)
        folder.write_text(settings_of(scorer), text + "\n")
        if notify is not None:
            notify(f"Judging {folder.n_replies:,} answers: {', '.join(seat.id for seat in jury.seats)}.")
        found = await Bench(folder, jury.panel, self.judges, scorer=scorer).judge(
            on_state=None if notify is None else _teller(notify),
            interrupts=_stoppable if self.interrupts else None,
        )
        return scorer, found


def _settings(jury: Jury, identity: dict[str, Any]) -> dict[str, Any]:
    panel = jury.panel
    found = {
        "models": [
            {"id": seat.id, "model": seat.model, "api_url": scrub(seat.api_url), "max_tokens": seat.sampling.max_tokens}
            for seat in jury.seats
        ],
        "rubric": panel.contract.rubric,
        "note": _FLOOR if panel.contract.rubric == "1-10" else None,
        "repeats": panel.repeats,
        "aggregation": panel.aggregation,
        "min_valid_judges": panel.min_valid_judges,
        "only_what_rules_miss": panel.recall_only,
        "contract_sha256": panel.contract.fingerprint(),
        "made": now(),
        "identity": identity,
    }
    return {name: value for name, value in found.items() if value is not None}


def _stoppable(runner: Runner) -> AbstractContextManager[None]:
    return install_interrupts(runner)


def _teller(notify: Notify) -> Callable[[str, RunnerState], None]:
    """Says now and then how far a judge is."""
    told_at = 0.0

    def tell(judge: str, state: RunnerState) -> None:
        nonlocal told_at
        at = asyncio.get_running_loop().time()
        told_at = told_at or at
        if at - told_at >= _TELL_EVERY_S and state.total:
            told_at = at
            notify(f"{judge}: {state.done:,} of {state.total:,} answers judged.")

    return tell


def _is_plain(error: NeedlepointError) -> bool:
    """Whether an error is made of its message alone, so that it can be made again with another."""
    return error.args == (str(error),) and type(error).__init__ is NeedlepointError.__init__


def _of_judge(seat: Seat, words: str) -> str:
    for flag in ("--api-key", "--api-url"):
        words = words.replace(flag, f"--judge-{flag[2:]}")
    return f"The judge {seat.id!r}: {words}"


class _Uncounted:
    """Stands where a tokenizer would: nobody counts a judge's prompts, so none is loaded."""

    name, fingerprint, special_tokens, adds_bos, rewrites, nfc = "none", "none", (), False, False, False

    def encode(self, text: str, *, special: bool = False) -> Encoding:
        raise UsageError("A judge's prompts are not counted.")

    def count(self, text: str, *, special: bool = False) -> int:
        raise UsageError("A judge's prompts are not counted.")

    def decode(self, ids: Sequence[int] | array[int]) -> str:
        raise UsageError("A judge's prompts are not counted.")
