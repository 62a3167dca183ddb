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
    from .comparison import CompareResult, compare
    from .config import TaskConfig
    from .evaluation import TaskResult, arun_task, run_task
    from .importing import import_results
    from .limit import LimitResult, afind_limit, find_limit
    from .plan.prompt import Prompt
    from .plan.task import Plan
    from .report import make_report
    from .rescoring import ascore_run, score_run

__version__ = "0.1.0"
__all__ = [
    "CompareResult",
    "LimitResult",
    "NeedlepointError",
    "Plan",
    "Prompt",
    "TaskConfig",
    "TaskResult",
    "__version__",
    "afind_limit",
    "arun_task",
    "ascore_run",
    "compare",
    "find_limit",
    "import_results",
    "make_report",
    "prompts",
    "run_task",
    "score_run",
]
_HOMES = {
    "LimitResult": "limit",
    "afind_limit": "limit",
    "find_limit": "limit",
    "CompareResult": "comparison",
    "compare": "comparison",
    "Plan": "plan.task",
    "Prompt": "plan.prompt",
    "TaskConfig": "config",
    "TaskResult": "evaluation",
    "arun_task": "evaluation",
    "ascore_run": "rescoring",
    "score_run": "rescoring",
    "import_results": "importing",
    "make_report": "report",
    "run_task": "evaluation",
}


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
    """The rest of the public API, imported when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
