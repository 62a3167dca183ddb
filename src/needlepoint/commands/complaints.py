"""What went wrong with a command, in words for people."""

from __future__ import annotations

import re
from typing import Any

from ..errors import NeedlepointError, did_you_mean


def wrong_usage(error: Any) -> str:
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


def words(error: Exception) -> str:
    """Our own errors speak for themselves; anything else is told as what it is."""
    if isinstance(error, NeedlepointError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory. Ask for shorter --lengths."
    says = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return f"Something that should not happen did: {says}.\nPlease report it with what --debug shows."
