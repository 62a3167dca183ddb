"""Each tool's published results come in as it wrote them: answers, scores, places, and nothing that it didn't tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import needlepoint
from needlepoint.ask.store import RunFolder
from needlepoint.errors import InputError, UsageError
from needlepoint.plan.prompt import fingerprint
from needlepoint.scoring import Row

from .published import (
    QUESTION,
    SEED,
    answer,
    evalscope_run,
    messages,
    niah_row,
    prediction,
    report,
    review,
    write_json,
    write_lines,
)


def imported(place: Path, *paths: Path, **options: Any) -> list[needlepoint.TaskResult]:
    return needlepoint.import_results(*paths, work_dir=place / "runs", **options)


def only(place: Path, *paths: Path, **options: Any) -> tuple[needlepoint.TaskResult, list[Row]]:
    (result,) = imported(place, *paths, **options)
    return result, list(result.trials())


def settings(result: needlepoint.TaskResult) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((result.folder / "run.json").read_text("utf-8"))
    return value


# --- gkamradt's answers of 2023 ---------------------------------------------------------------------------------------


def test_answers_keep_their_raw_scores_and_the_ends_of_the_rubric_are_0_and_1(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", [answer(1000, 0, 10), answer(1000, 50, 7), answer(2000, 100, 1)])
    result, rows = only(tmp_path, file)
    assert [(score.raw, score.scale, score.outcome) for _, _, score in rows] == [
        (10, (1, 10), "correct"),
        (7, (1, 10), "partial"),
        (1, (1, 10), "wrong"),
    ]
    assert rows[1][2].score == pytest.approx(6 / 9) and rows[2][2].score == 0
    assert result.report["scorer"] == "imported" and result.report["overall"]["n"] == 3
    assert result.report["model"] == "model-x" and result.report["planned"] == 3


def test_nothing_is_made_up_of_what_a_file_does_not_tell(tmp_path: Path) -> None:
    result, rows = only(tmp_path, write_lines(tmp_path / "a.jsonl", [answer()]))
    trial, reply, _ = rows[0]
    unknown = ("achieved_length", "achieved_depth_percent", "boundary", "corpus", "corpus_sha256", "tokenizer")
    for name in (*unknown, "tokenizer_fingerprint", "prompt_sha256", "sent_tokens", "length_mode"):
        assert getattr(trial, name) is None, name
    assert not trial.length_proven and not trial.placements
    assert reply.usage.prompt is None and reply.times.total is None
    assert result.report["tokens"]["sent"] is None and result.report["length_mode"] is None
    row = json.loads((result.folder / "trials.jsonl").read_text("utf-8"))["trial"]
    assert not {"tokenizer", "prompt_sha256", "achieved_length"} & row.keys()


def test_the_benchmarks_own_needle_is_known_and_its_question_is_said_to_be_assumed(tmp_path: Path) -> None:
    result, rows = only(tmp_path, write_lines(tmp_path / "a.jsonl", [answer()]))
    trial = rows[0][0]
    assert trial.needles[0].text == SEED and trial.answers == ("eat a sandwich and sit in Dolores Park",)
    assert trial.question == QUESTION
    assert settings(result)["imported"]["assumed"] == ["question"]
    _, rows = only(tmp_path, write_lines(tmp_path / "b.jsonl", [answer(needle="The gate code is 4711.")]))
    assert (rows[0][0].answers, rows[0][0].question) == (("The gate code is 4711.",), "")


def test_several_needles_in_an_answer_are_all_kept(tmp_path: Path) -> None:
    needles = ["The first key is red.", "The second key is blue."]
    row = answer(needle=needles, retrieval_question="Which keys?")
    _, rows = only(tmp_path, write_lines(tmp_path / "a.jsonl", [row]))
    assert rows[0][0].answers == tuple(needles) and rows[0][0].question == "Which keys?"


def test_a_folder_of_single_files_is_the_same_as_one_file_of_lines(tmp_path: Path) -> None:
    answers = [answer(length, depth, score) for length, depth, score in ((1000, 0, 10), (1000, 50.5, 1), (2000, 0, 3))]
    for number, one in enumerate(answers):
        write_json(tmp_path / "results" / f"token_len_{number}_results.json", one)
    (tmp_path / "results" / "picture.png").write_bytes(b"\x89PNG")
    lines = write_lines(tmp_path / "all.jsonl", answers)
    (one, _), (other, _) = only(tmp_path, tmp_path / "results"), only(tmp_path, lines)
    assert one.report["subsets"] == other.report["subsets"]
    names = [file["name"] for file in settings(one)["imported"]["files"]]
    assert len(names) == 3 and names[0] == str(tmp_path / "results" / "token_len_0_results.json")


def test_several_answers_of_one_cell_are_replicates(tmp_path: Path) -> None:
    rows = [answer(1000, 50, 10, 1), answer(1000, 50, 1, 2), answer(1000, 50, 10, 3), answer(2000, 50, 10, 2)]
    result, found = only(tmp_path, write_lines(tmp_path / "a.jsonl", rows))
    assert [(trial.context_length, trial.replicate, trial.repeat) for trial, _, _ in found] == [
        (1000, 0, 0),
        (1000, 1, 0),
        (1000, 2, 0),
        (2000, 0, 0),
    ]
    assert len({trial.id for trial, _, _ in found}) == 4
    assert result.report["subsets"][0]["cells"][0]["n"] == 3


def test_a_result_given_twice_counts_once_and_equal_answers_of_two_versions_count_twice(tmp_path: Path) -> None:
    notes: list[str] = []
    one = write_lines(tmp_path / "a.jsonl", [answer(version=1), answer(version=2)])
    two = write_json(tmp_path / "b.json", answer(version=2))
    _, rows = only(tmp_path, one, two, notify=notes.append)
    assert len(rows) == 2 and any("there twice" in note for note in notes)


def test_answers_without_a_score_are_unjudged_and_never_0(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    lines = [json.dumps(answer(1000, 0)), json.dumps(answer(1000, 50, None)), json.dumps(answer(1000, 100, 1))]
    file.write_text("\n".join([*lines, lines[2].replace('"score": 1}', '"score": NaN}')]), "utf-8")
    notes: list[str] = []
    result, rows = only(tmp_path, file, notify=notes.append)
    assert [score.outcome for _, _, score in rows] == ["correct", "unjudged", "wrong", "unjudged"]
    assert result.report["overall"]["score"] == 0.5 and result.report["overall"]["valid"] == 2
    assert any("2 results have no score" in note for note in notes)


def test_answers_of_which_none_has_a_score_are_scored_by_the_rules(tmp_path: Path) -> None:
    rows = [answer(1000, 0, None, model_response="Eat a sandwich and sit in Dolores Park."), answer(1000, 50, None)]
    result, found = only(tmp_path, write_lines(tmp_path / "a.jsonl", rows))
    assert result.report["scorer"] == "rules" and found[0][2].outcome == "correct"
    assert found[1][2].score == 0 and not (result.folder / "scores" / "imported.jsonl").exists()


def test_durations_and_times_are_kept_where_they_are_told(tmp_path: Path) -> None:
    row = answer(test_duration_seconds=2.5, test_timestamp_utc="2024-03-01 10:00:00+0000")
    result, rows = only(tmp_path, write_lines(tmp_path / "a.jsonl", [row]))
    assert rows[0][1].times.total == 2.5
    assert settings(result)["imported"]["asked"] == ["2024-03-01 10:00:00+0000"] * 2


def test_the_698_published_answers_come_in_whole(tmp_path: Path, shared_data: Path) -> None:
    result, rows = only(tmp_path, shared_data / "reference" / "claude21_answers.jsonl")
    assert len(rows) == 698 and result.report["model"] == "claude-2.1"
    assert result.outcomes == {"correct": 413, "partial": 7, "wrong": 278}
    assert len(result.report["subsets"][0]["cells"]) == 655
    assert max(trial.replicate for trial, _, _ in rows) == 1
    file = shared_data / "reference" / "claude21_answers.jsonl"
    published = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [reply.text for _, reply, _ in rows] == [row["model_response"] for row in published]
    assert [score.raw for _, _, score in rows] == [row["score"] for row in published]


# --- his rows of 2026 -------------------------------------------------------------------------------------------------


def test_a_niah_row_brings_its_recipe(tmp_path: Path) -> None:
    result, rows = only(tmp_path, write_lines(tmp_path / "results.jsonl", [niah_row(value=0.6)]))
    trial, reply, score = rows[0]
    assert (trial.subset, trial.context_length, trial.depth_percent) == ("uuid", 1000, 50.0)
    assert trial.achieved_depth_percent == 48.5 and trial.achieved_length is None
    assert (trial.answers, trial.question, trial.needles[0].text) == (("7f3a",), "What is the id?", "The id is 7f3a.")
    assert trial.corpus == "Essays" and trial.corpus_sha256 is None and trial.length_mode is None
    assert (reply.usage.prompt, reply.usage.completion, reply.times.total) == (1030, 9, 1.5)
    assert (score.raw, score.scale, score.score, score.outcome) == (0.6, (0, 1), 0.6, "partial")
    assert result.report["cost"] == 0.25
    assert "someone" not in (result.folder / "trials.jsonl").read_text("utf-8")


def test_seeds_are_replicates_and_named_runs_are_runs(tmp_path: Path) -> None:
    rows = [niah_row(seed=seed, run_name=run) for run in ("first", "second") for seed in (1, 2, 3)]
    one, two = imported(tmp_path, write_lines(tmp_path / "results.jsonl", rows))
    assert [trial.replicate for trial, _, _ in one.trials()] == [0, 1, 2]
    assert (settings(one)["imported"]["run"], settings(two)["imported"]["run"]) == ("first", "second")


def test_an_error_row_is_a_failure_and_one_of_length_an_overflow(tmp_path: Path) -> None:
    failed = {"status": "error", "response": None, "usage": None, "cost_usd": None}
    rows = [
        niah_row(1000),
        niah_row(2000, value=None, error="Connection reset by peer", **failed),
        niah_row(4000, value=None, error="This model's maximum context length is 3000 tokens.", **failed),
    ]
    result, _ = only(tmp_path, write_lines(tmp_path / "results.jsonl", rows))
    assert result.outcomes == {"correct": 1, "failed": 1, "overflow": 1} and result.score == 1.0


def test_a_task_of_several_facts_expects_each_of_them(tmp_path: Path) -> None:
    places = [{"text": text, "insertion_token_index": 1, "actual_depth_percent": 1.0} for text in ("A red.", "B blue.")]
    recipe = {**niah_row()["recipe"], "needle_placements": places}
    row = niah_row(recipe=recipe, expected_answer="red / blue", needle_metadata={"expected_fragments": ["red", "blue"]})
    _, rows = only(tmp_path, write_lines(tmp_path / "results.jsonl", [row]))
    assert rows[0][0].answers == ("red", "blue") and rows[0][0].achieved_depth_percent is None
    assert [needle.answers for needle in rows[0][0].needles] == [("red",), ("blue",)]


# --- score grids ------------------------------------------------------------------------------------------------------

GRID = {(1000, 0): 10, (1000, 50): 7, (4000, 0): 3, (4000, 50): 1, (4000, 100): 1, (1000, 100): 10}
ROWS = [{"token_limit": length, "depth_percent": depth, "score": score} for (length, depth), score in GRID.items()]
SHAPES: dict[str, Any] = {
    "rows": ROWS,
    "usual column names": [
        {"Context Length": row["token_limit"], "Document Depth": row["depth_percent"], "Score": row["score"]}
        for row in ROWS
    ],
    "texts": [
        {"context_length": f"{row['token_limit'] // 1000}k", "depth": f"{row['depth_percent']}%", "score": "10"}
        | ({"score": str(row["score"])})
        for row in ROWS
    ],
    "shares": [
        {"context_length": row["token_limit"], "depth": row["depth_percent"] / 100, "score": row["score"]}
        for row in ROWS
    ],
    "columns": {
        "lengths": [row["token_limit"] for row in ROWS],
        "depths": [row["depth_percent"] for row in ROWS],
        "scores": [row["score"] for row in ROWS],
    },
    "columns by number": {
        name: {str(number): row[name] for number, row in enumerate(ROWS)}
        for name in ("token_limit", "depth_percent", "score")
    },
    "by length, then depth": {
        str(length): {str(depth): GRID[length, depth] for depth in (0, 50, 100)} for length in (1000, 4000)
    },
    "by depth, then length": {
        f"{depth}%": {f"{length // 1000}k": GRID[length, depth] for length in (1000, 4000)} for depth in (0, 50, 100)
    },
    "a table": {
        "context_lengths": [1000, 4000],
        "depths": [0, 50, 100],
        "scores": [[GRID[length, depth] for depth in (0, 50, 100)] for length in (1000, 4000)],
    },
    "a table on its side": {
        "context_lengths": [1000, 4000],
        "depths": [0, 50, 100],
        "scores": [[GRID[length, depth] for length in (1000, 4000)] for depth in (0, 50, 100)],
    },
    "rows in an object": {"model": "grid", "results": ROWS},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_grid_of_any_shape_is_the_same_grid(shape: str, tmp_path: Path) -> None:
    result, rows = only(tmp_path, write_json(tmp_path / "grid.json", SHAPES[shape]))
    found = {(trial.context_length, trial.depth_percent): score.raw for trial, _, score in rows}
    assert found == GRID
    assert {score.scale for _, _, score in rows} == {(1, 10)}
    assert result.report["model"] == "grid" and settings(result)["imported"]["has_answers"] is False


@pytest.mark.parametrize(
    "table",
    [
        "context_length,depth_percent,score\n1000,0,10\n1000,50,7\n4000,0,3\n4000,50,1\n4000,100,1\n1000,100,10\n",
        "Depth,1k,4k\n0%,10,3\n50%,7,1\n100%,10,1\n",
        "\ufefflength,0,50,100\n1000,10,7,10\n4000,3,1,1\n",
    ],
    ids=["rows", "by depth", "by length"],
)
def test_a_table_of_commas_is_the_same_grid(table: str, tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_text(table, "utf-8")
    _, rows = only(tmp_path, tmp_path / "grid.csv")
    assert {(trial.context_length, trial.depth_percent): score.raw for trial, _, score in rows} == GRID


def test_a_score_without_its_answer_is_no_empty_answer(tmp_path: Path) -> None:
    from needlepoint.score import rules

    _, rows = only(tmp_path, write_json(tmp_path / "grid.json", ROWS))
    trial, reply, _ = rows[0]
    assert rules.score(trial, reply).outcome == "unjudged"


def test_a_cell_without_a_score_stays_in_the_grid_and_out_of_the_score(tmp_path: Path) -> None:
    rows = [*ROWS, {"token_limit": 4000, "depth_percent": 75, "score": None}]
    result, _ = only(tmp_path, write_json(tmp_path / "grid.json", rows))
    assert result.report["overall"]["n"] == 7 and result.report["overall"]["valid"] == 6
    assert result.outcomes["unjudged"] == 1


@pytest.mark.parametrize(
    ("scores", "scale", "first"),
    [
        ([0.5, 1.0], (0, 1), 0.5),
        ([0, 1], (0, 1), 0),
        ([5.5, 10], (1, 10), 0.5),
        ([0, 10], (0, 10), 0),
        ([50, 100], (0, 100), 0.5),
        ([True, False], (0, 1), 1),
    ],
)
def test_the_scale_is_told_from_all_scores_together(
    scores: list[float], scale: tuple[int, int], first: float, tmp_path: Path
) -> None:
    rows = [{"length": 1000 + i, "depth": 50, "score": score} for i, score in enumerate(scores)]
    _, found = only(tmp_path, write_json(tmp_path / "grid.json", rows))
    assert found[0][2].scale == scale and found[0][2].score == pytest.approx(first)


def test_what_can_be_two_things_is_asked_for(tmp_path: Path) -> None:
    perfect = write_json(tmp_path / "a.json", [{"length": 1000, "depth": 50, "score": 1}])
    with pytest.raises(InputError, match=r"worst of 1 to 10.*--scale LOW:HIGH"):
        imported(tmp_path, perfect)
    (result,) = imported(tmp_path, perfect, scale=(0, 1))
    assert result.score == 1.0
    ends = write_json(tmp_path / "b.json", [{"length": 1000, "depth": depth, "score": 5} for depth in (0, 1)])
    with pytest.raises(InputError, match="--depth-unit"):
        imported(tmp_path, ends)
    (result,) = imported(tmp_path, ends, depth_unit="fraction")
    assert [row["depth_percent"] for row in result.report["subsets"][0]["depths"]] == [0, 100]
    (result,) = imported(tmp_path, ends, depth_unit="percent")
    assert [row["depth_percent"] for row in result.report["subsets"][0]["depths"]] == [0, 1]


def test_a_scale_that_is_given_goes_before_what_the_scores_say(tmp_path: Path) -> None:
    file = write_json(tmp_path / "a.json", ROWS)
    _, rows = only(tmp_path, file, scale=(0, 10))
    assert rows[3][2].score == pytest.approx(0.1) and rows[3][2].scale == (0, 10)
    with pytest.raises(InputError, match="score 10 is outside the scale from 0 to 5"):
        imported(tmp_path, file, scale=(0, 5))


def test_the_grid_of_gpt_4_has_its_225_cells(tmp_path: Path, shared_data: Path) -> None:
    result, _ = only(tmp_path, shared_data / "reference" / "gpt4_scores.json", model="gpt-4-1106-preview")
    (subset,) = result.report["subsets"]
    assert (len(subset["lengths"]), len(subset["depths"]), len(subset["cells"])) == (15, 15, 225)
    assert result.outcomes == {"correct": 207, "partial": 15, "wrong": 3}
    assert result.report["model"] == "gpt-4-1106-preview"


# --- EvalScope --------------------------------------------------------------------------------------------------------


def test_an_evalscope_run_brings_answers_and_scores_together(tmp_path: Path) -> None:
    result, rows = only(tmp_path, evalscope_run(tmp_path / "20260101_000000"))
    assert [(t.context_length, t.depth_percent, s.outcome) for t, _, s in rows] == [
        (1000, 0, "correct"),
        (1000, 100, "correct"),
        (2000, 0, "correct"),
        (2000, 100, "wrong"),
    ]
    trial, reply, score = rows[0]
    assert (trial.subset, trial.length_mode, trial.question) == ("english", "evalscope", QUESTION)
    assert trial.answers == ("eat a sandwich and sit in Dolores Park",)
    assert (reply.text, reply.finish, reply.usage.prompt, reply.times.total) == ("A sandwich.", "stop", 960, 0.5)
    assert (score.raw, score.scale) == (1, (0, 1))
    facts = settings(result)["imported"]
    assert facts["tool"] == "EvalScope" and facts["has_answers"] and len(facts["files"]) == 2
    assert result.report["model"] == "maker/model-z"


def test_the_judges_floor_of_evalscope_becomes_0_and_its_own_figure_is_kept(tmp_path: Path) -> None:
    result, rows = only(tmp_path, evalscope_run(tmp_path / "run", judged=True))
    assert (rows[3][2].raw, rows[3][2].scale, rows[3][2].score) == (0.1, (0.1, 1.0), 0.0)
    assert result.score == 0.75


def test_the_fingerprint_is_that_of_the_prompt_without_its_answer(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_lines(
        run / "predictions" / "m" / "needle_haystack_english.jsonl",
        [prediction(0, messages=messages(reply="No.")), prediction(1, messages=messages(reply=None))],
    )
    _, rows = only(tmp_path, run)
    asked = [{"role": one["role"], "content": one["content"]} for one in messages(reply=None)]
    assert rows[0][0].prompt_sha256 == fingerprint(asked)  # type: ignore[arg-type]
    assert [(trial.replicate, trial.repeat) for trial, _, _ in rows] == [(0, 0), (0, 1)]
    assert "Please read" not in (tmp_path / "runs").glob("*/trials.jsonl").__next__().read_text("utf-8")


def test_a_complaint_of_length_that_evalscope_scored_is_an_overflow(tmp_path: Path) -> None:
    run, complaint = evalscope_run(tmp_path / "run"), "This model's maximum context length is 1500 tokens."
    rows = [prediction(i, 2000, depth, complaint, "model_length") for i, depth in ((2, 0), (3, 100))]
    file = run / "predictions" / "model-z" / "needle_haystack_english.jsonl"
    write_lines(file, [prediction(0, 1000, 0), prediction(1, 1000, 100), *rows])
    notes: list[str] = []
    result, found = only(tmp_path, run, notify=notes.append)
    assert result.outcomes == {"correct": 2, "overflow": 2} and result.coverage == 0.5
    assert found[3][2].score is None and found[3][2].raw == 0 and found[3][1].text == ""
    assert any("2 answers are a server's complaint" in note for note in notes)


def test_reasoning_and_the_answer_limit_are_told_apart_from_the_answer(tmp_path: Path) -> None:
    content = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "A sandwich."}]
    run = tmp_path / "run"
    write_lines(
        run / "predictions" / "m" / "needle_haystack_english.jsonl", [prediction(0, reply=content, stop="max_tokens")]
    )
    _, rows = only(tmp_path, run)
    reply = rows[0][1]
    assert (reply.text, reply.reasoning, reply.finish) == ("A sandwich.", "Hm.", "length")


def test_reviews_alone_bring_answers_and_a_failed_judge_is_unjudged(tmp_path: Path) -> None:
    rows = [review(0, 1.0, judged=True), review(1, None, depth=60, judged=True)]
    file = write_lines(tmp_path / "m" / "needle_haystack_chinese.jsonl", rows)
    result, found = only(tmp_path, file)
    assert found[0][1].text == "A sandwich." and found[0][0].subset == "chinese"
    assert found[1][2].outcome == "unjudged" and "no verdict" in found[1][2].reason
    assert result.report["model"] == "m"


def test_reviews_before_version_1_5_have_the_cell_in_the_scores_name(tmp_path: Path) -> None:
    row = review(0)
    row["sample_score"]["sample_metadata"] = {}
    row["sample_score"]["score"] |= {"value": {"Context#1000 Depth#50": 1.0}, "main_score_name": None}
    _, found = only(tmp_path, write_lines(tmp_path / "m" / "needle_haystack_english.jsonl", [row]))
    assert (found[0][0].context_length, found[0][0].depth_percent, found[0][2].raw) == (1000, 50, 1.0)


@pytest.mark.parametrize("old", [False, True])
def test_reports_alone_bring_the_grid(old: bool, tmp_path: Path) -> None:
    cells = {(1000, 0): 1.0, (1000, 100): 0.0, (2000, 0): 0.5}
    write_json(tmp_path / "run" / "reports" / "model-z" / "needle_haystack.json", report(cells, old=old))
    notes: list[str] = []
    result, rows = only(tmp_path, tmp_path / "run", notify=notes.append)
    assert {(trial.context_length, trial.depth_percent): score.raw for trial, _, score in rows} == cells
    assert settings(result)["imported"]["has_answers"] is False
    assert any("mean scores only" in note for note in notes)


def test_of_a_sample_predicted_twice_the_last_counts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    rows = [prediction(0, reply="First."), prediction(1, depth=60), prediction(0, reply="Second.")]
    write_lines(run / "predictions" / "m" / "needle_haystack_english.jsonl", rows)
    _, found = only(tmp_path, run)
    assert [reply.text for _, reply, _ in found] == ["Second.", "A sandwich."]


# --- several at once, and what goes wrong -----------------------------------------------------------------------------


def test_each_model_in_a_file_is_a_run_of_its_own(tmp_path: Path) -> None:
    rows = [answer(model=model, depth_percent=depth) for depth in (0, 50) for model in ("one", "two", None)]
    results = imported(tmp_path, write_lines(tmp_path / "mixed.jsonl", rows))
    assert [result.report["model"] for result in results] == ["one", "two", "mixed"]
    assert all(result.report["overall"]["n"] == 2 for result in results)
    assert len({result.folder for result in results}) == 3


def test_several_tools_at_once_are_several_runs(tmp_path: Path) -> None:
    results = imported(
        tmp_path,
        write_lines(tmp_path / "a.jsonl", [answer()]),
        write_lines(tmp_path / "b.jsonl", [niah_row()]),
        evalscope_run(tmp_path / "run"),
    )
    assert [settings(result)["imported"]["tool"] for result in results] == [
        "needlehaystack 0.1",
        "needlehaystack 2",
        "EvalScope",
    ]


def test_strange_names_stay_inside_the_work_dir_and_strange_texts_come_through(tmp_path: Path) -> None:
    text = "\ud800 \x1b[31m <script>alert(1)</script> {{ 7 * 7 }} __import__('os')"
    (result,) = imported(
        tmp_path, write_lines(tmp_path / "a.jsonl", [answer(model="../../x\x1b[1m", model_response=text)])
    )
    assert result.folder.parent == tmp_path / "runs"
    assert next(result.trials())[1].text == text


def test_the_same_files_give_the_same_trials(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", [answer(version=version) for version in (1, 2, 3)])
    one, two = (imported(tmp_path, file)[0] for _ in range(2))
    assert [row[0] for row in one.trials()] == [row[0] for row in two.trials()]


def test_an_imported_run_opens_like_any_other(tmp_path: Path) -> None:
    (result,) = imported(tmp_path, write_lines(tmp_path / "a.jsonl", [answer()]))
    with RunFolder.open(result.folder, for_writing=False) as folder:
        assert folder.n_replies == 1 and folder.scorers() == ["imported"]
        assert folder.settings.imported["tool"] == "needlehaystack 0.1"
    assert not list(result.folder.glob("*.part"))


def test_no_folder_is_left_where_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [answer(model=model) for model in ("one", "two")]
    file = write_lines(tmp_path / "a.jsonl", rows)
    append, seen = RunFolder.append, []

    def full(self: RunFolder, *parts: Any) -> None:
        seen.append(parts)
        if len(seen) == 2:
            raise needlepoint.NeedlepointError("No space left")
        append(self, *parts)

    monkeypatch.setattr(RunFolder, "append", full)
    with pytest.raises(needlepoint.NeedlepointError, match="No space"):
        imported(tmp_path, file)
    assert not list((tmp_path / "runs").iterdir())


BROKEN: dict[str, tuple[str, bytes, str]] = {
    "cut line": ("a.jsonl", json.dumps(answer()).encode() + b'\n{"model": "m", \n', "a.jsonl, line 2: is no JSON"),
    "cut JSON": ("a.json", b'[{"token_limit": 1000,\n"depth_percent": ]', "a.json, line 2: is no JSON"),
    "not UTF-8": ("a.jsonl", json.dumps(answer()).encode() + b'\n{"m": "\xff"}\n', "a.jsonl, line 2: is not UTF-8"),
    "UTF-16": ("a.json", json.dumps(ROWS).encode("utf-16"), "a.json, line 1: is not UTF-8"),
    "empty": ("a.jsonl", b"", "a.jsonl is empty"),
    "blank": ("a.json", b" \n ", "a.json is empty"),
    "empty list": ("a.json", b"[]", "a.json is empty"),
    "deep": ("a.json", b"[" * 100_000, "nested too deeply"),
    "a number": ("a.json", b"5", "is no result"),
    "a list in a list": ("a.json", b"[[1, 2]]", "entry 1: is no result"),
    "other rows": ("a.jsonl", b'{"text": "One."}\n', "line 1: it is no result"),
    "a needlepoint report": ("a.json", b'{"schema": 1, "subsets": []}', "needlepoint report already"),
    "no length": ("a.jsonl", json.dumps(answer(context_length=None)).encode(), "line 1: context_length is missing"),
    "length 0": ("a.jsonl", json.dumps(answer(0)).encode(), "context_length is 0, which is no context length"),
    "half a token": ("a.json", json.dumps(answer(1000.5)).encode(), "context_length is 1000.5"),  # type: ignore[arg-type]
    "NaN length": ("a.json", b'{"context_length": NaN, "depth_percent": 1, "score": 2}', "context_length is nan"),
    "depth 101": ("a.jsonl", json.dumps(answer(depth=101)).encode(), "depth_percent is 101, which is no depth"),
    "infinite score": ("a.json", b'{"length": 1000, "depth": 1, "score": Infinity}', "score is inf"),
    "score in words": ("a.jsonl", json.dumps(answer(score="good")).encode(), "score is 'good', not a score"),
    "answer 5": ("a.jsonl", json.dumps(answer(model_response=5)).encode(), "model_response is 5, not a text"),
    "long name": ("a.jsonl", json.dumps(answer(model="m" * 500)).encode(), "model has 500 characters"),
    "newer rows": ("a.jsonl", json.dumps(niah_row(schema_version=3)).encode(), "schema_version is 3"),
    "scores off any scale": (
        "a.json",
        json.dumps([{"length": 1000, "depth": 5, "score": -300}]).encode(),
        "on no usual scale",
    ),
    "square": (
        "a.json",
        json.dumps({"lengths": [1000, 2000], "depths": [0, 50], "scores": [[1, 2], [3, 4]]}).encode(),
        "as wide as it is high",
    ),
    "uneven table": (
        "a.json",
        json.dumps({"lengths": [1000, 2000], "depths": [0], "scores": [[1], [3, 4]]}).encode(),
        "no table of 2 lengths and 1 depths",
    ),
    "uneven columns": (
        "a.json",
        json.dumps({"lengths": [1000], "depths": [0, 1], "scores": [1]}).encode(),
        "1 lengths, 2 depths and 1 scores",
    ),
    "both small": ("a.json", json.dumps({"10": {"20": 1}}).encode(), "nobody can tell its lengths"),
    "other benchmark": (
        "a.json",
        json.dumps({"dataset_name": "gsm8k", "metrics": []}).encode(),
        "report of gsm8k, not of needle_haystack",
    ),
    "no cell": (
        "needle_haystack_english.jsonl",
        json.dumps(prediction(0, metadata={})).encode(),
        "name no context_length and depth_percent",
    ),
    "neither of both": (
        "needle_haystack_english.jsonl",
        json.dumps(prediction(0)).encode() + b'\n{"index": 1}\n',
        "line 2: is neither a prediction nor a review",
    ),
    "a number of thousands of digits": (
        "a.json",
        b'{"length": ' + b"9" * 5_000 + b', "depth": 1, "score": 2}',
        "thousands of digits",
    ),
    "an empty table": ("a.csv", b"\n", "a.csv is empty"),
    "a table of other things": ("a.csv", b"name,age\nx,5\n", "a.csv, line 2: it is no result"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_message_with_its_place_and_no_folder(name: str, tmp_path: Path) -> None:
    file, data, says = BROKEN[name]
    good = write_lines(tmp_path / "good.jsonl", [answer()])
    (tmp_path / file).write_bytes(data)
    with pytest.raises(InputError) as caught:
        imported(tmp_path, good, tmp_path / file)
    assert says in str(caught.value) and "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert not (tmp_path / "runs").exists()


def test_folders_that_hold_no_results_say_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no results"):
        imported(tmp_path, tmp_path / "empty")
    with pytest.raises(InputError, match="does not exist"):
        imported(tmp_path, tmp_path / "nowhere")
    evalscope_run(tmp_path / "outputs" / "20260101_000000")
    with pytest.raises(InputError, match=r"holds 1 EvalScope runs.*20260101_000000"):
        imported(tmp_path, tmp_path / "outputs")
    (tmp_path / "other" / "predictions" / "m").mkdir(parents=True)
    with pytest.raises(InputError, match="no results of needle_haystack"):
        imported(tmp_path, tmp_path / "other")
    (result,) = imported(tmp_path, write_lines(tmp_path / "a.jsonl", [answer()]))
    with pytest.raises(InputError, match="needlepoint run already"):
        imported(tmp_path, result.folder)


def test_settings_that_cannot_be_are_refused(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", [answer()])
    for wrong in ({"scale": (10, 1)}, {"scale": (0, float("nan"))}, {"depth_unit": "metres"}, {"model": " "}):
        with pytest.raises(UsageError):
            imported(tmp_path, file, **wrong)
    with pytest.raises(UsageError, match="nothing to import"):
        needlepoint.import_results()


def test_a_large_file_is_read_without_holding_its_prompts(tmp_path: Path) -> None:
    import tracemalloc

    file = tmp_path / "run" / "predictions" / "m" / "needle_haystack_english.jsonl"
    file.parent.mkdir(parents=True)
    text = "So it went on. " * 30_000
    with file.open("w", encoding="utf-8") as lines:
        for number in range(60):
            row = prediction(number, 1000 + number)
            row["messages"][1]["content"] += text
            row["metadata"]["context"] = text
            lines.write(json.dumps(row) + "\n")
    assert file.stat().st_size > 50_000_000
    tracemalloc.start()
    _, rows = only(tmp_path, tmp_path / "run")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(rows) == 60 and peak < 20_000_000
