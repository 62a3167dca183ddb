"""Deadlines, retries and when to stop: plain values in, plain values out."""

from __future__ import annotations

import math
from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.ask.policy import Deadline, Outlook, RetryPolicy, RunnerSettings, is_overload, retry_after
from needlepoint.errors import UsageError
from needlepoint.types import PASSING_FAILURES, Failure, FailureKind


def failure(kind: FailureKind, **more: object) -> Failure:
    return Failure(kind=kind, message=f"a {kind}.", **more)  # type: ignore[arg-type]


def test_the_deadline_grows_with_prompt_and_answer() -> None:
    deadline = Deadline()
    assert deadline.seconds(0, 0) == 60
    assert deadline.seconds(128_000, 512) == pytest.approx(60 + 640 + 51.2)
    assert deadline.seconds(1_000, 64) < deadline.seconds(2_000, 64) < deadline.seconds(2_000, 4_096)


def test_a_deadline_that_the_user_gave_holds_for_every_length() -> None:
    assert Deadline(fixed_s=7).seconds(1_000_000, 10_000) == 7


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_only_what_can_pass_is_asked_again(kind: FailureKind) -> None:
    again = RetryPolicy().again(failure(kind), 1, Random(1))
    assert (again.wait_s is not None) == (kind in PASSING_FAILURES)
    assert not again.why


@given(attempt=st.integers(1, 4), seed=st.integers(0, 99))
def test_backoff_is_fully_jittered_and_bounded_by_a_doubling_limit(attempt: int, seed: int) -> None:
    wait_s = RetryPolicy(base_s=0.5).again(failure("server"), attempt, Random(seed)).wait_s
    assert wait_s is not None and 0 <= wait_s <= 0.5 * 2 ** (attempt - 1)
    assert wait_s == RetryPolicy(base_s=0.5).again(failure("server"), attempt, Random(seed)).wait_s


def test_backoff_never_exceeds_its_longest() -> None:
    policy = RetryPolicy(max_attempts=10_000, longest_backoff_s=30)
    assert policy.backoff_s(9_999) == 30


def test_attempts_end_and_the_reason_counts_them() -> None:
    policy = RetryPolicy(max_attempts=3)
    assert policy.again(failure("timeout"), 2, Random(0)).wait_s is not None
    last = policy.again(failure("timeout"), 3, Random(0))
    assert last.wait_s is None and "3 attempts" in last.why and not last.too_long


@pytest.mark.parametrize("asked_s", [0.0, 1.0, 30.0, 120.0])
def test_retry_after_is_kept_to_with_a_little_jitter(asked_s: float) -> None:
    for seed in range(20):
        wait_s = RetryPolicy().again(failure("rate_limit", retry_after_s=asked_s), 1, Random(seed)).wait_s
        assert wait_s is not None and asked_s <= wait_s <= asked_s + 1


@pytest.mark.parametrize("asked_s", [121.0, 3_600.0, math.inf])
def test_a_wait_beyond_the_limit_ends_the_trial_with_the_reason(asked_s: float) -> None:
    again = RetryPolicy().again(failure("rate_limit", retry_after_s=asked_s), 1, Random(0))
    assert again.wait_s is None and again.too_long and "asks to wait" in again.why


def test_a_wait_that_is_no_number_or_lies_in_the_past_is_none_or_nothing() -> None:
    assert retry_after(failure("rate_limit", retry_after_s=math.nan)) is None
    assert retry_after(failure("rate_limit", retry_after_s=-5.0)) == 0
    assert retry_after(failure("rate_limit")) is None


def test_overload_is_told_from_other_faults() -> None:
    assert is_overload(failure("rate_limit", status=429))
    assert is_overload(failure("server", status=503))
    assert is_overload(failure("server", status=529))
    assert is_overload(failure("server", status=500, retry_after_s=2.0))
    assert not is_overload(failure("server", status=500))
    assert not is_overload(failure("timeout"))


# --- the outlook ------------------------------------------------------------------------------------------------------


def lose(outlook: Outlook, kind: FailureKind, attempts: int = 5) -> str | None:
    for _ in range(attempts):
        outlook.saw(failure(kind))
    return outlook.gave_up(failure(kind))


def test_a_refused_key_stops_at_once() -> None:
    reason = lose(Outlook(), "auth", 1)
    assert reason and "API key" in reason


@pytest.mark.parametrize("kind", ["connection", "timeout"])
def test_nobody_there_is_known_after_two_trials(kind: FailureKind) -> None:
    outlook = Outlook()
    assert lose(outlook, kind) is None
    reason = lose(outlook, kind)
    assert reason and "10 requests" in reason and "Is the server running" in reason


def test_one_prompt_that_breaks_connections_is_no_reason_to_stop() -> None:
    outlook = Outlook()
    assert lose(outlook, "connection") is None
    outlook.saw(None)
    assert lose(outlook, "connection") is None


def test_a_server_that_dies_on_the_way_stops_the_run_after_a_row_of_losses() -> None:
    outlook = Outlook(many=8)
    outlook.saw(None)
    assert [lose(outlook, "connection") for _ in range(7)] == [None] * 7
    reason = lose(outlook, "connection")
    assert reason and "8 trials in a row" in reason


def test_each_reply_ends_a_row_of_losses() -> None:
    outlook = Outlook(many=8)
    for _ in range(100):
        outlook.saw(None)
        for _ in range(7):
            assert lose(outlook, "server") is None


def test_a_run_in_which_nothing_ever_works_is_stopped_early() -> None:
    outlook = Outlook(many=8)
    assert [lose(outlook, "bad_request", 1) for _ in range(7)] == [None] * 7
    reason = lose(outlook, "bad_request", 1)
    assert reason and "not one of 8 trials" in reason


def test_refused_prompts_after_replies_are_their_own_affair() -> None:
    outlook = Outlook(many=8)
    outlook.saw(None)
    assert all(lose(outlook, "bad_request", 1) is None for _ in range(100))


def test_overflow_says_nothing_about_the_server() -> None:
    outlook = Outlook()
    assert all(lose(outlook, "overflow", 1) is None for _ in range(100))


def test_three_trials_that_are_told_to_come_back_much_later_stop_the_run() -> None:
    outlook = Outlook()
    outlook.saw(None)
    later = failure("rate_limit", retry_after_s=3_600.0)
    assert outlook.gave_up(later, too_long=True) is None
    assert outlook.gave_up(later, too_long=True) is None
    assert "60 min" in (outlook.gave_up(later, too_long=True) or "")


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"max_attempts": 0}, {"rpm": 0}, {"tpm": -1}, {"timeout_s": 0}, {"rpm": math.nan}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=str(next(iter(wrong.values())))):
        RunnerSettings(**wrong)  # type: ignore[arg-type]
