"""Files from elsewhere, opened: JSON, JSON lines or a table, told by what is in them; their values with their places.

Whatever is wrong is an InputError with file and line. Lines are read one at a time; a file that is one JSON value is
read whole. NaN, which JSON doesn't have and others write, is read as the number that it is.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..ask.files import read_line
from ..errors import InputError
from .scores import table_rows

_BOM = b"\xef\xbb\xbf"
_LONGEST_FILE = 1 << 30
_LONGEST_FIELD = 1 << 24


class Opened:
    """One file. Iterate once to get its objects, each with its place; then `sha256` is that of its bytes."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """(place, value) of each line, of each entry of a list, or of the file's one value."""
        try:
            with self.path.open("rb") as file:
                if not file.seekable():
                    raise InputError(f"{self.name} is no regular file. Save it to one first.")
                if self.path.suffix.lower() in {".csv", ".tsv"}:
                    yield from self._table(self._whole(file.read(_LONGEST_FILE)))
                    return
                first = read_line(file, self.path, 1)
                if self._is_lines(first, file):
                    file.seek(0)
                    number = 0
                    while data := read_line(file, self.path, number + 1):
                        number += 1
                        self._hash.update(data)
                        if data.strip():
                            yield f"{self.name}, line {number}", self._line(data, number)
                    return
                file.seek(0)
                yield from self._one(self._whole(file.read(_LONGEST_FILE)))
        except OSError as error:
            raise InputError(f"Cannot read {self.name}: {error.strerror or error}.") from None

    def _is_lines(self, first: bytes, file: io.BufferedReader) -> bool:
        """Whether this is JSON lines: the first line is an object of its own, and it is a file of lines by its name,
        or another line follows."""
        if not first.removeprefix(_BOM).lstrip().startswith(b"{"):
            return self.path.suffix.lower() == ".jsonl"
        if self.path.suffix.lower() == ".jsonl":
            return True
        try:
            whole = isinstance(json.loads(first.removeprefix(_BOM)), dict)
        except (ValueError, RecursionError):
            return False
        return whole and any(line.strip() for line in iter(lambda: read_line(file, self.path, 2), b""))

    def _whole(self, data: bytes) -> str:
        if len(data) == _LONGEST_FILE:
            raise InputError(f"{self.name} has more than {_LONGEST_FILE // 1_000_000:,} MB. Give it as JSON lines.")
        self._hash.update(data)
        return self._text(data.removeprefix(_BOM), None)

    def _line(self, data: bytes, number: int) -> Any:
        text = self._text(data.removeprefix(_BOM) if number == 1 else data, number)
        try:
            return _value(text)
        except ValueError as error:
            raise InputError(f"{self.name}, line {number}: is no JSON: {_why(error)}.") from None

    def _one(self, text: str) -> Iterator[tuple[str, Any]]:
        if not text.strip():
            raise InputError(f"{self.name} is empty.")
        try:
            value = _value(text)
        except ValueError as error:
            line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            raise InputError(f"{self.name}{line}: is no JSON: {_why(error)}.") from None
        if isinstance(value, list):
            for number, entry in enumerate(value, start=1):
                yield f"{self.name}, entry {number}", entry
        else:
            yield self.name, value

    def _table(self, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        csv.field_size_limit(_LONGEST_FIELD)
        lines = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if self.path.suffix.lower() == ".tsv" else ",")
        try:
            header = [name.strip() for name in next(lines, [])]
            if not any(header):
                raise InputError(f"{self.name} is empty.")
            for row in table_rows(header, (cells for cells in lines if any(cell.strip() for cell in cells))):
                yield f"{self.name}, line {lines.line_num}", row
        except csv.Error as error:
            raise InputError(f"{self.name}, line {lines.line_num}: is no table: {error}.") from None

    def _text(self, data: bytes, number: int | None) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1 if number is None else number
            raise InputError(f"{self.name}, line {line}: is not UTF-8 text. Save it as UTF-8.") from None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _why(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.colno}"
    return "it holds a number of thousands of digits" if "digits" in str(error) else str(error)
