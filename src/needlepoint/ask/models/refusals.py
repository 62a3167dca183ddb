"""What a server's error means: HTTP status, headers and body → `Failure`. Pure: the clock is handed in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from needlepoint.ask.models.overflow import find_overflow
from needlepoint.types import Failure, FailureKind

SHOWN_CHARS = 300
_TEXT_CHARS = 20_000
_LONGEST_WAIT_S = 24 * 3600.0

_BY_STATUS: Mapping[int, FailureKind] = {
    401: "auth",
    402: "auth",
    403: "auth",
    408: "timeout",
    409: "server",
    413: "overflow",
    425: "server",
    429: "rate_limit",
    498: "rate_limit",
    504: "timeout",
    522: "connection",
    524: "timeout",
}
_BY_CODE: tuple[tuple[str, FailureKind], ...] = (
    ("insufficient_quota|insufficient_balance|billing|credit", "auth"),
    ("rate_?limit|too_?many_?requests|resource_exhausted", "rate_limit"),
    ("overloaded|server_?error|internal|unavailable|api_error", "server"),
    ("timeout|deadline", "timeout"),
    ("auth|permission|api_?key", "auth"),
    ("invalid|bad_?request|not_?found|unsupported", "bad_request"),
)
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_IN_WORDS = re.compile(
    r'(?:try again in|retry (?:after|in)|"retryDelay":\s*")\s*(\d+(?:\.\d+)?)\s*(ms|seconds?|s|minutes?|m)\b',
    re.IGNORECASE,
)
_UNITS = {"ms": 0.001, "mi": 60.0, "m": 60.0, "se": 1.0, "s": 1.0}
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")

Clean = Callable[[str], str]


class RefusedError(Exception):
    """No answer, but a failure. Internal: `ask` turns it into `Reply.error`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def bad_answer(why: str, status: int | None = None) -> RefusedError:
    return RefusedError(Failure(kind="bad_answer", message=why, status=status))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error as the server tells it: its words for people, its codes and types, the parameter it complains of."""

    status: int
    words: str
    codes: frozenset[str]
    param: str
    text: str
    is_html: bool = False

    @classmethod
    def of_body(cls, status: int, body: bytes) -> Refusal:
        """From an answer's body: JSON of the usual shapes, an HTML page, or plain text."""
        text = body[: 4 * _TEXT_CHARS].decode("utf-8", "replace")
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict | list):
            return cls.of_value(status, value, text=text)
        is_html = text.lstrip()[:1] == "<"
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL) if is_html else None
        words = (f"a web page ({title[1].strip()})" if title else "a web page") if is_html else text
        return cls(status=status, words=words, codes=frozenset(), param="", text=text[:_TEXT_CHARS], is_html=is_html)

    @classmethod
    def of_value(cls, status: int, value: Any, *, text: str | None = None) -> Refusal:
        """From JSON. A `status` of 200 gives way to the one that the error itself names."""
        levels, words, codes, param = [value], "", set[str](), ""
        for level in levels:
            if isinstance(level, list):
                levels += level[:1]
            elif isinstance(level, str):
                words = words or level
            elif isinstance(level, dict):
                levels += [level[key] for key in ("error", "errors", "detail") if level.get(key)]
                said = [level[key] for key in ("message", "msg") if isinstance(level.get(key), str)]
                words = words or next(filter(None, said), "")
                for key in ("code", "type", "status", "error_type"):
                    code = level.get(key)
                    if isinstance(code, str):
                        codes.add(code.casefold())
                    elif status == 200 and type(code) is int and 400 <= code < 600:
                        status = code
                named = level.get("param") or level.get("loc")
                if isinstance(named, list):
                    named = " ".join(one for one in named if isinstance(one, str))
                param = param or (named if isinstance(named, str) else "")
        if text is None:
            text = json.dumps(value, ensure_ascii=False)[:_TEXT_CHARS]
        return cls(
            status=status,
            words=words or text,
            codes=frozenset(codes),
            param=param,
            text=f"{words}\n{text}"[:_TEXT_CHARS],
        )

    def failure(self, headers: Mapping[str, str], *, now: float, clean: Clean, http_status: int) -> Failure:
        """The failure that this is. `headers` have lower-case names; `now` is in seconds since 1970."""
        kind = self._kind()
        shown = shown_words(self.words, clean)
        message = f"HTTP {http_status}" + (f": {shown}" if shown else "")
        if kind == "overflow":
            found = find_overflow(self.text, self.codes)
            if found is not None and found.fits_alone:
                message += (
                    f" (The prompt of {found.prompt_tokens:,} tokens fits, but not with the room for its answer.)"
                )
            elif found is None:
                message += " (The server, or a proxy before it, takes no request of this size.)"
        if self.status in (401, 403):
            message += " Check the API key (--api-key)."
        passing = kind in ("rate_limit", "server", "timeout")
        return Failure(
            kind=kind,
            message=message,
            status=http_status,
            retry_after_s=retry_after(headers, self.text, now=now) if passing else None,
        )

    def says_model_is_missing(self) -> bool:
        """Whether the complaint is that no such model is served."""
        if self.codes & {"model_not_found", "model_not_found_error"}:
            return True
        missing = re.search(r"(not found|does not exist|no such|unknown|not supported|invalid) ?model", self.text, re.I)
        other = re.search(r"model\b.{0,200}?(not found|does not exist|is not served|unknown)", self.text, re.I | re.S)
        return self.status in (400, 404, 422) and bool(missing or other)

    def _kind(self) -> FailureKind:
        status = self.status
        if self._is_quota_of_one_request():
            return "bad_request"
        if status not in (401, 402, 403, 429) and not 300 <= status < 400 and find_overflow(self.text, self.codes):
            return "overflow"
        if any(re.search(_BY_CODE[0][0], code) for code in self.codes):
            return "auth"
        if status == 200:
            named = " ".join(self.codes)
            return next((kind for pattern, kind in _BY_CODE if re.search(pattern, named)), "server")
        if status in _BY_STATUS:
            return _BY_STATUS[status]
        return "server" if status >= 500 else "bad_request"

    def _is_quota_of_one_request(self) -> bool:
        """More tokens in one request than the account may send in a minute: waiting doesn't help."""
        return self.status in (413, 429) and bool(
            re.search(r"request too large for .{0,100}(tokens per min|\bTPM\b)", self.text, re.I | re.S)
        )


def shown_words(words: str, clean: Clean) -> str:
    """Words from elsewhere, fit to print: without secrets, on one line, not long."""
    tidy = _UNPRINTABLE.sub(" ", clean(words[:_TEXT_CHARS]))
    return " ".join(tidy.split())[:SHOWN_CHARS]


def retry_after(headers: Mapping[str, str], text: str = "", *, now: float) -> float | None:
    """How long the server asks to wait, in seconds; None where it doesn't say in a way that is known."""
    wait = _number(headers.get("retry-after-ms"))
    if wait is not None:
        return _bounded(wait / 1000)
    said = headers.get("retry-after", "").strip()
    wait = _number(said)
    if wait is None and said:
        wait = _until(said, now) if "," in said or said.endswith("GMT") else _duration(said)
    if wait is not None:
        return _bounded(wait)
    match = _IN_WORDS.search(text)
    if match is not None:
        return _bounded(float(match[1]) * _UNITS[match[2].lower()[:2]])
    waits = [_reset(headers, what, now) for what in ("-requests", "-tokens", "")]
    known = [one for one in waits if one is not None]
    return _bounded(max(known)) if known else None


def _reset(headers: Mapping[str, str], what: str, now: float) -> float | None:
    """From `x-ratelimit-reset-*`, unless its `remaining` says that this was not what ran out."""
    if headers.get(f"x-ratelimit-remaining{what}", "0").strip() != "0":
        return None
    said = headers.get(f"x-ratelimit-reset{what}", "").strip()
    number = _number(said)
    if number is None:
        return _duration(said)
    if number > 1e12:
        return number / 1000 - now
    return number - now if number > 1e9 else number


def _number(said: str | None) -> float | None:
    try:
        number = float(said or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(date: str, now: float) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, OverflowError, TypeError):
        return None


def _duration(said: str) -> float | None:
    """`6m0s`, `1.5s`, `20ms` → seconds."""
    match = _DURATION.fullmatch(said)
    if match is None or not any(match.groups()):
        return None
    return sum(float(part) * unit for part, unit in zip(match.groups("0"), (3600, 60, 1, 0.001), strict=True))


def _bounded(wait_s: float) -> float:
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S)
