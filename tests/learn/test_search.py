"""The search for the effective length: the posterior, the certificate, what is asked next, and why it ends."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needlepoint.learn.adaptive import ALPHA_SHARES, estimate, next_step
from needlepoint.learn.certificate import Wealth, growth
from needlepoint.learn.design import ladder
from needlepoint.learn.effective import Bar
from needlepoint.learn.limit import limit_of, read_limit
from needlepoint.learn.psychometric import Curves, Posterior
from needlepoint.learn.search import Answer, Ask, End, Search, State, Step, begin

CURVES = Curves(1_000, 64_000, 0.85)
Truth = Callable[[Ask], Answer]


def search_for(**more: object) -> Search:
    given = {"lengths": ladder(1_000, 64_000), "depths": (0.0, 50.0, 100.0), "subsets": ("text",), "bar": Bar()}
    return Search(**{**given, **more})  # type: ignore[arg-type]


def finding(share: Callable[[int], float], seed: str = "s") -> Truth:
    dice = random.Random(seed)
    return lambda ask: Answer(
        score=float(dice.random() < share(ask.context_length)), outcome="correct", tokens=ask.context_length
    )


def run(search: Search, truth: Truth) -> tuple[State, End, list[tuple[Step, list[Answer]]]]:
    state, record = begin(search), []
    while isinstance(step := next_step(search, state), Step):
        answers = [truth(ask) for ask in step.asks]
        record.append((step, answers))
        state = state.after(search, step, answers)
        assert len(record) < 1_000
    return state, step, record


def cliff(at: int) -> Callable[[int], float]:
    return lambda length: 1.0 if length <= at else 0.0


# --- curves -----------------------------------------------------------------------------------------------------------


def test_a_curve_has_the_threshold_where_it_crosses() -> None:
    length = round(2 ** CURVES.crossings[10])
    table = CURVES.found(length)
    n = len(CURVES.shapes)
    at_crossing = table[10 * n : 11 * n]
    assert all(abs(share - 0.85) < 0.01 for share in at_crossing)
    assert max(table[: 8 * n]) < 0.85 < min(table[13 * n :])


def test_curves_fall() -> None:
    tables = [CURVES.found(length) for length in (1_000, 4_000, 16_000, 64_000)]
    assert all(list(column) == sorted(column, reverse=True) for column in zip(*tables, strict=True))


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.sampled_from([1_000, 4_000, 16_000]), st.sampled_from([0.0, 0.5, 1.0])), max_size=6))
def test_a_posterior_does_not_depend_on_the_order_of_answers(answers: list[tuple[int, float]]) -> None:
    one, other = Posterior.before(CURVES), Posterior.before(CURVES)
    for length, score in answers:
        one = one.updated(length, score)
    for length, score in reversed(answers):
        other = other.updated(length, score)
    assert math.isclose(math.fsum(one.weights), 1)
    assert all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12) for a, b in zip(one.weights, other.weights, strict=True))


def test_half_a_point_twice_is_worth_a_hit_and_a_miss() -> None:
    before = Posterior.before(CURVES)
    halves = before.updated(4_000, 0.5).updated(4_000, 0.5)
    both = before.updated(4_000, 1.0).updated(4_000, 0.0)
    assert all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(halves.weights, both.weights, strict=True))


def test_information_is_what_an_answer_takes_from_the_entropy_of_the_effective_length() -> None:
    """The mutual information again, by its definition: entropy before, less the mean entropy after."""
    posterior = Posterior.before(CURVES).updated(4_000, 1.0).updated(32_000, 0.0)

    def entropy(one: Posterior) -> float:
        parts = one.stretches()
        below = sum(part for at, part in zip(CURVES.crossings, parts, strict=True) if at <= math.log2(1_000))
        above = sum(part for at, part in zip(CURVES.crossings, parts, strict=True) if at >= math.log2(64_000))
        low, high = math.log2(1_000), math.log2(64_000)
        inside = [part for at, part in zip(CURVES.crossings, parts, strict=True) if low < at < high]
        return -sum(part * math.log2(part) for part in [below, *inside, above] if part > 0)

    for length in (1_000, 8_000, 16_000, 64_000):
        hit = posterior.mean(length)
        after = hit * entropy(posterior.updated(length, 1.0)) + (1 - hit) * entropy(posterior.updated(length, 0.0))
        told = posterior.information(length, shortest=1_000, longest=64_000)
        assert math.isclose(told, entropy(posterior) - after, abs_tol=1e-9)


def test_quantiles_ascend_and_are_beyond_the_ends_where_the_crossing_is() -> None:
    posterior = Posterior.before(CURVES)
    found = [posterior.quantile(share / 20) for share in range(1, 20)]
    assert found == sorted(found) and found[0] < math.log2(1_000) and found[-1] >= math.log2(64_000)


# --- certificates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.5, 0.8, 0.85])
def test_wealth_is_no_more_than_fair_as_long_as_the_claim_is_false(p: float) -> None:
    """Exactly, over all ways in which ten trials can come out: its mean, and how often it ever reaches 1/alpha."""
    mean = ever = 0.0
    for scores in product((0.0, 1.0), repeat=10):
        wealth = Wealth.before(0.85, [(0.99, 0.7), (0.9, 0.2), (0.5, 0.1)])
        best = 1.0
        for score in scores:
            wealth = wealth.after(score)
            best = max(best, wealth.total)
        weight = math.prod(p if score else 1 - p for score in scores)
        mean += weight * wealth.total
        ever += weight * (best >= 1 / 0.3)
    assert mean <= 1 + 1e-9 and ever <= 0.3
    assert p < 0.85 or math.isclose(mean, 1)


def test_partial_scores_are_no_more_than_fair_either() -> None:
    """Scores of 0, 0.7 and 1 with a mean of exactly the threshold."""
    chances = {0.0: 0.1, 0.7: 1 / 6, 1.0: 1 - 0.1 - 1 / 6}
    assert math.isclose(sum(score * p for score, p in chances.items()), 0.85)
    mean = 0.0
    for scores in product(chances, repeat=5):
        wealth = Wealth.before(0.85)
        for score in scores:
            wealth = wealth.after(score)
            assert wealth.total >= 0
        mean += math.prod(chances[score] for score in scores) * wealth.total
    assert math.isclose(mean, 1)


def test_wealth_grows_where_the_claim_is_true_and_earlier_trials_help() -> None:
    blind, told = Wealth.before(0.85), Wealth.before(0.85, [(0.99, 1.0)])
    for _ in range(20):
        blind, told = blind.after(1.0), told.after(1.0)
    assert 1 < blind.total < told.total < (1 / 0.85) ** 20


def test_growth_is_the_divergence_from_the_threshold() -> None:
    assert growth(0.8, 0.85) == 0 and math.isclose(growth(1.0, 0.85), math.log(1 / 0.85))
    assert math.isclose(growth(0.95, 0.85), 0.95 * math.log(0.95 / 0.85) + 0.05 * math.log(0.05 / 0.15))


def test_certificates_are_false_as_rarely_as_they_say_where_the_truth_is_just_below() -> None:
    passed = 0
    for seed in range(60):
        search = search_for(lengths=ladder(1_000, 2_000), seed=seed, at_once=8)
        passed += run(search, finding(lambda length: 0.84, seed=f"below {seed}"))[0].certified is not None
    assert passed <= 7  # 5 % of 60, and chance


# --- the search -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize("at", [3_000, 16_000])
def test_a_cliff_is_found_and_a_length_before_it_certified(at: int, at_once: int) -> None:
    search = search_for(at_once=at_once)
    state, end, _ = run(search, finding(cliff(at)))
    found = estimate(search, state)
    assert end.kind == "done" and found is not None and found.length is not None
    low, high = found.interval
    assert low is not None and high is not None and low <= at <= high
    assert state.certified is not None and at / 3 <= state.certified.length <= at


def test_a_model_that_never_misses_holds_to_the_longest_length() -> None:
    search = search_for()
    state, _, _ = run(search, finding(lambda length: 1.0))
    found = estimate(search, state)
    assert found is not None and found.at_least and found.length == 64_000 and found.open_above
    assert state.certified is not None and state.certified.length >= 32_000


def test_a_model_that_finds_nothing_has_no_length_and_no_certificate() -> None:
    search = search_for()
    state, end, _ = run(search, finding(lambda length: 0.0))
    found = estimate(search, state)
    assert found is not None and found.length is None and found.interval == (None, None)
    assert state.certified is None and end.kind == "done" and state.tokens < 64_000 * 3


def test_the_next_step_is_a_function_of_the_state() -> None:
    search = search_for()
    state = begin(search)
    for _ in range(3):
        step = next_step(search, state)
        assert step == next_step(search, state) and isinstance(step, Step)
        state = state.after(search, step, [finding(cliff(8_000))(ask) for ask in step.asks])
    assert next_step(replace(search, seed=1), begin(search)) != next_step(search, begin(search))


def test_every_trial_has_a_number_of_its_own_and_depths_are_drawn_evenly() -> None:
    _, _, record = run(search_for(), finding(cliff(16_000)))
    asks = [ask for step, _ in record for ask in step.asks]
    assert [ask.number for ask in asks] == list(range(len(asks)))
    drawn = [next_step(search_for(seed=seed, at_once=8), begin(search_for())) for seed in range(40)]
    depths = [ask.depth_percent for step in drawn if isinstance(step, Step) for ask in step.asks]
    assert all(0.25 < depths.count(depth) / len(depths) < 0.42 for depth in (0.0, 50.0, 100.0))


def test_certificates_rest_on_trials_that_had_no_say_before() -> None:
    state, _, record = run(search_for(), finding(cliff(16_000)))
    phases = [step.phase for step, _ in record]
    assert phases == sorted(phases, reverse=True)  # locate, then certify
    fresh = [ask for step, _ in record if step.phase == "certify" for ask in step.asks]
    assert sum(attempt.count.asked for attempt in state.attempts) == len(fresh)
    assert {ask.context_length for ask in fresh} == {attempt.length for attempt in state.attempts}


@pytest.mark.parametrize("share", [0.8, 0.87, 0.93, 0.97])
def test_lengths_that_failed_never_use_more_than_alpha(share: float) -> None:
    for seed in range(10):
        search = search_for(seed=seed, at_once=8)
        state, _, _ = run(search, finding(lambda length: share if length < 16_000 else 0.5, seed=f"alpha {seed}"))
        failed = [attempt for attempt in state.attempts if not attempt.passed]
        assert sum(attempt.alpha for attempt in failed) <= 0.05 + 1e-12
        assert all(attempt.allowed for attempt in state.attempts)
        assert len(failed) <= len(ALPHA_SHARES)


def test_scored_again_a_climb_counts_only_where_what_it_stood_on_passes() -> None:
    """Its share of alpha was free because the length before had passed; where that fails it is no longer."""
    search = search_for(at_once=8)
    _, _, record = run(search, finding(cliff(16_000)))
    attempts = [step.attempt for step, _ in record if step.phase == "certify"]
    assert max(attempts) >= 1  # there was a climb
    other = begin(search)
    for step, answers in record:
        first = step.phase == "certify" and step.attempt == 0
        other = other.after(search, step, [replace(one, score=0.0) if first else one for one in answers])
    last, answers = record[-1]
    for _ in range(3):  # and its wealth is large enough
        other = other.after(search, last, answers)
    assert other.attempts[1].best >= 1 / other.attempts[1].alpha
    assert not other.attempts[1].passed and other.certified is None


@pytest.mark.parametrize("budget", [5_000, 60_000, 400_000])
def test_a_budget_is_never_exceeded_and_its_end_is_told(budget: int) -> None:
    search = search_for(budget_tokens=budget, at_once=8)
    state, end, _ = run(search, finding(cliff(16_000)))
    assert state.tokens <= budget
    assert state.certified is not None or (end.kind == "budget" and f"{budget:,}" in end.why)


def test_failures_are_no_misses() -> None:
    """Every third trial is lost at first: what is thought of the others is what it would be without them."""
    search = search_for(at_once=3)
    step = next_step(search, begin(search))
    assert isinstance(step, Step)
    hit, lost = Answer(score=1.0, outcome="correct", tokens=1), Answer(score=None, outcome="failed", tokens=0)
    state = begin(search).after(search, step, [hit, lost, hit])
    expected = begin(search).posterior
    assert expected is not None and state.posterior is not None
    for ask in (step.asks[0], step.asks[2]):
        expected = expected.updated(ask.context_length, 1.0)
    assert state.posterior.weights == expected.weights and state.ceiling is None


def test_the_search_ends_below_the_length_that_a_model_refuses() -> None:
    def truth(ask: Ask) -> Answer:
        if ask.context_length > 12_000:
            return Answer(score=None, outcome="overflow", tokens=0)
        return Answer(score=1.0, outcome="correct", tokens=ask.context_length)

    search = search_for()
    state, _, record = run(search, truth)
    found = estimate(search, state)
    assert state.ceiling is not None and state.ceiling > 12_000 and found is not None
    assert found.at_least and found.length == state.ladder(search)[-1] <= 12_000
    assert state.certified is not None and state.certified.length <= 12_000
    limit = limit_of(search, record, state)
    assert limit.ceiling == state.ceiling and limit.longest == found.length


def test_a_length_where_trials_are_lost_is_the_end_as_well() -> None:
    def truth(ask: Ask) -> Answer:
        lost = ask.context_length > 8_000 and ask.number % 2
        return Answer(score=None if lost else 1.0, outcome="failed" if lost else "correct", tokens=ask.context_length)

    search = search_for(at_once=8)
    state, _, _ = run(search, truth)
    assert state.ceiling is not None and state.certified is not None
    assert state.certified.length < state.ceiling


def test_nothing_is_measured_where_all_trials_are_lost() -> None:
    search = search_for(at_once=8)
    state, end, _ = run(search, lambda ask: Answer(score=None, outcome="failed", tokens=0))
    assert end.kind == "coverage" and state.certified is None and estimate(search, state) is None


def test_nolima_takes_the_threshold_from_the_models_own_score() -> None:
    search = search_for(bar=Bar(preset="nolima"), at_once=8)
    state, end, record = run(search, finding(lambda length: 0.75 if length <= 16_000 else 0.2))
    base = state.phases["base"]
    assert base.asked == 16 and base.score is not None
    assert state.threshold == pytest.approx(0.85 * base.score) and end.kind == "done"
    assert {ask.context_length for step, _ in record if step.phase == "base" for ask in step.asks} == {1_000}
    state, end, _ = run(search, finding(lambda length: 0.0))
    assert end.kind == "base" and state.threshold is None


def test_a_limit_survives_its_report() -> None:
    search = search_for()
    for truth in (finding(cliff(16_000)), finding(lambda length: 0.0)):
        state, _, record = run(search, truth)
        limit = limit_of(search, record, state)
        assert read_limit(json.loads(json.dumps(limit.json()))) == limit
    assert read_limit(None) is None and read_limit({"effective_length": 3}) is None


@pytest.mark.parametrize(("shortest", "longest"), [(1_000, 128_000), (500, 8_144), (1, 3), (1_000, 10_000_000)])
def test_a_ladder_has_both_ends_and_no_wide_steps(shortest: int, longest: int) -> None:
    found = ladder(shortest, longest)
    assert found[0] == shortest and found[-1] == longest and list(found) == sorted(set(found))
    assert all(high / low <= 1.3 or high == low + 1 for low, high in pairwise(found))
