"""A server that fails 30 % of requests, by seed: nothing is lost, nothing asked too often, memory stays bounded.

The client runs in a process of its own, so that its memory can be measured. To be run through the CLI as well.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass

import pytest

from ..ask.chaos_server import FAULTS, MOST_FAULTS, Served, chaos, fault_of

N_PROMPTS = 200
PROMPT = "Prompt number {}. The best thing to do in San Francisco is number {}. What is the best thing to do?"
CLIENT = r"""
    import asyncio, json, re, sys
    from array import array
    from pathlib import Path
    from random import Random
    from needlepoint.ask.models.openai import OpenAIModel
    from needlepoint.ask.runner import Job, Runner, RunnerSettings
    from needlepoint.types import Sampling

    def peak_mb():  # not ru_maxrss: that one begins with what the parent had
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        return int(found[1]) / 1024

    class Prompt:
        n_tokens, max_tokens, sha256 = 40, 32, ""
        def __init__(self, number):
            self.number = number
        def text(self):
            return {prompt!r}.format(self.number, self.number)
        def messages(self):
            return [{{"role": "user", "content": self.text()}}]
        def token_ids(self):
            return array("I")

    async def main():
        url, stream, concurrency = sys.argv[1], sys.argv[2] == "stream", sys.argv[3]
        model = OpenAIModel("chaos", api_url=url, stream=stream)
        before = peak_mb()
        replies = {{}}
        settings = RunnerSettings(
            concurrency=concurrency if concurrency == "auto" else int(concurrency), timeout_s=1.5, backoff_s=0.02
        )
        runner = Runner(
            model, Sampling(max_tokens=32), settings, rng=Random(1),
            on_reply=lambda job, reply: replies.__setitem__(job.prompt.number, reply),
        )
        result = await runner.run(Job(None, Prompt(number)) for number in range({n}))
        await model.close()
        print(json.dumps({{
            "texts": [replies[n].text for n in sorted(replies)],
            "attempts": [replies[n].attempts for n in sorted(replies)],
            "errors": [f"{{replies[n].error}}" for n in replies if replies[n].error],
            "requests": result.requests, "stopped": result.stopped, "elapsed_s": result.elapsed_s,
            "grown_mb": peak_mb() - before,
        }}))

    asyncio.run(main())
"""


@dataclass(frozen=True)
class Ran:
    texts: list[str]
    attempts: list[int]
    errors: list[str]
    requests: int
    stopped: str | None
    elapsed_s: float
    grown_mb: float


def ask(server: Served, *, stream: bool, concurrency: str = "16") -> Ran:
    program = textwrap.dedent(CLIENT).format(prompt=PROMPT, n=N_PROMPTS)
    command = [sys.executable, "-W", "error", "-c", program, server.url, "stream" if stream else "whole", concurrency]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return Ran(**json.loads(done.stdout))


def keys() -> list[str]:
    return [hashlib.sha256(PROMPT.format(number, number).encode()).hexdigest() for number in range(N_PROMPTS)]


@pytest.fixture(scope="module")
def undisturbed() -> list[str]:
    with chaos(share=0) as server:
        ran = ask(server, stream=True)
    assert ran.requests == N_PROMPTS and len(set(ran.texts)) == N_PROMPTS
    return ran.texts


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", ["16", "auto"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_all_valid_results_come_through_30_percent_faults(
    undisturbed: list[str], stream: bool, concurrency: str
) -> None:
    seed = 11
    with chaos(seed=seed, share=0.3, latency_s=0.005) as server:
        ran = ask(server, stream=stream, concurrency=concurrency)
        log = server.log()
    assert ran.stopped is None and not ran.errors
    assert ran.texts == undisturbed
    # every request is accounted for: the faults that were to come, in their order, then one answer, and no more
    for number, key in enumerate(keys()):
        due = next(n for n in range(MOST_FAULTS + 1) if fault_of(seed, key, n, 0.3) is None)
        assert log[key] == [*(fault_of(seed, key, n, 0.3) for n in range(due)), "answer"]
        assert ran.attempts[number] == due + 1 <= 5
    assert ran.requests == sum(map(len, log.values()))
    assert 0 < ran.grown_mb < 50


def test_the_chaos_is_as_wild_as_it_says() -> None:
    found = Counter(fault_of(11, key, n, 0.3) for key in keys() for n in range(MOST_FAULTS))
    assert set(FAULTS) <= set(found) and 0.25 < 1 - found[None] / (N_PROMPTS * MOST_FAULTS) < 0.35


@pytest.mark.slow
def test_a_prompt_that_the_server_finds_too_long_is_asked_once() -> None:
    with chaos(share=0, limit_tokens=20) as server:
        ran = ask(server, stream=True)
        log = server.log()
    assert len(ran.errors) == N_PROMPTS and all("overflow" in error for error in ran.errors)
    assert ran.stopped is None and all(ends == ["overflow"] for ends in log.values())
