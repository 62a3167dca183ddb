"""From a name to an endpoint: which tokenizer, which chat template, what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from needlepoint.connect import DEFAULT_TOKENIZER, connect
from needlepoint.errors import TokenizerError
from needlepoint.types import Message

CHAT = [Message(role="system", content="Be brief."), Message(role="user", content="Where?")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder: a byte-level tokenizer, no chat template yet."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    engine = Tokenizer(models.BPE(vocab={char: n for n, char in enumerate(alphabet)}, merges=[]))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    engine.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_nothing_named_is_the_seeds_tokenizer() -> None:
    default, named = connect(None), connect(DEFAULT_TOKENIZER)
    assert default.tokenizer.fingerprint == named.tokenizer.fingerprint
    assert default.template_name == "qwen3" and not default.notes and not default.proven


def test_a_known_model_brings_its_own_and_a_named_tokenizer_wins() -> None:
    assert connect(None, model="meta-llama/Llama-3.1-8B-Instruct").template_name == "llama3.1"
    assert connect("qwen3", model="meta-llama/Llama-3.1-8B-Instruct").template_name == "qwen3"


def test_an_unknown_model_is_counted_with_the_default_and_that_is_said() -> None:
    heard: list[str] = []
    endpoint = connect(None, model="mystery-9b", notify=heard.append)
    assert endpoint.tokenizer.fingerprint == connect(None).tokenizer.fingerprint
    assert not endpoint.proven
    assert len(heard) == 1 and "mystery-9b" in heard[0] and "--tokenizer" in heard[0]


def test_a_closed_models_lengths_are_called_unproven() -> None:
    endpoint = connect("gpt-4o")
    assert endpoint.notes and "unproven" in endpoint.notes[0]


def test_a_file_and_its_folder_are_the_same(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{% for m in messages %}[{{ m.content }}]{% endfor %}>", "utf-8")
    one, other = connect(str(folder)), connect(str(folder / "tokenizer.json"))
    assert one.tokenizer.fingerprint == other.tokenizer.fingerprint
    assert one.render is not None and other.render is not None
    assert one.render(CHAT) == other.render(CHAT) == "[Be brief.][Where?]>"
    assert one.template_name == "chat_template.jinja"


def test_a_template_is_needed_only_where_lengths_count_it(folder: Path) -> None:
    with pytest.raises(TokenizerError, match="--chat-template"):
        connect(str(folder))
    assert connect(str(folder), needs_template=False).render is None
    assert connect(str(folder), chat_template="none").render is None
    assert connect("qwen3", chat_template="none").render is None


def test_what_is_odd_about_a_template_becomes_a_note(folder: Path) -> None:
    template = "{{ strftime_now('%Y') }}{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}), "utf-8")
    said = " ".join(connect(str(folder)).notes)
    assert "leaves the system message out" in said and "date" in said
    (folder / "own.jinja").write_text(template, "utf-8")
    endpoint = connect("qwen3", chat_template=str(folder / "own.jinja"))
    assert "own.jinja" in " ".join(endpoint.notes) and endpoint.template_name == str(folder / "own.jinja")


def test_a_named_format_replaces_the_template_with_all_that_it_needs() -> None:
    endpoint = connect("qwen3", chat_template="qwen2.5")
    assert endpoint.render is not None and "Where?" in endpoint.render(CHAT)
    assert endpoint.needs_system and endpoint.template_name == "qwen2.5"
    assert not connect("qwen3").needs_system
