"""Scores of some trials, added up: what was asked, what was measured, and which texts it came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..types import VALID_OUTCOMES, Score, Trial
from .intervals import FEWEST_CLUSTERS, LEVEL, Over, Rate, Sums, independent, over_clusters

Cluster = tuple[str, Hashable]
"""A text with its needles: (subset, replicate). Trials of one cluster share it."""


@dataclass(slots=True)
class Tally:
    """Scores of some trials. `clusters` have the valid ones only."""

    n: int = 0
    valid: int = 0
    total: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    clusters: dict[Cluster, Sums] = field(default_factory=dict)

    def add(self, trial: Trial, score: Score, *, fresh: bool = True) -> None:
        """One more trial. `fresh` is False where the same prompt was added before."""
        self.n += 1
        self.outcomes[score.outcome] += 1
        value = measured(score)
        if value is not None:
            self.valid += 1
            self.total += value
            cluster = (trial.subset, trial.replicate)
            total, n, prompts = self.clusters.get(cluster, (0.0, 0, 0))
            self.clusters[cluster] = Sums(total + value, n + 1, prompts + fresh)

    @property
    def score(self) -> float | None:
        return min(1.0, self.total / self.valid) if self.valid else None

    @property
    def coverage(self) -> float | None:
        return self.valid / self.n if self.n else None

    @property
    def prompts(self) -> int:
        """Distinct prompts with a valid answer."""
        return sum(sums.prompts for sums in self.clusters.values())

    def rate(self) -> Rate | None:
        """The score over texts where every subset has enough of them, else over trials; None without a valid one."""
        if not self.valid:
            return None
        strata: dict[str, list[Sums]] = {}
        for (subset, _), sums in self.clusters.items():
            strata.setdefault(subset, []).append(sums)
        return over_clusters(list(strata.values())) or self.rate_of_trials()

    def rate_of_trials(self) -> Rate | None:
        """The score of trials that are taken as independent: those of one cell, each of another text."""
        if not self.valid:
            return None
        over: Over = "texts" if over_texts(self.clusters) else "trials"
        return independent(self.total, self.valid, n_effective=self.prompts, over=over)

    def json(self, rate: Rate | None, level: float = LEVEL) -> dict[str, Any]:
        """A row of a report, with the interval of this rate."""
        return {
            "score": None if self.score is None else round(self.score, 6),
            "interval": None if rate is None else rate.interval(level).pair(),
            "interval_over": None if rate is None else rate.over,
            "n": self.n,
            "valid": self.valid,
            "coverage": None if self.coverage is None else round(self.coverage, 6),
        }


def measured(score: Score) -> float | None:
    """What a trial adds to accuracy; None where it was no valid measurement."""
    return score.score if score.outcome in VALID_OUTCOMES else None


def merged(tallies: Iterable[Tally]) -> Tally:
    """Several tallies as one."""
    whole = Tally()
    for tally in tallies:
        whole.n += tally.n
        whole.valid += tally.valid
        whole.total += tally.total
        whole.outcomes.update(tally.outcomes)
        for cluster, sums in tally.clusters.items():
            total, n, prompts = whole.clusters.get(cluster, (0.0, 0, 0))
            whole.clusters[cluster] = Sums(total + sums.total, n + sums.n, prompts + sums.prompts)
    return whole


def texts_of_each(clusters: Iterable[Cluster]) -> Mapping[str, int]:
    """How many texts each subset has."""
    return Counter(subset for subset, _ in clusters)


def over_texts(clusters: Iterable[Cluster]) -> bool:
    """Whether there are enough texts of each subset to say something about others."""
    return min(texts_of_each(clusters).values(), default=0) >= FEWEST_CLUSTERS
