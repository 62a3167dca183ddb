"""Any causal language model that transformers can load, in this process: on one GPU, or on the CPU.

A whole wave is taken as one trie: every token that prompts share is computed once, whatever their order. Replies come
in the order of the prompts. `neural` has the engine; this module knows prompts, chats and replies. It needs PyTorch and
transformers, and no HTTP.
"""

from __future__ import annotations

import asyncio
import os
from array import array
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from needlepoint.ask.models.answers import split_reasoning
from needlepoint.ask.models.machine import patient_threads
from needlepoint.ask.models.margins import margin_of
from needlepoint.ask.models.own_tokens import continuation, own_ids, texts_of
from needlepoint.errors import MissingExtra, UsageError
from needlepoint.text import chat, tokenizers
from needlepoint.types import (
    Alternatives,
    Askable,
    Endpoint,
    Failure,
    Message,
    Reply,
    Sampling,
    Times,
    Tokenizer,
    Usage,
)

if TYPE_CHECKING:
    from needlepoint.ask.models.neural.choice import Choice
    from needlepoint.ask.models.neural.engine import Answer, Engine, Request
    from needlepoint.ask.models.neural.from_gguf import GgufModel

EMBEDDED = "smollm2"
_PROBE_CHAT = (Message(role="user", content="needle"),)
_NO_ANSWER = Failure(kind="stopped", message="The model was closed before it had answered.")


class TransformersModel:
    """A model of a folder or a hub id. `connect` reads what counting needs; weights come with the first question.

    `reserve` says before connecting how long the longest prompt with its answer is: whether that fits is then known at
    once. Belongs to one event loop.
    """

    wave = 4_096

    def __init__(
        self,
        path: Path | str,
        *,
        name: str | None = None,
        dtype: str | None = None,
        device: str | None = None,
        n_ctx: int | None = None,
        template_options: Mapping[str, object] | None = None,
        notify: Callable[[str], None] | None = None,
        progress: Any = None,
    ) -> None:
        self.path = str(path)
        self.name = name or self.path
        self._dtype = dtype
        self._device_name = device
        self._n_ctx = n_ctx
        self._template_options = dict(template_options or {})
        self._notify = notify
        self._progress = progress
        self._reserved = 0
        self._endpoint: Endpoint | None = None
        self._opens_thought = False
        self._config: Any = None
        self._gguf: GgufModel | None = None
        self._device: Any = None
        self._engine: Engine | None = None
        self._held = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="needlepoint-torch")
        self._turn = asyncio.Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"TransformersModel({self.path!r})"

    def reserve(self, n_tokens: int) -> None:
        """Say before asking how long the longest prompt with its answer is."""
        self._reserved = max(self._reserved, n_tokens)

    async def connect(self) -> Endpoint:
        """Read configuration, tokenizer and template. What can't be run, or doesn't fit, raises in words."""
        if self._endpoint is None:
            self._endpoint = await self._run(self._connect)
        return self._endpoint

    async def ask(self, prompts: Sequence[Askable], sampling: Sampling) -> AsyncIterator[Reply]:
        """The replies in the order of the prompts. Leaving it early stops the engine after its next chunk of tokens."""
        from needlepoint.ask.models.neural.choice import Choice

        await self.connect()
        options = dict(sampling.options)
        self._check_template_options(options.pop("chat_template_kwargs", None))
        choice = Choice.of(options)
        async with self._turn:
            waves = [list(prompts)] if sampling.reuse else [[prompt] for prompt in prompts]
            for wave in waves:
                async for reply in self._ask_wave(wave, sampling, choice):
                    yield reply

    async def logprob(
        self, prompt: Askable, continuations: Sequence[str], *, lead: str = ""
    ) -> list[tuple[float, ...] | None]:
        """For each continuation, the log-probability of each of its tokens after prompt, lead and those before it."""
        await self.connect()
        async with self._turn:
            found: list[tuple[float, ...] | None] = await self._run(self._logprob, prompt, continuations, lead)
        return found

    async def close(self) -> None:
        """End what is being asked, and give the memory back."""
        self._closed = True
        if self._engine is not None:
            self._engine.stop.set()
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._engine = None

    # --- what is known before asking ----------------------------------------------------------------------------------

    def _connect(self) -> Endpoint:
        try:
            with patient_threads():
                import transformers  # noqa: F401

                from needlepoint.ask.models.neural import weights
        except ImportError:
            raise MissingExtra("Running a model with transformers", "gpu") from None
        self._device = weights.device_of(self._device_name)
        if is_gguf(self.path):
            endpoint = self._read_gguf()
        else:
            self._config = weights.read_config(self.path)
            folder = weights.local_files(self.path)
            tokenizer = tokenizers.from_file(folder, name=Path(self.path).name)
            endpoint = _templated(tokenizer, chat.find_template(folder), self._template_options)
        shape = weights.shape_of(self._config)
        self._dtype = weights.dtype_of(self._dtype, self._config, self._device)
        if endpoint.render is not None:
            self._opens_thought = endpoint.render(_PROBE_CHAT).rstrip().endswith("<think>")
        limits = [n for n in (self._n_ctx, shape.limit_tokens) if n is not None]
        limit = min(limits, default=None)
        if self._reserved:
            self._forecast(min(self._reserved, limit or self._reserved), answer_tokens=0)
        facts: dict[str, object] = {
            "engine": f"transformers {_version('transformers')}, torch {_version('torch')}",
            "architecture": type(self._config).__name__.removesuffix("Config"),
            "dtype": self._dtype,
            "device": _device_name(self._device),
        }
        if self._template_options:
            facts["template_options"] = dict(self._template_options)
        return replace(
            endpoint,
            proven=endpoint.render is not None,
            limit_tokens=limit,
            cache="slot",
            capabilities=frozenset({"uncached", "logprob"}),
            facts=facts,
        )

    def _read_gguf(self) -> Endpoint:
        from needlepoint.ask.models.neural.from_gguf import GgufModel

        path = Path(os.path.expanduser(self.path))  # noqa: PTH111 (Path.expanduser raises for a home that does not exist)
        if self.path == EMBEDDED:
            from needlepoint.text.assets import fetch_asset

            path = fetch_asset(EMBEDDED, notify=self._notify, progress=self._progress)
        self._gguf = found = GgufModel(path)
        self._config = found.config()
        tokenizer = tokenizers.from_json(found.tokenizer_json(), name=self.name, source=path)
        template = found.chat_template
        bos, eos = found.spelled("bos"), found.spelled("eos")
        told = template and chat.FoundTemplate(template=template, bos_token=bos, eos_token=eos, source="gguf")
        return _templated(tokenizer, told or None, self._template_options)

    def _forecast(self, context_tokens: int, *, answer_tokens: int) -> Any:
        from needlepoint.ask.models.neural import memory, weights

        assert self._dtype is not None
        free = memory.free_bytes(self._device)
        return memory.forecast(
            weights.shape_of(self._config),
            parameters=weights.n_parameters(self._config),
            dtype=self._dtype,
            device=self._device.type,
            context_tokens=context_tokens,
            answer_tokens=answer_tokens,
            free_bytes=None if free is None else free + self._held,
        )

    def _check_template_options(self, wanted: object) -> None:
        if wanted is not None and wanted != self._template_options:
            raise UsageError(
                f"chat_template_kwargs {wanted!r} came after the prompts were made with {self._template_options!r}: "
                "their tokens would be others. Give them when the model is created."
            )

    # --- asking -------------------------------------------------------------------------------------------------------

    async def _ask_wave(self, prompts: Sequence[Askable], sampling: Sampling, choice: Choice) -> AsyncIterator[Reply]:
        replies: dict[int, Reply] = {}
        given = 0
        answers = await self._run(self._begin, prompts, sampling, choice)
        stepping: asyncio.Future[Any] | None = None
        try:
            while given < len(prompts):
                if given not in replies:
                    stepping = asyncio.ensure_future(self._run(next, answers, None))
                    found = await asyncio.shield(stepping)
                    if found is None:
                        replies.setdefault(given, Reply(error=_NO_ANSWER))
                    else:
                        replies[found[0]] = found[1]
                    continue
                yield replies.pop(given)
                given += 1
        finally:
            if stepping is not None and not stepping.done():
                await self._halt(stepping)
            if not self._closed:
                self._thread.submit(answers.close)

    def _logprob(self, prompt: Askable, texts: Sequence[str], lead: str) -> list[tuple[float, ...] | None]:
        from needlepoint.ask.models.neural.engine import Request

        made = [self._continuation(lead, text) for text in texts]
        told = [(ids, n_lead) for ids, n_lead in made if len(ids) > n_lead]
        request = Request(ids=self._ids(prompt), continuations=tuple(ids for ids, _ in told))
        ((_, answer),) = self._ready([request]).answer([request])
        values = iter([tuple(one[n_lead:]) for (_, n_lead), one in zip(told, answer.scores, strict=True)])
        return [next(values) if len(ids) > n_lead else None for ids, n_lead in made]

    async def _halt(self, stepping: asyncio.Future[Any]) -> None:
        """Tell the engine to stop, and wait until it has: the next question must not find it at work."""
        assert self._engine is not None
        self._engine.stop.set()
        while not stepping.done():
            try:
                await asyncio.wait((stepping,))
            except asyncio.CancelledError:
                continue
        if not self._closed:
            self._engine.stop.clear()

    def _begin(self, prompts: Sequence[Askable], sampling: Sampling, choice: Choice) -> Iterator[tuple[int, Reply]]:
        """Make the requests of one wave; the replies are computed as they are taken."""
        from needlepoint.ask.models.neural.engine import Request

        assert self._endpoint is not None
        limit = self._endpoint.limit_tokens
        requests: list[Request] = []
        numbers: list[int] = []
        early: list[tuple[int, Reply]] = []
        compared: dict[int, Alternatives] = {}
        for number, prompt in enumerate(prompts):
            ids = self._ids(prompt)
            if not ids or (limit is not None and len(ids) >= limit):
                early.append((number, Reply(error=_too_long(len(ids), limit))))
                continue
            wanted = sampling.max_tokens if prompt.max_tokens is None else prompt.max_tokens
            rng = Random(f"{choice.seed}:{prompt.sha256}:{getattr(prompt, 'repeat', 0)}")
            room = wanted if limit is None else min(wanted, limit - len(ids))
            continuations: tuple[array[int], ...] = ()
            if (wanted_margin := getattr(prompt, "alternatives", None)) is not None:
                compared[len(requests)] = wanted_margin
                texts = texts_of(wanted_margin)
                continuations = tuple(self._continuation(wanted_margin.lead, text)[0] for text in texts)
            requests.append(Request(ids=ids, max_tokens=room, choice=choice, rng=rng, continuations=continuations))
            numbers.append(number)
        engine = self._ready(requests)
        if not sampling.reuse:
            engine.reset()
        return self._replies(engine, requests, numbers, early, compared)

    def _replies(
        self,
        engine: Engine,
        requests: Sequence[Request],
        numbers: Sequence[int],
        early: Sequence[tuple[int, Reply]],
        compared: Mapping[int, Alternatives],
    ) -> Iterator[tuple[int, Reply]]:
        import torch

        from needlepoint.ask.models.neural.engine import StoppedError

        yield from early
        done = set()
        try:
            for at, answer in engine.answer(requests):
                done.add(at)
                reply = self._reply(requests[at], answer)
                if at in compared:
                    reply = replace(reply, margin=margin_of(compared[at], self._values(compared[at], answer.scores)))
                yield numbers[at], reply
            return
        except StoppedError:
            failure = _NO_ANSWER
        except torch.OutOfMemoryError:
            failure = Failure(
                kind="server", message=f"{self._device} ran out of memory. Give a smaller --max-model-len or --dtype."
            )
        engine.reset()
        for at, number in enumerate(numbers):
            if at not in done:
                yield number, Reply(error=failure)

    def _ready(self, requests: Sequence[Request]) -> Engine:
        """The engine, loaded, with room for the longest of these."""
        from needlepoint.ask.models.neural import kernels, proof, weights
        from needlepoint.ask.models.neural.engine import Engine

        longest = max((len(request.ids) for request in requests), default=1)
        answer_tokens = max((request.max_tokens for request in requests), default=1)
        if self._engine is not None:
            if longest > self._engine.trunk.capacity:
                self._forecast(longest, answer_tokens=answer_tokens)
            return self._engine
        assert self._dtype is not None
        assert self._endpoint is not None
        found = self._forecast(max(longest, self._reserved), answer_tokens=answer_tokens)
        self._held = found.total
        if self._notify is not None:
            self._notify(
                f"Loading {self.name} in {self._dtype} on {self._device}: about {found.total / 1e9:,.1f} GB for "
                f"contexts of {found.context_tokens:,} tokens."
            )
        source: Any = self.path if self._gguf is None else self._gguf
        model = weights.load(source, self._config, dtype=self._dtype, device=self._device)
        shape = weights.shape_of(self._config)
        chosen = kernels.choose(
            self._device, model.dtype, heads=shape.heads, kv_heads=shape.kv_heads, head_dim=shape.head_dim
        )
        proof.prove(model, shape.layers, chosen)
        tokenizer = self._endpoint.tokenizer
        self._engine = Engine(
            model,
            shape.layers,
            chosen,
            capacity=max(longest, self._reserved),
            chunk=found.n_chunk,
            most_rows=found.n_rows,
            ends=[*weights.end_tokens(model), *_turn_ends(tokenizer)],
            text_of=self._text,
        )
        return self._engine

    def _reply(self, request: Request, answer: Answer) -> Reply:
        assert self._endpoint is not None
        assert self._engine is not None
        ids = list(answer.ids)
        if ids and ids[-1] in self._engine.ends:
            ids.pop()
        text = self._text(ids)
        for stop in request.choice.stop:
            text = text.partition(stop)[0]
        opened = self._opens_thought and answer.finish == "length"
        said, thought = split_reasoning(text, opened=opened)
        return Reply(
            text=said,
            reasoning=thought,
            finish=answer.finish,
            logprobs=tuple(answer.logprobs) if request.choice.logprobs else None,
            usage=Usage(
                prompt=len(request.ids), completion=len(answer.ids), cached=max(0, len(request.ids) - answer.prefilled)
            ),
            prefilled_tokens=answer.prefilled,
            times=Times(first_token=answer.prefill_s, total=answer.prefill_s + answer.decode_s),
        )

    def _values(self, compared: Alternatives, scores: Sequence[Sequence[float]]) -> list[Sequence[float]]:
        """Of scored continuations, what belongs to the values after the lead."""
        texts = texts_of(compared)
        return [one[self._continuation(compared.lead, text)[1] :] for text, one in zip(texts, scores, strict=True)]

    def _continuation(self, lead: str, text: str) -> tuple[array[int], int]:
        assert self._endpoint is not None
        return continuation(self._endpoint.tokenizer, lead, text)

    def _text(self, ids: Sequence[int]) -> str:
        """What tokens say. A model may have more of them than its vocabulary: those say U+FFFD."""
        assert self._endpoint is not None
        decode = self._endpoint.tokenizer.decode
        try:
            return decode(ids) if ids else ""
        except (ValueError, LookupError):
            return "".join(_one(decode, token) for token in ids)

    def _ids(self, prompt: Askable) -> array[int]:
        assert self._endpoint is not None
        return own_ids(prompt, self._endpoint)

    async def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Do it in the one thread in which this model lives."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)


def read_endpoint(name: str) -> Endpoint:
    """What a model's own files say of tokens and chats, without its weights."""
    return TransformersModel(name)._connect()


def is_gguf(name: str) -> bool:
    """Whether a name means a GGUF: a file, or the embedded model."""
    return name == EMBEDDED or name.lower().endswith(".gguf")


def _templated(tokenizer: Tokenizer, found: chat.FoundTemplate | None, options: Mapping[str, object]) -> Endpoint:
    if found is None:
        return Endpoint(tokenizer=tokenizer, render=None)
    render = chat.from_jinja(
        found.template,
        bos_token=found.bos_token,
        eos_token=found.eos_token,
        name=tokenizer.name,
        extra=options or None,
    )
    notes = tuple(f"Chat template of {tokenizer.name}: {note}." for note in render.notes)
    return Endpoint(tokenizer=tokenizer, render=render, template_name=found.source, notes=notes)


def _turn_ends(tokenizer: Tokenizer) -> list[int]:
    """Control tokens that end a turn in the chat formats that we know, where the vocabulary has them."""
    spelled = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>", "<|endoftext|>")
    return [tokenizer.encode(one, special=True).ids[0] for one in spelled if one in tokenizer.special_tokens]


def _one(decode: Callable[[Sequence[int]], str], token: int) -> str:
    try:
        return decode([token])
    except (ValueError, LookupError):
        return "\ufffd"


def _too_long(n_tokens: int, limit: int | None) -> Failure:
    if not n_tokens:
        return Failure(kind="bad_request", message="The prompt is empty.")
    return Failure(
        kind="overflow",
        message=f"The prompt has {n_tokens:,} tokens and the model takes {limit:,} with its answer. Not asked.",
    )


def _device_name(device: Any) -> str:
    if device.type != "cuda":
        return str(device)
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
