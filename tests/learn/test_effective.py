"""Effective length: what counts, where it ends and why, and how often its bounds are wrong."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from needlepoint.learn.effective import Bar, EffectiveLength, Rung, bar_of, effective_length
from needlepoint.learn.tally import Tally, merged
from needlepoint.types import Needle, Outcome, Score, Trial

BASE = Trial(
    id="t", dataset="needle_haystack", subset="english", layout="classic", length_mode="exact", replicate=0, repeat=0,
    context_length=1_000, depth_percent=0, achieved_length=1_000, achieved_depth_percent=0.5, boundary="sentence",
    needles=(Needle(text="n"),), placements=(), question="?", answers=("n",), corpus="c", corpus_sha256="0",
    tokenizer="t", tokenizer_fingerprint="f", prompt_sha256="p", sent_tokens=1_000, length_proven=True,
)  # fmt: skip


def scored(value: float | None, outcome: Outcome = "failed") -> Score:
    kind = outcome if value is None else "correct" if value == 1 else "partial" if value else "wrong"
    return Score(outcome=kind, score=value, reason="r", span=None, scorer="rules")


def rung(length: int, *texts: str, lost: int = 0) -> Rung:
    """One length; each text is a row of depths: `1` right, `0` wrong, `.` half right."""
    depths: dict[float, Tally] = {}
    for replicate, row in enumerate(texts):
        for i, mark in enumerate(row):
            trial = replace(BASE, context_length=length, replicate=replicate, depth_percent=10.0 * i)
            value = 0.5 if mark == "." else float(mark)
            depths.setdefault(trial.depth_percent, Tally()).add(trial, scored(value))
    for _ in range(lost):
        depths[0.0].add(replace(BASE, context_length=length), scored(None))
    return Rung(length=length, whole=merged(depths.values()), depths=depths)


def found(*rungs: Rung, bar: Bar | None = None) -> EffectiveLength:
    effective = effective_length(rungs, bar)
    assert effective is not None
    return effective


def test_it_is_the_longest_length_up_to_which_every_one_holds() -> None:
    one = found(rung(1_000, "1111111111"), rung(2_000, "1111111110"), rung(4_000, "1111100000"), rung(8_000, "1" * 10))
    assert (one.mean.length, one.mean.at_least, one.mean.stopped_by) == (2_000, False, "score")
    assert one.mean.reason == "50.0% is below 85% at 4,000 tokens"
    assert (one.worst_depth.length, one.worst_depth.reason) == (
        1_000,
        "0.0% is below 85% at depth 90% of 2,000 tokens",
    )


def test_what_never_falls_is_at_least_the_longest_length() -> None:
    one = found(rung(1_000, "11111"), rung(64_000, "11111")).mean
    assert (one.length, one.at_least, one.stopped_by) == (64_000, True, None)
    assert one.reason == "it never fell below 85%, up to 64,000 tokens, the longest"


def test_a_model_that_fails_at_once_has_none() -> None:
    one = found(rung(1_000, "00000"), rung(2_000, "11111")).mean
    assert one.length is None and one.certified is None and not one.at_least
    assert one.interval is not None and one.interval[0] == 0


def test_lost_coverage_ends_it_with_the_reason() -> None:
    one = found(rung(1_000, "11111"), rung(2_000, "11111", lost=5), rung(4_000, "11111")).mean
    assert (one.length, one.stopped_by, one.at_least) == (1_000, "coverage", False)
    assert one.reason == "only 5 of 10 trials at 2,000 tokens are valid (5 failed)"
    assert one.interval == (0, 1_000)


def test_a_tenth_may_be_lost() -> None:
    assert found(rung(1_000, "111111111", lost=1)).mean.at_least


def test_a_depth_without_a_valid_trial_ends_the_worst_depth() -> None:
    some = rung(1_000, "1" * 20)
    depths = {**some.depths, 55.0: Tally()}
    depths[55.0].add(BASE, scored(None, "overflow"))
    one = found(Rung(length=1_000, whole=merged(depths.values()), depths=depths))
    assert one.mean.at_least
    assert one.worst_depth.reason == "no valid trial at depth 55% of 1,000 tokens"
    assert one.worst_depth.stopped_by == "coverage"


def test_presets_set_the_bar() -> None:
    rungs = rung(1_000, "1111111100"), rung(2_000, "1111111000"), rung(4_000, "1111110000")
    assert found(*rungs, bar=Bar(preset="ruler")).threshold == 0.856
    nolima = found(*rungs, bar=Bar(preset="nolima"))
    assert nolima.threshold == pytest.approx(0.85 * 0.8)
    assert nolima.mean.length == 2_000
    assert effective_length([rung(1_000, "00000")], Bar(preset="nolima")) is None


def test_no_length_has_no_effective_length() -> None:
    assert effective_length([]) is None


def test_nothing_is_certified_of_fewer_than_three_texts() -> None:
    assert found(rung(1_000, "1" * 200)).mean.certified is None
    assert found(rung(1_000, *["1" * 10] * 12)).mean.certified == 1_000


def test_certificates_and_intervals_hold_the_estimate_between_them() -> None:
    dice = random.Random("order")
    for _ in range(200):
        rungs = [
            rung(1_000 * 2**i, *("".join(dice.choice("1111110") for _ in range(8)) for _ in range(6))) for i in range(5)
        ]
        for reach in (found(*rungs).mean, found(*rungs).worst_depth):
            assert reach.interval is not None
            assert reach.interval[0] <= (reach.length or 0) <= reach.interval[1]
            assert (reach.certified or 0) <= (reach.length or 0)


def test_a_dip_is_seen_where_the_longest_length_is_fine() -> None:
    texts = ["1" * 10] * 10
    one = found(rung(1_000, *texts), rung(2_000, *["1110000000"] * 10), rung(4_000, *texts)).mean
    assert (one.length, one.interval) == (1_000, (1_000, 1_000))


TRUTHS = {
    "steep": (1.0, 0.97, 0.6, 0.2, 0.1),
    "shallow": (0.97, 0.93, 0.88, 0.82, 0.76),
    "edge": (0.95, 0.9, 0.86, 0.84, 0.8),
    "never": (0.97, 0.96, 0.95, 0.94, 0.93),
    "dip": (0.97, 0.7, 0.97, 0.97, 0.97),
}


@pytest.mark.parametrize("name", TRUTHS)
def test_bounds_are_wrong_no_more_often_than_they_say(name: str) -> None:
    shares, lengths = TRUTHS[name], [1_000 * 2**i for i in range(5)]
    truth = 0
    for length, share in zip(lengths, shares, strict=True):
        if share < 0.85:
            break
        truth = length
    dice = random.Random(f"effective:{name}")
    covered = false = 0
    runs = 200
    for _ in range(runs):
        rungs = []
        for length, share in zip(lengths, shares, strict=True):
            texts = []
            for _ in range(8):
                mine = dice.betavariate(share * 9, (1 - share) * 9) if share < 1 else 1.0
                texts.append("".join("1" if dice.random() < mine else "0" for _ in range(10)))
            rungs.append(rung(length, *texts))
        reach = found(*rungs).mean
        assert reach.interval is not None
        covered += reach.interval[0] <= truth <= reach.interval[1]
        false += (reach.certified or 0) > truth
    assert covered / runs >= 0.93
    assert false / runs <= 0.05


def test_the_bar_of_a_report_is_read_back() -> None:
    assert bar_of({"effective_length": {"threshold": 0.9, "preset": None}}) == Bar(threshold=0.9)
    assert bar_of({"effective_length": {"threshold": 0.7, "preset": "nolima"}}) == Bar(preset="nolima")
    assert bar_of({}) is None and bar_of({"effective_length": 32_000}) is None
