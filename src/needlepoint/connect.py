"""From a tokenizer's or model's name to an `Endpoint`: which tokens, which chat template, how sure.

The only place that knows all kinds: packaged families, files, hubs, GGUF files and servers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from .ask.models import is_weights_folder
from .errors import FetchError, TokenizerError, did_you_mean
from .fields import user_path
from .text import chat, families, tokenizers
from .text.cache import Notify, Progress
from .text.formats import BUILTIN
from .text.userfiles import exists
from .types import Endpoint, Tokenizer

DEFAULT_TOKENIZER = "Qwen/Qwen3-0.6B"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_BOS_SPELLINGS = ("<|begin_of_text|>", "<bos>", "<｜begin▁of▁sentence｜>", "<s>", "<|endoftext|>")
_HUB_FILES = ("tokenizer_config.json", "chat_template.jinja")


def connect(
    name: str | None,
    *,
    model: str | None = None,
    chat_template: str | None = None,
    api_key: str | None = None,
    needs_template: bool = True,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> Endpoint:
    """The endpoint of tokenizer `name`, or where none is named, of `model`, or else of the default.

    `chat_template` is a built-in format's name, a Jinja file, or `none`. With `needs_template`, a tokenizer whose chat
    template is unknown is an error, since lengths could not be counted as a server counts them.
    """
    if name is None and model is not None and is_weights_folder(model):
        name = model  # whatever it is called, its own files count
    if name is None and model is not None and families.find(model) is None and not _is_gguf(model):
        if notify is not None:
            notify(
                f"No tokenizer is known for the model {model!r}: lengths are counted with {DEFAULT_TOKENIZER} and are "
                "unproven. Name one with --tokenizer."
            )
        model = None
    chosen = name or model or DEFAULT_TOKENIZER
    if chosen.startswith(("http://", "https://")):
        endpoint = _served(chosen, model=model, api_key=api_key)
    elif _is_gguf(chosen):
        endpoint = _gguf(chosen, notify=notify, progress=progress)
    else:
        endpoint = _local(chosen, progress=progress)
    return templated(endpoint, chat_template, needs_template=needs_template)


def _is_gguf(name: str) -> bool:
    return name == "smollm2" or name.lower().endswith(".gguf")


def _local(name: str, *, progress: Progress | None) -> Endpoint:
    path = user_path(name)
    looks_like_path = name.startswith((".", "/", "~")) or name.endswith(".json")
    if looks_like_path or (path.exists() and families.find(name) is None):
        return _from_folder(tokenizers.from_file(path), path if path.is_dir() else path.parent)
    family = families.find(name)
    if family is not None:
        return _packaged(family)
    if _HUB_ID.fullmatch(name):
        return _from_hub(name, progress=progress)
    raise TokenizerError(
        f"Unknown tokenizer {name!r}.{families.suggest(name)} It can be a known name, a Hugging Face or ModelScope id, "
        "a tokenizer.json, a GGUF file or a server's URL."
    )


def _packaged(family: families.Family) -> Endpoint:
    format_ = BUILTIN[family.chat] if family.chat is not None else None
    reason = family.reason if not family.exact else format_.reason if format_ is not None else None
    return Endpoint(
        tokenizer=tokenizers.packaged(family),
        render=None if format_ is None else format_.render,
        template_name=family.chat,
        needs_system=format_ is not None and format_.default_system,
        notes=() if reason is None else (f"Lengths for {family.title} are unproven: {reason}.",),
    )


def _from_folder(tokenizer: Tokenizer, folder: Path) -> Endpoint:
    found = chat.find_template(folder)
    if found is None:
        return Endpoint(tokenizer=tokenizer, render=None)
    endpoint = _jinja(
        tokenizer, found.template, name=tokenizer.name, bos_token=found.bos_token, eos_token=found.eos_token
    )
    return replace(endpoint, template_name=found.source)


def _from_hub(name: str, *, progress: Progress | None) -> Endpoint:
    from .text.hub import fetch_hub_file

    try:
        file = fetch_hub_file(
            name, "tokenizer.json", kind="model", hubs=("huggingface", "modelscope"), progress=progress
        )
    except FetchError as error:
        hint = families.suggest(name)
        raise FetchError(f"{error} No packaged tokenizer is called {name!r} either.{hint}") from None
    for other in _HUB_FILES:
        try:
            fetch_hub_file(name, other, kind="model", hubs=("huggingface", "modelscope"), progress=progress)
        except FetchError:
            continue  # many models have only one of the two
    return _from_folder(tokenizers.from_file(file.path, name=name), file.path.parent)


def _gguf(name: str, *, notify: Notify | None, progress: Progress | None) -> Endpoint:
    from .ask.models.gguf_endpoint import connect_gguf
    from .text.assets import fetch_asset

    if name == "smollm2":
        return connect_gguf(fetch_asset(name, progress=progress, notify=notify), name=name)
    return connect_gguf(user_path(name))


def _served(url: str, *, model: str | None, api_key: str | None) -> Endpoint:
    from .ask.models.served import connect_server

    endpoint = connect_server(url, model=model, api_key=api_key)
    if endpoint is None:
        raise TokenizerError(
            "The server has no /tokenize endpoint that says which text a token is. Name a tokenizer instead: "
            f"--tokenizer {DEFAULT_TOKENIZER}, say."
        )
    return endpoint


def templated(endpoint: Endpoint, wanted: str | None, *, needs_template: bool) -> Endpoint:
    """`endpoint` with the chat template that the user asked for, checked."""
    if wanted is None:
        if endpoint.render is None and needs_template:
            raise TokenizerError(
                f"No chat template is known for the tokenizer {endpoint.tokenizer.name!r}, so a prompt's length cannot "
                "be counted as a server does. Give --chat-template NAME|FILE.jinja, or 'none' for a model without chat."
            )
        return endpoint
    if wanted == "none":
        found = Endpoint(tokenizer=endpoint.tokenizer, render=None)
    elif (format_ := BUILTIN.get(wanted)) is not None:
        found = Endpoint(
            tokenizer=endpoint.tokenizer,
            render=format_.render,
            needs_system=format_.default_system,
        )
    else:
        template, bos = _template_file(wanted), _bos_of(endpoint.tokenizer)
        found = _jinja(endpoint.tokenizer, template, name=Path(wanted).name, bos_token=bos)
    return replace(
        found, template_name=wanted, limit_tokens=endpoint.limit_tokens, notes=(*endpoint.notes, *found.notes)
    )


def _bos_of(tokenizer: Tokenizer) -> str | None:
    """How a tokenizer that begins texts with a BOS spells it: what `bos_token` stands for in a template."""
    return next((token for token in _BOS_SPELLINGS if tokenizer.adds_bos and token in tokenizer.special_tokens), None)


def _template_file(wanted: str) -> str:
    path = user_path(wanted)
    if not exists(wanted):
        known = ", ".join(BUILTIN)
        raise TokenizerError(
            f"Unknown chat template {wanted!r}.{did_you_mean(wanted, BUILTIN) or f' Known: {known}.'} It can also be "
            "'none', or a Jinja file."
        )
    try:
        if path.is_char_device():  # which may have no end
            raise TokenizerError(f"The chat template {path} is a device, not a file.")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TokenizerError(f"Cannot read the chat template {path}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise TokenizerError(f"The chat template {path} is not UTF-8 text.") from None


def _jinja(
    tokenizer: Tokenizer, template: str, *, name: str, bos_token: str | None = None, eos_token: str | None = None
) -> Endpoint:
    render = chat.from_jinja(template, bos_token=bos_token, eos_token=eos_token, name=name)
    notes = tuple(f"Chat template of {name}: {note}." for note in render.notes)
    return Endpoint(tokenizer=tokenizer, render=render, notes=notes)
