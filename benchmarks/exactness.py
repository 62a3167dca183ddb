"""Is every prompt exactly as long as asked? Families x languages x lengths x depths, each prompt encoded anew, whole.

    python benchmarks/exactness.py [--families NAME,...] [--lengths 256,1k,...] [--depths 0:100:11] [--corpus SPEC]

Counts of a prompt are spliced together when it is made; here its messages are rendered and encoded from scratch, and
the needle's place is looked up in the finished text. Prints the table of docs/benchmarks.md; the exit code is 1 where a
single prompt falls short. Without --corpus the embedded texts are used, which are fetched once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import needlepoint
from needlepoint.plan.exact import tolerance
from needlepoint.plan.prompt import Prompt

FAMILIES = "qwen3,llama3.1,gemma3,mistral-v3-tekken,deepseek-v3,glm-4-0414,gpt-4o"
LENGTHS = "256,1k,4k,32k,128k,1m"


@dataclass
class Row:
    """What was seen of one family and language."""

    prompts: int = 0
    exact: int = 0
    boundaries: Counter[str] = field(default_factory=Counter)
    stray_percent: float = 0.0
    stray_tokens_short: float = 0.0
    faults: list[str] = field(default_factory=list)

    def add(self, prompt: Prompt) -> None:
        length = prompt.cell.context_length
        where = f"{prompt.cell.subset} {length:,} at {prompt.cell.depth_percent:g} %"
        self.prompts += 1
        if prompt.recount() == prompt.n_tokens == length:
            self.exact += 1
        else:
            self.faults.append(f"{where}: {prompt.recount():,} tokens, {prompt.n_tokens:,} promised")
        self.boundaries[prompt.boundary] += 1
        text = prompt.text()
        if "\ufffd" in text:
            self.faults.append(f"{where}: U+FFFD in the text")
        for needle, placement in zip(prompt.needles, prompt.placements, strict=True):
            if text.count(needle.text.strip()) != 1:
                self.faults.append(f"{where}: the needle is not there once, unbroken")
            stray = abs(placement.tokens_before - placement.depth_percent / 100 * prompt.hay_tokens)
            if stray > tolerance(length):
                self.faults.append(f"{where}: the needle is {stray:.0f} tokens off")
            if length >= 4_000:
                self.stray_percent = max(self.stray_percent, 100 * stray / length)
            else:
                self.stray_tokens_short = max(self.stray_tokens_short, stray)


def made(family: str, options: argparse.Namespace) -> Iterator[Prompt]:
    """The grid's prompts for one family, each as soon as it is made."""
    yield from needlepoint.prompts(
        corpus=options.corpus, tokenizer=family, lengths=options.lengths, depths=options.depths
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default=FAMILIES)
    parser.add_argument("--lengths", default=LENGTHS)
    parser.add_argument("--depths", default="0:100:11")
    parser.add_argument("--corpus", default="embedded")
    options = parser.parse_args()
    print("| vocabulary | text | prompts | exact | sentence / clause / word | off, under 4k | off, from 4k | seconds |")
    print("|---|---|---:|---:|---|---:|---:|---:|")
    faults: list[str] = []
    total = exact = 0
    for family in options.families.split(","):
        rows: dict[str, Row] = {}
        seconds: dict[str, float] = {}
        began = time.perf_counter()
        for prompt in made(family, options):
            subset = prompt.cell.subset
            rows.setdefault(subset, Row()).add(prompt)
            seconds[subset] = time.perf_counter() - began
        before = 0.0
        for subset, row in rows.items():
            kinds = " / ".join(str(row.boundaries[kind]) for kind in ("sentence", "clause", "word"))
            off = f"{row.stray_tokens_short:.0f} tokens | {row.stray_percent:.2f} %"
            took = f"{seconds[subset] - before:.0f}"
            print(f"| {family} | {subset} | {row.prompts} | {row.exact} | {kinds} | {off} | {took} |", flush=True)
            before = seconds[subset]
            faults += [f"{family} {fault}" for fault in row.faults]
            total, exact = total + row.prompts, exact + row.exact
    print(f"\n{exact:,} of {total:,} prompts have exactly the asked number of tokens; {len(faults)} faults.")
    for fault in faults[:20]:
        print(fault, file=sys.stderr)
    sys.exit(bool(faults) or exact != total)


if __name__ == "__main__":
    main()
