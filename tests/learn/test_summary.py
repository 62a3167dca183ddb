from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from needlepoint.learn.effective import Bar
from needlepoint.learn.results import effective_result, position_result, subset_result
from needlepoint.learn.summary import summarise
from needlepoint.types import Needle, Outcome, Reply, Score, Trial, Usage

from ..work import lines_run

BASE = Trial(
    id="t", dataset="needle_haystack", subset="english", layout="classic", length_mode="exact", replicate=0, repeat=0,
    context_length=1_000, depth_percent=0, achieved_length=1_000, achieved_depth_percent=0.5, boundary="sentence",
    needles=(Needle(text="n"),), placements=(), question="?", answers=("n",), corpus="c", corpus_sha256="0",
    tokenizer="t", tokenizer_fingerprint="f", prompt_sha256="p", sent_tokens=1_000, length_proven=True,
)  # fmt: skip


def row(
    length: int, depth: float, outcome: Outcome, value: float | None, subset: str = "english"
) -> tuple[Trial, Reply, Score]:
    trial = replace(BASE, subset=subset, context_length=length, depth_percent=depth, sent_tokens=length)
    reply = Reply(text="x", usage=Usage(prompt=length + 3, completion=5, cached=10), prefilled_tokens=length - 10)
    return trial, reply, Score(outcome=outcome, score=value, reason="r", span=None, scorer="rules")


def report(*rows: tuple[Trial, Reply, Score]) -> dict[str, Any]:
    return summarise(rows, head={"model": "m"})


def test_invalid_trials_lower_coverage_and_never_the_score() -> None:
    found = report(row(1_000, 0, "correct", 1.0), row(1_000, 50, "wrong", 0.0), row(2_000, 0, "overflow", None))
    assert found["overall"] == {
        "score": 0.5,
        "interval": [pytest.approx(0.06083), pytest.approx(0.93917)],
        "interval_over": "trials",
        "n": 3,
        "valid": 2,
        "coverage": pytest.approx(2 / 3, abs=1e-6),
    }
    assert found["outcomes"] == {"correct": 1, "wrong": 1, "overflow": 1}
    lengths = found["subsets"][0]["lengths"]
    assert [(one["context_length"], one["score"], one["coverage"]) for one in lengths] == [
        (1_000, 0.5, 1.0),
        (2_000, None, 0.0),
    ]


def test_cells_rows_and_columns_are_numbers_in_order() -> None:
    found = report(
        row(2_000, 12.5, "partial", 0.5), row(1_000, 100, "correct", 1.0), row(1_000, 0, "correct", 1.0, "chinese")
    )
    english, chinese = found["subsets"]
    assert [(c["context_length"], c["depth_percent"]) for c in english["cells"]] == [(1_000, 100), (2_000, 12.5)]
    assert english["cells"][1]["outcomes"] == {"partial": 1}
    assert [d["depth_percent"] for d in english["depths"]] == [12.5, 100]
    assert chinese["n"] == 1


def test_tokens_are_summed_and_what_nobody_counted_is_null() -> None:
    found = report(row(1_000, 0, "correct", 1.0), row(2_000, 0, "correct", 1.0))
    assert found["tokens"] == {
        "sent": 3_000,
        "prompt": 3_006,
        "completion": 10,
        "reasoning": None,
        "cached": 20,
        "cache_written": None,
        "difference_max": 3,
    }
    assert found["prefix"]["prefilled_tokens"] == 2_980
    assert found["prefix"]["bound_tokens"] is None


def test_misses_that_were_cut_off_are_said_to_be() -> None:
    def ended(finish: str, *one: Any) -> tuple[Trial, Reply, Score]:
        trial, reply, score = row(*one)
        return trial, replace(reply, finish=finish), score

    whole = [ended("length", 1_000, 0, "correct", 1.0), ended("stop", 1_000, 50, "wrong", 0.0)]
    lost = [ended("length", 2_000, 0, "out_of_room", None)]
    assert not [note for note in report(*whole, *lost)["notes"] if "no more could be written" in note]
    cut = [ended("length", 1_000, 75, "wrong", 0.0), ended("length", 1_000, 100, "partial", 0.5)]
    (note,) = [note for note in report(*whole, *lost, *cut)["notes"] if "no more could be written" in note]
    assert note.startswith("2 of 3 answers") and "--max-tokens" in note


def test_an_empty_run_has_no_score() -> None:
    found = report()
    assert found["overall"]["score"] is None and found["overall"]["coverage"] is None and found["subsets"] == []


def texts(replicates: int, *, repeats: int = 1, subset: str = "english") -> list[tuple[Trial, Reply, Score]]:
    """Rows of several texts at two lengths and three depths; the second text misses at depth 50."""
    found = []
    for replicate in range(replicates):
        for length in (1_000, 2_000):
            for depth in (0, 50, 100):
                right = not (replicate == 1 and depth == 50)
                trial, reply, score = row(length, depth, "correct" if right else "wrong", float(right), subset)
                sha = f"{subset}.{replicate}.{length}.{depth}"
                for repeat in range(repeats):
                    found.append((replace(trial, replicate=replicate, repeat=repeat, prompt_sha256=sha), reply, score))
    return found


def test_intervals_speak_of_other_texts_from_three_on() -> None:
    two, five = report(*texts(2)), report(*texts(5))
    assert (two["replicates"], five["replicates"]) == (2, 5)
    assert two["overall"]["interval_over"] == "trials" and five["overall"]["interval_over"] == "texts"
    assert "no interval over texts: a subset has 2 texts" in two["notes"][0]
    assert five["notes"] == []
    assert five["interval_level"] == 0.95
    for part in (five["overall"], *five["subsets"][0]["lengths"], *five["subsets"][0]["depths"]):
        low, high = part["interval"]
        assert 0 <= low <= part["score"] <= high <= 1


def test_one_subset_with_too_few_texts_speaks_for_the_whole() -> None:
    found = report(*texts(5), *texts(1, subset="chinese"))
    assert found["replicates"] == 1 and found["overall"]["interval_over"] == "trials"
    assert [subset["interval_over"] for subset in found["subsets"]] == ["texts", "trials"]


def test_asking_again_changes_no_interval() -> None:
    once, thrice = report(*texts(5)), report(*texts(5, repeats=3))
    assert thrice["overall"]["n"] == 3 * once["overall"]["n"]
    assert thrice["overall"]["interval"] == once["overall"]["interval"]
    for one, other in zip(once["subsets"][0]["cells"], thrice["subsets"][0]["cells"], strict=True):
        assert one["interval"] == other["interval"]
    assert once["notes"] == [] and "count each prompt once" in thrice["notes"][-1]


def test_a_report_has_effective_length_and_position_by_subset_and_as_a_whole() -> None:
    found = report(*texts(6))
    for part in (found, *found["subsets"]):
        assert part["effective_length"]["threshold"] == 0.85
        assert part["effective_length"]["mean"]["length"] == 2_000
        assert [point["depth_percent"] for point in part["position"]["curve"]] == [0, 50, 100]
        assert set(part["position"]["curve"][0]) == {
            *("depth_percent", "score", "interval", "interval_over", "n", "valid", "coverage")
        }
        assert part["position"]["test"]["difference"] == pytest.approx(-1 / 6, abs=1e-6)
        assert part["position"]["test"]["p_value"] == 0.5
    strict = summarise(texts(6), head={}, bar=Bar(threshold=0.99))
    assert strict["effective_length"]["mean"]["length"] is None
    assert strict["effective_length"]["mean"]["reason"] == "94.4% is below 99% at 1,000 tokens"


def test_a_length_at_which_all_was_lost_has_no_interval_and_ends_the_effective_length() -> None:
    lost = [(replace(t, context_length=4_000), r, replace(s, outcome="overflow", score=None)) for t, r, s in texts(3)]
    found = report(*texts(3), *lost)
    last = found["subsets"][0]["lengths"][-1]
    assert (last["score"], last["interval"], last["coverage"]) == (None, None, 0.0)
    assert found["effective_length"]["mean"]["stopped_by"] == "coverage"
    assert found["effective_length"]["mean"]["length"] == 2_000


def test_an_empty_report_has_nothing_to_say() -> None:
    found = report()
    assert found["effective_length"] is None and found["position"] is None and found["notes"] == []
    assert found["replicates"] == 0


def test_a_report_is_read_as_values() -> None:
    found = report(*texts(6))
    english = subset_result(found["subsets"][0])
    assert english.name == "english" and len(english.cells) == 6
    assert english.lengths[0].context_length == 1_000 and english.lengths[0].interval is not None
    assert english.lengths[0].interval_over == "texts"
    assert english.lengths[0].score in english.lengths[0].interval
    effective = effective_result(found["effective_length"])
    assert effective is not None and effective.mean.at_least and effective.json() == found["effective_length"]
    position = position_result(found["position"])
    assert position is not None and position.p_value == 0.5 and position.interval is not None
    assert (position.over, position.texts) == ("texts", 6)
    assert [row.depth_percent for row in position.curve] == [row.depth_percent for row in english.depths]
    assert all(row.interval is not None and row.coverage == 1 for row in position.curve)


def test_parts_that_a_foreign_report_lacks_are_none() -> None:
    empty = subset_result({"cells": [{"score": 0.5}]})
    assert (empty.name, empty.effective_length, empty.position) == ("all", None, None)
    assert empty.cells[0].score == 0.5 and empty.cells[0].interval is None
    assert effective_result(32_000) is None and position_result({"curve": []}) is None


def test_summing_up_is_work_in_proportion_to_the_trials() -> None:
    dice = random.Random("many")

    def work(n: int) -> int:
        rows = []
        for replicate in range(10):
            for trial, reply, score in texts(1):
                for i in range(n):
                    right = dice.random() < 0.9
                    at = replace(
                        trial, replicate=replicate, context_length=1_000 + i % 20, prompt_sha256=f"{replicate}.{i}"
                    )
                    rows.append(
                        (at, reply, replace(score, score=float(right), outcome="correct" if right else "wrong"))
                    )
        return lines_run(lambda: report(*rows)) // len(rows)

    few, many = work(40), work(160)
    assert many <= few and many < 400
