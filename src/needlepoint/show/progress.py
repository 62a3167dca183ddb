"""How far a run is: counts, rates, the time that is left, and the words for them. Pure; the time is handed in.

`Live` shows it. What the runner tells goes before what is estimated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..types import VALID_OUTCOMES, Usage
from .cells import CellState, GridState, Located, grids_of, include
from .colours import swatch_style
from .grid import Line, Look
from .words import ascii_only, counts, cut, duration, in_order, one_line, percent, short_number

_WORTH = {"correct": 1.0, "partial": 0.5}
_ANSWER_AS_TOKENS = 4_000  # writing a short answer takes about as long as reading some thousand tokens
_SPEED_AFTER_S = 1.0


class Progress:
    """Counts of what was planned, asked and found."""

    def __init__(self, trials: Iterable[Located], *, currency: str = "$") -> None:
        planned = list(trials)
        self.grids: list[GridState] = grids_of(planned)
        self.total = len(planned)
        self.done = self.kept = self.in_flight = 0
        self.outcomes: Counter[str] = Counter()
        self._cells = {(grid.name, *place): cell for grid in self.grids for place, cell in grid.cells.items()}
        self._left = sum(map(_effort, planned))
        self._asked = self._counted_tokens = 0
        self._begun: float | None = None
        self._tokens_per_s: float | None = None
        self._eta_s: float | None = None
        self._eta_told_at = 0.0
        self._waiting: str | None = None
        self._concurrency: int | None = None
        self._cost: float | None = None
        self._currency = currency

    # --- what happens -------------------------------------------------------------------------------------------------

    def started(self, trial: Located, now: float) -> None:
        if self._begun is None:
            self._begun = now
        self._cell(trial).in_flight += 1
        self.in_flight += 1

    def finished(self, trial: Located, outcome: str, score: float | None, usage: Usage | None = None) -> None:
        cell = self._cell(trial)
        if cell.in_flight:
            cell.in_flight -= 1
            self.in_flight = max(0, self.in_flight - 1)
            self._asked += _effort(trial)
            if usage is not None:
                self._counted_tokens += (usage.prompt or 0) + (usage.completion or 0)
        self._add(trial, cell, outcome, score)

    def restored(self, trial: Located, outcome: str, score: float | None) -> None:
        self.kept += 1
        self._add(trial, self._cell(trial), outcome, score)

    def withdrawn(self, trial: Located) -> None:
        cell = self._cell(trial)
        if cell.in_flight:
            cell.in_flight -= 1
            self.in_flight = max(0, self.in_flight - 1)

    def state(
        self,
        now: float,
        *,
        in_flight: int | None,
        tokens_per_s: float | None,
        eta_s: float | None,
        waiting: str | None,
        concurrency: int | None,
        cost: float | None,
    ) -> None:
        if in_flight is not None:
            self.in_flight = in_flight
        self._tokens_per_s, self._waiting, self._concurrency, self._cost = tokens_per_s, waiting, concurrency, cost
        self._eta_s, self._eta_told_at = eta_s, now

    def _add(self, trial: Located, cell: CellState, outcome: str, score: float | None) -> None:
        cell.add(outcome, score)
        self.outcomes[outcome] += 1
        self.done += 1
        self._left -= _effort(trial)

    def _cell(self, trial: Located) -> CellState:
        place = (trial.subset, trial.context_length, trial.depth_percent)
        cell = self._cells.get(place)
        if cell is None:
            cell = self._cells[place] = include(self.grids, trial)
            self.total += 1
            self._left += _effort(trial)
        return cell

    # --- figures ------------------------------------------------------------------------------------------------------

    @property
    def share(self) -> float:
        return self.done / self.total if self.total else 1.0

    def tokens_per_s(self, now: float) -> float | None:
        if self._tokens_per_s is not None:
            return self._tokens_per_s
        elapsed = self._elapsed(now)
        return self._counted_tokens / elapsed if self._counted_tokens and elapsed >= _SPEED_AFTER_S else None

    def left_s(self, now: float) -> float | None:
        """What `state` said, less what has passed since; else by the tokens and answers that are still to come."""
        if self._eta_s is not None:
            return max(0.0, self._eta_s - (now - self._eta_told_at))
        elapsed = self._elapsed(now)
        return self._left * elapsed / self._asked if self._asked and elapsed >= _SPEED_AFTER_S else None

    def _elapsed(self, now: float) -> float:
        return 0.0 if self._begun is None else now - self._begun

    # --- words --------------------------------------------------------------------------------------------------------

    def sentence(self, now: float) -> str:
        """All of it in one line that is complete by itself."""
        kept = [f"{self.kept} of them before"] if self.kept else []
        found = [counts(in_order(self.outcomes))] if self.outcomes else self._flying()
        parts = [f"{self.done}/{self.total} asked", *kept, *found, *self._speed(now), *self._rest(now), *self._waits()]
        return "needlepoint: " + ", ".join(parts)

    def footer(self, now: float, width: int, look: Look) -> list[Line]:
        """A bar, outcomes with their colours and words, speed, and what is waited for."""
        lines = [self._bar(width, look), self._found(width, look)]
        facts = ""
        for fact in (*self._speed(now), *self._rest(now), *self._flying()):
            longer = f"{facts} · {fact}" if facts else fact
            facts = longer if len(longer) <= width else facts
        lines += [[(text, style)] for text, style in ((facts, ""), *((cut(w, width), "dim") for w in self._waits()))]
        if look.ascii:
            lines = [[(ascii_only(text), style) for text, style in line] for line in lines]
        return [line for line in lines if any(text for text, _ in line)]

    def _bar(self, width: int, look: Look) -> Line:
        says = f"{self.done:,}/{self.total:,} asked"
        wide = max(0, min(40, width - len(says) - 10))
        full = int(self.share * wide)
        filled, empty = ("#", "-") if look.ascii else ("━", "─")
        kept = f"  {self.kept:,} from before" if self.kept else ""
        bar = [(filled * full, ""), (empty * (wide - full), "dim")] if wide else []
        after = f"  {percent(self.share)}"
        return [(says + "  ", "bold"), *bar, (cut(after + kept, max(0, width - len(says) - 2 - wide)), "")]

    def _found(self, width: int, look: Look) -> Line:
        line: Line = []
        room = width
        for outcome, n in in_order(self.outcomes):
            worth = _WORTH.get(outcome, 0.0)
            if outcome not in VALID_OUTCOMES:
                mark, style = "╱", ""
            elif look.colours == "none":
                mark, style = ("05#" if look.ascii else "░▓█")[round(worth * 2)], ""
            else:
                mark, style = "■", swatch_style(worth, look.colours, look.scale)
            word = f" {n:,} {outcome.replace('_', ' ')}"
            room -= len(word) + 1
            if room < 0:
                break
            line += [(mark, style), (word, ""), ("   ", "")]
            room -= 3
        return line[:-1]

    def _speed(self, now: float) -> list[str]:
        speed = self.tokens_per_s(now)
        return [f"{short_number(speed)} tokens/s"] if speed is not None else []

    def _flying(self) -> list[str]:
        if not self.in_flight:
            return []
        most = self._concurrency
        if most is None:
            return [f"{self.in_flight:,} in flight"]
        if self.in_flight > most:  # a local engine takes many at once, and asks them in turn
            return [f"{self.in_flight:,} in hand"]
        return [f"{self.in_flight:,} in flight of {most:,}"]

    def _rest(self, now: float) -> list[str]:
        left = self.left_s(now)
        says = [f"about {duration(left)} left"] if left is not None and self.done < self.total else []
        if self._cost is not None:
            says.append(f"{self._currency}{self._cost:,.{2 if self._cost >= 1 else 4}f} spent")
        return says

    def _waits(self) -> list[str]:
        return [f"waiting: {one_line(self._waiting)}"] if self._waiting else []


def _effort(trial: Located) -> int:
    return trial.context_length + _ANSWER_AS_TOKENS
