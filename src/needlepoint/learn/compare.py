"""One run against another on the same questions: is it worse, by how much, where, and could it have been seen? Pure.

Only questions that both runs measured enter the difference; what one of them lost is coverage, and stands beside it.
Repeats of a prompt are averaged into one question. From `FEWEST_TEXTS` texts on the unit is the text, so that the
p value speaks of other texts, too; with fewer it is the question, and it speaks of these. docs/methods.md has it all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from .change import Comparison, CoverageChange, Equivalence, Flip, LostAt, MarginChange, Side, Sight
from .distributions import t_cdf, t_quantile
from .intervals import LEVEL, Over
from .paired import Shift, mcnemar_mid_p, shift_of_texts, shift_of_trials, sign_flips, variance_between
from .pairing import Pair, Pairing, Row, question_of
from .parts import Method, Part, Where, parts_of
from .power import Design
from .tally import Cluster, measured

FEWEST_TEXTS = 8
"""With fewer, sign flips of texts cannot tell a change that questions tell well."""
NOT_ASKED = "not_asked"
_EQUIVALENCE_LEVEL = 0.9
_TINY = 1e-9
_MARGIN_FLIPS = 12
"""Units whose choices of signs are all looked at: margins of so few may be alike by chance, and Student's t misled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One prompt that both measured, with its mean scores, or margins, over repeats."""

    text: Cluster
    subset: str
    length: int
    depth: float
    one: float
    other: float

    @property
    def change(self) -> float:
        return self.other - self.one

    @property
    def place(self) -> tuple[str, int, float]:
        return self.subset, self.length, self.depth


def compare_pairs(
    pairing: Pairing,
    *,
    names: tuple[str, str],
    scorer: str,
    margin: float | None = None,
    wanted: float | None = None,
    seed: int = 0,
    notes: Iterable[str] = (),
) -> Comparison:
    """The second run of a pairing against the first. `wanted` is a drop to say the price of."""
    both = [pair for pair in pairing.pairs if _value(pair.one) is not None and _value(pair.other) is not None]
    questions = _questions(both, _value)
    parts = parts_of(questions, lambda one: one.place, lambda some, where: _part(some, where, seed))
    shift = None if parts.whole is None else _shift(questions, parts.whole.over)
    flips = [_flip(pair) for pair in both if abs(_change(pair)) > _TINY]
    return Comparison(
        one=names[0],
        other=names[1],
        paired=True,
        scorer=scorer,
        texts=len({question.text for question in questions}),
        parts=parts,
        coverage=_coverage(pairing),
        flips=tuple(sorted(flips, key=lambda flip: flip.change)),
        equivalence=None if shift is None else equivalence(shift.interval, margin),
        sight=None if shift is None or parts.whole is None else _sight(questions, shift, parts.whole, wanted),
        logprob_margin=_margin_change(pairing, both, seed),
        notes=tuple(notes),
    )


def equivalence(interval: Callable[[float], tuple[float, float]], margin: float | None) -> Equivalence | None:
    """Whether both are alike within a margin; None where none is given."""
    return None if margin is None else Equivalence(margin=margin, interval=interval(_EQUIVALENCE_LEVEL))


# --- the difference ---------------------------------------------------------------------------------------------------


def _questions(pairs: Iterable[Pair], value: Callable[[Row], float | None]) -> list[_Question]:
    repeats: dict[Hashable, list[Pair]] = {}
    for pair in pairs:
        repeats.setdefault(question_of(pair.trial), []).append(pair)
    return [
        _Question(
            text=(some[0].trial.subset, some[0].trial.replicate),
            subset=some[0].trial.subset,
            length=some[0].trial.context_length,
            depth=some[0].trial.depth_percent,
            one=_mean([value(pair.one) or 0.0 for pair in some]),
            other=_mean([value(pair.other) or 0.0 for pair in some]),
        )
        for some in repeats.values()
    ]


def _part(questions: Sequence[_Question], where: Where, seed: int) -> Part | None:
    if not questions:
        return None
    changes = [question.change for question in questions]
    lost, gained = sum(change < -_TINY for change in changes), sum(change > _TINY for change in changes)
    texts, over = _by_text(questions), _unit(questions)
    method: Method = "sign_flips"
    if over == "texts" and len(texts) < len(questions):
        sums = [math.fsum(question.change for question in text) for text in texts.values()]
        p_value = sign_flips(sums, seed=seed)
    elif _is_right_or_wrong(changes):
        p_value, method = mcnemar_mid_p(lost, gained), "mcnemar_mid_p"
    else:
        p_value = sign_flips(changes, seed=seed)
    return Part(
        where=where,
        n=len(questions),
        one=_mean([question.one for question in questions]),
        other=_mean([question.other for question in questions]),
        difference=_mean(changes),
        interval=_shift(questions, over).interval(LEVEL),
        p_value=p_value,
        lost=lost,
        gained=gained,
        over=over,
        method=method,
    )


def _shift(questions: Sequence[_Question], over: Over) -> Shift:
    """The mean change with its error; that of texts where several questions share one."""
    texts = _by_text(questions)
    if over != "texts" or len(texts) == len(questions):
        return shift_of_trials([question.change for question in questions])
    return shift_of_texts(
        [[[question.change for question in text] for text in stratum] for stratum in _strata(texts) or ()]
    )


def _unit(questions: Sequence[_Question]) -> Over:
    texts = _by_text(questions)
    return "texts" if len(texts) >= FEWEST_TEXTS and _strata(texts) else "trials"


def _by_text(questions: Iterable[_Question]) -> dict[Cluster, list[_Question]]:
    texts: dict[Cluster, list[_Question]] = {}
    for question in questions:
        texts.setdefault(question.text, []).append(question)
    return texts


def _strata(texts: dict[Cluster, list[_Question]]) -> list[list[list[_Question]]] | None:
    """Subset → text → questions; None where a subset has one text only, and so no spread."""
    strata: dict[str, list[list[_Question]]] = {}
    for (subset, _), text in texts.items():
        strata.setdefault(subset, []).append(text)
    return list(strata.values()) if all(len(stratum) > 1 for stratum in strata.values()) else None


def _is_right_or_wrong(changes: Iterable[float]) -> bool:
    return all(abs(abs(change) - round(abs(change))) < _TINY for change in changes)


def _sight(questions: Sequence[_Question], shift: Shift, whole: Part, wanted: float | None) -> Sight:
    """What these questions can see, if as many answers flip for no reason as here: half of all flips where no change
    is seen, else the fewer of both."""
    changes = [question.change for question in questions]
    bad = math.fsum(change * change for change in changes if change < 0)
    good = math.fsum(change * change for change in changes if change > 0)
    design = Design(
        n=len(changes),
        churn=(min(bad, good) if whole.is_worse or whole.is_better else (bad + good) / 2) / len(changes),
        effect=shift.effect,
        df=shift.df,
        exact=_is_right_or_wrong(changes),
    )
    return Sight(
        n=len(changes),
        drop=design.visible_drop(),
        churn=design.churn,
        wanted=wanted or None,
        needed=design.trials_needed(wanted) if wanted else None,
    )


# --- margins ----------------------------------------------------------------------------------------------------------


def _margin_change(pairing: Pairing, measured_by_both: Iterable[Pair], seed: int) -> MarginChange | None:
    both = [pair for pair in measured_by_both if _margin(pair.one) is not None and _margin(pair.other) is not None]
    parts = parts_of(
        _questions(both, _margin), lambda one: one.place, lambda some, where: _margin_part(some, where, seed)
    )
    if parts.whole is None:
        return None
    rows = [*(pair.one for pair in pairing.pairs), *pairing.only_one]
    one = sum(_margin(row) is not None and _value(row) is not None for row in rows)
    return MarginChange(parts=parts, whole=parts.whole, one=one, lost=one - len(both))


def _margin_part(questions: Sequence[_Question], where: Where, seed: int) -> Part | None:
    """Margins have no bounds: Student's interval and test; where they are few, sign flips."""
    if len(questions) < 2:
        return None
    over = _unit(questions)
    units = [[[question.change] for question in questions]]
    if over == "texts":
        strata = _strata(_by_text(questions)) or ()
        units = [[[question.change for question in text] for text in stratum] for stratum in strata]
    mean = _mean([question.change for question in questions])
    sums = [math.fsum(text) for stratum in units for text in stratum]
    error, df = math.sqrt(variance_between(units, mean)), len(sums) - len(units)
    method: Method = "sign_flips" if len(sums) <= _MARGIN_FLIPS or error < _TINY else "student_t"
    half = t_quantile((1 + LEVEL) / 2, df) * error
    return Part(
        where=where,
        n=len(questions),
        one=_mean([question.one for question in questions]),
        other=_mean([question.other for question in questions]),
        difference=mean,
        interval=(mean - half, mean + half),
        p_value=sign_flips(sums, seed=seed) if method == "sign_flips" else 2 * t_cdf(-abs(mean) / error, df),
        lost=sum(question.one > 0 >= question.other for question in questions),
        gained=sum(question.other > 0 >= question.one for question in questions),
        over=over,
        method=method,
    )


# --- coverage and flips -----------------------------------------------------------------------------------------------


def _coverage(pairing: Pairing) -> CoverageChange:
    one = other = regained = 0
    reasons: Counter[str] = Counter()
    of: Counter[tuple[str, int]] = Counter()
    gone: Counter[tuple[str, int]] = Counter()
    found: list[tuple[Row, Row | None]] = [(pair.one, pair.other) for pair in pairing.pairs]
    found += [(row, None) for row in pairing.only_one]
    for first, second in found:
        had = _value(first) is not None
        has = second is not None and _value(second) is not None
        at = first[0].subset, first[0].context_length
        one += had
        other += has
        of[at] += had
        regained += has and not had
        if had and not has:
            gone[at] += 1
            reasons[NOT_ASKED if second is None else second[2].outcome] += 1
    return CoverageChange(
        asked=len(found),
        one=one,
        other=other,
        lost=gone.total(),
        regained=regained,
        reasons=dict(reasons.most_common()),
        lengths=tuple(
            LostAt(subset=at[0], context_length=at[1], lost=gone[at], of=of[at]) for at in sorted(of) if gone[at]
        ),
    )


def _flip(pair: Pair) -> Flip:
    trial = pair.trial
    return Flip(
        subset=trial.subset,
        context_length=trial.context_length,
        depth_percent=trial.depth_percent,
        replicate=trial.replicate,
        repeat=trial.repeat,
        trial=trial.id,
        question=trial.question,
        expected=trial.answers,
        change=round(_change(pair), 6),
        one=_side(pair.one),
        other=_side(pair.other),
    )


def _side(row: Row) -> Side:
    _, reply, score = row
    return Side(outcome=score.outcome, score=score.score, answer=reply.text, reason=score.reason)


def _change(pair: Pair) -> float:
    return (_value(pair.other) or 0.0) - (_value(pair.one) or 0.0)


def _value(row: Row) -> float | None:
    return measured(row[2])


def _margin(row: Row) -> float | None:
    return None if row[1].margin is None else row[1].margin.value


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
