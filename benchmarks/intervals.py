"""How good the statistics are: coverage of intervals, errors of bounds and tests, and their speed.

    python benchmarks/intervals.py [cells|clusters|effective|position|speed ...] [--runs 2000]

Everything is drawn with fixed seeds; cells are computed exactly. Prints the tables of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product

from needlepoint.learn.distributions import beta_cdf, binomial_pmf
from needlepoint.learn.effective import EffectiveLength, Rung, effective_length
from needlepoint.learn.intervals import Interval, Sums, jeffreys, over_clusters, wilson
from needlepoint.learn.position import position_test
from needlepoint.learn.summary import summarise
from needlepoint.learn.tally import Tally, merged
from needlepoint.types import Needle, Reply, Score, Trial

BASE = Trial(
    id="t", dataset="needle_haystack", subset="english", layout="classic", length_mode="exact", replicate=0, repeat=0,
    context_length=1_000, depth_percent=0, achieved_length=1_000, achieved_depth_percent=0.5, boundary="sentence",
    needles=(Needle(text="n"),), placements=(), question="?", answers=("n",), corpus="c", corpus_sha256="0",
    tokenizer="t", tokenizer_fingerprint="f", prompt_sha256="p", sent_tokens=1_000, length_proven=True,
)  # fmt: skip
RIGHT = Score(outcome="correct", score=1.0, reason="", span=None, scorer="rules")
WRONG = replace(RIGHT, outcome="wrong", score=0.0)
REPLY = Reply(text="x")
SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
TRUTHS = {
    "steep": (1.0, 0.99, 0.97, 0.9, 0.5, 0.1),
    "medium": (0.99, 0.97, 0.93, 0.86, 0.75, 0.6),
    "shallow": (0.95, 0.92, 0.89, 0.86, 0.83, 0.8),
    "step with floor": (0.97, 0.97, 0.97, 0.3, 0.3, 0.3),
    "linear": (1.0, 0.96, 0.92, 0.88, 0.84, 0.8),
    "never falls": (0.97, 0.97, 0.96, 0.96, 0.95, 0.95),
}
LENGTHS = tuple(1_000 * 2**i for i in range(6))


def exact_coverage(method: Callable[[float, float], Interval], n: int) -> tuple[float, float]:
    """Mean and least coverage over p uniform."""
    found = [method(k, n) for k in range(n + 1)]
    mean = sum(
        (beta_cdf(one.high, k + 1, n - k + 1) - beta_cdf(one.low, k + 1, n - k + 1)) / (n + 1)
        for k, one in enumerate(found)
    )
    least = 1.0
    for left, right in pairwise(sorted({0.0, 1.0, *(end for one in found for end in (one.low, one.high))})):
        inside = [k for k, one in enumerate(found) if one.low <= left and right <= one.high]
        for step in range(9):
            least = min(least, sum(binomial_pmf(k, n, left + (right - left) * step / 8) for k in inside))
    return mean, least


def cells() -> Iterator[str]:
    for name, method in {"Jeffreys": jeffreys, "Wilson": wilson}.items():
        found = [exact_coverage(method, n) for n in range(1, 51)]
        yield f"- {name}: {min(mean for mean, _ in found):.4f}, {min(least for _, least in found):.4f}"


def beta_texts(dice: random.Random, texts: int, size: int, p: float, correlation: float) -> list[Sums]:
    """Texts whose own share is drawn from a beta distribution with this intra-class correlation."""
    a, b = p * (1 - correlation) / correlation, (1 - p) * (1 - correlation) / correlation
    found = []
    for _ in range(texts):
        share = dice.betavariate(a, b)
        found.append(Sums(sum(dice.random() < share for _ in range(size)), size, size))
    return found


def plain_wilson(clusters: Sequence[Sums]) -> Interval:
    return wilson(sum(one.total for one in clusters), sum(one.n for one in clusters))


def plain_error(clusters: Sequence[Sums]) -> Interval:
    """Mean ± 1.96 standard errors over the texts."""
    shares = [one.total / one.n for one in clusters]
    mean = sum(shares) / len(shares)
    error = math.sqrt(sum((share - mean) ** 2 for share in shares) / (len(shares) - 1) / len(shares))
    return Interval(mean - 1.96 * error, mean + 1.96 * error)


def ours(clusters: Sequence[Sums]) -> Interval:
    rate = over_clusters([clusters])
    assert rate is not None
    return rate.interval()


def clusters_table(runs: int) -> Iterator[str]:
    methods = {"this": ours, "Wilson, texts ignored": plain_wilson, "mean ± 1.96 SE": plain_error}
    yield "| correlation in a text | trials a text | texts | " + " | ".join(methods) + " |"
    yield "|---|---|---|" + "---|" * len(methods)
    for correlation, size, texts in product((0.02, 0.1, 0.3, 0.5), (5, 25, 100), (5, 20)):
        shares: dict[str, list[float]] = {name: [] for name in methods}
        for p in SHARES:
            dice = random.Random(f"clusters:{correlation}:{size}:{texts}:{p}")
            hits = dict.fromkeys(methods, 0)
            for _ in range(runs):
                drawn = beta_texts(dice, texts, size, p, correlation)
                for name, method in methods.items():
                    hits[name] += p in method(drawn)
            for name, n in hits.items():
                shares[name].append(n / runs)
        told = " | ".join(f"{sum(found) / len(found):.3f}, {min(found):.3f}" for found in shares.values())
        yield f"| {correlation} | {size} | {texts} | {told} |"


def ladder(dice: random.Random, curve: Sequence[float], texts: int, depths: int) -> list[Rung]:
    """One run: at each length some texts, each with its own share (correlation 0.1) at all depths."""
    rungs = []
    for length, p in zip(LENGTHS, curve, strict=True):
        cells: dict[float, Tally] = {100.0 * i / (depths - 1): Tally() for i in range(depths)}
        for text in range(texts):
            share = dice.betavariate(p * 9, (1 - p) * 9) if 0 < p < 1 else p
            trial = replace(BASE, replicate=text)
            for tally in cells.values():
                tally.add(trial, RIGHT if dice.random() < share else WRONG)
        rungs.append(Rung(length=length, whole=merged(cells.values()), depths=cells))
    return rungs


def effective_table(runs: int) -> Iterator[str]:
    yield "| truth | true length | covered, mean of depths | false certificates | certified, median | covered, worst |"
    yield "|---|---|---|---|---|---|"
    for name, curve in TRUTHS.items():
        held = next((i for i, p in enumerate(curve) if p < 0.85), len(curve))
        truth = LENGTHS[held - 1] if held else 0
        dice = random.Random(f"effective:{name}")
        found: list[EffectiveLength] = []
        for _ in range(runs):
            one = effective_length(ladder(dice, curve, 8, 11))
            assert one is not None
            found.append(one)
        covered = sum(one.mean.interval is not None and _holds(one.mean.interval, truth) for one in found) / runs
        worst = (
            sum(one.worst_depth.interval is not None and _holds(one.worst_depth.interval, truth) for one in found)
            / runs
        )
        false = sum((one.mean.certified or 0) > truth for one in found) / runs
        median = sorted(one.mean.certified or 0 for one in found)[runs // 2]
        yield f"| {name} | {truth:,} | {covered:.3f} | {false:.3f} | {median:,} | {worst:.3f} |"


def _holds(interval: tuple[int, int], truth: int) -> bool:
    return interval[0] <= truth <= interval[1]


def position_table(runs: int) -> Iterator[str]:
    yield "| texts | lengths | middle is worse by | found, or false alarms | interval covers |"
    yield "|---|---|---|---|---|"
    depths = [10.0 * i for i in range(11)]
    for texts, drop in product((1, 5, 10, 20), (0.0, 0.1, 0.2)):
        dice = random.Random(f"position:{texts}:{drop}")
        found = covered = 0
        for _ in range(runs):
            cells: dict[tuple[int, float], Tally] = {}
            for text in range(texts):
                trial = replace(BASE, replicate=text)
                hard = dice.uniform(-0.1, 0.1)
                for length in LENGTHS[:4]:
                    for depth in depths:
                        p = 0.85 + hard - drop * (25 < depth < 75)
                        tally = cells.setdefault((length, depth), Tally())
                        tally.add(trial, RIGHT if dice.random() < p else WRONG)
            test = position_test(cells)
            assert test is not None
            found += test.p_value < 0.05
            covered += test.interval[0] <= -drop <= test.interval[1]
        yield f"| {texts} | 4 | {drop:.0%} | {found / runs:.3f} | {covered / runs:.3f} |"


def speed() -> Iterator[str]:
    dice = random.Random("speed")
    rows = []
    for subset, text, length, depth in product(("english", "chinese"), range(50), range(20), range(50)):
        trial = replace(
            BASE, subset=subset, replicate=text, context_length=1_000 * (length + 1), depth_percent=2.0 * depth,
            prompt_sha256=f"{subset}{text}.{length}.{depth}",
        )  # fmt: skip
        rows.append((trial, REPLY, RIGHT if dice.random() < 0.95 - 0.01 * length else WRONG))
    began = time.perf_counter()
    summarise(rows, head={})
    yield f"{len(rows):,} trials (2 texts × 50 replicates × 20 lengths × 50 depths) summed up in {_since(began):.1f} s."


def _since(began: float) -> float:
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("topics", nargs="*", help="cells, clusters, effective, position, speed; all if none is given")
    parser.add_argument("--runs", type=int, default=2_000, help="simulated runs of each row")
    given = parser.parse_args()
    runs, topics = given.runs, given.topics
    for topic, heading, table in (
        ("cells", "Cells, n = 1 to 50, exact: mean coverage over p uniform at its lowest, and least coverage", cells()),
        (
            "clusters",
            f"Rows, columns, runs: coverage, mean and least over p = {', '.join(map(str, SHARES))}",
            clusters_table(runs),
        ),
        ("effective", "Effective length at 85 %, 6 lengths, 8 texts, 11 depths", effective_table(max(1, runs // 4))),
        ("position", "Position test, 11 depths", position_table(max(1, runs // 4))),
        ("speed", "Speed", speed()),
    ):
        if not topics or topic in topics:
            print(f"\n{heading}\n", flush=True)
            for line in table:
                print(line, flush=True)


if __name__ == "__main__":
    main()
