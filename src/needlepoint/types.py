"""The nouns. Frozen, slotted, keyword-only; standard library only.

This module knows nothing of files, networks, models or settings. Rooms meet here: a room may import `types`, `errors`
and the rooms to its left (text → plan → ask → score → learn → show), nothing else.
"""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypedDict, runtime_checkable

LengthMode = Literal["evalscope", "exact"]
Layout = Literal["classic", "lattice", "woven"]
CacheKind = Literal["none", "slot", "radix", "points"]
"""What an engine keeps of earlier prompts: nothing; the last prompt of its one slot; prefixes, as many as there is room
for (vLLM, SGLang, most hosted models); prefixes up to the points that a request marks (explicit breakpoints)."""
Boundary = Literal["sentence", "clause", "word"]


class Message(TypedDict):
    """One chat message, in the shape that every chat API takes."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text as tokens: `ids`, and where each token ends, in UTF-8 bytes of the text that was given.

    A token may end inside a character (byte-level vocabularies); the last end is the length of the text.
    """

    ids: array[int]
    ends: array[int]

    def __len__(self) -> int:
        return len(self.ids)


@runtime_checkable
class Tokenizer(Protocol):
    """What the planner needs of a tokenizer, be it a packaged vocabulary, a file, a GGUF or a server.

    `encode` never adds anything of its own (no BOS, no prefix space). With `special` it reads the special tokens that
    are spelled out in the text, as a server does with a rendered chat; without it they are ordinary text.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Short hash of what decides the tokens; equal fingerprints give equal tokens."""
        ...

    @property
    def special_tokens(self) -> Sequence[str]:
        """Spellings that `encode(special=True)` reads as control tokens."""
        ...

    @property
    def adds_bos(self) -> bool:
        """Whether other tools' plain `encode` of this tokenizer puts a BOS token in front."""
        ...

    @property
    def rewrites(self) -> bool:
        """Whether other tools' `decode` of their plain `encode` is another text: a space or an EOS added, a spelling
        changed (NFC apart)."""
        ...

    @property
    def nfc(self) -> bool:
        """Whether text is brought to NFC first; byte ends then refer to the NFC text."""
        ...

    def encode(self, text: str, *, special: bool = False) -> Encoding: ...

    def count(self, text: str, *, special: bool = False) -> int: ...

    def decode(self, ids: Sequence[int]) -> str: ...


Render = Callable[[Sequence[Message]], str]
"""Chat messages → the very text that the server tokenizes, generation prompt included, BOS at most once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What planning must know of the other side. Later rooms add limits, caches and capabilities here.

    `render` is None where the chat template is unknown: lengths are then counted without it. `proven` says whether
    lengths rest on the tokenizer and template that the server itself uses; else they are labelled unproven.
    """

    tokenizer: Tokenizer
    render: Render | None
    template_name: str | None = None
    proven: bool = False
    needs_system: bool = False
    """Without a system message the chat template writes one of its own, which differs between revisions."""
    limit_tokens: int | None = None
    cache: CacheKind = "none"
    """What the model keeps of earlier prompts: decides the order in which prompts are asked."""
    capabilities: frozenset[str] = frozenset()
    """What else the model can do. `uncached`: computes a prompt whole on request (`Sampling.reuse` False);
    `prefixes`: is known to keep prefixes, not only likely to, so that waiting for them pays; `logprob`:
    tells log-probabilities of given continuations."""
    notes: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    """What the other side told of itself, for the record: server, version, model id, ... No secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A haystack text, in memory, with where it is from. `sha256` is of the file's bytes as read."""

    name: str
    subset: str
    language: Literal["en", "zh", "other"]
    licence: str
    sha256: str
    text: str = field(repr=False)
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """One point of the grid: a subset, a context length in tokens and a depth in percent, as asked."""

    subset: str
    context_length: int
    depth_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """A fact to hide. `answers` are the values that a right reply states; `key` is what the question asks by."""

    text: str
    answers: tuple[str, ...] = ()
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a needle stands in its haystack: tokens of text before it, and the boundary that it stands at."""

    needle: int
    depth_percent: float
    achieved_depth_percent: float
    tokens_before: int
    boundary: Boundary


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of a prompt's tokens: those of `source` from its token `start` on. Two prompts whose segments are equal up
    to here share that prefix; of the first pair that differs, segments with one source and start still share their
    first min(n_tokens)."""

    source: str
    n_tokens: int
    start: int = 0


# --- asking -----------------------------------------------------------------------------------------------------------

Outcome = Literal[
    "correct",
    "partial",
    "wrong",
    "not_found",
    "refused",  # valid: a reply was given to the whole prompt
    "overflow",
    "truncated",
    "out_of_room",
    "failed",
    "unjudged",  # invalid: the measurement broke
]
VALID_OUTCOMES: frozenset[str] = frozenset({"correct", "partial", "wrong", "not_found", "refused"})

FailureKind = Literal[
    "overflow",  # the prompt is longer than the model takes
    "rate_limit",
    "server",  # 5xx, overloaded
    "timeout",
    "connection",  # refused, reset, cut off
    "bad_answer",  # not what the API promises: HTML, invalid JSON, no choices, too large
    "auth",  # 401, 403
    "bad_request",  # other 4xx: sending it again gives the same
    "stopped",  # by the user or a limit of the run, before an answer came
]
PASSING_FAILURES: frozenset[str] = frozenset({"rate_limit", "server", "timeout", "connection", "bad_answer"})
"""What may be different the next time; nothing else is sent again."""


@runtime_checkable
class Askable(Protocol):
    """What a model needs of a prompt, be it planned or read from a file. Texts are made on demand."""

    @property
    def n_tokens(self) -> int | None: ...

    @property
    def sha256(self) -> str: ...

    @property
    def max_tokens(self) -> int | None: ...

    def messages(self) -> list[Message]: ...

    def text(self) -> str:
        """The rendered chat, where it is known."""
        ...

    def token_ids(self) -> array[int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How replies are drawn. `options` go into the request as they are (temperature, seed, extra_body, ...).

    Without `reuse` a prompt is computed whole, whatever the model keeps of earlier ones (where it is `uncached`).
    """

    max_tokens: int
    options: Mapping[str, object] = field(default_factory=dict)
    reuse: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternatives:
    """Continuations of a prompt that are compared: `lead`, if any, and then the right value or a wrong one."""

    lead: str
    gold: str
    rivals: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """Log-probabilities (natural) of a right value and of the likeliest wrong one, `rival`, after the same prompt."""

    gold: float
    wrong: float
    rival: str
    tokens: int
    """Of the right value."""

    @property
    def value(self) -> float:
        """Above 0 the right value is the likelier one."""
        return self.gold - self.wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the other side counts them; None where it doesn't say."""

    prompt: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    cache_written: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds. `queued` waited for its turn, `first_token` and `total` since the request was sent."""

    queued: float | None = None
    first_token: float | None = None
    total: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why no reply came. `message` is for people and holds no secret."""

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back for one prompt. Without `error`, a reply was given; its text may still be empty.

    Without error and with no `attempts`, someone else asked, and only told what it was worth: the text isn't known.
    """

    text: str = ""
    reasoning: str | None = None
    finish: str | None = None
    """`stop`, `length`, or the server's own word."""
    logprobs: tuple[float, ...] | None = None
    usage: Usage = Usage()
    prefilled_tokens: int | None = None
    margin: Margin | None = None
    """Where alternatives were compared."""
    times: Times = Times()
    attempts: int = 1
    error: Failure | None = None


@runtime_checkable
class Model(Protocol):
    """Something that can be asked. Async; a local engine takes a whole wave and shares prefixes inside.

    `ask` yields one Reply for each prompt, in their order, as they come. It makes one attempt at each and never raises
    for what the other side does: failures are data (`Reply.error`). Only cancellation and programming errors raise.
    """

    @property
    def name(self) -> str: ...

    @property
    def wave(self) -> int:
        """How many prompts one call of `ask` should get: 1 for servers, more for local engines."""
        ...

    async def connect(self) -> Endpoint: ...

    def ask(self, prompts: Sequence[Askable], sampling: Sampling) -> AsyncIterator[Reply]: ...

    async def close(self) -> None: ...


@runtime_checkable
class TellsLogprobs(Protocol):
    """A model with the capability `logprob`. `ask` compares a prompt's `alternatives`, where it has some, by itself."""

    async def logprob(
        self, prompt: Askable, continuations: Sequence[str], *, lead: str = ""
    ) -> list[tuple[float, ...] | None]:
        """For each continuation, the log-probability of each of its tokens after prompt, `lead` and those before it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One question asked: the recipe from which its very prompt can be made again. Never the prompt's text.

    Whoever else asked it (an imported trial, a line of another tool's file) may not have told all of it: what isn't
    known is None, and without `prompt_sha256` nobody can prove what the prompt was.
    """

    id: str
    dataset: str
    subset: str
    layout: str
    length_mode: str | None
    replicate: int
    repeat: int
    context_length: int
    depth_percent: float
    achieved_length: int | None
    achieved_depth_percent: float | None
    boundary: str | None
    needles: tuple[Needle, ...]
    placements: tuple[Placement, ...]
    question: str
    answers: tuple[str, ...]
    corpus: str | None
    corpus_sha256: str | None
    tokenizer: str | None
    tokenizer_fingerprint: str | None
    prompt_sha256: str | None
    sent_tokens: int | None
    length_proven: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a reply is worth: an outcome, a value from 0 to 1 (None where invalid), why, and what decided.

    `raw` is the scorer's own number where it has another scale (a judge's 7 of 1 to 10), `scale` that scale's ends.
    """

    outcome: Outcome
    score: float | None
    reason: str
    span: tuple[int, int] | None
    scorer: str
    raw: float | None = None
    scale: tuple[float, float] | None = None
