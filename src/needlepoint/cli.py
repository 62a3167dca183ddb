"""The command line: parse → API → show. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from . import __version__
from .errors import NeedlepointError, OutputError, did_you_mean

_ClickError: type[Exception] = typer.BadParameter.__mro__[2]
"""What typer raises for a wrong command line. Typer bundles click or imports it, by version: this finds it in both."""

WHAT, TEXT, FACTS, TOKENS, AMOUNT, OUTPUT = "What", "Text", "Facts", "Tokens", "Amount", "Output"


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


@app.command(cls=Grouped, short_help="Make the prompts: count, prove and write them.")
def prompts(
    datasets: Annotated[
        list[str] | None, _option(WHAT, "NAME", "Naming needle_haystack gives EvalScope's very prompts.")
    ] = None,
    dataset_args: Annotated[str | None, _option(WHAT, "JSON", "Dataset arguments as EvalScope takes them.")] = None,
    dataset_dir: Annotated[str | None, _option(WHAT, "DIR", "Root of a hub cache that holds the dataset.")] = None,
    lengths: Annotated[
        str | None, _option(WHAT, "LIST|RANGE", "Context lengths in tokens: 1k,4k,32k or 1k:1m:10:log.")
    ] = None,
    depths: Annotated[str | None, _option(WHAT, "LIST|RANGE", "Depths in percent: 0,50,100 or 0:100:11.")] = None,
    length_mode: Annotated[
        str | None,
        _option(WHAT, "MODE", "exact: the whole prompt has that many tokens; evalscope: its prompts, byte for byte."),
    ] = None,
    corpus: Annotated[
        list[str] | None,
        _option(
            TEXT,
            "NAME|PATH",
            "Text to hide needles in: canonical, embedded, sotu, sanguo, or [NAME=]FILE, DIR, GLOB or "
            "FILE.jsonl#FIELD. Give it again for several.",
        ),
    ] = None,
    encoding: Annotated[str | None, _option(TEXT, "NAME", "Encoding of --corpus files; else it is found out.")] = None,
    needle: Annotated[list[str] | None, _option(FACTS, "TEXT", "A fact to hide. Give it again for several.")] = None,
    needle_set: Annotated[
        str | None,
        _option(FACTS, "SET", "seed, native (by language), or facts that are drawn: number, word, uuid, date."),
    ] = None,
    needle_count: Annotated[str | None, _option(FACTS, "N", "How many drawn facts a prompt hides.")] = None,
    question: Annotated[str | None, _option(FACTS, "TEXT", "The question that asks for the needles.")] = None,
    system_prompt: Annotated[str | None, _option(FACTS, "TEXT|FILE", "System message; '' for none.")] = None,
    prompt_template: Annotated[
        str | None, _option(FACTS, "TEXT|FILE", "User message with {context} and {question}.")
    ] = None,
    tokenizer: Annotated[
        str | None, _option(TOKENS, "NAME|PATH|URL", "Model id, tokenizer.json, GGUF file or server that counts.")
    ] = None,
    chat_template: Annotated[
        str | None, _option(TOKENS, "NAME|FILE", "A chat format's name, a Jinja file, or none.")
    ] = None,
    model: Annotated[str | None, _option(TOKENS, "NAME", "Model that the prompts are for.")] = None,
    api_key: Annotated[
        str | None,
        _option(TOKENS, "KEY", "Key for a tokenizer's URL.", envvar="NEEDLEPOINT_API_KEY", show_envvar=True),
    ] = None,
    replicates: Annotated[
        str | None, _option(AMOUNT, "N", "Draws of text offset and facts for each cell; 1 where not given.")
    ] = None,
    repeats: Annotated[str | None, _option(AMOUNT, "N", "How often each prompt is asked; 1 where not given.")] = None,
    seed: Annotated[str | None, _option(AMOUNT, "N", "Decides every draw; 0 where not given.")] = None,
    limit: Annotated[
        str | None, _option(AMOUNT, "N", "First N prompts of each subset, or a share such as 0.1.")
    ] = None,
    out: Annotated[str | None, _option(OUTPUT, "FILE", "Write the prompts here; - for stdout.", "--out", "-o")] = None,
    format_: Annotated[
        str, _option(OUTPUT, "FORMAT", "samples (the seed's shape, the default) or openai-batch.", "--format")
    ] = "samples",
    max_tokens: Annotated[str | None, _option(OUTPUT, "N", "Answer limit written into batch files.")] = None,
    verify: Annotated[
        bool, _option(OUTPUT, None, "Encode every prompt again and prove its length.", "--verify")
    ] = False,
    json_: Annotated[bool, _option(OUTPUT, None, "Print the statistics as JSON.", "--json")] = False,
    debug: Annotated[bool, _option("Other", None, "Show tracebacks.", "--debug")] = False,
) -> None:
    """Make the benchmark's prompts: count, prove and write them, without asking a model."""
    given: dict[str, Any] = dict(locals())
    for name in ("out", "format_", "json_", "debug"):
        del given[name]
    for name in ("needle_count", "replicates", "repeats", "seed", "limit", "max_tokens"):
        given[name] = _number(given[name])
    from .commands.prompts import make_prompts

    make_prompts(given, out=out, format_=format_, as_json=json_)


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


def _number(text: str | None) -> int | float | str | None:
    """The number that was typed. What is none stays text, for the settings to refuse under its name."""
    for read in (int, float):
        try:
            return None if text is None else read(text)
        except ValueError:
            continue
    return text


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


def _wrong_usage(error: Any) -> str:
    """Click's complaint as our one message."""
    message = " ".join(str(error.format_message()).split())
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    if (option := getattr(error, "option_name", None)) is not None and "No such option" in message:
        known = [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
        message = f"There is no option {option}.{did_you_mean(option, known)}"
    elif commands := getattr(context.command, "commands", None):
        if found := re.match(r"No such command (.+?)\.( Did you mean|$)", message):
            message = f"There is no command {found[1]}.{did_you_mean(found[1][1:-1], commands)}"
        message = f"{message} Known: {', '.join(commands)}."
    return f"{message}\nSee: {context.command_path} --help"


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
        _say(_wrong_usage(error))
        sys.exit(2)
    except Exception as error:
        if debug:
            raise
        _settle_stdout()
        _say(_words(error))
        sys.exit(error.exit_code if isinstance(error, NeedlepointError) else NeedlepointError.exit_code)


def _words(error: Exception) -> str:
    if isinstance(error, NeedlepointError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory. Ask for shorter --lengths."
    says = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return f"Something that should not happen did: {says}.\nPlease report it with what --debug shows."


if __name__ == "__main__":
    main()
