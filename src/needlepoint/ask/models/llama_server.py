"""llama.cpp's server: its `/tokenize` and `/apply-template`, remote or embedded. Knows nothing of asking."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from needlepoint.ask.models.pieces import MisalignedError, control_lookalikes, ends_of
from needlepoint.ask.models.remote import (
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
from needlepoint.types import Encoding, Endpoint, Message, Render


class LlamaServerTokenizer(RemoteTokenizer):
    """llama.cpp's `/tokenize`. `table` (token id → bytes) may come from the model's file: checked, not trusted."""

    def __init__(
        self, wire: Wire, *, name: str, model: str | None = None, table: dict[int, bytes] | None = None
    ) -> None:
        super().__init__(wire, name=name)
        self._model = {"model": model} if model else {}
        self._table: dict[int, bytes] = {} if table is None else table
        self._table_is_whole = bool(table)
        self._controls: frozenset[bytes] = frozenset()

    def learn(
        self, *, special_tokens: Sequence[str] = (), aligns_by: Sequence[str] = (), fingerprint: str = ""
    ) -> None:
        """What the file says where there is one; what the server's answers show where not."""
        self._special_tokens = tuple(special_tokens) or self._find_controls()
        self._controls = frozenset(spelled.encode() for spelled in (*self._special_tokens, *aligns_by))
        self._fingerprint = fingerprint or self._probe_fingerprint()

    def renderer(self) -> Render:
        """The server's chat template. It drops BOS and EOS, which tokenizing puts back: so do we, spelled out."""
        before, behind = self._ears()
        self._adds_bos = bool(before)

        def rendered(messages: Sequence[Message]) -> str:
            body = {**self._model, "messages": [dict(message) for message in messages]}
            prompt = self._wire.ask("/apply-template", body).get("prompt")
            if not isinstance(prompt, str):
                raise self._wire.unusable("/apply-template", "no prompt in it")
            return before + prompt + behind

        return rendered

    def chat_tokens(self, messages: Sequence[Message]) -> int | None:
        """What the server counts for a chat, where it has an endpoint for that."""
        body = {**self._model, "messages": [dict(message) for message in messages]}
        answer = self._wire.post("/v1/chat/completions/input_tokens", body)
        found = answer.value.get("input_tokens") if answer.status == 200 and isinstance(answer.value, dict) else None
        return found if isinstance(found, int) else None

    def decode(self, ids: Sequence[int]) -> str:
        if self._table_is_whole and all(i in self._table for i in ids):
            return b"".join(map(self._table.__getitem__, ids)).decode("utf-8", "replace")
        text = self._wire.ask("/detokenize", {**self._model, "tokens": list(ids)}).get("content")
        if not isinstance(text, str):
            raise self._wire.unusable("/detokenize", "no content in it")
        return text

    def _encode(self, text: str, data: bytes, *, special: bool) -> Encoding:
        if self._table_is_whole:
            ids = self._ids(text, special=special)
            try:
                return Encoding(ids, ends_of([self._table[i] for i in ids], data, self._controls))
            except (KeyError, MisalignedError):
                # The file's spelling is not what the engine makes of it: take the pieces from the engine from here on.
                self._table, self._table_is_whole = {}, False
        ids = self._ids(text, special=special, pieces=True)
        try:
            return Encoding(ids, ends_of([self._table[i] for i in ids], data, self._controls))
        except KeyError:
            raise self._wire.unusable("/tokenize", "no pieces in it") from None
        except MisalignedError as error:
            raise self._misaligned(error) from None

    def _ids(self, text: str, *, special: bool, pieces: bool = False, ears: bool = False) -> array[int]:
        body = {
            **self._model,
            "content": text,
            "add_special": ears,
            "parse_special": special,
            "with_pieces": pieces,
        }
        answer = self._wire.ask("/tokenize", body, hook=_note_pieces(self._table) if pieces else None)
        return token_ids(self._wire, answer)

    def _ears(self) -> tuple[str, str]:
        """What tokenizing a chat puts around it: BOS before, EOS behind, as text; empty for most models."""
        bare, eared = (self._ids("x", special=True, pieces=True, ears=ears) for ears in (False, True))
        at = next((i for i in range(len(eared)) if eared[i : i + len(bare)] == bare), None)
        if at is None:
            raise self._wire.unusable("/tokenize", "other tokens with add_special than without")
        around = (eared[:at], eared[at + len(bare) :])
        before, behind = (b"".join(self._table[i] for i in ids).decode("utf-8", "replace") for ids in around)
        if (before or behind) and self._ids(before + "x" + behind, special=True) != eared:
            raise self._wire.unusable("/tokenize", f"{before!r} and {behind!r} are not read as the tokens they name")
        return before, behind

    def _find_controls(self) -> tuple[str, ...]:
        chat = self._wire.post("/apply-template", {**self._model, "messages": list(PROBE_CHAT)})
        prompt = chat.value.get("prompt") if isinstance(chat.value, dict) else None
        asked = list(dict.fromkeys([*known_controls(), *sorted(control_lookalikes([str(prompt or "")]))]))
        joined = "\n".join(asked)
        parsed = self._ids(joined, special=True, pieces=True)
        controls = {self._table[i] for i in set(parsed) - set(self._ids(joined, special=False))}
        return tuple(spelled for spelled in asked if spelled.encode() in controls)


def connect_llama(wire: Wire, model: str | None) -> Endpoint:
    props = wire.get("/props", params={"model": model} if model else None)
    facts = props.value if props.status == 200 and isinstance(props.value, dict) else {}
    settings = facts.get("default_generation_settings")
    template = facts.get("chat_template")
    tokenizer = LlamaServerTokenizer(wire, name=f"llama.cpp:{model or only_model(wire) or 'model'}", model=model)
    tokenizer.learn()
    return llama_endpoint(
        tokenizer,
        template_name=template_name("llama.cpp", template),
        limit_tokens=positive(settings.get("n_ctx")) if isinstance(settings, dict) else None,
        notes=() if facts else ("llama.cpp's /props is closed: the model's limit is not known",),
    )


def llama_endpoint(
    tokenizer: LlamaServerTokenizer, *, template_name: str | None, limit_tokens: int | None, notes: tuple[str, ...] = ()
) -> Endpoint:
    """The endpoint of a llama.cpp server, its render proven on a probe against the server's own count of a chat."""
    rendered = tokenizer.renderer()
    render: Render | None = rendered
    proven = True
    chat, note = prove_render(rendered)
    if note:
        notes += (note,)
    if chat is None:
        render, proven = None, False
    else:
        ours, theirs = tokenizer.count(rendered(chat), special=True), tokenizer.chat_tokens(chat)
        if theirs is not None and theirs != ours:
            proven = False
            notes += (f"the server counts {theirs} tokens for a chat that is {ours} by its own template",)
    return Endpoint(
        tokenizer=tokenizer,
        render=render,
        template_name=template_name if render else None,
        proven=proven,
        limit_tokens=limit_tokens,
        notes=notes,
    )


def _note_pieces(table: dict[int, bytes]) -> Callable[[list[tuple[str, Any]]], Any]:
    """A JSON hook: `{"id": 5, "piece": "x"}` becomes 5, its piece goes to the table. A long answer stays small so."""

    def noted(pairs: list[tuple[str, Any]]) -> Any:
        if len(pairs) == 2 and pairs[0][0] == "id" and pairs[1][0] == "piece":
            token, spelled = pairs[0][1], pairs[1][1]
            if type(token) is int:
                if token not in table:
                    try:
                        table[token] = spelled.encode() if isinstance(spelled, str) else bytes(spelled)
                    except (TypeError, ValueError):
                        return dict(pairs)
                return token
        return dict(pairs)

    return noted
