"""The header of a GGUF file: what it says of its tokenizer, template and context, and whether the file is whole.

Read here because the engine answers a broken file with one bare error, or with the end of the process. Knows the
format (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3), and nothing of engines.
"""

from __future__ import annotations

import hashlib
import mmap
import re
import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from needlepoint.ask.models.pieces import Spelling, piece
from needlepoint.errors import TokenizerError

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_SIZES = {kind: struct.calcsize("<" + code) for kind, code in _SCALARS.items()}
_MOST_ENTRIES = 1 << 24
_OF_THE_CACHE = (
    ".block_count",
    ".embedding_length",
    ".attention.head_count",
    ".attention.head_count_kv",
    ".attention.key_length",
    ".attention.value_length",
    ".attention.sliding_window",
)
_STATES = re.compile(r"[\w-]+\.(ssm|wkv|shortconv)\.")

# What `tokenizer.ggml.model` says of how tokens are spelled. Others (WordPiece, RWKV, ...) are left to the engine.
_SPELLINGS: dict[str, Spelling] = {"gpt2": "byte-level", "llama": "sentencepiece", "t5": "sentencepiece"}
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """What a GGUF says before its weights. `fingerprint` is of all its `tokenizer.ggml.*` entries."""

    path: Path
    architecture: str
    name: str | None
    context_length: int | None
    chat_template: str | None
    fingerprint: str
    tokens: Sequence[str] = field(repr=False)
    token_types: Sequence[int] = field(repr=False)
    spelling: Spelling | None
    window: int | None = None
    """How far layers with a sliding window see, where there are such."""
    has_states: bool = False
    """Whether layers keep a state instead of keys: it can't be taken back to an earlier token."""
    cached_values: int = 0
    """Numbers that a token's keys and values take in all layers together."""

    def control_tokens(self) -> list[str]:
        """Tokens that are read as such only where control tokens are asked for."""
        return self._of_types(_CONTROL, _UNKNOWN)

    def user_tokens(self) -> list[str]:
        """Tokens that are taken out of a text before anything else, always."""
        return self._of_types(_USER_DEFINED)

    def table(self) -> dict[int, bytes]:
        """Token id → bytes, or nothing where the vocabulary's kind is not one that we know how to spell."""
        spelling = self.spelling
        if spelling is None:
            return {}
        return {
            i: piece(token, spelling if kind in (_NORMAL, _BYTE) else "plain")
            for i, (token, kind) in enumerate(zip(self.tokens, self.token_types, strict=True))
        }

    def _of_types(self, *kinds: int) -> list[str]:
        return [token for token, kind in zip(self.tokens, self.token_types, strict=True) if kind in kinds and token]


def read_gguf_header(path: Path) -> GgufHeader:
    """Read and check a header. A file that is missing, cut off, no GGUF or without vocabulary raises TokenizerError."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise TokenizerError(f"{path} is not a GGUF file (its first bytes are not 'GGUF').")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(path, data).header()
    except FileNotFoundError:
        raise TokenizerError(f"There is no file {path}.") from None
    except OSError as error:
        raise TokenizerError(f"{path} cannot be read: {error.strerror or error}.") from None


class _Reader:
    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.data = data
        self.size = len(data)
        self.at = 4

    def header(self) -> GgufHeader:
        try:
            return self._header()
        except (struct.error, IndexError, UnicodeDecodeError):
            raise TokenizerError(
                f"{self.path} is damaged or cut off: its header ends in the middle (file of {self.size:,} bytes). "
                "Fetch it again."
            ) from None

    def _header(self) -> GgufHeader:
        version = self._number(4)
        if version not in (2, 3):
            raise TokenizerError(f"{self.path} is a GGUF of version {version}; versions 2 and 3 can be read.")
        n_tensors, n_entries = self._number(8), self._number(8)
        self._sane(n_tensors, n_entries)
        facts: dict[str, Any] = {}
        vocabulary: dict[str, bytes] = {}
        states = False
        for _ in range(n_entries):
            key = self._string()
            begin = self.at
            kind = self._number(4)
            wanted = key.startswith(("general.", "tokenizer.chat_template")) or key.endswith(".context_length")
            wanted = wanted or key.endswith(_OF_THE_CACHE)
            states = states or bool(_STATES.match(key))
            wanted = wanted or key in ("tokenizer.ggml.model", "tokenizer.ggml.tokens", "tokenizer.ggml.token_type")
            value = self._value(kind, wanted=wanted)
            if wanted:
                facts[key] = value
            if key.startswith("tokenizer.ggml."):
                vocabulary[key] = hashlib.sha256(self.data[begin : self.at]).digest()
        self._check_extent(n_tensors, facts.get("general.alignment", 32))
        return replace(self._of(facts, vocabulary), has_states=states)

    def _of(self, facts: dict[str, Any], vocabulary: dict[str, bytes]) -> GgufHeader:
        tokens, types = facts.get("tokenizer.ggml.tokens"), facts.get("tokenizer.ggml.token_type")
        if not isinstance(tokens, list) or not tokens or not all(isinstance(token, str) for token in tokens):
            raise TokenizerError(
                f"{self.path} holds no vocabulary. Is it a whole model, and not a part or a projector?"
            )
        if types is None:
            types = [_NORMAL] * len(tokens)
        if not isinstance(types, list | array) or len(types) != len(tokens):
            raise TokenizerError(f"{self.path} is damaged: its token types do not fit its {len(tokens):,} tokens.")
        architecture, template = facts.get("general.architecture"), facts.get("tokenizer.chat_template")
        if not isinstance(architecture, str):
            raise TokenizerError(f"{self.path} does not say which architecture it is of.")
        context = facts.get(f"{architecture}.context_length")
        name = facts.get("general.name")
        digest = hashlib.sha256()
        for key in sorted(vocabulary):
            digest.update(key.encode() + b"\0" + vocabulary[key])
        return GgufHeader(
            path=self.path,
            architecture=architecture,
            name=name if isinstance(name, str) and name else None,
            context_length=context if type(context) is int and context > 0 else None,
            chat_template=template if isinstance(template, str) and template else None,
            fingerprint=digest.hexdigest()[:16],
            tokens=tokens,
            token_types=types,
            spelling=_SPELLINGS.get(str(facts.get("tokenizer.ggml.model"))),
            window=_largest(facts.get(f"{architecture}.attention.sliding_window")) or None,
            cached_values=_cached_values(facts, architecture),
        )

    def _check_extent(self, n_tensors: int, alignment: Any) -> None:
        """Every tensor must begin inside the file; the engine checks the last one's end."""
        if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1):
            raise TokenizerError(f"{self.path} is damaged: its alignment is {alignment!r}.")
        last = -1
        for _ in range(n_tensors):
            self._skip_string()
            dims = self._number(4)
            if dims > 8:
                raise IndexError
            self.at += 8 * dims + 4
            last = max(last, self._number(8))
        begin = -(-self.at // alignment) * alignment
        if last >= 0 and begin + last >= self.size:
            raise TokenizerError(
                f"{self.path} is cut off: it has {self.size:,} bytes, and weights begin at {begin + last:,}. "
                "Fetch it again."
            )

    def _value(self, kind: int, *, wanted: bool) -> Any:
        if kind == _STRING:
            return self._string() if wanted else self._skip_string()
        if kind != _ARRAY:
            begin = self._skip(_SIZES[kind] if kind in _SIZES else self.size + 1)
            return struct.unpack_from("<" + _SCALARS[kind], self.data, begin)[0]
        of, n = self._number(4), self._number(8)
        self._sane(n)
        if of == _STRING:
            return [self._string() for _ in range(n)] if wanted else [self._skip_string() for _ in range(n)] and None
        begin = self._skip(n * _SIZES[of] if of in _SIZES else self.size + 1)
        return list(struct.unpack_from(f"<{n}{_SCALARS[of]}", self.data, begin)) if wanted else None

    def _string(self) -> str:
        begin = self._skip_string()
        return self.data[begin : self.at].decode()

    def _skip_string(self) -> int:
        """Pass over a string; where it began."""
        (n,) = struct.unpack_from("<Q", self.data, self.at)
        self.at += 8
        return self._skip(n)

    def _skip(self, n: int) -> int:
        begin = self.at
        if n > self.size - begin:
            raise IndexError
        self.at = begin + n
        return begin

    def _number(self, n: int) -> int:
        begin = self._skip(n)
        return int.from_bytes(self.data[begin : self.at], "little")

    def _sane(self, *counts: int) -> None:
        if max(counts) > _MOST_ENTRIES:
            raise IndexError


def _whole(value: Any) -> int:
    """A count above 0, or 0 where there is none."""
    return value if type(value) is int and value > 0 else 0


def _largest(value: Any) -> int:
    """The same of a value for all layers, or the largest of one for each."""
    return max(map(_whole, value), default=0) if isinstance(value, list) else _whole(value)


def _cached_values(facts: dict[str, Any], architecture: str) -> int:
    """Values that the keys and values of one token take; 0 where the file doesn't say enough."""
    said = {key: facts.get(f"{architecture}{key}") for key in _OF_THE_CACHE}
    layers, heads = _whole(said[".block_count"]), said[".attention.head_count"]
    first = _whole(heads[0] if isinstance(heads, list) and heads else heads)
    each = _whole(said[".embedding_length"]) // first if first else 0
    sizes = sum(_whole(said[f".attention.{part}_length"]) or each for part in ("key", "value"))
    kept = said[".attention.head_count_kv"] or heads
    return sizes * (sum(map(_whole, kept)) if isinstance(kept, list) else _whole(kept) * layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufTensor:
    """Where a tensor stands in the file: its shape as PyTorch has it (rows first), and how its numbers are packed."""

    name: str
    shape: tuple[int, ...]
    kind: int
    begin: int


def read_gguf(path: Path) -> tuple[dict[str, Any], list[GgufTensor]]:
    """Everything that a GGUF says before its weights, and where each tensor of them is."""
    read_gguf_header(path)  # says in words what is wrong with a file
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        reader = _Reader(path, data)
        reader._number(4)
        n_tensors, n_entries = reader._number(8), reader._number(8)
        facts = {}
        for _ in range(n_entries):
            key = reader._string()
            facts[key] = reader._value(reader._number(4), wanted=True)
        found = []
        for _ in range(n_tensors):
            name = reader._string()
            sizes = [reader._number(8) for _ in range(reader._number(4))]
            found.append((name, tuple(reversed(sizes)), reader._number(4), reader._number(8)))
        alignment = facts.get("general.alignment", 32)
        first = -(-reader.at // alignment) * alignment
    return facts, [GgufTensor(name=n, shape=s, kind=k, begin=first + at) for n, s, k, at in found]
