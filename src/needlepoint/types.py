"""The nouns. Frozen, slotted, keyword-only; standard library only.

This module knows nothing of files, networks, models or settings. Rooms meet here: a room may import `types`, `errors`
and the rooms to its left (text → plan → ask → score → learn → show), nothing else.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypedDict, runtime_checkable

LengthMode = Literal["evalscope", "exact"]
Layout = Literal["classic"]
Boundary = Literal["sentence", "clause", "word"]


class Message(TypedDict):
    """One chat message, in the shape that every chat API takes."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text as tokens: `ids`, and where each token ends, in UTF-8 bytes of the text that was given.

    A token may end inside a character (byte-level vocabularies); the last end is the length of the text.
    """

    ids: array[int]
    ends: array[int]

    def __len__(self) -> int:
        return len(self.ids)


@runtime_checkable
class Tokenizer(Protocol):
    """What the planner needs of a tokenizer, be it a packaged vocabulary, a file, a GGUF or a server.

    `encode` never adds anything of its own (no BOS, no prefix space). With `special` it reads the special tokens that
    are spelled out in the text, as a server does with a rendered chat; without it they are ordinary text.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Short hash of what decides the tokens; equal fingerprints give equal tokens."""
        ...

    @property
    def special_tokens(self) -> Sequence[str]:
        """Spellings that `encode(special=True)` reads as control tokens."""
        ...

    @property
    def adds_bos(self) -> bool:
        """Whether other tools' plain `encode` of this tokenizer puts a BOS token in front."""
        ...

    @property
    def nfc(self) -> bool:
        """Whether text is brought to NFC first; byte ends then refer to the NFC text."""
        ...

    def encode(self, text: str, *, special: bool = False) -> Encoding: ...

    def count(self, text: str, *, special: bool = False) -> int: ...

    def decode(self, ids: Sequence[int]) -> str: ...


Render = Callable[[Sequence[Message]], str]
"""Chat messages → the very text that the server tokenizes, generation prompt included, BOS at most once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What planning must know of the other side. Later rooms add limits, caches and capabilities here.

    `render` is None where the chat template is unknown: lengths are then counted without it. `proven` says whether
    lengths rest on the tokenizer and template that the server itself uses; else they are labelled unproven.
    """

    tokenizer: Tokenizer
    render: Render | None
    template_name: str | None = None
    proven: bool = False
    needs_system: bool = False
    """Without a system message the chat template writes one of its own, which differs between revisions."""
    limit_tokens: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A haystack text, in memory, with where it is from. `sha256` is of the file's bytes as read."""

    name: str
    subset: str
    language: Literal["en", "zh", "other"]
    licence: str
    sha256: str
    text: str = field(repr=False)
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """One point of the grid: a subset, a context length in tokens and a depth in percent, as asked."""

    subset: str
    context_length: int
    depth_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """A fact to hide. `answers` are the values that a right reply states; `key` is what the question asks by."""

    text: str
    answers: tuple[str, ...] = ()
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a needle stands in its haystack: tokens of text before it, and the boundary that it stands at."""

    needle: int
    depth_percent: float
    achieved_depth_percent: float
    tokens_before: int
    boundary: Boundary


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of a prompt's tokens. Two prompts whose segments have equal ids up to here share that prefix; of the
    first pair that differs, segments with one `source` still share their first min(n_tokens)."""

    source: str
    n_tokens: int
