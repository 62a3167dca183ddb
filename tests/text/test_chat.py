"""Built-in formats write the bytes of the models' own templates; foreign ones are rendered, bounded and explained.

The expected strings were compared with the models' published templates, rendered by Jinja, system text, user text,
earlier turns and surrounding white space included.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from needlepoint.errors import TokenizerError
from needlepoint.text.chat import BUILTIN, JinjaChat, find_template, from_jinja, split_at_context
from needlepoint.types import Message

SYSTEM = Message(role="system", content=" Sys. ")
USER = Message(role="user", content=" Hay.\n")
REPLY = Message(role="assistant", content=" Ans. ")
NEXT = Message(role="user", content="Next? ")

HARMONY = (
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n"
    "Current date: 2024-07-26\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. "
    "Channel must be included for every message.<|end|>"
)
EFFORT = (
    '<|open|>message role="system" type="thinking-effort"<|sep|>`thinking_effort` guides on how much to think in your '
    "thinking channel (not including the response channel), supported values include `low`, `medium`, `high`, and "
    "`max`.\nNow the system is invoked with `thinking_effort=max`.<|close|>message<|sep|><|end_of_msg|>"
)
LLAMA_DATES = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"


def _header(role: str) -> str:
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n"


def _llama3(dates: str) -> str:
    system = f"<|begin_of_text|>{_header('system')}{dates}Sys.<|eot_id|>"
    return f"{system}{_header('user')}Hay.<|eot_id|>{_header('assistant')}"


CHATML = "<|im_start|>system\n Sys. <|im_end|>\n<|im_start|>user\n Hay.\n<|im_end|>\n<|im_start|>assistant\n"
CHATML_STRIPPED = "<|im_start|>system\nSys.<|im_end|>\n<|im_start|>user\nHay.<|im_end|>\n<|im_start|>assistant\n"
KIMI = (
    "<|im_system|>system<|im_middle|> Sys. <|im_end|><|im_user|>user<|im_middle|> Hay.\n<|im_end|>"
    "<|im_assistant|>assistant<|im_middle|>"
)
WITH_SYSTEM = {
    "qwen3": CHATML,
    "qwen3-thinking": CHATML + "<think>\n",
    "qwen3.5": CHATML_STRIPPED + "<think>\n",
    "qwen3.5-small": CHATML_STRIPPED + "<think>\n\n</think>\n\n",
    "qwen2.5": CHATML,
    "qwen2": CHATML,
    "llama2": "<s>[INST] <<SYS>>\nSys.\n<</SYS>>\n\n Hay. [/INST]",
    "llama3": _llama3(""),
    "llama3.1": _llama3(LLAMA_DATES),
    "llama3.2": _llama3(LLAMA_DATES),
    "mistral-v1": "<s>[INST]  Sys. \n\n Hay.\n [/INST]",
    "mistral-v3-spm": "<s>[INST]  Sys. \n\n Hay.\n[/INST]",
    "mistral-v3-tekken": "<s>[INST] Sys. \n\n Hay.\n[/INST]",
    "mistral-v7-spm": "<s>[SYSTEM_PROMPT]  Sys. [/SYSTEM_PROMPT][INST]  Hay.\n[/INST]",
    "mistral-v7-tekken": "<s>[SYSTEM_PROMPT] Sys. [/SYSTEM_PROMPT][INST] Hay.\n[/INST]",
    "gemma2": "<bos><start_of_turn>user\nSys. \n\n Hay.<end_of_turn>\n<start_of_turn>model\n",
    "gemma3": "<bos><start_of_turn>user\n Sys. \n\nHay.<end_of_turn>\n<start_of_turn>model\n",
    "gemma4": (
        "<bos><|turn>system\nSys.<turn|>\n<|turn>user\nHay.<turn|>\n<|turn>model\n<|channel>thought\n<channel|>"
    ),
    "gemma4-edge": "<bos><|turn>system\nSys.<turn|>\n<|turn>user\nHay.<turn|>\n<|turn>model\n",
    "deepseek-v3": "<｜begin▁of▁sentence｜> Sys. <｜User｜> Hay.\n<｜Assistant｜>",
    "deepseek-r1": "<｜begin▁of▁sentence｜> Sys. <｜User｜> Hay.\n<｜Assistant｜><think>\n",
    "deepseek-v3.1": "<｜begin▁of▁sentence｜> Sys. <｜User｜> Hay.\n<｜Assistant｜></think>",
    "glm-4": "[gMASK]<sop><|system|>\n Sys. <|user|>\n Hay.\n<|assistant|>",
    "glm-4-0414": "[gMASK]<sop><|system|>\n Sys. <|user|>\n Hay.\n<|assistant|>",
    "glm-4.5": "[gMASK]<sop><|system|>\n Sys. <|user|>\n Hay.\n<|assistant|>",
    "kimi-k2": KIMI,
    "kimi-k2-thinking": KIMI,
    "kimi-k2.5": KIMI + "<think>",
    "kimi-k3": EFFORT
    + '<|open|>message role="system"<|sep|> Sys. <|close|>message<|sep|><|end_of_msg|>'
    + '<|open|>message role="user"<|sep|> Hay.\n<|close|>message<|sep|><|end_of_msg|>'
    + '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>',
    "gpt-oss": HARMONY
    + "<|start|>developer<|message|># Instructions\n\n Sys. <|end|>"
    + "<|start|>user<|message|> Hay.\n<|end|><|start|>assistant",
    "phi-4": (
        "<|im_start|>system<|im_sep|> Sys. <|im_end|><|im_start|>user<|im_sep|> Hay.\n<|im_end|>"
        "<|im_start|>assistant<|im_sep|>"
    ),
    "olmo-2": "<|endoftext|><|system|>\n Sys. \n<|user|>\n Hay.\n\n<|assistant|>\n",
    "tinyllama": "<|system|>\n Sys. </s>\n<|user|>\n Hay.\n</s>\n<|assistant|>\n",
    "vicuna": "<s> Sys.  USER:  Hay.\n ASSISTANT:",
    "openai": (
        "<|start|>system<|message|> Sys. <|end|><|start|>user<|message|> Hay.\n<|end|><|start|>assistant<|message|>"
    ),
}


@pytest.mark.parametrize("name", list(BUILTIN))
def test_system_and_user(name: str) -> None:
    assert BUILTIN[name]([SYSTEM, USER]) == WITH_SYSTEM[name]


USER_ALONE = {
    "qwen3": "<|im_start|>user\n Hay.\n<|im_end|>\n<|im_start|>assistant\n",
    "qwen2.5": (
        "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\n Hay.\n<|im_end|>\n<|im_start|>assistant\n"
    ),
    "llama2": "<s>[INST] Hay. [/INST]",
    "llama3": f"<|begin_of_text|>{_header('user')}Hay.<|eot_id|>{_header('assistant')}",
    "llama3.1": (
        f"<|begin_of_text|>{_header('system')}{LLAMA_DATES}<|eot_id|>{_header('user')}Hay.<|eot_id|>"
        f"{_header('assistant')}"
    ),
    "mistral-v3-tekken": "<s>[INST] Hay.\n[/INST]",
    "gemma3": "<bos><start_of_turn>user\nHay.<end_of_turn>\n<start_of_turn>model\n",
    "deepseek-v3": "<｜begin▁of▁sentence｜><｜User｜> Hay.\n<｜Assistant｜>",
    "glm-4.5": "[gMASK]<sop><|user|>\n Hay.\n<|assistant|>",
    "gpt-oss": HARMONY + "<|start|>user<|message|> Hay.\n<|end|><|start|>assistant",
    "olmo-2": "<|endoftext|><|user|>\n Hay.\n\n<|assistant|>\n",
}


@pytest.mark.parametrize("name", list(USER_ALONE))
def test_user_alone(name: str) -> None:
    assert BUILTIN[name]([USER]) == USER_ALONE[name]


SEVERAL_TURNS = {
    "qwen3": CHATML + " Ans. <|im_end|>\n<|im_start|>user\nNext? <|im_end|>\n<|im_start|>assistant\n",
    "llama2": "<s>[INST] <<SYS>>\nSys.\n<</SYS>>\n\n Hay. [/INST] Ans. </s><s>[INST] Next? [/INST]",
    "mistral-v1": "<s>[INST]  Sys. \n\n Hay.\n [/INST]  Ans. </s>[INST] Next?  [/INST]",
    "mistral-v3-spm": "<s>[INST]  Hay.\n[/INST] Ans.</s>[INST]  Sys. \n\nNext? [/INST]",
    "mistral-v3-tekken": "<s>[INST] Hay.\n[/INST] Ans. </s>[INST] Sys. \n\nNext? [/INST]",
    "gemma3": (
        "<bos><start_of_turn>user\n Sys. \n\nHay.<end_of_turn>\n<start_of_turn>model\nAns.<end_of_turn>\n"
        "<start_of_turn>user\nNext?<end_of_turn>\n<start_of_turn>model\n"
    ),
    "deepseek-v3.1": (
        "<｜begin▁of▁sentence｜> Sys. <｜User｜> Hay.\n<｜Assistant｜></think> Ans. <｜end▁of▁sentence｜>"
        "<｜User｜>Next? <｜Assistant｜></think>"
    ),
    "glm-4.5": (
        "[gMASK]<sop><|system|>\n Sys. <|user|>\n Hay.\n<|assistant|>\n<think></think>\nAns."
        "<|user|>\nNext? <|assistant|>"
    ),
}


@pytest.mark.parametrize("name", list(SEVERAL_TURNS))
def test_several_turns(name: str) -> None:
    assert BUILTIN[name]([SYSTEM, USER, REPLY, NEXT]) == SEVERAL_TURNS[name]


@pytest.mark.parametrize("messages", [[], [SYSTEM], [REPLY], [USER, REPLY], [USER, USER], [USER, SYSTEM, USER]])
def test_a_built_in_format_refuses_a_talk_that_it_cannot_be_sure_of(messages: Sequence[Message]) -> None:
    for chat in BUILTIN.values():
        with pytest.raises(TokenizerError, match="cannot render the roles"):
            chat(messages)


def test_what_is_not_exact_says_why_and_default_system_prompts_are_flagged() -> None:
    for chat in BUILTIN.values():
        assert chat.exact == (chat.reason is None)
    assert {name for name, chat in BUILTIN.items() if chat.default_system} == {
        "qwen2.5",
        "qwen2",
        "mistral-v7-tekken",
        "kimi-k2",
        "kimi-k2-thinking",
        "vicuna",
    }
    assert [name for name, chat in BUILTIN.items() if not chat.takes_system] == ["gemma2"]


def jinja(template: str, *, bos: str | None = "<s>", extra: dict[str, object] | None = None) -> JinjaChat:
    return from_jinja(template, bos_token=bos, eos_token="</s>", name="test", extra=extra)


PLAIN = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def test_a_jinja_template_renders_as_transformers_renders_it() -> None:
    chat = jinja(PLAIN)
    assert chat([SYSTEM, USER]) == "<s><system> Sys. <user> Hay.\n<assistant>"
    assert chat.notes == ()


def test_blocks_are_trimmed_and_loop_controls_and_generation_marks_are_understood() -> None:
    chat = jinja(
        "{% for m in messages %}\n"
        "    {% if m.role == 'tool' %}{% continue %}{% endif %}\n"
        "    {% generation %}\n"
        "{{ m.content }}|\n"
        "    {% endgeneration %}\n"
        "{% endfor %}\n"
    )
    assert chat([Message(role="user", content="a"), Message(role="tool", content="b")]) == "a|\n"


def test_tojson_keeps_characters_and_tools_are_none() -> None:
    chat = jinja("{{ {'k': messages[-1].content} | tojson }}{{ tools is none }}{{ x }}", extra={"x": 1})
    assert chat([Message(role="user", content="针<&>")]) == '{"k": "针<&>"}True1'


def test_a_template_with_todays_date_gives_the_same_bytes_every_day_and_says_so() -> None:
    template = "{{ strftime_now('%d %b %Y') }} " + PLAIN
    assert jinja(template)([USER]).startswith("26 Jul 2024 <s>")
    assert "date" in jinja(template).notes[0]
    assert jinja(template).dated
    chat = from_jinja(template, bos_token=None, eos_token=None, name="test", today=date(2026, 11, 18))
    assert chat([USER]).startswith("18 Nov 2026 <user>")


def test_a_refused_system_message_goes_in_front_of_the_users_text() -> None:
    chat = jinja(
        "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + PLAIN
    )
    assert chat([SYSTEM, USER]) == "<s><user> Sys. \n\n Hay.\n<assistant>"
    assert chat.merges_system
    assert "System role not supported" in chat.notes[0]


def test_a_dropped_system_message_is_noted() -> None:
    chat = jinja("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}")
    assert chat.notes == ("the template leaves the system message out",)


def test_a_template_that_wants_parts_gets_parts() -> None:
    chat = jinja("{% for m in messages %}{% for p in m.content %}{{ p['text'] + ';' }}{% endfor %}{% endfor %}")
    assert chat.parts
    assert chat([SYSTEM, USER]) == " Sys. ; Hay.\n;"


def test_a_bos_that_the_template_writes_twice_is_written_once_and_noted() -> None:
    chat = jinja("<s>" + PLAIN)
    assert chat([USER]).startswith("<s><user>")
    assert "twice" in chat.notes[0]


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{% if %}", "is broken in line 1"),
        ("\n\n{{ 'open", "is broken in line 3"),
        ("{{ nowhere.to_be_found }}", "failed: 'nowhere' is undefined"),
        ("{{ raise_exception('no\nthanks') }}", "refuses a user message: no"),
        ("hello", "leaves the user's text out"),
        ("{{ messages.__class__.__mro__ }}", "failed"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "more than 1000000 steps"),
        ("{{ 'x' * 999999999 }}", "repeats a text too often"),
        ("{{ 9 ** 9 ** 9 }}", "powers are not available"),
        ("{% for a in range(3000) %}{{ 'x' * 3000 }}{% endfor %}", "far more text"),
        ("{{ lipsum(99999) }}", "failed: 'lipsum' is undefined"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "failed: "),
        ("{% include 'x' %}", "failed: "),
        ("{{ messages.append(1) }}", "failed: "),
    ],
)
def test_a_bad_template_is_one_clear_line(template: str, problem: str) -> None:
    with pytest.raises(TokenizerError) as caught:
        jinja(template)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_refusal_at_a_later_call_is_a_tokenizer_error() -> None:
    chat = jinja("{% if messages|length > 2 %}{{ raise_exception('too long a talk') }}{% endif %}" + PLAIN)
    with pytest.raises(TokenizerError, match="test refuses these messages: too long a talk"):
        chat([SYSTEM, USER, REPLY, NEXT])


def write(folder: Path, **files: object) -> Path:
    for name, content in files.items():
        file, _, ending = name.rpartition("_")
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{file}.{ending}").write_text(text, encoding="utf-8")
    return folder


def test_a_folders_template_is_found_with_its_tokens(tmp_path: Path) -> None:
    write(tmp_path, tokenizer_config_json={"chat_template": "T", "bos_token": {"content": "<b>"}, "eos_token": "<e>"})
    found = find_template(tmp_path)
    assert found is not None
    assert (found.template, found.bos_token, found.eos_token, found.source) == (
        "T",
        "<b>",
        "<e>",
        "tokenizer_config.json",
    )


def test_the_template_file_goes_before_the_configuration(tmp_path: Path) -> None:
    write(tmp_path, tokenizer_config_json={"chat_template": "old"}, chat_template_jinja="new\n")
    found = find_template(tmp_path)
    assert found is not None
    assert (found.template, found.source, found.bos_token) == ("new\n", "chat_template.jinja", None)


def test_tokens_may_stand_in_the_special_tokens_map(tmp_path: Path) -> None:
    write(tmp_path, chat_template_json={"chat_template": "T"}, special_tokens_map_json={"bos_token": "<b>"})
    found = find_template(tmp_path)
    assert found is not None
    assert (found.bos_token, found.eos_token, found.source) == ("<b>", None, "chat_template.json")


def test_of_named_templates_the_default_is_taken(tmp_path: Path) -> None:
    named = [{"name": "tool_use", "template": "A"}, {"name": "default", "template": "B"}]
    found = find_template(write(tmp_path, tokenizer_config_json={"chat_template": named}))
    assert found is not None and found.template == "B"
    found = find_template(write(tmp_path, tokenizer_config_json={"chat_template": named[:1]}))
    assert found is not None and found.template == "A"
    with pytest.raises(TokenizerError, match="none of them is called 'default'"):
        find_template(write(tmp_path, tokenizer_config_json={"chat_template": {"a": "A", "b": "B"}}))


def test_a_folder_without_a_template_has_none(tmp_path: Path) -> None:
    assert find_template(tmp_path) is None
    assert find_template(tmp_path / "nowhere") is None
    assert find_template(write(tmp_path, tokenizer_config_json={"bos_token": None})) is None


@pytest.mark.parametrize(
    ("content", "problem"), [("{", "not valid JSON"), ("[]", "not a JSON object"), ("[" * 99999, "JSON")]
)
def test_a_broken_configuration_is_named(tmp_path: Path, content: str, problem: str) -> None:
    with pytest.raises(TokenizerError, match=f"tokenizer_config.json is {problem}|tokenizer_config.json.*{problem}"):
        find_template(write(tmp_path, tokenizer_config_json=content))


def test_a_template_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TokenizerError, match=r"chat_template\.jinja cannot be read"):
        find_template(tmp_path)


MARK = "\u2402mark\u2403"


def test_the_text_around_the_context_is_split_off() -> None:
    messages = [SYSTEM, Message(role="user", content=f"Q <text>{MARK}</text>")]
    assert split_at_context(BUILTIN["qwen3"], messages, MARK) == (
        "<|im_start|>system\n Sys. <|im_end|>\n<|im_start|>user\nQ <text>",
        "</text><|im_end|>\n<|im_start|>assistant\n",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [("nothing", "does not write"), (MARK * 2, "writes 2 times"), (f"<s><s>{MARK}", "writes <s> twice")],
)
def test_a_context_that_is_not_written_once_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(TokenizerError, match=problem):
        split_at_context(lambda messages: text, [USER], MARK, bos="<s>")
