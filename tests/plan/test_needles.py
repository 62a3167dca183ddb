"""Needles: the seed's own, the user's, and drawn ones, which an editor would print."""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needlepoint.errors import UsageError
from needlepoint.plan import phrases, vocabulary
from needlepoint.plan.needles import (
    DRAWN_KINDS,
    SEED_NEEDLE,
    SEED_QUESTION,
    Facts,
    Language,
    draw_facts,
    fixed_facts,
    given_facts,
    target,
)

LANGUAGES: tuple[Language, ...] = ("en", "zh")
kinds = st.sampled_from(DRAWN_KINDS)
languages = st.sampled_from(LANGUAGES)
seeds = st.integers(0, 10**6)


def never(_: str) -> bool:
    return False


def drawn(kind: str, count: int, language: Language, seed: object) -> Facts:
    return draw_facts(kind, count, language, Random(f"{seed}"), never)


# --- fixed sets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh", "other"])
def test_the_seed_set_is_the_published_needle_in_every_language(language: Language) -> None:
    facts = fixed_facts("seed", language)
    assert target(facts) == (
        "\nThe best thing to do in San Francisco is eat a sandwich and sit in Dolores Park on a sunny day.\n"
    )
    assert facts.question == "What is the best thing to do in San Francisco?"
    assert (target(facts), facts.question) == (SEED_NEEDLE, SEED_QUESTION)
    assert facts.kind == "seed"


def test_the_native_set_has_the_seeds_needle_in_english_and_its_own_in_chinese() -> None:
    english, other, chinese = (fixed_facts("native", language) for language in ("en", "other", "zh"))
    assert (english.needles, english.question) == (other.needles, other.question)
    assert target(english) == SEED_NEEDLE
    assert target(chinese).startswith("\n") and target(chinese).endswith("。\n")
    assert not re.search(r"[A-Za-z ]", target(chinese) + chinese.question)


@pytest.mark.parametrize("name", ["seed", "native"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_fixed_needle_states_its_answer_and_the_question_asks_by_its_key_without_it(
    name: str, language: Language
) -> None:
    facts = fixed_facts(name, language)
    (needle,) = facts.needles
    assert needle.key is not None
    assert needle.key in facts.question and needle.key.casefold() in needle.text.casefold()
    assert needle.answers[0] in needle.text and needle.answers[0] not in facts.question


def test_an_unknown_set_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match=r"Did you mean 'native'\?"):
        fixed_facts("nativ", "en")


def test_the_target_is_the_needles_joined_by_a_newline() -> None:
    facts = given_facts(["\nOne.\n", "Two."], "What?")
    assert target(facts) == "\nOne.\n\nTwo."


# --- what the user gives ----------------------------------------------------------------------------------------------


def test_given_needles_are_kept_byte_for_byte_and_answer_with_their_stripped_text() -> None:
    facts = given_facts(("\n\tThe bakery opens at six.\r\n", "面包房六点开门。"), " When? ")
    assert [needle.text for needle in facts.needles] == ["\n\tThe bakery opens at six.\r\n", "面包房六点开门。"]
    assert [needle.answers for needle in facts.needles] == [("The bakery opens at six.",), ("面包房六点开门。",)]
    assert all(needle.key is None for needle in facts.needles)
    assert (facts.question, facts.kind) == (" When? ", "given")


@pytest.mark.parametrize(
    ("needles", "question", "message"),
    [
        ("One.", "What?", "needles 'One.' is not a list of texts"),
        (None, "What?", "needles None is not a list of texts"),
        ({"One."}, "What?", "is not a list of texts"),
        ([], "What?", "needles is empty"),
        ([""], "What?", "needles (entry 1) is empty"),
        (["One.", " \n "], "What?", "needles (entry 2) is empty"),
        ([7], "What?", "needles (entry 1): 7 is not a text"),
        ([10**5000], "What?", "needles (entry 1): (int) is not a text"),
        (["a\0b"], "What?", "needles (entry 1) contains a control character, U+0000, at character 1"),
        (["a\x1b[31m"], "What?", "a control character, U+001B"),
        (["a\x85b"], "What?", "a control character, U+0085"),
        (["a\ud800b"], "What?", "half of a surrogate pair, U+D800"),
        (["x" * 20_001], "What?", "has 20,001 characters; at most 20,000"),
        ([f"Fact {i}." for i in range(101)], "What?", "has 101 entries; at most 100"),
        (["One.", "Two.", "\nOne.\n"], "What?", "entries 1 and 3 are equal: 'One.'"),
        (["One."], "", "retrieval_question is empty"),
        (["One."], None, "retrieval_question: None is not a text"),
        (["One."], "a\0", "retrieval_question contains a control character"),
        (["One."], "x" * 20_001, "retrieval_question has 20,001 characters"),
    ],
)
def test_unusable_needles_and_questions_are_refused_by_name(needles: Any, question: Any, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        given_facts(needles, question)
    assert message in str(refusal.value)
    assert len(str(refusal.value)) < 250


def test_a_refusal_names_the_flags_that_the_caller_uses() -> None:
    with pytest.raises(UsageError, match=r"^--needle is empty"):
        given_facts([], "What?", needle_flag="--needle")
    with pytest.raises(UsageError, match=r"^--question is empty"):
        given_facts(["One."], " ", question_flag="--question")


@given(st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1), min_size=1, max_size=5))
def test_ordinary_texts_are_accepted_unchanged(texts: list[str]) -> None:
    texts = [text for text in dict.fromkeys(texts) if text.strip()]
    if texts and len({text.strip() for text in texts}) == len(texts):
        assert [needle.text for needle in given_facts(texts, "What?").needles] == texts


# --- drawn facts: what must hold of every one -------------------------------------------------------------------------


@given(kinds, languages, seeds, st.integers(1, 12))
def test_equal_seeds_draw_equal_facts(kind: str, language: Language, seed: int, count: int) -> None:
    assert drawn(kind, count, language, seed) == drawn(kind, count, language, seed)


@pytest.mark.parametrize(
    ("kind", "language", "text", "question"),
    [
        (
            "number",
            "en",
            "The survey number of the bird hide at Keldrith is 2065397.",
            "What is the survey number of the bird hide at Keldrith?",
        ),
        ("number", "zh", "荻花岭观测站的登记编号为3077297。", "荻花岭观测站的登记编号是多少？"),
    ],
)
def test_what_a_seed_draws_never_changes(kind: str, language: Language, text: str, question: str) -> None:
    facts = draw_facts(kind, 1, language, Random("number0"), never)
    assert (facts.needles[0].text, facts.question) == (text, question)


@given(kinds, languages, seeds, st.integers(1, 12))
def test_each_value_and_each_key_stands_once_in_the_needles_and_only_keys_in_the_question(
    kind: str, language: Language, seed: int, count: int
) -> None:
    facts = drawn(kind, count, language, seed)
    assert (len(facts.needles), facts.kind) == (count, kind)
    text = target(facts)
    for needle in facts.needles:
        assert needle.key is not None
        (value,) = needle.answers
        assert text.count(value) == 1 and value in needle.text
        assert text.count(needle.key) == 1 and needle.key in needle.text
        assert facts.question.count(needle.key) == 1
        assert value not in facts.question


@given(kinds, languages, seeds, st.integers(1, 6))
@settings(max_examples=50)
def test_what_the_haystack_contains_is_drawn_again(kind: str, language: Language, seed: int, count: int) -> None:
    first = drawn(kind, count, language, seed)
    for taken in (first.needles[0].key, first.needles[-1].answers[0]):
        haystack = f"Some text, {taken}, and more text."
        fresh = draw_facts(kind, count, language, Random(f"{seed}"), haystack.__contains__)
        for needle in fresh.needles:
            assert needle.key is not None
            assert needle.key not in haystack and needle.answers[0] not in haystack


@pytest.mark.parametrize("kind", DRAWN_KINDS)
def test_a_haystack_that_contains_everything_ends_in_an_error_not_in_a_loop(kind: str) -> None:
    with pytest.raises(UsageError, match=f"No {kind} needle could be drawn"):
        draw_facts(kind, 1, "en", Random("1"), lambda _: True)


def test_a_thousand_needles_can_be_drawn_at_once() -> None:
    for language in LANGUAGES:
        for kind in DRAWN_KINDS:
            facts = drawn(kind, 1000, language, "many")
            assert len({needle.key for needle in facts.needles}) == 1000
            assert len({needle.answers for needle in facts.needles}) == 1000


@pytest.mark.parametrize("count", [0, -1, 1001, 1.0, True, "3", None, pytest.param(10**5000, id="huge")])
def test_a_wrong_number_of_needles_is_refused(count: Any) -> None:
    with pytest.raises(UsageError, match=r"is not accepted\. Accepted: 1 to 1,000\."):
        draw_facts("number", count, "en", Random("1"), never)


def test_a_kind_that_cannot_be_drawn_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match=r"'dates' is not a kind .*Did you mean 'date'\?"):
        draw_facts("dates", 1, "en", Random("1"), never)


def test_languages_without_words_of_their_own_get_english() -> None:
    assert drawn("number", 3, "other", 1) == drawn("number", 3, "en", 1)


# --- drawn facts: values ----------------------------------------------------------------------------------------------


@given(languages, seeds)
def test_numbers_have_seven_digits_that_show_no_pattern(language: Language, seed: int) -> None:
    (number,) = drawn("number", 1, language, seed).needles[0].answers
    assert re.fullmatch(r"[1-9][0-9]{6}", number)
    assert not number.endswith("00")
    assert len(set(number)) >= 5
    assert not any(run in number for run in ("123", "234", "345", "456", "567", "678", "789", "987", "876", "543"))
    assert not re.search(r"(\d)\1\1", number)


@given(languages, seeds)
def test_uuids_are_of_version_four(language: Language, seed: int) -> None:
    (value,) = drawn("uuid", 1, language, seed).needles[0].answers
    parsed = uuid.UUID(value)
    assert (str(parsed), parsed.version, parsed.variant) == (value, 4, uuid.RFC_4122)


@given(languages, seeds)
def test_dates_exist_and_are_written_unambiguously(language: Language, seed: int) -> None:
    (value,) = drawn("date", 1, language, seed).needles[0].answers
    if language == "zh":
        match = re.fullmatch(r"([0-9]{4})年([0-9]{1,2})月([0-9]{1,2})日", value)
        assert match
        year, month, number = map(int, match.groups())
        day = datetime(year, month, number)
    else:
        day = datetime.strptime(value, "%d %B %Y")
        assert value == f"{day.day} {day:%B} {day.year}"
    assert 1901 <= day.year <= 1999
    assert (day.month, day.day) not in {(9, 11), (6, 4), (12, 25), (1, 1), (8, 6)}


@given(languages, seeds)
def test_words_are_code_phrases_in_quotation_marks(language: Language, seed: int) -> None:
    needle = drawn("word", 1, language, seed).needles[0]
    (value,) = needle.answers
    assert (f"“{value}”" if language == "zh" else f'"{value}"') in needle.text
    assert re.fullmatch(r"[一-鿿]{4,5}" if language == "zh" else r"[a-z]+ [a-z]+", value)


def test_there_are_thousands_of_code_phrases_so_that_none_is_guessed() -> None:
    assert len(vocabulary.EN_CODE_ADJECTIVES) * len(vocabulary.EN_CODE_NOUNS) >= 5000
    assert len(vocabulary.ZH_CODE_ADJECTIVES) * len(vocabulary.ZH_CODE_NOUNS) >= 5000


# --- drawn facts: language --------------------------------------------------------------------------------------------

# Written without the generator's tables: what a careful reader checks.
ENGLISH_TEXT = re.compile(r"[A-Za-z0-9 ,.\"'-]+\.")
CHINESE_TEXT = re.compile(r"[一-鿿0-9，。：“”、-]+。")


def _fixed_english(text: str) -> None:
    assert "  " not in text and text == text.strip()
    assert text[0].isupper()
    assert not re.search(r"\b[Aa] [aeiou]", text) and not re.search(r"\b[Aa]n [^aeiou]", text)
    assert not re.search(r"\b(\w+) \1\b", text, re.IGNORECASE), "a word is doubled"
    assert not re.search(r"[{}]| [,.?]", text)


@given(kinds, seeds, st.integers(1, 5))
@settings(max_examples=400)
def test_english_sentences_and_questions_are_well_formed(kind: str, seed: int, count: int) -> None:
    facts = drawn(kind, count, "en", seed)
    for needle in facts.needles:
        assert needle.key is not None
        _fixed_english(needle.text)
        assert ENGLISH_TEXT.fullmatch(needle.text)
        assert needle.text.count(".") == 1 and "\n" not in needle.text
        is_person = bool(re.fullmatch(r"[A-Z][a-z]+ [A-Z][a-z]+", needle.key))
        before = re.search(rf"(\w*) ?{re.escape(needle.key)}", needle.text)
        assert before
        assert (before.group(1).casefold() == "the") != is_person, "things take the article, people do not"
    _fixed_english(facts.question)
    assert facts.question.endswith("?") and facts.question.count("?") == 1
    plural = re.match(r"What are the \w+ (\w+s|\w+ \w+s) of |On what dates (were|did) ", facts.question)
    assert bool(plural) == (count > 1)
    keys = [needle.key or "" for needle in facts.needles]
    article = "the " if f"the {keys[0]}" in facts.question else ""
    subjects = [article + key for key in keys]
    listed = subjects[0] if count == 1 else f"{', '.join(subjects[:-1])} and {subjects[-1]}"
    assert listed in facts.question


@given(kinds, seeds, st.integers(1, 5))
@settings(max_examples=400)
def test_chinese_sentences_and_questions_are_well_formed(kind: str, seed: int, count: int) -> None:
    facts = drawn(kind, count, "zh", seed)
    for needle in facts.needles:
        (value,) = needle.answers
        bare = needle.text.replace(value, "")
        assert re.fullmatch(r"[一-鿿，。：“”]+。", bare), "nothing but Chinese around the value"
        assert bare.count("。") == 1 and "的的" not in bare and "，，" not in bare
    assert re.fullmatch(r"[一-鿿，、]+？", facts.question)
    assert ("分别" in facts.question) == (count > 1)
    keys = [needle.key or "" for needle in facts.needles]
    listed = keys[0] if count == 1 else f"{'、'.join(keys[:-1])}和{keys[-1]}"
    assert facts.question.startswith(listed)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", DRAWN_KINDS)
def test_a_kind_has_several_patterns_over_places_objects_and_people(kind: str, language: Language) -> None:
    tongue = phrases.CHINESE if language == "zh" else phrases.ENGLISH
    forms = tongue.forms[kind]
    assert {form.subject for form in forms} == {"place", "object", "person"}
    assert all(len(form.sentences) >= 2 for form in forms)
    for form in forms:
        for sentence in form.sentences:
            assert len(re.findall(r"\{[Kk]ey\}", sentence)) == 1 and sentence.count("{value}") == 1
            assert sentence.startswith("{Key}") or "{Key}" not in sentence


# --- vocabulary -------------------------------------------------------------------------------------------------------


def test_every_subject_has_five_thousand_keys_in_each_language() -> None:
    v = vocabulary
    assert len(v.EN_BUILDINGS) * len(v.EN_PLACES) >= 5000
    assert len(v.EN_OBJECTS) * len(v.EN_PLACES) >= 5000
    assert len(v.EN_FIRST_NAMES) * len(v.EN_SURNAMES) >= 5000
    assert len(v.ZH_PLACE_STEMS) * sum(map(len, v.ZH_BUILDINGS.values())) >= 5000
    assert len(v.ZH_PLACE_STEMS) * len(v.ZH_BUILDINGS) * len(v.ZH_OBJECTS) >= 5000
    assert len(v.ZH_SURNAMES) * len(v.ZH_GIVEN_NAMES) >= 5000


def test_no_list_has_a_word_twice_or_anything_but_letters() -> None:
    for name in dir(vocabulary):
        entries = getattr(vocabulary, name)
        if not name.isupper() or isinstance(entries, dict):
            continue
        assert len(set(entries)) == len(entries), name
        pattern = r"[一-鿿]+" if name.startswith("ZH") else r"[A-Za-z' -]+"
        assert all(re.fullmatch(pattern, entry) for entry in entries), name


def test_code_phrases_name_nothing_that_a_key_names() -> None:
    v = vocabulary
    english = set(" ".join((*v.EN_BUILDINGS, *v.EN_OBJECTS)).replace("-", " ").split())
    assert not english & {*v.EN_CODE_NOUNS, *v.EN_CODE_ADJECTIVES}
    chinese = [*v.ZH_OBJECTS, *v.ZH_PLACE_STEMS, *(b for kind in v.ZH_BUILDINGS.values() for b in kind)]
    assert not [(noun, entry) for noun in v.ZH_CODE_NOUNS for entry in chinese if noun in entry]


def test_chinese_names_are_of_the_form_that_the_sentences_need() -> None:
    v = vocabulary
    assert all(len(stem) == 2 for stem in v.ZH_PLACE_STEMS)
    assert all(entry[0] in "把盏只架台幅面口张方枚副艘顶条床块支座串件双根辆本卷" for entry in v.ZH_OBJECTS)
    assert all(len(name) == 1 for name in v.ZH_SURNAMES) and all(len(name) == 2 for name in v.ZH_GIVEN_NAMES)
    assert not set(v.ZH_SURNAMES) & set("".join(v.ZH_GIVEN_NAMES)), "no name doubles a character"


def test_english_buildings_end_with_the_preposition_of_their_place() -> None:
    assert {entry.rsplit(" ", 1)[1] for entry in vocabulary.EN_BUILDINGS} == {"at", "in"}


def test_equal_needles_are_taken_where_they_need_not_be_unique() -> None:
    facts = given_facts(["one fact.", "one fact."], "Which?", unique=False)
    assert [needle.text for needle in facts.needles] == ["one fact.", "one fact."]
