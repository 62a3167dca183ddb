"""Prices, hard stops and forecasts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.ask.budget import Budget, Prices, Speed, estimate, money, read_prices
from needlepoint.errors import InputError, UsageError
from needlepoint.types import Usage

PRICES = Prices(input=1.0, output=10.0, cached_input=0.1, cache_write=1.25)


def test_cost_counts_cached_and_written_tokens_at_their_own_price() -> None:
    usage = Usage(prompt=1_000_000, completion=100_000, cached=600_000, cache_written=200_000)
    assert PRICES.cost(usage) == pytest.approx(0.2 * 1 + 0.6 * 0.1 + 0.2 * 1.25 + 0.1 * 10)


def test_without_a_price_of_its_own_cached_input_costs_what_input_costs() -> None:
    assert Prices(input=2, output=0).cost(Usage(prompt=1_000_000, completion=0, cached=900_000)) == pytest.approx(2)


@pytest.mark.parametrize("usage", [Usage(), Usage(prompt=5), Usage(completion=5)])
def test_cost_is_unknown_where_the_server_did_not_count(usage: Usage) -> None:
    assert PRICES.cost(usage) is None


def test_more_cached_than_sent_is_never_a_negative_cost() -> None:
    assert PRICES.cost(Usage(prompt=10, completion=0, cached=50, cache_written=50)) == pytest.approx(10 * 0.1 / 1e6)


@given(
    prompt=st.integers(0, 10**6), completion=st.integers(0, 10**5), cached=st.integers(0, 10**6),
    written=st.integers(0, 10**6),
)  # fmt: skip
def test_the_worst_case_is_never_exceeded(prompt: int, completion: int, cached: int, written: int) -> None:
    cost = PRICES.cost(Usage(prompt=prompt, completion=completion, cached=cached, cache_written=written))
    assert cost is not None and cost <= PRICES.worst(prompt, completion) + 1e-12


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_price_must_be_a_number_from_0_up(value: float) -> None:
    with pytest.raises(UsageError, match="price output"):
        Prices(input=1, output=value)


# --- price files ------------------------------------------------------------------------------------------------------


def test_prices_are_read_from_toml_and_json(tmp_path: Path) -> None:
    toml = tmp_path / "prices.toml"
    toml.write_text('["org/model-x"]\ninput = 0.15\noutput = 0.6\ncached_input = 0.075\n', "utf-8")
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"org/model-x": {"input": 0.15, "output": 0.6, "cached_input": 0.075}}), "utf-8")
    assert read_prices(toml, "org/model-x") == read_prices(file, "org/model-x")
    assert read_prices(toml, "org/model-x") == Prices(input=0.15, output=0.6, cached_input=0.075)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[model-y]\ninput = 1\noutput = 2\n", "model-y"),
        ("[model-x]\ninput = 1\n", "output is missing"),
        ("[model-x]\ninput = 1\noutput = '2'\n", "per million tokens"),
        ("[model-x]\ninput = 1\noutput = 2\ncached = 3\n", "cached_input"),
        ("[model-x\n", "not valid"),
        ("model-x = 3\n", "look like"),
        ("[model-x]\ninput = true\noutput = 2\n", "number"),
    ],
)
def test_a_broken_price_file_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=said):
        read_prices(path, "model-x")


def test_a_missing_price_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.toml"):
        read_prices(tmp_path / "nowhere.toml", "model-x")


# --- the hard stop ----------------------------------------------------------------------------------------------------


def test_a_limit_of_money_without_prices_is_refused() -> None:
    with pytest.raises(UsageError, match="--price-in"):
        Budget(max_cost=1)


def test_unknown_prices_give_an_unknown_cost_and_not_0() -> None:
    budget = Budget(max_tokens=1_000)
    claim = budget.claim(10, 10)
    budget.hold(claim)
    budget.spend(claim, Usage(prompt=10, completion=1))
    assert budget.cost is None and budget.tokens == 11


def test_what_is_in_flight_counts_until_it_is_known() -> None:
    budget = Budget(max_tokens=250)
    first, second = budget.claim(100, 10), budget.claim(100, 10)
    assert budget.fits(first)
    budget.hold(first)
    assert budget.fits(second)
    budget.hold(second)
    assert not budget.fits(budget.claim(100, 10))
    budget.spend(first, Usage(prompt=20, completion=1))
    assert budget.fits(budget.claim(100, 10))


def test_a_reply_without_usage_counts_in_full() -> None:
    budget = Budget(max_tokens=1_000)
    claim = budget.claim(100, 10)
    budget.hold(claim)
    budget.spend(claim, Usage())
    assert budget.tokens == 110 and not budget.held


def test_a_lost_answer_counts_in_full_and_is_told_apart() -> None:
    budget = Budget(prices=PRICES, max_cost=0.001)
    claim = budget.claim(500, 40)
    budget.hold(claim)
    budget.lose(claim)
    assert budget.cost == pytest.approx((500 * 1.25 + 40 * 10) / 1e6)
    assert "answers that got lost" in budget.why(claim)


def test_a_refused_request_costs_nothing() -> None:
    budget = Budget(prices=PRICES, max_cost=1)
    claim = budget.claim(500, 40)
    budget.hold(claim)
    budget.release(claim)
    assert budget.cost == 0 and budget.tokens == 0 and not budget.held


def test_a_server_that_counts_more_than_we_do_makes_later_claims_larger() -> None:
    budget = Budget(max_tokens=10_000)
    claim = budget.claim(100, 10)
    budget.hold(claim)
    budget.spend(claim, Usage(prompt=150, completion=5))
    assert budget.claim(100, 10).tokens == 160


def test_counts_that_are_not_proven_hold_back_more_from_the_start() -> None:
    budget = Budget(max_tokens=10_000, doubt=1.5)
    claim = budget.claim(1_000, 10)
    assert claim.tokens == 1_510
    budget.hold(claim)
    budget.spend(claim, Usage(prompt=1_100, completion=5))
    assert budget.tokens == 1_105 and budget.claim(1_000, 10).tokens == 1_510


def test_what_was_spent_before_counts_on() -> None:
    budget = Budget(max_tokens=1_000, tokens=950)
    assert not budget.fits(budget.claim(50, 10))


def test_the_reason_says_what_is_spent_what_is_left_and_how_to_go_on() -> None:
    budget = Budget(prices=PRICES, max_cost=5.0, cost=4.9)
    why = budget.why(budget.claim(100_000, 1_000))
    assert "4.90 of 5.00" in why and "0.1350" in why and "higher limit" in why


@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(1, 50), st.floats(0, 1)), max_size=60), st.integers(1, 3_000)
)
def test_the_limit_is_never_exceeded_by_any_course(course: list[tuple[int, int, float]], limit: int) -> None:
    budget = Budget(max_tokens=limit)
    flying = []
    for prompt, answer, share in course:
        claim = budget.claim(prompt, answer)
        if budget.fits(claim):
            budget.hold(claim)
            flying.append((claim, Usage(prompt=prompt, completion=int(share * answer))))
        elif flying:
            budget.spend(*flying.pop(0))
    for claim, usage in flying:
        budget.spend(claim, usage)
    assert budget.tokens <= limit and not budget.held


# --- dry runs ---------------------------------------------------------------------------------------------------------


def test_the_forecast_sums_tokens_cost_and_time() -> None:
    found = estimate(
        [1_000, 3_000],
        max_tokens=100,
        prices=Prices(input=1, output=10),
        speed=Speed(prefill_per_s=1_000, decode_per_s=10, request_s=1),
        concurrency=2,
        typical_tokens=20,
    )
    assert (found.requests, found.uncounted, found.prompt_tokens) == (2, 0, 4_000)
    assert (found.completion_tokens_typical, found.completion_tokens_worst) == (40, 200)
    assert found.cost_typical == pytest.approx(0.0044)
    assert found.cost_worst == pytest.approx(0.006)
    assert found.seconds == pytest.approx((2 * (1 + 2) + 4) / 2)


def test_what_a_cache_saves_takes_no_time_but_is_asked_all_the_same() -> None:
    speed = Speed(prefill_per_s=100, decode_per_s=10, request_s=0)
    found = estimate([1_000, 1_000], max_tokens=10, speed=speed, concurrency=1, computed_tokens=1_200)
    assert found.prompt_tokens == 2_000 and found.seconds == pytest.approx(12 + 2 * 1)


def test_the_forecast_keeps_to_the_rates() -> None:
    assert estimate([10] * 100, max_tokens=10, rpm=10).seconds == pytest.approx(600)
    assert estimate([90] * 100, max_tokens=10, tpm=1_000).seconds == pytest.approx(600)


def test_what_the_forecast_cannot_know_is_none() -> None:
    found = estimate([10, None], max_tokens=10, prices=PRICES)
    assert found.uncounted == 1
    assert found.prompt_tokens is found.cost_typical is found.cost_worst is found.seconds is None
    assert estimate([10], max_tokens=10).cost_worst is None
    assert estimate([10], max_tokens=10, speed=None).seconds is None


def test_an_empty_grid_takes_nothing() -> None:
    assert estimate([], max_tokens=10).seconds == 0


def test_money_is_shown_with_as_many_digits_as_it_needs() -> None:
    assert [money(x) for x in (0, 12.3456, 0.5, 0.00123, 0.0000456)] == ["0.00", "12.35", "0.5000", "0.0012", "4.6e-05"]
