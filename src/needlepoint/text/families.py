"""Which vocabulary and which chat format a model's name stands for.

A table, and a lookup that is strict on purpose: counting with a wrong vocabulary is worse than saying that none is
known. A name matches as a whole, after its organisation, file ending and quantisation marks are taken off; what is
derived from a model (distilled, merged, further trained under another name) is another model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..errors import did_you_mean

_OLLAMA = "a name with a tag is Ollama's, which writes its own chat templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Models that share a vocabulary and a chat format.

    `vocabulary` is the name of a packaged vocabulary, `chat` that of a format in `formats.BUILTIN`. `adds_bos`:
    transformers' plain `encode` puts a BOS in front. `nfc`: the tokenizer brings its text to NFC first. `added` are
    control tokens that the packaged vocabulary has at these ids without reading their spelling; closed models' ids are
    stand-ins. Where lengths are not `exact`, `reason` says why.
    """

    name: str
    vocabulary: str
    chat: str | None
    title: str
    patterns: tuple[re.Pattern[str], ...]
    example_models: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    adds_bos: bool = False
    nfc: bool = False
    added: tuple[tuple[str, int], ...] = ()
    exact: bool = True
    reason: str | None = None


def find(name: str) -> Family | None:
    """The family of a model's or vocabulary's name, or None where it is not surely one of them."""
    wanted = name.strip().casefold().rstrip("/")
    if wanted in _BY_NAME:
        return _BY_NAME[wanted]
    bare, from_ollama = _bare(wanted)
    for family in FAMILIES:
        if any(pattern.fullmatch(bare) for pattern in family.patterns):
            return replace(family, exact=False, reason=_OLLAMA) if from_ollama else family
    return None


def known_names() -> list[str]:
    """All names, aliases and example models, for messages and docs."""
    names = (name for family in FAMILIES for name in (family.name, *family.aliases, *family.example_models))
    return list(dict.fromkeys(names))


def suggest(name: str) -> str:
    """`" Did you mean …?"`, or an empty string."""
    return did_you_mean(name, known_names())


# What stands at the end of a re-packed model's name and changes neither its vocabulary nor its template.
_PACKING = re.compile(
    r"(?:[-_.](?:awq|gptq|gguf|ggml|mlx|exl[23]|hqq|aqlm|autoround|bnb|unsloth|marlin|hf|pt|qat|ud|kv|"
    r"quantized|dynamic|static|block|torchao|quark|"
    r"u?int[48]|(?:nv)?fp(?:4|8|16|32)|mxfp[48]|bf16|f16|f32|w[48]a(?:8|16)|[2-8]-?bits?|g(?:32|64|128)|"
    r"(?:i?q|tq)[1-8](?:_[0-9a-z]+)*))+\Z"
)
_ROUTES = frozenset({"free", "nitro", "floor", "extended", "beta"})  # OpenRouter's tags


def _bare(name: str) -> tuple[str, bool]:
    """The model's own name, and whether it was written as Ollama does: `name:size`."""
    organisation, _, bare = name.replace("\\", "/").rpartition("/")
    bare, _, tag = bare.partition(":")
    from_ollama = bool(tag) and tag not in _ROUTES
    if from_ollama and tag != "latest":
        bare = f"{bare}-{tag}"
    bare = _PACKING.sub("", bare)
    if bare == "deepseek-r1" and not organisation:
        bare = ""  # Ollama calls a distilled Qwen so
    return bare, from_ollama


def _names(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns)


_SIZE = r"\d+(?:\.\d+)?b(?:-a\d+(?:\.\d+)?b)?"
_V7_SPM = (("[SYSTEM_PROMPT]", 16), ("[/SYSTEM_PROMPT]", 17))
_V7_TEKKEN = (("[SYSTEM_PROMPT]", 17), ("[/SYSTEM_PROMPT]", 18))
_GEMMA4 = (("<|channel>", 100), ("<channel|>", 101), ("<|turn>", 105), ("<turn|>", 106))
_CLOSED = "OpenAI publishes how messages are counted, not the template"

FAMILIES: tuple[Family, ...] = (
    Family(
        name="qwen3",
        vocabulary="qwen3",
        chat="qwen3",
        title="Qwen3, its Instruct-2507, Coder, Next and VL models",
        nfc=True,
        patterns=_names(
            rf"qwen3(?:-{_SIZE})?(?:-base)?",
            rf"qwen3-{_SIZE}-instruct-2507",
            rf"qwen3-next-{_SIZE}-instruct",
            rf"qwen3-vl-{_SIZE}-instruct",
            rf"qwen3-coder(?:-(?:next|{_SIZE}))?(?:-instruct)?",
        ),
        example_models=("Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B-Instruct-2507"),
    ),
    Family(
        name="qwen3-thinking",
        vocabulary="qwen3",
        chat="qwen3-thinking",
        title="Qwen3 Thinking-2507 and QwQ",
        nfc=True,
        patterns=_names(rf"qwen3-(?:next-|vl-)?{_SIZE}-thinking(?:-2507)?", r"qwq(?:-32b)?"),
        example_models=("Qwen/Qwen3-4B-Thinking-2507", "Qwen/QwQ-32B"),
    ),
    Family(
        name="qwen3.5",
        vocabulary="qwen3.5",
        chat="qwen3.5",
        title="Qwen3.5 from 4B on, Qwen3.6",
        nfc=True,
        patterns=_names(
            r"qwen3\.5-(?:4b|9b|27b|35b-a3b|122b-a10b|397b-a17b)(?:-base)?", r"qwen3\.6-(?:27b|35b-a3b)(?:-base)?"
        ),
        example_models=("Qwen/Qwen3.5-9B", "Qwen/Qwen3.6-27B"),
        aliases=("qwen3.6",),
    ),
    Family(
        name="qwen3.5-small",
        vocabulary="qwen3.5",
        chat="qwen3.5-small",
        title="Qwen3.5 0.8B and 2B, which do not think by default",
        nfc=True,
        patterns=_names(r"qwen3\.5-(?:0\.8b|2b)(?:-base)?"),
        example_models=("Qwen/Qwen3.5-0.8B",),
    ),
    Family(
        name="qwen2.5",
        vocabulary="qwen3",
        chat="qwen2.5",
        title="Qwen2.5, its Coder and Math models, QwQ-32B-Preview",
        nfc=True,
        patterns=_names(
            rf"qwen2\.5-(?:coder-|math-)?{_SIZE}(?:-instruct)?(?:-1m)?", r"qwen2\.5-coder", r"qwq-32b-preview"
        ),
        example_models=("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-Coder-32B-Instruct"),
    ),
    Family(
        name="qwen2",
        vocabulary="qwen3",
        chat="qwen2",
        title="Qwen2, Qwen1.5, Qwen2-VL and Qwen2.5-VL",
        nfc=True,
        patterns=_names(
            r"qwen2-(?:math-)?(?:0\.5b|1\.5b|7b|72b|57b-a14b)(?:-instruct)?",
            r"qwen1\.5-(?:0\.5b|1\.8b|4b|7b|14b|32b|72b|110b|moe-a2\.7b)(?:-chat)?",
            rf"qwen2(?:\.5)?-vl-{_SIZE}-instruct",
        ),
        example_models=("Qwen/Qwen2-7B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct"),
    ),
    Family(
        name="llama2",
        vocabulary="llama2",
        chat="llama2",
        title="Llama 2",
        adds_bos=True,
        patterns=_names(r"llama-?2-(?:7b|13b|70b)(?:-chat)?"),
        example_models=("meta-llama/Llama-2-7b-chat-hf",),
    ),
    Family(
        name="llama3",
        vocabulary="llama3",
        chat="llama3",
        title="Llama 3 (8B and 70B of April 2024)",
        adds_bos=True,
        patterns=_names(r"(?:meta-)?llama-?3-(?:8b|70b)(?:-instruct)?"),
        example_models=("meta-llama/Meta-Llama-3-8B-Instruct",),
    ),
    Family(
        name="llama3.1",
        vocabulary="llama3",
        chat="llama3.1",
        title="Llama 3.1 and 3.3",
        adds_bos=True,
        patterns=_names(
            r"(?:meta-)?llama-?3\.1-(?:8b|70b|405b)(?:-instruct)?", r"(?:meta-)?llama-?3\.3-70b(?:-instruct)?"
        ),
        example_models=("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        aliases=("llama3.3",),
    ),
    Family(
        name="llama3.2",
        vocabulary="llama3",
        chat="llama3.2",
        title="Llama 3.2 1B and 3B",
        adds_bos=True,
        patterns=_names(r"(?:meta-)?llama-?3\.2-(?:1b|3b)(?:-instruct)?"),
        example_models=("meta-llama/Llama-3.2-3B-Instruct",),
    ),
    Family(
        name="mistral-v1",
        vocabulary="mistral_v1",
        chat="mistral-v1",
        title="Mistral 7B v0.1 and v0.2, Mixtral 8x7B",
        adds_bos=True,
        patterns=_names(r"mistral-7b(?:-instruct)?-v0\.[12]", r"mixtral-8x7b(?:-instruct)?(?:-v0\.1)?"),
        example_models=("mistralai/Mistral-7B-Instruct-v0.2", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        aliases=("mistral_v1",),
    ),
    Family(
        name="mistral-v3-spm",
        vocabulary="mistral_v2",
        chat="mistral-v3-spm",
        title="Mistral 7B v0.3, Mixtral 8x22B, Codestral 22B, Large 2407, Small 2409",
        adds_bos=True,
        patterns=_names(
            r"mistral-7b(?:-instruct)?-v0\.3",
            r"mixtral-8x22b-instruct-v0\.1",
            r"codestral-22b(?:-v0\.1)?",
            r"mathstral-7b-v0\.1",
            r"mistral-large-instruct-2407",
            r"mistral-small-instruct-2409",
        ),
        example_models=("mistralai/Mistral-7B-Instruct-v0.3", "mistralai/Codestral-22B-v0.1"),
        aliases=("mistral_v2",),
    ),
    Family(
        name="mistral-v3-tekken",
        vocabulary="mistral_v3",
        chat="mistral-v3-tekken",
        title="Mistral Nemo, Pixtral 12B, Ministral 8B 2410",
        adds_bos=True,
        patterns=_names(
            r"mistral-nemo(?:-(?:instruct|base))?-2407",
            r"mistral-nemo(?:-12b)?",
            r"pixtral-12b(?:-(?:base-)?2409)?",
            r"ministral-8b-instruct-2410",
        ),
        example_models=("mistralai/Mistral-Nemo-Instruct-2407", "mistralai/Ministral-8B-Instruct-2410"),
        aliases=("mistral_v3", "tekken"),
    ),
    Family(
        name="mistral-v7-spm",
        vocabulary="mistral_v2",
        chat="mistral-v7-spm",
        title="Mistral Large 2411, Pixtral Large",
        adds_bos=True,
        added=_V7_SPM,
        patterns=_names(r"mistral-large-instruct-2411", r"pixtral-large-instruct-2411"),
        example_models=("mistralai/Mistral-Large-Instruct-2411",),
    ),
    Family(
        name="mistral-v7-tekken",
        vocabulary="mistral_v3",
        chat="mistral-v7-tekken",
        title="Mistral Small 3, 3.1 and 3.2, Devstral Small, Ministral 3",
        adds_bos=True,
        added=_V7_TEKKEN,
        patterns=_names(
            r"mistral-small-24b(?:-instruct|-base)?-2501",
            r"mistral-small-3\.1-24b-(?:instruct|base)-2503",
            r"mistral-small-3\.2-24b-instruct-2506",
            r"devstral-small-(?:2505|2507)",
            r"ministral-3-(?:3b|8b|14b)-(?:instruct|reasoning|base)-2512",
        ),
        example_models=("mistralai/Mistral-Small-24B-Instruct-2501", "mistralai/Mistral-Small-3.2-24B-Instruct-2506"),
    ),
    Family(
        name="gemma2",
        vocabulary="gemma2",
        chat="gemma2",
        title="Gemma 2",
        adds_bos=True,
        added=(("<start_of_turn>", 106), ("<end_of_turn>", 107)),
        patterns=_names(r"gemma-?2-(?:2b|9b|27b)(?:-it)?"),
        example_models=("google/gemma-2-9b-it",),
    ),
    Family(
        name="gemma3",
        vocabulary="gemma3",
        chat="gemma3",
        title="Gemma 3",
        adds_bos=True,
        added=(("<start_of_turn>", 105), ("<end_of_turn>", 106)),
        patterns=_names(r"gemma-?3-(?:270m|1b|4b|12b|27b)(?:-it)?"),
        example_models=("google/gemma-3-4b-it",),
    ),
    Family(
        name="gemma4",
        vocabulary="gemma4",
        chat="gemma4",
        title="Gemma 4 26B-A4B and 31B",
        adds_bos=True,
        added=_GEMMA4,
        patterns=_names(r"gemma-?4-(?:26b-a4b|31b)(?:-it)?"),
        example_models=("google/gemma-4-31B-it",),
    ),
    Family(
        name="gemma4-edge",
        vocabulary="gemma4",
        chat="gemma4-edge",
        title="Gemma 4 E2B and E4B",
        adds_bos=True,
        added=_GEMMA4,
        patterns=_names(r"gemma-?4-(?:e2b|e4b)(?:-it)?"),
        example_models=("google/gemma-4-E4B-it",),
    ),
    Family(
        name="deepseek-v3",
        vocabulary="deepseek_v3",
        chat="deepseek-v3",
        title="DeepSeek V3, V3-0324 and R1-0528",
        adds_bos=True,
        patterns=_names(r"deepseek-v3(?:-0324|-base|-671b)?", r"deepseek-r1-0528"),
        example_models=("deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-R1-0528"),
        aliases=("deepseek_v3",),
    ),
    Family(
        name="deepseek-r1-671b",
        vocabulary="deepseek_v3",
        chat="deepseek-r1",
        title="DeepSeek R1",
        adds_bos=True,
        patterns=_names(r"deepseek-r1(?:-zero|-671b)?"),
        example_models=("deepseek-ai/DeepSeek-R1",),
    ),
    Family(
        name="deepseek-v3.1",
        vocabulary="deepseek_v3",
        chat="deepseek-v3.1",
        title="DeepSeek V3.1 and V3.2, not thinking",
        adds_bos=True,
        patterns=_names(r"deepseek-v3\.1(?:-terminus|-base|-671b)?", r"deepseek-v3\.2(?:-exp)?"),
        example_models=("deepseek-ai/DeepSeek-V3.1", "deepseek-ai/DeepSeek-V3.2"),
    ),
    Family(
        name="glm-4",
        vocabulary="glm4",
        chat="glm-4",
        title="GLM-4-9B",
        patterns=_names(r"glm-?4-9b(?:-chat)?(?:-1m)?"),
        example_models=("zai-org/glm-4-9b-chat",),
        aliases=("glm4",),
        exact=False,
        reason="revisions differ in how the generation prompt ends",
    ),
    Family(
        name="glm-4-0414",
        vocabulary="glm4",
        chat="glm-4-0414",
        title="GLM-4-0414",
        patterns=_names(r"glm-4-(?:9b|32b)(?:-base)?-0414"),
        example_models=("zai-org/GLM-4-32B-0414",),
    ),
    Family(
        name="glm-4.5",
        vocabulary="glm4",
        chat="glm-4.5",
        title="GLM-4.5 and GLM-4.6",
        patterns=_names(r"glm-4\.5(?:-air)?(?:-base)?", r"glm-4\.6"),
        example_models=("zai-org/GLM-4.5-Air", "zai-org/GLM-4.6"),
    ),
    Family(
        name="kimi-k2",
        vocabulary="kimi_k2",
        chat="kimi-k2",
        title="Kimi K2",
        patterns=_names(r"kimi-k2(?:-instruct(?:-0905)?|-base)"),
        example_models=("moonshotai/Kimi-K2-Instruct",),
        aliases=("kimi_k2",),
    ),
    Family(
        name="kimi-k2-thinking",
        vocabulary="kimi_k2",
        chat="kimi-k2-thinking",
        title="Kimi K2 Thinking",
        patterns=_names(r"kimi-k2-thinking"),
        example_models=("moonshotai/Kimi-K2-Thinking",),
    ),
    Family(
        name="kimi-k2.5",
        vocabulary="kimi_k2",
        chat="kimi-k2.5",
        title="Kimi K2.5",
        patterns=_names(r"kimi-k2\.5"),
        example_models=("moonshotai/Kimi-K2.5",),
    ),
    Family(
        name="kimi-k3",
        vocabulary="kimi_k3",
        chat="kimi-k3",
        title="Kimi K3",
        patterns=_names(r"kimi-k3"),
        example_models=("moonshotai/Kimi-K3",),
        aliases=("kimi_k3",),
        exact=False,
        reason="the server chooses the thinking effort that the template spells out",
    ),
    Family(
        name="gpt-oss",
        vocabulary="gpt-oss",
        chat="gpt-oss",
        title="gpt-oss",
        patterns=_names(r"gpt-oss-(?:20b|120b)"),
        example_models=("openai/gpt-oss-20b", "openai/gpt-oss-120b"),
        aliases=("o200k_harmony",),
        exact=False,
        reason="servers differ by a token in how they end the system message",
    ),
    Family(
        name="phi-4",
        vocabulary="phi4",
        chat="phi-4",
        title="Phi-4 (14B)",
        patterns=_names(r"phi-?4(?:-14b)?"),
        example_models=("microsoft/phi-4",),
        aliases=("phi4",),
    ),
    Family(
        name="olmo-2",
        vocabulary="olmo2",
        chat="olmo-2",
        title="OLMo 2 Instruct",
        patterns=_names(r"olmo-2-(?:1124-(?:7b|13b)|0325-32b|0425-1b)(?:-instruct)?", r"olmo2-(?:7b|13b)"),
        example_models=("allenai/OLMo-2-1124-7B-Instruct",),
        aliases=("olmo2",),
        exact=False,
        reason="its template was checked without a system message only",
    ),
    Family(
        name="tinyllama",
        vocabulary="llama2",
        chat="tinyllama",
        title="TinyLlama Chat",
        adds_bos=True,
        patterns=_names(r"tinyllama-1\.1b(?:-chat-v1\.0)?"),
        example_models=("TinyLlama/TinyLlama-1.1B-Chat-v1.0",),
        exact=False,
        reason="tokenizers differ by one token at each </s>",
    ),
    Family(
        name="vicuna",
        vocabulary="llama2",
        chat="vicuna",
        title="Vicuna 1.5",
        adds_bos=True,
        patterns=_names(r"vicuna-(?:7b|13b)(?:-v1\.[35])?"),
        example_models=("lmsys/vicuna-7b-v1.5",),
        exact=False,
        reason="the model ships no chat template",
    ),
    Family(
        name="gpt-4o",
        vocabulary="o200k_base",
        chat="openai",
        title="OpenAI GPT-4o, GPT-4.1, o1, o3, o4-mini, GPT-5",
        added=(("<|start|>", 200006), ("<|end|>", 200007), ("<|message|>", 200008)),
        patterns=_names(
            r"(?:chat)?gpt-4o(?:-[a-z0-9-]+)?",
            r"gpt-4\.[15](?:-[a-z0-9-]+)?",
            r"o[13](?:-[a-z0-9-]+)?",
            r"o4-mini(?:-[a-z0-9-]+)?",
            r"gpt-5(?:\.\d+)?(?:-[a-z0-9-]+)?",
        ),
        example_models=("gpt-4o", "gpt-4.1", "o3", "gpt-5"),
        aliases=("o200k_base", "o200k"),
        exact=False,
        reason=_CLOSED,
    ),
    Family(
        name="gpt-4",
        vocabulary="cl100k_base",
        chat="openai",
        title="OpenAI GPT-4 and GPT-3.5",
        added=(("<|start|>", 100264), ("<|end|>", 100265), ("<|message|>", 100266)),
        patterns=_names(
            r"gpt-4(?:-(?:0314|0613|32k|32k-0314|32k-0613|1106-preview|0125-preview|vision-preview))?",
            r"gpt-4-turbo(?:-[a-z0-9-]+)?",
            r"gpt-3\.?5(?:-turbo(?:-[a-z0-9-]+)?)?",
        ),
        example_models=("gpt-4", "gpt-4-turbo", "gpt-3.5-turbo"),
        aliases=("cl100k_base", "cl100k"),
        exact=False,
        reason=_CLOSED,
    ),
)

_BY_NAME = {name.casefold(): family for family in FAMILIES for name in (family.name, *family.aliases)}
