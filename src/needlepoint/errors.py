"""Everything that needlepoint raises on purpose.

    NeedlepointError            exit code 3: the work could not be finished
    ├── UsageError              exit code 2: a setting is wrong
    │   ├── InputError          exit code 2: a file, text or answer given to us is broken
    │   │   ├── CorpusError     a haystack text is missing, binary, empty, ...
    │   │   └── TokenizerError  a tokenizer or chat template is missing or unusable
    │   └── LengthError         the asked length cannot be built
    ├── FetchError              exit code 2: something had to be downloaded and could not be
    ├── OutputError             exit code 2: a result could not be written
    └── MissingExtra            exit code 2: an optional part is not installed

A message says what happened, names the value, and what to do next, in one or two lines.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class NeedlepointError(Exception):
    """Base of all errors that have a message for people."""

    exit_code = 3


class UsageError(NeedlepointError):
    """A setting is wrong; nothing was done."""

    exit_code = 2


class InputError(UsageError):
    """A file, text or answer that was handed to needlepoint is broken."""


class CorpusError(InputError):
    """A haystack text cannot be used."""


class TokenizerError(InputError):
    """A tokenizer or chat template cannot be used."""


class LengthError(UsageError):
    """A prompt of the asked length cannot be built."""


class FetchError(NeedlepointError):
    """Something had to be downloaded and could not be."""

    exit_code = 2


class OutputError(NeedlepointError):
    """A result could not be written."""

    exit_code = 2


class MissingExtra(NeedlepointError):
    """An optional part of needlepoint is needed and not installed."""

    exit_code = 2

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional part. Install it with: pip install 'needlepoint[{extra}]'")


def did_you_mean(value: str, known: Iterable[str], *, limit: int = 3) -> str:
    """`" Did you mean 'x' or 'y'?"`, or an empty string where nothing is near."""
    names = list(known)
    by_folded: dict[str, str] = {}
    for name in names:
        by_folded.setdefault(name.casefold(), name)
    near = difflib.get_close_matches(value.casefold(), by_folded, n=limit, cutoff=0.6)
    if not near:
        return ""
    return " Did you mean " + " or ".join(repr(by_folded[name]) for name in near) + "?"
