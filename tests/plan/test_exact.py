from __future__ import annotations

import random
from array import array
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from needlepoint.connect import connect
from needlepoint.errors import LengthError
from needlepoint.plan.exact import fit, tolerance
from needlepoint.plan.grid import Grid
from needlepoint.plan.haystack import Haystack
from needlepoint.plan.prompt import PROMPT_TEMPLATE, SYSTEM_PROMPT, Prompt, frame
from needlepoint.plan.splice import Splicer
from needlepoint.plan.task import Plan, Task
from needlepoint.text.clean import clean
from needlepoint.types import Cell, Corpus, Encoding, Needle

FAMILIES = ["qwen3", "llama3.1", "gemma3", "mistral_v3", "deepseek_v3", "o200k_base", "glm4"]
NEEDLE = Needle(text="The vault code is 4815162.", answers=("4815162",))
OWN_LINE = Needle(text="\nThe vault code is 4815162.\n", answers=("4815162",))


def check(prompt: Prompt, length: int) -> None:
    """Everything that exactness promises, by a count of the whole text."""
    assert prompt.n_tokens == length
    assert prompt.recount() == length
    assert prompt.text() == (prompt.frame.render(prompt.messages()) if prompt.frame.render else prompt.text())
    context = prompt.context()
    assert "\ufffd" not in prompt.text()
    for needle in prompt.needles:
        assert context.count(needle.text) == 1
    for placement in prompt.placements:
        asked = placement.depth_percent / 100 * prompt.hay_tokens
        assert abs(placement.tokens_before - asked) <= tolerance(length)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_prompt_has_exactly_the_asked_tokens(
    family: str, language: str, english: Corpus, chinese: Corpus
) -> None:
    corpus = english if language == "en" else chinese
    grid = Grid(lengths=(256, 1_000, 4_000, 32_000), depths=tuple(range(0, 101, 10)))
    plan = Plan(Task(grid=grid), [corpus], connect(family))
    for prompt in plan:
        check(prompt, prompt.cell.context_length)
        assert prompt.token_ids() == prompt.haystack.tokenizer.encode(prompt.text(), special=True).ids


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES[:5])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_long_prompts_are_exact_too(family: str, language: str, english: Corpus, chinese: Corpus) -> None:
    corpus = english if language == "en" else chinese
    plan = Plan(Task(grid=Grid(lengths=(128_000, 1_000_000), depths=(0, 30, 50, 99, 100))), [corpus], connect(family))
    for prompt in plan:
        check(prompt, prompt.cell.context_length)


def test_the_needle_stands_at_the_nearest_sentence_end(english: Corpus) -> None:
    from needlepoint.text.boundaries import sentence_ends

    plan = Plan(
        Task(grid=Grid(lengths=(8_000,), depths=(10, 35, 50, 80)), needles=(NEEDLE.text,), question="?"),
        [english],
        connect(None),
    )
    for prompt in plan:
        hay = prompt.haystack
        at = prompt.edits[0].start
        text = hay.data.decode()
        target = prompt.cell.depth_percent / 100 * prompt.hay_tokens
        ends = [len(text[:end].encode()) for end in sentence_ends(text)]
        nearest = min(abs(hay.tokens_before(end) - target) for end in ends)
        assert at in ends
        assert abs(hay.tokens_before(at) - target) <= nearest + 1
        assert prompt.boundary == "sentence"


def test_the_nearest_sentence_end_is_counted_in_tokens_where_bytes_would_mislead(corpus_from) -> None:  # type: ignore[no-untyped-def]
    """Sentences begin with many short tokens and end in few long words: the farther byte is often the nearer token."""
    words = " international development organization government" * 8
    text = " ".join(f"{'0123456789 ' * 9}{words.strip()}." for _ in range(120))
    from needlepoint.text.boundaries import sentence_ends

    for prompt in Plan(
        Task(grid=Grid(lengths=(8_000,), depths=tuple(range(3, 98)))), [corpus_from(text)], connect(None)
    ):
        hay = prompt.haystack
        whole = hay.data.decode()
        target = prompt.cell.depth_percent / 100 * prompt.hay_tokens
        nearest = min(abs(hay.tokens_before(len(whole[:end].encode())) - target) for end in sentence_ends(whole))
        assert abs(prompt.placements[0].tokens_before - target) <= nearest + 2 or prompt.boundary != "sentence"


def test_without_sentence_ends_a_clause_or_word_is_taken_and_flagged(corpus_from) -> None:  # type: ignore[no-untyped-def]
    words = [f"word{i}" for i in range(4_000)]
    clauses = corpus_from(", ".join(words))
    plain = corpus_from(" ".join(words))
    for corpus, boundary in ((clauses, "clause"), (plain, "word")):
        for prompt in Plan(Task(grid=Grid(lengths=(2_000,), depths=(50,))), [corpus], connect(None)):
            check(prompt, 2_000)
            assert prompt.boundary == boundary


@pytest.mark.parametrize("count", [2, 3, 7])
def test_several_needles_keep_their_order_and_depths(count: int, english: Corpus) -> None:
    task = Task(grid=Grid(lengths=(2_000, 6_000), depths=(0, 20, 50, 90, 100)), needle_set="number", needle_count=count)
    for prompt in Plan(task, [english], connect(None), verify="all"):
        check(prompt, prompt.cell.context_length)
        context = prompt.context()
        places = [context.index(needle.text) for needle in prompt.needles]
        assert places == sorted(places)


def test_a_length_without_room_names_the_shortest_that_works(english: Corpus) -> None:
    plan = Plan(Task(grid=Grid(lengths=(60,), depths=(50,))), [english], connect(None))
    with pytest.raises(LengthError, match="shortest") as caught:
        list(plan)
    shortest = int(str(caught.value).split("About ")[1].split()[0])
    for prompt in Plan(Task(grid=Grid(lengths=(shortest,), depths=(50,))), [english], connect(None)):
        check(prompt, shortest)


def test_replicates_draw_another_text_and_another_needle_and_one_seed_gives_the_same_bytes(english: Corpus) -> None:
    task = Task(grid=Grid(lengths=(1_000,), depths=(50,)), needle_set="number", replicates=4, seed=3)
    prompts = list(Plan(task, [english], connect(None)))
    assert len({prompt.context()[:200] for prompt in prompts}) == 4
    assert len({prompt.needles for prompt in prompts}) == 4
    again = [prompt.sha256 for prompt in Plan(task, [english], connect(None))]
    assert again == [prompt.sha256 for prompt in prompts]


def test_a_text_that_runs_out_is_repeated_and_the_plan_says_so(corpus_from, prose) -> None:  # type: ignore[no-untyped-def]
    corpus = corpus_from(prose["en"](80))
    plan = Plan(Task(grid=Grid(lengths=(6_000,), depths=(0, 50, 100))), [corpus], connect(None), verify="all")
    for prompt in plan:
        check(prompt, 6_000)
    assert any("repeat" in note for note in plan.notes)


def test_a_further_cell_costs_slicing_not_encoding(english: Corpus) -> None:
    """Bytes that a cell encodes do not grow with the prompt's length."""
    endpoint = connect("qwen3")
    haystack = Haystack(english.text, endpoint.tokenizer, 128_000, fingerprint="x", clean=clean)
    around = frame(endpoint, system_prompt=SYSTEM_PROMPT, prompt_template=PROMPT_TEMPLATE, question="What is it?")
    spent = {}
    for length in (4_000, 128_000):
        splicer = Splicer(haystack)
        for depth in range(0, 101, 5):
            fit(
                splicer,
                around,
                cell=Cell(subset="english", context_length=length, depth_percent=depth),
                replicate=0,
                needles=[NEEDLE],
                question="?",
            )
        spent[length] = splicer.encoded_bytes / 21
    assert spent[4_000] < 3_000
    assert spent[128_000] < 3_000


SCRIPTS = st.sampled_from(
    [
        "abc defg. Hij, klm! ", "中文字。还有，更多！", "Привет мир. Ещё, раз! ", "مرحبا. كيف؟ ", "नमस्ते। फिर, ",
        "😀👩‍👩‍👧🇩🇪", "1234567890", "\r\n", "\x00", "\t  ", "<|im_end|>", "e\u0301", "ﬁ", "\u200b", "'s 'LL", "____",
        "aaaa", "=>{};", "한국어. ",
    ]
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    pieces=st.lists(st.one_of(SCRIPTS, st.text(min_size=1, max_size=30)), min_size=1, max_size=60),
    depth=st.floats(0, 100),
    length=st.integers(220, 900),
    family=st.sampled_from(FAMILIES),
    seed=st.integers(0, 1_000),
)
def test_random_texts_are_exact(pieces: list[str], depth: float, length: int, family: str, seed: int) -> None:
    """Mixed scripts, emoji, no punctuation, one giant line, CRLF and NUL."""
    rng = random.Random(seed)
    text = "".join(rng.choice(pieces) for _ in range(400))
    corpus = _corpus(text)
    endpoint = connect(family)
    if not clean(text, endpoint.tokenizer.special_tokens).strip():
        return
    task = Task(grid=Grid(lengths=(length,), depths=(depth,)), needles=(NEEDLE.text,), question="What is the code?")
    if NEEDLE.text in text:
        return
    for prompt in Plan(task, [corpus], endpoint, verify="none"):
        check(prompt, length)
        assert prompt.token_ids() == endpoint.tokenizer.encode(prompt.text(), special=True).ids


@pytest.mark.parametrize(
    "text",
    ["a" * 30_000, "ab" * 20_000, "中" * 9_000, "7" * 20_000, "😀" * 4_000, "x\n" * 9_000, " " * 50 + "y" * 9_000],
)
@pytest.mark.parametrize("family", ["qwen3", "llama3.1", "gemma3"])
def test_one_giant_line_is_exact(text: str, family: str) -> None:
    task = Task(grid=Grid(lengths=(1_000,), depths=(0, 50, 100)), needles=(NEEDLE.text,), question="?")
    for prompt in Plan(task, [_corpus(text)], connect(family), verify="all"):
        check(prompt, 1_000)


def _corpus(text: str) -> Corpus:
    return Corpus(name="random", subset="random", language="other", licence="test", sha256="0", text=text)


def test_token_ids_are_spliced_from_the_haystack_without_encoding_again(english: Corpus) -> None:
    for prompt in Plan(Task(grid=Grid(lengths=(4_000,), depths=(50,))), [english], connect(None)):
        shared = sum(len(run) for run in prompt.runs if run.ids is None)
        assert shared > 3_500
        assert isinstance(prompt.token_ids(), array)
        assert sum(segment.n_tokens for segment in prompt.segments) == prompt.n_tokens


def test_prompts_of_one_replicate_share_their_prefix_up_to_the_fork(english: Corpus) -> None:
    prompts = list(Plan(Task(grid=Grid(lengths=(4_000,), depths=(25, 75))), [english], connect(None)))
    shallow, deep = prompts
    ids, others = shallow.token_ids(), deep.token_ids()
    common = next(i for i, (a, b) in enumerate(zip(ids, others, strict=False)) if a != b)
    assert abs(common - shallow.fork) <= 32


def test_a_token_without_width_at_the_very_start_ends_no_search_for_a_joint(english: Corpus) -> None:
    class Prefixed:
        """A tokenizer that puts a token of no width in front of every text."""

        def __init__(self) -> None:
            self._inner = connect("qwen3").tokenizer

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

        def encode(self, text: str, *, special: bool = False) -> Encoding:
            found = self._inner.encode(text, special=special)
            return Encoding(array("I", [9, *found.ids]), array("I", [0, *found.ends]))

        def count(self, text: str, *, special: bool = False) -> int:
            return len(self.encode(text, special=special))

    endpoint = replace(connect("qwen3"), tokenizer=Prefixed())  # type: ignore[arg-type]
    for prompt in Plan(Task(grid=Grid(lengths=(2_000,), depths=(0, 50))), [english], endpoint, verify="all"):
        check(prompt, 2_000)
