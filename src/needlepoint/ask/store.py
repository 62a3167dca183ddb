"""The run folder: what a run was made with, every reply it got, what each is worth, and the reports made of them.

    run.json               settings, versions, facts; when it was resumed and what changed then; no secret
    trials.jsonl           one line for each finished attempt-series: recipe, reply, when, with which limits
    scores/<scorer>.jsonl  one line for each reply scored
    report.json, ...       written whole or not at all

Whatever ends the process, a line that `append` returned for is there when the folder is opened again. One process
writes at a time; any number may read meanwhile.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

from ..errors import InputError, OutputError, UsageError
from ..types import Outcome, Reply, Score, Trial
from .folders import RUN, find_run, is_name, new_folder, slug, write_whole
from .journal import Journal, Line, broken_line, parse_line, read_lines
from .lock import FolderLock
from .plain import hide, hide_deep, is_telling, spellings
from .records import digest, dump, from_json, load, to_json
from .settings import RunSettings, diff_identity, now, resume_check
from .trials import is_finished, recipe_id

__all__ = ["Entry", "RunFolder", "RunSettings", "diff_identity", "is_finished", "resume_check", "settings_of"]

T = TypeVar("T")
_TRIALS, _SCORES, _REPORT = "trials.jsonl", "scores", "report.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of `trials.jsonl`. `max_tokens` and `limit_tokens` are those that the reply was asked for under."""

    trial: Trial
    reply: Reply
    at: str
    max_tokens: int | None = None
    limit_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScoreRow:
    """One line of `scores/<scorer>.jsonl`: the trial's id, the digest of its reply, and what that is worth."""

    trial: str
    reply: str
    score: Score


class RunFolder:
    """One run's folder. Make it with `create` or `open`; use it in a `with`, from one thread at a time."""

    def __init__(
        self,
        path: Path,
        settings: RunSettings,
        *,
        lock: FolderLock | None,
        secrets: Collection[str],
        resumed: list[Any],
    ) -> None:
        self.path = path
        self._settings = settings
        self._lock = lock
        self._secrets = tuple(secrets)
        self._telling = tuple(filter(is_telling, secrets))
        self._marks = [mark.encode(errors="replace") for secret in self._telling for mark in spellings(secret)]
        self._resumed = resumed
        self._places: dict[str, tuple[int, int]] | None = None
        self._ids: set[str] = set()
        self._journals: dict[str, Journal] = {}

    @classmethod
    def create(cls, work_dir: Path, *, model: str, settings: RunSettings, secrets: Collection[str] = ()) -> RunFolder:
        """A new folder below `work_dir`, open for writing. `secrets` appear in no file of it."""
        settings = settings.stored(secrets)
        stamp = re.sub(r"[^0-9TZ]", "", settings.created) or "run"
        path = new_folder(work_dir, f"{stamp}_{slug(hide(model, secrets))}")
        with contextlib.ExitStack() as undo:
            undo.callback(shutil.rmtree, path, ignore_errors=True)
            folder = cls(path, settings, lock=FolderLock(path), secrets=secrets, resumed=[])
            undo.callback(folder.close)
            try:
                folder._write_settings()
                folder._journal(_TRIALS)
            except OutputError as error:
                what = str(error).partition(folder._way_out)[0]
                raise OutputError(f"{what}Choose another place with --work-dir.") from None
            undo.pop_all()
        return folder

    @classmethod
    def open(cls, path: Path, *, for_writing: bool, secrets: Collection[str] = ()) -> RunFolder:
        """The run in `path`, which is its folder or a work-dir that holds no other run.

        Without `for_writing` nothing is touched, so that a run can be read while it goes on.
        """
        path = find_run(path)
        with contextlib.ExitStack() as undo:
            lock = FolderLock(path) if for_writing else None
            if lock is not None:
                undo.callback(lock.release)
            value = _read_settings(path / RUN)
            settings = RunSettings.from_json(value, str(path / RUN))
            resumed = value.get("resumed")
            resumed = resumed if isinstance(resumed, list) else []
            folder = cls(path, settings, lock=lock, secrets=secrets, resumed=resumed)
            undo.callback(folder.close)
            if for_writing:
                folder._journal(_TRIALS)
            folder._index()
            undo.pop_all()
        return folder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @property
    def n_replies(self) -> int:
        """How many questions have a reply, whatever it says."""
        return len(self._index())

    @property
    def settings(self) -> RunSettings:
        """As resumed last; plain JSON values."""
        return self._settings

    def resume(self, settings: RunSettings) -> list[str]:
        """Go on with these settings: UsageError where they make another run; else the changes, which are recorded."""
        settings = settings.stored(self._secrets)
        changes = resume_check(self._settings, settings)
        self._resumed = [*self._resumed, {"at": now(), "changes": changes}]
        self._settings = replace(settings, created=self._settings.created)
        self._write_settings()
        return changes

    def append(self, trial: Trial, reply: Reply) -> None:
        """Keep a reply. OutputError where it can't be written: then it isn't in the file, and all before it is."""
        entry = {
            "trial": to_json(trial),
            "reply": to_json(reply),
            "at": now(),
            "max_tokens": self._settings.max_tokens,
            "limit_tokens": self._settings.limit_tokens,
        }
        place = self._journal(_TRIALS).append(self._clean(entry))
        self._index()[recipe_id(trial)] = place
        self._ids.add(trial.id)

    def entries(self) -> Iterator[Entry]:
        """The latest line of each question, in the order in which the questions were first answered."""
        if places := list(self._index().values()):
            with self._reading() as file:
                for place in places:
                    yield self._entry_at(file, place)

    def replies(self) -> Iterator[tuple[Trial, Reply]]:
        """`entries`, without what stands around them."""
        for entry in self.entries():
            yield entry.trial, entry.reply

    def all_replies(self) -> Iterator[Reply]:
        """Every reply that came, those too that a later one took the place of: what the run has cost."""
        path = self.path / _TRIALS
        return (_row(Entry, line, path).reply for line in read_lines(path))

    def latest(self, trial: Trial) -> Entry | None:
        """The latest line of this trial's question, be it asked with as many `max_tokens` or not."""
        place = self._index().get(recipe_id(trial))
        if place is None:
            return None
        with self._reading() as file:
            return self._entry_at(file, place)

    def finished(self, trial_id: str) -> bool:
        """Whether a line has this very id, whatever its reply says; `is_settled` is what a resume asks."""
        self._index()
        return trial_id in self._ids

    def is_settled(self, trial: Trial, outcome: Outcome | None = None) -> bool:
        """Whether this question need not be asked (again) under the settings of now. INTERFACES: the rules of resume.

        `outcome` is what a scorer made of the latest reply, where one did.
        """
        entry = self.latest(trial)
        return entry is not None and is_finished(
            entry.reply,
            outcome=outcome,
            limit_changed=entry.limit_tokens != self._settings.limit_tokens,
            max_tokens_changed=entry.max_tokens != self._settings.max_tokens,
        )

    def append_score(self, trial: Trial, reply: Reply, score: Score) -> None:
        """Keep what this very reply is worth to `score.scorer`; the latest of several counts."""
        kept = hide_deep(to_json(reply), self._telling)
        row = {"trial": trial.id, "reply": digest(kept), "score": to_json(score), "at": now()}
        self._journal(_scores_name(score.scorer)).append(self._clean(row))

    def scored(self, scorer: str) -> Iterator[tuple[Trial, Reply, Score | None]]:
        """`replies` with their scores; None where this very reply isn't scored yet."""
        path = self.path / _scores_name(scorer)
        found: dict[tuple[str, str], Score] = {}
        for line in read_lines(path):
            row = _row(_ScoreRow, line, path)
            found[row.trial, row.reply] = row.score
        for trial, reply in self.replies():
            yield trial, reply, found.get((trial.id, digest(to_json(reply)))) if found else None

    def scorers(self) -> list[str]:
        """Who has scored replies here, the one that wrote last at the end."""
        try:
            files = [(path.stat().st_mtime_ns, path.stem) for path in (self.path / _SCORES).glob("*.jsonl")]
        except OSError as error:
            raise InputError(f"Cannot read {self.path / _SCORES}: {error.strerror or error}.") from None
        return [name for _, name in sorted(files)]

    def append_row(self, name: str, row: Any) -> None:
        """Add one record (a dataclass of plain values) to a journal of this folder."""
        self._journal(name).append(self._clean(to_json(row)))

    def rows(self, name: str, kind: type[T]) -> Iterator[T]:
        """The records of such a journal; none where there is no file."""
        path = self.path / name
        return (_row(kind, line, path) for line in read_lines(path))

    def read_report(self) -> dict[str, Any]:
        """`report.json` as it stands; an empty object where there is none, or none that can be read."""
        return self.read_json(_REPORT)

    def read_json(self, name: str) -> dict[str, Any]:
        """A file of this folder that holds a JSON object; an empty one where there is none that can be read."""
        try:
            value = load((self.path / name).read_bytes())
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def write_text(self, name: str, text: str) -> Path:
        """A file of the folder, whole or not at all, in UTF-8, without secrets; returns its path."""
        for secret in self._telling:
            text = hide(text, sorted(spellings(secret), key=len, reverse=True))
        return self.write_bytes(name, text.encode(errors="replace"))

    def write_bytes(self, name: str, data: bytes) -> Path:
        """A file of the folder, whole or not at all; returns its path."""
        if self._lock is None:
            raise OutputError(f"{self.path} is open for reading only. Open it for writing.")
        if not is_name(name):
            raise UsageError(f"{name!r} is not a name for a file in a run folder.")
        path = self.path / name
        try:
            write_whole(path, data)
        except OSError as error:
            raise OutputError(f"Cannot write {path}: {error.strerror or error}. {self._way_out}") from None
        return path

    def close(self) -> None:
        """Bring everything to the disk and let others write; doing so twice is fine."""
        try:
            with contextlib.ExitStack() as stack:
                for journal in self._journals.values():
                    stack.callback(journal.close)
        finally:
            self._journals = {}
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    @property
    def _way_out(self) -> str:
        return (
            "All replies before are safe. Make room (or make the folder writable), then resume with "
            f"--use-cache {self.path}"
        )

    def _journal(self, name: str) -> Journal:
        if self._lock is None:
            raise OutputError(f"{self.path} is not open for writing.")
        if name not in self._journals:
            path = self.path / name
            try:
                path.parent.mkdir(exist_ok=True)
            except OSError as error:
                raise OutputError(f"Cannot write {path}: {error.strerror or error}. {self._way_out}") from None
            self._journals[name] = Journal(path, way_out=self._way_out)
        return self._journals[name]

    def _clean(self, value: dict[str, Any]) -> bytes:
        data = dump(value)
        if any(mark in data for mark in self._marks):
            data = dump(hide_deep(value, self._telling))
        return data

    def _index(self) -> dict[str, tuple[int, int]]:
        """Where the latest line of each question stands, by its recipe id; read once."""
        if self._places is None:
            places: dict[str, tuple[int, int]] = {}
            path = self.path / _TRIALS
            for line in read_lines(path):
                trial = _row(Entry, line, path).trial
                places[recipe_id(trial)] = (line.offset, line.size)
                self._ids.add(trial.id)
            self._places = places
        return self._places

    def _reading(self) -> BinaryIO:
        path = self.path / _TRIALS
        try:
            return path.open("rb")
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror or error}.") from None

    def _entry_at(self, file: BinaryIO, place: tuple[int, int]) -> Entry:
        path, (offset, size) = self.path / _TRIALS, place
        file.seek(offset)
        return _row(Entry, Line(None, offset, size, parse_line(file.read(size), path, None)), path)

    def _write_settings(self) -> None:
        data = dump({**self._settings.to_json(), "resumed": self._resumed}, indent=2)
        self.write_bytes(RUN, data + b"\n")


def settings_of(path: Path) -> RunSettings:
    """The settings of the run in `path`, without reading its trials."""
    path = find_run(path)
    return RunSettings.from_json(_read_settings(path / RUN), str(path / RUN))


# --- parts ------------------------------------------------------------------------------------------------------------


def _row(kind: type[T], line: Line, path: Path) -> T:
    try:
        return from_json(kind, line.value, name="it")
    except ValueError as error:
        raise broken_line(path, line.number, f"is not what it must be: {error}") from None


def _scores_name(scorer: str) -> str:
    if not is_name(scorer) or "/" in scorer:
        raise UsageError(f"{scorer!r} is not a name for a scorer: it is part of a file's name.")
    return f"{_SCORES}/{scorer}.jsonl"


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        value = load(path.read_bytes())
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from None
    except ValueError as error:
        raise InputError(f"{path} is no JSON ({error}). Restore it from a copy, or start a new run.") from None
    if not isinstance(value, dict):
        raise InputError(f"{path} holds no JSON object. Restore it from a copy, or start a new run.")
    return value
