"""Which tokens prompts share, and the order that computes each of them once; against a second implementation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.plan.order import Forecast, groups, order
from needlepoint.plan.trie import Trie, pairs
from needlepoint.types import Segment


@dataclass(frozen=True)
class Told:
    segments: tuple[Segment, ...]
    fork: int = 0


def spelled(tokens: str, fork: int = 0) -> Told:
    return Told(tuple(Segment(token, 1) for token in tokens), fork)


def grid(lengths: list[int], places: list[int], head: int = 10, needle: int = 5, tail: int = 7) -> list[Told]:
    """Prompts as a grid has them: a head, text, the needle, text, a tail of its own."""
    found = []
    for length in lengths:
        for place in places:
            if head + place + needle + tail < length:
                rest = length - head - place - needle - tail
                parts = [("head", head, 0), ("hay", place, 0), ("needle", needle, 0), ("hay", rest, place)]
                parts = [part for part in parts if part[1]]
                segments = [Segment(*part) for part in parts] + [Segment(f"tail {length}", tail)]
                found.append(Told(tuple(segments), head + place))
    return found


def common(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def spell(told: Told) -> list[tuple[str, int]]:
    return [(part.source, part.start + at) for part in told.segments for at in range(part.n_tokens)]


PROMPTS = st.lists(st.text("ab", min_size=1, max_size=8), min_size=1, max_size=20)


@given(PROMPTS)
def test_a_trie_counts_each_shared_token_once(texts: list[str]) -> None:
    trie = Trie([spelled(text) for text in texts])
    prefixes = {text[:n] for text in texts for n in range(1, len(text) + 1)}
    assert trie.n_tokens == len(prefixes)
    assert trie.attention == sum(map(len, prefixes))


@given(PROMPTS)
def test_depth_first_costs_one_slot_exactly_the_trie(texts: list[str]) -> None:
    trie = Trie([spelled(text) for text in texts])
    found = trie.ascending()
    assert sorted(found) == list(range(len(texts)))
    asked = [texts[item] for item in found]
    cost = len(asked[0]) + sum(len(other) - common(one, other) for one, other in pairwise(asked))
    assert cost == trie.n_tokens


@given(PROMPTS)
def test_no_two_prompts_of_a_round_share_what_no_earlier_round_has(texts: list[str]) -> None:
    rounds = Trie([spelled(text) for text in texts]).paths()
    assert sorted(item for round_ in rounds for item in round_) == list(range(len(texts)))
    kept: set[str] = set()
    cost = 0
    for round_ in rounds:
        for item in round_:
            cost += sum(texts[item][:n] not in kept for n in range(1, len(texts[item]) + 1))
        kept |= {texts[item][:n] for item in round_ for n in range(1, len(texts[item]) + 1)}
    assert cost == len(kept)


def test_segments_of_one_source_share_the_shorter_one_and_go_on() -> None:
    one = Told((Segment("hay", 60), Segment("x", 1)))
    other = Told((Segment("hay", 100),))
    third = Told((Segment("hay", 60), Segment("hay", 30, 60), Segment("y", 1)))
    assert Trie([one, other, third]).n_tokens == 100 + 1 + 1


def test_a_grid_is_asked_by_places_ascending_and_short_before_long() -> None:
    prompts = grid([100, 200, 300], [0, 40, 60])
    places = [prompts[item].fork for item in order(prompts, "slot").sequence]
    assert places == sorted(places)
    lengths = [sum(part.n_tokens for part in prompts[item].segments) for item in order(prompts, "slot").sequence]
    assert lengths[:3] == [100, 200, 300]


def test_three_rounds_reach_the_bound_at_any_concurrency() -> None:
    found = order(grid([1000, 2000, 4000], [0, 100, 500, 900]), "radix", capacity_tokens=100_000)
    assert len(found.waves) == 3 and len(found.waves[0]) == 1
    assert found.forecast.planned_tokens == found.forecast.bound_tokens


def test_the_deepest_prompt_goes_first_since_all_others_leave_its_way() -> None:
    prompts = grid([1000, 2000], [0, 500, 900])
    first = prompts[order(prompts, "radix").waves[0][0]]
    assert first.fork == max(prompt.fork for prompt in prompts)
    assert sum(part.n_tokens for part in first.segments) == 2000


@pytest.mark.parametrize("capacity", [4_000, 9_000, 30_000])
def test_groups_hold_no_more_than_the_cache(capacity: int) -> None:
    prompts = grid(list(range(500, 4_001, 500)), list(range(0, 3_900, 130)))
    found = groups(prompts, Trie(prompts), capacity)
    assert sorted(item for group in found for item in group) == list(range(len(prompts)))
    assert all(Trie([prompts[item] for item in group]).n_tokens <= capacity for group in found)
    assert len(found) > 1


def test_a_forecast_is_what_asking_one_after_the_other_computes() -> None:
    prompts = grid([300, 100, 200], [60, 0, 40])
    given_ = order(prompts, "slot", as_given=True)
    told = [spell(prompt) for prompt in prompts]
    cost = len(told[0])
    for one, other in pairwise(told):
        cost += len(other) - next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    assert given_.sequence == tuple(range(len(prompts)))
    assert given_.forecast.planned_tokens == cost > given_.forecast.bound_tokens
    assert order(prompts, "none").forecast.planned_tokens == given_.forecast.naive_tokens


def test_recorded_points_pay_in_ascending_order_and_cost_more_than_nothing_else() -> None:
    prompts = grid([1000, 2000, 4000], [0, 100, 500, 900])
    found = order(prompts, "points")
    forks = [prompts[item].fork for item in found.sequence]
    assert forks == sorted(forks)
    assert found.forecast.bound_tokens < found.forecast.planned_tokens < found.forecast.naive_tokens
    assert all(len({prompts[item].fork for item in wave}) == 1 for wave in found.waves)


def test_whole_blocks_are_shared_and_the_last_one_is_computed() -> None:
    twice = [Told((Segment("hay", 64),)), Told((Segment("hay", 64),))]
    assert order(twice, "radix", block=16).forecast.planned_tokens == 64 + 16
    assert order(twice, "radix").forecast.planned_tokens == 64 + 1


def test_one_slot_computes_the_same_prompt_whole_again() -> None:
    twice = [Told((Segment("hay", 64),)), Told((Segment("hay", 64),))]
    longer = Told((Segment("hay", 80),))
    assert order(twice, "slot").forecast.planned_tokens == 64 + 64
    assert order([*twice, longer], "slot").forecast.planned_tokens == 64 + 64 + 16


def test_forecasts_of_two_texts_share_only_the_head() -> None:
    one = Forecast(naive_tokens=10, bound_tokens=8, planned_tokens=9, naive_attention=55, bound_attention=40)
    both = one.plus(one, shared=3)
    assert (both.naive_tokens, both.bound_tokens, both.planned_tokens) == (20, 13, 15)
    assert both.bound_attention == 80 - pairs(3)
    assert one.plus(one, shared=3, kept=False).planned_tokens == 18
