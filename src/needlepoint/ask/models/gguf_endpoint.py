"""What a GGUF says of itself, and counts: its tokenizer by the engine that will run it, its chat template, its limit.

Nothing but the engine tokenizes exactly as it: what counts prompts and what answers them is the same code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from needlepoint.ask.models.gguf import GgufHeader, read_gguf_header
from needlepoint.ask.models.llama_engine import Engine
from needlepoint.ask.models.llama_server import LlamaServerTokenizer, llama_endpoint
from needlepoint.ask.models.remote import template_name
from needlepoint.types import Endpoint


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


def connect_gguf(
    path: Path, *, name: str | None = None, template_options: Mapping[str, object] | None = None
) -> Endpoint:
    """What a GGUF file says and counts. `endpoint.tokenizer.close()` ends the engine behind it."""
    return opened_gguf(path, name, template_options)[1]


def opened_gguf(
    path: Path, name: str | None, template_options: Mapping[str, object] | None
) -> tuple[GgufHeader, Endpoint]:
    """The same, with the file's header."""
    header = read_gguf_header(path)
    engine = Engine(path, template_options=template_options)
    try:
        return header, gguf_endpoint(engine, header, name=name)
    except BaseException:
        engine.close()
        raise


def gguf_endpoint(engine: Engine, header: GgufHeader, *, name: str | None = None) -> Endpoint:
    """The endpoint of a model that an engine has loaded already."""
    tokenizer = GgufTokenizer(engine, header, name=name or header.path.name)
    notes = () if header.chat_template else (f"{header.path.name} has no chat template: llama.cpp puts ChatML for it",)
    endpoint = llama_endpoint(
        tokenizer,
        template_name=template_name("gguf", header.chat_template or "chatml"),
        limit_tokens=header.context_length,
        notes=notes,
    )
    return replace(
        endpoint,
        facts={
            "engine": f"llama.cpp (xllamacpp {_version('xllamacpp')})",
            "file": header.path.name,
            "file_bytes": header.path.stat().st_size,
            "architecture": header.architecture,
            "title": header.name,
        },
    )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
