"""A comparison in the terminal, as Markdown and as JUnit: the same figures, and nothing that an answer could break."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest
from rich.console import Console

from needlepoint.learn.change import Comparison
from needlepoint.learn.compare import compare_pairs
from needlepoint.learn.gate import Gate
from needlepoint.learn.pairing import pair_rows
from needlepoint.show.junit import junit_xml
from needlepoint.show.pull_request import comparison_markdown
from needlepoint.show.verdict import nats, points, verdict
from needlepoint.show.versus import show_comparisons
from needlepoint.types import Margin, Needle, Reply, Score, Trial

HOSTILE = "| a | <script>alert(1)</script> [x](http://e.x) @you #1 `c` **b**\n\n# head\x00\x1b[31m\ud800\ufffe ]]>"
TRIAL = Trial(
    id="t", dataset="d", subset="english", layout="classic", length_mode="exact", replicate=0, repeat=0,
    context_length=1_000, depth_percent=0.0, achieved_length=1_000, achieved_depth_percent=0.5, boundary="sentence",
    needles=(Needle(text="n"),), placements=(), question="?", answers=("4711",), corpus="c", corpus_sha256="0",
    tokenizer="t", tokenizer_fingerprint="f", prompt_sha256="p", sent_tokens=1_000, length_proven=True,
)  # fmt: skip


def a_comparison(bad: int = 12, *, answer: str = "no idea", names: tuple[str, str] = ("a", "b")) -> Comparison:
    one, other = [], []
    for number in range(100):
        place = {"context_length": 1_000 * (1 + number // 50), "depth_percent": float(number % 50)}
        trial = replace(TRIAL, **place, prompt_sha256=str(number))
        right = Score(outcome="correct", score=1.0, reason="", span=None, scorer="rules")
        wrong = Score(outcome="wrong", score=0.0, reason="", span=None, scorer="rules")
        one.append((trial, Reply(text="It is 4711."), right))
        other.append((trial, Reply(text=answer), wrong) if number < bad else (trial, Reply(text="4711"), right))
    return compare_pairs(pair_rows(one, other), names=names, scorer="rules", margin=0.02, notes=["mind this"])


def with_margins(fell: float) -> Comparison:
    """Every answer right in both runs, margins lower by about so much in the second."""
    sides: list[list[tuple[Trial, Reply, Score]]] = [[], []]
    right = Score(outcome="correct", score=1.0, reason="", span=None, scorer="rules")
    for number in range(100):
        place = {"context_length": 1_000 * (1 + number // 50), "depth_percent": float(number % 50)}
        trial = replace(TRIAL, **place, prompt_sha256=str(number))
        for side, gold in enumerate((-1.0, -1.0 - fell - number % 7 / 100)):
            margin = Margin(gold=gold, wrong=-4.0, rival="4712", tokens=2)
            sides[side].append((trial, Reply(text="4711", margin=margin), right))
    return compare_pairs(pair_rows(*sides), names=("a", "b"), scorer="rules")


def printed(found: Comparison, gate: Gate | None = None, *, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    console = Console(
        file=io.TextIOWrapper(raw, encoding=encoding, write_through=True), width=100, highlight=False, markup=False
    )
    show_comparisons([(found, () if gate is None else gate.shortfalls(found))], gate=gate, console=console)
    return raw.getvalue().decode(encoding)


def test_the_terminal_tells_the_difference_its_interval_and_what_flipped() -> None:
    out = printed(a_comparison(), Gate(fail_if_worse=0.02))
    assert "Worse: 100% → 88.0%, −12.0 points (95%:" in out and "p < 0.001; 12 lost, 0 gained of 100 questions." in out
    assert re.search(r"^  1k +50 +100% +76\.0% +−24\.0 ", out, re.MULTILINE)
    assert "lost: english 1k at 0%" in out and "A correct: It is 4711." in out and "B wrong: no idea" in out
    assert "FAILED: accuracy is 12.0 points worse" in out and "Note: mind this" in out
    assert "Not shown to be equivalent within 2 points" in out


def test_the_terminal_prints_no_control_characters_of_an_answer() -> None:
    out = printed(a_comparison(answer=HOSTILE, names=("a\x1b]0;t\x07", "b\n\nc")))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]", out)


def test_a_terminal_without_unicode_still_tells_it() -> None:
    out = printed(a_comparison(), encoding="ascii")
    assert "100% -> 88.0%, -12.0 points" in out


def test_no_change_is_said_without_claiming_that_there_is_none() -> None:
    found = a_comparison(0)
    assert verdict(found).startswith("No sign of a change: 100% → 100%, 0.0 points")
    assert "PASSED" in printed(found, Gate(fail_if_worse=0.0))


def test_margins_are_told_in_the_terminal_in_markdown_and_in_junit() -> None:
    found = with_margins(0.5)
    says = "Margins fell: 3.00 → 2.47, −0.53 nats (95%: −0.53 to −0.53), p < 0.001, by Student's t of questions; "
    says += "the right value fell behind in 0, came ahead in 0 of 100 questions."
    out, text = printed(found), comparison_markdown([(found, ())])
    assert says in out.replace("\n", " ") and says in text.replace("\\", "")
    assert re.search(r"^Margins, in nats  Questions +A +B  Change ", out, re.MULTILINE)
    assert re.search(r"^  2k +50 +3\.00 +2\.47 +−0\.53 .*<0\.001\*", out, re.MULTILINE)
    assert "| margins | questions | A | B | nats |" in text and "| **−0.53** |" in text
    root = Xml.fromstring(junit_xml([(found, ())]).encode())
    numbers = {one.get("name"): one.get("value") for one in root.iter("property")}
    assert numbers["margin_questions"] == "100" and float(numbers["margin_difference_nats"] or 0) == pytest.approx(
        -0.5295
    )
    assert says in (root.findtext("testsuite/system-out") or "")


def test_margins_that_did_not_move_are_said_so_and_absent_ones_not_at_all() -> None:
    out = printed(with_margins(-0.03))
    assert "No sign that margins moved: 3.00 → 3.00, " in out
    assert "argin" not in printed(a_comparison()) + comparison_markdown([(a_comparison(), ())])


def test_nats_have_a_sign_and_digits_enough() -> None:
    assert [nats(one) for one in (0.3149, -2.0, 0.0021, -0.00001, 0.0)] == ["+0.31", "−2.00", "+0.0021", "0.00", "0.00"]


def test_points_have_a_sign_and_never_a_negative_zero() -> None:
    assert [points(share) for share in (-0.0004, 0.0, 0.031, -0.12)] == ["0.0", "0.0", "+3.1", "−12.0"]


def test_markdown_has_a_table_that_no_answer_breaks() -> None:
    found = a_comparison(answer=HOSTILE, names=("a|b<i>", "`c` @you"))
    text = comparison_markdown([(found, ())], gate=Gate(fail_if_worse=0.5))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {10, 5}
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)  # nothing of an answer stands outside of a code span
    assert not re.search(r"script|@you|http|head|\*\*b\*\*", outside)
    assert text.startswith("### ✅ `` `c` @you `` against `a\\|b<i>`\n")
    assert set(re.findall(r"<(/?\w+)", outside)) == {"details", "/details", "summary", "/summary"}
    assert "| &lt; 0.001 |" in text and "Flipped: 12 lost, 0 gained" in text


def test_markdown_marks_what_failed() -> None:
    found, gate = a_comparison(), Gate(fail_if_worse=0.02)
    text = comparison_markdown([(found, gate.shortfalls(found))], gate=gate)
    assert text.startswith("### ❌ `b` against `a`\n") and "FAILED: accuracy is 12.0 points worse" in text


@pytest.mark.parametrize(("gate", "failures", "skipped"), [(None, 0, 2), (Gate(fail_if_worse=0.02), 1, 0)])
def test_junit_has_a_case_for_each_bar(gate: Gate | None, failures: int, skipped: int) -> None:
    found = a_comparison(answer=HOSTILE, names=("a\x00", 'b"<&'))
    text = junit_xml([(found, () if gate is None else gate.shortfalls(found))], gate=gate)
    root = Xml.fromstring(text.encode())
    (suite,) = root
    assert root.tag == "testsuites" and (root.get("tests"), root.get("failures")) == ("2", str(failures))
    assert [child.tag for child in suite] == ["properties", "testcase", "testcase", "system-out"]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", str(failures), str(skipped))
    assert [case.get("name") for case in suite.iter("testcase")] == ["accuracy", "coverage"]
    assert {case.get("classname") for case in suite.iter("testcase")} == {"needlepoint.compare.b"}
    assert len(list(suite.iter("failure"))) == failures and len(list(suite.iter("skipped"))) == skipped
    numbers = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert numbers["difference"] == "-0.120000" and numbers["questions"] == "100"
