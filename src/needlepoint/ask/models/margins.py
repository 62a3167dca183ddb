"""The right value's log-probability against the likeliest wrong one's. Values in, values out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from needlepoint.types import Alternatives, Margin


def margin_of(compared: Alternatives, scores: Sequence[Sequence[float] | None]) -> Margin | None:
    """From the log-probabilities of the values' tokens, the right one's first; None where they weren't all told."""
    sums = [math.fsum(one) if one else None for one in scores]
    gold, *wrong = sums
    if gold is None or not math.isfinite(gold) or not scores[0]:
        return None
    told = [(value, text) for value, text in zip(wrong, compared.rivals, strict=True) if value is not None]
    if not told or len(told) < len(wrong):
        return None
    best, rival = max(told)
    if not math.isfinite(best):
        return None
    return Margin(gold=gold, wrong=best, rival=rival.strip(), tokens=len(scores[0]))
