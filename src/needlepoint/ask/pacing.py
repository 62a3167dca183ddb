"""How fast to ask: requests and tokens per minute, pauses that a server asks for, how many at a time.

State machines over times that are handed in; only `Turns` waits, for all of them, in one place and in the order of
coming: that is what makes it fair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random

from .policy import RetryPolicy

AUTO_LIMIT = 64
_BURST_S = 1.0
_FEW = 4


class Rate:
    """A budget of `per_minute` units, spent in the order of `book`.

    A token bucket as a schedule: each booking moves the time from which the next may start, so that any stretch of
    time holds at most its share, one second's worth more, and the one booking that was let in when there was room.
    A booking of more than a minute's units goes out at once and is paid for by those behind it.
    """

    def __init__(self, per_minute: float) -> None:
        if not per_minute > 0:
            raise ValueError("a rate must be above 0")
        self._seconds_each = 60.0 / per_minute
        self._free_at: float | None = None

    def ready_at(self, now: float) -> float:
        """From when on the next booking may be made."""
        return now if self._free_at is None else max(now, self._free_at)

    def book(self, now: float, units: float) -> None:
        """Spend `units` now. Not before `ready_at`."""
        start = now - _BURST_S if self._free_at is None else max(self._free_at, now - _BURST_S)
        self._free_at = start + units * self._seconds_each


class Gate:
    """Closed while a server says that it gets too much; for everybody, not only for the prompt that was told so.

    Without a Retry-After the pause doubles with each new window of refusals (those of requests that were sent before
    the last closing don't count again) and shrinks with each request that comes through. And since a crowd that returns
    all at once would be refused all over, turns are then spaced by the time in which requests came through in this
    window; by twice what it was where hardly any did; by 3 % less with each, until the spacing doesn't matter any more.
    That finds the rate of a server that doesn't tell it: seen at 1.0–1.4 times the ideal time, a fifth refused.
    """

    def __init__(self, policy: RetryPolicy, rng: Random) -> None:
        self._policy = policy
        self._rng = rng
        self._level = 0
        self._closed_at = float("-inf")
        self._open_since: float | None = None
        self._n_admitted = 0
        self.spacing_s = 0.0
        self.opens_at = float("-inf")

    def refused(self, now: float, *, sent_at: float, retry_after_s: float | None) -> None:
        new = sent_at > self._closed_at
        if retry_after_s is not None:
            if retry_after_s > self._policy.longest_retry_after_s:
                return
            self._close(now, retry_after_s)
        elif new:
            self._level = min(self._level + 1, 16)
            self._close(now, self._rng.uniform(0.5, 1.0) * self._policy.backoff_s(self._level))
        if new:
            self._space(now)

    def admitted(self) -> None:
        """A request came through, whatever became of it then."""
        self._level = max(0, self._level - 1)
        self.spacing_s = 0.97 * self.spacing_s if self.spacing_s > 0.001 else 0.0
        self._n_admitted += 1

    def passed(self, now: float) -> None:
        """Somebody took a turn."""
        if self._open_since is None:
            self._open_since = now
        if self.spacing_s:
            self.opens_at = now + self.spacing_s

    def _space(self, now: float) -> None:
        usual_s = self._policy.base_s
        if self._n_admitted and self._open_since is not None:
            usual_s = max(0.0, now - self._open_since) / self._n_admitted
        twice_s = 2 * self.spacing_s
        if self.spacing_s:
            usual_s = min(twice_s, max(self.spacing_s, usual_s))  # one that hung makes a window long, not the rate low
        self.spacing_s = min(20 * self._policy.base_s, twice_s if self._n_admitted < _FEW and twice_s else usual_s)
        self._open_since, self._n_admitted = None, 0

    def _close(self, now: float, wait_s: float) -> None:
        self._closed_at = now
        self.opens_at = max(self.opens_at, now + wait_s)


class Fixed:
    """As many at a time as was said."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def ended(self, *, sent_at: float, now: float, n_prompt: int, n_completion: int) -> None: ...

    def strained(self, *, sent_at: float, now: float) -> None: ...

    def crowded(self) -> None: ...


class Auto:
    """Finds out how many at a time are worth it: additive increase, multiplicative decrease.

    An epoch is as many replies as the limit (8 at least), to requests sent under it. Its price is seconds for each
    unit of work (prompt tokens, 20 for a token of the answer, 200 for the request itself, so that epochs of different
    lengths can be compared). The base is the lowest price seen; every `FRESH` epochs it is measured anew, in one epoch
    at half the limit, so that neither luck nor an old truth (a warm cache, a quiet hour) rules for ever.

    - Under `GROW` times the base: more; twice as many until the first sign of trouble, then one more an epoch. Only if
      the limit was reached in that epoch.
    - Above `SHRINK` times the base: a tenth fewer. Where more only queue up, their price rises with their number: this
      settles between once and twice the knee.
    - Refused, 5xx or timed out: half as many, once for all that were sent before.
    """

    GROW = 1.5
    SHRINK = 2.0
    FRESH = 20

    def __init__(self, *, start: int = 2, most: int = AUTO_LIMIT) -> None:
        self.limit = min(start, most)
        self._most = most
        self._doubling = True
        self._base: float | None = None
        self._age = 0
        self._back: int | None = None
        """While the base is measured: the limit to go back to."""
        self._since = self._cut_at = float("-inf")
        self._begin()

    def _begin(self) -> None:
        self._n = 0
        self._seconds = self._work = 0.0
        self._reached = False

    def crowded(self) -> None:
        """There was more to send than the limit lets through."""
        self._reached = True

    def ended(self, *, sent_at: float, now: float, n_prompt: int, n_completion: int) -> None:
        if sent_at < self._since:
            return
        self._n += 1
        self._seconds += now - sent_at
        self._work += 200 + n_prompt + 20 * n_completion
        if self._n >= max(8, self.limit):
            self._close(self._seconds / self._work, now)
            self._begin()

    def _close(self, price: float, now: float) -> None:
        if self._back is not None:
            self._base, self._age = price, 0
            limit, self._back = self._back, None
            self._set(limit, now)
            return
        self._base = price if self._base is None else min(self._base, price)
        self._age += 1
        if price > self.SHRINK * self._base:
            self._doubling = False
            self._set(self.limit - max(1, self.limit // 10), now)
        elif price > self.GROW * self._base:
            self._doubling = False
        elif self._reached:
            self._set(self.limit * 2 if self._doubling else self.limit + 1, now)
        if self._age >= self.FRESH and self.limit > 1:
            self._back = self.limit
            self._set(self.limit // 2, now)

    def strained(self, *, sent_at: float, now: float) -> None:
        self._doubling = False
        if sent_at <= self._cut_at:
            return
        self._cut_at = now
        self._set((self._back or self.limit) // 2, now)
        self._back = None
        self._begin()

    def _set(self, limit: int, now: float) -> None:
        limit = max(1, min(self._most, limit))
        if limit != self.limit:
            self.limit = limit
            self._since = now


class Turns:
    """Whoever wants to send waits here for the gate and the rates, first in first out, until `stopping` is set."""

    def __init__(
        self, gate: Gate, *, rpm: float | None, tpm: float | None, stopping: asyncio.Event, waits: Callable[..., None]
    ) -> None:
        self._gate = gate
        self._requests = None if rpm is None else Rate(rpm)
        self._tokens = None if tpm is None else Rate(tpm)
        self._stopping = stopping
        self._waits = waits
        self._queue = asyncio.Lock()

    async def take(self, n_requests: int, n_tokens: int) -> bool:
        """Wait for a turn and take it. False: the run ends, don't send."""
        if self._stopping.is_set():
            return False
        now = asyncio.get_running_loop().time
        if not self._queue.locked() and self._booked(now(), n_requests, n_tokens) is None:
            return True
        async with self._queue:
            while not self._stopping.is_set():
                wait = self._booked(now(), n_requests, n_tokens)
                if wait is None:
                    self._waits(None)
                    return True
                self._waits(wait[1], until=wait[0])
                await self.pause(wait[0] - now())
        return False

    async def pause(self, seconds: float) -> None:
        """Wait that long, or until the run ends."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()

    def _booked(self, now: float, n_requests: int, n_tokens: int) -> tuple[float, str] | None:
        """None: go now, the share of the rates is taken. Else when to look again, and why."""
        if self._gate.opens_at > now:
            return self._gate.opens_at, "the server asks for a pause"
        for rate, name in ((self._requests, "--rpm"), (self._tokens, "--tpm")):
            if rate is not None and (ready_at := rate.ready_at(now)) > now:
                return ready_at, name
        self._gate.passed(now)
        if self._requests is not None:
            self._requests.book(now, n_requests)
        if self._tokens is not None:
            self._tokens.book(now, n_tokens)
        return None
