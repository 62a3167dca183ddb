"""What is known of each cell of a grid, for whatever draws it. Pure; knows nothing of screens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..types import VALID_OUTCOMES


class Located(Protocol):
    """Anything that has a place in a grid: a `Trial` or a `Cell`."""

    @property
    def subset(self) -> str: ...
    @property
    def context_length(self) -> int: ...
    @property
    def depth_percent(self) -> float: ...


@dataclass(slots=True)
class CellState:
    """What is known of one cell so far. `total` is the sum of the valid scores."""

    planned: int = 1
    valid: int = 0
    total: float = 0.0
    invalid: dict[str, int] = field(default_factory=dict)
    in_flight: int = 0

    def add(self, outcome: str, score: float | None) -> None:
        if outcome in VALID_OUTCOMES and score is not None:
            self.valid += 1
            self.total += score
        else:
            self.invalid[outcome] = self.invalid.get(outcome, 0) + 1

    @property
    def done(self) -> int:
        return self.valid + sum(self.invalid.values())

    @property
    def mean(self) -> float | None:
        return self.total / self.valid if self.valid else None


@dataclass(slots=True, kw_only=True)
class GridState:
    """One subset's cells by (length, depth); a pair that is missing is not in the plan."""

    name: str
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    cells: dict[tuple[int, float], CellState]

    def all(self) -> CellState:
        return merged(self.cells.values())


def grids_of(trials: Iterable[Located]) -> list[GridState]:
    """Empty grids for these trials, one per subset in the order of appearance."""
    planned: dict[str, dict[tuple[int, float], CellState]] = {}
    for trial in trials:
        cells = planned.setdefault(trial.subset, {})
        place = (trial.context_length, trial.depth_percent)
        if place in cells:
            cells[place].planned += 1
        else:
            cells[place] = CellState()
    return [_grid(name, cells) for name, cells in planned.items()]


def grids_of_report(report: Mapping[str, Any]) -> list[GridState]:
    """Grids of a `report.json`; cells that lack a length or a depth cannot be drawn and are left out."""
    grids = []
    for subset in report.get("subsets") or ():
        cells = {
            (row["context_length"], row["depth_percent"]): _cell(row)
            for row in subset.get("cells") or ()
            if row.get("context_length") is not None and row.get("depth_percent") is not None
        }
        if cells:
            grids.append(_grid(str(subset.get("name") or "all"), cells))
    return grids


def _cell(row: Mapping[str, Any]) -> CellState:
    """Imported results may lack counts: a score then stands for one answer."""
    score, n, valid = (row.get(key) for key in ("score", "n", "valid"))
    invalid = {name: n for name, n in (row.get("outcomes") or {}).items() if name not in VALID_OUTCOMES and n}
    if score is None:
        valid = 0
    elif valid is None:
        valid = 1
    lost = sum(invalid.values())
    if n is None:
        n = valid + lost
    if n > valid and not lost:
        invalid = {"invalid": n - valid}
    return CellState(planned=n, valid=valid, total=(score or 0.0) * valid, invalid=invalid)


def _grid(name: str, cells: dict[tuple[int, float], CellState]) -> GridState:
    lengths = tuple(sorted({length for length, _ in cells}))
    return GridState(name=name, lengths=lengths, depths=tuple(sorted({depth for _, depth in cells})), cells=cells)


def include(grids: list[GridState], trial: Located) -> CellState:
    """A cell for a trial that was not planned (adaptive search finds its next ones on the way)."""
    grid = next((grid for grid in grids if grid.name == trial.subset), None)
    if grid is None:
        grid = GridState(name=trial.subset, lengths=(), depths=(), cells={})
        grids.append(grid)
    cell = grid.cells[trial.context_length, trial.depth_percent] = CellState()
    grid.lengths = tuple(sorted({*grid.lengths, trial.context_length}))
    grid.depths = tuple(sorted({*grid.depths, trial.depth_percent}))
    return cell


def merged(cells: Iterable[CellState]) -> CellState:
    """Several cells as one."""
    merged = CellState(planned=0)
    for cell in cells:
        merged.planned += cell.planned
        merged.valid += cell.valid
        merged.total += cell.total
        merged.in_flight += cell.in_flight
        for outcome, n in cell.invalid.items():
            merged.invalid[outcome] = merged.invalid.get(outcome, 0) + n
    return merged
