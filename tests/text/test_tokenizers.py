from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needlepoint.errors import TokenizerError
from needlepoint.text import families
from needlepoint.text.tokenizers import JsonTokenizer, SplintrTokenizer, from_file, packaged
from needlepoint.types import Tokenizer

FAMILIES = sorted({family.vocabulary: family.name for family in families.FAMILIES}.values())


@pytest.mark.parametrize("name", FAMILIES)
def test_every_packaged_family_gives_back_its_text_with_byte_ends(name: str, tokenizer_of, prose) -> None:  # type: ignore[no-untyped-def]
    tokenizer = tokenizer_of(name)
    text = prose["en"](20) + prose["zh"](20) + "emoji 👩‍👩‍👧 🇩🇪 ünïcode, 1234567\t\tx  y\n\n\n"
    found = tokenizer.encode(text)
    assert found.ends[-1] == len(text.encode()) and list(found.ends) == sorted(found.ends)
    assert tokenizer.decode(found.ids) == text
    assert tokenizer.count(text) == len(found)


@pytest.mark.parametrize("name", FAMILIES)
def test_special_tokens_are_one_token_when_read_and_several_when_not(name: str, tokenizer_of) -> None:  # type: ignore[no-untyped-def]
    tokenizer = tokenizer_of(name)
    for spelling in tokenizer.special_tokens[:12]:
        assert tokenizer.count(spelling, special=True) == 1, spelling
        text = f"a{spelling}b"
        assert tokenizer.encode(text, special=True).ends[-1] == len(text.encode())


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=200))
@pytest.mark.parametrize("name", ["qwen3", "llama3", "gemma3", "mistral_v3", "mistral_v1", "o200k_base"])
def test_ends_are_true_for_any_text(name: str, text: str, tokenizer_of) -> None:  # type: ignore[no-untyped-def]
    import unicodedata

    tokenizer = tokenizer_of(name)
    if tokenizer.nfc:
        text = unicodedata.normalize("NFC", text)
    found = tokenizer.encode(text)
    data = text.encode()
    assert (found.ends[-1] if found.ends else 0) == len(data)
    start = 0
    for token, end in zip(found.ids, found.ends, strict=True):
        piece = data[start:end]
        start = end
        if piece.isascii() and piece.strip():
            assert tokenizer.decode([token]) == piece.decode()


def test_a_fingerprint_is_stable_and_differs_between_vocabularies(tokenizer_of) -> None:  # type: ignore[no-untyped-def]
    family = families.find("qwen3")
    assert family is not None
    prints = [tokenizer_of(name).fingerprint for name in FAMILIES]
    assert packaged(family).fingerprint == tokenizer_of("qwen3").fingerprint
    assert len(set(prints)) == len(prints)


@pytest.fixture
def small_json(tmp_path: Path) -> Path:
    """A byte-level tokenizer.json trained here on a few made-up words."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    engine.train_from_iterator(["the miller carried the kettle", "a kettle, a miller, a bridge"] * 20, trainer)
    folder = tmp_path / "small"
    folder.mkdir()
    engine.save(str(folder / "tokenizer.json"))
    return folder


def test_a_tokenizer_json_counts_the_same_on_both_engines(small_json: Path, prose) -> None:  # type: ignore[no-untyped-def]
    fast = from_file(small_json)
    slow = JsonTokenizer((small_json / "tokenizer.json").read_bytes(), name="s", identity="s", source=small_json)
    assert isinstance(fast, SplintrTokenizer) and fast.name == "small"
    for text in (prose["en"](30), prose["zh"](10), "😀<|end|>é"):
        for special in (False, True):
            one, other = fast.encode(text, special=special), slow.encode(text, special=special)
            assert one.ids == other.ids
            assert one.ends[-1] == other.ends[-1] == len(text.encode())
    assert fast.special_tokens == tuple(slow.special_tokens) == ("<|end|>",)


def test_ends_of_the_general_engine_never_claim_half_a_character(small_json: Path) -> None:
    slow = JsonTokenizer((small_json / "tokenizer.json").read_bytes(), name="s", identity="s", source=small_json)
    text = "é中😀 the miller"
    data = text.encode()
    for end in slow.encode(text).ends:
        data[:end].decode()


def test_an_unusual_configuration_falls_back_to_the_general_engine(small_json: Path) -> None:
    file = small_json / "tokenizer.json"
    config = json.loads(file.read_text())
    config["normalizer"] = {"type": "Lowercase"}
    file.write_text(json.dumps(config))
    tokenizer = from_file(file)
    text = "The MILLER"
    assert tokenizer.encode(text).ends[-1] == len(text)


@pytest.mark.parametrize("content", [b"", b"not json", b"{}", b"\x00\x01", b'{"model": {"type": "BPE"}}'])
def test_a_broken_tokenizer_json_is_one_clear_message(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(TokenizerError, match=r"tokenizer\.json") as caught:
        from_file(file)
    assert "\n" not in str(caught.value)


def test_a_missing_tokenizer_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="folder that holds it"):
        from_file(tmp_path)


@pytest.fixture
def spaced_json(tmp_path: Path) -> Path:
    """A tokenizer.json that puts a space in front of every text, changes spellings and ends with a token of its own."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    engine = Tokenizer(models.Unigram())
    engine.normalizer = normalizers.NFKC()
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=60, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
    )
    engine.train_from_iterator(["the miller carried the kettle. ", "a kettle, a miller, a bridge.\n"] * 20, trainer)
    engine.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    folder = tmp_path / "spaced"
    folder.mkdir()
    engine.save(str(folder / "tokenizer.json"))
    return folder


def test_a_long_text_is_counted_whole_where_its_parts_would_get_spaces_of_their_own(spaced_json: Path) -> None:
    from tokenizers import Tokenizer

    text = "the miller\ncarried a kettle.\n\nthe bridge " * 6_000
    tokenizer = from_file(spaced_json)
    whole = Tokenizer.from_file(str(spaced_json / "tokenizer.json")).encode(text, add_special_tokens=False).ids
    assert list(tokenizer.encode(text).ids) == whole
    assert tokenizer.count(text) == len(whole)


def test_line_breaks_are_counted_as_a_whole_text_counts_them(tmp_path: Path) -> None:
    """GPT-2's rule takes the last of several line breaks apart, unless they end the text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    engine.train_from_iterator(["word\n\n\nword\n\n"] * 20, trainer)
    file = tmp_path / "tokenizer.json"
    engine.save(str(file))
    text = "word\n\n\n\u5b57" * 40_000  # no blank to cut at
    slow = JsonTokenizer(file.read_bytes(), name="s", identity="s", source=file)
    assert slow.count(text) == from_file(file).count(text) == len(engine.encode(text).ids)


def test_a_tokenizer_says_whether_its_decoded_text_is_another(
    small_json: Path, spaced_json: Path, tokenizer_of: Callable[[str], Tokenizer]
) -> None:
    slow = JsonTokenizer((small_json / "tokenizer.json").read_bytes(), name="s", identity="s", source=small_json)
    assert not slow.rewrites and not from_file(small_json).rewrites
    assert from_file(spaced_json).rewrites
    assert {name for name in ("qwen3", "llama3", "llama2", "gemma3", "gpt-4o") if tokenizer_of(name).rewrites} == {
        "llama2"
    }


@pytest.mark.parametrize(
    "name", ["gpt-4o", "gpt-4", "qwen3", "llama3", "gemma3", "llama2", "mistral-v1", "deepseek-v3"]
)
def test_a_bar_that_some_vocabularies_write_for_a_space_is_read_as_text(name: str, tokenizer_of) -> None:  # type: ignore[no-untyped-def]
    tokenizer = tokenizer_of(name)
    for text in ("load ▁▂▃▅▇ over the day", "▁▁foo bar▁", "中▁文\n▁"):
        ends = tokenizer.encode(text).ends
        assert ends[-1] == len(text.encode()) and list(ends) == sorted(ends)
        if "▁" not in tokenizer.decode(tokenizer.encode(text).ids):  # then it is a space to this one
            assert tokenizer.encode(text).ids == tokenizer.encode(text.replace("▁", " ")).ids
