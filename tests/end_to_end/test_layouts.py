"""Layouts and order in whole runs: what is computed, what is asked again, what reports say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import needlepoint
from needlepoint.ask.models.caching import sglang_cache, vllm_cache
from needlepoint.connect import connect

from .loopback import serving
from .radix import Radix


@pytest.fixture(scope="module")
def corpus(prose: dict[str, Callable[..., str]], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("text") / "prose.txt"
    path.write_text(prose["en"](4_000), encoding="utf-8")
    return f"english={path}"


def report_in(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("*/report.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def asked_in(folder: Path) -> list[tuple[int, float]]:
    (path,) = folder.glob("*/trials.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    trials = [line.get("trial", line) for line in lines]
    return [(trial["context_length"], trial["depth_percent"]) for trial in trials]


GRID = ("--lengths", "1k:4k:4", "--depths", "0:100:5", "--report", "none")


@pytest.mark.parametrize("layout", ["classic", "lattice", "woven"])
def test_a_run_computes_what_was_planned_and_no_layout_more_than_its_bound(
    run: Any, corpus: str, tmp_path: Path, layout: str
) -> None:
    code, _, err = run(
        "eval", "--model", "simulated", "--concurrency", "1", "--corpus", corpus, "--layout", layout, *GRID,
        "--self-check", "4",
    )  # fmt: skip
    assert code == 0, err
    report = report_in(tmp_path / "outputs")
    prefix = report["prefix"]
    assert prefix["prefilled_tokens"] == prefix["planned_tokens"] == prefix["bound_tokens"] < prefix["naive_tokens"]
    assert prefix["cached_tokens"] == prefix["naive_tokens"] - prefix["prefilled_tokens"]
    assert report["layout"] == layout and report["overall"]["score"] == 1.0
    assert report["self_check"] == {"asked": 4, "same": 4, "differing": []}


def test_as_given_asks_in_the_grids_order_and_computes_more(run: Any, corpus: str, tmp_path: Path) -> None:
    found = {}
    for name in ("prefix", "as-given"):
        code, _, err = run(
            "eval", "--model", "simulated", "--concurrency", "1", "--corpus", corpus, "--order", name, *GRID,
            "--work-dir", name,
        )  # fmt: skip
        assert code == 0, err
        found[name] = report_in(tmp_path / name)
    asked = asked_in(tmp_path / "as-given")
    assert asked == sorted(asked)
    assert sorted(asked_in(tmp_path / "prefix")) == asked != asked_in(tmp_path / "prefix")
    for report in found.values():
        assert report["prefix"]["prefilled_tokens"] == report["prefix"]["planned_tokens"]
    assert found["as-given"]["prefix"]["prefilled_tokens"] > 1.3 * found["prefix"]["prefix"]["prefilled_tokens"]
    assert found["as-given"]["subsets"] == found["prefix"]["subsets"]


def test_without_reuse_every_token_is_computed(run: Any, corpus: str, tmp_path: Path) -> None:
    code, _, err = run("eval", "--model", "simulated", "--corpus", corpus, "--no-reuse", *GRID)
    assert code == 0, err
    prefix = report_in(tmp_path / "outputs")["prefix"]
    assert prefix["prefilled_tokens"] == prefix["planned_tokens"] == prefix["naive_tokens"] > prefix["bound_tokens"]
    assert prefix["cached_tokens"] == 0


@pytest.mark.parametrize("layout", ["lattice", "woven"])
def test_a_resumed_run_asks_the_rest_and_shows_the_very_prompts(
    run: Any, corpus: str, tmp_path: Path, layout: str
) -> None:
    common = ("--model", "simulated", "--corpus", corpus, "--layout", layout, *GRID)
    assert run("eval", *common, "--limit", "6")[0] == 0
    (folder,) = (tmp_path / "outputs").iterdir()
    code, _, err = run("eval", *common, "--resume", str(folder))
    assert code == 0, err
    assert len(asked_in(tmp_path / "outputs")) == 20
    report = report_in(tmp_path / "outputs")
    assert report["overall"]["n"] == 20 and report["prefix"]["planned_tokens"] is not None
    code, out, err = run("show", str(folder), "english:2000:50")
    assert code == 0, err
    assert "<question>" in out


def test_a_dry_run_says_naive_planned_and_best(run: Any, corpus: str) -> None:
    code, out, _ = run(
        "eval", "--model", "simulated", "--corpus", corpus, "--layout", "woven", *GRID, "--dry-run", "--json"
    )
    prefix = json.loads(out)["prefix"]
    assert code == 0
    assert prefix["bound_tokens"] <= prefix["planned_tokens"] < 0.2 * prefix["naive_tokens"]
    assert prefix["naive_tokens"] == 5 * (1_000 + 2_000 + 3_000 + 4_000)
    code, out, _ = run("eval", "--model", "simulated", "--corpus", corpus, "--layout", "woven", *GRID, "--dry-run")
    assert f"{prefix['planned_tokens']:,} of them" in out


@pytest.mark.parametrize("layout", ["classic", "lattice", "woven"])
def test_sixteen_in_flight_compute_hardly_more_than_the_bound(
    run: Any, corpus: str, tmp_path: Path, layout: str
) -> None:
    radix = Radix(connect("Qwen/Qwen3-0.6B"), capacity_tokens=36_000)
    with serving(radix.answer, count=radix.count, cached=radix.cached) as server:
        code, _, err = run(
            "eval", "--model", "m", "--api-url", server.url, "--tokenizer", "Qwen/Qwen3-0.6B", "--corpus", corpus,
            "--layout", layout, "--lengths", "1k:4k:10", "--depths", "0:100:10", "--report", "none",
            "--concurrency", "16", "--no-stream", "--cache-tokens", "32000",
        )  # fmt: skip
    assert code == 0, err
    prefix = report_in(tmp_path / "outputs")["prefix"]
    assert prefix["prefilled_tokens"] == radix.computed
    assert radix.most_in_flight == 16
    assert radix.computed <= 1.05 * prefix["bound_tokens"]


def test_breakpoints_stand_at_the_needle_and_never_behind(run: Any, corpus: str) -> None:
    with serving(lambda body: "I have read it.") as server:
        server.count = lambda body: 1_000
        code, _, err = run(
            "eval", "--model", "m", "--api-url", server.url, "--tokenizer", "Qwen/Qwen3-0.6B", "--corpus", corpus,
            "--cache-hints", "control", "--lengths", "1k,2k", "--depths", "0,50,100", "--report", "none",
        )  # fmt: skip
    assert code == 0, err
    for body in server.requests:
        before, behind = body["messages"][-1]["content"]
        assert before["cache_control"] == {"type": "ephemeral"} and "cache_control" not in behind
        assert "Dolores Park" not in before["text"]
        assert behind["text"].lstrip().startswith("The best thing to do in San Francisco")
        assert "<question>" in behind["text"]


def test_a_cache_key_is_sent_where_it_is_asked_for(run: Any, corpus: str) -> None:
    with serving() as server:
        for hints in ("auto", "key"):
            code, _, err = run(
                "eval", "--model", "m", "--api-url", server.url, "--tokenizer", "Qwen/Qwen3-0.6B", "--corpus", corpus,
                "--cache-hints", hints, "--lengths", "1k", "--depths", "0,50", "--report", "none", "--replicates", "2",
                "--work-dir", hints,
            )  # fmt: skip
            assert code == 0, err
    first, second = server.requests[:4], server.requests[4:]
    assert not any("prompt_cache_key" in body for body in first)
    keys = [body["prompt_cache_key"] for body in second]
    assert len(set(keys)) == 2 and all(key.startswith("needlepoint-") for key in keys)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--no-reuse",), "--no-reuse needs a model"),
        (("--self-check", "3"), "--self-check needs a model"),
        (("--layout", "lace"), "lace"),
        (("--order", "random"), "random"),
    ],
)
def test_wrong_wishes_end_in_one_line(run: Any, corpus: str, more: tuple[str, ...], says: str) -> None:
    with serving() as server:
        code, _, err = run(
            "eval", "--model", "m", "--api-url", server.url, "--tokenizer", "Qwen/Qwen3-0.6B", "--corpus", corpus,
            *GRID, *more,
        )  # fmt: skip
    assert code == 2 and says in err and "Traceback" not in err
    assert not server.requests


def test_a_cache_writes_price_is_in_the_cost(corpus: str, tmp_path: Path) -> None:
    from needlepoint.config import TaskConfig
    from needlepoint.types import Usage

    config = TaskConfig(price_in=1.0, price_out=0.0, price_cached=0.1, price_cache_write=1.25)
    prices = config.token_prices()
    assert prices is not None
    cost = prices.cost(Usage(prompt=1_000_000, completion=0, cached=400_000, cache_written=200_000))
    assert cost == pytest.approx(0.4 * 0.1 + 0.2 * 1.25 + 0.4)
    assert needlepoint.TaskConfig is TaskConfig


def test_a_file_that_mixes_layouts_is_refused_and_one_of_a_layout_is_asked_and_labelled(
    run: Any, corpus: str, tmp_path: Path
) -> None:
    files = {}
    for layout in ("classic", "woven"):
        files[layout] = tmp_path / f"{layout}.jsonl"
        code, _, err = run(
            "prompts", "--corpus", corpus, "--layout", layout, "--lengths", "1k,2k", "--depths", "0,50,100",
            "--tokenizer", "Qwen/Qwen3-0.6B", "-o", str(files[layout]),
        )  # fmt: skip
        assert code == 0, err
    code, out, err = run("eval", "--model", "simulated", "--prompts", str(files["woven"]), "--report", "none")
    assert code == 0, err
    report = report_in(tmp_path / "outputs")
    assert report["layout"] == "woven" and "Layout: woven" in out
    prefix = report["prefix"]
    assert prefix["prefilled_tokens"] < 0.5 * prefix["naive_tokens"]
    both = tmp_path / "both.jsonl"
    both.write_bytes(files["classic"].read_bytes() + files["woven"].read_bytes())
    code, _, err = run("eval", "--model", "simulated", "--prompts", str(both), "--report", "none")
    assert code == 2 and "mixes prompts of the layouts classic, woven" in err


def test_servers_tell_what_their_cache_holds() -> None:
    metrics = (
        b'# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",'
        b'num_gpu_blocks="2048",sliding_window="None"} 1.0\n'
    )
    assert vllm_cache(metrics) == {"cache_tokens": 32_768, "cache_block": 16}
    assert vllm_cache(b"") == {} == vllm_cache(b'vllm:cache_config_info{block_size="16"} 1.0')
    assert sglang_cache({"max_total_num_tokens": 5_000}) == {"cache_tokens": 5_000}
    assert sglang_cache(None) == {} == sglang_cache({"max_total_num_tokens": "many"})


@pytest.mark.model
@pytest.mark.parametrize("layout", ["lattice", "woven"])
def test_the_embedded_engine_computes_the_bound_to_the_token_and_answers_alike_without_reuse(
    run: Any, corpus: str, tmp_path: Path, layout: str
) -> None:
    code, _, err = run(
        "eval", "--model", "smollm2", "--corpus", corpus, "--layout", layout, "--lengths", "400,700", "--depths",
        "0,50,100", "--max-tokens", "8", "--report", "none", "--self-check", "1",
    )  # fmt: skip
    assert code == 0, err
    report = report_in(tmp_path / "outputs")
    prefix = report["prefix"]
    assert (
        prefix["prefilled_tokens"] == prefix["planned_tokens"] == prefix["bound_tokens"] < 0.65 * prefix["naive_tokens"]
    )
    assert report["self_check"]["asked"] == 1
