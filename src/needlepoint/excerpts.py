"""The needles of a run in their surroundings, from its prompts made again: for people who look at a trial.

Only what is proven is shown: an excerpt comes from a prompt whose sha256 is the trial's. A run whose prompts cannot be
made again (imported, or its text or tokenizer is gone) has no excerpts, and the page does without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from .ask.files import FilePrompt
from .errors import NeedlepointError
from .plan.prompt import Prompt
from .plan.task import Plan
from .reconstruct import rebuild
from .show.trials import Excerpt
from .text.cache import Notify, Progress
from .types import Trial

SURROUNDING = 200
MOST_EXCERPTS = 2_000
MOST_TOKENS = 60_000_000
"""Of prompts made again for one page: some seconds' work."""


def excerpts_of_run(
    path: Path,
    trials: Iterable[Trial],
    *,
    prompts: Iterable[Prompt | FilePrompt] | None = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> tuple[dict[str, tuple[Excerpt, ...]], str | None]:
    """Excerpts by the prompt's sha256, and why there are none where the prompts cannot be made again.

    The first of `trials` matter most. `prompts` are the run's own, where they are still at hand.
    """
    wanted = _wanted(trials)
    if not wanted:
        return {}, None
    try:
        if prompts is None:
            prompts = rebuild(path, notify=notify, progress=progress).prompts
        return excerpts_of(prompts, wanted), None
    except NeedlepointError as error:
        return {}, str(error)


def excerpts_of(prompts: Iterable[Prompt | FilePrompt], wanted: Mapping[str, Trial]) -> dict[str, tuple[Excerpt, ...]]:
    """Excerpts of these prompts, as far as they are among those that are wanted."""
    found: dict[str, tuple[Excerpt, ...]] = {}
    for prompt in _made(prompts, wanted):
        sha256 = prompt.sha256
        if sha256 in wanted and sha256 not in found:
            found[sha256] = tuple(_excerpts(prompt))
    return found


def _wanted(trials: Iterable[Trial]) -> dict[str, Trial]:
    """The first trial of each prompt, in the order in which they are given, as many as are made in some seconds."""
    wanted: dict[str, Trial] = {}
    tokens = 0
    for trial in trials:
        if not trial.prompt_sha256 or trial.context_length is None or trial.depth_percent is None:
            continue
        if trial.prompt_sha256 not in wanted:
            tokens += trial.context_length
            if len(wanted) >= MOST_EXCERPTS or tokens > MOST_TOKENS:
                break
            wanted[trial.prompt_sha256] = trial
    return wanted


def _made(prompts: Iterable[Prompt | FilePrompt], wanted: Mapping[str, Trial]) -> Iterable[Prompt | FilePrompt]:
    if not isinstance(prompts, Plan):
        return (prompt for prompt in prompts if prompt.sha256 in wanted)
    places = {(t.subset, t.context_length, t.depth_percent, t.replicate) for t in wanted.values()}
    return prompts.among(places)


def _excerpts(prompt: Prompt | FilePrompt) -> Iterator[Excerpt]:
    """One for each needle; empty where the needle doesn't stand there as it is written."""
    text, places = _planned(prompt) if isinstance(prompt, Prompt) else _read(prompt)
    for needle, place in zip(prompt.needles, places, strict=True):
        if place is None:
            yield Excerpt(before="", after="")
            continue
        end = place + len(needle.text.encode())
        before = text[max(0, place - 4 * SURROUNDING) : place].decode(errors="ignore")
        after = text[end : end + 4 * SURROUNDING].decode(errors="ignore")
        yield Excerpt(before=before[-SURROUNDING:], after=after[:SURROUNDING])


def _planned(prompt: Prompt) -> tuple[bytes, list[int | None]]:
    """The context as bytes, and where each needle was put into it: the text may say the same elsewhere, too."""
    data = prompt.haystack.data
    text = bytearray()
    at = 0
    put_in: list[tuple[int, bytes]] = []
    for edit in prompt.edits:
        text += data[at : edit.start]
        put_in.append((len(text), inserted := edit.text.encode()))
        text += inserted
        at = edit.start if edit.end is None else edit.end
    places: list[int | None] = []
    behind = 0
    for needle in prompt.needles:
        wanted = needle.text.encode()
        found = ((start, inserted.find(wanted, max(0, behind - start))) for start, inserted in put_in)
        place = next((start + offset for start, offset in found if offset >= 0), None)
        behind = behind if place is None else place + len(wanted)
        places.append(place)
    return bytes(text), places


def _read(prompt: FilePrompt) -> tuple[bytes, list[int | None]]:
    """The messages as bytes, and where each needle is found in them."""
    text = "\n".join(message["content"] for message in prompt.messages()).encode(errors="replace")
    found = [text.find(needle.text.encode(errors="replace")) for needle in prompt.needles]
    return text, [place if place >= 0 else None for place in found]
