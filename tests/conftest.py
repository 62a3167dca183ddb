"""Shared fixtures. All texts are made here, by seed; nobody's prose is in the repository."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from needlepoint.text import families, tokenizers
from needlepoint.types import Corpus, Endpoint, Tokenizer

settings.register_profile("no-clock", deadline=None)  # how long an example takes is no property of the code
settings.load_profile("no-clock")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it, children too

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

_EN_SUBJECTS = (
    "the miller|Dr. Hale|a quiet clerk|our ferry|the old gardener|Mrs. Quill|the survey team|one traveller".split("|")
)
_EN_VERBS = "carried|repaired|described|measured|painted|forgot|borrowed|counted".split("|")
_EN_OBJECTS = (
    "the copper kettle|three wooden gates|a bundle of letters|the narrow bridge|her ledger|the orchard wall".split("|")
)
_EN_TAILS = (
    "before the rain came|at nearly 6.30 p.m.|without a single word|for reasons nobody gave|near the U.S. border|twice"
).split("|")
_ZH_SUBJECTS = "老船工|那位先生|邻家的孩子|守林人|掌柜|远来的客人|绣娘|书院的学生".split("|")
_ZH_VERBS = "修好了|带走了|数过|描画了|借来了|忘记了|丈量了|擦亮了".split("|")
_ZH_OBJECTS = "一把铜壶|三扇木门|几封旧信|窄窄的石桥|半本账簿|果园的矮墙|一盏油灯".split("|")
_ZH_TAILS = "在雨来之前|到黄昏时分|一句话也没有说|谁也不知道缘由|又在渡口等了许久".split("|")


def english_prose(n_sentences: int, seed: int = 7) -> str:
    """Readable nonsense with abbreviations, quotes, ellipses, paragraphs and odd line breaks."""
    rng = random.Random(seed)
    out: list[str] = []
    for number in range(n_sentences):
        subject, verb, thing, tail = (rng.choice(x) for x in (_EN_SUBJECTS, _EN_VERBS, _EN_OBJECTS, _EN_TAILS))
        body = f"{subject[0].upper()}{subject[1:]} {verb} {thing} {tail}"
        kind = rng.randrange(9)
        if kind == 0:
            body = f'"{body}," said the clerk'
        elif kind == 1:
            body = f"{body}; {rng.choice(_EN_SUBJECTS)} {rng.choice(_EN_VERBS)} {rng.choice(_EN_OBJECTS)}"
        end = rng.choice([".", ".", ".", "?", "!", "...", '."', ".)"]) if not body.endswith(".") else ""
        out.append(body + end + ("\n\n" if number % 7 == 6 else "\n" if number % 11 == 5 else " "))
    return "".join(out).strip() + "\n"


def chinese_prose(n_sentences: int, seed: int = 7) -> str:
    """The same in Chinese, with quotes, full-width marks and paragraphs."""
    rng = random.Random(seed)
    out: list[str] = []
    for number in range(n_sentences):
        subject, verb, thing, tail = (rng.choice(x) for x in (_ZH_SUBJECTS, _ZH_VERBS, _ZH_OBJECTS, _ZH_TAILS))
        body = f"{subject}{verb}{thing}，{tail}"
        if rng.randrange(6) == 0:
            body = f"“{body}。”{rng.choice(_ZH_SUBJECTS)}说"
        out.append(body + rng.choice(["。", "。", "。", "！", "？", "……"]) + ("\n\n" if number % 6 == 5 else ""))
    return "".join(out)


def make_corpus(text: str, subset: str = "english", language: str = "en") -> Corpus:
    import hashlib

    return Corpus(
        name=f"test/{subset}",
        subset=subset,
        language=language,  # type: ignore[arg-type]
        licence="test",
        sha256=hashlib.sha256(text.encode(errors="replace")).hexdigest(),
        text=text,
    )


@pytest.fixture(scope="session")
def english() -> Corpus:
    return make_corpus(english_prose(6_000))


@pytest.fixture(scope="session")
def chinese() -> Corpus:
    return make_corpus(chinese_prose(6_000), "chinese", "zh")


_LOADED: dict[str, Tokenizer] = {}


def load_tokenizer(name: str) -> Tokenizer:
    if name not in _LOADED:
        family = families.find(name)
        assert family is not None, name
        _LOADED[name] = tokenizers.packaged(family)
    return _LOADED[name]


@pytest.fixture(scope="session")
def tokenizer_of() -> Callable[[str], Tokenizer]:
    return load_tokenizer


@pytest.fixture(scope="session")
def endpoint_of() -> Callable[[str], Endpoint]:
    from needlepoint.connect import connect

    return lambda name: connect(name)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the reference texts are not on this machine")
    return SHARED


@pytest.fixture(autouse=True)
def _own_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Tests never touch the user's settings, and reach a cache of their own unless they say otherwise."""
    for name in ("HF_TOKEN", "MODELSCOPE_API_TOKEN", "NEEDLEPOINT_API_KEY", "NEEDLEPOINT_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    if not {"model", "registry"} & {mark.name for mark in request.node.iter_markers()}:
        monkeypatch.setenv("NEEDLEPOINT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        monkeypatch.setenv("NEEDLEPOINT_OFFLINE", "1")
    yield


@pytest.fixture(scope="session")
def prose() -> dict[str, Callable[..., str]]:
    return {"en": english_prose, "zh": chinese_prose}


@pytest.fixture(scope="session")
def corpus_from() -> Callable[..., Corpus]:
    return make_corpus
