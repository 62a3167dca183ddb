"""An append-only file of JSON lines that survives whatever ends its writer.

One line is one record, written whole. A torn last line is what a crash leaves: readers skip it, and the next writer
cuts it off before adding its own. Knows nothing of what the records mean.
"""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import InputError, OutputError
from .records import load

SYNC_EVERY_S = 5.0
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Line:
    """One record: where it stands, and its JSON object."""

    number: int | None
    offset: int
    size: int
    value: dict[str, Any] = field(repr=False)


class Journal:
    """`path`, created where it is missing. One writer at a time (the caller's lock sees to it), many readers.

    OutputError where it can't be written, InputError with file and line number where a line in it is broken.
    """

    def __init__(self, path: Path, *, way_out: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`way_out` ends the message when a record can't be written: what is safe, and how to go on."""
        self.path = path
        self._way_out = way_out
        self._clock = clock
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        except OSError as error:
            raise self._unwritable(error) from None
        self._close = weakref.finalize(self, os.close, self._handle)
        self._synced_at = clock()
        self._torn = False
        try:
            self._end = self._mend()
        except OSError as error:
            self._close()
            raise self._unwritable(error) from None

    def append(self, record: bytes) -> tuple[int, int]:
        """Add one record; its offset and size. When this returns the record outlives the process; if it raises an
        OutputError, the record is not in the file."""
        line = record + b"\n"
        try:
            if self._torn:
                self._end = self._mend()
            self._torn = True
            _write_whole(self._handle, line)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._end)
            raise self._unwritable(error) from None
        self._torn = False
        offset, self._end = self._end, self._end + len(line)
        if self._clock() - self._synced_at >= SYNC_EVERY_S:
            self.sync()
        return offset, len(record)

    def sync(self) -> None:
        """Bring everything to the disk itself."""
        self._synced_at = self._clock()
        try:
            os.fsync(self._handle)
        except OSError as error:
            raise self._unwritable(error) from None

    def close(self) -> None:
        """Bring everything to the disk and close; doing so twice is fine."""
        try:
            if self._close.alive:
                self.sync()
        finally:
            self._close()

    def _mend(self) -> int:
        """Cut off a torn last line, or end a whole one that only lacks its line end; the file's size."""
        end = os.fstat(self._handle).st_size
        start, tail = end, b""
        while start > 0 and b"\n" not in tail:
            step = min(_BLOCK, start)
            start -= step
            os.lseek(self._handle, start, os.SEEK_SET)
            tail = os.read(self._handle, step) + tail
        torn = tail[tail.rfind(b"\n") + 1 :]
        if not torn:
            return end
        if _is_record(torn):
            _write_whole(self._handle, b"\n")
            return end + 1
        os.ftruncate(self._handle, end - len(torn))
        return end - len(torn)

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(f"Cannot write {self.path}: {error.strerror or error}. {self._way_out}")


def read_lines(path: Path) -> Iterator[Line]:
    """The records of a journal, one at a time; a torn last line is skipped. No file, no records."""
    try:
        with path.open("rb") as file:
            yield from _lines(file, path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from None


def _lines(file: BinaryIO, path: Path) -> Iterator[Line]:
    offset = 0
    for number, data in enumerate(file, start=1):
        whole = data.endswith(b"\n")
        if data.strip() and (whole or _is_record(data)):
            yield Line(number, offset, len(data) - whole, parse_line(data, path, number))
        offset += len(data)


def parse_line(data: bytes, path: Path, number: int | None) -> dict[str, Any]:
    """One line's JSON object; InputError where it is none."""
    try:
        value = load(data)
    except ValueError as error:
        raise broken_line(path, number, f"is no JSON ({error})") from None
    if not isinstance(value, dict):
        raise broken_line(path, number, "is no JSON object")
    return value


def broken_line(path: Path, number: int | None, what: str) -> InputError:
    """The error for a line that a crash can't have left: someone or something changed the file."""
    where = "a line" if number is None else f"line {number}"
    return InputError(
        f"{path}: {where} {what}. Restore the file from a copy, or remove that line: "
        "its trial then counts as not asked yet."
    )


def _is_record(data: bytes) -> bool:
    try:
        return isinstance(load(data), dict)
    except ValueError:
        return False


def _write_whole(handle: int, data: bytes) -> None:
    """All of it by one call, unless the system takes less; then the rest, which shows why."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
