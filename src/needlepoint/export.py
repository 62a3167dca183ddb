"""Prompts as files and as numbers: the seed's sample shape, provider batch files, and data statistics."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from .errors import OutputError, UsageError
from .plan.prompt import Prompt, fingerprint
from .plan.task import Plan

Format = Literal["samples", "openai-batch"]
BATCH_REQUESTS = 50_000
BATCH_BYTES = 200_000_000
_SCHEMA = 1


def sample(prompt: Prompt, number: int, group: int, plan: Plan) -> dict[str, Any]:
    """One prompt in the seed's sample shape; `metadata` holds the seed's three fields and the recipe."""
    context = prompt.context()
    messages = prompt.frame.messages(context)
    digest = fingerprint(messages)
    corpus = prompt.corpus
    assert corpus is not None
    return {
        "input": [
            {"id": fingerprint([message, {"role": "at", "content": f"{digest}:{number}:{place}"}])[:8], **message}
            for place, message in enumerate(messages)
        ],
        "target": prompt.target,
        "id": number,
        "group_id": group,
        "metadata": {
            "context": context,
            "context_length": prompt.cell.context_length,
            "depth_percent": _plain(prompt.cell.depth_percent),
            "schema": _SCHEMA,
            "dataset": plan.task.dataset,
            "subset": prompt.cell.subset,
            "layout": prompt.layout,
            "length_mode": prompt.length_mode,
            "replicate": prompt.replicate,
            "repeat": prompt.repeat,
            "seed": plan.task.seed,
            "question": prompt.question,
            "answers": list(prompt.answers),
            "needles": [
                {"text": needle.text, "answers": list(needle.answers), "key": needle.key} for needle in prompt.needles
            ],
            "placements": [
                {
                    "needle": placement.needle,
                    "depth_percent": _plain(placement.depth_percent),
                    "achieved_depth_percent": placement.achieved_depth_percent,
                    "tokens_before": placement.tokens_before,
                    "boundary": placement.boundary,
                }
                for placement in prompt.placements
            ],
            "achieved_length": prompt.n_tokens,
            "achieved_depth_percent": prompt.achieved_depth_percent,
            "boundary": prompt.boundary,
            "filler_tokens": prompt.filler_tokens,
            "recounted": prompt.recounted,
            "length_proven": plan.endpoint.proven,
            "corpus": {"name": corpus.name, "licence": corpus.licence, "sha256": corpus.sha256},
            "tokenizer": {
                "name": plan.endpoint.tokenizer.name,
                "fingerprint": plan.endpoint.tokenizer.fingerprint,
                "chat_template": plan.endpoint.template_name,
            },
            "prompt_sha256": digest,
        },
    }


def batch_request(prompt: Prompt, number: int, *, model: str) -> dict[str, Any]:
    """One line of a provider's batch file (OpenAI's format, which others take too)."""
    messages = prompt.messages()
    body: dict[str, Any] = {"model": model, "messages": messages}
    if prompt.max_tokens is not None:
        body["max_tokens"] = prompt.max_tokens
    cell = prompt.cell
    place = f"{cell.subset}-{cell.context_length}-{_plain(cell.depth_percent)}-r{prompt.replicate}.{prompt.repeat}"
    return {
        "custom_id": f"{number}-{place}-{fingerprint(messages)[:12]}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
    }


@dataclass(frozen=True, slots=True)
class Line:
    """A prompt as one line of a file, with its length in characters as the seed counts them."""

    prompt: Prompt
    n_characters: int
    data: bytes = field(repr=False)


def lines(plan: Plan, *, format_: Format = "samples", model: str | None = None) -> Iterator[Line]:
    """The lines of the file, one prompt at a time."""
    if format_ == "openai-batch" and not model:
        raise UsageError("A batch file names the model in every line. Give --model.")
    number = group = 0
    subset: str | None = None
    for total, prompt in enumerate(plan):
        if prompt.cell.subset != subset:
            subset, number, group = prompt.cell.subset, 0, -1
        group += prompt.repeat == 0
        if format_ == "openai-batch":
            record = batch_request(prompt, total, model=model or "")
            messages = record["body"]["messages"]
        else:
            record = sample(prompt, number, group, plan)
            messages = record["input"]
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
        yield Line(prompt, sum(len(message["content"]) for message in messages), text.encode())
        number += 1


def write(lines: Iterable[Line], target: str, *, on_line: Callable[[Line], None]) -> int:
    """Write lines to a file, or to standard output for `-`; returns the bytes written.

    A file appears whole or not at all: it is written beside its place and moved there at the end.
    """
    size = 0
    with _destination(target) as out:
        for line in lines:
            size += out.write(line.data)
            on_line(line)
    return size


@contextlib.contextmanager
def _destination(target: str) -> Iterator[IO[bytes]]:
    if target == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(target).expanduser()
    if path.is_dir():
        raise OutputError(f"{path} is a folder. Give a file for --out.")
    if path.exists() and not path.is_file():  # a device or pipe: no moving into place
        try:
            with path.open("wb") as out:
                yield out
        except OSError as error:
            raise _unwritable(path, error) from None
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as out:
            yield out
        beside.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def _unwritable(path: Path, error: OSError) -> OutputError:
    if error.errno == errno.ENOSPC or error.errno == errno.EFBIG or error.errno == errno.EDQUOT:
        return OutputError(f"No space left for {path}; nothing was kept. Free some, or write elsewhere with --out.")
    return OutputError(f"Cannot write {path}: {error.strerror or error}. Choose another place with --out.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Total, mean, extremes and sample standard deviation of some counts; None where there are none."""

    mean: float | None
    min: int | None
    max: int | None
    std: float | None

    @classmethod
    def of(cls, values: list[int]) -> Spread:
        if not values:
            return cls(mean=None, min=None, max=None, std=None)
        return cls(
            mean=round(statistics.fmean(values), 2),
            min=min(values),
            max=max(values),
            std=round(statistics.stdev(values), 2) if len(values) > 1 else 0.0,
        )

    def json(self) -> dict[str, float | int | None]:
        return {"mean": self.mean, "min": self.min, "max": self.max, "std": self.std}


@dataclass(slots=True)
class _Tally:
    characters: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        return {
            "samples": len(self.characters),
            "prompt_characters": Spread.of(self.characters).json(),
            "prompt_tokens": Spread.of(self.tokens).json(),
            "target_characters_mean": round(statistics.fmean(self.targets), 2) if self.targets else None,
        }


class Statistics:
    """The seed's *Data Statistics*: characters of system and user message as the seed counts them, and tokens."""

    def __init__(self) -> None:
        self._all = _Tally()
        self._subsets: dict[str, _Tally] = {}
        self.recounted = 0
        self.boundaries: dict[str, int] = {}
        self.largest_depth_error_percent = 0.0

    def add(self, prompt: Prompt, n_characters: int | None = None) -> None:
        if n_characters is None:
            n_characters = sum(len(message["content"]) for message in prompt.messages())
        for tally in (self._all, self._subsets.setdefault(prompt.cell.subset, _Tally())):
            tally.characters.append(n_characters)
            tally.tokens.append(prompt.n_tokens)
            tally.targets.append(len(prompt.target))
        self.recounted += prompt.recounted
        self.boundaries[prompt.boundary] = self.boundaries.get(prompt.boundary, 0) + 1
        for placement in prompt.placements:
            error = abs(placement.achieved_depth_percent - placement.depth_percent)
            self.largest_depth_error_percent = round(max(self.largest_depth_error_percent, error), 3)

    def json(self) -> dict[str, Any]:
        return {
            "total": self._all.json(),
            "subsets": [{"name": name, **tally.json()} for name, tally in self._subsets.items()],
            "recounted": self.recounted,
            "boundaries": dict(self.boundaries),
            "largest_depth_error_percent": self.largest_depth_error_percent,
        }


def _plain(number: float) -> float | int:
    """Whole numbers without a point, as the seed writes them."""
    return int(number) if float(number).is_integer() else number
