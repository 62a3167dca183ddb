"""What a user may ask for of a judge: EvalScope's `judge` object, and the friendly settings beside it.

Foreign words come in here and leave as values: `JudgeFields.jury()` is who judges and how. Where a friendly setting and
the object say the same thing, the friendly one wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator

from .ask.budget import Prices, find_prices
from .ask.keys import judge_key_of
from .ask.models import REASONING_TOKENS, is_local, reasons, takes_temperature
from .ask.policy import RunnerSettings
from .errors import UsageError
from .fields import Count, Number, Sentence, Text, Texts, one_of, parse_json, parse_options, shown, text_or_file, whole
from .score.case import Contract
from .score.panel import AGGREGATIONS, Aggregation, Panel
from .score.verdict import RUBRICS, RubricName
from .types import Sampling

ScoreBy = Literal["rules", "judge", "both"]
SCORE_BY = get_args(ScoreBy)
_STRATEGIES = ("auto", "rule", "llm", "llm_recall")
_SERVED = frozenset(("openai_api", "server", "service"))
_AGGREGATIONS = (*AGGREGATIONS, "majority_vote")
_VERDICT_TOKENS = 512
_PLACES = (("{answer}", "{pred}"), ("{reference}", "{gold}"))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())


def _secret(value: object) -> object:
    if isinstance(value, str):
        value = SecretStr(value)
    text = value.get_secret_value() if isinstance(value, SecretStr) else None
    if text is None or not text.isascii() or not text.isprintable():
        raise ValueError("must be a text of printable ASCII characters, as keys are")
    return value if text else None


def _options(value: object) -> object:
    return parse_options(value, "generation_config") if isinstance(value, str) else value


Key = Annotated[SecretStr | None, BeforeValidator(_secret)]


class JudgeModel(_Strict):
    """One entry of `models`: who judges, where it is served, and how it is sampled."""

    model_id: Annotated[Sentence, Field(validation_alias=AliasChoices("model_id", "model"))]
    judge_id: Sentence | None = None
    api_url: Sentence | None = None
    api_key: Key = None
    eval_type: Text | None = None
    model_args: dict[str, Any] = {}
    generation_config: Annotated[dict[str, Any], BeforeValidator(_options)] = {}

    @field_validator("eval_type")
    @classmethod
    def _served(cls, value: str | None) -> str | None:
        if value is not None and value not in _SERVED:
            raise ValueError(
                f"{shown(value)} is no way to ask a judge here: judges are OpenAI-compatible. Leave it out"
            )
        return value

    @field_validator("model_args")
    @classmethod
    def _nothing_to_load(cls, value: dict[str, Any]) -> dict[str, Any]:
        if value:
            raise ValueError("means nothing here: a judge is asked, not loaded. Leave it out")
        return value


class JudgeContract(_Strict):
    """`contract`: what all judges are told."""

    system_prompt: Text | None = None
    prompt_template: Sentence | None = None
    score_mapping: dict[str, Any] | None = None
    score_type: Annotated[str, one_of("score type", ("pattern", "numeric"))] | None = None
    rubric: Annotated[RubricName, one_of("rubric", RUBRICS)] | None = None

    @field_validator("score_mapping")
    @classmethod
    def _no_letters(cls, value: dict[str, Any] | None) -> None:
        if value:
            raise ValueError("means nothing here: judges give numbers, not letters. Leave it out")

    @field_validator("prompt_template")
    @classmethod
    def _has_places(cls, value: str | None) -> str | None:
        for places in _PLACES:
            if value is not None and not any(place in value for place in places):
                raise ValueError(f"must hold {places[0]} (or {places[1]}), where that goes")
        return value


class JudgeConfig(_Strict):
    """`judge`, as EvalScope takes it."""

    strategy: Annotated[str, one_of("strategy", _STRATEGIES)] = "auto"
    models: list[JudgeModel] = []
    contract: JudgeContract = JudgeContract()
    repeats: Count = 1
    position_swap: Annotated[str, one_of("position swap", ("auto", "on", "off"))] = "auto"
    aggregation: Annotated[str, one_of("aggregation", _AGGREGATIONS)] = "mean"
    min_valid_judges: Annotated[int, whole(1, 100)] = 1

    @field_validator("models", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return [value] if isinstance(value, Mapping) else value

    @field_validator("position_swap")
    @classmethod
    def _nothing_to_swap(cls, value: str) -> str:
        if value == "on":
            raise ValueError("there is one answer to judge and nothing to swap it with. Leave it out")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One judge as it was asked for: who, where, with which key, how sampled and at what price."""

    id: str
    model: str
    api_url: str | None
    api_key: str | None = field(repr=False)
    sampling: Sampling
    stream: bool
    settings: RunnerSettings
    prices: Prices | None

    def facts(self) -> dict[str, Any]:
        """What makes its verdicts another judge's."""
        return {"model": self.model, "max_tokens": self.sampling.max_tokens, "options": dict(self.sampling.options)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Jury:
    """Who judges, and how their verdicts become one."""

    panel: Panel
    seats: tuple[Seat, ...]

    @property
    def secrets(self) -> list[str]:
        return [seat.api_key for seat in self.seats if seat.api_key]


class JudgeFields(_Strict):
    """The settings of scoring, shared by whole runs and by scoring a run again."""

    score: Annotated[ScoreBy, one_of("way to score", SCORE_BY)] | None = None
    judge: JudgeConfig | None = None
    judge_model: Texts | None = None
    judge_api_url: Sentence | None = None
    judge_api_key: Key = None
    judge_repeats: Count | None = None
    judge_rubric: Annotated[RubricName, one_of("rubric", RUBRICS)] | None = None
    judge_aggregation: Annotated[str, one_of("aggregation", _AGGREGATIONS)] | None = None
    judge_price_in: Number | None = None
    judge_price_out: Number | None = None
    judge_worker_num: Annotated[int, whole(1, 4_096)] | None = None

    @field_validator("judge_model")
    @classmethod
    def _somebody(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and (not value or not all(name.strip() for name in value)):
            raise ValueError("must name a model")
        return value

    @property
    def score_by(self) -> ScoreBy:
        """Rules where no judge is named; both where one is, since rules are free and audit it."""
        if self.score is not None:
            return self.score
        if not self._entries() or self._strategy == "rule":
            return "rules"
        return "both"

    @property
    def _strategy(self) -> str:
        return "auto" if self.judge is None else self.judge.strategy

    def _entries(self) -> list[JudgeModel]:
        if self.judge_model is not None:
            return [JudgeModel(model_id=name) for name in self.judge_model]
        return [] if self.judge is None else self.judge.models

    def jury(
        self, runner: RunnerSettings, *, seed: int, api_url: str | None, api_key: str | None, prices: str | None
    ) -> Jury | None:
        """Who judges; None where nobody is asked to. `api_url` and `api_key` are those of the model that is asked:
        a judge without an address is served there, too, and gets that key there and nowhere else."""
        entries = self._entries()
        if self.score_by == "rules":
            return None
        if not entries:
            raise UsageError(
                f"--score {self.score} needs a judge: --judge-model NAME --judge-api-url URL, or --judge JSON."
            )
        config = self.judge or JudgeConfig()
        ids = _ids(entries)
        if config.min_valid_judges > len(ids):
            raise UsageError(
                f"judge.min_valid_judges is {config.min_valid_judges}, and there are only {len(ids)} judges."
            )
        aggregation = self.judge_aggregation or config.aggregation
        panel = Panel(
            judges=tuple(ids),
            contract=self._contract(config.contract),
            repeats=self.judge_repeats or config.repeats,
            aggregation=_aggregation(aggregation),
            min_valid_judges=config.min_valid_judges,
            recall_only=config.strategy == "llm_recall",
            seed=seed,
        )
        urls = [self._url(entry, api_url) for entry in entries]
        self._check_shared_key(entries, urls)
        seats = [
            self._seat(judge, entry, url, runner, main=(api_url, api_key), prices=prices)
            for judge, entry, url in zip(ids, entries, urls, strict=True)
        ]
        return Jury(panel=panel, seats=tuple(seats))

    def _contract(self, contract: JudgeContract) -> Contract:
        return Contract(
            rubric=self.judge_rubric or contract.rubric or "binary",
            system_prompt=text_or_file(None, contract.system_prompt, "contract.system_prompt"),
            prompt_template=contract.prompt_template,
        )

    def _url(self, entry: JudgeModel, api_url: str | None) -> str | None:
        given = entry.api_url or self.judge_api_url
        if given is None and is_local(entry.model_id):
            if entry.model_id.partition(":")[0] == "simulated":
                raise UsageError("The simulated model reads texts; it cannot judge. Name a real one as --judge-model.")
            return None
        if given is None and api_url is None:
            raise UsageError(
                f"The judge {entry.model_id!r} needs an address: --judge-api-url URL (or api_url in --judge). "
                "Without one it is 'smollm2' or the path of a .gguf file."
            )
        return given or api_url

    def _check_shared_key(self, entries: list[JudgeModel], urls: list[str | None]) -> None:
        """One key for judges at several places would be shown to people whom it is no business of."""
        if self.judge_api_key is None:
            return
        keyless = {_origin(url) for entry, url in zip(entries, urls, strict=True) if url and entry.api_key is None}
        if len(keyless) > 1:
            raise UsageError("--judge-api-key goes to one server, and the judges have several. Put keys into --judge.")

    def _seat(
        self,
        judge: str,
        entry: JudgeModel,
        url: str | None,
        runner: RunnerSettings,
        *,
        main: tuple[str | None, str | None],
        prices: str | None,
    ) -> Seat:
        options = dict(entry.generation_config)
        timeout_s, attempts = options.pop("timeout", runner.timeout_s), options.pop("retries", runner.max_attempts)
        stream, room = options.pop("stream", True), options.pop("max_tokens", None)
        for name, value, kind in (("retries", attempts, int), ("max_tokens", room, int), ("stream", stream, bool)):
            if value is not None and type(value) is not kind:
                raise UsageError(f"judge.models.generation_config.{name} can't be {shown(value)}.")
        if timeout_s is not None and (isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float)):
            raise UsageError(f"judge.models.generation_config.timeout can't be {shown(timeout_s)}.")
        if takes_temperature(entry.model_id):
            options.setdefault("temperature", 0)
        own = entry.api_key or self.judge_api_key
        same_place = url is not None and main[0] is not None and _origin(url) == _origin(main[0])
        key = judge_key_of(own.get_secret_value() if own else None, url, fallback=main[1] if same_place else None)
        return Seat(
            id=judge,
            model=entry.model_id,
            api_url=url,
            api_key=key if url is not None else None,
            sampling=Sampling(
                max_tokens=room or (REASONING_TOKENS if reasons(entry.model_id) else _VERDICT_TOKENS), options=options
            ),
            stream=stream,
            settings=RunnerSettings(
                concurrency=self.judge_worker_num or runner.concurrency,
                rpm=runner.rpm,
                tpm=runner.tpm,
                timeout_s=timeout_s,
                max_attempts=attempts,
            ),
            prices=self._prices(entry.model_id, prices),
        )

    def _prices(self, model: str, file: str | None) -> Prices | None:
        """By flags; else the entry of the prices file, where that has one for this judge."""
        if self.judge_price_in is not None or self.judge_price_out is not None:
            if self.judge_price_in is None or self.judge_price_out is None:
                raise UsageError("--judge-price-in and --judge-price-out go together.")
            return Prices(input=self.judge_price_in, output=self.judge_price_out)
        return None if file is None else find_prices(file, model)

    def scoring(self) -> dict[str, Any]:
        """What `run.json` keeps of these settings; no key."""
        given = {
            name: value
            for name in ("score", "judge_model", "judge_api_url", "judge_repeats", "judge_rubric", "judge_aggregation")
            if (value := getattr(self, name)) is not None
        }
        if self.judge is not None:
            given["judge"] = self.judge.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        return given


def prepare_judge(given: dict[str, Any]) -> None:
    """Bring older and looser spellings into the shape of today, in place: `judge` as JSON text, and EvalScope's
    `judge_model_args` and `judge_strategy`."""
    if isinstance(given.get("judge"), str):
        given["judge"] = _unquoted(parse_json, given["judge"], "--judge")
    arguments, strategy = given.pop("judge_model_args", None), given.pop("judge_strategy", None)
    if isinstance(arguments, str):
        arguments = _unquoted(parse_options, arguments, "--judge-model-args")
    if not arguments and strategy is None:
        return
    if given.get("judge"):
        raise UsageError("judge_model_args and judge_strategy are older names for what judge says. Give only judge.")
    found: dict[str, Any] = {} if strategy is None else {"strategy": strategy}
    if arguments:
        if not isinstance(arguments, Mapping):
            raise UsageError(f"judge_model_args must be a JSON object, not {shown(arguments)}.")
        entry = dict(arguments)
        told = ("system_prompt", "prompt_template", "score_mapping", "score_type")
        contract = {name: entry.pop(name) for name in told if name in entry}
        entry.pop("score_pattern", None)  # how a letter was found in a reply; there are no letters here
        found |= {"models": [entry], "contract": contract}
    given["judge"] = found


def _unquoted(parse: Callable[[str, str], Any], text: str, flag: str) -> Any:
    """What a flag holds; a complaint doesn't quote it, since it may hold a key."""
    try:
        return parse(text, flag)
    except UsageError as error:
        words = re.sub(r"; .* is neither|, near .*", "", str(error), flags=re.DOTALL)
        raise UsageError(words.rstrip(".") + ".") from None


def _ids(entries: list[JudgeModel]) -> list[str]:
    ids = [entry.judge_id or entry.model_id for entry in entries]
    for judge in ids:
        if ids.count(judge) > 1:
            raise UsageError(f"Two judges are called {judge!r}. Give each a judge_id of its own in --judge.")
    return ids


def _aggregation(name: str) -> Aggregation:
    return "majority" if name == "majority_vote" else next(one for one in AGGREGATIONS if one == name)


def _origin(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        return parts.scheme, parts.netloc.rpartition("@")[2].lower()
    except ValueError:
        return "", url
