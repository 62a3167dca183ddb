"""What people get of a run: pictures and files, made from its folder alone, the same bytes each time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .ask.folders import find_run
from .ask.store import RunFolder
from .errors import InputError, UsageError, did_you_mean
from .scoring import REPORT
from .show import charts
from .show.charts import ChartLook

SCHEMA = 1
FORMATS = ("png", "svg")


def make_report(
    folder: RunFolder,
    formats: Sequence[str] = FORMATS,
    *,
    look: ChartLook | None = None,
) -> list[Path]:
    """Write these formats of a run's report into its folder; returns the paths in the order of their making.

    Nothing but the folder decides the bytes: no clock, no machine, no network.
    """
    for name in formats:
        if name not in FORMATS:
            raise UsageError(f"Unknown format {name!r}.{did_you_mean(name, FORMATS)} Known: {', '.join(FORMATS)}.")
    report = read_report(folder.path)
    made: list[Path] = []
    if {"png", "svg"} & set(formats):
        for name, spec in charts.heatmap_specs(report, look).items():
            drawn = charts.svg(spec)
            if "png" in formats:
                made.append(folder.write_bytes(f"{name}.png", charts.png_of_svg(drawn)))
            if "svg" in formats:
                made.append(folder.write_text(f"{name}.svg", drawn))
    return made


def read_report(run: Path) -> dict[str, Any]:
    """What `report.json` of a run says. Raises InputError where there is none, or one of a later schema."""
    path = find_run(run) / REPORT
    try:
        report = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}. Has the run ended?") from None
    except ValueError as error:
        raise InputError(f"{path} is no JSON ({error}).") from None
    if not isinstance(report, Mapping) or not isinstance(report.get("schema"), int):
        raise InputError(f"{path} is no report: it names no schema.")
    if report["schema"] > SCHEMA:
        raise InputError(f"{path} has schema {report['schema']}, made by a newer needlepoint. Update this one.")
    return dict(report)
