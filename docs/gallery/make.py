"""The pictures of docs/gallery.md, made from runs of the simulated model and of the embedded one.

    python docs/gallery/make.py [--smollm2 RUN] [--page]

`--smollm2` names a finished run of the embedded model; without it one is asked, which takes some minutes. `--page`
takes pictures of the page, too: it needs Chromium and `pip install '.[browser]'`.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from needlepoint import make_report, run_task

HERE = Path(__file__).parent
GRID: dict[str, Any] = {"corpus": ["embedded"], "lengths": "1k:32k:10", "depths": "0:100:10", "report": "none"}
REAL = "--model smollm2 --corpus sotu --lengths 500,1k,2k,3k,4k --depths 0,25,50,75,100"


def simulated(kind: str, work_dir: Path, **more: Any) -> Path:
    return run_task({**GRID, "model": f"simulated:{kind}", "work_dir": str(work_dir), **more}).folder


def put(name: str, *runs: Path, chart: str | None = "heatmap", of: str, **look: Any) -> None:
    """One picture of these runs, under a name of the gallery."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_report(*runs, formats="png", charts=chart, out=folder, **look)
        (found,) = [path for path in made if path.stem == of]
        shutil.copy(found, HERE / f"{name}.png")


def pictures(work_dir: Path, real: Path) -> None:
    middle, cliff = (
        simulated("middle", work_dir, replicates=3),
        simulated("cliff,at=16k", work_dir, max_model_len=29_000),
    )
    noise, perfect = simulated("noise", work_dir, replicates=3), simulated("perfect", work_dir)
    many = simulated("middle", work_dir, needle_set="number", needle_count=3, corpus=["sotu"], replicates=3)
    heatmap = "needle_haystack_heatmap"
    put("smollm2", real, of=f"{heatmap}_english", show_score=True)
    put("smollm2-tokens", real, chart="tokens", of="tokens_by_length")
    put("middle", middle, of=f"{heatmap}_english")
    put("numbers-classic", middle, of=f"{heatmap}_chinese", palette="classic", show_score=True)
    put("dark", cliff, of=f"{heatmap}_english", theme="dark")
    put("chinese", cliff, of=f"{heatmap}_chinese", lang="zh")
    put("accuracy", middle, chart="accuracy", of="accuracy_by_length")
    put("position", middle, chart="position", of="accuracy_by_depth")
    put("outcomes", cliff, chart="outcomes", of="outcomes_by_length")
    put("recall", many, chart="recall", of="recall_of_needles")
    put("several", perfect, middle, cliff, noise, chart=None, of=f"{heatmap}s_english")
    put("difference", perfect, middle, chart=None, of="difference_english")
    make_report(middle, formats="html", out=work_dir / "one")
    make_report(perfect, middle, formats="html", out=work_dir / "two")


def screenshots(work_dir: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, file, options in (
            ("page", "one", {"viewport": {"width": 1280, "height": 1000}}),
            ("page-dark", "two", {"viewport": {"width": 1280, "height": 1000}, "color_scheme": "dark"}),
            ("page-phone", "one", {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2}),
        ):
            page = browser.new_page(**options)
            page.goto((work_dir / file / "report.html").as_uri())
            page.wait_for_selector("html[data-ready]")
            page.locator("#maps td[role=gridcell]").nth(43).click()
            page.mouse.move(0, 0)
            if name != "page-phone":
                page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(600)
            page.screenshot(path=HERE / f"{name}.png")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smollm2", type=Path, help="a finished run of the embedded model")
    parser.add_argument("--page", action="store_true", help="pictures of the page, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work_dir = Path(temporary)
        words = REAL.split()
        asked = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
        real = options.smollm2 or run_task({**asked, "work_dir": str(work_dir / "real"), "report": "none"}).folder
        pictures(work_dir, real)
        if options.page:
            screenshots(work_dir)
    for path in sorted(HERE.glob("*.png")):
        print(f"{path.name}: {path.stat().st_size / 1_000:,.0f} kB")


if __name__ == "__main__":
    main()
