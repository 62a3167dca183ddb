"""A file that a user names, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

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


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write `parts` in UTF-8; on an error nothing is left behind."""
    draft = path.with_name(f".{path.name}.part")
    try:
        with draft.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(parts)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise OutputError(f"Cannot write {path}: {error.strerror or error}.") from None
