"""The page in a real browser: what it shows, how it is worked, what it must never do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from needlepoint.show.page import page_html
from needlepoint.show.trials import Excerpt

from ..show.page_runs import a_page_run, many_rows, some_rows, with_margins

pytestmark = pytest.mark.browser
Opened = Callable[..., Any]

EVIL = (
    "</script><script>window.caught=1</script><img src=x onerror=window.caught=2><svg onload=window.caught=3>"
    "<iframe srcdoc='<script>parent.caught=4</script>'></iframe><a href=javascript:caught=5>x</a>"
    "<style>*{display:none!important}</style><base href=http://evil.test/><meta http-equiv=refresh content=0>"
    '{{7*7}}${caught=6}`+(window.caught=7)+`"onmouseover="caught=8" \'><!--'
    '\u202egnp.exe\u202c \x1b[2J\x1b]0;title\x07 \u2028\u2029 =HYPERLINK("http://evil.test") __proto__ constructor'
)


def cells(page: Any) -> Any:
    return page.locator("#maps td[role=gridcell]")


def at(page: Any, subset: int, row: int, column: int) -> Any:
    return page.locator("#maps table").nth(subset).locator("tbody tr").nth(row).locator("td").nth(column)


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.tagName"))


def test_a_clicked_cell_shows_its_trials(opened: Opened) -> None:
    page = opened(page_html([a_page_run(some_rows())]))
    at(page, 0, 0, 1).click()
    detail = page.locator("#detail")
    assert detail.locator("h2").inner_text() == "4k · depth 0%"
    assert detail.locator("article").count() == 2
    card = detail.locator("article").first
    assert card.locator("mark").first.inner_text() == "The gate code is 4711."
    assert "The ferry came late." in card.inner_text() and "Nobody saw it." in card.inner_text()
    assert card.locator("mark.hit").inner_text() == "4711"
    text = card.inner_text()
    for said in ("What is the gate code?", "states it", "Scored by: rules", "4,000", "at a sentence end", "25%"):
        assert said in text, said
    card.locator("summary").click()
    assert card.locator("code").first.inner_text() == "needlepoint show 20261119T000000Z_model english:4000:0"
    assert at(page, 0, 0, 1).get_attribute("aria-selected") == "true"


def test_the_map_is_worked_by_keys_alone(opened: Opened) -> None:
    page = opened(page_html([a_page_run(some_rows())]))
    cells(page).first.focus()
    for key, said in (
        ("ArrowRight", "4k · depth 0%"),
        ("ArrowDown", "4k · depth 25%"),
        ("End", "32k · depth 25%"),
        ("ArrowRight", "32k · depth 25%"),
        ("Home", "1k · depth 25%"),
        ("Control+End", "32k, depth 100%: not asked"),
        ("PageUp", "32k · depth 0%"),
        ("ArrowLeft", "16k · depth 0%"),
    ):
        page.keyboard.press(key)
        assert focused(page).startswith(said), key
    page.keyboard.press("Enter")
    assert page.locator("#detail h2").inner_text() == "16k · depth 0%"
    assert "2 trials" in page.locator("p.unseen[role=status]").first.inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    assert page.locator("#detail h2").inner_text() == "16k · depth 25%"
    assert page.locator("#maps td[tabindex='0']").count() == 2  # one stop of the Tab key for each map
    page.locator("#detail summary").first.focus()
    page.keyboard.press("Escape")
    assert focused(page).startswith("16k · depth 25%")


def test_every_control_is_reached_by_tab_and_none_twice(opened: Opened) -> None:
    page = opened(page_html([a_page_run(some_rows(model="a"), model="a"), a_page_run(some_rows(model="b"), model="b")]))
    wanted = page.evaluate(
        """() => [...document.querySelectorAll('a[href],button,select,input,summary,[tabindex="0"]')]
            .filter(e => e.checkVisibility({visibilityProperty: true}) && e.tabIndex >= 0).length"""
    )
    reached = page.evaluate_handle("new Set()")
    for _ in range(wanted):
        page.keyboard.press("Tab")
        page.evaluate("(seen) => seen.add(document.activeElement)", reached)
    assert page.evaluate("(seen) => seen.size", reached) == wanted


def test_invalid_partly_valid_and_unasked_cells_differ(opened: Opened) -> None:
    page = opened(page_html([a_page_run(some_rows())]))
    invalid, partial, empty = at(page, 0, 3, 3), at(page, 0, 3, 2), at(page, 0, 4, 3)
    assert "invalid" in (invalid.get_attribute("class") or "")
    assert "gradient" in invalid.evaluate("e => getComputedStyle(e).backgroundImage")
    assert "partial" in (partial.get_attribute("class") or "")
    assert empty.evaluate("e => getComputedStyle(e).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert "2 failed" in (invalid.get_attribute("aria-label") or "")
    assert "not asked" in (empty.get_attribute("aria-label") or "")


def test_pointing_at_a_cell_tells_its_numbers(opened: Opened) -> None:
    page = opened(page_html([a_page_run(some_rows())]))
    at(page, 0, 1, 1).hover()
    tip = page.locator(".tip")
    assert tip.is_visible() and "2 of 2 valid" in tip.inner_text()
    page.locator("h1").hover()
    assert not tip.is_visible()


def test_filters_narrow_maps_trials_and_gallery(opened: Opened) -> None:
    rows = some_rows()
    rows = [(replace(t, layout="woven"), r, s) if t.replicate else (t, r, s) for t, r, s in rows]
    page = opened(page_html([a_page_run(rows)]))
    assert page.locator("#maps figure:visible").count() == 2
    page.get_by_role("combobox", name="Subset", exact=True).select_option("english")
    assert page.locator("#maps figure:visible").count() == 1
    page.get_by_role("combobox", name="Outcome", exact=True).select_option("failed")
    assert page.locator("#failures h2").inner_text() == "Answers: failed"
    assert page.locator("#failures > p").inner_text() == "3 trials"
    assert at(page, 0, 0, 0).evaluate("e => e.classList.contains('dim')")
    page.get_by_role("combobox", name="Layout", exact=True).select_option("classic")
    assert page.locator("#failures article").count() == 1
    at(page, 0, 3, 3).click()
    assert page.locator("#detail article").count() == 1
    assert "1 of 2 trials pass the filters" in page.locator("#detail").inner_text()
    page.get_by_role("button", name="Reset").click()
    assert page.locator("#maps figure:visible").count() == 2 and page.locator("#detail article").count() == 2


def test_an_outcome_is_a_filter_too(opened: Opened) -> None:
    page = opened(page_html([a_page_run(some_rows())]))
    button = page.locator("#outcomes button", has_text="correct")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator("#failures h2").inner_text() == "Answers: correct"
    assert page.get_by_role("combobox", name="Outcome", exact=True).input_value() == "correct"
    button.click()
    assert page.locator("#failures h2").inner_text() == "Failures"


def test_the_gallery_shows_failures_first_and_more_on_demand(opened: Opened) -> None:
    page = opened(page_html([a_page_run(many_rows(200))]))
    gallery = page.locator("#failures")
    assert gallery.locator("article").count() == 6
    gallery.get_by_role("button", name=re.compile("^Show")).press("Enter")
    assert gallery.locator("article").count() == 12
    assert page.evaluate("document.activeElement.tagName") == "ARTICLE"
    assert "correct" not in gallery.locator(".badge").all_inner_texts()


def test_looks_can_be_chosen(opened: Opened) -> None:
    page = opened(page_html([a_page_run(some_rows())]))
    cell = at(page, 0, 0, 0)
    assert cell.get_attribute("data-shown") == "100"
    page.get_by_label("Numbers").uncheck()
    assert cell.get_attribute("data-shown") is None
    before = cell.evaluate("e => getComputedStyle(e).backgroundColor")
    page.get_by_role("combobox", name="Colours", exact=True).select_option("classic")
    assert cell.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(46, 158, 91)" != before
    paper = "getComputedStyle(document.body).backgroundColor"
    page.get_by_role("combobox", name="Theme", exact=True).select_option("dark")
    assert page.evaluate(paper) == "rgb(20, 22, 26)"
    page.get_by_role("combobox", name="Theme", exact=True).select_option("light")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"


def test_dark_follows_the_system_and_paper_is_white(opened: Opened) -> None:
    page = opened(page_html([a_page_run(some_rows())]), color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(20, 22, 26)"
    page.emulate_media(media="print")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    assert not page.locator("#tools").is_visible()


def test_a_cell_has_an_address(opened: Opened) -> None:
    html = page_html([a_page_run(some_rows(subsets=["odd: 名/#?", "english"]))])
    page = opened(html)
    at(page, 0, 1, 2).click()
    address = page.evaluate("location.hash")
    again = opened(html, hash=address)
    assert again.locator("#detail h2").inner_text() == "16k · depth 25%"
    for wrong in ("#0:%E0%A4%A:1:1", "#9:english:1:1", "#0:english", "#constructor:x:1:1"):
        opened(html, hash=wrong)


def test_charts_tell_their_numbers(opened: Opened) -> None:
    page = opened(page_html([a_page_run(some_rows())]))
    charts = page.locator("#charts svg")
    assert charts.count() >= 4
    assert all(charts.nth(n).get_attribute("aria-label") for n in range(charts.count()))
    page.locator("#charts summary").first.click()
    table = page.locator("#charts table").first
    table.locator("tbody tr").first.wait_for()
    assert table.locator("tbody tr").count() == 4 and "100%" in table.inner_text()


def test_margins_stand_on_cards_and_in_a_chart_that_goes_below_0(opened: Opened) -> None:
    page = opened(page_html([a_page_run(with_margins(some_rows()))]))
    at(page, 0, 0, 1).click()
    card = page.locator("#detail article").first.inner_text()
    assert "2.10 nats" in card and "right value −1.50, likeliest wrong one “4712” −3.60" in card
    chart = page.locator("#charts figure", has=page.get_by_role("img", name="Margin by context length"))
    assert chart.locator("svg .band").count() == 2 and chart.locator("svg circle").count() == 8
    chart.locator("summary").click()
    chart.locator("tbody tr").first.wait_for()
    rows = chart.locator("tbody tr").all_inner_texts()
    assert len(rows) == 4 and "2.40 [2.40,\u00a02.40]" in rows[0] and rows[3].startswith("32k\t−0.70 ")
    zero, lowest = (chart.locator(f"svg {mark}").first for mark in ("line.mark", "path.line"))
    assert zero.bounding_box()["y"] < sum(lowest.bounding_box()[side] for side in ("y", "height"))
    several = [a_page_run(with_margins(some_rows(model=name)), model=name) for name in "ab"]
    each = opened(page_html(several)).get_by_role("img", name="Margin by context length · ")
    assert each.count() == 2 and each.first.locator("path.line").count() == 2  # a chart a subset, a line a run
    assert "Margin" not in opened(page_html([a_page_run(some_rows())])).locator("main").inner_text()


def test_two_runs_stand_side_by_side_with_what_flipped(opened: Opened) -> None:
    one, other = some_rows(model="a"), some_rows(model="b", seed=3)
    page = opened(page_html([a_page_run(one, model="a"), a_page_run(other, model="b")]))
    assert page.locator("#maps figure").count() == 4
    pairs = list(zip(one, other, strict=True))
    both = [(a[2].score, b[2].score) for a, b in pairs if a[2].score is not None and b[2].score is not None]
    gained, lost = sum(b > a for a, b in both), sum(b < a for a, b in both)
    assert gained and lost
    said = page.locator("#compare .lead").inner_text()
    assert f"{len(pairs)} questions" in said and f"{gained} gained, {lost} lost" in said
    assert page.locator("#compare h3", has_text="Flipped").inner_text() == f"Flipped: {gained + lost}"
    assert page.locator("#compare article").count() == min(6, gained + lost)
    page.get_by_role("combobox", name="From", exact=True).select_option("1")
    assert "two different runs" in page.locator("#compare").inner_text()
    page.get_by_role("combobox", name="To", exact=True).select_option("0")
    assert f"{lost} gained, {gained} lost" in page.locator("#compare .lead").inner_text()
    page.locator("#compare td").first.click()
    assert page.locator("#detail article").count() == 2


def test_runs_on_other_questions_are_not_compared(opened: Opened) -> None:
    other = [(replace(t, prompt_sha256="0" * 64), r, s) for t, r, s in some_rows(subsets=["english"], replicates=1)]
    page = opened(page_html([a_page_run(some_rows(), model="a"), a_page_run(other, model="b")]))
    assert "did not ask the same prompts" in page.locator("#compare").inner_text()


def test_a_run_without_answers_or_texts_is_shown_without_them(opened: Opened) -> None:
    rows = []
    for trial, reply, score in some_rows(replicates=1):
        bare = replace(trial, prompt_sha256=None, achieved_length=None, achieved_depth_percent=None, placements=())
        bare = replace(bare, needles=(), question="", boundary=None, sent_tokens=None)
        bare_reply = replace(
            reply, text="", attempts=0, usage=replace(reply.usage, prompt=None, cached=None), error=None
        )
        rows.append((bare, bare_reply, replace(score, raw=7.0, scale=(1.0, 10.0), scorer="imported", span=None)))
    page = opened(page_html([replace(a_page_run(rows), settings={}, folder="")]))
    at(page, 0, 0, 0).click()
    card = page.locator("#detail article").first.inner_text()
    assert "7 (1–10)" in card and "null" not in card and "undefined" not in card and "NaN" not in card
    assert "Answer\n" not in card and "Needle" not in card


def test_a_run_without_anything_says_so(opened: Opened) -> None:
    page = opened(page_html([a_page_run([])]))
    assert "no answers yet" in page.locator("#maps").inner_text()


@pytest.mark.parametrize("wide", [False, True], ids=["100 cells", "10,000 cells"])
def test_ten_thousand_trials_open_with_little_work(opened: Opened, wide: bool) -> None:
    """The page's own seconds of the processor, script and layout and all, whatever else the machine is doing."""
    html = page_html([a_page_run(many_rows(10_000, wide=wide))])
    assert len(html.encode()) < 15_000_000
    page = opened("<!doctype html><html data-ready><title>warm</title></html>")
    watch = page.context.new_cdp_session(page)
    watch.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy_s() -> float:
        found = watch.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in found if one["name"] == "TaskDuration")

    before = busy_s()
    Path(url2pathname(urlsplit(page.url).path)).write_text(html, encoding="utf-8", newline="\n")
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
    spent = busy_s() - before
    assert 0 < spent < 2
    cells(page).nth(37).click()
    assert page.locator("#detail article").count() == (1 if wide else 6)


def test_hostile_content_never_runs(opened: Opened) -> None:
    rows = []
    for number, (trial, reply, score) in enumerate(some_rows(subsets=[f"sub{EVIL}"], replicates=1)):
        needle = replace(trial.needles[0], text=EVIL, answers=(EVIL,))
        trial = replace(trial, needles=(needle,), question=EVIL, layout=EVIL, boundary=EVIL)  # type: ignore[arg-type]
        text = EVIL if number % 2 else "<b>" * 350_000
        if reply.error is None:
            reply = replace(reply, text=text, reasoning=EVIL, finish=EVIL)
        rows.append((trial, reply, replace(score, reason=EVIL, scorer=EVIL, span=(0, 30) if reply.text else None)))
    run = a_page_run(rows, model=EVIL)
    excerpt = (Excerpt(before=EVIL[:200], after=EVIL[-200:]),)
    run = replace(
        run,
        folder=EVIL,
        notes=[EVIL],
        excerpts={t.prompt_sha256: excerpt for t, _, _ in rows if t.prompt_sha256},
        settings={
            "identity": {EVIL: EVIL},
            "corpora": {EVIL: {"name": EVIL, "licence": EVIL, "sha256": EVIL}},
            "created": EVIL,
        },
        report={**run.report, "notes": [EVIL], "dataset": EVIL, "layout": EVIL, "scorer": EVIL},
    )
    page = opened(page_html([run, run], title=EVIL))
    for number in range(8):
        cells(page).nth(number).click()
    for summary in page.locator("summary:visible").all():
        summary.click()
    for select in page.locator("#maps select").all():
        select.select_option(index=1)
    page.wait_for_timeout(100)
    assert page.evaluate("window.caught") is None
    assert page.locator("img, iframe, main a, main style, base").count() == 0
    assert page.locator("script").count() == 2
    assert page.locator("h1").is_visible()
    assert "\u202e" not in page.content() and "\x1b" not in page.content()
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0


def test_the_policy_stops_what_is_put_into_the_page(opened: Opened, chromium: Any, tmp_path: Any) -> None:
    """A canary: were something to get past the escaping, the policy would still not let it run."""
    html = page_html([a_page_run(some_rows())])
    evil = (
        "<script>window.caught=1</script><img src=x onerror='window.caught=2'><p style='color:red' onclick='caught=3'>"
    )
    assert html.count("</header>") == 1
    file = tmp_path / "canary.html"
    file.write_text(html.replace("</header>", f"</header>{evil}"), encoding="utf-8")
    context = chromium.new_context()
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("window.caught") is None
    assert any("Content Security Policy" in text for text in told)
    page.evaluate("() => { try { setTimeout('window.caught = 9') } catch (refused) {} }")
    page.wait_for_timeout(100)
    assert page.evaluate("window.caught") is None
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("several", [False, True], ids=["one run", "two runs"])
def test_axe_finds_no_serious_violation(opened: Opened, axe: str, lang: Any, scheme: str, several: bool) -> None:
    runs = [a_page_run(some_rows(model="a"), model="a"), a_page_run(some_rows(model="b", seed=3), model="b")]
    page = opened(page_html(runs if several else runs[:1], lang=lang), color_scheme=scheme)
    at(page, 0, 3, 2).click()
    for summary in page.locator("summary:visible").all():
        summary.click()
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    told = [
        f"{one['id']} ({one['impact']}): {node['html'][:160]} {node['failureSummary'][:300]}"
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"][:3]
    ]
    assert told == []


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_phone_needs_no_sideways_scrolling(opened: Opened, width: int) -> None:
    runs = [a_page_run(some_rows(model="a"), model="a"), a_page_run(some_rows(model="b", seed=3), model="b")]
    for shown in (runs[:1], runs):
        page = opened(page_html(shown), viewport={"width": width, "height": 800}, has_touch=True)
        at(page, 0, 1, 1).tap()
        for _ in range(50):  # it glides there
            if page.evaluate("document.querySelector('#detail h2').getBoundingClientRect().top < innerHeight"):
                break
            page.wait_for_timeout(50)
        else:
            pytest.fail("the chosen cell's trials did not come into view")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
