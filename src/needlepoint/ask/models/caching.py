"""What serving engines keep of earlier prompts, and how a request speaks of it. Values in, values out."""

from __future__ import annotations

import secrets

from needlepoint.types import CacheKind

_LLAMA = ("llama.cpp", "llamacpp")
_SLOTS = (*_LLAMA, "library")
"""Engines whose slots keep a prompt each; `library` is how Ollama signs its models."""
_SALTED = ("vllm",)


def cache_of(engine: object) -> CacheKind:
    """What a server keeps. Of one that doesn't say who it is: prefixes, as nearly all hosted models do."""
    return "slot" if engine in _SLOTS else "radix"


def capabilities_of(engine: object) -> frozenset[str]:
    """`uncached` where a request can say that it shares nothing."""
    return frozenset({"uncached"}) if whole_options(engine) else frozenset()


def whole_options(engine: object) -> dict[str, object]:
    """What a request says so that nothing of an earlier prompt is used for it; nothing where the engine has no word."""
    if engine in _SALTED:
        return {"cache_salt": secrets.token_urlsafe(12)}
    return {"cache_prompt": False} if engine in _LLAMA else {}
