"""`report.html`: one or several runs as one page that needs nothing else: no network, no server, no other file.

The page is a frame, a style, a script and the data, as JSON. The script builds everything from the data by
`textContent`, so nothing that a model, a corpus or a server said is ever read as HTML; and the content security policy
lets only this very script and style run (by their sha256), no eval, no request to anywhere. The same runs give the same
bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, get_args

from ..types import VALID_OUTCOMES, Outcome
from .colours import ANCHORS, Scale
from .facts import layout_of, records
from .labels import Lang
from .notes import note_words
from .page_words import page_words
from .sentence import result_sentence
from .trials import TEXT_BYTES, Excerpt, Row, Texts, trial_columns
from .visible import visible, visible_line
from .words import in_order

_SCRIPTS = ("dom", "runs", "map", "cards", "detail", "charts", "compare", "sections", "main")
_PLACES = ("corpus", "prompts", "local_path", "dataset_dir")
_LONGEST_SETTING = 600
_UNSAFE = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRun:
    """One run, as the page takes it: what its folder holds.

    `settings` is `run.json`; `excerpts` are by the prompt's sha256; `notes` are lines for people, `folder` what to call
    the run by on the command line.
    """

    report: Mapping[str, Any]
    trials: Iterable[Row] = ()
    folder: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    excerpts: Mapping[str, Sequence[Excerpt]] = field(default_factory=dict)
    notes: Sequence[str] = ()


def page_html(runs: Sequence[PageRun], *, lang: Lang = "en", title: str | None = None, scale: Scale = "default") -> str:
    """The whole page. With several runs they stand side by side, and what changed between them is listed."""
    texts, words = Texts(), page_words(lang)
    shown = [_run(run, texts, lang, number=len(runs)) for run in runs]
    data = {
        "lang": lang,
        "words": words,
        "scale": scale,
        "colours": ANCHORS,
        "outcomes": {name: name in VALID_OUTCOMES for name in get_args(Outcome)},
        "runs": shown,
        "texts": texts.all(),
    }
    names = [run["model"] for run in shown]
    heading = visible_line(title) if title else words["title"].format(models=" · ".join(names))
    style, script = _style(), _script()
    policy = (
        f"default-src 'none'; script-src '{_sha256(script)}'; style-src '{_sha256(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    from markupsafe import Markup

    return str(
        _template().render(
            lang={"en": "en", "zh": "zh-Hans"}[lang],
            words=words,
            policy=policy,
            heading=heading,
            results=[(run["model"], run["sentence"]) for run in shown],
            description=shown[0]["sentence"] if shown else "",
            style=Markup(style),
            script=Markup(script),
            data=Markup(_json(data)),
        )
    )


def _run(run: PageRun, texts: Texts, lang: Lang, *, number: int) -> dict[str, Any]:
    report = run.report
    rows = list(run.trials)
    kept = trial_columns(
        rows, texts=texts, excerpts=run.excerpts, paired=number > 1, text_bytes=TEXT_BYTES // max(1, number)
    )
    model = visible_line(str(report.get("model") or run.folder or "?"), 120)
    if (layout := layout_of(report)) is not None:
        model = f"{model} · {visible_line(layout)}"
    facts = (
        "dataset",
        "layout",
        "length_mode",
        "scorer",
        "overall",
        "effective_length",
        "position",
        "tokens",
        "cost",
        "interval_level",
        "pace",
        "recall",
        "margin",
    )
    return {
        "model": model,
        "folder": visible_line(run.folder),
        "sentence": result_sentence(report, lang),
        "created": _harmless(run.settings.get("created")),
        **{name: _harmless(report.get(name)) for name in facts},
        "outcomes": dict(in_order(report.get("outcomes") or {})),
        "subsets": [
            {**_harmless(subset), "name": visible(str(subset.get("name") or "all"))}
            for subset in records(report.get("subsets"))
        ],
        "trials": kept,
        "n_trials": len(rows),
        "notes": [_harmless(note_words(str(note), lang)) for note in report.get("notes") or ()],
        "warnings": [visible_line(note, 400) for note in run.notes],
        "corpora": _corpora(run),
        "settings": _settings(run),
    }


def _harmless(value: Any) -> Any:
    """Plain JSON with every text made visible."""
    if isinstance(value, str):
        return visible(value[:_LONGEST_SETTING])
    if isinstance(value, Mapping):
        return {str(key): _harmless(item) for key, item in value.items()}
    return [_harmless(item) for item in value] if isinstance(value, list | tuple) else value


def _corpora(run: PageRun) -> list[dict[str, str]]:
    corpora = run.settings.get("corpora") or run.report.get("corpus") or {}
    return [
        {"subset": visible_line(str(subset))}
        | {str(key): visible_line(str(value)) for key, value in facts.items() if value is not None}
        for subset, facts in corpora.items()
        if isinstance(facts, Mapping)
    ]


def _settings(run: PageRun) -> list[list[Any]]:
    """Groups of (name, value) lines, from `run.json`; what is not set is left out."""
    groups = []
    for group in ("identity", "free", "endpoint", "tokenizer", "versions", "imported"):
        part = run.settings.get(group)
        if isinstance(part, Mapping) and (lines := list(_lines(part))):
            groups.append([group, lines])
    more = {name: run.settings.get(name) for name in ("created", "max_tokens", "limit_tokens")}
    if lines := list(_lines(more)):
        groups.append(["run", lines])
    return groups


def _named(place: object) -> object:
    """A text's or file's name without the folders before it: where it lies is nobody's business."""
    if not isinstance(place, str):
        return place
    subset = found[0] if (found := re.match(r"[\w-]+=", place)) else ""
    path = place.removeprefix(subset)
    return subset + (re.split(r"[/\\]", path.rstrip("/\\"))[-1] or path)


def _lines(part: Mapping[str, Any], before: str = "") -> Iterable[list[str]]:
    for key, value in part.items():
        if key in _PLACES:
            value = [_named(place) for place in value] if isinstance(value, list) else _named(value)
        if isinstance(value, Mapping) and value:
            yield from _lines(value, f"{before}{key}.")
        elif value is not None and value != {} and value != []:
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield [visible_line(before + str(key)), visible_line(shown, _LONGEST_SETTING)]


def _json(data: Any) -> str:
    """JSON that may stand in a script element: nothing in it can end the element or begin a comment."""
    dumped = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return dumped.translate(_UNSAFE).encode(errors="replace").decode()


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _file(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    return "\n" + _file("page.css")


@cache
def _script() -> str:
    """One script from its files, in the order in which they build on each other."""
    return '\n"use strict";\n(() => {\n' + "\n".join(_file(f"{name}.js") for name in _SCRIPTS) + "})();\n"


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True).from_string(
        _file("page.html")
    )
