"""A key never comes out again: a run fails in every way that it can, and all that it left is searched."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .loopback import finds_the_needle, serving

KEY = "sk-a-secret-key-0123456789/+="
SPELLINGS = (KEY, base64.b64encode(KEY.encode()).decode(), json.dumps(KEY)[1:-1], "sk-a-secret-key-0123456789%2F%2B%3D")

Answer = Callable[[dict[str, Any]], str | tuple[int, dict[str, Any]]]


def refuses(status: int, words: str = "The key {key} is not welcome") -> Answer:
    return lambda body: (status, {"error": {"message": words.format(key=KEY), "code": KEY, "param": KEY}})


def says_the_key(body: dict[str, Any]) -> str:
    return f"{finds_the_needle(body)} By the way, {KEY}."


SERVERS: dict[str, Answer] = {
    "fine": finds_the_needle,
    "says the key": says_the_key,
    "400": refuses(400),
    "401": refuses(401, "Incorrect API key provided: {key}"),
    "403": refuses(403),
    "404": refuses(404),
    "429": refuses(429),
    "500": refuses(500),
    "too long": refuses(400, "This model's maximum context length is 5 tokens ({key})"),
    "wrong shape": lambda body: (200, {"choices": [{"message": {"content": {"key": KEY}}}], "usage": KEY}),
    "no choices": lambda body: (200, {"choices": [], "error": {"message": KEY}}),
}


@pytest.fixture(scope="module")
def corpus(prose: dict[str, Callable[..., str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text(prose["en"](400), encoding="utf-8")
    return path


def left_behind(folder: Path, *argv: str, environment: dict[str, str] | None = None) -> tuple[int, bytes]:
    """(exit code, everything that a command printed or wrote)."""
    done = subprocess.run(
        [sys.executable, "-m", "needlepoint.cli", *argv],
        cwd=folder, capture_output=True, env=os.environ | (environment or {}), timeout=120, check=False,
    )  # fmt: skip
    files = b"".join(str(file).encode() + file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())
    return done.returncode, done.stdout + done.stderr + files


def assert_kept(found: bytes) -> None:
    for spelling in SPELLINGS:
        assert spelling.encode() not in found


@pytest.mark.parametrize("server", SERVERS)
def test_whatever_a_server_says_the_key_is_in_no_file_and_no_output(server: str, corpus: Path, tmp_path: Path) -> None:
    with serving(SERVERS[server]) as standing:
        code, found = left_behind(
            tmp_path, "eval", "--model", "m", "--api-url", standing.url, "--api-key", KEY, "--lengths", "500",
            "--depths", "0,50", "--corpus", str(corpus), "--max-attempts", "2", "--debug", "--header", f"X-Also: {KEY}",
        )  # fmt: skip
        assert standing.headers[0]["Authorization"] == f"Bearer {KEY}"
        assert (tmp_path / "outputs").is_dir()
    assert code == (0 if server in ("fine", "says the key") else 3)
    assert_kept(found)


WRONG: dict[str, list[str]] = {
    "nobody there": ["--api-url", "http://127.0.0.1:9/v1"],
    "key in the address": ["--api-url", f"http://user:{KEY.rstrip('/+=')}@127.0.0.1:9/v1"],
    "wrong address": ["--api-url", "ht!tp://x"],
    "wrong flag": ["--api-url", "http://127.0.0.1:9/v1", "--lenghts", "1k"],
    "wrong setting": ["--api-url", "http://127.0.0.1:9/v1", "--eval-batch-size", "-1"],
    "wrong header": ["--api-url", "http://127.0.0.1:9/v1", "--header", KEY],
    "header of two lines": ["--api-url", "http://127.0.0.1:9/v1", "--header", f"X: {KEY}\nY: 1"],
    "no such model": ["--model", "nope"],
    "dry run": ["--model", "m", "--api-url", "http://127.0.0.1:9/v1", "--dry-run"],
    "folder that cannot be made": ["--api-url", "http://127.0.0.1:9/v1", "--work-dir", "/dev/null/x"],
    "no such run": ["--api-url", "http://127.0.0.1:9/v1", "--resume", "nowhere"],
    "no such prompts": ["--api-url", "http://127.0.0.1:9/v1", "--prompts", "nowhere.jsonl"],
    "broken prices": ["--api-url", "http://127.0.0.1:9/v1", "--prices", "nowhere.toml"],
}


@pytest.mark.parametrize("case", WRONG)
def test_whatever_a_user_gets_wrong_the_key_stays_inside(case: str, corpus: Path, tmp_path: Path) -> None:
    common = ["--lengths", "500", "--depths", "50", "--corpus", str(corpus), "--max-attempts", "1"]
    model = [] if "--model" in WRONG[case] else ["--model", "m"]
    code, found = left_behind(
        tmp_path, "eval", *model, *WRONG[case], *common, "--debug", environment={"NEEDLEPOINT_API_KEY": KEY}
    )
    assert code == 0 if case == "dry run" else code in (1, 2, 3)
    assert_kept(found)
    assert KEY.rstrip("/+=").encode() not in found


@pytest.mark.parametrize(
    "verb", [["doctor"], ["prompts", "--tokenizer", "URL", "--lengths", "500"]], ids=["doctor", "prompts"]
)
def test_the_other_verbs_keep_the_key_too(verb: list[str], corpus: Path, tmp_path: Path) -> None:
    with serving(refuses(401)) as standing:
        argv = [standing.url if word == "URL" else word for word in verb]
        argv += ["--api-url", standing.url] if verb[0] == "doctor" else ["--corpus", str(corpus)]
        code, found = left_behind(tmp_path, *argv, "--api-key", KEY)
    assert code in (2, 3)
    assert_kept(found)
