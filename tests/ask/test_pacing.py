"""Rates, gates and how many at a time, under a made-up clock and against simulated servers."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needlepoint.ask.pacing import Auto, Fixed, Gate, Rate, Turns
from needlepoint.ask.policy import RetryPolicy

from .virtual_time import run_virtual

# --- rates ------------------------------------------------------------------------------------------------------------


def send_all(rate: Rate, costs: list[float]) -> list[float]:
    """When each of `costs` goes out, asked for one after another as soon as the rate lets."""
    now, times = 0.0, []
    for units in costs:
        now = rate.ready_at(now)
        rate.book(now, units)
        times.append(now)
    return times


def test_requests_are_spread_over_the_minute() -> None:
    times = send_all(Rate(60), [1] * 121)
    assert times[0] == 0 and times[-1] == pytest.approx(119, abs=1.01)
    assert min(later - earlier for earlier, later in itertools.pairwise(times[1:])) == pytest.approx(1)


@given(costs=st.lists(st.integers(1, 5_000), min_size=1, max_size=60), per_minute=st.integers(100, 10_000))
@settings(deadline=None)
def test_no_stretch_of_time_holds_more_than_its_share(costs: list[int], per_minute: int) -> None:
    times = send_all(Rate(per_minute), [float(cost) for cost in costs])
    for first in range(len(times)):
        for last in range(first, len(times)):
            share = per_minute * (times[last] - times[first] + 1.0) / 60
            assert sum(costs[first:last]) <= share + 1e-6  # and the one more that was let in at the end


def test_a_request_larger_than_a_minute_goes_out_and_is_paid_for_by_the_next() -> None:
    times = send_all(Rate(60_000), [128_000, 1_000, 1_000])
    assert times[0] == 0 and times[1] == pytest.approx(127) and times[2] == pytest.approx(128)


def test_an_idle_hour_saves_up_no_more_than_a_second() -> None:
    rate = Rate(60)
    rate.book(0, 1)
    times = []
    for _ in range(4):
        now = rate.ready_at(3_600 if not times else times[-1])
        rate.book(now, 1)
        times.append(now)
    assert times == [pytest.approx(3_600 + k) for k in (0, 0, 1, 2)]


def test_a_rate_must_be_above_0() -> None:
    with pytest.raises(ValueError, match="above 0"):
        Rate(0)


# --- the gate ---------------------------------------------------------------------------------------------------------


def gate(base_s: float = 1.0) -> Gate:
    return Gate(RetryPolicy(base_s=base_s), Random(3))


def test_retry_after_closes_the_gate_for_that_long() -> None:
    g = gate()
    g.refused(10, sent_at=9, retry_after_s=30)
    g.refused(11, sent_at=9, retry_after_s=5)
    assert g.opens_at == 40


def test_a_wait_that_is_too_long_for_one_prompt_does_not_close_the_gate() -> None:
    g = gate()
    g.refused(10, sent_at=9, retry_after_s=3_600)
    assert g.opens_at < 10


def test_refusals_of_one_window_count_once() -> None:
    one, many = gate(), gate()
    one.refused(10, sent_at=9, retry_after_s=None)
    for _ in range(64):
        many.refused(10, sent_at=9, retry_after_s=None)
    assert one.opens_at == many.opens_at <= 11


def test_each_window_of_refusals_doubles_the_pause_and_each_reply_takes_one_back() -> None:
    g, now, pauses = gate(), 0.0, []
    for _ in range(5):
        g.refused(now + 0.1, sent_at=now, retry_after_s=None)
        pauses.append(g.opens_at - now - 0.1)
        now = g.opens_at + 0.1
    assert all(0.5 * 2**k <= pause <= 2**k for k, pause in enumerate(pauses))
    for _ in range(5):
        g.admitted()
    g.refused(now + 0.1, sent_at=now, retry_after_s=None)
    assert g.opens_at - now - 0.1 <= 1


def test_after_a_refusal_turns_are_spaced_as_replies_were_and_the_spacing_wears_off() -> None:
    g = gate()
    g.passed(0)
    for _ in range(20):
        g.admitted()
    g.refused(10, sent_at=9, retry_after_s=1)
    assert g.spacing_s == pytest.approx(0.5)
    g.passed(11)
    assert g.opens_at == pytest.approx(11.5)
    g.refused(12, sent_at=11.5, retry_after_s=1)
    assert g.spacing_s == pytest.approx(1)
    for _ in range(300):
        g.admitted()
    assert g.spacing_s == 0
    g.passed(100)
    assert g.opens_at < 100


# --- turns ------------------------------------------------------------------------------------------------------------


def test_turns_are_taken_in_the_order_of_coming_at_the_rate() -> None:
    async def main() -> list[tuple[int, float]]:
        loop = asyncio.get_running_loop()
        turns = Turns(gate(), rpm=60, tpm=None, stopping=asyncio.Event(), waits=lambda *a, **k: None)
        taken: list[tuple[int, float]] = []

        async def one(number: int) -> None:
            assert await turns.take(1, 100)
            taken.append((number, loop.time()))

        await asyncio.gather(*(one(number) for number in range(10)))
        return taken

    taken = run_virtual(main())
    assert [number for number, _ in taken] == list(range(10))
    assert taken[-1][1] == pytest.approx(8, abs=1.01)


def test_a_large_prompt_is_not_overtaken_by_small_ones() -> None:
    async def main() -> list[int]:
        turns = Turns(gate(), rpm=None, tpm=6_000, stopping=asyncio.Event(), waits=lambda *a, **k: None)
        taken: list[int] = []

        async def one(n_tokens: int) -> None:
            await turns.take(1, n_tokens)
            taken.append(n_tokens)

        await asyncio.gather(*(one(n) for n in (200, 50_000, 10, 20, 30)))
        return taken

    assert run_virtual(main()) == [200, 50_000, 10, 20, 30]


def test_a_closed_gate_is_waited_for_with_its_reason_and_not_polled() -> None:
    async def main() -> tuple[float, list[str | None]]:
        said: list[str | None] = []
        g = gate()
        g.refused(0, sent_at=-1, retry_after_s=20)
        turns = Turns(g, rpm=None, tpm=None, stopping=asyncio.Event(), waits=lambda why, until=None: said.append(why))
        assert await turns.take(1, 1)
        return asyncio.get_running_loop().time(), said

    now, said = run_virtual(main())
    assert now == pytest.approx(20) and said == ["the server asks for a pause", None]


def test_nobody_gets_a_turn_once_the_run_ends() -> None:
    async def main() -> list[bool]:
        stopping = asyncio.Event()
        turns = Turns(gate(), rpm=1, tpm=None, stopping=stopping, waits=lambda *a, **k: None)
        asyncio.get_running_loop().call_later(5, stopping.set)
        got = list(await asyncio.gather(*(turns.take(1, 1) for _ in range(3))))
        assert asyncio.get_running_loop().time() == 5
        return [*got, await turns.take(1, 1)]

    assert run_virtual(main()) == [True, False, False, False]


# --- how many at a time -----------------------------------------------------------------------------------------------


class Server:
    """Keeps `limit` requests in flight against a server with a knee, and tells the pacer how each one ended.

    Up to `knee` at a time each takes its own time; above it they share. Above `most` they are refused.
    """

    def __init__(self, *, knee: int, most: int | None = None, spread: float = 0.0, seed: int = 1) -> None:
        self.knee = knee
        self.most = most
        self.spread = spread
        self.rng = Random(seed)
        self.pace = 1.0
        self.now = 0.0

    def run(self, auto: Auto | Fixed, n_requests: int, *, faults: float = 0.0, mixed: bool = False) -> list[int]:
        now, flying, limits = self.now, [], []
        for number in range(n_requests):
            while len(flying) >= auto.limit:
                auto.crowded()
                now = self.end_one(auto, flying)
            n_tokens = self.rng.choice([1_000, 4_000, 16_000]) if mixed else 4_000
            sent_at, busy = now, len(flying) + 1
            took = (
                self.pace
                * (0.3 + n_tokens / 10_000)
                * max(1.0, busy / self.knee)
                * (1 + self.rng.uniform(0, self.spread))
            )
            refused = self.most is not None and busy > self.most
            bad = refused or self.rng.random() < faults
            heapq.heappush(flying, (now + (0.02 if refused else took), number, sent_at, n_tokens, bad))
            limits.append(auto.limit)
        return limits

    def end_one(self, auto: Auto | Fixed, flying: list[tuple[float, int, float, int, bool]]) -> float:
        now, _, sent_at, n_tokens, bad = heapq.heappop(flying)
        if bad:
            auto.strained(sent_at=sent_at, now=now)
        else:
            auto.ended(sent_at=sent_at, now=now, n_prompt=n_tokens, n_completion=20)
        return now


def share(limits: list[int], percent: int) -> int:
    return sorted(limits)[(len(limits) - 1) * percent // 100]


@pytest.mark.parametrize("mixed", [False, True], ids=["equal lengths", "mixed lengths"])
@pytest.mark.parametrize("knee", [2, 4, 8, 16, 24])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_auto_settles_near_the_knee_and_stays(knee: int, seed: int, mixed: bool) -> None:
    settled = Server(knee=knee, spread=0.2, seed=seed).run(Auto(), 4_000, mixed=mixed)[2_000:]
    assert knee <= share(settled, 50) <= 2.3 * knee
    assert knee <= share(settled, 10) and max(settled) <= 3 * knee
    assert min(settled) >= knee // 2  # now and then the base is measured at half the limit


def test_auto_takes_what_a_server_without_a_knee_gives() -> None:
    limits = Server(knee=10_000, spread=0.2).run(Auto(most=64), 1_500)
    assert limits[-1] == 64 and limits.index(64) < 300


def test_auto_stays_low_at_a_server_that_works_one_by_one() -> None:
    assert max(Server(knee=1).run(Auto(), 500)[100:]) <= 3


@pytest.mark.parametrize("most", [3, 8, 20])
def test_auto_finds_the_limit_of_a_server_that_refuses_more(most: int) -> None:
    settled = Server(knee=10_000, most=most, spread=0.1).run(Auto(), 4_000)[1_000:]
    assert max(settled) <= most + 1
    assert sum(settled) / len(settled) >= 0.6 * most
    assert share(settled, 5) >= most // 2


def test_auto_does_not_fall_to_1_over_a_few_random_faults() -> None:
    settled = Server(knee=16, spread=0.2).run(Auto(), 4_000, faults=0.01)[500:]
    assert sum(settled) / len(settled) >= 6
    assert sum(limit <= 2 for limit in settled) < 0.02 * len(settled)


def test_auto_halves_once_for_all_that_were_sent_before() -> None:
    auto = Auto(start=32)
    for _ in range(20):
        auto.strained(sent_at=1.0, now=2.0)
    assert auto.limit == 16
    auto.strained(sent_at=2.5, now=3.0)
    assert auto.limit == 8


def test_auto_never_falls_below_1() -> None:
    auto = Auto()
    for second in range(20):
        auto.strained(sent_at=second + 0.5, now=second + 1.0)
    assert auto.limit == 1


def test_auto_finds_its_way_when_the_server_becomes_slower_for_all() -> None:
    auto, server = Auto(), Server(knee=16, spread=0.2)
    server.run(auto, 1_500)
    assert auto.limit >= 14
    slower = Server(knee=16, spread=0.2)
    slower.pace, slower.now = 5.0, 1e6
    settled = slower.run(auto, 4_000)[2_000:]
    assert share(settled, 50) >= 14


def test_auto_does_not_grow_while_its_places_are_not_used() -> None:
    auto = Auto()
    for second in range(100):
        auto.ended(sent_at=second, now=second + 0.1, n_prompt=100, n_completion=5)
    assert auto.limit == 2


def test_a_fixed_number_stays() -> None:
    assert set(Server(knee=2, most=4).run(Fixed(8), 300)) == {8}
