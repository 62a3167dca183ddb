"""Log-probabilities of given tokens, each forced as the next one: by scripted servers, and by llama.cpp itself."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

import needlepoint
from needlepoint.ask.models import cache_by_name, llamacpp
from needlepoint.ask.models.forced import LEAST, LLAMA, VLLM, Dialect, Forced, NothingKeptError
from needlepoint.ask.models.gguf import read_gguf_header
from needlepoint.ask.models.llamacpp import LlamaCppModel
from needlepoint.ask.models.machine import patient_threads
from needlepoint.ask.models.openai import OpenAIModel
from needlepoint.ask.models.own_tokens import anchor_of
from needlepoint.errors import UsageError
from needlepoint.types import Message, Sampling, TellsLogprobs

from ..conftest import english_prose
from .toy_gguf import byte_level_vocabulary, write_gguf

N_TOKENS = 40
BEFORE = [7, 3, 7, 1]
VALUES = [(5, 8, 1), (5, 8, 2), (5, 9), (6,), (5, 8, 1, 4)]


def distribution(ids: Sequence[int]) -> list[float]:
    """What this toy model holds of each next token: drawn by all tokens so far."""
    rng = Random(repr(list(ids)))
    weights = [rng.expovariate(1) for _ in range(N_TOKENS)]
    return [math.log(weight / sum(weights)) for weight in weights]


class Scripted:
    """A server that speaks a dialect. `fault` is what it does otherwise than said."""

    def __init__(self, dialect: Dialect, fault: str = "") -> None:
        self.dialect, self.fault = dialect, fault
        self.asked: list[tuple[tuple[int, ...], int]] = []

    async def ask(self, body: dict[str, Any]) -> Any:
        ids = body["prompt"]
        is_llama = self.dialect is LLAMA
        ((token, bias),) = body["logit_bias"] if is_llama else [(body["allowed_token_ids"][0], math.inf)]
        assert bias > 100 and body["temperature"] == 0
        self.asked.append((tuple(ids), token))
        if self.fault == "silent" and len(self.asked) > 2:
            return None
        held = distribution(ids)
        if self.fault == "constrained":
            held = [0.0 if one == token else -math.inf for one in range(N_TOKENS)]
        if self.fault == "underflow":
            held[token] = -3.4e38
        if self.fault == "broken":
            held[token] = math.nan
        if self.fault == "free":
            token = max(range(N_TOKENS), key=held.__getitem__)
        likely = sorted(range(N_TOKENS), key=held.__getitem__, reverse=True)
        likely = likely[: body["n_probs"] if is_llama else body["logprobs"]]
        computed = len(ids) if self.fault == "forgetful" else 1
        if is_llama:
            first = {"id": token, "logprob": held[token]}
            first["top_logprobs"] = [{"id": one, "logprob": held[one]} for one in likely]  # type: ignore[assignment]
            return {"completion_probabilities": [first], "timings": {"prompt_n": computed}}
        logprobs = {
            "tokens": [f"token_id:{token}"],
            "token_logprobs": [held[token]],
            "top_logprobs": [{f"token_id:{one}": held[one] for one in (*likely, token)}],
        }
        usage = {"prompt_tokens": len(ids), "prompt_tokens_details": {"cached_tokens": len(ids) - computed}}
        return {"choices": [{"logprobs": logprobs}], "usage": usage}


DIALECTS = pytest.mark.parametrize("dialect", [LLAMA, VLLM], ids=["llama.cpp", "vLLM"])


@DIALECTS
def test_each_token_is_told_as_the_model_holds_it(dialect: Dialect) -> None:
    server = Scripted(dialect)
    found = asyncio.run(Forced(dialect, server.ask).values(BEFORE, VALUES))
    for value, told in zip(VALUES, found, strict=True):
        assert told == pytest.approx([distribution([*BEFORE, *value[:at]])[one] for at, one in enumerate(value)])


@DIALECTS
def test_what_values_share_is_asked_once_and_each_question_goes_on_from_one_before(dialect: Dialect) -> None:
    server = Scripted(dialect)
    asyncio.run(Forced(dialect, server.ask).values(BEFORE, VALUES))
    points = {(*BEFORE, *value[: at + 1]) for value in VALUES for at in range(len(value))}
    asked = [(*ids, token) for ids, token in server.asked]
    assert len(asked) == len(set(asked)) and set(asked) <= points
    beginnings = list(dict.fromkeys(ids for ids, _ in server.asked))
    assert beginnings == sorted(beginnings), "depth first, as one slot keeps them"
    told_besides = points - set(asked)
    assert all(len({one for one in points if one[:-1] == point[:-1]}) > 1 for point in told_besides)


@DIALECTS
@pytest.mark.parametrize("fault", ["", "constrained", "free"])
def test_a_server_that_tells_the_constrained_value_or_takes_another_token_is_found_out(
    dialect: Dialect, fault: str
) -> None:
    assert asyncio.run(Forced(dialect, Scripted(dialect, fault).ask).works(BEFORE, 5)) is (not fault)


@DIALECTS
def test_a_token_that_nothing_was_told_of_leaves_its_values_open(dialect: Dialect) -> None:
    found = asyncio.run(Forced(dialect, Scripted(dialect, "silent").ask).values(BEFORE, [(5, 6), (9, 9, 9, 9)]))
    assert found[1] is None
    free = asyncio.run(Forced(dialect, Scripted(dialect, "free").ask).values(BEFORE, [(39,), (38, 1)]))
    assert None in free


@DIALECTS
def test_an_impossible_token_is_as_good_as_impossible_and_not_infinitely_so(dialect: Dialect) -> None:
    (found,) = asyncio.run(Forced(dialect, Scripted(dialect, "underflow").ask).values(BEFORE, [(5,)]))
    assert found == (LEAST,)


@DIALECTS
def test_what_is_no_number_is_not_told(dialect: Dialect) -> None:
    assert asyncio.run(Forced(dialect, Scripted(dialect, "broken").ask).values(BEFORE, VALUES)) == [None] * len(VALUES)


@DIALECTS
def test_a_server_that_computes_the_prompt_anew_is_not_asked_token_by_token(dialect: Dialect) -> None:
    server = Scripted(dialect, "forgetful")
    with pytest.raises(NothingKeptError):
        asyncio.run(Forced(dialect, server.ask).values(BEFORE, VALUES))
    assert len(server.asked) <= 1 + len({value[0] for value in VALUES})


# --- llama.cpp --------------------------------------------------------------------------------------------------------


def needs_llama() -> Any:
    with patient_threads():
        return pytest.importorskip("xllamacpp")


class Chat:
    n_tokens, sha256, max_tokens = None, "", 2

    def __init__(self, content: str) -> None:
        self._content = content

    def messages(self) -> list[Message]:
        return [Message(role="user", content=self._content)]

    def text(self) -> str:
        raise AssertionError("rendered by someone else's template")

    def token_ids(self) -> Any:
        raise AssertionError("tokens of someone else's vocabulary")


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_llama()
    folder = tmp_path_factory.mktemp("noisy")
    return write_gguf(folder / "noisy.gguf", byte_level_vocabulary(), noise=1, **{"llama.context_length": 8_192})


def test_the_embedded_engine_tells_what_its_whole_distribution_says(noisy: Path) -> None:
    prompt, lead, values = Chat("Hello world. " * 30), "The", [" word", " world", " 17", "北京", "北方", "é"]

    async def run() -> tuple[list[Any], list[list[float]]]:
        model = LlamaCppModel(noisy, threads=1)
        try:
            endpoint = await model.connect()
            assert {"logprob"} <= endpoint.capabilities and isinstance(model, TellsLogprobs)
            found = await model.logprob(prompt, values, lead=lead)
            assert found == await model.logprob(prompt, values, lead=lead), "whatever was asked before"
            ids = list(await model._ids(prompt))
            n_tokens, n_lead = len(byte_level_vocabulary()["tokenizer.ggml.tokens"]), endpoint.tokenizer.count(lead)
            client = (await model._ready(0)).client
            anchor = anchor_of(endpoint.tokenizer)
            everything = {"n_predict": 1, "temperature": 0, "n_probs": n_tokens, "logit_bias": [[anchor, 1e6]]}
            wanted: list[list[float]] = []
            for value in values:
                way = list(endpoint.tokenizer.encode(lead + value).ids)
                wanted.append([])
                for at in range(n_lead, len(way)):
                    answer = (await client.post("/completion", json={"prompt": ids + way[:at], **everything})).json()
                    told = {one["id"]: one["logprob"] for one in answer["completion_probabilities"][0]["top_logprobs"]}
                    wanted[-1].append(told[way[at]])
            return found, wanted
        finally:
            await model.close()

    found, wanted = asyncio.run(run())
    for told, known in zip(found, wanted, strict=True):
        assert told == pytest.approx(known, abs=2e-3)
    assert sum(map(len, found)) > 2 * len(values) and len({round(one, 3) for told in found for one in told}) > 4, (
        "noise, so that no two are alike"
    )


def settings_of(tmp_path: Path, **more: Any) -> dict[str, Any]:
    text = tmp_path / "text.txt"
    text.write_text(english_prose(200))
    return {
        "lengths": "1200,1500",
        "depths": "0,50,100",
        "corpus": [str(text)],
        "needle_set": "number",
        "metric": "logprob",
        "max_tokens": 2,
        "work_dir": str(tmp_path / "runs"),
        "report": "none",
        **more,
    }


def test_a_whole_run_on_a_gguf_has_a_margin_for_each_trial_and_shares_prefixes_as_without(
    noisy: Path, tmp_path: Path
) -> None:
    with_margins = needlepoint.run_task(settings_of(tmp_path, model=str(noisy)))
    margins = [reply.margin for _, reply, _ in with_margins.trials()]
    assert len(margins) == 6 and all(margin is not None and math.isfinite(margin.value) for margin in margins)
    assert with_margins.report["margin"]["overall"]["n"] == 6
    without = needlepoint.run_task(settings_of(tmp_path, model=str(noisy), metric="accuracy"))
    assert with_margins.report["prefix"] == without.report["prefix"]
    assert without.report["prefix"]["prefilled_tokens"] == without.report["prefix"]["bound_tokens"]


@contextmanager
def llama_server(path: Path) -> Iterator[str]:
    """llama.cpp's own server on a port of this machine, with its own settings, as people start it."""
    xllamacpp = needs_llama()
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.port = 8_192, 2, 0
    params.hostnames = ["127.0.0.1"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.fit_params = params.warmup = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    try:
        yield str(server.listening_address)
    finally:
        del server


def test_a_llama_cpp_server_tells_margins_over_http_without_computing_prompts_again(
    noisy: Path, tmp_path: Path
) -> None:
    prompt, lead, values = Chat("Hello world. " * 30), "The", [" word", " 17"]

    async def both(url: str) -> tuple[Any, Any, Any]:
        remote, own = OpenAIModel("noisy", api_url=url, logprobs=True), LlamaCppModel(noisy, threads=1)
        try:
            endpoint = await remote.connect()
            told = await remote.logprob(prompt, values, lead=lead)
            return endpoint, told, await own.logprob(prompt, values, lead=lead)
        finally:
            await remote.close()
            await own.close()

    with llama_server(noisy) as url:
        endpoint, told, wanted = asyncio.run(both(url))
        assert "logprob" in endpoint.capabilities and endpoint.facts["logprobs"] == "forced"
        for one, other in zip(told, wanted, strict=True):
            assert one == pytest.approx(other, abs=2e-3)
        result = needlepoint.run_task(settings_of(tmp_path, model="noisy", api_url=url, eval_batch_size=2))
    assert result.report["margin"]["overall"]["n"] == 6


# --- what the engine can take back ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def windowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_llama()
    path = tmp_path_factory.mktemp("windowed") / "windowed.gguf"
    return write_gguf(path, byte_level_vocabulary(), noise=2, window=64, **{"gemma2.context_length": 8_192})


def test_prompts_share_prefixes_where_layers_have_a_window(windowed: Path, tmp_path: Path) -> None:
    header = read_gguf_header(windowed)
    assert (header.window, header.has_states, header.cached_values) == (64, False, 2 * 2 * (16 + 16))
    found = needlepoint.run_task(settings_of(tmp_path, model=str(windowed))).report
    assert found["prefix"]["prefilled_tokens"] == found["prefix"]["bound_tokens"] < found["prefix"]["naive_tokens"]
    assert found["margin"]["overall"]["n"] == 6


def test_where_memory_is_short_windows_stay_windows_and_that_is_said(
    windowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llamacpp, "free_bytes", lambda: 500_000)
    with pytest.raises(UsageError, match=r"--metric logprob would compute all of a prompt .* smaller --max-model-len"):
        needlepoint.run_task(settings_of(tmp_path, model=str(windowed)))
    said: list[str] = []
    settings = settings_of(tmp_path, model=str(windowed), metric="accuracy")
    found = needlepoint.run_task(settings, notify=said.append).report
    assert any("Every prompt is computed whole" in line and "--max-model-len" in line for line in said)
    prefix = found["prefix"]
    assert prefix["prefilled_tokens"] == prefix["planned_tokens"] == prefix["naive_tokens"]


def test_a_model_that_keeps_states_is_told_as_one_that_shares_nothing(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "states.gguf", byte_level_vocabulary(), **{"llama.ssm.state_size": 16})
    assert read_gguf_header(path).has_states
    assert (cache_by_name(str(path), None), cache_by_name("smollm2", None)) == ("none", "slot")

    async def run() -> Any:
        model = LlamaCppModel(path, threads=1)
        try:
            endpoint = await model.connect()
            (reply,) = [one async for one in model.ask([Chat("Hello")], Sampling(max_tokens=2))]
            return endpoint, reply
        finally:
            await model.close()

    needs_llama()
    endpoint, reply = asyncio.run(run())
    assert endpoint.cache == "none" and "logprob" not in endpoint.capabilities
    assert any("computes every prompt of it whole" in note for note in endpoint.notes) and reply.error is None
