"""One job on its way through the runner, with what it holds of the budget."""

from __future__ import annotations

from dataclasses import dataclass

from ..types import Askable, Trial, Usage
from .budget import Budget, Claim

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Job:
    """One trial and the prompt to ask for it. It begins only when all jobs of another `wave` before it have ended."""

    trial: Trial
    prompt: Askable
    wave: int = 0


class Flight:
    """A job that was taken. `n_tokens` of its prompt are a guess where they can't be counted."""

    __slots__ = ("_budget", "_claim", "attempts", "job", "max_tokens", "n_tokens", "taken_at")

    def __init__(self, job: Job, *, n_tokens: int, max_tokens: int, taken_at: float, budget: Budget | None) -> None:
        self.job = job
        self.n_tokens = n_tokens
        self.max_tokens = max_tokens
        self.taken_at = taken_at
        self.attempts = 0
        self._budget = budget
        self._claim: Claim | None = None

    @property
    def n_bytes(self) -> int:
        """About what its request takes in memory."""
        return self.n_tokens * _BYTES_PER_TOKEN

    def hold(self) -> str | None:
        """Hold back its worst case from the budget; or why that isn't possible now. Holding twice is holding once."""
        if self._budget is None or self._claim is not None:
            return None
        claim = self._budget.claim(self.n_tokens, self.max_tokens)
        if not self._budget.fits(claim):
            return self._budget.why(claim)
        self._budget.hold(claim)
        self._claim = claim
        return None

    def spend(self, usage: Usage) -> None:
        """It was answered."""
        if self._budget is not None and self._claim is not None:
            self._budget.spend(self._claim, usage)
            self._claim = None

    def free(self, *, lost: bool) -> None:
        """It holds nothing any more. `lost`: the server may have done, and billed, the work."""
        if self._budget is not None and self._claim is not None:
            (self._budget.lose if lost else self._budget.release)(self._claim)
            self._claim = None
