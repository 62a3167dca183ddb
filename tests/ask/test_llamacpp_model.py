"""The embedded engine as a model that is asked: one slot, exact tokens, shared prefixes, and a clean end at any moment.

The models are toys of zeros that answer with one token again and again; those marked `model` are the real SmolLM2.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from needlepoint.ask.models.llama_engine import BATCH_TOKENS, TILE_TOKENS, Engine, first_part
from needlepoint.ask.models.llama_reply import body_of, failure_of, options_of, reply_of, trimmed
from needlepoint.ask.models.llamacpp import LlamaCppModel
from needlepoint.ask.models.machine import cores
from needlepoint.errors import TokenizerError, UsageError
from needlepoint.plan.grid import Grid
from needlepoint.plan.prompt import Prompt
from needlepoint.plan.task import Plan, Task
from needlepoint.types import Askable, Corpus, Endpoint, Message, Reply, Sampling, Times

from .toy_gguf import CHATML, byte_level_vocabulary, sentencepiece_vocabulary, write_gguf

pytest.importorskip("xllamacpp")

SAMPLING = Sampling(max_tokens=4)
THINKER = CHATML + "{{ '<think>\\n' if enable_thinking is not defined or enable_thinking else '' }}"


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toys")
    return write_gguf(folder / "toy.gguf", byte_level_vocabulary(), **{"llama.context_length": 65_536})


async def collect(replies: AsyncIterator[Reply]) -> list[Reply]:
    return [reply async for reply in replies]


def planned(endpoint: Endpoint, corpus: Corpus, **task: Any) -> list[Prompt]:
    return list(Plan(Task(**{"grid": Grid.from_specs("1500,2000", "0:100:3"), **task}), [corpus], endpoint))


def depth_first(prompts: Sequence[Prompt]) -> list[Prompt]:
    return sorted(prompts, key=lambda prompt: list(prompt.token_ids()))


def trie(prompts: Sequence[Prompt]) -> int:
    """Tokens of the trie of all prompts: what must be computed at least."""
    return len({tuple(ids[: n + 1]) for ids in map(list, (p.token_ids() for p in prompts)) for n in range(len(ids))})


class Given:
    """A prompt that is nothing but its messages."""

    n_tokens = None
    sha256 = ""

    def __init__(self, *contents: str, max_tokens: int | None = None) -> None:
        self._messages = [Message(role="user", content=content) for content in contents]
        self.max_tokens = max_tokens

    def messages(self) -> list[Message]:
        return self._messages

    def text(self) -> str:
        raise AssertionError("rendered by someone else's template")

    def token_ids(self) -> Any:
        raise AssertionError("tokens of someone else's vocabulary")


def asked(path: Path, prompts: Sequence[Askable], sampling: Sampling = SAMPLING, **settings: Any) -> list[Reply]:
    async def ask() -> list[Reply]:
        model = LlamaCppModel(path, **settings)
        try:
            return await collect(model.ask(prompts, sampling))
        finally:
            await model.close()

    return asyncio.run(ask())


# --- tokens ---------------------------------------------------------------------------------------------------------


def test_the_engine_gets_the_very_tokens_of_the_plan_and_computes_no_prefix_twice(toy: Path, english: Corpus) -> None:
    async def ask() -> tuple[list[Prompt], list[Reply]]:
        model = LlamaCppModel(toy, threads=1)
        try:
            prompts = depth_first(planned(await model.connect(), english))
            model.reserve(max(prompt.n_tokens for prompt in prompts) + SAMPLING.max_tokens)
            return prompts, await collect(model.ask(prompts, SAMPLING))
        finally:
            await model.close()

    prompts, replies = asyncio.run(ask())
    assert len(prompts) == 6
    for prompt, reply in zip(prompts, replies, strict=True):
        assert reply.error is None
        assert reply.usage.prompt == prompt.n_tokens
        assert reply.usage.completion == 4 and reply.finish == "length"
        assert reply.usage.cached is not None and reply.prefilled_tokens is not None
        assert reply.usage.cached + reply.prefilled_tokens == prompt.n_tokens
    assert sum(reply.prefilled_tokens or 0 for reply in replies) == trie(prompts)


@pytest.mark.parametrize("vocabulary", [byte_level_vocabulary, sentencepiece_vocabulary])
@pytest.mark.parametrize("bos", [False, True])
def test_messages_made_for_another_tokenizer_are_counted_as_this_one_counts_a_chat(
    tmp_path: Path, vocabulary: Callable[..., dict[str, Any]], bos: bool
) -> None:
    path = write_gguf(tmp_path / "toy.gguf", vocabulary(**{"tokenizer.ggml.add_bos_token": bos}))
    prompt = Given("Hello world, hello. " * 20)

    async def both() -> tuple[int, Reply]:
        model = LlamaCppModel(path, threads=1)
        try:
            endpoint = await model.connect()
            assert endpoint.render is not None
            count = endpoint.tokenizer.count(endpoint.render(prompt.messages()), special=True)
            (reply,) = await collect(model.ask([prompt], SAMPLING))
            return count, reply
        finally:
            await model.close()

    count, reply = asyncio.run(both())
    assert reply.error is None and reply.usage.prompt == count


def test_a_prompt_longer_than_the_limit_is_not_asked(toy: Path) -> None:
    long, short = Given("Hello " * 400), Given("Hello")
    first, second = asked(toy, [long, short], n_ctx=300)
    assert first.error is not None and first.error.kind == "overflow" and "300" in first.error.message
    assert second.error is None


def test_the_limit_is_the_smaller_of_the_files_and_the_users(toy: Path) -> None:
    async def limit(n_ctx: int | None) -> int | None:
        model = LlamaCppModel(toy, n_ctx=n_ctx)
        try:
            return (await model.connect()).limit_tokens
        finally:
            await model.close()

    assert [asyncio.run(limit(n)) for n in (None, 300, 100_000)] == [65_536, 300, 65_536]


def test_the_context_is_as_large_as_was_said_and_grows_where_nothing_was(toy: Path) -> None:
    async def sizes(reserved: int) -> list[int]:
        model = LlamaCppModel(toy, threads=1)
        model.reserve(reserved)
        found = []
        try:
            for words in (10, 300, 900):
                (reply,) = await collect(model.ask([Given("Hello" * words)], SAMPLING))
                assert reply.error is None and model._slot is not None
                found.append(model._slot.engine.n_ctx)
        finally:
            await model.close()
        return found

    assert asyncio.run(sizes(2000)) == [2048, 2048, 2048]
    grown = asyncio.run(sizes(0))
    assert grown == sorted(grown) and grown[0] == 256 < grown[-1] <= 2048


def test_switches_of_the_chat_template_are_given_before_prompts_are_made(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "toy.gguf", byte_level_vocabulary(**{"tokenizer.chat_template": THINKER}))

    async def rendered(**settings: Any) -> tuple[str, bool, Reply]:
        model = LlamaCppModel(path, threads=1, **settings)
        try:
            endpoint = await model.connect()
            assert endpoint.render is not None
            (reply,) = await collect(model.ask([Given("Hello")], SAMPLING))
            return endpoint.render([Message(role="user", content="Hello")]), endpoint.proven, reply
        finally:
            await model.close()

    text, proven, reply = asyncio.run(rendered(template_options={"enable_thinking": True}))
    assert text.endswith("<think>\n") and proven
    assert (reply.text, len(reply.reasoning or ""), reply.finish) == ("", 4, "length")
    text, proven, reply = asyncio.run(rendered(template_options={"enable_thinking": False}))
    assert not text.endswith("<think>\n") and proven
    assert (len(reply.text), reply.reasoning) == (4, None)
    with pytest.raises(UsageError, match="chat_template_kwargs"):
        asked(path, [Given("x")], Sampling(max_tokens=1, options={"chat_template_kwargs": {"enable_thinking": False}}))


# --- its manners ----------------------------------------------------------------------------------------------------


@contextmanager
def no_new_threads() -> Iterator[None]:
    def count() -> int:
        return (
            sum(1 for _ in Path("/proc/self/task").iterdir())
            if Path("/proc/self/task").is_dir()
            else threading.active_count()
        )

    before = count()
    yield
    deadline = time.monotonic() + 5
    while count() > before + 1 and time.monotonic() < deadline:  # libgomp keeps a pool of its own
        time.sleep(0.05)
    assert count() <= before + 1


def test_the_loop_goes_on_while_the_engine_works(toy: Path) -> None:
    async def beats() -> int:
        model = LlamaCppModel(toy, threads=1)
        count = 0

        async def beat() -> None:
            nonlocal count
            while True:
                await asyncio.sleep(0.01)
                count += 1

        try:
            await collect(model.ask([Given("Hello")], SAMPLING))
            beating = asyncio.create_task(beat())
            started = time.monotonic()
            await collect(model.ask([Given("Hello", max_tokens=2_000)], SAMPLING))
            beating.cancel()
            assert count > 10 * (time.monotonic() - started)
            return count
        finally:
            await model.close()

    assert asyncio.run(beats()) >= 1


def test_the_same_prompt_again_is_computed_whole(toy: Path) -> None:
    async def ask() -> list[int | None]:
        model = LlamaCppModel(toy, threads=1)
        try:
            words = Given("Hello, and once more: hello.")
            replies = await collect(model.ask([words, words, Given("Hello, and no more."), words], SAMPLING))
            return [reply.prefilled_tokens for reply in replies]
        finally:
            await model.close()

    first, again, other, back = asyncio.run(ask())
    assert first is not None and other is not None and back is not None
    assert again == first and other < first and back < first


def test_leaving_in_the_middle_of_an_answer_stops_the_engine(toy: Path) -> None:
    async def leave() -> tuple[float, float]:
        model = LlamaCppModel(toy, threads=1)
        model.reserve(65_000)
        try:
            await collect(model.ask([Given("Hello")], SAMPLING))
            asking = asyncio.create_task(collect(model.ask([Given("Hello", max_tokens=60_000)], SAMPLING)))
            await asyncio.sleep(0.3)
            started = time.monotonic()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            left_s = time.monotonic() - started
            (reply,) = await collect(model.ask([Given("Hello again")], SAMPLING))
            assert reply.error is None
            return left_s, time.monotonic() - started
        finally:
            await model.close()

    left_s, next_s = asyncio.run(leave())
    assert left_s < 1 and next_s < 4


def test_closing_while_it_answers_ends_the_answer(toy: Path) -> None:
    async def close() -> tuple[list[Reply], float]:
        model = LlamaCppModel(toy, threads=1)
        model.reserve(65_000)
        await collect(model.ask([Given("Hello")], SAMPLING))
        asking = asyncio.create_task(collect(model.ask([Given("Hello", max_tokens=60_000)], SAMPLING)))
        await asyncio.sleep(0.3)
        started = time.monotonic()
        await model.close()
        return await asking, time.monotonic() - started

    with no_new_threads():
        (reply,), elapsed_s = asyncio.run(close())
    assert reply.error is not None and reply.error.kind == "stopped"
    assert elapsed_s < 4


def test_the_rest_of_a_wave_can_be_left(toy: Path) -> None:
    async def first() -> Reply:
        model = LlamaCppModel(toy, threads=1)
        try:
            async with aclosing(model.ask([Given("Hello")] * 3, SAMPLING)) as replies:
                return await anext(replies)
        finally:
            await model.close()

    assert asyncio.run(first()).error is None


def test_a_broken_connection_is_the_servers_failure_and_the_next_prompt_gets_a_new_engine(toy: Path) -> None:
    import httpx2

    def broken(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadError("gone")

    async def ask() -> list[Reply]:
        model = LlamaCppModel(toy, threads=1)
        try:
            await collect(model.ask([Given("Hello")], SAMPLING))
            assert model._slot is not None
            await model._slot.client.aclose()
            model._slot.client = httpx2.AsyncClient(transport=httpx2.MockTransport(broken), base_url="http://localhost")
            return await collect(model.ask([Given("Hello"), Given("Hello")], SAMPLING))
        finally:
            await model.close()

    first, second = asyncio.run(ask())
    assert first.error is not None and first.error.kind == "server"
    assert second.error is None


def test_an_engine_that_cannot_start_is_the_servers_failure(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*args: Any, **settings: Any) -> Engine:
        raise TokenizerError("too little memory")

    monkeypatch.setattr("needlepoint.ask.models.llamacpp.Engine", _counting_only(no_memory))
    (reply,) = asked(toy, [Given("Hello")])
    assert reply.error is not None and reply.error.kind == "server" and "memory" in reply.error.message


def _counting_only(refuse: Callable[..., Engine]) -> Callable[..., Engine]:
    def make(*args: Any, **settings: Any) -> Engine:
        return refuse() if settings.get("threads") else Engine(*args, **settings)

    return make


def test_ctrl_c_in_the_middle_leaves_a_quiet_and_quick_end(toy: Path, tmp_path: Path) -> None:
    script = (
        "import asyncio, os, signal, sys, threading\n"
        "from pathlib import Path\n"
        "from needlepoint.ask.models.llamacpp import LlamaCppModel\n"
        "from needlepoint.types import Sampling\n"
        "class Given:\n"
        "    n_tokens, max_tokens, sha256 = None, 60_000, ''\n"
        "    def messages(self): return [{'role': 'user', 'content': 'Hello'}]\n"
        "async def main():\n"
        "    model = LlamaCppModel(Path(sys.argv[1]), threads=1)\n"
        "    try:\n"
        "        await model.connect()\n"
        "        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "        async for reply in model.ask([Given()], Sampling(max_tokens=1)): print(reply)\n"
        "    finally:\n"
        "        await model.close()\n"
        "try: asyncio.run(main())\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    temporary = tmp_path / "t"
    temporary.mkdir()
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(toy)],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
    assert list(temporary.iterdir()) == []
    assert time.monotonic() - started < 10


def test_loading_the_engine_leaves_the_environment_alone(toy: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; before = dict(os.environ)\n"
        "from needlepoint.ask.models.llama_engine import Engine\n"
        "Engine(Path(sys.argv[1])).close(); assert dict(os.environ) == before\n"
    )
    subprocess.run([sys.executable, "-c", script, str(toy)], check=True, timeout=60)


def test_threads_are_at_most_the_cores_that_there_are() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_a_file_that_is_not_there_is_said_by_connect(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="no file"):
        asyncio.run(LlamaCppModel(tmp_path / "none.gguf").connect())


@pytest.mark.parametrize("settings", [{"n_ctx": 0}, {"threads": -1}, {"n_ctx": True}, {"threads": 1.5}])
def test_a_setting_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="whole number"):
        LlamaCppModel("smollm2", **settings)


# --- what is said and what is heard ---------------------------------------------------------------------------------


def options(**given: Any) -> dict[str, Any]:
    return options_of(Sampling(max_tokens=1, options=given))


def test_options_have_the_engines_names_and_are_greedy_where_nothing_is_said() -> None:
    assert options() == {"temperature": 0.0, "seed": 0}
    assert options(temperature=0.7, top_p=0.9, seed=5, stop="\n", repetition_penalty=1.1, mirostat=2) == {
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 5,
        "stop": ["\n"],
        "repeat_penalty": 1.1,
        "mirostat": 2,
    }
    assert options(extra_body={"top_k": 3, "temperature": 0.1}, temperature=1)["temperature"] == 0.1
    assert options(logprobs=True)["n_probs"] == 1
    assert options(logprobs=True, top_logprobs=5)["n_probs"] == 5
    assert options(stream=True, n=1, temperature=None) == options()
    assert body_of([1], 7, options(max_tokens=9))["n_predict"] == 9
    assert body_of([1], 7, options())["n_predict"] == 7


@pytest.mark.parametrize("given", [{"n": 2}, {"messages": []}, {"extra_body": {"prompt": "x"}}, {"extra_body": 3}])
def test_options_that_are_not_the_users_to_set_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        options(**given)


def test_an_answer_is_read_as_far_as_it_is_one() -> None:
    answer = {
        "content": "<think>\nhm\n</think>\n\nParis.<|im_end|>",
        "stop_type": "eos",
        "tokens_evaluated": 50,
        "tokens_predicted": 9,
        "timings": {"cache_n": 20, "prompt_n": 30, "prompt_ms": 1500.0},
        "completion_probabilities": [{"logprob": -0.5}, {"logprob": -1}, {}],
    }
    reply = reply_of(answer, ends=["<|im_end|>"], opened=False, total_s=2.0, queued_s=0.0)
    assert (reply.text, reply.reasoning, reply.finish) == ("Paris.", "hm", "stop")
    assert (reply.usage.prompt, reply.usage.completion, reply.usage.cached) == (50, 9, 20)
    assert (reply.prefilled_tokens, reply.logprobs) == (30, (-0.5, -1.0))
    assert reply.times == Times(queued=0.0, first_token=1.5, total=2.0)
    bare = reply_of({}, ends=[], opened=False, total_s=2.0, queued_s=0.0)
    assert (bare.text, bare.finish, bare.usage.prompt, bare.prefilled_tokens, bare.logprobs) == (
        "",
        None,
        None,
        None,
        None,
    )


def test_control_tokens_are_trimmed_off_the_end_only() -> None:
    assert trimmed("a <|e|> b<|e|>\n<|f|>", ["<|e|>", "<|f|>"]) == "a <|e|> b"
    assert trimmed("a\n", ["<|e|>"]) == "a\n"


def test_refusals_are_told_apart() -> None:
    long = {"error": {"type": "exceed_context_size_error", "message": "request (9 tokens) exceeds"}}
    assert failure_of(400, long).kind == "overflow"
    assert failure_of(400, {"error": {"message": "bad grammar"}}).kind == "bad_request"
    assert failure_of(503, {"error": {"message": "Loading model"}}).kind == "server"
    assert failure_of(500, None).message == "llama.cpp: HTTP 500"


def test_an_option_that_the_engine_refuses_is_a_bad_request(toy: Path) -> None:
    (reply,) = asked(toy, [Given("Hello")], Sampling(max_tokens=1, options={"grammar": "root ::= ("}))
    assert reply.error is not None and reply.error.kind == "bad_request"


def test_log_probabilities_come_where_they_are_asked_for(toy: Path) -> None:
    with_them = asked(toy, [Given("Hello")], Sampling(max_tokens=3, options={"logprobs": True}))
    without = asked(toy, [Given("Hello")])
    assert with_them[0].logprobs is not None and len(with_them[0].logprobs) == 3
    assert without[0].logprobs is None


def test_no_tokens_of_a_prompt_are_computed_among_too_few_where_it_has_enough() -> None:
    for n_new in range(1, 3 * BATCH_TOKENS + 1):
        first = first_part(n_new)
        batches = [
            min(BATCH_TOKENS, end - at)
            for begin, end in ((0, first), (first, n_new))
            for at in range(begin, end, BATCH_TOKENS)
        ]
        assert sum(batches) == n_new and 0 <= first < n_new
        assert n_new < TILE_TOKENS or min(batches) >= TILE_TOKENS
        assert first == 0 or n_new % BATCH_TOKENS < TILE_TOKENS


def test_a_prompt_that_goes_in_two_parts_is_counted_as_one(toy: Path) -> None:
    words = Given("Hello, and once more: hello. " * 12)

    async def ask() -> tuple[int, list[Reply]]:
        model = LlamaCppModel(toy, threads=1)
        try:
            endpoint = await model.connect()
            assert endpoint.render is not None
            count = endpoint.tokenizer.count(endpoint.render(words.messages()), special=True)
            filler = Given("Hello, and once more: hello. " * 12 + "x" * ((4 - count) % BATCH_TOKENS))
            return count, await collect(model.ask([filler, words], SAMPLING))
        finally:
            await model.close()

    count, (first, second) = asyncio.run(ask())
    n_first = first.usage.prompt
    assert n_first is not None and n_first % BATCH_TOKENS == 4 and first_part(n_first)
    assert (first.prefilled_tokens, first.usage.cached) == (n_first, 0)
    assert second.usage.prompt == count == (second.prefilled_tokens or 0) + (second.usage.cached or 0)


# --- the real model -------------------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.slow
def test_the_embedded_model_finds_the_needle_and_counts_as_the_plan_does(english: Corpus) -> None:
    async def ask() -> tuple[list[Prompt], list[Reply]]:
        model = LlamaCppModel("smollm2")
        model.reserve(1_100)
        try:
            endpoint = await model.connect()
            assert endpoint.proven and endpoint.limit_tokens == 8192
            prompts = depth_first(planned(endpoint, english, grid=Grid.from_specs("400,800", "0:100:3")))
            return prompts, await collect(model.ask(prompts, Sampling(max_tokens=48)))
        finally:
            await model.close()

    prompts, replies = asyncio.run(ask())
    for prompt, reply in zip(prompts, replies, strict=True):
        assert reply.usage.prompt == prompt.n_tokens == prompt.cell.context_length
        assert prompt.answers[0] in reply.text, reply.text
        assert reply.times.first_token is not None and reply.times.total is not None
        assert 0 < reply.times.first_token < reply.times.total
    assert sum(reply.prefilled_tokens or 0 for reply in replies) == trie(prompts)
    assert replace(prompts[0], repeat=1).token_ids() == prompts[0].token_ids()


@pytest.mark.model
@pytest.mark.slow
def test_answers_by_reuse_are_those_of_whole_prompts_to_the_last_bit(english: Corpus) -> None:
    """Of lengths whose last batch would have 4 tokens, on kernels that round otherwise then."""

    async def ask(reuse: bool) -> tuple[list[Prompt], list[Reply]]:
        model = LlamaCppModel("smollm2")
        model.reserve(700)
        try:
            grid = Grid.from_specs("516,644", "30,60,100")
            prompts = depth_first(planned(await model.connect(), english, grid=grid))
            sampling = Sampling(max_tokens=6, reuse=reuse, options={"logprobs": True})
            return prompts, await collect(model.ask(prompts, sampling))
        finally:
            await model.close()

    prompts, reused = asyncio.run(ask(True))
    _, whole = asyncio.run(ask(False))
    for one, other in zip(reused, whole, strict=True):
        assert (one.prefilled_tokens or 0) >= TILE_TOKENS
        assert (one.text, one.logprobs) == (other.text, other.logprobs)
    assert sum(reply.prefilled_tokens or 0 for reply in reused) == trie(prompts)
    assert sum(reply.prefilled_tokens or 0 for reply in whole) == sum(prompt.n_tokens for prompt in prompts)
