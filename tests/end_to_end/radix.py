"""A server's prefix cache as vLLM has it: whole blocks of tokens, the longest unused forgotten first.

What a request computes can be shared only when it has ended. A request ends when `places` are in flight, or when no
other has come for a moment: whoever sends many at a time has many at a time in flight.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from needlepoint.types import Endpoint

from .loopback import finds_the_needle

_MOMENT_S = 0.05


class Radix:
    def __init__(self, endpoint: Endpoint, *, capacity_tokens: int, block: int = 16, places: int = 16) -> None:
        self.computed = 0
        self.most_in_flight = 0
        self._endpoint = endpoint
        self._block = block
        self._places = places
        self._capacity = capacity_tokens // block
        self._kept: OrderedDict[int, None] = OrderedDict()
        self._told = threading.local()
        self._changed = threading.Condition()
        self._in_flight = 0
        self._arrivals = 0

    def answer(self, body: dict[str, Any]) -> str:
        assert self._endpoint.render is not None
        messages = [{"role": message["role"], "content": message["content"]} for message in body["messages"]]
        ids = self._endpoint.tokenizer.encode(self._endpoint.render(messages), special=True).ids  # type: ignore[arg-type]
        chain, found = [], 0
        for at in range(0, len(ids) - self._block + 1, self._block):
            found = hash((found, ids[at : at + self._block].tobytes()))
            chain.append(found)
        with self._changed:
            hits = 0
            while hits < len(chain) and chain[hits] in self._kept and (hits + 1) * self._block < len(ids):
                hits += 1
            self._touch(chain[:hits])
            self._in_flight += 1
            self._arrivals += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            self._changed.notify_all()
            while self._in_flight < self._places:
                before = self._arrivals
                if not self._changed.wait(_MOMENT_S) and before == self._arrivals:
                    break
            self._in_flight -= 1
            self._touch(chain)
        self._told.n_tokens, self._told.cached = len(ids), hits * self._block
        with self._changed:
            self.computed += len(ids) - hits * self._block
        return finds_the_needle(body)

    def count(self, body: dict[str, Any]) -> int:
        return int(self._told.n_tokens)

    def cached(self, body: dict[str, Any]) -> int:
        return int(self._told.cached)

    def _touch(self, chain: list[int]) -> None:
        for one in reversed(chain):  # the beginning last: it is kept longest
            self._kept[one] = None
            self._kept.move_to_end(one)
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
