"""From what several judges said, several times each, to one score; or to `unjudged`, which is never a zero. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from ..types import VALID_OUTCOMES, Outcome, Reply, Score, Usage
from .case import Case, Contract
from .verdict import Unreadable, read_verdict, scale_of, worth

Aggregation = Literal["mean", "median", "majority"]
AGGREGATIONS: Final = get_args(Aggregation)
PASS: Final = 0.7
"""From here on a reply is good enough; on a scorer's own scale, what a 7 is from 1 to 10: published judges' line."""
_PASS_ON_SCALE = 6 / 9
_TINY = 1e-6
_LONGEST_REASON = 600


def passes(score: Score) -> bool | None:
    """Whether a reply is good enough; None where that was not measured."""
    if score.outcome not in VALID_OUTCOMES or score.score is None:
        return None
    if score.raw is not None and score.scale is not None and score.scale[1] > score.scale[0]:
        low, high = score.scale
        return (score.raw - low) / (high - low) >= _PASS_ON_SCALE - _TINY
    return score.score >= PASS - _TINY


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Who judges, by which contract, and how their verdicts become one. `judges` are ids, the first breaks no tie."""

    judges: tuple[str, ...]
    contract: Contract = field(default_factory=Contract)
    repeats: int = 1
    aggregation: Aggregation = "mean"
    min_valid_judges: int = 1
    recall_only: bool = False
    """Judge only what the rules do not find correct."""
    seed: int = 0

    @property
    def stem(self) -> str:
        """The name of its scorings: another scale is another name."""
        rubric = self.contract.rubric
        return "judge" if rubric == "binary" else f"judge-{rubric}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """One reply of one judge, whatever it is worth: `grade` on the rubric's scale, or the `problem` with it.

    `trial` and `reply` name what was judged: the trial's id, and the digest of its very reply.
    """

    trial: str
    reply: str
    judge: str
    repeat: int
    grade: float | None = None
    reason: str = ""
    problem: str | None = None
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    attempts: int = 1


def judgment_of(case: Case, reply: Reply, *, judge: str, cost: float | None = None) -> Judgment:
    """What one judge said of a case. Transport, form, and the code that proves that it was meant for this case."""
    base = Judgment(
        trial=case.trial.id,
        reply=case.digest,
        judge=judge,
        repeat=case.repeat,
        text=reply.text,
        usage=reply.usage,
        cost=cost,
        attempts=reply.attempts,
    )
    if reply.error is not None:
        return replace(base, problem=f"no reply: {reply.error.message}")
    verdict = read_verdict(reply.text, case.contract.rubric, n_facts=case.n_facts)
    if isinstance(verdict, Unreadable):
        cut = " (it was cut off at its token limit)" if reply.finish == "length" else ""
        return replace(base, problem=verdict.problem + cut)
    if verdict.case is not None and verdict.case.strip() != case.code:
        return replace(base, problem="it is a verdict on another case: the code that it gives back is not this one's")
    if verdict.case is None and case.suspicious:
        problem = "the answer speaks to its judge, and the verdict lacks the code that only the judge was told"
        return replace(base, problem=problem)
    return replace(base, grade=verdict.grade, reason=verdict.reason)


def decide(case: Case, judgments: Sequence[Judgment], panel: Panel, *, by_rules: Score, scorer: str) -> Score:
    """The score of one reply. `by_rules` is what the rules make of it: it names a miss, and guards against answers
    that speak to the judge."""
    rubric = panel.contract.rubric
    grades: dict[str, float] = {}
    problems: dict[str, str] = {}
    for judge in panel.judges:
        own = [one for one in judgments if one.judge == judge]
        valid = [one.grade for one in own if one.grade is not None]
        if not valid:
            problems[judge] = next((one.problem for one in own if one.problem), "not asked yet")
        elif (grade := _together(valid, panel.aggregation)) is None:
            problems[judge] = "its verdicts on the same answer differ, without a majority"
        else:
            grades[judge] = grade
    if len(grades) < panel.min_valid_judges:
        return _unjudged(_problems(problems, panel), scorer)
    grade = _together(list(grades.values()), panel.aggregation)
    if grade is None:
        return _unjudged(f"the judges differ, without a majority: {_grades(grades)}", scorer)
    value = round(worth(grade, rubric), 6)
    low = worth(scale_of(rubric)[0], rubric)
    outcome: Outcome = "correct" if value >= 1 - _TINY else "wrong" if value <= low + _TINY else "partial"
    if outcome == "wrong" and by_rules.outcome in ("not_found", "refused"):
        outcome = by_rules.outcome
    is_own_scale = rubric == "1-10"
    found = Score(
        outcome=outcome,
        score=value,
        reason=_reasons(judgments, grades),
        span=None,
        scorer=scorer,
        raw=grade if is_own_scale else None,
        scale=scale_of(rubric) if is_own_scale else None,
    )
    if case.suspicious and (other := passes(by_rules)) is not None and other is not passes(found):
        return _unjudged("the answer speaks to its judge, and the verdict is not what the rules see", scorer)
    return found


def settled(by_rules: Score, panel: Panel, *, is_empty: bool, scorer: str) -> Score | None:
    """The score of a reply that no judge is asked about: not measured, empty, or found by the rules already."""
    if by_rules.outcome not in VALID_OUTCOMES:
        return replace(by_rules, scorer=scorer, raw=None, scale=None)
    rubric = panel.contract.rubric
    raw_scale = (None, None) if rubric != "1-10" else (1.0, scale_of(rubric))
    if is_empty:
        low = worth(scale_of(rubric)[0], rubric)
        why = "the answer is empty"
        return Score(
            outcome="wrong", score=low, reason=why, span=None, scorer=scorer, raw=raw_scale[0], scale=raw_scale[1]
        )
    if panel.recall_only and by_rules.outcome == "correct":
        why = f"not sent to a judge: {by_rules.reason}"
        raw = None if rubric != "1-10" else 10.0
        return replace(by_rules, reason=why, scorer=scorer, raw=raw, scale=raw_scale[1])
    return None


def unjudgeable(reason: str, scorer: str) -> Score:
    """A reply that could be scored, and that no judge can be asked about."""
    return _unjudged(reason, scorer)


def _together(grades: Sequence[float], aggregation: Aggregation) -> float | None:
    """Several grades as one; None where a majority is asked for and there is none."""
    if aggregation == "mean":
        return round(statistics.fmean(grades), 9)
    if aggregation == "median":
        return statistics.median(grades)
    (grade, n), *others = Counter(grades).most_common()
    return None if others and others[0][1] == n else grade


def _unjudged(reason: str, scorer: str) -> Score:
    return Score(outcome="unjudged", score=None, reason=_shortened(reason), span=None, scorer=scorer)


def _problems(problems: Mapping[str, str], panel: Panel) -> str:
    if len(panel.judges) == 1:
        return f"the judge failed: {problems[panel.judges[0]]}"
    told = "; ".join(f"{judge}: {problem}" for judge, problem in problems.items())
    return f"{len(panel.judges) - len(problems)} of {len(panel.judges)} judges gave a verdict. {told}"


def _reasons(judgments: Sequence[Judgment], grades: Mapping[str, float]) -> str:
    told = []
    for judge in grades:
        reason = next((one.reason for one in judgments if one.judge == judge and one.reason), "")
        told.append(reason if len(grades) == 1 else f"{judge}: {grades[judge]:g}, {reason}")
    return _shortened("; ".join(told) or "no reason given")


def _grades(grades: Mapping[str, float]) -> str:
    return ", ".join(f"{judge} {grade:g}" for judge, grade in grades.items())


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"


def identity_of(panel: Panel, models: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What makes one judge's scoring another: whoever asks again with the same goes on with the same file.

    `models` are id → model and how it is sampled; where it is served does not matter.
    """
    return {
        "models": {judge: dict(facts) for judge, facts in models.items()},
        "rubric": panel.contract.rubric,
        "contract": panel.contract.fingerprint(),
        "repeats": panel.repeats,
        "aggregation": panel.aggregation,
        "min_valid_judges": panel.min_valid_judges,
        "recall_only": panel.recall_only,
    }
