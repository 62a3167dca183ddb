"""`needlepoint import` as it is typed: tables, folders, and what an imported run can and cannot do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from needlepoint.cli import main

Run = Callable[..., tuple[int, str, str]]
NEEDLE = "The best thing to do in San Francisco is eat a sandwich and sit in Dolores Park on a sunny day."


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def typed(*argv: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["needlepoint", *argv])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capfd.readouterr()

    return typed


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    file = tmp_path / "answers.jsonl"
    rows = [
        {
            "model": "model-x",
            "context_length": length,
            "depth_percent": depth,
            "version": 1,
            "needle": NEEDLE,
            "model_response": "Eat a sandwich and sit in Dolores Park." if length == 1000 else "It does not say.",
            "score": 10 if length == 1000 else 1,
        }
        for length in (1000, 2000)
        for depth in (0, 50, 100)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


@pytest.fixture
def folder(run: Run, answers: Path, tmp_path: Path) -> str:
    assert run("import", str(answers), "--work-dir", "runs")[0] == 0
    (found,) = (tmp_path / "runs").iterdir()
    return str(found)


def test_import_shows_what_came_in_and_where_it_is(run: Run, answers: Path, tmp_path: Path) -> None:
    code, stdout, stderr = run("import", str(answers), "--work-dir", "runs")
    assert code == 0
    assert "50.0%" in stdout and "3 correct, 3 wrong" in stdout
    assert "model-x: 6 results of needlehaystack 0.1 in 6 cells, lengths 1k to 2k." in stderr
    assert "scale from 1 to 10" in stderr and "Run folder: runs" in stderr
    (found,) = (tmp_path / "runs").iterdir()
    assert {path.name for path in found.iterdir()} >= {"run.json", "trials.jsonl", "scores", "report.json"}


def test_import_as_json_is_a_list_of_folders_and_reports(run: Run, answers: Path) -> None:
    code, stdout, _ = run("import", str(answers), "--work-dir", "runs", "--json")
    (one,) = json.loads(stdout)
    assert code == 0 and one["report"]["overall"]["score"] == 0.5 and Path(one["folder"]).is_dir()


def test_the_default_place_is_that_of_eval(run: Run, answers: Path, tmp_path: Path) -> None:
    assert run("import", str(answers))[0] == 0
    assert len(list((tmp_path / "outputs").iterdir())) == 1


def test_show_lists_an_imported_run_by_its_own_scores(run: Run, folder: str) -> None:
    code, stdout, _ = run("show", folder)
    lines = stdout.splitlines()
    assert code == 0 and len(lines) == 6
    assert lines[0].startswith("default:1000:0 ") and lines[0].endswith("correct") and lines[5].endswith("wrong")


def test_show_of_a_cell_says_plainly_why_there_is_no_prompt(run: Run, folder: str) -> None:
    code, stdout, stderr = run("show", folder, "default:2k:50")
    assert code == 0 and stdout == "--- reply\nIt does not say.\n"
    assert "imported from needlehaystack 0.1" in stderr and "no recipe" in stderr
    code, stdout, _ = run("show", folder, "default:2k:50", "--json")
    record = json.loads(stdout)
    assert record["messages"] is None and record["prompt_sha256"] is None and record["outcome"] == "wrong"


@pytest.mark.parametrize("flag", ["--use-cache", "--resume"])
def test_nothing_more_is_asked_in_an_imported_run(flag: str, run: Run, folder: str, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    code, stdout, stderr = run("eval", "--model", "simulated", flag, folder)
    assert (code, stdout) == (2, "") and stderr.count("needlepoint: ") == 1
    assert "imported from needlehaystack 0.1" in stderr and "without --use-cache" in stderr
    assert {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()} == before
    assert not (tmp_path / "outputs").exists()


def test_the_prompts_of_an_imported_run_cannot_be_asked_again(run: Run, folder: str) -> None:
    code, stdout, stderr = run("eval", "--model", "simulated", "--prompts", folder)
    assert (code, stdout) == (2, "") and "imported from needlehaystack 0.1" in stderr
