"""Replies that a provider's batch file brought back, matched with the prompts that were sent.

The shape is OpenAI's, which vLLM and others write too: `{custom_id, response: {status_code, body}, error}` a line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from ..plan.prompt import Prompt
from ..types import Failure, Reply, Times
from .files import numbered_lines, parse_line, wrong
from .models.answers import Draft
from .models.refusals import Refusal, RefusedError, shown_words
from .plain import plain
from .trials import Recorded

_SHOWN = 3


def custom_id(prompt: Prompt | Recorded, number: int) -> str:
    """What prompt `number` (from 0, over the whole plan or file) is called in a batch file of `needlepoint prompts`."""
    cell = prompt.cell
    depth = plain(float(cell.depth_percent), "depth_percent")
    place = f"{cell.subset}-{cell.context_length}-{depth}-r{prompt.replicate}.{prompt.repeat}"
    return f"{number}-{place}-{_text_of(prompt)[:8] or 'text'}-{prompt.sha256[:12]}"


def _text_of(prompt: Prompt | Recorded) -> str:
    """The fingerprint of the text that a prompt was made from; empty where its file doesn't tell."""
    if isinstance(prompt, Prompt):
        return "" if prompt.corpus is None else prompt.corpus.sha256
    return prompt.origin.corpus_sha256 or ""


class BatchResults:
    """The replies of one results file. What didn't match is known once it was iterated to its end: see `notes()`."""

    def __init__(self, path: Path, expected: Collection[str], *, parse: Callable[[object], Reply]) -> None:
        self.path = path
        self._expected = dict.fromkeys(expected)
        self._parse = parse
        self.missing: list[str] = []
        """Prompts without a result, in the order of `expected`."""
        self.unknown: list[str] = []
        """Results of other prompts; they are left out."""
        self.repeated: list[str] = []
        """Prompts with more than one result; each is yielded, in the file's order."""

    def __iter__(self) -> Iterator[tuple[str, Reply]]:
        seen: set[str] = set()
        self.missing, self.unknown, self.repeated = [], [], []
        for number, _, data in numbered_lines(self.path):
            if not data.strip():
                continue
            result = parse_line(data, self.path, number)
            name = result.get("custom_id")
            if not isinstance(name, str):
                raise wrong(self.path, number, "has no custom_id: it is no result of a batch")
            if name not in self._expected:
                self.unknown.append(name)
                continue
            if name in seen:
                self.repeated.append(name)
            seen.add(name)
            yield name, self._reply(result, number)
        self.missing = [name for name in self._expected if name not in seen]

    def notes(self) -> list[str]:
        """What people should know, a line each; none where every prompt has one result and every result a prompt."""
        found = (
            (self.missing, "have no result", "They count as not asked yet."),
            (self.unknown, "are of other prompts", "Left out. Were the prompts made with other settings?"),
            (self.repeated, "came more than once", "The last result of each counts."),
        )
        return [f"{self.path}: {len(ids):,} {what} ({_some(ids)}). {end}" for ids, what, end in found if ids]

    def _reply(self, result: dict[str, Any], number: int) -> Reply:
        response, error = result.get("response"), result.get("error")
        if not isinstance(response, dict):
            if not error:
                raise wrong(self.path, number, "has neither a response nor an error")
            return Reply(error=_failure(None, error))
        status, body = response.get("status_code"), response.get("body")
        if status is not None and type(status) is not int:
            raise wrong(self.path, number, "has a status_code that is no whole number")
        if error or (status is not None and status >= 400):
            return Reply(error=_failure(status, error or body))
        return self._parse(body)


def read_batch_results(
    path: Path, expected: Collection[str], *, parse: Callable[[object], Reply] | None = None
) -> BatchResults:
    """Iterate to get (custom_id, reply). `expected` are the ids of the prompts that were sent (`custom_id`).

    Errors are replies too (`Reply.error`). A line that is no batch result is an InputError with file and line.
    """
    return BatchResults(path, expected, parse=parse or read_answer)


def read_answer(body: object) -> Reply:
    """The body of a chat completion as a reply; what isn't one is a failure."""
    try:
        draft = Draft()
        refusal = draft.add(body, whole=True)
        return Reply(error=_told(refusal, 200)) if refusal is not None else draft.reply(Times())
    except RefusedError as refused:
        return Reply(error=refused.failure)


def _failure(status: int | None, error: object) -> Failure:
    """What a provider says instead of an answer. A batch that ran out of time may be sent again."""
    refusal = Refusal.of_value(status or 200, error)
    codes = " ".join(sorted(refusal.codes))
    if status is None and ("expired" in codes or "cancel" in codes):
        message = f"Batch: {shown_words(refusal.words, str)}"
        return Failure(kind="timeout" if "expired" in codes else "stopped", message=message)
    return _told(refusal, status or 200)


def _told(refusal: Refusal, status: int) -> Failure:
    return refusal.failure({}, now=0.0, clean=str, http_status=status)


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
