"""The simulated model: it reads, it finds what the text says, and its recall is the surface that it says it has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from needlepoint.ask.models.reading import find, question_and_text, read, sentence_around, terms_of
from needlepoint.ask.models.recall import Recall
from needlepoint.ask.models.simulated import SimulatedModel, Spec
from needlepoint.errors import TokenizerError, UsageError
from needlepoint.plan.grid import Grid
from needlepoint.plan.needles import DRAWN_KINDS, FIXED_SETS
from needlepoint.plan.prompt import Prompt
from needlepoint.plan.task import Plan, Task
from needlepoint.types import VALID_OUTCOMES, Corpus, Endpoint, Message, Model, Reply, Sampling

SAMPLING = Sampling(max_tokens=512)
GRID = Grid.from_specs("600,1500", "0:100:3")


async def collect(replies: AsyncIterator[Reply]) -> list[Reply]:
    return [reply async for reply in replies]


def asked(spec: str, prompts: Sequence[Any], sampling: Sampling = SAMPLING, **settings: Any) -> list[Reply]:
    return asyncio.run(collect(SimulatedModel(spec, **settings).ask(prompts, sampling)))


@pytest.fixture(scope="session")
def endpoint() -> Endpoint:
    return asyncio.run(SimulatedModel().connect())


def planned(endpoint: Endpoint, corpora: Sequence[Corpus], **task: Any) -> list[Prompt]:
    return list(Plan(Task(**{"grid": GRID, **task}), corpora, endpoint, verify="none"))


def states(reply: Reply, prompt: Prompt) -> bool:
    return bool(prompt.answers) and all(answer in reply.text for answer in prompt.answers)


def chat(text: str, question: str) -> list[Message]:
    user = f"<text>\n{text}\n</text>\n\n<question>\n{question}\n</question>\n\nBe short."
    return [Message(role="system", content="Help."), Message(role="user", content=user)]


class Given:
    """A prompt that is nothing but its messages."""

    n_tokens = None
    max_tokens = None
    sha256 = ""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages

    def messages(self) -> list[Message]:
        return self._messages

    def text(self) -> str:
        raise AssertionError("a model that reads messages needs no rendered text")

    def token_ids(self) -> Any:
        raise AssertionError("a simulated model counts for itself")


# --- it reads -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "count"),
    [*((kind, 1) for kind in FIXED_SETS), *((kind, count) for kind in DRAWN_KINDS for count in (1, 3))],
)
def test_a_perfect_model_answers_every_cell(
    endpoint: Endpoint, english: Corpus, chinese: Corpus, kind: str, count: int
) -> None:
    prompts = planned(endpoint, [english, chinese], needle_set=kind, needle_count=count, replicates=3)
    assert len(prompts) == 36
    for prompt, reply in zip(prompts, asked("perfect", prompts), strict=True):
        assert states(reply, prompt), (prompt.cell, prompt.question, prompt.answers, reply.text)
        assert reply.finish == "stop"


def test_needles_of_the_users_own_are_found_by_what_the_question_asks(endpoint: Endpoint, english: Corpus) -> None:
    needles = (
        " Figs are one of the secret ingredients needed to build the perfect pizza. ",
        " Prosciutto is one of the secret ingredients needed to build the perfect pizza. ",
        " Goat cheese is one of the secret ingredients needed to build the perfect pizza. ",
    )
    question = "What are the secret ingredients needed to build the perfect pizza?"
    prompts = planned(endpoint, [english], needles=needles, question=question)
    for prompt, reply in zip(prompts, asked("perfect", prompts), strict=True):
        assert states(reply, prompt), (prompt.cell, reply.text)


def test_in_the_parity_mode_it_reads_as_well(endpoint: Endpoint, english: Corpus, chinese: Corpus) -> None:
    prompts = planned(endpoint, [english, chinese], length_mode="evalscope")
    for prompt, reply in zip(prompts, asked("perfect", prompts), strict=True):
        assert prompt.answers[0] in reply.text


@pytest.mark.parametrize(
    "template",
    [
        "{context}\n\nQ: {question}\nA:",
        "{question}\n\n{context}",
        "Text:\n{context}\nNow tell me: {question} Be brief.",
    ],
)
def test_another_prompt_template_is_understood(
    endpoint: Endpoint, english: Corpus, chinese: Corpus, template: str
) -> None:
    prompts = planned(endpoint, [english, chinese], prompt_template=template, needle_set="number")
    for prompt, reply in zip(prompts, asked("perfect", prompts), strict=True):
        assert states(reply, prompt), (prompt.cell, prompt.question, reply.text)


def test_what_the_text_does_not_say_is_not_made_up(endpoint: Endpoint, english: Corpus, chinese: Corpus) -> None:
    for corpus, question, words in (
        (english, "What is the membership number of Perrin Coldwether?", "does not mention"),
        (english, "What is the best thing to do in San Francisco?", "does not mention"),
        (chinese, "叶立言的会员编号是多少？", "没有提到"),
    ):
        (reply,) = asked("perfect", [Given(chat(corpus.text[:20_000], question))])
        assert words in reply.text


def test_the_answer_is_never_handed_over() -> None:
    """What stands in the question alone, or in the system message, is no answer."""
    messages = chat("It rained all day. The miller slept.", "What is the site number of Elm Mill?")
    messages[0]["content"] = "The site number of Elm Mill is 4827193."
    (reply,) = asked("perfect", [Given(messages)])
    assert "4827193" not in reply.text


@pytest.mark.parametrize("count", [3, 4])
def test_of_several_facts_each_is_found_at_its_own_depth(endpoint: Endpoint, english: Corpus, count: int) -> None:
    prompts = planned(endpoint, [english], needle_set="number", needle_count=count, grid=Grid.from_specs("4000", "20"))
    for prompt in prompts:
        reading = read(prompt.messages())
        assert len(reading.findings) == count
        found = sorted(one.depth for one in reading.findings)
        wanted = sorted(one.achieved_depth_percent / 100 for one in prompt.placements)
        assert found == pytest.approx(wanted, abs=0.03)


@pytest.mark.slow
def test_a_million_tokens_are_read_in_about_a_second_a_megabyte(prose: dict[str, Callable[..., str]]) -> None:
    for language, n_sentences, question, needle in (
        ("en", 70_000, "What is the site number of Elm Mill?", "The site number of Elm Mill is 4827193."),
        ("zh", 70_000, "叶立言的会员编号是多少？", "叶立言的会员编号为9258571。"),
        (
            "en",
            70_000,
            "What did the old gardener measure, the copper kettle or three gates?",
            "The gardener measured.",
        ),
    ):
        text = prose[language](n_sentences)
        middle = sentence_around(text, len(text) // 2)[1]
        messages = chat(text[:middle] + needle + text[middle:], question)
        started = time.process_time()
        reading = read(messages)
        elapsed_s = time.process_time() - started
        assert reading.findings
        assert elapsed_s < 2.0 * len(text.encode()) / 1e6, (language, elapsed_s)
        if "4827193" in needle or "9258571" in needle:
            assert reading.findings[0].depth == pytest.approx(0.5, abs=0.01)


def test_a_question_is_taken_apart_into_what_it_is_about() -> None:
    assert terms_of("What is the best thing to do in San Francisco?") == ["best", "thing", "san", "francisco"]
    assert terms_of("在青岛，最惬意的事是什么？") == ["青岛", "最惬", "惬意", "事"]


def test_a_question_without_tags_is_found_at_either_end() -> None:
    text = "Is it late? the clerk asked. " * 300
    assert question_and_text(f"{text}\n\nWho came first?")[0] == "Who came first?"
    assert question_and_text(f"Who came first?\n\n{text}")[0].startswith("Who came first")
    assert question_and_text("")[0] == ""
    assert list(find("", "")) == []


# --- its recall is what it says -------------------------------------------------------------------------------------


def test_the_measured_curve_of_a_cliff_is_its_recall(endpoint: Endpoint, english: Corpus) -> None:
    model = SimulatedModel("cliff,at=1500,width=2,seed=4")
    prompts = planned(
        endpoint,
        [english],
        needle_set="number",
        grid=Grid.from_specs("500,1000,1500,2000,4000,6000", "0:100:5"),
        replicates=20,
    )
    replies = asyncio.run(collect(model.ask(prompts, SAMPLING)))
    rows = sorted((prompt.n_tokens, states(reply, prompt)) for prompt, reply in zip(prompts, replies, strict=True))
    seen = {length: [found for _, found in group] for length, group in groupby(rows, key=lambda row: row[0])}
    assert list(seen) == [500, 1000, 1500, 2000, 4000, 6000]
    for length, found in seen.items():
        truth = model.recall(length, 0.5)
        error = 4 * (truth * (1 - truth) / len(found)) ** 0.5
        assert abs(sum(found) / len(found) - truth) <= error + 0.005, (length, truth, sum(found) / len(found))
    rates = [sum(found) / len(found) for found in seen.values()]
    assert rates[0] > 0.85 and rates[-1] < 0.15


def test_a_sharp_cliff_finds_all_up_to_its_edge_and_nothing_behind(endpoint: Endpoint, chinese: Corpus) -> None:
    prompts = planned(endpoint, [chinese], needle_set="native", grid=Grid.from_specs("1000,1001", "0:100:5"))
    for prompt, reply in zip(prompts, asked("cliff,at=1k", prompts), strict=True):
        assert states(reply, prompt) == (prompt.n_tokens == 1000)


def test_what_is_lost_in_the_middle_is_the_middle(endpoint: Endpoint, english: Corpus) -> None:
    prompts = planned(endpoint, [english], needle_set="number", grid=Grid.from_specs("4000", "0:100:5"), replicates=60)
    replies = asked("middle,dip=0.9,short=500,long=4k", prompts)
    found: dict[float, list[bool]] = {}
    for prompt, reply in zip(prompts, replies, strict=True):
        found.setdefault(prompt.cell.depth_percent, []).append(states(reply, prompt))
    rates = [sum(found[depth]) / len(found[depth]) for depth in (0, 25, 50, 75, 100)]
    truth = [
        SimulatedModel("middle,dip=0.9,short=500,long=4k").recall(4000, depth) for depth in (0, 0.25, 0.5, 0.75, 1)
    ]
    assert truth == pytest.approx([1, 0.325, 0.1, 0.325, 1])
    assert rates == pytest.approx(truth, abs=0.2)


@pytest.mark.parametrize(
    ("recall", "length", "depth", "value"),
    [
        (Recall.of("perfect"), 1e6, 0.5, 1),
        (Recall.of("cliff", at=16_000), 16_000, 0, 1),
        (Recall.of("cliff", at=16_000), 16_001, 0, 0),
        (Recall.of("cliff", at=16_000, floor=0.2), 99_000, 0, 0.2),
        (Recall.of("cliff", at=16_000, width=2.0), 16_000, 0, 0.5),
        (Recall.of("cliff", at=16_000, width=2.0), 32_000, 0, 0.2),
        (Recall.of("middle", dip=0.8), 32_000, 0.5, 0.2),
        (Recall.of("middle", dip=0.8), 1_000, 0.5, 1),
        (Recall.of("middle", dip=0.8), 10**9, 1, 1),
        (Recall.of("slope", start=1_000, end=4_000), 2_000, 0.3, 0.5),
        (Recall.of("noise", p=0.25), 5, 0.3, 0.75),
        (Recall.of("cliff+noise", at=10, p=0.25), 10, 0.3, 0.75),
        (Recall.of("cliff+noise", at=10, p=0.25), 11, 0.3, 0),
    ],
)
def test_a_surface_has_the_values_of_its_formula(recall: Recall, length: float, depth: float, value: float) -> None:
    assert recall(length, depth) == pytest.approx(value)


def test_what_is_not_recalled_is_missed_in_the_ways_of_models(endpoint: Endpoint, english: Corpus) -> None:
    prompts = planned(endpoint, [english], needle_set="number", replicates=30)
    replies = asked("noise,p=1", prompts)
    assert not any(states(reply, prompt) for prompt, reply in zip(prompts, replies, strict=True))
    denied = sum("does not mention" in reply.text for reply in replies)
    empty = sum(not reply.text for reply in replies)
    quoted = sum(reply.text in prompt.context() for prompt, reply in zip(prompts, replies, strict=True) if reply.text)
    assert denied > 40 and quoted > 40 and empty > 1
    for miss, words in (("not_found", "does not mention"), ("empty", "")):
        assert all(
            (words in one.text) and bool(one.text) == bool(words) for one in asked(f"noise,p=1,miss={miss}", prompts)
        )


# --- it is the same every time --------------------------------------------------------------------------------------


def test_one_seed_gives_the_same_replies_in_any_order_and_another_seed_gives_others(
    endpoint: Endpoint, english: Corpus
) -> None:
    prompts = planned(endpoint, [english], replicates=5)
    texts = [reply.text for reply in asked("noise,p=0.5,cache=off", prompts)]
    assert [reply.text for reply in asked("noise,p=0.5,cache=off", prompts[::-1])] == texts[::-1]
    assert [reply.text for reply in asked("noise,p=0.5,seed=1", prompts)] != texts
    assert asked("noise,p=0.5,latency=0.001,jitter=0.5", prompts) == asked(
        "noise,p=0.5,latency=0.001,jitter=0.5", prompts
    )


def test_a_repeat_is_drawn_anew(endpoint: Endpoint, english: Corpus) -> None:
    (prompt, *_) = planned(endpoint, [english])
    prompts = [replace(prompt, repeat=repeat) for repeat in range(40)]
    found = sum(states(reply, prompt) for reply in asked("noise,p=0.5", prompts))
    assert 5 < found < 35


# --- it counts ------------------------------------------------------------------------------------------------------


def test_it_counts_the_prompt_as_the_plan_does(endpoint: Endpoint, english: Corpus, chinese: Corpus) -> None:
    prompts = planned(endpoint, [english, chinese])
    for prompt, reply in zip(prompts, asked("perfect", prompts), strict=True):
        assert reply.usage.prompt == prompt.n_tokens == prompt.cell.context_length
    assert endpoint.proven


def test_its_prefix_cache_holds_the_last_prompt(endpoint: Endpoint, english: Corpus) -> None:
    prompts = planned(endpoint, [english], grid=Grid.from_specs("1000,2000", "50,50.5,100"))
    ids = [list(prompt.token_ids()) for prompt in prompts]
    replies = asked("perfect", prompts)
    assert replies[0].usage.cached == 0
    for before, now, reply in zip(ids, ids[1:], replies[1:], strict=False):
        differ = (at for at in range(len(now)) if before[at : at + 1] != now[at : at + 1])
        shared = min(next(differ, len(now)), len(now) - 1)
        assert (reply.usage.cached, reply.prefilled_tokens) == (shared, len(now) - shared)
    again = asked("perfect", [prompts[0], prompts[0]])[1]
    assert again.prefilled_tokens == 1
    assert asked("perfect,cache=off", prompts[:1])[0].usage.cached is None


def test_an_answer_ends_where_it_may_not_go_on(endpoint: Endpoint, english: Corpus) -> None:
    (prompt, *_) = planned(endpoint, [english])
    (reply,) = asked("perfect", [prompt], Sampling(max_tokens=5))
    assert (reply.finish, reply.usage.completion) == ("length", 5)
    assert 0 < len(reply.text) < 60
    (reply,) = asked("perfect", [replace(prompt, max_tokens=3)], Sampling(max_tokens=500))
    assert reply.usage.completion == 3


def test_reasoning_can_eat_all_the_room(endpoint: Endpoint, english: Corpus) -> None:
    prompts = planned(endpoint, [english])
    for prompt, reply in zip(prompts, asked("perfect,reasoning=20", prompts), strict=True):
        assert states(reply, prompt) and reply.reasoning and reply.usage.reasoning
        assert reply.usage.completion is not None and reply.usage.completion > reply.usage.reasoning
    for reply in asked("perfect,reasoning=5k", prompts, Sampling(max_tokens=100)):
        assert (reply.text, reply.finish, reply.usage.reasoning) == ("", "length", 100)


# --- it fails -------------------------------------------------------------------------------------------------------


def test_what_it_says_to_take_and_what_it_takes(endpoint: Endpoint, english: Corpus) -> None:
    prompts = planned(endpoint, [english])
    for spec, told in (("perfect,limit=1k", 1000), ("perfect,hidden_limit=1k", None)):
        assert asyncio.run(SimulatedModel(spec).connect()).limit_tokens == told
        for prompt, reply in zip(prompts, asked(spec, prompts, Sampling(max_tokens=100)), strict=True):
            if prompt.n_tokens + 100 > 1000:
                assert reply.error is not None and reply.error.kind == "overflow" and "1000" in reply.error.message
            else:
                assert reply.error is None


def test_faults_come_at_their_rates_and_another_attempt_is_drawn_anew(endpoint: Endpoint, english: Corpus) -> None:
    prompts = planned(endpoint, [english], replicates=50)
    model = SimulatedModel("perfect,server=20%,rate_limit=0.2,retry_after=7,connection=0.1")

    async def thrice() -> list[list[Reply]]:
        return [await collect(model.ask(prompts, SAMPLING)) for _ in range(3)]

    rounds = asyncio.run(thrice())
    for replies in rounds:
        kinds = [reply.error.kind for reply in replies if reply.error]
        share = {kind: kinds.count(kind) / len(prompts) for kind in set(kinds)}
        assert share == pytest.approx({"server": 0.2, "rate_limit": 0.2, "connection": 0.1}, abs=0.08)
        assert {reply.error.retry_after_s for reply in replies if reply.error and reply.error.status == 429} == {7}
    texts = [{reply.text for reply in replies if not reply.error} for replies in zip(*rounds, strict=True)]
    assert all(len(text) <= 1 for text in texts)  # whenever it gets through, the answer is the same


def test_a_truncated_prompt_is_read_and_counted_without_its_first_half(endpoint: Endpoint, english: Corpus) -> None:
    prompts = planned(endpoint, [english], grid=Grid.from_specs("2000", "0:100:3"))
    first, _, last = asked("perfect,truncate=1", prompts)
    assert first.usage.prompt is not None and first.usage.prompt < 1200
    assert "does not mention" in first.text
    assert states(last, prompts[2])


def test_gibberish_is_an_answer(endpoint: Endpoint, english: Corpus) -> None:
    prompts = planned(endpoint, [english])
    for prompt, reply in zip(prompts, asked("perfect,gibberish=1", prompts), strict=True):
        assert reply.text and not reply.error and not states(reply, prompt)


def test_a_hanging_one_can_be_left(endpoint: Endpoint, english: Corpus) -> None:
    async def leave() -> None:
        async with asyncio.timeout(0.05):
            await collect(SimulatedModel("perfect,hang=1").ask(planned(endpoint, [english])[:1], SAMPLING))

    with pytest.raises(TimeoutError):
        asyncio.run(leave())


def test_it_takes_the_time_that_it_says(endpoint: Endpoint, english: Corpus) -> None:
    (prompt, *_) = planned(endpoint, [english])
    started = time.monotonic()
    (reply,) = asked("perfect,latency=0.02,prefill=100000,speed=10000", [prompt])
    assert reply.times.first_token == pytest.approx(0.02 + prompt.n_tokens / 100_000)
    assert reply.times.total is not None and reply.times.total > reply.times.first_token
    assert time.monotonic() - started >= reply.times.total * 0.9


# --- what can be asked for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("clif", "Did you mean 'cliff'"),
        ("cliff,at", "NAME=VALUE"),
        ("cliff,att=3", "Did you mean 'at'"),
        ("cliff,at=x", "at"),
        ("noise,p=2", "from 0 to 1"),
        ("noise,p=nan", "from 0 to 1"),
        ("perfect,p=0.1", "no setting 'p'"),
        ("perfect,miss=lost", "must be one of"),
        ("perfect,cache=maybe", "on or off"),
        ("cliff+mud", "mud"),
    ],
)
def test_a_setting_that_is_wrong_is_named(spec: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SimulatedModel(spec)


@pytest.mark.parametrize("spec", ["simulated", "simulated:perfect", "simulated:", "", "perfect", "simulated:seed=0"])
def test_without_more_words_it_is_perfect(spec: str) -> None:
    assert Spec.of(spec).recall(10**9, 0.5) == 1


def test_any_packaged_tokenizer_can_be_its_own(english: Corpus) -> None:
    model = SimulatedModel("perfect,tokenizer=cl100k")
    endpoint = asyncio.run(model.connect())
    prompts = planned(endpoint, [english], prompt_template="{context}\n\n{question}")
    for prompt, reply in zip(prompts, asyncio.run(collect(model.ask(prompts, SAMPLING))), strict=True):
        assert states(reply, prompt)
        assert reply.usage.prompt == prompt.n_tokens
    with pytest.raises(TokenizerError, match="packaged"):
        asyncio.run(SimulatedModel("perfect,tokenizer=nonesuch").connect())


def test_it_is_a_model_and_its_replies_are_of_valid_kinds() -> None:
    assert isinstance(SimulatedModel(), Model)
    assert "correct" in VALID_OUTCOMES
