"""How a layer of the model reaches its keys: one attention function, registered with transformers under our name.

A layer hands its new keys to the cache, and asks this function to attend. Which cache that is, the trunk or the rows
that branch off it, is known to the thread that runs the forward pass, so no model has to pass it on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor

NAME = "needlepoint"


class Context(Protocol):
    """What the tokens of a forward pass attend to."""

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        *,
        softcap: float | None,
        wants_sum: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """(attended, logsumexp of the scores or None); the latter is there with `wants_sum`."""
        ...


class _Running(threading.local):
    context: Context | None = None


_running = _Running()


@contextmanager
def over(context: Context) -> Iterator[None]:
    """Forward passes of this thread attend to `context`."""
    before, _running.context = _running.context, context
    try:
        yield
    finally:
        _running.context = before


def register() -> None:
    """Tell transformers of our attention. There is no mask function under the name, so no mask is ever built."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, _attend)


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: object,
    *,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    context = _running.context
    if context is None:
        raise RuntimeError("The model was called outside of needlepoint's engine.")
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    out, total = context.attend(
        module.layer_idx, query, key, value, scale, softcap=softcap, wants_sum=s_aux is not None
    )
    if s_aux is not None:  # a learned score that takes weight and gives nothing
        assert total is not None
        out = out * torch.sigmoid(total - s_aux.float().view(1, -1, 1)).unsqueeze(-1).to(out.dtype)
    return out.transpose(1, 2).contiguous(), None
