"""Ctrl-C once: finish what is in flight. Twice: stop now. For programs; the runner itself touches no signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Stoppable(Protocol):
    def stop(self) -> None: ...


@contextmanager
def install_interrupts(runner: Stoppable, loop: asyncio.AbstractEventLoop | None = None) -> Iterator[None]:
    """Inside, SIGINT and SIGTERM call `runner.stop()`, in the loop; outside, they do again what they did before.

    Does nothing where signals cannot be taken (not the main thread, or a loop without them): Ctrl-C then raises
    KeyboardInterrupt as ever, and the run is cancelled.
    """
    loop = loop or asyncio.get_running_loop()
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        try:
            loop.add_signal_handler(number, runner.stop)
        except (NotImplementedError, ValueError, RuntimeError):
            break
        before[number] = handler
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            if handler is not None:  # None: it was set from C; leave the default in its place
                signal.signal(number, handler)
