"""The main path, from what a user asks for to prompts: connect → gather → plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .config import SUBSETS, PromptsConfig
from .connect import DEFAULT_TOKENIZER, connect
from .errors import CorpusError, did_you_mean
from .fields import user_path
from .plan.task import Plan
from .text import corpora
from .text.cache import Notify, Progress
from .types import Corpus


def plan_prompts(config: PromptsConfig, *, notify: Notify | None = None, progress: Progress | None = None) -> Plan:
    """The prompts of `config`, made lazily. Fetches what is needed; asks no model."""
    task = config.task()
    endpoint = connect(
        config.tokenizer_name or (None if task.length_mode == "exact" and config.model else DEFAULT_TOKENIZER),
        model=config.model,
        chat_template=config.chat_template,
        api_key=config.api_key.get_secret_value() if config.api_key else None,
        needs_template=task.length_mode == "exact",
        notify=notify,
        progress=progress,
    )
    return Plan(task, gather(config, notify=notify, progress=progress), endpoint, verify=config.verify_mode)


def gather(config: PromptsConfig, *, notify: Notify | None = None, progress: Progress | None = None) -> list[Corpus]:
    """The corpora of `config`: those that it names, else the dataset's own, in the order of the dataset."""
    wanted = config.arguments.subset_list

    def dataset(subsets: Sequence[str], *, fall_back: bool) -> list[Corpus]:
        return corpora.canonical(
            subsets,
            local_path=_path(config.arguments.local_path),
            dataset_dir=_path(config.dataset_dir),
            dataset_id=config.arguments.dataset_id,
            fall_back=fall_back,
            notify=notify,
            progress=progress,
        )

    if config.corpus is not None:
        found = []
        for spec in config.corpus:
            if spec == "canonical":
                found += dataset(SUBSETS, fall_back=False)
            else:
                found += corpora.load(spec, encoding=config.encoding, notify=notify, progress=progress)
        subsets = [corpus.subset for corpus in found]
        if len(set(subsets)) < len(subsets):
            twice = next(subset for subset in subsets if subsets.count(subset) > 1)
            raise CorpusError(f"Two corpora are called {twice!r}. Name them: --corpus NAME=PATH.")
    else:
        _check_subsets(wanted, SUBSETS)
        found = dataset([subset for subset in SUBSETS if wanted is None or subset in wanted], fall_back=True)
    _check_subsets(wanted, [corpus.subset for corpus in found])
    return [corpus for corpus in found if wanted is None or corpus.subset in wanted]


def _check_subsets(wanted: list[str] | None, known: list[str] | tuple[str, ...]) -> None:
    for subset in wanted or ():
        if subset not in known:
            raise CorpusError(f"Unknown subset {subset!r}.{did_you_mean(subset, known)} Known: {', '.join(known)}.")


def _path(text: str | None) -> Path | None:
    return None if text is None else user_path(text)
