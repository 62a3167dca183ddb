"""Hub downloads against loopback stand-ins for ModelScope and Hugging Face: what is asked, kept, resumed and said."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from needlepoint.errors import FetchError, UsageError
from needlepoint.text import cache, download, hub
from needlepoint.text.hub import HubError, HubFile, fetch_hub_file, find_hub_file

REPO = "some-owner/a-corpus"
FILE = "text.txt"
BODY = bytes(range(32, 127)) * 4000
SHA = hashlib.sha256(BODY).hexdigest()
MODELSCOPE = f"/api/v1/datasets/{REPO}/repo?Revision=master&FilePath={FILE}"
HUGGINGFACE = f"/datasets/{REPO}/resolve/main/{FILE}"


@dataclass
class Answer:
    """How the stand-in answers a path: `cuts` are the bytes after which it hangs up, one for each request in turn."""

    body: bytes = BODY
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    ranges: bool = True
    stalls: bool = False


class StandIn:
    """A loopback server with answers by path, and a record of what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                outer.reply(self, outer.answers.get(self.path, Answer(status=404, body=b"no")))

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def reply(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        if answer.stalls:
            self.released.wait(30)
            handler.close_connection = True
            return
        start = 0
        wanted = handler.headers.get("Range", "")
        guard = handler.headers.get("If-Range")
        if wanted and answer.ranges and answer.status == 200 and guard in (None, answer.headers.get("ETag")):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(answer.body):
                handler.send_response(416)
                handler.send_header("Content-Range", f"bytes */{len(answer.body)}")
                handler.end_headers()
                return
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes {start}-{len(answer.body) - 1}/{len(answer.body)}")
        else:
            handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer.body) - start))
        handler.end_headers()
        cut = answer.cuts.pop(0) if answer.cuts else len(answer.body)
        handler.wfile.write(answer.body[start : start + cut])
        handler.close_connection = True

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """One server that plays both hubs, with an empty cache and no settings of the person who runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith(("HF_", "MODELSCOPE_", "NEEDLEPOINT_")):
            monkeypatch.delenv(name)
    server = StandIn()
    monkeypatch.setenv("NEEDLEPOINT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", server.url)
    monkeypatch.setenv("HF_ENDPOINT", server.url + "/")
    monkeypatch.setattr(download, "PAUSE_S", 0)
    yield server
    server.close()


def fetch(**options: Any) -> HubFile:
    return fetch_hub_file(REPO, FILE, kind="dataset", **options)


def left(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())


def test_a_file_comes_from_modelscope_first_and_is_noted(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.answers[MODELSCOPE] = Answer(headers={"ETag": '"abc"', "X-Repo-Commit": "c0ffee"})
    steps: list[tuple[str, int, int | None]] = []
    got = fetch(progress=lambda name, done, total: steps.append((name, done, total)))
    assert got.path.read_bytes() == BODY
    assert (got.sha256, got.source_url) == (SHA, stand_in.url + MODELSCOPE)
    assert got.path == tmp_path / "cache" / "hub" / "datasets" / REPO / FILE
    assert steps[-1] == (FILE, len(BODY), len(BODY))
    note = json.loads((got.path.parent / f".{FILE}.source.json").read_text())
    assert note == {"sha256": SHA, "size": len(BODY), "url": got.source_url, "etag": '"abc"', "commit": "c0ffee"}
    assert left(tmp_path) == [f".{FILE}.source.json", FILE]


def test_a_cached_file_is_not_asked_for_again_and_a_truncated_one_is(stand_in: StandIn) -> None:
    stand_in.answers[MODELSCOPE] = Answer()
    first = fetch()
    assert fetch() == first
    assert len(stand_in.asked) == 1
    first.path.write_bytes(BODY[:100])
    assert fetch().path.read_bytes() == BODY


def test_hugging_face_is_asked_where_modelscope_has_it_not(stand_in: StandIn) -> None:
    stand_in.answers[HUGGINGFACE] = Answer()
    assert fetch().source_url == stand_in.url + HUGGINGFACE
    assert [path for path, _ in stand_in.asked] == [MODELSCOPE, HUGGINGFACE]


def test_models_and_nested_files_have_their_own_addresses(stand_in: StandIn) -> None:
    stand_in.answers["/Qwen/Qwen3-0.6B/resolve/main/sub/a%20b.json"] = Answer(body=b"{}")
    got = fetch_hub_file("Qwen/Qwen3-0.6B", "sub/a b.json", kind="model")
    assert got.path.parts[-5:] == ("models", "Qwen", "Qwen3-0.6B", "sub", "a b.json")
    assert stand_in.asked[0][0] == "/api/v1/models/Qwen/Qwen3-0.6B/repo?Revision=master&FilePath=sub%2Fa%20b.json"


def test_a_cut_body_is_resumed_with_range_and_etag(stand_in: StandIn) -> None:
    stand_in.answers[MODELSCOPE] = Answer(headers={"ETag": '"abc"'}, cuts=[1000, 5000])
    assert fetch().sha256 == SHA
    asked = [(headers.get("range"), headers.get("if-range")) for _, headers in stand_in.asked]
    assert asked == [(None, None), ("bytes=1000-", '"abc"'), ("bytes=6000-", '"abc"')]


def test_a_server_that_ignores_ranges_is_read_from_the_start(stand_in: StandIn) -> None:
    stand_in.answers[MODELSCOPE] = Answer(cuts=[1000], ranges=False)
    assert fetch().path.read_bytes() == BODY


def test_a_body_that_is_cut_four_times_is_given_up_and_resumed_by_the_next_call(
    stand_in: StandIn, tmp_path: Path
) -> None:
    stand_in.answers[MODELSCOPE] = Answer(headers={"ETag": '"abc"'}, cuts=[1000] * 4)
    with pytest.raises(HubError, match=r"broke off after 4,000 of 380,000 bytes; resumed 3 times in vain"):
        fetch(hubs=["modelscope"])
    part, notes = left(tmp_path)
    assert part.endswith(".part") and notes == f"{part}.json"
    assert fetch(hubs=["modelscope"]).sha256 == SHA
    assert stand_in.asked[-1][1]["range"] == "bytes=4000-"
    assert left(tmp_path) == [f".{FILE}.source.json", FILE]


def test_a_file_that_changed_between_two_calls_is_read_anew(stand_in: StandIn) -> None:
    stand_in.answers[MODELSCOPE] = Answer(headers={"ETag": '"old"'}, cuts=[1000] * 4)
    with pytest.raises(HubError):
        fetch(hubs=["modelscope"])
    stand_in.answers[MODELSCOPE] = Answer(body=b"new text\n" * 50, headers={"ETag": '"new"'})
    assert fetch(hubs=["modelscope"]).path.read_bytes() == b"new text\n" * 50


def test_a_part_that_was_whole_already_is_taken(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.answers[MODELSCOPE] = Answer(headers={"ETag": '"abc"'}, cuts=[1000] * 4)
    with pytest.raises(HubError):
        fetch(hubs=["modelscope"])
    part = next((tmp_path / "cache").rglob("*.part"))
    part.write_bytes(BODY)
    assert fetch(hubs=["modelscope"]).sha256 == SHA


def test_the_sha256_that_the_hub_states_is_held_against_what_came(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.answers[HUGGINGFACE] = Answer(headers={"X-Linked-ETag": f'"{"0" * 64}"', "ETag": f'"{SHA}"'})
    with pytest.raises(HubError, match="does not match the sha256 that the hub states"):
        fetch(hubs=["huggingface"])
    assert left(tmp_path) == []
    stand_in.answers[HUGGINGFACE] = Answer(headers={"X-Linked-ETag": f'"{SHA}"'})
    assert fetch(hubs=["huggingface"]).sha256 == SHA


def test_a_token_goes_to_its_own_hub_and_not_along_a_redirect_to_another_host(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("MODELSCOPE_API_TOKEN", "ms-secret")
    elsewhere = StandIn()
    try:
        moved = {"X-Linked-ETag": f'"{SHA}"', "X-Repo-Commit": "c0ffee"}
        stand_in.answers[HUGGINGFACE] = Answer(status=302, headers={"Location": "/renamed", **moved}, body=b"")
        stand_in.answers["/renamed"] = Answer(status=307, headers={"Location": f"{elsewhere.url}/blob"}, body=b"")
        elsewhere.answers["/blob"] = Answer(headers={"ETag": f'"{"1" * 64}"'}, cuts=[10])
        got = fetch()
        assert got.sha256 == SHA
        note = json.loads((got.path.parent / f".{FILE}.source.json").read_text())
        assert note["commit"] == "c0ffee" and "secret" not in json.dumps(note)
        asked = [(path, headers.get("authorization"), headers.get("cookie")) for path, headers in stand_in.asked]
        hf = "Bearer hf_secret"
        assert asked[0] == (MODELSCOPE, "Bearer ms-secret", "m_session_id=ms-secret")
        assert asked[1:3] == [(HUGGINGFACE, hf, None), ("/renamed", hf, None)]
        assert [(headers.get("authorization"), headers.get("cookie")) for _, headers in elsewhere.asked] == [
            (None, None)
        ] * 2
        assert elsewhere.asked[1][1]["range"] == "bytes=10-"
    finally:
        elsewhere.close()


@pytest.mark.parametrize(
    ("status", "headers", "says"),
    [
        (404, {}, rf"ModelScope: there is no {FILE} in {REPO} \(HTTP 404\); Hugging Face: there is no"),
        (401, {}, r"is gated, private or missing \(HTTP 401\); where you have access, set MODELSCOPE_API_TOKEN;"),
        (403, {"X-Error-Code": "GatedRepo"}, r"is gated \(HTTP 403\); where you have access, set HF_TOKEN"),
        (429, {}, r"later \(HTTP 429\)"),
        (500, {}, r"HTTP 500"),
    ],
)
def test_each_refusal_has_its_own_message(
    stand_in: StandIn, tmp_path: Path, status: int, headers: dict[str, str], says: str
) -> None:
    for path in (MODELSCOPE, HUGGINGFACE):
        stand_in.answers[path] = Answer(status=status, headers=headers, body=b"no")
    with pytest.raises(HubError, match=says):
        fetch()
    assert left(tmp_path) == []


def test_a_refused_token_is_named_but_not_shown(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    stand_in.answers[HUGGINGFACE] = Answer(status=401, body=b"")
    with pytest.raises(HubError, match=r"the token in HF_TOKEN may not read") as caught:
        fetch(hubs=["huggingface"])
    assert "hf_secret" not in str(caught.value)


def test_credentials_in_an_endpoint_are_sent_to_it_and_shown_nowhere(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", stand_in.url.replace("//", "//me:pass@"))
    stand_in.answers[HUGGINGFACE] = Answer()
    assert fetch(hubs=["huggingface"]).source_url == stand_in.url + HUGGINGFACE
    assert stand_in.asked[0][1]["authorization"] == "Basic bWU6cGFzcw=="


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/json"])
def test_a_login_page_or_a_message_is_not_taken_for_the_file(stand_in: StandIn, kind: str) -> None:
    stand_in.answers[MODELSCOPE] = Answer(headers={"Content-Type": kind}, body=b"<html>please log in</html>")
    with pytest.raises(HubError, match="instead of the file"):
        fetch(hubs=["modelscope"])


def test_a_hub_that_accepts_and_never_answers_is_given_up_in_time(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "CONNECT_S", 0.2)
    stand_in.answers[MODELSCOPE] = Answer(stalls=True)
    stand_in.answers[HUGGINGFACE] = Answer(stalls=True)
    start = time.monotonic()
    with pytest.raises(HubError, match=r"ModelScope: no answer within 0.2 s.*Hugging Face: no answer within 0.2 s"):
        fetch()
    assert time.monotonic() - start < 2


def test_a_name_look_up_that_hangs_is_given_up_in_time(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = threading.Event()

    def look_up(*_: Any, **__: Any) -> Any:
        hanging.wait(10)
        raise socket.gaierror(socket.EAI_AGAIN, "temporary failure")

    monkeypatch.setenv("NEEDLEPOINT_HUB_TIMEOUT", "0.2")
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    try:
        with pytest.raises(HubError, match=r"no answer within 0.2 s"):
            fetch(hubs=["modelscope"])
    finally:
        hanging.set()


def test_a_download_that_stalls_is_resumed(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "STALL_S", 0.2)
    calls: list[int] = []
    plain = stand_in.reply

    def reply(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        calls.append(1)
        if len(calls) > 1:
            plain(handler, answer)
            return
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(BODY)))
        handler.end_headers()
        handler.wfile.write(BODY[:50])
        stand_in.released.wait(30)

    monkeypatch.setattr(stand_in, "reply", reply)
    stand_in.answers[MODELSCOPE] = Answer()
    assert fetch(hubs=["modelscope"]).sha256 == SHA
    assert stand_in.asked[1][1]["range"] == "bytes=50-"


def test_nobody_there_and_no_such_host_are_told_apart(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MODELSCOPE_ENDPOINT", f"http://user:pass@127.0.0.1:{closed.getsockname()[1]}")
        monkeypatch.setattr(socket, "getaddrinfo", _refusing_names(socket.getaddrinfo))
        monkeypatch.setenv("HF_ENDPOINT", "http://no-such-host.invalid")
        with pytest.raises(
            HubError, match=r"ModelScope: .*refused.*Hugging Face: its host name cannot be found"
        ) as caught:
            fetch()
    assert "pass" not in str(caught.value)


def _refusing_names(real: Callable[..., Any]) -> Callable[..., Any]:
    def look_up(host: str, *rest: Any, **more: Any) -> Any:
        if str(host).endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return real(host, *rest, **more)

    return look_up


@pytest.mark.parametrize("name", ["NEEDLEPOINT_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline_means_no_attempt(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(HubError, match=f"{name}=1 forbids"):
        fetch()
    assert stand_in.asked == []


def test_a_full_disk_is_one_error_with_the_way_out_and_leaves_nothing(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    stand_in.answers[MODELSCOPE] = Answer()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(FetchError, match=r"No space left to write in .* set NEEDLEPOINT_CACHE") as caught:
            fetch()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not isinstance(caught.value, HubError)
    assert left(tmp_path) == []


def test_a_root_that_cannot_be_written_is_one_error_with_the_way_out(stand_in: StandIn, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("x")
    with pytest.raises(FetchError, match=r"Cannot write in .*a-file.*NEEDLEPOINT_CACHE"):
        fetch(root=tmp_path / "a-file")


def test_two_fetches_at_once_do_not_mix(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.answers[MODELSCOPE] = Answer()
    got: list[HubFile] = []
    threads = [threading.Thread(target=lambda: got.append(fetch())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {file.sha256 for file in got} == {SHA} and len(got) == 6
    assert got[0].path.read_bytes() == BODY
    assert left(tmp_path) == [f".{FILE}.source.json", FILE]


@pytest.mark.parametrize(
    ("repo_id", "filename"),
    [("corpus", FILE), ("../x", FILE), ("a/b/c", FILE), ("a/..", FILE), (REPO, "../up"), (REPO, "/etc/x"), (REPO, "")],
)
def test_names_that_would_leave_the_cache_are_refused(stand_in: StandIn, repo_id: str, filename: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a"):
        fetch_hub_file(repo_id, filename, kind="dataset")
    assert stand_in.asked == []


def test_an_unknown_hub_and_an_odd_endpoint_are_usage_errors(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="Did you mean 'huggingface'"):
        fetch(hubs=["hugingface"])
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    with pytest.raises(UsageError, match="HF_ENDPOINT"):
        fetch(hubs=["huggingface"])


@pytest.mark.parametrize(
    "place",
    [
        f"datasets/{REPO}",
        REPO,
        f"hub/datasets/{REPO}",
        "datasets/some-owner___a-corpus",
        "datasets--some-owner--a-corpus/snapshots/0123abc",
        "hub/datasets--some-owner--a-corpus/snapshots/0123abc",
    ],
)
def test_the_layouts_of_other_caches_are_known(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / FILE).write_bytes(BODY)
    assert find_hub_file(REPO, FILE, kind="dataset", root=tmp_path) == tmp_path / place / FILE
    assert find_hub_file(REPO, "other.txt", kind="dataset", root=tmp_path) is None


def test_of_several_snapshots_the_one_of_main_is_taken(tmp_path: Path) -> None:
    base = tmp_path / "datasets--some-owner--a-corpus"
    for commit in ("aaa", "bbb"):
        (base / "snapshots" / commit).mkdir(parents=True)
        (base / "snapshots" / commit / FILE).write_text(commit)
    (base / "refs").mkdir()
    (base / "refs" / "main").write_text("aaa\n")
    found = find_hub_file(REPO, FILE, kind="dataset", root=tmp_path)
    assert found is not None and found.read_text() == "aaa"


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NEEDLEPOINT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if os.name == "posix":
        assert cache.cache_dir() == tmp_path / ".cache" / "needlepoint"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_dir() == tmp_path / "xdg" / "needlepoint"
    monkeypatch.setenv("NEEDLEPOINT_CACHE", "~/own")
    assert cache.cache_dir() == tmp_path / "own"
