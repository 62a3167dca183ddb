"""The next token of an answer: the likeliest, or drawn as OpenAI's options say. The same seed gives the same draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor

from needlepoint.errors import UsageError

_KNOWN = ("temperature", "top_p", "top_k", "seed", "stop", "logprobs", "top_logprobs")
_FOREIGN = ("n", "stream", "stream_options", "chat_template_kwargs", "extra_body", "do_sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How tokens are chosen. Greedy without a temperature."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    stop: tuple[str, ...] = ()
    logprobs: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Choice:
        """From a request's options; UsageError for what this engine doesn't do."""
        given = {name: value for name, value in options.items() if value is not None}
        if isinstance(extra := given.get("extra_body"), Mapping):
            given |= {name: value for name, value in extra.items() if value is not None}
        if given.get("n", 1) != 1:
            raise UsageError("n must be 1: repeats are asked for with --repeats.")
        if given.get("do_sample") is False:
            given["temperature"] = 0
        if unknown := [name for name in given if name not in (*_KNOWN, *_FOREIGN)]:
            raise UsageError(
                f"The transformers engine does not know the generation setting {unknown[0]!r}. Known: "
                f"{', '.join(_KNOWN)}."
            )
        stop = given.get("stop", ())
        try:
            return cls(
                temperature=_within("temperature", given.get("temperature", 0.0), 0.0, 100.0),
                top_p=_within("top_p", given.get("top_p", 1.0), 0.0, 1.0),
                top_k=int(_within("top_k", max(0, given.get("top_k", 0)), 0, 1 << 30)),
                seed=int(given.get("seed", 0)),
                stop=(stop,) if isinstance(stop, str) else tuple(map(str, stop)),
                logprobs=bool(given.get("logprobs", False)) or bool(given.get("top_logprobs")),
            )
        except (TypeError, ValueError) as error:
            raise UsageError(f"The generation settings are not usable: {error}.") from None

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    def draw(self, logits: Tensor, rng: Random) -> int:
        """One token from one row of logits."""
        if self.greedy:
            return int(logits.argmax())
        ordered, tokens = torch.sort(logits.float() / self.temperature, descending=True)
        if self.top_k:
            ordered, tokens = ordered[: self.top_k], tokens[: self.top_k]
        shares = torch.softmax(ordered, 0).cumsum(0)
        kept = max(1, int((shares < self.top_p).sum()) + 1) if self.top_p < 1.0 else len(shares)
        kept = min(kept, len(shares))
        at = rng.random() * float(shares[kept - 1])
        return int(tokens[min(int((shares[:kept] <= at).sum()), kept - 1)])


def _within(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    return float(value)
