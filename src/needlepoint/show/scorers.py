"""In words: who scored, what judges took, and how far two scorings agree. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .words import one_line, percent, short_number


def scoring_words(report: Mapping[str, Any]) -> Iterator[str]:
    """One line for the scorer, where it is not the rules alone, and one for its agreement with another."""
    scorer, judge, agreement = (report.get(name) for name in ("scorer", "judge", "agreement"))
    if isinstance(scorer, str) and (scorer != "rules" or isinstance(judge, Mapping)):
        yield f"Scored by: {one_line(scorer)}{_judge(judge, scorer)}"
    if isinstance(judge, Mapping) and isinstance(note := judge.get("note"), str) and judge.get("scorer") == scorer:
        yield f"  {one_line(note)}"
    if isinstance(agreement, Mapping) and agreement.get("n"):
        yield f"Agreement: {_agreement(agreement)}"


def _judge(judge: object, scorer: str) -> str:
    """Who judged, and what it took: booked apart from the model's own tokens."""
    if not isinstance(judge, Mapping):
        return ""
    models = [one_line(str(one.get("id"))) for one in judge.get("models") or () if isinstance(one, Mapping)]
    whose = ", ".join(models) if judge.get("scorer") == scorer else f"also judged by {', '.join(models)}"
    tokens = judge.get("tokens")
    tokens = tokens if isinstance(tokens, Mapping) else {}
    says = [f"{short_number(float(judge['requests']))} requests"] if isinstance(judge.get("requests"), int) else []
    for name, verb in (("prompt", "read"), ("completion", "written")):
        if isinstance(count := tokens.get(name), int):
            says.append(f"{short_number(count)} tokens {verb}")
    if isinstance(cost := judge.get("cost"), int | float):
        says.append(f"cost {cost:,.{2 if cost >= 1 else 4}f}, not in the run's own")
    return f" ({whose}{'; ' if says else ''}{', '.join(says)})"


def _agreement(found: Mapping[str, Any]) -> str:
    scorer, other = (one_line(str(found.get(name))) for name in ("scorer", "other"))
    table = found.get("table")
    table = table if isinstance(table, Mapping) else {}
    kappa = found.get("kappa")
    told = "κ not known: all pass or all fail" if not isinstance(kappa, int | float) else f"κ {kappa:.2f}"
    line = f"{scorer} and {other} agree on {percent(found.get('share'))} of {found['n']:,} answers ({told})"
    differ = [
        f"{table[name]:,} pass only by {by}"
        for name, by in (("only_scorer", scorer), ("only_other", other))
        if isinstance(table.get(name), int) and table[name]
    ]
    return f"{line}; {', '.join(differ)}: report.json lists them" if differ else line
