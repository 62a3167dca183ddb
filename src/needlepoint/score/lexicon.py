"""What words the rules hold for the same, and which carry little: a small lexicon, data and a plain stemmer.

It knows everyday verbs that paraphrases swap, and the words of the fixed English needle in Chinese: models often answer
an English question about a Chinese text in Chinese.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

FUNCTION: Final = frozenset(
    "a an the of to in on at by for from with into onto upon about as than so such and or but nor if then that this "
    "these those it its he she they we you i his her their our your my me him them us is are was were be been being am "
    "do does did done has have had having will would shall should can could may might must not no there here who whom "
    "whose which what when where why how all any some each every both either neither one during within when while "
    "because very just only also too said says".split()
)
COMMON: Final = frozenset(
    "eat sit go get take make have see find keep put give come look say know use work live day time way thing people "
    "good best better great nice new old first last many much more most made called named found went open opens opened "
    "located known day year years become became enjoy visit spend try walk hold lie run stay under beneath below "
    "behind above over near beside inside outside between".split()
)
_GROUPS: Final = (
    "eat have grab consume enjoy munch bite lunch get buy snack savor 吃 享用 品尝",
    "sit relax lounge rest hang chill seat spend 坐",
    "sandwich sub 三明治 三文治",
    "dolores dolore 多洛雷斯 多洛莉丝 多洛丽丝 多洛勒斯 多罗雷斯 多洛瑞斯 德洛丽丝 德洛雷斯 杜罗瑞斯 朵洛莉丝 多洛莱斯",
    "park 公园",
    "sunny sun sunshine sunlit 晴 阳光",
    "under beneath below underneath",
    "near beside by",
    "big large huge",
    "start begin commence",
    "buy purchase",
    "movie film",
    "doctor physician",
    "car automobile",
    "begin start",
)
_IRREGULAR: Final = {
    "ate": "eat", "eaten": "eat", "sat": "sit", "went": "go", "gone": "go", "bought": "buy", "kept": "keep",
    "began": "begin", "begun": "begin", "wrote": "write", "written": "write", "built": "build", "found": "find",
    "held": "hold", "made": "make", "took": "take", "taken": "take", "gave": "give", "given": "give", "ran": "run",
    "saw": "see", "seen": "see", "sold": "sell", "stood": "stand", "told": "tell", "taught": "teach", "won": "win",
    "children": "child", "men": "man", "women": "woman", "feet": "foot", "people": "person", "mice": "mouse",
}  # fmt: skip


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without its usual endings: eating, eats, eat; sandwiches, sandwich; sitting, sit."""
    word = word.replace("'s", "").replace("'", "")
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if not word.isascii() or not word.isalpha() or len(word) < 4:
        return word
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            base = word[: -len(ending)]
            if base[-1] == base[-2] and base[-1] not in "ls":
                base = base[:-1]
            return base.rstrip("e") if len(base) > 3 else base
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _groups() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for group in _GROUPS:
        stems = frozenset(stem(word) for word in group.split())
        for one in stems:
            found[one] = found.get(one, frozenset()) | stems
    return found


_SAME: Final = _groups()


def same(base: str) -> frozenset[str]:
    """The stems that count as this one."""
    return _SAME.get(base, frozenset({base}))
