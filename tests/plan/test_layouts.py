"""Layouts: what their prompts share, how exact they are, and what a seed decides."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from needlepoint.connect import connect
from needlepoint.errors import LengthError, UsageError
from needlepoint.plan.exact import tolerance
from needlepoint.plan.grid import Grid
from needlepoint.plan.keyed import WOVEN_SETS
from needlepoint.plan.lattice import reach, stab
from needlepoint.plan.order import order
from needlepoint.plan.prompt import Prompt
from needlepoint.plan.task import Plan, Task
from needlepoint.plan.woven import MAX_NEEDLE_SHARE
from needlepoint.types import Corpus, Segment

TEN = Grid.from_specs("1k:4k:10", "0:100:10")
FIVE = Grid.from_specs("1k:4k:5", "0:100:5")


@pytest.fixture(params=["en", "zh"])
def corpus(request: Any, english: Corpus, chinese: Corpus) -> Corpus:
    return english if request.param == "en" else chinese


def made(corpus: Corpus, grid: Grid, layout: str, **more: Any) -> list[Prompt]:
    task = Task(grid=grid, layout=layout, **more)  # type: ignore[arg-type]
    return list(Plan(task, [corpus], connect("qwen3"), verify="all"))


def shares(prompts: list[Prompt]) -> tuple[float, int]:
    """(bound of naive, the trie by the very tokens, counted by a second implementation)."""
    told = sorted(list(prompt.token_ids()) for prompt in prompts)
    total = len(told[0])
    for one, other in pairwise(told):
        total += len(other) - next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))
    return total / sum(map(len, told)), total


@pytest.mark.parametrize(
    ("layout", "grid", "most"), [("classic", TEN, 0.5), ("lattice", TEN, 0.38), ("woven", FIVE, 0.12)]
)
def test_a_grid_shares_what_its_layout_promises(corpus: Corpus, layout: str, grid: Grid, most: float) -> None:
    prompts = made(corpus, grid, layout)
    found = order(prompts, "slot").forecast
    share, total = shares(prompts)
    assert found.bound_tokens == found.planned_tokens == total
    assert share <= most
    for prompt in prompts:
        assert prompt.n_tokens == prompt.cell.context_length == prompt.recount()
        assert prompt.layout == layout
        off = abs(prompt.achieved_depth_percent - prompt.cell.depth_percent) / 100 * prompt.n_tokens
        assert off <= tolerance(prompt.n_tokens)
        assert prompt.context().count(prompt.needles[0].text.strip()) == 1


def test_the_lattice_shares_more_than_classic_with_the_same_needle(corpus: Corpus) -> None:
    classic, lattice = (made(corpus, TEN, layout, needle_set="number") for layout in ("classic", "lattice"))
    assert classic[0].needles == lattice[0].needles
    assert shares(lattice)[1] < 0.85 * shares(classic)[1]


@pytest.mark.parametrize("family", WOVEN_SETS)
def test_no_woven_context_consists_of_needles(corpus: Corpus, family: str) -> None:
    prompts = made(corpus, TEN, "woven", needle_set=family)
    texts = {prompt.needles[0].text for prompt in prompts}
    count = connect("qwen3").tokenizer.count
    for prompt in prompts:
        context = prompt.context()
        told = sum(count(" " + text) for text in texts if text in context)
        assert told <= MAX_NEEDLE_SHARE * count(context) + 2
        assert prompt.needles[0].text in context
        assert prompt.needles[0].key and prompt.needles[0].key in prompt.question
        assert not any(answer in prompt.question for answer in prompt.answers)


def test_woven_cells_at_one_place_share_a_needle_and_others_have_their_own(english: Corpus) -> None:
    prompts = made(english, FIVE, "woven")
    by_needle: dict[str, set[int]] = {}
    for prompt in prompts:
        by_needle.setdefault(prompt.needles[0].text, set()).add(prompt.placements[0].tokens_before)
    assert len(by_needle) < len(prompts)
    assert all(max(places) - min(places) <= 2 for places in by_needle.values())
    assert len({prompt.needles[0].text for prompt in prompts if prompt.cell.depth_percent == 0}) <= 2


def test_a_whole_woven_grid_costs_little_more_than_its_longest_prompt(english: Corpus) -> None:
    found = order(made(english, Grid.from_specs("1k:32k:10", "0:100:10"), "woven"), "slot").forecast
    assert found.planned_tokens <= 0.06 * found.naive_tokens


def test_confusable_needles_are_said_in_one_way_and_distinct_ones_are_not(english: Corpus) -> None:
    def ways(family: str) -> Counter[str]:
        prompts = made(english, FIVE, "woven", needle_set=family)
        needles = {prompt.needles[0] for prompt in prompts}
        return Counter(
            needle.text.lower().replace((needle.key or "").lower(), "KEY").replace(needle.answers[0], "VALUE")
            for needle in needles
        )

    assert len(ways("confusable")) == 1
    assert len(ways("distinct")) > 5


def test_replicates_draw_text_needles_and_pairing_anew(english: Corpus) -> None:
    prompts = made(english, FIVE, "woven", replicates=3)
    texts = [{prompt.needles[0].text for prompt in prompts if prompt.replicate == number} for number in range(3)]
    assert not texts[0] & texts[1] and not texts[1] & texts[2]
    assert len({prompt.context()[:60] for prompt in prompts if prompt.cell.depth_percent == 50}) > 2


@pytest.mark.parametrize("layout", ["lattice", "woven"])
def test_a_cells_prompt_is_the_same_alone_in_a_part_and_in_the_whole(english: Corpus, layout: str) -> None:
    whole = {prompt.cell: prompt.sha256 for prompt in made(english, FIVE, layout)}
    part = made(english, FIVE, layout, limit=7)
    assert len(part) == 7 and all(whole[prompt.cell] == prompt.sha256 for prompt in part)
    plan = Plan(Task(grid=FIVE, layout=layout), [english], connect("qwen3"))  # type: ignore[arg-type]
    (alone,) = plan.only(("english", 3250, 75.0), 0)
    assert alone.sha256 == whole[alone.cell]


def test_bust_prompts_share_nothing_and_are_as_long(english: Corpus) -> None:
    prompts = made(english, FIVE, "classic", bust=True, repeats=2)
    assert len({prompt.messages()[0]["content"] for prompt in prompts}) == len(prompts) == 50
    assert all(prompt.n_tokens == prompt.cell.context_length for prompt in prompts)
    assert shares(prompts)[0] > 0.98


def test_a_dense_grid_to_128k_planned_on_paper_takes_an_eighth(english: Corpus) -> None:
    lengths = [round(1_000 + number * 127_000 / 34) for number in range(35)]
    cells = [(length, 100 * number / 34) for length in lengths for number in range(35)]
    reaches = [reach(length, depth, length - 110, share=0.0075) for length, depth in cells]
    places = stab(reaches, list(range(0, 128_000, 23)))
    prompts = []
    for (length, depth), mine, place in zip(cells, reaches, places, strict=True):
        place = round(mine.target) if place is None else place
        assert abs(place - depth / 100 * (length - 110)) <= max(0.0075 * length, 24)
        rest = length - 110 - place
        parts = [("head", 45, 0), ("hay", place, 0), ("needle", 20, 0), ("hay", rest, place), (f"tail {length}", 45, 0)]
        prompts.append(_Paper(tuple(Segment(*part) for part in parts if part[1] > 0), 45 + place))
    found = order(prompts, "slot").forecast
    assert found.planned_tokens <= 0.13 * found.naive_tokens


class _Paper:
    def __init__(self, segments: tuple[Segment, ...], fork: int) -> None:
        self.segments, self.fork = segments, fork


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"layout": "lattice", "needle_count": 2, "needle_set": "number"}, "one needle"),
        ({"layout": "woven", "needles": ("A fact.",)}, "draws a needle"),
        ({"layout": "woven", "needle_set": "uuid"}, "distinct, confusable"),
        ({"layout": "woven", "length_mode": "evalscope"}, "exact lengths"),
        ({"layout": "classic", "needle_set": "distinct"}, "--layout woven"),
        ({"layout": "classic", "length_mode": "evalscope", "bust": True}, "--length-mode exact"),
    ],
)
def test_what_a_layout_cannot_do_is_refused_in_words(english: Corpus, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Plan(Task(grid=FIVE, **settings), [english], connect("qwen3"))


def test_a_context_too_short_for_a_needle_names_the_shortest(english: Corpus) -> None:
    with pytest.raises(LengthError, match="woven contexts begin at about"):
        made(english, Grid(lengths=(160,), depths=(50,)), "woven")
