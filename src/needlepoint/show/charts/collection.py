"""All charts that a report has something for, by the name of their file. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..facts import subsets_of
from .heatmap import heatmap_spec
from .theme import ChartLook

Spec = dict[str, Any]


def heatmap_specs(report: Mapping[str, Any], look: ChartLook | None = None) -> dict[str, Spec]:
    """One heatmap for each subset: `needle_haystack_heatmap_english` and so on."""
    found: dict[str, Spec] = {}
    for subset in subsets_of(report):
        name = str(subset.get("name") or "all")
        found[_free(f"needle_haystack_heatmap_{file_name(name)}", found)] = heatmap_spec(report, name, look)
    return found


def file_name(name: str) -> str:
    """A name from anywhere as a part of a file's name: letters and digits of any script, not too long."""
    return re.sub(r"[^\w.-]+", "-", name)[:60].strip("-.") or "all"


def _free(name: str, taken: Mapping[str, object]) -> str:
    return next(one for i in range(1, 10_000) if (one := name if i == 1 else f"{name}-{i}") not in taken)
