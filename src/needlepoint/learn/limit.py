"""What a search found, as values: the effective length, the certificate, where it looked and why it stopped.

`limit_of(search, state)` makes it, `json` is how a report has it, and `read_limit` takes it out of a report again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from .adaptive import LEVEL, Estimate, estimate, located, next_step
from .effective import Preset
from .search import Answer, Attempt, Count, End, EndKind, Phase, Search, State, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A length that was certified, or was to be. `e_value` is what bets on it had won at best, of `needed`."""

    context_length: int
    passed: bool
    valid: int
    score: float | None
    e_value: float
    needed: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Trials of one length or depth. The numbers were chosen by what was answered: no ordinary interval holds."""

    at: float
    asked: int
    valid: int
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a phase of the search took; `tokens` are the uncached ones, of prompts and answers."""

    phase: Phase
    trials: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much context can be used: over the mean of `depths` and `subsets`, from `shortest` to `longest` tokens.

    `certified`: with `confidence`, accuracy there is at least `threshold`. `end` None: the search isn't over. `ceiling`
    is the shortest length at which trials were lost (the model doesn't take it, failures).
    """

    threshold: float | None
    preset: Preset | None
    confidence: float
    shortest: int
    longest: int
    depths: tuple[float, ...]
    subsets: tuple[str, ...]
    estimate: Estimate | None
    located_by: str | None
    tried: tuple[Tried, ...]
    ceiling: int | None
    end: End | None
    looked: tuple[Looked, ...]
    certified_depths: tuple[Looked, ...]
    """The certificate's own trials, by depth."""
    spent: tuple[Spent, ...]

    @property
    def certificate(self) -> Tried | None:
        """The longest length that passed."""
        return max((one for one in self.tried if one.passed), key=lambda one: one.context_length, default=None)

    @property
    def certified(self) -> int | None:
        return None if (found := self.certificate) is None else found.context_length

    def json(self) -> dict[str, Any]:
        found = asdict(self)
        found["over"] = "mean of depths"
        found["interval_level"] = LEVEL
        found["certified"] = self.certified
        return found


def limit_of(search: Search, record: Sequence[tuple[Step, Sequence[Answer]]], state: State) -> Limit:
    """What this search found. `record` are its steps with their answers, `state` what they came to."""
    following = next_step(search, state)
    certificate = state.certified
    depths: dict[float, Count] = {}
    for step, answers in record:
        if step.phase == "certify" and certificate is not None and step.longest == certificate.length:
            for ask, answer in zip(step.asks, answers, strict=True):
                depths[ask.depth_percent] = depths.get(ask.depth_percent, Count()).plus(answer)
    ladder = state.ladder(search)
    return Limit(
        threshold=state.threshold,
        preset=search.bar.preset,
        confidence=search.confidence,
        shortest=search.lengths[0],
        longest=ladder[-1] if ladder else search.lengths[-1],
        depths=search.depths,
        subsets=search.subsets,
        estimate=estimate(search, state),
        located_by=state.located_by or located(search, state),
        tried=tuple(map(_tried, state.attempts)),
        ceiling=state.ceiling,
        end=following if isinstance(following, End) else None,
        looked=_looked(state.lengths),
        certified_depths=_looked(depths),
        spent=tuple(
            Spent(phase=phase, trials=count.asked, tokens=count.tokens) for phase, count in state.phases.items()
        ),
    )


def read_limit(found: object) -> Limit | None:
    """The limit that a report has; None where it has none."""
    if not isinstance(found, Mapping) or "certified_depths" not in found:
        return None
    end, guess = found.get("end"), found.get("estimate")
    return Limit(
        threshold=found.get("threshold"),
        preset=found.get("preset"),
        confidence=found["confidence"],
        shortest=found["shortest"],
        longest=found["longest"],
        located_by=found.get("located_by"),
        ceiling=found.get("ceiling"),
        depths=tuple(found["depths"]),
        subsets=tuple(found["subsets"]),
        estimate=None if guess is None else Estimate(**{**guess, "interval": tuple(guess["interval"])}),
        tried=tuple(Tried(**one) for one in found["tried"]),
        end=None if end is None or end["kind"] not in get_args(EndKind) else End(**end),
        looked=tuple(Looked(**one) for one in found["looked"]),
        certified_depths=tuple(Looked(**one) for one in found["certified_depths"]),
        spent=tuple(Spent(**one) for one in found["spent"]),
    )


def _tried(attempt: Attempt) -> Tried:
    return Tried(
        context_length=attempt.length,
        passed=attempt.passed,
        valid=attempt.count.valid,
        score=attempt.count.score,
        e_value=round(attempt.best, 3),
        needed=round(1 / attempt.alpha, 3),
        tokens=attempt.count.tokens,
    )


def _looked(counts: Mapping[Any, Count]) -> tuple[Looked, ...]:
    return tuple(
        Looked(at=at, asked=count.asked, valid=count.valid, score=count.score) for at, count in sorted(counts.items())
    )
