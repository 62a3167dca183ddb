"""The runner against fake models, in made-up time: order, limits, retries, ends. No request leaves the process."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from needlepoint.ask.budget import Budget, Prices
from needlepoint.ask.runner import Job, Runner, RunnerSettings, RunnerState, RunResult
from needlepoint.errors import OutputError
from needlepoint.types import Askable, Endpoint, Failure, FailureKind, Message, Reply, Sampling, Times, Trial, Usage

from .virtual_time import run_virtual

# --- fakes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """A prompt that is nothing but its number and its size."""

    number: int
    n_tokens: int | None = 1_000
    max_tokens: int | None = None

    @property
    def sha256(self) -> str:
        return f"{self.number:064x}"

    def messages(self) -> list[Message]:
        return [Message(role="user", content=self.text())]

    def text(self) -> str:
        return f"prompt {self.number}"

    def token_ids(self) -> array[int]:
        return array("I", [self.number])


def make_trial(number: int, context_length: int = 1_000) -> Trial:
    return Trial(
        id=f"t{number}", dataset="needle", subset="english", layout="classic", length_mode="exact", replicate=0,
        repeat=0, context_length=context_length, depth_percent=50.0, achieved_length=None, achieved_depth_percent=None,
        boundary=None, needles=(), placements=(), question="?", answers=(), corpus="c", corpus_sha256="", tokenizer="t",
        tokenizer_fingerprint="", prompt_sha256=f"{number:064x}", sent_tokens=None, length_proven=False,
    )  # fmt: skip


def make_jobs(n: int, *, n_tokens: int | None = 1_000) -> list[Job]:
    return [Job(make_trial(number), Ask(number, n_tokens)) for number in range(n)]


Answer = Callable[[int, int], Reply | float | Exception | None]
"""(prompt's number, attempt from 1) → a reply, seconds to hang, an exception to raise, or None for a good reply."""


def good(number: int) -> Reply:
    return Reply(text=f"answer {number}", finish="stop", usage=Usage(prompt=1_000, completion=5))


class Fake:
    """A model with a script. Notes what it was asked, when, and how many at a time."""

    name = "fake"

    def __init__(self, answer: Answer = lambda number, attempt: None, *, takes_s: float = 1.0, wave: int = 1) -> None:
        self.answer = answer
        self.takes_s = takes_s
        self.wave = wave
        self.sent: list[tuple[float, int]] = []
        self.waves: list[list[int]] = []
        self.now = self.most = self.open = 0

    @property
    def order(self) -> list[int]:
        return [number for _, number in self.sent]

    async def connect(self) -> Endpoint:
        raise NotImplementedError

    async def close(self) -> None: ...

    async def ask(self, prompts: Sequence[Askable], sampling: Sampling) -> AsyncIterator[Reply]:
        self.now += 1
        self.open += 1
        self.most = max(self.most, self.now)
        self.waves.append([prompt.number for prompt in prompts])  # type: ignore[attr-defined]
        try:
            for prompt in prompts:
                number: int = prompt.number  # type: ignore[attr-defined]
                self.sent.append((asyncio.get_running_loop().time(), number))
                answer = self.answer(number, self.order.count(number))
                if isinstance(answer, float):
                    await asyncio.sleep(answer)
                    answer = None
                if self.takes_s:
                    await asyncio.sleep(self.takes_s)
                if isinstance(answer, Exception):
                    raise answer
                yield answer or good(number)
        finally:
            self.now -= 1
            self.open -= 1


def fail(kind: FailureKind, **more: Any) -> Reply:
    return Reply(error=Failure(kind=kind, message=f"a {kind}.", **more))


@dataclass
class Done:
    result: RunResult
    replies: dict[int, Reply]
    took_s: float
    runner: Runner


def run(
    model: Any,
    jobs: Any,
    settings: RunnerSettings | None = None,
    *,
    meanwhile: Callable[[Runner], Any] | None = None,
    sampling: Sampling | None = None,
    **more: Any,
) -> Done:
    replies: dict[int, Reply] = {}

    def on_reply(job: Job, reply: Reply) -> None:
        number: int = job.prompt.number  # type: ignore[attr-defined]
        assert number not in replies, "handed over twice"
        replies[number] = reply

    async def main() -> Done:
        options = {"on_reply": on_reply, **more}
        runner = Runner(model, sampling or Sampling(max_tokens=100), settings, **options)
        if meanwhile is not None:
            meanwhile(runner)
        result = await runner.run(jobs)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left, "tasks were left behind"
        return Done(result, replies, asyncio.get_running_loop().time(), runner)

    return run_virtual(main())


# --- order and limits -------------------------------------------------------------------------------------------------


def test_every_job_gets_its_reply_exactly_once_and_in_order_of_sending() -> None:
    model = Fake()
    done = run(model, make_jobs(50))
    assert model.order == list(range(50))
    assert {number: reply.text for number, reply in done.replies.items()} == {n: f"answer {n}" for n in range(50)}
    assert (done.result.asked, done.result.failed, done.result.unfinished, done.result.requests) == (50, 0, 0, 50)
    assert done.result.stopped is None


def test_as_many_are_in_flight_as_was_said() -> None:
    model = Fake()
    done = run(model, make_jobs(80), RunnerSettings(concurrency=16))
    assert model.most == 16 and done.took_s == pytest.approx(5)


def test_no_jobs_are_no_work() -> None:
    assert run(Fake(), []).result.asked == 0


def test_jobs_are_taken_only_when_they_can_be_sent() -> None:
    taken = 0

    def lazily() -> Iterator[Job]:
        nonlocal taken
        for job in make_jobs(100):
            taken += 1
            yield job

    model = Fake(lambda number, attempt: ahead.append(taken - len(model.sent)))
    ahead: list[int] = []
    run(model, lazily(), RunnerSettings(concurrency=8))
    assert max(ahead) <= 1


def test_times_and_attempts_are_noted() -> None:
    model = Fake(lambda number, attempt: fail("server", status=500) if attempt < 3 else None)
    reply = run(model, make_jobs(1)).replies[0]
    assert reply.attempts == 3 and reply.times.total == 1.0
    assert reply.times.queued is not None and reply.times.queued >= 2.0


def test_times_that_the_model_measured_itself_are_kept() -> None:
    model = Fake(lambda number, attempt: Reply(text="x", times=Times(first_token=0.25, total=0.5)))
    times = run(model, make_jobs(1)).replies[0].times
    assert (times.queued, times.first_token, times.total) == (0, 0.25, 0.5)


def test_bytes_in_flight_are_bounded_and_nothing_is_overtaken() -> None:
    model = Fake()
    jobs = [Job(make_trial(n), Ask(n, 400_000 if n % 3 == 0 else 100_000)) for n in range(30)]
    most = 0

    def sizes() -> None:
        nonlocal most
        most = max(most, len(model.sent))

    done = run(model, jobs, RunnerSettings(concurrency=30, max_bytes_in_flight=2_400_000), on_state=lambda _: sizes())
    assert model.order == list(range(30)) and done.result.failed == 0
    assert model.most == 3  # 400k + 100k + 100k tokens at about 4 bytes


def test_a_prompt_larger_than_all_bytes_in_flight_goes_alone() -> None:
    model = Fake()
    jobs = [Job(make_trial(n), Ask(n, 1_000_000)) for n in range(3)]
    done = run(model, jobs, RunnerSettings(max_bytes_in_flight=1_000))
    assert model.most == 1 and done.result.asked == 3


def test_rpm_and_tpm_hold_and_keep_the_order() -> None:
    model = Fake(takes_s=0.1)
    done = run(model, make_jobs(60), RunnerSettings(rpm=60))
    assert done.took_s == pytest.approx(58, abs=1.5) and model.order == list(range(60))
    done = run(Fake(takes_s=0.1), make_jobs(60), RunnerSettings(tpm=66_000))
    assert done.took_s == pytest.approx(58, abs=1.5)


def test_what_is_waited_for_can_be_seen() -> None:
    states: list[RunnerState] = []
    run(Fake(takes_s=0.1), make_jobs(10), RunnerSettings(rpm=12), on_state=states.append)
    assert any(state.waiting and state.waiting.startswith("--rpm: ") for state in states)
    assert states[-1].waiting is None and states[-1].done == 10


# --- overflow ---------------------------------------------------------------------------------------------------------


def test_what_cannot_fit_is_not_sent() -> None:
    model = Fake()
    jobs = [Job(make_trial(n), Ask(n, n_tokens)) for n, n_tokens in enumerate([800, 900, 901, 5_000])]
    done = run(model, jobs, limit_tokens=1_000)
    assert model.order == [0, 1]
    for number in (2, 3):
        error = done.replies[number].error
        assert error and error.kind == "overflow" and "1,000" in error.message and done.replies[number].attempts == 0
    assert (done.result.asked, done.result.overflow, done.result.failed, done.result.requests) == (4, 2, 0, 2)


def test_a_prompts_own_answer_limit_counts() -> None:
    done = run(Fake(), [Job(make_trial(0), Ask(0, 900, max_tokens=50))], limit_tokens=950)
    assert done.replies[0].error is None


def test_an_uncounted_prompt_is_left_to_the_server() -> None:
    model = Fake(lambda number, attempt: fail("overflow", status=400))
    done = run(model, make_jobs(20, n_tokens=None), limit_tokens=10)
    assert done.result.overflow == 20 and done.result.requests == 20 and done.result.stopped is None


# --- retries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rate_limit", "server", "connection", "bad_answer", "timeout"])
def test_what_can_pass_is_asked_again_until_it_does(kind: FailureKind) -> None:
    model = Fake(lambda number, attempt: fail(kind) if attempt <= 4 and number == 3 else None)
    done = run(model, make_jobs(10))
    assert done.result.failed == 0 and done.replies[3].attempts == 5 and len(model.sent) == 14


@pytest.mark.parametrize("kind", ["overflow", "bad_request"])
def test_what_cannot_pass_is_asked_once(kind: FailureKind) -> None:
    model = Fake(lambda number, attempt: fail(kind) if number == 3 else None)
    done = run(model, make_jobs(10))
    error = done.replies[3].error
    assert error and error.kind == kind and error.message == f"a {kind}." and len(model.sent) == 10


def test_no_prompt_is_sent_more_often_than_the_policy_says() -> None:
    model = Fake(lambda number, attempt: fail("server", status=500) if number % 2 else None)
    done = run(model, make_jobs(40), RunnerSettings(max_attempts=3))
    assert set(Counter(model.order).values()) == {1, 3}
    assert done.result.failed == 20
    error = done.replies[1].error
    assert error and error.message == "a server; given up after 3 attempts."


def test_a_request_that_hangs_is_cut_off_and_asked_again() -> None:
    model = Fake(lambda number, attempt: 1e6 if attempt == 1 and number == 0 else None)
    done = run(model, make_jobs(3), RunnerSettings(timeout_s=30))
    assert done.result.failed == 0 and done.replies[0].attempts == 2
    assert 30 < done.took_s < 33 and model.open == 0


def test_a_request_that_always_hangs_fails_as_a_timeout() -> None:
    model = Fake(lambda number, attempt: 1e6 if number == 0 else None)
    done = run(model, make_jobs(3), RunnerSettings(timeout_s=30, max_attempts=2))
    error = done.replies[0].error
    assert error and error.kind == "timeout" and "30 s" in error.message and "--timeout" in error.message


def test_long_prompts_have_more_time() -> None:
    model = Fake(takes_s=200.0)
    jobs = [Job(make_trial(0), Ask(0, 1_000)), Job(make_trial(1), Ask(1, 100_000))]
    done = run(model, jobs, RunnerSettings(max_attempts=1))
    error = done.replies[0].error
    assert error and error.kind == "timeout" and done.replies[1].error is None


def test_a_timeout_inside_the_model_is_not_taken_for_ours() -> None:
    with pytest.raises(TimeoutError, match="inside"):
        run(Fake(lambda number, attempt: TimeoutError("inside")), make_jobs(1))


def test_retry_after_holds_up_everybody() -> None:
    model = Fake(
        lambda number, attempt: fail("rate_limit", retry_after_s=60.0) if (number, attempt) == (4, 1) else None
    )
    done = run(model, make_jobs(40), RunnerSettings(concurrency=4))
    told_at = next(at for at, number in model.sent if number == 4) + 1.0
    assert not [at for at, _ in model.sent if told_at < at < told_at + 60]
    assert done.result.failed == 0 and len(model.sent) == 41


def test_a_wait_beyond_reason_fails_that_prompt_and_not_the_others() -> None:
    model = Fake(lambda number, attempt: fail("rate_limit", retry_after_s=3_600.0) if number == 4 else None)
    done = run(model, make_jobs(20))
    error = done.replies[4].error
    assert error and "60 min" in error.message and done.replies[4].attempts == 1
    assert done.result.failed == 1 and done.took_s < 10


def test_a_server_that_refuses_above_its_rate_gets_all_answered() -> None:
    """2 requests a second, a burst of 2, no Retry-After, 8 at a time: nobody may run out of attempts."""
    free_at = 0.0

    def answer(number: int, attempt: int) -> Reply | None:
        nonlocal free_at
        now = asyncio.get_running_loop().time()
        if free_at > now + 0.5:
            return fail("rate_limit", status=429)
        free_at = max(free_at, now - 0.5) + 0.5
        return None

    for seed in range(5):
        free_at = 0.0
        model = Fake(answer, takes_s=0.2)
        done = run(model, make_jobs(120), rng=Random(seed))
        assert done.result.failed == 0, seed
        assert len(model.sent) < 2.5 * 120 and done.took_s < 4 * 60


def test_concurrency_auto_settles_near_the_knee_of_a_server() -> None:
    class Knee(Fake):
        async def ask(self, prompts: Sequence[Askable], sampling: Sampling) -> AsyncIterator[Reply]:
            self.takes_s = max(1.0, (self.now + 1) / 10)
            async for reply in super().ask(prompts, sampling):
                yield reply

    at: list[int] = []
    model = Knee()
    done = run(
        model, make_jobs(3_000), RunnerSettings(concurrency="auto"), on_state=lambda state: at.append(state.concurrency)
    )
    settled = at[len(at) // 2 :]
    assert done.result.failed == 0
    assert 10 <= sorted(settled)[len(settled) // 2] <= 23 and min(settled) >= 5


def test_the_same_seed_gives_the_same_course() -> None:
    def course() -> list[tuple[float, int]]:
        chance = Random(5)
        model = Fake(lambda number, attempt: fail("server", status=503) if chance.random() < 0.3 else None)
        run(model, make_jobs(60), RunnerSettings(concurrency="auto"), rng=Random(9))
        return model.sent

    assert course() == course()


# --- hopeless servers -------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_ends_the_run_quickly() -> None:
    model = Fake(lambda number, attempt: fail("connection"), takes_s=0.01)
    done = run(model, make_jobs(200))
    assert done.result.stop_kind == "server" and "Is the server running" in (done.result.stopped or "")
    assert len(model.sent) <= 9 * 5 and done.took_s < 20
    assert done.result.asked + done.result.unfinished <= 16


def test_a_refused_key_ends_the_run_at_the_first_prompt() -> None:
    model = Fake(lambda number, attempt: fail("auth", status=401))
    done = run(model, make_jobs(200), RunnerSettings(concurrency=1))
    assert done.result.stop_kind == "auth" and len(model.sent) == 1 and done.result.failed == 1


def test_a_refused_key_lets_those_in_flight_end_and_sends_no_other() -> None:
    model = Fake(lambda number, attempt: fail("auth", status=403) if number == 0 else 5.0)
    done = run(model, make_jobs(200))
    assert len(model.sent) == 8 and done.result.asked == 8 and done.result.failed == 1


# --- budget -----------------------------------------------------------------------------------------------------------


def test_a_budget_of_tokens_is_never_exceeded_and_almost_used_up() -> None:
    budget = Budget(max_tokens=50_000)
    done = run(Fake(), make_jobs(200), budget=budget)
    assert done.result.stop_kind == "budget" and "--max-tokens-total" in (done.result.stopped or "")
    assert 50_000 - 1_100 < budget.tokens <= 50_000 and done.result.asked == budget.tokens // 1_005
    assert done.result.unfinished == 0 and not budget.held


def test_a_budget_of_money_counts_lost_answers() -> None:
    budget = Budget(prices=Prices(input=1.0, output=1.0), max_cost=0.1)
    model = Fake(lambda number, attempt: fail("connection") if number == 5 and attempt < 4 else None)
    done = run(model, make_jobs(200), budget=budget)
    assert done.result.stop_kind == "budget" and budget.cost is not None and budget.cost <= 0.1
    assert budget.lost_tokens == 3 * 1_100
    assert "answers that got lost" in (done.result.stopped or "")


def test_a_retry_waits_for_the_budget_of_those_in_flight_before_it_gives_up() -> None:
    budget = Budget(max_tokens=8 * 1_100)
    model = Fake(lambda number, attempt: fail("connection") if number == 0 and attempt == 1 else 2.0)
    done = run(model, make_jobs(8), RunnerSettings(concurrency=7), budget=budget)
    assert budget.tokens <= 8 * 1_100 and done.result.asked == 7
    assert done.result.stop_kind == "budget"


def test_a_budget_too_small_for_one_request_sends_none() -> None:
    model = Fake()
    done = run(model, make_jobs(5), budget=Budget(max_tokens=1_000))
    assert not model.sent and done.result.stop_kind == "budget" and done.result.unfinished == 0


# --- waves of local engines -------------------------------------------------------------------------------------------


def test_a_local_engine_gets_waves_in_order_one_at_a_time() -> None:
    model = Fake(wave=16)
    done = run(model, make_jobs(40), RunnerSettings(concurrency=8))
    assert [len(wave) for wave in model.waves] == [16, 16, 8] and model.order == list(range(40))
    assert model.most == 1 and done.result.asked == 40


def test_only_what_failed_of_a_wave_is_asked_again() -> None:
    model = Fake(lambda number, attempt: fail("server") if number in (2, 5) and attempt == 1 else None, wave=8)
    done = run(model, make_jobs(8))
    assert model.waves == [list(range(8)), [2, 5]]
    assert done.result.failed == 0 and done.replies[2].attempts == 2 and done.replies[3].attempts == 1


def test_a_wave_that_hangs_loses_only_the_prompt_that_hung() -> None:
    model = Fake(lambda number, attempt: 1e6 if number == 2 and attempt == 1 else None, wave=8)
    done = run(model, make_jobs(8), RunnerSettings(timeout_s=10))
    assert model.waves == [list(range(8)), list(range(2, 8))] and model.open == 0
    assert [done.replies[n].attempts for n in range(8)] == [1, 1, 2, 1, 1, 1, 1, 1]


def test_an_overflow_is_left_out_of_its_wave() -> None:
    model = Fake(wave=4)
    jobs = [Job(make_trial(n), Ask(n, 9_000 if n == 1 else 10)) for n in range(6)]
    done = run(model, jobs, limit_tokens=1_000)
    assert model.waves == [[0, 2, 3, 4], [5]] and done.result.overflow == 1


def test_a_wave_shrinks_to_what_the_budget_allows() -> None:
    budget = Budget(max_tokens=5 * 1_100)
    model = Fake(wave=4)
    done = run(model, make_jobs(8), budget=budget)
    assert model.waves == [[0, 1, 2, 3], [4]] and done.result.stop_kind == "budget" and budget.tokens <= 5_500


@pytest.mark.parametrize(("replies", "said"), [(1, "no reply to 2"), (5, "more replies")])
def test_a_model_that_breaks_its_promise_is_found_out(replies: int, said: str) -> None:
    class Broken(Fake):
        async def ask(self, prompts: Sequence[Askable], sampling: Sampling) -> AsyncIterator[Reply]:
            for number in range(replies):
                yield good(number)

    with pytest.raises(RuntimeError, match=said):
        run(Broken(wave=3), make_jobs(3))


# --- ends -------------------------------------------------------------------------------------------------------------


def stop_at(*times: float) -> Callable[[Runner], None]:
    def later(runner: Runner) -> None:
        for at in times:
            asyncio.get_running_loop().call_at(at, runner.stop)

    return later


def test_stop_once_finishes_what_is_in_flight_and_takes_no_more() -> None:
    model = Fake()
    done = run(model, make_jobs(100), RunnerSettings(concurrency=4), meanwhile=stop_at(2.5))
    assert model.order == list(range(12)) and sorted(done.replies) == list(range(12))
    assert done.result.stop_kind == "user" and done.result.unfinished == 0 and done.took_s == 3


def test_stop_twice_cancels_what_is_in_flight_without_a_record() -> None:
    model = Fake(takes_s=10.0)
    done = run(model, make_jobs(100), RunnerSettings(concurrency=4), meanwhile=stop_at(12, 13))
    assert sorted(done.replies) == [0, 1, 2, 3] and len(model.sent) == 8
    assert done.result.unfinished == 4 and done.took_s == 13 and model.open == 0


def test_stop_does_not_wait_for_a_retry_or_a_pause() -> None:
    model = Fake(lambda number, attempt: fail("rate_limit", retry_after_s=100.0) if number == 3 else None)
    done = run(model, make_jobs(100), RunnerSettings(concurrency=4), meanwhile=stop_at(20))
    assert done.took_s == 20 and 3 not in done.replies and done.result.unfinished == 1


def test_stop_ends_a_wait_for_the_rate() -> None:
    done = run(Fake(), make_jobs(100), RunnerSettings(rpm=1), meanwhile=stop_at(10))
    assert done.took_s == 10 and done.result.asked == 1


def test_stop_before_the_start_asks_nothing() -> None:
    model = Fake()
    assert run(model, make_jobs(5), meanwhile=lambda runner: runner.stop()).result.asked == 0 and not model.sent


def test_stop_lets_a_local_engine_finish_the_prompt_it_is_at() -> None:
    model = Fake(wave=100)
    done = run(model, make_jobs(100), meanwhile=stop_at(4.5))
    assert sorted(done.replies) == list(range(5)) and done.took_s == 5 and model.open == 0
    assert done.result.unfinished == 95


@pytest.mark.parametrize("wave", [1, 4])
def test_a_record_that_cannot_be_written_ends_the_run_and_is_raised(wave: int) -> None:
    model = Fake(wave=wave)

    def on_reply(job: Job, reply: Reply) -> None:
        if job.prompt.number == 9:  # type: ignore[attr-defined]
            raise OutputError("disk full")

    with pytest.raises(OutputError, match="disk full"):
        run(model, make_jobs(100), on_reply=on_reply)
    assert len(model.sent) <= 24 and model.open == 0


def test_an_overflow_that_cannot_be_written_is_raised_too() -> None:
    def on_reply(job: Job, reply: Reply) -> None:
        raise OutputError("disk full")

    with pytest.raises(OutputError, match="disk full"):
        run(Fake(), make_jobs(5), on_reply=on_reply, limit_tokens=10)


def test_a_fault_of_the_model_is_raised_and_the_others_are_cancelled() -> None:
    model = Fake(lambda number, attempt: ValueError("a bug") if number == 3 else 100.0)
    with pytest.raises(ValueError, match="a bug"):
        run(model, make_jobs(100))
    assert model.open == 0


def test_a_fault_in_making_prompts_is_raised() -> None:
    def jobs() -> Iterator[Job]:
        yield from make_jobs(2)
        raise ValueError("no such prompt")

    model = Fake()
    with pytest.raises(ValueError, match="no such prompt"):
        run(model, jobs())
    assert model.open == 0


@pytest.mark.parametrize("wave", [1, 4])
@pytest.mark.parametrize("after_s", [0.0, 0.5, 3.0, 7.25])
def test_cancelling_the_run_leaves_nothing_behind(wave: int, after_s: float) -> None:
    model = Fake(lambda number, attempt: fail("server") if attempt == 1 else None, wave=wave)

    async def main() -> None:
        runner = Runner(model, Sampling(max_tokens=10), on_reply=lambda job, reply: None)
        running = asyncio.ensure_future(runner.run(make_jobs(100)))
        await asyncio.sleep(after_s)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() == {asyncio.current_task()} and model.open == 0

    run_virtual(main())


# --- what can be seen -------------------------------------------------------------------------------------------------


def test_the_state_counts_speed_and_time_left() -> None:
    states: list[RunnerState] = []

    async def main() -> None:
        runner = Runner(
            Fake(), Sampling(max_tokens=10), RunnerSettings(concurrency=5), on_reply=lambda *_: None,
            on_state=states.append,
        )  # fmt: skip
        await runner.run(make_jobs(100), total=100)
        assert runner.state == states[-1]

    run_virtual(main())
    middle = states[len(states) // 2]
    assert middle.total == 100 and middle.concurrency == 5 and 0 < middle.done < 100
    assert middle.tokens_per_s == pytest.approx(5 * 1_005, rel=0.3)
    assert middle.eta_s == pytest.approx(20 - middle.elapsed_s, abs=2.5)
    assert (states[-1].done, states[-1].in_flight, states[-1].eta_s) == (100, 0, 0)


def test_the_time_left_goes_by_tokens_where_their_sum_is_known() -> None:
    class Long(Fake):
        async def ask(self, prompts: Sequence[Askable], sampling: Sampling) -> AsyncIterator[Reply]:
            self.takes_s = (prompts[0].n_tokens or 0) / 1_000
            async for reply in super().ask(prompts, sampling):
                yield reply

    jobs = [Job(make_trial(n), Ask(n, 1_000 * (n + 1))) for n in range(20)]
    states: list[RunnerState] = []

    async def main() -> None:
        runner = Runner(
            Long(), Sampling(max_tokens=10), RunnerSettings(concurrency=1), on_reply=lambda *_: None,
            on_state=states.append,
        )  # fmt: skip
        await runner.run(jobs, total=20, total_tokens=210_000)

    run_virtual(main())
    for state in states[1:]:
        assert state.eta_s == pytest.approx(210 - state.elapsed_s, abs=1)


def test_the_state_is_told_at_most_ten_times_a_second() -> None:
    told: list[float] = []
    done = run(Fake(takes_s=0.001), make_jobs(2_000), on_state=lambda state: told.append(state.elapsed_s))
    assert len(told) <= 10 * done.took_s + 3


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------

PROGRAM = """
    import asyncio, os, signal, sys
    from needlepoint.ask.interrupts import install_interrupts
    from needlepoint.ask.runner import Runner, RunnerSettings
    from needlepoint.types import Sampling
    sys.path.insert(0, {tests!r})
    from tests.ask.test_runner import Fake, make_jobs

    def answer(number, attempt):
        for name in {signals}.get(number, ()):
            os.kill(os.getpid(), getattr(signal, name))
        return {slow}

    async def main():
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        asked = []
        runner = Runner(Fake(answer, takes_s=0.001), Sampling(max_tokens=5), RunnerSettings(concurrency=1),
                        on_reply=lambda job, reply: asked.append(job.prompt.number))
        with install_interrupts(runner):
            result = await runner.run(make_jobs(50))
        after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        print(asked, result.stop_kind, result.unfinished, before == after, flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(5)

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize(
    ("signals", "slow", "said"),
    [
        ({3: ["SIGINT"]}, "0.002", "[0, 1, 2, 3] user 0 True"),
        ({3: ["SIGTERM"]}, "0.002", "[0, 1, 2, 3] user 0 True"),
        ({3: ["SIGINT", "SIGTERM"]}, "60.0 if number == 3 else None", "[0, 1, 2] user 1 True"),
    ],
    ids=["Ctrl-C finishes what is in flight", "SIGTERM does too", "the second one stops now"],
)
def test_interrupts_stop_the_run_and_are_put_back(signals: dict[int, list[str]], slow: str, said: str) -> None:
    from pathlib import Path

    root = str(Path(__file__).parents[2])
    program = textwrap.dedent(PROGRAM).format(tests=root, signals=signals, slow=slow)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == [said, "interrupted"], done.stderr
    assert done.returncode == 0 and signal.SIGINT


def test_where_signals_cannot_be_taken_nothing_is_changed() -> None:
    from needlepoint.ask.interrupts import install_interrupts

    class Loop:
        def add_signal_handler(self, number: int, call: object) -> None:
            raise NotImplementedError

    before = signal.getsignal(signal.SIGINT)
    with install_interrupts(Runner(Fake(), Sampling(max_tokens=1), on_reply=lambda *_: None), Loop()):  # type: ignore[arg-type]
        assert signal.getsignal(signal.SIGINT) is before
    assert signal.getsignal(signal.SIGINT) is before


# --- waves ------------------------------------------------------------------------------------------------------------


def waved(*waves: int) -> list[Job]:
    return [Job(make_trial(number), Ask(number), wave) for number, wave in enumerate(waves)]


def test_a_wave_begins_when_all_of_the_wave_before_it_have_ended() -> None:
    model = Fake(lambda number, attempt: 9.0 if number == 1 else None)
    done = run(model, waved(0, 1, 1, 1, 2, 2), RunnerSettings(concurrency=8))
    sent = {number: at for at, number in model.sent}
    assert sent == pytest.approx({0: 0, 1: 1, 2: 1, 3: 1, 4: 11, 5: 11})
    assert done.result.asked == 6 and done.result.stopped is None


def test_a_wave_waits_for_one_that_is_asked_again_and_for_one_that_fails() -> None:
    def answer(number: int, attempt: int) -> Reply | None:
        if number == 0:
            return fail("server", status=500) if attempt < 3 else None
        return fail("bad_request", status=400) if number == 1 else None

    model = Fake(answer)
    done = run(model, waved(0, 0, 1), RunnerSettings(concurrency=8))
    assert model.order[-1] == 2 and model.order.count(0) == 3
    assert done.result.failed == 1 and len(done.replies) == 3


def test_a_stop_between_two_waves_finishes_what_is_in_flight_and_begins_no_more() -> None:
    def soon(runner: Runner) -> None:
        asyncio.get_running_loop().call_later(0.5, runner.stop)

    model = Fake()
    done = run(model, waved(0, 0, 1, 1), RunnerSettings(concurrency=8), meanwhile=soon)
    assert sorted(model.order) == [0, 1] == sorted(done.replies)
    assert done.result.stop_kind == "user"


def test_a_local_engine_gets_no_two_waves_in_one_call() -> None:
    model = Fake(wave=4)
    run(model, waved(0, 0, 1, 1, 1, 2))
    assert model.waves == [[0, 1], [2, 3, 4], [5]]
