"""Prompts that come from a file instead of a plan.

The file is read a line at a time, and only the places of its lines are kept: texts are read when they are asked for. It
may come from anywhere: whatever is wrong in it is an InputError with file and line.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import InputError
from ..plan.needles import SEED_NEEDLE, fixed_facts
from ..plan.prompt import fingerprint
from ..types import Cell, Endpoint, Message, Needle, Placement
from .records import from_json, load
from .trials import Origin

_SCHEMA = 1
_LONGEST_LINE = 1 << 28
_QUESTION = re.compile(r"<question>\n(.*?)\n</question>", re.DOTALL)
_NO_SUBSET = "default"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePrompt:
    """One line of a prompts file: an `Askable`, and `Recorded` for `trial_of`. Its text stays in the file.

    `n_tokens` is what the file says where the endpoint counts as the file's maker did, else None.
    """

    cell: Cell
    dataset: str | None
    layout: str
    length_mode: str
    replicate: int
    repeat: int
    needles: tuple[Needle, ...]
    placements: tuple[Placement, ...]
    question: str
    answers: tuple[str, ...]
    n_tokens: int | None
    sha256: str
    origin: Origin
    max_tokens: int | None = None
    has_recipe: bool
    """Whether needlepoint made it, and says so; else replicate, repeat and layout are assumptions."""
    line: int
    _path: Path = field(repr=False)
    _offset: int = field(repr=False)
    _endpoint: Endpoint | None = field(repr=False)

    def messages(self) -> list[Message]:
        """The chat messages, read from the file; InputError where it was changed since it was opened."""
        sample = parse_line(_line_at(self._path, self._offset, self.line), self._path, self.line)
        try:
            messages = _messages(sample)
            same = fingerprint(messages) == self.sha256
        except ValueError:
            same = False
        if not same:
            raise wrong(self._path, self.line, "was changed while the file was in use. Start again")
        return messages

    def text(self) -> str:
        """The rendered chat; where the chat template is unknown, the plain texts of the messages."""
        messages = self.messages()
        if self._endpoint is not None and self._endpoint.render is not None:
            return self._endpoint.render(messages)
        return "\n\n".join(message["content"] for message in messages)

    def token_ids(self) -> array[int]:
        """By the endpoint's tokenizer."""
        if self._endpoint is None:
            raise InputError(f"{self._path} was read without a tokenizer: its prompts have no token ids.")
        return self._endpoint.tokenizer.encode(self.text(), special=True).ids


class PromptFile:
    """The prompts of a file, all checked when it is opened. Iterate to get them, in the file's order."""

    def __init__(self, path: Path, endpoint: Endpoint | None = None) -> None:
        self.path = path
        self._endpoint = endpoint
        self._offsets: array[int] = array("Q")
        self._lines: array[int] = array("Q")
        self._repeats: array[int] = array("L")
        self._cells: list[Cell] = []
        self._n_plain = 0
        layouts: set[str] = set()
        cells: dict[Cell, Cell] = {}
        whole = hashlib.sha256()
        seen: dict[bytes, tuple[int, int]] = {}
        for line, offset, data in numbered_lines(path):
            whole.update(data)
            if data.strip():
                prompt = self._prompt(data, line, offset, None)
                self._repeats.append(self._repeat(prompt, seen))
                self._n_plain += not prompt.has_recipe
                layouts.add(prompt.layout)
                self._cells.append(cells.setdefault(prompt.cell, prompt.cell))
                self._offsets.append(offset)
                self._lines.append(line)
        if not self._offsets:
            raise InputError(f"{path} holds no prompts. Make some with: needlepoint prompts -o FILE")
        if len(layouts) > 1:
            raise InputError(
                f"{path} mixes prompts of the layouts {', '.join(sorted(layouts))}, which measure different things: "
                "their scores belong into no one table. Make a file of each."
            )
        self.sha256 = whole.hexdigest()
        """Of the file's bytes."""

    def __len__(self) -> int:
        return len(self._offsets)

    def places(self) -> Iterator[Cell]:
        """The cell of each prompt, in order, without reading any."""
        return iter(self._cells)

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know."""
        if not self._n_plain:
            return ()
        says = f"{self.path}: {self._n_plain:,} of {len(self):,} prompts don't say how they were made"
        return (f"{says}; their achieved lengths and depths are unknown.",)

    def __iter__(self) -> Iterator[FilePrompt]:
        for offset, line, repeat in zip(self._offsets, self._lines, self._repeats, strict=True):
            data = _line_at(self.path, offset, line)
            yield self._prompt(data, line, offset, repeat)

    def _prompt(self, data: bytes, line: int, offset: int, repeat: int | None) -> FilePrompt:
        value = parse_line(data, self.path, line)
        try:
            messages = _messages(value)
            facts = from_json(_Metadata, value.get("metadata"), name="metadata")
            sha256 = fingerprint(messages)
            if facts.schema is not None and facts.schema > _SCHEMA:
                raise ValueError(f"metadata.schema is {facts.schema}, and this needlepoint reads {_SCHEMA}")
        except ValueError as error:
            raise wrong(self.path, line, f"is not a prompt: {error}") from None
        if facts.prompt_sha256 is not None and facts.prompt_sha256 != sha256:
            raise wrong(
                self.path,
                line,
                f"was changed since it was made: its messages have the sha256 {sha256[:12]}…, and "
                f"metadata.prompt_sha256 is {facts.prompt_sha256[:12]}…. Make the file again",
            )
        needles = _needles(value.get("target")) if facts.needles is None else facts.needles
        maker, endpoint = facts.tokenizer, self._endpoint
        known = maker is not None and endpoint is not None and _counts_alike(maker, endpoint)
        found = _QUESTION.findall(messages[-1]["content"]) if facts.question is None else [facts.question]
        return FilePrompt(
            cell=Cell(
                subset=facts.subset or _NO_SUBSET,
                context_length=facts.context_length,
                depth_percent=facts.depth_percent,
            ),
            dataset=facts.dataset,
            layout=facts.layout,
            length_mode=facts.length_mode,
            replicate=facts.replicate,
            repeat=facts.repeat if repeat is None else repeat,
            needles=needles,
            placements=facts.placements,
            question=found[-1] if found else "",
            answers=tuple(answer for needle in needles for answer in needle.answers)
            if facts.answers is None
            else facts.answers,
            n_tokens=facts.achieved_length if known else None,
            sha256=sha256,
            origin=Origin(
                corpus=facts.corpus.name or None,
                corpus_sha256=facts.corpus.sha256 or None,
                tokenizer=maker.name if maker else None,
                tokenizer_fingerprint=maker.fingerprint if maker else None,
                achieved_length=facts.achieved_length,
                achieved_depth_percent=facts.achieved_depth_percent,
                boundary=facts.boundary,
                length_proven=known and endpoint is not None and endpoint.proven,
            ),
            has_recipe=facts.prompt_sha256 is not None,
            line=line,
            _path=self.path,
            _offset=offset,
            _endpoint=endpoint,
        )

    def _repeat(self, prompt: FilePrompt, seen: dict[bytes, tuple[int, int]]) -> int:
        """Which repeat a prompt is. Other tools' files don't say: there, an equal second prompt is repeat 1."""
        says = prompt.has_recipe
        key = hashlib.sha256(
            repr((prompt.dataset, prompt.cell, prompt.layout, prompt.length_mode, prompt.sha256)).encode()
            + repr((prompt.replicate, prompt.repeat) if says else None).encode()
        ).digest()[:12]
        line, count = seen.get(key, (prompt.line, 0))
        seen[key] = line, count + 1
        if says and count:
            raise wrong(self.path, prompt.line, f"asks the very same as line {line}. Remove one of them")
        return prompt.repeat if says else count


def read_prompts(path: Path, *, endpoint: Endpoint | None = None) -> PromptFile:
    """The prompts in a file that `needlepoint prompts -o` wrote, or in EvalScope's own sample shape.

    EvalScope's samples say nothing of corpus, tokenizer and achieved positions; `context_length` and `depth_percent`
    they must have, else nobody knows where in the grid they belong. `endpoint` brings token counts and rendered texts.
    """
    return PromptFile(path, endpoint)


# --- the shape of a sample --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Corpus:
    name: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokenizer:
    name: str
    fingerprint: str
    chat_template: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metadata:
    """The recipe in a sample's metadata; the defaults are what EvalScope's own samples are."""

    context_length: int
    depth_percent: float
    schema: int | None
    dataset: str | None
    subset: str | None
    layout: str = "classic"
    length_mode: str = "evalscope"
    replicate: int = 0
    repeat: int = 0
    question: str | None
    answers: tuple[str, ...] | None
    needles: tuple[Needle, ...] | None
    placements: tuple[Placement, ...] = ()
    achieved_length: int | None
    achieved_depth_percent: float | None
    boundary: str | None
    corpus: _Corpus = _Corpus()
    tokenizer: _Tokenizer | None
    prompt_sha256: str | None


def _messages(sample: dict[str, Any]) -> list[Message]:
    """The messages of a sample's `input`; ValueError where it has none. Two without roles are system and user."""
    given = sample.get("input")
    if isinstance(given, str):
        given = [{"content": given}]
    if given is None and ("custom_id" in sample or "messages" in sample):
        raise ValueError("it has no 'input'. Is this a batch file? Give one made with --format samples")
    if not isinstance(given, list) or not given:
        raise ValueError("its 'input' is no list of messages")
    silent = {1: ("user",), 2: ("system", "user")}.get(len(given), ())
    messages = []
    for place, one in enumerate(given):
        if not isinstance(one, dict) or not isinstance(content := one.get("content"), str):
            raise ValueError(f"input[{place}] is no message with a text as its content")
        role = one.get("role")
        if role is None and silent and not any(isinstance(other, dict) and "role" in other for other in given):
            role = silent[place]
        if not isinstance(role, str) or not role:
            raise ValueError(f"input[{place}] has no role")
        messages.append(Message(role=role, content=content))
    return messages


def _needles(target: object) -> tuple[Needle, ...]:
    """What is known of the needles where only the target is: their texts, each of which is its own answer."""
    if target == SEED_NEEDLE:
        return fixed_facts("seed", "en").needles
    texts = target if isinstance(target, list) else [target]
    needles = [Needle(text=text, answers=_answers(text)) for text in texts if isinstance(text, str)]
    return tuple(needle for needle in needles if needle.answers)


def _answers(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _counts_alike(maker: _Tokenizer, endpoint: Endpoint) -> bool:
    same_template = maker.chat_template == endpoint.template_name  # None: both count without one
    return maker.fingerprint == endpoint.tokenizer.fingerprint and same_template


# --- lines ------------------------------------------------------------------------------------------------------------


def numbered_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """(number, offset, bytes) of each line of a file from elsewhere; InputError where it can't be read."""
    offset = number = 0
    try:
        with path.open("rb") as file:
            if not file.seekable():
                raise InputError(f"{path} is no regular file. Save it to one first.")
            while data := read_line(file, path, number + 1):
                number += 1
                yield number, offset, data
                offset += len(data)
    except OSError as error:
        raise _unreadable(path, error) from None


def _line_at(path: Path, offset: int, number: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return read_line(file, path, number)
    except OSError as error:
        raise _unreadable(path, error) from None


def read_line(file: BinaryIO, path: Path, number: int) -> bytes:
    data = file.readline(_LONGEST_LINE)
    if len(data) == _LONGEST_LINE:
        raise wrong(path, number, f"has more than {_LONGEST_LINE // 1_000_000} MB. Is this a file of JSON lines?")
    return data


def parse_line(data: bytes, path: Path, number: int) -> dict[str, Any]:
    """A line's JSON object."""
    try:
        value = load(data.removeprefix(_BOM) if number == 1 else data)
    except ValueError as error:
        raise wrong(path, number, f"is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise wrong(path, number, "is no JSON object")
    return value


def wrong(path: Path, number: int, what: str) -> InputError:
    return InputError(f"{path}, line {number}: {what}.")


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"Cannot read {path}: {error.strerror or error}.")
