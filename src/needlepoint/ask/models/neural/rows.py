"""Questions that branch off one trunk, side by side: each row has its own few tokens, and all share the trunk's.

The trunk's keys are read once for all rows together; a row's own are few, and masks over them are small. Rows are never
written into the trunk, so nothing has to be put back when they are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin, LinearAttentionLayer

from needlepoint.ask.models.neural.kernels import join, plain
from needlepoint.ask.models.neural.trunk import DummyLayer, Trunk, copied

_GROWS_BY = 64


class OwnLayer(CacheLayerMixin):
    """One layer's keys and values of the rows' own tokens; where each row's end is, `Rows.lengths` say."""

    is_sliding = False

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self._rows = rows

    def of(self, rows: Rows, take: Tensor) -> OwnLayer:
        """These rows of it, for `rows`."""
        found = OwnLayer(rows)
        if self.is_initialized:
            found.keys, found.values = self.keys.index_select(0, take), self.values.index_select(0, take)
            found.is_initialized = True
        return found

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.keys, self.values = (
            states.new_zeros(states.shape[0], states.shape[1], 0, states.shape[3])
            for states in (key_states, value_states)
        )
        self.is_initialized = True

    def widen(self, room: int) -> None:
        """Room for so many tokens in each row."""
        more = room - self.keys.shape[2]
        if more > 0:
            more += -room % _GROWS_BY
            self.keys, self.values = (torch.nn.functional.pad(one, (0, 0, 0, more)) for one in (self.keys, self.values))

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        places = self._rows.places
        end = self._rows.room
        self.widen(end)
        numbers = torch.arange(places.shape[0], device=places.device)[:, None]
        for block, states in ((self.keys, key_states), (self.values, value_states)):
            block.transpose(1, 2)[numbers, places] = states.transpose(1, 2)
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._rows.trunk_tokens + self._rows.room, 0

    def get_seq_length(self) -> int:
        return self._rows.trunk_tokens + max(self._rows.lengths, default=0)

    def get_max_length(self) -> int:
        return -1


class Rows(Cache):
    """The cache of rows that branch off the first `trunk_tokens` of a trunk. `lengths` are their own tokens."""

    def __init__(self, trunk: Trunk, trunk_tokens: int) -> None:
        super().__init__(layers=[])
        self.trunk = trunk
        self.trunk_tokens = trunk_tokens
        self.lengths: list[int] = []
        self.places: Tensor = torch.zeros(0, 0, dtype=torch.long)
        self.room = 0

    @classmethod
    def at(cls, trunk: Trunk, trunk_tokens: int) -> Rows:
        """One row, without a token of its own."""
        rows = cls(trunk, trunk_tokens)
        rows.lengths = [0]
        for kind, layer in zip(trunk.kinds, trunk.layers, strict=True):
            if kind.kind == "linear":
                rows.layers.append(copied(layer))
            else:
                rows.layers.append(DummyLayer() if kind.kind == "none" else OwnLayer(rows))
        return rows

    def select(self, numbers: Sequence[int]) -> Rows:
        """These rows, each as often as it is named: how branches fork, and how finished ones leave."""
        found = Rows(self.trunk, self.trunk_tokens)
        found.lengths = [self.lengths[number] for number in numbers]
        take: Tensor | None = None
        for layer in self.layers:
            if isinstance(layer, DummyLayer):
                found.layers.append(layer)
                continue
            if take is None:
                take = torch.tensor(list(numbers), device=self._device())
            if isinstance(layer, LinearAttentionLayer):
                found.layers.append(copied(layer, take))
            else:
                found.layers.append(cast(OwnLayer, layer).of(found, take))
        return found

    @staticmethod
    def together(parts: Sequence[Rows]) -> Rows:
        """All rows of some that branch off the same trunk."""
        if len(parts) == 1:
            return parts[0]
        found = Rows(parts[0].trunk, parts[0].trunk_tokens)
        found.lengths = [length for part in parts for length in part.lengths]
        for at, first in enumerate(parts[0].layers):
            layers = [part.layers[at] for part in parts]
            if isinstance(first, DummyLayer):
                found.layers.append(first)
            elif isinstance(first, LinearAttentionLayer):
                found.layers.append(_joined_states(layers))
            else:
                found.layers.append(_joined_own(found, layers))
        return found

    def begin(self, n_new: int, device: torch.device) -> Tensor:
        """Each row gets `n_new` tokens: notes where they go, and returns their positions in the context."""
        lengths = torch.tensor(self.lengths, device=device)
        self.places = lengths[:, None] + torch.arange(n_new, device=device)
        self.room = max(self.lengths) + n_new
        return self.places + self.trunk_tokens

    def end(self, added: Sequence[int]) -> None:
        """So many of the new tokens were real; the rest only filled the batch, and is written over."""
        self.lengths = [length + more for length, more in zip(self.lengths, added, strict=True)]

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
        window = self.trunk.kinds[layer].window
        before = self.trunk.layers[layer]
        n_before = min(self.trunk_tokens, before.keys.shape[2]) if before.is_initialized else 0
        own = torch.arange(key.shape[2], device=query.device)
        seen = own <= self.places[:, :, None]
        if window:
            seen = seen & (own > self.places[:, :, None] - window)
        if n_before == 0:
            return plain(query, key, value, scale, allowed=seen, softcap=softcap)
        keys, values = before.keys[:, :, :n_before], before.values[:, :, :n_before]
        if window and self.trunk_tokens + self.room > window:
            place = torch.arange(self.trunk_tokens - n_before, self.trunk_tokens, device=query.device)
            near = place > self.places[:, :, None] + self.trunk_tokens - window
            many = query.shape[0]
            beside = torch.cat((keys.expand(many, -1, -1, -1), key), 2)
            values = torch.cat((values.expand(many, -1, -1, -1), value), 2)
            return plain(query, beside, values, scale, allowed=torch.cat((near, seen), 2), softcap=softcap)
        own_part = plain(query, key, value, scale, allowed=seen, softcap=softcap)
        return join(self._over_trunk(query, keys, values, scale, softcap), own_part)

    def _over_trunk(
        self, query: Tensor, keys: Tensor, values: Tensor, scale: float, softcap: float | None
    ) -> tuple[Tensor, Tensor]:
        """All rows' queries as those of one: the trunk's keys are read once."""
        many, _, n_new, _ = query.shape
        folded = query.transpose(0, 1).flatten(1, 2).unsqueeze(0)
        if softcap is not None or folded.shape[-1] != values.shape[-1]:
            out, total = plain(folded, keys, values, scale, softcap=softcap)
        else:
            out, total = self.trunk.kernels.partial(folded, keys, values, scale, False)
        return out[0].unflatten(1, (many, n_new)).transpose(0, 1), total[0].unflatten(1, (many, n_new)).transpose(0, 1)

    def _device(self) -> torch.device | None:
        for layer in self.layers:
            if isinstance(layer, OwnLayer) and layer.is_initialized:
                return layer.keys.device
            if isinstance(layer, LinearAttentionLayer) and layer.device is not None:
                return cast(torch.device, layer.device)
        return None


def _joined_own(rows: Rows, layers: Sequence[OwnLayer]) -> OwnLayer:
    found = OwnLayer(rows)
    made = [layer for layer in layers if layer.is_initialized]
    if not made:
        return found
    room = max(layer.keys.shape[2] for layer in made)
    keys, values = [], []
    for layer in layers:
        if not layer.is_initialized:  # a row that ends with the trunk
            many = len(layer._rows.lengths)
            layer.lazy_initialization(*(one[:1].expand(many, -1, -1, -1) for one in (made[0].keys, made[0].values)))
        layer.widen(room)
        keys.append(layer.keys[:, :, :room])
        values.append(layer.values[:, :, :room])
    found.keys, found.values, found.is_initialized = torch.cat(keys), torch.cat(values), True
    return found


def _joined_states(layers: Sequence[Any]) -> Any:
    found = copied(layers[0])
    for name in ("conv_states", "recurrent_states"):
        states = getattr(found, name)
        for at in states:
            if states[at] is not None:
                states[at] = torch.cat([getattr(layer, name)[at] for layer in layers])
    return found
