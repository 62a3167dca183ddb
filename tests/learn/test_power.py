"""What a comparison can see, against counting every result there is, and against runs that are drawn."""

from __future__ import annotations

import math
import random

import pytest

from needlepoint.learn.paired import mcnemar_mid_p, sign_flips
from needlepoint.learn.power import Design


@pytest.mark.parametrize(("n", "churn", "drop"), [(30, 0.05, 0.2), (60, 0.0, 0.1), (25, 0.1, 0.3)])
def test_the_chance_of_mcnemars_test_is_the_sum_over_all_results(n: int, churn: float, drop: float) -> None:
    bad, good = churn + drop, churn
    total = 0.0
    for lost in range(n + 1):
        for gained in range(n - lost + 1):
            if lost > gained and mcnemar_mid_p(lost, gained) < 0.05:
                ways = math.comb(n, lost) * math.comb(n - lost, gained)
                total += ways * bad**lost * good**gained * (1 - bad - good) ** (n - lost - gained)
    assert Design(n=n, churn=churn).power(drop) == pytest.approx(total, abs=1e-6)


def test_the_chance_over_texts_is_near_what_draws_find() -> None:
    texts, each, bad, good = 12, 30, 0.07, 0.02
    dice = random.Random("power over texts")
    found = 0
    for _ in range(500):
        sums = []
        for _ in range(texts):
            drawn = [dice.random() for _ in range(each)]
            sums.append(float(sum(u > 1 - good for u in drawn) - sum(u < bad for u in drawn)))
        found += sum(sums) < 0 and sign_flips(sums) < 0.05
    stated = Design(n=texts * each, churn=good, df=texts - 1).power(bad - good)
    assert stated == pytest.approx(found / 500, abs=0.06)


def test_the_visible_drop_is_found_four_times_of_five_and_a_smaller_one_less_often() -> None:
    design = Design(n=400, churn=0.01)
    drop = design.visible_drop()
    assert drop is not None
    assert design.power(drop) == pytest.approx(0.8, abs=0.02)
    assert design.power(drop * 0.8) < 0.8


def test_more_questions_see_smaller_drops_and_churn_hides_them() -> None:
    drops = [Design(n=n, churn=0.02).visible_drop() or 1.0 for n in (50, 200, 1_000, 20_000)]
    assert drops == sorted(drops, reverse=True)
    assert (Design(n=200, churn=0.1).visible_drop() or 1) > (Design(n=200).visible_drop() or 1)


def test_too_few_questions_see_nothing() -> None:
    assert Design(n=4).visible_drop() is None
    assert Design(n=30, churn=0.5).visible_drop() is None


def test_the_questions_needed_are_those_that_find_it() -> None:
    needed = Design(n=100, churn=0.01).trials_needed(0.05)
    assert needed is not None
    assert Design(n=needed, churn=0.01).power(0.05) >= 0.8
    assert Design(n=needed * 8 // 10, churn=0.01).power(0.05) < 0.8
    assert Design(n=100, churn=0.01).trials_needed(0.0) is None
