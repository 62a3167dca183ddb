"""GGUF files written by hand: a layer or two of zeros, or of noise, under a vocabulary. They tokenize as real ones and
answer nonsense."""

from __future__ import annotations

import struct
from array import array
from pathlib import Path
from random import Random
from typing import Any

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
INST = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}"
)
PHI = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' + m['content'] + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"
)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _entry(key: str, value: Any) -> bytes:
    head = _string(key)
    match value:
        case bool():
            return head + struct.pack("<I?", 7, value)
        case int():
            return head + struct.pack("<II", 4, value)
        case float():
            return head + struct.pack("<If", 6, value)
        case str():
            return head + struct.pack("<I", 8) + _string(value)
        case [str(), *_]:
            return head + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_string, value))
        case [float(), *_]:
            return head + struct.pack(f"<IIQ{len(value)}f", 9, 6, len(value), *value)
        case [int(), *_]:
            return head + struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    raise TypeError(key)


def write_gguf(
    path: Path, vocabulary: dict[str, Any], *, drop: str = "", noise: int | None = None, window: int = 0, **more: Any
) -> Path:
    """A whole model of one layer, with the given `tokenizer.*` entries. Its weights are zeros, or drawn by `noise`.

    With a `window` it is of a family whose every second layer sees no more than that many tokens, and has two.
    """
    n_vocab, width = len(vocabulary["tokenizer.ggml.tokens"]), 32
    family, layers = ("gemma2", 2) if window else ("llama", 1)
    norms = ("attn", "post_attention", "ffn", "post_ffw") if window else ("attn", "ffn")
    entries: dict[str, Any] = {
        "general.architecture": family,
        "general.name": "toy",
        f"{family}.block_count": layers,
        f"{family}.context_length": 2048,
        f"{family}.embedding_length": width,
        f"{family}.feed_forward_length": width,
        f"{family}.attention.head_count": 2,
        f"{family}.attention.layer_norm_rms_epsilon": 1e-5,
        **({f"{family}.attention.sliding_window": window} if window else {}),
        **{f"{family}.attention.{part}_length": 16 for part in ("key", "value") if window},
        **vocabulary,
        **more,
    }
    entries.pop(drop, None)
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (width, n_vocab), "output_norm.weight": (width,)}
    for layer in range(layers):
        shapes |= {f"blk.{layer}.{name}_norm.weight": (width,) for name in norms}
        shapes |= {f"blk.{layer}.attn_{name}.weight": (width, width) for name in ("q", "k", "v", "output")}
        shapes |= {f"blk.{layer}.ffn_{name}.weight": (width, width) for name in ("gate", "up", "down")}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(entries))
    head += b"".join(_entry(key, value) for key, value in entries.items())
    at = 0
    for name, shape in shapes.items():
        head += _string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, at)
        at += 4 * struct.calcsize(f"{shape[0]}x") * (shape[1] if len(shape) > 1 else 1)
    weights = b"\0" * at if noise is None else _noise(noise, at // 4)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + weights)
    return path


def _noise(seed: int, n: int) -> bytes:
    rng = Random(seed)
    return array("f", (rng.gauss(0, 0.5) for _ in range(n))).tobytes()


def sentencepiece_vocabulary(**more: Any) -> dict[str, Any]:
    """With a dummy space in front, bytes for what has no token, BOS added, and one user-defined token."""
    tokens = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("<|user|>", CONTROL), ("<|end|>", CONTROL)]
    tokens += [("<|assistant|>", CONTROL), ("<tool>", USER_DEFINED)]
    tokens += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    words = [
        "▁",
        *"Helowrd[]INST/",
        "▁H",
        "He",
        "▁He",
        "ll",
        "llo",
        "▁Hello",
        "Hello",
        "▁w",
        "or",
        "ld",
        "▁wor",
        "▁world",
    ]
    tokens += [(word, NORMAL) for word in words]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [token for token, _ in tokens],
        "tokenizer.ggml.scores": [float(-1 / len(token)) for token, _ in tokens],
        "tokenizer.ggml.token_type": [kind for _, kind in tokens],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.chat_template": INST,
        **more,
    }


def byte_level_vocabulary(**more: Any) -> dict[str, Any]:
    letters = [chr(i) for i in range(0x21, 0x7F)] + [chr(i) for i in (*range(0xA1, 0xAD), *range(0xAE, 0x100))]
    letters += [chr(i) for i in range(256, 256 + 256 - len(letters))]
    merges = ["H e", "l l", "ll o", "He llo", "Ġ w", "o r", "Ã ©", "å Į", "Ġ Ġ"]
    tokens = [*letters, *(merge.replace(" ", "") for merge in merges), "<|im_start|>", "<|im_end|>", "<tool>"]
    kinds = [NORMAL] * (len(tokens) - 3) + [CONTROL, CONTROL, USER_DEFINED]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": len(tokens) - 3,
        "tokenizer.ggml.eos_token_id": len(tokens) - 2,
        "tokenizer.chat_template": CHATML,
        **more,
    }
