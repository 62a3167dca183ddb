"""Where runs live, and what their folders and files may be called."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from ..errors import InputError, OutputError, UsageError

RUN = "run.json"
"""A folder with this file in it is a run's."""
_LONGEST_NAME = 60
_RUNS_SHOWN = 5


def find_run(path: Path) -> Path:
    """The run folder that `path` names."""
    try:
        if (path / RUN).is_file():
            return path
        if not path.is_dir():
            what = "is not a folder" if path.exists() else "does not exist"
            raise InputError(f"{path} {what}. Give the folder of a run: <work-dir>/<timestamp>_<model>.")
        runs = sorted(folder for folder in path.iterdir() if (folder / RUN).is_file())
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from None
    if not runs:
        raise InputError(f"{path} is no run folder: it has no {RUN}.")
    if len(runs) > 1:
        newest = ", ".join(folder.name for folder in reversed(runs[-_RUNS_SHOWN:]))
        more = f", and {len(runs) - _RUNS_SHOWN} older" if len(runs) > _RUNS_SHOWN else ""
        raise UsageError(f"{path} holds {len(runs)} runs. Give the folder of one: {newest}{more}.")
    return runs[0]


def new_folder(work_dir: Path, name: str) -> Path:
    """A folder that no other run has: `name`, or `name-2` and so on."""
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            path = work_dir / (name if number == 1 else f"{name}-{number}")
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                return path
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"Cannot make a run folder in {work_dir}: {reason}. Choose another with --work-dir."
        ) from None
    raise OutputError(f"There are too many folders called {name} in {work_dir}. Choose another with --work-dir.")


def slug(model: str) -> str:
    """A model's name as part of a file name: of a path its last part, letters and digits of any script."""
    if re.match(r"[~./\\]|[A-Za-z]:[\\/]", model) or model.lower().endswith(".gguf"):
        model = re.split(r"[/\\]", model.rstrip("/\\"))[-1]
    return re.sub(r"[^\w.-]+", "-", model)[:_LONGEST_NAME].strip("-.") or "model"


def is_name(name: str) -> bool:
    """Whether a file of a run folder may be called so: below it, visible, on every system."""
    parts = name.split("/")
    return not re.search(r"[\\:\0]", name) and not any(not part or part.startswith(".") for part in parts)


def write_whole(path: Path, data: bytes) -> None:
    """The file `path`, whole or not at all: written beside its place, and moved there. Raises OSError."""
    draft = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(exist_ok=True)
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
