"""Any server with OpenAI's API: `/v1/chat/completions` and `/v1/completions`, streaming or not.

One attempt for each prompt; what goes wrong is data in the reply. What a server turns out not to take (`stream`,
`max_tokens`, a `/v1` in the path) is left out from then on, and that finding out is no attempt.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any

from needlepoint.ask.keys import check_headers
from needlepoint.ask.models.address import Address
from needlepoint.ask.models.answers import ROOM_BYTES, ROOM_BYTES_PER_TOKEN, Draft, EventStream, read_whole
from needlepoint.ask.models.caching import Hints, cache_of, capabilities_of, key_options, marked, whole_options
from needlepoint.ask.models.channel import BrokenError, Channel, Incoming, shown_target
from needlepoint.ask.models.introduction import Introduction, introduce
from needlepoint.ask.models.listed import Listed, other_names
from needlepoint.ask.models.logprobs import Logprobs
from needlepoint.ask.models.margins import margin_of
from needlepoint.ask.models.overflow import find_overflow
from needlepoint.ask.models.own_tokens import texts_of
from needlepoint.ask.models.refusals import Refusal, RefusedError, bad_answer
from needlepoint.errors import UsageError
from needlepoint.types import Alternatives, Askable, Endpoint, Failure, Reply, Sampling, Times

_ERROR_BYTES = 1 << 16
_AFTER_DONE_S = 1.0
_OURS = frozenset(("model", "messages", "prompt"))
_STREAM_BEGINS = (b"data:", b"event:", b"id:", b"retry:", b":")


@dataclass(frozen=True, slots=True)
class _Manner:
    """How this server wants to be asked, as far as it is known."""

    base: str
    stream: bool
    answer_limit: str = "max_tokens"


class OpenAIModel:
    """A model behind an OpenAI-compatible API. Belongs to one event loop; `close` it there.

    `endpoint` is what prompts are counted with where the user chose it; else the server's own tokenizer is, and where
    it has none, what `local` gives. `key` and `headers` are sent, and never shown.
    """

    wave = 1

    def __init__(
        self,
        name: str,
        *,
        api_url: str,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        completions: bool = False,
        stream: bool = True,
        max_model_len: int | None = None,
        endpoint: Endpoint | None = None,
        local: Callable[[], Endpoint] | None = None,
        logprobs: bool = False,
        hints: Hints = "auto",
    ) -> None:
        self.name = name
        self._hints: Hints = hints
        self.address = Address.of(api_url)
        self.rate_headers: Mapping[str, str] = {}
        """What the last answer said of rate limits."""
        headers = dict(headers or {})
        check_headers(headers)
        if api_key and not (api_key.isascii() and api_key.isprintable()):
            raise UsageError(f"The API key for {self.address.shown} holds characters that no HTTP header can carry.")
        self._api_url = api_url
        self._api_key = api_key or None
        self._completions = completions
        self._max_model_len = max_model_len
        self._endpoint = endpoint
        self._local = local
        self._channel = Channel(self.address, api_key=self._api_key, headers=headers)
        self._manner = _Manner(self.address.bases[0], stream)
        self._base_is_settled = len(self.address.bases) == 1
        self._models: tuple[Listed, ...] = ()
        self._opens_thought = False
        self._bos: tuple[str, ...] = ()
        self._exact_tokens = False
        self._own_tokenizer: Any = None
        self._engine: object = None
        self._wants_logprobs = logprobs
        self._logprobs: Logprobs | None = None

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r} at {self.address.shown!r})"

    async def connect(self) -> Endpoint:
        """What the server, and where it doesn't say, the local tokenizer, know of tokens, template and limit.

        A server that can't be reached, refuses the key or says that it has no such model raises UsageError.
        """
        found: Introduction = await introduce(
            self._channel,
            self.name,
            api_url=self._api_url,
            api_key=self._api_key,
            endpoint=self._endpoint,
            local=self._local,
            max_model_len=self._max_model_len,
        )
        if found.base is not None:
            self._manner = replace(self._manner, base=found.base)
            self._base_is_settled = True
        self._models = found.models
        self._opens_thought = found.opens_thought
        self._own_tokenizer = found.own_tokenizer
        # What we count is spelled out whole; a server that adds a BOS of its own to a text must not be sent two.
        tokenizer = found.endpoint.tokenizer
        self._exact_tokens = tokenizer.name.startswith("vllm:")
        if tokenizer.name.startswith("llama.cpp:") and tokenizer.adds_bos:
            self._bos = tuple(sorted(tokenizer.special_tokens, key=len, reverse=True))
        self._engine = found.endpoint.facts.get("engine")
        capabilities = capabilities_of(self._engine, self._hints, self.address.root)
        cache, facts = cache_of(self._engine, self._hints), dict(found.endpoint.facts)
        if facts.get("cache_prefixes") is False:
            cache, capabilities = "none", capabilities - {"prefixes"}
        if self._wants_logprobs:
            self._logprobs = await Logprobs.found(
                self._channel,
                name=self.name,
                base=self._manner.base,
                engine=self._engine,
                endpoint=found.endpoint,
                counts_itself=found.own_tokenizer is not None,
                extra={"add_special_tokens": False} if self._exact_tokens else {},
                sent=self._unmarked,
            )
        if self._logprobs is not None:
            capabilities |= {"logprob"}
            facts["logprobs"] = self._logprobs.manner
        return replace(found.endpoint, cache=cache, capabilities=capabilities, facts=facts)

    async def ask(self, prompts: Sequence[Askable], sampling: Sampling) -> AsyncGenerator[Reply]:
        for prompt in prompts:
            reply = await self._ask_one(prompt, sampling)
            compared: Alternatives | None = getattr(prompt, "alternatives", None)
            if compared is not None and reply.error is None and self._logprobs is not None:
                scores = await self.logprob(prompt, texts_of(compared), lead=compared.lead)
                reply = replace(reply, margin=margin_of(compared, scores))
            yield reply

    async def logprob(
        self, prompt: Askable, continuations: Sequence[str], *, lead: str = ""
    ) -> list[tuple[float, ...] | None]:
        """For each continuation, the log-probability of each of its tokens after prompt, lead and those before it."""
        if self._logprobs is None:
            raise UsageError(f"{self.name} tells no log-probabilities of given texts.")
        return await self._logprobs.values(prompt, continuations, lead)

    async def close(self) -> None:
        """End all connections, that of the server's tokenizer too."""
        if self._own_tokenizer is not None:
            self._own_tokenizer.close()
            self._own_tokenizer = None
        await self._channel.close()

    async def _ask_one(self, prompt: Askable, sampling: Sampling) -> Reply:
        started = time.perf_counter()
        for _ in range(4):
            manner = self._manner
            if "stream" in sampling.options:
                manner = replace(manner, stream=manner.stream and bool(sampling.options["stream"]))
            started = time.perf_counter()
            try:
                answer = await self._attempt(prompt, sampling, manner, started)
            except RefusedError as error:
                failure = replace(error.failure, message=f"{self.address.shown}: {error.failure.message}")
            except BrokenError as error:
                failure = Failure(kind=error.kind, message=f"{self.address.shown}: {error.words.rstrip('.')}.")
            else:
                if answer is not None:
                    return answer
                continue
            return Reply(error=failure, times=Times(total=time.perf_counter() - started))
        failure = Failure(kind="bad_request", message=f"{self.address.shown} takes no request in any manner known.")
        return Reply(error=failure, times=Times(total=time.perf_counter() - started))

    async def _attempt(self, prompt: Askable, sampling: Sampling, manner: _Manner, started: float) -> Reply | None:
        """The reply, or None where the server is to be asked in another manner, which is remembered."""
        path = "/completions" if self._completions else "/chat/completions"
        url, options = self.address.url(manner.base, path), _merged(sampling.options)
        async with self._channel.post(url, self._body(prompt, sampling, options, manner)) as incoming:
            self._note_rates(incoming.headers)
            if 200 <= incoming.status < 300:
                return await self._read(incoming, _answer_limit(prompt, sampling), options, started)
            refusal = Refusal.of_body(incoming.status, await incoming.beginning(_ERROR_BYTES))
            if self._adapts(refusal, manner):
                return None
            raise RefusedError(self._failure(refusal, incoming))

    def _body(self, prompt: Askable, sampling: Sampling, options: Mapping[str, Any], manner: _Manner) -> bytes:
        body: dict[str, Any] = {"model": self.name}
        if self._completions:
            body["prompt"] = self._unmarked(prompt.text())
            if self._exact_tokens:
                body["add_special_tokens"] = False
        else:
            body["messages"] = marked(prompt) if self._hints == "control" else prompt.messages()
        if manner.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if not {"max_tokens", "max_completion_tokens"} & set(options):
            body[manner.answer_limit] = _answer_limit(prompt, sampling)
        body |= {key: value for key, value in options.items() if key not in ("max_tokens", "stream", "stream_options")}
        body = key_options(prompt, self._hints, self.address.root) | body
        if not sampling.reuse:
            body |= whole_options(self._engine)
        if "max_tokens" in options:
            body[manner.answer_limit] = options["max_tokens"]
        try:
            return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            raise UsageError("The prompt holds half of a surrogate pair, which is no character.") from None
        except (TypeError, ValueError) as error:
            raise UsageError(f"The generation settings are no JSON: {error}.") from None

    def _unmarked(self, text: str) -> str:
        """A rendered chat without the BOS that the server puts in front by itself."""
        return next((text[len(bos) :] for bos in self._bos if text.startswith(bos)), text)

    async def _read(self, incoming: Incoming, max_tokens: int, options: Mapping[str, Any], started: float) -> Reply:
        room = ROOM_BYTES + ROOM_BYTES_PER_TOKEN * max(0, min(max_tokens, 1 << 20))
        draft, first, head = Draft(), None, b""
        async with aclosing(incoming.pieces(room)) as pieces:
            async for piece in pieces:
                head = piece.lstrip()
                if head:
                    break
            if "event-stream" in incoming.headers.get("content-type", "") or head.startswith(_STREAM_BEGINS):
                first, refusal = await self._read_stream(head, pieces, draft, started)
            else:
                body, left = [head], (room if options.get("logprobs") else ROOM_BYTES) - len(head)
                async for piece in pieces:
                    left -= len(piece)
                    if left < 0:
                        raise bad_answer(f"The answer has more than {ROOM_BYTES / 1e6:,.0f} MB; it was not read.")
                    body.append(piece)
                refusal = draft.add(read_whole(b"".join(body)), whole=True)
        if refusal is not None:
            raise RefusedError(self._failure(refusal, incoming))
        times = Times(first_token=first, total=time.perf_counter() - started)
        opened = self._opens_thought and "chat_template_kwargs" not in options
        return draft.reply(times, opened=opened, clean=self._channel.clean)

    async def _read_stream(
        self, head: bytes, pieces: AsyncIterator[bytes], draft: Draft, started: float
    ) -> tuple[float | None, Refusal | None]:
        """(seconds to the first token, the error that came in the middle)."""
        events = EventStream()
        first: float | None = None
        data: bytes | None = head
        while True:
            for name, value in events.end() if data is None else events.feed(data):
                refusal = Refusal.of_value(200, value) if name == "error" else draft.add(value)
                if refusal is not None:
                    return first, refusal
                if first is None and draft.started:
                    first = time.perf_counter() - started
            if events.done:
                await _drain(pieces)
                return first, None
            if data is None:
                break
            try:
                data = await anext(pieces, None)
            except BrokenError:
                if draft.finish is None:
                    raise
                return first, None  # all was said; only the end was missing
        if draft.finish is None:
            raise BrokenError("connection", "the stream ended before the answer did")
        return first, None

    def _failure(self, refusal: Refusal, incoming: Incoming) -> Failure:
        clean, status = self._channel.clean, incoming.status
        failure = refusal.failure(incoming.headers, now=time.time(), clean=clean, http_status=status)
        if 300 <= status < 400:
            to = clean(shown_target(incoming.headers.get("location", "")))
            return replace(failure, message=f"It redirects to {to or 'nowhere'}. Give that address as --api-url.")
        if refusal.says_model_is_missing():
            return replace(failure, message=failure.message + other_names(self.name, self._models))
        return failure

    def _adapts(self, refusal: Refusal, manner: _Manner) -> bool:
        """Whether the server can be asked in another manner, which is remembered."""
        if refusal.status in (404, 405):
            return not refusal.says_model_is_missing() and self._adapts_base(manner)
        if refusal.status not in (400, 422, 501) or find_overflow(refusal.text, refusal.codes):
            return False
        words = f"{refusal.words} {refusal.param}".lower()
        if "max_completion_tokens" in words and re.search(r"unsupported|not supported|instead|deprecated", words):
            if manner.answer_limit == "max_tokens" and not self._completions:
                self._manner = replace(self._manner, answer_limit="max_completion_tokens")
                return True
        elif manner.stream and re.search(r"\bstream(ing|_options)?\b", words):
            self._manner = replace(self._manner, stream=False)
            return True
        return False

    def _adapts_base(self, manner: _Manner) -> bool:
        """Whether the API may be at another place. Once all are known to be wrong, it stays with the first."""
        if self._manner.base != manner.base:
            return True  # somebody else has found another one
        if self._base_is_settled:
            return False
        at = self.address.bases.index(manner.base) + 1
        self._base_is_settled = at >= len(self.address.bases)
        self._manner = replace(self._manner, base=self.address.bases[0 if self._base_is_settled else at])
        return not self._base_is_settled

    def _note_rates(self, headers: Mapping[str, str]) -> None:
        found = {name: self._channel.clean(value)[:80] for name, value in headers.items() if "ratelimit" in name}
        if found:
            self.rate_headers = found


def _merged(options: Mapping[str, object]) -> dict[str, Any]:
    """The options as they go into the request: `extra_body` merged in, over what stands beside it."""
    merged = dict(options)
    extra = merged.pop("extra_body", None) or {}
    if not isinstance(extra, Mapping):
        raise UsageError("extra_body must be a JSON object.")
    here, there = merged.get("chat_template_kwargs"), extra.get("chat_template_kwargs")
    merged |= extra
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        merged["chat_template_kwargs"] = {**here, **there}
    if taken := sorted(_OURS & set(merged)):
        raise UsageError(f"The generation settings can't set {', '.join(taken)}: needlepoint does.")
    return merged


def _answer_limit(prompt: Askable, sampling: Sampling) -> int:
    return sampling.max_tokens if prompt.max_tokens is None else prompt.max_tokens


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read what little follows the last event, so that the connection can be used again; not for long."""
    with suppress(TimeoutError, BrokenError, RefusedError):
        async with asyncio.timeout(_AFTER_DONE_S):
            async for _ in pieces:
                pass
