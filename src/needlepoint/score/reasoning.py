"""The visible part of an answer: what a model wrote while it was still thinking is not looked at.

Thoughts that a server keeps apart never come here. Some stay inside of the text, between marks of their own: those are
blanked, character by character, so that places in the text remain what they are.
"""

from __future__ import annotations

import re

_NAMES = r"think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|inner_monologue|seed:think"
_OPEN = re.compile(
    rf"<({_NAMES})>|◁(think)▷|\[(think)\]|<\|(?:begin_of_thought|channel\|>analysis(?:<\|message\|)?)\|?>", re.I
)
_CLOSE = re.compile(
    rf"</(?:{_NAMES})>|◁/think▷|\[/think\]|<\|end_of_thought\|>|<\|channel\|>final(?:<\|message\|>)?", re.I
)
_HINT = re.compile(r"[<\[◁]/?(?:\||[a-z_:]{5,16}[>\]▷])", re.I)


def visible(text: str) -> str:
    """`text` with each thought blanked out. A closing mark without an opening one ends a thought that the prompt
    began; an opening one without an end means that nothing but thoughts came."""
    if not _HINT.search(text):
        return text
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        opened, closed = _OPEN.search(text, at), _CLOSE.search(text, at)
        if closed and (opened is None or closed.start() < opened.start()):
            spans.append((0 if not spans else closed.start(), closed.end()))
            at = closed.end()
        elif opened:
            closed = _CLOSE.search(text, opened.end())
            end = closed.end() if closed else len(text)
            spans.append((opened.start(), end))
            at = end
        else:
            break
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text
