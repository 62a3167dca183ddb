"""needlepoint: does a language model find a fact in a long text, at every context length and depth?

import needlepoint

for prompt in needlepoint.prompts(lengths="1k,4k", depths="0:100:5", corpus="embedded"):
    print(prompt.cell, prompt.n_tokens, prompt.sha256)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import NeedlepointError

if TYPE_CHECKING:
    from .plan.prompt import Prompt
    from .plan.task import Plan

__version__ = "0.1.0"
__all__ = ["NeedlepointError", "Plan", "Prompt", "__version__", "prompts"]


def prompts(*, notify: Callable[[str], None] | None = None, **settings: Any) -> Plan:
    """The prompts of a benchmark, made lazily while you iterate; `len()` makes none.

    `settings` have the names of the command's flags: `datasets`, `dataset_args`, `lengths`, `depths`, `corpus`,
    `tokenizer`, `needle`, `question`, `length_mode`, `replicates`, `seed`, `limit` and the others of `PromptsConfig`.
    `notify` takes one-line messages. Raises `NeedlepointError` with a message for people.
    """
    from .config import PromptsConfig
    from .pipeline import plan_prompts

    return plan_prompts(PromptsConfig.of(settings), notify=notify)


def __getattr__(name: str) -> Any:
    if name == "Prompt":
        from .plan.prompt import Prompt

        return Prompt
    if name == "Plan":
        from .plan.task import Plan

        return Plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
