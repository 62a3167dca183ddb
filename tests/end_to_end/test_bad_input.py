"""Whatever is wrong with what people give: one clear message, exit code 2, nothing on stdout, no file left behind."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import needlepoint
from needlepoint.cli import main

DATASET = "needle_haystack"
SENTENCE = "The lighthouse keeper of Orrin hides his spare key under the third flowerpot."
KEY = "sk-THIS-IS-SECRET-0123456789"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, prose: dict[str, Callable[..., str]]) -> Path:
    """Files of every kind that people hand over by mistake, and some good ones."""
    place = tmp_path_factory.mktemp("bad-input")
    english, chinese = prose["en"](900), prose["zh"](900)
    (place / "text.txt").write_text(english, "utf-8")
    (place / "held.txt").write_text(f"{english}{SENTENCE} {english}", "utf-8")
    (place / "pointless.txt").write_text(" ".join(["so it went on and on"] * 2_000), "utf-8")
    (place / "dots.txt").write_text("... " * 4_000, "utf-8")
    (place / "empty.txt").write_bytes(b"")
    (place / "blank.txt").write_text(" \n\t\n" * 50, "utf-8")
    (place / "binary.txt").write_bytes(bytes(range(256)) * 40)
    (place / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    (place / "damaged.txt").write_bytes(english.encode() + "naïve café, naïve café.".encode() + b"\xff" + b"end" * 9)
    (place / "riddle.txt").write_bytes(bytes(range(128, 256)) * 20)
    (place / "damaged.txt.gz").write_bytes(gzip.compress(english.encode())[:500])
    (place / "broken.jsonl").write_text('{"text": "One. Two."}\n{"text": \n', "utf-8")
    (place / "other.jsonl").write_text('{"body": "One. Two."}\n', "utf-8")
    (place / "numbers.jsonl").write_text('{"text": 5}\n', "utf-8")
    (place / "empty-folder").mkdir()
    (place / "pictures").mkdir()
    (place / "pictures" / "a.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    for name in ("one", "two"):
        (place / name).mkdir()
        (place / name / "same.txt").write_text(english, "utf-8")
    for name, files in {"canon": 2, "half": 1, "no-stop": 2, "blank": 2, "latin": 2}.items():
        (place / name).mkdir()
        texts = {"canon": english, "half": english, "no-stop": "so it went on " * 3_000, "blank": " ", "latin": "x"}
        (place / name / "PaulGraham_Essays.txt").write_text(texts[name], "utf-8")
        if files == 2:
            (place / name / "Journey_to_the_West.txt").write_text(chinese, "utf-8")
    (place / "latin" / "PaulGraham_Essays.txt").write_bytes("café ".encode("latin-1") * 900)
    _tokenizers(place)
    (place / "broken.jinja").write_text("{% for message in messages %}{{ message.content }}", "utf-8")
    (place / "raising.jinja").write_text("{{ raise_exception('only robots may talk') }}", "utf-8")
    (place / "failing.jinja").write_text("{{ messages[0].content + 1 }}", "utf-8")
    (place / "dropping.jinja").write_text("<start>{{ messages | length }}<end>", "utf-8")
    (place / "twice.jinja").write_text(
        "{% for m in messages %}{{ m.content }}{% endfor %}{{ messages[-1].content }}", "utf-8"
    )
    (place / "binary.jinja").write_bytes(b"\xff\xfe\x00{{")
    (place / "template.txt").write_text("Only a question: {question}", "utf-8")
    (place / "binary-template.txt").write_bytes(b"{context} \xff\xfe {question}")
    (place / "text.gguf").write_text("not a model at all", "utf-8")
    (place / "cut.gguf").write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(30))
    (place / "out-folder").mkdir()
    return place


def _tokenizers(place: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    bare = Tokenizer(models.BPE(vocab={char: n for n, char in enumerate(_bytes())}, merges=[]))
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    chats = {
        "bare": None,
        "broken-chat": "{% if",
        "named-chat": [{"name": name, "template": name} for name in ("rag", "tools")],
    }
    for name, chat in chats.items():
        (place / name).mkdir()
        bare.save(str(place / name / "tokenizer.json"))
        if chat is not None:
            (place / name / "tokenizer_config.json").write_text(json.dumps({"chat_template": chat}), "utf-8")
    (place / "bad-config").mkdir()
    bare.save(str(place / "bad-config" / "tokenizer.json"))
    (place / "bad-config" / "tokenizer_config.json").write_text("[1, 2", "utf-8")
    (place / "broken-tokenizer").mkdir()
    (place / "broken-tokenizer" / "tokenizer.json").write_text('{"version": "1.0", "model": ', "utf-8")
    (place / "not-tokenizer.json").write_text('{"hello": "world"}', "utf-8")


def _bytes() -> list[str]:
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


@dataclass(frozen=True)
class Case:
    name: str
    argv: tuple[str, ...]
    says: tuple[str, ...]
    notes: int = 0
    """Messages that may come before: what was skipped, what is used instead."""


EXACT = ("prompts", "--corpus", "{ws}/text.txt", "--lengths", "1k", "--depths", "50")
ANY_TEXT = ("prompts", "--lengths", "1k", "--depths", "50")
PARITY = ("prompts", "--datasets", DATASET)


def exact(name: str, *argv: str, says: Sequence[str]) -> Case:
    return Case(name, (*EXACT, *argv), tuple(says))


def corpus(name: str, *argv: str, says: Sequence[str], notes: int = 0) -> Case:
    return Case(name, (*ANY_TEXT, *argv), tuple(says), notes)


def parity(name: str, *argv: str, says: Sequence[str], **arguments: Any) -> Case:
    """EvalScope's dataset, with dataset arguments; extra parameters are those of `extra`."""
    extra = arguments.pop("extra", None)
    given = {"local_path": "{ws}/canon", **arguments, **({} if extra is None else {"extra_params": extra})}
    return Case(name, (*PARITY, "--dataset-args", json.dumps({DATASET: given}), *argv), tuple(says))


def raw(name: str, text: str, *, says: Sequence[str]) -> Case:
    return Case(name, (*PARITY, "--dataset-args", text), tuple(says))


def command(name: str, *argv: str, says: Sequence[str], notes: int = 0) -> Case:
    return Case(name, argv, tuple(says), notes)


COMMAND_LINE = [
    command("unknown command", "prmpts", says=["prmpts", "Did you mean 'prompts'"]),
    command("no verb of assets", "assets", says=["Missing command", "list, fetch, clear", "needlepoint assets --help"]),
    command("unknown asset", "assets", "fetch", "sotuu", says=["'sotuu'", "Did you mean 'sotu'"]),
    command("unknown asset to clear", "assets", "clear", "sangou", says=["'sangou'", "Did you mean 'sanguo'"]),
    command("nothing to fetch", "assets", "fetch", says=["NAME", "needlepoint assets fetch --help"]),
    command("a good and an unknown asset", "assets", "fetch", "sotu", "nosuch", says=["'nosuch'", "Known: sotu"]),
    exact("unknown flag", "--lenghts", "4k", says=["--lenghts", "Did you mean '--lengths'", "prompts --help"]),
    exact("EvalScope's flag of another verb", "--api-url", "http://x/v1", says=["--api-url", "prompts --help"]),
    exact("single dash", "-lengths", "4k", says=["There is no option -l."]),
    exact("flag without value", "--seed", says=["--seed", "requires an argument"]),
    exact("value for a switch", "--verify=yes", says=["--verify", "does not take a value"]),
    exact("stray word", "english", says=["unexpected extra argument", "english", "prompts --help"]),
    exact("unknown format", "--format", "openai_batch", says=["'openai_batch'", "Did you mean 'openai-batch'"]),
    exact("batch without model", "--format", "openai-batch", says=["--model"]),
    command("batch without file", *EXACT, "--format", "openai-batch", "--model", "gpt-4o", says=["--out FILE"]),
    command("two results for stdout", *EXACT, "--json", "--out", "-", says=["--json", "--out -"]),
]

NUMBERS = [
    exact("limit 0", "--limit", "0", says=["--limit 0", "1 or more"]),
    exact("limit -1", "--limit", "-1", says=["--limit -1", "1 or more"]),
    exact("limit 1.5", "--limit", "1.5", says=["--limit 1.5", "share"]),
    exact("limit 10.0", "--limit", "10.0", says=["--limit 10.0", "Did you mean 10?"]),
    exact("limit nan", "--limit", "nan", says=["--limit", "finite"]),
    exact("limit inf", "--limit", "1e999", says=["--limit", "finite"]),
    exact("limit abc", "--limit", "abc", says=["--limit", "must be a number", "'abc'"]),
    exact("limit too small a share", "--limit", "0.001", says=["--limit 0.001", "keeps nothing"]),
    exact("replicates 0", "--replicates", "0", says=["--replicates", "from 1 to 10,000", "not 0"]),
    exact("replicates -3", "--replicates", "-3", says=["--replicates", "not -3"]),
    exact("replicates text", "--replicates", "two", says=["--replicates", "whole number", "'two'"]),
    exact("repeats huge", "--repeats", "9" * 12, says=["--repeats", "from 1 to 10,000"]),
    exact("repeats of 5,000 digits", "--repeats", "9" * 5000, says=["--repeats", "whole number"]),
    exact("repeats 1.5", "--repeats", "1.5", says=["--repeats", "whole number", "1.5"]),
    exact("seed text", "--seed", "lucky", says=["--seed", "whole number", "'lucky'"]),
    exact("seed huge", "--seed", "1" + "0" * 30, says=["--seed", "must be from"]),
    exact("max tokens 0", "--max-tokens", "0", says=["--max-tokens", "not 0"]),
    exact("needle count 0", "--needle-set", "number", "--needle-count", "0", says=["--needle-count", "not 0"]),
    exact("needle count huge", "--needle-set", "word", "--needle-count", "1001", says=["--needle-count", "1,000"]),
    exact("needle count without a drawn set", "--needle-count", "2", says=["--needle-count", "--needle-set"]),
]

GRID = [
    exact("length 0", "--lengths", "0", says=["--lengths", "'0'", "at least 1 token"]),
    exact("length negative", "--lengths", "-5", says=["--lengths", "negative"]),
    exact("length NaN", "--lengths", "nan", says=["--lengths", "finite"]),
    exact("length text", "--lengths", "long", says=["--lengths", "'long'", "Accepted"]),
    exact("length empty", "--lengths", "", says=["--lengths", "no length"]),
    exact("length list with a gap", "--lengths", "1k,,4k", says=["--lengths", "empty"]),
    exact("length fraction", "--lengths", "1.0005k", says=["--lengths", "not a whole number of tokens"]),
    exact("length unit", "--lengths", "4g", says=["--lengths", "'4g'"]),
    exact("length beyond all", "--lengths", "2000m", says=["--lengths", "1,000,000,000"]),
    exact("range min > max", "--lengths", "32k:1k:5", says=["--lengths", "32k > 1k"]),
    exact("range of two parts", "--lengths", "1k:32k", says=["--lengths", "three or four parts"]),
    exact("range count 0", "--lengths", "1k:32k:0", says=["--lengths", "count 0"]),
    exact("range count text", "--lengths", "1k:32k:many", says=["--lengths", "'many'"]),
    exact("range spacing", "--lengths", "1k:32k:5:lgo", says=["--lengths", "Did you mean 'log'"]),
    exact("depth 101", "--depths", "101", says=["--depths", "'101'", "0 to 100"]),
    exact("depth -1", "--depths", "-1", says=["--depths", "'-1'", "0 to 100"]),
    exact("depth NaN", "--depths", "NaN", says=["--depths", "finite"]),
    exact("depth text", "--depths", "deep", says=["--depths", "'deep'"]),
    exact("depth logarithmic", "--depths", "0:100:5:log", says=["--depths", "log spacing is for lengths"]),
    exact("grid of millions", "--lengths", "1k:90k:5000", "--depths", "0:100:5000", says=["25,000,000 cells"]),
    exact("length shorter than the needle", "--lengths", "60", says=["60 tokens", "no room", "shortest"]),
    exact("unknown length mode", "--length-mode", "exakt", says=["--length-mode", "'exakt'", "Did you mean 'exact'"]),
    parity("shorter than the needle", extra={"context_lengths_min": 100}, says=["100", "leaves no text"]),
    parity("min > max", extra={"context_lengths_min": 4000, "context_lengths_max": 1000}, says=["4000", "above"]),
    parity("depth min > max", extra={"document_depth_percent_min": 60, "document_depth_percent_max": 40}, says=["60"]),
    parity("negative length", extra={"context_lengths_min": -1}, says=["context_lengths_min=-1", "0 to"]),
    parity("zero length", extra={"context_lengths_min": 0}, says=["context_lengths_min=0"]),
    parity("zero intervals", extra={"context_lengths_num_intervals": 0}, says=["context_lengths_num_intervals=0"]),
    parity("zero depth intervals", extra={"document_depth_percent_intervals": 0}, says=["intervals=0", "1 to"]),
    parity("half an interval", extra={"context_lengths_num_intervals": 2.5}, says=["2.5", "whole number"]),
    parity("seed's depth 101", extra={"document_depth_percent_max": 101}, says=["document_depth_percent_max=101"]),
    parity("huge number", extra={"context_lengths_max": 10**40}, says=["context_lengths_max", "outside the range"]),
    parity("number as text", extra={"context_lengths_min": "1000"}, says=["context_lengths_min", "number", "'1000'"]),
    parity("true for a number", extra={"context_lengths_max": True}, says=["context_lengths_max", "True"]),
    parity("list for a number", extra={"context_lengths_max": [1000, 2000]}, says=["context_lengths_max", "[1000,"]),
]

JSON_TEXTS = [
    raw("no JSON", "needle_haystack", says=["--dataset-args", "not valid JSON", "character 1"]),
    raw("empty JSON", "", says=["--dataset-args", "not valid JSON"]),
    raw("cut JSON", '{"needle_haystack": {"subset_list": ["english"', says=["not valid JSON", "['english"[2:]]),
    raw("Python's quotes", "{'needle_haystack': {}}", says=["not valid JSON", "character 2"]),
    raw("trailing comma", '{"needle_haystack": {},}', says=["not valid JSON"]),
    raw("a list", "[1, 2]", says=["--dataset-args", "JSON object", "[1, 2]"]),
    raw("a text", '"english"', says=["--dataset-args", "JSON object", "'english'"]),
    raw("null", "null", says=["--dataset-args"]),
    raw("NaN", '{"needle_haystack": {"extra_params": {"context_lengths_min": NaN}}}', says=["NaN"]),
    raw("Infinity", '{"needle_haystack": {"extra_params": {"context_lengths_max": Infinity}}}', says=["Infinity"]),
    raw("1e999", '{"needle_haystack": {"extra_params": {"context_lengths_max": 1e999}}}', says=["finite"]),
    raw(
        "thousands of digits",
        '{"needle_haystack": {"extra_params": {"context_lengths_max": %s}}}' % ("9" * 5000),
        says=["thousands of digits"],
    ),
    raw("nested too deeply", "[" * 100_000, says=["--dataset-args", "nested too deeply"]),
    raw("unknown dataset", '{"needle_haystak": {}}', says=["'needle_haystak'", "Did you mean 'needle_haystack'"]),
    raw("list for a dataset's arguments", '{"needle_haystack": []}', says=["needle_haystack", "JSON object", "[]"]),
    raw("number for them", '{"needle_haystack": 5}', says=["needle_haystack", "JSON object", "5"]),
    raw("half a surrogate pair", '{"needle_haystack": {"system_prompt": "\\ud800"}}', says=["system_prompt", "broken"]),
    parity(
        "unknown key", subset_lists=["english"], says=["'dataset_args.needle_haystack.subset_lists'", "subset_list'"]
    ),
    parity("unknown extra key", extra={"context_length_min": 5}, says=["Did you mean 'context_lengths_min'"]),
    parity("key of an inner level", context_lengths_max=2000, says=["context_lengths_max", "extra_params"]),
    parity("key of an outer level", extra={"subset_list": ["english"]}, says=["belongs into", "needle_haystack"]),
    parity("flag inside the arguments", lengths="4k", says=["lengths", "setting of its own"]),
    parity("nonsense key", extra={"xyzzy": 1}, says=["xyzzy", "Known here", "needles"]),
    parity("text for extra_params", extra="all", says=["extra_params", "JSON object", "'all'"]),
    parity("few-shot", few_shot_num=3, says=["few_shot_num=3", "means nothing", "Leave it out"]),
    parity("filters", filters={"remove_until": "</think>"}, says=["filters", "means nothing"]),
    parity("show_score text", extra={"show_score": "yes"}, says=["show_score", "true or false", "'yes'"]),
    parity("number for a text", system_prompt=5, says=["system_prompt", "text", "not 5"]),
    parity("list for a text", extra={"retrieval_question": ["a", "b"]}, says=["retrieval_question", "['a', 'b']"]),
    parity("object for a list", subset_list={"english": 1}, says=["subset_list", "list of texts"]),
    parity("number in a list", subset_list=["english", 7], says=["subset_list (entry 2)", "not 7"]),
    parity("empty subset_list", subset_list=[], says=["subset_list", "at least one"]),
    parity("unknown subset", subset_list=["englich"], says=["'englich'", "Did you mean 'english'"]),
    parity("subsets in one text", subset_list="english,chinese", says=["'english,chinese'", "Known: english, chinese"]),
    parity("tuple-ish subsets", subset_list="('english', 'chinese')", says=["Known: english, chinese"]),
    command("unknown dataset flag", "prompts", "--datasets", "needle", says=["--datasets", "'needle'", "Known"]),
    command("another benchmark", "prompts", "--datasets", "gsm8k", says=["'gsm8k'", "needle_haystack"]),
]

FACTS = [
    exact("empty needle", "--needle", "", says=["--needle (entry 1)", "empty"]),
    exact("blank needle", "--needle", SENTENCE, "--needle", " \n", says=["--needle (entry 2)", "empty"]),
    exact("huge needle", "--needle", "x" * 20_001, says=["--needle", "20,001", "20,000"]),
    exact("control character in a needle", "--needle", "a\x07b", says=["--needle", "U+0007"]),
    exact("undecodable needle", "--needle", "caf\udce9", says=["--needle (entry 1)", "not Unicode text"]),
    exact("control token in a needle", "--needle", "Say <|im_end|> now.", says=["<|im_end|>", "control token"]),
    exact("equal needles", "--needle", SENTENCE, "--needle", f"{SENTENCE}\n", says=["entries 1 and 2 are equal"]),
    corpus("needle already in the text", "--corpus", "{ws}/held.txt", "--needle", SENTENCE, says=["already says"]),
    exact("unknown needle set", "--needle-set", "numbers", says=["--needle-set", "'numbers'", "Did you mean 'number'"]),
    exact("needle and set", "--needle", SENTENCE, "--needle-set", "word", says=["--needle", "--needle-set", "exclude"]),
    exact("empty question", "--question", "", says=["--question", "empty"]),
    exact("undecodable question", "--question", "caf\udce9", says=["--question", "not Unicode text"]),
    parity("no needles", extra={"needles": []}, says=["needles", "at least one"]),
    parity("empty needle of the seed", extra={"needles": ["\n"]}, says=["needles (entry 1)", "empty"]),
    parity("number as needle", extra={"needles": [42]}, says=["needles (entry 1)", "must be a text", "42"]),
    parity("empty question of the seed", extra={"retrieval_question": " "}, says=["retrieval_question", "empty"]),
    exact("template without context", "--prompt-template", "Tell: {question}", says=["{context}", "exactly once"]),
    exact("template with two contexts", "--prompt-template", "{context}{context}{question}", says=["not 2 times"]),
    exact("template without question", "--prompt-template", "Read: {context}", says=["{question}"]),
    exact(
        "unknown placeholder",
        "--prompt-template",
        "{context}{questoin}",
        says=["{questoin}", "Did you mean 'question'"],
    ),
    exact("stray brace", "--prompt-template", "{context} } {question}", says=["prompt template", "{{ and }}"]),
    exact("positional placeholder", "--prompt-template", "{} {context} {question}", says=["prompt template"]),
    exact("attribute of a placeholder", "--prompt-template", "{context.x} {question}", says=["prompt template"]),
    exact("template file without context", "--prompt-template", "{ws}/template.txt", says=["{context}"]),
    exact("template file missing", "--prompt-template", "{ws}/nosuch.txt", says=["nosuch.txt", "--prompt-template"]),
    exact(
        "template file binary", "--prompt-template", "{ws}/binary-template.txt", says=["binary-template.txt", "read"]
    ),
    exact("system prompt file missing", "--system-prompt", "{ws}/nosuch.md", says=["nosuch.md", "--system-prompt"]),
    parity("seed's template without context", prompt_template="{question}", says=["{context}"]),
]

CORPORA = [
    corpus("missing file", "--corpus", "{ws}/txet.txt", says=["txet.txt", "Did you mean"]),
    corpus("unknown name", "--corpus", "embeded", says=["'embeded'", "Did you mean 'embedded'"]),
    corpus("empty name", "--corpus", "", says=["no file"]),
    corpus("no such home", "--corpus", "~nosuchuser/x.txt", says=["~nosuchuser/x.txt"]),
    corpus("empty file", "--corpus", "{ws}/empty.txt", says=["empty.txt", "empty"]),
    corpus("blank file", "--corpus", "{ws}/blank.txt", says=["blank.txt", "empty"]),
    corpus("binary file", "--corpus", "{ws}/binary.txt", says=["binary.txt", "not a text"]),
    corpus("picture", "--corpus", "{ws}/picture.txt", says=["picture.txt", "a picture"]),
    corpus("device", "--corpus", "/dev/null", says=["/dev/null", "not a text"]),
    corpus("device without end", "--corpus", "/dev/zero", says=["/dev/zero", "not a text"]),
    corpus("damaged UTF-8", "--corpus", "{ws}/damaged.txt", says=["damaged.txt", "0xff"]),
    corpus("unclear encoding", "--corpus", "{ws}/riddle.txt", says=["riddle.txt", "--encoding"]),
    corpus("wrong encoding", "--corpus", "{ws}/damaged.txt", "--encoding", "utf-8", says=["damaged.txt"]),
    corpus("unknown encoding", "--corpus", "{ws}/text.txt", "--encoding", "utf-9", says=["'utf-9'", "encoding"]),
    corpus("encoding of no text", "--corpus", "{ws}/text.txt", "--encoding", "base64", says=["'base64'"]),
    corpus("damaged gzip", "--corpus", "{ws}/damaged.txt.gz", says=["damaged.txt.gz", "gzip"]),
    corpus("broken JSONL", "--corpus", "{ws}/broken.jsonl", says=["broken.jsonl, line 2", "not JSON"]),
    corpus("JSONL without the field", "--corpus", "{ws}/other.jsonl", says=["line 1", "'text'", "body", "PATH#field"]),
    corpus("JSONL with numbers", "--corpus", "{ws}/numbers.jsonl", says=["line 1", "no text in field 'text'"]),
    corpus("JSONL field unnamed", "--corpus", "{ws}/other.jsonl#", says=["names no field"]),
    corpus("empty folder", "--corpus", "{ws}/empty-folder", says=["empty-folder", "no text file"]),
    corpus("folder of pictures", "--corpus", "{ws}/pictures", notes=1, says=["pictures", "text"]),
    corpus("glob of nothing", "--corpus", "{ws}/*.rst", says=["*.rst", "No file matches"]),
    corpus(
        "two of one name", "--corpus", "{ws}/one/same.txt", "--corpus", "{ws}/two/same.txt", says=["'same'", "NAME="]
    ),
    corpus("name for two texts", "--corpus", "mine=embedded", says=["'embedded'", "two subsets"]),
    corpus("only dots", "--corpus", "{ws}/dots.txt", "--length-mode", "evalscope", says=["no full stop"]),
    exact("no full stop", "--corpus", "{ws}/pointless.txt", "--length-mode", "evalscope", says=["no full stop"]),
    parity("seed's text without a full stop", local_path="{ws}/no-stop", says=["no full stop", "--length-mode exact"]),
    parity("seed's text blank", local_path="{ws}/blank", says=["PaulGraham_Essays.txt", "empty"]),
    parity("seed's text in Latin-1", local_path="{ws}/latin", says=["PaulGraham_Essays.txt", "not UTF-8"]),
    parity("local_path missing", local_path="{ws}/nowhere", says=["nowhere", "does not exist", "PaulGraham"]),
    parity("local_path a file", local_path="{ws}/text.txt", says=["text.txt", "not a folder"]),
    parity("local_path lacks a file", local_path="{ws}/half", says=["Journey_to_the_West.txt", "half"]),
    parity("dataset_id of odd shape", local_path=None, dataset_id="corpus", says=["'corpus'", "owner/name"]),
    parity("unknown dataset_id offline", local_path=None, dataset_id="me/mine", says=["me/mine", "local_path"]),
    command("offline, nothing cached", *PARITY, says=["NEEDLEPOINT_OFFLINE", "local_path", "--corpus"]),
    command("canonical offline", *ANY_TEXT, "--corpus", "canonical", says=["NEEDLEPOINT_OFFLINE", "--corpus"]),
    command("embedded offline", *ANY_TEXT, "--corpus", "sotu", says=["sotu", "NEEDLEPOINT_OFFLINE"]),
    command("dataset-dir empty", *PARITY, "--dataset-dir", "{ws}/empty-folder", says=["NEEDLEPOINT_OFFLINE"]),
    exact("subset that the corpora lack", "--dataset-args", '{"needle_haystack": {"subset_list": ["english"]}}', says=[
        "'english'", "Known: text"
    ]),
]  # fmt: skip

TOKENIZERS = [
    exact("unknown tokenizer", "--tokenizer", "qwn3", says=["'qwn3'", "Did you mean 'qwen3'"]),
    exact("empty tokenizer", "--tokenizer", "", says=["--tokenizer", "empty"]),
    exact("unknown hub id offline", "--tokenizer", "Qwen/Qwen9-1B", says=["Qwen9-1B", "NEEDLEPOINT_OFFLINE"]),
    exact("tokenizer file missing", "--tokenizer", "{ws}/no/tokenizer.json", says=["no/tokenizer.json"]),
    exact("no such home for it", "--tokenizer", "~nosuchuser/tokenizer.json", says=["~nosuchuser"]),
    exact("folder without a tokenizer", "--tokenizer", "{ws}/empty-folder", says=["empty-folder", "tokenizer.json"]),
    exact("broken tokenizer", "--tokenizer", "{ws}/broken-tokenizer", says=["broken-tokenizer", "not a usable"]),
    exact("another JSON file", "--tokenizer", "{ws}/not-tokenizer.json", says=["not-tokenizer.json", "not a usable"]),
    exact("no chat template", "--tokenizer", "{ws}/bare", says=["'bare'", "--chat-template"]),
    exact("broken chat template", "--tokenizer", "{ws}/broken-chat", says=["broken-chat", "line 1"]),
    exact("no default template", "--tokenizer", "{ws}/named-chat", says=["default"]),
    exact(
        "broken tokenizer_config", "--tokenizer", "{ws}/bad-config", says=["tokenizer_config.json", "not valid JSON"]
    ),
    exact("unknown chat template", "--chat-template", "qwen-3", says=["'qwen-3'", "Did you mean 'qwen3'"]),
    exact("chat template a folder", "--chat-template", "{ws}/empty-folder", says=["empty-folder", "chat template"]),
    exact("template syntax", "--chat-template", "{ws}/broken.jinja", says=["broken.jinja", "line 1"]),
    exact("template refuses", "--chat-template", "{ws}/raising.jinja", says=["raising.jinja", "only robots may talk"]),
    exact("template fails", "--chat-template", "{ws}/failing.jinja", says=["failing.jinja", "failed"]),
    exact(
        "template drops the text", "--chat-template", "{ws}/dropping.jinja", says=["dropping.jinja", "leaves", "out"]
    ),
    exact("template doubles the text", "--chat-template", "{ws}/twice.jinja", says=["2 times", "once"]),
    exact("template without end", "--chat-template", "/dev/zero", says=["/dev/zero", "not a file"]),
    exact("template binary", "--chat-template", "{ws}/binary.jinja", says=["binary.jinja", "UTF-8"]),
    exact("server refuses", "--tokenizer", "http://127.0.0.1:9/v1", "--api-key", KEY, says=["127.0.0.1:9"]),
    exact("server's address odd", "--tokenizer", "http://", says=["http://host:port"]),
    exact("server's port odd", "--tokenizer", "http://localhost:port/v1", "--api-key", KEY, says=["http://host:port"]),
    exact("password in the address", "--tokenizer", f"http://me:{KEY}@127.0.0.1:9/v1", says=["127.0.0.1:9"]),
    exact("unprintable key", "--api-key", f"{KEY}\n", says=["--api-key", "printable"]),
    exact("GGUF missing", "--tokenizer", "{ws}/nosuch.gguf", says=["nosuch.gguf", "no file"]),
    exact("not a GGUF", "--tokenizer", "{ws}/text.gguf", says=["text.gguf", "not a GGUF"]),
    exact("GGUF cut off", "--tokenizer", "{ws}/cut.gguf", says=["cut.gguf"]),
    exact("GGUF a folder", "--tokenizer", "{ws}/empty.gguf/", says=["empty.gguf"]),
    exact("smollm2 offline", "--tokenizer", "smollm2", says=["smollm2", "NEEDLEPOINT_OFFLINE"]),
    parity("tokenizer_path number", extra={"tokenizer_path": 3}, says=["tokenizer_path", "not 3"]),
    parity("tokenizer_path unknown", extra={"tokenizer_path": "qwn3"}, says=["'qwn3'", "Did you mean"]),
    parity("BOS in the middle", extra={"tokenizer_path": "llama3"}, says=["BOS", "--length-mode exact"]),
]

OUTPUTS = [
    command("out is a folder", *EXACT, "--out", "{ws}/out-folder", says=["out-folder", "folder"]),
    command("out in a missing folder", *EXACT, "--out", "{ws}/nowhere/o.jsonl", says=["nowhere", "Make it first"]),
    command("out below a file", *EXACT, "--out", "{ws}/text.txt/o.jsonl", says=["text.txt"]),
    command("out where none may write", *EXACT, "--out", "/proc/o.jsonl", says=["/proc/o.jsonl", "--out"]),
    command("out has no name", *EXACT, "--out", "", says=["--out ''"]),
    command("out of too long a name", *EXACT, "--out", "{ws}/" + "n" * 300, says=["too long"]),
    command(
        "out on a full device", *EXACT, "--out", "/dev/full", says=["/dev/full", "No space left", "Nothing was kept"]
    ),
    command("out is the corpus", *EXACT, "--out", "{ws}/text.txt", says=["text.txt", "Choose another"]),
]

IMPORTS = [
    command("nothing to import", "import", says=["FILE", "needlepoint import --help"]),
    command("import of a missing file", "import", "{ws}/nowhere.jsonl", says=["nowhere.jsonl", "does not exist"]),
    command("import of an empty file", "import", "{ws}/empty.txt", says=["empty.txt is empty"]),
    command("import of an empty folder", "import", "{ws}/empty-folder", says=["holds no results", ".jsonl"]),
    command("import of prose", "import", "{ws}/text.txt", says=["text.txt, line 1", "no JSON"]),
    command("import of a binary file", "import", "{ws}/binary.txt", says=["binary.txt", "not UTF-8"]),
    command("import of a cut line", "import", "{ws}/broken.jsonl", says=["broken.jsonl, line 1", "no result"]),
    command("import of other rows", "import", "{ws}/other.jsonl", says=["line 1", "score grids"]),
    command("scale backwards", "import", "{ws}/other.jsonl", "--scale", "10:1", says=["--scale", "1:10", "'10:1'"]),
    command("scale of one number", "import", "{ws}/other.jsonl", "--scale", "10", says=["--scale", "'10'"]),
    command("scale of words", "import", "{ws}/other.jsonl", "--scale", "a:b", says=["--scale", "'a:b'"]),
    command("unit of depths", "import", "{ws}/other.jsonl", "--depth-unit", "m", says=["percent or fraction", "'m'"]),
    command("an empty model", "import", "{ws}/other.jsonl", "--model", "", says=["--model is empty"]),
    command("unknown flag of import", "import", "x", "--work", "o", says=["--work", "Did you mean '--work-dir'"]),
]

CASES = [*COMMAND_LINE, *NUMBERS, *GRID, *JSON_TEXTS, *FACTS, *CORPORA, *TOKENIZERS, *OUTPUTS, *IMPORTS]


def arguments(case: Case, workspace: Path, out: Path) -> list[str]:
    argv = [argument.replace("{ws}", str(workspace)) for argument in case.argv]
    if "prompts" in argv and "--out" not in argv and not (case.name == "batch without file" or argv[-1] == "--seed"):
        argv[1:1] = ["--out", str(out)]
    return argv


def files_below(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*")}


def check(case: Case, stderr: str, workspace: Path) -> None:
    *notes, stderr = re.split("^(?=needlepoint: )", stderr, flags=re.MULTILINE)[1:]
    assert len(notes) == case.notes
    lines = stderr.rstrip("\n").split("\n")
    assert stderr.startswith("needlepoint: ") and stderr.endswith("\n"), stderr
    assert len(lines) <= 3, stderr
    assert stderr.count("needlepoint: ") == 1, stderr
    assert "Traceback" not in stderr and "should not happen" not in stderr
    assert "Usage:" not in stderr and "pydantic" not in stderr
    assert KEY not in stderr
    assert all(len(line) < 600 for line in lines), stderr
    for words in case.says:
        assert words.replace("{ws}", str(workspace)) in stderr, stderr


def test_the_table_is_as_large_as_it_claims() -> None:
    assert len(CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.fixture
def in_process(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    def run(*argv: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["needlepoint", *argv])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert isinstance(code, int)
        return code, *capfd.readouterr()

    return run


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_a_mistake_gives_one_message_and_leaves_nothing(
    case: Case, workspace: Path, tmp_path: Path, in_process: Callable[..., tuple[int, str, str]]
) -> None:
    out = tmp_path / "prompts.jsonl"
    before = files_below(workspace)
    corpus = (workspace / "text.txt").read_bytes()
    code, stdout, stderr = in_process(*arguments(case, workspace, out))
    check(case, stderr, workspace)
    assert (code, stdout) == (2, "")
    assert files_below(workspace) == before
    assert not files_below(tmp_path)
    assert (workspace / "text.txt").read_bytes() == corpus


@pytest.mark.parametrize("field", ["few_shot_num", "shuffle", "filters"])
def test_evalscope_arguments_that_ask_for_nothing_are_taken(
    field: str, workspace: Path, in_process: Callable[..., tuple[int, str, str]]
) -> None:
    given = {DATASET: {"local_path": str(workspace / "canon"), field: 0, "subset_list": "english"}}
    code, stdout, _ = in_process(*PARITY, "--dataset-args", json.dumps(given), "--limit", "2", "--json")
    assert code == 0
    assert json.loads(stdout)["total"]["samples"] == 2


def test_an_existing_file_survives_a_failure(
    workspace: Path, tmp_path: Path, in_process: Callable[..., tuple[int, str, str]]
) -> None:
    out = tmp_path / "prompts.jsonl"
    out.write_text("of yesterday", "utf-8")
    code, _, _ = in_process(
        *[a.replace("{ws}", str(workspace)) for a in EXACT], "--lengths", "1k,60", "--out", str(out)
    )
    assert code == 2
    assert out.read_text("utf-8") == "of yesterday"
    assert files_below(tmp_path) == {out}


def test_an_unwritable_cache_is_told(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, in_process: Callable[..., tuple[int, str, str]]
) -> None:
    monkeypatch.setenv("NEEDLEPOINT_CACHE", str(workspace / "text.txt" / "cache"))
    monkeypatch.delenv("NEEDLEPOINT_OFFLINE")
    code, stdout, stderr = in_process("prompts", "--lengths", "1k", "--depths", "50", "--corpus", "sotu")
    assert (code, stdout) == (2, "")
    assert stderr.count("needlepoint: ") == 1 and "NEEDLEPOINT_CACHE" in stderr and "text.txt" in stderr


def test_a_mistake_of_our_own_is_one_message_too_and_debug_shows_where(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, in_process: Callable[..., tuple[int, str, str]]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a wheel\ncame off")

    monkeypatch.setattr("needlepoint.commands.prompts.plan_prompts", broken)
    argv = [argument.replace("{ws}", str(workspace)) for argument in EXACT]
    code, stdout, stderr = in_process(*argv)
    assert (code, stdout) == (3, "")
    assert "RuntimeError: a wheel came off" in stderr and "--debug" in stderr and len(stderr.splitlines()) == 2
    monkeypatch.setattr(sys, "argv", ["needlepoint", *argv, "--debug"])
    with pytest.raises(RuntimeError):
        main()


# --- from Python ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"lenghts": "4k"}, "Did you mean 'lengths'"),
        ({"lengths": True}, "--lengths"),
        ({"lengths": float("nan")}, "finite"),
        ({"lengths": [1000, "x"]}, "'x'"),
        ({"seed": 1.0}, "--seed: must be a whole number"),
        ({"limit": "10"}, "--limit: must be a number, not '10'"),
        ({"limit": float("nan")}, "finite"),
        ({"needle": 5}, "--needle: must be a text or a list"),
        ({"corpus": []}, "--corpus: must name at least one"),
        ({"verify": 1}, "--verify: must be true or false, not 1"),
        ({"api_key": 12345}, "--api-key: must be a text"),
        ({"model": ""}, "--model: must not be empty"),
        ({"layout": "clasic"}, "Did you mean 'classic'"),
        ({"dataset_args": {1: {}}}, "unknown dataset 1"),
        ({"dataset_args": {DATASET: {"extra_params": {"needles": "a\ud800"}}}}, "not Unicode text"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_python_gets_the_same_messages(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(needlepoint.NeedlepointError) as raised:
        needlepoint.prompts(**settings)
    assert says in str(raised.value)
    assert raised.value.exit_code == 2
    assert "12345" not in str(raised.value)


# --- as a process of its own ------------------------------------------------------------------------------------------


@pytest.fixture
def in_subprocess(tmp_path: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    def run(*argv: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "needlepoint.cli", *argv],
            text=True,
            cwd=tmp_path,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
        )

    yield run


REALLY_RUN = ("unknown flag", "cut JSON", "depth 101", "binary file", "no chat template", "out on a full device")


@pytest.mark.parametrize("case", [case for case in CASES if case.name in REALLY_RUN], ids=lambda case: case.name)
def test_a_real_process_says_and_returns_the_same(
    case: Case, workspace: Path, tmp_path: Path, in_subprocess: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = in_subprocess(*arguments(case, workspace, tmp_path / "o.jsonl"))
    check(case, done.stderr, workspace)
    assert (done.returncode, done.stdout) == (2, "")
    assert not files_below(tmp_path)


def test_a_disk_that_fills_up_leaves_nothing(
    workspace: Path, tmp_path: Path, in_subprocess: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    argv = [argument.replace("{ws}", str(workspace)) for argument in EXACT]
    done = in_subprocess(*argv, "--lengths", "8k,16k,32k", "--out", "o.jsonl", preexec_fn=small_disk)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("needlepoint: Cannot write ") and "o.jsonl: File too large" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not files_below(tmp_path)


@pytest.mark.parametrize("result", [["--json"], ["--out", "-"], []], ids=["json", "prompts", "tables"])
def test_a_standard_output_that_takes_nothing_is_told(
    result: list[str], workspace: Path, in_subprocess: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    argv = [argument.replace("{ws}", str(workspace)) for argument in EXACT]
    with Path("/dev/full").open("w") as full:
        done = in_subprocess(*argv, *result, stdout=full)
    assert done.returncode == 2
    assert "standard output" in done.stderr and "No space left" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_closed_streams_do_no_harm(
    workspace: Path, tmp_path: Path, in_subprocess: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    argv = [argument.replace("{ws}", str(workspace)) for argument in EXACT]
    done = in_subprocess(*argv, "--out", "o.jsonl", preexec_fn=lambda: (os.close(1), os.close(2)))
    assert done.returncode == 0
    assert len((tmp_path / "o.jsonl").read_text("utf-8").splitlines()) == 1
