"""What another tool said that an answer was worth, as a score from 0 to 1. Its own number and scale are kept beside.

The ends of a scale are 0 and 1: on a rubric from 1 to 10 a total miss is a 1, and (1 - 1) / 9 = 0. Dividing by 10, as
EvalScope does, leaves a miss at 0.1, so that no average ever reaches 0.
"""

from __future__ import annotations

from ..types import Outcome, Reply, Score, Trial
from .outcomes import unmeasured

IMPORTED = "imported"
"""The scorer's name, and that of its file in a run folder."""

Scale = tuple[float, float]


def imported_score(
    trial: Trial, reply: Reply, *, raw: float | None, scale: Scale | None, tool: str, why: str | None = None
) -> Score:
    """The score of a published answer. `raw` stands also where the measurement broke: then there is no score.

    `why` says more of it, or why there is no `raw`.
    """
    broken = None if reply.error is None else unmeasured(trial, reply)
    if broken is not None:
        outcome, value, reason = broken.outcome, None, broken.reason
    elif raw is None or scale is None:
        outcome, value, reason = "unjudged", None, why or f"{tool} gave it no score"
    else:
        value = scaled(raw, scale)
        outcome = outcome_of(value)
        reason = f"{tool} gave it {raw:g} on its scale from {scale[0]:g} to {scale[1]:g}" + (f"; {why}" if why else "")
    return Score(
        outcome=outcome,
        score=value,
        reason=reason,
        span=None,
        scorer=IMPORTED,
        raw=raw,
        scale=scale if raw is not None else None,
    )


def scaled(raw: float, scale: Scale) -> float:
    """`raw` from 0 to 1; what lies outside its scale counts as its end."""
    low, high = scale
    return round(min(1.0, max(0.0, (raw - low) / (high - low))), 12)


def outcome_of(value: float) -> Outcome:
    return "correct" if value >= 1 else "partial" if value > 0 else "wrong"
