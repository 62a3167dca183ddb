"""Building the benchmark's prompts: needlepoint against EvalScope 1.14.1, side by side in one run.

    python benchmarks/prompts.py --install FOLDER [--corpus DIR] [--runs 3]
    python benchmarks/prompts.py [--evalscope PYTHON --tokenizer DIR] [--corpus DIR] [--runs 3]

Each tool builds the default 200 prompts, and 200 prompts to 1,000,000 tokens, in a process of its own, in turn; wall
time with process start and peak memory are those of the whole process. The prompts' hashes are compared. `--install`
sets EvalScope up in FOLDER where it isn't there yet (3 GB); `--evalscope` is a Python that has it, `--tokenizer` a
folder with the Qwen3 tokenizer for it. Where neither is given, or it cannot be installed, only needlepoint is measured,
and that is said. --corpus is a folder with the two texts of the canonical dataset; without it both tools read made-up
texts of the same size.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from peer import CannotInstall, Peer, peer

NEEDLEPOINT = """
import hashlib, json, sys
import needlepoint
corpus, longest, intervals, out = sys.argv[1:]
grid = {"context_lengths_max": int(longest), "context_lengths_num_intervals": int(intervals)}
plan = needlepoint.prompts(
    datasets=["needle_haystack"], dataset_args={"needle_haystack": {"local_path": corpus, "extra_params": grid}}
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


@dataclass(frozen=True, slots=True)
class Spent:
    """What one process took, from its start to its end."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def spent(command: list[str]) -> Spent:
    """What a process took. Wall time is hit by whatever else the machine does; CPU time much less."""
    watcher = (
        "import resource, subprocess, sys, time; t = time.perf_counter(); "
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE); "
        "wall = time.perf_counter() - t; used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "sys.stderr.buffer.write(done.stderr[-2000:] if done.returncode else b''); "
        "print(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024); sys.exit(done.returncode)"
    )
    done = subprocess.run([sys.executable, "-c", watcher, *command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"failed: {command[0]}\n{done.stderr}")
    return Spent(*map(float, done.stdout.split()))


def measure(command: list[str]) -> tuple[float, float]:
    """(wall seconds, peak megabytes) of one process."""
    found = spent(command)
    return found.wall_s, found.peak_mb


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


def ours(corpus: str, longest: int, intervals: int, out: Path) -> Spent:
    return spent([sys.executable, "-c", NEEDLEPOINT, corpus, str(longest), str(intervals), str(out)])


def by_command(corpus: str, longest: int, out: Path) -> Spent:
    arguments = {"needle_haystack": {"local_path": corpus, "extra_params": {"context_lengths_max": longest}}}
    command = [sys.executable, "-m", "needlepoint.cli", "prompts", "--datasets", "needle_haystack"]
    return spent([*command, "--dataset-args", json.dumps(arguments), "--out", str(out)])


def theirs(found: Peer, corpus: str, longest: int, out: Path) -> Spent:
    return spent([found.python, "-c", EVALSCOPE, corpus, str(longest), str(out), found.tokenizer])


def middle(runs: list[Spent]) -> Spent:
    """The median times and the highest memory."""
    wall, cpu = statistics.median(run.wall_s for run in runs), statistics.median(run.cpu_s for run in runs)
    return Spent(wall, cpu, max(run.peak_mb for run in runs))


def row(name: str, mine: Spent, other: Spent | None = None) -> None:
    """A row of the table: seconds, of them on the CPU, and megabytes; then how many times less than the other."""
    cells = [name, f"{mine.wall_s:.2f} s", f"{mine.cpu_s:.2f} s", f"{mine.peak_mb:.0f} MB"]
    if other is not None:
        cells += [f"{other.wall_s:.2f} s", f"{other.cpu_s:.2f} s", f"{other.peak_mb:.0f} MB"]
        ratios = (other.wall_s / mine.wall_s, other.cpu_s / mine.cpu_s, other.peak_mb / mine.peak_mb)
        cells += [f"1/{ratio:.1f}" for ratio in ratios]
    print(f"| {' | '.join(cells)} |", flush=True)


def compare(corpus: str, folder: Path, longest: int, runs: int, found: Peer | None) -> None:
    """One grid: both tools in turn, so that a busy moment of the machine hits both."""
    mine, other, written = [], [], []
    for _ in range(runs):
        mine.append(ours(corpus, longest, 10, folder / "ours"))
        if found is not None:
            other.append(theirs(found, corpus, longest, folder / "theirs"))
        written.append(by_command(corpus, longest, folder / "prompts.jsonl"))
    against = middle(other) if other else None
    row(f"200 prompts to {longest:,} tokens", middle(mine), against)
    size = (folder / "prompts.jsonl").stat().st_size / 1e6
    row(f"the same by the command, as a file of {size:.0f} MB", middle(written), against)
    if found is not None:
        same = len(rows(folder / "ours") & rows(folder / "theirs"))
        print(f"  {same} of {len(rows(folder / 'theirs'))} prompts are equal", flush=True)


def found_peer(options: argparse.Namespace) -> Peer | None:
    """EvalScope where it was named or can be installed; else None, and the reason on the screen."""
    if options.evalscope:
        return Peer(options.evalscope, options.tokenizer)
    if options.install is None:
        print("Without EvalScope: give --install FOLDER, or --evalscope and --tokenizer, to compare with it.")
        return None
    try:
        return peer(Path(options.install))
    except CannotInstall as reason:
        print(f"Without EvalScope, which cannot be installed here: {reason}")
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", metavar="FOLDER", help="set EvalScope up here, where it isn't yet")
    parser.add_argument("--evalscope", metavar="PYTHON", help="Python with evalscope 1.14.1")
    parser.add_argument("--tokenizer", metavar="DIR", help="folder of the Qwen3 tokenizer, for EvalScope")
    parser.add_argument("--corpus", metavar="DIR", help="folder with the two texts")
    parser.add_argument("--longest", default="32000,1000000", help="longest lengths of the grids to build")
    parser.add_argument("--runs", type=int, default=3, help="of grids to 32,000 tokens; longer ones run once")
    options = parser.parse_args()
    if bool(options.evalscope) != bool(options.tokenizer):
        parser.error("--evalscope and --tokenizer, a folder with the Qwen3 tokenizer.json, go together")
    found = found_peer(options)
    columns = ["", "needlepoint", "on the CPU", "peak"]
    columns += [] if found is None else ["EvalScope", "on the CPU", "peak", "time", "CPU", "memory"]
    print(f"| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 1)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = options.corpus or str(made_up_corpus(folder))
        for longest in map(int, options.longest.split(",")):
            compare(corpus, folder, longest, options.runs if longest <= 32_000 else 1, found)
        if longest > 32_000:
            row(f"2,000 prompts to {longest:,} tokens", ours(corpus, longest, 100, folder / "ours"))


if __name__ == "__main__":
    main()
