"""`report.md`: what it says, and that nothing in it that came from outside means anything to Markdown."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from needlepoint.show import charts
from needlepoint.show.markdown import code, escaped, failures_of, markdown_of
from needlepoint.show.notebook import notebook_html
from needlepoint.show.page import page_html
from needlepoint.show.sentence import result_sentence
from needlepoint.show.table import show_report

from .page_runs import a_page_run, a_row, a_trial, some_rows

EVIL = (
    "@everyone | #12 ![x](http://evil.test/x.png) <img src=x onerror=alert(1)> </details> **bold** _x_ `code` ``` "
    "[a](javascript:alert(1)) \u202egnp.exe \x1b[2J\n\n# Heading\n| a | b |\n<script>alert(1)</script>"
)


def report_of(rows: list[Any], **changes: Any) -> Any:
    return {**a_page_run(rows).report, **changes}


def without_code(text: str) -> str:
    """What is left for Markdown to read: no code spans, and no `<code>` of our own."""
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text.replace("\\|", ""))
    return re.sub(r"<code>[^<>]*</code>", "", text)


def test_it_has_the_sentence_the_table_the_grid_and_the_failures() -> None:
    rows = some_rows()
    text = markdown_of({"m": report_of(rows)}, failures=failures_of(rows))
    assert text.startswith("### Needle in a Haystack · `m`\n\n**Finds ")
    assert "| `english` | **" in text and "| all | **" in text
    assert "<details><summary>Score in % by length and depth, <code>english</code></summary>" in text
    assert "|  | 1k | 4k | 16k | 32k |" in text and "✕: no valid measurement; \\*: some trials invalid" in text
    wrong = sum(row[2].outcome != "correct" for row in rows)
    assert f"5 of {wrong} answers that are not correct" in text and text.endswith("\n")
    assert "`It is raining in the valley.`" in text


def test_several_runs_share_a_table_and_chinese_is_spoken() -> None:
    runs = {"a": report_of(some_rows(model="a"), model="a"), "b": report_of(some_rows(model="b", seed=3), model="b")}
    text = markdown_of(runs, lang="zh", title="对比")
    assert text.startswith("### 对比\n\n- `a`: 找到 ")
    assert "| `a` | `英文` | **" in text and "| `b` | `中文` | **" in text and "| 模型 | 子集 | 得分 |" in text


def test_wide_grids_are_thinned_out_and_it_is_said() -> None:
    rows = [a_row(a_trial("english", 1_000 * (i + 1), 50.0)) for i in range(40)]
    text = markdown_of({"m": report_of(rows)})
    (head,) = re.findall(r"^\|  \|.*$", text, re.MULTILINE)
    assert head.count("|") <= 19 and head.endswith("| 40k |")
    assert "1 of 3 lengths is shown" in text


@pytest.mark.parametrize("several", [False, True])
def test_foreign_text_means_nothing(several: bool) -> None:
    rows = []
    for trial, reply, score in some_rows(subsets=[f"s{EVIL}"], replicates=1):
        text = EVIL if reply.error is None else ""
        rows.append((replace(trial, question=EVIL), replace(reply, text=text), replace(score, reason=EVIL)))
    report = report_of(rows, model=EVIL, versions={"needlepoint": EVIL}, outcomes={EVIL: 3})
    runs = {EVIL: report, "b": report} if several else {EVIL: report}
    text = markdown_of(runs, title=EVIL, failures=[] if several else failures_of(rows))
    assert "\x1b" not in text and "\u202e" not in text
    left = without_code(text)
    read = re.sub(r"\\.", "", left)
    for mark in ("<img", "<script", "![", "](", "**bold", "# H"):
        assert mark not in read, mark
    assert "@" not in read and not re.search(r"#\d", read)
    assert left.count("<details>") == left.count("</details>")
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in tables}
    assert tables and widths <= {4, 6, 7, 8}  # no line has a cell more than its table


@pytest.mark.parametrize("text", ["", "`", "``a`", "a|b", "x" * 500, "a\nb", " "])
def test_a_code_span_holds_any_text(text: str) -> None:
    span = code(text)
    assert "\n" not in span and len(span) < 210
    fence = re.match("`+", span)
    assert fence is not None and span.endswith(fence[0]) and fence[0] not in span[len(fence[0]) : -len(fence[0])]


def test_our_own_words_are_escaped() -> None:
    assert escaped("a [b](c) <d> @e #f") == "a \\[b\\](c) \\<d\\> \\@e \\#f"


def test_another_layout_is_named_wherever_numbers_stand() -> None:
    report = report_of(some_rows(), layout="woven", model="m")
    titles = [spec["title"]["text"][0] for spec in charts.specs_of(report).values()]
    assert len(titles) > 4 and all("m · woven" in title for title in titles)
    console = Console(record=True, width=100, file=io.StringIO())
    show_report(report, console=console)
    assert "Layout: woven" in console.export_text()
    html = page_html([replace(a_page_run(some_rows()), report=report)])
    assert '"model":"m · woven"' in html and "m · woven" in notebook_html(report, "f")


def test_a_search_says_what_it_found_not_the_score_of_where_it_looked() -> None:
    search = {
        "threshold": 0.85,
        "confidence": 0.95,
        "certified": 9_500,
        "estimate": {"length": 12_194, "interval": [9_514, 16_000], "at_least": False},
    }
    report = report_of(some_rows(), search=search)
    words = "Holds 85% up to 9.5k tokens (95% confidence); the limit is about 12k [9.5k, 16k]"
    assert result_sentence(report).startswith(words)
    assert " ".join(charts.heatmap_spec(report, "english")["title"]["subtitle"]).startswith(words)
    bare = {**search, "certified": None, "estimate": {"length": 32_000, "at_least": True}}
    assert result_sentence({**report, "search": bare}) == (
        "No length is certified to hold 85%; no limit in sight up to 32k; lengths were chosen by the answers"
    )
