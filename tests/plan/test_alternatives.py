"""What a fact's value could have been: of its kind, never itself, led to by the fact's own words."""

from __future__ import annotations

import re

import pytest

from needlepoint.errors import UsageError
from needlepoint.plan.alternatives import DRAWN, alternatives_of
from needlepoint.plan.grid import Grid
from needlepoint.plan.prompt import Prompt
from needlepoint.plan.task import Plan, Task

from ..conftest import chinese_prose, english_prose, make_corpus


def prompts_of(endpoint_of, subset: str = "english", **settings) -> list[Prompt]:  # type: ignore[no-untyped-def]
    chinese = subset == "chinese"
    corpus = make_corpus(*((chinese_prose(300), subset, "zh") if chinese else (english_prose(300), subset, "en")))
    task = Task(grid=Grid.from_specs("900,1500", "20,80"), **settings)
    return list(Plan(task, [corpus], endpoint_of("Qwen/Qwen3-0.6B")))


@pytest.mark.parametrize("subset", ["english", "chinese"])
@pytest.mark.parametrize("needle_set", ["seed", "native", "number", "word", "uuid", "date"])
def test_a_value_and_its_rivals_are_of_one_kind_and_differ(endpoint_of, subset: str, needle_set: str) -> None:  # type: ignore[no-untyped-def]
    for replicate, prompt in enumerate(prompts_of(endpoint_of, subset, needle_set=needle_set, replicates=3)):
        found = alternatives_of(prompt)
        assert found == alternatives_of(prompt)
        (needle,) = prompt.needles
        assert found.gold.strip() == needle.answers[0]
        assert found.gold not in found.rivals
        assert len(set(found.rivals)) == len(found.rivals) >= min(DRAWN, 5)
        assert all(rival[:1].isspace() == found.gold[:1].isspace() for rival in found.rivals)
        assert not found.lead.endswith(" ")
        said = (found.lead + found.gold).strip()
        assert said in needle.text
        assert not found.lead or needle.key.lower() in found.lead.lower()  # type: ignore[union-attr]
        if needle_set == "number":
            assert all(re.fullmatch(r" ?\d{7}", rival) for rival in found.rivals)
        if replicate and needle_set in ("number", "uuid"):
            assert not any(rival.strip() in prompt.context() for rival in found.rivals)


def test_other_needles_of_the_text_are_rivals_too(endpoint_of) -> None:  # type: ignore[no-untyped-def]
    prompts = prompts_of(endpoint_of, layout="woven", needle_set="confusable")
    golds = {prompt.needles[0].answers[0] for prompt in prompts}
    longest = max(prompts, key=lambda prompt: prompt.n_tokens)
    rivals = {rival.strip() for rival in alternatives_of(longest).rivals}
    inside = {gold for gold in golds if gold in longest.context()} - {longest.needles[0].answers[0]}
    assert inside
    assert inside <= rivals


def test_facts_without_one_value_are_refused(endpoint_of) -> None:  # type: ignore[no-untyped-def]
    given = prompts_of(endpoint_of, needles=("The bakery in Brenholt opens at six.",), question="When?")[0]
    with pytest.raises(UsageError, match="--needle-set seed"):
        alternatives_of(given)
    several = prompts_of(endpoint_of, needle_set="number", needle_count=2)[0]
    with pytest.raises(UsageError, match="one needle, not several"):
        alternatives_of(several)
