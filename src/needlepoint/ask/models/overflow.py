"""Does a server say that a prompt is too long? Its error codes and its words, server by server. Pure.

A prompt that would fit alone, but not with the answer's `max_tokens`, is an overflow too: it can't be asked so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CODES = frozenset(
    "context_length_exceeded context_window_exceeded contextwindowexceedederror exceed_context_size_error "
    "input_too_long model_max_prompt_tokens_exceeded prompt_too_long request_too_large string_above_max_length "
    "tokens_limit_reached".split()
)

_N = r"[\d][\d,_]*"
_WORDINGS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(words.replace("#", _N), re.IGNORECASE | re.DOTALL)
    for words in (
        # OpenAI, DeepSeek, vLLM, OpenRouter: what was asked for, prompt and answer apart
        r"maximum context length is (?P<limit>#).{0,80}?requested (?:about )?(?P<total>#) tokens"
        r"(?: \((?P<prompt>#)[^,)]*, (?P<answer>#)[^)]*\))?",
        r"maximum context length is (?P<limit>#).{0,80}?(?:resulted in|request has|prompt contains)"
        r"(?: at least)? (?P<prompt>#)(?: input)? tokens",
        r"maximum context length is (?P<limit>#)",
        r"exceeds? the context window",
        r"input tokens exceed the configured limit(?: of (?P<limit>#) tokens.{0,40}?resulted in (?P<prompt>#))?",
        r"string too long\. expected a string with maximum length",
        # vLLM
        r"passed (?P<prompt>#) input tokens and requested (?P<answer>#) output tokens.{0,40}"
        r"context length is only (?P<limit>#)",
        r"prompt \((?:total )?length (?P<prompt>#)\)(?: plus .{0,40}?)? (?:is longer than|exceeds) the maximum model "
        r"length(?: of (?P<limit>#))?",
        r"input prompt \((?P<prompt>#) tokens\) is too long",
        # SGLang
        r"input \((?P<prompt>#) tokens\) is longer than the model's context length \((?P<limit>#)",
        r"token count exceeds the model's maximum context length(?: of (?P<limit>#) tokens"
        r"(?:.{0,60}?: (?P<prompt>#) tokens from the input.{0,20}? and (?P<answer>#))?)?",
        r"input length \((?P<prompt>#) tokens\) exceeds the maximum allowed length \((?P<limit>#)",
        # llama.cpp
        r"request \((?P<prompt>#) tokens\) exceeds the available context size \((?P<limit>#)",
        r"exceeds the available context size",
        # Ollama, LM Studio
        r"input length exceeds (?:the |maximum )?context length",
        r"prompt (?:is )?too long; exceeded max(?:imum)? context length",
        r"(?:loaded with|greater than) (?:a |the )?context length",
        # Hugging Face TGI
        r"inputs`? tokens \+ `?max_new_tokens`? must be <= (?P<limit>#)(?:\. given: (?P<prompt>#)"
        r" `?inputs`? tokens and (?P<answer>#))?",
        r"`?inputs`? must have less than (?P<limit>#) tokens(?:\. given: (?P<prompt>#))?",
        # Anthropic
        r"prompt is too long(?:: (?P<prompt>#) tokens (?:>|\\u003e) (?P<limit>#))?",
        r"input length and `?max_tokens`? exceed context limit(?:: (?P<prompt>#) \+ (?P<answer>#) "
        r"(?:>|\\u003e) (?P<limit>#))?",
        # Gemini
        r"input token count(?: \((?P<prompt>#)\))? exceeds the maximum number of tokens allowed "
        r"\(?(?P<limit>#)",
        r"input token count(?: \(#\))? exceeds the maximum",
        # Mistral
        r"prompt contains (?P<prompt>#) tokens.{0,40}?too large for model with (?P<limit>#) maximum context",
        # xAI, Moonshot, Cohere, Cerebras, Fireworks, GitHub Models, Bedrock
        r"maximum prompt length is (?P<limit>#)(?: but the request contains (?P<prompt>#))?",
        r"exceeded model token limit: (?P<limit>#)(?: \(requested: (?P<total>#)\))?",
        r"tokens in the prompt cannot exceed (?P<limit>#)(?: - received (?P<prompt>#))?",
        r"current length is (?P<prompt>#) while limit is (?P<limit>#)",
        r"model maximum context length: (?P<limit>#)",
        r"request body too large for .{0,60} max size: (?P<limit>#) tokens",
        r"input is too long for (?:the )?requested model",
        # DashScope, Zhipu, MiniMax, Volcano, TensorRT-LLM
        r"range of input length should be \[\d+, (?P<limit>#)\]",
        r"prompt exceeds max length",
        r"context window exceeds limit",
        r"exceed max message tokens",
        r"prompt length \((?P<prompt>#)\).{0,40}? should not exceed max_(?:num_tokens|seq_len|input_len)",
        r"reduce the length of (?:the|either|your) (?:messages|input|prompt|one)",
    )
)
_N_PROMPT = re.compile(r'"n_prompt_tokens":\s*(\d+)')
_N_CTX = re.compile(r'"n_ctx":\s*(\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """That a prompt is too long, with the server's numbers where it says them."""

    prompt_tokens: int | None = None
    limit_tokens: int | None = None

    @property
    def fits_alone(self) -> bool:
        """Whether the prompt is within the limit, and only the room for the answer is not."""
        prompt, limit = self.prompt_tokens, self.limit_tokens
        return prompt is not None and limit is not None and prompt <= limit


def find_overflow(text: str, codes: frozenset[str] = frozenset()) -> Overflow | None:
    """What `text`, an error's words or its whole body, says of a prompt's length; None where it says nothing."""
    found: Overflow | None = Overflow() if codes & _CODES else None
    for wording in _WORDINGS:
        match = wording.search(text)
        if match is None:
            continue
        numbers = {name: int(re.sub(r"\D", "", value)) for name, value in match.groupdict().items() if value}
        prompt = numbers.get("prompt")
        found = Overflow(
            prompt_tokens=numbers.get("total") if prompt is None and "answer" not in numbers else prompt,
            limit_tokens=numbers.get("limit"),
        )
        break
    if found is not None and (found.prompt_tokens is None or found.limit_tokens is None):
        prompt_said, limit_said = _N_PROMPT.search(text), _N_CTX.search(text)
        if prompt_said and limit_said:
            return Overflow(prompt_tokens=int(prompt_said[1]), limit_tokens=int(limit_said[1]))
    return found
