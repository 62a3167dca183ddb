"""The tokenizer, chat template and limit of a server: vLLM and llama.cpp, through their own endpoints.

What the server itself counts is what a prompt's length means, so nothing is guessed: tokens are those of `/tokenize`,
and where they end is proven by laying their pieces over the text, byte for byte. Knows nothing of asking.
"""

from __future__ import annotations

from typing import Any

from needlepoint.ask.models.llama_server import connect_llama
from needlepoint.ask.models.vllm import connect_vllm
from needlepoint.ask.models.wire import Wire
from needlepoint.types import Endpoint


def connect_server(
    url: str, *, model: str | None = None, api_key: str | None = None, timeout_s: float = 10.0
) -> Endpoint | None:
    """What a server tells of its tokenizer, template and limit; None where it has no `/tokenize` that we know.

    `url` may be the server's root, end in `/v1`, or in `/v1/chat/completions`. A server that cannot be reached, refuses
    the key or answers with something unusable raises TokenizerError. `endpoint.tokenizer.close()` ends the connection.
    """
    wire = Wire(url, api_key=api_key, timeout_s=timeout_s)
    try:
        endpoint = _connect(wire, model)
    except BaseException:
        wire.close()
        raise
    if endpoint is None:
        wire.close()
    return endpoint


def _connect(wire: Wire, model: str | None) -> Endpoint | None:
    # One question that both servers understand; each ignores the other's fields.
    body: dict[str, Any] = {
        **({"model": model} if model else {}),
        "prompt": "needle",
        "add_special_tokens": False,
        "return_token_strs": True,
        "content": "needle",
        "add_special": False,
        "with_pieces": True,
    }
    answer = wire.post("/tokenize", body)
    says = answer.error_text()
    if answer.status in (404, 405, 501) and not ("model" in says and model and model in says):
        return None
    known = wire.object_of(answer, "/tokenize")
    tokens = known.get("tokens")
    if isinstance(tokens, list) and tokens and all(isinstance(one, dict) for one in tokens):
        return connect_llama(wire, model)
    if isinstance(tokens, list) and isinstance(known.get("token_strs"), list):
        return connect_vllm(wire, model, known.get("max_model_len"))
    if isinstance(tokens, list) and "count" in known:
        return None  # SGLang and old vLLM count, but do not say which text a token is
    raise wire.unusable("/tokenize", "neither vLLM's nor llama.cpp's kind of answer")
