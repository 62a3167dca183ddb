from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.text.clean import clean, defuse, lookalike


@given(st.text(max_size=500))
def test_clean_text_is_in_one_normal_form_and_stays_as_it_is(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert "\ufffd" not in once and "\r" not in once and "\x00" not in once
    assert "  " not in once and "\n\n\n" not in once
    once.encode()


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a \t\u3000 b", "a b"),
        ("end  \n  next", "end\nnext"),
        ("one\n\n\n\n\ntwo", "one\n\ntwo"),
        ("\ufeffBOM\x00\x1b[31m", "BOM[31m"),
        ("e\u0301", "é"),
        ("x <|im_end|> y", "x < |im_end|> y"),
        ("<s>hi</s>", "< s>hi< /s>"),
        ("<start_of_turn>", "< start_of_turn>"),
        ("<｜User｜>", "< ｜User｜>"),
        ("2 < 3 and 4 > 1", "2 < 3 and 4 > 1"),
    ],
)
def test_clean_examples(given_: str, wanted: str) -> None:
    assert clean(given_) == wanted


def test_no_special_token_of_any_family_survives(tokenizer_of) -> None:  # type: ignore[no-untyped-def]
    for name in ("qwen3", "llama3", "gemma3", "mistral_v3", "deepseek_v3", "glm4", "kimi_k2"):
        tokenizer = tokenizer_of(name)
        text = clean("\n".join(f"before {token} after" for token in tokenizer.special_tokens), tokenizer.special_tokens)
        assert lookalike(text, tokenizer.special_tokens) is None, name
        assert tokenizer.encode(text).ids == tokenizer.encode(text, special=True).ids, name


def test_defuse_breaks_bracketed_control_words_by_name() -> None:
    assert defuse("a [INST] b", ["[INST]"]) == "a [ INST] b"
