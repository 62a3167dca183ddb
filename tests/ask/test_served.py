"""A server's tokenizer, against stand-ins for vLLM and llama.cpp on the loopback: good, strange and broken ones."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from needlepoint.ask.models.remote import RemoteTokenizer
from needlepoint.ask.models.served import connect_server
from needlepoint.ask.models.wire import Wire, server_root
from needlepoint.errors import TokenizerError
from needlepoint.types import Endpoint, Message, Tokenizer

KEY = "sk-very-secret-123"

TEXTS = [
    "Hello world",
    " two  spaces ",
    "\n\nlines\n",
    "naïve café, don't",
    "北京是中国的首都。山𠀀🙂",
    "a </s> b",
    "tab\tbed",
    "9.99",
]


# --- toy tokenizers --------------------------------------------------------------------------------------------------


class Toy:
    """Words, single characters, and bytes where a character is not Latin; spelled as byte-level vocabularies do."""

    controls = ("<s>", "</s>", "<|im_start|>", "<|im_end|>")

    def __init__(self, *, bos: str = "", nfc: bool = False, lower: bool = False) -> None:
        self.known: list[bytes] = []
        self.bos = bos
        self.nfc = nfc
        self.lower = lower

    def split(self, text: str, *, special: bool = True) -> list[bytes]:
        import unicodedata

        if self.nfc:
            text = unicodedata.normalize("NFC", text)
        if self.lower:
            text = text.lower()
        pieces: list[bytes] = []
        stretches = re.split("(" + "|".join(map(re.escape, self.controls)) + ")", text) if special else [text]
        for stretch in filter(None, stretches):
            if special and stretch in self.controls:
                pieces.append(stretch.encode())
            else:
                pieces += self.words(stretch)
        return pieces

    def words(self, stretch: str) -> list[bytes]:
        pieces: list[bytes] = []
        for word in re.findall(r" ?[A-Za-z]+|.", stretch, flags=re.DOTALL):
            pieces += [word.encode()] if ord(word[-1]) < 0x250 else [bytes([byte]) for byte in word.encode()]
        return pieces

    def id(self, piece: bytes) -> int:
        if piece not in self.known:
            self.known.append(piece)
        return 7 + self.known.index(piece)

    def ids(self, text: str, *, special: bool = True, add: bool = False) -> list[int]:
        head = [self.bos.encode()] if add and self.bos else []
        return [self.id(piece) for piece in [*head, *self.split(text, special=special)]]

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.known[i - 7] for i in ids).decode("utf-8", "replace")

    def spell(self, piece: bytes) -> str:
        """As GPT-2 does; bytes → letters written out by the rule of the printable ones."""
        if piece.decode("utf-8", "replace") in self.controls:
            return piece.decode()
        shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
        letters = {byte: chr(byte) for byte in shown}
        for byte in range(256):
            letters.setdefault(byte, chr(256 + len(letters) - len(shown)))
        return "".join(letters[byte] for byte in piece)


class SentencePieceToy(Toy):
    """With a dummy space before each stretch of ordinary text."""

    def words(self, stretch: str) -> list[bytes]:
        return super().words(" " + stretch)

    def decode(self, ids: list[int]) -> str:
        return super().decode(ids).removeprefix(" ")

    def spell(self, piece: bytes) -> str:
        try:
            return piece.decode().replace(" ", "▁")
        except UnicodeDecodeError:
            return f"<0x{piece[0]:02X}>"


def chatml(messages: list[Message]) -> str:
    turns = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
    return f"{turns}<|im_start|>assistant\n"


def inst(messages: list[Message]) -> str:
    return "<s>" + "".join(f"[INST] {m['content']} [/INST]" for m in messages)


# --- stand-in servers ------------------------------------------------------------------------------------------------

Reply = tuple[int, Any]


class StandIn(ThreadingHTTPServer):
    """Answers `METHOD /path` by the functions in `routes`; anything else is a 404 in FastAPI's words."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.routes: dict[str, Callable[[dict[str, Any]], Reply]] = {}
        self.asked: list[str] = []
        self.authorizations: list[str | None] = []
        self.key: str | None = None
        self.headers: dict[str, str] = {}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Callers hang up on some answers; that is theirs to test."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: StandIn

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        route = f"{self.command} {self.path.partition('?')[0]}"
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(route)
        self.server.authorizations.append(self.headers.get("Authorization"))
        status: int
        value: Any
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            status, value = 401, {"error": {"message": f"bad key {self.headers.get('Authorization')}"}}
        elif route in self.server.routes:
            status, value = self.server.routes[route](json.loads(body or b"{}"))
        else:
            status, value = 404, {"detail": "Not Found"}
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Length": str(len(data)), **self.server.headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _answer  # noqa: N815


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as standing:
        thread = threading.Thread(target=standing.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield standing
        standing.shutdown()
        thread.join()


def be_vllm(
    server: StandIn,
    toy: Toy,
    template: Callable[[list[Message]], str] | None = chatml,
    *,
    reads_controls: bool = True,
) -> None:
    def tokenize(body: dict[str, Any]) -> Reply:
        if body.get("model") not in (None, "org/smol"):
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist.", "code": 404}}
        if "messages" in body:
            if template is None:
                return 400, {"error": {"message": "no chat template, and transformers has no default"}}
            pieces = toy.split(template(body["messages"]))
        else:
            head = [toy.bos.encode()] if body["add_special_tokens"] and toy.bos else []
            pieces = head + toy.split(body["prompt"], special=reads_controls)
        strings = [toy.spell(piece) for piece in pieces] if body.get("return_token_strs") else None
        ids = [toy.id(piece) for piece in pieces]
        return 200, {"count": len(ids), "max_model_len": 4096, "tokens": ids, "token_strs": strings}

    server.routes |= {
        "POST /tokenize": tokenize,
        "POST /detokenize": lambda body: (200, {"prompt": toy.decode(body["tokens"])}),
        "GET /v1/models": lambda _: (200, {"data": [{"id": "org/smol", "max_model_len": 4096}]}),
    }


def be_llama(
    server: StandIn, toy: Toy, template: Callable[[list[Message]], str] = chatml, *, counts_chats: bool = True
) -> None:
    def without_bos(messages: list[Message]) -> str:
        return template(messages).removeprefix(toy.bos) if toy.bos else template(messages)

    def tokenize(body: dict[str, Any]) -> Reply:
        special, add = body.get("parse_special", True), body.get("add_special", False)
        ids = toy.ids(body.get("content", ""), special=special, add=add)
        pieces = [{"id": i, "piece": _piece(toy.known[i - 7])} for i in ids]
        return 200, {"tokens": pieces if body.get("with_pieces") else ids}

    def _piece(piece: bytes) -> str | list[int]:
        try:
            return piece.decode()
        except UnicodeDecodeError:
            return list(piece)

    def count(body: dict[str, Any]) -> Reply:
        return 200, {"input_tokens": len(toy.ids(without_bos(body["messages"]), add=True))}

    server.routes |= {
        "POST /tokenize": tokenize,
        "POST /detokenize": lambda body: (200, {"content": toy.decode(body["tokens"])}),
        "POST /apply-template": lambda body: (200, {"prompt": without_bos(body["messages"])}),
        "GET /props": lambda _: (200, {"default_generation_settings": {"n_ctx": 2048}, "chat_template": "{{ x }}"}),
        "GET /v1/models": lambda _: (200, {"data": [{"id": "/models/toy.gguf"}]}),
    }
    if counts_chats:
        server.routes["POST /v1/chat/completions/input_tokens"] = count


def connected(url: str, **more: Any) -> Endpoint:
    endpoint = connect_server(url, **{"timeout_s": 5.0, **more})
    assert endpoint is not None
    assert isinstance(endpoint.tokenizer, RemoteTokenizer)
    return endpoint


@contextmanager
def held(endpoint: Endpoint) -> Iterator[Endpoint]:
    """The endpoint, its connection closed at the end."""
    tokenizer = endpoint.tokenizer
    assert isinstance(tokenizer, RemoteTokenizer)
    with tokenizer:
        yield endpoint


CHATS: list[list[Message]] = [
    [Message(role="system", content="Be brief."), Message(role="user", content=text)] for text in TEXTS
]


# --- what both kinds do ----------------------------------------------------------------------------------------------

KINDS: dict[str, Callable[[StandIn], Toy]] = {}


def kind(name: str) -> Callable[[Callable[[StandIn], Toy]], Callable[[StandIn], Toy]]:
    def registered(make: Callable[[StandIn], Toy]) -> Callable[[StandIn], Toy]:
        KINDS[name] = make
        return make

    return registered


@kind("vllm, byte-level")
def _vllm_byte_level(server: StandIn) -> Toy:
    toy = Toy()
    be_vllm(server, toy)
    return toy


@kind("vllm, sentencepiece")
def _vllm_sentencepiece(server: StandIn) -> Toy:
    toy = SentencePieceToy(bos="<s>")
    be_vllm(server, toy, inst)
    return toy


@kind("llama.cpp, byte-level")
def _llama_byte_level(server: StandIn) -> Toy:
    toy = Toy()
    be_llama(server, toy)
    return toy


@kind("llama.cpp, sentencepiece")
def _llama_sentencepiece(server: StandIn) -> Toy:
    toy = SentencePieceToy(bos="<s>")
    be_llama(server, toy, inst)
    return toy


@pytest.mark.parametrize("name", KINDS)
def test_tokens_and_their_ends_are_those_of_the_server(server: StandIn, name: str) -> None:
    toy = KINDS[name](server)
    endpoint = connected(server.url)
    with held(endpoint):
        assert isinstance(endpoint.tokenizer, Tokenizer)
        for text in TEXTS:
            encoding = endpoint.tokenizer.encode(text, special=True)
            assert list(encoding.ids) == toy.ids(text)
            ends = list(encoding.ends)
            assert ends == sorted(ends)
            assert ends[-1] == len(text.encode())
            data = text.encode()
            for piece, begin, end in zip(toy.split(text), [0, *ends], ends, strict=False):
                assert data[begin:end] in (piece, piece.removeprefix(b" "))


@pytest.mark.parametrize("name", KINDS)
def test_a_rendered_chat_has_the_tokens_that_the_server_makes_of_it(server: StandIn, name: str) -> None:
    toy = KINDS[name](server)
    template = inst if toy.bos else chatml
    endpoint = connected(server.url + "/v1/chat/completions")
    with held(endpoint):
        assert endpoint.proven
        assert endpoint.notes == ()
        assert endpoint.render is not None
        for chat in CHATS:
            assert list(endpoint.tokenizer.encode(endpoint.render(chat), special=True).ids) == toy.ids(template(chat))
            assert endpoint.render(chat) == template(chat)


@pytest.mark.parametrize("name", KINDS)
def test_facts_of_the_endpoint(server: StandIn, name: str) -> None:
    toy = KINDS[name](server)
    endpoint = connected(server.url + "/v1/", api_key=KEY)
    with held(endpoint):
        vllm = name.startswith("vllm")
        assert endpoint.limit_tokens == (4096 if vllm else 2048)
        assert endpoint.tokenizer.name == ("vllm:org/smol" if vllm else "llama.cpp:toy.gguf")
        assert endpoint.tokenizer.adds_bos == bool(toy.bos)
        assert set(endpoint.tokenizer.special_tokens) == set(toy.controls)
        assert not endpoint.tokenizer.nfc
        assert endpoint.template_name is not None
        assert KEY not in repr(endpoint)
        for text in (text for text in TEXTS if "</s>" not in text):
            assert endpoint.tokenizer.decode(endpoint.tokenizer.encode(text).ids) in (text, " " + text)
        first = endpoint.tokenizer.fingerprint
    again = connected(server.url)
    with held(again):
        assert again.tokenizer.fingerprint == first


@pytest.mark.parametrize("name", KINDS)
def test_a_short_text_is_asked_for_once(server: StandIn, name: str) -> None:
    KINDS[name](server)
    endpoint = connected(server.url)
    with held(endpoint):
        before = len(server.asked)
        counts = [endpoint.tokenizer.count("Hello again"), len(endpoint.tokenizer.encode("Hello again"))]
        assert len(server.asked) == before + 1
        assert len(set(counts)) == 1
        assert len(endpoint.tokenizer.encode("")) == 0
        assert len(server.asked) == before + 1
        long = "word " * 3000
        assert endpoint.tokenizer.count(long) == len(endpoint.tokenizer.encode(long))


def test_a_prefixed_path_is_kept(server: StandIn) -> None:
    be_vllm(server, Toy())
    server.routes = {route.replace(" /", " /proxy/"): answer for route, answer in server.routes.items()}
    endpoint = connected(server.url + "/proxy/v1")
    with held(endpoint):
        pass
    assert server.asked[0] == "POST /proxy/tokenize"


# --- vLLM ------------------------------------------------------------------------------------------------------------


def test_a_tokenizer_that_composes_characters_says_so(server: StandIn) -> None:
    be_vllm(server, Toy(nfc=True))
    endpoint = connected(server.url)
    with held(endpoint):
        assert endpoint.tokenizer.nfc
        assert endpoint.tokenizer.encode("cafe\u0301 x").ends[-1] == len("café x".encode())


def test_tokens_that_are_not_the_text_are_refused(server: StandIn) -> None:
    be_vllm(server, Toy(lower=True))
    with pytest.raises(TokenizerError, match="cannot be laid over the text"):
        connect_server(server.url)


def test_a_text_that_is_changed_later_is_refused_with_the_place(server: StandIn) -> None:
    toy = Toy()
    be_vllm(server, toy)
    endpoint = connected(server.url)
    with held(endpoint):
        toy.lower = True
        with pytest.raises(TokenizerError, match="near 'Upper"):
            endpoint.tokenizer.encode("lower Upper")


def test_without_a_chat_template_lengths_are_not_proven(server: StandIn) -> None:
    be_vllm(server, Toy(), template=None)
    endpoint = connected(server.url)
    with held(endpoint):
        assert (endpoint.render, endpoint.proven, endpoint.template_name) == (None, False, None)
        assert "no chat template" in endpoint.notes[0]


def test_a_template_that_takes_no_system_message_is_used_and_told(server: StandIn) -> None:
    be_vllm(server, Toy())
    plain = server.routes["POST /tokenize"]

    def tokenize(body: dict[str, Any]) -> Reply:
        if any(message["role"] == "system" for message in body.get("messages", ())):
            return 400, {"error": {"message": "System role not supported"}}
        return plain(body)

    server.routes["POST /tokenize"] = tokenize
    endpoint = connected(server.url)
    with held(endpoint):
        assert endpoint.proven
        assert endpoint.render is not None
        assert "System role not supported" in endpoint.notes[0]


def test_a_chat_whose_text_cannot_be_told_from_its_tokens_is_not_rendered(server: StandIn) -> None:
    be_vllm(server, Toy(), reads_controls=False)  # as Mistral's own tokenizer, which reads none in a text
    endpoint = connected(server.url)
    with held(endpoint):
        assert (endpoint.render, endpoint.proven) == (None, False)
        assert "cannot be read off its tokens" in endpoint.notes[0]
        assert endpoint.tokenizer.special_tokens == ()
        assert endpoint.tokenizer.count("<|im_end|>") > 1


def test_a_server_that_counts_but_spells_no_tokens_is_of_no_use(server: StandIn) -> None:
    server.routes["POST /tokenize"] = lambda _: (200, {"tokens": [1, 2], "count": 2, "max_model_len": 512})
    assert connect_server(server.url) is None


def test_a_wrong_model_name_is_an_error_that_names_it(server: StandIn) -> None:
    be_vllm(server, Toy())
    with pytest.raises(TokenizerError, match="`nope` does not exist"):
        connect_server(server.url, model="nope")


# --- llama.cpp -------------------------------------------------------------------------------------------------------


def test_a_server_that_counts_a_chat_otherwise_is_not_proven(server: StandIn) -> None:
    be_llama(server, Toy())
    server.routes["POST /v1/chat/completions/input_tokens"] = lambda _: (200, {"input_tokens": 3})
    endpoint = connected(server.url)
    with held(endpoint):
        assert not endpoint.proven
        assert "counts 3 tokens" in endpoint.notes[0]


def test_an_older_server_without_chat_counts_and_props_is_good_enough(server: StandIn) -> None:
    be_llama(server, Toy(), counts_chats=False)
    del server.routes["GET /props"]
    endpoint = connected(server.url)
    with held(endpoint):
        assert endpoint.proven
        assert endpoint.limit_tokens is None
        assert "/props" in endpoint.notes[0]


def test_control_tokens_are_ordinary_text_unless_asked_for(server: StandIn) -> None:
    be_llama(server, Toy())
    endpoint = connected(server.url)
    with held(endpoint):
        assert endpoint.tokenizer.count("<|im_end|>", special=True) == 1
        assert endpoint.tokenizer.count("<|im_end|>") > 1


# --- what is not there, and what is broken ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_without_a_tokenizer_endpoint_is_none(server: StandIn, status: int) -> None:
    server.routes["POST /tokenize"] = lambda _: (status, b"<html>nothing here</html>")
    assert connect_server(server.url, model="x", api_key=KEY) is None


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], Reply], str]] = {
    "HTML": (lambda _: (200, b"<!doctype html><html>hello</html>"), "with HTML"),
    "no JSON": (lambda _: (200, b"hello"), "not JSON"),
    "deep JSON": (lambda _: (200, b"[" * 100_000), "not JSON"),
    "broken UTF-8": (lambda _: (200, b'{"tokens": "\xff"}'), "not JSON"),
    "a list": (lambda _: (200, [1, 2]), "a JSON list"),
    "null": (lambda _: (200, None), "a JSON NoneType"),
    "another object": (lambda _: (200, {"ok": True}), "neither vLLM's nor llama.cpp's"),
    "words for tokens": (lambda _: (200, {"count": 1, "tokens": ["a"], "token_strs": ["a"]}), "no list of token ids"),
    "negative tokens": (lambda _: (200, {"count": 1, "tokens": [-1], "token_strs": ["a"]}), "no list of token ids"),
    "fractions": (lambda _: (200, {"count": 1, "tokens": [1.5], "token_strs": ["a"]}), "no list of token ids"),
    "huge tokens": (lambda _: (200, {"count": 1, "tokens": [1 << 40], "token_strs": ["a"]}), "no list of token ids"),
    "strings too few": (lambda _: (200, {"count": 2, "tokens": [1, 2], "token_strs": ["a"]}), "do not fit"),
    "strings of another type": (lambda _: (200, {"count": 1, "tokens": [1], "token_strs": [None]}), "do not fit"),
    "pieces of another type": (lambda _: (200, {"tokens": [{"id": 1, "piece": 5}]}), "unusable"),
    "pieces without ids": (lambda _: (200, {"tokens": [{"piece": "a"}]}), "unusable"),
    "an error": (lambda _: (500, {"error": {"message": f"out of order, {KEY}"}}), r"HTTP 500: out of order, \*\*\*"),
    "an error in HTML": (lambda _: (502, b"<html>Bad Gateway</html>"), "HTTP 502"),
    "forbidden": (lambda _: (403, {"error": "no"}), "Check the API key"),
    "too long": (lambda _: (200, b'"' + b"x" * (8 << 20) + b'"'), "more than"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_answer_is_one_clear_message(server: StandIn, fault: str) -> None:
    answer, words = FAULTS[fault]
    server.routes["POST /tokenize"] = answer
    url = server.url.replace("http://", f"http://user:{KEY}@") + f"/v1?key={KEY}"
    with pytest.raises(TokenizerError, match=words) as caught:
        connect_server(url, api_key=KEY)
    message = str(caught.value)
    assert server.url in message
    assert KEY not in message
    assert len(message) < 500
    assert "\n" not in message


def test_a_wrong_key_is_told_without_it(server: StandIn) -> None:
    be_vllm(server, Toy())
    server.key = "right"
    with pytest.raises(TokenizerError, match="HTTP 401") as caught:
        connect_server(server.url, api_key=KEY)
    assert KEY not in str(caught.value)


def test_a_key_that_no_header_can_carry_is_told_without_it() -> None:
    for key in ("bad\nkey-123", "schlüssel-123"):
        with pytest.raises(TokenizerError, match="characters") as caught:
            connect_server("http://127.0.0.1:9", api_key=key)
        assert key not in str(caught.value)


def test_a_redirect_is_told_and_not_followed(server: StandIn) -> None:
    server.headers["Location"] = f"https://user:{KEY}@example.org/tokenize?key={KEY}"
    server.routes["POST /tokenize"] = lambda _: (307, b"")
    with pytest.raises(TokenizerError, match=r"redirects /tokenize to https://example.org/tokenize\.") as caught:
        connect_server(server.url)
    assert KEY not in str(caught.value)


def test_nobody_there_is_told_with_the_address() -> None:
    import socket

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(TokenizerError, match="cannot be reached") as caught:
        connect_server(url.replace("//", f"//u:{KEY}@"), api_key=KEY)
    assert url in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_server_that_never_answers_is_given_up(server: StandIn) -> None:
    go_on = threading.Event()

    def silent(_: dict[str, Any]) -> Reply:
        go_on.wait(10)
        return 200, {}

    server.routes["POST /tokenize"] = silent
    begin = time.monotonic()
    try:
        with pytest.raises(TokenizerError, match="did not answer /tokenize within"):
            connect_server(server.url, timeout_s=0.2)
        assert time.monotonic() - begin < 5
    finally:
        go_on.set()


def test_a_server_that_hangs_up_is_told(server: StandIn) -> None:
    server.headers["Content-Length"] = "1000"
    server.headers["Connection"] = "close"
    server.routes["POST /tokenize"] = lambda _: (200, b"{")
    with pytest.raises(TokenizerError, match="broke the connection"):
        connect_server(server.url)


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://host/", "http://", "http://host:port/", "http://host:99999"]
)
def test_an_address_that_is_none_is_told(url: str) -> None:
    with pytest.raises(TokenizerError, match="must look like"):
        connect_server(url)


def test_addresses_lead_to_the_servers_root() -> None:
    for url in ("http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/chat/completions"):
        assert server_root(url) == ("http://h:1", None)
    assert server_root("https://u%40x:p@h/a/v1?k=1#f") == ("https://h/a", ("u@x", "p"))


def test_credentials_of_the_address_are_sent_and_not_shown(server: StandIn) -> None:
    server.routes["POST /x"] = lambda _: (200, {})
    with Wire(server.url.replace("//", f"//u:{KEY}@")) as wire:
        assert wire.ask("/x", {}) == {}
        assert KEY not in repr(wire)
    assert server.authorizations == ["Basic " + base64.b64encode(f"u:{KEY}".encode()).decode()]
