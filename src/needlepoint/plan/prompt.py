"""A prompt: which haystack, which edits, which frame around it. Its texts are made on demand and never kept."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ..errors import UsageError, did_you_mean
from ..text.chat import split_at_context
from ..types import (
    Alternatives,
    Boundary,
    Cell,
    Corpus,
    Endpoint,
    LengthMode,
    Message,
    Needle,
    Placement,
    Render,
    Segment,
)
from .haystack import Haystack
from .splice import Edit, Run

SYSTEM_PROMPT = "You are a helpful AI bot that answers questions for a user. Keep your response short and direct"
PROMPT_TEMPLATE = (
    "Please read the following text and answer the question below.\n\n"
    "<text>\n{context}\n</text>\n\n<question>\n{question}\n</question>\n\n"
    "Don't give information outside the document or repeat your findings."
)
_SENTINEL = "\ue000needlepoint-context\ue001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What stands around a context: the chat messages, and the rendered chat where the template is known.

    `before` and `after` are the rendered text on both sides of the context. Without a chat template (`render`
    is None) they are the plain message texts.
    """

    system: str | None
    user_before: str
    user_after: str
    before: str
    after: str
    render: Render | None

    def messages(self, context: str) -> list[Message]:
        user = Message(role="user", content=self.user_before + context + self.user_after)
        return [user] if self.system is None else [Message(role="system", content=self.system), user]


def frame(endpoint: Endpoint, *, system_prompt: str | None, prompt_template: str, question: str) -> Frame:
    """The frame of one question: the user template filled, then the chat template rendered around a sentinel."""
    user = fill_template(prompt_template, context=_SENTINEL, question=question)
    parts = user.split(_SENTINEL)
    if len(parts) != 2:
        raise UsageError("The prompt template must hold {context} exactly once.")
    system = system_prompt if system_prompt else None
    if endpoint.render is None:
        lead = "" if system is None else system + "\n\n"
        before, after = lead + parts[0], parts[1]
    else:
        messages = [Message(role="user", content=user)]
        if system is not None:
            messages.insert(0, Message(role="system", content=system))
        before, after = split_at_context(endpoint.render, messages, _SENTINEL)
    return Frame(
        system=system,
        user_before=parts[0],
        user_after=parts[1],
        before=before,
        after=after,
        render=endpoint.render,
    )


def fill_template(template: str, *, context: str, question: str) -> str:
    """`str.format` with the two known placeholders; anything else in braces is an error with the way out."""
    try:
        return template.format(context=context, question=question)
    except KeyError as error:
        name = str(error.args[0])
        hint = did_you_mean(name, ("context", "question")) or " Write {{ and }} for braces that are meant as text."
        raise UsageError(f"The prompt template has an unknown placeholder {{{name}}}.{hint}") from None
    except (IndexError, ValueError, AttributeError) as error:
        raise UsageError(
            f"The prompt template is not usable: {error}. It may hold {{context}} and {{question}}; "
            "write {{ and }} for braces that are meant as text."
        ) from None


def check_template(template: str) -> None:
    """Raise unless the template holds {context} once and {question} at least once."""
    filled = fill_template(template, context="\ue000", question="\ue001")
    if filled.count("\ue000") != 1:
        raise UsageError(
            f"The prompt template must hold {{context}} exactly once, not {filled.count(chr(0xE000))} times."
        )
    if "\ue001" not in filled:
        raise UsageError("The prompt template must hold {question}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One question to a model. Holds positions, not texts: `messages()`, `text()` and `token_ids()` are made on demand.

    `n_tokens` counts the whole prompt as the server does, chat template included (None where tokens can't be counted).
    """

    cell: Cell
    replicate: int = 0
    repeat: int = 0
    layout: str = "classic"
    length_mode: LengthMode
    needles: tuple[Needle, ...]
    placements: tuple[Placement, ...]
    question: str
    frame: Frame = field(repr=False)
    haystack: Haystack = field(repr=False)
    edits: tuple[Edit, ...] = field(repr=False)
    """Edits of the context alone: the needles, and last the end of the text."""
    runs: tuple[Run, ...] = field(repr=False)
    n_tokens: int
    hay_tokens: int
    filler_tokens: int = 0
    max_tokens: int | None = None
    corpus: Corpus | None = field(default=None, repr=False)
    alternatives: Alternatives | None = field(default=None, repr=False)
    """Continuations that are compared beside the answer, where the run's metric asks for it."""
    recounted: bool = False
    """Whether the whole prompt was encoded anew and had `n_tokens`."""

    @property
    def target(self) -> str:
        """The seed's reference answer: the needles, one a line."""
        return "\n".join(needle.text for needle in self.needles)

    @property
    def answers(self) -> tuple[str, ...]:
        """What a right reply states."""
        return tuple(answer for needle in self.needles for answer in needle.answers)

    @property
    def boundary(self) -> Boundary:
        """The loosest boundary that one of the needles stands at."""
        order: tuple[Boundary, ...] = ("sentence", "clause", "word")
        return max((placement.boundary for placement in self.placements), key=order.index)

    @property
    def achieved_depth_percent(self) -> float:
        return self.placements[0].achieved_depth_percent

    @property
    def n_characters(self) -> int:
        """Characters of system and user message, as the seed's statistics count them."""
        around = len(self.frame.system or "") + len(self.frame.user_before) + len(self.frame.user_after)
        return around + len(self.context())

    def context(self) -> str:
        """The haystack with its needles."""
        return self.context_utf8().decode()

    def context_utf8(self) -> bytes:
        """The context as it is held: for those who write it, not read it."""
        parts: list[bytes] = []
        at = 0
        for edit in self.edits:
            parts.append(self.haystack.data[at : edit.start])
            parts.append(edit.text.encode())
            at = edit.start if edit.end is None else edit.end
        return b"".join(parts)

    def messages(self) -> list[Message]:
        """The chat messages, ready to be sent."""
        return self.frame.messages(self.context())

    def text(self) -> str:
        """The rendered chat: what the server tokenizes."""
        return self.frame.before + self.context() + self.frame.after

    def token_ids(self) -> array[int]:
        ids: array[int] = array("I")
        for run in self.runs:
            ids.extend(self.haystack.ids[run.start : run.end] if run.ids is None else run.ids)
        return ids

    @property
    def sha256(self) -> str:
        """Hash of the messages as compact JSON, e.g. `[["system","..."],["user","..."]]`."""
        return fingerprint(self.messages())

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The prompt's tokens as runs that can be compared without holding texts: the haystack's by their place, all
        others one by one."""
        found: list[Segment] = []
        source = self.haystack.fingerprint
        for run in self.runs:
            if run.ids is None:
                found.append(Segment(source, len(run), run.start))
            else:
                found += map(_token, run.ids)
        return tuple(found)

    @property
    def fork(self) -> int:
        """Where this prompt leaves the prefix that it shares with others: tokens before its first needle, or, where
        all needles are in the shared text (`woven`), before what follows the text."""
        if self.layout == "woven":
            return self.n_tokens - len(self.runs[-1])
        if self.edits[0].start and len(self.runs) > 2 and self.runs[1].ids is None:
            return len(self.runs[0]) + len(self.runs[1])
        shared = self.frame.before + self.haystack.data[: self.edits[0].start].decode()
        return self.haystack.tokenizer.count(shared, special=True)

    @property
    def shared_characters(self) -> int:
        """Characters of the user message before `fork`."""
        *inside, end = self.edits
        if self.layout == "woven":
            context = self.context()
            return len(self.frame.user_before) + len(context) - len(end.text)
        first = (inside or [end])[0]
        return len(self.frame.user_before) + len(self.haystack.data[: first.start].decode())

    def recount(self) -> int:
        """Render the messages and encode them anew, whole: the proof of `n_tokens`."""
        text = self.text() if self.frame.render is None else self.frame.render(self.messages())
        return self.haystack.tokenizer.count(text, special=True)


@lru_cache(maxsize=1 << 16)
def _token(number: int) -> Segment:
    """A token by itself; prompts share most of these."""
    return Segment(f"#{number}", 1)


def fingerprint(messages: Sequence[Message]) -> str:
    """sha256 of chat messages, the same for the same roles and contents."""
    pairs = [[message["role"], message["content"]] for message in messages]
    return hashlib.sha256(json.dumps(pairs, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()
