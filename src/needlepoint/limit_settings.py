"""What a user may ask of `needlepoint limit`: the settings of a run that say whom and how, and those of the search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from .config import DATASETS, SUBSETS, TaskConfig
from .errors import UsageError
from .fields import share, shown, whole
from .learn.design import ladder
from .learn.effective import Bar
from .learn.search import Search
from .plan.grid import Grid, parse_depths, parse_lengths

SHORTEST, LONGEST = 1_000, 128_000
DEPTHS = "0:100:11"
AT_ONCE = 8
TYPICAL_ANSWER = 32
"""Tokens of an answer, for the choice of lengths alone."""
_NOT_HERE = (
    "datasets", "layout", "lengths", "length_mode", "limit", "repeats", "replicates", "prompts", "batch_results",
    "verify", "score", "judge", "judge_model", "self_check", "fail_under", "metric",
)  # fmt: skip
_LOWEST, _HIGHEST = 0.05, 0.99


def _confidence(value: object) -> float:
    number = share(value)
    if not isinstance(number, float) or not 0.5 <= number <= 0.9999:
        raise ValueError(f"must be from 0.5 to 0.9999, as 0.95, not {shown(value)}")
    return number


class LimitConfig(TaskConfig):
    """A search for the length up to which a model's context holds; in English where no text is named.

    Each trial draws a text offset and a depth of its own, so accuracy is over the mean of `depths`. `budget_tokens` are
    uncached tokens, prompts and answers together.
    """

    min_length: Any = None
    max_length: Any = None
    confidence: Annotated[float, BeforeValidator(_confidence)] = 0.95
    budget_tokens: Annotated[int, whole(1, 10**15)] | None = None

    @classmethod
    def _prepared(cls, values: Any) -> dict[str, Any]:
        given: dict[str, Any] = super()._prepared(values)
        if not given.get("corpus") and not given.get("dataset_args"):
            given["dataset_args"] = {DATASETS[0]: {"subset_list": [SUBSETS[0]]}}
        for name in _NOT_HERE:
            if name in given:
                raise UsageError(
                    f"{name} is no setting of a search, which chooses lengths and trials itself.{_way(name)}"
                )
        return given

    def model_post_init(self, context: Any, /) -> None:
        self.bar()
        shortest, longest = self.shortest, self.longest
        if longest is not None and longest < 2 * shortest:
            raise UsageError(
                f"--max-length {longest:,} is less than twice --min-length {shortest:,}: there is nothing to search."
            )

    @property
    def shortest(self) -> int:
        return SHORTEST if self.min_length is None else _one_length(self.min_length, "--min-length")

    @property
    def longest(self) -> int | None:
        """As given."""
        return None if self.max_length is None else _one_length(self.max_length, "--max-length")

    def longest_under(self, limit_tokens: int | None) -> int:
        """The longest length to look at, for a model that takes so many tokens."""
        longest = self.longest or (LONGEST if limit_tokens is None else limit_tokens)
        if limit_tokens is not None:
            longest = min(longest, limit_tokens - self.sampling().max_tokens)
        if longest < 2 * self.shortest:
            raise UsageError(
                f"There is nothing to search from --min-length {self.shortest:,} to {longest:,} tokens, the longest "
                "prompt that fits. Give a shorter --min-length."
            )
        return longest

    def grid(self) -> Grid:
        """The ends of what is searched, or the whole ladder once it is known: `lengths` are set then."""
        depths = DEPTHS if self.depths is None else self.depths
        lengths = self.lengths or [self.shortest, *([self.longest] if self.longest else [])]
        return Grid.from_specs(lengths, list(parse_depths(depths)))

    def searching(self, limit_tokens: int | None) -> LimitConfig:
        """The same with the ladder of lengths that a model of this limit can be asked."""
        lengths = list(ladder(self.shortest, self.longest_under(limit_tokens)))
        depths = list(parse_depths(DEPTHS if self.depths is None else self.depths))
        return self.model_copy(update={"lengths": lengths, "depths": depths})

    def search(self, subsets: Sequence[str], *, at_once: int = AT_ONCE) -> Search:
        """What is searched for. Call it on what `searching` gives."""
        grid = self.grid()
        return Search(
            lengths=grid.lengths,
            depths=grid.depths,
            subsets=tuple(subsets),
            bar=self.bar(),
            confidence=self.confidence,
            seed=self.seed,
            at_once=at_once,
            budget_tokens=self.budget_tokens,
            answer_tokens=min(TYPICAL_ANSWER, self.sampling().max_tokens),
        )

    def bar(self) -> Bar:
        found = super().bar() or Bar()
        if found.preset is None and not _LOWEST <= found.threshold <= _HIGHEST:
            raise UsageError(
                f"--threshold {found.threshold:g} can't be certified: no number of trials shows that a model never "
                f"misses. Accepted: {_LOWEST:g} to {_HIGHEST:g}."
            )
        return found

    def identity(self) -> dict[str, Any]:
        """With the search in it: other thresholds would have asked other trials."""
        found = super().identity()
        bar = self.bar()
        found["search"] = {"threshold": bar.threshold, "preset": bar.preset, "confidence": self.confidence}
        return found

    def free(self) -> dict[str, Any]:
        budget = {} if self.budget_tokens is None else {"budget_tokens": self.budget_tokens}
        return super().free() | budget


def _one_length(value: object, flag: str) -> int:
    found = parse_lengths(value, flag=flag)
    if len(found) != 1:
        raise UsageError(f"{flag} takes one length such as 16k, not {shown(value)}.")
    return found[0]


def _way(name: str) -> str:
    if name in ("lengths", "limit"):
        return " Give --min-length and --max-length."
    if name.startswith(("score", "judge")):
        return " Answers are scored by the rules; needlepoint score RUN judges them afterwards."
    return ""


def most_tokens(search: Search) -> tuple[int, int]:
    """What locating and certifying take at most: the answer to --dry-run."""
    locating = math.ceil(search.locating_tokens)
    longest = search.lengths[-1]
    certifying = search.most_trials(longest) * search.cost(longest)
    if search.budget_tokens is not None:
        certifying = min(certifying, search.budget_tokens)
    return locating, certifying
