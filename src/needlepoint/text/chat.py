"""Chat templates: what a server writes around the messages before it counts tokens.

`BUILTIN` (from `formats`) holds the formats of the packaged vocabularies; `from_jinja` renders any Hugging Face
template. Both write a prompt that ends with the generation prompt, with the server's default switches. This module
knows nothing of vocabularies, servers or the network; the only date it knows is the one that it is given.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import TokenizerError
from ..types import Message, Render
from .formats import BUILTIN, TODAY, ChatFormat

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "BUILTIN",
    "TODAY",
    "ChatFormat",
    "FoundTemplate",
    "JinjaChat",
    "find_template",
    "from_jinja",
    "split_at_context",
]

_LARGEST_RANGE = 1_000_000
_LARGEST_EXTRA = 1_000_000
"""Bounds on a foreign template: steps of its own loops, characters that it may add to the messages."""


class _TemplateRefusal(Exception):
    """The template called `raise_exception`."""


@functools.cache
def _environment() -> Environment:
    """Jinja as Hugging Face and vLLM set it up, with what would exhaust the memory refused."""
    from jinja2 import nodes
    from jinja2.exceptions import SecurityError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.runtime import Context
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}` marks the assistant's tokens for training; here it is transparent."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    class Bounded(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"*", "**"})

        def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
            if operator == "**":
                raise SecurityError("powers are not available")
            for sequence, times in ((left, right), (right, left)):
                long = isinstance(sequence, (str, list, tuple)) and isinstance(times, int)
                if long and len(sequence) * times > _LARGEST_EXTRA:
                    raise SecurityError("it repeats a text too often")
            return super().call_binop(context, operator, left, right)

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message: object = "") -> None:
        raise _TemplateRefusal(str(message))

    environment = Bounded(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    del environment.globals["lipsum"]
    return environment


def _bounded_range() -> Callable[..., Iterator[int]]:
    """`range` for one rendering; all its steps together are bounded."""
    left = _LARGEST_RANGE

    def bounded(*bounds: int) -> Iterator[int]:
        nonlocal left
        steps = range(*bounds)
        left -= len(steps)
        if left < 0:
            raise OverflowError(f"its loops take more than {_LARGEST_RANGE} steps")
        return iter(steps)

    return bounded


def _merge_system(messages: Sequence[Message]) -> list[Message]:
    """The system text in front of the first user text, a blank line between."""
    if len(messages) < 2 or messages[0]["role"] != "system" or messages[1]["role"] != "user":
        return list(messages)
    joined = f"{messages[0]['content']}\n\n{messages[1]['content']}"
    return [Message(role="user", content=joined), *messages[2:]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JinjaChat:
    """A Hugging Face chat template as a `Render`. `notes` say what a user of its lengths should know.

    `merges_system`: the template refuses a system message, so its text goes in front of the user's. `parts`: it wants
    contents as lists of parts. `dated`: it writes today's date, for which `TODAY` stands.
    """

    name: str
    notes: tuple[str, ...]
    merges_system: bool
    parts: bool
    dated: bool
    bos_token: str
    write: Callable[[Sequence[Message], bool], str]

    def __call__(self, messages: Sequence[Message]) -> str:
        try:
            text = self.write(_merge_system(messages) if self.merges_system else messages, self.parts)
        except _TemplateRefusal as refusal:
            raise TokenizerError(
                f"The chat template of {self.name} refuses these messages: {_one_line(refusal)}"
            ) from None
        return _single_bos(text, self.bos_token)


def _single_bos(text: str, bos: str) -> str:
    while bos and text.startswith(bos + bos):
        text = text[len(bos) :]
    return text


def from_jinja(
    template: str,
    *,
    bos_token: str | None,
    eos_token: str | None,
    name: str,
    extra: Mapping[str, object] | None = None,
    today: date = TODAY,
) -> JinjaChat:
    """The template, compiled and tried once. `name` is for messages; `extra` are further template variables."""
    from jinja2.exceptions import TemplateSyntaxError

    dated = False

    def strftime_now(form: str) -> str:
        nonlocal dated
        dated = True
        return today.strftime(form)

    try:
        compiled = _environment().from_string(template)
    except TemplateSyntaxError as error:
        problem = " ".join(str(error.message).split())
        raise TokenizerError(f"The chat template of {name} is broken in line {error.lineno}: {problem}") from None
    except (RecursionError, ValueError, OverflowError) as error:
        raise TokenizerError(f"The chat template of {name} cannot be compiled: {_one_line(error)}") from None

    def write(messages: Sequence[Message], parts: bool) -> str:
        room = _LARGEST_EXTRA + 4 * sum(len(message["content"]) for message in messages)
        shaped = [
            {**message, "content": [{"type": "text", "text": message["content"]}]} if parts else dict(message)
            for message in messages
        ]
        context: dict[str, object] = {
            "tools": None,
            "documents": None,
            "bos_token": bos_token or "",
            "eos_token": eos_token or "",
            "range": _bounded_range(),
            "strftime_now": strftime_now,
            **(extra or {}),
            "messages": shaped,
            "add_generation_prompt": True,
        }
        pieces: list[str] = []
        try:
            for piece in compiled.generate(context):
                pieces.append(piece)
                room -= len(piece)
                if room < 0:
                    raise OverflowError("it writes far more text than it is given")
        except _TemplateRefusal:
            raise
        except Exception as error:  # a foreign template can fail in any way
            raise TokenizerError(f"The chat template of {name} failed: {_one_line(error)}") from None
        return "".join(pieces)

    merges, parts, text, notes = _probe(write, name)
    if bos_token and text.startswith(bos_token * 2):
        notes.append(f"the template writes {bos_token} twice; one is counted")
    if dated:
        notes.append(f"the template writes today's date; {today.isoformat()} stands for it")
    return JinjaChat(
        name=name,
        notes=tuple(notes),
        merges_system=merges,
        parts=parts,
        dated=dated,
        bos_token=bos_token or "",
        write=write,
    )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _probe(write: Callable[[Sequence[Message], bool], str], name: str) -> tuple[bool, bool, str, list[str]]:
    """How the template wants its messages: merged or not, parts or not; a sample of its text; notes."""
    system = Message(role="system", content="needlepoint-system-probe")
    user = Message(role="user", content="needlepoint-user-probe")
    problem: str | None = None
    for parts in (False, True):
        for messages in ([system, user], _merge_system([system, user])):
            merged = len(messages) == 1
            try:
                text = write(messages, parts)
            except _TemplateRefusal as refusal:
                problem = problem or f"The chat template of {name} refuses a user message: {_one_line(refusal)}"
                if not merged:
                    reason = _one_line(refusal)
                    continue
            except TokenizerError as error:
                problem = problem or str(error)
            else:
                if user["content"] in text:
                    notes = []
                    if merged:
                        notes.append(f"the template takes no system message ({reason}); it joins the user's")
                    elif system["content"] not in text:
                        notes.append("the template leaves the system message out")
                    return merged, parts, text, notes
            break
    raise TokenizerError(problem or f"The chat template of {name} leaves the user's text out.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTemplate:
    """A chat template as a model folder has it; `source` is the file that it was in."""

    template: str
    bos_token: str | None
    eos_token: str | None
    source: str


def find_template(folder: Path) -> FoundTemplate | None:
    """The template that transformers would use of this folder, or None where it has none."""
    config = _read_json(folder / "tokenizer_config.json")
    tokens = {**_read_json(folder / "special_tokens_map.json"), **config}
    candidates: list[tuple[str, object]] = []
    if (folder / "chat_template.jinja").is_file():
        candidates.append(("chat_template.jinja", _read_text(folder / "chat_template.jinja")))
    candidates.append(("tokenizer_config.json", config.get("chat_template")))
    if (folder / "chat_template.json").is_file():
        candidates.append(("chat_template.json", _read_json(folder / "chat_template.json").get("chat_template")))
    for source, value in candidates:
        template = _default_template(value, folder / source)
        if template is not None:
            bos, eos = (_spelling(tokens.get(key)) for key in ("bos_token", "eos_token"))
            return FoundTemplate(template=template, bos_token=bos, eos_token=eos, source=source)
    return None


def _default_template(value: object, path: Path) -> str | None:
    """The template itself, or of several named ones the one called default."""
    if value is None or isinstance(value, str):
        return value
    named: dict[str, str] = {}
    if isinstance(value, list):
        for entry in value:
            if isinstance(entry, dict) and isinstance(entry.get("template"), str):
                named[str(entry.get("name"))] = entry["template"]
    elif isinstance(value, dict):
        named = {str(key): text for key, text in value.items() if isinstance(text, str)}
    if "default" in named:
        return named["default"]
    if len(named) == 1:
        return next(iter(named.values()))
    raise TokenizerError(f"{path} has chat templates {sorted(named)} and none of them is called 'default'.")


def _spelling(token: object) -> str | None:
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TokenizerError(f"{path} cannot be read: {_one_line(error)}") from None


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where there is no such file."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(_read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise TokenizerError(f"{path} is not valid JSON: {_one_line(error)}") from None
    if not isinstance(value, dict):
        raise TokenizerError(f"{path} is not a JSON object.")
    return value


def split_at_context(
    render: Render, messages: Sequence[Message], sentinel: str, *, bos: str | None = None
) -> tuple[str, str]:
    """What the server writes before and after the text that `sentinel` stands for in `messages`."""
    text = render(messages)
    if bos and text.startswith(bos * 2):
        raise TokenizerError(f"The chat template writes {bos} twice at the start; a prompt must have it once.")
    pieces = text.split(sentinel)
    if len(pieces) != 2:
        found = "does not write" if len(pieces) == 1 else f"writes {len(pieces) - 1} times"
        raise TokenizerError(f"The chat template {found} the user's text; exact lengths need it once.")
    return pieces[0], pieces[1]
