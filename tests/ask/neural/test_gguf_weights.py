"""GGUF weights on PyTorch: every way of packing against one number at a time, whole models against their originals."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from needlepoint.ask.models import create
from needlepoint.errors import TokenizerError, UsageError
from needlepoint.plan.grid import Grid
from needlepoint.plan.task import Plan, Task
from needlepoint.types import Sampling

from ...conftest import english_prose, make_corpus
from ..toy_gguf import _entry, _string, byte_level_vocabulary, sentencepiece_vocabulary
from . import tiny
from .tiny import GgufModel, packed, torch, transformers

SENTENCE = "Hello world, 1234 kettles — naïve café!\n\n第一回　話說天下大勢。 It's 5 o'clock.\t\tEnd "


def half(data: bytes) -> float:
    return float(struct.unpack("<e", data)[0])


def six(block: bytes, group: int) -> tuple[int, int]:
    scales = block[4:16]
    if group < 4:
        return scales[group] & 63, scales[group + 4] & 63
    low, high = scales[group + 4] & 15, scales[group + 4] >> 4
    return low | (scales[group - 4] >> 6) << 4, high | (scales[group] >> 6) << 4


def signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def one_of_k(block: bytes, i: int, nibbles: int, fifth: int | None) -> float:
    group, place = divmod(i, 32)
    byte = block[nibbles + group // 2 * 32 + place]
    value = byte >> 4 if group % 2 else byte & 15
    if fifth is not None:
        value |= (block[fifth + place] >> group & 1) << 4
    scale, offset = six(block, group)
    return half(block[:2]) * scale * value - half(block[2:4]) * offset


def one_of_q6(block: bytes, i: int) -> float:
    side, rest = divmod(i, 128)
    which, place = divmod(rest, 32)
    low = block[64 * side + 32 * (which % 2) + place]
    value = (low >> 4 if which > 1 else low & 15) | (block[128 + 32 * side + place] >> 2 * which & 3) << 4
    return half(block[208:210]) * signed(block[192 + i // 16]) * (value - 32)


def nibble(block: bytes, i: int, at: int) -> int:
    byte = block[at + i % 16]
    return byte >> 4 if i >= 16 else byte & 15


def fifth(block: bytes, i: int, at: int) -> int:
    return (int.from_bytes(block[at : at + 4], "little") >> i & 1) << 4


ONE: dict[str, Callable[[bytes, int], float]] = {
    "F32": lambda b, i: struct.unpack("<f", b)[0],
    "F16": lambda b, i: half(b),
    "BF16": lambda b, i: struct.unpack("<f", b"\0\0" + b)[0],
    "Q4_0": lambda b, i: half(b[:2]) * (nibble(b, i, 2) - 8),
    "Q4_1": lambda b, i: half(b[:2]) * nibble(b, i, 4) + half(b[2:4]),
    "Q5_0": lambda b, i: half(b[:2]) * ((nibble(b, i, 6) | fifth(b, i, 2)) - 16),
    "Q5_1": lambda b, i: half(b[:2]) * (nibble(b, i, 8) | fifth(b, i, 4)) + half(b[2:4]),
    "Q8_0": lambda b, i: half(b[:2]) * signed(b[2 + i]),
    "Q4_K": lambda b, i: one_of_k(b, i, 16, None),
    "Q5_K": lambda b, i: one_of_k(b, i, 48, 16),
    "Q6_K": one_of_q6,
}


@pytest.mark.parametrize("kind", sorted(packed.KINDS), ids=lambda kind: packed.KINDS[kind][0])
def test_blocks_unpack_to_what_their_layout_says_number_by_number(kind: int) -> None:
    name, many, size, _ = packed.KINDS[kind]
    rng = random.Random(kind)
    halves = {"Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}.get(name, (0, 2) if name.endswith("_1") else (0,))
    blocks = []
    for _ in range(6):
        block = bytearray(rng.randbytes(size))
        if many > 1:
            for at in halves:
                block[at : at + 2] = struct.pack("<e", rng.uniform(-2, 2))
        elif size == 2:
            block[:] = struct.pack("<e", rng.uniform(-2, 2))
        else:
            block[:] = struct.pack("<f", rng.uniform(-2, 2))
        blocks.append(bytes(block))
    found = packed.unpacked(memoryview(b"\1\2\3" + b"".join(blocks)), 3, (2, 3 * many), kind)
    wanted = torch.tensor([ONE[name](block, i) for block in blocks for i in range(many)]).view(2, 3 * many)
    assert torch.allclose(found, wanted, rtol=1e-6, atol=1e-6)


def written(path: Path, model: Any, family: str, vocabulary: dict[str, Any], **more: Any) -> Path:
    """A model of transformers as llama.cpp's converter writes it: its names, and for llama its order of q and k."""
    config, names = model.config, {theirs: ours for ours, theirs in tiny.NAMES.items()}
    entries = {
        "general.architecture": family,
        f"{family}.block_count": config.num_hidden_layers,
        f"{family}.context_length": 2048,
        f"{family}.embedding_length": config.hidden_size,
        f"{family}.feed_forward_length": config.intermediate_size,
        f"{family}.attention.head_count": config.num_attention_heads,
        f"{family}.attention.head_count_kv": config.num_key_value_heads,
        f"{family}.attention.key_length": config.head_dim,
        f"{family}.attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        f"{family}.rope.freq_base": 10_000.0,
        **vocabulary,
        **more,
    }
    tensors: dict[str, Any] = {}
    for name, value in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        parts = name.removesuffix(".weight").removesuffix(".bias").split(".")
        end = name.rsplit(".", 1)[1]
        if parts[:2] == ["model", "layers"]:
            part = names[".".join(parts[3:])]
            if family == "llama" and part in ("attn_q", "attn_k"):
                value = value.unflatten(0, (-1, 2, config.head_dim // 2)).transpose(1, 2).reshape(value.shape)
            tensors[f"blk.{parts[2]}.{part}.{end}"] = value
        else:
            tensors[f"{names['.'.join(parts)]}.{end}"] = value
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
    head += b"".join(_entry(key, value) for key, value in entries.items())
    body = b""
    for name, value in tensors.items():
        sizes = tuple(reversed(value.shape))
        head += _string(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, len(body))
        body += value.float().contiguous().numpy().tobytes()
        body += b"\0" * (-len(body) % 32)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + body)
    return path


def small(family: str, n_tokens: int, *, tied: bool) -> Any:
    sizes = {
        "vocab_size": n_tokens,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "tie_word_embeddings": tied,
        "rms_norm_eps": 1e-5,
    }
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(family, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.2)
    return model


@pytest.mark.parametrize(("family", "tied"), [("llama", True), ("llama", False), ("qwen2", False), ("qwen3", True)])
def test_a_gguf_gives_the_logits_of_the_model_that_it_was_made_of(tmp_path: Path, family: str, tied: bool) -> None:
    vocabulary = byte_level_vocabulary()
    model = small(family, len(vocabulary["tokenizer.ggml.tokens"]), tied=tied)
    found = GgufModel(written(tmp_path / "m.gguf", model, family, vocabulary))
    loaded = found.load(found.config(), torch.float32).eval()
    ids = torch.tensor([[5, 70, 200, 33, 1, 90, 17]])
    with torch.inference_mode():
        assert torch.allclose(loaded(input_ids=ids).logits, model(input_ids=ids).logits, atol=1e-5)


@pytest.mark.parametrize("how", ["smollm", "gpt-2", "qwen2", "llama-bpe"])
def test_its_vocabulary_counts_as_llama_cpp_does(tmp_path: Path, how: str) -> None:
    pytest.importorskip("xllamacpp")
    from needlepoint.ask.models.gguf_endpoint import connect_gguf
    from needlepoint.text.tokenizers import from_json

    vocabulary = byte_level_vocabulary(**{"tokenizer.ggml.pre": how})
    model = small("llama", len(vocabulary["tokenizer.ggml.tokens"]), tied=True)
    path = written(tmp_path / "m.gguf", model, "llama", vocabulary)
    ours = from_json(GgufModel(path).tokenizer_json(), name="m", source=path)
    endpoint = connect_gguf(path)
    try:
        for text in (SENTENCE, "<|im_start|>user\nHello world<|im_end|>\n"):
            for special in (False, True):
                assert ours.encode(text, special=special).ids == endpoint.tokenizer.encode(text, special=special).ids
    finally:
        endpoint.tokenizer.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_both_engines_hold_the_same_of_given_values(tmp_path: Path, family: str) -> None:
    """llama.cpp by forced tokens, this engine by one pass over all: two ways that share nothing but the file."""
    pytest.importorskip("xllamacpp")
    vocabulary = byte_level_vocabulary(**{"tokenizer.ggml.pre": "smollm"})
    model = small(family, len(vocabulary["tokenizer.ggml.tokens"]), tied=True)
    path = written(tmp_path / "m.gguf", model, family, vocabulary)
    task = Task(grid=Grid.from_specs("900", "50"))

    async def held(backend: str) -> list[Any]:
        model = create(str(path), backend=backend, longest_tokens=1_024)
        try:
            (prompt,) = Plan(task, [make_corpus(english_prose(120))], await model.connect())
            return await model.logprob(prompt, [" 4821937", " 4829", " 北京", "é"], lead="It is")  # type: ignore[attr-defined, no-any-return]
        finally:
            await model.close()

    ours, theirs = asyncio.run(held("transformers")), asyncio.run(held("llamacpp"))
    assert [len(one) for one in ours] == [len(one) for one in theirs] and len(ours[0]) > 6
    for one, other in zip(ours, theirs, strict=True):
        assert one == pytest.approx(other, abs=5e-3)
    assert len({round(value, 2) for one in ours for value in one}) > 10


@pytest.mark.parametrize(
    ("family", "vocabulary", "more", "error", "says"),
    [
        ("llama", byte_level_vocabulary(), {"general.architecture": "mamba"}, UsageError, "of the family 'mamba'"),
        ("llama", byte_level_vocabulary(), {"llama.rope.scaling.type": "yarn"}, UsageError, "scales its positions"),
        ("llama", sentencepiece_vocabulary(), {}, TokenizerError, "a vocabulary of the kind llama/None"),
        ("llama", byte_level_vocabulary(), {"tokenizer.ggml.pre": "default"}, TokenizerError, "kind gpt2/default"),
    ],
)
def test_what_cannot_be_unpacked_is_refused_in_words(
    tmp_path: Path, family: str, vocabulary: dict[str, Any], more: dict[str, Any], error: type[Exception], says: str
) -> None:
    model = small(family, len(vocabulary["tokenizer.ggml.tokens"]), tied=True)
    path = written(tmp_path / "m.gguf", model, family, {**vocabulary, **more})
    with pytest.raises(error, match=says):
        asyncio.run(create(str(path), backend="transformers").connect())


@pytest.mark.model
def test_smollm2_finds_the_needle_and_says_what_it_says_on_llama_cpp() -> None:
    pytest.importorskip("xllamacpp")
    corpus = make_corpus(english_prose(120))
    task = Task(grid=Grid.from_specs("320", "100"))

    async def said(backend: str) -> tuple[list[str], list[Any]]:
        model = create("smollm2", backend=backend, longest_tokens=512)
        try:
            prompts = list(Plan(task, [corpus], await model.connect()))
            replies = [reply async for reply in model.ask(prompts, Sampling(max_tokens=22))]
            return [reply.text for reply in replies], [prompt.token_ids() for prompt in prompts]
        finally:
            await model.close()

    torch_texts, torch_ids = asyncio.run(said("transformers"))
    llama_texts, llama_ids = asyncio.run(said("llamacpp"))
    assert torch_ids == llama_ids
    assert torch_texts == llama_texts
    assert all("sandwich and sit in Dolores Park" in text for text in torch_texts), torch_texts
