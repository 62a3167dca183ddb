"""`needlepoint compare` and `eval --fail-under` as they are typed: what is refused, what is told, the exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

import needlepoint
from needlepoint.ask.store import RunFolder
from needlepoint.cli import main
from needlepoint.comparison import notable_cells
from needlepoint.errors import UsageError
from needlepoint.scoring import write_report
from needlepoint.types import Score

Typed = Callable[..., tuple[int, str, str]]
GRID = {"lengths": "500,1k", "depths": "0:100:4", "replicates": 2, "needle_set": "number"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Typed:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")

    def typed(*argv: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["needlepoint", *map(str, argv)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return typed


@pytest.fixture(scope="module")
def corpus(prose: dict[str, Callable[..., str]], tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("corpus") / "english.txt"
    file.write_text(prose["en"](3_000), encoding="utf-8")
    return f"english={file}"


@pytest.fixture(scope="module")
def made(corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A run of a simulated model, made once for each set of settings."""
    runs: dict[str, Path] = {}

    def make(model: str = "perfect", **settings: Any) -> Path:
        key = f"{model} {settings}"
        if key not in runs:
            runs[key] = needlepoint.run_task(
                {
                    "model": f"simulated:{model}",
                    "corpus": corpus,
                    **GRID,
                    **settings,
                    "work_dir": str(tmp_path_factory.mktemp("runs")),
                }
            ).folder
        return runs[key]

    return make


def test_a_broken_build_fails_and_its_flipped_answers_are_shown(run: Typed, made: Callable[..., Path]) -> None:
    good, bad = made(), made("cliff,at=700")
    code, out, err = run("compare", good, bad, "--fail-if-worse", "2%")
    assert code == 1
    assert "Worse: 100% → 50.0%, −50.0 points" in out and "8 lost, 0 gained of 16 questions" in out
    assert ("FAILED: accuracy is 50.0 points worse" in out and "B not found" in out) or "B wrong" in out
    assert "simulated:cliff,at=700: accuracy is 50.0 points worse" in err


def test_the_same_comparison_without_a_bar_only_tells(run: Typed, made: Callable[..., Path]) -> None:
    code, out, err = run("compare", made(), made("cliff,at=700"))
    assert code == 0 and "Worse" in out and "FAILED" not in out and not err


def test_two_runs_of_one_build_pass(run: Typed, made: Callable[..., Path]) -> None:
    code, out, _ = run("compare", made(), made("perfect,seed=2"), "--fail-if-worse", "0", "--margin", "50%")
    assert code == 0
    assert "PASSED" in out and "not one of 16 questions flipped" in out and "Equivalent within 50 points" in out


def test_lost_coverage_alone_fails(run: Typed, made: Callable[..., Path]) -> None:
    short = made("perfect,limit=800")
    code, out, err = run("compare", made(), short, "--fail-if-worse", "0.5")
    assert code == 1 and "8 of 16 trials that the first run measured are lost (8 overflow)" in err
    assert "english 1k 8 of 8" in out
    code, _, _ = run("compare", made(), short, "--fail-if-worse", "0.5", "--max-lost", "50%")
    assert code == 0
    code, _, _ = run("compare", short, made(), "--fail-if-worse", "0.5")
    assert code == 0  # what the first run lost is regained, not lost


def test_nothing_that_both_measured_is_no_comparison(run: Typed, made: Callable[..., Path]) -> None:
    nothing = made("perfect,limit=100")
    code, out, err = run("compare", made(), nothing)
    assert code == 3 and "there is nothing to compare" in out + err
    assert run("compare", made(), nothing, "--fail-if-worse", "0")[0] == 1


def test_other_prompts_are_refused_with_what_differs_and_the_ways_out(run: Typed, made: Callable[..., Path]) -> None:
    one, other = made(), made("perfect", seed=1)
    code, out, err = run("compare", one, other)
    assert code == 2 and not out
    assert "asked different prompts: 16 of 16" in err and "seed:" in err
    assert f"--prompts {one}" in err and "--unpaired" in err
    code, out, _ = run("compare", one, other, "--unpaired")
    assert code == 0 and "two separate samples" in out and "Lost" not in out


def test_runs_without_a_common_question_are_refused(run: Typed, made: Callable[..., Path]) -> None:
    one, other = made(), made("perfect", lengths="600")
    code, _, err = run("compare", one, other)
    assert code == 2 and "no question in common: english 500–1k in the first, english 600 in the second" in err
    code, _, err = run("compare", one, other, "--unpaired")
    assert code == 2 and "no cell in common" in err


def test_the_very_prompts_of_another_run_can_be_compared(run: Typed, made: Callable[..., Path], tmp_path: Path) -> None:
    asked = needlepoint.run_task(
        {"model": "simulated:noise,p=0.5", "prompts": str(made()), "work_dir": str(tmp_path / "again")}
    ).folder
    code, out, _ = run("compare", made(), asked, "--json")
    assert code == 0
    told = json.loads(out)
    assert told["comparisons"][0]["overall"]["n"] == 16 and told["passed"] is None and told["schema"] == 1


def test_a_run_that_was_not_finished_has_lost_what_was_not_asked(run: Typed, made: Callable[..., Path]) -> None:
    code, _, err = run("compare", made(), made("perfect", limit=10), "--fail-if-worse", "0")
    assert code == 1 and "6 of 16 trials that the first run measured are lost (6 not asked)" in err
    code, out, _ = run("compare", made("perfect", limit=10), made(), "--fail-if-worse", "0")
    assert code == 0 and "6 trials of" in out and "left out" in out


def with_layout(folder: Path, layout: str, into: Path) -> Path:
    """A copy of a run whose trials are in another layout."""
    into.mkdir()
    for name in ("run.json", "trials.jsonl"):
        text = (folder / name).read_text(encoding="utf-8")
        (into / name).write_text(text.replace('"layout":"classic"', f'"layout":"{layout}"'), encoding="utf-8")
    return into


def with_margins(folder: Path, value: float, into: Path, seed: int = 0) -> Path:
    """A copy of a run whose trials have margins around a value, by their length and depth."""
    into.mkdir()
    lines = [json.loads(line) for line in (folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        if "reply" in line:
            line["reply"]["margin"] = {"gold": value + number % 3 / 10 - 9, "wrong": -9.0, "rival": "1", "tokens": 2}
    (into / "trials.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    settings = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    settings["identity"]["seed"] = seed
    (into / "run.json").write_text(json.dumps(settings), encoding="utf-8")
    return into


def test_margins_of_runs_are_compared_and_have_a_bar_of_their_own(
    run: Typed, made: Callable[..., Path], tmp_path: Path
) -> None:
    one, other = (with_margins(made(), value, tmp_path / f"{value:g}") for value in (8.0, 6.0))
    code, out, _ = run("compare", one, other, "--fail-if-worse", "0")
    assert code == 0 and "Margins fell: 8.09 → 6.09, −2.00 nats" in out and "Margins, in nats" in out
    code, out, err = run("compare", one, other, "--fail-if-margin-worse", "1.5")
    assert code == 1 and "FAILED: margins are 2 nats lower (p < 0.001), and 1.5 nats or more is too much." in out
    assert "margins are 2 nats lower" in err
    code, out, _ = run("compare", one, other, "--fail-if-worse", "1%", "--fail-if-margin-worse", "2.5")
    assert code == 0 and "PASSED: 1 point or more, or margins lower by 2.5 nats or more would have failed" in out
    code, out, _ = run("compare", one, other, "--fail-if-margin-worse", "0", "--summary", "junit")
    cases = {case.get("name"): len(case) for case in Xml.fromstring(out.encode()).iter("testcase")}
    assert code == 1 and cases == {"coverage": 0, "margin": 1}
    code, _, err = run("compare", one, made(), "--fail-if-margin-worse", "0")
    assert code == 2 and "has no margins. Ask with --metric logprob." in err
    code, out, _ = run("compare", one, other, "--json")
    told = json.loads(out)["comparisons"][0]["logprob_margin"]
    assert told["overall"]["difference"] == -2 and [row["n"] for row in told["lengths"]] == [8, 8]
    code, out, _ = run("compare", one, other, "--unpaired")
    assert code == 0 and "Margins" not in out
    code, out, _ = run("compare", one, made())
    assert code == 0 and "Margins" not in out
    again = with_margins(made(), 8.0, tmp_path / "again", seed=5)
    code, out, _ = run("compare", one, again)
    assert code == 0 and "No sign that margins moved" in out
    found = needlepoint.compare(one, other, again)
    fell, same = (each.logprob_margin for each in found.comparisons)
    assert fell is not None and same is not None and fell.is_worse and same.p_value == 1.0
    assert fell.p_value == pytest.approx(2 * fell.whole.p_value)  # Holm's


@pytest.mark.parametrize("flags", [(), ("--unpaired",)])
def test_layouts_are_never_mixed(run: Typed, made: Callable[..., Path], tmp_path: Path, flags: Any) -> None:
    woven = with_layout(made(), "woven", tmp_path / "woven")
    code, out, err = run("compare", made(), woven, *flags)
    assert code == 2 and not out
    assert "layout classic" in err and "woven" in err and "--layout" in err
    assert run("compare", woven, with_layout(made(), "woven", tmp_path / "also"))[0] == 0


def judged(folder: Path, into: Path, identity: dict[str, Any], value: float = 1.0) -> Path:
    """A copy of a run that a judge scored, too."""
    into.mkdir()
    for name in ("run.json", "trials.jsonl"):
        (into / name).write_bytes((folder / name).read_bytes())
    with RunFolder.open(into, for_writing=True) as found:
        found.write_text("judgments/judge.json", json.dumps({"identity": identity}))
        for trial, reply in list(found.replies()):
            score = Score(outcome="correct" if value else "wrong", score=value, reason="", span=None, scorer="judge")
            found.append_score(trial, reply, score)
        write_report(found, "judge", {})
    return into


def test_scorers_are_never_mixed(run: Typed, made: Callable[..., Path], tmp_path: Path) -> None:
    one = judged(made(), tmp_path / "one", {"models": {"j": {}}})
    same = judged(made(), tmp_path / "same", {"models": {"j": {}}}, 0.0)
    other = judged(made(), tmp_path / "other", {"models": {"k": {}}})
    code, _, err = run("compare", made(), one)
    assert code == 2 and "by rules and by judge" in err and "--scorer rules" in err
    assert run("compare", made(), one, "--scorer", "rules")[0] == 0
    code, _, err = run("compare", one, other)
    assert code == 2 and "not by the same judges" in err
    code, out, _ = run("compare", one, same)
    assert code == 0 and "100% → 0%" in out and "scored by judge" in out
    code, _, err = run("compare", one, same, "--scorer", "jugde")
    assert code == 2 and "no scoring by 'jugde'" in err and "'judge'" in err


def test_imported_runs_pair_by_place_and_say_so(run: Typed, tmp_path: Path) -> None:
    for model, value in (("x", 10), ("y", 1)):
        rows = [
            {"model": model, "context_length": length, "depth_percent": depth, "score": value}
            for length in (1_000, 2_000, 4_000)
            for depth in (0, 50, 100)
        ]
        (tmp_path / f"{model}.json").write_text(json.dumps(rows), encoding="utf-8")
        code, _, err = run("import", f"{model}.json", "--work-dir", f"runs-{model}", "--scale", "1:10")
        assert code == 0, err
    code, out, err = run("compare", "runs-x", "runs-y")
    assert code == 0, err
    assert "prompts of 9 pairs are not known" in out and "scored by imported" in out and "Worse" in out


def test_several_runs_are_measured_by_the_first(run: Typed, made: Callable[..., Path]) -> None:
    runs = made(), made("perfect,seed=2"), made("cliff,at=700")
    code, out, err = run("compare", *runs, "--fail-if-worse", "0")
    assert code == 1 and out.count("A  simulated:perfect") == 2 and "for all runs together" in out
    assert "simulated:cliff" in err and "seed=2" not in err
    found = needlepoint.compare(*runs, fail_if_worse=0)
    assert found.passed is False and [one.is_worse for one in found.comparisons] == [False, True]
    last = found.comparisons[1]
    assert last.whole is not None and last.p_value == pytest.approx(2 * last.whole.p_value)


def test_the_picture_of_a_difference_outlines_what_stands_out(
    run: Typed, made: Callable[..., Path], tmp_path: Path
) -> None:
    settings = {"lengths": "500,1k", "depths": "50", "replicates": 8}
    one, other = made("perfect", **settings), made("cliff,at=700", **settings)
    assert notable_cells(one, other) == {"english": [(1_000, 50.0)]}
    assert notable_cells(one, made("perfect", seed=1)) == {}
    assert run("report", one, other, "--format", "svg", "--out", "pictures")[0] == 0
    assert "outlined" in (tmp_path / "pictures" / "difference_english.svg").read_text(encoding="utf-8")
    woven = with_layout(other, "woven", tmp_path / "woven")
    assert run("report", one, woven, "--format", "svg", "--out", "others")[0] == 0
    assert not list((tmp_path / "others").glob("difference*"))


def test_summaries_go_to_a_file_or_to_stdout(run: Typed, made: Callable[..., Path], tmp_path: Path) -> None:
    good, bad = made(), made("cliff,at=700")
    code, out, _ = run("compare", good, bad, "--fail-if-worse", "0", "--summary", "md")
    assert code == 1 and out.startswith("### ❌ ") and "<details>" in out
    code, out, _ = run(
        "compare", good, bad, "--fail-if-worse", "0", "--summary", "junit", "--out", "junit.xml", "--flips", "0"
    )
    assert code == 1 and "Worse" in out and "Flipped" not in out
    root = Xml.parse(tmp_path / "junit.xml").getroot()
    assert root.get("failures") == "1"


def test_from_python_the_result_is_typed(made: Callable[..., Path]) -> None:
    found = needlepoint.compare(made(), made("cliff,at=700"), fail_if_worse="2%", margin=0.02)
    assert found.passed is False and found.difference == -0.5
    assert found.interval is not None and found.interval[1] < 0
    assert found.p_value is not None and found.p_value < 0.05
    assert len(found.flips) == 8 and found.flips[0].one.outcome == "correct"
    assert found.first.notable("english") == []
    assert found.markdown().startswith("### ❌") and found._repr_markdown_() == found.markdown()
    assert found.junit().startswith("<?xml")
    assert [short.bar for short in found.shortfalls(found.first)] == ["accuracy"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["A"], "two runs or more"),
        (["A", "B", "--fail-if-worse", "2"], "--fail-if-worse must be a share from 0 up to 1, such as 0.02 or 2%; not"),
        (["A", "B", "--fail-if-worse", "2.5"], "Did you mean 2.5%?"),
        (["A", "B", "--fail-if-worse", "lots"], "not 'lots'"),
        (["A", "B", "--fail-if-worse", "nan"], "not 'nan'"),
        (["A", "B", "--margin", "0"], "--margin must be a share above 0"),
        (["A", "B", "--fail-if-margin-worse", "1%"], "must be a number of nats from 0 on, such as 0.5; not '1%'"),
        (["A", "B", "--fail-if-margin-worse", "nan"], "not 'nan'"),
        (["A", "B", "--fail-if-margin-worse", "1", "--unpaired"], "margins are not compared --unpaired"),
        (["A", "B", "--max-lost", "1%"], "--max-lost goes with --fail-if-worse"),
        (["A", "B", "--summary", "html"], "--summary must be md or junit"),
        (["A", "B", "--out", "x.md"], "Give --summary md"),
        (["A", "B", "--json", "--summary", "md"], "both want standard output"),
        (["A", "B", "--summary", "md", "--out", "no/such/x.md"], "there is no folder"),
        (["A", "B", "--flips", "-1"], "--flips must be a whole number"),
        (["A", "nowhere"], "nowhere does not exist"),
        (["A", "B", "--scorer", "judge"], "no scoring by 'judge'"),
    ],
)
def test_wrong_use_is_told_in_a_line_or_two(run: Typed, made: Callable[..., Path], argv: list[str], says: str) -> None:
    places = {"A": made(), "B": made("perfect,seed=2")}
    code, out, err = run("compare", *(places.get(word, word) for word in argv))
    assert code == 2 and not out
    assert says in err and "Traceback" not in err and len(err.splitlines()) <= 3


def test_the_public_call_raises_for_people(made: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="asked different prompts"):
        needlepoint.compare(made(), made("perfect", seed=1))


@pytest.mark.parametrize(
    ("model", "bar", "code", "says"),
    [
        ("perfect", "0.95", 0, ""),
        ("cliff,at=700", "0.5", 0, ""),
        ("cliff,at=700", "51%", 1, "the score is 50.0%, below 51%"),
        ("perfect,limit=800", "0.5", 1, "coverage is 0.0% for english at 1,000 tokens, below 90%"),
        ("perfect,limit=100", "0.5", 3, "Not one answer could be measured"),
        ("perfect", "1.5", 2, "--fail-under: must be a share"),
    ],
)
def test_eval_exits_with_one_under_the_bar_and_still_writes_its_report(
    run: Typed, corpus: str, tmp_path: Path, model: str, bar: str, code: int, says: str
) -> None:
    flags = ["--lengths", "500,1k", "--depths", "0:100:2", "--corpus", corpus, "--needle-set", "number"]
    found, _, err = run("eval", "--model", f"simulated:{model}", *flags, "--fail-under", bar)
    assert found == code and says in err
    if code in (0, 1):
        (folder,) = (tmp_path / "outputs").iterdir()
        assert (folder / "report.json").is_file()
        assert ("FAILED --fail-under" in err) is (code == 1)
