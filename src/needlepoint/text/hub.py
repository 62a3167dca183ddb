"""Single files from ModelScope and Hugging Face over plain HTTPS, cached with a note of where they came from.

Knows the hubs' addresses, tokens and refusals; `download` does the transfer.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from needlepoint.errors import FetchError, UsageError, did_you_mean
from needlepoint.text.cache import Progress, cache_dir, offline, redact, replacing
from needlepoint.text.download import DownloadError, download

Kind = Literal["dataset", "model"]

CONNECT_S = 3.0
"""A hub that has not answered after this long counts as unreachable; $NEEDLEPOINT_HUB_TIMEOUT says otherwise."""

_USERINFO = re.compile(r"//([^/\s@]+)@")


class HubError(FetchError):
    """No hub gave the file: each was out of reach or refused. (Trouble with the disk is a plain FetchError.)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A file of a hub, here: `source_url` is where it came from, without credentials."""

    path: Path
    sha256: str
    source_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """What is written beside a fetched file."""

    sha256: str
    size: int
    url: str
    etag: str | None
    commit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hub:
    title: str
    endpoint_variable: str
    default_endpoint: str
    token_variable: str
    address: Callable[[Kind, str, str], str]
    secrets: Callable[[str], Mapping[str, str]]

    def url(self, kind: Kind, repo_id: str, filename: str) -> str:
        endpoint = (os.environ.get(self.endpoint_variable) or self.default_endpoint).rstrip("/")
        if "://" not in endpoint:
            endpoint = f"https://{endpoint}"
        if urlsplit(endpoint).scheme not in {"http", "https"}:
            raise UsageError(
                f"{self.endpoint_variable}={redact(endpoint)} is not an address that starts with https://."
            )
        return f"{_USERINFO.sub('//', endpoint)}/{self.address(kind, repo_id, filename)}"

    def headers(self) -> Mapping[str, str]:
        """What only this hub may see: its token, or else the name and password in its endpoint (a private mirror)."""
        token = os.environ.get(self.token_variable, "").strip()
        if not token:
            own = _USERINFO.search(os.environ.get(self.endpoint_variable, ""))
            basic = base64.b64encode(unquote(own[1]).encode()).decode() if own else ""
            return {"Authorization": f"Basic {basic}"} if basic else {}
        if not token.isascii() or not token.isprintable():
            raise UsageError(f"{self.token_variable} is not a token: it has characters that no token has.")
        return self.secrets(token)


def _huggingface_address(kind: Kind, repo_id: str, filename: str) -> str:
    return f"{'datasets/' if kind == 'dataset' else ''}{repo_id}/resolve/main/{quote(filename)}"


def _modelscope_address(kind: Kind, repo_id: str, filename: str) -> str:
    return f"api/v1/{kind}s/{repo_id}/repo?Revision=master&FilePath={quote(filename, safe='')}"


HUBS: dict[str, _Hub] = {
    "modelscope": _Hub(
        title="ModelScope",
        endpoint_variable="MODELSCOPE_ENDPOINT",
        default_endpoint="https://modelscope.cn",
        token_variable="MODELSCOPE_API_TOKEN",
        address=_modelscope_address,
        secrets=lambda token: {"Authorization": f"Bearer {token}", "Cookie": f"m_session_id={token}"},
    ),
    "huggingface": _Hub(
        title="Hugging Face",
        endpoint_variable="HF_ENDPOINT",
        default_endpoint="https://huggingface.co",
        token_variable="HF_TOKEN",
        address=_huggingface_address,
        secrets=lambda token: {"Authorization": f"Bearer {token}"},
    ),
}


def fetch_hub_file(
    repo_id: str,
    filename: str,
    *,
    kind: Kind,
    hubs: Sequence[str] = ("modelscope", "huggingface"),
    root: Path | None = None,
    progress: Progress | None = None,
) -> HubFile:
    """The file, from below `root` (default: the cache's `hub` folder) or else from the first hub that gives it.

    Raises HubError with each hub's reason, FetchError where it cannot be stored, UsageError for odd names.
    """
    place = _place(repo_id, filename, kind)
    for name in hubs:
        if name not in HUBS:
            raise UsageError(f"There is no hub {name!r}.{did_you_mean(name, HUBS)} Known: {', '.join(HUBS)}.")
    target = (hub_root() if root is None else root) / place
    if (cached := _cached(target)) is not None:
        return cached
    what = f"Could not fetch {filename} of {kind} {repo_id}"
    if forbidden := offline("NEEDLEPOINT_OFFLINE", "HF_HUB_OFFLINE"):
        raise HubError(f"{what}: it is not cached, and {forbidden} forbids to ask a hub.")
    reasons = []
    for hub in (HUBS[name] for name in hubs):
        url, secrets = hub.url(kind, repo_id, filename), hub.headers()
        try:
            done = download(url, target, answer_s=_answer_s(), secrets=secrets, progress=progress)
        except DownloadError as failed:
            with_token = bool(os.environ.get(hub.token_variable))
            reason = _refusal(failed, hub, repo_id, filename, with_token=with_token)
            reasons.append(redact(f"{hub.title}: {reason}"))
            continue
        note = _Note(sha256=done.sha256, size=done.size, url=redact(url), etag=done.etag, commit=done.commit)
        with replacing(_note_path(target)) as file:
            file.write(json.dumps(asdict(note), indent=1).encode())
        return HubFile(path=target, sha256=note.sha256, source_url=note.url)
    raise HubError(f"{what}. {'; '.join(reasons)}.")


def find_hub_file(repo_id: str, filename: str, *, kind: Kind, root: Path) -> Path | None:
    """The file somewhere below a hub cache's root, in any of the layouts of ModelScope, Hugging Face and our own."""
    _place(repo_id, filename, kind)
    owner, _, name = repo_id.partition("/")
    names = {name: None, name.replace(".", "___"): None}
    for base in (root / f"{kind}s", root, root / "hub" / f"{kind}s", root / "hub"):
        for written in names:
            for folder in (base / owner / written, base / f"{owner}___{written}", base / f"{owner}--{written}"):
                if (folder / filename).is_file() and _is_whole(folder / filename):
                    return folder / filename
        for snapshots in (base / f"{kind}s--{owner}--{name}", base / f"{owner}___{name}"):
            if (found := _in_snapshots(snapshots, filename)) is not None:
                return found
    return None


def default_hub_roots() -> list[Path]:
    """Where ModelScope and Hugging Face keep their caches on this machine, by their own environment variables."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    roots = [
        os.environ.get("MODELSCOPE_CACHE") or "~/.cache/modelscope",
        os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or "",
        os.environ.get("HF_HOME") or caches / "huggingface",
    ]
    found = []
    for root in roots:
        with contextlib.suppress(RuntimeError):  # no home folder
            if root:
                found.append(Path(root).expanduser())
    return found


def _in_snapshots(folder: Path, filename: str) -> Path | None:
    """The file in Hugging Face's `snapshots/<commit>/`: of `main` where that is noted, else of the newest."""
    with contextlib.suppress(OSError):
        commit = (folder / "refs" / "main").read_text("utf-8").strip()
        if commit and (folder / "snapshots" / commit / filename).is_file():
            return folder / "snapshots" / commit / filename
    found = [path for path in (folder / "snapshots").glob("*") if (path / filename).is_file()]
    return max(found, key=lambda path: path.stat().st_mtime) / filename if found else None


def hub_root() -> Path:
    """Where fetched hub files live when no other root is named."""
    return cache_dir() / "hub"


def cached_hub_files() -> dict[str, HubFile]:
    """The hub files of our own cache by name (`datasets/owner/name/file`)."""
    found = {}
    root = hub_root()
    for beside in sorted(root.rglob(".*.source.json")):
        target = beside.with_name(beside.name.removeprefix(".").removesuffix(".source.json"))
        if (file := _cached(target)) is not None:
            found[target.relative_to(root).as_posix()] = file
    return found


def unfinished_hub_files() -> list[Path]:
    """What broken downloads left in our own cache, to be resumed or removed."""
    return sorted(path for path in hub_root().rglob("*.part*") if path.is_file())


def forget_hub_file(path: Path) -> None:
    """Removes the note beside a file that is gone."""
    with contextlib.suppress(OSError):
        _note_path(path).unlink()


def _place(repo_id: str, filename: str, kind: Kind) -> Path:
    """Where below a root the file lives; refuses names that would leave it."""
    parts = PurePosixPath(filename).parts
    owner, _, name = repo_id.partition("/")
    odd = {"", ".", ".."}
    legible = all(piece.replace("-", "").replace("_", "").replace(".", "").isalnum() for piece in (owner, name))
    if not legible or owner in odd or name in odd:
        raise UsageError(f"{repo_id!r} is not the name of a {kind} on a hub (owner/name).")
    if not parts or filename.startswith("/") or "\\" in filename or odd & set(parts) or ":" in parts[0]:
        raise UsageError(f"{filename!r} is not the name of a file in a {kind}.")
    return Path(f"{kind}s", owner, name, *parts)


def _cached(target: Path) -> HubFile | None:
    try:
        size = target.stat().st_size
    except OSError:
        return None
    try:
        note = _Note(**json.loads(_note_path(target).read_text("utf-8")))
    except (OSError, ValueError, TypeError):  # put there by other means: it is taken as it is
        try:
            with target.open("rb") as file:
                return HubFile(
                    path=target, sha256=hashlib.file_digest(file, "sha256").hexdigest(), source_url=target.as_uri()
                )
        except (OSError, ValueError):
            return None
    return HubFile(path=target, sha256=note.sha256, source_url=note.url) if note.size == size else None


def _is_whole(target: Path) -> bool:
    """Whether the file is as long as the note beside it says, where there is one."""
    try:
        return bool(json.loads(_note_path(target).read_text("utf-8"))["size"] == target.stat().st_size)
    except (OSError, ValueError, KeyError, TypeError):
        return True


def _note_path(target: Path) -> Path:
    return target.with_name(f".{target.name}.source.json")


def _answer_s() -> float:
    value = os.environ.get("NEEDLEPOINT_HUB_TIMEOUT", "")
    if not value:
        return CONNECT_S
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86_400:
        raise UsageError(f"NEEDLEPOINT_HUB_TIMEOUT={value!r} is not a number of seconds above 0.")
    return seconds


def _refusal(failed: DownloadError, hub: _Hub, repo_id: str, filename: str, *, with_token: bool) -> str:
    """A hub's refusal in words, with what to do about it."""
    headers = {name.lower(): value for name, value in failed.headers.items()}
    code = headers.get("x-error-code", "")
    if failed.status in {401, 403} or code == "GatedRepo":
        if with_token:
            return f"the token in {hub.token_variable} may not read {repo_id} (HTTP {failed.status})"
        gated = "is gated" if code == "GatedRepo" else "is gated, private or missing"
        return f"{repo_id} {gated} (HTTP {failed.status}); where you have access, set {hub.token_variable}"
    if failed.status == 404:
        return f"there is no {filename} in {repo_id} (HTTP 404)"
    if failed.status == 429:
        return f"it asks to come back later (HTTP 429); a token in {hub.token_variable} has a higher limit"
    return str(failed)
