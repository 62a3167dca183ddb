"""How much work something is, as a count that no busy machine changes: lines of Python that ran."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python code `work` runs, in this thread."""
    count = 0

    def watch(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
