"""What every tokenizer behind a connection has in common: its facts, its memory of short texts, its end.

Knows no server's endpoints: `vllm` and `llama_server` do.
"""

from __future__ import annotations

import hashlib
import unicodedata
import weakref
from abc import ABC, abstractmethod
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Self

from needlepoint.ask.models.pieces import MisalignedError
from needlepoint.ask.models.wire import Wire
from needlepoint.errors import TokenizerError
from needlepoint.types import Encoding, Message, Render

_CACHED_TEXTS = 2048
_CACHED_CHARS = 4096

# Texts that show how a vocabulary spells bytes, and tell vocabularies apart.
PROBE = "Needle 42 in\ta haystack,  don't: naïve café, 北京。 山𠀀 🙂\n\ndef f(x): return x_1 + 0x7F\n"

PROBE_CHAT: tuple[Message, ...] = (
    {"role": "system", "content": "Answer in one word."},
    {"role": "user", "content": "Which colour has the sky?"},
)


class RemoteTokenizer(ABC):
    """A server's tokenizer. Holds a connection: `close` it. Used from one thread at a time.

    Chat servers read control tokens wherever they are spelled; a text must hold none of `special_tokens` for its count
    to be its count inside a chat.
    """

    def __init__(self, wire: Wire, *, name: str) -> None:
        self._wire = wire
        self._name = name
        self._fingerprint = ""
        self._special_tokens: tuple[str, ...] = ()
        self._adds_bos = False
        self._nfc = False
        self._encoded: OrderedDict[tuple[str, bool], Encoding] = OrderedDict()
        self._closing = weakref.finalize(self, wire.close)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r} at {self._wire.shown!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection. The tokenizer is of no use after it."""
        self._closing()

    @property
    def name(self) -> str:
        return self._name

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def special_tokens(self) -> Sequence[str]:
        return self._special_tokens

    @property
    def adds_bos(self) -> bool:
        return self._adds_bos

    @property
    def rewrites(self) -> bool:
        return False  # a server gives the tokens of just the text that it is sent

    @property
    def nfc(self) -> bool:
        return self._nfc

    def encode(self, text: str, *, special: bool = False) -> Encoding:
        key = (text, special)
        known = self._encoded.get(key)
        if known is not None:
            self._encoded.move_to_end(key)
            return known
        data = utf8(unicodedata.normalize("NFC", text) if self._nfc else text)
        encoding = self._encode(text, data, special=special) if data else Encoding(array("I"), array("I"))
        if len(text) <= _CACHED_CHARS:
            self._encoded[key] = encoding
            if len(self._encoded) > _CACHED_TEXTS:
                self._encoded.popitem(last=False)
        return encoding

    def count(self, text: str, *, special: bool = False) -> int:
        known = self._encoded.get((text, special))
        if known is not None or len(text) <= _CACHED_CHARS:
            return len(self.encode(text, special=special))
        return len(self._ids(text, special=special))

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str: ...

    @abstractmethod
    def _encode(self, text: str, data: bytes, *, special: bool) -> Encoding: ...

    @abstractmethod
    def _ids(self, text: str, *, special: bool) -> array[int]: ...

    def _probe_fingerprint(self) -> str:
        """A server shows no vocabulary: what it makes of a probe and of the control tokens stands for it."""
        digest = hashlib.sha256(type(self).__name__.encode())
        for text in (PROBE, "\n".join(self._special_tokens)):
            digest.update(text.encode() + b"\0" + self._ids(text, special=True).tobytes())
        return digest.hexdigest()[:16]

    def _misaligned(self, error: MisalignedError) -> TokenizerError:
        return TokenizerError(
            f"The tokens of {self._name} at {self._wire.shown} cannot be laid over the text (near {error.near!r}): its "
            "tokenizer changes the text. Choose a local one with --tokenizer; lengths are then not proven."
        )


@cache
def known_controls() -> tuple[str, ...]:
    """Spellings of control tokens that vocabularies have. Asked for by name where a server does not list its own."""
    return tuple(files(__package__).joinpath("controls.txt").read_text("utf-8").split())


def only_model(wire: Wire) -> str | None:
    """The name of the first model that the server lists; of a path, its last part."""
    answer = wire.get("/v1/models")
    listed = answer.value.get("data") if isinstance(answer.value, dict) else None
    first = listed[0].get("id") if isinstance(listed, list) and listed and isinstance(listed[0], dict) else None
    if not isinstance(first, str):
        return None
    path = first.replace("\\", "/")
    return path.rpartition("/")[2] if path.startswith("/") or path.endswith(".gguf") else first


def prove_render(render: Render) -> tuple[list[Message] | None, str | None]:
    """A chat that the template takes, and what to note: many templates take no system message, some take no chat."""
    first: TokenizerError | None = None
    for chat in (list(PROBE_CHAT), list(PROBE_CHAT[1:])):
        try:
            render(chat)
        except TokenizerError as error:
            first = first or error
        else:
            return chat, f"the chat template takes no system message: {first}" if first else None
    return None, f"lengths do not count the chat template: {first}"


def template_name(server: str, template: Any) -> str:
    """A short name by which two runs can see that they had the same chat template."""
    if not isinstance(template, str):
        return server
    return f"{server}:{hashlib.sha256(template.encode('utf-8', 'replace')).hexdigest()[:12]}"


def positive(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise TokenizerError("The text holds half of a surrogate pair, which is no character.") from None


def token_ids(wire: Wire, answer: Mapping[str, Any]) -> array[int]:
    tokens = answer.get("tokens")
    try:
        if isinstance(tokens, list):
            return array("I", tokens)
    except (TypeError, ValueError, OverflowError):
        pass
    raise wire.unusable("/tokenize", "no list of token ids in it")
