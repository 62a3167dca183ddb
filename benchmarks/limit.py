"""How good the search for the effective length is: its tokens, its error, its intervals and its certificates.

    python benchmarks/limit.py [--runs 200] [--at-once 8]

Simulated recall curves of known truth, no model, fixed seeds. Each run moves the place where the curve falls by up to
half a doubling, so that no rung is lucky. Prints the tables of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat

from needlepoint.learn.adaptive import estimate, next_step
from needlepoint.learn.design import ladder
from needlepoint.learn.effective import Bar
from needlepoint.learn.psychometric import Curves, Posterior
from needlepoint.learn.search import Answer, Search, State, Step, begin

SHORTEST, LONGEST, T = 1_000, 128_000, 0.85
LOW, HIGH = math.log2(SHORTEST), math.log2(LONGEST)
RUNGS = tuple(SHORTEST * 2**i for i in range(8))
EACH = 10
GRID_TOKENS = EACH * sum(RUNGS)
MIDDLE = math.log2(16_000)

Curve = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Truth:
    """Accuracy over log2(length), and the effective length in doublings (inf: it never falls)."""

    curve: Curve
    crossing: float


def falling(width: float, shift: float) -> Truth:
    """A logistic curve that crosses 0.85 at 16k (shifted) and falls from 3/4 to 1/4 of 0.99 in `width` doublings."""
    at = MIDDLE + shift
    z = math.log(T / 0.99 / (1 - T / 0.99))
    return Truth(lambda x: 0.99 / (1 + math.exp(-z - 2 * math.log(3) / width * (at - x))), at)


TRUTHS: dict[str, Callable[[float], Truth]] = {
    "steep": lambda shift: falling(0.5, shift),
    "medium": lambda shift: falling(2, shift),
    "shallow": lambda shift: falling(6, shift),
    "step with floor": lambda shift: Truth(lambda x: 0.97 if x <= MIDDLE + shift else 0.3, MIDDLE + shift),
    "linear": lambda shift: Truth(lambda x: min(1.0, T + 0.05 * (MIDDLE + shift - x)), MIDDLE + shift),
    "never falls": lambda shift: Truth(lambda x: 0.97 - 0.005 * (x - LOW), math.inf),
}
WORST: dict[str, Callable[[float], Truth]] = {
    "84 % at every length": lambda shift: Truth(lambda x: 0.84, -math.inf),
    "86 % to 4k, then 84 %": lambda shift: Truth(lambda x: 0.86 if x <= math.log2(4_000) else 0.84, math.log2(4_000)),
}


def clip(doublings: float) -> float:
    return min(HIGH, max(LOW, doublings))


def doublings(length: int | None) -> float:
    return LOW if length is None else math.log2(length)


@dataclass(slots=True)
class Tally:
    """Sums over the runs of one truth."""

    runs: int = 0
    error: float = 0.0
    covered: int = 0
    tokens: float = 0.0
    trials: int = 0
    false: int = 0
    certificate_tokens: float = 0.0
    certificate_trials: int = 0
    certified: list[int] = field(default_factory=list)


def search_once(truth: Truth, seed: int, at_once: int) -> tuple[Search, State, State]:
    """One search: as it was located, and at its end."""
    depths = tuple(10.0 * i for i in range(11))
    search = Search(
        lengths=ladder(SHORTEST, LONGEST), depths=depths, subsets=("text",), bar=Bar(threshold=T), seed=seed,
        at_once=at_once,
    )  # fmt: skip
    dice, state = random.Random(f"search:{seed}"), begin(search)
    located = state
    while isinstance(step := next_step(search, state), Step):
        answers = []
        for ask in step.asks:
            found = dice.random() < truth.curve(math.log2(ask.context_length))
            answers.append(Answer(score=float(found), outcome="", tokens=ask.context_length))
        state = state.after(search, step, answers)
        located = located if step.phase == "certify" else state
    return search, located, state


def tallied(make: Callable[[float], Truth], runs: int, at_once: int) -> Tally:
    tally = Tally()
    for seed in range(runs):
        truth = make(random.Random(f"shift:{seed}").uniform(-0.5, 0.5))
        search, located, state = search_once(truth, seed, at_once)
        found = estimate(search, located)
        assert found is not None
        at = clip(truth.crossing)
        low, high = (clip(doublings(end)) for end in found.interval)
        tally.runs += 1
        tally.error += abs(clip(doublings(found.length)) - at)
        tally.covered += low - 0.01 <= at <= high + 0.01
        tally.tokens += located.tokens
        tally.trials += located.asked
        passed = state.certified
        tally.false += passed is not None and math.log2(passed.length) > truth.crossing
        tally.certified.append(0 if passed is None else passed.length)
        tally.certificate_tokens += state.tokens - located.tokens
        tally.certificate_trials += state.asked - located.asked
    return tally


def grid_errors(make: Callable[[float], Truth], runs: int) -> tuple[float, float]:
    """Ten trials at each rung: the mean error of the last rung that holds, and of the search's own curve fitted."""
    plain = fitted = 0.0
    curves = Curves(SHORTEST, LONGEST, T)
    for seed in range(runs):
        truth = make(random.Random(f"shift:{seed}").uniform(-0.5, 0.5))
        dice, posterior = random.Random(f"grid:{seed}"), Posterior.before(curves)
        reached, holds = LOW, True
        for rung in RUNGS:
            scores = [float(dice.random() < truth.curve(math.log2(rung))) for _ in range(EACH)]
            for score in scores:
                posterior = posterior.updated(rung, score)
            holds = holds and sum(scores) >= T * EACH
            reached = math.log2(rung) if holds else reached
        plain += abs(reached - clip(truth.crossing))
        fitted += abs(clip(posterior.quantile(0.5)) - clip(truth.crossing))
    return plain / runs, fitted / runs


def median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else sum(ordered[middle - 1 : middle + 1]) / 2


def measured(name: str, runs: int, at_once: int) -> tuple[Tally, float, float]:
    """One truth, whole: the searches, and the grid's two errors."""
    make = (TRUTHS | WORST)[name]
    return tallied(make, runs, at_once), *grid_errors(make, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=200, help="simulated searches of each truth")
    parser.add_argument("--at-once", type=int, default=8, help="trials of one step")
    parser.add_argument("--processes", type=int, default=2, help="truths at a time")
    asked = parser.parse_args()
    runs, began = asked.runs, time.perf_counter()
    print(f"{runs} searches of each truth, {asked.at_once} trials at once; {EACH} a rung: {GRID_TOKENS:,} tokens\n")
    print("Tokens are shares of the grid's, errors in doublings.\n")
    print(
        "| truth | locating: tokens | trials | error | grid: curve fitted | grid: last rung | covered "
        "| certifying: tokens | trials | certified in | median | false |"
    )
    print("|---|" + "---:|" * 11)
    names = [*TRUTHS, *WORST]
    shares, covered = [], 0
    with ProcessPoolExecutor(asked.processes) as pool:
        rows = pool.map(measured, names, repeat(runs), repeat(asked.at_once))
        for name, (tally, plain, fitted) in zip(names, rows, strict=True):
            passed = [float(length) for length in tally.certified if length]
            share = tally.tokens / runs / GRID_TOKENS
            if name in TRUTHS:
                shares.append(share)
                covered += tally.covered
            cells = (
                name,
                f"{share:.3f}",
                f"{tally.trials / runs:.0f}",
                f"{tally.error / runs:.2f}",
                f"{fitted:.2f}",
                f"{plain:.2f}",
                f"{tally.covered / runs:.3f}",
                f"{tally.certificate_tokens / runs / GRID_TOKENS:.2f}",
                f"{tally.certificate_trials / runs:.0f}",
                f"{len(passed) / runs:.1%}",
                f"{median(passed):,.0f}" if passed else "–",
                f"{tally.false / runs:.1%}",
            )
            print(f"| {' | '.join(cells)} |", flush=True)
    overall = covered / runs / len(TRUTHS)
    print(f"\nMedian of the {len(TRUTHS)} truths: {median(shares):.3f} of the tokens. Covered overall: {overall:.3f}.")
    print(f"{time.perf_counter() - began:.0f} s in all.")


if __name__ == "__main__":
    main()
