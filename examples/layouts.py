"""One grid in three layouts: what it costs to compute, and what a model that loses the middle makes of it.

python examples/layouts.py
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import needlepoint


def made_up_text(path: Path) -> Path:
    """Words without meaning, so that the example runs as it is."""
    rng = random.Random(1)
    words = "river stone lamp morning road paper window garden letter bridge winter market".split()
    sentences = (" ".join(rng.choices(words, k=rng.randrange(6, 20))).capitalize() + "." for _ in range(3_000))
    path.write_text(" ".join(sentences), encoding="utf-8")
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        text = made_up_text(Path(temporary) / "text.txt")
        for layout, needles in (("classic", "number"), ("lattice", "number"), ("woven", "distinct")):
            result = needlepoint.run_task(
                {
                    "model": "simulated:middle,dip=0.6",
                    "corpus": [f"words={text}"],
                    "layout": layout,
                    "needle_set": needles,
                    "lengths": "1k:8k:4",
                    "depths": "0:100:5",
                    "work_dir": f"{temporary}/{layout}",
                    "report": "none",
                }
            )
            prefix = result.report["prefix"]
            share = prefix["planned_tokens"] / prefix["naive_tokens"]
            print(
                f"{layout:8} {share:4.0%} of the tokens are computed; the model finds {result.score:.0%} of the facts"
            )


if __name__ == "__main__":
    main()
