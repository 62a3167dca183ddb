from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any, get_args

import pytest

from needlepoint.show.charts.outcomes import COLOURS
from needlepoint.show.notes import note_words
from needlepoint.show.page import page_html
from needlepoint.show.page_words import page_words
from needlepoint.types import Outcome, Reply

from .page_runs import a_page_run, a_row, a_trial, many_rows, some_rows


def data_of(html: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_same_runs_give_the_same_bytes() -> None:
    assert page_html([a_page_run(some_rows())]) == page_html([a_page_run(some_rows())])


def test_the_page_asks_for_nothing_from_outside() -> None:
    html = page_html([a_page_run(some_rows())])
    markup = html[: html.index('<script type="application/json"')]
    assert not re.findall(r'(?:src|href)="(?!data:,|#)', markup)
    assert "@import" not in html and "url(" not in html
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "") and "https://" not in html


def test_only_the_pages_own_script_and_style_may_run() -> None:
    html = page_html([a_page_run(some_rows())])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    rules = policy[1].replace("&#39;", "'")
    assert rules.startswith("default-src 'none';") and "unsafe" not in rules
    for tag, name in (("style", "style-src"), ("script", "script-src")):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in rules
    assert (
        not re.search(r"\son[a-z]+=", html[: html.index("<script")]) and " style=" not in html[: html.index("<script")]
    )


def test_foreign_text_cannot_end_the_data() -> None:
    evil = "</script><script>alert(1)</script><!-- <script> & \u2028\u2029"
    row = a_row(a_trial("english", 1_000, 50.0), "wrong", evil)
    html = page_html([a_page_run([row], model=f"m{evil}")], title=evil)
    assert html.count("</script") == 2 and "<!--" not in html.replace("<!DOCTYPE", "")
    assert "<script>alert" not in html
    data = data_of(html)
    assert data["runs"][0]["trials"]["columns"]["answer"]["all"] == evil
    assert "\u2028" not in html and "\u2029" not in html


def test_texts_that_act_are_made_visible() -> None:
    row = a_row(a_trial("english", 1_000, 50.0), "wrong", "a\u202eb\x1b[31mc\x00\ud800d")
    answer = data_of(page_html([a_page_run([row])]))["runs"][0]["trials"]["columns"]["answer"]["all"]
    assert answer == "a[U+202E]b␛[31mc␀\ufffdd"


def test_a_huge_answer_is_cut_around_what_decided_it() -> None:
    trial, reply, score = a_row(a_trial("english", 1_000, 50.0))
    text = "x" * 500_000 + "4711" + "y" * 500_000
    row = (trial, replace(reply, text=text), replace(score, span=(500_000, 500_004)))
    html = page_html([a_page_run([row])])
    before, hit, after, left_out = data_of(html)["runs"][0]["trials"]["columns"]["answer"]["all"]
    assert hit == "4711" and before.endswith("x") and after.startswith("y")
    assert len(before) + len(hit) + len(after) + left_out == len(text)
    assert len(html) < 200_000


def test_ten_thousand_trials_stay_small() -> None:
    html = page_html([a_page_run(many_rows(10_000))])
    assert len(html.encode()) < 8_000_000
    assert data_of(html)["runs"][0]["trials"]["n"] == 10_000


def test_long_answers_share_a_budget() -> None:
    rows = [(t, replace(r, text=r.text * 60), s) for t, r, s in many_rows(4_000)]
    assert len(page_html([a_page_run(rows)]).encode()) < 15_000_000


def test_more_trials_than_fit_are_left_out_and_it_is_said_how_many() -> None:
    data = data_of(page_html([a_page_run(many_rows(22_000), excerpts=False)]))
    run = data["runs"][0]
    assert run["trials"]["n"] == 20_000 and run["n_trials"] == 22_000
    outcomes = run["trials"]["columns"]["outcome"]
    wrong = sum(data["texts"][number] != "correct" for number in outcomes)
    assert wrong == run["n_trials"] - run["outcomes"]["correct"]


def test_what_an_imported_run_lacks_is_null() -> None:
    trial, _, score = a_row(a_trial("english", 1_000, 50.0), "wrong")
    trial = replace(trial, prompt_sha256=None, achieved_length=None, boundary=None, placements=(), needles=())
    row = (trial, Reply(text="", attempts=0), replace(score, scorer="imported", raw=7, scale=(1, 10)))
    run = replace(a_page_run([row]), settings={}, folder="")
    columns = data_of(page_html([run, run]))["runs"][0]["trials"]["columns"]
    for name in ("answer", "achieved_length", "boundary", "placements", "excerpts", "recipe", "total"):
        assert columns[name]["all"] is None, name
    assert columns["raw"]["all"] == 7


def test_where_a_users_files_lie_stays_with_the_user() -> None:
    dataset = {"needle_haystack": {"local_path": "/home/someone/secret/texts/"}}
    identity = {"corpus": ["mine=/home/someone/secret/book.txt", "sotu"], "prompts": "/home/someone/secret/p.jsonl"}
    html = page_html([replace(a_page_run([]), settings={"identity": {**identity, "dataset_args": dataset}})])
    assert "someone" not in html
    lines = dict(data_of(html)["runs"][0]["settings"][0][1])
    assert lines == {
        "corpus": '["mine=book.txt", "sotu"]',
        "prompts": "p.jsonl",
        "dataset_args.needle_haystack.local_path": "texts",
    }


def test_an_empty_run_is_a_page_too() -> None:
    html = page_html([a_page_run([])])
    assert data_of(html)["runs"][0]["trials"]["n"] == 0


def test_runs_are_paired_by_question_only_when_there_are_several() -> None:
    one = a_page_run(some_rows(model="a"), model="a")
    other = a_page_run(some_rows(model="b"), model="b")
    assert "recipe" not in data_of(page_html([one]))["runs"][0]["trials"]["columns"]
    first, second = (run["trials"]["columns"]["recipe"] for run in data_of(page_html([one, other]))["runs"])
    assert first == second and len(set(first)) == len(first)


def test_both_languages_have_the_same_words() -> None:
    english, chinese = page_words("en"), page_words("zh")
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", chinese[key])), key


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_word_that_the_script_says_is_known(lang: Any) -> None:
    html = page_html([a_page_run(some_rows())], lang=lang)
    said = set(re.findall(r'\bsay\(\s*"(\w+)"', html)) | set(re.findall(r'\bpart\(\s*"(\w+)"', html))
    assert said and not said - page_words(lang).keys()
    assert f'lang="{"zh-Hans" if lang == "zh" else "en"}"' in html


def test_outcomes_have_the_same_colours_on_the_page_and_in_pictures() -> None:
    style = re.search(r":root \{(.*?)\}", page_html([a_page_run([])]), re.DOTALL)
    assert style is not None
    found = dict(re.findall(r"--o-([a-z_]+): (#[0-9a-f]{6})", style[1]))
    assert {name: found.get(name) for name in get_args(Outcome)} == {name: COLOURS[name] for name in get_args(Outcome)}


def test_the_notes_of_a_report_are_said_in_chinese_too() -> None:
    rows = some_rows(replicates=1)
    again = [(replace(t, repeat=1, id=f"{t.id}-1"), r, s) for t, r, s in rows]
    cut = [(t, replace(r, finish="length"), replace(s, outcome="wrong", score=0.0)) for t, r, s in rows[:1]]
    notes = a_page_run([*rows, *again, *cut]).report["notes"]
    assert len(notes) == 3 and [note_words(note, "en") for note in notes] == notes
    for note in notes:
        assert not re.search("[a-z]{3}", re.sub(r"--[a-z-]+", "", note_words(note, "zh")))
    assert note_words("something else", "zh") == "something else"
