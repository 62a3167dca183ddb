"""What a server says of its models in `/v1/models`, and of itself in `/props`: ids and limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from needlepoint.errors import did_you_mean

_LIMITS = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_context_window",
    "max_sequence_length",
    "max_input_tokens",
)
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One model that a server lists."""

    id: str
    limit_tokens: int | None = None
    trained_tokens: int | None = None
    """What the model was trained for, where the server says only that; it may serve less."""
    owner: str = ""


def read_models(value: Any) -> tuple[Listed, ...] | None:
    """The models of a `/v1/models` answer; None where it is no such answer."""
    entries = value.get("data", value.get("models")) if isinstance(value, dict) else value
    if not isinstance(entries, list):
        return None
    found = []
    for entry in entries:
        name = entry.get("id", entry.get("name")) if isinstance(entry, dict) else None
        if isinstance(name, str) and name:
            found.append(_listed(name, entry))
    return tuple(found)


def _listed(name: str, entry: Mapping[str, Any]) -> Listed:
    meta, top = entry.get("meta"), entry.get("top_provider")
    nested = meta if isinstance(meta, dict) else {}
    limits = [positive(entry.get(key)) for key in _LIMITS]
    limits += [positive(nested.get("n_ctx")), positive(top.get("context_length")) if isinstance(top, dict) else None]
    owner = entry.get("owned_by")
    return Listed(
        id=name,
        limit_tokens=next((limit for limit in limits if limit is not None), None),
        trained_tokens=positive(nested.get("n_ctx_train")),
        owner=owner if isinstance(owner, str) else "",
    )


def props_limit(value: Any) -> int | None:
    """The context of one slot, as llama.cpp's `/props` says it."""
    settings = value.get("default_generation_settings") if isinstance(value, dict) else None
    return positive(settings.get("n_ctx")) if isinstance(settings, dict) else None


def find_model(name: str, models: tuple[Listed, ...]) -> Listed | None:
    """The listed model that `name` means; Gemini lists `models/NAME`, Ollama `NAME:latest`."""
    for spelled in (name, f"models/{name}", f"{name}:latest"):
        for model in models:
            if model.id == spelled:
                return model
    return None


def other_names(name: str, models: tuple[Listed, ...]) -> str:
    """What to say about a name that isn't listed, where something is: the nearest names, or the only one."""
    known = [model.id for model in models]
    if len(known) == 1:
        return f" It serves {known[0]!r}: --model {known[0]}"
    if hint := did_you_mean(name, known):
        return hint
    return f" It serves: {', '.join(known[:_SHOWN])}{', …' if len(known) > _SHOWN else ''}." if known else ""


def positive(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None
