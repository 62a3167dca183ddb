"""Tiny models with random weights, and prompts that share beginnings. PyTorch is needed where this is imported."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("NEEDLEPOINT_TORCH") == "required":
    import torch
    import transformers
else:
    why = "needs PyTorch and transformers: pip install 'needlepoint[gpu]'"
    torch = pytest.importorskip("torch", reason=why)
    transformers = pytest.importorskip("transformers", reason=why)

from needlepoint.ask.models.neural import kernels, packed, proof, trie, trunk, weights
from needlepoint.ask.models.neural.choice import Choice
from needlepoint.ask.models.neural.engine import Answer, Engine, Request, StoppedError
from needlepoint.ask.models.neural.from_gguf import _NAMES as NAMES
from needlepoint.ask.models.neural.from_gguf import GgufModel

# What needs PyTorch to be imported is taken from here, so that without it a whole module of tests is skipped.
__all__ = [
    "NAMES",
    "Answer",
    "Choice",
    "Engine",
    "GgufModel",
    "Request",
    "StoppedError",
    "kernels",
    "packed",
    "proof",
    "torch",
    "transformers",
    "trie",
    "trunk",
    "weights",
]

torch.set_num_threads(1)  # models this small only lose by waiting for each other's threads
VOCABULARY = 320
WINDOW = 16
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_hidden_layers": 4,
    "max_position_embeddings": 8192,
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": None,
}
_MIXED = ["sliding_attention", "full_attention"] * 2


def config_of(kind: str) -> Any:
    """One of `KINDS`."""
    if kind == "llama":
        return transformers.LlamaConfig(**_SIZES)
    if kind == "gemma3":
        layers = ["sliding_attention"] * 3 + ["full_attention"]
        return transformers.Gemma3TextConfig(**_SIZES, sliding_window=WINDOW, layer_types=layers)
    if kind == "gemma2":  # soft caps
        return transformers.Gemma2Config(**_SIZES, sliding_window=WINDOW, layer_types=_MIXED)
    if kind == "gpt-oss":  # sinks
        return transformers.GptOssConfig(
            **_SIZES, sliding_window=WINDOW, layer_types=_MIXED, num_local_experts=4, num_experts_per_tok=2
        )
    assert kind == "qwen3-next"  # linear attention and experts
    return transformers.Qwen3NextConfig(
        **_SIZES,
        layer_types=["linear_attention"] * 3 + ["full_attention"],
        linear_num_value_heads=4,
        linear_num_key_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
    )


KINDS = ("llama", "gemma3", "qwen3-next", "gemma2", "gpt-oss")


def model_of(kind: str, seed: int = 0) -> Any:
    """Random weights, large enough that every token and its place count."""
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config_of(kind), dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.08 if kind == "qwen3-next" else 0.12)
    return model


def engine_of(model: Any, **settings: Any) -> Engine:
    shape = weights.shape_of(model.config)
    weights.ready(model)
    chosen = kernels.choose(
        torch.device("cpu"), model.dtype, heads=shape.heads, kv_heads=shape.kv_heads, head_dim=shape.head_dim
    )
    return Engine(model, shape.layers, chosen, **{"chunk": 64, "keep_logits": True, **settings})


def logits_of(model: Any, prompt: Sequence[int]) -> Any:
    """After a whole prompt, by the model's own forward pass without any cache."""
    implementation = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            return model(input_ids=torch.tensor([list(prompt)]), logits_to_keep=1).logits[0, -1]
    finally:
        model.set_attn_implementation(implementation)


def family(seed: int = 1) -> list[list[int]]:
    """Prompts as grids make them: needles at several depths, several lengths, late questions, and oddities."""
    rng = random.Random(seed)
    base = [rng.randrange(1, VOCABULARY) for _ in range(420)]
    classic = [
        [*base[:depth], 7, 8, 9, depth % 97, *base[depth:length], 1, 2, 3]
        for depth in (60, 150, 330)
        for length in (140, 300, 420)
        if depth < length
    ]
    woven = [
        base[:length] + [5, 6] + [rng.randrange(1, VOCABULARY) for _ in range(rng.randrange(1, 5))] + [4]
        for length in (140, 300, 420)
        for _ in range(4)
    ]
    same, beginning, short, other = classic[2], base[:200], [*base[:10], 1], [9, 9, 9]
    return [*classic, *woven, same, beginning, short, other]


def folder_of(kind: str, path: Path, *, template: bool = True) -> Path:
    """A model as hubs have them: configuration, weights, tokenizer.json, chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    model_of(kind).save_pretrained(path)
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|end|>", "<|user|>", "<|bot|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    engine.train_from_iterator(["the miller carried the kettle", "a kettle, a miller, a bridge"] * 20, trainer)
    engine.save(str(path / "tokenizer.json"))
    if template:
        text = (
            "{% for m in messages %}<|user|>{{ m['role'] }}: {{ m['content'] }}<|end|>{% endfor %}"
            "{% if add_generation_prompt %}<|bot|>{% endif %}"
        )
        (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": text}))
    return path
