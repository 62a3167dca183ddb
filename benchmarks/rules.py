"""How fast rules score stored answers, on one core.

    python benchmarks/rules.py [--answers 100000] [--file claude21_answers.jsonl]

Answers are made up from what models write, short and long, right and wrong, with fixed seeds; with `--file`, those of
gkamradt's published results are scored as well. What is timed is processor time of scoring alone: answers are in
memory.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from needlepoint.plan.needles import DRAWN_KINDS, Facts, draw_facts, fixed_facts
from needlepoint.score import rules
from needlepoint.types import Reply, Trial

REPEATS = 3
ENGLISH = (
    "{answer}",
    "{sentence}",
    'Based on the context provided, the answer is:\n\n{answer}\n\nThe context states: "{sentence}" This is a plain '
    "statement, without any alternatives, so I have given it as the answer.",
    "Unfortunately, the context does not mention this. It discusses a variety of topics, such as programming "
    "languages, startups and essays, but does not say anything about what was asked. Without any relevant information "
    "in the context, I cannot give a definite answer.",
    "I'm sorry, but I can't help with that.",
    "The text names several: {other}, {answer} and more.",
    "{other}. Wait, no. It is {answer}.",
    "Something else altogether, on which the text has a lot to say. " * 6,
)
CHINESE = (
    "{answer}",
    "{sentence}",
    "根据文本，答案是{answer}。",
    "文中没有提到这个问题的答案。",
    "{other}，更正：{answer}。",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--file", type=Path)
    asked = parser.parse_args()
    tell("made-up answers", made_up(asked.answers))
    if asked.file is not None:
        tell(asked.file.name, published(asked.file, asked.answers))


def made_up(n: int) -> list[tuple[Trial, Reply]]:
    rng = random.Random("rules")
    found = []
    kinds = (*DRAWN_KINDS, "seed", "native")
    for number in range(n):
        kind, language = kinds[number % len(kinds)], "zh" if number % 3 == 0 else "en"
        facts = facts_of(kind, language, number % 500)
        other = facts_of(kind, language, number % 500 + 1)
        form = rng.choice(CHINESE if language == "zh" and kind != "seed" else ENGLISH)
        needle = facts.needles[0]
        text = form.format(
            answer=needle.answers[0], sentence=needle.text.strip(), other=other.needles[0].answers[0] + " or so"
        )
        found.append((trial(facts), Reply(text=text, finish="stop")))
    return found


def facts_of(kind: str, language: str, seed: int) -> Facts:
    assert language in ("en", "zh")
    if kind in DRAWN_KINDS:
        return draw_facts(kind, 1, "zh" if language == "zh" else "en", random.Random(f"{kind}:{seed}"), lambda _: False)
    return fixed_facts(kind, "zh" if language == "zh" else "en")


def published(file: Path, n: int) -> list[tuple[Trial, Reply]]:
    asked = trial(fixed_facts("seed", "en"))
    replies = [
        Reply(text=json.loads(line)["model_response"], finish="stop")
        for line in file.read_text("utf-8").strip().split("\n")
    ]
    return [(asked, replies[number % len(replies)]) for number in range(n)]


def trial(facts: Facts) -> Trial:
    return Trial(
        id="t", dataset="needle_haystack", subset="english", layout="classic", length_mode="exact", replicate=0,
        repeat=0, context_length=1_000, depth_percent=0, achieved_length=1_000, achieved_depth_percent=0.5,
        boundary="sentence", needles=facts.needles, placements=(), question=facts.question,
        answers=facts.needles[0].answers, corpus="c", corpus_sha256="0", tokenizer="t", tokenizer_fingerprint="f",
        prompt_sha256="p", sent_tokens=1_000, length_proven=True,
    )  # fmt: skip


def tell(name: str, rows: list[tuple[Trial, Reply]]) -> None:
    outcomes: Counter[str] = Counter()

    def score_all() -> None:
        outcomes.clear()
        outcomes.update(rules.score(asked, reply).outcome for asked, reply in rows)

    seconds = sorted(timed(score_all) for _ in range(REPEATS))
    length = statistics.fmean(len(reply.text) for _, reply in rows)
    spread = ", ".join(f"{one:.1f}" for one in seconds)
    print(f"{name}: {len(rows):,} answers of {length:.0f} characters on average in {spread} s of processor time")
    print(f"  {seconds[0] / len(rows) * 1e6:.0f} µs each at best; {dict(outcomes.most_common())}")


def timed(work: Callable[[], None]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


if __name__ == "__main__":
    main()
