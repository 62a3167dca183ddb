"""What is made of runs: which files, of what, the same bytes each time; and what happens where something fails."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from needlepoint import TaskResult, import_results, make_report, run_task, score_run
from needlepoint.ask.store import RunFolder
from needlepoint.cli import main
from needlepoint.errors import InputError, OutputError, UsageError
from needlepoint.show import charts

USUAL = {
    "report.json",
    "report.html",
    "report.md",
    "needle_haystack_heatmap_text.png",
    "needle_haystack_heatmap_text.svg",
}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def text(prose: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text(prose["en"](3_000), encoding="utf-8")
    return file


def asked(text: Path, work_dir: Path, **settings: Any) -> TaskResult:
    given = {"model": "simulated:cliff,at=2k", "lengths": [1_000, 2_000, 3_000], "depths": [0, 50, 100]}
    return run_task({**given, "corpus": [str(text)], "work_dir": str(work_dir), **settings})


@pytest.fixture(scope="module")
def finished(text: Path, tmp_path_factory: pytest.TempPathFactory) -> TaskResult:
    return asked(text, tmp_path_factory.mktemp("runs") / "outputs")


@pytest.fixture
def folder(finished: TaskResult, tmp_path: Path) -> Path:
    """A copy to do things to, under the same names."""
    copy = tmp_path / "outputs" / finished.folder.name
    shutil.copytree(finished.folder, copy)
    return copy


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BROWSER", "false")

    def typed(*argv: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["needlepoint", *argv])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capfd.readouterr()

    return typed


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.suffix != ".jsonl"}


def numbers_in(svg: str) -> int:
    """The cells with a number, in a picture of right and wrong ones."""
    return len(re.findall(r">[01]</text>", svg.replace("gradient", ""))) - 2  # the legend has a 0 and a 1


def test_a_run_ends_with_its_files_and_names_them(finished: TaskResult) -> None:
    assert {path.name for path in finished.files} == USUAL - {"report.json"}
    assert all(path.is_file() for path in finished.files) and (finished.folder / "report.json").is_file()


def test_a_report_made_again_has_the_same_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = bytes_of(folder)
    for name in USUAL - {"report.json"}:
        (folder / name).unlink()
    made = make_report(folder)
    assert {path.name for path in made} == USUAL
    assert bytes_of(folder) == before
    make_report(folder, formats="all", charts="all")
    before = bytes_of(folder)
    monkeypatch.chdir(folder)
    assert len(make_report(".", formats="all", charts="all")) >= 17
    assert bytes_of(folder) == before


def test_every_format_and_chart_can_be_had_alone(folder: Path, tmp_path: Path) -> None:
    for name in ("json", "html", "md", "csv"):
        (made,) = make_report(folder, formats=name, out=tmp_path / name)
        assert made.parent == tmp_path / name and made.suffix == f".{name}" and made.stat().st_size > 500
    for chart in ("accuracy", "position", "outcomes", "latency", "tokens"):
        (made,) = make_report(folder, formats=["svg"], charts=[chart], out=tmp_path / "charts")
        assert made.stem == charts.FILES[chart]
    drawn = make_report(folder, formats="png", charts="all", out=tmp_path / "charts")
    assert len(drawn) == 6 and all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_a_look_that_the_run_was_asked_for_is_kept_and_can_be_changed(text: Path, tmp_path: Path) -> None:
    args = {"needle_haystack": {"extra_params": {"show_score": True}}}
    result = asked(text, tmp_path / "o", lang="zh", palette="classic", dataset_args=args, report="svg,md")
    svg, md = result.files
    drawn = svg.read_text(encoding="utf-8")
    assert "大海捞针" in drawn and "大海捞针" in md.read_text(encoding="utf-8")
    assert "#d64545" in drawn or "214, 69, 69" in drawn
    assert numbers_in(drawn) == 9
    before = svg.read_bytes()
    make_report(result.folder, formats="svg")
    assert svg.read_bytes() == before
    make_report(result.folder, formats="svg", lang="en", palette="default", show_score=False, title="Mine")
    changed = svg.read_text(encoding="utf-8")
    assert "Mine · text" in changed and numbers_in(changed) == 0 and "214, 69, 69" not in changed


def test_numbers_in_cells_decide_no_prompt(text: Path, tmp_path: Path) -> None:
    first = asked(text, tmp_path / "o", report="none")
    assert first.files == () and not (first.folder / "report.html").exists()
    args = {"needle_haystack": {"extra_params": {"show_score": True}}}
    again = asked(text, tmp_path / "o", use_cache=str(first.folder), dataset_args=args, report=["svg"])
    assert again.asked == 0 and numbers_in(again.files[0].read_text(encoding="utf-8")) == 9


def test_what_cannot_be_drawn_is_said_and_loses_nothing(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(spec: object) -> str:
        raise ValueError("no canvas\nhere")

    monkeypatch.setattr(charts, "svg", broken)
    told: list[str] = []
    result = run_task(
        {"model": "simulated", "corpus": [str(text)], "lengths": [1_000], "depths": [50], "work_dir": str(tmp_path)},
        notify=told.append,
    )
    assert {path.name for path in result.files} == {"report.html", "report.md"}
    assert result.score == 1.0 and len(list(result.trials())) == 1
    (line,) = [line for line in told if "Could not make" in line]
    assert "needle_haystack_heatmap_text: ValueError: no canvas here" in line
    assert f"needlepoint report {result.folder}" in line
    with pytest.raises(ValueError, match="no canvas"):
        make_report(result.folder)


def test_a_run_that_was_killed_can_be_reported_on(folder: Path) -> None:
    for name in USUAL:
        (folder / name).unlink()
    lines = (folder / "trials.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "trials.jsonl").write_bytes(b"".join(lines[:5]) + lines[5][:40])
    assert {path.name for path in make_report(folder)} == USUAL
    assert json.loads((folder / "report.json").read_text())["overall"]["n"] == 5


def test_a_run_that_goes_on_is_reported_on_elsewhere(folder: Path, tmp_path: Path) -> None:
    with RunFolder.open(folder, for_writing=True):
        with pytest.raises(OutputError, match=r"already open for writing(.|\n)*--out DIR"):
            make_report(folder, formats="md")
        (made,) = make_report(folder, formats="md", out=tmp_path / "elsewhere")
    assert made.read_bytes() == (folder / "report.md").read_bytes()


def test_scoring_again_makes_the_files_that_there_are_anew(folder: Path) -> None:
    make_report(folder, formats="svg,csv", charts="accuracy")
    (folder / "report.md").unlink()
    result = score_run(folder)
    assert {path.name for path in result.files} == (USUAL - {"report.json", "report.md"}) | {
        "accuracy_by_length.png",
        "accuracy_by_length.svg",
        "trials.csv",
    }


def test_two_runs_stand_side_by_side_with_their_difference(folder: Path, text: Path) -> None:
    other = asked(text, folder.parent, model="simulated:perfect", report="none").folder
    made = make_report(folder, other, formats="html,md,svg,json,csv")
    (place,) = {path.parent for path in made}
    assert place.parent == folder.parent and place.name.startswith("report_simulated-cliff-at-2k_simulated-perfect_")
    assert {path.name for path in made} == {
        "report.json",
        "report.html",
        "report.md",
        "needle_haystack_heatmaps_text.svg",
        "accuracy_by_length_text.svg",
        "difference_text.svg",
        "trials.csv",
    }
    assert [one["model"] for one in json.loads((place / "report.json").read_text())["reports"]] == [
        "simulated:cliff,at=2k",
        "simulated:perfect",
    ]
    table = (place / "report.md").read_text(encoding="utf-8")
    assert "| `simulated:perfect` | `text` | **100%**" in table
    assert "simulated:perfect against simulated:cliff,at=2k" in (place / "difference_text.svg").read_text()
    assert len((place / "trials.csv").read_text(encoding="utf-8-sig").splitlines()) == 19
    before = bytes_of(place)
    make_report(folder, other, formats="html,md,svg,json,csv")
    assert bytes_of(place) == before


def test_the_same_model_twice_is_told_apart(folder: Path) -> None:
    twin = folder.with_name(folder.name + "-2")
    shutil.copytree(folder, twin)
    made = make_report(folder, twin, formats="md")
    text = made[0].read_text(encoding="utf-8")
    assert "`simulated:cliff,at=2k (1)`" in text and "`simulated:cliff,at=2k (2)`" in text


def test_imported_scores_are_drawn_with_what_they_have(tmp_path: Path) -> None:
    grid = [
        {"context_length": length, "depth_percent": depth, "score": 10 if length < 2000 else 1}
        for length in (1000, 2000)
        for depth in (0, 100)
    ]
    file = tmp_path / "grid.json"
    file.write_text(json.dumps(grid))
    (result,) = import_results(file, work_dir=tmp_path / "o", scale=(1, 10))
    made = {path.name for path in make_report(result.folder, formats="all", charts="all") if path.suffix != ".parquet"}
    stems = {name.split(".")[0] for name in made}
    assert {"accuracy_by_length", "accuracy_by_depth", "outcomes_by_length", "report", "trials"} <= stems
    assert not stems & {"latency_by_length", "tokens_by_length", "recall_of_needles"}
    row = (result.folder / "trials.csv").read_text(encoding="utf-8-sig").splitlines()[1].split(",")
    assert '"correct"' in row and row.count("") > 10
    assert result._repr_html_().count("data:image/svg+xml") == 1


def test_every_field_of_a_report_is_documented_and_no_other(finished: TaskResult) -> None:
    page = (Path(__file__).parents[1] / "docs" / "report.md").read_text(encoding="utf-8")
    table, words = page.split("## `report.json`, schema 1")[1].split("A *row* has")
    fields = {
        name for line in re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)
    }
    assert fields == set(finished.report) | {"search"}
    (subset,) = finished.report["subsets"]
    rows = set(re.findall(r"`(\w+)`", words))
    for row in (finished.report["overall"], *subset["lengths"], *subset["depths"], *subset["cells"]):
        assert set(row) <= rows
    assert set(subset) - rows - {"name"} <= set(re.findall(r"`(\w+)`", table))


def test_a_notebook_shows_the_heatmap_and_nothing_that_runs(finished: TaskResult) -> None:
    shown = finished._repr_html_()
    assert shown.count("<img ") == 1 and "data:image/svg+xml;base64," in shown and "Finds " in shown
    assert "<svg" not in shown and "<script" not in shown
    evil = "<script>alert(1)</script>"
    report = {**finished.report, "model": evil}
    report["subsets"] = [{**finished.report["subsets"][0], "name": evil}]
    hostile = replace(finished, report=report, folder=Path(evil))._repr_html_()
    assert "<script" not in hostile and hostile.count("&lt;script&gt;") >= 3


def test_a_report_of_a_later_schema_is_not_written_over(folder: Path) -> None:
    (folder / "report.json").write_text('{"schema": 2}')
    with pytest.raises(InputError, match="schema 2"):
        make_report(folder)
    assert json.loads((folder / "report.json").read_text()) == {"schema": 2}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"formats": "pgn"}, "unknown format 'pgn'. Did you mean 'png'"),
        ({"formats": "none"}, "names nothing"),
        ({"formats": "none,png"}, "excludes"),
        ({"charts": "heat"}, "unknown chart 'heat'"),
        ({"charts": "none"}, "names no chart"),
        ({"lang": "de"}, "--lang: unknown value 'de'. Known: en, zh"),
        ({"palette": "viridis"}, "--palette"),
        ({"theme": "blue"}, "--theme"),
        ({"title": " "}, "--title is empty"),
        ({"threshold": 2}, "--threshold: must be a share"),
        ({"preset": "rular"}, "Did you mean 'ruler'"),
        ({"preset": "ruler", "threshold": 0.9}, "exclude each other"),
    ],
)
def test_a_wrong_setting_is_one_line_and_nothing_is_made(folder: Path, settings: dict[str, Any], says: str) -> None:
    before = bytes_of(folder)
    with pytest.raises(UsageError) as error:
        make_report(folder, **settings)
    assert says in str(error.value) and "\n" not in str(error.value)
    assert bytes_of(folder) == before


def test_a_wrong_format_is_refused_before_anything_is_asked(run: Run, tmp_path: Path) -> None:
    code, _, err = run("eval", "--model", "simulated", "--report", "pgn")
    assert code == 2 and "--report: unknown format 'pgn'" in err and not (tmp_path / "outputs").exists()


def test_the_command_names_what_it_made(run: Run, folder: Path) -> None:
    code, out, err = run("report", str(folder), "--format", "md", "--format", "svg,png", "--threshold", "90%")
    assert code == 0 and [Path(line).name for line in out.splitlines()] == [
        "needle_haystack_heatmap_text.png",
        "needle_haystack_heatmap_text.svg",
        "report.md",
    ]
    assert "at 90%" in (folder / "report.md").read_text(encoding="utf-8")
    code, out, err = run("report", str(folder), "--format", "svg", "--open")
    assert code == 2 and "--open shows the page" in err
    code, out, err = run("report", str(folder), "--format", "html", "--open")
    assert code == 0 and err.strip().endswith((folder / "report.html").as_uri())
    code, _, err = run("report", str(folder.parent / "nothing"))
    assert code == 2 and "does not exist" in err
    code, _, err = run("report", str(folder), "--out", str(folder / "run.json"))
    assert code == 2 and "Choose another place with --out" in err
