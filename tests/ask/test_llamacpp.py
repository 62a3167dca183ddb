"""A GGUF through the embedded engine.

Small models are written here, weights of zeros under vocabularies of every kind: what counts is how they tokenize, and
for that the engine is the real one. Tests marked `model` ask the real SmolLM2.
"""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from needlepoint.ask.models.gguf import read_gguf_header
from needlepoint.ask.models.gguf_endpoint import connect_gguf, gguf_endpoint
from needlepoint.ask.models.llama_engine import Engine
from needlepoint.ask.models.pieces import MisalignedError, byte_level, ends_of
from needlepoint.ask.models.remote import RemoteTokenizer
from needlepoint.errors import MissingExtra, TokenizerError
from needlepoint.types import Endpoint, Message, Tokenizer

from .toy_gguf import PHI, byte_level_vocabulary, sentencepiece_vocabulary, write_gguf

TEXTS = [
    "Hello world",
    " Hello  world ",
    "Hello",
    " ",
    "\n\nHello\n",
    "naïve café, don't",
    "北京是中国的首都。山𠀀",
    "🙂👩‍👩‍👧 ½",
    "Hello <|end|> Hello <tool>  Hello </s> <s>",
    "<|im_start|>user\nHello<|im_end|>",
    "x" * 700,
    unicodedata.normalize("NFD", "café"),
]

CHATS: list[list[Message]] = [[Message(role="user", content=text)] for text in [*TEXTS, ""]] + [
    [Message(role="user", content=a), Message(role="assistant", content=b), Message(role="user", content=c)]
    for a, b, c in zip(TEXTS, TEXTS[3:], TEXTS[5:], strict=False)
]


# --- models to load -------------------------------------------------------------------------------------------------


@contextmanager
def held(endpoint: Endpoint) -> Iterator[Endpoint]:
    """The endpoint, its connection closed at the end."""
    tokenizer = endpoint.tokenizer
    assert isinstance(tokenizer, RemoteTokenizer)
    with tokenizer:
        yield endpoint


VOCABULARIES: dict[str, Callable[[], dict[str, Any]]] = {
    "sentencepiece": sentencepiece_vocabulary,
    "sentencepiece without dummy": lambda: sentencepiece_vocabulary(**{"tokenizer.ggml.add_space_prefix": False}),
    "sentencepiece with EOS": lambda: sentencepiece_vocabulary(**{"tokenizer.ggml.add_eos_token": True}),
    "sentencepiece, control heads": lambda: sentencepiece_vocabulary(**{"tokenizer.chat_template": PHI}),
    "byte-level": byte_level_vocabulary,
    "byte-level with BOS": lambda: byte_level_vocabulary(**{"tokenizer.ggml.add_bos_token": True}),
}


@pytest.fixture(scope="module", params=list(VOCABULARIES))
def loaded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, Endpoint]]:
    pytest.importorskip("xllamacpp")
    path = write_gguf(tmp_path_factory.mktemp("gguf") / "toy.gguf", VOCABULARIES[request.param]())
    with Engine(path, n_ctx=2048) as engine:
        yield engine, gguf_endpoint(engine, read_gguf_header(path))


@pytest.fixture(scope="module")
def byte_level_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    pytest.importorskip("xllamacpp")
    endpoint = connect_gguf(write_gguf(tmp_path_factory.mktemp("gguf") / "toy.gguf", byte_level_vocabulary()))
    with held(endpoint):
        yield endpoint


# --- what holds for every vocabulary ----------------------------------------------------------------------------------


def prompt_tokens(engine: Engine, chat: list[Message]) -> int:
    answer = engine.wire.ask("/v1/chat/completions", {"messages": chat, "max_tokens": 1})
    count = answer["usage"]["prompt_tokens"]
    assert isinstance(count, int)
    return count


def test_a_rendered_chat_has_exactly_the_tokens_that_the_engine_reports_for_it(loaded: tuple[Engine, Endpoint]) -> None:
    engine, endpoint = loaded
    assert endpoint.render is not None
    for chat in CHATS:
        encoding = endpoint.tokenizer.encode(endpoint.render(chat), special=True)
        assert len(encoding) == prompt_tokens(engine, chat), chat


@pytest.mark.parametrize("special", [False, True])
def test_ends_are_those_of_the_text_in_bytes(loaded: tuple[Engine, Endpoint], special: bool) -> None:
    _, endpoint = loaded
    for text in TEXTS:
        encoding = endpoint.tokenizer.encode(text, special=special)
        assert len(encoding.ids) == len(encoding.ends) == endpoint.tokenizer.count(text, special=special)
        assert list(encoding.ends) == sorted(encoding.ends)
        assert encoding.ends[-1] == len(text.encode())


def test_the_files_spelling_gives_the_ends_that_the_engines_own_pieces_give(loaded: tuple[Engine, Endpoint]) -> None:
    _, endpoint = loaded
    tokenizer: Any = endpoint.tokenizer
    assert tokenizer._table_is_whole
    by_file = [(special, text, tokenizer.encode(text, special=special)) for text in TEXTS for special in (False, True)]
    assert tokenizer._table_is_whole, "a text did not fit the file's spelling"
    table = tokenizer._table
    tokenizer._encoded.clear()
    try:
        tokenizer._table, tokenizer._table_is_whole = {}, False
        for special, text, encoding in by_file:
            assert tokenizer.encode(text, special=special) == encoding
        assert tokenizer._table.items() <= table.items()
    finally:
        tokenizer._table, tokenizer._table_is_whole = table, True


def test_the_endpoint_satisfies_the_contract(loaded: tuple[Engine, Endpoint]) -> None:
    _, endpoint = loaded
    assert isinstance(endpoint.tokenizer, Tokenizer)
    assert endpoint.proven
    assert endpoint.limit_tokens == 2048
    assert endpoint.template_name is not None
    assert endpoint.notes == ()
    assert not endpoint.tokenizer.nfc
    for control in endpoint.tokenizer.special_tokens:
        assert endpoint.tokenizer.count(control, special=True) == 1


def test_nothing_is_encoded_as_nothing(loaded: tuple[Engine, Endpoint]) -> None:
    assert len(loaded[1].tokenizer.encode("")) == 0


# --- single behaviours -----------------------------------------------------------------------------------------------


def test_a_dummy_space_is_no_byte_of_the_text(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    endpoint = connect_gguf(write_gguf(tmp_path / "toy.gguf", sentencepiece_vocabulary()))
    with held(endpoint):
        hello = endpoint.tokenizer.encode("Hello world")
        assert list(hello.ends) == [5, 11]
        assert list(endpoint.tokenizer.encode("<|end|>Hello", special=True).ends) == [7, 12]
        assert list(endpoint.tokenizer.encode("<tool>Hello<tool> Hello").ends)[-2:] == [17, 23]
        assert endpoint.tokenizer.adds_bos
        assert endpoint.render is not None
        assert endpoint.render([{"role": "user", "content": "Hello"}]) == "<s>[INST] Hello [/INST]"
        assert set(endpoint.tokenizer.special_tokens) == {
            "<unk>",
            "<s>",
            "</s>",
            "<|user|>",
            "<|end|>",
            "<|assistant|>",
        }


def test_control_tokens_are_read_only_where_asked_for(byte_level_endpoint: Endpoint) -> None:
    tokenizer = byte_level_endpoint.tokenizer
    assert tokenizer.count("<|im_end|>", special=True) == 1
    assert tokenizer.count("<|im_end|>") == len("<|im_end|>")
    assert list(tokenizer.encode("é山").ends) == [2, 3, 4, 5]


def test_decoding_gives_the_text_back(byte_level_endpoint: Endpoint) -> None:
    tokenizer = byte_level_endpoint.tokenizer
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text, special=True).ids) == text


def test_equal_vocabularies_have_equal_fingerprints_and_others_do_not(tmp_path: Path) -> None:
    def fingerprint(name: str, vocabulary: dict[str, Any], **more: Any) -> str:
        return read_gguf_header(write_gguf(tmp_path / name, vocabulary, **more)).fingerprint

    first = fingerprint("a", byte_level_vocabulary())
    assert (
        fingerprint("b", byte_level_vocabulary(), **{"general.name": "other", "tokenizer.chat_template": "x"}) == first
    )
    assert fingerprint("c", byte_level_vocabulary(**{"tokenizer.ggml.pre": "qwen2"})) != first
    assert fingerprint("d", sentencepiece_vocabulary()) != first


def test_a_model_without_a_chat_template_says_what_is_used_for_it(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = write_gguf(tmp_path / "toy.gguf", byte_level_vocabulary(), drop="tokenizer.chat_template")
    endpoint = connect_gguf(path, name="mine")
    with held(endpoint):
        assert endpoint.tokenizer.name == "mine"
        assert "ChatML" in endpoint.notes[0]


def test_a_system_message_that_the_template_refuses_is_counted_as_the_engine_puts_it(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    refusing = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system please') }}{% endif %}"
        "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    )
    path = write_gguf(tmp_path / "toy.gguf", byte_level_vocabulary(**{"tokenizer.chat_template": refusing}))
    with Engine(path, n_ctx=512) as engine:
        endpoint = gguf_endpoint(engine, read_gguf_header(path))
        assert endpoint.render is not None
        chat: list[Message] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
        assert "Be brief." in endpoint.render(chat)
        assert endpoint.tokenizer.count(endpoint.render(chat), special=True) == prompt_tokens(engine, chat)


def test_a_template_that_never_renders_is_an_error_as_it_is_for_the_engine(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    vocabulary = byte_level_vocabulary(**{"tokenizer.chat_template": "{{ raise_exception('never') }}"})
    with pytest.raises(TokenizerError, match="chat template"):
        connect_gguf(write_gguf(tmp_path / "toy.gguf", vocabulary))


def test_a_lone_surrogate_is_refused(byte_level_endpoint: Endpoint) -> None:
    with pytest.raises(TokenizerError, match="surrogate"):
        byte_level_endpoint.tokenizer.encode("a\ud800b")


# --- what is broken --------------------------------------------------------------------------------------------------


def test_a_missing_file_a_folder_and_another_format_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("once upon a time")
    (tmp_path / "empty.gguf").write_bytes(b"")
    for name, words in {
        "none.gguf": "no file",
        "": "cannot be read",
        "text.gguf": "not a GGUF",
        "empty.gguf": "not a GGUF",
    }.items():
        with pytest.raises(TokenizerError, match=words):
            connect_gguf(tmp_path / name)


def test_a_file_that_is_cut_off_anywhere_is_an_error_and_not_the_end_of_the_process(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = write_gguf(tmp_path / "toy.gguf", byte_level_vocabulary())
    whole = path.read_bytes()
    for size in [4, 8, 20, 24, 30, 500, 3000, len(whole) - 40000, len(whole) - 4096, len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(TokenizerError, match=r"cut off|damaged") as caught:
            connect_gguf(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"tokenizer.ggml.token_type": [1, 1]}, "token types"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "no vocabulary"),
        ({"general.architecture": 5}, "architecture"),
        ({"general.architecture": "nonesuch"}, "cannot load"),
        ({"tokenizer.ggml.model": "nonesuch"}, "cannot load"),
        ({"general.alignment": 7}, "alignment"),
    ],
)
def test_a_header_that_contradicts_itself_is_an_error(tmp_path: Path, entries: dict[str, Any], words: str) -> None:
    pytest.importorskip("xllamacpp")
    vocabulary = byte_level_vocabulary()
    path = write_gguf(tmp_path / "toy.gguf", vocabulary, **dict(entries))
    with pytest.raises(TokenizerError, match=words):
        connect_gguf(path)


def test_without_the_engine_the_install_line_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    path = write_gguf(tmp_path / "toy.gguf", byte_level_vocabulary())
    with pytest.raises(MissingExtra, match=r"needlepoint\[local\]"):
        connect_gguf(path)


def test_the_engine_is_silent_and_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    good = write_gguf(tmp_path / "toy.gguf", byte_level_vocabulary())
    bad = write_gguf(tmp_path / "bad.gguf", byte_level_vocabulary(**{"tokenizer.ggml.model": "nonesuch"}))
    script = (
        "import sys; from pathlib import Path\n"
        "from needlepoint.ask.models.gguf_endpoint import connect_gguf\n"
        "assert 'xllamacpp' not in sys.modules and 'httpx2' not in sys.modules\n"
        "from needlepoint.errors import TokenizerError\n"
        "try: connect_gguf(Path(sys.argv[2]))\n"
        "except TokenizerError: pass\n"
        "closed, left_open = (connect_gguf(Path(sys.argv[1])) for _ in range(2))\n"
        "assert closed.tokenizer.count('Hello') == left_open.tokenizer.count('Hello') == 1\n"
        "closed.tokenizer.close(); closed.tokenizer.close()\n"
        "assert left_open.tokenizer.count('Hello Hello') > 1\n"
    )
    temporary = tmp_path / "t"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", "-c", script, str(good), str(bad)],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(temporary.iterdir()) == []


def test_only_this_user_can_reach_the_engine_and_only_with_its_key(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    import httpx2

    with Engine(write_gguf(tmp_path / "toy.gguf", byte_level_vocabulary())) as engine:
        address = str(engine._held[0].listening_address)
        if not address.startswith("unix://"):
            pytest.skip("no Unix sockets here")
        socket = Path(address.removeprefix("unix://"))
        assert socket.parent.stat().st_mode & 0o077 == 0
        transport = httpx2.HTTPTransport(uds=str(socket))
        with httpx2.Client(transport=transport, base_url="http://localhost") as stranger:
            answer = stranger.post("/tokenize", json={"content": "x"}, headers={"Origin": "https://example.org"})
        assert answer.status_code == 401
        assert answer.headers.get("access-control-allow-origin") not in ("*", "https://example.org")
    assert not socket.exists()


# --- pieces ----------------------------------------------------------------------------------------------------------


def test_byte_level_spelling_is_that_of_the_tokenizers_package() -> None:
    from tokenizers import pre_tokenizers

    pre = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in TEXTS:
        ((spelled, _),) = pre.pre_tokenize_str(text)
        assert byte_level(spelled) == text.encode()


def test_white_space_that_a_control_token_swallows_is_that_tokens() -> None:
    controls = frozenset({b"<|a|>", b"<|b|>"})
    data = b"<|a|>\nHi there <|b|>\n"
    assert list(ends_of([b"<|a|>", b" Hi", b" there", b"<|b|>"], data, controls)) == [6, 8, 14, 21]
    assert ends_of([b"<|a|>", b"\n", b"Hi there ", b"<|b|>", b"\n"], data) == array("I", accumulate([5, 1, 9, 5, 1]))


def test_pieces_of_another_text_are_refused_with_the_place() -> None:
    text = "The café is lower-cased."
    with pytest.raises(MisalignedError) as caught:
        ends_of([b"The", " CAFÉ".encode(), b" is"], text.encode())
    assert caught.value.near.startswith("café")
    for pieces in ([], [b"The"], [text.encode(), b"x"], [b"x", text.encode()]):
        with pytest.raises(MisalignedError):
            ends_of(pieces, text.encode(), frozenset({b"x"}))


# --- the real model --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def smollm2() -> Path:
    pytest.importorskip("xllamacpp")
    from needlepoint.text.assets import fetch_asset

    return fetch_asset("smollm2")


@pytest.mark.model
def test_chats_of_the_real_model_have_exactly_the_tokens_that_it_reports(smollm2: Path) -> None:
    with Engine(smollm2, n_ctx=4096) as engine:
        endpoint = gguf_endpoint(engine, read_gguf_header(smollm2))
        assert endpoint.render is not None
        assert endpoint.limit_tokens == 8192
        assert endpoint.proven
        for chat in CHATS:
            assert endpoint.tokenizer.count(endpoint.render(chat), special=True) == prompt_tokens(engine, chat), chat


@pytest.mark.model
def test_a_long_text_is_encoded_by_the_real_model(smollm2: Path) -> None:
    text = "The quick brown fox — naïve, 北京 — jumps over 13 lazy dogs.\n" * 5000
    endpoint = connect_gguf(smollm2)
    with held(endpoint):
        encoding = endpoint.tokenizer.encode(text)
        assert encoding.ends[-1] == len(text.encode())
        assert endpoint.tokenizer.decode(encoding.ids) == text
        data, begin = text.encode(), 0
        for token, end in list(zip(encoding.ids, encoding.ends, strict=True))[:200]:
            assert endpoint.tokenizer.decode([token]) == data[begin:end].decode("utf-8", "replace")
            begin = end
