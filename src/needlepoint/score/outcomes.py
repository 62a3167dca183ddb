"""From a failure or a reply to an outcome: was this a measurement at all?

The invalid outcomes are decided here, in one place, before any rule or judge looks at the text.
"""

from __future__ import annotations

from ..types import Outcome, Reply, Score, Trial

_SLACK_TOKENS = 32
_SLACK_SHARE = 0.03


def unmeasured(trial: Trial, reply: Reply) -> Score | None:
    """The invalid outcome of a trial whose measurement broke, or None where the reply can be scored."""
    error = reply.error
    if error is not None:
        outcome: Outcome = "overflow" if error.kind == "overflow" else "failed"
        return _invalid(outcome, error.message)
    if not reply.attempts and not reply.text:
        return _invalid("unjudged", "another tool asked, and the answer is not in what it published")
    missing = truncation(trial, reply)
    if missing:
        return _invalid(
            "truncated",
            f"{trial.sent_tokens} tokens were sent and the server counted {reply.usage.prompt}: {missing} are missing",
        )
    if reply.finish == "length" and not reply.text.strip() and reply.reasoning:
        return _invalid("out_of_room", "the answer limit was reached while still reasoning, without a visible answer")
    return None


def truncation(trial: Trial, reply: Reply) -> int:
    """How many tokens of a proven prompt the server did not see, where that is more than counting noise; else 0."""
    counted, sent = reply.usage.prompt, trial.sent_tokens
    if counted is None or sent is None or not trial.length_proven:
        return 0
    missing = sent - counted
    return missing if missing > max(_SLACK_TOKENS, _SLACK_SHARE * sent) else 0


def _invalid(outcome: Outcome, reason: str) -> Score:
    return Score(outcome=outcome, score=None, reason=reason, span=None, scorer="rules")
