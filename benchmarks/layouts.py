"""What layouts and order save, and what they measure. Nothing here is a test: figures go into docs/benchmarks.md.

python benchmarks/layouts.py paper                       planned tokens, no model asked
python benchmarks/layouts.py study DIR [--model M] ...   four ways to ask one grid, each a run in DIR; goes on
                                                         with what is there, so it may be stopped and called again
python benchmarks/layouts.py walls DIR [--model M] ...   one grid by default order and without reuse, in turn
python benchmarks/layouts.py table DIR                   the tables of what is in DIR
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
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


def runs(folder: Path) -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    for path in sorted(folder.glob("*/*/report.json")):
        lines = path.with_name("trials.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        yield path.parent.parent.name, json.loads(path.read_text(encoding="utf-8")), rows


def table(folder: Path) -> None:
    print("| run | score | interval | over | trials | naive | bound | computed | of bound | of naive | seconds |")
    print("|---|---:|---|---|---:|---:|---:|---:|---:|---:|---:|")
    cells: dict[str, dict[tuple[Any, ...], float | None]] = {}
    for name, report, rows in runs(folder):
        whole, prefix = report["overall"], report["prefix"]
        low, high = whole["interval"] or (0, 1)
        naive, bound, computed = (prefix[f"{part}_tokens"] for part in ("naive", "bound", "prefilled"))
        seconds = sum(row["reply"]["times"]["total"] or 0 for row in rows)
        parts = (
            name,
            f"{whole['score']:.0%}",
            f"{low:.0%}–{high:.0%}",
            whole["interval_over"],
            f"{whole['n']}",
            *(f"{tokens or 0:,}" for tokens in (naive, bound, computed)),
            f"{(computed or 0) / (bound or 1):.3f}",
            f"{(computed or 0) / naive:.3f}",
            f"{seconds:.0f}",
        )
        print(f"| {' | '.join(parts)} |")
        cells[name] = {
            (subset["name"], cell["context_length"], cell["depth_percent"]): cell["score"]
            for subset in report["subsets"]
            for cell in subset["cells"]
        }
    names = list(cells)
    print("\n| text | length | depth |" + "".join(f" {name} |" for name in names))
    print("|---|---:|---:|" + "---:|" * len(names))
    for place in sorted({place for found in cells.values() for place in found}):
        scores = (cells[name].get(place) for name in names)
        told = "".join(" |" if score is None else f" {score:.0%} |" for score in scores)
        print(f"| {place[0]} | {place[1]:,} | {place[2]:g} % |{told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("paper", "study", "walls", "table"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--corpus", default="sotu", help="sotu: English; sanguo: Chinese")
    parser.add_argument("--lengths", default="1k:4k:5")
    parser.add_argument("--depths", default="0:100:5")
    parser.add_argument("--replicates", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=24)
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
