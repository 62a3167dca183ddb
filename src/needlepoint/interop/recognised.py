"""Whose results a file or folder holds: the registry of shapes, and the rows that they are read as.

Shapes are tried in order, the most telling one first. A new tool is one file here and one line in `_SHAPES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..ask.folders import RUN
from ..errors import InputError
from . import evalscope, needlehaystack, niah, scores
from .evalscope_folder import is_run_folder, read_run_folder, read_samples
from .opened import Opened
from .row import Row, WrongValue

_FILES = (".json", ".jsonl", ".csv", ".tsv")
_KNOWN = (
    "gkamradt's answers (2023) and niah rows (2026), EvalScope's predictions, reviews and reports, and score grids "
    "with a length, a depth and a score"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A tool's objects: how they are told, and how one is read."""

    is_row: Callable[[Mapping[str, Any]], bool]
    read_row: Callable[[Mapping[str, Any], str], Row]


_SHAPES = (
    Shape(niah.is_row, niah.read_row),
    Shape(needlehaystack.is_row, needlehaystack.read_row),
    Shape(scores.is_row, scores.read_row),
)


def read_results(paths: Iterable[tuple[Path, str]], read: list[Opened], notes: list[str]) -> Iterator[Row]:
    """The results in files and folders; (path, as it was given) each. What was read is added to `read`.

    InputError with file and line for whatever cannot be read, or is no result.
    """
    for path, name in paths:
        if path.is_dir():
            yield from _folder(path, name, read, notes)
        elif path.exists():
            yield from _file(path, name, read)
        else:
            raise InputError(f"{name} does not exist. Give a file or folder of results.")


def _folder(path: Path, name: str, read: list[Opened], notes: list[str]) -> Iterator[Row]:
    if (path / RUN).is_file():
        raise InputError(f"{name} is a needlepoint run already: needlepoint show, score and report take it as it is.")
    if is_run_folder(path):
        yield from read_run_folder(path, name, read, notes)
        return
    try:
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in _FILES and file.name[0] != ".")
        inside = sorted(folder.name for folder in path.iterdir() if folder.is_dir() and is_run_folder(folder))
    except OSError as error:
        raise InputError(f"Cannot read {name}: {error.strerror or error}.") from None
    if inside:
        raise InputError(
            f"{name} holds {len(inside)} EvalScope runs. Give the folder of one: {', '.join(inside[-3:])}."
        )
    if not files:
        raise InputError(f"{name} holds no results: no file in it ends in {', '.join(_FILES)}.")
    for file in files:
        yield from _file(file, f"{name.rstrip('/')}/{file.name}", read)


def _file(path: Path, name: str, read: list[Opened]) -> Iterator[Row]:
    opened = Opened(path, name)
    read.append(opened)
    values = iter(opened)
    first = next(values, None)
    if first is None:
        raise InputError(f"{name} is empty.")
    rest = _with(first, values)
    if isinstance(first[1], Mapping) and (evalscope.is_prediction(first[1]) or evalscope.is_review(first[1])):
        yield from read_samples(rest, path, name)
        return
    for where, value in rest:
        yield from _rows(where, value)


def _with(first: tuple[str, Any], values: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    yield first
    yield from values


def _rows(where: str, value: object) -> Iterator[Row]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: is no result. Known are {_KNOWN}.")
    try:
        if evalscope.is_report(value):
            yield from evalscope.read_report(value, where)
            return
        if (row := _row(where, value)) is not None:
            yield row
            return
        if "subsets" in value and "schema" in value:
            raise WrongValue("it is a needlepoint report already. Give the run's folder to needlepoint report")
        parts = scores.unfold(value)
        if parts is None:
            raise WrongValue(f"it is no result. Known are {_KNOWN}")
        for number, part in enumerate(parts, start=1):
            if (row := _row(f"{where}, entry {number}", part)) is None:
                raise WrongValue(f"its entry {number} is no result. Known are {_KNOWN}")
            yield row
    except WrongValue as error:
        raise InputError(f"{where}: {error}.") from None


def _row(where: str, value: Mapping[str, Any]) -> Row | None:
    for shape in _SHAPES:
        if shape.is_row(value):
            return shape.read_row(value, where)
    return None
