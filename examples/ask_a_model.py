"""Ask a model about a grid, from Python: the score beside its coverage, by length, and what went wrong where.

The model here is simulated and loses what stands in the middle, so that this runs anywhere. Name yours by
`model="...", api_url="http://localhost:8000/v1"`; `await arun_task(...)` does the same inside of an event loop.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from needlepoint import TaskConfig, run_task

TEXT = "\n\n".join(
    f"Log of day {day}. The wind came from the north in the morning. {day * 7 % 60} boxes were loaded before noon. "
    f"The harbour master signed the papers at {day % 12 + 1} o'clock."
    for day in range(1, 400)
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "log.txt")
        text.write_text(TEXT, encoding="utf-8")
        result = run_task(
            TaskConfig(
                model="simulated:middle,dip=1,short=500,long=4k",
                corpus=f"log={text}",
                needle_set="number",
                lengths="500,1k,4k",
                depths="0:100:5",
                replicates=3,
                work_dir=folder,
                report="none",
            )
        )
        print(f"score {result.score:.2f} with {result.interval}, coverage {result.coverage:.0%}, {result.outcomes}")
        for row in result.subsets["log"].lengths:
            print(f"  {row.context_length:>6,} tokens: {row.score:.2f} of {row.valid} trials")
        missed = [trial for trial, _, score in result.trials() if score.outcome != "correct"]
        print("missed at depths", sorted({trial.depth_percent for trial in missed}))


if __name__ == "__main__":
    main()
