"""Means of margins: by hand, by simulation, and by place."""

from __future__ import annotations

import random
import statistics

import pytest
from scipy import stats

from needlepoint.ask.models.margins import margin_of
from needlepoint.learn.margins import mean_margin
from needlepoint.types import Alternatives


def test_the_interval_is_students_over_the_means_of_texts() -> None:
    texts = {0: [1.0, 2.0], 1: [4.0, 5.0], 2: [0.0, -3.0], 3: [2.5, 2.5]}
    found = mean_margin([(text, value) for text, values in texts.items() for value in values])
    means = [statistics.mean(values) for values in texts.values()]
    low, high = stats.t.interval(0.95, 3, statistics.mean(means), stats.sem(means))
    assert found is not None
    assert found.mean == pytest.approx(statistics.mean(means))
    assert found.interval == pytest.approx((low, high))
    assert (found.over, found.n, found.ahead) == ("texts", 8, 6 / 8)


def test_two_texts_speak_of_trials_and_one_trial_of_nothing() -> None:
    found = mean_margin([(0, 1.0), (0, 2.0), (1, 4.0)])
    assert found is not None
    assert found.interval == pytest.approx(stats.t.interval(0.95, 2, 7 / 3, stats.sem([1.0, 2.0, 4.0])))
    assert found.over == "trials"
    one = mean_margin([(0, -1.0)])
    assert one is not None
    assert (one.interval, one.over, one.ahead) == (None, None, 0.0)
    assert mean_margin([]) is None


def test_intervals_cover_where_trials_share_texts_of_unequal_sizes() -> None:
    rng = random.Random(0)
    covered = 0
    for _ in range(400):
        trials = []
        for text in range(8):
            shift = rng.gauss(0, 2)
            trials += [(text, 1.0 + shift + rng.gauss(0, 1)) for _ in range(rng.randrange(3, 9))]
        found = mean_margin(trials)
        assert found is not None
        assert found.interval is not None
        covered += found.interval[0] <= 1.0 <= found.interval[1]
    assert 0.90 <= covered / 400 <= 0.98


def test_a_margin_is_against_the_likeliest_wrong_value_and_needs_all_of_them() -> None:
    compared = Alternatives(lead="It is", gold=" 12", rivals=(" 34", " 56"))
    found = margin_of(compared, [(-1.0, -0.5), (-4.0, -2.0), (-3.0, -2.5)])
    assert found is not None
    assert (found.gold, found.wrong, found.rival, found.tokens, found.value) == (-1.5, -5.5, "56", 2, 4.0)
    assert margin_of(compared, [(-1.0,), (-2.0,), None]) is None
    assert margin_of(compared, [None, (-2.0,), (-2.0,)]) is None
    assert margin_of(compared, [(float("-inf"),), (-2.0,), (-2.0,)]) is None
