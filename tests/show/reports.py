"""Reports for tests of what is shown, made by hand: any grid, any score, any outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

VALID = ("correct", "partial", "wrong", "not_found", "refused")
Rule = Callable[[int, float], "dict[str, Any] | None"]


def cell(length: int, depth: float, score: float | None, *, n: int = 1, **outcomes: int) -> dict[str, Any]:
    """One cell; without outcomes, all its trials are correct or wrong by its score."""
    if not outcomes and score is not None:
        right = round(score * n)
        outcomes = {name: count for name, count in (("correct", right), ("wrong", n - right)) if count}
    valid = sum(outcomes.get(name, 0) for name in VALID)
    total = sum(outcomes.values())
    ends = None if score is None else [max(0.0, round(score - 0.2, 6)), min(1.0, round(score + 0.1, 6))]
    return {
        "context_length": length,
        "depth_percent": depth,
        "score": score,
        "interval": ends,
        "n": total,
        "valid": valid,
        "coverage": valid / total if total else None,
        "outcomes": outcomes,
    }


def tally(cells: Iterable[dict[str, Any]]) -> dict[str, Any]:
    cells = list(cells)
    n, valid = sum(one["n"] for one in cells), sum(one["valid"] for one in cells)
    total = sum((one["score"] or 0.0) * one["valid"] for one in cells)
    score = round(total / valid, 6) if valid else None
    ends = None if score is None else [max(0.0, round(score - 0.03, 6)), min(1.0, round(score + 0.02, 6))]
    return {"score": score, "interval": ends, "n": n, "valid": valid, "coverage": valid / n if n else None}


def subset(name: str, cells: Sequence[dict[str, Any]], effective: dict[str, Any] | None = None) -> dict[str, Any]:
    lengths = sorted({one["context_length"] for one in cells})
    depths = sorted({one["depth_percent"] for one in cells})
    return {
        "name": name,
        **tally(cells),
        "lengths": [
            {"context_length": length, **tally(one for one in cells if one["context_length"] == length)}
            for length in lengths
        ],
        "depths": [
            {"depth_percent": depth, **tally(one for one in cells if one["depth_percent"] == depth)} for depth in depths
        ],
        "cells": list(cells),
        "effective_length": effective,
        "position": None,
    }


def report(*subsets: dict[str, Any], model: str = "gpt-4", **more: Any) -> dict[str, Any]:
    cells = [one for row in subsets for one in row["cells"]]
    outcomes: Counter[str] = Counter()
    for one in cells:
        outcomes.update(one["outcomes"])
    head = {"schema": 1, "model": model, "dataset": "needle_haystack", "layout": "classic", "length_mode": "exact"}
    return {
        **head,
        "overall": tally(cells),
        "subsets": list(subsets),
        "outcomes": dict(outcomes),
        "effective_length": None,
        "interval_level": 0.95,
        **more,
    }


def grid(lengths: Sequence[int], depths: Sequence[float], rule: Rule | None = None) -> list[dict[str, Any]]:
    """Cells of a whole grid; a rule makes each one, None leaves it out. Without one all is found."""
    made = [rule(a, b) if rule is not None else cell(a, b, 1.0) for a in lengths for b in depths]
    return [one for one in made if one is not None]


def effective(length: int | None, *, at_least: bool = False, threshold: float = 0.85) -> dict[str, Any]:
    found = {
        "length": length,
        "at_least": at_least,
        "interval": None,
        "certified": None,
        "stopped_by": None if at_least else "score",
        "reason": "",
    }
    return {"threshold": threshold, "preset": None, "mean": found, "worst_depth": found}
