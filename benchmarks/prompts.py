"""Building the benchmark's prompts: needlepoint against EvalScope 1.14.1, side by side in one run.

    python benchmarks/prompts.py [--evalscope PYTHON] [--corpus DIR] [--tokenizer DIR] [--runs 3]

Each tool builds the default 200 prompts, and 200 prompts to 1,000,000 tokens, in a process of its own; wall time with
process start and peak memory are those of the whole process. Without --evalscope (a Python that has evalscope 1.14.1,
with a folder of the Qwen3 tokenizer for it) only needlepoint is measured. --corpus is a folder with the two texts of
the canonical dataset; without it both use made-up texts of the same size. The prompts' hashes are compared.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

NEEDLEPOINT = """
import hashlib, json, sys
import needlepoint
corpus, longest, out = sys.argv[1:]
plan = needlepoint.prompts(
    datasets=["needle_haystack"],
    dataset_args={"needle_haystack": {"local_path": corpus, "extra_params": {"context_lengths_max": int(longest)}}},
)
with open(out, "w") as file:
    for prompt in plan:
        text = prompt.messages()[-1]["content"]
        row = [prompt.cell.subset, prompt.cell.context_length, int(prompt.cell.depth_percent)]
        file.write(json.dumps([*row, hashlib.sha256(text.encode()).hexdigest()]) + "\\n")
"""
EVALSCOPE = """
import hashlib, json, sys
from evalscope import TaskConfig
from evalscope.api.registry import get_benchmark
corpus, longest, out, tokenizer = sys.argv[1:]
arguments = {"dataset_id": corpus, "local_path": corpus,
             "extra_params": {"tokenizer_path": tokenizer, "context_lengths_max": int(longest)}}
config = TaskConfig(model="m", api_url="http://127.0.0.1:1/v1", api_key="x", eval_type="openai_api",
                    datasets=["needle_haystack"], dataset_args={"needle_haystack": arguments})
benchmark = get_benchmark("needle_haystack", config=config)
datasets, _ = benchmark.load()
with open(out, "w") as file:
    for subset, samples in datasets.items():
        for sample in samples:
            text = benchmark.format_prompt_template(sample)
            row = [subset, sample.metadata["context_length"], sample.metadata["depth_percent"]]
            file.write(json.dumps([*row, hashlib.sha256(text.encode()).hexdigest()]) + "\\n")
"""


def measure(command: list[str]) -> tuple[float, float]:
    """(wall seconds, peak megabytes) of one process, from its start to its end."""
    watcher = (
        "import resource, subprocess, sys, time; t = time.perf_counter(); "
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE); "
        "wall = time.perf_counter() - t; peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024; "
        "sys.stderr.buffer.write(done.stderr[-2000:] if done.returncode else b''); "
        "print(wall, peak); sys.exit(done.returncode)"
    )
    done = subprocess.run([sys.executable, "-c", watcher, *command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"failed: {command[0]}\n{done.stderr}")
    wall, peak = done.stdout.split()
    return float(wall), float(peak)


def made_up_corpus(folder: Path) -> Path:
    """Two texts of about the canonical sizes, so that the benchmark runs where the dataset cannot be had."""
    rng = random.Random(1)
    words = ["".join(rng.choice("aeioubcdfglmnprst") for _ in range(rng.randint(2, 9))) for _ in range(4_000)]
    english = []
    while sum(map(len, english)) < 640_000:
        sentence = " ".join(rng.choice(words) for _ in range(rng.randint(6, 22)))
        english.append(sentence.capitalize() + rng.choice([". ", ". ", "? ", ".\n\n"]))
    characters = [chr(code) for code in range(0x4E00, 0x5400)]
    chinese = []
    for _ in range(36_000):
        chinese.append("".join(rng.choice(characters) for _ in range(rng.randint(8, 30))) + rng.choice("。，。！"))
    (folder / "PaulGraham_Essays.txt").write_text("".join(english), encoding="utf-8")
    (folder / "Journey_to_the_West.txt").write_text("".join(chinese), encoding="utf-8")
    return folder


def rows(path: Path) -> set[str]:
    return set(path.read_text().splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evalscope", help="Python with evalscope 1.14.1")
    parser.add_argument("--tokenizer", help="folder of the Qwen3 tokenizer, for EvalScope")
    parser.add_argument("--corpus", help="folder with the two texts")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    if options.evalscope and not options.tokenizer:
        parser.error("--evalscope needs --tokenizer, a folder with the Qwen3 tokenizer.json")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = options.corpus or str(made_up_corpus(folder))
        for longest, runs in ((32_000, options.runs), (1_000_000, 1)):
            ours = [
                measure([sys.executable, "-c", NEEDLEPOINT, corpus, str(longest), str(folder / "ours")])
                for _ in range(runs)
            ]
            arguments = json.dumps(
                {"needle_haystack": {"local_path": corpus, "extra_params": {"context_lengths_max": longest}}}
            )
            command = [sys.executable, "-m", "needlepoint.cli", "prompts", "--datasets", "needle_haystack"]
            command += ["--dataset-args", arguments, "--out", str(folder / "prompts.jsonl")]
            written = [measure(command) for _ in range(runs)]
            size = (folder / "prompts.jsonl").stat().st_size / 1e6
            print(
                f"200 prompts to {longest:>9,}, as a file of {size:.0f} MB by the command: "
                f"{statistics.median(w for w, _ in written):.2f} s {max(p for _, p in written):.0f} MB",
                flush=True,
            )
            wall, peak = statistics.median(w for w, _ in ours), max(p for _, p in ours)
            line = f"200 prompts to {longest:>9,}: needlepoint {wall:7.2f} s {peak:6.0f} MB"
            if options.evalscope:
                their_arguments = [corpus, str(longest), str(folder / "theirs"), options.tokenizer]
                theirs = [measure([options.evalscope, "-c", EVALSCOPE, *their_arguments]) for _ in range(runs)]
                their_wall, their_peak = statistics.median(w for w, _ in theirs), max(p for _, p in theirs)
                same = len(rows(folder / "ours") & rows(folder / "theirs"))
                line += f" | EvalScope {their_wall:7.2f} s {their_peak:6.0f} MB | time 1/{their_wall / wall:.1f}"
                line += f", memory 1/{their_peak / peak:.1f}, {same} of 200 prompts equal"
            print(line, flush=True)


if __name__ == "__main__":
    main()
