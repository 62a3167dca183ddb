"""Trials: the recipe of each question asked, its names, and when it has to be asked again.

A trial has two names. `id` is all that decides prompt *and* sampling, model and `max_tokens` included: equal ids would
give equally distributed replies. `recipe_id` is the question alone: the same prompt in the same place of the grid,
whoever is asked and with however much room to answer. In one run model and options never change, so there a recipe's
latest reply is the one that counts: that is how a trial that was `out_of_room` is asked again with a larger
`max_tokens` (a new `id`) and takes its own earlier place, while valid replies under the old `max_tokens` stay.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from ..plan.prompt import Prompt
from ..types import Cell, Endpoint, Needle, Outcome, Placement, Reply, Sampling, Trial
from .plain import plain, scrub

_ID_HEX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a prompt was made from and measured with, by whoever made it; None where that isn't told."""

    corpus: str | None
    corpus_sha256: str | None
    tokenizer: str | None
    tokenizer_fingerprint: str | None
    achieved_length: int | None
    achieved_depth_percent: float | None
    boundary: str | None
    length_proven: bool


@runtime_checkable
class Recorded(Protocol):
    """A question that was made elsewhere, and brings its origin along: a line of a prompts file, say."""

    @property
    def cell(self) -> Cell: ...
    @property
    def layout(self) -> str: ...
    @property
    def length_mode(self) -> str: ...
    @property
    def replicate(self) -> int: ...
    @property
    def repeat(self) -> int: ...
    @property
    def needles(self) -> tuple[Needle, ...]: ...
    @property
    def placements(self) -> tuple[Placement, ...]: ...
    @property
    def question(self) -> str: ...
    @property
    def answers(self) -> tuple[str, ...]: ...
    @property
    def n_tokens(self) -> int | None: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def sha256(self) -> str: ...
    @property
    def origin(self) -> Origin: ...


def trial_of(
    prompt: Prompt | Recorded,
    *,
    dataset: str,
    endpoint: Endpoint,
    model: str,
    sampling: Sampling,
    prompt_sha256: str | None = None,
) -> Trial:
    """The recipe of one question to `model`. `prompt_sha256` saves making the text once more where it is known.

    A prompt's own `max_tokens` goes before that of `sampling`.
    """
    origin = _origin(prompt, endpoint) if isinstance(prompt, Prompt) else prompt.origin
    trial = Trial(
        id="",
        dataset=dataset,
        subset=prompt.cell.subset,
        layout=prompt.layout,
        length_mode=prompt.length_mode,
        replicate=prompt.replicate,
        repeat=prompt.repeat,
        context_length=prompt.cell.context_length,
        depth_percent=float(prompt.cell.depth_percent),
        achieved_length=origin.achieved_length,
        achieved_depth_percent=origin.achieved_depth_percent,
        boundary=origin.boundary,
        needles=prompt.needles,
        placements=prompt.placements,
        question=prompt.question,
        answers=prompt.answers,
        corpus=origin.corpus,
        corpus_sha256=origin.corpus_sha256,
        tokenizer=origin.tokenizer,
        tokenizer_fingerprint=origin.tokenizer_fingerprint,
        prompt_sha256=prompt.sha256 if prompt_sha256 is None else prompt_sha256,
        sent_tokens=prompt.n_tokens,
        length_proven=origin.length_proven,
    )
    if prompt.max_tokens is not None:
        sampling = replace(sampling, max_tokens=prompt.max_tokens)
    return replace(trial, id=trial_id(trial, model=model, sampling=sampling))


def trial_id(trial: Trial, *, model: str, sampling: Sampling | None) -> str:
    """16 hex digits of all that decides the prompt and the sampling; the same in every process, on every machine.

    Secrets in the options (a header of a gateway, say) don't enter it: a new key makes no new trial. `sampling` is None
    where another tool asked and didn't tell.
    """
    if sampling is None:
        return _hash({**_recipe(trial), "model": model})
    options = scrub(plain(sampling.options, "options"))
    return _hash({**_recipe(trial), "model": model, "max_tokens": sampling.max_tokens, "options": options})


def recipe_id(trial: Trial) -> str:
    """16 hex digits of the question alone: no model, no sampling. Pairs the trials of two models, and of two limits."""
    return _hash(_recipe(trial))


def _recipe(trial: Trial) -> dict[str, object]:
    return {
        "dataset": trial.dataset,
        "subset": trial.subset,
        "context_length": trial.context_length,
        "depth_percent": plain(trial.depth_percent, "depth_percent"),
        "layout": trial.layout,
        "length_mode": trial.length_mode,
        "replicate": trial.replicate,
        "repeat": trial.repeat,
        "prompt_sha256": trial.prompt_sha256,
    }


def _hash(value: Mapping[str, object]) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:_ID_HEX]


def _origin(prompt: Prompt, endpoint: Endpoint) -> Origin:
    corpus = prompt.corpus
    placed = bool(prompt.placements)
    return Origin(
        corpus=None if corpus is None else corpus.name,
        corpus_sha256=None if corpus is None else corpus.sha256,
        tokenizer=endpoint.tokenizer.name,
        tokenizer_fingerprint=endpoint.tokenizer.fingerprint,
        achieved_length=prompt.n_tokens,
        achieved_depth_percent=prompt.achieved_depth_percent if placed else None,
        boundary=prompt.boundary if placed else None,
        length_proven=endpoint.proven,
    )


# --- asking again -----------------------------------------------------------------------------------------------------

_WORTH_A_LARGER_LIMIT = frozenset({"overflow", "truncated", "out_of_room"})


def is_finished(
    reply: Reply, *, outcome: Outcome | None, limit_changed: bool = False, max_tokens_changed: bool = False
) -> bool:
    """Whether a trial with this reply need not be asked again when a run is resumed.

    `failed` is asked again; `overflow`, `truncated` and `out_of_room` only where the model's limit or `max_tokens`
    changed, since nothing else could help them; all else never. `unjudged` is judged again, not asked again. Without
    an outcome (the reply isn't scored yet), what the reply itself says decides.
    """
    state = outcome or unanswered(reply)
    if state == "failed":
        return False
    if state in _WORTH_A_LARGER_LIMIT:
        return not (limit_changed or max_tokens_changed)
    return True


def unanswered(reply: Reply) -> Outcome | None:
    """`overflow`, `failed` or `out_of_room` where the reply alone shows it; None where it is for a scorer to say."""
    if reply.error is not None:
        return "overflow" if reply.error.kind == "overflow" else "failed"
    thought = bool(reply.reasoning and reply.reasoning.strip()) or bool(reply.usage.reasoning)
    return "out_of_room" if reply.finish == "length" and thought and not reply.text.strip() else None
