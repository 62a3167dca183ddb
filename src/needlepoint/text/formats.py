"""The built-in chat formats: one plain string join for each model family that has a packaged vocabulary.

Each writes what vLLM's or transformers' `apply_chat_template(add_generation_prompt=True)` writes with its default
switches. Earlier replies are taken to have no reasoning in them. To add a model: one `ChatFormat`, one `Family`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from ..errors import TokenizerError
from ..types import Message, Render

TODAY = date(2024, 7, 26)
"""The date that dated templates get: the default of those that have one, so that two runs give the same bytes."""

Wrap = tuple[str, str]
"""What stands before and after a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFormat:
    """A built-in chat format. `exact` promises the very tokens of the model's server; else `reason` says what is open.

    `default_system` tells that the format writes a system prompt of its own where none is given: that text differs
    between revisions of a model, so lengths *without a system message* are unproven. Without `takes_system` the
    model's own template refuses a system message; the text then goes in front of the user's. `tokens` are the control
    tokens that the format spells.
    """

    name: str
    render: Render
    tokens: tuple[str, ...]
    exact: bool = True
    reason: str | None = None
    default_system: bool = False
    takes_system: bool = True

    def __call__(self, messages: Sequence[Message]) -> str:
        return self.render(messages)


def _dialogue(messages: Sequence[Message]) -> tuple[str | None, list[str]]:
    """The system text, and the user's and the assistant's texts in turn, beginning and ending with the user's."""
    system = None
    turns = list(messages)
    if turns and turns[0]["role"] == "system":
        system = turns.pop(0)["content"]
    roles = [turn["role"] for turn in turns]
    if len(roles) % 2 == 0 or roles != (["user", "assistant"] * len(roles))[: len(roles)]:
        raise TokenizerError(
            f"A built-in chat format cannot render the roles {[m['role'] for m in messages]}. "
            "Give an optional system message, then user and assistant in turn, the user last."
        )
    return system, [turn["content"] for turn in turns]


def _tagged(
    *,
    system: Wrap,
    user: Wrap,
    assistant: Wrap,
    tail: str,
    head: str = "",
    default: str | None = None,
    strip: bool = False,
    strip_reply: bool = False,
) -> Render:
    """Formats in which each message stands between its own marks."""

    def render(messages: Sequence[Message]) -> str:
        given, turns = _dialogue(messages)
        text = given if given is not None else default
        out = [head]
        if text is not None:
            out += [system[0], text.strip() if strip else text, system[1]]
        for index, turn in enumerate(turns):
            before, after = assistant if index % 2 else user
            out += [before, turn.strip() if strip or (strip_reply and index % 2) else turn, after]
        return "".join([*out, tail])

    return render


def _after(system: str, text: str) -> str:
    return f"{system}\n\n{text}"


def _merged(
    *,
    user: Wrap,
    assistant: Wrap,
    head: str = "",
    tail: str = "",
    join: Callable[[str, str], str] = _after,
    into: Literal["first", "last"] = "first",
    strip: bool = False,
    strip_reply: bool = False,
) -> Render:
    """Formats that have no turn for the system: `join` puts its text and the user's first or last one together."""

    def render(messages: Sequence[Message]) -> str:
        system, turns = _dialogue(messages)
        target = 0 if into == "first" else len(turns) - 1
        out = [head]
        for index, turn in enumerate(turns):
            before, after = assistant if index % 2 else user
            if index == target and system is not None:
                text = join(system, turn)
            else:
                text = turn.strip() if strip or (strip_reply and index % 2) else turn
            out += [before, text, after]
        return "".join([*out, tail])

    return render


def _chatml(*, tail: str = "<|im_start|>assistant\n", default: str | None = None, strip: bool = False) -> Render:
    return _tagged(
        system=("<|im_start|>system\n", "<|im_end|>\n"),
        user=("<|im_start|>user\n", "<|im_end|>\n"),
        assistant=("<|im_start|>assistant\n", "<|im_end|>\n"),
        tail=tail,
        default=default,
        strip=strip,
    )


def _llama3(*, dated: bool) -> Render:
    def header(role: str) -> str:
        return f"<|start_header_id|>{role}<|end_header_id|>\n\n"

    dates = f"Cutting Knowledge Date: December 2023\nToday Date: {TODAY:%d %b %Y}\n\n" if dated else ""
    return _tagged(
        head="<|begin_of_text|>",
        system=(header("system") + dates, "<|eot_id|>"),
        user=(header("user"), "<|eot_id|>"),
        assistant=(header("assistant"), "<|eot_id|>"),
        tail=header("assistant"),
        default="" if dated else None,
        strip=True,
    )


def _mistral_v7(space: str) -> Render:
    return _tagged(
        head="<s>",
        system=(f"[SYSTEM_PROMPT]{space}", "[/SYSTEM_PROMPT]"),
        user=(f"[INST]{space}", "[/INST]"),
        assistant=(space, "</s>"),
        tail="",
    )


def _deepseek(*, tail: str = "<｜Assistant｜>", reply: str = "<｜Assistant｜>") -> Render:
    return _tagged(
        head="<｜begin▁of▁sentence｜>",
        system=("", ""),
        user=("<｜User｜>", ""),
        assistant=(reply, "<｜end▁of▁sentence｜>"),
        tail=tail,
    )


def _glm(*, reply: str = "<|assistant|>\n", strip_reply: bool = False) -> Render:
    return _tagged(
        head="[gMASK]<sop>",
        system=("<|system|>\n", ""),
        user=("<|user|>\n", ""),
        assistant=(reply, ""),
        tail="<|assistant|>",
        strip_reply=strip_reply,
    )


def _kimi(*, think: str = "", reply: str = "", default: str | None = None) -> Render:
    return _tagged(
        system=("<|im_system|>system<|im_middle|>", "<|im_end|>"),
        user=("<|im_user|>user<|im_middle|>", "<|im_end|>"),
        assistant=(f"<|im_assistant|>assistant<|im_middle|>{reply}", "<|im_end|>"),
        tail=f"<|im_assistant|>assistant<|im_middle|>{think}",
        default=default,
    )


def _kimi_k3() -> Render:
    def message(attributes: str) -> str:
        return f"<|open|>message {attributes}<|sep|>"

    end = "<|close|>message<|sep|><|end_of_msg|>"
    effort = (
        "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), "
        "supported values include `low`, `medium`, `high`, and `max`.\n"
        "Now the system is invoked with `thinking_effort=max`."
    )
    assistant = message('role="assistant"') + "<|open|>think<|sep|>"
    return _tagged(
        head=message('role="system" type="thinking-effort"') + effort + end,
        system=(message('role="system"'), end),
        user=(message('role="user"'), end),
        assistant=(f"{assistant}<|close|>think<|sep|><|open|>response<|sep|>", f"<|close|>response<|sep|>{end}"),
        tail=assistant,
    )


def _gemma4(tail: str) -> Render:
    return _tagged(
        head="<bos>",
        system=("<|turn>system\n", "<turn|>\n"),
        user=("<|turn>user\n", "<turn|>\n"),
        assistant=("<|turn>model\n", "<turn|>\n"),
        tail=f"<|turn>model\n{tail}",
        strip=True,
    )


def _harmony() -> Render:
    about = (
        "You are ChatGPT, a large language model trained by OpenAI.\n"
        f"Knowledge cutoff: 2024-06\nCurrent date: {TODAY:%Y-%m-%d}\n\nReasoning: medium\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every message."
    )
    return _tagged(
        head=f"<|start|>system<|message|>{about}<|end|>",
        system=("<|start|>developer<|message|># Instructions\n\n", "<|end|>"),
        user=("<|start|>user<|message|>", "<|end|>"),
        assistant=("<|start|>assistant<|channel|>final<|message|>", "<|end|>"),
        tail="<|start|>assistant",
    )


_CHATML = ("<|im_start|>", "<|im_end|>")
_GEMMA = ("<bos>", "<start_of_turn>", "<end_of_turn>")
_INST = ("<s>", "</s>", "[INST]", "[/INST]")
_LLAMA3 = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
_DEEPSEEK = ("<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>")
_GLM = ("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>")
_KIMI = ("<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>")
_SYSTEM_PROMPT = ("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]")

_FORMATS = (
    ChatFormat(name="qwen3", render=_chatml(), tokens=_CHATML),
    ChatFormat(
        name="qwen3-thinking",
        render=_chatml(tail="<|im_start|>assistant\n<think>\n"),
        tokens=(*_CHATML, "<think>"),
    ),
    ChatFormat(
        name="qwen3.5",
        render=_chatml(tail="<|im_start|>assistant\n<think>\n", strip=True),
        tokens=(*_CHATML, "<think>"),
    ),
    ChatFormat(
        name="qwen3.5-small",
        render=_chatml(tail="<|im_start|>assistant\n<think>\n\n</think>\n\n", strip=True),
        tokens=(*_CHATML, "<think>", "</think>"),
    ),
    ChatFormat(
        name="qwen2.5",
        render=_chatml(default="You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
        tokens=_CHATML,
        default_system=True,
    ),
    ChatFormat(
        name="qwen2", render=_chatml(default="You are a helpful assistant."), tokens=_CHATML, default_system=True
    ),
    ChatFormat(
        name="llama2",
        render=_merged(
            user=("<s>[INST] ", " [/INST]"),
            assistant=(" ", " </s>"),
            join=lambda system, text: f"<<SYS>>\n{system.strip()}\n<</SYS>>\n\n{text}".strip(),
            strip=True,
        ),
        tokens=("<s>", "</s>"),
    ),
    ChatFormat(name="llama3", render=_llama3(dated=False), tokens=_LLAMA3),
    ChatFormat(name="llama3.1", render=_llama3(dated=True), tokens=_LLAMA3),
    # 3.2 writes the server's date where 3.1 writes a fixed one. Any date of the years 2024 to 2033 has as many tokens.
    ChatFormat(name="llama3.2", render=_llama3(dated=True), tokens=_LLAMA3),
    # The model's template has a space before [INST]. It stands for the one that SentencePiece puts in front of a text;
    # the packaged vocabulary adds that one itself, after <s> too, so the space must not be spelled here.
    ChatFormat(
        name="mistral-v1",
        render=_merged(head="<s>", user=("[INST] ", " [/INST]"), assistant=(" ", "</s>")),
        tokens=("<s>", "</s>"),
    ),
    ChatFormat(
        name="mistral-v3-spm",
        render=_merged(head="<s>", user=("[INST] ", "[/INST]"), assistant=(" ", "</s>"), into="last", strip_reply=True),
        tokens=_INST,
    ),
    ChatFormat(
        name="mistral-v3-tekken",
        render=_merged(head="<s>", user=("[INST]", "[/INST]"), assistant=("", "</s>"), into="last"),
        tokens=_INST,
    ),
    ChatFormat(name="mistral-v7-spm", render=_mistral_v7(" "), tokens=(*_INST, *_SYSTEM_PROMPT)),
    ChatFormat(name="mistral-v7-tekken", render=_mistral_v7(""), tokens=(*_INST, *_SYSTEM_PROMPT), default_system=True),
    ChatFormat(
        name="gemma2",
        render=_merged(
            head="<bos>",
            user=("<start_of_turn>user\n", "<end_of_turn>\n"),
            assistant=("<start_of_turn>model\n", "<end_of_turn>\n"),
            tail="<start_of_turn>model\n",
            join=lambda system, text: _after(system, text).strip(),
            strip=True,
        ),
        tokens=_GEMMA,
        takes_system=False,
    ),
    ChatFormat(
        name="gemma3",
        render=_merged(
            head="<bos>",
            user=("<start_of_turn>user\n", "<end_of_turn>\n"),
            assistant=("<start_of_turn>model\n", "<end_of_turn>\n"),
            tail="<start_of_turn>model\n",
            join=lambda system, text: _after(system, text.strip()),
            strip=True,
        ),
        tokens=_GEMMA,
    ),
    ChatFormat(
        name="gemma4",
        render=_gemma4("<|channel>thought\n<channel|>"),
        tokens=("<bos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>"),
    ),
    ChatFormat(name="gemma4-edge", render=_gemma4(""), tokens=("<bos>", "<|turn>", "<turn|>")),
    ChatFormat(name="deepseek-v3", render=_deepseek(), tokens=_DEEPSEEK),
    ChatFormat(name="deepseek-r1", render=_deepseek(tail="<｜Assistant｜><think>\n"), tokens=(*_DEEPSEEK, "<think>")),
    ChatFormat(
        name="deepseek-v3.1",
        render=_deepseek(tail="<｜Assistant｜></think>", reply="<｜Assistant｜></think>"),
        tokens=(*_DEEPSEEK, "</think>"),
    ),
    ChatFormat(
        name="glm-4",
        render=_glm(),
        tokens=_GLM,
        exact=False,
        reason="revisions of GLM-4-9B differ in whether a newline follows the last <|assistant|>",
    ),
    ChatFormat(name="glm-4-0414", render=_glm(), tokens=_GLM),
    ChatFormat(
        name="glm-4.5",
        render=_glm(reply="<|assistant|>\n<think></think>\n", strip_reply=True),
        tokens=(*_GLM, "<think>", "</think>"),
    ),
    ChatFormat(
        name="kimi-k2",
        render=_kimi(default="You are Kimi, an AI assistant created by Moonshot AI."),
        tokens=_KIMI,
        default_system=True,
    ),
    ChatFormat(
        name="kimi-k2-thinking",
        render=_kimi(reply="<think></think>", default="You are Kimi, an AI assistant created by Moonshot AI."),
        tokens=(*_KIMI, "<think>", "</think>"),
        default_system=True,
    ),
    ChatFormat(
        name="kimi-k2.5",
        render=_kimi(think="<think>", reply="<think></think>"),
        tokens=(*_KIMI, "<think>", "</think>"),
    ),
    ChatFormat(
        name="kimi-k3",
        render=_kimi_k3(),
        tokens=("<|open|>", "<|sep|>", "<|close|>", "<|end_of_msg|>"),
        exact=False,
        reason="the server chooses the thinking effort that the template spells out",
    ),
    ChatFormat(
        name="gpt-oss",
        render=_harmony(),
        tokens=("<|start|>", "<|message|>", "<|end|>", "<|channel|>"),
        exact=False,
        reason="servers differ in whether a blank line ends the developer message; this is vLLM's way, without one",
    ),
    ChatFormat(
        name="phi-4",
        render=_tagged(
            system=("<|im_start|>system<|im_sep|>", "<|im_end|>"),
            user=("<|im_start|>user<|im_sep|>", "<|im_end|>"),
            assistant=("<|im_start|>assistant<|im_sep|>", "<|im_end|>"),
            tail="<|im_start|>assistant<|im_sep|>",
        ),
        tokens=(*_CHATML, "<|im_sep|>"),
    ),
    ChatFormat(
        name="olmo-2",
        render=_tagged(
            head="<|endoftext|>",
            system=("<|system|>\n", "\n"),
            user=("<|user|>\n", "\n"),
            assistant=("<|assistant|>\n", "<|endoftext|>\n"),
            tail="<|assistant|>\n",
        ),
        tokens=("<|endoftext|>",),
        exact=False,
        reason="checked against the model card's example only, which has no system message",
    ),
    ChatFormat(
        name="tinyllama",
        render=_tagged(
            system=("<|system|>\n", "</s>\n"),
            user=("<|user|>\n", "</s>\n"),
            assistant=("<|assistant|>\n", "</s>\n"),
            tail="<|assistant|>\n",
        ),
        tokens=("</s>",),
        exact=False,
        reason="tokenizers differ by one token at each </s>",
    ),
    ChatFormat(
        name="vicuna",
        render=_tagged(
            head="<s>",
            system=("", " "),
            user=("USER: ", " "),
            assistant=("ASSISTANT: ", "</s>"),
            tail="ASSISTANT:",
            default=(
                "A chat between a curious user and an artificial intelligence assistant. "
                "The assistant gives helpful, detailed, and polite answers to the user's questions."
            ),
        ),
        tokens=("<s>", "</s>"),
        exact=False,
        reason="the model ships no chat template; this is the wording that it was trained with",
        default_system=True,
    ),
    ChatFormat(
        name="openai",
        render=_tagged(
            system=("<|start|>system<|message|>", "<|end|>"),
            user=("<|start|>user<|message|>", "<|end|>"),
            assistant=("<|start|>assistant<|message|>", "<|end|>"),
            tail="<|start|>assistant<|message|>",
        ),
        tokens=("<|start|>", "<|message|>", "<|end|>"),
        exact=False,
        reason="OpenAI publishes how messages are counted (3 tokens each, 3 for the reply), not the template",
    ),
)

BUILTIN: dict[str, ChatFormat] = {chat.name: chat for chat in _FORMATS}
