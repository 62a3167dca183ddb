"""The cache folder: where fetched files live, and how one is written so that nobody ever reads half of it.

Knows nothing of what is fetched, from where, or why.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from needlepoint.errors import FetchError

Progress = Callable[[str, int, int | None], None]
"""(name, bytes done, bytes in total or None), called as a file grows."""

Notify = Callable[[str], None]
"""Takes one line for people."""

CHUNK_BYTES = 1 << 20
_NO_SPACE = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}


def cache_dir() -> Path:
    """`$NEEDLEPOINT_CACHE`, else the platform's folder for caches; nothing is created."""
    if chosen := os.environ.get("NEEDLEPOINT_CACHE"):
        return Path(chosen).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).expanduser() / "needlepoint"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "needlepoint" / "cache"
    try:
        return Path.home() / ".cache" / "needlepoint"
    except RuntimeError:  # no home folder, as in some containers
        return Path(tempfile.gettempdir()) / "needlepoint-cache"


def offline(*names: str) -> str | None:
    """The first of these environment variables that forbids the network, as `NAME=value`, or None."""
    for name in names:
        value = os.environ.get(name, "").strip()
        if value.lower() in {"1", "true", "yes", "on"}:
            return f"{name}={value}"
    return None


def redact(text: str) -> str:
    """The same text without credentials in its URLs."""
    return re.sub(r"//[^/\s@]+@", "//***@", text)


def make_folder(folder: Path) -> Path:
    """The folder, created where it was missing; FetchError where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, folder) from error
    return folder


def require_space(folder: Path, needed: int) -> None:
    """FetchError where the disk has not this much room; said beforehand, since fetching tools report it in riddles."""
    try:
        free = shutil.disk_usage(make_folder(folder)).free
    except OSError:
        return
    if free < needed:
        raise FetchError(
            f"No space left to write in {folder}: {needed / 1e6:,.0f} MB are needed for a while, "
            f"{free / 1e6:,.0f} MB are free. Free some, or set NEEDLEPOINT_CACHE to a folder on another disk."
        )


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A file to write; it becomes `target` in one step when the block ends well, and is gone when it does not."""
    make_folder(target.parent)
    draft = target
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        draft = Path(name)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(0o666 & ~_umask())
        draft.replace(target)
    except OSError as error:
        raise storage_error(error, target.parent) from error
    finally:
        if draft != target:
            with contextlib.suppress(OSError):
                draft.unlink()


def storage_error(error: OSError, folder: Path) -> FetchError:
    """What to tell people when a file could not be written below `folder`."""
    if error.errno in _NO_SPACE:
        return FetchError(
            f"No space left to write in {folder}. Free some, or set NEEDLEPOINT_CACHE to a folder on another disk."
        )
    reason = error.strerror or type(error).__name__
    return FetchError(f"Cannot write in {folder} ({reason}). Set NEEDLEPOINT_CACHE to a folder that can be written.")


def _umask() -> int:
    """The process's umask; reading it means setting it, so it is done once, at import, before threads run."""
    return _UMASK


_UMASK = os.umask(0)
os.umask(_UMASK)
