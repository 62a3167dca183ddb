"""Progress while a model is asked, on stderr: a grid that fills with colours; plain lines where there is no terminal.

It is told what happens and draws now and then: telling costs microseconds, drawing takes at most a twentieth of the
time. Inside an asyncio loop it draws by itself, so that long prefills are seen to be waited for; without one, only when
told something. One thread, no locks. It never writes to stdout, and a screen that goes away (a closed ssh session)
stops the drawing, not the run.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TextIO

from ..types import Usage
from .cells import Located
from .colours import Scale
from .console import printable
from .grid import Line, Lines, Look, draw_all, look_of
from .progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live as Screen

_FRAMES_PER_S = 8
_PULSES_PER_S = 2
_MOST_SHARE = 0.05  # of the time goes into drawing
_LINE_EVERY_S = 30.0
_LINE_AT_LEAST_S = 2.0
_STEPS = 10


class Live:
    """`with Live(trials) as live:` then `live.started(trial)`, `live.finished(trial, outcome, score)`, ...

    `trials` are all that are planned, in any order; what an earlier run has answered is told by `restored`. Rates and
    the time left are estimated from what was finished, unless `state` says them.
    """

    def __init__(
        self,
        trials: Iterable[Located],
        *,
        stream: TextIO | None = None,
        scale: Scale = "default",
        currency: str = "$",
        clock: Callable[[], float] = time.monotonic,
        line_every_s: float = _LINE_EVERY_S,
    ) -> None:
        self.progress = Progress(trials, currency=currency)
        self._stream, self._scale, self._clock, self._line_every_s = stream, scale, clock, line_every_s
        self._next_draw = -math.inf
        self._noted: set[str] = set()
        self._last_step = 0
        self._last_line = 0.0
        self._told = ""
        self._console: Console | None = None
        self._screen: Screen | None = None
        self._look = Look()
        self._gone = False
        self._timer: asyncio.TimerHandle | None = None

    # --- what the pipeline tells --------------------------------------------------------------------------------------

    def started(self, trial: Located) -> None:
        """`trial` is being asked."""
        self.progress.started(trial, self._clock())
        self._draw_if_due()

    def finished(self, trial: Located, outcome: str, score: float | None, *, usage: Usage | None = None) -> None:
        """`trial` has an outcome, whether it was asked or found impossible before."""
        self.progress.finished(trial, outcome, score, usage)
        self._draw_if_due()

    def restored(self, trial: Located, outcome: str, score: float | None) -> None:
        """`trial` was answered by an earlier run: it counts, but says nothing about speed."""
        self.progress.restored(trial, outcome, score)

    def withdrawn(self, trial: Located) -> None:
        """`trial` was started and has no outcome: it will be asked again, or never."""
        self.progress.withdrawn(trial)

    def state(
        self,
        *,
        in_flight: int | None = None,
        tokens_per_s: float | None = None,
        eta_s: float | None = None,
        waiting: str | None = None,
        concurrency: int | None = None,
        cost: float | None = None,
    ) -> None:
        """All that the runner knows now; None is not known. `waiting` is why nothing is sent, where that is so."""
        self.progress.state(
            self._clock(),
            in_flight=in_flight,
            tokens_per_s=tokens_per_s,
            eta_s=eta_s,
            waiting=waiting,
            concurrency=concurrency,
            cost=cost,
        )
        self._draw_if_due()

    def note(self, text: str) -> None:
        """A message for people, above the grids; the same one only once."""
        text = printable(text).strip()
        if not text or text in self._noted:
            return
        self._noted.add(text)
        message = f"needlepoint: {text}"
        if self._screen is None:
            self._write(message)
        elif not self._gone:
            self._safely(lambda: self._print_above(message))

    # --- when to draw -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Live:
        stream = self._stream = self._stream or sys.stderr
        self._last_line = self._clock()
        if stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown"):
            self._open_screen(stream)
        self._tick()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._screen is not None:
            self._safely(self._screen.stop)
            self._screen = None
        elif self.progress.done > self.progress.kept or self._told:
            self._line(last=True)

    def _tick(self) -> None:
        """Draw, and come back in a moment where a loop is there to call."""
        self._draw_if_due()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(1 / _FRAMES_PER_S if self._screen is not None else 1.0, self._tick)

    def _draw_if_due(self) -> None:
        now = self._clock()
        if now < self._next_draw or self._gone or self._stream is None:
            return
        if self._screen is None:
            self._next_draw = now + 0.1
            step, quiet = int(self.progress.share * _STEPS), now - self._last_line
            if (step > self._last_step and quiet >= _LINE_AT_LEAST_S) or quiet >= self._line_every_s:
                self._last_step, self._last_line = step, now
                self._line()
            return
        started = time.perf_counter()
        self._safely(self._frame)
        took = time.perf_counter() - started
        self._next_draw = now + max(1 / _FRAMES_PER_S, took / _MOST_SHARE)

    def _safely(self, write: Callable[[], object]) -> None:
        """The screen may be gone (EIO, a closed file): then nothing more is drawn. The run is worth more."""
        try:
            write()
        except OSError:
            self._gone = True
        except ValueError:
            if self._stream is None or not self._stream.closed:
                raise
            self._gone = True

    # --- how ----------------------------------------------------------------------------------------------------------

    def _open_screen(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live as Screen

        self._console = Console(file=stream, highlight=False, markup=False, emoji=False, force_terminal=True)
        self._look = look_of(self._console, self._scale)
        self._screen = Screen(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,  # rich would send it to our console, which is stderr
            redirect_stderr=stream is sys.stderr,
        )
        self._safely(self._screen.start)

    def _frame(self) -> None:
        if self._screen is not None and self._console is not None:
            self._screen.update(Lines(self.lines(*self._console.size)), refresh=True)

    def _print_above(self, message: str) -> None:
        from rich.text import Text

        if self._console is not None:
            self._console.print(Text(message), soft_wrap=True)

    def lines(self, width: int, height: int) -> list[Line]:
        """What a screen of this size shows now: grids, a bar, outcomes, speed."""
        now, look = self._clock(), self._look
        footer = self.progress.footer(now, width, look)
        room = height - len(footer) - 2  # an empty line between, and one for the cursor
        phase = int(now * _PULSES_PER_S)
        drawn = draw_all(self.progress.grids, width, height=max(4, room), look=look, phase=phase)
        lines: list[Line] = [*drawn[: max(0, room)], [], *footer]
        return lines[-max(1, height - 1) :]

    def _line(self, *, last: bool = False) -> None:
        said = self.progress.sentence(self._clock())
        if not (last and said == self._told):
            self._told = said
            self._write(said)

    def _write(self, text: str) -> None:
        stream = self._stream or sys.stderr
        encoding = getattr(stream, "encoding", None) or "utf-8"
        text = text.encode(encoding, "backslashreplace").decode(encoding)

        def write() -> None:
            stream.write(text + "\n")
            stream.flush()

        if not self._gone:
            self._safely(write)


async def _demo(seconds: float = 12.0) -> None:
    """A run that is made up, so that this module shows itself."""
    import random

    from ..types import Cell

    dice = random.Random("demo")
    lengths, depths = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000), range(0, 101, 10)
    names = ("english", "chinese 西游记")
    trials = [Cell(subset=n, context_length=x, depth_percent=d) for x in lengths for n in names for d in depths]

    async def ask(trial: Cell) -> None:
        live.started(trial)
        await asyncio.sleep(dice.uniform(0.2, 1.8) * 8 * seconds / len(trials))
        lost = dice.random() < trial.context_length / 200_000
        outcome = "overflow" if trial.context_length > 100_000 else "wrong" if lost else "correct"
        score = {"correct": 1.0, "wrong": 0.0}.get(outcome)
        live.finished(trial, outcome, score, usage=Usage(prompt=trial.context_length, completion=20))

    with Live(trials) as live:
        live.note("a note: the server counts cached tokens")
        for i in range(0, len(trials), 8):
            if i == 80:
                live.state(waiting="rate limit of the server, 2 s", concurrency=8, cost=0.4213)
            await asyncio.gather(*map(ask, trials[i : i + 8]))


if __name__ == "__main__":
    asyncio.run(_demo())
