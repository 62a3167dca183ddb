"""`needlepoint compare A B [...]`: is B worse than A? An answer for people, and an exit code for CI."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..comparison import CompareResult, compare
from ..errors import UsageError, did_you_mean
from ..files import checked_target, write_text
from ..show.console import notify
from ..show.versus import show_comparisons

SUMMARIES = ("md", "junit")


def compare_runs(
    runs: Sequence[str],
    *,
    unpaired: bool,
    scorer: str | None,
    margin: str | None,
    fail_if_worse: str | None,
    max_lost: str | None,
    fail_if_margin_worse: str | None,
    flips: object,
    seed: object,
    summary: str | None,
    out: str | None,
    as_json: bool,
) -> int:
    """What the command does; returns its exit code."""
    if len(runs) < 2:
        raise UsageError("compare needs two runs or more: the first is what the others are measured by.")
    if summary is not None and summary not in SUMMARIES:
        raise UsageError(f"--summary must be md or junit, not {summary!r}.{did_you_mean(summary, SUMMARIES)}")
    if out is not None and summary is None:
        raise UsageError("--out is where --summary goes. Give --summary md or --summary junit, too.")
    if as_json and summary is not None and out in (None, "-"):
        raise UsageError("--json and --summary both want standard output. Give --out a file.")
    most, dice = _count(flips, "--flips"), _count(seed, "--seed") or 0
    target = None if out in (None, "-") else checked_target(out or "", "--out")
    found = compare(
        *runs,
        unpaired=unpaired,
        scorer=scorer,
        margin=margin,
        fail_if_worse=fail_if_worse,
        max_lost=max_lost,
        fail_if_margin_worse=fail_if_margin_worse,
        seed=dice,
        notify=notify,
    )
    text = found.junit() if summary == "junit" else found.markdown(most_flips=20 if most is None else most)
    if target is not None:
        write_text(target, [text])
    if as_json:
        print(json.dumps(found.json(), ensure_ascii=False, indent=2))
    elif summary is not None and target is None:
        print(text, end="")
    else:
        show_comparisons(found.judged(), gate=found.gate, most_flips=6 if most is None else most)
    return _exit_code(found)


def _exit_code(found: CompareResult) -> int:
    """1 where a bar is missed, 3 where nothing could be compared, else 0."""
    if found.passed is False:
        for one in found.comparisons:
            for short in found.shortfalls(one):
                notify(f"{one.other}: {short.says}.")
        return 1
    if not found.is_measured:
        notify("Not one question was measured by both runs: there is nothing to compare.")
        return 3
    return 0


def _count(value: object, flag: str) -> int | None:
    if value is not None and (not isinstance(value, int) or value < 0):
        raise UsageError(f"{flag} must be a whole number from 0 on, not {value!r}.")
    return value
