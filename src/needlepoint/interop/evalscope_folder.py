"""A run folder of EvalScope: predictions and reviews of one sample brought together, else the cells of its reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from .evalscope import (
    BENCHMARK,
    TOOL,
    Sample,
    is_prediction,
    is_report,
    is_review,
    joined,
    read_prediction,
    read_report,
    read_review,
    subset_of,
)
from .opened import Opened
from .row import NO_SUBSET, Row, WrongValue

_FIRST = "english"
_PARTS = ("predictions", "reviews", "reports")


def is_run_folder(path: Path) -> bool:
    """Whether a folder is one of EvalScope's runs."""
    return any((path / part).is_dir() for part in _PARTS)


def read_run_folder(path: Path, name: str, read: list[Opened], notes: list[str]) -> Iterator[Row]:
    """The results of each model of a run. InputError where there are none of this benchmark."""
    name = name.rstrip("/")
    found = {part: _files(path / part, f"{name}/{part}", ".json" if part == "reports" else ".jsonl") for part in _PARTS}
    samples = sorted({*found["predictions"], *found["reviews"]}, key=lambda part: (part[0], part[1] != _FIRST, part[1]))
    if not samples and not found["reports"]:
        raise InputError(f"{name} has no results of {BENCHMARK}: is this a run of another benchmark?")
    for model, subset in samples:
        predictions = _samples(found["predictions"].get((model, subset)), is_prediction, read_prediction, read)
        reviews = _samples(found["reviews"].get((model, subset)), is_review, read_review, read)
        yield from _together(predictions, reviews, model=model, subset=subset)
    told = {model for model, _ in samples}
    for (model, _), file in sorted(found["reports"].items()):
        if model not in told:
            notes.append(f"{file.name} has mean scores only: no answers, and nobody can tell how many each is of.")
            read.append(file)
            for where, value in file:
                if not isinstance(value, Mapping) or not is_report(value):
                    raise InputError(f"{where}: is no report of {TOOL}.")
                try:
                    yield from read_report(value, where)
                except WrongValue as error:
                    raise InputError(f"{where}: {error}.") from None


def read_samples(values: Iterable[tuple[str, Any]], path: Path, name: str) -> Iterator[Row]:
    """The results of one file of predictions or of reviews, without the other."""
    subset = subset_of(path.name)
    predictions: dict[int, Sample] = {}
    reviews: dict[int, Sample] = {}
    for where, value in values:
        kind = value if isinstance(value, Mapping) else {}
        into, one = (predictions, read_prediction) if is_prediction(kind) else (reviews, read_review)
        if into is reviews and not is_review(kind):
            raise InputError(f"{where}: is neither a prediction nor a review of {TOOL}.")
        sample = _checked(one, value, where)
        into[sample.index] = sample
    yield from _together(predictions, reviews, model=path.parent.name or None, subset=subset or NO_SUBSET)


def _files(folder: Path, name: str, suffix: str) -> dict[tuple[str, str], Opened]:
    """(model, subset) → file, of this benchmark only."""
    found: dict[tuple[str, str], Opened] = {}
    try:
        for model in sorted(folder.iterdir()) if folder.is_dir() else ():
            for file in sorted(model.iterdir()) if model.is_dir() else ():
                if file.suffix == suffix and (subset := subset_of(file.name)) is not None:
                    found[model.name, subset] = Opened(file, f"{name}/{model.name}/{file.name}")
    except OSError as error:
        raise InputError(f"Cannot read {name}: {error.strerror or error}.") from None
    return found


def _samples(
    file: Opened | None,
    is_one: Callable[[Mapping[str, Any]], bool],
    read_one: Callable[[Mapping[str, Any], str], Sample],
    read: list[Opened],
) -> dict[int, Sample]:
    """By index; of several with one index, the last, which is the one that EvalScope itself goes on with."""
    found: dict[int, Sample] = {}
    if file is not None:
        read.append(file)
        for where, value in file:
            if not isinstance(value, Mapping) or not is_one(value):
                raise InputError(f"{where}: is not what {TOOL} writes here.")
            sample = _checked(read_one, value, where)
            found[sample.index] = sample
    return found


def _together(
    predictions: Mapping[int, Sample], reviews: Mapping[int, Sample], *, model: str | None, subset: str
) -> Iterator[Row]:
    for index in sorted({*predictions, *reviews}):
        first = predictions.get(index) or reviews[index]
        try:
            yield joined(predictions.get(index), reviews.get(index), model=model, subset=subset)
        except WrongValue as error:
            raise InputError(f"{first.where}: {error}.") from None


def _checked(read_one: Callable[[Mapping[str, Any], str], Sample], value: Mapping[str, Any], where: str) -> Sample:
    try:
        return read_one(value, where)
    except WrongValue as error:
        raise InputError(f"{where}: {error}.") from None
