"""How far two scorings of the same replies agree: pass and fail counted against each other, and every disagreement.

A trial passes where it is worth at least `PASS`, or a 7 on a scale from 1 to 10. Cohen's κ = (p_o − p_e) / (1 − p_e) is
the share of agreement above what two scorers with these pass rates would reach by chance (Cohen 1960); it is None where
chance alone would agree always, since then nothing can be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..score.panel import PASS, passes
from ..types import Reply, Score, Trial

_ANSWER_CHARACTERS = 300


def agreement(rows: Iterable[tuple[Trial, Reply, Score, Score]], *, scorer: str, other: str) -> dict[str, Any]:
    """What `report.json` says of two scorings: `rows` have the score of `scorer`, then that of `other`.

    Trials that one of them could not score are only counted. `table` is the confusion table by pass and fail.
    """
    table = {"both_pass": 0, "only_scorer": 0, "only_other": 0, "both_fail": 0}
    names = {(True, True): "both_pass", (True, False): "only_scorer", (False, True): "only_other"}
    unscored, found = 0, []
    for trial, reply, one, two in rows:
        verdicts = passes(one), passes(two)
        if verdicts[0] is None or verdicts[1] is None:
            unscored += one.outcome == "unjudged" or two.outcome == "unjudged"
            continue
        table[names.get((verdicts[0], verdicts[1]), "both_fail")] += 1
        if verdicts[0] is not verdicts[1]:
            found.append(_disagreement(trial, reply, one, two))
    n = sum(table.values())
    agree = table["both_pass"] + table["both_fail"]
    return {
        "scorer": scorer,
        "other": other,
        "pass_at": PASS,
        "n": n,
        "unjudged": unscored,
        "agree": agree,
        "share": round(agree / n, 6) if n else None,
        "kappa": kappa(table["both_pass"], table["only_scorer"], table["only_other"], table["both_fail"]),
        "table": table,
        "disagreements": found,
    }


def kappa(both: int, first: int, second: int, neither: int) -> float | None:
    """Cohen's κ of a table of two by two."""
    n = both + first + second + neither
    if not n:
        return None
    by_chance = ((both + first) * (both + second) + (neither + first) * (neither + second)) / n**2
    if by_chance >= 1:
        return None
    return round(((both + neither) / n - by_chance) / (1 - by_chance), 6)


def _disagreement(trial: Trial, reply: Reply, one: Score, two: Score) -> dict[str, Any]:
    answer = " ".join(reply.text.split())
    return {
        "id": trial.id,
        "subset": trial.subset,
        "context_length": trial.context_length,
        "depth_percent": trial.depth_percent,
        "replicate": trial.replicate,
        "repeat": trial.repeat,
        "scorer": _verdict(one),
        "other": _verdict(two),
        "answer": answer if len(answer) <= _ANSWER_CHARACTERS else answer[: _ANSWER_CHARACTERS - 1] + "…",
    }


def _verdict(score: Score) -> dict[str, Any]:
    found: dict[str, Any] = {"score": score.score, "outcome": score.outcome, "reason": score.reason}
    return found if score.raw is None else {**found, "raw": score.raw}
