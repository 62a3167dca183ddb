"""`report.md`: a run, or several side by side, for a pull request or an issue. Pure.

Names and answers come from outside, and Markdown can do a lot: they stand in code spans, where no link, picture,
mention or HTML in them means anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..types import VALID_OUTCOMES, Reply, Score, Trial
from .facts import Square, coverage, interval, number, outcomes, record, squares, subset_name, subsets_of
from .labels import Lang, subset_label, word
from .sentence import effective_length, result_sentence
from .visible import visible_line
from .words import depth_label, in_order, length_label, percent, percent_whole

Row = tuple[Trial, Reply, Score]
_MOST_LENGTHS, _MOST_DEPTHS = 16, 21
_MOST_FAILURES, _LONGEST_ANSWER = 5, 160
_WORDS = {
    "by_cell": ("Score in % by length and depth, {subset}", "各长度与深度得分（%），{subset}"),
    "every": ("1 of {n} lengths is shown; `report.json` has all.", "每 {n} 个长度显示一个；全部见 `report.json`。"),
    "failures": ("{some} of {n} answers that are not correct", "非正确回答：{n} 条中的 {some} 条"),
    "made": ("Made with needlepoint", "由 needlepoint 生成"),
    "model": ("Model", "模型"),
    "score": ("Score", "得分"),
    "interval": ("95% interval", "95% 区间"),
    "valid": ("Valid", "有效"),
    "coverage": ("Coverage", "覆盖率"),
    "reach": ("Effective length", "有效长度"),
    "answer": ("Answer", "回答"),
    "cell": ("Cell", "单元"),
    "none": ("none", "无"),
    "all": ("all", "全部"),
}


def markdown_of(
    reports: Mapping[str, Mapping[str, Any]],
    *,
    lang: Lang = "en",
    title: str | None = None,
    failures: Sequence[Row] = (),
) -> str:
    """Reports by the names that they are shown under. `failures` are trials of the only run, its worst first."""
    several = len(reports) > 1
    models = [word("haystack", lang), *map(code, reports)]
    lines = [f"### {escaped(title) if title else ' · '.join(models)}", ""]
    for name, report in reports.items():
        sentence = escaped(result_sentence(report, lang))
        lines.append(f"- {code(name)}: {sentence}" if several else f"**{sentence}**")
    lines += ["", *_table(reports, lang), ""]
    for name, report in reports.items():
        for subset in subsets_of(report):
            lines += _grid(subset, f"{name} · " if several else "", lang)
        if not several:
            lines += _outcomes(report, lang)
    if failures:
        lines += _failures(failures, lang)
    versions = {str(record(report.get("versions")).get("needlepoint") or "") for report in reports.values()} - {""}
    made = f" {code(', '.join(sorted(versions)))}" if versions else ""
    return "\n".join([*lines, f"<sub>{_word('made', lang)}{made}</sub>", ""])


def code(text: str, longest: int = 200) -> str:
    """Any text as a code span of a table: one line, nothing in it has a meaning."""
    line = visible_line(text, longest) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def escaped(text: str) -> str:
    """Our own words with numbers and names in them: punctuation that Markdown reads is escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!&@])", r"\\\1", visible_line(text, 600))


def _table(reports: Mapping[str, Mapping[str, Any]], lang: Lang) -> Iterator[str]:
    several = len(reports) > 1
    heads = [word("subset", lang), *(_word(name, lang) for name in ("score", "interval", "valid", "coverage", "reach"))]
    if several:
        heads.insert(0, _word("model", lang))
    yield _line(heads)
    yield _line(["---"] * (2 if several else 1) + ["--:"] * 5)
    for name, report in reports.items():
        found = subsets_of(report)
        rows = [(code(subset_label(subset_name(row), lang)), row, row) for row in found]
        if len(found) != 1:
            rows.append((_word("all", lang), record(report.get("overall")), report))
        for label, row, whole in rows:
            yield _line([*([code(name)] if several else []), label, *_numbers(row, whole, lang)])


def _numbers(row: Mapping[str, Any], whole: Mapping[str, Any], lang: Lang) -> list[str]:
    ends, reach = interval(row.get("interval")), effective_length(whole)
    n, valid = number(row.get("n")), number(row.get("valid"))
    length = "–"
    if reach is not None:
        threshold, found, at_least = reach
        shown = _word("none", lang) if found is None else f"{'≥ ' if at_least else ''}{length_label(found)}"
        length = f"{shown} ({percent(threshold).replace('.0%', '%')})"
    return [
        f"**{percent(number(row.get('score')))}**",
        "–" if ends is None else f"{percent(ends[0])} – {percent(ends[1])}",
        "–" if n is None or valid is None else f"{valid:,.0f} / {n:,.0f}",
        percent(coverage(row)),
        length,
    ]


def _grid(subset: Mapping[str, Any], before: str, lang: Lang) -> Iterator[str]:
    """The heatmap in numbers, folded away; wide ones thinned out."""
    cells = {(one.length, one.depth): one for one in squares(subset)}
    lengths, depths = (sorted({place[i] for place in cells}) for i in (0, 1))
    every = -(-len(lengths) // _MOST_LENGTHS)
    shown = [length for i, length in enumerate(lengths) if (len(lengths) - 1 - i) % every == 0]
    step = -(-len(depths) // _MOST_DEPTHS)
    name = f"{before}{subset_label(subset_name(subset), lang)}"
    subset_code = f"<code>{_html(visible_line(name))}</code>"
    yield f"<details><summary>{_word('by_cell', lang).format(subset=subset_code)}</summary>"
    yield ""
    yield _line(["", *(length_label(int(length)) for length in shown)])
    yield _line(["--:"] * (len(shown) + 1))
    for depth in depths[::step]:
        row = [cells.get((int(length), depth)) for length in shown]
        yield _line([f"**{depth_label(depth)}**", *map(_figure, row)])
    yield ""
    if every > 1:
        yield f"{_word('every', lang).format(n=every)}\n"
    if any(one.is_invalid or one.lost for one in cells.values()):
        yield f"{_invalid(lang)}\n"
    yield "</details>\n"


def _figure(one: Square | None) -> str:
    if one is None:
        return ""
    if one.score is None:
        return "✕"
    return f"{percent_whole(one.score)}\\*" if one.lost else str(percent_whole(one.score))


def _invalid(lang: Lang) -> str:
    return "✕：没有有效测量；\\*：部分试题无效" if lang == "zh" else "✕: no valid measurement; \\*: some trials invalid"


def _outcomes(report: Mapping[str, Any], lang: Lang) -> Iterator[str]:
    if found := outcomes(report.get("outcomes")):
        told = ", ".join(f"{n:,} {_safe_outcome(name, lang)}" for name, n in in_order(found))
        yield f"{word('outcomes', lang)}: {told}"
        yield ""


def _safe_outcome(name: str, lang: Lang) -> str:
    told = word(name, lang)
    return told if re.fullmatch(r"[\w ]+", told) else code(told)


def _failures(rows: Sequence[Row], lang: Lang) -> Iterator[str]:
    told = _word("failures", lang).format(some=min(len(rows), _MOST_FAILURES), n=f"{len(rows):,}")
    yield f"<details><summary>{told}</summary>"
    yield ""
    yield _line([_word("cell", lang), word("outcome", lang), _word("answer", lang)])
    yield _line(["---", "---", "---"])
    for trial, reply, score in rows[:_MOST_FAILURES]:
        place = f"{trial.subset} · {length_label(trial.context_length)} · {depth_label(trial.depth_percent)}"
        said = reply.text if score.outcome in VALID_OUTCOMES else score.reason
        yield _line([code(place), _safe_outcome(score.outcome, lang), code(said, _LONGEST_ANSWER)])
    yield ""
    yield "</details>\n"


def failures_of(rows: Sequence[Row]) -> list[Row]:
    """Trials that are not correct: the model's own failures first, the shortest contexts first of all."""
    found = [row for row in rows if row[2].outcome != "correct"]
    return sorted(found, key=lambda row: (row[2].outcome not in VALID_OUTCOMES, row[0].context_length))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _html(text: str) -> str:
    from html import escape

    return escape(text).replace("`", "&#96;").replace("|", "&#124;")


def _word(key: str, lang: Lang) -> str:
    return _WORDS[key][lang == "zh"]
