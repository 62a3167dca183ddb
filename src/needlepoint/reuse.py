"""Settings of reuse: in which order prompts are asked, and whether what they share is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, get_args

from pydantic import BaseModel

from .ask.models.caching import Hints
from .errors import UsageError
from .fields import Truth, one_of, whole
from .types import Endpoint

AskingOrder = Literal["prefix", "as-given"]


class ReuseFields(BaseModel):
    """What of a run's settings concerns reuse; nothing here changes a prompt."""

    order: Annotated[AskingOrder, one_of("order", get_args(AskingOrder))] = "prefix"
    no_reuse: Truth = False
    self_check: Annotated[int, whole(1, 10_000)] | None = None
    cache_hints: Annotated[Hints, one_of("kind of cache hints", get_args(Hints))] = "auto"
    cache_tokens: Annotated[int, whole(1, 10**12)] | None = None

    def reusing(self) -> dict[str, object]:
        """Those that may change when a run goes on, as plain values."""
        found = {
            "order": self.order if self.order != "prefix" else None,
            "no_reuse": self.no_reuse or None,
            "cache_hints": self.cache_hints if self.cache_hints != "auto" else None,
            "cache_tokens": self.cache_tokens,
        }
        return {name: value for name, value in found.items() if value is not None}

    def check_reuse(self, endpoint: Endpoint, notify: Callable[[str], None] | None = None) -> None:
        """Raise where the model cannot do what was asked for."""
        for flag, wanted in (("--no-reuse", self.no_reuse), ("--self-check", self.self_check is not None)):
            if wanted and "uncached" not in endpoint.capabilities:
                raise UsageError(
                    f"{flag} needs a model that computes a prompt whole when it is told to: smollm2, a GGUF file, vLLM "
                    "or llama.cpp's server. For others, --cache bust makes prompts that share nothing."
                )
        if self.no_reuse and self.self_check is not None:
            raise UsageError("--self-check compares answers with and without reuse: leave out --no-reuse.")
        if self.cache_hints == "control" and notify is not None and endpoint.cache != "points":
            notify("--cache-hints control means nothing to this model.")
