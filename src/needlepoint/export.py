"""Prompts as files: the seed's sample shape and provider batch files, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Literal

from .errors import OutputError, UsageError
from .fields import user_path
from .plan.haystack import Haystack
from .plan.prompt import Prompt
from .plan.task import Plan

Format = Literal["samples", "openai-batch"]
BATCH_REQUESTS = 50_000
BATCH_BYTES = 200_000_000
_SCHEMA = 1
_ESCAPES = {ord(char): json.dumps(char)[1:-1].encode() for char in ("\\", '"', *map(chr, range(32)))}


def sample(prompt: Prompt, number: int, group: int, plan: Plan) -> bytes:
    """One prompt in the seed's sample shape; `metadata` holds the seed's three fields and the recipe.

    As JSON text at once: a context is large, and is escaped once for the three places where it counts.
    """
    messages, context, digest = _escaped(prompt)
    corpus = prompt.corpus
    assert corpus is not None
    ids = [_short_id(f"{prompt.cell.subset}:{number}:{place}:{digest}") for place in range(len(messages))]
    inputs = b",".join(
        b'{"id":"%b","role":"%b","content":%b}' % (name.encode(), role.encode(), content)
        for name, (role, content) in zip(ids, messages, strict=True)
    )
    recipe = {
        "context_length": prompt.cell.context_length,
        "depth_percent": _plain(prompt.cell.depth_percent),
        "schema": _SCHEMA,
        "dataset": plan.task.dataset,
        "subset": prompt.cell.subset,
        "layout": prompt.layout,
        "length_mode": prompt.length_mode,
        "replicate": prompt.replicate,
        "repeat": prompt.repeat,
        "seed": plan.task.seed,
        "question": prompt.question,
        "answers": list(prompt.answers),
        "needles": [
            {"text": needle.text, "answers": list(needle.answers), "key": needle.key} for needle in prompt.needles
        ],
        "placements": [
            {
                "needle": placement.needle,
                "depth_percent": _plain(placement.depth_percent),
                "achieved_depth_percent": placement.achieved_depth_percent,
                "tokens_before": placement.tokens_before,
                "boundary": placement.boundary,
            }
            for placement in prompt.placements
        ],
        "achieved_length": prompt.n_tokens,
        "achieved_depth_percent": prompt.achieved_depth_percent,
        "boundary": prompt.boundary,
        "filler_tokens": prompt.filler_tokens,
        "recounted": prompt.recounted,
        "length_proven": plan.endpoint.proven,
        "corpus": {"name": corpus.name, "licence": corpus.licence, "sha256": corpus.sha256},
        "tokenizer": {
            "name": plan.endpoint.tokenizer.name,
            "fingerprint": plan.endpoint.tokenizer.fingerprint,
            "chat_template": plan.endpoint.template_name,
        },
        "prompt_sha256": digest,
    }
    about = f'"target":{_json(prompt.target)},"id":{number},"group_id":{group}'.encode()
    rest = _json(recipe)[1:].encode()
    return b'{"input":[%b],%b,"metadata":{"context":"%b",%b}' % (inputs, about, context, rest)


def _escaped(prompt: Prompt) -> tuple[list[tuple[str, bytes]], bytes, str]:
    """Role and JSON content of each message, the context as it stands inside a JSON string, and the prompt's hash."""
    around = prompt.frame
    context = _inside_string(prompt.context_utf8(), _special_bytes(prompt))
    before, after = (_json(text)[1:-1].encode() for text in (around.user_before, around.user_after))
    user = b'"%b%b%b"' % (before, context, after)
    messages = [("user", user)]
    if around.system is not None:
        messages.insert(0, ("system", _json(around.system).encode()))
    pairs = b",".join(b'["%b",%b]' % (role.encode(), content) for role, content in messages)
    return messages, context, hashlib.sha256(b"[%b]" % pairs).hexdigest()


def _special_bytes(prompt: Prompt) -> bytes:
    """Which bytes of a context JSON wants escaped: a backslash first, since the others' escapes begin with one."""
    edits = "".join(edit.text for edit in prompt.edits).encode()
    found = _special_bytes_of(prompt.haystack)
    return bytes(byte for byte in _ESCAPES if byte in found or byte in edits)


@lru_cache(maxsize=1)
def _special_bytes_of(haystack: Haystack) -> bytes:
    return bytes(byte for byte in _ESCAPES if byte in haystack.data)


def _inside_string(data: bytes, special: bytes) -> bytes:
    """UTF-8 as it stands inside a JSON string: what `json` gives, faster on a large text."""
    for byte in special:
        data = data.replace(bytes([byte]), _ESCAPES[byte])
    return data


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _short_id(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


def batch_request(prompt: Prompt, number: int, *, model: str) -> bytes:
    """One line of a provider's batch file (OpenAI's format, which others take too)."""
    messages, _, digest = _escaped(prompt)
    sent = b",".join(b'{"role":"%b","content":%b}' % (role.encode(), content) for role, content in messages)
    limit = "" if prompt.max_tokens is None else f',"max_tokens":{prompt.max_tokens}'
    cell = prompt.cell
    place = f"{cell.subset}-{cell.context_length}-{_plain(cell.depth_percent)}-r{prompt.replicate}.{prompt.repeat}"
    text = prompt.corpus.sha256[:8] if prompt.corpus is not None else "text"
    name = _json(f"{number}-{place}-{text}-{digest[:12]}").encode()
    head = b'{"custom_id":%b,"method":"POST","url":"/v1/chat/completions"' % name
    return b'%b,"body":{"model":%b,"messages":[%b]%b}}' % (head, _json(model).encode(), sent, limit.encode())


@dataclass(frozen=True, slots=True)
class Line:
    """A prompt as one line of a file."""

    prompt: Prompt
    data: bytes = field(repr=False)


def lines(plan: Plan, *, format_: Format = "samples", model: str | None = None) -> Iterator[Line]:
    """The lines of the file, one prompt at a time."""
    if format_ == "openai-batch" and not model:
        raise UsageError("A batch file names the model in every line. Give --model.")
    number = group = 0
    subset: str | None = None
    for total, prompt in enumerate(plan):
        if prompt.cell.subset != subset:
            subset, number, group = prompt.cell.subset, 0, -1
        group += prompt.repeat == 0
        if format_ == "openai-batch":
            record = batch_request(prompt, total, model=model or "")
        else:
            record = sample(prompt, number, group, plan)
        yield Line(prompt, record + b"\n")
        number += 1


def write(lines: Iterable[Line], target: str, *, on_line: Callable[[Line], None]) -> int:
    """Write lines to a file, or to standard output for `-`; returns the bytes written.

    A file appears whole or not at all: it is written beside its place and moved there at the end.
    """
    size = 0
    with _destination(target) as out:
        for line in lines:
            size += out.write(line.data)
            on_line(line)
    return size


def check_target(target: str) -> None:
    """Raise where it can be seen beforehand that nothing can be written there."""
    if target == "-":
        return
    if not target or "\0" in target:
        raise OutputError(f"--out {target!r} is not the name of a file.")
    path = user_path(target)
    try:
        if path.is_dir():
            raise OutputError(f"{path} is a folder. Give a file for --out.")
        if not path.parent.is_dir():
            raise OutputError(f"There is no folder {path.parent} to write {path.name!r} in. Make it first.")
    except OSError as error:
        raise _unwritable(path, error) from None


@contextlib.contextmanager
def _destination(target: str) -> Iterator[IO[bytes]]:
    check_target(target)
    path = Path("standard output") if target == "-" else user_path(target)
    try:
        if target == "-":
            sys.stdout.flush()
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        elif _is_stream(path):
            with path.open("wb") as out:
                yield out
        else:
            with _replacing(path.resolve()) as out:  # behind a link
                yield out
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from None


def _is_stream(path: Path) -> bool:
    """Devices and pipes, and the files that /dev/stdout and the like stand for, are written in place."""
    return path.exists() and (not path.is_file() or path.parts[:2] in (("/", "dev"), ("/", "proc")))


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file beside `path` that takes its place when all went well, and is gone otherwise."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as out:
            yield out
        beside.replace(path)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def _unwritable(path: Path, error: OSError) -> OutputError:
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        return OutputError(
            f"Cannot write {path}: {reason}. Nothing was kept. Free some space, or choose another place with --out."
        )
    return OutputError(f"Cannot write {path}: {reason}. Choose another place with --out.")


def _plain(number: float) -> float | int:
    """Whole numbers without a point, as the seed writes them."""
    return int(number) if float(number).is_integer() else number
