"""The heatmap in characters: depth down, length across, each cell a block by its mean score.

A pure function of values: `GridState`s, a width, a `Look`. It knows nothing of terminals that move, of files and of
runs. A cell is a block of the scale (answered), a hatch (answered, but no answer is valid), a mark (being asked), a dim
dot (to be asked) or nothing (not in the plan). A hatch on a block's last column says that some of its answers are
invalid. Where the width is too small for one column per length, there is one line per length; where the height is,
neighbouring depths share a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Literal, cast

from .cells import CellState, GridState, grids_of, grids_of_report, merged
from .colours import Scale, block_style
from .words import ascii_only, cut, depth_label, length_label, one_line, percent, percent_whole, width_of

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["CellState", "GridState", "Heatmaps", "Lines", "Look", "draw", "draw_all", "grids_of", "grids_of_report"]

Run = tuple[str, str]
"""Some text and the rich style that it has."""
Line = list[Run]
Colours = Literal["truecolor", "256", "none"]

_GAP = 3
_WIDEST_CELL = 6
_GOOD_CELL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the screen can show."""

    colours: Colours = "none"
    ascii: bool = False
    scale: Scale = "default"


def look_of(console: Console, scale: Scale = "default") -> Look:
    """The look for a console: fewer than 256 colours (NO_COLOR, dumb, a pipe, 16 of a theme) are none."""
    system = None if console.no_color else console.color_system
    if system not in ("truecolor", "256"):
        system = "none"
    return Look(colours=cast(Colours, system), ascii=not console.encoding.startswith("utf"), scale=scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heatmaps:
    """Grids as a rich renderable: side by side where there is room, else below one another, with a legend."""

    grids: Sequence[GridState]
    scale: Scale = "default"
    numbers: bool = False
    height: int | None = None
    phase: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        look = look_of(console, self.scale)
        width, height = options.max_width, self.height
        yield Lines(draw_all(self.grids, width, height=height, look=look, numbers=self.numbers, phase=self.phase))


class Lines:
    """Finished lines as a rich renderable; quick, since nothing is measured or wrapped again."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment
        from rich.style import Style

        parse, end = Style.parse, Segment.line()
        for line in self.lines:
            for text, style in line:
                yield Segment(text, parse(style) if style else None)
            yield end


def plain(lines: Iterable[Line]) -> str:
    """The lines without their styles."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


# --- several grids ----------------------------------------------------------------------------------------------------


def draw_all(
    grids: Sequence[GridState],
    width: int,
    *,
    height: int | None = None,
    look: Look,
    numbers: bool = False,
    phase: int = 0,
) -> list[Line]:
    """All grids and a legend, in at most `width` columns and, as far as that is possible, `height` lines."""
    if not grids:
        return []
    per_row = _arrange(grids, width, height, numbers)
    rows = [grids[i : i + per_row] for i in range(0, len(grids), per_row)]
    each_wide = (width - _GAP * (per_row - 1)) // per_row
    each_high = None if height is None else max(3, (height - 1) // len(rows))
    lines: list[Line] = []
    for row in rows:
        blocks = [draw(g, each_wide, height=each_high, look=look, numbers=numbers, phase=phase) for g in row]
        lines += _beside(blocks)
    wide = [grid for grid in grids if _cell_width(grid, each_wide) >= 1]
    share = 1 if each_high is None else max([_share(len(grid.depths), each_high - 2) for grid in wide], default=1)
    return [*map(_trimmed, lines), _legend(grids, width, look, share)]


def _arrange(grids: Sequence[GridState], width: int, height: int | None, numbers: bool) -> int:
    """How many grids stand side by side: so that the fewest cells are squeezed; as many as possible at a draw."""
    good = 4 if numbers else _GOOD_CELL

    def loss(per_row: int) -> float:
        each = (width - _GAP * (per_row - 1)) // per_row
        cell = min(_cell_width(grid, each) for grid in grids)
        squeezed = 1000.0 * per_row if cell < 1 else max(1.0, good / cell)
        if height is not None and cell >= 1:
            high = max(3, (height - 1) // -(-len(grids) // per_row))
            squeezed *= max(_share(len(grid.depths), high - 2) for grid in grids)
        return squeezed

    return min(range(len(grids), 0, -1), key=loss)


def _beside(blocks: Sequence[list[Line]]) -> list[Line]:
    widths = [max(_line_width(line) for line in block) for block in blocks]
    lines: list[Line] = []
    for i in range(max(len(block) for block in blocks)):
        line: Line = []
        owed = 0  # columns of padding that stand before whatever comes next
        for block, wide in zip(blocks, widths, strict=True):
            runs = block[i] if i < len(block) else []
            line += [(" " * owed, ""), *runs] if owed and runs else runs
            owed = wide - _line_width(runs) + _GAP if runs else owed + wide + _GAP
        lines.append(line)
    return lines


def _trimmed(line: Line) -> Line:
    """Without blanks at the end, which are in the way once the text is copied; blocks of colour are no blanks."""
    while line and line[-1][1] in ("", "dim") and line[-1][0] != (kept := line[-1][0].rstrip()):
        line = [*line[:-1], (kept, line[-1][1])] if kept else line[:-1]
    return line


def _line_width(line: Line) -> int:
    return sum(width_of(text) for text, _ in line)


def _legend(grids: Sequence[GridState], width: int, look: Look, share: int) -> Line:
    if look.colours == "none":
        scale = [(_levels(look), "")]
    else:
        scale = [(" ", block_style(i / 9, look.colours, look.scale)) for i in range(10)]
    line: Line = [("0 ", ""), *scale, (" 1", "")]
    if _line_width(line) > width:
        return []
    cells = [cell for grid in grids for cell in grid.cells.values()]
    pieces: list[Run] = []
    if any(cell.invalid for cell in cells):
        pieces.append((f"{_marks(look)[0]} invalid", ""))
    if any(cell.done < cell.planned for cell in cells):
        pieces += [(f"{_marks(look)[2]} asking", ""), (f"{_marks(look)[3]} to ask", "dim")]
    if share > 1:
        pieces.append((f"{share} depths a row", "dim"))
    for text, style in pieces:
        if _line_width(line) + 3 + len(text) <= width:
            line += [("   ", ""), (text, style)]
    return line


# --- one grid ---------------------------------------------------------------------------------------------------------


def draw(
    grid: GridState, width: int, *, height: int | None = None, look: Look, numbers: bool = False, phase: int = 0
) -> list[Line]:
    """One grid: its title, its rows, its axis."""
    wide = _cell_width(grid, width)
    if wide < 1:
        return _line_per_length(grid, width, look, phase)
    share = 1 if height is None else _share(len(grid.depths), height - 2)
    labels = [depth_label(grid.depths[i]) for i in range(0, len(grid.depths), share)]
    margin = max(len(depth_label(depth)) for depth in grid.depths)
    lines: list[Line] = [_title(grid, width, look)]
    for row, label in enumerate(labels):
        cells = _row(grid, grid.depths[row * share : (row + 1) * share])
        lines.append([(label.rjust(margin) + " ", "dim"), *_runs(cells, wide, look, numbers, phase)])
    lines.append([(" " * (margin + 1) + _axis(grid.lengths, wide), "dim")])
    return lines


def _row(grid: GridState, depths: Sequence[float]) -> list[CellState | None]:
    find = grid.cells.get
    if len(depths) == 1:
        depth = depths[0]
        return [find((length, depth)) for length in grid.lengths]
    found = ([cell for depth in depths if (cell := find((length, depth)))] for length in grid.lengths)
    return [merged(cells) if cells else None for cells in found]


def _runs(cells: Iterable[CellState | None], wide: int, look: Look, numbers: bool, phase: int) -> Line:
    drawn = [_cell(cell, wide, look, numbers, phase) for cell in cells]
    return [("".join(text for text, _ in runs), style) for style, runs in groupby(drawn, key=lambda run: run[1])]


def _cell(cell: CellState | None, wide: int, look: Look, numbers: bool, phase: int) -> Run:
    if cell is None:
        return " " * wide, ""
    if cell.valid:
        return _block(cell.total / cell.valid, bool(cell.invalid), wide, look, numbers)
    hatch, soft, full, dot = _marks(look)
    if cell.in_flight:
        return (full if phase % 2 else soft).center(wide), "" if phase % 2 else "dim"
    if cell.invalid:
        return hatch * wide, ""
    return dot.center(wide), "dim"


@lru_cache(maxsize=8192)
def _block(mean: float, partly: bool, wide: int, look: Look, numbers: bool) -> Run:
    number = str(percent_whole(mean)) if numbers and wide >= (4 if look.colours == "none" else 3) else ""
    if look.colours == "none":
        levels = _levels(look)
        top = len(levels) - 1
        fill = levels[0 if mean <= 0 else top if mean >= 1 else min(max(int(mean * top), 1), top - 1)]
        text, style = (number.center(wide) if number else fill * wide), ""
    else:
        text, style = number.center(wide), block_style(mean, look.colours, look.scale)
    if partly and (wide > 1 or look.colours != "none"):
        text = text[:-1] + _marks(look)[0]
    return text, style


def _levels(look: Look) -> str:
    """From 0 to 1; the first and the last are kept for exactly 0 and exactly 1."""
    return "0123456789#" if look.ascii else "░▒▓█"


def _marks(look: Look) -> tuple[str, str, str, str]:
    """Invalid, being asked (soft, full), to be asked."""
    return ("/", "o", "o", ".") if look.ascii else ("╱", "∙", "•", "·")


def _line_per_length(grid: GridState, width: int, look: Look, phase: int) -> list[Line]:
    """The fallback of narrow windows: length, its depths from 0 to 100 % as a strip, its mean."""
    labels = [length_label(length) for length in grid.lengths]
    margin = max(len(label) for label in labels)
    room = width - margin - 1 - len(" 100.0%")
    share = _share(len(grid.depths), room) if room > 0 else 0
    lines = [_title(grid, width, look)]
    for length, label in zip(grid.lengths, labels, strict=True):
        column = [cell for depth in grid.depths if (cell := grid.cells.get((length, depth)))]
        strip: Line = []
        if share:
            parts = (column[i : i + share] for i in range(0, len(column), share))
            strip = _runs([merged(part) for part in parts], 1, look, False, phase)
        mean = merged(column).mean
        says = " " + percent(mean) if mean is not None and room >= 0 else ""
        lines.append([(cut(label.rjust(margin) + " ", width), "dim"), *strip, (says, "")])
    return lines


def _title(grid: GridState, width: int, look: Look) -> Line:
    cell = grid.all()
    invalid = cell.done - cell.valid
    facts = [f"{cell.done} of {cell.planned}"]
    if cell.mean is not None:
        more = f", {invalid} invalid" if invalid else ""
        facts = [f"{percent(cell.mean)} of {cell.valid} valid{more}", f"{percent(cell.mean)} {cell.valid}/{cell.done}"]
    name = one_line(grid.name)
    if look.ascii:
        name = ascii_only(name)
    wanted = min(width_of(name), max(8, width // 2))
    fact = next((fact for fact in facts if wanted + 2 + len(fact) <= width), "")
    name = cut(name, width - len(fact) - 2 if fact else width, "~" if look.ascii else "…")
    return [(name, "bold"), ("  " + fact, "")] if fact else [(name, "bold")]


def _axis(lengths: Sequence[int], wide: int) -> str:
    """A label at every so many columns; the last column always has its own."""
    labels = [length_label(length) for length in lengths]
    longest = max(len(label) for label in labels)
    if wide > longest:
        return "".join(label.center(wide) for label in labels)
    every = -(-(longest + 1) // wide)
    end = len(lengths) * wide
    last = labels[-1] if len(lengths) > 1 else ""
    line = ""
    for i in range(0, len(lengths), every):
        if (i == 0 and len(labels[0]) <= end) or i * wide + len(labels[i]) < end - len(last):
            line = line.ljust(i * wide) + labels[i]
    return line.ljust(end - len(last)) + last if end - len(last) > len(line) else line


def _cell_width(grid: GridState, width: int) -> int:
    margin = max(len(depth_label(depth)) for depth in grid.depths) + 1
    return min(_WIDEST_CELL, (width - margin) // len(grid.lengths))


def _share(count: int, room: int) -> int:
    """How many neighbours share a place, so that `count` fit into `room`."""
    return -(-count // max(1, room))


def _demo() -> None:
    """Show what this module draws: two subsets, half asked, a limit, a miss, a broken cell."""
    import random

    from ..types import Cell
    from .console import out_console

    dice = random.Random("demo")
    lengths, depths = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000), range(0, 101, 10)
    names = ("english", "chinese 西游记")
    grids = grids_of(Cell(subset=n, context_length=x, depth_percent=d) for n in names for x in lengths for d in depths)
    for i, grid in enumerate(grids):
        for (length, depth), cell in grid.cells.items():
            if i and length >= 64_000:
                cell.in_flight = int(depth < 40 and length < 100_000)
                continue
            if length >= 128_000:
                cell.add("overflow", None)
                continue
            lost = max(0.0, length / 64_000 - 0.3) * (1 - abs(depth - 50) / 60)
            score = min(1.0, max(0.0, round(1 - lost + dice.uniform(-0.15, 0.1), 1)))
            cell.add("correct" if score > 0.5 else "wrong", score)
            if dice.random() < 0.03:
                cell.add("failed", None)
    for scale, numbers in (("default", True), ("classic", False)):
        out_console().print(Heatmaps(grids=grids, numbers=numbers, scale=scale, phase=1), end="\n\n")  # type: ignore[arg-type]


if __name__ == "__main__":
    _demo()
