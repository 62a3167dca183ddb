"""Attention over a stretch of keys, with what is needed to join it with another stretch.

A softmax over two stretches of keys is the mean of the softmaxes over each, weighted by `exp(logsumexp)`. So no kernel
ever needs a mask for "all that came before, and causally among ourselves": two calls without one are joined. That keeps
the flash kernels in use where PyTorch's own path would build a mask and lose them.

Which kernel runs is found out by running it: on the device, in the dtype, on the model's own head sizes, against plain
arithmetic. A kernel that fails or is off is not taken.

cuDNN's is the fastest on a Hopper GPU, and makes a plan for each new shape, which takes longer than the call. It gets
whole blocks only (`BLOCK` tokens that begin at a multiple of it), and their prefix in pieces of 1, 2, 4, ... blocks, so
that a run to a million tokens has a few dozen shapes. It is taken where it is the faster one when both are timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter

import torch
from torch import Tensor
from torch.nn import functional

Partial = Callable[[Tensor, Tensor, Tensor, float, bool], tuple[Tensor, Tensor]]
"""(query, key, value, scale, causal) → (attended, logsumexp of the scores). `causal` needs as many keys as queries."""

_PLAIN_SCORES = 1 << 26
"""Scores that plain arithmetic holds at a time."""
BLOCK = 2_048


@dataclass(frozen=True, slots=True)
class Kernels:
    """What attends on this device: `partial` with its logsumexp, and whether one flash call may take a whole prefix.

    `large`, where there is one, takes what begins at a multiple of `block` tokens and has a multiple of them.
    """

    name: str
    partial: Partial
    fused: bool = False
    large: Partial | None = None
    block: int = BLOCK

    def causal(
        self, query: Tensor, key: Tensor, value: Tensor, scale: float, *, wants_sum: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """The last `T` positions over all keys: each sees those up to its own. The logsumexp where it came along."""
        n_new, past = query.shape[2], key.shape[2] - query.shape[2]
        if self.large is not None and not n_new % self.block and not past % self.block:
            parts = [
                self.large(query, key[:, :, begin:end], value[:, :, begin:end], scale, False)
                for begin, end in pieces(past, self.block)
            ]
            return join(*parts, self.large(query, key[:, :, past:], value[:, :, past:], scale, True))
        if past == 0:
            return self.partial(query, key, value, scale, n_new > 1)
        if n_new == 1:
            return self.partial(query, key, value, scale, False)
        if self.fused and not wants_sum:
            from torch.nn.attention.bias import causal_lower_right

            bias = causal_lower_right(n_new, key.shape[2])
            return (
                functional.scaled_dot_product_attention(query, key, value, bias, scale=scale, enable_gqa=True),
                None,
            )
        before = self.partial(query, key[:, :, :past], value[:, :, :past], scale, False)
        among = self.partial(query, key[:, :, past:], value[:, :, past:], scale, True)
        return join(before, among)

    def chunks(self, begin: int, end: int, most: int) -> Iterator[tuple[int, int]]:
        """How the tokens from `begin` to `end` go through the model: at most so many at a time, in whole blocks."""
        while begin < end:
            step = min(most, end - begin)
            if self.large is not None and begin % self.block:
                step = min(step, self.block - begin % self.block)
            elif self.large is not None and step > self.block:
                step -= step % self.block
            yield begin, begin + step
            begin += step


def pieces(n: int, block: int) -> list[tuple[int, int]]:
    """`n` keys, a multiple of `block`, in pieces of 2^k blocks, the largest first: few lengths for all `n`."""
    found, at = [], 0
    while at < n:
        step = block << ((n - at) // block).bit_length() - 1
        found.append((at, at + step))
        at += step
    return found


def join(*parts: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Attention over several stretches of keys from that over each."""
    if len(parts) == 1:
        return parts[0]
    whole = parts[0][1]
    for _, total in parts[1:]:
        whole = torch.logaddexp(whole, total)
    joined = parts[0][0].float() * torch.exp(parts[0][1] - whole).unsqueeze(-1)
    for out, total in parts[1:]:
        joined += out.float() * torch.exp(total - whole).unsqueeze(-1)
    return joined.to(parts[0][0].dtype), whole


def plain(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    causal: bool = False,
    *,
    allowed: Tensor | None = None,
    softcap: float | None = None,
) -> tuple[Tensor, Tensor]:
    """By plain arithmetic in fp32: for small stretches, masks (`allowed`, [batch, queries, keys]) and soft caps."""
    batch, heads, n_new, _ = query.shape
    groups = heads // key.shape[1]
    if causal:
        allowed = torch.ones(1, n_new, key.shape[2], dtype=torch.bool, device=query.device).tril(key.shape[2] - n_new)
    step = max(1, _PLAIN_SCORES // max(1, batch * heads * key.shape[2]))
    keys = key.float().unsqueeze(2)
    values = value.float().unsqueeze(2)
    outs, sums = [], []
    for at in range(0, n_new, step):
        part = query[:, :, at : at + step].float().unflatten(1, (key.shape[1], groups))
        scores = torch.matmul(part, keys.transpose(-1, -2)) * scale
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if allowed is not None:
            scores = scores.masked_fill(~allowed[:, None, None, at : at + step], -torch.inf)
        total = torch.logsumexp(scores, -1)
        weights = torch.exp(scores - total.unsqueeze(-1))
        outs.append(torch.matmul(weights, values).flatten(1, 2))
        sums.append(total.flatten(1, 2))
    return torch.cat(outs, 2).to(query.dtype), torch.cat(sums, 2)


def windowed(
    query: Tensor, key: Tensor, value: Tensor, scale: float, window: int, *, softcap: float | None = None
) -> tuple[Tensor, Tensor]:
    """The last `T` positions, each over the `window` keys that end with its own; in blocks, so that no work is lost."""
    n_new, n_keys = query.shape[2], key.shape[2]
    block = max(window, 256)
    outs, sums = [], []
    for at in range(0, n_new, block):
        end = min(n_new, at + block)
        own = torch.arange(n_keys - n_new + at, n_keys - n_new + end, device=query.device)
        first = max(0, n_keys - n_new + at - window + 1)
        last = n_keys - n_new + end
        place = torch.arange(first, last, device=query.device)
        seen = (place <= own[:, None]) & (place > own[:, None] - window)
        out, total = plain(
            query[:, :, at:end],
            key[:, :, first:last],
            value[:, :, first:last],
            scale,
            allowed=seen.unsqueeze(0),
            softcap=softcap,
        )
        outs.append(out)
        sums.append(total)
    return torch.cat(outs, 2), torch.cat(sums, 2)


# --- kernels of PyTorch -----------------------------------------------------------------------------------------------


def _flash_cpu(query: Tensor, key: Tensor, value: Tensor, scale: float, causal: bool) -> tuple[Tensor, Tensor]:
    out, total = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, causal, scale=scale)
    return out, total


def _flash(query: Tensor, key: Tensor, value: Tensor, scale: float, causal: bool) -> tuple[Tensor, Tensor]:
    size = query.shape[-1]
    if size % 8:
        query, key, value = (functional.pad(one, (0, 8 - size % 8)) for one in (query, key, value))
    found = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, causal, False, scale=scale)
    return found[0][..., :size], found[1]


def _efficient(query: Tensor, key: Tensor, value: Tensor, scale: float, causal: bool) -> tuple[Tensor, Tensor]:
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (one.repeat_interleave(groups, 1) for one in (key, value))
    found = torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, None, True, 0.0, causal, scale=scale
    )
    return found[0], found[1][:, :, : query.shape[2]]


def _cudnn(query: Tensor, key: Tensor, value: Tensor, scale: float, causal: bool) -> tuple[Tensor, Tensor]:
    found = torch.ops.aten._scaled_dot_product_cudnn_attention(
        query, key, value, None, True, 0.0, causal, False, scale=scale
    )
    return found[0], found[1].squeeze(-1) if found[1].ndim == 4 else found[1]


_OF_DEVICE: dict[str, tuple[tuple[str, Partial], ...]] = {
    "cpu": (("flash (CPU)", _flash_cpu),),
    "cuda": (("flash", _flash), ("memory-efficient", _efficient)),
}


def choose(
    device: torch.device, dtype: torch.dtype, *, heads: int, kv_heads: int, head_dim: int, only: str | None = None
) -> Kernels:
    """The first kernel that runs here and agrees with plain arithmetic. `only` names one, for comparisons."""
    for name, partial in _OF_DEVICE.get(device.type, ()):
        if only in (None, name) and _agrees(partial, device, dtype, heads, kv_heads, head_dim):
            fused = device.type == "cuda" and partial is _flash and _fuses(device, dtype, heads, kv_heads, head_dim)
            found = Kernels(name + (", fused" if fused else ""), partial, fused)
            if device.type == "cuda" and only is None:
                return _with_large(found, device, dtype, heads, kv_heads, head_dim)
            return found
    return Kernels("plain", plain)


def _with_large(
    kernels: Kernels, device: torch.device, dtype: torch.dtype, heads: int, kv_heads: int, head_dim: int
) -> Kernels:
    """The same with cuDNN's kernel for whole blocks, where that works, is right and is faster."""
    with_it = replace(kernels, name=f"{kernels.name}, cuDNN for blocks", large=_cudnn, block=BLOCK)
    try:  # laid out as they come: queries by token, keys as views into something larger
        query = torch.randn(1, 2 * BLOCK, heads, head_dim, device=device, dtype=dtype).transpose(1, 2)
        block = torch.randn(2, 1, kv_heads, 9 * BLOCK, head_dim, device=device, dtype=dtype)
        key, value = block[:, :, :, : 8 * BLOCK]
        scale = head_dim**-0.5
        wanted, found = (one.causal(query, key, value, scale)[0].float() for one in (kernels, with_it))
        if not float((found - wanted).abs().max()) <= 3e-2:  # NaN is not, either
            return kernels
        seconds = [_seconds(one, query, key, value, scale) for one in (kernels, with_it)]
    except (RuntimeError, NotImplementedError, AttributeError, TypeError):
        return kernels
    return with_it if seconds[1] < seconds[0] else kernels


def _seconds(kernels: Kernels, query: Tensor, key: Tensor, value: Tensor, scale: float) -> float:
    """Of the fastest of a few calls; all shapes were seen before."""
    found = []
    for _ in range(5):
        torch.cuda.synchronize(query.device)
        began = perf_counter()
        kernels.causal(query, key, value, scale)
        torch.cuda.synchronize(query.device)
        found.append(perf_counter() - began)
    return min(found)


def _probe(device: torch.device, dtype: torch.dtype, heads: int, kv_heads: int, head_dim: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((1, heads, 37, head_dim), (1, kv_heads, 256, head_dim), (1, kv_heads, 256, head_dim))
    made = [torch.randn(shape, generator=generator).to(device, dtype) for shape in shapes]
    return [made[0], made[1][:, :, :150], made[2][:, :, :150]]  # views into something larger, as a trunk's are


def _agrees(
    partial: Partial, device: torch.device, dtype: torch.dtype, heads: int, kv_heads: int, head_dim: int
) -> bool:
    query, key, value = _probe(device, dtype, heads, kv_heads, head_dim)
    scale = head_dim**-0.5
    off = 1e-4 if dtype == torch.float32 else 3e-2
    try:
        for causal in (False, True):
            n_keys = query.shape[2] if causal else key.shape[2]
            wanted = plain(query, key[:, :, :n_keys], value[:, :, :n_keys], scale, causal)
            found = partial(query, key[:, :, :n_keys], value[:, :, :n_keys], scale, causal)
            for one, other in zip(found, wanted, strict=True):
                if one.shape != other.shape or not float((one.float() - other.float()).abs().max()) <= off:
                    return False
    except (RuntimeError, NotImplementedError, AttributeError, TypeError):
        return False
    return True


def _fuses(device: torch.device, dtype: torch.dtype, heads: int, kv_heads: int, head_dim: int) -> bool:
    """Whether one call with a lower-right causal bias takes queries that continue a prefix."""
    query, key, value = _probe(device, dtype, heads, kv_heads, head_dim)
    try:
        found, _ = Kernels("", plain, fused=True).causal(query, key, value, head_dim**-0.5)
    except (RuntimeError, NotImplementedError, ImportError, TypeError):
        return False
    wanted, _ = plain(query, key, value, head_dim**-0.5, True)
    return float((found.float() - wanted.float()).abs().max()) <= 3e-2
