"""Some answers asked for again without reuse: do they say the same as those that reused a prefix?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from .turns import Asked
from .types import Model, Reply, Sampling, Trial


class SelfCheck:
    """Keeps `count` prompts of those that it `sees`, drawn by `seed`, and asks them again."""

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        self._rng = Random(f"{seed}:self-check")
        self._seen = 0
        self._kept: list[Asked] = []

    def sees(self, prompt: Asked) -> None:
        self._seen += 1
        if len(self._kept) < self._count:
            self._kept.append(prompt)
        elif (at := self._rng.randrange(self._seen)) < self._count:
            self._kept[at] = prompt

    async def ask(
        self, model: Model, sampling: Sampling, before: Callable[[Asked], tuple[Trial, Reply] | None]
    ) -> dict[str, Any]:
        """What `report.json` says of it. `before` is the reply that the run has; without one there is nothing to check.

        A difference is no proof of a fault: kernels round in another way where few tokens are computed at a time
        (`new_tokens`). Many differences, or differences where `new_tokens` is large, are.
        """
        asked = same = 0
        differing: list[dict[str, Any]] = []
        for prompt in self._kept:
            found = before(prompt)
            if found is None or found[1].error is not None:
                continue
            trial, earlier = found
            replies = [reply async for reply in model.ask([prompt], replace(sampling, reuse=False))]
            if replies[0].error is not None:
                continue
            asked += 1
            if replies[0].text == earlier.text:
                same += 1
                continue
            differing.append(
                {
                    "trial": trial.id,
                    "subset": trial.subset,
                    "context_length": trial.context_length,
                    "depth_percent": trial.depth_percent,
                    "new_tokens": earlier.prefilled_tokens,
                    "reused": earlier.text,
                    "whole": replies[0].text,
                }
            )
        return {"asked": asked, "same": same, "differing": differing}
