"""The verb `limit` of the command line."""

from __future__ import annotations

from typing import Any

import typer

from . import flags


def limit_(
    model: flags.Model = None,
    api_url: flags.ApiUrl = None,
    api_key: flags.ApiKey = None,
    min_length: flags.MinLength = None,
    max_length: flags.MaxLength = None,
    depths: flags.LimitDepths = None,
    dataset_args: flags.DatasetArgs = None,
    dataset_dir: flags.DatasetDir = None,
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
    seed: flags.Seed = None,
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
    budget_tokens: flags.BudgetTokens = None,
    max_cost: flags.MaxCost = None,
    max_tokens_total: flags.MaxTokensTotal = None,
    price_in: flags.PriceIn = None,
    price_out: flags.PriceOut = None,
    price_cached: flags.PriceCached = None,
    prices: flags.Prices = None,
    dry_run: flags.DryRun = False,
    work_dir: flags.WorkDir = None,
    use_cache: flags.UseCache = None,
    resume: flags.Resume = None,
    threshold: flags.Threshold = None,
    preset: flags.Preset = None,
    confidence: flags.Confidence = None,
    config: flags.Config = None,
    json_: flags.LimitJson = False,
    debug: flags.Debug = False,
) -> None:
    """How much context can I use? Searches for the length up to which a model finds what it is asked for.

    Looks where an answer tells most for its tokens, and then certifies a length on fresh trials: "at least 16k at 85%
    with 95% confidence". Without --model the embedded one is asked.
    """
    given: dict[str, Any] = dict(locals())
    for name in ("config", "json_", "debug", "no_stream"):
        del given[name]
    for name in flags.NUMBERS & given.keys():
        given[name] = flags.number(given[name])
    given["stream"] = False if no_stream else None
    for name in ("completions", "dry_run"):
        given[name] = given[name] or None
    from .commands.limit import find

    raise typer.Exit(find(given, config_file=config, as_json=json_))
