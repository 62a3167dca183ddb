"""vLLM's server: its `/tokenize`, for texts and for chats. Knows nothing of asking."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from needlepoint.ask.models.pieces import MisalignedError, Spelling, control_lookalikes, ends_of, piece
from needlepoint.ask.models.remote import (
    PROBE,
    PROBE_CHAT,
    RemoteTokenizer,
    known_controls,
    only_model,
    positive,
    prove_render,
    template_name,
    token_ids,
)
from needlepoint.ask.models.wire import Wire
from needlepoint.errors import TokenizerError
from needlepoint.types import Encoding, Endpoint, Message, Render


class VllmTokenizer(RemoteTokenizer):
    """vLLM's `/tokenize`. It always reads control tokens, so `special` makes no difference."""

    def __init__(self, wire: Wire, *, name: str, model: str | None) -> None:
        super().__init__(wire, name=name)
        self._model = {"model": model} if model else {}
        self._spelling: Spelling = "plain"
        self._controls: frozenset[bytes] = frozenset()

    def learn(self) -> None:
        """Find out how the vocabulary spells bytes, which control tokens it has, and whether it adds a BOS."""
        _, tokens = self._tokens({"prompt": PROBE})
        data = PROBE.encode()
        spellings: tuple[Spelling, ...] = ("byte-level", "sentencepiece", "plain")
        for self._spelling in spellings:
            try:
                ends_of([piece(token, self._spelling) for token in tokens], data)
                break
            except MisalignedError as error:
                last = error
        else:
            raise self._misaligned(last)
        self._nfc = self._makes_nfc()
        chat: list[str] = []
        answer = self._wire.post("/tokenize", {**self._model, "messages": list(PROBE_CHAT), "return_token_strs": True})
        if answer.status == 200 and isinstance(answer.value, dict):
            chat = [token for token in answer.value.get("token_strs") or () if isinstance(token, str)]
        asked = list(dict.fromkeys([*known_controls(), *sorted(control_lookalikes(chat) & set(chat))]))
        _, tokens = self._tokens({"prompt": "\n".join(asked)})
        self._special_tokens = tuple(spelled for spelled in asked if spelled in set(tokens))
        self._controls = frozenset(spelled.encode() for spelled in self._special_tokens)
        bare, eared = (self._ids_of({"prompt": "x", "add_special_tokens": adds}) for adds in (False, True))
        self._adds_bos = len(eared) > len(bare) and eared[0] != bare[0]
        self._fingerprint = self._probe_fingerprint()

    def _makes_nfc(self) -> bool:
        """Whether the tokenizer composes characters first, as those of Qwen do."""
        _, tokens = self._tokens({"prompt": "cafe\u0301"})
        return b"".join(piece(token, self._spelling) for token in tokens).strip() == "café".encode()

    def render(self, messages: Sequence[Message]) -> str:
        """The text whose tokens are those that the server makes of the messages.

        There is no endpoint for the text: it is read off the tokens, and proven by encoding it again.
        """
        ids, tokens = self._tokens({"messages": [dict(message) for message in messages], "add_generation_prompt": True})
        pieces = self._pieces(tokens)
        joined = b"".join(pieces).decode("utf-8", "replace")
        if self._ids(joined, special=True) == ids:
            return joined
        for text in (self._without_dummies(pieces), self.decode(ids)):
            if self._ids(text, special=True) == ids:
                return text
        raise TokenizerError(f"The chat template of {self._name} at {self._wire.shown} cannot be read off its tokens.")

    def decode(self, ids: Sequence[int]) -> str:
        text = self._wire.ask("/detokenize", {**self._model, "tokens": list(ids)}).get("prompt")
        if not isinstance(text, str):
            raise self._wire.unusable("/detokenize", "no prompt in it")
        return text

    def _encode(self, text: str, data: bytes, *, special: bool) -> Encoding:
        ids, tokens = self._tokens({"prompt": text})
        try:
            return Encoding(ids, ends_of(self._pieces(tokens), data, self._controls))
        except MisalignedError as error:
            raise self._misaligned(error) from None

    def _ids(self, text: str, *, special: bool) -> array[int]:
        return self._ids_of({"prompt": text, "add_special_tokens": False})

    def _ids_of(self, body: Mapping[str, Any]) -> array[int]:
        return token_ids(self._wire, self._wire.ask("/tokenize", {**self._model, **body}))

    def _tokens(self, body: Mapping[str, Any]) -> tuple[array[int], list[str]]:
        asked = {**self._model, "add_special_tokens": False, "return_token_strs": True, **body}
        answer = self._wire.ask("/tokenize", asked)
        ids, tokens = token_ids(self._wire, answer), answer.get("token_strs")
        if tokens is None:
            raise self._wire.unusable("/tokenize", "no token_strs, as old versions of vLLM and other servers do")
        if not isinstance(tokens, list) or len(tokens) != len(ids) or not all(isinstance(one, str) for one in tokens):
            raise self._wire.unusable("/tokenize", "token_strs that do not fit the tokens")
        return ids, tokens

    def _pieces(self, tokens: Sequence[str]) -> list[bytes]:
        known: dict[str, bytes] = {}
        controls = frozenset(self._special_tokens)
        for token in set(tokens):
            known[token] = piece(token, self._spelling, controls)
        return [known[token] for token in tokens]

    def _without_dummies(self, pieces: Sequence[bytes]) -> str:
        """The joined pieces, less one space in front of each stretch of ordinary text."""
        text, starts = bytearray(), True
        for one in pieces:
            text += one[1:] if starts and one[:1] == b" " else one
            starts = one in self._controls
        return text.decode("utf-8", "replace")


def connect_vllm(wire: Wire, model: str | None, limit_tokens: Any) -> Endpoint:
    tokenizer = VllmTokenizer(wire, name=f"vllm:{model or only_model(wire) or 'model'}", model=model)
    tokenizer.learn()
    chat, note = prove_render(tokenizer.render)
    render: Render | None = tokenizer.render if chat else None
    return Endpoint(
        tokenizer=tokenizer,
        render=render,
        template_name=template_name("vllm", tokenizer.render(chat)) if chat else None,
        proven=render is not None,
        limit_tokens=positive(limit_tokens),
        notes=(note,) if note else (),
    )
