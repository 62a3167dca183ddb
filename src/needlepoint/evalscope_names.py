"""Settings of EvalScope's that are none here: taken where they ask for what happens anyway, else refused in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import UsageError
from .fields import shown

_MEANINGLESS = frozenset(
    "aggregation eval_split few_shot_num few_shot_prompt_template few_shot_random filters force_redownload metric_list "
    "name output_types pretty_name query_template review_timeout sandbox_config shuffle shuffle_choices train_split "
    "dataset_hub dataset_dir default_subset dataset_revision".split()
)
_OWN: dict[str, tuple[object, ...]] = {
    "eval_type": ("openai_api", "service", "server"),
    "eval_backend": ("Native",),
    "dataset_hub": ("modelscope", "huggingface"),
    "debug": (True, False),
    "ignore_errors": (True,),
    "no_timestamp": (False,),
    "analysis_report": (False,),
}
"""Settings of EvalScope's that are no setting here, with the values that ask for what happens anyway."""


def without_evalscopes_own(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those that only EvalScope has. Raises UsageError where one asks for something else."""
    for name, harmless in _OWN.items():
        if name in given and given[name] not in harmless:
            raise UsageError(f"{name}={shown(given[name])} is EvalScope's own and means nothing here. Leave it out.")
    return {name: value for name, value in given.items() if name not in _OWN}


def meaningful(dataset: str, arguments: object) -> object:
    """Dataset arguments without those that ask for nothing, such as `few_shot_num: 0`."""
    if not isinstance(arguments, Mapping):
        return arguments
    for key, value in arguments.items():
        if key in _MEANINGLESS and value:
            raise ValueError(
                f"{key}={shown(value)} means nothing for {dataset}, whose prompts are made, not read. Leave it out"
            )
    return {key: value for key, value in arguments.items() if key not in _MEANINGLESS}
