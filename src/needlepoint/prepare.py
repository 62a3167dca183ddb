"""What a run needs before anything is asked: the model, connected, and the prompts that it will get."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from .ask.files import FilePrompt, PromptFile, read_prompts
from .ask.keys import api_key_of, headers_of
from .ask.models import create
from .config import TaskConfig
from .connect import DEFAULT_TOKENIZER, connect, templated
from .errors import TokenizerError, UsageError
from .fields import user_path
from .pipeline import gather
from .plan.grid import apply_limit
from .plan.prompt import Prompt
from .plan.task import Plan
from .reconstruct import rebuild
from .text.cache import Notify, Progress
from .types import Cell, Endpoint, Model, Sampling

SMOLLM2_LIMIT = 8_192


AnyConfig = TypeVar("AnyConfig", bound=TaskConfig)


class Prompts(Protocol):
    """What is to be asked, be it planned, read from a file or made again from a run."""

    @property
    def notes(self) -> Sequence[str]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Prompt | FilePrompt]: ...
    def places(self) -> Iterator[Cell]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is known before anything is asked: whom, what, how."""

    model: Model
    endpoint: Endpoint
    planned: Endpoint
    prompts: Prompts
    sampling: Sampling


@contextlib.asynccontextmanager
async def prepared(
    config: TaskConfig, *, notify: Notify | None = None, progress: Progress | None = None
) -> AsyncIterator[Prepared]:
    """The model, connected, and what to ask it. The model is closed at the end."""
    task = config.task()
    sampling = config.sampling()
    key = key_of(config)
    kwargs = sampling.options.get("chat_template_kwargs")
    model = create(
        config.model_name,
        api_url=config.api_url,
        api_key=key,
        headers=headers_of(config.header),
        completions=config.completions,
        stream=config.stream,
        max_model_len=config.max_model_len,
        backend=config.backend,
        dtype=config.dtype,
        device=config.device,
        logprobs=config.metric == "logprob",
        longest_tokens=None if config.prompts is not None else max(task.grid.lengths) + sampling.max_tokens,
        cache_hints=config.cache_hints,
        template_options=kwargs if isinstance(kwargs, dict) else {},
        local=lambda: connect(
            config.tokenizer_name,
            model=config.model_name,
            chat_template=config.chat_template,
            needs_template=False,
            notify=notify if task.length_mode == "exact" else None,  # parity counts with its own
            progress=progress,
        ),
        notify=notify,
        progress=progress,
    )
    try:
        endpoint = await model.connect()
        config.check_reuse(endpoint, notify)
        if config.metric == "logprob":
            _check_logprob(config, endpoint)
        for note in endpoint.notes:
            if notify is not None:
                notify(note)
        prompts: Prompts
        if config.prompts is not None:
            prompts, planned = prompts_from(
                config.prompts, endpoint, limit=config.limit, notify=notify, progress=progress
            )
        else:
            planned = _planned(config, endpoint, key, notify=notify, progress=progress)
            corpora = gather(config, notify=notify, progress=progress)
            prompts = Plan(task, corpora, planned, verify=config.verify_mode)
        yield Prepared(model=model, endpoint=endpoint, planned=planned, prompts=prompts, sampling=sampling)
    finally:
        await model.close()


def _check_logprob(config: TaskConfig, endpoint: Endpoint) -> None:
    """Raise where margins can't be measured, before anything is asked."""
    if "logprob" not in endpoint.capabilities and config.api_url is None and endpoint.cache == "none":
        why = endpoint.notes[-1] if endpoint.notes else "every prompt is computed whole"
        raise UsageError(
            f"--metric logprob would compute all of a prompt for each token of a value: {why}. --backend transformers "
            "may run this model, too."
        )
    if "logprob" not in endpoint.capabilities:
        raise UsageError(
            f"--metric logprob needs log-probabilities of given texts, which {config.model_name} does not tell. vLLM, "
            "SGLang, llama.cpp's server, and GGUFs and weights on this machine do."
        )
    if config.prompts is not None and not user_path(config.prompts).is_dir():
        raise UsageError("--metric logprob needs to know what else a value could be: a file of prompts doesn't say.")


def key_of(config: TaskConfig) -> str | None:
    return api_key_of(config.api_key.get_secret_value() if config.api_key else None, config.api_url)


def _planned(
    config: TaskConfig, endpoint: Endpoint, key: str | None, *, notify: Notify | None, progress: Progress | None
) -> Endpoint:
    """What prompts are counted with: the model's own tokenizer, unless the parity mode or the user names another."""
    parity = config.resolved_length_mode == "evalscope"
    if not parity and config.tokenizer_name is None and config.chat_template is None:
        if endpoint.render is None:
            raise TokenizerError(
                f"No chat template is known for {endpoint.tokenizer.name!r}, so a prompt's length cannot be counted as "
                "the server does. Give --chat-template NAME|FILE.jinja, or 'none' for a model without chat."
            )
        return endpoint
    named = config.tokenizer_name or (DEFAULT_TOKENIZER if parity else None)
    if named is None:
        return templated(endpoint, config.chat_template, needs_template=not parity)
    planned = connect(
        named,
        chat_template=config.chat_template,
        api_key=key,
        needs_template=not parity,
        notify=notify,
        progress=progress,
    )
    same = planned.tokenizer.fingerprint == endpoint.tokenizer.fingerprint
    return planned if same else replace(planned, proven=False)


def prompts_from(
    source: str,
    endpoint: Endpoint,
    *,
    limit: float | None = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> tuple[Prompts, Endpoint]:
    """The very prompts of a file that `needlepoint prompts -o` wrote, or of another run, and what counted them."""
    path = user_path(source)
    if not path.is_dir():
        return _Limited.of(read_prompts(path, endpoint=endpoint), limit), endpoint
    rebuilt = rebuild(path, notify=notify, progress=progress)
    same = rebuilt.planned.tokenizer.fingerprint == endpoint.tokenizer.fingerprint
    return _Limited.of(rebuilt.prompts, limit), replace(rebuilt.planned, proven=same and endpoint.proven)


class _Limited:
    """The first prompts of each subset of something that was planned elsewhere."""

    def __init__(self, prompts: Plan | PromptFile, limit: float) -> None:
        self._prompts = prompts
        numbers: dict[str, list[int]] = {}
        self._cells = list(prompts.places())
        for number, cell in enumerate(self._cells):
            numbers.setdefault(cell.subset, []).append(number)
        self._kept = {number for subset in numbers.values() for number in apply_limit(subset, limit)}

    @classmethod
    def of(cls, prompts: Plan | PromptFile, limit: float | None) -> Prompts:
        return prompts if limit is None else cls(prompts, limit)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._prompts.notes)

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Prompt | FilePrompt]:
        prompts: Iterator[Prompt | FilePrompt] = iter(self._prompts)
        return (prompt for number, prompt in enumerate(prompts) if number in self._kept)

    def places(self) -> Iterator[Cell]:
        return (cell for number, cell in enumerate(self._cells) if number in self._kept)


async def with_model(config: AnyConfig) -> AnyConfig:
    """`config` with the model named: where the user names a server only, the one model that it serves."""
    if config.model is not None or config.api_url is None:
        return config
    from .ask.models.address import Address
    from .ask.models.channel import Channel
    from .ask.models.introduction import read_directory
    from .ask.models.listed import other_names

    address = Address.of(config.api_url)
    channel = Channel(address, api_key=key_of(config), headers=headers_of(config.header))
    try:
        models = (await read_directory(channel)).models
        served = channel.clean(other_names("", models))
    finally:
        await channel.close()
    if len(models) != 1:
        raise UsageError(f"Which model of {address.shown} is to be asked? Name it with --model.{served}")
    return config.model_copy(update={"model": models[0].id})


def limit_of(config: TaskConfig) -> int | None:
    """The context limit, as far as it is known without asking anyone. A local model that isn't one is an error."""
    if config.api_url is not None:
        return config.max_model_len
    create(config.model_name)
    limit: int | None = None
    if config.model_name == "smollm2":
        limit = SMOLLM2_LIMIT
    elif config.model_name.lower().endswith(".gguf"):
        from .ask.models.gguf import read_gguf_header

        limit = read_gguf_header(user_path(config.model_name)).context_length
    return min((n for n in (limit, config.max_model_len) if n is not None), default=None)


def unasked(
    config: TaskConfig, *, counted: bool = True, notify: Notify | None, progress: Progress | None
) -> tuple[Prompts, Endpoint]:
    """The prompts of a run whose model is not there: counted with what its name tells; not `counted`, with anything."""
    task = config.task()
    parity = task.length_mode == "evalscope"
    planned = connect(
        config.tokenizer_name or (None if counted and not parity else DEFAULT_TOKENIZER),
        model=config.model_name,
        chat_template=config.chat_template,
        needs_template=not parity,
        notify=notify,
        progress=progress,
    )
    if config.prompts is not None:
        return prompts_from(config.prompts, planned, limit=config.limit, notify=notify, progress=progress)
    corpora = gather(config, notify=notify, progress=progress)
    return Plan(task, corpora, planned, verify="none"), planned
