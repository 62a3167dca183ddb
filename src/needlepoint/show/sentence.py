"""A result in one sentence: how much is found, up to where, and where it is weakest. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .facts import coverage, interval, number, record, records, square
from .labels import Lang, word
from .words import length_label, percent

_WEAK_BY = 0.05
"""A depth is called weak where it is this much under the best one; neighbours in the lowest quarter belong to it."""


def result_sentence(row: Mapping[str, Any], lang: Lang = "en") -> str:
    """`Finds 97.3% [94.0, 99.0] of needles up to 32k; effective length ≥ 32k at 85%; weakest at 40–60% depth`.

    `row` is a whole report or one of its subsets. What is not known is not said.
    """
    return ("；" if lang == "zh" else "; ").join(result_clauses(row, lang))


def result_clauses(row: Mapping[str, Any], lang: Lang = "en") -> list[str]:
    """The sentence's parts. Of a search for the limit they are what it found: its score depends on where it looked."""
    if search := record(row.get("search")):
        return _searched(search, lang)
    whole = record(row.get("overall")) or row
    said = [_finds(row, whole, lang)]
    share = coverage(whole)
    if share is not None and 0 < share < 1:
        said.append(word("measured", lang, coverage=percent(share)))
    if (text := effective_words(row, lang)) is not None:
        said.append(text)
    if (weak := weakest_depths(row)) is not None:
        low, high = weak
        depths = f"{low:.0f}%" if low == high else f"{low:.0f}–{high:.0f}%"
        said.append(word("weakest", lang, depths=depths))
    return said


def _searched(search: Mapping[str, Any], lang: Lang) -> list[str]:
    certified, threshold = number(search.get("certified")), percent(number(search.get("threshold")))
    level = {
        "threshold": threshold.replace(".0%", "%"),
        "confidence": f"{number(search.get('confidence')) or 0.95:.0%}",
    }
    said = [word("certified_none", lang, **level)]
    if certified is not None:
        said = [word("certified_at", lang, length=length_label(int(certified)), **level)]
    estimate = record(search.get("estimate"))
    length, ends = number(estimate.get("length")), interval(estimate.get("interval"))
    if length is not None:
        sure = "" if ends is None else f" [{length_label(int(ends[0]))}, {length_label(int(ends[1]))}]"
        if estimate.get("at_least"):
            said.append(word("limit_beyond", lang, length=length_label(int(length))))
        else:
            said.append(word("limit_about", lang, length=length_label(int(length)) + sure))
    return [*said, word("adaptive", lang)]


def _finds(row: Mapping[str, Any], whole: Mapping[str, Any], lang: Lang) -> str:
    score = number(whole.get("score"))
    if score is None:
        return word("nothing_measured", lang)
    ends = interval(whole.get("interval"))
    text = percent(score) if ends is None else f"{percent(score)} [{_points(ends[0])}, {_points(ends[1])}]"
    lengths = [length for subset in _subsets(row) for length in _measured_lengths(subset)]
    more = word("up_to", lang, length=length_label(max(lengths))) if lengths else ""
    return word("finds", lang, score=text) + more


def effective_words(row: Mapping[str, Any], lang: Lang = "en") -> str | None:
    """`effective length ≥ 32k at 85%`, or None where it is not known."""
    found = effective_length(row)
    if found is None:
        return None
    threshold, length, at_least = found
    level = percent(threshold).replace(".0%", "%")
    if length is None:
        return word("effective_none", lang, threshold=level)
    shown = ("≥ " if at_least else "") + length_label(length)
    return word("effective_at", lang, length=shown, threshold=level)


def effective_length(row: Mapping[str, Any]) -> tuple[float, int | None, bool] | None:
    """Threshold, length (None: not even the shortest) and whether it never fell; None where it was not computed."""
    told = record(row.get("effective_length"))
    threshold, mean = number(told.get("threshold")), record(told.get("mean"))
    if threshold is None or not mean:
        return None
    length = number(mean.get("length"))
    return threshold, None if length is None else int(length), bool(mean.get("at_least")) and length is not None


def weakest_depths(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """The run of depths around the lowest score; None where depths hardly differ or are not known."""
    scores: dict[float, list[tuple[float, float]]] = {}
    for subset in _subsets(row):
        for line in records(subset.get("depths")):
            depth, told = number(line.get("depth_percent")), square(line)
            if depth is not None and told.score is not None:
                scores.setdefault(depth, []).append((told.score, float(told.valid or 1)))
    depths = sorted(scores)
    if len(depths) < 2:
        return None
    means = [sum(s * w for s, w in scores[depth]) / sum(w for _, w in scores[depth]) for depth in depths]
    if max(means) - min(means) < _WEAK_BY:
        return None
    first = last = means.index(min(means))
    limit = min(means) + (max(means) - min(means)) / 4
    while first > 0 and means[first - 1] <= limit:
        first -= 1
    while last + 1 < len(means) and means[last + 1] <= limit:
        last += 1
    return None if last - first + 1 == len(depths) else (depths[first], depths[last])


def _subsets(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return records(row.get("subsets")) if "subsets" in row else [row]


def _measured_lengths(subset: Mapping[str, Any]) -> list[int]:
    rows = records(subset.get("lengths")) or records(subset.get("cells"))
    found = ((number(row.get("context_length")), number(row.get("score"))) for row in rows)
    return [int(length) for length, score in found if length is not None and score is not None]


def _points(share: float) -> str:
    return percent(share).removesuffix("%")
