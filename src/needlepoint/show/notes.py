"""Notes of a report in another language: those that needlepoint writes itself; any other stays as it is. Pure."""

from __future__ import annotations

import re

from .labels import Lang

_CHINESE = (
    (
        re.compile(r"There is no interval over texts: a subset has (\d+) texts?, and (\d+) are needed\..*", re.DOTALL),
        "没有跨文本的区间：有子集只用了 {0} 段文本，至少需要 {1} 段。"
        "区间只说明在这些文本上再做试题（视为相互独立）会有多大出入；没有任何结论得到证实。"
        "--replicates 5 或更多会换其他文本提问。",
    ),
    (
        re.compile(r"The lengths of these trials were chosen by the answers before them.*", re.DOTALL),
        "这些试题的长度由之前的回答决定，得知足够多时搜索即停止：普通区间对这样的计数不成立，因此不给出。"
        "搜索结果见 report.json 的 search。",
    ),
    (
        re.compile(
            r"([\d,]+) of ([\d,]+) answers without the whole fact ended where no more could be written.*", re.DOTALL
        ),
        "{1} 个未给出完整事实的回答中，有 {0} 个是写到长度上限时中断的，事实可能还在后面。"
        "加大 --max-tokens 再问即可知道；停不下来的模型仍会是错的。",
    ),
    (
        re.compile(r"Asking the same prompt again is no independent trial.*", re.DOTALL),
        "重复同一提示不是独立试验：区间中每个提示只计一次。",
    ),
)


def note_words(note: str, lang: Lang) -> str:
    """The note in `lang`."""
    for pattern, words in _CHINESE if lang == "zh" else ():
        if found := pattern.fullmatch(note):
            return words.format(*found.groups())
    return note
