"""Run folders against each other: `needlepoint compare` and `needlepoint.compare(...)`.

Runs are read, never written. What makes a comparison meaningless is refused with the reason: other prompts, another
layout, another scorer.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .ask.settings import RunSettings, diff_identity
from .ask.store import RunFolder
from .errors import UsageError, did_you_mean
from .fields import user_path
from .learn.change import Comparison, Flip
from .learn.compare import compare_pairs
from .learn.gate import Gate, Shortfall
from .learn.paired import holm
from .learn.pairing import Pairing, Row, layouts_of, pair_rows
from .learn.unpaired import compare_samples
from .plan.grid import format_length
from .score import rules
from .score.judge import settings_of as judge_file
from .scoring import RULES, chosen_scorer, scored, scorings
from .show.junit import junit_xml
from .show.pull_request import comparison_markdown
from .text.cache import Notify
from .types import Trial

NotableCells = dict[str, list[tuple[int, float]]]
_NOT_PROMPTS = ("model", "api_url", "generation_config", "completions", "prompts")
"""Settings that decide who is asked and how, not what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run as it is compared: what to call it, where it is, and its rows by the scorer that all are compared on."""

    name: str
    folder: Path
    settings: RunSettings = field(repr=False)
    scorer: str
    rows: Sequence[Row] = field(repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareResult:
    """Every run after the first, compared with the first. `passed` is None where no bar was set."""

    runs: tuple[Run, ...]
    comparisons: tuple[Comparison, ...]
    gate: Gate | None = None

    @property
    def first(self) -> Comparison:
        """The only comparison of two runs."""
        return self.comparisons[0]

    @property
    def difference(self) -> float | None:
        return self.first.difference

    @property
    def interval(self) -> tuple[float, float] | None:
        return self.first.interval

    @property
    def p_value(self) -> float | None:
        return self.first.p_value

    @property
    def flips(self) -> tuple[Flip, ...]:
        return self.first.flips

    @property
    def passed(self) -> bool | None:
        return None if self.gate is None else not any(map(self.shortfalls, self.comparisons))

    @property
    def is_measured(self) -> bool:
        """Whether every comparison has a question that both sides measured."""
        return all(one.whole is not None for one in self.comparisons)

    def shortfalls(self, comparison: Comparison) -> tuple[Shortfall, ...]:
        """The bars that one comparison misses."""
        return () if self.gate is None else self.gate.shortfalls(comparison)

    def json(self) -> dict[str, Any]:
        """Plain values: what `--json` prints."""
        gate = self.gate
        return {
            "schema": 1,
            "runs": [{"name": run.name, "folder": str(run.folder), "scorer": run.scorer} for run in self.runs],
            "gate": None
            if gate is None
            else {
                "fail_if_worse": gate.fail_if_worse,
                "max_lost": gate.max_lost,
                "fail_if_margin_worse": gate.fail_if_margin_worse,
            },
            "passed": self.passed,
            "comparisons": [
                {
                    **one.json(),
                    "shortfalls": [{"bar": short.bar, "says": short.says} for short in self.shortfalls(one)],
                }
                for one in self.comparisons
            ],
        }

    def judged(self) -> list[tuple[Comparison, tuple[Shortfall, ...]]]:
        """Each comparison with the bars that it misses."""
        return [(one, self.shortfalls(one)) for one in self.comparisons]

    def markdown(self, *, most_flips: int = 20) -> str:
        """A summary for a pull request or a job's page."""
        return comparison_markdown(self.judged(), gate=self.gate, most_flips=most_flips)

    def _repr_markdown_(self) -> str:
        """In a notebook."""
        return self.markdown()

    def junit(self) -> str:
        """JUnit XML: a suite for each comparison, a case for each bar."""
        return junit_xml(self.judged(), gate=self.gate)


def compare(
    one: str | os.PathLike[str],
    other: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    unpaired: bool = False,
    scorer: str | None = None,
    margin: float | str | None = None,
    fail_if_worse: float | str | None = None,
    max_lost: float | str | None = None,
    fail_if_margin_worse: float | str | None = None,
    seed: int = 0,
    notify: Notify | None = None,
) -> CompareResult:
    """Compare the run in folder `other` (and each of `more`) with the one in folder `one`, question by question.

    `unpaired` takes them as separate samples, for runs that asked different prompts; `scorer` names the scoring that
    all are compared on. `margin` asks whether they are alike within it. `fail_if_worse` is the drop of accuracy from
    which on `passed` is False, where it is more than chance; so it is where more than a share `max_lost` of what the
    first run measured is lost. `fail_if_margin_worse` is the same for margins, in nats. Shares are numbers or texts
    such as "2%". Raises `NeedlepointError` with the reason where the runs cannot be compared.
    """
    alike = _share(margin, "--margin", above_zero=True)
    worse, lost = _share(fail_if_worse, "--fail-if-worse"), _share(max_lost, "--max-lost")
    lower = _nats(fail_if_margin_worse, "--fail-if-margin-worse")
    if lost is not None and worse is None and lower is None:
        raise UsageError("--max-lost goes with --fail-if-worse, as in --fail-if-worse 0 --max-lost 1%.")
    if lower is not None and unpaired:
        raise UsageError("--fail-if-margin-worse takes the same questions: margins are not compared --unpaired.")
    say = notify or (lambda text: None)
    runs = _read([user_path(os.fspath(path)) for path in (one, other, *more)], scorer)
    for run in runs:
        for note in run.notes:
            say(note)
    _check_searches(runs)
    _check_layouts(runs)
    bare = next((run for run in runs if lower is not None and not any(row[1].margin for row in run.rows)), None)
    if bare is not None:
        raise UsageError(f"--fail-if-margin-worse: {bare.folder} has no margins. Ask with --metric logprob.")
    made: list[Comparison] = []
    for second in runs[1:]:
        names = runs[0].name, second.name
        if unpaired:
            notes = list(_sample_notes(runs[0], second))
            found = compare_samples(
                runs[0].rows, second.rows, names=names, scorer=second.scorer, margin=alike, notes=notes
            )
            if not found.coverage.asked:
                raise UsageError(f"{_names(runs[0], second)} have no cell in common: {_grids(runs[0], second)}.")
        else:
            pairing = _paired(runs[0], second)
            notes = list(_pair_notes(runs[0], second, pairing))
            found = compare_pairs(
                pairing, names=names, scorer=second.scorer, margin=alike, wanted=worse, seed=seed, notes=notes
            )
        made.append(found)
    if len(made) > 1:
        adjusted = holm([1.0 if found.whole is None else found.whole.p_value for found in made])
        made = [replace(found, p_adjusted=p) for found, p in zip(made, adjusted, strict=True)]
        made = _with_margins_adjusted(made)
    gate = None
    if worse is not None or lower is not None:
        gate = Gate(fail_if_worse=worse, max_lost=lost or 0.0, fail_if_margin_worse=lower)
    return CompareResult(runs=runs, comparisons=tuple(made), gate=gate)


def _with_margins_adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same with Holm's p values of their margins, among those that have some."""
    changes = [found.logprob_margin for found in comparisons if found.logprob_margin is not None]
    adjusted = iter(holm([change.whole.p_value for change in changes]))
    return [
        found
        if found.logprob_margin is None
        else replace(found, logprob_margin=replace(found.logprob_margin, p_adjusted=next(adjusted)))
        for found in comparisons
    ]


def notable_cells(one: Path, other: Path) -> NotableCells:
    """Cells whose difference stands out among all, by subset; none where the runs are no pair."""
    try:
        found = compare(one, other).first
    except UsageError:
        return {}
    return {part.where.subset: found.notable(part.where.subset) for part in found.parts.subsets if part.where.subset}


def _share(value: float | str | None, flag: str, *, above_zero: bool = False) -> float | None:
    """A share such as 0.02 or 2%."""
    if value is None:
        return None
    number: object = value
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        number = None
    if number is None or (above_zero and number == 0):
        least = "above 0" if above_zero else "from 0"
        hint = f" Did you mean {value}%?" if re.fullmatch(r"[1-9]\d?(\.\d+)?", str(value).strip()) else ""
        raise UsageError(f"{flag} must be a share {least} up to 1, such as 0.02 or 2%; not {value!r}.{hint}")
    return float(number)


def _nats(value: float | str | None, flag: str) -> float | None:
    try:
        number = None if value is None or isinstance(value, bool) else float(value)
    except ValueError:
        number = None
    if value is not None and (number is None or not 0 <= number < math.inf):
        raise UsageError(f"{flag} must be a number of nats from 0 on, such as 0.5; not {value!r}.")
    return number


# --- reading ----------------------------------------------------------------------------------------------------------


def _read(paths: Sequence[Path], wanted: str | None) -> tuple[Run, ...]:
    folders: list[RunFolder] = []
    try:
        for path in paths:
            folders.append(RunFolder.open(path, for_writing=False))
        scorers = _common_scorer(folders, wanted)
        names = _run_names(folders)
        return tuple(_run(folder, scorer, name) for folder, scorer, name in zip(folders, scorers, names, strict=True))
    finally:
        for folder in folders:
            folder.close()


def _run(folder: RunFolder, scorer: str, name: str) -> Run:
    notes: list[str] = []
    rows = list(scored(folder, scorer))
    if scorer == RULES:  # rules are free: both sides by the very same ones, whichever were in force when they were run
        fresh = [(trial, reply, rules.score(trial, reply)) for trial, reply, _ in rows]
        changed = sum(_verdict(row) != _verdict(before) for row, before in zip(fresh, rows, strict=True))
        if changed:
            notes.append(f"{name}: today's rules score {changed:,} of {len(rows):,} answers in another way than then.")
        rows = fresh
    stopped = folder.read_report().get("stopped")
    if stopped:
        notes.append(f"{name} was stopped before its end: {str(stopped).rstrip('.')}.")
    return Run(name=name, folder=folder.path, settings=folder.settings, scorer=scorer, rows=rows, notes=tuple(notes))


def _verdict(row: Row) -> tuple[str, float | None]:
    return row[2].outcome, row[2].score


def _run_names(folders: Sequence[RunFolder]) -> list[str]:
    """The models' names where they differ; else with the folders' names."""
    models = [str(folder.settings.identity.get("model") or folder.path.name) for folder in folders]
    if len(set(models)) == len(models):
        return models
    names = [f"{model} ({folder.path.resolve().name})" for model, folder in zip(models, folders, strict=True)]
    return names if len(set(names)) == len(names) else [f"{name} #{i}" for i, name in enumerate(names, 1)]


def _common_scorer(folders: Sequence[RunFolder], wanted: str | None) -> list[str]:
    """The scorer of each run, all of one kind."""
    if wanted is not None:
        for folder in folders:
            known = _scorers(folder)
            if wanted not in known:
                raise UsageError(
                    f"{folder.path} has no scoring by {wanted!r}.{did_you_mean(wanted, known)} It has "
                    f"{', '.join(known) or 'none'}; needlepoint score {folder.path} makes others."
                )
        chosen = [wanted] * len(folders)
    else:
        chosen = [chosen_scorer(folder) for folder in folders]
    kinds = [_kind(folder, scorer) for folder, scorer in zip(folders, chosen, strict=True)]
    other = next((i for i, kind in enumerate(kinds) if kind != kinds[0]), None)
    if other is None:
        return chosen
    shared = [name for name in _scorers(folders[0]) if all(name in _scorers(folder) for folder in folders)]
    shared = [name for name in shared if len({repr(_kind(folder, name)) for folder in folders}) == 1]
    ways = [f"compare them by --scorer {' or '.join(shared)}"] if shared else []
    answers = all(RULES in _scorers(folder) for folder in folders)
    ways += ["score both by one judge: needlepoint score RUN --judge-model ..."] if answers else []
    told = chosen[0], chosen[other]
    what = f"by {told[0]} and by {told[1]}" if told[0] != told[1] else f"by {told[0]}, but not by the same judges"
    way = f"\n{_sentence('; or '.join(ways))}." if ways else ""
    raise UsageError(
        f"{folders[0].path} and {folders[other].path} are scored {what}: their difference would be the scorers', "
        f"too.{way}"
    )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _scorers(folder: RunFolder) -> list[str]:
    """What a run can be compared by: its scorings, and the rules where its answers are known."""
    imported = folder.settings.imported
    known = [name for name in scorings(folder) if name != RULES]
    return known if imported and not imported.get("has_answers") else [RULES, *known]


def _kind(folder: RunFolder, scorer: str) -> object:
    """What makes two scorings the same: for judges who they are and how they are asked, else the name."""
    return folder.read_json(judge_file(scorer)).get("identity") or scorer


# --- can they be compared? --------------------------------------------------------------------------------------------


def _check_searches(runs: Sequence[Run]) -> None:
    """A search asks what its answers suggest and stops when it likes, so no test of a difference holds for it."""
    for run in runs:
        if "search" in run.settings.identity:
            raise UsageError(
                f"{run.folder} is a search for a limit: its lengths were chosen by its answers, so no interval or test "
                "of a difference holds.\nCompare what needlepoint limit found of each, or runs of needlepoint eval."
            )


def _check_layouts(runs: Sequence[Run]) -> None:
    layouts = [layouts_of(run.rows) for run in runs]
    if len(frozenset().union(*layouts)) <= 1:
        return
    mixed = next((i for i, found in enumerate(layouts) if len(found) > 1), None)
    if mixed is not None:
        told = f"{runs[mixed].folder} holds prompts in several layouts ({', '.join(sorted(layouts[mixed]))})"
    else:
        other = next(i for i, found in enumerate(layouts) if found and found != layouts[0])
        told = (
            f"{runs[0].folder} is in layout {', '.join(sorted(layouts[0]))} and {runs[other].folder} in "
            f"{', '.join(sorted(layouts[other]))}"
        )
    raise UsageError(
        f"{told}: layouts measure different things, and are never mixed in one comparison.\nRun both with the same "
        "--layout."
    )


def _paired(one: Run, other: Run) -> Pairing:
    pairing = pair_rows(one.rows, other.rows)
    if pairing.differing:
        first = pairing.differing[0]
        n = len(pairing.differing) + len(pairing.pairs)
        differ = "; ".join(_prompt_settings(one, other))
        raise UsageError(
            f"{_names(one, other)} asked different prompts: {len(pairing.differing):,} of {n:,} places that both have "
            f"hold another one ({_place(first.trial)}, for one: {_why(first.one[0], first.other[0])})."
            + (f"\nWhat differs: {differ}." if differ else "")
            + f"\nAsk the very same ones with: needlepoint eval --prompts {one.folder}; or compare them as separate "
            "samples with --unpaired."
        )
    if not pairing.pairs:
        raise UsageError(
            f"{_names(one, other)} have no question in common: {_grids(one, other)}.\nAsk the same ones with: "
            f"needlepoint eval --prompts {one.folder}."
        )
    return pairing


def _why(one: Trial, other: Trial) -> str:
    if one.question != other.question:
        return "another question"
    if one.answers != other.answers:
        return "other expected answers"
    if one.needles != other.needles:
        return "other needles"
    if one.corpus_sha256 != other.corpus_sha256:
        return "another text"
    if one.tokenizer_fingerprint != other.tokenizer_fingerprint:
        return "counted by another tokenizer"
    return "the prompts' sha256 differ"


def _prompt_settings(one: Run, other: Run) -> list[str]:
    if one.settings.imported or other.settings.imported:
        return []
    return [line for line in diff_identity(one.settings, other.settings) if not _is_of_asking(line)]


def _is_of_asking(line: str) -> bool:
    return line.partition(":")[0].split(".")[0] in _NOT_PROMPTS


def _pair_notes(one: Run, other: Run, pairing: Pairing) -> Iterator[str]:
    yield from _sides(one, other)
    if pairing.unproven:
        yield (
            f"The prompts of {pairing.unproven:,} pairs are not known, since results were imported: they are paired by "
            "subset, length, depth and number."
        )
    if pairing.only_other:
        yield f"{len(pairing.only_other):,} trials of {other.name} were not asked in {one.name}, and are left out."


def _sample_notes(one: Run, other: Run) -> Iterator[str]:
    yield from _sides(one, other)
    yield (
        "Taken as separate samples: other prompts may be easier or harder, so it takes a larger difference to tell "
        "models apart than on the same ones."
    )
    mine, theirs = (_cells(run.rows) for run in (one, other))
    if left := len(mine ^ theirs):
        yield f"{left:,} cells that only one of both has are left out."
    if one.settings.tokenizer.get("fingerprint") != other.settings.tokenizer.get("fingerprint"):
        yield "Their lengths were counted by different tokenizers."


def _sides(one: Run, other: Run) -> Iterator[str]:
    if one.folder.resolve() == other.folder.resolve():
        yield "Both are the same run."
    elif not (one.settings.imported or other.settings.imported):
        lines = [line for line in diff_identity(one.settings, other.settings) if _is_of_asking(line)]
        told = [line for line in lines if line.startswith(("generation_config", "completions"))]
        if told:
            yield f"They were asked in another way, too: {'; '.join(told)}."


def _names(one: Run, other: Run) -> str:
    return f"{one.folder} and {other.folder}"


def _cells(rows: Sequence[Row]) -> set[tuple[str, int, float]]:
    return {(trial.subset, trial.context_length, trial.depth_percent) for trial, _, _ in rows}


def _grids(one: Run, other: Run) -> str:
    return f"{_grid(one)} in the first, {_grid(other)} in the second"


def _grid(run: Run) -> str:
    found: dict[str, set[int]] = {}
    for trial, _, _ in run.rows:
        found.setdefault(trial.subset, set()).add(trial.context_length)
    told = [
        f"{subset} {'–'.join(dict.fromkeys((format_length(min(lengths)), format_length(max(lengths)))))}"
        for subset, lengths in found.items()
    ]
    return ", ".join(told) or "nothing"


def _place(trial: Trial) -> str:
    return f"{trial.subset} {format_length(trial.context_length)} at {trial.depth_percent:g}%"
