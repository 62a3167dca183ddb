"""Bytes of text files: what is read, what is refused, and that nothing is read wrongly in silence."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.errors import CorpusError
from needlepoint.text.encodings import NotText, decoded

CHINESE = "今天的天气很好，我们一起去公园散步。他说这个计划已经完成了，大家都很高兴。\n" * 5
TRADITIONAL = "今天的天氣很好，我們一起去公園散步。他說這個計畫已經完成了，大家都很高興。\n" * 5
FRENCH = "L'été dernier, à Noël, le garçon a mangé des crêpes. « Où êtes-vous ? » dit-elle… C’était l’hiver.\n" * 5
GERMAN = "Über den Dächern schien früh die Sonne, und größere Vögel flogen schräg über die Straße.\n" * 5
KOREAN = "오늘은 날씨가 아주 좋습니다. 우리는 함께 공원에 산책하러 갔습니다. 그리고 점심을 먹었다.\n" * 5
JAPANESE = "今日は天気がとても良いです。私たちは一緒に公園へ散歩に行きました。\n" * 5
RUSSIAN = "Сегодня очень хорошая погода. Мы вместе пошли гулять в парк.\n" * 5
POLISH = "Zażółć gęślą jaźń. Wszyscy poszli do lasu, żeby zebrać grzyby, później wrócili.\n" * 5
SPANISH = "El niño comió piñas; ¿cómo estás? ¡Adiós, señor! La razón está ahí.\n" * 5


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1))
def test_any_utf8_text_without_control_characters_reads_back_as_it_was(text: str) -> None:
    assert decoded(text.encode(), name="f") == text.removeprefix("\ufeff")


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1).filter(lambda t: t[0] != "\ufeff"),
    st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]),
)
def test_a_byte_order_mark_decides(text: str, encoding: str) -> None:
    assert decoded(text.encode(encoding), name="f") == text


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), st.sampled_from(["utf-8", "utf-16-be"])
)
def test_the_encoding_that_the_user_names_round_trips(text: str, encoding: str) -> None:
    assert decoded(text.encode(encoding), name="f", encoding=encoding) == text.removeprefix(
        "\ufeff" if encoding == "utf-8" else ""
    )


@given(st.binary(max_size=400))
def test_any_bytes_give_a_text_without_nul_or_a_corpus_error(data: bytes) -> None:
    try:
        assert "\0" not in decoded(data, name="f")
    except CorpusError as error:
        assert "f " in str(error)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "gb18030"),
        (CHINESE, "gbk"),
        (TRADITIONAL, "gb18030"),
        (CHINESE, "utf-16-le"),
        (CHINESE, "utf-16-be"),
        (CHINESE, "utf-32-le"),
        (GERMAN, "utf-16-le"),
        (GERMAN, "utf-32-be"),
        (FRENCH, "cp1252"),
        (GERMAN, "latin-1"),
        (SPANISH, "cp1252"),
        ("Say “yes” — or don’t.", "cp1252"),
    ],
)
def test_encodings_without_a_mark_are_told_from_how_the_text_reads(text: str, encoding: str) -> None:
    assert decoded(text.encode(encoding), name="f") == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (KOREAN, "euc-kr"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc-jp"),
        (TRADITIONAL, "big5"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (POLISH, "cp1250"),
        (POLISH, "iso8859-2"),
        (SPANISH, "mac-roman"),
        (SPANISH, "cp850"),
    ],
)
def test_other_encodings_are_refused_with_the_way_out_and_read_when_named(text: str, encoding: str) -> None:
    with pytest.raises(CorpusError, match="--encoding NAME"):
        decoded(text.encode(encoding), name="f")
    assert decoded(text.encode(encoding), name="f", encoding=encoding) == text


def test_damaged_utf8_is_not_taken_for_another_encoding() -> None:
    data = CHINESE.encode()
    with pytest.raises(CorpusError, match=r"UTF-8 with damage: byte 0xff at offset 302"):
        decoded(data[:302] + b"\xff" + data[302:], name="f")
    with pytest.raises(CorpusError, match="UTF-8 with damage"):
        decoded("naïve café".encode()[:-1], name="f")


def test_a_named_encoding_is_strict_and_the_error_has_the_byte_offset() -> None:
    with pytest.raises(CorpusError, match=r"f is not ascii: bytes e9 at offset 3 "):
        decoded("café".encode("latin-1"), name="f", encoding="ascii")


@pytest.mark.parametrize("encoding", ["utf8x", "base64", "rot13", ""])
def test_an_encoding_that_does_not_exist_is_named(encoding: str) -> None:
    with pytest.raises(CorpusError, match="There is no encoding"):
        decoded(b"text", name="f", encoding=encoding)


def test_utf16_with_an_odd_number_of_bytes_is_refused() -> None:
    with pytest.raises(CorpusError, match="is not utf-16"):
        decoded(codecs.BOM_UTF16_LE + b"a\0b", name="f")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"text\0more text", "NUL byte at offset 4"),
        (b"\0" * 10, "NUL byte"),
        (bytes(range(1, 32)) * 4, "control characters"),
        (b"%PDF-1.7 ...", "a PDF file"),
        (b"PK\x03\x04....", "zip archive"),
    ],
)
def test_binary_files_are_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(NotText, match=reason):
        decoded(data, name="f")
