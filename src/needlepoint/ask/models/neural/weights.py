"""A model's configuration and weights: from a folder, a hub id or a GGUF; onto one device, in one dtype."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from needlepoint.ask.models.neural.trunk import Layer
from needlepoint.errors import FetchError, InputError, UsageError

if TYPE_CHECKING:
    from needlepoint.ask.models.neural.from_gguf import GgufModel

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_SAME = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
_KINDS = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "window",
    "linear_attention": "linear",
    "conv": "linear",
    "moe": "none",
    "mlp": "none",
}
FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What of a model's configuration decides speed and memory."""

    layers: tuple[Layer, ...]
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    inner: int
    vocabulary: int
    limit_tokens: int | None
    linear_values: int = 0
    """Numbers in one linear layer's states."""

    @property
    def kv_values(self) -> int:
        """Numbers that one attention layer keeps of one token."""
        return 2 * self.kv_heads * self.head_dim


def device_of(wanted: str | None) -> Any:
    """`cpu`, `cuda`, `cuda:1`; without one, the first GPU where there is any."""
    import torch

    name = wanted or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"--device {name!r} is none that PyTorch knows. Give cpu, cuda or cuda:N.") from None
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"--device {name!r} is not supported. Give cpu, cuda or cuda:N.")
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if not count:
            raise UsageError("--device cuda: PyTorch sees no GPU here. Give --device cpu, or install PyTorch for CUDA.")
        if (device.index or 0) >= count:
            raise UsageError(f"--device {name}: there are {count} GPUs, counted from cuda:0.")
    return device


def dtype_of(wanted: str | None, config: Any, device: Any) -> str:
    """`bf16`, `fp16` or `fp32`: as asked; else as the weights are stored on a GPU, and fp32 on a CPU."""
    if wanted is not None:
        return wanted
    if device.type == "cpu":
        return "fp32"
    stored = str(getattr(config, "dtype", None) or "bfloat16").removeprefix("torch.")
    return _SAME.get(stored, "bf16")


def read_config(name: str) -> Any:
    """The configuration of a local folder or a hub id."""
    from transformers import AutoConfig

    folder = _path(name)
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise InputError(f"{folder} holds no config.json, so it is no model that transformers can load.")
    try:
        with _quiet():
            return AutoConfig.from_pretrained(str(folder) if folder.exists() else name)
    except OSError as error:
        if folder.exists():
            raise InputError(f"{folder / 'config.json'} cannot be read: {_first_line(error)}") from None
        raise FetchError(
            f"There is no folder {name!r}, and no hub gave a model of this name: {_first_line(error)} Give a folder "
            "with config.json, weights and tokenizer.json."
        ) from None
    except ValueError as error:
        raise InputError(f"transformers can't use the configuration of {name!r}: {_first_line(error)}") from None


def shape_of(config: Any) -> Shape:
    """What the configuration says of layers and sizes. UsageError for kinds of layers that can't be run exactly."""
    text = config.get_text_config(decoder=True)
    heads = int(text.num_attention_heads)
    linear = int(getattr(text, "linear_num_value_heads", 0) or 0) * int(getattr(text, "linear_key_head_dim", 0) or 0)
    experts = int(getattr(text, "moe_intermediate_size", 0) or 0) * int(getattr(text, "num_experts_per_tok", 0) or 0)
    return Shape(
        layers=_layers(text),
        heads=heads,
        kv_heads=int(getattr(text, "num_key_value_heads", None) or heads),
        head_dim=int(getattr(text, "head_dim", None) or text.hidden_size // heads),
        hidden=int(text.hidden_size),
        inner=max(int(getattr(text, "intermediate_size", None) or 4 * text.hidden_size), experts),
        vocabulary=int(text.vocab_size),
        limit_tokens=getattr(text, "max_position_embeddings", None),
        linear_values=linear * int(getattr(text, "linear_value_head_dim", 0) or 0),
    )


def _layers(text: Any) -> tuple[Layer, ...]:
    window = getattr(text, "sliding_window", None)
    if getattr(text, "use_sliding_window", None) is False:
        window = None
    names = getattr(text, "layer_types", None)
    if names is None:
        names = ["sliding_attention" if window else "full_attention"] * int(text.num_hidden_layers)
    found = []
    for name in names:
        kind = _KINDS.get(name)
        if kind is None or getattr(text, "kv_sharing_modes", None) or getattr(text, "num_kv_shared_layers", 0):
            what = f"layers of the kind {name!r}" if kind is None else "layers that share keys"
            raise UsageError(
                f"{text.model_type} has {what}, which the transformers engine can't run exactly. Serve it with vLLM "
                "or llama.cpp, and give --api-url."
            )
        states = int(getattr(text, "number_of_conv_states", 1) or 1)
        found.append(Layer(kind=kind, window=int(window or 0) if kind == "window" else 0, states=states))  # type: ignore[arg-type]
    return tuple(found)


def n_parameters(config: Any) -> int:
    """How many numbers the weights have, without making any."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        with _quiet(), torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except ValueError:
        raise InputError(f"{type(config).__name__} is of no causal language model, so it can't be asked.") from None
    return sum(parameter.numel() for parameter in model.parameters())


def load(source: str | GgufModel, config: Any, *, dtype: str, device: Any) -> Any:
    """The model of a folder, a hub id or a GGUF, ready to be asked, with our attention in it."""
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    numbers = getattr(torch, DTYPES[dtype])
    name = source if isinstance(source, str) else source.path.name
    try:
        with _quiet():
            if isinstance(source, str):
                folder = _path(source)
                place = str(folder) if folder.exists() else source
                model = AutoModelForCausalLM.from_pretrained(place, config=config, dtype=numbers)
            else:
                model = source.load(config, numbers)
            return ready(model.to(device))
    except (OSError, ValueError, RuntimeError, LookupError, SafetensorError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise UsageError(f"The weights of {name!r} do not fit into the memory of {device}.") from None
        raise InputError(f"The weights of {name!r} cannot be loaded: {_first_line(error)}") from None


def ready(model: Any) -> Any:
    """The model with our attention in it. Whether it uses it as it should, `proof` finds out."""
    from needlepoint.ask.models.neural import attention

    attention.register()
    model.eval()
    model.set_attn_implementation(attention.NAME)
    return model


def end_tokens(model: Any) -> list[int]:
    """The tokens that end an answer, as the model's own files have them."""
    found: list[int] = []
    for config in (getattr(model, "generation_config", None), model.config):
        ends = getattr(config, "eos_token_id", None)
        found += ends if isinstance(ends, list) else [] if ends is None else [ends]
    return sorted(set(map(int, found)))


def local_files(name: str) -> Path:
    """The folder that holds the model's tokenizer and template; those of a hub id are fetched."""
    folder = _path(name)
    if folder.is_dir():
        return folder
    from transformers.utils import cached_file

    found: Path | None = None
    for file in FILES:
        try:
            with _quiet():
                path = cached_file(name, file, _raise_exceptions_for_missing_entries=False)
        except OSError as error:
            raise FetchError(f"The tokenizer of {name!r} could not be fetched: {_first_line(error)}") from None
        if path is not None:
            found = found or Path(path).parent
    if found is None:
        raise FetchError(f"The hub's {name!r} holds no tokenizer.json. Give the tokenizer's file with --tokenizer.")
    return found


def _path(name: str) -> Path:
    return Path(os.path.expanduser(name))  # noqa: PTH111 (Path.expanduser raises for a home that does not exist)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' progress bars and advice: what people should know we say ourselves."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return line[:300] if line.endswith((".", "!", "?")) else line[:300] + "."
