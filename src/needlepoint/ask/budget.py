"""What asking costs: prices, a hard stop at a sum of money or tokens, and the forecast of a dry run.

Prices are per million tokens, in whatever currency they were given in. What is not known is None, never 0.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import InputError, UsageError, did_you_mean
from ..types import Usage

_MILLION = 1e6
UNPROVEN = 1.5
"""How much more a server may count than another tokenizer does: seen up to 1.6 times, in Chinese."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Per million tokens. Without a price of its own, cached and cache-written input costs what input costs."""

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise UsageError(f"The price {field.name} must be a number from 0 up, not {value}.")

    def cost(self, usage: Usage) -> float | None:
        """What a reply cost; None where the server didn't count."""
        if usage.prompt is None or usage.completion is None:
            return None
        cached = min(usage.cached or 0, usage.prompt)
        written = min(usage.cache_written or 0, usage.prompt - cached)
        cached_price = self.input if self.cached_input is None else self.cached_input
        written_price = self.input if self.cache_write is None else self.cache_write
        plain = usage.prompt - cached - written
        spent = plain * self.input + cached * cached_price + written * written_price + usage.completion * self.output
        return spent / _MILLION

    def worst(self, n_prompt: float, n_completion: float) -> float:
        """The most that a request can cost: nothing cached, everything written to the cache, the answer full."""
        return (n_prompt * max(self.input, self.cache_write or 0.0) + n_completion * self.output) / _MILLION


def find_prices(path: str | Path, model: str) -> Prices | None:
    """`read_prices`, or None where the file says nothing of `model`."""
    table = _read_table(Path(path))
    return _prices(table[model], f"{path}, {model}") if model in table else None


def read_prices(path: str | Path, model: str) -> Prices:
    """The prices of `model` in a TOML or JSON file: one table a model name, with the fields of `Prices`.

    >>> # ["gpt-x-mini"]
    >>> # input = 0.15
    >>> # output = 0.60
    >>> # cached_input = 0.075
    """
    table = _read_table(Path(path))
    if model not in table:
        raise InputError(f"The price file {path} has no prices for {model!r}.{did_you_mean(model, map(str, table))}")
    return _prices(table[model], f"{path}, {model}")


def _read_table(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
        table: Any = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"The price file {path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"The price file {path} is not valid TOML or JSON: {error}.") from None
    if not isinstance(table, dict):
        raise InputError(f"The price file {path} must hold one table a model name.")
    return table


def _prices(table: object, where: str) -> Prices:
    known = [field.name for field in fields(Prices)]
    if not isinstance(table, Mapping):
        raise InputError(f"{where}: prices look like {{input = 0.15, output = 0.60}}.")
    for name, value in table.items():
        if name not in known:
            raise InputError(
                f"{where}: unknown price {name!r}.{did_you_mean(str(name), known)} Known: {', '.join(known)}."
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{where}: the price {name} must be a number, per million tokens, not {value!r}.")
    for name in ("input", "output"):
        if name not in table:
            raise InputError(f"{where}: the price {name} is missing.")
    return Prices(**table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a request may take at most, held back while it is in flight."""

    n_prompt: int
    tokens: int
    cost: float


class Budget:
    """A hard end: no request starts if its worst case could exceed what is left, given those in flight.

    The worst case rests on our count of the prompt, times `doubt`: 1 for counts that are proven to be the server's.
    Where the server counts still more, later claims grow by the largest ratio seen. Attempts whose answer got lost
    (timeouts, cut connections) may have been billed: they count in full. Without `max_cost` and `max_tokens` it only
    counts. `cost` and `tokens` are what was spent before (on resume).
    """

    def __init__(
        self,
        *,
        prices: Prices | None = None,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        cost: float = 0.0,
        tokens: int = 0,
        doubt: float = 1.0,
    ) -> None:
        if max_cost is not None and prices is None:
            raise UsageError(
                "--max-cost needs to know what tokens cost. Give --price-in and --price-out, or a file with --prices."
            )
        self.prices = prices
        self.max_cost = max_cost
        self.max_tokens = max_tokens
        self.tokens = tokens
        self.lost_tokens = 0
        """Of `tokens`, those of attempts whose answer got lost: the most that they can have been."""
        self._cost = cost
        self._lost_cost = 0.0
        self._held_tokens = 0
        self._held_cost = 0.0
        self._ratio = doubt

    @property
    def cost(self) -> float | None:
        """What was spent at most; None without prices."""
        return None if self.prices is None else self._cost

    @property
    def held(self) -> bool:
        """Whether anything is in flight."""
        return self._held_tokens > 0

    def claim(self, n_prompt: int, max_tokens: int) -> Claim:
        n = math.ceil(n_prompt * self._ratio)
        cost = 0.0 if self.prices is None else self.prices.worst(n, max_tokens)
        return Claim(n_prompt=n_prompt, tokens=n + max_tokens, cost=cost)

    def fits(self, claim: Claim) -> bool:
        """Whether it can start now. If not: later, perhaps, when those in flight turn out cheaper than feared."""
        if self.max_tokens is not None and self.tokens + self._held_tokens + claim.tokens > self.max_tokens:
            return False
        return self.max_cost is None or self._cost + self._held_cost + claim.cost <= self.max_cost

    def hold(self, claim: Claim) -> None:
        self._held_tokens += claim.tokens
        self._held_cost += claim.cost

    def release(self, claim: Claim) -> None:
        """It cost nothing: refused, or never sent."""
        self._held_tokens -= claim.tokens
        self._held_cost = max(0.0, self._held_cost - claim.cost)

    def spend(self, claim: Claim, usage: Usage) -> None:
        """It was answered. Where the server doesn't say what it took, the worst case counts."""
        self.release(claim)
        if usage.prompt is None or usage.completion is None:
            self._add(claim)
            return
        if claim.n_prompt > 0:
            self._ratio = max(self._ratio, usage.prompt / claim.n_prompt)
        self.tokens += usage.prompt + usage.completion
        if self.prices is not None:
            self._cost += self.prices.cost(usage) or 0.0

    def lose(self, claim: Claim) -> None:
        """Its answer got lost: it may have been billed."""
        self.release(claim)
        self._add(claim)
        self.lost_tokens += claim.tokens
        self._lost_cost += claim.cost

    def _add(self, claim: Claim) -> None:
        self.tokens += claim.tokens
        self._cost += claim.cost

    def why(self, claim: Claim) -> str:
        """Why `claim` doesn't fit, and how to go on."""
        if self.max_tokens is not None and self.tokens + self._held_tokens + claim.tokens > self.max_tokens:
            lost = f" ({self.lost_tokens:,} of them for answers that got lost)" if self.lost_tokens else ""
            return (
                f"--max-tokens-total: {self.tokens:,} of {self.max_tokens:,} tokens spent{lost}, and the next request "
                f"could take {claim.tokens:,}; give a higher limit to go on."
            )
        assert self.max_cost is not None
        lost = f" ({money(self._lost_cost)} of it for answers that got lost)" if self._lost_cost else ""
        return (
            f"--max-cost: {money(self._cost)} of {money(self.max_cost)} spent{lost}, and the next request could cost "
            f"{money(claim.cost)}; give a higher limit to go on."
        )


def money(amount: float) -> str:
    """Cents where they are enough, more digits where the amount is small."""
    return f"{amount:.2f}" if amount >= 1 or amount == 0 else f"{amount:.4f}" if amount >= 0.001 else f"{amount:.2g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast one request is worked on. The defaults are an assumption about a hosted model, and labelled so."""

    prefill_per_s: float = 5_000.0
    decode_per_s: float = 50.0
    request_s: float = 0.5


HOSTED_SPEED = Speed()
LOCAL_SPEEDS: Mapping[str, Speed] = {"smollm2": Speed(prefill_per_s=200.0, decode_per_s=30.0, request_s=0.1)}
"""Seen on two cores, nothing reused. Of other models on this machine nothing is known before they were asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run would take. `uncounted` prompts have no token count: sums that need it are then None."""

    requests: int
    uncounted: int
    prompt_tokens: int | None
    completion_tokens_typical: int
    completion_tokens_worst: int
    cost_typical: float | None
    cost_worst: float | None
    seconds: float | None
    speed: Speed | None


def estimate(
    counts: Iterable[int | None],
    *,
    max_tokens: int,
    prices: Prices | None = None,
    speed: Speed | None = HOSTED_SPEED,
    concurrency: int = 8,
    rpm: float | None = None,
    tpm: float | None = None,
    computed_tokens: int | None = None,
    typical_tokens: int = 40,
) -> Estimate:
    """The forecast for prompts of these token counts. Asks nobody. Worst: no retries, nothing cached, answers full.

    Without a `speed` the time is not known. `computed_tokens` are those of the prompts that a cache surely won't save.
    """
    typical = min(typical_tokens, max_tokens)
    requests = uncounted = total = 0
    for count in counts:
        requests += 1
        uncounted += count is None
        total += count or 0
    known = uncounted == 0
    seconds = None
    if known and speed is not None:
        busy = requests * (speed.request_s + typical / speed.decode_per_s)
        busy += (total if computed_tokens is None else computed_tokens) / speed.prefill_per_s
        seconds = busy / max(1, min(concurrency, requests))
        if rpm is not None:
            seconds = max(seconds, 60.0 * requests / rpm)
        if tpm is not None:
            seconds = max(seconds, 60.0 * (total + requests * max_tokens) / tpm)
    usage = Usage(prompt=total, completion=requests * typical)
    return Estimate(
        requests=requests,
        uncounted=uncounted,
        prompt_tokens=total if known else None,
        completion_tokens_typical=requests * typical,
        completion_tokens_worst=requests * max_tokens,
        cost_typical=prices.cost(usage) if prices and known else None,
        cost_worst=prices.worst(total, requests * max_tokens) if prices and known else None,
        seconds=seconds,
        speed=speed,
    )
