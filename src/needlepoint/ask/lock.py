"""One writer per run folder. The lock goes with the process that holds it, however that ends."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import weakref
from pathlib import Path

from ..errors import OutputError, UsageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_TAKEN = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_HELD: set[Path] = set()


class FolderLock:
    """Taken when made; UsageError where another process, or another part of this one, has it.

    `flock` on `.lock` where the system has it. Elsewhere the file `.lock.pid` is the lock: it is made by one process
    only, and counts as left behind once that process is gone.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            release = self._flock() if fcntl is not None else None
            self._release = release or self._pid_file()
        except OSError as error:
            raise OutputError(
                f"Cannot write in {folder}: {error.strerror or error}. Make the folder writable, or copy it elsewhere."
            ) from None

    def release(self) -> None:
        """Give the lock back; doing so twice is fine."""
        self._release()

    def _flock(self) -> weakref.finalize[..., FolderLock] | None:
        """None where the file system knows no such locks."""
        handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(handle, 200)
            os.close(handle)
            if error.errno in _TAKEN:
                raise self._refusal(holder) from None
            if error.errno in _UNSUPPORTED:
                return None
            raise
        with contextlib.suppress(OSError):  # a full disk: the note is only for people
            os.ftruncate(handle, 0)
            os.write(handle, _signature())
        return weakref.finalize(self, os.close, handle)

    def _pid_file(self) -> weakref.finalize[..., FolderLock]:
        path = (self._folder / ".lock.pid").resolve()
        for last_try in (False, True):
            try:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                holder = _contents(path)
                if last_try or path in _HELD or not _is_left_behind(holder):
                    raise self._refusal(holder, path) from None
                with contextlib.suppress(OSError):
                    path.replace(f"{path}.{os.getpid()}.stale").unlink()  # only one of several gets to do this
                continue
            try:
                os.write(handle, _signature())
            finally:
                os.close(handle)
            _HELD.add(path)
            return weakref.finalize(self, _remove, path)
        raise AssertionError("unreachable")

    def _refusal(self, holder: bytes, path: Path | None = None) -> UsageError:
        pid, _, host = holder.decode(errors="replace").strip().partition(" ")
        if pid == str(os.getpid()) and host == socket.gethostname():
            return UsageError(f"{self._folder} is already open for writing in this process. Close it first.")
        who = f" (process {pid} on {host})" if pid and host else ""
        way_out = f", or delete {path} if that process is gone" if path else ""
        return UsageError(
            f"{self._folder} is in use by another needlepoint{who}. Wait until it is done, or end it{way_out}."
        )


def _signature() -> bytes:
    return f"{os.getpid()} {socket.gethostname()}\n".encode()


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()[:200]
    except OSError:
        return b""


def _remove(path: Path) -> None:
    _HELD.discard(path)
    with contextlib.suppress(OSError):
        path.unlink()


def _is_left_behind(holder: bytes) -> bool:
    """Whether the process that made a pid file surely is gone; nobody knows of one on another machine."""
    pid, _, host = holder.decode(errors="replace").strip().partition(" ")
    if not pid.isascii() or not pid.isdigit() or host != socket.gethostname():
        return False
    return int(pid) == os.getpid() or not _is_alive(int(pid))


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":  # there, os.kill(pid, 0) would end the process
        import ctypes

        process = ctypes.windll.kernel32.OpenProcess(0x00100000, False, pid)
        if process:
            ctypes.windll.kernel32.CloseHandle(process)
        return bool(process)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
