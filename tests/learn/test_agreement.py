from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.learn.agreement import agreement, kappa
from needlepoint.types import Outcome, Reply, Score

from .test_summary import BASE


def score(value: float | None, scorer: str = "judge", outcome: Outcome | None = None) -> Score:
    found: Outcome = outcome or ("unjudged" if value is None else "correct" if value == 1 else "wrong")
    return Score(outcome=found, score=value, reason=f"because {value}", span=None, scorer=scorer)


def found(*pairs: tuple[float | None, float | None]) -> dict[str, object]:
    rows = [
        (replace(BASE, id=str(n)), Reply(text=f"answer {n}"), score(one), score(two, "rules"))
        for n, (one, two) in enumerate(pairs)
    ]
    return agreement(rows, scorer="judge", other="rules")


def test_pass_and_fail_are_counted_against_each_other() -> None:
    report = found((1, 1), (1, 1), (0, 0), (1, 0), (0, 1), (0, 1), (None, 1))
    assert report["table"] == {"both_pass": 2, "only_scorer": 1, "only_other": 2, "both_fail": 1}
    assert (report["n"], report["agree"], report["unjudged"]) == (6, 3, 1)
    assert report["share"] == 0.5
    assert report["kappa"] == pytest.approx(0.0, abs=1e-6)


def test_every_disagreement_is_listed_with_both_reasons_and_the_answer() -> None:
    listed = found((1, 1), (1, 0))["disagreements"]
    assert isinstance(listed, list) and len(listed) == 1
    (one,) = listed
    assert one["id"] == "1" and one["answer"] == "answer 1"
    assert one["scorer"] == {"score": 1, "outcome": "correct", "reason": "because 1"}
    assert one["other"]["score"] == 0 and one["context_length"] == BASE.context_length


def test_a_known_kappa() -> None:
    assert kappa(20, 5, 10, 15) == pytest.approx(0.4)


def test_kappa_is_not_known_where_all_pass_or_nothing_was_scored() -> None:
    assert kappa(5, 0, 0, 0) is None and kappa(0, 0, 0, 7) is None and kappa(0, 0, 0, 0) is None
    assert found()["share"] is None and found()["kappa"] is None


counts = st.integers(0, 50)


@given(counts, counts, counts, counts)
def test_kappa_is_at_most_one_and_does_not_care_who_comes_first(a: int, b: int, c: int, d: int) -> None:
    value = kappa(a, b, c, d)
    assert value == kappa(a, c, b, d)
    if value is not None:
        assert -1 <= value <= 1
        assert (value == 1) == (b + c == 0)
