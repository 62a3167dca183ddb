"""What a user may ask for. Foreign words come in here, are checked by pydantic, and leave as values.

`PromptsConfig` has EvalScope's names (datasets, dataset_args, limit, repeats, ...) beside the friendly ones (lengths,
depths, corpus, ...). Where both say the same thing, the friendly one wins, since it was typed for this run.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, field_validator

from .errors import InputError, UsageError, did_you_mean
from .plan.grid import Grid
from .plan.needles import DRAWN_KINDS, MAX_DRAWN, NEEDLE_SETS
from .plan.prompt import PROMPT_TEMPLATE, SYSTEM_PROMPT, check_template
from .plan.task import Task, Verify
from .types import LengthMode

DATASETS = ("needle_haystack",)
SUBSETS = ("english", "chinese")
_SEED_GRID = tuple(f"context_lengths_{name}" for name in ("min", "max", "num_intervals")) + tuple(
    f"document_depth_percent_{name}" for name in ("min", "max", "intervals")
)
_MEANINGLESS = frozenset(
    "aggregation eval_split few_shot_num few_shot_prompt_template few_shot_random filters force_redownload metric_list "
    "name output_types pretty_name query_template review_timeout sandbox_config shuffle shuffle_choices train_split "
    "dataset_hub dataset_dir default_subset dataset_revision".split()
)


def _list(value: object) -> object:
    """One value where a list is meant."""
    return [value] if isinstance(value, str | int | float) else value


def _not_a_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


Strings = Annotated[list[str], BeforeValidator(_list)]
Number = Annotated[int | float, BeforeValidator(_not_a_bool)]
Count = Annotated[int, BeforeValidator(_not_a_bool), Field(ge=1, le=10_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ExtraParams(_Strict):
    """`extra_params` of `needle_haystack`: the seed's names, its defaults where a field is None."""

    retrieval_question: str | None = None
    needles: Strings | None = None
    context_lengths_min: Number | None = None
    context_lengths_max: Number | None = None
    context_lengths_num_intervals: Number | None = None
    document_depth_percent_min: Number | None = None
    document_depth_percent_max: Number | None = None
    document_depth_percent_intervals: Number | None = None
    tokenizer_path: str | None = None
    show_score: bool = False

    def grid(self) -> Grid:
        given = {name: getattr(self, name) for name in _SEED_GRID if getattr(self, name) is not None}
        return Grid.from_seed(**given)


class DatasetArgs(_Strict):
    """`dataset_args["needle_haystack"]`, as EvalScope takes it."""

    subset_list: Strings | None = None
    local_path: str | None = None
    dataset_id: str | None = None
    prompt_template: str | None = None
    system_prompt: str | None = None
    extra_params: ExtraParams = ExtraParams()

    @field_validator("subset_list")
    @classmethod
    def _not_empty(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and not value:
            raise ValueError("must name at least one subset")
        return value


class PromptsConfig(_Strict):
    """Everything that decides prompts. Unknown names are refused with the nearest known one."""

    datasets: Strings | None = None
    dataset_args: dict[str, DatasetArgs] = {}
    dataset_dir: str | None = None
    limit: Number | None = None
    repeats: Count = 1
    replicates: Count = 1
    seed: Annotated[int, BeforeValidator(_not_a_bool)] = 0
    lengths: Any = None
    depths: Any = None
    corpus: Strings | None = None
    encoding: str | None = None
    tokenizer: str | None = None
    chat_template: str | None = None
    length_mode: LengthMode | None = None
    layout: Literal["classic"] = "classic"
    needle: Strings | None = None
    needle_set: str = "seed"
    needle_count: Annotated[int, BeforeValidator(_not_a_bool), Field(ge=1, le=MAX_DRAWN)] = 1
    question: str | None = None
    system_prompt: str | None = None
    prompt_template: str | None = None
    model: str | None = None
    api_key: SecretStr | None = None
    max_tokens: Annotated[int, BeforeValidator(_not_a_bool), Field(ge=1)] | None = None
    verify: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The config of these settings; those that are None count as not given. Raises UsageError."""
        given = {name: value for name, value in values.items() if value is not None}
        if isinstance(given.get("dataset_args"), str):
            given["dataset_args"] = parse_json(given["dataset_args"], "--dataset-args")
        for name in ("dataset_dir",):
            if isinstance(given.get(name), Path):
                given[name] = str(given[name])
        if isinstance(given.get("api_key"), str):
            given["api_key"] = SecretStr(given["api_key"])
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise UsageError(_sentence(error, cls)) from None

    @field_validator("datasets")
    @classmethod
    def _known_datasets(cls, value: list[str] | None) -> list[str] | None:
        for name in value or ():
            if name not in DATASETS:
                raise ValueError(
                    f"unknown dataset {name!r}.{did_you_mean(name, DATASETS)} Known: {', '.join(DATASETS)}"
                )
        if value is not None and not value:
            raise ValueError("must name at least one dataset")
        return value

    @field_validator("dataset_args", mode="before")
    @classmethod
    def _known_dataset_args(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError('must be a JSON object, e.g. {"needle_haystack": {"subset_list": ["english"]}}')
        for name, arguments in value.items():
            if name not in DATASETS:
                raise ValueError(f"unknown dataset {name!r}.{did_you_mean(str(name), DATASETS)}")
            for key in arguments if isinstance(arguments, Mapping) else ():
                if key in _MEANINGLESS:
                    raise ValueError(
                        f"{key!r} means nothing for {name}, whose prompts are made, not read. Leave it out"
                    )
        return value

    @field_validator("needle_set")
    @classmethod
    def _known_needle_set(cls, value: str) -> str:
        if value not in NEEDLE_SETS:
            raise ValueError(
                f"unknown set {value!r}.{did_you_mean(value, NEEDLE_SETS)} Known: {', '.join(NEEDLE_SETS)}"
            )
        return value

    @property
    def arguments(self) -> DatasetArgs:
        return self.dataset_args.get(DATASETS[0], DatasetArgs())

    @property
    def resolved_length_mode(self) -> LengthMode:
        """The parity mode where EvalScope's dataset is named and nothing asks for another length; else `exact`."""
        if self.length_mode is not None:
            return self.length_mode
        return "evalscope" if self.datasets is not None and self.lengths is None else "exact"

    @property
    def tokenizer_name(self) -> str | None:
        """The tokenizer that was named, or None."""
        if self.tokenizer is not None:
            return self.tokenizer
        return self.arguments.extra_params.tokenizer_path

    @property
    def verify_mode(self) -> Verify:
        return "all" if self.verify else "sample"

    def grid(self) -> Grid:
        seed_grid = self.arguments.extra_params.grid()
        if self.lengths is None and self.depths is None:
            return seed_grid
        lengths = self.lengths if self.lengths is not None else list(seed_grid.lengths)
        depths = self.depths if self.depths is not None else list(seed_grid.depths)
        return Grid.from_specs(lengths, depths)

    def task(self) -> Task:
        """The values that the planner takes."""
        arguments, extra = self.arguments, self.arguments.extra_params
        needles = self.needle if self.needle is not None else extra.needles
        if needles is not None and self.needle_set != "seed":
            raise UsageError("--needle and --needle-set exclude each other: give the needles, or name a set.")
        if self.needle_count > 1 and self.needle_set not in DRAWN_KINDS:
            raise UsageError(
                f"--needle-count works with --needle-set {', '.join(DRAWN_KINDS)}; give --needle for each other."
            )
        template = _text_or_file(self.prompt_template, arguments.prompt_template, "--prompt-template")
        template = PROMPT_TEMPLATE if template is None else template
        check_template(template)
        system = _text_or_file(self.system_prompt, arguments.system_prompt, "--system-prompt")
        return Task(
            grid=self.grid(),
            layout=self.layout,
            length_mode=self.resolved_length_mode,
            needle_set=self.needle_set,
            needle_count=self.needle_count,
            needles=None if needles is None else tuple(needles),
            question=self.question if self.question is not None else extra.retrieval_question,
            system_prompt=SYSTEM_PROMPT if system is None else system,
            prompt_template=template,
            replicates=self.replicates,
            repeats=self.repeats,
            seed=self.seed,
            limit=self.limit,
            max_tokens=self.max_tokens,
        )


def parse_json(text: str, flag: str) -> Any:
    """JSON from a flag, with the place of a mistake in the message."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        around = text[max(0, error.pos - 20) : error.pos + 20]
        raise UsageError(
            f"{flag} is not valid JSON: {error.msg} at character {error.pos + 1}, near {around!r}."
        ) from None
    except RecursionError:
        raise UsageError(f"{flag} is not usable JSON: it is nested too deeply.") from None


def _refuse_constant(name: str) -> float:
    raise UsageError(f"{name} is not a number that a setting can have.")


def _text_or_file(flag_value: str | None, argument: str | None, flag: str) -> str | None:
    """A flag's value is text, or the path of a file that holds it; a dataset argument is always text."""
    if flag_value is None:
        return argument
    if "\n" in flag_value or "{" in flag_value or len(flag_value) > 1_000:
        return flag_value
    path = Path(flag_value).expanduser()
    try:
        if path.is_file():
            return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"Cannot read the file given by {flag}, {flag_value}: {error}.") from None
    if flag_value.endswith((".txt", ".md", ".jinja", ".tmpl")) and " " not in flag_value:
        raise InputError(f"There is no file {flag_value}, given by {flag}.")
    return flag_value


def _sentence(error: ValidationError, model: type[BaseModel]) -> str:
    """The first mistake as one line for people."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = [
        part for part in first["loc"] if not (isinstance(part, str) and part.startswith(("function-", "int", "float")))
    ]
    where = ".".join(str(part) for part in place)
    if first["type"] == "extra_forbidden":
        name = str(place[-1])
        return f"Unknown setting {where!r}.{_near(name, _names(model, place[:-1]))}"
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    if first["type"].endswith("_type") or first["type"].endswith("_parsing"):
        message = message.replace("should be a valid", "must be a")
    flag = f"--{where.replace('_', '-')}" if len(place) == 1 else where
    return f"{flag}: {message}."


def _names(model: type[BaseModel], path: Iterable[int | str]) -> list[str]:
    """The settings that exist at `path` of nested models."""
    current: Any = model
    for part in path:
        nested = {"dataset_args": DatasetArgs, "extra_params": ExtraParams}.get(str(part))
        current = nested or current
    return list(current.model_fields)


def _near(name: str, known: list[str]) -> str:
    hint = did_you_mean(name, known)
    if hint:
        return hint
    ordered = sorted(known, key=lambda other: -difflib.SequenceMatcher(None, name, other).ratio())
    return f" Known here: {', '.join(ordered[:8])}, ..."
