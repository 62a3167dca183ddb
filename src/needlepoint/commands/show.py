"""`needlepoint show RUN [CELL]`: what a run asked. Names its trials, or rebuilds one prompt and proves it."""

from __future__ import annotations

import json
import sys
from typing import Any

from ..ask.store import RunFolder
from ..errors import UsageError, did_you_mean
from ..fields import user_path
from ..plan.grid import parse_depths, parse_lengths
from ..reconstruct import cannot_rebuild, prompt_of, rebuild
from ..scoring import Row, scored
from ..show.console import downloads, notify, out_console, printable
from ..types import Message, Trial


def show_run(run: str, cell: str | None, *, as_json: bool) -> None:
    """The list of a run's trials, or one trial with its very prompt."""
    path = user_path(run)
    with RunFolder.open(path, for_writing=False) as folder:
        settings = folder.settings
        trials = list(scored(folder))
    if cell is None:
        _list(trials, as_json=as_json)
        return
    trial, reply, score = _find(trials, cell)
    messages: list[Message] = []
    if settings.imported:
        notify(f"{cannot_rebuild(settings)} Outcome: {score.outcome}, {score.reason}.")
    else:
        with downloads() as progress:
            messages = prompt_of(rebuild(path, notify=notify, progress=progress), trial).messages()
    if as_json:
        record: dict[str, Any] = {
            "id": trial.id,
            "prompt_sha256": trial.prompt_sha256,
            "messages": messages or None,
            "reply": reply.text,
            "outcome": score.outcome,
            "reason": score.reason,
        }
        print(json.dumps(record, ensure_ascii=False, indent=2))
        return
    if messages:
        notify(
            f"sha256 {trial.prompt_sha256}: the very prompt that was asked. Outcome: {score.outcome}, {score.reason}."
        )
    for message in messages:
        sys.stdout.write(f"--- {message['role']}\n{_shown(message['content'])}\n")
    sys.stdout.write(f"--- reply\n{_shown(reply.text)}\n")


def _shown(text: str) -> str:
    """For a terminal without control characters; for a file or pipe as it is."""
    return printable(text) if sys.stdout.isatty() else text


def _list(trials: list[Row], *, as_json: bool) -> None:
    rows = [(trial, score) for trial, _, score in trials]
    if as_json:
        print(json.dumps([{"cell": name_of(trial), "id": trial.id, "outcome": score.outcome} for trial, score in rows]))
        return
    console = out_console()
    for trial, score in rows:
        console.print(f"{name_of(trial):<32} {trial.id}  {score.outcome}", markup=False)


def name_of(trial: Trial) -> str:
    """A trial's place as it is typed: `english:4000:50`, and `:1` behind it for replicate 1, `.2` for repeat 2."""
    name = f"{trial.subset}:{trial.context_length}:{trial.depth_percent:g}"
    if trial.replicate or trial.repeat:
        name += f":{trial.replicate}"
    return f"{name}.{trial.repeat}" if trial.repeat else name


def _find(trials: list[Row], wanted: str) -> Row:
    """The trial with this id (its beginning is enough) or in this place."""
    names = {name_of(row[0]): row for row in trials}
    if wanted in names:
        return names[wanted]
    if len(wanted) >= 4:
        starting = [row for row in trials if row[0].id.startswith(wanted)]
        if len(starting) == 1:
            return starting[0]
    parts = wanted.split(":")
    if len(parts) >= 3:
        lengths, depths = parse_lengths(parts[1], flag="CELL"), parse_depths(parts[2], flag="CELL")
        same = ":".join([parts[0], str(lengths[0]), f"{depths[0]:g}", *parts[3:]])
        if same in names:
            return names[same]
    raise UsageError(
        f"The run has no trial {wanted!r}.{did_you_mean(wanted, names)} Write it as SUBSET:LENGTH:DEPTH, as in "
        f"{next(iter(names), 'english:4000:50')!r}, or as the id that 'needlepoint show RUN' lists."
    )
