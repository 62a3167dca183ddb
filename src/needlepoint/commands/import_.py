"""`needlepoint import FILE...`: other tools' published results, as run folders."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import get_args

from ..errors import UsageError
from ..importing import WORK_DIR, import_results
from ..interop.row import DepthUnit
from ..score.imported import Scale
from ..show.console import notify
from ..show.table import show_report


def import_files(
    files: Sequence[str],
    *,
    work_dir: str | None,
    model: str | None,
    scale: str | None,
    depth_unit: str | None,
    as_json: bool,
) -> None:
    """What the command does, from its flags to its tables."""
    results = import_results(
        *files,
        work_dir=WORK_DIR if work_dir is None else work_dir,
        model=model,
        scale=None if scale is None else _scale(scale),
        depth_unit=None if depth_unit is None else _unit(depth_unit),
        notify=notify,
    )
    if as_json:
        found = [{"folder": str(result.folder), "report": result.report} for result in results]
        print(json.dumps(found, ensure_ascii=False, indent=2))
    for result in results:
        if not as_json:
            show_report(result.report)
        notify(f"Run folder: {result.folder}")
        notify(f"Its pictures and page: needlepoint report {result.folder}")


def _scale(text: str) -> Scale:
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        low = high = math.nan
    if not low < high:
        raise UsageError(f"--scale must be two numbers, the lower one first, such as 1:10; not {text!r}.")
    return low, high


def _unit(text: str) -> DepthUnit:
    for unit in get_args(DepthUnit):
        if text == unit:
            found: DepthUnit = unit
            return found
    raise UsageError(f"--depth-unit must be percent or fraction, not {text!r}.")
