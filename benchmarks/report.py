"""What pictures, page and tables cost: at the end of a run, made again, and of a run of 10,000 trials.

    python benchmarks/report.py [--corpus DIR] [--runs N] [--small]

The default 200 prompts are asked of the simulated model, in turn with the usual files and with `--report none`: the
difference of the medians is what is beyond the asking (answering and scoring included in both), in seconds of the clock
and of the processor; on a machine that does something else meanwhile only the latter mean something. Then
`needlepoint report` makes the files again from the folder, a whole process each time. Page and pictures of 10,000
trials are made from a folder with 20 replicates of 500 cells; where Chromium and Playwright are there, that page is
opened, too.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from prompts import made_up_corpus, measure

COMMAND = [sys.executable, "-m", "needlepoint.cli"]


def timed(command: list[str]) -> tuple[float, float, float]:
    """(wall seconds, processor seconds, peak megabytes) of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, peak = measure(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak


def newest(work_dir: Path) -> Path:
    return max(work_dir.iterdir(), key=lambda path: path.stat().st_mtime_ns)


def default_run(corpus: str, folder: Path, runs: int) -> None:
    arguments = json.dumps({"needle_haystack": {"local_path": corpus}})
    command = [*COMMAND, "eval", "--model", "simulated:middle", "--datasets", "needle_haystack"]
    command += ["--dataset-args", arguments, "--work-dir", str(folder / "runs")]
    measure(command)  # the first one warms caches of the disk
    found: dict[str, list[tuple[float, float, float]]] = {"none": [], "png,svg,html,md": []}
    for _ in range(runs):
        for report, measured in found.items():
            measured.append(timed([*command, "--report", report]))
    for i, clock in enumerate(("clock", "processor")):
        bare, whole = (statistics.median(one[i] for one in measured) for measured in found.values())
        print(f"by the {clock}: without files {bare:.2f} s, with them {whole:.2f} s: {whole - bare:.2f} s more")
    run = newest(folder / "runs")
    again = [timed([*COMMAND, "report", str(run)]) for _ in range(runs)]
    wall, used = (statistics.median(one[i] for one in again) for i in (0, 1))
    print(
        f"needlepoint report, a process of its own: {wall:.2f} s, {used:.2f} s of the processor, {again[0][2]:.0f} MB"
    )
    for path in sorted(run.glob("report.*")) + sorted(run.glob("*heatmap*")):
        print(f"  {path.name}: {path.stat().st_size / 1_000:,.0f} kB")


def large_run(corpus: str, folder: Path) -> None:
    text = Path(corpus) / "PaulGraham_Essays.txt"
    command = [*COMMAND, "eval", "--model", "simulated:middle", "--corpus", str(text), "--lengths", "200:2k:25"]
    command += ["--depths", "0:100:20", "--replicates", "20", "--report", "none", "--work-dir", str(folder / "large")]
    measure(command)
    run = newest(folder / "large")
    for formats in ("html", "png,svg,md,json", "csv"):
        wall, used, peak = timed([*COMMAND, "report", str(run), "--format", formats])
        print(f"10,000 trials, {formats}: {wall:.2f} s, {used:.2f} s of the processor, {peak:.0f} MB")
    print(f"  report.html: {(run / 'report.html').stat().st_size / 1e6:.1f} MB")
    if (seconds := opening(run / "report.html")) is not None:
        print(f"  opens in Chromium in {seconds:.2f} s, drawn and ready")


def opening(page: Path, times: int = 5) -> float | None:
    """Seconds from navigation to the first frame of the finished page, the median of some."""
    browser_path = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if browser_path is None:
        return None
    found = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(times):
            tab = browser.new_page()
            tab.goto(page.as_uri())
            tab.wait_for_selector("html[data-ready]")
            drawn = "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)))"
            found.append(tab.evaluate(drawn) / 1_000)
            tab.close()
        browser.close()
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", help="folder with the two texts")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="without the run of 10,000 trials")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = options.corpus or str(made_up_corpus(folder))
        default_run(corpus, folder, options.runs)
        if not options.small:
            large_run(corpus, folder)


if __name__ == "__main__":
    main()
