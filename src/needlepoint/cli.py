"""The command line: parse → API → show. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated, Any

import typer

from . import __version__
from .errors import NeedlepointError, UsageError

app = typer.Typer(
    name="needlepoint",
    help="Does a language model find a fact in a long text, at every context length and depth?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
assets_app = typer.Typer(
    no_args_is_help=True, help="Texts and models that are fetched once and kept.", rich_markup_mode=None
)
app.add_typer(assets_app, name="assets")


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        typer.echo(f"needlepoint {__version__}")
        raise typer.Exit


@app.command()
def prompts(
    datasets: Annotated[
        list[str] | None, typer.Option(help="Benchmark; naming needle_haystack gives EvalScope's very prompts.")
    ] = None,
    dataset_args: Annotated[str | None, typer.Option(help="JSON as EvalScope takes it.", metavar="JSON")] = None,
    dataset_dir: Annotated[
        str | None, typer.Option(help="Root of the hub cache with the dataset.", metavar="DIR")
    ] = None,
    lengths: Annotated[
        str | None, typer.Option(help="Context lengths in tokens: 1k,4k,32k or 1k:1m:10:log.", metavar="LIST|RANGE")
    ] = None,
    depths: Annotated[
        str | None, typer.Option(help="Depths in percent: 0,50,100 or 0:100:11.", metavar="LIST|RANGE")
    ] = None,
    length_mode: Annotated[
        str | None,
        typer.Option(help="exact: whole prompts of that many tokens; evalscope: its prompts, byte for byte."),
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            help="Text to hide needles in: canonical, embedded, sotu, sanguo, or [NAME=]FILE|DIR|GLOB|FILE.jsonl#FIELD."
        ),
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of --corpus files, where it is not found out.")] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Model id, encoding name, tokenizer.json, GGUF file or server URL.")
    ] = None,
    chat_template: Annotated[
        str | None, typer.Option(help="Name of a chat format, Jinja file, or none.", metavar="NAME|FILE")
    ] = None,
    needle: Annotated[list[str] | None, typer.Option(help="A fact to hide; give it again for several.")] = None,
    needle_set: Annotated[
        str | None, typer.Option(help="seed, native (per language), or drawn facts: number, word, uuid, date.")
    ] = None,
    needle_count: Annotated[int | None, typer.Option(help="How many drawn facts a prompt hides.")] = None,
    question: Annotated[str | None, typer.Option(help="The question that asks for the needles.")] = None,
    system_prompt: Annotated[str | None, typer.Option(help="System message; '' for none.", metavar="TEXT|FILE")] = None,
    prompt_template: Annotated[
        str | None, typer.Option(help="User message with {context} and {question}.", metavar="TEXT|FILE")
    ] = None,
    replicates: Annotated[int | None, typer.Option(help="Draws of text offset and needle for each cell.")] = None,
    repeats: Annotated[int | None, typer.Option(help="How often each prompt is asked.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides every draw.")] = None,
    limit: Annotated[str | None, typer.Option(help="First N prompts of each subset, or a share such as 0.1.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Model the prompts are for: its tokenizer, and batch files.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(help="Key for a tokenizer URL.", envvar="NEEDLEPOINT_API_KEY", show_envvar=True)
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Answer limit written into batch files.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write the prompts here; - for stdout.", metavar="FILE")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="samples (the seed's shape) or openai-batch.")] = "samples",
    verify: Annotated[bool, typer.Option("--verify", help="Encode every prompt again and prove its length.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Statistics as JSON.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Make the benchmark's prompts: count, prove and write them, without asking a model."""
    from .commands.prompts import make_prompts

    given = {
        name: value
        for name, value in locals().items()
        if name not in ("out", "format_", "json_", "debug", "make_prompts")
    }
    given["limit"] = _number(limit)
    given["verify"] = verify or None
    make_prompts(given, out=out, format_=format_, as_json=json_)


@assets_app.command("list")
def assets_list(json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """What can be fetched, what is there, and how large it is."""
    from .commands.assets import show_assets

    show_assets(as_json=json_)


@assets_app.command("fetch")
def assets_fetch(names: Annotated[list[str], typer.Argument(help="Names from the list, or all.")]) -> None:
    """Fetch now what would be fetched when first needed."""
    from .commands.assets import fetch

    fetch(names)


@assets_app.command("clear")
def assets_clear(
    names: Annotated[list[str] | None, typer.Argument(help="Names from the list; none means everything.")] = None,
) -> None:
    """Remove fetched files."""
    from .commands.assets import clear

    clear(names)


def _number(text: str | None) -> Any:
    """`--limit` as the whole number or share that was typed."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--limit must be a number of prompts or a share such as 0.1, not {text!r}.") from None


def main() -> None:
    """Entry point: one message for what goes wrong, and the exit code that errors.py names."""
    debug = "--debug" in sys.argv[1:] or os.environ.get("NEEDLEPOINT_DEBUG") == "1"
    try:
        app(prog_name="needlepoint")
    except NeedlepointError as error:
        if debug:
            raise
        print(f"needlepoint: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("needlepoint: stopped; nothing half-written was left.", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


if __name__ == "__main__":
    main()
