"""A GGUF through the embedded engine: its tokenizer, its chat template, its limit.

The engine is llama.cpp's own server inside this process, spoken to over a socket that only this user can open (a
loopback port with a random key where there are no such sockets): nothing but it tokenizes exactly as it. `gguf` reads
what stands in the file; this module knows nothing of planning.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any, Self

from needlepoint.ask.models.gguf import GgufHeader, read_gguf_header
from needlepoint.ask.models.llama_server import LlamaServerTokenizer, llama_endpoint
from needlepoint.ask.models.remote import template_name
from needlepoint.ask.models.wire import Wire
from needlepoint.errors import MissingExtra, TokenizerError
from needlepoint.types import Endpoint

_LONGEST_SOCKET_PATH = 100
_COUNTING_CTX = 256  # tokens of context: counting needs none, and the engine no less


class Engine:
    """llama.cpp in this process with one model. `close` it; it holds threads, memory and a socket until then."""

    def __init__(self, path: Path, *, n_ctx: int = _COUNTING_CTX, timeout_s: float = 60.0) -> None:
        try:
            import xllamacpp
        except ModuleNotFoundError:
            raise MissingExtra("Reading a GGUF model", "local") from None
        except ImportError as error:
            raise TokenizerError(f"xllamacpp is installed, but cannot be loaded: {error}.") from error

        self.path = path
        key = secrets.token_urlsafe(24)
        folder = Path(tempfile.mkdtemp(prefix="needlepoint-"))
        socket = folder / "llama.sock" if os.name == "posix" else None
        if socket and len(os.fsencode(socket)) > _LONGEST_SOCKET_PATH:
            socket = None
        params = _params(xllamacpp, path, n_ctx)
        params.api_keys = [key]
        params.hostnames = [str(socket)] if socket else ["127.0.0.1"]
        try:
            server = xllamacpp.Server(params)
            url = "http://localhost" if socket else str(server.listening_address)
        except (RuntimeError, ValueError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise TokenizerError(
                f"llama.cpp cannot load {path}: the file is damaged, its chat template does not work, or its kind is "
                "not known to this build."
            ) from error
        self._held: list[Any] = [server]
        self.wire = Wire(url, api_key=key, timeout_s=timeout_s, socket=socket)
        self.wire.shown = f"llama.cpp ({path.name})"
        self._closing = weakref.finalize(self, _close, self._held, self.wire, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the engine and give back what it holds."""
        self._closing()


class GgufTokenizer(LlamaServerTokenizer):
    """The tokenizer of a GGUF, as the engine that will run it has it."""

    def __init__(self, engine: Engine, header: GgufHeader, *, name: str) -> None:
        super().__init__(engine.wire, name=name, table=header.table())
        self._engine = engine
        controls = header.control_tokens()
        self.learn(special_tokens=controls, aligns_by=header.user_tokens(), fingerprint=header.fingerprint)

    def close(self) -> None:
        super().close()
        self._engine.close()


def connect_gguf(path: Path, *, name: str | None = None) -> Endpoint:
    """What a GGUF file says and counts. `endpoint.tokenizer.close()` ends the engine behind it."""
    header = read_gguf_header(path)
    engine = Engine(path)
    try:
        return gguf_endpoint(engine, header, name=name)
    except BaseException:
        engine.close()
        raise


def gguf_endpoint(engine: Engine, header: GgufHeader, *, name: str | None = None) -> Endpoint:
    """The endpoint of a model that an engine has loaded already."""
    tokenizer = GgufTokenizer(engine, header, name=name or header.path.name)
    notes = () if header.chat_template else (f"{header.path.name} has no chat template: llama.cpp puts ChatML for it",)
    return llama_endpoint(
        tokenizer,
        template_name=template_name("gguf", header.chat_template or "chatml"),
        limit_tokens=header.context_length,
        notes=notes,
    )


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


def _close(held: list[Any], wire: Wire, folder: Path) -> None:
    wire.close()
    held.clear()  # the server stops when nothing refers to it
    shutil.rmtree(folder, ignore_errors=True)
