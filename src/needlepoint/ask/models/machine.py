"""What of this machine this process may use: cores, memory, and how its threads wait. Knows no engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SPIN_COUNT = "1000"


def cores() -> int:
    """Physical cores that this process may use: the engine's threads wait for each other, so more of them only harm."""
    try:
        mine = os.sched_getaffinity(0)
    except AttributeError:
        return max(1, os.cpu_count() or 1)
    found = {_siblings(number) for number in mine}
    return max(1, min(len(found), _quota() or len(found)))


def _siblings(cpu: int) -> str:
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text("ascii").strip()
    except OSError:
        return str(cpu)


def _quota() -> int | None:
    """Whole CPUs that the container's time limit leaves, or None."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        return max(1, int(limit) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None


def free_bytes() -> int | None:
    """Memory that is free now; None where nobody tells."""
    found = [value for value in (_free_of_machine(), _free_of_container()) if value is not None]
    return min(found, default=None)


def _free_of_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1_024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return None


def _free_of_container() -> int | None:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text("ascii").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text("ascii").strip()
        return max(0, int(limit) - int(used))
    except (OSError, ValueError):
        return None


@contextmanager
def patient_threads() -> Iterator[None]:
    """Let OpenMP's threads wait briefly and then sleep. It reads the environment once, when it is loaded.

    By default they spin for milliseconds, in each of hundreds of waits a token: on 2 cores with one other busy process
    2 tokens a second were seen instead of 18. This costs nothing on an idle machine; `passive` costs half the speed
    of generation there.
    """
    if {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = _SPIN_COUNT
    try:
        yield
    finally:
        os.environ.pop("GOMP_SPINCOUNT", None)
