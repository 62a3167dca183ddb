"""Prompts that are drawn one at a time: a plan for a search, which doesn't know beforehand what it will ask.

Any replicate may be asked for, at any length and depth, on the grid or not. Each prompt is made by itself, with a
haystack as long as itself, so what else was asked doesn't matter to its bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..types import Cell
from .prompt import Prompt
from .task import Plan


class Draws(Plan):
    """A plan's prompts by (subset, length, depth, replicate). Iterating gives the grid's, as of every plan."""

    def among(self, places: Collection[tuple[str, int, float, int]]) -> Iterator[Prompt]:
        """These prompts, in the order of their replicates."""
        corpora = {corpus.subset: corpus for corpus in self.corpora}
        for subset, length, depth, replicate in sorted(places, key=lambda place: (place[3], *place[:3])):
            if subset in corpora:
                cell = Cell(subset=subset, context_length=length, depth_percent=depth)
                yield from self._alone(corpora[subset], cell, replicate)
