"""Packed numbers of GGUF files as fp32: blocks of small integers with a scale, and some with an offset.

The layouts are those of https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h. Bytes in, numbers out.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def _scale(blocks: Tensor, at: int) -> Tensor:
    """The fp16 number at byte `at` of each block, as a column."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def _nibbles(packed: Tensor) -> Tensor:
    """Low halves of all bytes, then high halves."""
    return torch.cat((packed & 15, packed >> 4), 1)


def _fifth_bits(blocks: Tensor, at: int) -> Tensor:
    """32 bits, one for each number of a block, at byte `at`, as 16 or 0."""
    places = torch.arange(8, dtype=torch.uint8)
    return ((blocks[:, at : at + 4].unsqueeze(-1) >> places) & 1).flatten(1) << 4


def _q4_0(blocks: Tensor) -> Tensor:
    return _scale(blocks, 0) * (_nibbles(blocks[:, 2:]).float() - 8)


def _q4_1(blocks: Tensor) -> Tensor:
    return _scale(blocks, 0) * _nibbles(blocks[:, 4:]).float() + _scale(blocks, 2)


def _q5_0(blocks: Tensor) -> Tensor:
    return _scale(blocks, 0) * ((_nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2)).float() - 16)


def _q5_1(blocks: Tensor) -> Tensor:
    return _scale(blocks, 0) * (_nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4)).float() + _scale(blocks, 2)


def _q8_0(blocks: Tensor) -> Tensor:
    return _scale(blocks, 0) * blocks[:, 2:].contiguous().view(torch.int8).float()


def _six_bits(packed: Tensor) -> tuple[Tensor, Tensor]:
    """Eight scales and eight offsets of 6 bits each, from the 12 bytes of a K block."""
    low, middle, high = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = torch.cat((low & 63, (high & 15) | ((low >> 6) << 4)), 1)
    offsets = torch.cat((middle & 63, (high >> 4) | ((middle >> 6) << 4)), 1)
    return scales.float(), offsets.float()


def _of_eight(blocks: Tensor, small: Tensor) -> Tensor:
    """256 numbers in eight groups of 32, each with its scale and offset."""
    scales, offsets = _six_bits(blocks[:, 4:16])
    found = (_scale(blocks, 0) * scales).unsqueeze(-1) * small.float()
    return (found - (_scale(blocks, 2) * offsets).unsqueeze(-1)).flatten(1)


def _halves(packed: Tensor) -> Tensor:
    """128 bytes as eight groups of 32: of each 32 bytes first the low halves, then the high ones."""
    parts = packed.unflatten(1, (4, 32))
    return torch.stack((parts & 15, parts >> 4), 2).flatten(1, 2)


def _q4_k(blocks: Tensor) -> Tensor:
    return _of_eight(blocks, _halves(blocks[:, 16:]))


def _q5_k(blocks: Tensor) -> Tensor:
    places = torch.arange(8, dtype=torch.uint8)[:, None]
    fifth = ((blocks[:, 16:48].unsqueeze(1) >> places) & 1) << 4
    return _of_eight(blocks, _halves(blocks[:, 48:]) | fifth)


def _q6_k(blocks: Tensor) -> Tensor:
    low = blocks[:, :128].unflatten(1, (2, 2, 32))
    low = torch.stack((low & 15, low >> 4), 2)  # [block, half, low or high, which 32, place]
    places = torch.tensor([0, 2, 4, 6], dtype=torch.uint8)[:, None]
    high = ((blocks[:, 128:192].unflatten(1, (2, 1, 32)) >> places) & 3).unflatten(2, (2, 2))
    small = (low | (high << 4)).flatten(1).float() - 32
    scales = blocks[:, 192:208].contiguous().view(torch.int8).float()
    return _scale(blocks, 208) * (scales.unsqueeze(-1) * small.unflatten(1, (16, 16))).flatten(1)


def _plain(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return lambda blocks: blocks.contiguous().view(dtype).float()


KINDS: dict[int, tuple[str, int, int, Callable[[Tensor], Tensor]]] = {
    0: ("F32", 1, 4, _plain(torch.float32)),
    1: ("F16", 1, 2, _plain(torch.float16)),
    2: ("Q4_0", 32, 18, _q4_0),
    3: ("Q4_1", 32, 20, _q4_1),
    6: ("Q5_0", 32, 22, _q5_0),
    7: ("Q5_1", 32, 24, _q5_1),
    8: ("Q8_0", 32, 34, _q8_0),
    12: ("Q4_K", 256, 144, _q4_k),
    13: ("Q5_K", 256, 176, _q5_k),
    14: ("Q6_K", 256, 210, _q6_k),
    30: ("BF16", 1, 2, _plain(torch.bfloat16)),
}
"""For each number that GGUF gives a kind: its name, numbers in a block, bytes of a block, and how it is unpacked."""


def unpacked(data: memoryview, begin: int, shape: tuple[int, ...], kind: int) -> Tensor:
    """A tensor that begins at byte `begin`, in fp32."""
    _, many, size, unpack = KINDS[kind]
    count = 1
    for one in shape:
        count *= one
    raw = torch.frombuffer(bytearray(data[begin : begin + count // many * size]), dtype=torch.uint8)
    return unpack(raw.view(-1, size)).reshape(shape)
