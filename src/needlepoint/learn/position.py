"""Position bias: is the middle of a context really read worse than its edges?

The middle is every depth above 25 % and below 75 %, the edges are the rest. They are compared within one text and
length, so that neither a hard text nor a long context passes for a position: each such row has a difference, the mean
of its middle cells less that of its edge cells. A text's difference is the mean of its rows' differences; where few
texts are pooled, a row counts by the cells that it has on both sides.

With five texts or more the p value speaks of other texts: under no effect each text's difference could as well have the
other sign (sign flips, all of them up to 14 texts; Student's t above). With fewer it speaks of these texts: under no
effect the scores of a row could as well stand at other depths of it (exact for right and wrong, the sum of
hypergeometric counts, as Cochran, Mantel and Haenszel have it; else by the variance of that sum). One-sided: the
question is whether the middle is worse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .distributions import normal_cdf, normal_quantile, t_cdf, t_quantile
from .intervals import LEVEL, Over, Sums
from .paired import signed_sums
from .tally import Cluster, Tally

MIDDLE_FROM, MIDDLE_TO = 25.0, 75.0
SIGNIFICANT = 0.05
_FEWEST_TEXTS = 5  # with four, no result of sign flips is rarer than 1 in 16
_ALL_FLIPS = 14
_ALL_COUNTS = 2_000  # above, the normal distribution is as good and faster
_TINY = 1e-12

Place = tuple[int, float]
"""A cell of one subset's grid: length, depth in percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionTest:
    """Scores of middle and edges, each row counted alike, their difference, and what it means in words."""

    middle: float
    edges: float
    difference: float
    interval: tuple[float, float]
    p_value: float
    verdict: str
    over: Over
    rows: int
    texts: int

    def json(self) -> dict[str, Any]:
        return {
            "middle": round(self.middle, 6),
            "edges": round(self.edges, 6),
            "difference": round(self.difference, 6),
            "interval": [round(end, 6) for end in self.interval],
            "p_value": self.p_value if self.p_value == 0 else float(f"{self.p_value:.4g}"),
            "verdict": self.verdict,
            "over": self.over,
            "rows": self.rows,
            "texts": self.texts,
            "middle_range": [MIDDLE_FROM, MIDDLE_TO],
        }


def is_middle(depth_percent: float) -> bool:
    return MIDDLE_FROM < depth_percent < MIDDLE_TO


def position_test(cells: Mapping[Place, Tally], *, level: float = LEVEL) -> PositionTest | None:
    """Middle against edges; None where no row has valid answers at both."""
    rows = _rows(cells)
    if not rows:
        return None
    texts = sorted({row.cluster for row in rows}, key=repr)
    own: dict[Cluster, list[_Row]] = {text: [] for text in texts}
    for row in rows:
        own[row.cluster].append(row)
    over: Over = "texts" if len(texts) >= _FEWEST_TEXTS else "trials"
    if over == "texts":
        weights = [1 / len(own[row.cluster]) for row in rows]
    else:
        weights = [row.weight for row in rows]
    middle = _weighted([row.middle for row in rows], weights)
    edges = _weighted([row.edges for row in rows], weights)
    difference = middle - edges
    error = _chance_error(rows, weights)
    if over == "texts":
        differences = [_mean([row.middle - row.edges for row in some]) for some in own.values()]
        p_value = _sign_flips(differences)
        error = max(error, _standard_error(differences))
        reach = t_quantile(0.5 + level / 2, len(texts) - 1) * error
    else:
        p_value = _shuffled(rows)
        reach = normal_quantile(0.5 + level / 2) * error
    interval = max(-1.0, difference - reach), min(1.0, difference + reach)
    return PositionTest(
        middle=middle,
        edges=edges,
        difference=difference,
        interval=interval,
        p_value=p_value,
        verdict=_verdict(middle, edges, interval, p_value, over),
        over=over,
        rows=len(rows),
        texts=len(texts),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One text at one length: the score at each depth, by place."""

    cluster: Cluster
    length: int
    middles: tuple[float, ...]
    outers: tuple[float, ...]

    @property
    def middle(self) -> float:
        return _mean(self.middles)

    @property
    def edges(self) -> float:
        return _mean(self.outers)

    @property
    def weight(self) -> float:
        """What the row tells of a difference: that of Mantel and Haenszel, as in the sum that is dealt out again."""
        return len(self.middles) * len(self.outers) / (len(self.middles) + len(self.outers))


def _rows(cells: Mapping[Place, Tally]) -> list[_Row]:
    found: dict[tuple[Cluster, int], dict[float, Sums]] = {}
    for (length, depth), tally in cells.items():
        for cluster, sums in tally.clusters.items():
            found.setdefault((cluster, length), {})[depth] = sums
    rows = []
    for (cluster, length), by_depth in found.items():
        middles = tuple(sums.total / sums.n for depth, sums in by_depth.items() if is_middle(depth))
        outers = tuple(sums.total / sums.n for depth, sums in by_depth.items() if not is_middle(depth))
        if middles and outers:
            rows.append(_Row(cluster, length, middles, outers))
    return rows


# --- how rare is it? --------------------------------------------------------------------------------------------------


def _sign_flips(differences: Sequence[float]) -> float:
    """P(a sum of differences with random signs is as low as theirs)."""
    if len(differences) > _ALL_FLIPS:
        error = _standard_error(differences)
        if error < _TINY:
            return 1.0 if _mean(differences) >= -_TINY else 0.0
        return t_cdf(_mean(differences) / error, len(differences) - 1)
    sums = signed_sums(differences)
    observed = math.fsum(differences)
    return sum(value <= observed + _TINY * len(differences) for value in sums) / len(sums)


def _shuffled(rows: Sequence[_Row]) -> float:
    """P(as little falls to the middle when each row's scores are dealt out to its depths again)."""
    observed = math.fsum(score for row in rows for score in row.middles)
    every = [score for row in rows for score in (*row.middles, *row.outers)]
    counts = sum(len(row.middles) for row in rows)
    if counts <= _ALL_COUNTS and all(score in (0.0, 1.0) for score in every):
        chances = [1.0]
        for row in rows:
            chances = _convolved(chances, _dealt(row))
        return min(1.0, math.fsum(chances[: round(observed) + 1]))
    mean = variance = 0.0
    for row in rows:
        scores = (*row.middles, *row.outers)
        size, share = len(scores), len(row.middles)
        middle = _mean(scores)
        mean += share * middle
        spread = math.fsum((score - middle) ** 2 for score in scores) / (size - 1)
        variance += share * (size - share) / size * spread
    return 1.0 if variance < _TINY else normal_cdf((observed - mean) / math.sqrt(variance))


def _dealt(row: _Row) -> list[float]:
    """Chances of 0, 1, ... right answers in the middle: hypergeometric."""
    right = round(sum(row.middles) + sum(row.outers))
    middle, edges = len(row.middles), len(row.outers)
    ways = math.comb(middle + edges, middle)
    return [math.comb(right, k) * math.comb(middle + edges - right, middle - k) / ways for k in range(middle + 1)]


def _convolved(one: Sequence[float], other: Sequence[float]) -> list[float]:
    found = [0.0] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        if a:
            for j, b in enumerate(other):
                found[i + j] += a * b
    return found


# --- how large is it? -------------------------------------------------------------------------------------------------


def _standard_error(values: Sequence[float]) -> float:
    middle = _mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1) / len(values))


def _chance_error(rows: Sequence[_Row], weights: Sequence[float]) -> float:
    """What luck within a length alone leaves open; never 0, since half a right and half a wrong answer are added to the
    scores of each group. Of right and wrong that gives p (1 - p); scores in between spread less, and count so."""
    groups: dict[tuple[int, bool], list[float]] = {}
    shares: dict[int, float] = {}
    whole = math.fsum(weights)
    for row, weight in zip(rows, weights, strict=True):
        groups.setdefault((row.length, True), []).extend(row.middles)
        groups.setdefault((row.length, False), []).extend(row.outers)
        shares[row.length] = shares.get(row.length, 0.0) + weight / whole
    variance = 0.0
    for (length, _), scores in groups.items():
        drawn = (math.fsum(scores) + 0.5) / (len(scores) + 1)
        spread = (math.fsum(score * score for score in scores) + 0.5) / (len(scores) + 1) - drawn * drawn
        variance += shares[length] ** 2 * spread / len(scores)
    return math.sqrt(variance)


def _verdict(middle: float, edges: float, interval: tuple[float, float], p_value: float, over: Over) -> str:
    difference = middle - edges
    where = "" if over == "texts" else " on these texts"
    figures = f"{middle:.1%} against {edges:.1%}"
    found = f"{figures}, {difference * 100:+.1f} points (95%: {interval[0] * 100:+.1f} to {interval[1] * 100:+.1f})"
    chance = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"
    if p_value < SIGNIFICANT:
        return f"The middle is worse than the edges{where}: {found}, {chance}."
    if abs(difference) < _TINY and middle in (0.0, 1.0):
        return (
            f"Nothing differs{where}: {figures}; a middle up to {-interval[0] * 100:.1f} points worse is not ruled out."
        )
    return f"No sign that the middle is worse than the edges{where}: {found}, {chance}."


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(map(math.prod, zip(values, weights, strict=True))) / math.fsum(weights)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
