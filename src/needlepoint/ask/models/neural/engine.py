"""Prompts answered as one trie: the trunk goes down it depth first, and what branches off shortly is asked in rows.

    trunk ──────────┬──────────────────┬───────────── …      long stretches: in chunks, in place
                    ├─ question 1      ├─ question 3          short ends (`TAIL_TOKENS`): side by side, together with
                    └─ question 2      └─ question 4          their answers, over one reading of the trunk

Every token of the trie is computed once; `forwarded` counts them. Nothing here knows what a prompt says.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from torch import Tensor

from needlepoint.ask.models.neural import attention, trie
from needlepoint.ask.models.neural.choice import Choice
from needlepoint.ask.models.neural.kernels import Kernels
from needlepoint.ask.models.neural.rows import Rows
from needlepoint.ask.models.neural.trie import Node
from needlepoint.ask.models.neural.trunk import Layer, Trunk

TAIL_TOKENS = 256
"""An end this short is asked in a row of its own beside others, not on the trunk."""
_ROW_TOKENS = 4_096
_LOGITS = 1 << 26
"""Most logits held at a time when continuations are scored: 256 MB."""


class StoppedError(Exception):
    """The engine was told to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A prompt as tokens, how to answer it, and continuations whose tokens' log-probabilities are wanted."""

    ids: array[int]
    max_tokens: int = 0
    choice: Choice = field(default_factory=Choice)
    rng: Random = field(default_factory=lambda: Random(0))
    continuations: tuple[Sequence[int], ...] = ()


@dataclass(slots=True)
class Answer:
    """What came of one request. `prefilled` are the prompt tokens that were computed for it, and not before."""

    ids: list[int] = field(default_factory=list)
    finish: str = "length"
    logprobs: list[float] = field(default_factory=list)
    scores: list[list[float]] = field(default_factory=list)
    """For each continuation, the log-probability of each of its tokens after those before it."""
    first_logits: Tensor | None = None
    prefilled: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0


@dataclass(slots=True)
class _Ended:
    """Rows whose prompts are whole: what follows them is next."""

    rows: Rows
    logits: list[Tensor]
    requests: list[int]


class Engine:
    """One model with one trunk. Used from one thread at a time; `stop` may be set from any."""

    def __init__(
        self,
        model: Any,
        layers: Sequence[Layer],
        kernels: Kernels,
        *,
        capacity: int = 0,
        chunk: int = 1_024,
        most_rows: int = 32,
        tail: int = TAIL_TOKENS,
        ends: Sequence[int] = (),
        text_of: Callable[[Sequence[int]], str] | None = None,
        keep_logits: bool = False,
    ) -> None:
        self.model = model
        self.kernels = kernels
        self.trunk = Trunk(layers, kernels, capacity)
        self.chunk = chunk
        self.most_rows = most_rows
        self.tail = tail
        self.ends = frozenset(ends)
        self.stop = threading.Event()
        self.forwarded = 0
        """Prompt tokens computed since the beginning."""
        self._text_of = text_of
        self._keep_logits = keep_logits
        self._device: torch.device = next(model.parameters()).device
        self._has_states = any(layer.kind == "linear" for layer in layers)
        self._requests: Sequence[Request] = ()
        self._answers: list[Answer] = []
        self._owners: dict[int, int] = {}

    def reset(self) -> None:
        """Forget the trunk."""
        self.trunk.truncate(0)

    @torch.inference_mode()
    def answer(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        """The answers, with their requests' numbers, in the order in which they are done."""
        if not requests:
            return
        self._requests = requests
        self._answers = [Answer() for _ in requests]
        root = trie.build([request.ids for request in requests])
        self._owners = _owners(root)
        reaches = trie.reaches(root)
        self.trunk.reserve(max(node.end for node in root.walk()))
        if not self.trunk.goes_back:
            self.reset()
        left: list[tuple[Node, Any, bool]] = [(root, None, False)]
        while left:
            node, snapshot, again = left.pop()
            if snapshot is not None:
                self.trunk.restore(snapshot, node.begin, again=again)
            logits = self._advance(node)
            short = [one for one in node.children.values() if len(one.ids) + reaches[id(one)] <= self.tail]
            yield from self._group(node, short, logits)
            apart = {id(one) for one in short}
            long = [one for one in node.children.values() if id(one) not in apart]
            kept = self.trunk.snapshot() if len(long) > 1 and not self.trunk.goes_back else None
            for place in range(len(long) - 1, -1, -1):
                left.append((long[place], kept if place else None, place < len(long) - 1))

    # --- the trunk ----------------------------------------------------------------------------------------------------

    def _advance(self, node: Node) -> Tensor | None:
        """Bring the trunk to a node's end. The logits there, where a prompt ends."""
        trunk = self.trunk
        have = node.begin
        if trunk.length > have:
            have += trie.shared(trunk.ids[have : node.end], node.ids)
        if have == node.end and node.prompts:
            have -= 1  # its last token once more, for the logits
        if have >= node.end:
            return None
        trunk.truncate(have)
        began = time.perf_counter()
        logits = None
        for at, end in self.kernels.chunks(have, node.end, self.chunk):
            self._check()
            ids = node.ids[at - node.begin : end - node.begin]
            positions = torch.arange(at, at + len(ids), device=self._device).unsqueeze(0)
            logits = self._forward(torch.tensor([ids.tolist()], device=self._device), positions, trunk, 1)
            trunk.ids.extend(ids)
        self._wait()
        owner = self._answers[self._owners[id(node)]]
        owner.prefilled += node.end - have
        owner.prefill_s += time.perf_counter() - began
        self.forwarded += node.end - have
        return None if logits is None else logits[0, -1]

    def _forward(self, ids: Tensor, positions: Tensor, cache: Any, keep: int | Tensor) -> Tensor:
        with attention.over(cache):
            found: Tensor = self.model(
                input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True, logits_to_keep=keep
            ).logits
        return found

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _group(self, node: Node, short: Sequence[Node], logits: Tensor | None) -> Iterator[tuple[int, Answer]]:
        """All prompts that end at a node of the trunk, or shortly after it."""
        here = Rows.at(self.trunk, node.end)
        ended: list[_Ended] = []
        if node.prompts:
            assert logits is not None
            for first in range(0, len(node.prompts), self.most_rows):
                some = node.prompts[first : first + self.most_rows]
                ended.append(_Ended(here.select([0] * len(some)), [logits] * len(some), some))
        frontier: list[tuple[Rows, list[tuple[int, Node]]]] = [(here, [(0, child) for child in short])]
        while frontier:
            rows, edges = frontier.pop()
            for batch in self._batches(edges):
                self._check()
                branch, ends, below = self._extend(rows, batch)
                if ends.requests:
                    ended.append(ends)
                if below:
                    frontier.append((branch, below))
                if sum(len(one.requests) for one in ended) >= self.most_rows:
                    yield from self._finish(ended)
                    ended = []
        yield from self._finish(ended)

    def _batches(self, edges: list[tuple[int, Node]]) -> Iterator[list[tuple[int, Node]]]:
        """Edges that go through the model together. A linear layer's state is right only where no row is padded."""
        by_length: dict[int, list[tuple[int, Node]]] = {}
        for edge in edges:
            by_length.setdefault(len(edge[1].ids) if self._has_states else 0, []).append(edge)
        for some in by_length.values():
            longest = max(len(node.ids) for _, node in some)
            step = max(1, min(self.most_rows, _ROW_TOKENS // longest))
            for at in range(0, len(some), step):
                yield some[at : at + step]

    def _extend(self, rows: Rows, edges: Sequence[tuple[int, Node]]) -> tuple[Rows, _Ended, list[tuple[int, Node]]]:
        """Fork rows and give each its edge's tokens: the new rows, those that ended, and what goes on from which."""
        began = time.perf_counter()
        branch = rows.select([number for number, _ in edges])
        logits = self._step(branch, [node.ids for _, node in edges])
        total = sum(len(node.ids) for _, node in edges)
        self._wait()
        seconds = time.perf_counter() - began
        for _, node in edges:
            owner = self._answers[self._owners[id(node)]]
            owner.prefilled += len(node.ids)
            owner.prefill_s += seconds * len(node.ids) / total
        self.forwarded += total
        whole = [(number, request) for number, (_, node) in enumerate(edges) for request in node.prompts]
        ended = _Ended(
            branch.select([number for number, _ in whole]) if whole else branch,
            [logits[number] for number, _ in whole],
            [request for _, request in whole],
        )
        below = [(number, child) for number, (_, node) in enumerate(edges) for child in node.children.values()]
        return branch, ended, below

    def _step(self, rows: Rows, edges: Sequence[Sequence[int]]) -> list[Tensor]:
        """Give each row its tokens; the logits after each row's last one."""
        lasts = [len(edge) - 1 for edge in edges]
        kept = sorted(set(lasts))
        logits = self._through(rows, edges, torch.tensor(kept, device=self._device) if len(kept) > 1 else 1)
        return [logits[number, kept.index(last)] for number, last in enumerate(lasts)]

    def _through(self, rows: Rows, edges: Sequence[Sequence[int]], keep: int | Tensor) -> Tensor:
        n_new = max(map(len, edges))
        padded = [[*edge, *[0] * (n_new - len(edge))] for edge in edges]
        positions = rows.begin(n_new, self._device)
        logits = self._forward(torch.tensor(padded, device=self._device), positions, rows, keep)
        rows.end(list(map(len, edges)))
        return logits

    # --- what follows a whole prompt ----------------------------------------------------------------------------------

    def _finish(self, ended: Sequence[_Ended]) -> Iterator[tuple[int, Answer]]:
        """Score continuations, then answer, for all of them at once."""
        if not ended:
            return
        rows = Rows.together([one.rows for one in ended])
        logits = [row for one in ended for row in one.logits]
        numbers = [number for one in ended for number in one.requests]
        for at, number in enumerate(numbers):
            if self._keep_logits:
                self._answers[number].first_logits = logits[at].clone()
            self._score(rows, at, number, logits[at])
        yield from self._decode(rows, logits, numbers)

    def _score(self, rows: Rows, row: int, number: int, logits: Tensor) -> None:
        wanted = self._requests[number].continuations
        if not wanted:
            return
        answer = self._answers[number]
        began = time.perf_counter()
        first = torch.log_softmax(logits.float(), -1)
        step = max(1, min(self.most_rows, _LOGITS // (len(first) * max(map(len, wanted)))))
        for at in range(0, len(wanted), step):
            self._check()
            some = wanted[at : at + step]
            edges = [list(one[:-1]) for one in some]
            later: Tensor | None = None
            if any(edges):  # a filler stands for no token; what it says is not read
                later = self._through(rows.select([row] * len(some)), [edge or [0] for edge in edges], 0)
            for place, one in enumerate(some):
                scores = [float(first[one[0]])]
                if later is not None and len(one) > 1:
                    after = torch.log_softmax(later[place, : len(one) - 1].float(), -1)
                    chosen = torch.tensor(list(one[1:]), device=after.device)
                    scores += after.gather(1, chosen[:, None])[:, 0].tolist()
                answer.scores.append(scores)
        answer.decode_s += time.perf_counter() - began

    def _decode(self, rows: Rows, logits: Sequence[Tensor], numbers: list[int]) -> Iterator[tuple[int, Answer]]:
        """Answer token by token; who has finished leaves."""
        current = torch.stack(list(logits))
        for number in [one for one in numbers if self._requests[one].max_tokens < 1]:
            yield number, self._answers[number]
        alive = [at for at, number in enumerate(numbers) if self._requests[number].max_tokens > 0]
        rows, current, numbers = self._left(rows, current, numbers, alive)
        while numbers:
            self._check()
            began = time.perf_counter()
            tokens = self._choose(current, numbers)
            alive = []
            done: list[int] = []
            for at, (number, token) in enumerate(zip(numbers, tokens, strict=True)):
                (done if self._ended(number, token) else alive).append(at)
            finished = [numbers[at] for at in done]
            if alive:
                rows, current, numbers = self._left(rows, current, numbers, alive)
                current = torch.stack(self._step(rows, [[tokens[at]] for at in alive]))
            else:
                numbers = []
            self._wait()
            share_s = (time.perf_counter() - began) / (len(alive) + len(done))
            for number in (*numbers, *finished):
                self._answers[number].decode_s += share_s
            for number in finished:
                yield number, self._answers[number]

    def _left(
        self, rows: Rows, current: Tensor, numbers: list[int], alive: list[int]
    ) -> tuple[Rows, Tensor, list[int]]:
        if len(alive) == len(numbers) or not alive:
            return rows, current, [numbers[at] for at in alive]
        return rows.select(alive), current[alive], [numbers[at] for at in alive]

    def _choose(self, logits: Tensor, numbers: Sequence[int]) -> list[int]:
        requests = [self._requests[number] for number in numbers]
        if all(request.choice.greedy for request in requests):
            tokens = [int(token) for token in logits.argmax(-1).tolist()]
        else:
            rows = logits.cpu()
            tokens = [request.choice.draw(rows[at], request.rng) for at, request in enumerate(requests)]
        if any(request.choice.logprobs for request in requests):
            told = torch.log_softmax(logits.float(), -1)
            chosen = told.gather(1, torch.tensor(tokens, device=logits.device)[:, None])[:, 0].tolist()
            for number, logprob in zip(numbers, chosen, strict=True):
                self._answers[number].logprobs.append(logprob)
        return tokens

    def _ended(self, number: int, token: int) -> bool:
        """Note an answer's next token; whether it was the last."""
        answer, request = self._answers[number], self._requests[number]
        answer.ids.append(token)
        if token in self.ends:
            answer.finish = "stop"
        elif request.choice.stop and self._text_of is not None:
            text = self._text_of(answer.ids)
            if any(stop in text for stop in request.choice.stop):
                answer.finish = "stop"
        return answer.finish == "stop" or len(answer.ids) >= request.max_tokens

    def _check(self) -> None:
        if self.stop.is_set():
            raise StoppedError

    def _wait(self) -> None:
        """Until the device has done what it was given: times are then those of the work."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def _owners(root: Node) -> dict[int, int]:
    """For each node, by `id()`, the first of the prompts that need it: it pays for its tokens."""
    found: dict[int, int] = {}
    for node in reversed(list(root.walk())):
        below = (found[id(child)] for child in node.children.values())
        found[id(node)] = min((*node.prompts, *below))
    return found
