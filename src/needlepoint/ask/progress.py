"""How far a run is, and how it ended: counters, speed and the time left, as values for people to look at."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..types import Failure
from .pacing import Auto, Fixed

StopKind = Literal["user", "auth", "server", "budget"]

_TELL_EVERY_S = 0.1
_SPEED_WINDOW_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerState:
    """A moment of a run. `waiting`: why nothing more is sent just now, if it isn't only that all places are taken."""

    in_flight: int
    done: int
    failed: int
    overflow: int
    total: int | None
    requests: int
    concurrency: int
    waiting: str | None
    tokens_per_s: float | None
    elapsed_s: float
    eta_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run ended. What was handed over is in `asked`; what was begun and cut short is in `unfinished`."""

    asked: int
    failed: int
    """Of `asked`, those without a reply; overflow is not among them."""
    overflow: int
    unfinished: int
    requests: int
    elapsed_s: float
    stopped: str | None = None
    stop_kind: StopKind | None = None


class Progress:
    """Counts, and tells `on_state` at most ten times a second."""

    def __init__(self, places: Fixed | Auto, on_state: Callable[[RunnerState], None] | None) -> None:
        self._places = places
        self._on_state = on_state
        self._now: Callable[[], float] = lambda: 0.0
        self._started = 0.0
        self._told_at = float("-inf")
        self._waiting: str | None = None
        self._until: float | None = None
        self._samples: deque[tuple[float, int]] = deque()
        self._done_tokens = 0
        self._total_tokens: int | None = None
        self.total: int | None = None
        self.in_flight = self.done = self.failed = self.overflow = self.requests = 0
        self.tokens = 0
        """Prompt and answer tokens of replies."""

    def begin(self, now: Callable[[], float], total: int | None, total_tokens: int | None) -> None:
        self._now = now
        self._started = now()
        self.total = total
        self._total_tokens = total_tokens
        self._samples.append((self._started, 0))

    def begun(self, n: int) -> None:
        self.in_flight += n

    def ended(self, failure: Failure | None, n_tokens: int) -> None:
        self.in_flight -= 1
        self.done += 1
        self._done_tokens += n_tokens
        if failure is not None:
            if failure.kind == "overflow":
                self.overflow += 1
            else:
                self.failed += 1
        self.tell()

    def waits(self, reason: str | None, *, until: float | None = None) -> None:
        if reason != self._waiting or until != self._until:
            self._waiting, self._until = reason, until
            self.tell()

    def tell(self, *, force: bool = False) -> None:
        if self._on_state is None:
            return
        now = self._now()
        if force or now - self._told_at >= _TELL_EVERY_S:
            self._told_at = now
            self._on_state(self.state())

    def state(self) -> RunnerState:
        now = self._now()
        waiting = self._waiting
        if waiting is not None and self._until is not None:
            waiting = f"{waiting}: {max(0.0, self._until - now):.0f} s"
        return RunnerState(
            in_flight=self.in_flight,
            done=self.done,
            failed=self.failed,
            overflow=self.overflow,
            total=self.total,
            requests=self.requests,
            concurrency=self._places.limit,
            waiting=waiting,
            tokens_per_s=self._speed(now),
            elapsed_s=now - self._started,
            eta_s=self._eta(now - self._started),
        )

    def result(self, stopped: str | None, stop_kind: StopKind | None) -> RunResult:
        return RunResult(
            asked=self.done,
            failed=self.failed,
            overflow=self.overflow,
            unfinished=self.in_flight,
            requests=self.requests,
            elapsed_s=self._now() - self._started,
            stopped=stopped,
            stop_kind=stop_kind,
        )

    def _speed(self, now: float) -> float | None:
        """Tokens per second of the last half minute."""
        samples = self._samples
        if not samples or now - samples[-1][0] >= _TELL_EVERY_S:
            samples.append((now, self.tokens))
        while len(samples) > 2 and now - samples[1][0] >= _SPEED_WINDOW_S:
            samples.popleft()
        since, tokens = samples[0]
        return (self.tokens - tokens) / (now - since) if now > since and self.tokens > tokens else None

    def _eta(self, elapsed_s: float) -> float | None:
        """By tokens where their sum is known, for long prompts often come last; else by the number of trials."""
        if self._total_tokens is not None and self._done_tokens:
            return elapsed_s * max(0, self._total_tokens - self._done_tokens) / self._done_tokens
        if self.total is not None and self.done:
            return elapsed_s * max(0, self.total - self.done) / self.done
        return None
