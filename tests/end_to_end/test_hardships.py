"""Whole runs under hardship: a server that fails 30 % of requests, and a process that is killed at any moment."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..ask.chaos_server import MOST_FAULTS, chaos
from .loopback import finds_the_needle, serving

IN_FLIGHT = 4


@pytest.fixture(scope="module")
def dataset(prose: dict[str, Callable[..., str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    (folder / "PaulGraham_Essays.txt").write_text(prose["en"](4_000), encoding="utf-8")
    (folder / "Journey_to_the_West.txt").write_text(prose["zh"](3_000), encoding="utf-8")
    return folder


def command_line(url: str, dataset: Path, work_dir: Path, *more: str) -> list[str]:
    extra = {"context_lengths_min": 500, "context_lengths_max": 1400}
    arguments = {"needle_haystack": {"local_path": str(dataset), "extra_params": extra}}
    return [
        sys.executable, "-m", "needlepoint.cli", "eval", "--model", "m", "--api-url", url, "--datasets",
        "needle_haystack", "--dataset-args", json.dumps(arguments), "--work-dir", str(work_dir), *more,
    ]  # fmt: skip


def only_run(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def finished(folder: Path) -> list[str]:
    """The prompts of the trials that are written down, torn last line aside."""
    text = (folder / "trials.jsonl").read_text(encoding="utf-8") if (folder / "trials.jsonl").exists() else ""
    return [json.loads(line)["trial"]["id"] for line in text.split("\n")[:-1]]


def numbers(folder: Path) -> dict[str, Any]:
    """A report without what the clock and the server's counters decide."""
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    changing = {"endpoint", "tokens", "prefix", "cost", "pace"}
    return {name: value for name, value in report.items() if name not in changing}


@pytest.mark.slow
def test_30_percent_faults_leave_the_results_of_a_whole_run_as_they_are(dataset: Path, tmp_path: Path) -> None:
    found = {}
    for share in (0.0, 0.3):
        with chaos(seed=5, share=share) as server:
            command = command_line(server.url, dataset, tmp_path / str(share), "--timeout", "3")
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
            found[share] = numbers(only_run(tmp_path / str(share)))
            log = server.log()
        for ends in log.values():  # cells may have equal texts: then one prompt has several answers
            assert ends[-1] == "answer" and sum(end != "answer" for end in ends) <= MOST_FAULTS
        assert sum(ends.count("answer") for ends in log.values()) == 200
        failures = sum(map(len, log.values())) - 200
        assert failures == 0 if share == 0 else failures > 40
    assert found[0.3]["overall"]["valid"] == found[0.3]["overall"]["n"] == 200
    assert found[0.3] == found[0.0]


@pytest.mark.slow
def test_killed_at_any_moment_and_resumed_it_ends_as_if_undisturbed(dataset: Path, tmp_path: Path) -> None:
    """No finished trial is asked twice; at most those in flight are repeated. TEST_KILLS=50 for more."""
    rng = random.Random(11)
    most_kills = int(os.environ.get("TEST_KILLS", "12"))

    def slow(body: dict[str, Any]) -> str:
        time.sleep(0.01)
        return finds_the_needle(body)

    more = ("--eval-batch-size", str(IN_FLIGHT), "--limit", "40")
    with serving(slow) as server:
        subprocess.run(command_line(server.url, dataset, tmp_path / "whole", *more), check=True, capture_output=True)
        undisturbed = numbers(only_run(tmp_path / "whole"))
        trials = sorted(finished(only_run(tmp_path / "whole")))
        kills, rounds = 0, 0
        while kills < most_kills:
            rounds += 1
            server.requests.clear()
            work_dir = tmp_path / f"killed{rounds}"
            kills_here, resume = 0, ()
            while True:
                before, done = len(server.requests), len(finished(only_run(work_dir))) if resume else 0
                process = subprocess.Popen(
                    command_line(server.url, dataset, work_dir, *more, *resume),
                    stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                )  # fmt: skip
                aim = before + rng.randint(0, 30)  # kill once so many requests have come, and a moment later
                while process.poll() is None and (kills_here >= 4 or len(server.requests) < aim):
                    time.sleep(0.002)
                if process.poll() is None:
                    time.sleep(rng.uniform(0, 0.02))
                    process.kill()
                    kills_here += 1
                ended = process.wait()
                # what was written before is not asked again
                assert len(server.requests) - before <= len(trials) - done
                if work_dir.exists() and any(work_dir.iterdir()):
                    resume = ("--resume", str(only_run(work_dir)))
                if ended == 0:
                    break
            folder = only_run(work_dir)
            assert sorted(set(finished(folder))) == trials
            assert max(Counter(finished(folder)).values()) == 1
            assert len(server.requests) <= len(trials) + kills_here * IN_FLIGHT
            assert numbers(folder) == undisturbed
            kills += kills_here
