"""From run folders to the page: their reports, trials and settings, and the needles in their surroundings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .ask.files import FilePrompt
from .ask.store import RunFolder
from .excerpts import excerpts_of_run
from .plan.prompt import Prompt
from .scoring import scored
from .show.colours import Scale
from .show.labels import Lang
from .show.page import PageRun, page_html
from .show.trials import Excerpt, by_interest
from .text.cache import Notify, Progress

_WORK_DIR = "outputs"
"""The default one: runs in it are found by the same name from where they were made."""


def page_of(
    folders: Sequence[RunFolder],
    reports: Sequence[Mapping[str, Any]] | None = None,
    *,
    lang: Lang = "en",
    title: str | None = None,
    scale: Scale = "default",
    prompts: Iterable[Prompt | FilePrompt] | None = None,
    with_excerpts: bool = True,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> str:
    """`report.html` of one run, or of several side by side. `reports` are theirs, else read from them.

    Needles are shown in some of the text around them where the prompts can be made again (from `prompts`, which are
    the only run's own, where they are still at hand); `with_excerpts` False leaves all text of the corpus out.
    """
    runs = []
    for folder, report in zip(folders, reports or [folder.read_report() for folder in folders], strict=True):
        rows = list(scored(folder))
        excerpts: dict[str, tuple[Excerpt, ...]] = {}
        why = None
        if with_excerpts and not folder.settings.imported:
            first = (rows[number][0] for number in by_interest(rows))
            excerpts, why = excerpts_of_run(folder.path, first, prompts=prompts, notify=notify, progress=progress)
        path = folder.path.resolve()  # as one can be given as `.`, too
        runs.append(
            PageRun(
                report=report,
                trials=rows,
                folder=f"{_WORK_DIR}/{path.name}" if path.parent.name == _WORK_DIR else path.name,
                settings=folder.settings.to_json(),
                excerpts=excerpts,
                notes=() if why is None else (why,),
            )
        )
    return page_html(runs, lang=lang, title=title, scale=scale)
