"""`needlepoint prompts`: make the prompts, write them, and say what they are like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

from ..config import PromptsConfig
from ..errors import OutputError, UsageError, did_you_mean
from ..export import BATCH_BYTES, BATCH_REQUESTS, Format, Line, check_target, lines, write
from ..fields import user_path
from ..pipeline import plan_prompts
from ..plan.statistics import Statistics
from ..plan.task import Plan
from ..show.console import counting, downloads, notify
from ..show.prompts import show_statistics


def make_prompts(settings: Mapping[str, Any], *, out: str | None, format_: str, as_json: bool) -> None:
    """What the command does, from its flags to its tables."""
    config = PromptsConfig.of(settings)
    chosen = _format(format_, config, out)
    if out is not None:
        check_target(out)
    if out == "-" and as_json:
        raise UsageError("--json and --out - both write to stdout. Give --out a file.")
    with downloads() as progress:
        plan = plan_prompts(config, notify=notify, progress=progress)
    if out is not None:
        _spare_corpora(plan, out)
    statistics = Statistics()
    size = 0
    with counting("prompts", len(plan)) as count:

        def on_line(line: Line) -> None:
            statistics.add(line.prompt)
            count()

        if out is None:
            for prompt in plan:
                statistics.add(prompt)
                count()
        else:
            size = write(lines(plan, format_=chosen, model=config.model), out, on_line=on_line)
    for note in plan.notes:
        notify(note)
    if chosen == "openai-batch" and (size > BATCH_BYTES or len(plan) > BATCH_REQUESTS):
        notify(
            f"The batch has {len(plan):,} requests and {size / 1e6:,.0f} MB; OpenAI takes at most {BATCH_REQUESTS:,} "
            f"and {BATCH_BYTES / 1e6:,.0f} MB in one file. Split it, by --limit or fewer --lengths, say."
        )
    if as_json:
        print(json.dumps(_json(plan, statistics, out), ensure_ascii=False, indent=2))
    else:
        show_statistics(plan, statistics, stderr=out == "-")
    if out is not None and out != "-":
        notify(f"Wrote {len(plan):,} prompts ({size / 1e6:,.1f} MB) to {out}")


def _format(name: str, config: PromptsConfig, out: str | None) -> Format:
    for known in get_args(Format):
        if name == known:
            break
    else:
        raise UsageError(
            f"Unknown --format {name!r}.{did_you_mean(name, get_args(Format))} Known: {', '.join(get_args(Format))}."
        )
    chosen: Format = known
    if chosen == "openai-batch":
        if out is None:
            raise UsageError("--format openai-batch writes a file. Name it with --out FILE, or --out - for stdout.")
        if config.model is None:
            raise UsageError("--format openai-batch names a model in every line. Give --model.")
    return chosen


def _spare_corpora(plan: Plan, out: str) -> None:
    """Raise where the file to write is a text that was read."""
    path = user_path(out)
    for corpus in plan.corpora:
        source = user_path(corpus.source)
        if path.is_file() and source.is_file() and source.samefile(path):
            raise OutputError(f"--out {out} is the text of the corpus {corpus.name!r}. Choose another place.")


def _json(plan: Plan, statistics: Statistics, out: str | None) -> dict[str, Any]:
    endpoint = plan.endpoint
    return {
        "schema": 1,
        "dataset": plan.task.dataset,
        "layout": plan.task.layout,
        "length_mode": plan.task.length_mode,
        "corpora": [
            {
                "subset": corpus.subset,
                "name": corpus.name,
                "licence": corpus.licence,
                "sha256": corpus.sha256,
                "source": corpus.source,
            }
            for corpus in plan.corpora
        ],
        "tokenizer": {
            "name": endpoint.tokenizer.name,
            "fingerprint": endpoint.tokenizer.fingerprint,
            "chat_template": endpoint.template_name,
            "length_proven": endpoint.proven,
        },
        **statistics.json(),
        "notes": list(plan.notes),
        "out": out,
    }
