"""A model with a known truth: it reads the prompt as a model does, and finds facts as its recall surface says.

`--model simulated:cliff,at=16k,seed=3`: a kind (or several, `cliff+noise`), then its knobs, and those of every
simulated model: how slow it is and how it fails. All is decided by the seed, the messages and the repeat, so two runs
give the same bytes. It is never told a needle: `reading` finds what the text has to say to the question.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from needlepoint.ask.models.reading import Reading, read
from needlepoint.ask.models.recall import KNOBS, Knob, Recall
from needlepoint.errors import TokenizerError, UsageError, did_you_mean
from needlepoint.plan.prompt import fingerprint
from needlepoint.text import families, tokenizers
from needlepoint.text.formats import BUILTIN
from needlepoint.types import Askable, Endpoint, Failure, FailureKind, Message, Reply, Sampling, Times, Usage

DEFAULT_TOKENIZER: Final = "Qwen/Qwen3-0.6B"
MISSES: Final = ("mixed", "not_found", "wrong", "empty", "gibberish")

_LENGTH = Knob(default=0, lowest=1, highest=1e9, is_length=True)
_RATE = Knob(default=0, lowest=0, highest=1)
_SECONDS = Knob(default=0, lowest=0, highest=3600)
_SPEED = Knob(default=0, lowest=0, highest=1e9)
FAILURES: Final[Mapping[str, tuple[FailureKind, int | None, str]]] = {
    "rate_limit": ("rate_limit", 429, "Too many requests (simulated)."),
    "server": ("server", 503, "The server is overloaded (simulated)."),
    "timeout": ("timeout", None, "No answer came in time (simulated)."),
    "connection": ("connection", None, "The connection was reset (simulated)."),
    "bad_answer": ("bad_answer", 200, "The answer is a web page, not JSON (simulated)."),
    "auth": ("auth", 401, "The key is refused (simulated)."),
    "bad_request": ("bad_request", 400, "The request is refused (simulated)."),
}
COMMON: Final[Mapping[str, Knob]] = {
    "seed": Knob(default=0, lowest=0, highest=2**53),
    "limit": _LENGTH,  # tokens that it takes, and says so
    "hidden_limit": _LENGTH,  # the same, known only from its refusals
    "latency": _SECONDS,
    "jitter": _RATE,  # share by which the latency varies
    "prefill": _SPEED,  # tokens a second; 0: no time at all
    "speed": _SPEED,
    "reasoning": _LENGTH,  # tokens thought before the answer, of its max_tokens
    "gibberish": _RATE,
    "truncate": _RATE,  # the first half of the text is silently cut off
    "hang": _RATE,
    "retry_after": _SECONDS,
    **dict.fromkeys(FAILURES, _RATE),
}
_GIBBERISH = ("!!!!", "the the", " ��", "0.0.0.", '{"', "，，，")


@dataclass(frozen=True, slots=True)
class Spec:
    """What `simulated:…` says."""

    recall: Recall
    knobs: Mapping[str, float]
    miss: str = "mixed"
    tokenizer: str = DEFAULT_TOKENIZER
    caches: bool = True

    @classmethod
    def of(cls, text: str) -> Spec:
        """Read `cliff,at=16k,server=10%`. A name or a value that is not known raises UsageError."""
        kind, *pairs = (part.strip() for part in text.removeprefix("simulated").removeprefix(":").split(","))
        if "=" in kind:
            kind, pairs = "", [kind, *pairs]
        kind = kind or "perfect"
        own = {name: knob for one in kind.split("+") for name, knob in KNOBS.get(one.strip(), {}).items()}
        words: dict[str, str] = {}
        of_kind: dict[str, float] = {}
        common = {name: knob.default for name, knob in COMMON.items()}
        Recall.of(kind)
        for pair in filter(None, pairs):
            name, equals, value = (part.strip() for part in pair.partition("="))
            if not equals or not value:
                raise UsageError(f"The simulated model takes NAME=VALUE, as in 'cliff,at=16k', not {pair!r}.")
            if name in own:
                of_kind[name] = own[name].read(name, value)
            elif name in COMMON:
                common[name] = COMMON[name].read(name, value)
            elif name in ("miss", "tokenizer", "cache"):
                words[name] = value
            else:
                known = [*own, *COMMON, "miss", "tokenizer", "cache"]
                raise UsageError(
                    f"A simulated {kind!r} has no setting {name!r}.{did_you_mean(name, known)} Known: "
                    f"{', '.join(known)}."
                )
        if (miss := words.get("miss", "mixed")) not in MISSES:
            raise UsageError(f"The simulated model's miss must be one of {', '.join(MISSES)}, not {miss!r}.")
        if (cache := words.get("cache", "on")) not in ("on", "off"):
            raise UsageError(f"The simulated model's cache must be on or off, not {cache!r}.")
        return cls(Recall.of(kind, **of_kind), common, miss, words.get("tokenizer", DEFAULT_TOKENIZER), cache == "on")


class SimulatedModel:
    """A model that is not there. `recall` is the truth about it, which a run's heatmap must recover.

    `endpoint` is what it counts tokens with, or a function that gives it, where that is not the packaged tokenizer of
    the spec. Its prefix cache holds the last prompt.
    """

    wave = 1

    def __init__(
        self,
        spec: str | Spec = "perfect",
        *,
        name: str | None = None,
        endpoint: Endpoint | Callable[[], Endpoint] | None = None,
        max_model_len: int | None = None,
    ) -> None:
        self.spec = spec if isinstance(spec, Spec) else Spec.of(spec)
        text = spec if isinstance(spec, str) else "+".join(spec.recall.kinds)
        self.name = name or (text if text.startswith("simulated") else f"simulated:{text}")
        self._given = endpoint
        self._endpoint: Endpoint | None = None
        told, hidden = (int(self.spec.knobs[knob]) or None for knob in ("limit", "hidden_limit"))
        self._told_limit = max_model_len if told is None else told
        self._limit = min((n for n in (self._told_limit, hidden) if n is not None), default=None)
        self._attempts: Counter[str] = Counter()
        self._last: array[int] = array("I")

    def recall(self, length_tokens: float, depth: float) -> float:
        """How likely it finds a fact at `depth` (0–1) of a prompt of so many tokens."""
        return self.spec.recall(length_tokens, depth)

    async def connect(self) -> Endpoint:
        if self._endpoint is None:
            given = self._given() if callable(self._given) else self._given
            found = given or _packaged(self.spec.tokenizer)
            self._endpoint = replace(
                found,
                proven=True,
                limit_tokens=self._told_limit,
                cache="slot" if self.spec.caches else "none",
                capabilities=frozenset({"uncached"}),
                notes=(),
                facts={"engine": "simulated", "kinds": list(self.spec.recall.kinds), **dict(self.spec.recall.knobs)},
            )
        return self._endpoint

    async def ask(self, prompts: Sequence[Askable], sampling: Sampling) -> AsyncIterator[Reply]:
        endpoint = await self.connect()
        for prompt in prompts:
            max_tokens = sampling.max_tokens if prompt.max_tokens is None else prompt.max_tokens
            messages = prompt.messages()
            key = f"{fingerprint(messages)}:{getattr(prompt, 'repeat', 0)}"
            self._attempts[key] += 1
            # What the model thinks of a prompt does not depend on how often it was sent; how the line behaves does.
            line = Random(f"{self.spec.knobs['seed']:.0f}:{key}:line:{self._attempts[key]}")
            mind = Random(f"{self.spec.knobs['seed']:.0f}:{key}:mind")
            if (broken := await self._broken(line)) is not None:
                yield Reply(error=broken)
                continue
            if line.random() < self.spec.knobs["truncate"]:
                messages = _halved(messages)
            if not sampling.reuse:
                self._last = array("I")
            yield await self._reply(messages, max_tokens, endpoint, mind, line)

    async def close(self) -> None:
        self._last = array("I")

    async def _broken(self, line: Random) -> Failure | None:
        """Whether the line fails this time, and how."""
        knobs = self.spec.knobs
        if line.random() < knobs["hang"]:
            await asyncio.Event().wait()
        draw = line.random()
        for name, (kind, status, message) in FAILURES.items():
            draw -= knobs[name]
            if draw < 0:
                wait_s = knobs["retry_after"] or None if kind == "rate_limit" else None
                return Failure(kind=kind, message=message, status=status, retry_after_s=wait_s)
        return None

    async def _reply(
        self, messages: list[Message], max_tokens: int, endpoint: Endpoint, mind: Random, line: Random
    ) -> Reply:
        knobs = self.spec.knobs
        text = "\n\n".join(message["content"] for message in messages)
        ids = endpoint.tokenizer.encode(endpoint.render(messages) if endpoint.render else text, special=True).ids
        if self._limit is not None and len(ids) + max_tokens > self._limit:
            said = (
                f"This model's maximum context length is {self._limit} tokens, but {len(ids)} + {max_tokens} are asked"
            )
            return Reply(error=Failure(kind="overflow", status=400, message=f"{said} (simulated)."))
        cached = self._cached(ids)
        thinks = 0 if not knobs["reasoning"] else round(knobs["reasoning"] * (0.5 + mind.random()))
        thought = min(thinks, max_tokens)
        if mind.random() < knobs["gibberish"]:
            answer = _gibberish(mind)
        else:
            answer = self._answer(read(messages), len(ids), mind)
        said_ids = endpoint.tokenizer.encode(answer).ids
        room = max_tokens - thought
        finish = "stop" if thinks < max_tokens and len(said_ids) < room else "length"
        if len(said_ids) > room:
            said_ids = said_ids[:room]
            answer = endpoint.tokenizer.decode(said_ids).rstrip("\ufffd")
        completion = thought + len(said_ids)
        times = self._times(len(ids) - cached, completion, line)
        if times.total:
            await asyncio.sleep(times.total)
        return Reply(
            text=answer,
            reasoning="Let me look. " * thought if thought else None,
            finish=finish,
            usage=Usage(
                prompt=len(ids),
                completion=completion,
                reasoning=thought if thinks else None,
                cached=cached if self.spec.caches else None,
            ),
            prefilled_tokens=len(ids) - cached if self.spec.caches else None,
            times=times,
        )

    def _answer(self, reading: Reading, n_tokens: int, mind: Random) -> str:
        """What it says: the sentences that it recalls, or what models say that recall none."""
        draws = [mind.random() for _ in reading.findings]
        way, at, kind = mind.random(), mind.random(), mind.random()
        told = [
            one for one, draw in zip(reading.findings, draws, strict=True) if draw < self.recall(n_tokens, one.depth)
        ]
        chinese = reading.is_chinese
        if told:
            said = ("" if chinese else " ").join(one.sentence for one in sorted(told, key=lambda one: one.start))
            if way < 0.6:
                return said
            return (f"根据原文：{said}" if chinese else f"According to the text: {said}") if way < 0.8 else f"“{said}”"
        miss = self.spec.miss
        if not reading.findings:
            miss = "not_found"
        elif miss == "mixed":
            miss = "not_found" if kind < 0.45 else "wrong" if kind < 0.85 else "gibberish" if kind < 0.95 else "empty"
        if miss == "wrong" and (wrong := reading.elsewhere(at)) is not None:
            return wrong
        if miss == "gibberish":
            return _gibberish(mind)
        if miss == "empty":
            return ""
        return "文中没有提到这一点。" if chinese else "The text does not mention that."

    def _cached(self, ids: array[int]) -> int:
        """Tokens shared with the last prompt, which is forgotten for this one. At least one is computed anew."""
        if not self.spec.caches:
            return 0
        last, self._last = self._last, ids
        low, high = 0, min(len(last), len(ids) - 1)
        while low < high:  # compared in halves: each step is one comparison of memory
            middle = (low + high + 1) // 2
            if last[low:middle] == ids[low:middle]:
                low = middle
            else:
                high = middle - 1
        return low

    def _times(self, prefilled: int, completion: int, line: Random) -> Times:
        knobs = self.spec.knobs
        varied = 1 + knobs["jitter"] * (2 * line.random() - 1)
        first = knobs["latency"] * varied + (prefilled / knobs["prefill"] if knobs["prefill"] else 0)
        total = first + (completion / knobs["speed"] if knobs["speed"] else 0)
        return Times(first_token=first, total=total)


def _packaged(name: str) -> Endpoint:
    family = families.find(name)
    if family is None:
        raise TokenizerError(f"The simulated model needs a packaged tokenizer, not {name!r}.{families.suggest(name)}")
    chat = BUILTIN[family.chat] if family.chat is not None else None
    return Endpoint(
        tokenizer=tokenizers.packaged(family),
        render=None if chat is None else chat.render,
        template_name=family.chat,
        needs_system=chat is not None and chat.default_system,
    )


def _halved(messages: list[Message]) -> list[Message]:
    """What is left when a server silently cuts the first half of the longest message off."""
    longest = max(range(len(messages)), key=lambda number: len(messages[number]["content"]))
    content = messages[longest]["content"]
    halved = messages.copy()
    halved[longest] = Message(role=messages[longest]["role"], content=content[len(content) // 2 :])
    return halved


def _gibberish(mind: Random) -> str:
    return mind.choice(_GIBBERISH) * mind.randrange(4, 24)
