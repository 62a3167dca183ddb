"""Whole runs through the command and the Python call, against a loopback server."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import needlepoint
from needlepoint.config import TaskConfig

from .loopback import finds_the_needle, serving

KEY = "sk-a-secret-key-0123456789"


@pytest.fixture(scope="module")
def dataset(prose: dict[str, Callable[..., str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    (folder / "PaulGraham_Essays.txt").write_text(prose["en"](4_000), encoding="utf-8")
    (folder / "Journey_to_the_West.txt").write_text(prose["zh"](3_000), encoding="utf-8")
    return folder


@pytest.fixture
def arguments(dataset: Path) -> str:
    return json.dumps({"needle_haystack": {"local_path": str(dataset)}})


def only_run(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_seeds_command_scores_every_sample(run: Any, arguments: str, tmp_path: Path) -> None:
    with serving() as server:
        code, out, err = run(
            "eval", "--model", "m", "--api-url", server.url, "--api-key", KEY, "--datasets", "needle_haystack",
            "--dataset-args", arguments, "--limit", "10",
        )  # fmt: skip
    assert code == 0, err
    folder = only_run(tmp_path / "outputs")
    report = json.loads((folder / "report.json").read_text())
    overall = report["overall"]
    assert (overall["score"], overall["n"], overall["valid"], overall["coverage"]) == (1.0, 20, 20, 1.0)
    assert overall["interval"][1] == 1.0 and overall["interval_over"] == "trials"
    assert [subset["name"] for subset in report["subsets"]] == ["english", "chinese"]
    assert report["schema"] == 1 and report["model"] == "m" and report["dataset"] == "needle_haystack"
    assert report["length_mode"] == "evalscope" and report["layout"] == "classic"
    assert report["cost"] is None and report["effective_length"]["mean"]["at_least"]
    cell = report["subsets"][0]["cells"][0]
    assert {"context_length", "depth_percent", "achieved_length", "achieved_depth_percent", "outcomes"} <= set(cell)
    assert "overall" in out and "20 correct" in out
    assert len(server.requests) == 20
    assert all(body["temperature"] == 0 for body in server.requests)
    assert str(folder.relative_to(tmp_path)) in err
    assert len(list((folder / "scores").iterdir())) == 1


def test_the_seeds_python_call_scores_every_sample(dataset: Path, tmp_path: Path) -> None:
    with serving() as server:
        task_cfg = TaskConfig(
            model="m",
            api_url=server.url,
            api_key="EMPTY",
            datasets=["needle_haystack"],
            dataset_args={
                "needle_haystack": {
                    "subset_list": ["english"],
                    "local_path": str(dataset),
                    "extra_params": {"context_lengths_max": 4_000, "context_lengths_num_intervals": 2},
                }
            },
            limit=10,
            work_dir=str(tmp_path / "runs"),
        )
        result = needlepoint.run_task(task_cfg=task_cfg)
    assert (result.score, result.coverage, result.asked) == (1.0, 1.0, 10)
    assert result.outcomes == {"correct": 10}
    assert sum(1 for _ in result.trials()) == 10


def test_it_works_inside_a_running_loop(dataset: Path, tmp_path: Path) -> None:
    import asyncio

    async def notebook(url: str) -> float | None:
        config = {"model": "m", "api_url": url, "lengths": "1k", "depths": "50", "work_dir": str(tmp_path / "runs")}
        config["corpus"] = str(dataset / "PaulGraham_Essays.txt")
        return needlepoint.run_task(config).score

    with serving() as server:
        assert asyncio.run(notebook(server.url)) == 1.0


def test_overflow_is_no_miss_and_is_sent_once(run: Any, arguments: str, tmp_path: Path) -> None:
    def takes_16k(body: dict[str, Any]) -> str | tuple[int, dict[str, Any]]:
        tokens = len(body["messages"][-1]["content"]) // 2
        if tokens > 16_000:
            message = (
                f"This model's maximum context length is 16000 tokens. However, your messages have {tokens} tokens."
            )
            return 400, {"error": {"message": message, "code": "context_length_exceeded"}}
        return finds_the_needle(body)

    with serving(takes_16k) as server:
        code, out, _ = run(
            "eval",
            "--model",
            "m",
            "--api-url",
            server.url,
            "--datasets",
            "needle_haystack",
            "--dataset-args",
            arguments,
        )
    assert code == 0
    report = json.loads((only_run(tmp_path / "outputs") / "report.json").read_text())
    assert report["outcomes"]["overflow"] > 50
    assert report["overall"]["score"] == 1.0
    assert report["overall"]["coverage"] < 0.8
    assert len(server.requests) == 200
    assert "overflow" in out and "coverage" in out.lower()


def test_a_known_limit_is_not_even_tried(run: Any, dataset: Path, tmp_path: Path) -> None:
    with serving(models=[{"id": "Qwen/Qwen3-0.6B", "max_model_len": 4_096}]) as server:
        code, _, err = run(
            "eval", "--model", "Qwen/Qwen3-0.6B", "--api-url", server.url, "--max-tokens", "64",
            "--lengths", "1k,4k,8k", "--depths", "0,50", "--corpus", str(dataset / "PaulGraham_Essays.txt"),
        )  # fmt: skip
    assert code == 0, err
    outcomes = [
        row["trial"]["context_length"] for row in rows(only_run(tmp_path / "outputs")) if row["reply"].get("error")
    ]
    assert outcomes in ([], [8_000, 8_000])  # unproven counts leave it to the server


def test_a_server_that_is_down_ends_with_code_3_and_nothing_counted_as_a_miss(run: Any, arguments: str) -> None:
    def broken(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 500, {"error": {"message": "boom"}}

    with serving(broken) as server:
        code, _, err = run(
            "eval", "--model", "m", "--api-url", server.url, "--datasets", "needle_haystack",
            "--dataset-args", arguments, "--limit", "2", "--max-attempts", "1",
        )  # fmt: skip
    assert code == 3
    assert "--resume" in err or "Not one answer" in err


def test_a_run_goes_on_where_it_stopped(run: Any, arguments: str, tmp_path: Path) -> None:
    common = ["--model", "m", "--datasets", "needle_haystack", "--dataset-args", arguments]
    with serving() as server:
        url = server.url
        run("eval", *common, "--api-url", url, "--limit", "5")
        folder = only_run(tmp_path / "outputs")
        before = rows(folder)
        code, _, err = run("eval", *common, "--api-url", url, "--limit", "20", "--resume", str(folder))
        assert code == 0, err
        assert len(server.requests) == 40
    after = rows(folder)
    assert after[:10] == before and len(after) == 40
    assert len({row["trial"]["id"] for row in after}) == 40


def test_other_settings_make_another_run(run: Any, dataset: Path, tmp_path: Path) -> None:
    common = ["--model", "m", "--depths", "50", "--corpus", str(dataset / "PaulGraham_Essays.txt")]
    with serving() as server:
        run("eval", *common, "--api-url", server.url, "--lengths", "1k")
        folder = only_run(tmp_path / "outputs")
        code, _, err = run("eval", *common, "--api-url", server.url, "--lengths", "1k,2k", "--use-cache", str(folder))
    assert code == 2
    assert "lengths: 1k → 1k,2k" in err


def test_the_key_is_in_no_file_and_no_output(run: Any, arguments: str, tmp_path: Path) -> None:
    def echoes(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}

    outputs = []
    for answer in (finds_the_needle, echoes):
        with serving(answer) as server:
            outputs.append(
                run("eval", "--model", "m", "--api-url", server.url, "--api-key", KEY, "--datasets", "needle_haystack",
                    "--dataset-args", arguments, "--limit", "1", "--debug", "--header", f"X-Other: {KEY}")
            )  # fmt: skip
            assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in str(outputs)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert KEY.encode() not in file.read_bytes(), file


def test_show_rebuilds_the_very_prompt(run: Any, arguments: str, tmp_path: Path) -> None:
    with serving() as server:
        run("eval", "--model", "m", "--api-url", server.url, "--datasets", "needle_haystack",
            "--dataset-args", arguments, "--limit", "3")  # fmt: skip
        folder = only_run(tmp_path / "outputs")
        code, out, _ = run("show", str(folder))
        assert code == 0 and "english:1000:11" in out and out.count("correct") == 6
        code, out, err = run("show", str(folder), "chinese:1000:22")
    assert code == 0, err
    (asked,) = [body for body in server.requests if body["messages"][-1]["content"] in out]
    assert asked["messages"][0]["content"] in out
    assert "sha256" in err


def test_show_names_what_there_is(run: Any, arguments: str, tmp_path: Path) -> None:
    with serving() as server:
        run("eval", "--model", "m", "--api-url", server.url, "--datasets", "needle_haystack",
            "--dataset-args", arguments, "--limit", "1")  # fmt: skip
    code, _, err = run("show", str(only_run(tmp_path / "outputs")), "english:9999:0")
    assert code == 2 and "english:1000:0" in err
    code, _, err = run("show", str(tmp_path / "nowhere"))
    assert code == 2 and "nowhere" in err


def _messages(bodies: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(body["messages"]) for body in bodies)


@pytest.mark.parametrize("source", ["file", "run"])
def test_two_models_get_the_very_same_prompts(source: str, run: Any, dataset: Path, tmp_path: Path) -> None:
    common = ["--lengths", "1k,2k", "--depths", "0,50", "--corpus", str(dataset / "PaulGraham_Essays.txt")]
    with serving() as server:
        if source == "file":
            run("prompts", *common, "--out", "p.jsonl")
            given = "p.jsonl"
        else:
            run("eval", "--model", "m", "--api-url", server.url, *common, "--work-dir", "first")
            given = str(only_run(tmp_path / "first"))
        first = len(server.requests)
        code, _, err = run("eval", "--model", "m", "--api-url", server.url, "--prompts", given, "--work-dir", "second")
        assert code == 0, err
        again = server.requests[first:]
        assert len(again) == 4
        if source == "run":  # several are in flight, so they may arrive in any order
            assert _messages(again) == _messages(server.requests[:first])
        before = len(server.requests)
        run("eval", "--model", "m", "--api-url", server.url, "--prompts", given, "--work-dir", "third", "--limit", "1")
        assert len(server.requests) == before + 1


def test_a_providers_batch_answers_are_read_back(run: Any, dataset: Path, tmp_path: Path) -> None:
    common = [
        "--model",
        "gpt-4o",
        "--lengths",
        "1k",
        "--depths",
        "0,50,100",
        "--corpus",
        str(dataset / "PaulGraham_Essays.txt"),
    ]
    run("prompts", *common, "--format", "openai-batch", "--out", "batch.jsonl")
    with (tmp_path / "results.jsonl").open("w") as file:
        for number, line in enumerate((tmp_path / "batch.jsonl").read_text().splitlines()):
            request = json.loads(line)
            text = finds_the_needle(request["body"]) if number else "I do not know."
            message = {"role": "assistant", "content": text}
            body = {
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 1_000},
            }
            response = {"status_code": 200, "body": body}
            file.write(json.dumps({"custom_id": request["custom_id"], "response": response, "error": None}) + "\n")
    code, _, err = run("eval", *common, "--batch-results", "results.jsonl")
    assert code == 0, err
    report = json.loads((only_run(tmp_path / "outputs") / "report.json").read_text())
    assert report["outcomes"] == {"correct": 2, "not_found": 1}


def test_a_dry_run_asks_nobody_and_needs_no_key(run: Any, arguments: str, tmp_path: Path) -> None:
    code, out, err = run(
        "eval", "--model", "gpt-4o", "--api-url", "http://127.0.0.1:9/v1", "--datasets", "needle_haystack",
        "--dataset-args", arguments, "--dry-run", "--price-in", "2.5", "--price-out", "10",
    )  # fmt: skip
    assert code == 0, err
    assert "200 prompts" in out and re.search(r"Cost\s+about \d", out)
    assert not (tmp_path / "outputs").exists()


def test_a_budget_stops_before_it_is_spent(run: Any, dataset: Path, tmp_path: Path) -> None:
    with serving() as server:
        code, _, err = run(
            "eval", "--model", "m", "--api-url", server.url, "--lengths", "1k", "--depths", "0:100:11", "--corpus",
            str(dataset / "PaulGraham_Essays.txt"), "--max-tokens-total", "5000", "--eval-batch-size", "1",
        )  # fmt: skip
    assert code == 3
    assert "--max-tokens-total" in err and "--resume" in err
    assert 1 <= len(server.requests) <= 4


def test_generation_config_reaches_the_request_whole(run: Any, dataset: Path) -> None:
    config = {"temperature": 0.3, "max_tokens": 77, "seed": 5, "chat_template_kwargs": {"enable_thinking": False},
              "extra_body": {"top_k": 3}, "stream": False}  # fmt: skip
    with serving() as server:
        run("eval", "--model", "m", "--api-url", server.url, "--lengths", "1k", "--depths", "50", "--corpus",
            str(dataset / "PaulGraham_Essays.txt"), "--generation-config", json.dumps(config),
            "--header", "X-Team: red")  # fmt: skip
    (body,) = server.requests
    assert body["temperature"] == 0.3 and body["max_tokens"] == 77 and body["seed"] == 5 and body["top_k"] == 3
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert not body.get("stream")
    assert server.headers[0]["X-Team"] == "red"


def test_settings_come_from_a_file_and_the_environment(
    run: Any, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as server:
        (tmp_path / "run.toml").write_text(
            f'model = "m"\napi_url = "{server.url}"\nlengths = "1k,2k"\ndepths = "0,50"\nlimit = 4\n'
            f'corpus = "{dataset / "PaulGraham_Essays.txt"}"\n'
        )
        monkeypatch.setenv("NEEDLEPOINT_LENGTHS", "1k")
        code, _, err = run("eval", "--config", "run.toml", "--depths", "25")
        assert code == 0, err
        assert len(server.requests) == 1
        (tmp_path / "run.toml").write_text("lenghts = '1k'\n")
        code, _, err = run("eval", "-c", "run.toml")
        assert code == 2 and "'lengths'" in err
        (tmp_path / "run.toml").write_text(f"api_key = '{KEY}'\n")
        code, _, err = run("eval", "-c", "run.toml")
        assert code == 2 and KEY not in err and "NEEDLEPOINT_API_KEY" in err


def test_json_goes_to_stdout_alone(run: Any, dataset: Path) -> None:
    with serving() as server:
        _, out, err = run("eval", "--model", "m", "--api-url", server.url, "--lengths", "1k", "--depths", "50",
                          "--corpus", str(dataset / "PaulGraham_Essays.txt"), "--json")  # fmt: skip
    assert json.loads(out)["overall"]["n"] == 1
    assert "needlepoint:" in err


def command_line(url: str, dataset: Path, work_dir: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "needlepoint.cli", "eval", "--model", "m", "--api-url", url, "--lengths", "1k:3k:5",
        "--depths", "0:100:8", "--corpus", str(dataset / "PaulGraham_Essays.txt"), "--work-dir", str(work_dir),
        "--eval-batch-size", "4", *more,
    ]  # fmt: skip


def test_ctrl_c_finishes_what_is_in_flight_and_says_how_to_go_on(dataset: Path, tmp_path: Path) -> None:
    def slow(body: dict[str, Any]) -> str:
        time.sleep(0.05)
        return finds_the_needle(body)

    with serving(slow) as server:
        process = subprocess.Popen(
            command_line(server.url, dataset, tmp_path / "runs"), stderr=subprocess.PIPE, text=True
        )
        while len(server.requests) < 6:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "--resume" in err and "Traceback" not in err
        folder = only_run(tmp_path / "runs")
        asked = len(server.requests)
        assert len(rows(folder)) == asked < 40
        assert json.loads((folder / "report.json").read_text())["overall"]["n"] == asked
        subprocess.run(
            command_line(server.url, dataset, tmp_path / "runs", "--resume", str(folder)),
            check=True,
            capture_output=True,
        )
        assert len(server.requests) == 40


SIMULATED = ("eval", "--model", "simulated:cliff,at=3k", "--lengths", "1k,2k,4k", "--depths", "0,50,100")


def test_what_was_learned_is_in_the_report_the_table_and_the_typed_result(run: Any, tmp_path: Path) -> None:
    corpus = tmp_path / "text.txt"
    corpus.write_text("A quiet line about nothing much. " * 4_000, encoding="utf-8")
    code, out, err = run(*SIMULATED, "--corpus", str(corpus), "--replicates", "3", "--threshold", "90%")
    assert code == 0, err
    report = json.loads((only_run(tmp_path / "outputs") / "report.json").read_text())
    effective = report["effective_length"]
    assert (effective["threshold"], effective["mean"]["length"]) == (0.9, 2_000)
    assert effective == report["subsets"][0]["effective_length"]
    assert report["overall"]["interval_over"] == "texts" and report["replicates"] == 3
    assert "Effective length at 90%: 2k (95%: " in out and "is below 90% at 4,000 tokens" in out
    assert "Position: " in out and "Note: " not in out
    result = needlepoint.run_task(
        TaskConfig(model="simulated:perfect", corpus=[str(corpus)], lengths="1k,2k", depths="0,50,100",
                   preset="ruler", work_dir=str(tmp_path / "python"))
    )  # fmt: skip
    assert result.effective_length is not None and result.effective_length.threshold == 0.856
    assert result.effective_length.mean.at_least and result.effective_length.mean.length == 2_000
    assert result.interval is not None and result.score in result.interval
    (subset,) = result.subsets.values()
    assert len(subset.cells) == 6 and subset.overall.coverage == 1.0
    assert "no interval over texts" in result.notes[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--threshold", "0"), "--threshold: must be a share above 0 and up to 1"),
        (("--threshold", "85"), "such as 0.85 or 85%, not 85"),
        (("--threshold", "much"), "--threshold: must be a share"),
        (("--preset", "rulr"), "ruler"),
        (("--preset", "ruler", "--threshold", "0.9"), "--threshold and --preset exclude each other"),
    ],
)
def test_a_wrong_bar_is_refused_before_anything_is_asked(
    run: Any, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    code, _, err = run("eval", "--model", "simulated:perfect", *arguments)
    assert code == 2 and says in err
    assert not (tmp_path / "outputs").exists()
