"""Prompts byte for byte as EvalScope 1.14 builds them (length mode `evalscope`).

Its length is a label: the context is the first `length - 150 - needles` tokens of the text, a needle goes back to just
behind the nearest earlier token that is exactly a full stop, and what that gives is decoded. Where that procedure has
no sensible result (no room for text, no full stop at all, a BOS token in the middle) this raises instead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

from ..errors import CorpusError, LengthError, TokenizerError
from ..types import Cell, Encoding, Needle, Placement, Tokenizer
from .exact import whole_edits
from .haystack import Haystack
from .prompt import Frame, Prompt
from .splice import Edit, Splicer

BUFFER_TOKENS = 150


class ParityText:
    """A haystack with what parity needs of it: where its full stops are, and the needles' own tokens."""

    def __init__(self, haystack: Haystack, needles: Sequence[Needle]) -> None:
        tokenizer = haystack.tokenizer
        if tokenizer.adds_bos:
            raise TokenizerError(
                f"EvalScope would put the BOS token of {tokenizer.name!r} into the middle of the text, so there is no "
                "right prompt to equal. Use --length-mode exact, or the tokenizer Qwen/Qwen3-0.6B."
            )
        if tokenizer.rewrites:
            raise TokenizerError(
                f"With the tokenizer {tokenizer.name!r} EvalScope would give back another text than it reads (spaces, "
                "an end token or other spellings), so there is no right prompt to equal. Use --length-mode exact, or "
                "the tokenizer Qwen/Qwen3-0.6B."
            )
        self.haystack = haystack
        self.splicer = Splicer(haystack)
        self.needles = tuple(needles)
        self.texts = tuple(normalize("NFC", needle.text) if tokenizer.nfc else needle.text for needle in needles)
        self.encoded = tuple(tokenizer.encode(text, special=True) for text in self.texts)
        self.stops = full_stops(tokenizer)
        self.stop_tokens = [index for index, token in enumerate(haystack.ids) if token in self.stops]
        self.needle_tokens = sum(map(len, self.encoded))

    @property
    def shortest(self) -> int:
        """The shortest length with room for any text."""
        return BUFFER_TOKENS + self.needle_tokens + 1

    def check(self, cell: Cell) -> None:
        """Raise where EvalScope would build a wrong prompt."""
        if cell.context_length < self.shortest:
            raise LengthError(
                f"A context length of {cell.context_length} leaves no text: EvalScope's way takes {BUFFER_TOKENS} "
                f"tokens off for the question and {self.needle_tokens} for the needles. Use {self.shortest} or more, "
                "or --length-mode exact."
            )
        if not self.stop_tokens and cell.depth_percent < 100 and (cell.depth_percent > 0 or len(self.needles) > 1):
            raise CorpusError(
                "The text has no full stop ('.' or '。') that is a token of its own, so every needle would land at "
                "its very start. Use --length-mode exact, which finds other sentence ends."
            )


def full_stops(tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens that EvalScope takes for a sentence's end."""
    return frozenset([*tokenizer.encode(".", special=True).ids, *tokenizer.encode("。", special=True).ids])


@dataclass(frozen=True, slots=True)
class _Piece:
    """Tokens `start..end` of the haystack, or of a needle."""

    start: int
    end: int
    needle: int | None = None

    def __len__(self) -> int:
        return self.end - self.start


def build(text: ParityText, frame: Frame, *, cell: Cell, replicate: int, question: str) -> Prompt:
    """EvalScope's prompt of one cell."""
    text.check(cell)
    hay = text.haystack
    cut = cell.context_length - BUFFER_TOKENS - text.needle_tokens
    pieces = [_Piece(0, cut)]
    placements: list[Placement] = []
    depth = cell.depth_percent
    step = (100 - depth) / len(text.needles)
    for number, encoded in enumerate(text.encoded):
        total = sum(map(len, pieces))
        if depth == 100:
            at = total
        else:
            at = _behind_full_stop(text, pieces, int(total * (depth / 100)))
        tokens_before = _insert(pieces, at, _Piece(0, len(encoded), number))
        placements.append(
            Placement(
                needle=number,
                depth_percent=round(depth, 3),
                achieved_depth_percent=round(100 * tokens_before / cut, 3),
                tokens_before=tokens_before,
                boundary="sentence" if at < total or total == 0 or _ends_sentence(text, cut) else "word",
            )
        )
        if depth != 100:
            depth += step
    edits = _edits(text, pieces, cut)
    runs = tuple(text.splicer.splice(whole_edits(frame, edits)))
    return Prompt(
        cell=cell,
        replicate=replicate,
        length_mode="evalscope",
        needles=text.needles,
        placements=tuple(placements),
        question=question,
        frame=frame,
        haystack=hay,
        edits=tuple(edits),
        runs=runs,
        n_tokens=sum(map(len, runs)),
        hay_tokens=cut,
    )


def _ends_sentence(text: ParityText, cut: int) -> bool:
    return text.haystack.ids[cut - 1] in text.stops


def _behind_full_stop(text: ParityText, pieces: Sequence[_Piece], at: int) -> int:
    """The place behind the last full stop before token `at` of the pieces, or 0."""
    begin = sum(map(len, pieces))
    for piece in reversed(pieces):
        begin -= len(piece)
        if begin >= at:
            continue
        stop = piece.start + min(len(piece), at - begin)
        if piece.needle is None:
            found = bisect_right(text.stop_tokens, stop - 1)
            if found and text.stop_tokens[found - 1] >= piece.start:
                return begin + text.stop_tokens[found - 1] + 1 - piece.start
        else:
            ids = text.encoded[piece.needle].ids
            for index in range(stop - 1, piece.start - 1, -1):
                if ids[index] in text.stops:
                    return begin + index + 1 - piece.start
    return 0


def _insert(pieces: list[_Piece], at: int, new: _Piece) -> int:
    """Put `new` in front of token `at`; returns how many haystack tokens stand before it."""
    begin = 0
    hay_tokens = 0
    for index, piece in enumerate(pieces):
        if at <= begin + len(piece):
            split = piece.start + at - begin
            parts = [_Piece(piece.start, split, piece.needle), new, _Piece(split, piece.end, piece.needle)]
            pieces[index : index + 1] = [part for part in parts if len(part)]
            return hay_tokens + (at - begin if piece.needle is None else 0)
        begin += len(piece)
        hay_tokens += len(piece) if piece.needle is None else 0
    pieces.append(new)
    return hay_tokens


def _edits(text: ParityText, pieces: Sequence[_Piece], cut: int) -> list[Edit]:
    """The pieces as edits of the haystack. A character that the cut goes through becomes U+FFFD, as it does there."""
    hay = text.haystack
    edits: list[Edit] = []
    token = 0
    pending: list[str] = []
    for piece in pieces:
        if piece.needle is None:
            if pending:
                edits.append(_insertion(text, token, "".join(pending)))
                pending = []
            token = piece.end
        else:
            pending.append(_text_of(text.texts[piece.needle], text.encoded[piece.needle], piece))
    end = hay.start_of(cut)
    whole = end
    while not hay.is_character_start(whole):
        whole -= 1
    broken = hay.data[whole:end].decode("utf-8", "replace")
    edits.append(Edit(start=whole, end=None, text=broken + "".join(pending)))
    return edits


def _insertion(text: ParityText, token: int, inserted: str) -> Edit:
    byte = text.haystack.start_of(token)
    if not text.haystack.is_character_start(byte):
        raise TokenizerError(
            f"The tokenizer {text.haystack.tokenizer.name!r} splits a full stop into bytes, so a needle would land "
            "inside a character. Use --length-mode exact."
        )
    return Edit(start=byte, end=byte, text=inserted)


def _text_of(needle: str, encoded: Encoding, piece: _Piece) -> str:
    data = needle.encode()
    begin = encoded.ends[piece.start - 1] if piece.start else 0
    return data[begin : encoded.ends[piece.end - 1]].decode("utf-8", "replace")
