"""What names a trial, and when it is asked again."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.ask.plain import hide, plain, scrub
from needlepoint.ask.trials import is_finished, recipe_id, trial_id, trial_of, unanswered
from needlepoint.errors import UsageError
from needlepoint.plan.grid import Grid
from needlepoint.plan.task import Plan, Task
from needlepoint.types import Corpus, Endpoint, Reply, Sampling, Trial, Usage

from .rows import REPLY, TRIAL, a_failure

SAMPLING = Sampling(max_tokens=512, options={"temperature": 0, "seed": 7})


def named(trial: Trial = TRIAL, *, model: str = "m", sampling: Sampling = SAMPLING) -> str:
    return trial_id(trial, model=model, sampling=sampling)


@pytest.mark.parametrize(
    "change",
    [
        {"prompt_sha256": "b" * 64},
        {"subset": "chinese"},
        {"dataset": "other"},
        {"context_length": 8000},
        {"depth_percent": 50.1},
        {"replicate": 1},
        {"repeat": 1},
        {"layout": "woven"},
        {"length_mode": "evalscope"},
    ],
)
def test_all_that_decides_the_prompt_decides_both_names(change: dict[str, Any]) -> None:
    other = replace(TRIAL, **change)
    assert named(other) != named()
    assert recipe_id(other) != recipe_id(TRIAL)


@pytest.mark.parametrize(
    ("model", "sampling"),
    [
        ("n", SAMPLING),
        ("m", replace(SAMPLING, max_tokens=513)),
        ("m", replace(SAMPLING, options={"temperature": 0})),
        ("m", replace(SAMPLING, options={"temperature": 0.5, "seed": 7})),
        ("m", replace(SAMPLING, options={"temperature": False, "seed": 7})),
    ],
)
def test_model_and_sampling_decide_the_id_but_not_the_recipe(model: str, sampling: Sampling) -> None:
    assert named(model=model, sampling=sampling) != named()


@pytest.mark.parametrize(
    "change",
    [{"id": "x"}, {"sent_tokens": None}, {"length_proven": False}, {"tokenizer": "other"}, {"achieved_length": 1}],
)
def test_what_was_only_measured_decides_nothing(change: dict[str, Any]) -> None:
    other = replace(TRIAL, **change)
    assert (named(other), recipe_id(other)) == (named(), recipe_id(TRIAL))


def test_equal_options_give_equal_ids_however_they_are_written() -> None:
    written = Sampling(max_tokens=512, options={"seed": 7.0, "temperature": 0.0})
    assert named(sampling=written) == named()
    lists = [Sampling(max_tokens=1, options={"stop": stop}) for stop in (["a", "b"], ("a", "b"))]
    assert named(sampling=lists[0]) == named(sampling=lists[1])


def test_a_new_api_key_makes_no_new_trial() -> None:
    one, other = (
        Sampling(max_tokens=1, options={"extra_headers": {"X-Gate": key}, "extra_body": {"api_key": key}})
        for key in ("first-secret", "second-secret")
    )
    assert named(sampling=one) == named(sampling=other)


def test_ids_are_the_same_in_every_process() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from needlepoint.ask.trials import *; from needlepoint.types import *;"
        "t = Trial(id='', dataset='d', subset='s', layout='classic', length_mode='exact', replicate=0, repeat=0,"
        "context_length=1000, depth_percent=10.0, achieved_length=None, achieved_depth_percent=None, boundary=None,"
        "needles=(), placements=(), question='', answers=(), corpus='', corpus_sha256='', tokenizer='',"
        "tokenizer_fingerprint='', prompt_sha256='ab', sent_tokens=None, length_proven=False);"
        "drawn = Sampling(max_tokens=9, options={'b': {'y', 'x'}, 'a': 'é'});"
        "print(trial_id(t, model='m', sampling=drawn), recipe_id(t))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("0", "1")
    }
    recipe = (
        '{"context_length":1000,"dataset":"d","depth_percent":10,"layout":"classic","length_mode":"exact",%s'
        '"prompt_sha256":"ab","repeat":0,"replicate":0,"subset":"s"}'
    )
    asked = '"max_tokens":9,"model":"m","options":{"a":"\\u00e9","b":["x","y"]},'
    names = [hashlib.sha256((recipe % part).encode()).hexdigest()[:16] for part in (asked, "")]
    assert seen == {" ".join(names) + "\n"}


def test_a_planned_prompt_becomes_its_recipe(english: Corpus, endpoint_of: Callable[[str], Endpoint]) -> None:
    endpoint = endpoint_of("qwen3")
    plan = Plan(Task(grid=Grid(lengths=(1000, 2000), depths=(0, 50))), [english], endpoint)
    prompts = list(plan)
    trials = [
        trial_of(prompt, dataset="needle_haystack", endpoint=endpoint, model="m", sampling=SAMPLING)
        for prompt in prompts
    ]
    assert len({trial.id for trial in trials}) == len({recipe_id(trial) for trial in trials}) == 4
    trial, prompt = trials[-1], prompts[-1]
    assert (trial.context_length, trial.depth_percent) == (2000, 50.0)
    assert trial.achieved_length == trial.sent_tokens == prompt.n_tokens == 2000
    assert trial.prompt_sha256 == prompt.sha256
    assert trial.corpus_sha256 == english.sha256
    assert trial.tokenizer_fingerprint == endpoint.tokenizer.fingerprint
    assert trial.answers == prompt.answers and trial.boundary == prompt.boundary
    given_sha = trial_of(
        prompt, dataset="needle_haystack", endpoint=endpoint, model="m", sampling=SAMPLING, prompt_sha256=prompt.sha256
    )
    assert given_sha == trial


def test_the_prompts_own_max_tokens_goes_first(english: Corpus, endpoint_of: Callable[[str], Endpoint]) -> None:
    endpoint = endpoint_of("qwen3")
    (prompt,) = Plan(Task(grid=Grid(lengths=(1000,), depths=(0,)), max_tokens=99), [english], endpoint)
    ids = {
        trial_of(prompt, dataset="d", endpoint=endpoint, model="m", sampling=Sampling(max_tokens=room)).id
        for room in (5, 99)
    }
    assert len(ids) == 1


# --- asking again -----------------------------------------------------------------------------------------------------

ROOM = Reply(text=" \n", reasoning="Let me think", finish="length")
CHANGES = [
    {},
    {"limit_changed": True},
    {"max_tokens_changed": True},
    {"limit_changed": True, "max_tokens_changed": True},
]


@pytest.mark.parametrize("changed", CHANGES)
@pytest.mark.parametrize("outcome", ["correct", "partial", "wrong", "not_found", "refused", "unjudged", None])
def test_a_valid_reply_is_never_asked_for_again(outcome: Any, changed: dict[str, bool]) -> None:
    assert is_finished(REPLY, outcome=outcome, **changed)


@pytest.mark.parametrize("changed", CHANGES)
@pytest.mark.parametrize("outcome", ["failed", None])
def test_a_failed_trial_is_always_asked_again(outcome: Any, changed: dict[str, bool]) -> None:
    assert not is_finished(a_failure("bad_request"), outcome=outcome, **changed)


@pytest.mark.parametrize("changed", CHANGES)
@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (a_failure("overflow"), None),
        (a_failure("overflow"), "overflow"),
        (ROOM, None),
        (ROOM, "out_of_room"),
        (REPLY, "truncated"),
    ],
)
def test_what_lacked_room_is_asked_again_only_with_other_limits(
    reply: Reply, outcome: Any, changed: dict[str, bool]
) -> None:
    assert is_finished(reply, outcome=outcome, **changed) == (not changed)


@pytest.mark.parametrize(
    ("reply", "state"),
    [
        (REPLY, None),
        (ROOM, "out_of_room"),
        (Reply(finish="length", usage=Usage(reasoning=100)), "out_of_room"),
        (Reply(finish="length"), None),  # an instant stop by length: `wrong`, for a scorer to say
        (Reply(finish="stop", reasoning="thought"), None),
        (Reply(finish="length", reasoning="thought", text="47"), None),
        (a_failure("overflow"), "overflow"),
        (a_failure("stopped"), "failed"),
    ],
)
def test_a_reply_itself_tells_what_kept_it_from_an_answer(reply: Reply, state: str | None) -> None:
    assert unanswered(reply) == state


# --- plain values and secrets -----------------------------------------------------------------------------------------


def test_settings_become_plain_json_values() -> None:
    value = {"a": (1.0, 2.5), "p": Path("x/y"), "s": {"b", "a"}, "t": True, "n": None, "big": 1e300}
    assert plain(value, "it") == {"a": [1, 2.5], "p": "x/y", "s": ["a", "b"], "t": True, "n": None, "big": 1e300}


@pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": b"bytes"}, {"x": {1: 2}}, {"x": object()}])
def test_what_json_cannot_hold_is_refused_by_name(value: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"options\.x"):
        plain(value, "options")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=9))
def test_making_plain_twice_changes_nothing_more(value: object) -> None:
    assert plain(plain(value, "x"), "x") == plain(value, "x")


@pytest.mark.parametrize(
    "name",
    "api_key apiKey API-KEY Authorization x-api-key token hf_token accessToken password client_secret Cookie".split(),
)
def test_values_with_a_secrets_name_are_hidden(name: str) -> None:
    assert scrub({"a": [{name: "s3cr3t"}]}) == {"a": [{name: "***"}]}


@pytest.mark.parametrize(
    "name",
    "max_tokens max_completion_tokens eos_token stop_token_ids price_per_token tokenizer key tokens author".split(),
)
def test_names_that_only_sound_alike_keep_their_values(name: str) -> None:
    assert scrub({name: "value"}) == {name: "value"}


def test_headers_keep_their_names_only() -> None:
    assert scrub({"headers": {"X-Team": "red"}, "header": ["X-Gate: open sesame"], "extra_headers": None}) == {
        "headers": {"X-Team": "***"},
        "header": ["X-Gate: ***"],
        "extra_headers": None,
    }


def test_secrets_in_addresses_are_hidden() -> None:
    shown = scrub(["https://me:pw@host/v1?api_key=abc&x=1", "en=https://me@host/a.txt"])
    assert shown == ["https://***@host/v1?api_key=***&x=1", "en=https://***@host/a.txt"]


def test_a_needle_that_mentions_an_address_is_kept_to_the_letter() -> None:
    needle = "The login is at https://me@host/?key=abc today."
    assert scrub({"needle": [needle]}) == {"needle": [needle]}


def test_a_given_secret_is_hidden_wherever_it_stands() -> None:
    assert scrub({"a": ["Bearer sk-12345678 sent"], "sk-12345678": 1}, ["sk-12345678"]) == {
        "a": ["Bearer *** sent"],
        "***": 1,
    }
    assert hide("EMPTY", ["EMPTY"]) == "***"
    assert hide("EMPTY glass", ["EMPTY", ""]) == "EMPTY glass"
