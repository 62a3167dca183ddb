"""Gets a wheel from the package registry, as data: with pip or uv, whichever is there, without its dependencies.

The user's own settings (index, proxy, certificates) hold because the user's own tool does the work. Knows nothing of
what the wheel is for.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import cast

from needlepoint.errors import FetchError
from needlepoint.text.cache import Notify, make_folder, redact

_STALE_S = 24 * 3600
_UNREACHABLE = re.compile(
    r"retrying|connection (?:refused|reset|error)|newconnectionerror|timed? ?out|name resolution|dns error"
    r"|error sending request|network is unreachable|failed to connect",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A command that fetches wheels; `unpacks` where it leaves the wheel's files instead of the wheel."""

    name: str
    command: tuple[str, ...]
    unpacks: bool = False

    def arguments(self, requirement: str, folder: Path, *, quiet: bool) -> list[str]:
        words = [*self.command, "-q"] if quiet else [*self.command]
        if self.unpacks:
            options = ["--no-deps", "--only-binary=:all:", "--python", sys.executable, "--target", str(folder)]
            return [*words, "pip", "install", *options, requirement]
        options = ["--no-input", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
        return [*words, "download", *options, requirement]


def tools() -> list[Tool]:
    """The fetching commands of this machine, in the order in which they are tried."""
    found = []
    if sys.executable and importlib.util.find_spec("pip") is not None:
        found.append(Tool(name="pip", command=(sys.executable, "-m", "pip")))
    if uv := shutil.which("uv"):
        found.append(Tool(name="uv", command=(uv,), unpacks=True))
    if not found or found[0].name != "pip":
        for name in ("pip", "pip3"):
            if pip := shutil.which(name):
                found.append(Tool(name=name, command=(pip,)))
                break
    return found


@contextlib.contextmanager
def opened_wheel(package: str, version: str, *, workspace: Path, notify: Notify | None = None) -> Iterator[Traversable]:
    """The files of `package==version` as a folder to read from; what was fetched is gone when the block ends.

    `workspace` is the folder below which the temporary files live. FetchError says why every tool at hand failed.
    """
    make_folder(workspace)
    _sweep(workspace)
    requirement = f"{package}=={version}"
    failures = []
    with tempfile.TemporaryDirectory(dir=workspace, prefix=".fetch-", ignore_cleanup_errors=True) as name:
        for number, tool in enumerate(tools()):
            if notify:
                notify(f"Fetching {package} {version} from the package registry with {tool.name}")
            folder = make_folder(Path(name) / str(number))
            reason = _run(tool, requirement, folder)
            if reason is None:
                wheels = list(folder.glob("*.whl"))
                if tool.unpacks:
                    yield folder
                    return
                if wheels:
                    yield from _unzipped(wheels[0])
                    return
                reason = "it ended well but left no wheel"
            failures.append(f"{tool.name}: {reason}")
    if not failures:
        raise FetchError("neither pip nor uv is installed here (python -m ensurepip, or https://docs.astral.sh/uv)")
    raise FetchError("; ".join(failures))


def _unzipped(wheel: Path) -> Iterator[Traversable]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            yield cast(Traversable, zipfile.Path(archive))
    except (zipfile.BadZipFile, EOFError) as error:
        raise FetchError(f"the wheel that was fetched is damaged ({error})") from error


def _run(tool: Tool, requirement: str, folder: Path) -> str | None:
    """Runs one tool; None when it succeeded, else one line that says why not.

    Its stdout goes to our stderr: ours is for results. On a terminal it draws its progress bar there (uv draws on its
    own stderr, so there that is left to it as well).
    """
    terminal = _stderr_is_terminal()
    scratch = make_folder(folder.parent / "tmp")
    environment = {**os.environ, "TMPDIR": str(scratch), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        process = subprocess.Popen(
            tool.arguments(requirement, folder, quiet=not terminal),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno() if terminal else subprocess.DEVNULL,
            stderr=None if terminal and tool.unpacks else subprocess.PIPE,
            env=environment,
        )
    except OSError as error:
        return f"cannot be started ({error.strerror or error})"
    try:
        _, errors = process.communicate()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode == 0:
        return None
    if errors is None:
        return "its message is above"
    return _last_words(errors.decode("utf-8", "replace").splitlines()) or f"it ended with status {process.returncode}"


def _last_words(lines: Sequence[str]) -> str:
    """The line of a tool's complaint that means most: its last error, and whether the network was why."""
    plain = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).strip() for line in lines]
    told = [line for line in plain if line and not line.lower().startswith(("[notice]", "hint:"))]
    if not told:
        return ""
    full = next((line for line in told if "no space left" in line.lower()), None)
    errors = [line for line in told if re.match(r"(?:error|×|╰─▶|caused by)", line, re.IGNORECASE)]
    line = full or (errors or told)[-1]
    text = redact(re.sub(r"^(?:error: |× |╰─▶ )", "", line, flags=re.IGNORECASE))[:300]
    if not full and not _UNREACHABLE.search(text) and any(_UNREACHABLE.search(line) for line in told):
        text += " (the registry could not be reached)"
    return text


def _stderr_is_terminal() -> bool:
    try:
        return sys.stderr.isatty() and sys.stderr.fileno() >= 0
    except (AttributeError, OSError, ValueError):
        return False


def _sweep(workspace: Path) -> None:
    """Removes what killed runs left behind."""
    for left in workspace.glob(".fetch-*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_S:
                shutil.rmtree(left, ignore_errors=True)
