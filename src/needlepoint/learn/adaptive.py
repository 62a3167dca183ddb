"""How far does the context hold? An adaptive search, as a pure function: `next_step(search, state)` → trials or an end.

    base      only where the threshold is a share of the model's own score: some trials at the shortest length
    locate    trials where they tell most of the effective length for their tokens, until it is known well enough
    certify   fresh trials at one length, until bets that accuracy reaches the threshold have won 1/α

What is searched and certified is the accuracy over all that a trial draws: each trial has a text offset, a subset and a
depth of its own, drawn independently by the seed, so it is the *mean* over depths and subsets. That accuracy doesn't
rise with length is assumed: of the curve in locating, and where a certificate at one length speaks of shorter ones.

Several lengths may be tried. One that fails has used up its share of α; one that passes has not, and a longer one may
be tried with it (fixed-sequence testing), so that any false certificate comes with probability α at most.

Trials that were no valid measurement say nothing of accuracy. They are lost coverage, and a length that the model
doesn't take, or where a tenth of the trials is lost, is where the search ends.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from .design import length_to_certify, next_lengths, pass_probability
from .psychometric import Posterior
from .search import BASE_TRIALS, Ask, Attempt, Count, End, Search, State, Step

FEWEST = 8
"""Trials before locating may end."""
PRECISION = 1.25
"""Doublings: a narrower interval ends the locating."""
LEVEL = 0.95
ALPHA_SHARES = (0.6, 0.3, 0.1)
"""Of α: what the first length may err with, the next one where it failed, and the last."""
HOPELESS = 0.1
_TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Where the effective length lies; None is below the shortest length.

    `at_least`: the longest length seems to hold, so there is no end in sight; `open_above`: it may hold.
    """

    length: int | None
    interval: tuple[int | None, int | None]
    at_least: bool
    open_above: bool


def next_step(search: Search, state: State) -> Step | End:
    """What to ask next. Pure: the same state gives the same trials."""
    ladder = state.ladder(search)
    if not ladder:
        return End(kind="coverage", why=f"not even {search.lengths[0]:,} tokens can be measured")
    if state.threshold is None or state.posterior is None:
        return _base(search, state, ladder)
    why = state.located_by or located(search, state)
    if why is None:
        return _locate(search, state, state.posterior, ladder)
    return _certify(search, state, state.posterior, ladder, why)


def estimate(search: Search, state: State) -> Estimate | None:
    """The median of what is thought of the effective length, and the 95 % between the ends; None without an answer."""
    ladder = state.ladder(search)
    if state.posterior is None or not ladder or not any(count.valid for count in state.lengths.values()):
        return None
    ends = state.posterior.interval(LEVEL)
    low, middle, high = (_length(at, ladder) for at in (ends[0], state.posterior.quantile(0.5), ends[1]))
    longest = ladder[-1]
    return Estimate(length=middle, interval=(low, high), at_least=middle == longest, open_above=high == longest)


def _length(doublings: float, ladder: Sequence[int]) -> int | None:
    if doublings < math.log2(ladder[0]) - _TINY:
        return None
    return ladder[-1] if doublings >= math.log2(ladder[-1]) - _TINY else round(2**doublings)


def located(search: Search, state: State) -> str | None:
    """Why locating may end now; None where it goes on."""
    found = estimate(search, state)
    if found is None or state.asked < FEWEST:
        return None
    low, high = found.interval
    if high is None:
        return "even the shortest length is too long"
    if low is not None and math.log2(high / low) <= PRECISION:
        return "the interval is narrow enough"
    if _locating_left(search, state) < search.cost(state.ladder(search)[0]):
        return "its share of the tokens is used up"
    return None


def _locating_left(search: Search, state: State) -> float:
    return search.locating_tokens - sum(count.tokens for phase, count in state.phases.items() if phase != "certify")


# --- the phases -------------------------------------------------------------------------------------------------------


def _base(search: Search, state: State, ladder: Sequence[int]) -> Step | End:
    shortest = ladder[0]
    missing = BASE_TRIALS - state.lengths.get(shortest, Count()).asked
    if missing <= 0:
        return End(kind="base", why=f"nothing is found at {shortest:,} tokens, so there is no score to take a share of")
    asks = _asks(search, state, [shortest] * min(search.at_once, missing), _budget_left(search, state))
    why = f"the model's own score at {shortest:,} tokens sets the threshold"
    return Step(phase="base", asks=asks, why=why) if asks else _spent(search)


def _locate(search: Search, state: State, posterior: Posterior, ladder: Sequence[int]) -> Step | End:
    every_other = tuple(sorted({*ladder[::2], ladder[-1]}))
    lengths = next_lengths(posterior, every_other, search.at_once, cost=search.cost)
    left = _locating_left(search, state)
    if asks := _asks(search, state, lengths, min(left, _budget_left(search, state))):
        return Step(phase="locate", asks=asks, why="most information for its tokens")
    if asks := _asks(search, state, lengths[:1], _budget_left(search, state)):
        return Step(phase="locate", asks=asks, why="the last trial that locating can afford")
    return _spent(search)


def _certify(search: Search, state: State, posterior: Posterior, ladder: Sequence[int], why: str) -> Step | End:
    current = state.attempts[-1] if state.attempts else None
    if current is not None and not current.passed and not _given_up(search, state, posterior, current):
        length, alpha, attempt = current.length, current.alpha, len(state.attempts) - 1
        most = search.most_trials(length) - current.count.asked
    else:
        found = _next_attempt(search, state, posterior, ladder, current)
        if isinstance(found, End):
            return found
        (length, alpha), attempt = found, len(state.attempts)
        most = search.most_trials(length)
        if current is not None:
            why = f"{current.length:,} tokens {'passed' if current.passed else 'did not pass'}"
    asks = _asks(search, state, [length] * min(search.at_once, most), _budget_left(search, state))
    return Step(phase="certify", asks=asks, why=why, attempt=attempt, alpha=alpha) if asks else _spent(search)


def _next_attempt(
    search: Search, state: State, posterior: Posterior, ladder: Sequence[int], last: Attempt | None
) -> tuple[int, float] | End:
    """The next length to certify, and what it may err with."""
    certified, left = state.certified, _budget_left(search, state)
    failed = [attempt for attempt in state.attempts if not attempt.passed]
    if certified is not None and last is not certified:
        return End(kind="done", why=f"{certified.length:,} tokens passed, and {failed[-1].length:,} did not")
    if len(failed) == len(ALPHA_SHARES):
        return End(kind="done", why=f"none of {len(failed)} lengths passed")
    alpha = (1 - search.confidence) * ALPHA_SHARES[len(failed)]
    ceiling = min((attempt.length for attempt in failed), default=math.inf)
    lengths = [length for length in ladder if length < ceiling]

    def trials(length: int) -> float:
        return min(search.most_trials(length), left / search.cost(length))

    base = None if certified is None else certified.length
    found = length_to_certify(posterior, lengths, alpha=alpha, trials=trials, certified=base)
    if found is not None:
        return found, alpha
    dear = length_to_certify(posterior, lengths, alpha=alpha, trials=search.most_trials, certified=base)
    poor = f"what is left of {search.budget_tokens:,} tokens" if search.budget_tokens is not None else ""
    if certified is not None:
        why = "a longer one has too little chance to" if dear is None else f"{poor} is too little for a longer one"
        return End(kind="done", why=f"{certified.length:,} tokens passed, and {why}")
    if dear is not None:
        return End(kind="budget", why=f"{poor} is too little to certify a length")
    return End(kind="done", why="no length has a fair chance to pass")


def _given_up(search: Search, state: State, posterior: Posterior, attempt: Attempt) -> bool:
    """Whether too much was lost, or there is too little hope that the trials left bring it home."""
    left: float = search.most_trials(attempt.length) - attempt.count.asked
    if attempt.count.lost or left < 1:
        return True
    if (affordable := _budget_left(search, state) / search.cost(attempt.length)) < 1:
        return False  # it isn't the attempt that ends
    left = min(left, affordable)
    hope = pass_probability(posterior, attempt.length, alpha=attempt.alpha, trials=left, wealth=attempt.wealth.total)
    return hope < HOPELESS


def _asks(search: Search, state: State, lengths: Sequence[int], left: float) -> tuple[Ask, ...]:
    """Trials of these lengths, as many as `left` tokens allow; each draws its subset and depth for itself."""
    asks: list[Ask] = []
    for length in lengths:
        left -= search.cost(length)
        if left < 0:
            break
        number = state.asked + len(asks)
        rng = random.Random(f"{search.seed}:search:{number}")
        subset, depth = rng.choice(search.subsets), rng.choice(search.depths)
        asks.append(Ask(number=number, subset=subset, context_length=length, depth_percent=depth))
    return tuple(asks)


def _budget_left(search: Search, state: State) -> float:
    return math.inf if search.budget_tokens is None else search.budget_tokens - state.tokens


def _spent(search: Search) -> End:
    return End(kind="budget", why=f"the next trial would take more than is left of {search.budget_tokens:,} tokens")
