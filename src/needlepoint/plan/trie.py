"""Which tokens prompts have in common: a trie of their segments.

Built from `Segment`s alone, so no text is held: a node is a run of tokens that some prompts share, and its children
are the ways in which they go on. Knows nothing of caches, of orders and of how prompts are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..types import Segment


class Branch(Protocol):
    """A prompt as the trie sees it."""

    @property
    def segments(self) -> Sequence[Segment]: ...
    @property
    def fork(self) -> int: ...


@dataclass(slots=True, eq=False)
class Node:
    """Tokens `start..end` of every prompt below. `items` end here; `fork` and `length` are (least, most) below."""

    parent: Node | None
    start: int
    parts: list[Segment] = field(default_factory=list)
    children: dict[tuple[str, int], Node] = field(default_factory=dict)
    items: list[int] = field(default_factory=list)
    end: int = 0
    fork: tuple[int, int] = (0, 0)
    length: tuple[int, int] = (0, 0)
    first: int = 0

    def path(self) -> Iterator[Node]:
        """This node and those above it, upwards."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


class Trie:
    """The trie of some prompts, in the order given. `leaves[i]` is where prompt i ends."""

    def __init__(self, prompts: Sequence[Branch]) -> None:
        self.root = Node(parent=None, start=0)
        self.forks = [prompt.fork for prompt in prompts]
        self.leaves = [self._add(list(prompt.segments), item) for item, prompt in enumerate(prompts)]
        self._span()

    @property
    def n_tokens(self) -> int:
        """Tokens of the trie: no scheme that computes each prompt exactly prefills fewer."""
        return sum(node.end - node.start for node in self.nodes())

    @property
    def attention(self) -> int:
        """Query-key pairs that computing each of those tokens once takes: a token at place k attends to k + 1."""
        return sum(pairs(node.end) - pairs(node.start) for node in self.nodes())

    def nodes(self) -> Iterator[Node]:
        """Every node, parents before children."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children.values())

    def ascending(self) -> list[int]:
        """The prompts, depth first: whoever leaves the common way first is asked first, short before long."""
        found: list[int] = []
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            found += node.items
            below = sorted(node.children.values(), key=lambda one: (one.fork[0], one.length[0], one.first))
            waiting.extend(reversed(below))
        return found

    def paths(self) -> list[list[int]]:
        """The prompts in as few rounds as prefixes allow: each round's prompts share nothing but what earlier did.

        Round 0 goes down the longest common way to its end; every branch off a path of one round begins one of the
        next. Prompts that are equal share all: the second of them comes a round later.
        """
        rounds: list[list[int]] = []
        waiting = [(self.root, 0)]
        while waiting:
            node, at = waiting.pop()
            while True:
                repeats = node.items[1:] if node.items else []
                ends_here = bool(node.items) and not node.children
                for item in repeats if ends_here else node.items:
                    _put(rounds, at + 1, item)
                if ends_here:
                    _put(rounds, at, node.items[0])
                if not node.children:
                    break
                below = sorted(node.children.values(), key=lambda one: (one.fork[1], one.length[1], -one.first))
                waiting.extend((branch, at + 1) for branch in below[:-1])
                node = below[-1]
        return [sorted(round_) for round_ in rounds]

    def _add(self, parts: list[Segment], item: int) -> Node:
        node, at = self.root, 0
        while at < len(parts):
            child = node.children.get(_key(parts[at]))
            if child is None:
                child = Node(parent=node, start=node.end, parts=parts[at:])
                child.end = child.start + sum(part.n_tokens for part in child.parts)
                node.children[_key(parts[at])] = child
                node = child
                break
            at, same, extra = _common(child.parts, parts, at)
            node = child if same == len(child.parts) and not extra else _split(child, same, extra)
        node.items.append(item)
        return node

    def _span(self) -> None:
        """Note for each node the least and most that is below it."""
        for node in reversed(list(self.nodes())):
            forks = [self.forks[item] for item in node.items]
            lengths = [node.end] if node.items else []
            firsts = node.items[:1]
            for child in node.children.values():
                forks += child.fork
                lengths += child.length
                firsts.append(child.first)
            node.fork = min(forks, default=0), max(forks, default=0)
            node.length = min(lengths, default=0), max(lengths, default=0)
            node.first = min(firsts, default=0)


def pairs(n_tokens: int) -> int:
    """Query-key pairs of the first so many tokens."""
    return n_tokens * (n_tokens + 1) // 2


def _put(rounds: list[list[int]], at: int, item: int) -> None:
    while len(rounds) <= at:
        rounds.append([])
    rounds[at].append(item)


def _key(part: Segment) -> tuple[str, int]:
    return part.source, part.start


def _rest(part: Segment, n_tokens: int) -> Segment:
    return Segment(part.source, part.n_tokens - n_tokens, part.start + n_tokens)


def _common(edge: Sequence[Segment], parts: list[Segment], at: int) -> tuple[int, int, int]:
    """How far `parts` from `at` on goes along `edge`: (at behind it, whole parts of the edge, tokens of the next).

    What is left of a part that goes farther than the edge's stays in `parts`.
    """
    same = 0
    while same < len(edge) and at < len(parts):
        mine, other = edge[same], parts[at]
        if _key(mine) != _key(other):
            break
        if other.n_tokens < mine.n_tokens:
            return at + 1, same, other.n_tokens
        same += 1
        if other.n_tokens == mine.n_tokens:
            at += 1
        else:
            parts[at] = _rest(other, mine.n_tokens)
    return at, same, 0


def _split(node: Node, same: int, extra: int) -> Node:
    """Cut a node's tokens behind `same` parts and `extra` tokens; returns the new upper node."""
    kept, rest = node.parts[:same], node.parts[same:]
    if extra:
        kept.append(Segment(rest[0].source, extra, rest[0].start))
        rest[0] = _rest(rest[0], extra)
    parent = node.parent
    assert parent is not None
    upper = Node(parent=parent, start=node.start, parts=kept)
    upper.end = upper.start + sum(part.n_tokens for part in kept)
    parent.children[_key(kept[0])] = upper
    upper.children[_key(rest[0])] = node
    node.parent, node.start, node.parts = upper, upper.end, rest
    return upper
