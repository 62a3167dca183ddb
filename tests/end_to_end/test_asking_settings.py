"""What a run is made with: a server's own model, limits that hold, and settings that are refused in time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from needlepoint.ask.store import RunFolder
from needlepoint.config import TaskConfig
from needlepoint.errors import UsageError
from needlepoint.reconstruct import prompt_of, rebuild

from .conftest import Command
from .loopback import serving


@pytest.fixture
def grid(prose: dict[str, Callable[..., str]], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text(prose["en"](1_500), encoding="utf-8")
    return ["--corpus", str(path), "--lengths", "1k", "--depths", "0,100"]


def runs(folder: Path) -> list[Path]:
    return sorted((folder / "outputs").iterdir()) if (folder / "outputs").exists() else []


def settings(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return found


def test_a_server_with_one_model_needs_no_name(run: Command, grid: list[str], tmp_path: Path) -> None:
    with serving(models=[{"id": "org/only-one", "object": "model"}]) as server:
        code, _, err = run("eval", "--api-url", server.url, *grid)
    assert code == 0, err
    assert {body["model"] for body in server.requests} == {"org/only-one"}
    (folder,) = runs(tmp_path)
    assert settings(folder)["identity"]["model"] == "org/only-one"


@pytest.mark.parametrize("models", [[], [{"id": "one"}, {"id": "two"}]], ids=["none", "several"])
def test_a_server_with_more_or_less_than_one_model_wants_a_name(
    models: list[dict[str, Any]], run: Command, grid: list[str], tmp_path: Path
) -> None:
    with serving(models=models) as server:
        code, _, err = run("eval", "--api-url", server.url, *grid)
    assert code == 2 and "--model" in err and not server.requests and not runs(tmp_path)
    assert all(model["id"] in err for model in models)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--max-cost", "1"], "--price-in"),
        (["--generation-config", "n=2"], "--repeats"),
        (["--generation-config", '{"extra_body": {"messages": []}}'], "messages"),
        (["--generation-config", '{"extra_body": 3}'], "extra_body"),
        (["--rpm", "0"], "--rpm"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked_or_written(
    wrong: list[str], says: str, run: Command, grid: list[str], tmp_path: Path
) -> None:
    with serving() as server:
        code, _, err = run("eval", "--model", "m", "--api-url", server.url, *grid, *wrong)
    assert code == 2 and says in err
    assert not server.requests and not runs(tmp_path)


def test_the_same_grid_in_other_words_is_the_same_run(run: Command, grid: list[str], tmp_path: Path) -> None:
    with serving() as server:
        common = ["--model", "m", "--api-url", server.url]
        assert run("eval", *common, *grid)[0] == 0
        again = [{"1k": "1000", "0,100": "0:100:2"}.get(word, word) for word in grid]
        code, _, err = run("eval", *common, *again, "--resume", "outputs")
    assert code == 0, err
    assert len(server.requests) == 2
    found = settings(runs(tmp_path)[0])["identity"]
    assert (found["lengths"], found["depths"]) == ([1000], [0, 100])
    assert found["generation_config"] == {"temperature": 0}  # what was sent, not only what was typed


def test_a_forecast_leaves_out_what_the_model_cannot_take(run: Command, grid: list[str]) -> None:
    code, out, err = run("eval", "--model", "smollm2", "--dry-run", "--json", *grid, "--lengths", "1k,4k,16k")
    assert code == 0, err
    found = json.loads(out)
    assert (found["limit_tokens"], found["requests"], found["too_long"]) == (8_192, 4, 2)
    assert found["prompt_tokens"] == 10_000 and found["cost_typical"] is None
    assert found["seconds"] > 10_000 / 1_000  # this machine is no data centre
    assert "No tokenizer" not in err
    _, shown, _ = run("eval", "--model", "smollm2", "--dry-run", *grid, "--lengths", "1k,4k,16k")
    assert "2 prompts, for the 8,192 tokens of the model" in shown and "Cost" not in shown


@pytest.mark.parametrize(("model", "says"), [("nowhere.gguf", "nowhere.gguf"), ("smollm", "smollm2")])
def test_a_forecast_for_a_model_that_is_not_there_is_refused(
    model: str, says: str, run: Command, grid: list[str]
) -> None:
    code, _, err = run("eval", "--model", model, "--dry-run", *grid)
    assert code == 2 and says in err


def test_the_server_s_count_is_told_in_words(run: Command, grid: list[str]) -> None:
    with serving(count=lambda body: 1_234) as server:
        _, out, _ = run("eval", "--model", "m", "--api-url", server.url, *grid)
    assert "the server counted up to 234 tokens more in a prompt than were planned" in out and "--tokenizer" in out


def test_settings_of_evalscope_s_that_ask_for_nothing_else_are_taken() -> None:
    config = TaskConfig(model="m", eval_type="openai_api", eval_backend="Native", debug=True, ignore_errors=True)
    assert config.model_name == "m"
    with pytest.raises(UsageError, match="no_timestamp=True is EvalScope's own"):
        TaskConfig(model="m", no_timestamp=True)


def test_the_embedded_model_gets_its_small_grid_however_it_is_called() -> None:
    small = TaskConfig()
    assert TaskConfig(model="smollm2").grid() == TaskConfig(limit=3).grid() == small.grid()
    assert TaskConfig(api_url="http://localhost:1").grid() == TaskConfig(model="m").grid() != small.grid()


def test_a_run_is_rebuilt_from_any_folder_and_goes_on_where_its_text_was_moved_to(
    run: Command, prose: dict[str, Callable[..., str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_text(prose["en"](1_500), encoding="utf-8")
    (tmp_path / "system.txt").write_text("Be short.", encoding="utf-8")
    common = ["--model", "m", "--lengths", "1k", "--depths", "50", "--report", "none", "--system-prompt", "system.txt"]
    with serving() as server:
        common += ["--api-url", server.url]
        assert run("eval", *common, "--corpus", "mine=text.txt")[0] == 0
        (folder,) = runs(tmp_path)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        (trial,) = (row for row in rebuilt(folder))
        assert trial == server.requests[0]["messages"]
        (tmp_path / "text.txt").rename(tmp_path / "elsewhere" / "moved.txt")
        (tmp_path / "elsewhere" / "system.txt").write_text("Be short.", encoding="utf-8")
        code, _, err = run("eval", *common, "--corpus", "mine=moved.txt", "--resume", str(folder))
        assert code == 0 and len(server.requests) == 1, err
        (tmp_path / "elsewhere" / "system.txt").write_text("Be long.", encoding="utf-8")
        code, _, err = run("eval", *common, "--corpus", "mine=moved.txt", "--resume", str(folder))
    assert code == 2 and "system_prompt: Be short. → Be long." in err


def rebuilt(folder: Path) -> Iterator[Any]:
    with RunFolder.open(folder, for_writing=False) as run:
        trials = [trial for trial, _ in run.replies()]
    again = rebuild(folder)
    for trial in trials:
        yield prompt_of(again, trial).messages()
