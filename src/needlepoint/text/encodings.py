"""Bytes of an unknown text file → text, or a clear error: it never guesses where the guess would be a coin toss.

Pure. The order: byte-order marks, UTF-8, then GB18030 and Windows-1252, each only where the result reads like text.
"""

from __future__ import annotations

import codecs

from needlepoint.errors import CorpusError


class NotText(CorpusError):
    """The file is binary: no encoding would make a text of it."""


_SAMPLE_BYTES = 1 << 18
_MARKS = (  # the longer ones first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_KINDS = (
    (b"%PDF-", "a PDF file"),
    (b"PK\x03\x04", "a zip archive (or a docx, xlsx, epub, ...)"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"7z\xbc\xaf\x27\x1c", "an archive"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"BZh", "compressed with bzip2"),
    (b"\xfd7zXZ", "compressed with xz"),
    (b"GGUF", "a model"),
    (b"\x7fELF", "a program"),
)
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\x1b") + b"\x7f"
_CONTROL_SHARE = 0.01

# The hundred or so characters that make up a third of all Chinese writing, and its punctuation: a text in another
# East Asian encoding that happens to decode as GB18030 hardly has any.
_COMMON_HANZI = frozenset(
    "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过"
    "家十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从曰知使"
    "這個們來說國為於時會過發學對後麼經當與將還種進無軍見"
)
_CHINESE_MARKS = frozenset("，。、；：？！“”‘’（）《》【】—…「」『』　·")
_TYPOGRAPHY = frozenset("€‚„…†‡‰‹Œ›œ‘’“”•–—™¡¢£§©ª«®°±²³´·¹º»¼½¾¿×\u00a0\u00adŠŽšžŸƒˆ˜¦¨¯¶¸¬¤¥µ÷")

_JOINS = frozenset("‘’“”–—…·\u00ad")


def decoded(data: bytes, *, name: str, encoding: str | None = None) -> str:
    """The text of `data`. `name` is how errors call the file; `encoding` is the user's word and is taken strictly."""
    if encoding is not None:
        return _as_told(data, name, encoding)
    for mark, marked in _MARKS:
        if data.startswith(mark):
            return _strict(data, name, marked)
    for start, kind in _KINDS:
        if data.startswith(start):
            raise NotText(f"{name} is not a text but {kind}. Give its text: .txt, .md, .rst or .jsonl.")
    if b"\0" in data:
        if (wide := _wide(data)) is not None:
            return _strict(data, name, wide)
        raise NotText(
            f"{name} is not a text: it has a NUL byte at offset {data.index(0):,}. If it is one, pass --encoding NAME."
        )
    head = data[:_SAMPLE_BYTES]
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > _CONTROL_SHARE * len(head):
        raise NotText(f"{name} is not a text: {controls:,} of its first {len(head):,} bytes are control characters.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        position = error.start
    if _is_damaged_utf8(data, position):
        raise CorpusError(
            f"{name} is UTF-8 with damage: byte 0x{data[position]:02x} at offset {position:,} belongs to no character. "
            "Repair the file, or pass --encoding NAME."
        )
    for guess, plausible in (("gb18030", _reads_chinese), ("cp1252", _reads_latin)):
        if plausible(_sample(data, position, guess)):
            try:
                return data.decode(guess)
            except UnicodeDecodeError:
                continue
    raise CorpusError(
        f"Cannot tell the encoding of {name}: it is not UTF-8 (offset {position:,}), nor GB18030 or Windows-1252 that "
        "reads like text. Pass --encoding NAME (big5, shift_jis, koi8-r, ...)."
    )


def _as_told(data: bytes, name: str, encoding: str) -> str:
    try:
        codec = codecs.lookup(encoding)
        "".encode(encoding)  # refuses codecs that are not of text, such as base64
    except (LookupError, ValueError):
        raise CorpusError(f"There is no encoding {encoding!r}. Examples: utf-8, gb18030, cp1252, utf-16.") from None
    if codec.name == "utf-8" and data.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    return _strict(data, name, encoding)


def _strict(data: bytes, name: str, encoding: str) -> str:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{name} is not {encoding}: bytes {data[error.start : error.start + 4].hex(' ')} at offset "
            f"{error.start:,} ({error.reason}). Pass the right --encoding NAME, or convert it to UTF-8."
        ) from None
    except UnicodeError as error:  # utf-16 and utf-32 without a mark where one is needed, idna, ...
        raise CorpusError(f"{name} is not {encoding} ({error}). Pass the right --encoding NAME.") from None
    if "\0" in text:
        raise CorpusError(f"{name} read as {encoding} has NUL characters: it is not a text, or not {encoding}.")
    return text


def _wide(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, told by where the NUL bytes stand; None where they stand anyhow."""
    sample = data[:_SAMPLE_BYTES]
    for width, order in ((4, "le"), (4, "be"), (2, "le"), (2, "be")):
        if len(data) % width:
            continue
        sample = sample[: len(sample) // width * width]
        zeros = [sample[place::width].count(0) / (len(sample) / width) for place in range(width)]
        if order == "be":
            zeros.reverse()
        encoding = f"utf-{8 * width}-{order}"
        if len(sample) < 4 * width or zeros[0] > 0.1:
            continue
        if zeros[3] == 1 and zeros[2] > 0.9 if width == 4 else zeros[1] > 0.2 or _reads_wide(sample, encoding):
            return encoding
    return None


def _reads_wide(sample: bytes, encoding: str) -> bool:
    return _reads_chinese(sample.decode(encoding, "replace").removesuffix("\ufffd"))


def _is_damaged_utf8(data: bytes, position: int) -> bool:
    """Whether most of what is not ASCII is well-formed UTF-8 after all."""
    start = max(0, position - _SAMPLE_BYTES // 2)
    window = data[start : start + _SAMPLE_BYTES]
    kept = window.decode("utf-8", "ignore")
    whole = sum(not character.isascii() for character in kept)
    broken = len(window) - len(kept.encode("utf-8"))
    cut_short = start + len(window) == len(data) and position >= len(data) - 3 and whole > 0
    return whole >= max(broken, 1) or cut_short


def _sample(data: bytes, position: int, encoding: str) -> str:
    """What is not ASCII around the first byte that is not UTF-8, read as `encoding`, with its ASCII neighbours.

    The window begins at a line's start, so that it does not cut a character in two.
    """
    start = data.rfind(b"\n", 0, position) + 1
    if position - start > _SAMPLE_BYTES:
        start = position
    return data[start : start + _SAMPLE_BYTES].decode(encoding, "replace").rstrip("\ufffd")


def _reads_chinese(text: str) -> bool:
    foreign = [character for character in text if not character.isascii()]
    if not foreign or any("\ue000" <= character <= "\uf8ff" or character == "\ufffd" for character in foreign):
        return False
    common = sum(character in _COMMON_HANZI or character in _CHINESE_MARKS for character in foreign)
    hanzi = sum("\u4e00" <= character <= "\u9fff" or character in _CHINESE_MARKS for character in foreign)
    return common >= 0.2 * len(foreign) and hanzi >= 0.9 * len(foreign)


def _reads_latin(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    foreign = [character for character in text if not character.isascii()]
    strange = sum(not ("À" <= character <= "ÿ" or character in _TYPOGRAPHY) for character in foreign)
    capitals = sum(  # "dÉj": a capital between small letters is how a wrong guess looks
        left.islower() and "À" <= middle <= "Þ" and right.islower()
        for left, middle, right in zip(text, text[1:], text[2:], strict=False)
    )
    signs = sum(  # "Za¿ó": so does a sign inside a word
        left.isalpha() and right.isalpha() and middle in _TYPOGRAPHY and not (middle.isalpha() or middle in _JOINS)
        for left, middle, right in zip(text, text[1:], text[2:], strict=False)
    )
    accented = sum(not letter.isascii() for letter in letters)
    return strange == 0 and capitals + signs <= 0.02 * len(foreign) and accented <= max(0.25 * len(letters), 1)
