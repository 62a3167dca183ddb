"""The prompts of a finished run, made again from its recipes: the same bytes, or an error that says what changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from .ask.files import FilePrompt, PromptFile, read_prompts
from .ask.settings import RunSettings
from .ask.store import RunFolder
from .config import TaskConfig
from .connect import connect, templated
from .errors import FetchError, InputError, TokenizerError
from .pipeline import gather
from .plan.draws import Draws
from .plan.prompt import Prompt
from .plan.task import Plan
from .text.cache import Notify, Progress
from .types import Endpoint, Trial


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A run's prompts, and what they were counted with."""

    prompts: Plan | PromptFile
    planned: Endpoint


def rebuild(path: Path, *, notify: Notify | None = None, progress: Progress | None = None) -> Rebuilt:
    """The prompts of the run in `path`. Texts and tokenizers are loaded again and must be the same."""
    with RunFolder.open(path, for_writing=False) as folder:
        settings = folder.settings
    if settings.imported:
        raise InputError(cannot_rebuild(settings))
    identity = dict(settings.identity)
    is_search = identity.pop("search", None) is not None
    config = TaskConfig.of(identity | {name: settings.free[name] for name in ("limit",) if name in settings.free})
    planned = _planned(config, settings, notify, progress)
    if config.prompts is not None:
        return Rebuilt(read_prompts(Path(config.prompts), endpoint=planned), planned)
    corpora = gather(config, notify=notify, progress=progress)
    for corpus in corpora:
        before = settings.corpora.get(corpus.subset)
        if isinstance(before, dict) and before.get("sha256") != corpus.sha256:
            raise InputError(
                f"The text {corpus.name!r} is not the one that this run was made with "
                f"(sha256 {corpus.sha256[:12]}, then {str(before.get('sha256'))[:12]}). Bring the old one back."
            )
    plan = Draws if is_search else Plan
    return Rebuilt(plan(config.task(), corpora, planned, verify="none"), planned)


def cannot_rebuild(settings: RunSettings) -> str:
    """Why the prompts of an imported run are not to be had."""
    tool = settings.imported.get("tool", "another tool")
    return (
        f"This run was imported from {tool}, which asked the questions: what was published has no recipe that "
        "needlepoint could make the prompts from again."
    )


def prompt_of(rebuilt: Rebuilt, trial: Trial) -> Prompt | FilePrompt:
    """The prompt of one trial, proven by its sha256."""
    if trial.prompt_sha256 is None:
        raise InputError("This trial has no fingerprint of its prompt, so none can be proven to be the one asked.")
    for prompt in _candidates(rebuilt.prompts, trial):
        if prompt.sha256 != trial.prompt_sha256:
            raise InputError(
                f"The prompt made again has the sha256 {prompt.sha256[:12]}, and the run asked "
                f"{trial.prompt_sha256[:12]}: something that decides it has changed, needlepoint's version perhaps."
            )
        return prompt
    raise InputError("The settings of this run no longer give this prompt.")


def _candidates(prompts: Plan | PromptFile, trial: Trial) -> Iterator[Prompt | FilePrompt]:
    place = (trial.subset, trial.context_length, trial.depth_percent)
    found: Iterator[Prompt | FilePrompt]
    found = prompts.only(place, trial.replicate) if isinstance(prompts, Plan) else iter(prompts)
    for prompt in found:
        cell = prompt.cell
        if (cell.subset, cell.context_length, cell.depth_percent, prompt.replicate) == (*place, trial.replicate):
            yield replace(prompt, repeat=trial.repeat) if isinstance(prompt, Prompt) else prompt


def _planned(config: TaskConfig, settings: RunSettings, notify: Notify | None, progress: Progress | None) -> Endpoint:
    """The tokenizer and chat format that the run's prompts were counted with."""
    name, fingerprint = settings.tokenizer.get("name"), settings.tokenizer.get("fingerprint")
    if config.backend == "transformers":
        from .ask.models.transformers import read_endpoint

        own = templated(read_endpoint(config.model_name), config.chat_template, needs_template=False)
        if own.tokenizer.fingerprint == fingerprint:
            return own
    tried = [config.tokenizer_name, name, config.api_url, config.model]
    for candidate in dict.fromkeys(one for one in tried if isinstance(one, str)):
        try:
            found = connect(
                candidate,
                model=config.model,
                chat_template=config.chat_template,
                needs_template=False,
                progress=progress,
            )
        except (TokenizerError, FetchError):
            continue
        if found.tokenizer.fingerprint == fingerprint:
            return found
    raise TokenizerError(
        f"The tokenizer {name!r} (fingerprint {fingerprint}) that this run counted with is not to be had any more, "
        "so its prompts cannot be made again. Is the server that it came from running?"
    )
