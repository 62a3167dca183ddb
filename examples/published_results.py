"""Published results as a run: another tool's answers, its judge's scores kept, and this project's rules beside them.

python examples/published_results.py [FILE OR FOLDER...]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import needlepoint


def made_up_answers(folder: Path) -> str:
    """A stand-in for published answers, so that the example runs as it is."""
    file = folder / "answers.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for length in (1_000, 16_000, 64_000):
            for depth in (0, 50, 100):
                found = length < 64_000 or depth == 100
                row = {
                    "model": "example-model",
                    "context_length": length,
                    "depth_percent": depth,
                    "version": 1,
                    "needle": "The gate code of the old mill is 4711.",
                    "retrieval_question": "What is the gate code of the old mill?",
                    "model_response": "The gate code of the old mill is 4711." if found else "The text does not say.",
                    "score": 10 if found else 1,
                }
                lines.write(json.dumps(row) + "\n")
    return str(file)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        files = sys.argv[1:] or [made_up_answers(Path(temporary))]
        for result in needlepoint.import_results(*files, work_dir=temporary):
            print(f"{result.report['model']}: {result.score:.1%}, coverage {result.coverage:.0%}")
            for row in result.report["subsets"][0]["lengths"]:
                print(f"  {row['context_length']:>7} tokens: {row['score']:.1%} of {row['n']}")
            for trial, reply, score in result.trials():
                if score.outcome != "correct":
                    place = f"{trial.context_length} tokens, {trial.depth_percent:g} % deep"
                    print(f"  {place}: {reply.text!r} ({score.reason})")


if __name__ == "__main__":
    main()
