"""Hostile results from a file to every file that is made of them, seen by a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from needlepoint import import_results, make_report

from ..show.test_markdown import without_code
from .test_page import EVIL

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run imported from answers that are as bad as can be, with every file made of it."""
    place = tmp_path_factory.mktemp("evil")
    file = place / "answers.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for number, length in enumerate((1_000, 2_000, 4_000)):
            for depth in (0, 50, 100):
                row = {
                    "model": EVIL[:150],
                    "context_length": length,
                    "depth_percent": depth,
                    "needle": EVIL,
                    "retrieval_question": EVIL,
                    "model_response": EVIL if number else "<script>window.caught=1</script>" * 40_000,
                    "score": 10 if depth else 1,
                }
                lines.write(json.dumps(row) + "\n")
    (result,) = import_results(file, work_dir=place / "o")
    make_report(result.folder, formats="json,png,svg,html,md,csv", charts="all", title=EVIL)
    return result.folder


def test_the_page_of_hostile_results_runs_nothing(folder: Path, opened: Callable[..., Any]) -> None:
    page = opened((folder / "report.html").read_text(encoding="utf-8"))
    for number in range(page.locator("#maps td[role=gridcell]").count()):
        page.locator("#maps td[role=gridcell]").nth(number).click()
    for summary in page.locator("summary:visible").all():
        summary.click()
    page.wait_for_timeout(100)
    assert page.evaluate("window.caught") is None
    assert page.locator("img, iframe, main a, base").count() == 0
    assert (folder / "report.html").stat().st_size < 1_000_000


def test_a_picture_of_hostile_results_runs_nothing(folder: Path, chromium: Any) -> None:
    pictures = sorted(folder.glob("*.svg"))
    assert len(pictures) >= 4
    context = chromium.new_context()
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for picture in pictures:
        page.goto(picture.as_uri())
        assert page.evaluate("window.caught") is None
        assert (
            page.evaluate("document.querySelectorAll('script, foreignObject, image, a, [onload], [onclick]').length")
            == 0
        )
    assert [url for url in asked if not url.startswith("file:")] == []
    context.close()


def test_other_files_of_hostile_results_hold_nothing_that_acts(folder: Path) -> None:
    for file in [*folder.glob("*.svg"), *(folder / name for name in ("report.html", "report.md", "trials.csv"))]:
        text = file.read_text(encoding="utf-8")
        assert "\x1b" not in text and "\u202e" not in text and "\x07" not in text, file.name
    assert "<script>" not in without_code((folder / "report.md").read_text(encoding="utf-8")).replace("\\<", "")
