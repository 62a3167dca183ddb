from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.text.boundaries import character_ends, chunks, clause_ends, safe_cut, sentence_ends, word_ends


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? ", ["One.", " Two!", " Three?"]),
        ('He said "Yes." Then he left.', ['He said "Yes."', " Then he left."]),
        ("(It rained.) We stayed.", ["(It rained.)", " We stayed."]),
        ("Dr. Hale met J. R. Doe at 6.30 p.m. yesterday.", ["Dr. Hale met J. R. Doe at 6.30 p.m. yesterday."]),
        ("It cost 3.14 today. Fine.", ["It cost 3.14 today.", " Fine."]),
        ("He paused... and went on. Then", ["He paused... and went on."]),
        ("Wait… Really?! Yes.", ["Wait…", " Really?!", " Yes."]),
        ("他来了。“好！”她说。（完。）走", ["他来了。", "“好！”", "她说。", "（完。）"]),
        ("真的吗？！是的……后来", ["真的吗？！"]),
        ("وصل. هل رأيت؟ نعم", ["وصل.", " هل رأيت؟"]),
        ("वह आया। वह गया॥ और", ["वह आया।", " वह गया॥"]),
        ("no end here", []),
        ("a.b.c", []),
        ("", []),
    ],
)
def test_sentence_ends_stand_behind_marks_and_closers(text: str, sentences: list[str]) -> None:
    found, start = [], 0
    for end in sentence_ends(text):
        found.append(text[start:end])
        start = end
    assert found == sentences


def test_clause_ends_are_commas_colons_dashes_and_line_breaks() -> None:
    text = "one, two; three: 1,000 four\nfive，六、七"
    assert [text[:i][-1] for i in clause_ends(text)] == [",", ";", ":", "\n", "，", "、"]


def test_word_ends_are_before_blanks_and_between_ideographs() -> None:
    text = "two words 中文字"
    assert [text[:i] for i in word_ends(text)] == ["two", "two words", "two words 中", "two words 中文"]


@pytest.mark.parametrize("cluster", ["👩‍👩‍👧", "e\u0301", "🇩🇪", "👍🏽", "\r\n", "1\ufe0f\u20e3", "नि"])
def test_no_character_end_falls_inside_a_perceived_character(cluster: str) -> None:
    text = f"a{cluster}b"
    assert list(character_ends(text)) == [1, 1 + len(cluster)]


@given(st.text(max_size=400), st.integers(1, 60))
def test_chunks_are_the_text_in_order(text: str, size: int) -> None:
    assert "".join(chunks(text, size)) == text


def test_chunks_of_any_size_come_to_an_end() -> None:
    assert list(chunks("a b c d", 1)) == ["a", " b", " c", " d"]


@given(st.text(alphabet="ab .\n1é中", max_size=300))
def test_a_safe_cut_stands_before_a_blank_and_letter_or_behind_one_line_break(text: str) -> None:
    cut = safe_cut(text, 0, len(text))
    if cut is not None:
        assert (text[cut] == " " and text[cut + 1].isalpha()) or (text[cut - 1] == "\n" and not text[cut - 2].isspace())


def test_tokens_of_chunks_are_the_tokens_of_the_text(tokenizer_of, prose) -> None:  # type: ignore[no-untyped-def]
    text = prose["en"](900) + prose["zh"](600)
    for name in ("qwen3", "llama3", "gemma3", "mistral_v3", "deepseek_v3", "o200k_base"):
        tokenizer = tokenizer_of(name)
        apart = [token for chunk in chunks(text, 1_000) for token in tokenizer.encode(chunk).ids]
        assert apart == list(tokenizer.encode(text).ids), name
