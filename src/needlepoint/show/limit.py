"""A search for the effective length, in words: a line for each step while it goes on, and what it found at the end.

Lengths that were asked are exact; those that are estimated are rounded to two digits, and called "about".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..learn.adaptive import Estimate, estimate
from ..learn.limit import Limit, Looked, Tried
from ..learn.search import Answer, Count, Search, State, Step
from ..plan.grid import format_length
from .console import out_console, printable
from .words import ascii_only, percent, short_number

if TYPE_CHECKING:
    from rich.console import Console

_PHASES = {"base": "own score", "locate": "locating", "certify": "certifying"}


def about(length: int) -> str:
    """`16k` of 15,873: two digits."""
    unit: int = 10 ** max(0, math.floor(math.log10(length)) - 1)
    return format_length(round(length / unit) * unit)


def opening(search: Search) -> str:
    """What will be searched."""
    bar = search.bar
    threshold = (
        f"85% of the score at {format_length(search.lengths[0])}" if bar.preset == "nolima" else _share(bar.at(None))
    )
    budget = "" if search.budget_tokens is None else f" within {search.budget_tokens:,} uncached tokens"
    return (
        f"searching from {format_length(search.lengths[0])} to {format_length(search.lengths[-1])} tokens{budget} for "
        f"the length up to which accuracy, over the mean of {_depths(search.depths)}, is at least {threshold}."
    )


def step_line(step: Step, answers: Sequence[Answer], search: Search, state: State) -> str:
    """What one step asked, what came of it, and what is thought now."""
    counts: dict[int, Count] = {}
    for ask, answer in zip(step.asks, answers, strict=True):
        counts[ask.context_length] = counts.get(ask.context_length, Count()).plus(answer)
    asked = ", ".join(f"{format_length(length)} {_found(count)}" for length, count in counts.items())
    if step.phase == "certify" and state.attempts:
        attempt = state.attempts[-1]
        won = f"bets have won {attempt.wealth.total:.3g} of the {1 / attempt.alpha:.3g} needed"
        known = f"{_found(attempt.count)} in all, {'passed' if attempt.passed else won}"
    else:
        found = estimate(search, state)
        known = "nothing known yet" if found is None else estimate_words(found, search.lengths[0])
    return f"{_PHASES[step.phase]}: {asked}; {known}; {short_number(state.tokens)} tokens"


def estimate_words(found: Estimate, shortest: int) -> str:
    """`about 16k (95%: 11k to 19k)`."""
    if found.length is None:
        middle = f"below {format_length(shortest)}"
    else:
        middle = f"at least {format_length(found.length)}" if found.at_least else f"about {about(found.length)}"
    low, high = found.interval
    if low == high:
        return f"{middle} (95%)"
    first = f"below {format_length(shortest)}" if low is None else about(low)
    if high is None:
        last = f"below {format_length(shortest)}"
    else:
        last = f"{format_length(high)} or more" if found.open_above else about(high)
    return f"{middle} (95%: {first} to {last})"


def show_limit(limit: Limit, *, console: Console | None = None) -> None:
    """The final table on stdout, or the console that is given."""
    console = console or out_console()
    plain = not console.encoding.startswith("utf")
    for line in limit_lines(limit):
        console.print(printable(ascii_only(line) if plain else line), soft_wrap=True)


def limit_lines(limit: Limit) -> Iterator[str]:
    """What was found, of how much, and why the search ended."""
    rows = [*_answer(limit), *_ended(limit)]
    width = max(len(name) for name, _ in rows)
    yield from (f"{name:<{width}}  {says}".rstrip() for name, says in rows)
    if limit.looked:
        yield ""
        yield f"{'Length':>8}  {'Asked':>5}  {'Valid':>5}  {'Score':>6}"
        for one in limit.looked:
            yield f"{format_length(int(one.at)):>8}  {one.asked:>5}  {one.valid:>5}  {percent(one.score):>6}"
        yield "The lengths were chosen by the answers, so these scores have no ordinary intervals."


def _answer(limit: Limit) -> Iterator[tuple[str, str]]:
    where = f"over the mean of {_depths(limit.depths)} in {', '.join(limit.subsets)}"
    if limit.threshold is None:
        yield "Effective length", "not known: the threshold is a share of a score that wasn't measured"
        return
    preset = f" ({limit.preset})" if limit.preset else ""
    found = "not known" if limit.estimate is None else estimate_words(limit.estimate, limit.shortest)
    yield "Effective length", f"{found} tokens, at accuracy {_share(limit.threshold)}{preset}, {where}"
    if limit.estimate is not None and limit.located_by:
        yield "", f"locating ended: {limit.located_by}"
    certificate = limit.certificate
    if certificate is None:
        yield "Certified", "nothing"
    else:
        yield "Certified", f"{certificate_words(limit, certificate)}: {_score(certificate)}"
        yield "", "it is of that length; shorter ones are taken to be no worse"
        if worst := _worst(limit.certified_depths):
            yield "", worst
    for one in limit.tried:
        if not one.passed:
            yield "Not certified", f"{format_length(one.context_length)}: {_score(one)}"


def _ended(limit: Limit) -> Iterator[tuple[str, str]]:
    if limit.ceiling is not None:
        yield (
            "Ends at",
            f"{format_length(limit.ceiling)}: the model doesn't take it, or too many trials there were lost",
        )
    if limit.end is None:
        yield "Stopped", "before its end"
    else:
        budget = "ran out of budget: " if limit.end.kind == "budget" else ""
        yield "Stopped", f"{budget}{limit.end.why}"
    spent = [
        f"{_PHASES[one.phase]} {short_number(one.tokens)} in {one.trials:,} trial{'s' if one.trials != 1 else ''}"
        for one in limit.spent
    ]
    yield "Uncached tokens", ", ".join(spent) or "none"


def _worst(depths: Sequence[Looked]) -> str | None:
    """A word on the worst depth: seen, not certified."""
    known = [one for one in depths if one.score is not None]
    if len(known) < 2:
        return None
    worst = min(known, key=lambda one: one.score or 0.0)
    if (worst.score or 0.0) >= 1:
        return "no depth stood out; a single depth is searched and certified with --depths"
    says = f"its worst depth was {worst.at:g}%: {percent(worst.score)} of {worst.valid}"
    return f"{says}, too few to certify; --depths {worst.at:g} searches that one alone"


def certificate_words(limit: Limit, certificate: Tried) -> str:
    """`at least 16k tokens at 85% with 95% confidence`."""
    length = format_length(certificate.context_length)
    return f"at least {length} tokens at {_share(limit.threshold)} with {_share(limit.confidence)} confidence"


def search_words(limit: Limit) -> Iterator[str]:
    """What a search found, for the table of its run."""
    found = "not known" if limit.estimate is None else estimate_words(limit.estimate, limit.shortest)
    at = "" if limit.threshold is None else f" at {_share(limit.threshold)}"
    yield f"Effective length{at}, over the mean of {_depths(limit.depths)}: {found}"
    certificate = limit.certificate
    yield f"Certified: {'nothing' if certificate is None else certificate_words(limit, certificate)}"


def _score(tried: Tried) -> str:
    won = f"bets on it won {tried.e_value:.3g}, {tried.needed:.3g} needed"
    return f"{percent(tried.score)} of {tried.valid:,} fresh trials right ({won})"


def _found(count: Count) -> str:
    if not count.valid:
        return f"none of {count.asked} valid"
    total = f"{count.total:g}" if float(count.total).is_integer() else f"{count.total:.1f}"
    lost = f" ({count.asked - count.valid} lost)" if count.asked > count.valid else ""
    return f"{total} of {count.valid}{lost}"


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value * 100:.4g}%"


def _depths(depths: Sequence[float]) -> str:
    return f"depth {depths[0]:g}%" if len(depths) == 1 else f"{len(depths)} depths"
