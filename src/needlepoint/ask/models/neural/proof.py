"""The model's own forward pass against this engine's, on a few tokens, before anything is measured.

An architecture may do what no engine expects: bend its masks, scale by position, share keys. Rather than knowing them
all, the engine shows on the loaded weights that its chunks, branches and rows give the logits that the model gives.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from needlepoint.ask.models.neural import attention
from needlepoint.ask.models.neural.engine import Engine, Request
from needlepoint.ask.models.neural.kernels import Kernels
from needlepoint.ask.models.neural.trunk import Layer
from needlepoint.errors import UsageError

_LIKE = {torch.float32: 0.9999, torch.bfloat16: 0.98, torch.float16: 0.98}
"""How alike logits must be at least (correlation): rounding moves them, a wrong mask makes others of them."""


def prove(model: Any, layers: Sequence[Layer], kernels: Kernels) -> float:
    """How alike the logits are, at worst; UsageError where they aren't those of the model."""
    rng = Random(0)
    size = int(model.config.get_text_config(decoder=True).vocab_size)
    base = [rng.randrange(size) for _ in range(48)]
    ends = [[rng.randrange(size) for _ in range(6)] for _ in range(3)]
    prompts = [base, base[:32] + ends[0], base[:32] + ends[1][:3], base[:20] + ends[2]]
    # Short tails only: so the trunk, what branches off it, and rows of unequal lengths all have their part.
    engine = Engine(model, layers, kernels, capacity=64, chunk=16, most_rows=4, tail=8, keep_logits=True)
    try:
        answers = dict(engine.answer([Request(ids=array("I", ids)) for ids in prompts]))
    except (RuntimeError, ValueError, TypeError, AttributeError, LookupError, NotImplementedError) as error:
        raise UsageError(
            f"{type(model).__name__} can't be run by the transformers engine ({type(error).__name__} in its forward "
            "pass): it keeps the past in a way of its own. Serve it with vLLM or llama.cpp, and give --api-url."
        ) from error
    found = [_logits(answers[number].first_logits) for number in range(len(prompts))]
    alike = min(map(_alike, found, _by_itself(model, prompts)))
    if alike < _LIKE[model.dtype]:
        raise UsageError(
            f"{type(model).__name__} gives other logits in the transformers engine than by itself (correlation "
            f"{alike:.4f}), so nothing that it would answer could be trusted. Serve it with vLLM or llama.cpp, and "
            "give --api-url."
        )
    return alike


@torch.inference_mode()
def _by_itself(model: Any, prompts: Sequence[Sequence[int]]) -> list[Tensor]:
    model.set_attn_implementation("eager")
    try:
        device = next(model.parameters()).device
        return [
            _logits(model(input_ids=torch.tensor([list(ids)], device=device), logits_to_keep=1).logits[0, -1])
            for ids in prompts
        ]
    finally:
        model.set_attn_implementation(attention.NAME)


def _logits(found: Tensor | None) -> Tensor:
    assert found is not None
    return found.float()


def _alike(one: Tensor, other: Tensor) -> float:
    pair = torch.stack((one, other))
    if not torch.isfinite(pair).all():
        return -1.0
    if torch.allclose(one, other, atol=1e-4):
        return 1.0
    return float(torch.corrcoef(pair)[0, 1])
