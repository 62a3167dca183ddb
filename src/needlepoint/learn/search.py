"""The nouns of a search for the effective length: what is searched for, the steps, and what is known after each.

Values only; what is asked next is for `adaptive` to say. A state is built by `after`, one step at a time, so it can be
built again from a record of the steps and the answers, by whoever scored them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from .certificate import Wealth
from .effective import ENOUGH_COVERAGE, Bar
from .psychometric import Posterior, curves_between

Phase = Literal["base", "locate", "certify"]
EndKind = Literal["done", "budget", "coverage", "base"]

BASE_TRIALS = 16
"""At the shortest length, where the threshold hangs on the score there."""
LOCATING_ROWS = 2.5
"""What locating may cost where no budget is given: so many trials at each doubling up to the longest length."""
LOCATING_SHARE = 0.6
"""And of a budget."""
MOST_TRIALS, MOST_SHORT_TRIALS = 100, 300
"""To certify one length; more where they are so short that they cost no more than locating."""
_FEW_LOST = 3
_TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched for, and with what."""

    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    subsets: tuple[str, ...]
    bar: Bar
    confidence: float = 0.95
    seed: int = 0
    at_once: int = 4
    budget_tokens: int | None = None
    answer_tokens: int = 0
    """What a trial costs beside its prompt; a guess, for the choice alone."""

    def cost(self, length: int) -> int:
        """Uncached tokens of one trial: each has a text of its own, so all of it."""
        return length + self.answer_tokens

    @property
    def locating_tokens(self) -> float:
        """What locating may use."""
        if self.budget_tokens is not None:
            return LOCATING_SHARE * self.budget_tokens
        lengths, longest = [], float(self.lengths[-1])
        while longest >= self.lengths[0]:
            lengths.append(longest)
            longest /= 2
        return LOCATING_ROWS * sum(self.cost(round(length)) for length in lengths)

    def most_trials(self, length: int) -> int:
        """How many trials may be spent on certifying this length."""
        return max(MOST_TRIALS, min(MOST_SHORT_TRIALS, int(self.locating_tokens / self.cost(length))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One trial to be asked: `number` is its replicate, so every trial has a text offset and drawn facts of its own."""

    number: int
    subset: str
    context_length: int
    depth_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Trials that are asked together, and why. `alpha` is what an attempt to certify may err with."""

    phase: Phase
    asks: tuple[Ask, ...]
    why: str
    attempt: int = 0
    alpha: float | None = None

    @property
    def longest(self) -> int:
        return max(ask.context_length for ask in self.asks)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Why there is no next step. `done`: all that could be found was."""

    kind: EndKind
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one trial. `score` None: it was no valid measurement. `tokens` are the uncached ones it took."""

    score: float | None
    outcome: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Trials of one length, or of one phase."""

    asked: int = 0
    valid: int = 0
    total: float = 0.0
    overflow: int = 0
    tokens: int = 0

    def plus(self, answer: Answer) -> Count:
        valid = answer.score is not None
        return Count(
            asked=self.asked + 1,
            valid=self.valid + valid,
            total=self.total + (answer.score or 0.0),
            overflow=self.overflow + (answer.outcome == "overflow"),
            tokens=self.tokens + answer.tokens,
        )

    def and_(self, other: Count) -> Count:
        return Count(
            asked=self.asked + other.asked,
            valid=self.valid + other.valid,
            total=self.total + other.total,
            overflow=self.overflow + other.overflow,
            tokens=self.tokens + other.tokens,
        )

    @property
    def covered(self) -> bool:
        """Whether enough of these trials are measurements."""
        return self.valid >= ENOUGH_COVERAGE * self.asked

    @property
    def lost(self) -> bool:
        """Whether coverage ends here: the model doesn't take it, or too many trials were no measurement."""
        return self.overflow > 0 or (self.asked - self.valid >= _FEW_LOST and not self.covered)

    @property
    def score(self) -> float | None:
        return self.total / self.valid if self.valid else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One length being certified: its trials, and the wealth of the bets on it.

    It is `allowed` what it asks for where that and the shares of all that failed before are α together. In a search
    that always holds; scored again by someone else, an attempt may fail whose passing had led to the next one.
    """

    length: int
    alpha: float
    wealth: Wealth
    allowed: bool = True
    count: Count = Count()
    best: float = 1.0

    @property
    def passed(self) -> bool:
        return self.allowed and self.best >= 1 / self.alpha and not self.count.lost


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that was learned so far. Begin with `State()`; `after` gives the state after a step."""

    threshold: float | None = None
    posterior: Posterior | None = field(default=None, repr=False)
    lengths: Mapping[int, Count] = field(default_factory=dict)
    phases: Mapping[Phase, Count] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    asked: int = 0
    located_by: str | None = None
    """Why locating ended."""

    @property
    def tokens(self) -> int:
        """Uncached ones, of all trials."""
        return sum(count.tokens for count in self.phases.values())

    def ladder(self, search: Search) -> tuple[int, ...]:
        """The lengths that can be asked: those below the first where coverage ends."""
        ceiling = self.ceiling
        return tuple(length for length in search.lengths if ceiling is None or length < ceiling)

    @property
    def ceiling(self) -> int | None:
        """The shortest length where coverage ends: what is lost there and beyond is taken together."""
        beyond, found = Count(), None
        for length, count in sorted(self.lengths.items(), reverse=True):
            beyond = beyond.and_(count)
            if count.overflow or (beyond.lost and not count.covered):
                found = length
        return found

    @property
    def certified(self) -> Attempt | None:
        """The longest that passed."""
        return max((one for one in self.attempts if one.passed), key=lambda one: one.length, default=None)

    def after(self, search: Search, step: Step, answers: Sequence[Answer]) -> State:
        """What is known once the trials of a step were asked; as many answers as asks, in their order."""
        lengths, phase = dict(self.lengths), self.phases.get(step.phase, Count())
        state = self if step.phase != "certify" else self._attempting(search, step)
        posterior, attempts = state.posterior, state.attempts
        for ask, answer in zip(step.asks, answers, strict=True):
            lengths[ask.context_length] = lengths.get(ask.context_length, Count()).plus(answer)
            phase = phase.plus(answer)
            if answer.score is not None and posterior is not None:
                posterior = posterior.updated(ask.context_length, answer.score)
            if step.phase == "certify":
                attempts = (*attempts[:-1], _tried(attempts[-1], answer))
        return replace(
            state,
            posterior=posterior,
            lengths=lengths,
            phases={**self.phases, step.phase: phase},
            attempts=attempts,
            asked=max(self.asked, step.asks[-1].number + 1),
        )._with_threshold(search)

    def _attempting(self, search: Search, step: Step) -> State:
        """With the attempt that this step is of, begun where it is the first step of it."""
        state = self if self.located_by is not None else replace(self, located_by=step.why)
        if step.attempt < len(self.attempts) or self.threshold is None or self.posterior is None:
            return state
        whole = 1 - search.confidence
        alpha = step.alpha or whole
        failed = sum(attempt.alpha for attempt in self.attempts if not attempt.passed)
        begun = Attempt(
            length=step.longest,
            alpha=alpha,
            wealth=Wealth.before(self.threshold, self.posterior.shares(step.longest)),
            allowed=failed + alpha <= whole + _TINY,
        )
        return replace(state, attempts=(*self.attempts, begun))

    def _with_threshold(self, search: Search) -> State:
        """Where the threshold hung on the score at the shortest length: set as soon as that is known."""
        shortest = self.lengths.get(search.lengths[0], Count())
        if self.threshold is not None or shortest.asked < BASE_TRIALS:
            return self
        threshold = search.bar.at(shortest.score)
        if threshold is None:
            return self
        posterior = Posterior.before(curves_between(search.lengths[0], search.lengths[-1], threshold))
        share = shortest.score or 0.0
        for _ in range(shortest.valid):
            posterior = posterior.updated(search.lengths[0], share)
        return replace(self, threshold=threshold, posterior=posterior)


def _tried(attempt: Attempt, answer: Answer) -> Attempt:
    wealth = attempt.wealth if answer.score is None else attempt.wealth.after(answer.score)
    best = max(attempt.best, wealth.total)
    return replace(attempt, wealth=wealth, count=attempt.count.plus(answer), best=best)


def begin(search: Search) -> State:
    """Before the first trial."""
    if search.bar.preset == "nolima":
        return State()
    threshold = search.bar.at(None)
    assert threshold is not None
    curves = curves_between(search.lengths[0], search.lengths[-1], threshold)
    return State(threshold=threshold, posterior=Posterior.before(curves))
