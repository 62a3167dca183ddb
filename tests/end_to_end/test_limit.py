"""`needlepoint limit` as people use it: a known truth found, budgets, kills, wrong use, and what its folder says."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import needlepoint
from needlepoint.cli import main

from .loopback import finds_the_needle, serving

CLIFF = ("limit", "--model", "simulated:cliff,at=4k", "--max-length", "16k")


@pytest.fixture(scope="module")
def text(prose: dict[str, Callable[..., str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "harbour.txt"
    path.write_text(prose["en"](6_000), encoding="utf-8")
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command in this process: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def command(*argv: str) -> tuple[int, str, str]:
        corpus = ["--corpus", str(text)] if argv[0] == "limit" else []
        monkeypatch.setattr(sys, "argv", ["needlepoint", *argv, *corpus])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return command


def only_run(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def steps(folder: Path) -> list[dict[str, Any]]:
    return lines(folder, "search.jsonl")


def test_a_cliff_is_found_shown_and_certified(run: Any, tmp_path: Path) -> None:
    code, out, err = run(*CLIFF)
    assert code == 0, err
    assert out.startswith("Effective length  about ") and "accuracy 85%, over the mean of 11 depths in harbour" in out
    assert "with 95% confidence" in out and "locating: " in err and "certifying: " in err
    folder = only_run(tmp_path / "outputs")
    found = json.loads((folder / "report.json").read_text())
    search = found["search"]
    low, high = search["estimate"]["interval"]
    assert low <= 4_000 <= high and 1_500 <= search["certified"] <= 4_000
    assert search["end"]["kind"] == "done" and search["spent"][0]["phase"] == "locate"
    trials = lines(folder, "trials.jsonl")
    assert sum(spent["trials"] for spent in search["spent"]) == len(trials)
    assert len({row["trial"]["prompt_sha256"] for row in trials}) == len(trials)
    assert all(row["trial"]["sent_tokens"] == row["trial"]["context_length"] for row in trials)


def test_its_report_has_no_ordinary_intervals_and_says_why(run: Any, tmp_path: Path) -> None:
    run(*CLIFF)
    folder = only_run(tmp_path / "outputs")
    found = json.loads((folder / "report.json").read_text())
    subset = found["subsets"][0]
    rows = [found["overall"], subset, *subset["lengths"], *subset["depths"], *subset["cells"]]
    assert all(row["interval"] is None for row in rows) and all(row["score"] is not None for row in rows)
    assert found["effective_length"] is None and found["position"] is None
    assert any("ordinary intervals don't hold" in note for note in found["notes"])
    code, out, _ = run("score", str(folder))
    assert code == 0 and "Certified: at least" in out and "ordinary intervals don't hold" in out
    assert json.loads((folder / "report.json").read_text())["search"] == found["search"]


def test_show_and_report_work_on_a_search(run: Any, tmp_path: Path) -> None:
    run(*CLIFF)
    folder = only_run(tmp_path / "outputs")
    last = lines(folder, "trials.jsonl")[-1]["trial"]
    code, out, err = run("show", str(folder), last["id"])
    assert code == 0 and last["prompt_sha256"] in err and last["needles"][0]["text"].strip() in out
    code, _, err = run("report", str(folder))
    assert code == 0, err


def test_a_search_is_never_taken_for_a_sample(run: Any, tmp_path: Path) -> None:
    """Neither its headline nor a comparison makes a share of all its trials of it."""
    run(*CLIFF)
    folder = only_run(tmp_path / "outputs")
    headline = (folder / "report.md").read_text(encoding="utf-8").splitlines()[2]
    assert "4k" in headline and "Finds" not in headline
    code, out, err = run("compare", str(folder), str(folder))
    assert code == 2 and not out and "search for a limit" in err


def test_json_is_all_of_stdout(run: Any) -> None:
    code, out, _ = run(*CLIFF, "--json")
    found = json.loads(out)
    assert code == 0 and found["stopped"] is None and found["search"]["certified"] <= 4_000


def test_a_killed_search_goes_on_to_the_very_same_trials(run: Any, tmp_path: Path) -> None:
    run(*CLIFF, "--work-dir", "whole")
    whole = only_run(tmp_path / "whole")
    run(*CLIFF, "--work-dir", "killed")
    killed = only_run(tmp_path / "killed")
    for name, kept in (("search.jsonl", 2), ("trials.jsonl", 11)):  # as a kill in the second step leaves it
        text = (killed / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (killed / name).write_text("".join(text[:kept]) + text[kept][:20], encoding="utf-8")
    code, _, err = run(*CLIFF, "--resume", str(killed))
    assert code == 0, err
    assert steps(killed) == steps(whole)
    ids = [row["trial"]["id"] for row in lines(killed, "trials.jsonl")]
    assert sorted(ids) == sorted(row["trial"]["id"] for row in lines(whole, "trials.jsonl"))
    found, expected = (json.loads((one / "report.json").read_text())["search"] for one in (killed, whole))
    del found["spent"], expected["spent"]  # what the server had cached is another matter
    assert found == expected


def test_a_budget_is_kept_its_end_told_and_a_larger_one_goes_on(run: Any, tmp_path: Path) -> None:
    code, out, err = run(*CLIFF, "--budget-tokens", "9000")
    assert code == 3 and "ran out of budget" in out and "--budget-tokens" in err and "--resume" in err
    folder = only_run(tmp_path / "outputs")
    before = lines(folder, "trials.jsonl")
    assert sum(row["reply"]["usage"]["prompt"] for row in before) <= 9_000
    code, out, err = run(*CLIFF, "--budget-tokens", "500000", "--resume", str(folder))
    assert code == 0, err
    assert lines(folder, "trials.jsonl")[: len(before)] == before


def test_all_tokens_and_money_are_bounded_as_in_eval(run: Any) -> None:
    code, out, err = run(*CLIFF, "--max-tokens-total", "20000")
    assert code == 3 and "--max-tokens-total" in err and "before its end" in out
    code, _, err = run(*CLIFF, "--max-cost", "0.01", "--price-in", "1", "--price-out", "2")
    assert code == 3 and "--max-cost" in err


def test_the_search_stays_below_what_the_model_takes(run: Any) -> None:
    for spec in ("simulated:perfect,limit=6k", "simulated:perfect,hidden_limit=6k"):
        code, out, err = run("limit", "--model", spec, "--max-length", "16k", "--json")
        search = json.loads(out)["search"]
        assert code == 0, err
        assert search["longest"] <= 6_000 and search["estimate"]["at_least"] and search["certified"] <= 6_000


def test_a_server_is_asked_and_its_failures_are_no_misses(run: Any) -> None:
    with serving(finds_the_needle) as server:
        code, out, err = run(
            "limit", "--model", "m", "--api-url", server.url, "--max-length", "8k", "--api-key", "sk-secret", "--json"
        )
    found = json.loads(out)["search"]
    assert code == 0 and "sk-secret" not in out + err
    assert found["estimate"]["at_least"] and all(one["score"] == 1 for one in found["looked"])


def test_a_server_that_answers_nothing_gives_no_length(run: Any) -> None:
    code, out, err = run("limit", "--model", "simulated:perfect,bad_request=1", "--max-length", "8k")
    assert code == 3 and "not known" in out, err


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--threshold", "1"], "--threshold 1 can't be certified"),
        (["--threshold", "0.9", "--preset", "ruler"], "exclude each other"),
        (["--confidence", "2"], "--confidence"),
        (["--min-length", "10k", "--max-length", "12k"], "nothing to search"),
        (["--min-length", "1k,2k"], "--min-length takes one length"),
        (["--max-length", "many"], "--max-length"),
        (["--budget-tokens", "0"], "--budget-tokens"),
        (["--lengths", "1k"], "--min-length"),
        (["--max-cost", "1"], "--price-in"),
    ],
)
def test_wrong_use_is_one_message(run: Any, tmp_path: Path, flags: list[str], says: str) -> None:
    code, out, err = run("limit", "--model", "simulated", *flags)
    assert code == 2 and says in err and not out and "Traceback" not in err
    assert not (tmp_path / "outputs").exists()


def test_runs_of_other_kinds_are_not_gone_on_with(run: Any, tmp_path: Path, text: Path) -> None:
    code, _, err = run(
        "eval", "--model", "simulated", "--lengths", "1k", "--depths", "50", "--corpus", str(text), "--report", "none"
    )
    assert code == 0, err
    folder = only_run(tmp_path / "outputs")
    code, _, err = run(*CLIFF, "--resume", str(folder))
    assert code == 2 and "no search" in err
    run(*CLIFF, "--work-dir", "searches")
    code, _, err = run(*CLIFF, "--threshold", "0.9", "--resume", str(only_run(tmp_path / "searches")))
    assert code == 2 and "search.threshold: 0.85 → 0.9" in err


def test_a_dry_run_says_what_it_would_take_and_asks_nobody(run: Any, tmp_path: Path) -> None:
    code, out, _ = run("limit", "--model", "simulated", "--max-length", "16k", "--dry-run", "--json")
    found = json.loads(out)
    assert code == 0 and found["lengths"][0] == 1_000 and found["lengths"][-1] == 16_000
    assert found["locating_tokens"] > 0 and not (tmp_path / "outputs").exists()


def test_find_limit_gives_typed_results(tmp_path: Path, text: Path) -> None:
    found = needlepoint.find_limit(
        model="simulated:cliff,at=4k", corpus=str(text), max_length="16k", depths="50", work_dir=str(tmp_path)
    )
    assert found.length is not None and found.interval is not None and found.stopped is None
    assert found.certified is not None and found.limit.certificate is not None
    assert found.limit.depths == (50.0,) and found.limit.end is not None
    trials = list(found.trials())
    assert {trial.depth_percent for trial, _, _ in trials} == {50.0}
    with pytest.raises(needlepoint.NeedlepointError, match="--min-length"):
        needlepoint.find_limit(model="simulated", lengths="1k,2k")
