"""The one context that prompts share: keys and values in place, cut back to any earlier token in no time.

Layers that attend to everything keep their keys in one block of memory that is made once; what is cut off stays there
until it is written over. Layers with a sliding window keep the window, linear ones their state: neither can go back, so
where prompts part, a snapshot is taken and put back.
"""

from __future__ import annotations

import copy
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin, LinearAttentionLayer

from needlepoint.ask.models.neural.kernels import Kernels, plain, windowed

Kind = Literal["full", "window", "linear", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What one layer of the model keeps of the past."""

    kind: Kind
    window: int = 0
    states: int = 1


try:
    from transformers.cache_utils import DummyLayer as DummyLayer
except ImportError:  # before 5.23, no layer of a cache was there for layers that have none

    class DummyLayer:  # type: ignore[no-redef]
        """Stands for a layer that keeps nothing."""


class SlabLayer(CacheLayerMixin):
    """All keys and values of one layer, in a block that holds `capacity` tokens."""

    is_sliding = False

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.keys, self.values = (self._block(states) for states in (key_states, value_states))
        self.is_initialized = True

    def _block(self, like: Tensor) -> Tensor:
        return like.new_empty(like.shape[0], like.shape[1], self.capacity, like.shape[3])

    def reserve(self, capacity: int) -> None:
        """Make room, and keep what is there."""
        if capacity <= self.capacity:
            return
        self.capacity = capacity
        if self.is_initialized:
            for name in ("keys", "values"):  # one after the other: the old block goes before the next is made
                old = getattr(self, name)
                block = self._block(old)
                block[:, :, : self.length] = old[:, :, : self.length]
                setattr(self, name, block)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[2]
        if end > self.capacity:
            raise RuntimeError(f"{end} tokens in a block for {self.capacity}")
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return self.capacity


class WindowLayer(CacheLayerMixin):
    """The last `window - 1` keys and values: what the next token can still see."""

    is_sliding = True

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.keys, self.values = key_states[:, :, :0], value_states[:, :, :0]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        keys, values = torch.cat((self.keys, key_states), 2), torch.cat((self.values, value_states), 2)
        kept = min(keys.shape[2], self.window - 1)
        first = keys.shape[2] - kept
        self.keys, self.values = keys[:, :, first:].clone(), values[:, :, first:].clone()
        self.length += key_states.shape[2]
        return keys, values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.keys.shape[2] + query_length if self.is_initialized else query_length, 0

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return -1


Snapshot = list[Any]
"""For each layer that can't go back: a copy of it."""


class Trunk(Cache):
    """The cache of one context. `ids` are its tokens."""

    def __init__(self, layers: Sequence[Layer], kernels: Kernels, capacity: int) -> None:
        super().__init__(layers=[_made(layer, capacity) for layer in layers])
        self.kinds = tuple(layers)
        self.kernels = kernels
        self.ids: array[int] = array("I")
        self.capacity = capacity

    @property
    def length(self) -> int:
        return len(self.ids)

    @property
    def goes_back(self) -> bool:
        """Whether every layer can be cut back to any earlier token."""
        return all(layer.kind in ("full", "none") for layer in self.kinds)

    def reserve(self, capacity: int) -> None:
        self.capacity = max(self.capacity, capacity)
        for layer in self.layers:
            if isinstance(layer, SlabLayer):
                layer.reserve(self.capacity)

    def truncate(self, length: int) -> None:
        """Forget all after the first `length` tokens."""
        if length < self.length and not self.goes_back and length:
            raise RuntimeError("this model's layers can only go back to a snapshot")
        del self.ids[length:]
        for at, kind in enumerate(self.kinds):
            if kind.kind == "full":
                self.layers[at].length = min(self.layers[at].length, length)
            elif length == 0:
                self.layers[at] = _made(kind, self.capacity)

    def snapshot(self) -> Snapshot:
        """What it takes to come back here; nothing for layers that can be cut back."""
        return [
            copied(layer) if kind.kind in ("window", "linear") else None
            for layer, kind in zip(self.layers, self.kinds, strict=True)
        ]

    def restore(self, snapshot: Snapshot, length: int, *, again: bool) -> None:
        """Go back to a snapshot that was taken at `length`; with `again` it can be used once more."""
        del self.ids[length:]
        for at, kept in enumerate(snapshot):
            if kept is not None:
                self.layers[at] = copied(kept) if again else kept
            elif isinstance(self.layers[at], SlabLayer):
                self.layers[at].length = length

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
        window = self.kinds[layer].window
        if window and key.shape[2] > window:
            return windowed(query, key, value, scale, window, softcap=softcap)
        if softcap is not None or query.shape[-1] != value.shape[-1]:
            return plain(query, key, value, scale, True, softcap=softcap)
        return self.kernels.causal(query, key, value, scale, wants_sum=wants_sum)


def _made(layer: Layer, capacity: int) -> Any:
    if layer.kind == "full":
        return SlabLayer(capacity)
    if layer.kind == "window":
        return WindowLayer(layer.window)
    return LinearAttentionLayer(number_of_states=layer.states) if layer.kind == "linear" else DummyLayer()


def copied(layer: Any, rows: Tensor | None = None) -> Any:
    """A window's or a linear layer's past as one of its own; with `rows`, those of its batch, in this order."""
    found = copy.copy(layer)
    take = Tensor.clone if rows is None else lambda one: one.index_select(0, rows)
    if isinstance(layer, LinearAttentionLayer):
        for name in ("conv_states", "recurrent_states"):
            states = getattr(layer, name)
            setattr(found, name, {at: None if one is None else take(one) for at, one in states.items()})
        for name in ("is_conv_states_initialized", "is_recurrent_states_initialized", "has_previous_state"):
            setattr(found, name, dict(getattr(layer, name)))
        found.conv_kernel_size = dict(layer.conv_kernel_size)
    elif layer.is_initialized:
        found.keys, found.values = take(layer.keys), take(layer.values)
    return found
