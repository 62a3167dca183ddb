"""How drawn facts are said: keys, values, sentences and questions, in English and Chinese.

Pure tables and the few functions that fill them from a `random.Random`. A form states one kind of fact about one kind
of subject in several ways, and asks for it in one; a tongue is all that a language brings. A new language is one more
`Tongue`. Any change here changes what a seed draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from needlepoint.plan import vocabulary as words


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way to state and to ask: sentences with {key} (or {Key} at their beginning) and {value}."""

    subject: str
    sentences: tuple[str, ...]
    ask_one: str
    ask_many: str
    article: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """What a language brings: keys by subject, values by kind, forms by kind, how it lists things and quotes words."""

    keys: dict[str, Callable[[Random], str]]
    values: dict[str, Callable[[Random], str]]
    forms: dict[str, tuple[Form, ...]]
    listed: Callable[[Sequence[str]], str]
    quotes: str


# --- values -----------------------------------------------------------------------------------------------------------

# Days that stand for an event or a feast somewhere; a needle's date should bring nothing to mind.
_LOADED_DAYS = frozenset(
    {
        (1, 1),
        (1, 6),
        (1, 27),
        (1, 30),
        (2, 14),
        (2, 28),
        (3, 11),
        (4, 1),
        (4, 20),
        (5, 1),
        (5, 4),
        (5, 8),
        (5, 9),
        (5, 12),
    }
    | {
        (5, 30),
        (6, 1),
        (6, 4),
        (6, 6),
        (7, 1),
        (7, 4),
        (7, 7),
        (7, 14),
        (7, 20),
        (7, 28),
        (8, 1),
        (8, 6),
        (8, 9),
        (8, 15),
    }
    | {
        (9, 1),
        (9, 3),
        (9, 9),
        (9, 11),
        (9, 18),
        (10, 1),
        (10, 7),
        (10, 10),
        (10, 31),
        (11, 5),
        (11, 9),
        (11, 11),
        (11, 22),
    }
    | {(12, 7), (12, 9), (12, 13), (12, 24), (12, 25), (12, 26), (12, 31)}
)
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def _number(rng: Random) -> str:
    """Seven digits that nobody would guess, round or read as a count: 4827193."""
    while True:
        digits = str(rng.randrange(1_000_000, 10_000_000))
        steps = [int(b) - int(a) for a, b in pairwise(digits)]
        runs = any(a == b and abs(a) <= 1 for a, b in pairwise(steps))  # 123, 321, 777
        if len(set(digits)) >= 5 and not runs and not digits.endswith(("00", "50")) and digits != digits[::-1]:
            return digits


def _uuid(rng: Random) -> str:
    """A version 4 UUID (RFC 9562) whose random bits come from `rng`."""
    digits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _day(rng: Random) -> tuple[int, int, int]:
    while True:
        year, month = rng.randrange(1901, 2000), rng.randrange(1, 13)
        day = rng.randrange(1, _MONTH_DAYS[month - 1] + 1)
        if (month, day) not in _LOADED_DAYS:
            return year, month, day


def _date_en(rng: Random) -> str:
    year, month, day = _day(rng)
    return f"{day} {_MONTHS[month - 1]} {year}"


def _date_zh(rng: Random) -> str:
    year, month, day = _day(rng)
    return f"{year}年{month}月{day}日"


# --- English ----------------------------------------------------------------------------------------------------------


def _listed_en(subjects: Sequence[str]) -> str:
    if len(subjects) == 1:
        return subjects[0]
    return ", ".join(subjects[:-1]) + " and " + subjects[-1]


def _attribute_en(subject: str, attribute: str, *sentences: str) -> Form:
    """A form for "the ATTRIBUTE of KEY"; {a} in the sentences is the attribute."""
    stated = (f"The {attribute} of {{key}} is {{value}}.", *(text.replace("{a}", attribute) for text in sentences))
    return Form(
        subject=subject,
        article="" if subject == "person" else "the ",
        sentences=stated,
        ask_one=f"What is the {attribute} of {{keys}}?",
        ask_many=f"What are the {attribute}s of {{keys}}?",
    )


def _event_en(subject: str, passive: str, *sentences: str) -> Form:
    """A form for "KEY was PASSIVE on VALUE"."""
    stated = (f"{{Key}} was {passive} on {{value}}.", f"On {{value}}, {{key}} was {passive}.", *sentences)
    return Form(
        subject=subject,
        article="the ",
        sentences=stated,
        ask_one=f"On what date was {{keys}} {passive}?",
        ask_many=f"On what dates were {{keys}} {passive}?",
    )


def _deed_en(past: str, plain: str) -> Form:
    """A form for what a person did: "NAME joined the rowing club on VALUE"."""
    return Form(
        subject="person",
        sentences=(f"{{Key}} {past} on {{value}}.", f"On {{value}}, {{key}} {past}."),
        ask_one=f"On what date did {{keys}} {plain}?",
        ask_many=f"On what dates did {{keys}} {plain}?",
    )


ENGLISH = Tongue(
    keys={
        "place": lambda rng: f"{rng.choice(words.EN_BUILDINGS)} {rng.choice(words.EN_PLACES)}",
        "object": lambda rng: f"{rng.choice(words.EN_OBJECTS)} from {rng.choice(words.EN_PLACES)}",
        "person": lambda rng: f"{rng.choice(words.EN_FIRST_NAMES)} {rng.choice(words.EN_SURNAMES)}",
    },
    values={
        "number": _number,
        "uuid": _uuid,
        "date": _date_en,
        "word": lambda rng: f"{rng.choice(words.EN_CODE_ADJECTIVES)} {rng.choice(words.EN_CODE_NOUNS)}",
    },
    forms={
        "number": (
            *(
                _attribute_en(
                    "place",
                    attribute,
                    "{Key} has the {a} {value}.",
                    "In the county register, {key} is listed under the {a} {value}.",
                )
                for attribute in ("survey number", "site number", "register number")
            ),
            *(
                _attribute_en(
                    "object",
                    attribute,
                    "{Key} bears the {a} {value}.",
                    "According to its label, {key} has the {a} {value}.",
                )
                for attribute in ("catalogue number", "inventory number", "collection number")
            ),
            _attribute_en("person", "membership number", "{Key} holds the {a} {value}."),
            _attribute_en("person", "entry number", "{Key} was given the {a} {value}."),
        ),
        "word": (
            *(
                _attribute_en(
                    subject,
                    "code name",
                    "{Key} goes by the {a} {value}.",
                    "In the project files, {key} appears under the {a} {value}.",
                )
                for subject in ("place", "object", "person")
            ),
            _attribute_en("person", "call sign", "On the radio, {key} uses the {a} {value}."),
        ),
        "uuid": (
            *(
                _attribute_en(
                    subject,
                    attribute,
                    "{Key} is recorded under the {a} {value}.",
                    "In the database, {key} has the {a} {value}.",
                )
                for subject, attribute in (
                    ("place", "record identifier"),
                    ("place", "site identifier"),
                    ("object", "record identifier"),
                    ("object", "item identifier"),
                )
            ),
            _attribute_en("person", "contributor identifier", "In the database, {key} has the {a} {value}."),
        ),
        "date": (
            _event_en("place", "completed", "The building work on {key} was finished on {value}."),
            _event_en("place", "entered in the county register"),
            _event_en("object", "catalogued"),
            _event_en("object", "delivered to the museum", "The museum took delivery of {key} on {value}."),
            _event_en("object", "restored"),
            _deed_en("joined the rowing club", "join the rowing club"),
            _deed_en("joined the weather survey", "join the weather survey"),
            _deed_en("completed the beekeeping course", "complete the beekeeping course"),
        ),
    },
    listed=_listed_en,
    quotes='"{}"',
)


# --- Chinese ----------------------------------------------------------------------------------------------------------


def _place_zh(rng: Random) -> tuple[str, str]:
    suffix = rng.choice(tuple(words.ZH_BUILDINGS))
    return rng.choice(words.ZH_PLACE_STEMS) + suffix, rng.choice(words.ZH_BUILDINGS[suffix])


def _listed_zh(subjects: Sequence[str]) -> str:
    if len(subjects) == 1:
        return subjects[0]
    return "、".join(subjects[:-1]) + "和" + subjects[-1]


def _attribute_zh(subject: str, attribute: str, what: str, *sentences: str) -> Form:
    """A form for "KEY的ATTRIBUTE"; after the long name of an object a comma stands for the 的."""
    link = "，" if subject == "object" else "的"
    stated = (
        f"{{key}}{link}{attribute}是{{value}}。",
        f"{{key}}{link}{attribute}为{{value}}。",
        *(text.replace("{a}", attribute) for text in sentences),
    )
    return Form(
        subject=subject,
        sentences=stated,
        ask_one=f"{{keys}}{link}{attribute}是{what}？",
        ask_many=f"{{keys}}{link}{attribute}分别是{what}？",
    )


def _event_zh(subject: str, done: str) -> Form:
    return Form(
        subject=subject,
        sentences=(f"{{key}}于{{value}}{done}。", f"{{value}}，{{key}}{done}。"),
        ask_one=f"{{keys}}是哪一天{done}的？",
        ask_many=f"{{keys}}分别是哪一天{done}的？",
    )


CHINESE = Tongue(
    keys={
        "place": lambda rng: "".join(_place_zh(rng)),
        "object": lambda rng: f"来自{_place_zh(rng)[0]}的那{rng.choice(words.ZH_OBJECTS)}",
        "person": lambda rng: rng.choice(words.ZH_SURNAMES) + rng.choice(words.ZH_GIVEN_NAMES),
    },
    values={
        "number": _number,
        "uuid": _uuid,
        "date": _date_zh,
        "word": lambda rng: rng.choice(words.ZH_CODE_ADJECTIVES) + rng.choice(words.ZH_CODE_NOUNS),
    },
    forms={
        "number": (
            *(
                _attribute_zh("place", attribute, "多少", "登记册上写明，{key}的{a}是{value}。")
                for attribute in ("登记编号", "测绘编号", "档案编号")
            ),
            *(
                _attribute_zh("object", attribute, "多少", "标签上写着：{key}，{a}为{value}。")
                for attribute in ("编目号", "藏品号", "入库编号")
            ),
            *(
                _attribute_zh("person", attribute, "多少", "名册上写明，{key}的{a}是{value}。")
                for attribute in ("会员编号", "参赛编号")
            ),
        ),
        "word": (
            _attribute_zh("place", "代号", "什么", "在项目资料里，{key}的{a}是{value}。"),
            _attribute_zh("object", "代号", "什么", "项目资料里写着：{key}，{a}为{value}。"),
            _attribute_zh("person", "代号", "什么", "在项目资料里，{key}的{a}是{value}。"),
            _attribute_zh("person", "电台呼号", "什么", "{key}登记的{a}是{value}。"),
        ),
        "uuid": (
            _attribute_zh("place", "记录标识符", "什么", "在数据库中，{key}的{a}是{value}。"),
            _attribute_zh("place", "站点标识符", "什么", "在数据库中，{key}的{a}是{value}。"),
            _attribute_zh("object", "记录标识符", "什么", "数据库里记着：{key}，{a}为{value}。"),
            _attribute_zh("object", "物品标识符", "什么", "数据库里记着：{key}，{a}为{value}。"),
            _attribute_zh("person", "贡献者标识符", "什么", "在数据库中，{key}的{a}是{value}。"),
        ),
        "date": (
            _event_zh("place", "建成"),
            _event_zh("place", "登记在册"),
            _event_zh("object", "编入馆藏目录"),
            _event_zh("object", "送抵博物馆"),
            _event_zh("object", "修复完毕"),
            _event_zh("person", "加入赛艇俱乐部"),
            _event_zh("person", "加入气象观测队"),
            _event_zh("person", "修完养蜂课程"),
        ),
    },
    listed=_listed_zh,
    quotes="“{}”",
)
