"""When a request has taken too long, when it is sent again, and when there is no point in sending any more.

Pure decisions: numbers and failures in, waits and reasons out. Knows no clock, no queue and no model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Literal

from ..errors import UsageError
from ..types import PASSING_FAILURES, Failure

_OVERLOADED = frozenset({429, 503, 529})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """How to ask; nothing here changes what is asked."""

    concurrency: int | Literal["auto"] = 8
    rpm: float | None = None
    tpm: float | None = None
    timeout_s: float | None = None
    """For every request; None: by its length (`policy.Deadline`)."""
    max_attempts: int = 5
    backoff_s: float = 0.5
    max_bytes_in_flight: int = 64_000_000

    def __post_init__(self) -> None:
        if self.concurrency != "auto" and self.concurrency < 1:
            raise UsageError(f"--concurrency must be 'auto' or at least 1, not {self.concurrency}.")
        if self.max_attempts < 1:
            raise UsageError(f"At least one attempt is needed for each prompt, not {self.max_attempts}.")
        for name in ("rpm", "tpm", "timeout_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"--{name.removesuffix('_s')} must be above 0, not {value}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """How long one request may take. Generous: what it must catch is a server that hangs, not a slow one.

    `base_s + n_tokens / prefill_per_s + max_tokens / decode_per_s`; the rates are those of a big model on a CPU.
    """

    base_s: float = 60.0
    prefill_per_s: float = 200.0
    decode_per_s: float = 10.0
    fixed_s: float | None = None
    """What the user said (`--timeout`): the same for every request."""

    def seconds(self, n_tokens: int, max_tokens: int) -> float:
        if self.fixed_s is not None:
            return self.fixed_s
        return self.base_s + n_tokens / self.prefill_per_s + max_tokens / self.decode_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Send it again after `wait_s`, or (None) not any more, and `why` when that isn't plain from the failure."""

    wait_s: float | None
    why: str = ""
    too_long: bool = False
    """The server asks for a longer wait than one prompt is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Which failures are asked again, and after how long.

    Waits are exponential with full jitter (uniform from 0 to `base_s · 2^(attempt − 1)`, at most `longest_backoff_s`).
    A server's Retry-After is kept to, plus a little jitter; one above `longest_retry_after_s` ends the trial instead.
    """

    max_attempts: int = 5
    base_s: float = 0.5
    longest_backoff_s: float = 30.0
    longest_retry_after_s: float = 120.0

    def again(self, failure: Failure, attempt: int, rng: Random) -> Again:
        """What to do after attempt number `attempt` (from 1) ended with `failure`."""
        if failure.kind not in PASSING_FAILURES:
            return Again(wait_s=None)
        asked_s = retry_after(failure)
        if asked_s is not None and asked_s > self.longest_retry_after_s:
            return Again(
                wait_s=None,
                too_long=True,
                why=f"the server asks to wait {_spell(asked_s)}, longer than the "
                f"{_spell(self.longest_retry_after_s)} that one prompt is waited for",
            )
        if attempt >= self.max_attempts:
            return Again(wait_s=None, why=f"given up after {attempt} attempts" if attempt > 1 else "")
        if asked_s is not None:
            return Again(wait_s=asked_s + rng.uniform(0.0, min(1.0, 0.1 * asked_s)))
        return Again(wait_s=rng.uniform(0.0, self.backoff_s(attempt)))

    def backoff_s(self, level: int) -> float:
        """The longest wait at a level (from 1): it doubles with each."""
        return min(self.longest_backoff_s, self.base_s * 2.0 ** min(level - 1, 60))


def retry_after(failure: Failure) -> float | None:
    """The wait that the server asks for, if it is a number that a wait can be."""
    asked_s = failure.retry_after_s
    return None if asked_s is None or math.isnan(asked_s) else max(0.0, asked_s)


def is_overload(failure: Failure) -> bool:
    """Whether the server says that it gets too much: then everybody waits, not only this prompt."""
    return (
        failure.kind == "rate_limit"
        or failure.status in _OVERLOADED
        or (failure.kind == "server" and failure.retry_after_s is not None)
    )


class Outlook:
    """Whether it makes sense to go on: sees every attempt, and every trial that is given up.

    - 401 and 403 will meet every other prompt too: stop at once.
    - Nothing ever answered, and two trials lost all their attempts: nobody is there.
    - `many` trials in a row failed, for whatever reason, and not one ever got a reply: something is set up wrongly.
    - There were replies, then `many` trials in a row used up all their attempts: it went away, or the quota did.
    - Three trials in a row ended with a wait longer than one waits: come back later.
    """

    def __init__(self, *, many: int = 8) -> None:
        self._many = max(8, many)
        self._requests = 0
        self._answered = self._replied = False
        self._failed = self._silent = self._used_up = self._sent_away = 0

    def saw(self, failure: Failure | None) -> None:
        """One attempt ended, with a reply (None) or with a failure."""
        self._requests += 1
        if failure is None:
            self._replied = True
            self._failed = self._used_up = self._sent_away = 0
        if failure is None or failure.kind not in ("connection", "timeout"):
            self._answered = True

    def gave_up(self, failure: Failure, *, too_long: bool = False) -> str | None:
        """One trial ended without a reply. The reason to stop the run, if there is one now."""
        if failure.kind == "overflow":
            return None
        if failure.kind == "auth":
            return f"the server refuses the API key or the access: {failure.message}"
        self._failed += 1
        self._sent_away = self._sent_away + 1 if too_long else 0
        if self._sent_away >= 3:
            return f"the server asks to come back in {_spell(retry_after(failure) or 0.0)}; go on then with --resume"
        self._silent += failure.kind in ("connection", "timeout")
        if not self._answered and self._silent >= 2:
            return (
                f"no answer to any of {self._requests} requests: {failure.message} "
                "Is the server running, and the address right?"
            )
        self._used_up += failure.kind in PASSING_FAILURES
        if self._replied and self._used_up >= self._many:
            return f"the server gave no reply to {self._used_up} trials in a row. The last: {failure.message}"
        if not self._replied and self._failed >= self._many:
            return f"not one of {self._failed} trials got a reply. The last: {failure.message}"
        return None


def _spell(seconds: float) -> str:
    if math.isinf(seconds):
        return "for ever"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
