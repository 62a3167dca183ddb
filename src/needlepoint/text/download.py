"""One URL into one file over plain HTTP(S): a hard deadline to answer, resumed where it broke off, hashed on the way.

Knows nothing of hubs. Headers named as secret go to the URL's own host only; redirects to another host lose them.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any, BinaryIO
from urllib.parse import urlsplit

from needlepoint import __version__
from needlepoint.text.cache import CHUNK_BYTES, Progress, make_folder, storage_error

STALL_S = 20.0
"""A download that brings no byte for this long has broken off."""
RESUMES = 3
PAUSE_S = 0.5
_SHA256 = re.compile(r"[0-9a-f]{64}")


class DownloadError(Exception):
    """The file could not be had from this URL. `status` and `headers` are the server's, where it answered."""

    def __init__(self, reason: str, *, status: int | None = None, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = headers or {}


class _BrokenOffError(Exception):
    """The body ended early; what came is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloaded:
    sha256: str
    size: int
    etag: str | None
    commit: str | None


def download(
    url: str, target: Path, *, answer_s: float, secrets: Mapping[str, str], progress: Progress | None = None
) -> Downloaded:
    """Writes `target` from `url` in one step, by way of a `.part` file that a later call resumes.

    The server has `answer_s` in all for its first answer: name look-up, connection, redirects, headers.
    Raises DownloadError; FetchError where the disk is the trouble, and then nothing is left behind.
    """
    make_folder(target.parent)
    try:
        part, file, shared = _claim(target.with_name(f"{target.name}.{_short(url)}.part"))
    except OSError as error:
        raise storage_error(error, target.parent) from error
    done: Downloaded | None = None
    keep = False
    try:
        with file:
            attempt = _Attempt(url, part, file, secrets, progress, target.name)
            try:
                done = attempt.run(answer_s)
            except DownloadError:
                file.flush()
                keep = shared and attempt.done > 0
                raise
            finally:  # while the lock is held, so that no other process's part file is touched
                if os.name == "nt":
                    file.close()
                if done:
                    part.replace(target)
                elif not keep:
                    part.unlink(missing_ok=True)
                if not keep:
                    _notes(part).unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, target.parent) from error
    return done


class _Attempt:
    """One file on its way: what is known of it, and the loop that asks until it is whole."""

    def __init__(
        self, url: str, part: Path, file: BinaryIO, secrets: Mapping[str, str], progress: Progress | None, name: str
    ) -> None:
        self.url, self.part, self.file, self.name = url, part, file, name
        self.secrets, self.progress = secrets, progress
        self.etag: str | None = None
        self.total: int | None = None
        self.expected: str | None = None
        self.commit: str | None = None
        self.digest = hashlib.sha256()
        self.done = 0
        self._recall()

    def run(self, answer_s: float) -> Downloaded:
        for resume in range(RESUMES + 1):
            try:
                self._ask(answer_s if resume == 0 else STALL_S, again=resume > 0)
                break
            except _BrokenOffError as broke:
                if resume == RESUMES:
                    raise DownloadError(f"{broke}; resumed {RESUMES} times in vain") from None
                time.sleep(PAUSE_S * (resume + 1))
        self._write(b"", flush=True)
        if self.expected and self.digest.hexdigest() != self.expected:
            self._restart()
            raise DownloadError(f"what came does not match the sha256 that the hub states ({self.expected[:12]}…)")
        return Downloaded(sha256=self.digest.hexdigest(), size=self.done, etag=self.etag, commit=self.commit)

    def _ask(self, answer_s: float, *, again: bool) -> None:
        """One request for what is missing, and its body into the file."""
        request = urllib.request.Request(self.url, headers={"User-Agent": f"needlepoint/{__version__}", **self.secrets})
        request.add_header("Accept-Encoding", "identity")
        if self.done:
            request.add_header("Range", f"bytes={self.done}-")
            if self.etag and not self.etag.startswith("W/"):
                request.add_header("If-Range", self.etag)
        redirects = _Redirects(self.url, tuple(self.secrets))
        try:
            response = _open(request, redirects, answer_s)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416 and self.done:  # nothing is missing, or what is here is of another file
                    if error.headers.get("Content-Range", "").endswith(f"/{self.done}"):
                        return
                    self._restart()
                    raise _BrokenOffError("the file changed on the server") from None
                raise DownloadError(f"HTTP {error.code}", status=error.code, headers=dict(error.headers)) from None
        except (OSError, http.client.HTTPException) as error:
            if again:
                raise _BrokenOffError(_reason(error, answer_s)) from None
            raise DownloadError(_reason(error, answer_s)) from None
        with response:
            self._learn(response, redirects)
            self._body(response)

    def _learn(self, response: Any, redirects: _Redirects) -> None:
        """Takes the facts out of the headers; decides whether the body goes on where the file ends."""
        headers: Message = response.headers
        kind = headers.get_content_type()
        if kind == "text/html" and not self.name.endswith((".html", ".htm")):
            raise DownloadError("it answered with a web page instead of the file (a proxy or a login page?)")
        if kind == "application/json" and ".json" not in self.name:
            raise DownloadError("it answered with a message instead of the file")
        if headers.get("Content-Encoding", "identity") != "identity":
            raise DownloadError("it answered with a compressed body that was not asked for")
        if response.status == 206:
            match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("Content-Range", ""))
            total = None if match is None or match[2] == "*" else int(match[2])
            changed = total is not None and self.total is not None and total != self.total
            if match is None or int(match[1]) != self.done or changed:
                self._restart()
                raise _BrokenOffError("the file changed on the server")
        else:
            self._restart()
            length = headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
        self.total, self.etag = total, headers.get("ETag")
        own = [*redirects.seen, headers] if urlsplit(response.url)[:2] == urlsplit(self.url)[:2] else redirects.seen
        for field in ("X-Linked-ETag", "ETag"):
            tags = [(h.get(field) or "").removeprefix("W/").strip('"').lower() for h in own]
            if stated := next((tag for tag in tags if _SHA256.fullmatch(tag)), None):
                self.expected = stated
                break
        self.commit = next((h["X-Repo-Commit"] for h in own if h["X-Repo-Commit"]), self.commit)
        with contextlib.suppress(OSError):
            _notes(self.part).write_text(json.dumps({"url": self.url, "etag": self.etag, "size": self.total}), "utf-8")

    def _body(self, response: Any) -> None:
        while True:
            try:
                chunk: bytes = response.read1(CHUNK_BYTES)
            except (OSError, http.client.HTTPException) as error:
                raise _BrokenOffError(f"it broke off after {self.done:,} bytes ({_reason(error, STALL_S)})") from None
            if not chunk:
                break
            self._write(chunk)
        if self.total is not None and self.done < self.total:
            raise _BrokenOffError(f"it broke off after {self.done:,} of {self.total:,} bytes")
        if self.total is not None and self.done > self.total:
            self._restart()
            raise _BrokenOffError("more came than the server announced")

    def _write(self, chunk: bytes, *, flush: bool = False) -> None:
        try:
            self.file.write(chunk)
            if flush:
                self.file.flush()
                os.fsync(self.file.fileno())
        except OSError as error:
            raise storage_error(error, self.part.parent) from error
        self.digest.update(chunk)
        self.done += len(chunk)
        if self.progress and chunk:
            self.progress(self.name, self.done, self.total)

    def _restart(self) -> None:
        self.file.seek(0)
        self.file.truncate()
        self.digest, self.done, self.total = hashlib.sha256(), 0, None

    def _recall(self) -> None:
        """Goes on with what an earlier call left, where its notes say that it is of this very URL."""
        try:
            notes = json.loads(_notes(self.part).read_text("utf-8"))
            if notes["url"] != self.url:
                raise ValueError
            self.etag, self.total = notes["etag"], notes["size"]
        except (OSError, ValueError, KeyError, TypeError):
            self._restart()
            return
        self.file.seek(0)
        while chunk := self.file.read(CHUNK_BYTES):
            self.digest.update(chunk)
            self.done += len(chunk)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects; secrets stay with the first host, and an encrypted way never becomes an open one."""

    def __init__(self, url: str, secrets: tuple[str, ...]) -> None:
        self.origin = urlsplit(url)[:2]
        self.secrets = secrets
        self.seen: list[Message] = []

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(req.full_url)[:2] == self.origin:
            self.seen.append(headers)
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is None:
            return None
        if self.origin[0] == "https" and urlsplit(newurl).scheme != "https":
            raise urllib.error.URLError("it redirects to an unencrypted address")
        if urlsplit(newurl)[:2] != self.origin:
            for name in self.secrets:
                following.remove_header(name.capitalize())
        return following


def _open(request: urllib.request.Request, redirects: _Redirects, answer_s: float) -> Any:
    """The response, or TimeoutError after `answer_s`, whatever hangs: a look-up cannot be given a timeout, so it all
    happens in a thread that is left to itself when time is up."""
    opener = urllib.request.build_opener(redirects)
    result: list[Any] = []
    lock, ready = threading.Lock(), threading.Event()
    late = False

    def work() -> None:
        try:
            got: Any = opener.open(request, timeout=STALL_S)
        except Exception as error:
            got = error
        with lock:
            if late:
                if hasattr(got, "close"):
                    got.close()
            else:
                result.append(got)
        ready.set()

    threading.Thread(target=work, name="needlepoint-open", daemon=True).start()
    ready.wait(answer_s)
    with lock:
        late = True
    if not result:
        raise TimeoutError
    if isinstance(result[0], BaseException):
        raise result[0]
    return result[0]


def _reason(error: BaseException, seconds: float) -> str:
    """A few words for people on why a connection failed."""
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, BaseException):
        error = error.reason
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    if isinstance(error, socket.gaierror):
        return "its host name cannot be found"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not trusted here (SSL_CERT_FILE can name your own authority)"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


def _claim(part: Path) -> tuple[Path, BinaryIO, bool]:
    """The part file, open and locked; a private one where another process is at work on it (or locks are unknown)."""
    file = part.open("a+b")
    if _lock(file):
        with contextlib.suppress(OSError):
            if os.fstat(file.fileno()).st_ino == part.stat().st_ino:  # not renamed while we waited to look
                return part, file, True
    file.close()
    handle, name = tempfile.mkstemp(dir=part.parent, prefix=f".{part.name}.", suffix=".tmp")
    return Path(name), os.fdopen(handle, "w+b"), False


def _lock(file: BinaryIO) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _short(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:8]


def _notes(part: Path) -> Path:
    return part.with_name(part.name + ".json")
