"""What a run was made with: the part that must not change when it is resumed, and the part that may.

Knows nothing of files; `store` writes these to `run.json`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ..errors import InputError, UsageError
from .plain import plain, scrub

SCHEMA = 1
_LONGEST_SHOWN = 60


def now() -> str:
    """This second in UTC, as `2026-11-18T22:33:28Z`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """A run's settings, resolved. All values are plain JSON ones after `stored()`.

    `identity` decides prompts, model and sampling options: another identity is another run. `max_tokens` and
    `limit_tokens` (what the model takes) may change; trials that they kept from an answer are then asked again. `free`
    may change at will. `imported` says whose published results these are, where it was not needlepoint that asked. Of
    `corpora` (name or subset → facts) the `sha256`, of `tokenizer` the `fingerprint` and
    the `chat_template` belong to the identity.
    """

    identity: Mapping[str, object]
    max_tokens: int | None = None
    limit_tokens: int | None = None
    free: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, object] = field(default_factory=dict)
    endpoint: Mapping[str, object] = field(default_factory=dict)
    corpora: Mapping[str, object] = field(default_factory=dict)
    tokenizer: Mapping[str, object] = field(default_factory=dict)
    imported: Mapping[str, object] = field(default_factory=dict)
    created: str = field(default_factory=now)

    def stored(self, secrets: Collection[str] = ()) -> RunSettings:
        """The same as plain JSON values, without secrets: what `run.json` holds and what is compared."""
        parts: dict[str, Any] = {name: scrub(plain(getattr(self, name), name), secrets) for name in _MAPPINGS}
        return replace(self, **parts)

    def to_json(self) -> dict[str, Any]:
        numbers = {"created": self.created, "max_tokens": self.max_tokens, "limit_tokens": self.limit_tokens}
        parts = {name: getattr(self, name) for name in _MAPPINGS}
        if not self.imported:
            del parts["imported"]
        return {"schema": SCHEMA, **numbers, **parts}

    @classmethod
    def from_json(cls, value: object, name: str) -> RunSettings:
        """From what `name` (a run.json) holds; InputError where that isn't what it must be."""
        if not isinstance(value, dict):
            raise InputError(f"{name} holds no JSON object. Restore it from a copy, or start a new run.")
        schema = value.get("schema")
        if type(schema) is not int or schema < 1:
            raise InputError(f"{name} has no schema number: it is not the run.json of a needlepoint run.")
        if schema > SCHEMA:
            raise InputError(f"{name} has schema {schema}, and this needlepoint reads {SCHEMA}. Update needlepoint.")
        found: dict[str, Any] = {}
        for key in _MAPPINGS:
            part = value.get(key, None if key == "identity" else {})
            if not isinstance(part, dict):
                raise InputError(f"{name}: {key!r} is not an object. Restore the file from a copy, or start a new run.")
            found[key] = part
        for key in ("max_tokens", "limit_tokens"):
            number = value.get(key)
            if number is not None and type(number) is not int:
                raise InputError(f"{name}: {key!r} is not a whole number. Restore the file from a copy.")
            found[key] = number
        created = value.get("created")
        if not isinstance(created, str):
            raise InputError(f"{name}: 'created' is not a time. Restore the file from a copy.")
        return cls(created=created, **found)


_PLACES = ("corpus", "dataset_args.needle_haystack.local_path", "dataset_dir")
_MAPPINGS = ("identity", "free", "versions", "endpoint", "corpora", "tokenizer", "imported")


def diff_identity(old: RunSettings, new: RunSettings) -> list[str]:
    """What makes `new` another run than `old`, a line each: `lengths: 1k,4k → 1k,8k`."""
    return _differences(_identity(old), _identity(new))


def diff_free(old: RunSettings, new: RunSettings) -> list[str]:
    """What differs and may: a line each."""
    return _differences(_changeable(old), _changeable(new))


def resume_check(old: RunSettings, new: RunSettings) -> list[str]:
    """UsageError where `new` asks other prompts, another model or with other sampling; else the other changes."""
    refuse_imported(old)
    if found := diff_identity(old, new):
        raise UsageError(
            "This run was made with other settings:\n"
            + "\n".join(f"  {line}" for line in found)
            + "\nResume it with the settings that it had (left), or start a new run."
        )
    return diff_free(old, new)


def refuse_imported(settings: RunSettings) -> None:
    """UsageError for a run that another tool made: there is nothing to go on with."""
    if settings.imported:
        raise UsageError(
            f"This run was imported from {settings.imported.get('tool', 'another tool')}: nothing more can be asked in "
            "it. Start a run of its own, without --use-cache and --resume."
        )


def _identity(settings: RunSettings) -> dict[str, Any]:
    settings = settings.stored()
    found = _flat(settings.identity)
    if settings.corpora:  # what a text is, not where it lies
        found = {key: item for key, item in found.items() if key not in _PLACES}
    for corpus, facts in settings.corpora.items():
        found[f"corpus {corpus}"] = facts.get("sha256") if isinstance(facts, dict) else facts
    for name in ("fingerprint", "chat_template"):
        if name in settings.tokenizer:
            found[f"tokenizer {name}"] = settings.tokenizer[name]
    return found


def _changeable(settings: RunSettings) -> dict[str, Any]:
    settings = settings.stored()
    found: dict[str, Any] = {"max_tokens": settings.max_tokens, "limit_tokens": settings.limit_tokens}
    for name in ("free", "versions", "endpoint"):
        found |= {
            (key if name == "free" else f"{name}.{key}"): item for key, item in _flat(getattr(settings, name)).items()
        }
    return found


def _flat(value: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested objects as one, with dots in the names."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        found |= _flat(item, f"{before}{key}.") if isinstance(item, dict) and item else {before + key: item}
    return found


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What is missing and what is None are the same: not set."""
    lines = []
    for name in dict.fromkeys((*old, *new)):
        one, other = old.get(name), new.get(name)
        if _differ(one, other):
            left, right = _shown(one, name), _shown(other, name)
            if left == right:  # but for white space or a type
                left, right = repr(one), repr(other)
            if max(len(left), len(right)) > _LONGEST_SHOWN:
                left, right = _around_difference(left, right)
            lines.append(f"{name}: {left} → {right}")
    return lines


def _differ(one: Any, other: Any) -> bool:
    return type(one) is not type(other) or one != other or (isinstance(one, list) and repr(one) != repr(other))


def _shown(value: Any, name: str) -> str:
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and "length" in name and value >= 1000 and value % 1000 == 0:
        return f"{value // 1000}k"
    if isinstance(value, list) and value and not any(isinstance(item, list | dict) for item in value):
        return ",".join(_shown(item, name) for item in value)
    return " ".join(str(value).split()) if isinstance(value, str) and value.strip() else repr(value)


def _around_difference(left: str, right: str) -> tuple[str, str]:
    """Two long texts, cut to where they first differ."""
    same = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    start = max(0, same - _LONGEST_SHOWN // 3)

    def cut(text: str) -> str:
        shown = ("…" if start else "") + text[start : start + _LONGEST_SHOWN]
        return shown + ("…" if len(text) > start + _LONGEST_SHOWN else "")

    return cut(left), cut(right)
