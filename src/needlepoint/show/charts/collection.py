"""All charts that a report, or several, have something for, by the name of their file. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ..facts import records, subsets_of
from .curves import accuracy_spec, position_spec
from .difference import difference_spec
from .heatmap import heatmap_spec
from .margin import margin_spec
from .multiples import Runs, accuracy_of_runs_spec, multiples_spec
from .needles import recall_spec
from .outcomes import outcomes_spec
from .pace import latency_spec, tokens_spec
from .theme import ChartLook

Spec = dict[str, Any]
_OF_ONE: Mapping[str, tuple[str, Callable[[Mapping[str, Any], ChartLook | None], Spec | None]]] = {
    "accuracy": ("accuracy_by_length", accuracy_spec),
    "position": ("accuracy_by_depth", position_spec),
    "outcomes": ("outcomes_by_length", outcomes_spec),
    "latency": ("latency_by_length", latency_spec),
    "tokens": ("tokens_by_length", tokens_spec),
    "recall": ("recall_of_needles", recall_spec),
    "margin": ("margin_by_length", margin_spec),
}
_HEATMAP = "needle_haystack_heatmap"
CHARTS = ("heatmap", *_OF_ONE)
"""What a run has charts of. A report that knows nothing of a thing has no chart of it."""
FILES: Mapping[str, str] = {"heatmap": f"{_HEATMAP}_", **{key: name for key, (name, _) in _OF_ONE.items()}}
"""What the names of a chart's files begin with."""


def specs_of(
    report: Mapping[str, Any], look: ChartLook | None = None, which: tuple[str, ...] = CHARTS
) -> dict[str, Spec]:
    """One run's charts; a heatmap for each subset: `needle_haystack_heatmap_english` and so on."""
    found: dict[str, Spec] = {}
    if "heatmap" in which:
        for subset in subsets_of(report):
            name = str(subset.get("name") or "all")
            found[_free(f"{_HEATMAP}_{file_name(name)}", found)] = heatmap_spec(report, name, look)
    for key, (name, make) in _OF_ONE.items():
        if key in which and (spec := make(report, look)) is not None:
            found[name] = spec
    return found


def heatmap_specs(report: Mapping[str, Any], look: ChartLook | None = None) -> dict[str, Spec]:
    """The heatmaps alone."""
    return specs_of(report, look, ("heatmap",))


def specs_of_several(
    runs: Runs,
    look: ChartLook | None = None,
    *,
    notable: Mapping[str, Collection[tuple[int, float]]] | None = None,
) -> dict[str, Spec]:
    """Several runs' charts, for each subset: small heatmaps, a curve of each, the difference where they are two.

    Layouts measure different things, so there is no difference between them. `notable` cells of a subset are outlined.
    """
    found: dict[str, Spec] = {}
    names = [str(row.get("name") or "all") for report in runs.values() for row in records(report.get("subsets"))]
    for subset in dict.fromkeys(names):
        made = {
            f"{_HEATMAP}s": multiples_spec(runs, subset, look),
            "accuracy_by_length": accuracy_of_runs_spec(runs, subset, look),
        }
        if len(runs) == 2 and len({report.get("layout") for report in runs.values()}) == 1:
            (a, before), (b, after) = runs.items()
            outlined = (notable or {}).get(subset, ())
            made["difference"] = difference_spec(before, after, subset, look, names=(a, b), notable=outlined)
        for name, spec in made.items():
            if spec is not None:
                found[_free(f"{name}_{file_name(subset)}", found)] = spec
    return found


def file_name(name: str) -> str:
    """A name from anywhere as a part of a file's name: letters and digits of any script, not too long."""
    return re.sub(r"[^\w.-]+", "-", name)[:60].strip("-.") or "all"


def _free(name: str, taken: Mapping[str, object]) -> str:
    return next(one for i in range(1, 10_000) if (one := name if i == 1 else f"{name}-{i}") not in taken)
