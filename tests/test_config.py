"""Settings: what is taken, in which forms, and what they mean together. (What is refused: test_bad_input.py.)"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from needlepoint.config import DATASETS, DatasetArgs, ExtraParams, PromptsConfig
from needlepoint.errors import InputError, UsageError
from needlepoint.plan.prompt import PROMPT_TEMPLATE, SYSTEM_PROMPT


def config(**settings: Any) -> PromptsConfig:
    return PromptsConfig.of(settings)


def arguments(**given: Any) -> dict[str, Any]:
    return {"dataset_args": {"needle_haystack": given}}


def test_nothing_given_is_the_seeds_task_in_exact_lengths() -> None:
    task = config().task()
    assert task.length_mode == "exact"
    assert task.grid.lengths == (1000, 4444, 7889, 11333, 14778, 18222, 21667, 25111, 28556, 32000)
    assert task.grid.depths == (0, 11, 22, 33, 44, 56, 67, 78, 89, 100)
    assert (task.system_prompt, task.prompt_template) == (SYSTEM_PROMPT, PROMPT_TEMPLATE)
    assert (task.needles, task.question, task.needle_set) == (None, None, "seed")


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({}, "exact"),
        ({"datasets": "needle_haystack"}, "evalscope"),
        ({"datasets": ["needle_haystack"], "depths": "50"}, "evalscope"),
        ({"datasets": ["needle_haystack"], "lengths": "1k"}, "exact"),
        ({"datasets": ["needle_haystack"], "length_mode": "exact"}, "exact"),
        ({"datasets": ["needle_haystack"], "lengths": "1k", "length_mode": "evalscope"}, "evalscope"),
        ({"length_mode": "evalscope"}, "evalscope"),
        (arguments(extra_params={"context_lengths_min": 500}), "exact"),
    ],
)
def test_the_parity_mode_holds_where_the_dataset_is_named_and_no_length_is(settings: dict[str, Any], mode: str) -> None:
    assert config(**settings).resolved_length_mode == mode


def test_what_was_typed_for_this_run_wins_over_the_dataset_arguments() -> None:
    given = arguments(
        system_prompt="theirs",
        prompt_template="theirs {context} {question}",
        extra_params={
            "needles": ["theirs"],
            "retrieval_question": "theirs?",
            "tokenizer_path": "theirs",
            "context_lengths_min": 100,
            "document_depth_percent_intervals": 2,
        },
    )
    task = config(**given).task()
    assert (task.system_prompt, task.needles, task.question) == ("theirs", ("theirs",), "theirs?")
    assert task.grid.lengths[0] == 100 and task.grid.depths == (0, 100)
    mine = config(**given, system_prompt="mine", needle="mine", question="mine?", tokenizer="mine", lengths=[500, "2k"])
    task = mine.task()
    assert (task.system_prompt, task.needles, task.question) == ("mine", ("mine",), "mine?")
    assert mine.tokenizer_name == "mine" and config(**given).tokenizer_name == "theirs"
    assert task.grid.lengths == (500, 2000) and task.grid.depths == (0, 100)
    assert task.prompt_template == "theirs {context} {question}"


def test_none_means_not_given() -> None:
    settings = dict.fromkeys(PromptsConfig.model_fields)
    assert config(**settings) == config()
    assert config(**arguments(subset_list=None, extra_params={"needles": None})).task() == config().task()


def test_lists_paths_and_single_values_are_taken_as_people_write_them(tmp_path: Path) -> None:
    given = config(corpus=(tmp_path, "b"), needle=("one", "two"), datasets="needle_haystack", dataset_dir=tmp_path)
    assert given.corpus == [str(tmp_path), "b"] and given.dataset_dir == str(tmp_path)
    assert given.needle == ["one", "two"] and given.datasets == list(DATASETS)
    nested = config(**arguments(subset_list="english", local_path=tmp_path)).arguments
    assert nested == DatasetArgs(subset_list=["english"], local_path=str(tmp_path))


def test_arguments_as_json_text_equal_those_as_an_object() -> None:
    text = '{"needle_haystack": {"extra_params": {"context_lengths_max": 2e3, "needles": "\\u4e2d"}}}'
    extra = {"context_lengths_max": 2000.0, "needles": ["中"]}
    assert config(dataset_args=text) == config(**arguments(extra_params=extra))


def test_the_seeds_names_are_all_known() -> None:
    assert set(ExtraParams.model_fields) == {
        "retrieval_question",
        "needles",
        "context_lengths_min",
        "context_lengths_max",
        "context_lengths_num_intervals",
        "document_depth_percent_min",
        "document_depth_percent_max",
        "document_depth_percent_intervals",
        "tokenizer_path",
        "show_score",
    }


@pytest.mark.parametrize(
    "text", ["Be brief.", "", "x" * 400, "a/b/c and more", "~nosuchuser", "two\nlines.txt x", "a\0b"]
)
def test_a_prompt_that_names_no_file_is_text(text: str) -> None:
    assert config(system_prompt=text).task().system_prompt == text


def test_a_prompt_that_names_a_file_is_what_the_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brief.txt").write_text("Sei kurz.\n", "utf-8")
    assert config(system_prompt="brief.txt").task().system_prompt == "Sei kurz.\n"
    assert config(system_prompt=tmp_path / "brief.txt").task().system_prompt == "Sei kurz.\n"
    assert config(**arguments(system_prompt="brief.txt")).task().system_prompt == "brief.txt"
    with pytest.raises(InputError, match=r"breif\.txt"):
        config(system_prompt="breif.txt").task()


def test_equal_needles_are_for_the_parity_mode_only() -> None:
    assert config(needle=["same.", "same."], length_mode="evalscope").task().needles == ("same.", "same.")
    with pytest.raises(UsageError, match="equal"):
        config(needle=["same.", "same."]).task()


def test_a_key_is_never_shown() -> None:
    secret = config(api_key="sk-123456")
    assert "123456" not in f"{secret!r} {secret} {secret.model_dump_json()}"
    assert secret.api_key is not None and secret.api_key.get_secret_value() == "sk-123456"
    assert config(api_key="").api_key is None
    with pytest.raises(UsageError) as raised:
        config(api_key="sk-123456é")
    assert "123456" not in str(raised.value)
