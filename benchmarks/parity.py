"""Are the prompts of the parity mode EvalScope's, byte for byte? Drawn grids, needles and texts, hash by hash.

    python benchmarks/parity.py (--install FOLDER | --evalscope PYTHON --tokenizer DIR) [--grids 40] [--seed 1]

Draws lengths, ranges, depths, one to ten needles (Chinese, without line breaks, with emoji, equal ones), questions and
templates over texts of several kinds, builds all prompts with EvalScope 1.14.1 and with needlepoint, and compares them.
Where needlepoint refuses a grid on purpose it says so. The exit code is 1 where a prompt differs.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from peer import CannotInstall, Peer, peer
from prompts import made_up_corpus

import needlepoint

FILES = ("PaulGraham_Essays.txt", "Journey_to_the_West.txt")
NEEDLES = (
    "\nThe best thing to do in San Francisco is eat a sandwich and sit in Dolores Park on a sunny day.\n",
    "\n在青岛，最惬意的事莫过于挑一个晴朗的日子，坐在小鱼山公园的长椅上吃一个肉夹馍。\n",
    "The key is under the third pot", "密码是七。", "Code 4815162342 is it.", "A. B. C.", "Dot. ", " x", "。", ".",
    "  blanks around  ", "😀 with 👩‍👩‍👧. ", "'s", "tab\there. And more", "<|im_end|>",
)  # fmt: skip
PIECES = (
    "abc defg. Hij, klm! ", "中文字。还有，更多！", "Привет мир. Ещё, раз! ", "مرحبا. كيف؟ ", "😀👩‍👩‍👧🇩🇪",
    "1234567890", "\r\n", "\t  ", "<|im_end|>", "'s 'LL", "____", "한국어. ", "\n\n\n", "x.y.z ", "。", ".", " . ",
    "\u3000", "…", "?!",
)  # fmt: skip
EVALSCOPE = """
import hashlib, json, sys
from evalscope import TaskConfig
from evalscope.api.registry import get_benchmark
for line in sys.stdin:
    arguments = json.loads(line)
    config = TaskConfig(model="m", api_url="http://127.0.0.1:1/v1", api_key="x", eval_type="openai_api",
                        datasets=["needle_haystack"], dataset_args={"needle_haystack": arguments})
    benchmark = get_benchmark("needle_haystack", config=config)
    datasets, _ = benchmark.load()
    rows = []
    for subset, samples in datasets.items():
        for sample in samples:
            text = benchmark.format_prompt_template(sample)
            place = [subset, sample.metadata["context_length"], sample.metadata["depth_percent"]]
            rows.append([*place, hashlib.sha256(text.encode()).hexdigest()])
    print("ROWS", json.dumps(rows), flush=True)
"""


def texts(folder: Path, corpus: str | None, rng: random.Random) -> list[Path]:
    """Folders with the two files: the given or made-up text, it without line breaks, a short one, all scripts."""
    plain = Path(corpus) if corpus else made_up_corpus(_made(folder / "plain"))
    english, chinese = ((plain / name).read_text("utf-8") for name in FILES)
    kinds = {
        "one-line": (english[:200_000].replace("\n", " "), chinese[:80_000].replace("\n", "")),
        "short": (english[:20_000], chinese[:9_000]),
        "mixed": tuple("".join(rng.choice(PIECES) for _ in range(20_000)) for _ in FILES),
    }
    for kind, both in kinds.items():
        for name, text in zip(FILES, both, strict=True):
            (_made(folder / kind) / name).write_text(text, "utf-8", newline="")
    return [plain, *(folder / kind for kind in kinds)]


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def grid(rng: random.Random) -> dict[str, Any]:
    """Arguments of one drawn grid, without text and tokenizer."""
    shortest = rng.choice((777, 1000, 1001, 4096, rng.randrange(600, 9_000)))
    longest = rng.choice((shortest, shortest + 1, shortest + 137, 16_384, 32_000, rng.randrange(9_000, 60_000)))
    depths = sorted((rng.choice((0, 0, 10, 12.5, rng.randrange(101))), rng.choice((100, 100, rng.randrange(101)))))
    extra: dict[str, Any] = {
        "context_lengths_min": min(shortest, longest),
        "context_lengths_max": max(shortest, longest),
        "context_lengths_num_intervals": rng.choice((1, 2, 3, 5)),
        "document_depth_percent_min": depths[0],
        "document_depth_percent_max": depths[1],
        "document_depth_percent_intervals": rng.choice((1, 2, 3, 4, 7)),
    }
    if rng.random() < 0.75:
        extra["needles"] = [rng.choice(NEEDLES) for _ in range(rng.choice((1, 1, 2, 3, 5, 10)))]
    if rng.random() < 0.3:
        extra["retrieval_question"] = rng.choice(("What is it?", "密码是什么？", "Is it {x}?"))
    template = {"prompt_template": "Q: {question} {{json}} {context}!"} if rng.random() < 0.2 else {}
    return {**template, "extra_params": extra}


def ours(arguments: dict[str, Any]) -> dict[tuple[str, int, int], str]:
    plan = needlepoint.prompts(datasets=["needle_haystack"], dataset_args={"needle_haystack": arguments})
    return {
        (prompt.cell.subset, prompt.cell.context_length, int(prompt.cell.depth_percent)): sha256(
            prompt.messages()[-1]["content"].encode()
        ).hexdigest()
        for prompt in plan
    }


def theirs(found: Peer, asked: list[dict[str, Any]]) -> list[list[list[Any]]]:
    lines = "".join(json.dumps(arguments) + "\n" for arguments in asked)
    done = subprocess.run([found.python, "-c", EVALSCOPE], input=lines, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"EvalScope failed: {done.stderr[-2_000:]}")
    return [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("ROWS ")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", metavar="FOLDER", help="set EvalScope up here, where it isn't yet")
    parser.add_argument("--evalscope", metavar="PYTHON", help="Python with evalscope 1.14.1")
    parser.add_argument("--tokenizer", metavar="DIR", help="folder of a tokenizer.json, for both")
    parser.add_argument("--corpus", metavar="DIR", help="folder with the two texts; else they are made up")
    parser.add_argument("--grids", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        found = Peer(options.evalscope, options.tokenizer) if options.evalscope else peer(Path(options.install or "."))
    except CannotInstall as reason:
        sys.exit(f"EvalScope 1.14.1 cannot be installed here: {reason}")
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        places = texts(Path(temporary), options.corpus, rng)
        asked = []
        for _ in range(options.grids):
            arguments, place = grid(rng), str(rng.choice(places))
            arguments["extra_params"]["tokenizer_path"] = options.tokenizer or found.tokenizer
            asked.append({**arguments, "dataset_id": place, "local_path": place})
        compared = equal = refused = 0
        for arguments, rows in zip(asked, theirs(found, asked), strict=True):
            try:
                mine = ours(arguments)
            except needlepoint.NeedlepointError as error:
                refused += len(rows)
                print(f"refused: {str(error).splitlines()[0][:110]}")
                continue
            same = sum(mine.get(tuple(row[:3])) == row[3] for row in rows)
            compared, equal = compared + len(rows), equal + same
            if same != len(rows):
                print(f"{len(rows) - same} of {len(rows)} differ: {json.dumps(arguments, ensure_ascii=False)}")
    print(f"{equal:,} of {compared:,} prompts are equal; {refused:,} were refused.")
    sys.exit(equal != compared)


if __name__ == "__main__":
    main()
