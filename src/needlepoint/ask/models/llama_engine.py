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
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from needlepoint.ask.models.machine import patient_threads
from needlepoint.ask.models.wire import Wire
from needlepoint.errors import MissingExtra, TokenizerError

if TYPE_CHECKING:
    import httpx2

_LONGEST_SOCKET_PATH = 100
_COUNTING_CTX = 256  # tokens of context: counting needs none, and the engine no less
BATCH_TOKENS = 128
"""Tokens that the engine takes at a time. As fast as larger ones on a CPU; it hears of a cancellation between two."""
TILE_TOKENS = 64
"""Where fewer tokens are computed at a time, the engine's kernels round in another way. With so many or more, a prompt
has the same logits to the last bit, however it is cut."""


class Engine:
    """llama.cpp in this process with one model. `close` it; it holds threads, memory and a socket until then.

    Without `threads` it is set up for counting tokens, with them for answering. With `whole_windows` layers that see
    only the last tokens keep all of a prompt, so that the next one can share its beginning.
    """

    def __init__(
        self,
        path: Path,
        *,
        n_ctx: int = _COUNTING_CTX,
        threads: int | None = None,
        whole_windows: bool = True,
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
            params.swa_full = whole_windows
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


def first_part(n_new: int) -> int:
    """How many of a prompt's new tokens go ahead, so that its last ones aren't too few; 0 where all go at once."""
    left = n_new % BATCH_TOKENS
    return n_new - TILE_TOKENS if n_new > BATCH_TOKENS and 0 < left < TILE_TOKENS else 0


def _load() -> Any:
    try:
        with patient_threads():
            import xllamacpp
    except ModuleNotFoundError:
        raise MissingExtra("Reading a GGUF model", "local") from None
    except ImportError as error:
        raise TokenizerError(f"xllamacpp is installed, but cannot be loaded: {error}.") from error
    return xllamacpp


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
