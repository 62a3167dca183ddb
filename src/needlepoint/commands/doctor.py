"""`needlepoint doctor`: can this endpoint be measured, and what will its numbers rest on?"""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from typing import Any

from ..ask.keys import api_key_of, headers_of
from ..ask.models.address import Address
from ..ask.models.channel import Channel
from ..ask.models.introduction import Directory, read_directory
from ..ask.models.listed import find_model, other_names
from ..ask.models.openai import OpenAIModel
from ..connect import connect
from ..errors import NeedlepointError
from ..show.checks import Check, show_checks
from ..show.console import notify
from ..types import Endpoint, Message, Reply, Sampling

_PATIENCE_S = 120.0
_LENGTHS = (60, 1000, 4000)
_CHARS_PER_TOKEN = 4
_READY = "Say: ready"
_OPTIONAL = "Nothing to do, unless you want it."


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorSettings:
    """What `doctor` is told. `api_key` may be `env:NAME` or `keyring:NAME`; `header` holds lines `Name: value`."""

    api_url: str
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    tokenizer: str | None = None
    header: Sequence[str] = field(default=(), repr=False)
    max_model_len: int | None = None
    patience_s: float = _PATIENCE_S
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class _Question:
    """A prompt of the doctor's own."""

    words: str
    n_tokens: int | None = None
    sha256: str = ""
    max_tokens: int | None = None

    def messages(self) -> list[Message]:
        return [
            Message(role="system", content="Keep your response short and direct"),
            Message(role="user", content=self.words),
        ]

    def text(self) -> str:
        return self.words

    def token_ids(self) -> array[int]:
        return array("I")


def run_doctor(settings: DoctorSettings) -> int:
    """Look at everything, show it on stdout, and say by the exit code whether it can be measured: 0, or else 2."""
    headers = headers_of(settings.header)
    visit = _Visit(settings, api_key=api_key_of(settings.api_key, settings.api_url), headers=headers)
    asyncio.run(visit.all())
    measurable = all(check.status != "fail" for check in visit.checks)
    if settings.as_json:
        print(json.dumps(visit.json(measurable), ensure_ascii=False, indent=2))
    else:
        verdict = "This endpoint can be measured." if measurable else "This endpoint can't be measured yet."
        show_checks(visit.checks, verdict)
        for note in visit.endpoint.notes if visit.endpoint else ():
            notify(note)
    return 0 if measurable else 2


class _Visit:
    """One look at one endpoint: the checks so far, and what later ones need of earlier ones."""

    def __init__(self, settings: DoctorSettings, *, api_key: str | None, headers: Mapping[str, str]) -> None:
        self.settings = settings
        self.address = Address.of(settings.api_url)
        self.checks: list[Check] = []
        self.name = settings.model
        self.endpoint: Endpoint | None = None
        self._api_key = api_key
        self._headers = headers

    def json(self, measurable: bool) -> dict[str, Any]:
        endpoint = self.endpoint
        return {
            "schema": 1,
            "api_url": self.address.shown,
            "model": self.name,
            "measurable": measurable,
            "limit_tokens": endpoint.limit_tokens if endpoint else None,
            "tokenizer": endpoint.tokenizer.name if endpoint else None,
            "length_proven": endpoint.proven if endpoint else None,
            "facts": dict(endpoint.facts) if endpoint else {},
            "notes": list(endpoint.notes) if endpoint else [],
            "checks": [asdict(check) for check in self.checks],
        }

    async def all(self) -> None:
        """Each check rests on those before it: the first that fails of the fundamental ones is the last."""
        directory = await self._reach()
        if directory is None or not self._choose_model(directory):
            return
        model = None
        try:
            model = await self._model()
            self.endpoint = await model.connect()
            self.checks.append(_limit(self.endpoint))
            if await self._answers(model):
                for name, look in (
                    ("tokenizer", self._count),
                    ("cached tokens", self._cache),
                    ("logprobs", self._logprobs),
                    ("reasoning", self._reasoning),
                ):
                    try:
                        self.checks.append(await look(model, self.endpoint))
                    except _SilentError as error:
                        self.checks.append(Check(name, "warn", str(error), "Look at the server's load."))
                self.checks.append(_rates(model.rate_headers))
        except NeedlepointError as error:
            self.checks.append(Check("connect", "fail", str(error), "Correct --model, or name a --tokenizer."))
        finally:
            if model is not None:
                await model.close()

    async def _reach(self) -> Directory | None:
        channel = Channel(self.address, api_key=self._api_key, headers=self._headers)
        try:
            directory = await read_directory(channel)
        except NeedlepointError as error:
            advice = "Start the server, or correct --api-url or --api-key."
            self.checks.append(Check("reachable", "fail", str(error), advice))
            return None
        finally:
            await channel.close()
        models = len(directory.models)
        listed = f"{models} model{'s' * (models != 1)} listed" if models else "no list of models"
        server = f", server {directory.server}" if directory.server else ""
        self.checks.append(Check("reachable", "ok", f"{self.address.shown} answers ({listed}{server})"))
        return directory

    def _choose_model(self, directory: Directory) -> bool:
        models = directory.models
        if self.name is None and len(models) == 1:
            self.name = models[0].id
            check = Check("model", "ok", f"{self.name}, the only one")
        elif self.name is None:
            found = other_names("", models).strip() or "none is named, and none is listed"
            check = Check("model", "fail", found, "Name one with --model.")
        elif not models:
            check = Check("model", "ok", f"{self.name} (there is no list to look it up in)")
        elif find_model(self.name, models):
            check = Check("model", "ok", f"{self.name} is served")
        else:
            found = f"{self.name} is not listed.{other_names(self.name, models)}"
            check = Check("model", "warn", found, "Correct --model, unless it answers below.")
        self.checks.append(check)
        return self.name is not None

    async def _model(self) -> OpenAIModel:
        assert self.name is not None
        name, chosen = self.name, self.settings.tokenizer

        def local(tokenizer: str | None = None) -> Endpoint:
            return connect(tokenizer, model=name, api_key=self._api_key, needs_template=False, notify=notify)

        return OpenAIModel(
            name,
            api_url=self.settings.api_url,
            api_key=self._api_key,
            headers=self._headers,
            max_model_len=self.settings.max_model_len,
            endpoint=None if chosen is None else await asyncio.to_thread(local, chosen),
            local=local,
        )

    async def _ask(self, model: OpenAIModel, question: _Question, max_tokens: int, **options: object) -> Reply:
        reply = await self._once(model, question, max_tokens, options)
        if reply.error is not None and reply.error.kind == "connection":
            # Some servers end a kept connection just as it is used again; a run tries again, too.
            reply = await self._once(model, question, max_tokens, options)
        if reply.error is not None and reply.error.kind == "bad_request" and max_tokens == 1:
            return await self._ask(model, question, 16, **options)  # some take no limit as low as 1
        return reply

    async def _once(
        self, model: OpenAIModel, question: _Question, max_tokens: int, options: Mapping[str, object]
    ) -> Reply:
        patience_s = self.settings.patience_s
        try:
            async with (
                asyncio.timeout(patience_s),
                aclosing(model.ask([question], Sampling(max_tokens=max_tokens, options=options))) as replies,
            ):
                return await anext(replies)
        except TimeoutError:
            raise _SilentError(f"no answer within {patience_s:.0f} s") from None

    async def _answers(self, model: OpenAIModel) -> bool:
        try:
            reply = await self._ask(model, _Question(_READY), 16)
        except _SilentError as error:
            self.checks.append(Check("answers", "fail", str(error), "Look at the server; it may still be loading."))
            return False
        if reply.error is not None:
            found, advice = reply.error.message, "Correct what the server complains of."
            self.checks.append(Check("answers", "fail", found, advice))
            return False
        first = reply.times.first_token
        self.checks.append(Check("answers", "ok", f"in {(reply.times.total or 0.0) * 1000:,.0f} ms"))
        if first is None:
            self.checks.append(Check("streaming", "warn", "none, so no time to the first token", _OPTIONAL))
        else:
            self.checks.append(Check("streaming", "ok", f"first token after {first * 1000:,.0f} ms"))
        return True

    async def _count(self, model: OpenAIModel, endpoint: Endpoint) -> Check:
        """Send prompts of three lengths, and compare the server's counts with ours."""
        pairs: list[tuple[int, int]] = []
        for length in _lengths(endpoint.limit_tokens):
            question = _Question(_notes(length))
            ours = await asyncio.to_thread(_our_count, endpoint, question)
            reply = await self._ask(model, question, 1)
            if reply.error is not None and reply.error.kind == "overflow":
                found = f"a prompt of {ours:,} tokens is too long for it: {reply.error.message}"
                return Check("tokenizer", "warn", found, "Give the limit with --max-model-len.")
            if reply.error is not None:
                found = f"a prompt of {ours:,} tokens got no answer: {reply.error.message}"
                return Check("tokenizer", "fail", found, "Correct what the server complains of.")
            if reply.usage.prompt is None:
                found = f"the server counts no prompt tokens; ours are those of {endpoint.tokenizer.name}"
                return Check("tokenizer", "warn", found, "Lengths can't be proven, nor cut prompts be found.")
            pairs.append((ours, reply.usage.prompt))
        return judge_counts(endpoint.tokenizer.name, pairs, proven=endpoint.proven)

    async def _cache(self, model: OpenAIModel, endpoint: Endpoint) -> Check:
        question = _Question(_notes(_lengths(endpoint.limit_tokens)[-1]))
        await self._ask(model, question, 1)
        reply = await self._ask(model, question, 1)
        cached = reply.usage.cached
        if reply.error is not None:
            return Check("cached tokens", "warn", reply.error.message, _OPTIONAL)
        if cached:
            of = f" of {reply.usage.prompt:,}" if reply.usage.prompt is not None else ""
            return Check("cached tokens", "ok", f"{cached:,}{of} when asked again")
        if cached == 0:
            found = "reported, but none when the same is asked again"
            return Check("cached tokens", "warn", found, "Switch prefix caching on, if time or price matters.")
        advice = "vLLM: --enable-prompt-tokens-details; SGLang: --enable-cache-report. Else savings can't be shown."
        return Check("cached tokens", "warn", "not reported", advice)

    async def _logprobs(self, model: OpenAIModel, endpoint: Endpoint) -> Check:
        reply = await self._ask(model, _Question(_READY), 16, logprobs=True)
        if reply.error is None and reply.logprobs:
            return Check("logprobs", "ok", "given")
        return Check("logprobs", "warn", reply.error.message if reply.error else "not given", _OPTIONAL)

    async def _reasoning(self, model: OpenAIModel, endpoint: Endpoint) -> Check:
        question = _Question("What is 17 + 25? Answer with the number only.")
        reply = await self._ask(model, question, 256)
        if reply.error is not None:
            return Check("reasoning", "warn", reply.error.message, _OPTIONAL)
        if not _reasons(reply):
            return Check("reasoning", "ok", "none seen")
        reply = await self._ask(model, question, 256, chat_template_kwargs={"enable_thinking": False})
        if reply.error is None and not _reasons(reply):
            switch = '--generation-config \'{"chat_template_kwargs": {"enable_thinking": false}}\''
            return Check("reasoning", "ok", "it thinks first, and can be told not to", f"To switch it off: {switch}")
        found = "it thinks first, and enable_thinking=false does not stop it"
        return Check("reasoning", "warn", found, "Leave room for it: max_tokens of some thousands.")


class _SilentError(Exception):
    """No answer in time."""


def judge_counts(name: str, pairs: Sequence[tuple[int, int]], *, proven: bool) -> Check:
    """What pairs of (our count, the server's count), shortest prompt first, say of tokenizer `name`."""
    differences = [theirs - ours for ours, theirs in pairs]
    if not any(differences):
        counts = ", ".join(f"{ours:,}" for ours, _ in pairs)
        return Check("tokenizer", "ok", f"{name} agrees with the server at {counts} tokens")
    counted = ", ".join(f"{theirs:,} for our {ours:,}" for ours, theirs in pairs)
    if _cut_off(pairs):
        advice = "Give the server more context (Ollama: num_ctx), or switch its truncation off."
        return Check("tokenizer", "fail", f"the server seems to cut prompts off: it counts {counted}", advice)
    if len(set(differences)) == 1 and abs(differences[0]) <= 64 and not proven:
        more = f"{abs(differences[0])} {'more' if differences[0] > 0 else 'fewer'}"
        advice = "Its chat template differs: give --chat-template for exact lengths."
        return Check("tokenizer", "warn", f"the server counts {more} than {name} at every length", advice)
    advice = "Name the model's own tokenizer with --tokenizer; until then lengths are unproven."
    return Check("tokenizer", "fail" if proven else "warn", f"{name} is not the server's: it counts {counted}", advice)


def _cut_off(pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether the longest prompt lost tokens: fewer than ours, by far more than another vocabulary explains.

    That one counts all text alike: what the longest prompt has more than the one before it costs about as much, token
    by token, as what that one has more than the shortest.
    """
    ours, theirs = pairs[-1]
    if theirs >= ours - max(32, 0.03 * ours) or abs(pairs[0][1] - pairs[0][0]) > 32:
        return False
    if len(pairs) < 3 or all(one == other for one, other in pairs[:-1]):
        return True
    (o1, t1), (o2, t2) = pairs[-3:-1]
    return (theirs - t2) * (o2 - o1) < 0.85 * (t2 - t1) * (ours - o2)


def _limit(endpoint: Endpoint) -> Check:
    limit, source = endpoint.limit_tokens, endpoint.facts.get("limit_from")
    if limit is None:
        return Check("limit", "warn", "the server does not say how many tokens it takes", "Give --max-model-len.")
    if source == "training":
        return Check("limit", "warn", f"{limit:,} tokens, as trained; it may serve less", "Give --max-model-len.")
    by = {"server": ", by the server", "user": ", by --max-model-len"}.get(str(source), "")
    return Check("limit", "ok", f"{limit:,} tokens{by}")


def _rates(headers: Mapping[str, str]) -> Check:
    found = ", ".join(f"{name}: {value}" for name, value in list(headers.items())[:6])
    return Check("rate headers", "ok", found or "none")


def _lengths(limit_tokens: int | None) -> list[int]:
    limit = limit_tokens or 1 << 40
    return sorted({_LENGTHS[0], min(_LENGTHS[1], limit // 4), min(_LENGTHS[2], limit // 2)})


def _reasons(reply: Reply) -> bool:
    return bool(reply.reasoning or reply.usage.reasoning)


def _notes(n_tokens: int) -> str:
    """Plain text of about so many tokens."""
    sentences, size, number = [], 0, 0
    while size < n_tokens * _CHARS_PER_TOKEN:
        number += 1
        sentences.append(f"Note {number}: the ferry left the harbour before noon.")
        size += len(sentences[-1])
    return " ".join([*sentences, _READY])


def _our_count(endpoint: Endpoint, question: _Question) -> int:
    messages = question.messages()
    if endpoint.render is None:
        return sum(endpoint.tokenizer.count(message["content"]) for message in messages)
    return endpoint.tokenizer.count(endpoint.render(messages), special=True)
