"""What people get of runs: pictures, a page and tables, made from run folders alone, the same bytes each time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast, get_args

from .ask.files import FilePrompt
from .ask.folders import find_run, slug, write_whole
from .ask.store import RunFolder
from .comparison import NotableCells, notable_cells
from .errors import InputError, NeedlepointError, OutputError, UsageError, did_you_mean
from .fields import share, shown, user_path
from .frames import csv_text, parquet_bytes, table_of
from .learn.effective import PRESETS, Bar
from .pages import page_of
from .plan.prompt import Prompt
from .reporting import FORMATS, LANGS, PALETTES, USUAL, Format, chosen, formats_here, formats_of
from .scoring import REPORT, chosen_scorer, report_of, scored
from .show import charts
from .show.charts import CHARTS, ChartLook, Theme
from .show.facts import run_name
from .show.markdown import failures_of, markdown_of
from .show.visible import visible_line
from .text.cache import Notify, Progress

SCHEMA = 1
USUAL_CHARTS = ("heatmap",)
_PICTURES = ("png", "svg")
Failed = Callable[[str, Exception], None]


class Shelf(Protocol):
    """Where files are put: a run folder, or any other."""

    def write_text(self, name: str, text: str) -> Path: ...
    def write_bytes(self, name: str, data: bytes) -> Path: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be made: which files, which charts, how they look."""

    formats: tuple[Format, ...] = USUAL
    charts: tuple[str, ...] = USUAL_CHARTS
    look: ChartLook | None = None
    excerpts: bool = True


def make_report(
    *runs: str | os.PathLike[str],
    formats: str | Sequence[str] | None = None,
    charts: str | Sequence[str] | None = None,
    title: str | None = None,
    lang: str | None = None,
    palette: str | None = None,
    theme: str | None = None,
    show_score: bool | None = None,
    excerpts: bool = True,
    out: str | os.PathLike[str] | None = None,
    threshold: float | str | None = None,
    preset: str | None = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Make the report of a run, or of several side by side, again from their folders; returns the paths.

    One run's files go into its folder, those of several into a folder beside the first; `out` names another. Formats
    are `png`, `svg`, `html`, `md`, `json`, `csv`, `parquet`, as a list, with commas, or `all`; charts are those of
    `needlepoint.show.charts.CHARTS`. What is None is as the run was asked for; `threshold` or `preset` are those of the
    effective length.
    """
    if not runs:
        raise UsageError("There is no run to report on. Give run folders.")
    wanted, bar = wanted_formats(formats, notify), _bar(threshold, preset)
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(_opened(run, for_writing=len(runs) == 1 and out is None)) for run in runs]
        free = folders[0].settings.free
        look = look_of(free, lang=lang, palette=palette, theme=theme, numbers=show_score, title=title)
        order = Order(formats=wanted, charts=_order_charts(charts, len(runs)), look=look, excerpts=excerpts)
        shelf: Shelf = _Folder(_place(folders, out)) if out is not None or len(runs) > 1 else folders[0]
        reports = [_report(folder, bar) for folder in folders]
        return write_files(folders, reports, order, shelf=shelf, notify=notify, progress=progress)


def write_files(
    folders: Sequence[RunFolder],
    reports: Sequence[Mapping[str, Any]],
    order: Order,
    *,
    shelf: Shelf,
    prompts: Iterable[Prompt | FilePrompt] | None = None,
    on_failure: Failed | None = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """The files of these runs on `shelf`, in the order of their making. Nothing but the folders decides the bytes.

    With `on_failure`, what cannot be made is told there, and the rest is made.
    """
    look = order.look or look_of(folders[0].settings.free)
    names = names_of(folders, reports)
    by_name = dict(zip(names, reports, strict=True))
    made: list[Path] = []

    @contextlib.contextmanager
    def part(what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if on_failure is None:
                raise
            on_failure(what, error)

    if "json" in order.formats:
        with part(REPORT):
            made.append(shelf.write_text(REPORT, _json(reports)))
    if "html" in order.formats:
        with part("report.html"):
            page = page_of(
                folders,
                reports,
                lang=look.lang,
                title=look.title,
                scale=look.scale,
                prompts=prompts,
                with_excerpts=order.excerpts,
                notify=notify,
                progress=progress,
            )
            made.append(shelf.write_text("report.html", page))
    if any(name in order.formats for name in _PICTURES):
        with part("the pictures"):
            notable = notable_cells(folders[0].path, folders[1].path) if len(folders) == 2 else {}
            specs = _specs(by_name, order, look, notable)
            printed = _printable(specs, by_name, order, look, notable, notify)
            for name, spec in specs.items():
                with part(f"the picture {name}"):
                    drawn = charts.svg(spec)
                    if "png" in order.formats:
                        for_png = drawn if printed is specs else charts.svg(printed[name])
                        made.append(shelf.write_bytes(f"{name}.png", charts.png_of_svg(for_png)))
                    if "svg" in order.formats:
                        made.append(shelf.write_text(f"{name}.svg", drawn))
    if "md" in order.formats:
        with part("report.md"):
            failures = failures_of(list(scored(folders[0]))) if len(folders) == 1 and order.excerpts else []
            text = markdown_of(by_name, lang=look.lang, title=look.title, failures=failures)
            made.append(shelf.write_text("report.md", text))
    if "csv" in order.formats:
        with part("trials.csv"):
            made.append(shelf.write_text("trials.csv", csv_text(table_of(folders))))
    if "parquet" in order.formats:
        with part("trials.parquet"):
            made.append(shelf.write_bytes("trials.parquet", parquet_bytes(table_of(folders))))
    return made


def draw(
    folder: RunFolder,
    report: Mapping[str, Any],
    formats: Sequence[Format] | None = None,
    *,
    prompts: Iterable[Prompt | FilePrompt] | None = None,
    notify: Notify | None = None,
) -> tuple[Path, ...]:
    """The files of a run whose numbers have just been made; None makes those anew that there are.

    What cannot be made is said, and costs nothing else: the answers are what counts.
    """

    def failed(what: str, error: Exception) -> None:
        reason = str(error) if isinstance(error, NeedlepointError) else f"{type(error).__name__}: {error}"
        if notify is not None:
            short = " ".join(reason.split())[:300]
            notify(f"Could not make {what}: {short}\nThe run is whole. Try again: needlepoint report {folder.path}")

    order = made_before(folder) if formats is None else Order(formats=formats_here(formats, notify))
    order = replace(order, formats=tuple(name for name in order.formats if name != "json"))
    if not order.formats or not report["overall"]["n"]:
        return ()
    files = write_files([folder], [report], order, shelf=folder, prompts=prompts, on_failure=failed, notify=notify)
    return tuple(files)


def made_before(folder: RunFolder) -> Order:
    """What was made of a run, so that it can be made anew when its numbers change."""
    names = {path.name for path in folder.path.iterdir()}
    stems = {Path(name).stem for name in names if Path(name).suffix in (".png", ".svg")}
    drawn = tuple(chart for chart in CHARTS if any(stem.startswith(charts.FILES[chart]) for stem in stems))
    own = {"html": "report.html", "md": "report.md", "csv": "trials.csv", "parquet": "trials.parquet"}
    ends = {Path(name).suffix for name in names if drawn and Path(name).stem in stems}
    found = [form for form in FORMATS if own.get(form) in names or f".{form}" in ends & {".png", ".svg"}]
    return Order(formats=tuple(found), charts=drawn)


def names_of(folders: Sequence[RunFolder], reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """What to call each run: its model, its layout where that isn't the usual one, a number where that isn't enough."""
    found = [
        run_name({**report, "model": report.get("model") or folder.path.resolve().name})
        for folder, report in zip(folders, reports, strict=True)
    ]
    return [name if found.count(name) == 1 else f"{name} ({i + 1})" for i, name in enumerate(found)]


def _specs(
    reports: Mapping[str, Mapping[str, Any]], order: Order, look: ChartLook, notable: NotableCells
) -> dict[str, charts.Spec]:
    if len(reports) > 1:
        return charts.specs_of_several(reports, look, notable=notable)
    return charts.specs_of(next(iter(reports.values())), look, order.charts)


def _printable(
    specs: dict[str, charts.Spec],
    reports: Mapping[str, Mapping[str, Any]],
    order: Order,
    look: ChartLook,
    notable: NotableCells,
    notify: Notify | None,
) -> dict[str, charts.Spec]:
    """The specs for PNG: in English where Chinese would be rows of boxes. An SVG finds its font where it is seen."""
    if look.lang != "zh" or "png" not in order.formats or charts.chinese_font() is not None:
        return specs
    if notify is not None:
        notify(
            "No Chinese font is here: PNG pictures have English labels. Install one (fonts-noto-cjk), or name its "
            "folder in NEEDLEPOINT_FONTS."
        )
    return _specs(reports, order, replace(look, lang="en"), notable)


def _json(reports: Sequence[Mapping[str, Any]]) -> str:
    """`report.json`: of one run its own, of several an object that holds theirs."""
    value: Mapping[str, Any] = reports[0] if len(reports) == 1 else {"schema": SCHEMA, "reports": list(reports)}
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _opened(run: str | os.PathLike[str], *, for_writing: bool) -> RunFolder:
    """A run's folder; one that nobody can write into now can still be read."""
    path = find_run(user_path(os.fspath(run)))
    try:
        return RunFolder.open(path, for_writing=for_writing)
    except InputError:
        raise
    except (OutputError, UsageError) as error:
        if not for_writing:
            raise
        raise OutputError(f"{error}\n--out DIR puts the files elsewhere.") from None


def _report(folder: RunFolder, bar: Bar | None) -> dict[str, Any]:
    """The run's report, made anew. InputError where the one that there is, is of a later schema."""
    schema = folder.read_report().get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise InputError(f"{folder.path / REPORT} has schema {schema}, made by a newer needlepoint. Update this one.")
    return report_of(folder, chosen_scorer(folder), bar=bar)


# --- what is asked for ------------------------------------------------------------------------------------------------


def look_of(
    free: Mapping[str, Any],
    *,
    lang: str | None = None,
    palette: str | None = None,
    theme: str | None = None,
    numbers: bool | None = None,
    title: str | None = None,
) -> ChartLook:
    """The look that is asked for, and where nothing is said the run's own (`free` of its settings)."""
    kept_lang, kept_palette = free.get("lang"), free.get("palette")
    if title is not None and not title.strip():
        raise UsageError("--title is empty. Give one, or leave it out.")
    return ChartLook(
        lang=_one("--lang", lang, LANGS) or (kept_lang if kept_lang in LANGS else "en"),
        scale=_one("--palette", palette, PALETTES) or (kept_palette if kept_palette in PALETTES else "default"),
        theme=_one("--theme", theme, get_args(Theme)) or "light",
        numbers=free.get("show_score") is True if numbers is None else numbers,
        title=None if title is None else visible_line(title),
    )


def _one(flag: str, value: str | None, known: Sequence[Any]) -> Any:
    if value is not None and value not in known:
        raise UsageError(
            f"{flag}: unknown value {shown(value)}.{did_you_mean(value, known)} Known: {', '.join(known)}."
        )
    return value


def wanted_formats(formats: str | Sequence[str] | None, notify: Notify | None = None) -> tuple[Format, ...]:
    """The formats that a user named; the usual ones where none are. Raises UsageError, or MissingExtra."""
    if formats is None:
        return USUAL
    try:
        found = formats_of(formats)
    except ValueError as error:
        raise UsageError(f"--format: {error}.") from None
    if not found:
        raise UsageError("--format names nothing to make.")
    return formats_here(found, notify)


def _bar(threshold: float | str | None, preset: str | None) -> Bar | None:
    name = _one("--preset", preset, PRESETS)
    if threshold is None:
        return None if name is None else Bar(preset=name)
    if name is not None:
        raise UsageError("--threshold and --preset exclude each other: a preset is a threshold.")
    try:
        return Bar(threshold=cast(float, share(threshold)))
    except ValueError as error:
        raise UsageError(f"--threshold: {error}.") from None


def _order_charts(wanted: str | Sequence[str] | None, n_runs: int) -> tuple[str, ...]:
    if wanted is None:
        return USUAL_CHARTS
    if n_runs > 1:
        raise UsageError("--charts chooses among the charts of one run; several runs always get theirs.")
    try:
        names = chosen(wanted, "chart", CHARTS)
    except ValueError as error:
        raise UsageError(f"--charts: {error}.") from None
    if not names:
        raise UsageError(f"--charts names no chart. Known: {', '.join(CHARTS)}, all.")
    return tuple(name for name in CHARTS if name in names)


# --- where it goes ----------------------------------------------------------------------------------------------------


def _place(folders: Sequence[RunFolder], out: str | os.PathLike[str] | None) -> Path:
    """The folder for files of several runs: named by the user, or beside the first run, by the models' names."""
    if out is not None:
        return user_path(os.fspath(out))
    runs = [folder.path.resolve().name for folder in folders]
    models = "_".join(slug(str(folder.settings.identity.get("model")))[:24] for folder in folders)
    mark = hashlib.sha256("\n".join(runs).encode(errors="replace")).hexdigest()[:6]
    return folders[0].path.resolve().parent / f"report_{models[:80]}_{mark}"


class _Folder:
    """Any folder; made with the first file in it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write_text(self, name: str, text: str) -> Path:
        return self.write_bytes(name, text.encode(errors="replace"))

    def write_bytes(self, name: str, data: bytes) -> Path:
        path = self._path / name
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            write_whole(path, data)
        except OSError as error:
            reason = error.strerror or str(error)
            raise OutputError(f"Cannot write {path}: {reason}. Choose another place with --out.") from None
        return path
