"""Getting to know an OpenAI-compatible server: which models, which limit, whose tokenizer, which version.

Asks only small questions. Nothing but an unreachable server, a refused key and a model that the server itself denies is
an error: what can't be found out is a note.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from needlepoint.ask.models.caching import sglang_cache, vllm_cache
from needlepoint.ask.models.channel import BrokenError, Channel, shown_target
from needlepoint.ask.models.listed import Listed, find_model, other_names, positive, props_limit, read_models
from needlepoint.ask.models.refusals import Refusal, shown_words
from needlepoint.ask.models.remote import prove_render
from needlepoint.ask.models.served import connect_server
from needlepoint.errors import TokenizerError, UsageError
from needlepoint.types import Endpoint

_SHOWN_MODELS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """What a server told. `base` is where its API is, where that is certain."""

    endpoint: Endpoint
    base: str | None
    models: tuple[Listed, ...]
    opens_thought: bool
    """Whether the chat template's end begins a thought."""
    own_tokenizer: Any
    """The server's tokenizer, whose connection somebody has to close; None where another counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """What the list of models says. `models` is empty where the server has no such list."""

    base: str | None
    models: tuple[Listed, ...]
    server: str
    status: int


async def read_directory(channel: Channel) -> Directory:
    """Ask for the list of models where the API may be. Raises where nobody is there, or the key is refused."""
    address = channel.address
    first: Directory | None = None
    for base in address.bases:
        try:
            status, headers, body = await channel.get(address.url(base, "/models"))
        except BrokenError as error:
            raise UsageError(
                f"{address.shown} cannot be asked: {error.words}. Is the server running, and the address right?"
            ) from None
        refusal = Refusal.of_body(status, body)
        if status == 401:
            words = shown_words(refusal.words, channel.clean)
            raise UsageError(f"{address.shown} refused the request (HTTP 401: {words}). Check the API key (--api-key).")
        if 300 <= status < 400:
            to = channel.clean(shown_target(headers.get("location", "")))
            raise UsageError(f"{address.shown} redirects to {to or 'nowhere'}. Give that address as --api-url.")
        found = read_models(_json(body)) if status == 200 else None
        server = shown_words(headers.get("server", ""), channel.clean)
        here = Directory(base=base if found is not None else None, models=found or (), server=server, status=status)
        if found is not None:
            return here
        first = first or here
    assert first is not None
    return first


async def introduce(
    channel: Channel,
    name: str,
    *,
    api_url: str,
    api_key: str | None,
    endpoint: Endpoint | None,
    local: Callable[[], Endpoint] | None,
    max_model_len: int | None,
) -> Introduction:
    directory = await read_directory(channel)
    models, notes = directory.models, []
    model = find_model(name, models)
    if models and model is None:
        names = channel.clean(other_names(name, models))
        notes.append(f"{channel.address.shown} does not list the model {name!r}.{names}")
    own: Endpoint | None = None
    if endpoint is None:
        try:
            own = await asyncio.to_thread(connect_server, api_url, model=name, api_key=api_key)
        except TokenizerError as error:
            if _denies_model(str(error)):
                raise UsageError(f"{error}{other_names(name, models)}") from None
            if local is None:
                raise
            notes.append(f"The server's own tokenizer can't be used: {error}")
        chosen = own or (await asyncio.to_thread(local) if local is not None else None)
        if chosen is None:
            raise TokenizerError(f"{channel.address.shown} has no tokenizer of its own. Name one with --tokenizer.")
    else:
        chosen = endpoint
    try:
        limit, said, facts = await _limit_and_facts(channel, directory, model, own, max_model_len)
        opens = await asyncio.to_thread(_opens_thought, chosen)
    except BaseException:
        _close(own)
        raise
    return Introduction(
        endpoint=replace(
            chosen,
            limit_tokens=limit if limit is not None else chosen.limit_tokens,
            notes=(*chosen.notes, *notes, *said),
            facts={**chosen.facts, **facts},
        ),
        base=directory.base,
        models=models,
        opens_thought=opens,
        own_tokenizer=None if own is None else own.tokenizer,
    )


async def _limit_and_facts(
    channel: Channel, directory: Directory, model: Listed | None, own: Endpoint | None, max_model_len: int | None
) -> tuple[int | None, list[str], dict[str, object]]:
    """(limit, notes, facts). The user's word comes first, then the serving engine's, then the list's."""
    models = directory.models
    only = model or (models[0] if len(models) == 1 else None)
    owner = only.owner.casefold() if only is not None else ""
    kind = own.tokenizer.name.partition(":")[0] if own is not None else owner
    limit = own.limit_tokens if own is not None else None
    limit = limit or (only.limit_tokens if only is not None else None)
    source = "" if limit is None else "server"
    notes: list[str] = []
    facts: dict[str, object] = {"api_url": channel.address.shown}
    version: object = None
    if kind in ("llama.cpp", "llamacpp") or (not models and limit is None):
        props = await _root_json(channel, "/props")
        limit = props_limit(props) or limit
        source = "server" if limit is not None else ""
        version = props.get("build_info") if isinstance(props, dict) else None
    elif kind == "vllm":
        answer = await _root_json(channel, "/version")
        version = answer.get("version") if isinstance(answer, dict) else None
        facts |= vllm_cache(await _root(channel, "/metrics"))
    elif kind == "sglang":
        facts |= sglang_cache(await _root_json(channel, "/get_server_info"))
    elif owner == "library":  # as Ollama lists its models
        answer = await _root_json(channel, "/api/version")
        version = answer.get("version") if isinstance(answer, dict) else None
    if limit is None and only is not None and only.trained_tokens is not None:
        limit, source = only.trained_tokens, "training"
        notes.append(f"The server says only what the model was trained for ({limit:,} tokens); it may serve less.")
    if max_model_len is not None:
        if limit is not None and max_model_len > limit:
            notes.append(f"--max-model-len {max_model_len:,} is more than the server says it takes ({limit:,}).")
        limit, source = positive(max_model_len) or limit, "user"
    known = {
        "server": directory.server,
        "engine": shown_words(kind, channel.clean),
        "version": shown_words(version, channel.clean) if isinstance(version, str) else "",
        "limit_from": source,
        "models": [shown_words(one.id, channel.clean) for one in models[:_SHOWN_MODELS]],
    }
    return limit, notes, facts | {key: value for key, value in known.items() if value}


async def _root(channel: Channel, path: str) -> bytes:
    """What a server's own endpoint beside the API says; nothing where it has none."""
    try:
        status, _, body = await channel.get(channel.address.url(channel.address.root, path))
    except BrokenError:
        return b""
    return body if status == 200 else b""


async def _root_json(channel: Channel, path: str) -> Any:
    return _json(await _root(channel, path))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _denies_model(words: str) -> bool:
    return bool(re.search(r"HTTP 4\d\d.*model.*(does not exist|not found)", words, re.IGNORECASE | re.DOTALL))


def _opens_thought(endpoint: Endpoint) -> bool:
    if endpoint.render is None:
        return False
    chat, _ = prove_render(endpoint.render)
    return chat is not None and bool(re.search(r"<think>\s*$", endpoint.render(chat)))


def _close(endpoint: Endpoint | None) -> None:
    if (close := getattr(endpoint.tokenizer if endpoint else None, "close", None)) is not None:
        close()
