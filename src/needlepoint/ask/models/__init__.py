"""The models that can be asked, by name. An engine is imported only when it is the one that was asked for.

A new model is one file, one line in `_FACTORIES` and one parameter in the contract test.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import TokenizerError, UsageError, did_you_mean
from ...types import CacheKind, Endpoint, Model
from .caching import cache_of

_REASONS = re.compile(
    r"think|reason|qwq|magistral|deepseek-?r1|(?:^|/)(?:o[134](?:-|$)|gpt-5|gpt-oss|qwen3(?!-coder|.*instruct))", re.I
)
_NO_TEMPERATURE = re.compile(r"(?:^|/)(?:o[134](?:-|$)|gpt-5)", re.I)
REASONING_TOKENS = 8_192
"""Room for the answer of a model that thinks first."""


def reasons(name: str) -> bool:
    """Whether a model of this name is known to think before it answers."""
    return _REASONS.search(name) is not None


def takes_temperature(name: str) -> bool:
    """Whether a model of this name lets its temperature be set."""
    return _NO_TEMPERATURE.search(name) is None


def is_local(name: str) -> bool:
    """Whether a name means a model that runs in this process, not behind a server."""
    return name == "smollm2" or name.lower().endswith(".gguf") or name.partition(":")[0] == "simulated"


BACKENDS = ("transformers", "llamacpp")
DTYPES = ("bf16", "fp16", "fp32")


def is_weights_folder(name: str) -> bool:
    """Whether a name is a folder with a model that transformers can load."""
    return os.path.isfile(os.path.join(os.path.expanduser(name), "config.json"))  # noqa: PTH111, PTH113, PTH118 (says no to names that can't be one)


def cache_by_name(name: str, api_url: str | None, hints: Any = "auto") -> CacheKind:
    """What the model of this name will keep of earlier prompts, as far as that is known before it is there."""
    if api_url:
        return cache_of(None, hints)
    if name.lower().endswith(".gguf") and _has_states(name):
        return "none"
    return "slot" if is_local(name) else "radix"


def _has_states(path: str) -> bool:
    from .gguf import read_gguf_header

    try:
        return read_gguf_header(Path(os.path.expanduser(path))).has_states  # noqa: PTH111 (as above)
    except TokenizerError:  # connecting will say so
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is known of the model that a user asked for; a factory takes what concerns it."""

    name: str
    api_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    completions: bool = False
    stream: bool = True
    max_model_len: int | None = None
    endpoint: Endpoint | None = None
    local: Callable[[], Endpoint] | None = None
    longest_tokens: int | None = None
    threads: int | None = None
    backend: str | None = None
    dtype: str | None = None
    device: str | None = None
    logprobs: bool = False
    template_options: Mapping[str, object] | None = None
    cache_hints: Any = "auto"
    notify: Callable[[str], None] | None = None
    progress: Any = None


def create(name: str, **settings: Any) -> Model:
    """The model that `--model NAME` means: behind `api_url` where there is one, else in this process.

    `settings` are those of `_Wanted`; each model takes the ones that concern it. `longest_tokens` is the longest prompt
    with its answer, `local` gives the endpoint that counts where the model's side does not. Nothing is loaded, fetched
    or sent before the model's `connect`. A name that no model has raises UsageError.
    """
    wanted = _Wanted(name=name, **settings)
    if wanted.backend is not None and wanted.api_url:
        raise UsageError("--backend and --api-url exclude each other: a backend runs the model on this machine.")
    for is_meant, factory in _FACTORIES:
        if is_meant(wanted):
            return factory(wanted)
    hint = did_you_mean(name, ("smollm2", "simulated"))
    raise UsageError(
        f"There is no model {name!r} here.{hint} Give --api-url for the model of a server; without it --model is "
        "'smollm2', the path of a .gguf file, a folder of weights, 'simulated[:KIND,...]', or with --backend "
        "transformers a hub id."
    )


def _backend(wanted: _Wanted) -> str | None:
    """What runs a model of this process: as asked, else by what its name means."""
    if wanted.backend is None:
        return "transformers" if is_weights_folder(wanted.name) else None
    is_gguf = wanted.name == "smollm2" or wanted.name.lower().endswith(".gguf")
    if wanted.backend == "llamacpp" and not is_gguf:
        raise UsageError(f"--backend llamacpp runs .gguf files and 'smollm2', not {wanted.name!r}.")
    return wanted.backend


def _openai(wanted: _Wanted) -> Model:
    from .openai import OpenAIModel

    return OpenAIModel(
        wanted.name,
        api_url=wanted.api_url or "",
        api_key=wanted.api_key,
        headers=wanted.headers,
        completions=wanted.completions,
        stream=wanted.stream,
        max_model_len=wanted.max_model_len,
        endpoint=wanted.endpoint,
        local=wanted.local,
        logprobs=wanted.logprobs,
        hints=wanted.cache_hints,
    )


_VALUE_TOKENS = 128
"""Room for a value that is compared, where answers are shorter."""


def _llamacpp(wanted: _Wanted) -> Model:
    from .llamacpp import LlamaCppModel

    model = LlamaCppModel(
        wanted.name,
        n_ctx=wanted.max_model_len,
        threads=wanted.threads,
        template_options=wanted.template_options,
        notify=wanted.notify,
        progress=wanted.progress,
    )
    room = _VALUE_TOKENS if wanted.logprobs else 0
    model.reserve((wanted.longest_tokens or -room) + room)
    return model


def _transformers(wanted: _Wanted) -> Model:
    from .transformers import TransformersModel

    model = TransformersModel(
        wanted.name,
        dtype=wanted.dtype,
        device=wanted.device,
        n_ctx=wanted.max_model_len,
        template_options=wanted.template_options,
        notify=wanted.notify,
        progress=wanted.progress,
    )
    model.reserve(wanted.longest_tokens or 0)
    return model


def _simulated(wanted: _Wanted) -> Model:
    from .simulated import SimulatedModel

    return SimulatedModel(wanted.name, endpoint=wanted.endpoint, max_model_len=wanted.max_model_len)


_FACTORIES: tuple[tuple[Callable[[_Wanted], bool], Callable[[_Wanted], Model]], ...] = (
    (lambda wanted: bool(wanted.api_url), _openai),
    (lambda wanted: _backend(wanted) == "transformers", _transformers),
    (lambda wanted: wanted.name == "smollm2" or wanted.name.lower().endswith(".gguf"), _llamacpp),
    (lambda wanted: wanted.name.partition(":")[0] == "simulated", _simulated),
)
