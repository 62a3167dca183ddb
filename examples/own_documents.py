"""Prompts from documents of your own: exact lengths for one model, facts drawn by seed, each prompt proven.

python examples/own_documents.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import needlepoint


def made_up_documents(folder: Path) -> Path:
    """A stand-in for your documents, so that the example runs as it is."""
    for number in range(8):
        lines = [
            f"Page {number}, note {line}: the valve on line {line * 7 % 31} was checked. All was well."
            for line in range(150)
        ]
        (folder / f"page{number}.md").write_text("\n".join(lines), encoding="utf-8")
    return folder


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = sys.argv[1] if len(sys.argv) > 1 else str(made_up_documents(Path(temporary)))
        plan = needlepoint.prompts(
            corpus=f"documents={folder}",
            tokenizer="Qwen/Qwen3-0.6B",
            lengths="1k,4k,16k",
            depths="0:100:3",
            needle_set="number",
            replicates=2,
            verify=True,
        )
        print(f"{len(plan)} prompts")
        for prompt in plan:
            needle = prompt.needles[0]
            print(
                f"{prompt.n_tokens:>6} tokens, {prompt.achieved_depth_percent:5.1f} % deep, "
                f"replicate {prompt.replicate}: {needle.text}  {prompt.question}"
            )
        for note in plan.notes:
            print("note:", note)


if __name__ == "__main__":
    main()
