"""Score grids of any tool: a length, a depth and a score, as rows, as columns, as a nested object, as a table.

Whatever else a row tells by a usual name (model, subset, answer) is taken too. What a grid's numbers mean (a scale,
percent or shares) is told from all of them together, in `settle`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .row import NO_SUBSET, Row, WrongValue, depth_of, facts_of, key_of, length_of, name_of, score_of, shown, text_of

TOOL = "a score grid"
_LENGTH = "context_length token_limit token_limits context_lengths context_len ctx_len length lengths context tokens"
_DEPTH = (
    "depth_percent depth_percents depth depths document_depth document_depths document_depth_percent "
    "document_depth_percents depth_percentage needle_depth"
)
_SCORE = "score scores accuracy acc value values result correct"
_ANSWER = "model_response response answer prediction output"
_MODEL = "model model_name model_id"
_ROWS = "results rows data scores"
_NAMES = {
    kind: names.split()
    for kind, names in {
        "length": _LENGTH,
        "depth": _DEPTH,
        "score": _SCORE,
        "answer": _ANSWER,
        "model": _MODEL,
        "subset": "subset language",
        "needle": "needle needles",
        "question": "question retrieval_question",
        "again": "version seed replicate repeat run trial",
    }.items()
}


def is_row(value: Mapping[str, Any]) -> bool:
    """Whether an object names a length, a depth and a score (or an answer), each once."""
    names = _named(value)
    return (
        {"length", "depth"} <= names.keys() and bool({"score", "answer"} & names.keys()) and not _nested(value, names)
    )


def read_row(value: Mapping[str, Any], where: str) -> Row:
    names = _named(value)
    depth, unit = depth_of(value[names["depth"]], names["depth"])
    found = {
        kind: value.get(names[kind]) if kind in names else None for kind in ("answer", "model", "subset", "question")
    }
    text = text_of(found["answer"], names.get("answer", ""))
    facts = facts_of(
        value.get(names["needle"]) if "needle" in names else None,
        text_of(found["question"], "question"),
        else_seed=text is not None,
    )
    return Row(
        tool=TOOL,
        where=where,
        model=name_of(found["model"], names.get("model", "")),
        subset=name_of(found["subset"], "subset") or NO_SUBSET,
        context_length=length_of(value[names["length"]], names["length"]),
        depth=depth,
        depth_unit=unit,
        raw=score_of(value.get(names["score"]), names["score"]) if "score" in names else None,
        text=text,
        needles=facts.needles,
        answers=facts.answers,
        question=facts.question,
        assumed=facts.assumed,
        again=key_of(value.get(names["again"])) if "again" in names else None,
    )


def unfold(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]] | None:
    """The rows of a grid that is one object, or None where it is none. WrongValue where it can be read in two ways."""
    names = _named(value)
    common = {names[kind]: value[names[kind]] for kind in ("model", "subset") if kind in names}
    for name in _ROWS.split():
        rows = value.get(name)
        if isinstance(rows, list) and rows and all(isinstance(row, Mapping) for row in rows):
            return ({**common, **row} for row in rows)
    if {"length", "depth", "score"} <= names.keys() and _nested(value, names):
        parts = [_column(value[names[kind]]) for kind in ("length", "depth", "score")]
        return ({**common, **row} for row in _columns(*parts))
    if value and all(isinstance(part, Mapping) and part for part in value.values()):
        cells = {outer: dict(part) for outer, part in value.items()}
        if all(_is_number(name) for part in (cells, *cells.values()) for name in part):
            return _table(cells)
    return None


def table_rows(header: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[Mapping[str, Any]]:
    """Rows of a table: by its column names, or, where these are numbers, one row for each field of a pivot table."""
    if len(header) > 2 and all(_is_number(name) for name in header[1:]):
        yield from _table({row[0]: dict(zip(header[1:], row[1:], strict=False)) for row in rows if any(row)})
        return
    for row in rows:
        yield dict(zip(header, row, strict=False))


def _named(value: Mapping[str, Any]) -> dict[str, str]:
    """Which of an object's names says what; the first of several."""
    plain = {re.sub(r"[\s_-]+", "_", name.strip().lower()).removesuffix("_%"): name for name in reversed(list(value))}
    found = {}
    for kind, names in _NAMES.items():
        for name in names:
            if name in plain:
                found[kind] = plain[name]
                break
    return found


def _nested(value: Mapping[str, Any], names: Mapping[str, str]) -> bool:
    return any(isinstance(value[names[kind]], list | Mapping) for kind in ("length", "depth", "score") if kind in names)


def _column(value: object) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list):
        return value
    raise WrongValue(f"of lengths, depths and scores some are lists, and one is {shown(value)}")


def _columns(lengths: list[Any], depths: list[Any], scores: list[Any]) -> Iterator[Mapping[str, Any]]:
    """Three columns side by side, or a matrix of scores with its two axes."""
    if any(isinstance(row, list) for row in scores):
        yield from _matrix(lengths, depths, scores)
        return
    if not len(lengths) == len(depths) == len(scores):
        raise WrongValue(f"there are {len(lengths)} lengths, {len(depths)} depths and {len(scores)} scores")
    for length, depth, score in zip(lengths, depths, scores, strict=True):
        yield _cell(length, depth, score)


def _matrix(lengths: list[Any], depths: list[Any], scores: list[Any]) -> Iterator[Mapping[str, Any]]:
    shapes = {len(row) if isinstance(row, list) else 0 for row in scores}
    shape = (len(scores), *shapes)
    by_length, by_depth = (len(lengths), len(depths)), (len(depths), len(lengths))
    if shape not in (by_length, by_depth):
        raise WrongValue(f"the scores are no table of {len(lengths)} lengths and {len(depths)} depths")
    if by_length == by_depth and len(lengths) > 1:
        raise WrongValue(
            "the table of scores is as wide as it is high, so that nobody can tell lengths from depths. Give one row "
            "for each cell instead"
        )
    for outer, row in zip(lengths if shape == by_length else depths, scores, strict=True):
        for inner, score in zip(depths if shape == by_length else lengths, row, strict=True):
            yield _cell(outer, inner, score) if shape == by_length else _cell(inner, outer, score)


def _table(cells: Mapping[str, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """{length: {depth: score}} or {depth: {length: score}}: depths are all within 100, lengths are not."""
    outer, inner = list(cells), [name for part in cells.values() for name in part]
    if _are_lengths(outer) and _are_depths(inner):
        return (_cell(length, depth, score) for length, part in cells.items() for depth, score in part.items())
    if _are_depths(outer) and _are_lengths(inner):
        return (_cell(length, depth, score) for depth, part in cells.items() for length, score in part.items())
    raise WrongValue(
        "it is a table of scores, and nobody can tell its lengths (some above 100) from its depths (none above 100). "
        "Give one row for each cell instead"
    )


def _cell(length: object, depth: object, score: object) -> Mapping[str, Any]:
    return {"context_length": length, "depth_percent": depth, "score": score}


def _are_lengths(names: Sequence[str]) -> bool:
    try:
        return max(length_of(name, "") for name in names) > 100
    except WrongValue:
        return False


def _are_depths(names: Sequence[str]) -> bool:
    try:
        return all(depth_of(name, "") for name in names)
    except WrongValue:
        return False


def _is_number(name: str) -> bool:
    return bool(re.fullmatch(r"\s*[\d.,]+\s*[kKmM%]?\s*", name))
