"""A GGUF that the embedded engine answers with: prompts in, replies out, in the order in which they come.

`gguf` reads what stands in the file, `gguf_endpoint` has its tokenizer, `llama_engine` runs it and `llama_slot` keeps
what prompts share; this module knows nothing of planning but what a prompt's tokens are.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from needlepoint.ask.models.forced import NothingKeptError
from needlepoint.ask.models.gguf import GgufHeader
from needlepoint.ask.models.gguf_endpoint import GgufTokenizer, opened_gguf
from needlepoint.ask.models.llama_engine import Engine
from needlepoint.ask.models.llama_reply import answer_limit, failure_of, options_of, reply_of
from needlepoint.ask.models.llama_slot import Slot
from needlepoint.ask.models.machine import cores, free_bytes
from needlepoint.ask.models.margins import margin_of
from needlepoint.ask.models.own_tokens import anchor_of, continuation, planned_ids, texts_of
from needlepoint.ask.models.remote import PROBE_CHAT
from needlepoint.errors import NeedlepointError, TokenizerError, UsageError
from needlepoint.types import Alternatives, Askable, Endpoint, Failure, Reply, Sampling

EMBEDDED = "smollm2"
_STEP_CTX = 256
_BYTES_OF_A_VALUE = 2
_SHARE_OF_MEMORY = 0.6
_CLOSED: Final = Failure(kind="stopped", message="The model was closed before it had answered.")
_T = TypeVar("_T")


class LlamaCppModel:
    """A GGUF model in this process, asked in one slot: prompts that follow each other share their prefix.

    The engine rounds in another way where it computes few tokens at a time, and might answer otherwise: a prompt's last
    tokens are never fewer than that where it has more new ones, and the same prompt again is computed whole.

    `path` is a file, or `smollm2` for the embedded model, which is fetched by `connect`. Belongs to one event loop.
    `n_ctx` bounds the context, and the memory that it takes; without it `reserve` says what the run needs, and without
    that the engine is started anew, larger, when a prompt needs it. `template_options` are what servers call
    `chat_template_kwargs`: they decide the prompts, so they are fixed before the first is made.
    """

    wave = 8

    def __init__(
        self,
        path: Path | str = EMBEDDED,
        *,
        name: str | None = None,
        n_ctx: int | None = None,
        threads: int | None = None,
        template_options: Mapping[str, object] | None = None,
        notify: Callable[[str], None] | None = None,
        progress: Any = None,
    ) -> None:
        for flag, value in (("n_ctx", n_ctx), ("threads", threads)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise UsageError(f"{flag} must be a whole number from 1 on, not {value!r}.")
        self._fetches = str(path) == EMBEDDED
        self.path = Path(os.path.expanduser(path))  # noqa: PTH111 (Path.expanduser raises for a home that does not exist)
        self.name = name or (EMBEDDED if self._fetches else self.path.stem)
        self._n_ctx = n_ctx
        self._threads = threads
        self._template_options = dict(template_options or {})
        self._notify = notify
        self._progress = progress
        self._reserved = 0
        self._endpoint: Endpoint | None = None
        self._header: GgufHeader | None = None
        self._whole_windows = True
        self._opens_thought = False
        self._slot: Slot | None = None
        self._turn = asyncio.Lock()
        self._asking: set[asyncio.Task[Any]] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"LlamaCppModel({str(self.path)!r})"

    async def connect(self) -> Endpoint:
        """Read the file and load its vocabulary. A file that can't be used raises TokenizerError, in words."""
        if self._endpoint is None:
            endpoint = await asyncio.to_thread(self._connect)
            limit = min((n for n in (self._n_ctx, endpoint.limit_tokens) if n is not None), default=None)
            facts = {**endpoint.facts, "threads": self._threads or cores()}
            if self._template_options:
                facts["template_options"] = dict(self._template_options)
            keeps, notes = self._keeps()
            self._endpoint = replace(
                endpoint,
                limit_tokens=limit,
                cache="slot" if keeps else "none",
                capabilities=frozenset({"uncached", "logprob"} if keeps else {"uncached"}),
                facts=facts,
                notes=(*endpoint.notes, *notes),
            )
        return self._endpoint

    def reserve(self, n_tokens: int) -> None:
        """Say before asking how long the longest prompt with its answer is: the context is made that large."""
        self._reserved = max(self._reserved, n_tokens)

    async def ask(self, prompts: Sequence[Askable], sampling: Sampling) -> AsyncIterator[Reply]:
        """The replies, one prompt after the other. Leaving it early stops the engine at its next batch of tokens."""
        await self.connect()
        options = options_of(sampling)
        self._check_template_options(options.pop("chat_template_kwargs", None))
        for prompt in prompts:
            called = time.perf_counter()
            async with self._turn:
                queued_s = time.perf_counter() - called
                max_tokens = answer_limit(prompt, sampling)
                answering = self._answer(prompt, max_tokens, options, queued_s, reuse=sampling.reuse)
                reply = await self._stoppable(answering) or Reply(error=_CLOSED)
            yield reply

    async def logprob(
        self, prompt: Askable, continuations: Sequence[str], *, lead: str = ""
    ) -> list[tuple[float, ...] | None]:
        """For each continuation, the log-probability of each of its tokens after prompt, lead and those before it."""
        await self.connect()

        async def told() -> list[tuple[float, ...] | None]:
            return await self._logprob(await self._ids(prompt), continuations, lead)

        async with self._turn:
            found = await self._stoppable(told())
        return found or [None] * len(continuations)

    async def close(self) -> None:
        """End what is being asked, then the engine and the tokenizer."""
        self._closed = True
        for task in self._asking:
            task.cancel()
        if self._asking:
            await asyncio.wait(self._asking)
        await self._stop_engine()
        if self._endpoint is not None:
            tokenizer = self._endpoint.tokenizer
            assert isinstance(tokenizer, GgufTokenizer)
            await asyncio.to_thread(tokenizer.close)

    def _connect(self) -> Endpoint:
        if self._fetches:
            from needlepoint.text.assets import fetch_asset

            self.path = fetch_asset(EMBEDDED, notify=self._notify, progress=self._progress)
        self._header, endpoint = opened_gguf(self.path, self.name, self._template_options)
        if endpoint.render is not None:
            self._opens_thought = endpoint.render(PROBE_CHAT[1:]).rstrip().endswith("<think>")
        return endpoint

    def _keeps(self) -> tuple[bool, list[str]]:
        """Whether the next prompt can go on from where it leaves the last one, and what people should know of it.

        llama.cpp can't take back layers with a state. Those with a sliding window it can where they keep the whole
        context, as others do; where there is no memory for that they keep their window.
        """
        header = self._header
        assert header is not None
        if header.has_states:
            return False, [f"{header.path.name} keeps states, not keys: llama.cpp computes every prompt of it whole"]
        needed = (self._reserved or self._n_ctx or 0) * header.cached_values * _BYTES_OF_A_VALUE
        free = free_bytes()
        if header.window is None or free is None or needed <= free * _SHARE_OF_MEMORY:
            return True, []
        self._whole_windows = False
        return False, [
            f"Every prompt is computed whole: to share their beginnings, layers with a window would have to keep the "
            f"whole context, which takes {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free. A smaller "
            "--max-model-len takes less"
        ]

    def _check_template_options(self, wanted: object) -> None:
        if wanted is not None and wanted != self._template_options:
            raise UsageError(
                f"chat_template_kwargs {wanted!r} came after the prompts were made with {self._template_options!r}: "
                "their tokens would be others. Give them when the model is created."
            )

    async def _stoppable(self, answering: Coroutine[Any, Any, _T]) -> _T | None:
        """Wait for an answer in a task of its own: `close` ends it as well as being cancelled does, and it is None."""
        task = asyncio.ensure_future(answering)
        self._asking.add(task)
        try:
            await asyncio.wait((task,))
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
            self._asking.discard(task)
        return None if task.cancelled() else task.result()

    async def _answer(
        self, prompt: Askable, max_tokens: int, options: Mapping[str, Any], queued_s: float, *, reuse: bool
    ) -> Reply:
        import httpx2

        started = time.perf_counter()
        try:
            ids = await self._ids(prompt)
            if (error := self._too_long(len(ids))) is not None:
                return Reply(error=error)
            slot = await self._ready(len(ids) + max_tokens)
            done = await slot.complete(ids, max_tokens, options, reuse=reuse)
        except httpx2.HTTPError as error:
            await self._stop_engine()  # the next prompt gets a new one
            return Reply(error=Failure(kind="server", message=f"llama.cpp broke off: {type(error).__name__} {error}"))
        except ValueError:
            return Reply(error=Failure(kind="bad_answer", message="llama.cpp answered with something that is no JSON."))
        except NeedlepointError as error:
            if isinstance(error, UsageError) and self._slot is not None:
                raise
            return Reply(error=Failure(kind="server", message=str(error)))
        if done.status != 200 or not isinstance(done.answer, dict):
            return Reply(error=failure_of(done.status, done.answer))
        assert self._endpoint is not None
        reply = reply_of(
            done.answer,
            ahead=done.ahead,
            ends=self._endpoint.tokenizer.special_tokens,
            opened=self._opens_thought,
            total_s=time.perf_counter() - started,
            queued_s=queued_s,
        )
        compared: Alternatives | None = getattr(prompt, "alternatives", None)
        if compared is None:
            return reply
        scores = await self._logprob(ids, texts_of(compared), compared.lead)
        return replace(reply, margin=margin_of(compared, scores))

    async def _logprob(self, ids: Sequence[int], texts: Sequence[str], lead: str) -> list[tuple[float, ...] | None]:
        """Nothing where the engine breaks off: its next question says so."""
        import httpx2

        made, anchor = await asyncio.to_thread(self._continuations, lead, texts)
        longest = max((len(one) for one, _ in made), default=0)
        if not longest or self._too_long(len(ids) + longest) is not None:
            return [None] * len(texts)
        try:
            slot = await self._ready(len(ids) + longest + 1)
            found = await slot.values(ids, [one for one, _ in made], anchor=anchor)
        except (httpx2.HTTPError, ValueError, TokenizerError):
            await self._stop_engine()
            return [None] * len(texts)
        except NothingKeptError:
            raise UsageError(
                f"llama.cpp keeps nothing of a prompt for {self.path.name}: --metric logprob would compute all of it "
                "for each token. Take --backend transformers."
            ) from None
        return [one and one[n_lead:] for one, (_, n_lead) in zip(found, made, strict=True)]

    def _continuations(self, lead: str, texts: Sequence[str]) -> tuple[list[tuple[Sequence[int], int]], int | None]:
        """The tokens of each text behind the lead, how many of them are the lead's, and an anchor for `Forced`."""
        assert self._endpoint is not None
        tokenizer = self._endpoint.tokenizer
        return [continuation(tokenizer, lead, text) for text in texts], anchor_of(tokenizer)

    async def _ids(self, prompt: Askable) -> Sequence[int]:
        """The prompt's own tokens where they are this model's; else those that its chat has here."""
        assert self._endpoint is not None
        if (planned := planned_ids(prompt, self._endpoint.tokenizer)) is not None:
            return planned
        client = (await self._ready(0)).client
        rendered = await client.post("/apply-template", json={"messages": prompt.messages()})
        text = rendered.raise_for_status().json()["prompt"]
        body = {"content": text, "add_special": True, "parse_special": True}
        found = await client.post("/tokenize", json=body)
        tokens: list[int] = found.raise_for_status().json()["tokens"]
        return tokens

    def _too_long(self, n_tokens: int) -> Failure | None:
        limit = self._endpoint.limit_tokens if self._endpoint is not None else None
        if limit is None or n_tokens < limit:
            return None
        return Failure(
            kind="overflow",
            message=f"The prompt has {n_tokens:,} tokens and the model takes {limit:,} with its answer. Not asked.",
        )

    async def _ready(self, n_tokens: int) -> Slot:
        """The slot of an engine whose context holds `n_tokens`."""
        assert self._endpoint is not None
        limit = self._endpoint.limit_tokens
        n_tokens = min(n_tokens, limit or n_tokens)
        if self._slot is not None and self._slot.engine.n_ctx < n_tokens:
            self._reserved = max(self._reserved, min(2 * self._slot.engine.n_ctx, limit or n_tokens))
            await self._stop_engine()
        if self._slot is None:
            wanted = max(n_tokens, min(self._reserved, limit or self._reserved), 1)
            engine = await asyncio.to_thread(
                Engine,
                self.path,
                n_ctx=-(-wanted // _STEP_CTX) * _STEP_CTX,
                threads=self._threads or cores(),
                whole_windows=self._whole_windows,
                template_options=self._template_options,
            )
            self._slot = Slot(engine)
        return self._slot

    async def _stop_engine(self) -> None:
        slot, self._slot = self._slot, None
        if slot is not None:
            await slot.close()
            await asyncio.to_thread(slot.engine.close)
