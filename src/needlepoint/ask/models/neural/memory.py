"""What a run will take of the memory, before it takes any; and what would fit instead.

    weights + block of keys and values for the longest context + windows and states + one chunk's working set + rows

Every term but the working set is counted; that one is bounded from the model's sizes. What is forecast is reserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from needlepoint.ask.models import machine
from needlepoint.ask.models.neural.engine import TAIL_TOKENS
from needlepoint.ask.models.neural.weights import Shape
from needlepoint.errors import UsageError

_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
_USABLE = 0.92
"""Of what is free: the rest is for what the allocator can't use, and for everybody else."""
MOST_ROWS = 64
_FEWEST_ROWS = 4
_CHUNKS = {"cpu": 1_024, "cuda": 8_192}
_GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Bytes, by what they are for; how many rows are asked side by side, and how many tokens a chunk has."""

    weights: int
    context: int
    states: int
    chunk: int
    rows: int
    n_rows: int
    n_chunk: int
    context_tokens: int

    @property
    def total(self) -> int:
        return self.weights + self.context + self.states + self.chunk + self.rows

    def facts(self) -> dict[str, int]:
        """For the record."""
        return {
            "weights": self.weights,
            "context": self.context,
            "states": self.states,
            "chunk": self.chunk,
            "rows": self.rows,
            "total": self.total,
        }


def forecast(
    shape: Shape,
    *,
    parameters: int,
    dtype: str,
    device: str,
    context_tokens: int,
    answer_tokens: int,
    free_bytes: int | None,
    chunk: int | None = None,
) -> Forecast:
    """What a run takes whose longest prompt with its answer has `context_tokens`; UsageError where that is too much."""
    n_chunk = min(chunk or _CHUNKS.get(device, 1_024), max(context_tokens, 16))
    made = _Sizes(shape, parameters, _BYTES[dtype], n_chunk, answer_tokens)
    room = None if free_bytes is None else int(free_bytes * _USABLE)
    base = made.weights + made.context(context_tokens) + made.states + made.chunk
    n_rows = MOST_ROWS
    if room is not None:
        n_rows = max(0, min(MOST_ROWS, (room - base) // made.row))
        if n_rows < _FEWEST_ROWS:
            raise UsageError(_too_much(made, dtype, device, context_tokens, room))
    return Forecast(
        weights=made.weights,
        context=made.context(context_tokens),
        states=made.states,
        chunk=made.chunk,
        rows=n_rows * made.row,
        n_rows=n_rows,
        n_chunk=n_chunk,
        context_tokens=context_tokens,
    )


class _Sizes:
    """The terms, in bytes."""

    def __init__(self, shape: Shape, parameters: int, each: int, n_chunk: int, answer_tokens: int) -> None:
        kinds = [layer.kind for layer in shape.layers]
        attending = kinds.count("full") + kinds.count("window")
        self.weights = parameters * each
        self.token = kinds.count("full") * shape.kv_values * each
        windows = sum(layer.window + n_chunk for layer in shape.layers if layer.kind == "window")
        self.states = windows * shape.kv_values * each + kinds.count("linear") * shape.linear_values * 4
        width = 6 * shape.hidden + 3 * shape.inner + 4 * shape.heads * shape.head_dim
        self.chunk = n_chunk * (width * each + 4 * 3 * shape.heads * shape.head_dim) + 8 * shape.vocabulary
        own = TAIL_TOKENS + answer_tokens
        # twice: rows are copied when some of them leave
        self.row = 2 * own * attending * shape.kv_values * each + 16 * shape.vocabulary
        self.row += 2 * kinds.count("linear") * shape.linear_values * 4

    def context(self, tokens: int) -> int:
        return tokens * self.token

    def fits(self, room: int) -> int:
        """Tokens of context that `room` bytes leave."""
        left = room - self.weights - self.states - self.chunk - _FEWEST_ROWS * self.row
        return max(0, left // self.token) if self.token else (1 << 40 if left > 0 else 0)


def _too_much(made: _Sizes, dtype: str, device: str, tokens: int, room: int) -> str:
    needs = made.weights + made.context(tokens) + made.states + made.chunk + _FEWEST_ROWS * made.row
    fits = made.fits(room) // 1_000 * 1_000
    says = (
        f"A context of {tokens:,} tokens in {dtype} needs about {needs / _GB:,.1f} GB on {device} (weights "
        f"{made.weights / _GB:,.1f}, keys and values {made.context(tokens) / _GB:,.1f}), and {room / _GB:,.1f} GB can "
        "be used."
    )
    if fits >= 1_000:
        says += f" What fits: {fits:,} tokens"
        return says + (", or more with --dtype bf16." if dtype == "fp32" else ".")
    return says + (" Try --dtype bf16." if dtype == "fp32" else " Take a smaller model, or a larger device.")


def free_bytes(device: Any) -> int | None:
    """What is free on a device now; None where nobody tells."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    return machine.free_bytes()
