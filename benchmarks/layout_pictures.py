"""The pictures of docs/layouts.md, drawn from real plans: python benchmarks/layout_pictures.py

Each line is a prompt, in the order in which it is asked: what an earlier one has computed is pale, what it computes
itself is dark. A mark is a needle; the one that the prompt asks for stands out.
"""

from __future__ import annotations

import random
from pathlib import Path

from needlepoint.connect import connect
from needlepoint.plan.grid import Grid
from needlepoint.plan.order import order
from needlepoint.plan.prompt import Prompt
from needlepoint.plan.task import Plan, Task
from needlepoint.plan.trie import Trie
from needlepoint.types import Corpus

PAPER, PALE, DARK, OWN, OTHER, INK = "#ffffff", "#d5dbe3", "#3b6ea5", "#d1495b", "#edae49", "#333333"
LEFT, TOP, LINE, WIDTH = 92, 34, 9, 620
GRID = Grid(lengths=(1_000, 2_000, 3_000, 4_000), depths=(0, 25, 50, 75, 100))
TITLES = {
    "classic": "classic: needles at their depths; every prompt goes its own way from its needle on",
    "lattice": "lattice: lengths share needle places, and with them needle and text behind it",
    "woven": "woven: all needles in one stream; every context is its beginning",
}


def text(rng: random.Random, n_sentences: int = 2_500) -> str:
    """Words without meaning, in sentences of unlike length."""
    words = "river stone lamp morning road paper window garden letter bridge winter market song table harbour".split()
    sentences = (" ".join(rng.choices(words, k=rng.randrange(6, 26))).capitalize() + "." for _ in range(n_sentences))
    return " ".join(sentences)


def computed(prompts: list[Prompt], sequence: tuple[int, ...]) -> list[int]:
    """From which token on each prompt is computed, in that order."""
    trie, seen, found = Trie(prompts), set(), []
    for item in sequence:
        path = list(trie.leaves[item].path())
        found.append(next((node.end for node in path if id(node) in seen), 0))
        seen |= {id(node) for node in path}
    return found


def bar(x: float, y: float, width: float, colour: str, height: float = LINE - 2) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.6):.1f}" height="{height:.1f}" fill="{colour}"/>'


def needles(prompt: Prompt) -> list[tuple[int, int, bool]]:
    """(first token, tokens, asked for) of each needle in a prompt."""
    count = prompt.haystack.tokenizer.count
    at, found = count(prompt.frame.before, special=True), []
    taken = 0
    for edit in prompt.edits[:-1]:
        size = count(edit.text)
        found.append(
            (at + prompt.haystack.tokens_before(edit.start) + taken, size, prompt.needles[0].text in edit.text)
        )
        taken += size
    return found


def picture(layout: str, corpus: Corpus) -> str:
    task = Task(grid=GRID, layout=layout, needle_set="seed" if layout == "woven" else "number")  # type: ignore[arg-type]
    prompts = list(Plan(task, [corpus], connect("qwen3")))
    found = order(prompts, "slot")
    scale = WIDTH / max(GRID.lengths)
    lines = []
    for row, (item, begins) in enumerate(zip(found.sequence, computed(prompts, found.sequence), strict=True)):
        prompt, y = prompts[item], TOP + row * LINE
        lines.append(bar(LEFT, y, begins * scale, PALE))
        lines.append(bar(LEFT + begins * scale, y, (prompt.n_tokens - begins) * scale, DARK))
        for start, size, own in needles(prompt):
            lines.append(bar(LEFT + start * scale, y - 0.5, max(2.0, size * scale), OWN if own else OTHER, LINE - 1))
        cell = f"{prompt.cell.context_length:,} at {prompt.cell.depth_percent:g} %"
        lines.append(f'<text x="{LEFT - 6}" y="{y + LINE - 3}" text-anchor="end" font-size="8">{cell}</text>')
    plan = found.forecast
    share = plan.planned_tokens / plan.naive_tokens
    height = TOP + len(prompts) * LINE + 20
    told = f"{plan.planned_tokens:,} of {plan.naive_tokens:,} tokens are computed: {share:.0%}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 12} {height}" role="img" '
        f'font-family="sans-serif" fill="{INK}"><title>{TITLES[layout]}. {told}.</title>'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        f'<text x="{LEFT}" y="20" font-size="12">{TITLES[layout]}</text>'
        f"{''.join(lines)}"
        f'<text x="{LEFT}" y="{height - 7}" font-size="10">{told}</text></svg>\n'
    )


def main() -> None:
    words = text(random.Random("layouts"))
    corpus = Corpus(name="words", subset="english", language="en", licence="made here", sha256="0", text=words)
    folder = Path(__file__).resolve().parents[1] / "docs" / "layouts"
    folder.mkdir(exist_ok=True)
    for layout in TITLES:
        (folder / f"{layout}.svg").write_text(picture(layout, corpus), encoding="utf-8")
        print(folder / f"{layout}.svg")


if __name__ == "__main__":
    main()
