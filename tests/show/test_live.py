"""Progress while a model is asked: complete plain lines in a pipe, a grid on a terminal, stdout never touched."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from typing import TextIO

import pytest

from needlepoint.show.live import Live
from needlepoint.types import Cell, Usage

from ..work import lines_run

TRIALS = [
    Cell(subset=name, context_length=length * 1_000, depth_percent=depth)
    for length in range(1, 11)
    for name in ("english", "chinese")
    for depth in range(0, 100, 10)
]
LINE = re.compile(
    r"needlepoint: \d+/\d+ asked(, \d+ of them before)?(, \d+ in flight( of \d+)?)?(, [\d,]+ [a-z ]+)*"
    r"(, [\d.]+[kMG]? tokens/s)?(, about [\w ]+ left)?(, \$[\d,.]+ spent)?(, waiting: .+)?"
)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and counts the frames."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def ordinary_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("COLUMNS", "100"), ("LINES", "40")):
        monkeypatch.setenv(name, value)


def live_on(stream: TextIO, clock: Clock, trials: list[Cell] = TRIALS) -> Live:
    return Live(trials, stream=stream, clock=clock)


def ask(live: Live, clock: Clock, trials: list[Cell], outcome: str = "correct", each_s: float = 1.0) -> None:
    for trial in trials:
        live.started(trial)
        clock.now += each_s
        score = {"correct": 1.0, "wrong": 0.0}.get(outcome)
        live.finished(trial, outcome, score, usage=Usage(prompt=trial.context_length, completion=10))


def words(lines: list[list[tuple[str, str]]]) -> str:
    return "\n".join("".join(text for text, _ in line) for line in lines)


# --- plain lines ------------------------------------------------------------------------------------------------------


def test_a_plain_line_says_it_all_in_one_sentence(clock: Clock) -> None:
    stream = io.StringIO()
    with live_on(stream, clock) as live:
        for outcome, trials in (("correct", TRIALS[:38]), ("wrong", TRIALS[38:39]), ("overflow", TRIALS[39:40])):
            ask(live, clock, trials, outcome, each_s=0.1)
        live.state(tokens_per_s=12_345.0, eta_s=110.0, cost=1.5)
    said = "40/200 asked, 38 correct, 1 wrong, 1 overflow, 12.3k tokens/s, about 2 min left, $1.50 spent"
    assert stream.getvalue().splitlines()[-1] == f"needlepoint: {said}"


def test_plain_lines_are_complete_few_and_free_of_escapes(clock: Clock) -> None:
    stream = io.StringIO()
    with live_on(stream, clock) as live:
        ask(live, clock, TRIALS)
    text = stream.getvalue()
    assert not re.search(r"[\r\x1b\b]", text)
    assert text.endswith("\n")
    lines = text.splitlines()
    assert all(LINE.fullmatch(line) for line in lines), lines
    assert 10 <= len(lines) <= 10 + 200 / 30 + 1
    assert lines[-1].startswith("needlepoint: 200/200 asked, 200 correct")
    assert len(set(lines)) == len(lines)


def test_a_quick_run_says_only_how_it_ended(clock: Clock) -> None:
    stream = io.StringIO()
    with live_on(stream, clock) as live:
        ask(live, clock, TRIALS, each_s=0.001)
    assert len(stream.getvalue().splitlines()) == 1


def test_a_long_wait_is_heard_of_every_half_minute(clock: Clock) -> None:
    stream = io.StringIO()
    with live_on(stream, clock) as live:
        live.started(TRIALS[0])
        for _ in range(100):
            clock.now += 1
            live.state(waiting="the server asks to wait 100 s")
        assert len(stream.getvalue().splitlines()) == 3
    assert "1 in flight, waiting: the server asks to wait 100 s" in stream.getvalue()


def test_forced_colours_do_not_make_a_pipe_a_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    stream = io.StringIO()
    with live_on(stream, clock) as live:
        ask(live, clock, TRIALS[:40])
    assert "\x1b" not in stream.getvalue()


def test_a_dumb_terminal_gets_plain_lines(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with live_on(stream, clock) as live:
        ask(live, clock, TRIALS[:40])
    assert not re.search(r"[\r\x1b]", stream.getvalue())
    assert stream.getvalue().count("\n") == 2


def test_a_run_without_anything_to_ask_says_nothing(clock: Clock) -> None:
    stream = io.StringIO()
    with live_on(stream, clock, []):
        pass
    assert stream.getvalue() == ""


def test_notes_are_printable_said_once_and_fit_any_encoding(clock: Clock) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    with live_on(stream, clock) as live:
        for _ in range(3):
            live.note("\x1b[2J西游记\r was sent")
    assert raw.getvalue().decode() == "needlepoint: \\ufffd[2J\\u897f\\u6e38\\u8bb0\\ufffd was sent\n"


# --- figures ----------------------------------------------------------------------------------------------------------


def test_what_an_earlier_run_answered_counts_but_says_nothing_about_speed(clock: Clock) -> None:
    live = live_on(io.StringIO(), clock)
    for trial in TRIALS[:100]:
        live.restored(trial, "correct", 1.0)
    assert (live.progress.done, live.progress.left_s(clock.now)) == (100, None)
    ask(live, clock, TRIALS[100:150], each_s=2.0)
    assert 60 <= (live.progress.left_s(clock.now) or 0) <= 150  # 50 trials of 2 s and more tokens each
    assert "100 of them before" in live.progress.sentence(clock.now)


def test_the_time_left_that_the_runner_says_counts_down(clock: Clock) -> None:
    live = live_on(io.StringIO(), clock)
    live.state(eta_s=100.0)
    clock.now += 40
    assert live.progress.left_s(clock.now) == 60.0
    clock.now += 400
    assert live.progress.left_s(clock.now) == 0.0


def test_what_is_not_known_is_not_said(clock: Clock) -> None:
    live = live_on(io.StringIO(), clock)
    assert live.progress.sentence(clock.now) == "needlepoint: 0/200 asked"


def test_a_withdrawn_trial_is_to_be_asked_again(clock: Clock) -> None:
    live = live_on(io.StringIO(), clock)
    live.started(TRIALS[0])
    live.withdrawn(TRIALS[0])
    assert (live.progress.in_flight, live.progress.done) == (0, 0)


def test_a_trial_found_on_the_way_joins_the_grid(clock: Clock) -> None:
    live = live_on(io.StringIO(), clock, TRIALS[:5])
    extra = Cell(subset="english", context_length=500_000, depth_percent=33.0)
    ask(live, clock, [extra])
    assert (live.progress.done, live.progress.total) == (1, 6)
    assert live.progress.grids[0].lengths[-1] == 500_000


# --- on a terminal ----------------------------------------------------------------------------------------------------


def test_a_terminal_shows_grids_a_bar_outcomes_by_word_and_speed(clock: Clock) -> None:
    stream = Terminal()
    with live_on(stream, clock) as live:
        ask(live, clock, TRIALS[:60])
        ask(live, clock, TRIALS[60:70], "wrong")
        ask(live, clock, TRIALS[70:71], "overflow")
        live.started(TRIALS[71])
        live.state(in_flight=1, concurrency=8, cost=0.01234, waiting="rate limit")
        lines = live.lines(100, 40)
    text = words(lines)
    for part in ("english", "chinese", "71/200 asked", "60 correct", "10 wrong", "1 overflow", "1 in flight of 8"):
        assert part in text
    for part in ("tokens/s", "about", "$0.0123 spent", "waiting: rate limit", "╱ invalid", "asking"):
        assert part in text
    styles = {text.strip(): style for line in lines for text, style in line}
    assert styles["╱"] == ""
    assert "48;2;" in stream.getvalue()


def test_the_screen_is_wiped_at_the_end_and_the_cursor_is_back(clock: Clock) -> None:
    stream = Terminal()
    with live_on(stream, clock) as live:
        ask(live, clock, TRIALS[:40])
    text = stream.getvalue()
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    assert re.search(r"(\x1b\[1A\x1b\[2K)+$", text)


def test_no_more_than_eight_frames_are_drawn_in_a_second(clock: Clock) -> None:
    stream = Terminal()
    with live_on(stream, clock) as live:
        drawn = 0
        frame = live._frame

        def counted() -> None:
            nonlocal drawn
            drawn += 1
            frame()

        live._frame = counted  # type: ignore[method-assign]
        ask(live, clock, TRIALS, each_s=0.01)  # 2 s
    assert 2 <= drawn <= 17


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (80, 24), (200, 60), (1, 1)])
def test_a_frame_fits_the_window(size: tuple[int, int], clock: Clock) -> None:
    lengths = [1_000 * (i + 1) for i in range(35)]
    trials = [Cell(subset=s, context_length=n, depth_percent=d) for s in "ab" for n in lengths for d in range(35)]
    live = live_on(Terminal(), clock, trials)
    with live:
        ask(live, clock, trials[:50], each_s=0.1)
        live.state(waiting="a long reason " * 30, cost=1e9)
        lines = live.lines(*size)
    assert len(lines) <= max(1, size[1] - 1)
    if size[0] >= 40:
        assert max(len(line) for line in words(lines).splitlines()) <= size[0]


def test_no_color_shows_characters(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    with live_on(stream, clock) as live:
        ask(live, clock, TRIALS[:40])
    assert "██" in stream.getvalue()
    assert not re.search(r"\x1b\[[0-9;]*[34]8;", stream.getvalue())


def test_notes_stand_above_the_grid_and_stdout_stays_itself(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    stream, stdout = Terminal(), sys.stdout
    with live_on(stream, clock) as live:
        assert sys.stdout is stdout
        ask(live, clock, TRIALS[:10])
        live.note("the server counts [bold]cached[/bold] \x1b]0;tokens")
    assert "needlepoint: the server counts [bold]cached[/bold] \ufffd]0;tokens" in stream.getvalue()
    assert capsys.readouterr().out == ""


def test_hostile_subset_names_and_reasons_reach_the_screen_harmless(clock: Clock) -> None:
    trials = [Cell(subset="\x1b]0;owned\x07\u202e" * 9, context_length=1_000, depth_percent=0.0)]
    stream = Terminal()
    with live_on(stream, clock, trials) as live:
        live.state(waiting="\x1b[2J\r\n")
        ask(live, clock, trials)
    assert not re.search(r"\x1b\]|\x07|\u202e|\x1b\[2J", stream.getvalue())


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_a_screen_that_goes_away_does_not_stop_the_run(kind: type[io.StringIO], clock: Clock) -> None:
    class Gone(kind):  # type: ignore[misc, valid-type]
        broken = False

        def write(self, text: str) -> int:
            if self.broken:
                raise OSError(5, "Input/output error")
            return int(super().write(text))

    stream = Gone()
    with live_on(stream, clock) as live:
        ask(live, clock, TRIALS[:20])
        stream.broken = True
        ask(live, clock, TRIALS[20:])
        live.note("not heard")
    assert live.progress.done == 200


def test_a_closed_stream_does_not_stop_the_run(clock: Clock) -> None:
    stream = io.StringIO()
    with live_on(stream, clock) as live:
        stream.close()
        ask(live, clock, TRIALS)
    assert live.progress.done == 200


def test_inside_a_loop_it_draws_without_being_told_anything(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()

    async def wait() -> None:
        loop = asyncio.get_running_loop()
        later: list[float] = []
        frames = asyncio.Event()

        def call_later(delay: float, callback: object, *_: object) -> asyncio.Handle:
            later.append(delay)
            clock.now += delay
            if len(later) >= 5:
                frames.set()
            return loop.call_soon(callback)  # type: ignore[arg-type]

        monkeypatch.setattr(loop, "call_later", call_later)
        with live_on(stream, clock):
            await frames.wait()
        assert set(later) == {1 / 8}

    asyncio.run(wait())
    assert stream.getvalue().count("0/200 asked") >= 4


# --- costs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_telling_costs_less_than_50_lines_of_code_each_time(kind: type[io.StringIO], clock: Clock) -> None:
    usage = Usage(prompt=1_000, completion=10)
    with live_on(kind(), clock) as live:

        def tell() -> None:
            for trial in TRIALS:
                live.started(trial)
                live.finished(trial, "correct", 1.0, usage=usage)

        assert lines_run(tell) < 50 * 2 * len(TRIALS)


def test_importing_it_imports_no_rich() -> None:
    import subprocess

    code = "import sys, needlepoint.show.live, needlepoint.show.table; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
