"""Prompts, and texts that go on from them, as tokens of the model that is asked. Values in, values out."""

from __future__ import annotations

from array import array

from needlepoint.plan.prompt import Prompt
from needlepoint.types import Alternatives, Askable, Endpoint, Tokenizer


def planned_ids(prompt: Askable, tokenizer: Tokenizer) -> array[int] | None:
    """The prompt's tokens where it was planned with this very tokenizer."""
    if isinstance(prompt, Prompt) and prompt.haystack.tokenizer.fingerprint == tokenizer.fingerprint:
        return prompt.token_ids()
    return None


def own_ids(prompt: Askable, endpoint: Endpoint) -> array[int]:
    """The prompt's own tokens where they are this model's; else those that its chat has here."""
    if (planned := planned_ids(prompt, endpoint.tokenizer)) is not None:
        return planned
    text = prompt.text() if endpoint.render is None else endpoint.render(prompt.messages())
    return endpoint.tokenizer.encode(text, special=True).ids


def continuation(tokenizer: Tokenizer, lead: str, text: str) -> tuple[array[int], int]:
    """The tokens of `lead` with `text` behind it, and how many of them belong to the lead alone."""
    found = tokenizer.encode(lead + text)
    n_bytes = len(lead.encode())
    return found.ids, sum(end <= n_bytes for end in found.ends)


def anchor_of(tokenizer: Tokenizer) -> int | None:
    """A token that is a whole text by itself."""
    ids = tokenizer.encode("a").ids
    return ids[-1] if ids else None


def texts_of(compared: Alternatives) -> tuple[str, ...]:
    """The values that are compared, the right one first."""
    return (compared.gold, *compared.rivals)
