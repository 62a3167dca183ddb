from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from needlepoint import run_task
from needlepoint.ask.store import RunFolder
from needlepoint.excerpts import SURROUNDING, excerpts_of_run
from needlepoint.pages import page_of
from needlepoint.reconstruct import prompt_of, rebuild


@pytest.fixture(params=["exact", "evalscope"])
def run(request: pytest.FixtureRequest, tmp_path: Path, prose: Any) -> Path:
    """A run on a text of its own, with replicates and two needles."""
    text = tmp_path / "text.txt"
    text.write_text(prose["en"](4_000), encoding="utf-8")
    result = run_task(
        {
            "model": "simulated:middle",
            "corpus": [str(text)],
            "lengths": [1_000, 3_000],
            "depths": [0, 50, 100],
            "length_mode": request.param,
            "needle": ["\nThe gate code is 4711.\n", "\nThe ferry leaves at nine.\n"],
            "question": "What is the gate code?",
            "replicates": 2,
            "work_dir": str(tmp_path / "outputs"),
        }
    )
    return result.folder


def trials_of(run: Path) -> list[Any]:
    with RunFolder.open(run, for_writing=False) as folder:
        return [trial for trial, _ in folder.replies()]


def test_excerpts_stand_in_the_very_prompt(run: Path) -> None:
    trials = trials_of(run)
    excerpts, why = excerpts_of_run(run, trials)
    assert why is None and excerpts.keys() == {trial.prompt_sha256 for trial in trials}
    rebuilt = rebuild(run)
    for trial in trials:
        content = prompt_of(rebuilt, trial).messages()[-1]["content"]
        found = excerpts[trial.prompt_sha256]
        assert len(found) == 2
        for needle, excerpt in zip(trial.needles, found, strict=True):
            assert f"{excerpt.before}{needle.text}{excerpt.after}" in content
            assert len(excerpt.before) <= SURROUNDING and len(excerpt.after) <= SURROUNDING
        if trial.depth_percent == 50:
            assert len(found[0].before) == SURROUNDING


def test_without_its_text_a_run_has_no_excerpts_and_the_page_says_why(run: Path) -> None:
    (run.parents[1] / "text.txt").write_text("Another text altogether. " * 9_000, encoding="utf-8")
    excerpts, why = excerpts_of_run(run, trials_of(run))
    assert excerpts == {} and why is not None and "sha256" in why
    with RunFolder.open(run, for_writing=False) as folder:
        assert "Bring the old one back" in page_of([folder])


def test_a_page_of_a_folder_is_the_same_each_time_and_can_leave_the_text_out(run: Path) -> None:
    with RunFolder.open(run, for_writing=False) as folder:
        page = page_of([folder])
        assert page == page_of([folder])
        assert f"outputs/{run.name}" in page and "Mrs. Quill" in page
        assert "Mrs. Quill" not in page_of([folder], with_excerpts=False)
