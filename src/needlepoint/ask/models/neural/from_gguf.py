"""A GGUF as a model of transformers: its configuration, its weights unpacked, its tokenizer, its chat template.

The same weights on two engines: what llama.cpp answers can be held against a forward pass in fp32. For dense models of
the families below; others are refused.
"""

from __future__ import annotations

import contextlib
import json
import mmap
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from needlepoint.ask.models.gguf import GgufTensor, read_gguf
from needlepoint.ask.models.neural.packed import KINDS, unpacked
from needlepoint.errors import TokenizerError, UsageError

FAMILIES = ("llama", "qwen2", "qwen3")
_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL, _USER_DEFINED = 3, 4
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)


class GgufModel:
    """A GGUF file, read. Weights stay where they are until `load`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts, self.tensors = read_gguf(path)
        self.family = str(self.facts.get("general.architecture"))
        if self.family not in FAMILIES:
            raise UsageError(
                f"{path.name} is of the family {self.family!r}; the transformers engine unpacks {', '.join(FAMILIES)}. "
                "Leave out --backend: llama.cpp runs it."
            )
        if unknown := sorted({tensor.kind for tensor in self.tensors} - set(KINDS)):
            known = ", ".join(name for name, *_ in KINDS.values())
            raise UsageError(f"{path.name} packs weights in a way (number {unknown[0]}) that is none of {known}.")
        if self._fact("rope.scaling.type") not in (None, "none") or any(
            t.name == "rope_freqs.weight" for t in self.tensors
        ):
            raise UsageError(f"{path.name} scales its positions, which the transformers engine doesn't unpack.")

    def _fact(self, name: str, default: Any = None) -> Any:
        return self.facts.get(f"{self.family}.{name}", default)

    def config(self) -> Any:
        """The configuration that transformers would have of it."""
        from transformers import AutoConfig

        heads, hidden = int(self._fact("attention.head_count")), int(self._fact("embedding_length"))
        return AutoConfig.for_model(
            self.family,
            vocab_size=len(self.facts["tokenizer.ggml.tokens"]),
            hidden_size=hidden,
            intermediate_size=int(self._fact("feed_forward_length")),
            num_hidden_layers=int(self._fact("block_count")),
            num_attention_heads=heads,
            num_key_value_heads=int(self._fact("attention.head_count_kv", heads)),
            head_dim=int(self._fact("attention.key_length", hidden // heads)),
            rms_norm_eps=float(self._fact("attention.layer_norm_rms_epsilon", 1e-6)),
            rope_parameters={"rope_type": "default", "rope_theta": float(self._fact("rope.freq_base", 10_000.0))},
            max_position_embeddings=int(self._fact("context_length", 2_048)),
            tie_word_embeddings=not any(tensor.name == "output.weight" for tensor in self.tensors),
            bos_token_id=None,
            eos_token_id=self.facts.get("tokenizer.ggml.eos_token_id"),
            pad_token_id=None,
            dtype="float32",
        )

    def load(self, config: Any, dtype: torch.dtype) -> Any:
        """The model with these weights, on the CPU."""
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
        wanted = model.state_dict()
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(self.path.open("rb"))
            mapped = stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            data = stack.enter_context(memoryview(mapped))
            for tensor in self.tensors:
                name = _name(tensor.name)
                if name not in wanted:
                    raise UsageError(f"{self.path.name} has a tensor {tensor.name!r} that {self.family} has not.")
                wanted.pop(name).copy_(self._weights(data, tensor))
        if left := [name for name in wanted if not (name == "lm_head.weight" and config.tie_word_embeddings)]:
            raise UsageError(f"{self.path.name} lacks the weights of {left[0]!r}.")
        return model

    def _weights(self, data: memoryview, tensor: GgufTensor) -> Tensor:
        found = unpacked(data, tensor.begin, tensor.shape, tensor.kind)
        part = tensor.name.split(".")[-2]
        if self.family == "llama" and part in ("attn_q", "attn_k"):
            name = "attention.head_count" if part == "attn_q" else "attention.head_count_kv"
            heads = int(self._fact(name) or self._fact("attention.head_count"))
            # llama.cpp turns pairs of neighbours, transformers pairs half a head apart
            found = found.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2).reshape(tensor.shape)
        return found

    def tokenizer_json(self) -> bytes:
        """Its vocabulary as a tokenizer.json."""
        tokens, types = self.facts["tokenizer.ggml.tokens"], self.facts.get("tokenizer.ggml.token_type") or []
        kind, how = self.facts.get("tokenizer.ggml.model"), self.facts.get("tokenizer.ggml.pre")
        splits = _SPLITS.get(str(how))
        if kind != "gpt2" or splits is None:
            raise TokenizerError(
                f"{self.path.name} has a vocabulary of the kind {kind}/{how}, which the transformers engine does not "
                "read from a GGUF. Leave out --backend: llama.cpp runs it."
            )
        special = [(number, token) for number, token in enumerate(tokens) if _type(types, number) == _CONTROL]
        added = [(number, token) for number, token in enumerate(tokens) if _type(types, number) == _USER_DEFINED]
        base = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        entries = [
            {"id": number, "content": token, "special": is_special, **base}
            for is_special, some in ((True, special), (False, added))
            for number, token in some
        ]
        return json.dumps(
            {
                "version": "1.0",
                "added_tokens": sorted(entries, key=lambda entry: entry["id"]),
                "normalizer": {"type": "NFC"} if self.family.startswith("qwen") else None,
                "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits},
                "post_processor": None,
                "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                "model": {
                    "type": "BPE",
                    "vocab": {token: number for number, token in enumerate(tokens)},
                    "merges": self.facts.get("tokenizer.ggml.merges") or [],
                    "byte_fallback": False,
                    "fuse_unk": False,
                    "ignore_merges": how == "llama-bpe",
                },
            }
        ).encode()

    def spelled(self, which: str) -> str | None:
        """How it spells its `bos` or `eos` token."""
        number = self.facts.get(f"tokenizer.ggml.{which}_token_id")
        return None if number is None else str(self.facts["tokenizer.ggml.tokens"][number])

    @property
    def chat_template(self) -> str | None:
        found = self.facts.get("tokenizer.chat_template")
        return found if isinstance(found, str) and found else None


def _bytes_of(regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}


def _split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


_SPLITS: dict[str, list[dict[str, Any]]] = {
    "smollm": [{"type": "Digits", "individual_digits": True}, _bytes_of(True)],
    "gpt-2": [_bytes_of(True)],
    "qwen2": [_split(_LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")), _bytes_of(False)],
    "llama-bpe": [_split(_LLAMA3), _bytes_of(False)],
}


def _name(name: str) -> str:
    parts = name.split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{_NAMES.get(parts[2], parts[2])}.{parts[3]}"
    return f"{_NAMES.get(parts[0], parts[0])}.{parts[-1]}"


def _type(types: Any, number: int) -> int:
    return int(types[number]) if number < len(types) else 1
