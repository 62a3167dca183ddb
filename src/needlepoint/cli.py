"""The command line: parse → API → show. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from . import __version__, flags
from .cli_limit import limit_
from .commands.complaints import words, wrong_usage
from .errors import NeedlepointError, OutputError

_ClickError: type[Exception] = typer.BadParameter.__mro__[2]
"""What typer raises for a wrong command line. Typer bundles click or imports it, by version: this finds it in both."""

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
app = typer.Typer(
    name="needlepoint",
    help="Does a language model find a fact in a long text, at every context length and depth?",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=_SETTINGS,
)
assets_app = typer.Typer(help="Texts and models that are fetched once and kept.", rich_markup_mode=None)
app.add_typer(assets_app, name="assets")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"needlepoint {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(cls=flags.Grouped, short_help="Make the prompts: count, prove and write them.")
def prompts(
    datasets: flags.Datasets = None,
    dataset_args: flags.DatasetArgs = None,
    dataset_dir: flags.DatasetDir = None,
    lengths: flags.Lengths = None,
    depths: flags.Depths = None,
    layout: flags.Layout = None,
    length_mode: flags.LengthMode = None,
    corpus: flags.Corpus = None,
    encoding: flags.Encoding = None,
    needle: flags.Needle = None,
    needle_set: flags.NeedleSet = None,
    needle_count: flags.NeedleCount = None,
    question: flags.Question = None,
    system_prompt: flags.SystemPrompt = None,
    prompt_template: flags.PromptTemplate = None,
    tokenizer: flags.Tokenizer = None,
    chat_template: flags.ChatTemplate = None,
    model: flags.Model = None,
    api_key: flags.ApiKey = None,
    replicates: flags.Replicates = None,
    repeats: flags.Repeats = None,
    seed: flags.Seed = None,
    limit: flags.Limit = None,
    cache: flags.Cache = None,
    out: flags.Out = None,
    format_: flags.Format_ = "samples",
    max_tokens: flags.MaxTokens = None,
    verify: flags.Verify = False,
    json_: flags.Json_ = False,
    debug: flags.Debug = False,
) -> None:
    """Make the benchmark's prompts: count, prove and write them, without asking a model."""
    given: dict[str, Any] = dict(locals())
    for name in ("out", "format_", "json_", "debug"):
        del given[name]
    for name in flags.NUMBERS & given.keys():
        given[name] = flags.number(given[name])
    from .commands.prompts import make_prompts

    make_prompts(given, out=out, format_=format_, as_json=json_)


@app.command("eval", cls=flags.Grouped, short_help="Ask a model, and show how it did.")
def eval_(
    model: flags.AskedModel = None,
    backend: flags.Backend = None,
    dtype: flags.Dtype = None,
    device: flags.Device = None,
    api_url: flags.ApiUrl = None,
    api_key: flags.AskedKey = None,
    datasets: flags.Datasets = None,
    dataset_args: flags.DatasetArgs = None,
    dataset_dir: flags.DatasetDir = None,
    lengths: flags.Lengths = None,
    depths: flags.Depths = None,
    layout: flags.Layout = None,
    length_mode: flags.LengthMode = None,
    corpus: flags.Corpus = None,
    encoding: flags.Encoding = None,
    needle: flags.Needle = None,
    needle_set: flags.NeedleSet = None,
    needle_count: flags.NeedleCount = None,
    question: flags.Question = None,
    system_prompt: flags.SystemPrompt = None,
    prompt_template: flags.PromptTemplate = None,
    tokenizer: flags.Tokenizer = None,
    chat_template: flags.ChatTemplate = None,
    replicates: flags.Replicates = None,
    repeats: flags.Repeats = None,
    seed: flags.Seed = None,
    limit: flags.Limit = None,
    eval_batch_size: flags.EvalBatchSize = None,
    concurrency: flags.Concurrency = None,
    generation_config: flags.GenerationConfig = None,
    max_tokens: flags.AnswerTokens = None,
    header: flags.Header = None,
    max_model_len: flags.MaxModelLen = None,
    completions: flags.Completions = False,
    no_stream: flags.NoStream = False,
    timeout: flags.Timeout = None,
    max_attempts: flags.MaxAttempts = None,
    rpm: flags.Rpm = None,
    tpm: flags.Tpm = None,
    max_cost: flags.MaxCost = None,
    max_tokens_total: flags.MaxTokensTotal = None,
    price_in: flags.PriceIn = None,
    price_out: flags.PriceOut = None,
    price_cached: flags.PriceCached = None,
    price_cache_write: flags.PriceCacheWrite = None,
    prices: flags.Prices = None,
    dry_run: flags.DryRun = False,
    order: flags.Order = None,
    no_reuse: flags.NoReuse = False,
    self_check: flags.SelfCheck = None,
    cache: flags.Cache = None,
    cache_tokens: flags.CacheTokens = None,
    cache_hints: flags.CacheHints = None,
    metric: flags.Metric = None,
    score: flags.Score = None,
    judge: flags.Judge = None,
    judge_model: flags.JudgeModel = None,
    judge_api_url: flags.JudgeApiUrl = None,
    judge_api_key: flags.JudgeApiKey = None,
    judge_rubric: flags.JudgeRubric = None,
    judge_repeats: flags.JudgeRepeats = None,
    judge_aggregation: flags.JudgeAggregation = None,
    judge_price_in: flags.JudgePriceIn = None,
    judge_price_out: flags.JudgePriceOut = None,
    judge_strategy: flags.JudgeStrategy = None,
    judge_model_args: flags.JudgeModelArgs = None,
    judge_worker_num: flags.JudgeWorkerNum = None,
    work_dir: flags.WorkDir = None,
    use_cache: flags.UseCache = None,
    resume: flags.Resume = None,
    prompts: flags.PromptsFrom = None,
    batch_results: flags.BatchResults = None,
    threshold: flags.Threshold = None,
    preset: flags.Preset = None,
    report: flags.Report = None,
    lang: flags.Lang = None,
    palette: flags.Palette = None,
    fail_under: flags.FailUnder = None,
    config: flags.Config = None,
    verify: flags.Verify = False,
    json_: flags.ReportJson = False,
    debug: flags.Debug = False,
) -> None:
    """Ask a model about every cell, keep what it says, and show how it did.

    Without --model the embedded one is asked: smollm2, on this machine, with no server.
    """
    given: dict[str, Any] = dict(locals())
    for name in ("config", "json_", "debug", "no_stream"):
        del given[name]
    for name in flags.NUMBERS & given.keys():
        given[name] = flags.number(given[name])
    given["stream"] = False if no_stream else None
    for name in ("completions", "dry_run", "no_reuse", "verify"):
        given[name] = given[name] or None
    from .commands.eval import evaluate

    raise typer.Exit(evaluate(given, config_file=config, as_json=json_))


@app.command("score", cls=flags.Grouped, short_help="Score a finished run again.")
def score_(
    run: Annotated[str, typer.Argument(help="Run folder.", metavar="RUN")],
    score: flags.Score = None,
    judge: flags.Judge = None,
    judge_model: flags.JudgeModel = None,
    judge_api_url: flags.JudgeApiUrl = None,
    judge_api_key: flags.JudgeApiKey = None,
    judge_rubric: flags.JudgeRubric = None,
    judge_repeats: flags.JudgeRepeats = None,
    judge_aggregation: flags.JudgeAggregation = None,
    judge_price_in: flags.JudgePriceIn = None,
    judge_price_out: flags.JudgePriceOut = None,
    judge_strategy: flags.JudgeStrategy = None,
    judge_model_args: flags.JudgeModelArgs = None,
    judge_worker_num: flags.JudgeWorkerNum = None,
    eval_batch_size: flags.EvalBatchSize = None,
    concurrency: flags.Concurrency = None,
    timeout: flags.Timeout = None,
    max_attempts: flags.MaxAttempts = None,
    rpm: flags.Rpm = None,
    tpm: flags.Tpm = None,
    prices: flags.Prices = None,
    rows: flags.Rows = None,
    config: flags.Config = None,
    json_: flags.ReportJson = False,
    debug: flags.Debug = False,
) -> None:
    """Score a finished run again, by today's rules or by judges, and make its report anew.

    Each scoring is kept beside the others; the model is not asked again.
    """
    given: dict[str, Any] = dict(locals())
    for name in ("run", "rows", "config", "json_", "debug"):
        del given[name]
    for name in flags.NUMBERS & given.keys():
        given[name] = flags.number(given[name])
    from .commands.score import score_again

    raise typer.Exit(score_again(run, given, config_file=config, rows=rows, as_json=json_))


@app.command("compare", cls=flags.Grouped, short_help="Is one run worse than another?")
def compare_(
    runs: Annotated[
        list[str], typer.Argument(help="Run folders; the first is what the others are measured by.", metavar="A B...")
    ],
    unpaired: flags.Unpaired = False,
    scorer: flags.Scorer = None,
    margin: flags.Margin = None,
    fail_if_worse: flags.FailIfWorse = None,
    max_lost: flags.MaxLost = None,
    fail_if_margin_worse: flags.FailIfMarginWorse = None,
    summary: flags.Summary = None,
    out: flags.SummaryOut = None,
    flips: flags.Flips = None,
    seed: flags.FlipSeed = None,
    json_: flags.CompareJson = False,
    debug: flags.Debug = False,
) -> None:
    """Compare runs on the same questions: is B worse than A, by how much, where, and could it have been seen?

    With --fail-if-worse it is a gate for CI: exit code 1 where B is worse, or lost trials that A measured.
    """
    from .commands.compare import compare_runs

    raise typer.Exit(
        compare_runs(
            runs,
            unpaired=unpaired,
            scorer=scorer,
            margin=margin,
            fail_if_worse=fail_if_worse,
            max_lost=max_lost,
            fail_if_margin_worse=fail_if_margin_worse,
            flips=flags.number(flips),
            seed=flags.number(seed),
            summary=summary,
            out=out,
            as_json=json_,
        )
    )


app.command("limit", cls=flags.Grouped, short_help="How much context can I use?")(limit_)


@app.command(short_help="Check an endpoint: can it be measured?")
def doctor(
    api_url: Annotated[str, typer.Option(help="OpenAI-compatible server.", metavar="URL")],
    model: Annotated[str | None, typer.Option(help="Model; else the one that is served.", metavar="NAME")] = None,
    api_key: Annotated[
        str | None, typer.Option(help="Key, env:NAME or keyring:NAME.", metavar="KEY", envvar="NEEDLEPOINT_API_KEY")
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="What to count with.", metavar="NAME|PATH")] = None,
    header: Annotated[
        list[str] | None, typer.Option(help="HTTP header of each request.", metavar="'NAME: VALUE'")
    ] = None,
    max_model_len: Annotated[int | None, typer.Option(help="Context limit, where not told.", metavar="N")] = None,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Check an endpoint: reachable, limit, tokenizer, cached tokens, logprobs, reasoning, rates."""
    from .commands.doctor import DoctorSettings, run_doctor

    settings = DoctorSettings(
        api_url=api_url,
        model=model,
        api_key=api_key,
        tokenizer=tokenizer,
        header=tuple(header or ()),
        max_model_len=max_model_len,
        as_json=json_,
    )
    raise typer.Exit(run_doctor(settings))


@app.command("show", short_help="Show what a run asked, to the byte.")
def show_(
    run: Annotated[str, typer.Argument(help="Run folder.", metavar="RUN")],
    cell: Annotated[
        str | None, typer.Argument(help="SUBSET:LENGTH:DEPTH[:REPLICATE], or a trial's id.", metavar="[CELL]")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """List a run's trials, or rebuild one prompt and prove that it is the very one that was asked."""
    from .commands.show import show_run

    show_run(run, cell, as_json=json_)


@app.command(cls=flags.Grouped, short_help="Make the pictures, the page and the tables of runs again.")
def report(
    runs: Annotated[list[str], typer.Argument(help="Run folders: one, or several side by side.", metavar="RUN...")],
    format_: flags.ReportFormat = None,
    charts: flags.Charts = None,
    title: flags.Title = None,
    lang: flags.Lang = None,
    palette: flags.Palette = None,
    theme: flags.ChartTheme = None,
    show_score: flags.ShowScore = None,
    excerpts: flags.Excerpts = True,
    threshold: flags.Threshold = None,
    preset: flags.Preset = None,
    out: flags.ReportOut = None,
    open_: flags.OpenPage = False,
    debug: flags.Debug = False,
) -> None:
    """Make the pictures, the page and the tables of a run again from its folder, or of several runs side by side.

    Nothing is asked again; the same folders give the same bytes.
    """
    given: dict[str, Any] = dict(locals())
    for name in ("format_", "open_", "debug"):
        del given[name]
    given["threshold"] = flags.number(threshold)
    from .commands.report import report_on

    report_on(formats=format_, open_page=open_, **given)


@app.command("import", cls=flags.Grouped, short_help="Turn other tools' published results into runs.")
def import_(
    files: Annotated[list[str], typer.Argument(help="Files and folders of results.", metavar="FILE...")],
    work_dir: flags.WorkDir = None,
    model: flags.ImportModel = None,
    scale: flags.Scale = None,
    depth_unit: flags.DepthUnit = None,
    json_: flags.ReportsJson = False,
    debug: flags.Debug = False,
) -> None:
    """Turn published results into run folders, one for each model: gkamradt's answers and niah rows, EvalScope's run
    folders, and score grids of any tool as JSON, JSON lines or CSV."""
    from .commands.import_ import import_files

    import_files(files, work_dir=work_dir, model=model, scale=scale, depth_unit=depth_unit, as_json=json_)


@assets_app.command("list")
def assets_list(json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """What can be fetched, what is there, and how large it is."""
    from .commands.assets import show_assets

    show_assets(as_json=json_)


@assets_app.command("fetch")
def assets_fetch(
    names: Annotated[list[str], typer.Argument(help="Names from the list, or all.", metavar="NAME...")],
) -> None:
    """Fetch now what would be fetched when first needed."""
    from .commands.assets import fetch

    fetch(names)


@assets_app.command("clear")
def assets_clear(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names from the list; none means everything.", metavar="[NAME...]")
    ] = None,
) -> None:
    """Remove fetched files."""
    from .commands.assets import clear

    clear(names)


def _invoke(arguments: Sequence[str]) -> int:
    """Run a command line, without click's own way of ending: errors, Ctrl-C and broken pipes come out as they are."""
    try:
        try:
            with typer.main.get_command(app).make_context("needlepoint", list(arguments)) as context:
                context.command.invoke(context)
            code = 0
        except typer.Exit as done:
            code = done.exit_code
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:
            raise
        raise OutputError(f"Cannot write to standard output: {error.strerror or error}.") from None
    return code


def _say(message: object) -> None:
    from .show.console import notify

    notify(str(message))


def _settle_stdout() -> None:
    """Leave nothing in stdout's buffer that the interpreter could fail to write, and complain of, when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stopped(number: int, frame: object) -> None:
    """A polite request to end (`kill`, a batch system's time limit) unwinds, so that drafts are removed."""
    sys.exit(128 + number)


def main() -> None:
    """Entry point: one message for what goes wrong, and the exit code that errors.py names."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, _stopped)
    debug = "--debug" in sys.argv[1:] or os.environ.get("NEEDLEPOINT_DEBUG") == "1"
    try:
        sys.exit(_invoke(sys.argv[1:]))
    except BrokenPipeError:
        _settle_stdout()
        sys.exit(0)
    except KeyboardInterrupt:
        _say("stopped; nothing half-written was left.")
        sys.exit(128 + signal.SIGINT)
    except _ClickError as error:
        _say(wrong_usage(error))
        sys.exit(2)
    except Exception as error:
        if debug:
            raise
        _settle_stdout()
        _say(words(error))
        sys.exit(error.exit_code if isinstance(error, NeedlepointError) else NeedlepointError.exit_code)


if __name__ == "__main__":
    main()
