"""Asks a queue of prompts, in their order, as many at a time as is good, and hands each reply over exactly once.

Knows nothing of files, grids and scores. Time is the event loop's: tests run it on a virtual one.

    jobs → [a free place · bytes · budget] → [gate · rates] → one task → on_reply
           waits for those in flight          waits for time   asks, and asks again what may pass

Jobs are taken from their iterator only when one can start, so that prompts may be made on demand. A local engine
(`model.wave` > 1) gets a wave of prompts in one call, one call at a time; all else is the same for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import replace
from random import Random

from ..types import Failure, Model, Reply, Sampling, Times
from .budget import Budget
from .flight import Flight, Job
from .pacing import Auto, Fixed, Gate, Turns
from .policy import Again, Deadline, Outlook, RetryPolicy, RunnerSettings, is_overload, retry_after
from .progress import Progress, RunnerState, RunResult, StopKind

__all__ = ["Job", "RunResult", "Runner", "RunnerSettings", "RunnerState", "StopKind"]

_STRAIN = frozenset({"rate_limit", "server", "timeout"})
_LOST = frozenset({"timeout", "connection", "bad_answer"})
"""Failures after which the server may have done, and billed, the work."""


class Runner:
    """Asks jobs of one model, in one run. `stop` may be called at any time, from the event loop's thread."""

    def __init__(
        self,
        model: Model,
        sampling: Sampling,
        settings: RunnerSettings | None = None,
        *,
        on_reply: Callable[[Job, Reply], None],
        budget: Budget | None = None,
        limit_tokens: int | None = None,
        on_state: Callable[[RunnerState], None] | None = None,
        rng: Random | None = None,
    ) -> None:
        self._model = model
        self._sampling = sampling
        self._settings = settings = settings or RunnerSettings()
        self._on_reply = on_reply
        self._budget = budget
        self._limit_tokens = limit_tokens
        self._rng = rng or Random(0)
        self._wave = max(1, model.wave)
        self._places: Fixed | Auto
        if self._wave > 1:
            self._places = Fixed(1)
        else:
            self._places = Auto() if settings.concurrency == "auto" else Fixed(settings.concurrency)
        self._policy = RetryPolicy(max_attempts=settings.max_attempts, base_s=settings.backoff_s)
        self._deadline = Deadline(fixed_s=settings.timeout_s)
        self._outlook = Outlook(many=self._places.limit)
        self._gate = Gate(self._policy, self._rng)
        self._tasks: set[asyncio.Task[None]] = set()
        self._n_bytes = 0
        self._job_wave = 0
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._stopped: str | None = None
        self._stop_kind: StopKind | None = None
        self._error: BaseException | None = None
        self._progress = Progress(self._places, on_state)
        self._turns = Turns(
            self._gate, rpm=settings.rpm, tpm=settings.tpm, stopping=self._stopping, waits=self._progress.waits
        )

    async def run(self, jobs: Iterable[Job], *, total: int | None = None, total_tokens: int | None = None) -> RunResult:
        """Ask all jobs. What `on_reply` or the model raise ends the run and is raised, with all in flight cancelled.

        `total` and `total_tokens` (of the prompts) are for the display only.
        """
        self._now = asyncio.get_running_loop().time
        progress = self._progress
        progress.begin(self._now, total, total_tokens)
        try:
            await self._feed(iter(jobs))
            while self._tasks and self._error is None:
                await self._change()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._error is not None:
            raise self._error
        progress.waits(None)
        progress.tell(force=True)
        return progress.result(self._stopped, self._stop_kind)

    def stop(self, reason: str = "interrupted") -> None:
        """First: take no more, finish what is in flight. Second: cancel that too, without a record of it."""
        if self._stopping.is_set():
            for task in self._tasks:
                task.cancel()
        else:
            self._end("user", reason)

    @property
    def state(self) -> RunnerState:
        """The run as it is now."""
        return self._progress.state()

    # --- taking jobs: first in, first out -----------------------------------------------------------------------------

    async def _feed(self, jobs: Iterator[Job]) -> None:
        """Start a task for each job, or wave of jobs, as soon as it may start."""
        held: Flight | None = None
        while not self._stopping.is_set():
            if len(self._tasks) >= self._places.limit:
                self._places.crowded()
                await self._change()
                continue
            flight = held or self._next(jobs)
            if flight is None:
                return
            while self._tasks and flight.job.wave != self._job_wave and not self._stopping.is_set():
                self._progress.waits("waiting for prompts whose beginning the next ones share")
                await self._change()
            self._job_wave = flight.job.wave
            while not self._stopping.is_set() and (short := self._no_room(flight)) is not None:
                if not self._tasks:
                    self._end("budget", short)
                else:
                    self._progress.waits("waiting for those in flight: their size, or what they may cost")
                    await self._change()
            flights, held = [flight], None
            while len(flights) < self._wave and held is None and (more := self._next(jobs)):
                if more.job.wave == self._job_wave and self._no_room(more) is None:
                    flights.append(more)
                else:
                    held = more
            if not await self._turn(flights):
                return
            self._start(flights)
            await asyncio.sleep(0)  # the request leaves before the next prompt is made

    def _next(self, jobs: Iterator[Job]) -> Flight | None:
        """The next job that can be sent at all; those too long for the model are answered on the way."""
        for job in jobs:
            prompt = job.prompt
            n_tokens = prompt.n_tokens
            max_tokens = self._sampling.max_tokens if prompt.max_tokens is None else prompt.max_tokens
            if n_tokens is None:
                n_tokens = job.trial.sent_tokens or job.trial.context_length
            elif self._limit_tokens is not None and n_tokens + max_tokens > self._limit_tokens:
                message = (
                    f"{n_tokens:,} tokens and {max_tokens:,} for the answer are more than "
                    f"the {self._limit_tokens:,} that the model takes. Not sent."
                )
                self._progress.begun(1)
                self._record(job, Reply(attempts=0, error=Failure(kind="overflow", message=message)), n_tokens)
                if self._stopping.is_set():
                    return None
                continue
            return Flight(job, n_tokens=n_tokens, max_tokens=max_tokens, taken_at=self._now(), budget=self._budget)
        return None

    def _no_room(self, flight: Flight) -> str | None:
        """None: it may be in flight beside the others, and holds its share of the budget. Else why not now."""
        n_bytes = self._n_bytes + flight.n_bytes
        if self._wave == 1 and self._tasks and n_bytes > self._settings.max_bytes_in_flight:
            return "bytes in flight"
        return flight.hold()

    def _start(self, flights: list[Flight]) -> None:
        n_bytes = sum(flight.n_bytes for flight in flights)
        self._n_bytes += n_bytes
        self._progress.waits(None)
        self._progress.begun(len(flights))
        task = asyncio.create_task(self._ask(flights))
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._n_bytes -= n_bytes
            self._changed.set()
            if not task.cancelled() and (error := task.exception()) is not None and self._error is None:
                self._error = error
                self._stopping.set()

        task.add_done_callback(ended)

    async def _turn(self, flights: list[Flight]) -> bool:
        return await self._turns.take(len(flights), sum(flight.n_tokens + flight.max_tokens for flight in flights))

    # --- asking -------------------------------------------------------------------------------------------------------

    async def _ask(self, flights: list[Flight]) -> None:
        """Ask until all have their reply, or may not be asked again."""
        try:
            while True:
                wait_s = await self._attempt(flights)
                if not flights or self._stopping.is_set():
                    break
                await self._turns.pause(wait_s)
                if not await self._hold_again(flights) or not await self._turn(flights):
                    break
        except BaseException:
            for flight in flights:
                flight.free(lost=True)
            raise
        for flight in flights:
            flight.free(lost=False)

    async def _hold_again(self, flights: list[Flight]) -> bool:
        """Hold the budget's share of those whose last attempt may have cost theirs. False: the run ends."""
        for flight in flights:
            while not self._stopping.is_set() and (short := flight.hold()) is not None:
                if len(self._tasks) == 1 or (self._budget is not None and not self._budget.held):
                    self._end("budget", short)
                else:
                    await self._change()
        return not self._stopping.is_set()

    async def _attempt(self, flights: list[Flight]) -> float:
        """Send them once. Those that are done leave `flights`; how long the others should wait."""
        sent_at = due = self._now()
        n_asked, at = len(flights), 0
        wait_s = 0.0
        replies: AsyncIterator[Reply] = self._model.ask([flight.job.prompt for flight in flights], self._sampling)
        # An engine that takes a wave works on it as a whole: the first reply may have to wait for all of it.
        first = flights if self._wave > 1 else flights[:1]
        due += sum(self._deadline.seconds(flight.n_tokens, flight.max_tokens) for flight in first)
        try:
            async with asyncio.timeout_at(due) as timeout:
                async for reply in replies:
                    if at == len(flights):
                        raise RuntimeError(f"{self._model.name} gave more replies than it got prompts")
                    again_s = self._settle(flights[at], reply, sent_at)
                    n_asked -= 1
                    if again_s is None:
                        del flights[at]
                    else:
                        at, wait_s = at + 1, max(wait_s, again_s)
                    if n_asked and self._stopping.is_set():
                        break  # a local engine: the rest of its wave has not begun
                    if n_asked:
                        due += self._deadline.seconds(flights[at].n_tokens, flights[at].max_tokens)
                        timeout.reschedule(due)
                else:
                    if n_asked:
                        raise RuntimeError(f"{self._model.name} gave no reply to {n_asked} of its prompts")
        except TimeoutError:
            if not timeout.expired():
                raise
            if n_asked:
                message = f"No answer within {self._now() - sent_at:.0f} s (--timeout)."
                again_s = self._settle(flights[at], Reply(error=Failure(kind="timeout", message=message)), sent_at)
                if again_s is None:
                    del flights[at]
                wait_s = max(wait_s, again_s or 0.0)
        finally:
            if (close := getattr(replies, "aclose", None)) is not None:
                await close()
        return wait_s

    def _settle(self, flight: Flight, reply: Reply, sent_at: float) -> float | None:
        """Note how one attempt ended, and hand the reply over (None); or how long to wait before the next attempt."""
        flight.attempts += 1
        self._progress.requests += 1
        self._outlook.saw(reply.error)
        failure, end = reply.error, None
        if failure is None:
            self._answered(flight, reply, sent_at)
        else:
            again = self._failed(flight, failure, sent_at)
            if again.wait_s is not None:
                return again.wait_s
            end = self._outlook.gave_up(failure, too_long=again.too_long)
            if again.why:
                failure = replace(failure, message=f"{failure.message.rstrip('. ')}; {again.why}.")
        times = reply.times
        total_s = self._now() - sent_at if times.total is None else times.total
        times = Times(queued=sent_at - flight.taken_at, first_token=times.first_token, total=total_s)
        self._record(flight.job, replace(reply, attempts=flight.attempts, times=times, error=failure), flight.n_tokens)
        if end is not None:
            self._end("auth" if failure is not None and failure.kind == "auth" else "server", end)
        return None

    def _answered(self, flight: Flight, reply: Reply, sent_at: float) -> None:
        usage = reply.usage
        n_prompt = flight.n_tokens if usage.prompt is None else usage.prompt
        n_completion = len(reply.text) // 4 if usage.completion is None else usage.completion
        now = self._now()
        self._gate.admitted()
        self._places.ended(sent_at=sent_at, now=now, n_prompt=n_prompt, n_completion=n_completion)
        self._progress.tokens += n_prompt + n_completion
        flight.spend(usage)

    def _failed(self, flight: Flight, failure: Failure, sent_at: float) -> Again:
        """What follows from a failed attempt: for the queue, for the budget, and for this prompt."""
        now = self._now()
        if failure.kind in _STRAIN:
            self._places.strained(sent_at=sent_at, now=now)
        if is_overload(failure):
            self._gate.refused(now, sent_at=sent_at, retry_after_s=retry_after(failure))
        elif failure.kind != "connection":
            self._gate.admitted()
        again = self._policy.again(failure, flight.attempts, self._rng)
        if failure.kind in _LOST or again.wait_s is None:
            flight.free(lost=failure.kind in _LOST)
            self._changed.set()
        return again

    def _record(self, job: Job, reply: Reply, n_tokens: int) -> None:
        self._on_reply(job, reply)
        self._progress.ended(reply.error, n_tokens)

    # --- waiting and ending -------------------------------------------------------------------------------------------

    def _end(self, kind: StopKind, reason: str) -> None:
        """Take no more. The first reason stays."""
        if not self._stopping.is_set():
            self._stopped, self._stop_kind = reason, kind
            self._stopping.set()
            self._changed.set()
            self._progress.waits(f"{reason}: finishing what is in flight")

    async def _change(self) -> None:
        """Wait until something ended."""
        self._changed.clear()
        await self._changed.wait()
