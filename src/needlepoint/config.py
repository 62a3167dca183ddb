"""What a user may ask for. Foreign words come in here, are checked by pydantic, and leave as values.

`PromptsConfig` has EvalScope's names (datasets, dataset_args, limit, repeats, ...) beside the friendly ones (lengths,
depths, corpus, ...). Where both say the same thing, the friendly one wins, since it was typed for this run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, SecretStr, ValidationError, field_validator

from .ask.budget import Budget, Prices
from .ask.models import BACKENDS, DTYPES, REASONING_TOKENS, reasons, takes_temperature
from .ask.policy import RunnerSettings
from .errors import UsageError, did_you_mean
from .evalscope_names import meaningful, without_evalscopes_own
from .fields import (
    Count,
    Number,
    Sentence,
    Text,
    Texts,
    Truth,
    one_of,
    parse_json,
    parse_options,
    places,
    share,
    shown,
    text_or_file,
    texts_of,
    user_path,
    whole,
)
from .judging import JudgeConfig, JudgeContract, JudgeFields, JudgeModel, Jury, prepare_judge
from .learn.effective import PRESETS, Bar, Preset
from .plan.grid import Grid, apply_limit
from .plan.keyed import WOVEN_SETS
from .plan.needles import DRAWN_KINDS, MAX_DRAWN, NEEDLE_SETS, SEED_QUESTION, given_facts
from .plan.prompt import PROMPT_TEMPLATE, SYSTEM_PROMPT, check_template
from .plan.task import Task, Verify
from .pricing import PriceFields
from .reporting import ReportFields
from .reuse import ReuseFields
from .text.corpora import from_anywhere
from .types import Layout, LengthMode, Sampling

EMBEDDED = "smollm2"
_MOST_SHOWN = 20
SMALL_LENGTHS, SMALL_DEPTHS = "1k,2k,3k", "0:100:5"
DATASETS = ("needle_haystack",)
SUBSETS = ("english", "chinese")
_SEED_GRID = tuple(f"context_lengths_{name}" for name in ("min", "max", "num_intervals")) + tuple(
    f"document_depth_percent_{name}" for name in ("min", "max", "intervals")
)
Dataset = Annotated[str, one_of("dataset", DATASETS)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ExtraParams(_Strict):
    """`extra_params` of `needle_haystack`: the seed's names, its defaults where a field is None."""

    retrieval_question: Sentence | None = None
    needles: Texts | None = None
    context_lengths_min: Number | None = None
    context_lengths_max: Number | None = None
    context_lengths_num_intervals: Number | None = None
    document_depth_percent_min: Number | None = None
    document_depth_percent_max: Number | None = None
    document_depth_percent_intervals: Number | None = None
    tokenizer_path: Text | None = None
    show_score: Truth = False

    def grid(self) -> Grid:
        given = {name: getattr(self, name) for name in _SEED_GRID if getattr(self, name) is not None}
        return Grid.from_seed(**given)


class DatasetArgs(_Strict):
    """`dataset_args["needle_haystack"]`, as EvalScope takes it."""

    subset_list: Texts | None = None
    local_path: Text | None = None
    dataset_id: Text | None = None
    prompt_template: Text | None = None
    system_prompt: Text | None = None
    extra_params: ExtraParams = ExtraParams()

    @field_validator("subset_list")
    @classmethod
    def _not_empty(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and not value:
            raise ValueError("must name at least one subset")
        return value


class PromptsConfig(_Strict):
    """Everything that decides prompts. Unknown names are refused with the nearest known one."""

    datasets: Annotated[list[Dataset], BeforeValidator(texts_of)] | None = None
    dataset_args: dict[str, DatasetArgs] = {}
    dataset_dir: Text | None = None
    limit: Number | None = None
    repeats: Count = 1
    replicates: Count = 1
    seed: Annotated[int, whole(-(2**63), 2**63 - 1)] = 0
    lengths: Any = None
    depths: Any = None
    corpus: Texts | None = None
    encoding: Text | None = None
    tokenizer: Sentence | None = None
    chat_template: Sentence | None = None
    length_mode: Annotated[LengthMode, one_of("length mode", get_args(LengthMode))] | None = None
    layout: Annotated[Layout, one_of("layout", get_args(Layout))] = "classic"
    needle: Texts | None = None
    needle_set: Annotated[str, one_of("needle set", (*NEEDLE_SETS, *WOVEN_SETS))] = "seed"
    needle_count: Annotated[int, whole(1, MAX_DRAWN)] = 1
    question: Sentence | None = None
    system_prompt: Text | None = None
    prompt_template: Text | None = None
    model: Sentence | None = None
    api_key: SecretStr | None = None
    max_tokens: Annotated[int, whole(1, 10_000_000)] | None = None
    cache: Annotated[Literal["keep", "bust"], one_of("way with caches", ("keep", "bust"))] = "keep"
    verify: Truth = False

    def __init__(self, **values: Any) -> None:
        """The config of these settings; those that are None count as not given. Raises UsageError."""
        try:
            super().__init__(**self._prepared(values))
        except ValidationError as error:
            raise UsageError(mistake(error, type(self))) from None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The same from a mapping."""
        return cls(**values)

    @classmethod
    def _prepared(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in values.items() if value is not None}
        if isinstance(given.get("dataset_args"), str):
            given["dataset_args"] = parse_json(given["dataset_args"], "--dataset-args")
        if isinstance(key := given.pop("api_key", None) or None, str):
            key = SecretStr(key)
        if key is not None:
            given["api_key"] = key
        return given

    @field_validator("datasets", "corpus")
    @classmethod
    def _not_empty(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and not value:
            raise ValueError("must name at least one")
        return value

    @field_validator("api_key", mode="before")
    @classmethod
    def _sendable_key(cls, value: object) -> object:
        key = value.get_secret_value() if isinstance(value, SecretStr) else None
        if key is None or not key or not key.isascii() or not key.isprintable():
            raise ValueError("must be a text of printable ASCII characters, as keys are")
        return value

    @field_validator("dataset_args", mode="before")
    @classmethod
    def _known_dataset_args(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError(
                f'must be a JSON object, e.g. {{"needle_haystack": {{"subset_list": ["english"]}}}}, not {shown(value)}'
            )
        for name in value:
            if name not in DATASETS:
                raise ValueError(
                    f"unknown dataset {shown(name)}.{did_you_mean(str(name), DATASETS)} Known: {', '.join(DATASETS)}"
                )
        return {name: meaningful(name, arguments) for name, arguments in value.items()}

    @property
    def arguments(self) -> DatasetArgs:
        return self.dataset_args.get(DATASETS[0], DatasetArgs())

    @property
    def resolved_length_mode(self) -> LengthMode:
        """The parity mode where EvalScope's dataset is named and nothing asks for another length; else `exact`."""
        if self.length_mode is not None:
            return self.length_mode
        seed = self.datasets is not None and self.lengths is None and self.layout == "classic"
        return "evalscope" if seed else "exact"

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
        """The values that the planner takes. Raises UsageError for what can be seen without a text or a tokenizer."""
        arguments, extra = self.arguments, self.arguments.extra_params
        needles = self.needle if self.needle is not None else extra.needles
        question = self.question if self.question is not None else extra.retrieval_question
        if needles is not None:
            if self.needle_set != "seed":
                raise UsageError("--needle and --needle-set exclude each other: give the needles, or name a set.")
            given_facts(
                needles,
                question or SEED_QUESTION,
                unique=self.resolved_length_mode == "exact",
                needle_flag="--needle" if self.needle is not None else "needles",
            )
        if self.needle_count > 1 and self.needle_set not in DRAWN_KINDS:
            raise UsageError(
                f"--needle-count works with --needle-set {', '.join(DRAWN_KINDS)}; give --needle for each other."
            )
        template = text_or_file(self.prompt_template, arguments.prompt_template, "--prompt-template")
        template = PROMPT_TEMPLATE if template is None else template
        check_template(template)
        system = text_or_file(self.system_prompt, arguments.system_prompt, "--system-prompt")
        apply_limit((), self.limit)
        return Task(
            grid=self.grid(),
            layout=self.layout,
            length_mode=self.resolved_length_mode,
            needle_set=self.needle_set,
            needle_count=self.needle_count,
            needles=None if needles is None else tuple(needles),
            question=question,
            system_prompt=SYSTEM_PROMPT if system is None else system,
            prompt_template=template,
            replicates=self.replicates,
            repeats=self.repeats,
            seed=self.seed,
            limit=self.limit,
            max_tokens=self.max_tokens,
            bust=self.cache == "bust",
        )


ANSWER_TOKENS, SMALL_ANSWER_TOKENS = 256, 48
METRICS = ("accuracy", "logprob")


class TaskConfig(PriceFields, ReuseFields, JudgeFields, ReportFields, PromptsConfig):
    """A whole run: the prompts, the model that is asked, how fast, and where it is kept. EvalScope's names work."""

    api_url: Sentence | None = None
    metric: Annotated[str, one_of("metric", METRICS)] = "accuracy"
    backend: Annotated[str, one_of("backend", BACKENDS)] | None = None
    dtype: Annotated[str, one_of("dtype", DTYPES)] | None = None
    device: Sentence | None = None
    eval_batch_size: Annotated[int, whole(1, 4_096)] | None = None
    concurrency: Annotated[int | Literal["auto"], BeforeValidator(places)] | None = None
    generation_config: dict[str, Any] = {}
    header: Texts = []
    max_model_len: Annotated[int, whole(1, 1_000_000_000)] | None = None
    completions: Truth = False
    stream: Truth = True
    timeout: Number | None = None
    max_attempts: Annotated[int, whole(1, 100)] | None = None
    rpm: Number | None = None
    tpm: Number | None = None
    max_cost: Number | None = None
    max_tokens_total: Annotated[int, whole(1, 10**15)] | None = None
    dry_run: Truth = False
    work_dir: Text = "outputs"
    use_cache: Text | None = None
    prompts: Text | None = None
    batch_results: Text | None = None
    threshold: Annotated[float | None, BeforeValidator(share)] = None
    preset: Annotated[str, one_of("preset", PRESETS)] | None = None

    if TYPE_CHECKING:  # values are taken as people write them

        def __init__(self, **values: Any) -> None: ...

    fail_under: Annotated[float | None, BeforeValidator(share)] = None

    @classmethod
    def _prepared(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        given = super()._prepared(values)
        given = without_evalscopes_own(given)
        if "resume" in given:
            given["use_cache"] = given.pop("resume")
        prepare_judge(given)
        if isinstance(given.get("generation_config"), str):
            given["generation_config"] = parse_options(given["generation_config"], "--generation-config")
        options = given.get("generation_config")
        if isinstance(options, Mapping):  # EvalScope keeps these beside the sampling
            options = dict(options)
            for theirs, ours in (("timeout", "timeout"), ("retries", "max_attempts"), ("stream", "stream")):
                if theirs in options:
                    given.setdefault(ours, options.pop(theirs))
            if "max_tokens" in options:
                given.setdefault("max_tokens", options.pop("max_tokens"))
            given["generation_config"] = options
        return given

    @property
    def model_name(self) -> str:
        """The model; the embedded one where none is named."""
        if self.model is not None:
            return self.model
        return EMBEDDED if self.api_url is None else "(the server's)"  # a run finds out which

    @property
    def is_default(self) -> bool:
        """Whether nothing says what to measure: then a grid is taken that the embedded model can do in minutes."""
        given = (self.datasets, self.lengths, self.depths, self.prompts, self.api_url)
        return self.model in (None, EMBEDDED) and all(value is None for value in given) and not self.dataset_args

    def check(self) -> None:
        """Raise UsageError for what cannot be, before anything is fetched, asked or written."""
        self.runner()
        self.bar()
        options = self.sampling().options
        extra = options.get("extra_body") or {}
        if not isinstance(extra, Mapping):
            raise UsageError(f"generation_config: extra_body must be a JSON object, not {shown(extra)}.")
        if taken := sorted({"model", "messages", "prompt"} & {*options, *extra}):
            raise UsageError(f"--generation-config can't set {', '.join(taken)}: needlepoint does.")
        if {**options, **extra}.get("n") not in (None, 1):
            raise UsageError("--generation-config: n must be 1. To ask each prompt several times, give --repeats.")
        Budget(prices=self.token_prices(), max_cost=self.max_cost)

    def grid(self) -> Grid:
        return Grid.from_specs(SMALL_LENGTHS, SMALL_DEPTHS) if self.is_default else super().grid()

    def sampling(self) -> Sampling:
        """How replies are drawn: greedily where nothing else is said, with room to reason for models that do."""
        options = dict(self.generation_config)
        if takes_temperature(self.model_name):
            options.setdefault("temperature", 0)
        room = REASONING_TOKENS if reasons(self.model_name) else ANSWER_TOKENS
        if self.model_name == EMBEDDED:
            room = SMALL_ANSWER_TOKENS  # it says it at once or rambles, and it runs on this machine
        return Sampling(max_tokens=self.max_tokens or room, options=options, reuse=not self.no_reuse)

    def runner(self) -> RunnerSettings:
        places = self.concurrency if self.concurrency is not None else self.eval_batch_size
        return RunnerSettings(
            concurrency=8 if places is None else places,
            rpm=self.rpm,
            tpm=self.tpm,
            timeout_s=self.timeout,
            max_attempts=5 if self.max_attempts is None else self.max_attempts,
        )

    def token_prices(self) -> Prices | None:
        """What tokens of this run's model cost."""
        return self.prices_of(self.model_name)

    def bar(self) -> Bar | None:
        """What accuracy has to reach for the effective length; None where nothing is said."""
        if self.preset is not None:
            if self.threshold is not None:
                raise UsageError("--threshold and --preset exclude each other: a preset is a threshold.")
            return Bar(preset=cast(Preset, self.preset))
        return None if self.threshold is None else Bar(threshold=self.threshold)

    def identity(self) -> dict[str, Any]:
        """The settings that decide prompts, model and sampling, as plain values: what a resumed run must have again."""
        fields = set(PromptsConfig.model_fields) - {"api_key", "verify", "limit", "max_tokens", "model"}
        found: dict[str, Any] = self.model_dump(mode="json", include=fields, exclude_none=True, exclude_defaults=True)
        found.pop("dataset_args", None)
        if arguments := self._arguments_of_prompts():
            found["dataset_args"] = arguments
        found["model"] = self.model_name
        found["api_url"] = self.api_url
        found["generation_config"] = dict(self.sampling().options)
        if self.lengths is not None or self.is_default:
            found["lengths"] = list(self.grid().lengths)
        if self.depths is not None or self.is_default:
            found["depths"] = list(self.grid().depths)
        if self.corpus is not None:
            found["corpus"] = [from_anywhere(spec) for spec in self.corpus]
        for name in ("prompt_template", "system_prompt"):
            if getattr(self, name) is not None:
                found[name] = getattr(self.task(), name)  # a file's text, as it is now
        if self.completions:
            found["completions"] = True
        if self.metric != "accuracy":
            found["metric"] = self.metric
        found |= {name: value for name in ("backend", "dtype") if (value := getattr(self, name)) is not None}
        if self.prompts is not None:
            found["prompts"] = str(user_path(self.prompts).resolve())
        return found

    def free(self) -> dict[str, Any]:
        """The settings that may change when a run goes on."""
        names = ("device", "limit", "eval_batch_size", "concurrency", "stream", "timeout", "max_attempts", "rpm", "tpm")
        given = {
            name: value
            for name in (*names, "max_cost", "max_tokens_total")
            if (value := getattr(self, name)) is not None
        }
        return given | self.reusing() | self.scoring() | self.drawing(show_score=self.arguments.extra_params.show_score)

    def _arguments_of_prompts(self) -> dict[str, Any]:
        """The dataset arguments without `show_score`, which decides pictures only."""
        found = {}
        for name, arguments in self.dataset_args.items():
            extra = arguments.extra_params.model_copy(update={"show_score": False})
            plain = arguments.model_copy(update={"extra_params": extra})
            found[name] = plain.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        return {name: arguments for name, arguments in found.items() if arguments}

    def judges(self, api_key: str | None) -> Jury | None:
        """Who judges the answers of this run; None for the rules alone. `api_key` is the asked model's."""
        return self.jury(
            self.runner(),
            seed=self.seed,
            api_url=self.api_url,
            api_key=api_key,
            prices=self.prices,
        )


def mistake(error: ValidationError, model: type[BaseModel]) -> str:
    """The first mistake as one line for people."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = [part for part in first["loc"] if not str(part).startswith(("function-", "nullable"))]
    entry = place[-1] if place and isinstance(place[-1], int) else None
    place = place if entry is None else place[:-1]
    where = ".".join(str(part) for part in place)
    if first["type"] == "extra_forbidden":
        return f"Unknown setting {where!r}.{_nearest(str(place[-1]), _level(model, place[:-1]))}"
    flag = f"--{where.replace('_', '-')}" if len(place) == 1 else where
    if entry is not None:
        flag = f"{flag} (entry {entry + 1})"
    if first["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return f"{flag}: must be a JSON object, not {shown(first['input'])}."
    return f"{flag}: {first['msg'].removeprefix('Value error, ').rstrip('.')}."


def _level(model: type[BaseModel], place: Sequence[int | str]) -> type[BaseModel]:
    """The settings' model at `place` of nested ones."""
    nested: dict[str, type[BaseModel]] = {
        "dataset_args": DatasetArgs,
        "extra_params": ExtraParams,
        "judge": JudgeConfig,
        "models": JudgeModel,
        "contract": JudgeContract,
    }
    return next((nested[str(part)] for part in reversed(place) if str(part) in nested), model)


def _nearest(name: str, level: type[BaseModel]) -> str:
    """Where a name that is unknown at one level is known, or what it resembles."""
    homes: dict[type[BaseModel], str] = {
        PromptsConfig: "It is a setting of its own, not one of a dataset.",
        DatasetArgs: "It belongs into dataset_args.needle_haystack.",
        ExtraParams: "It belongs into dataset_args.needle_haystack.extra_params.",
    }
    hint = did_you_mean(name, level.model_fields)
    if hint:
        return hint
    for home, says in homes.items():
        if home is not level and name in home.model_fields:
            return f" {says}"
    known = list(level.model_fields)
    return f" Known here: {', '.join(known)}." if len(known) <= _MOST_SHOWN else " docs/eval.md lists all."
