"""What serving engines keep of earlier prompts, and how a request speaks of it. Values in, values out."""

from __future__ import annotations

import re
import secrets
from typing import Any, Literal

from needlepoint.plan.prompt import Prompt
from needlepoint.types import Askable, CacheKind

Hints = Literal["auto", "key", "control", "none"]
"""What requests say for a cache's sake. `key`: OpenAI's `prompt_cache_key`, which sends prompts of one text to one
place; `auto` says it to OpenAI alone. `control`: Anthropic's `cache_control`, at the needle."""
_OPENAI = "https://api.openai.com"

LLAMA_NAMES = ("llama.cpp", "llamacpp")
_SLOTS = (*LLAMA_NAMES, "library")
"""Engines whose slots keep a prompt each; `library` is how Ollama signs its models."""
_SALTED = ("vllm",)


def cache_of(engine: object, hints: Hints = "auto") -> CacheKind:
    """What a server keeps. Of one that doesn't say who it is: prefixes, as nearly all hosted models do."""
    if hints == "control":
        return "points"
    return "slot" if engine in _SLOTS else "radix"


def capabilities_of(engine: object, hints: Hints = "auto", root: str = "") -> frozenset[str]:
    """`uncached` where a request can say that it shares nothing; `prefixes` where it is sure that prefixes are kept."""
    uncached = {"uncached"} if whole_options(engine) else set()
    kept = engine in (*_SALTED, "sglang") or hints == "key" or root.startswith(_OPENAI)
    return frozenset(uncached | ({"prefixes"} if kept else set()))


def vllm_cache(metrics: bytes) -> dict[str, object]:
    """What vLLM's `/metrics` say: how many tokens its cache holds, in which blocks, and whether prefixes are kept."""
    line = next((line for line in metrics.splitlines() if line.startswith(b"vllm:cache_config_info{")), b"")
    found = dict(re.findall(rb'(\w+)="(\w+)"', line))
    facts: dict[str, object] = {}
    sizes = [found.get(name, b"") for name in (b"block_size", b"num_gpu_blocks")]
    if all(size.isdigit() and int(size) for size in sizes):
        block, blocks = map(int, sizes)
        facts = {"cache_tokens": block * blocks, "cache_block": block}
    if (kept := found.get(b"enable_prefix_caching")) is not None:
        facts["cache_prefixes"] = kept == b"True"
    return facts


def sglang_cache(info: Any) -> dict[str, object]:
    """The same of SGLang's `/get_server_info`."""
    held = info.get("max_total_num_tokens") if isinstance(info, dict) else None
    return {"cache_tokens": held} if type(held) is int and held > 0 else {}


def whole_options(engine: object) -> dict[str, object]:
    """What a request says so that nothing of an earlier prompt is used for it; nothing where the engine has no word."""
    if engine in _SALTED:
        return {"cache_salt": secrets.token_urlsafe(12)}
    return {"cache_prompt": False} if engine in LLAMA_NAMES else {}


def key_options(prompt: Askable, hints: Hints, root: str) -> dict[str, object]:
    """`prompt_cache_key` for prompts that share a text, where it is to be sent."""
    if not isinstance(prompt, Prompt) or not (hints == "key" or (hints == "auto" and root.startswith(_OPENAI))):
        return {}
    return {"prompt_cache_key": f"needlepoint-{prompt.haystack.fingerprint}"}


def marked(prompt: Askable) -> list[Any]:
    """The messages, with a breakpoint where the prompt leaves what it shares with others: before its needle.

    Never behind it: what is written to a cache costs more than plain input, and a tail is never read again.
    """
    messages = prompt.messages()
    if not isinstance(prompt, Prompt):
        return messages
    content = messages[-1]["content"]
    at = prompt.shared_characters
    parts: list[dict[str, object]] = [
        {"type": "text", "text": content[:at], "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": content[at:]},
    ]
    return [*(dict(message) for message in messages[:-1]), {"role": messages[-1]["role"], "content": parts}]
