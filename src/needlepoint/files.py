"""A file that a user names, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .ask.folders import write_whole
from .errors import OutputError
from .fields import user_path


def checked_target(name: str, flag: str) -> Path:
    """The path of a file that can be written later; OutputError now where it can't."""
    path = user_path(name)
    if path.is_dir():
        raise OutputError(f"Cannot write {path}: it is a folder. Give {flag} a file.")
    if not path.parent.is_dir():
        raise OutputError(f"Cannot write {path}: there is no folder {path.parent}.")
    return path


def write_text(path: Path, parts: Iterable[str]) -> None:
    """Write `parts` in UTF-8; on an error nothing is left behind."""
    try:
        write_whole(path, "".join(parts).encode(errors="replace"))
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {error.strerror or error}.") from None
