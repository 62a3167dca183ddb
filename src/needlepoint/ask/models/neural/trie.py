"""Prompts by their shared beginnings: a radix trie of token ids. Its size is what no exact scheme can go below."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Node:
    """A stretch of tokens that whatever follows shares. Children stand in the order of their first prompt."""

    ids: array[int]
    end: int
    """Tokens from the root to this node's end."""
    children: dict[int, Node] = field(default_factory=dict)
    prompts: list[int] = field(default_factory=list)
    """Those that end here."""

    @property
    def begin(self) -> int:
        return self.end - len(self.ids)

    def walk(self) -> Iterator[Node]:
        """This node and all below it, depth first."""
        left = [self]
        while left:
            node = left.pop()
            yield node
            left.extend(reversed(node.children.values()))


def build(prompts: Sequence[Sequence[int]]) -> Node:
    """The trie of some prompts."""
    root = Node(array("I"), 0)
    for number, prompt in enumerate(prompts):
        _insert(root, prompt if isinstance(prompt, array) else array("I", prompt), number)
    return root


def size(root: Node) -> int:
    """Tokens in the trie: what has to be computed at least."""
    return sum(len(node.ids) for node in root.walk())


def reaches(root: Node) -> dict[int, int]:
    """Tokens from each node's end to the farthest end of a prompt below it, by the node's `id()`."""
    found: dict[int, int] = {}
    for node in reversed(list(root.walk())):
        found[id(node)] = max((len(child.ids) + found[id(child)] for child in node.children.values()), default=0)
    return found


def shared(one: array[int], other: array[int]) -> int:
    """How many tokens two sequences begin with in common."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:  # in halves: each step compares memory
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _insert(root: Node, prompt: array[int], number: int) -> None:
    node, at = root, 0
    while at < len(prompt):
        child = node.children.get(prompt[at])
        if child is None:
            node.children[prompt[at]] = Node(prompt[at:], len(prompt), prompts=[number])
            return
        common = shared(child.ids, prompt[at : at + len(child.ids)])
        if common < len(child.ids):
            upper = Node(child.ids[:common], child.begin + common)
            child.ids = child.ids[common:]
            upper.children[child.ids[0]] = child
            node.children[upper.ids[0]] = upper
            child = upper
        node, at = child, at + common
    node.prompts.append(number)
