"""A text out of the user's own files: one file, a folder, a glob, JSONL, any of them gzipped.

Reads files, nothing else. Errors name the file, and the line where there is one.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from needlepoint.errors import CorpusError
from needlepoint.text.cache import Notify
from needlepoint.text.encodings import NotText, decoded

TEXT_SUFFIXES = (".txt", ".text", ".md", ".markdown", ".rst", ".jsonl", ".ndjson")
_JSONL_SUFFIXES = (".jsonl", ".ndjson")
_GZIP = b"\x1f\x8b"
DEFAULT_FIELD = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserText:
    """What was read. `stem` is what people call it; `sha256` is of the raw bytes, or of the list of digests."""

    text: str = field(repr=False)
    sha256: str
    stem: str
    n_files: int


def read_text(target: str, *, encoding: str | None = None, notify: Notify | None = None) -> UserText | None:
    """The text that a path, folder or glob names (`file.jsonl#field` too); None where there is nothing by that name."""
    place, hash_sign, wanted = target, "", ""
    if not exists(target):
        place, hash_sign, wanted = target.rpartition("#")
        if not hash_sign:
            place = target
    if hash_sign and not wanted:
        raise CorpusError(f"{target!r} names no field behind the '#'.")
    reader = _Reader(encoding=encoding, field=wanted or None, notify=notify)
    if exists(place):
        path = Path(place).expanduser()
        return reader.folder(path) if path.is_dir() else reader.file(path)
    if glob.has_magic(place) and "\0" not in place:
        return reader.pattern(Path(os.path.expanduser(place)))  # noqa: PTH111 (no error where there is no such home)
    return None


def unix_lines(text: str) -> str:
    """The text as Python's text mode reads it: every line ends in a newline character alone."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    encoding: str | None
    field: str | None
    notify: Notify | None

    def file(self, path: Path) -> UserText:
        text, digest = self._read(path)
        if not text or text.isspace():
            raise CorpusError(f"{path} is empty: there is no text in it.")
        if self.field and not _is_jsonl(path):
            raise CorpusError(f"{path} is not JSONL (.jsonl), so it has no field {self.field!r}.")
        return UserText(text=text, sha256=digest, stem=_stem(path.name), n_files=1)

    def folder(self, path: Path) -> UserText:
        files = sorted(_text_files(path), key=lambda file: file.relative_to(path).as_posix())
        if not files:
            raise CorpusError(f"The folder {path} holds no text file ({', '.join(TEXT_SUFFIXES)}).")
        return self._several(files, path, path.resolve().name)

    def pattern(self, path: Path) -> UserText:
        fixed = Path(*_until_magic(path))
        found = sorted(Path(name) for name in glob.iglob(str(path), recursive=True))  # noqa: PTH207 (passes hidden by)
        files = [file for file in found if file.is_file()]
        if not files:
            raise CorpusError(f"No file matches {str(path)!r}.")
        return self._several(files, fixed, fixed.resolve().name)

    def _several(self, files: list[Path], base: Path, stem: str) -> UserText:
        texts: list[str] = []
        digest = hashlib.sha256()
        for file in files:
            try:
                text, of_file = self._read(file)
            except NotText as error:
                if self.notify:
                    self.notify(f"Skipped: {error}")
                continue
            if text and not text.isspace():
                texts.append(text.strip("\n"))
                digest.update(f"{of_file}  {file.relative_to(base).as_posix()}\n".encode("utf-8", "surrogateescape"))
        if not texts:
            which = "The only file" if len(files) == 1 else f"None of the {len(files):,} files"
            raise CorpusError(f"{which} in {base} holds {'no text' if len(files) == 1 else 'text'}.")
        return UserText(text="\n\n".join(texts), sha256=digest.hexdigest(), stem=stem, n_files=len(texts))

    def _read(self, path: Path) -> tuple[str, str]:
        """One file's text and the sha256 of its raw bytes."""
        try:
            if path.is_char_device() or path.is_block_device():  # /dev/zero has no end
                raise CorpusError(f"{path} is a device, not a text.")
            data = path.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            if data.startswith(_GZIP):
                data = gzip.decompress(data)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise CorpusError(f"{path} is gzip with damage ({error}).") from None
        except OSError as error:
            raise CorpusError(f"Cannot read {path} ({error.strerror or error}).") from None
        text = decoded(data, name=str(path), encoding=self.encoding)
        del data  # texts may be large: no more of them at once than needed
        text = unix_lines(text)
        if _is_jsonl(path):
            text = "\n\n".join(_values(text, path, self.field or DEFAULT_FIELD))
        return text, digest


def _values(text: str, path: Path, wanted: str) -> Iterator[str]:
    """The field of every line of JSONL; lines without a character and empty values are passed over."""
    start = number = 0
    while start < len(text):
        number += 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        start = end + 1
        if not line.strip():
            continue
        try:
            row: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
            raise CorpusError(f"{path}, line {number:,}: not JSON ({reason}).") from None
        value = _dig(row, wanted)
        if not isinstance(value, str):
            what = "no field" if value is None else "no text in field"
            has = f" (it has: {', '.join(map(str, list(row)[:8]))})" if isinstance(row, dict) and row else ""
            raise CorpusError(f"{path}, line {number:,}: {what} {wanted!r}{has}. Name the field: PATH#field.")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise CorpusError(f"{path}, line {number:,}: field {wanted!r} has half of a surrogate pair.") from None
        if value.strip():
            yield unix_lines(value)


def _dig(row: Any, wanted: str) -> Any:
    """The value at a dotted path; a key that itself has dots wins."""
    if isinstance(row, dict) and wanted in row:
        return row[wanted]
    for key in wanted.split("."):
        if isinstance(row, dict):
            row = row.get(key)
        elif isinstance(row, list) and key.isdecimal() and int(key) < len(row):
            row = row[int(key)]
        else:
            return None
    return row


def _text_files(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and name.lower().removesuffix(".gz").endswith(TEXT_SUFFIXES):
                yield Path(root, name)


def _is_jsonl(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(_JSONL_SUFFIXES)


def _stem(name: str) -> str:
    return Path(name[:-3] if name.lower().endswith(".gz") else name).stem


def _until_magic(path: Path) -> Iterator[str]:
    for part in path.parts:
        if glob.has_magic(part):
            return
        yield part


def exists(place: str) -> bool:
    """Whether there is a file or folder by this name."""
    try:
        return bool(place) and Path(place).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # a name that no file can have
        return False
