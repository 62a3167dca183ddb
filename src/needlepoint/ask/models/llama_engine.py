"""llama.cpp's own server inside this process, spoken to over a socket that only this user can open.

A loopback port with a random key stands in where there are no such sockets. This module starts, reaches and ends the
engine; it knows nothing of tokenizers, prompts or replies.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from needlepoint.ask.models.wire import Wire
from needlepoint.errors import MissingExtra, TokenizerError

if TYPE_CHECKING:
    import httpx2

_LONGEST_SOCKET_PATH = 100
_COUNTING_CTX = 256  # tokens of context: counting needs none, and the engine no less
BATCH_TOKENS = 128
"""Tokens that the engine takes at a time. As fast as larger ones on a CPU; it hears of a cancellation between two."""
_SPIN_COUNT = "1000"


class Engine:
    """llama.cpp in this process with one model. `close` it; it holds threads, memory and a socket until then.

    Without `threads` it is set up for counting tokens, with them for answering.
    """

    def __init__(
        self,
        path: Path,
        *,
        n_ctx: int = _COUNTING_CTX,
        threads: int | None = None,
        template_options: Mapping[str, object] | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        xllamacpp = _load()
        self.path = path
        self.n_ctx = n_ctx
        self._key = secrets.token_urlsafe(24)
        folder = Path(tempfile.mkdtemp(prefix="needlepoint-"))
        socket = folder / "llama.sock" if os.name == "posix" else None
        if socket and len(os.fsencode(socket)) > _LONGEST_SOCKET_PATH:
            socket = None
        self._socket = socket
        params = _params(xllamacpp, path, n_ctx)
        if threads is not None:
            _set_for_answering(params, xllamacpp, threads)
        if template_options:
            params.default_template_kwargs = {key: json.dumps(value) for key, value in template_options.items()}
        params.api_keys = [self._key]
        params.hostnames = [str(socket)] if socket else ["127.0.0.1"]
        try:
            server = xllamacpp.Server(params)
            self._url = "http://localhost" if socket else str(server.listening_address)
        except (RuntimeError, ValueError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise TokenizerError(
                f"llama.cpp cannot load {path}: the file is damaged, its chat template does not work, its kind is not "
                f"known to this build, or {n_ctx:,} tokens of context need more memory than there is."
            ) from error
        self._held: list[Any] = [server]
        self.wire = Wire(self._url, api_key=self._key, timeout_s=timeout_s, socket=socket)
        self.wire.shown = f"llama.cpp ({path.name})"
        self._closing = weakref.finalize(self, _close, self._held, self.wire, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the engine and give back what it holds. Waits for the batch of tokens that it is at."""
        self._closing()

    def client(self) -> httpx2.AsyncClient:
        """A connection for long answers: no time limit, and closing it tells the engine to stop."""
        import httpx2

        return httpx2.AsyncClient(
            base_url=self._url,
            headers={"Authorization": f"Bearer {self._key}", "Accept-Encoding": "identity"},
            transport=httpx2.AsyncHTTPTransport(uds=None if self._socket is None else str(self._socket), verify=False),
            timeout=None,
            trust_env=False,
        )


def cores() -> int:
    """Physical cores that this process may use: the engine's threads wait for each other, so more of them only harm."""
    try:
        mine = os.sched_getaffinity(0)
    except AttributeError:
        return max(1, os.cpu_count() or 1)
    found = {_siblings(number) for number in mine}
    return max(1, min(len(found), _quota() or len(found)))


def _siblings(cpu: int) -> str:
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text("ascii").strip()
    except OSError:
        return str(cpu)


def _quota() -> int | None:
    """Whole CPUs that the container's time limit leaves, or None."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        return max(1, int(limit) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _load() -> Any:
    try:
        with patient_threads():
            import xllamacpp
    except ModuleNotFoundError:
        raise MissingExtra("Reading a GGUF model", "local") from None
    except ImportError as error:
        raise TokenizerError(f"xllamacpp is installed, but cannot be loaded: {error}.") from error
    return xllamacpp


@contextmanager
def patient_threads() -> Iterator[None]:
    """Let OpenMP's threads wait briefly and then sleep. It reads the environment once, when it is loaded.

    By default they spin for milliseconds, in each of hundreds of waits a token: on 2 cores with one other busy process
    2 tokens a second were seen instead of 18. This costs nothing on an idle machine; `passive` costs half the speed
    of generation there.
    """
    if {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = _SPIN_COUNT
    try:
        yield
    finally:
        os.environ.pop("GOMP_SPINCOUNT", None)


def _params(xllamacpp: Any, path: Path, n_ctx: int) -> Any:
    """Settings for counting tokens: weights mapped, not read; nothing prepared, printed or offered to others."""
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = n_ctx
    params.n_batch = params.n_ubatch = min(n_ctx, 512)
    params.n_parallel = 1
    params.n_gpu_layers = 0
    # Loading tries a few tokens. On a busy machine the threads of that would spin for seconds waiting for each other.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_MMAP
    params.no_extra_bufts = True  # no second copy of the weights in another layout
    params.fit_params = False
    params.warmup = False
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    params.n_threads_http = 2
    params.verbosity = -1
    params.port = 0
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = "http://localhost"
    params.cors_credentials = False
    return params


def _set_for_answering(params: Any, xllamacpp: Any, threads: int) -> None:
    """One slot that keeps the last prompt and nothing else, and no reuse but of a true prefix (see docs/methods)."""
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_AUTO
    params.no_extra_bufts = False
    params.n_cache_reuse = 0
    params.ctx_shift = False
    params.n_predict = -1


def _close(held: list[Any], wire: Wire, folder: Path) -> None:
    wire.close()
    held.clear()  # the server stops when nothing refers to it
    shutil.rmtree(folder, ignore_errors=True)
