"""How far is each answer from being wrong? Margins of one model by length: a GGUF, weights in a folder, or a server.

    python examples/margins.py smollm2
    python examples/margins.py ./Qwen3-0.6B
    python examples/margins.py Qwen/Qwen3-8B http://localhost:8000/v1

Answers stay right long after a model has become unsure: the margin, in nats, is what moves first. Compare two runs of
this (two attention kernels, two quantisations) before you look at accuracy.
"""

from __future__ import annotations

import sys

import needlepoint


def main() -> None:
    if len(sys.argv) < 2:
        print(__doc__)
        return
    settings = {
        "model": sys.argv[1],
        "api_url": sys.argv[2] if len(sys.argv) > 2 else None,
        "metric": "logprob",
        "corpus": ["sotu"],
        "needle_set": "number",
        "lengths": "1k,2k,4k",
        "depths": "0:100:5",
        "replicates": 3,
    }
    result = needlepoint.run_task({name: value for name, value in settings.items() if value is not None})
    for subset in result.report["margin"]["subsets"]:
        for row in subset["lengths"]:
            low, high = row["interval"] or (row["mean"], row["mean"])
            print(
                f"{subset['name']} {row['context_length']:>7,}: {row['mean']:6.2f} nats ({low:.2f} to {high:.2f}), "
                f"ahead in {row['ahead']:.0%} of {row['n']}"
            )


if __name__ == "__main__":
    main()
