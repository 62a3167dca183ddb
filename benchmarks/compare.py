"""How good comparisons are: false alarms, what is found, stated power, coverage of intervals, exit codes.

    python benchmarks/compare.py [alarms|found|power|codes|speed ...] [--runs 500]

Everything is drawn with fixed seeds. Prints the tables of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from intervals import BASE, REPLY, RIGHT, WRONG

import needlepoint
from needlepoint.ask.models.simulated import SimulatedModel
from needlepoint.learn.change import Comparison
from needlepoint.learn.compare import compare_pairs
from needlepoint.learn.gate import Gate
from needlepoint.learn.pairing import Row, pair_rows
from needlepoint.learn.power import Design
from needlepoint.score import rules
from needlepoint.types import Askable, Sampling, Trial

SHAPES = {1: (20, 20), 4: (10, 10), 8: (5, 10), 10: (4, 10), 20: (2, 10), 40: (1, 10)}
"""400 questions: texts → (lengths, depths)."""


def questions(texts: int, lengths: int, depths: int) -> list[Trial]:
    return [
        replace(
            BASE, id=f"{text}.{length}.{depth}", replicate=text, context_length=1_000 * (length + 1),
            depth_percent=100.0 * depth / depths, prompt_sha256=f"{text}.{length}.{depth}",
        )
        for text, length, depth in product(range(texts), range(lengths), range(depths))
    ]  # fmt: skip


def rows(trials: Sequence[Trial], right: Callable[[Trial], bool]) -> list[Row]:
    return [(trial, REPLY, RIGHT if right(trial) else WRONG) for trial in trials]


def compared(one: Sequence[Row], other: Sequence[Row]) -> Comparison:
    return compare_pairs(pair_rows(one, other), names=("A", "B"), scorer="rules")


def uneven_rows(dice: random.Random, trials: Sequence[Trial], shares: Sequence[float]) -> list[Row]:
    """Each text with its own accuracy."""
    return rows(trials, lambda trial: dice.random() < shares[trial.replicate])


def verdicts(found: Sequence[Comparison]) -> tuple[float, float, float]:
    """Shares: any alarm, exit code 1 at --fail-if-worse 0, interval that holds no change."""
    n = len(found)
    gate = Gate(fail_if_worse=0.0)
    alarms = sum(one.is_worse or one.is_better for one in found) / n
    failed = sum(bool(gate.shortfalls(one)) for one in found) / n
    held = sum(one.interval is not None and one.interval[0] <= 0 <= one.interval[1] for one in found) / n
    return alarms, failed, held


# --- no change --------------------------------------------------------------------------------------------------------


def model_alarms(runs: int) -> Iterator[str]:
    """The simulated model itself, asked twice with different luck: its answers, scored by the rules."""
    text = _text()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text.txt"
        file.write_text(text, encoding="utf-8")
        yield "| simulated model | texts | questions | alarms | exit code 1 | interval holds 0 |"
        yield "|---|---|---|---|---|---|"
        for spec, texts in (("noise,p=0.1", 8), ("middle,dip=0.4,short=200,long=1k", 3)):
            plan = needlepoint.prompts(
                corpus=f"english={file}", lengths="300,500", depths="0:100:5", replicates=texts, needle_set="number",
                tokenizer="Qwen/Qwen3-0.6B",
            )  # fmt: skip
            asked = [_Kept(prompt) for prompt in plan]
            found = []
            for number in range(runs):
                sides = [_answers(f"{spec},seed={2 * number + side}", asked) for side in (1, 2)]
                found.append(compared(*sides))
            alarms, failed, held = verdicts(found)
            yield f"| {spec} | {texts} | {len(asked)} | {alarms:.3f} | {failed:.3f} | {held:.3f} |"


class _Kept:
    """A prompt with its messages made once: 500 pairs of runs ask it a thousand times."""

    def __init__(self, prompt: needlepoint.Prompt) -> None:
        self._messages, self.max_tokens, self.n_tokens = prompt.messages(), 64, prompt.n_tokens
        self.sha256 = prompt.sha256
        self.text, self.token_ids = prompt.text, prompt.token_ids
        self.trial = replace(
            BASE, replicate=prompt.replicate, context_length=prompt.cell.context_length,
            depth_percent=prompt.cell.depth_percent, answers=prompt.answers, needles=prompt.needles,
            question=prompt.question, prompt_sha256=prompt.sha256, sent_tokens=prompt.n_tokens,
        )  # fmt: skip

    def messages(self) -> list[needlepoint.types.Message]:
        return self._messages


def _answers(spec: str, asked: Sequence[_Kept]) -> list[Row]:
    async def ask() -> list[Row]:
        model = SimulatedModel(f"{spec},cache=off")
        prompts: Sequence[Askable] = asked
        replies = [reply async for reply in model.ask(prompts, Sampling(max_tokens=64))]
        return [(one.trial, reply, rules.score(one.trial, reply)) for one, reply in zip(asked, replies, strict=True)]

    return asyncio.run(ask())


def _text() -> str:
    dice = random.Random("haystack")
    words = "the ferry left before noon and nobody on the quay could say when it would come back to town".split()
    return "\n".join(" ".join(dice.choices(words, k=11)).capitalize() + "." for _ in range(1_500))


def drawn_alarms(runs: int) -> Iterator[str]:
    yield "| texts | accuracy | alarms | exit code 1 | interval holds 0 |"
    yield "|---|---|---|---|---|"
    for texts, p in product((1, 5, 8, 20), (0.5, 0.8, 0.97)):
        dice = random.Random(f"alarms:{texts}:{p}")
        trials = questions(texts, *SHAPES.get(texts, (8, 10)))
        found = []
        for _ in range(runs):
            # texts differ in how hard they are, and both runs read the same ones
            hard = [dice.betavariate(p * 9, (1 - p) * 9) for _ in range(texts)] if texts > 1 else [p]
            found.append(compared(*(uneven_rows(dice, trials, hard) for _ in range(2))))
        alarms, failed, held = verdicts(found)
        yield f"| {texts} | {p} | {alarms:.3f} | {failed:.3f} | {held:.3f} |"


# --- a change ---------------------------------------------------------------------------------------------------------


def turned(dice: random.Random, trials: Sequence[Trial], bad: float, good: float, uneven: bool) -> Comparison:
    """A run with 9 of 10 right against one of which a share of all turned bad and good; `uneven`: by text."""
    texts = max(trial.replicate for trial in trials) + 1
    shares = [bad * dice.gammavariate(2, 0.5) if uneven else bad for _ in range(texts)]
    one = rows(trials, lambda trial: dice.random() < 0.9)
    other = []
    for trial, reply, score in one:
        right = score.score == 1.0
        flips = dice.random() < (shares[trial.replicate] / 0.9 if right else good / 0.1)
        other.append((trial, reply, RIGHT if right != flips else WRONG))
    return compared(one, other)


def found_table(runs: int) -> Iterator[str]:
    yield "| texts | unit | found, all texts alike | interval covers | found, some texts hit harder | interval covers |"
    yield "|---|---|---|---|---|---|"
    for texts, shape in SHAPES.items():
        trials = questions(texts, *shape)
        told, unit = [], ""
        for uneven in (False, True):
            dice = random.Random(f"found:{texts}:{uneven}")
            found = [turned(dice, trials, 0.06, 0.01, uneven) for _ in range(runs)]
            share = sum(one.is_worse for one in found) / runs
            covers = sum(one.interval is not None and one.interval[0] <= -0.05 <= one.interval[1] for one in found)
            over_texts = not uneven or texts >= 8  # else the interval is of the very texts that were taken
            told.append(f"{share:.3f} | {f'{covers / runs:.3f}' if over_texts else '–'}")
            unit = found[0].whole.over if found[0].whole is not None else ""
        yield f"| {texts} | {unit} | {' | '.join(told)} |"


def power_table(runs: int) -> Iterator[str]:
    yield "| questions | texts | churn | drop | stated power | found |"
    yield "|---|---|---|---|---|---|"
    for (texts, lengths, depths), churn in product(((1, 10, 10), (1, 20, 20), (10, 4, 10), (20, 5, 10)), (0.005, 0.03)):
        trials = questions(texts, lengths, depths)
        df = texts - 1 if texts >= 8 else None
        design = Design(n=len(trials), churn=churn, df=df)
        visible = design.visible_drop() or 0.0
        for drop in (visible / 2, visible, visible * 1.5):
            dice = random.Random(f"power:{texts}:{lengths}:{churn}:{drop}")
            found = sum(turned(dice, trials, churn + drop, churn, False).is_worse for _ in range(runs)) / runs
            yield (f"| {len(trials)} | {texts} | {churn:.1%} | {drop:.1%} | {design.power(drop):.3f} | {found:.3f} |")


def told_table(runs: int) -> Iterator[str]:
    """The drop that a comparison itself says it could have seen, against how often a drop of that size is found."""
    yield "| questions | texts | drop that it says it can see, median | such drops found |"
    yield "|---|---|---|---|"
    for texts, lengths, depths in ((1, 20, 20), (10, 4, 10)):
        trials = questions(texts, lengths, depths)
        dice = random.Random(f"told:{texts}")
        first = [turned(dice, trials, 0.02, 0.02, False) for _ in range(runs)]
        drops = sorted(one.sight.drop for one in first if one.sight is not None and one.sight.drop is not None)
        median = drops[len(drops) // 2]
        found = sum(turned(dice, trials, 0.02 + median, 0.02, False).is_worse for _ in range(runs)) / runs
        yield f"| {len(trials)} | {texts} | {median:.1%} | {found:.3f} |"


# --- the command ------------------------------------------------------------------------------------------------------


def exit_codes() -> Iterator[str]:
    yield "| B, against a perfect A | flags | exit code |"
    yield "|---|---|---|"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "text.txt").write_text(_text(), encoding="utf-8")
        grid = {
            "corpus": f"english={folder / 'text.txt'}", "lengths": "300,600", "depths": "0:100:10", "replicates": 5,
            "needle_set": "number",
        }  # fmt: skip

        def run(model: str, **more: object) -> str:
            return str(needlepoint.run_task({**grid, "model": model, "work_dir": str(folder), **more}).folder)

        perfect = run("simulated:perfect")
        for name, other, flags in (
            ("the same", run("simulated:perfect,seed=2"), ("--fail-if-worse", "0")),
            ("one in ten wrong", run("simulated:noise,p=0.1"), ("--fail-if-worse", "1%")),
            ("one in ten wrong", run("simulated:noise,p=0.1"), ()),
            ("refuses 600 tokens, else perfect", run("simulated:perfect,limit=400"), ("--fail-if-worse", "1%")),
            (
                "one request in 50 fails, else perfect",
                run("simulated:perfect,bad_request=2%"),
                ("--fail-if-worse", "1%"),
            ),
            ("the same", run("simulated:perfect,bad_request=2%"), ("--fail-if-worse", "1%", "--max-lost", "5%")),
            ("stopped after 20 questions", run("simulated:perfect", limit=20), ("--fail-if-worse", "1%")),
            ("other prompts", run("simulated:perfect", seed=1), ("--fail-if-worse", "1%")),
            ("nothing measured", run("simulated:perfect,limit=100"), ()),
        ):
            command = [sys.executable, "-m", "needlepoint.cli", "compare", perfect, other, *flags]
            code = subprocess.run(command, capture_output=True).returncode
            yield f"| {name} | `{' '.join(flags)}` | {code} |".replace("``", "")


def speed() -> Iterator[str]:
    trials = questions(50, 20, 50)
    dice = random.Random("speed")
    one, other = (rows(trials, lambda trial: dice.random() < 0.95) for _ in range(2))
    began = time.perf_counter()
    compared(one, other)
    yield f"{len(trials):,} pairs (50 texts × 20 lengths × 50 depths) compared in {time.perf_counter() - began:.1f} s."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("topics", nargs="*", help="alarms, found, power, codes, speed; all where none is given")
    parser.add_argument("--runs", type=int, default=500, help="simulated pairs of each row")
    given = parser.parse_args()
    runs, topics = given.runs, given.topics
    for topic, heading, table in (
        ("alarms", "Two runs of one simulated model", model_alarms(runs)),
        ("alarms", "No change, outcomes drawn, 400 questions", drawn_alarms(runs)),
        ("found", "400 questions, 6 % turn bad and 1 % good", found_table(runs)),
        ("power", "Stated power", power_table(runs)),
        ("power", "The drop that a comparison says it can see", told_table(runs)),
        ("codes", "Exit codes", exit_codes()),
        ("speed", "Speed", speed()),
    ):
        if not topics or topic in topics:
            print(f"\n{heading}\n", flush=True)
            for line in table:
                print(line, flush=True)


if __name__ == "__main__":
    main()
