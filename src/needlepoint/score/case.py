"""What a judge is asked: question, reference and answer, and how the answer is kept from speaking to the judge.

Three things guard the grade. The answer stands between marks that bear 32 digits which are drawn from the seed and from
the answer itself, so no answer can hold its own. The judge gives a short code back that stands outside of the marks: a
verdict copied out of an answer lacks it. And an answer that speaks of grades or to its judge is `suspicious`: its
verdict counts only with that code, and only where the rules don't see the opposite (`panel` sees to both).

Pure: the same seed gives the same bytes. The texts are files in `prompts/`.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from ..types import Message, Reply, Trial
from .reasoning import visible
from .verdict import RubricName

LONGEST_ANSWER = 40_000
"""Characters. A longer one is not cut, since the part that is left out may be the one that matters."""
_PROMPTS = Path(__file__).parent / "prompts"
_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_RUBRIC_FILES: Mapping[RubricName, str] = {"binary": "binary", "0-1": "graded", "1-10": "one_to_ten"}
_TO_THE_JUDGE = re.compile(
    r"\b(?:scor(?:e[sd]?|ing)|rat(?:e[sd]?|ing)|grad(?:e[sd]?|er|ing)|verdicts?|judg(?:e[sd]?|ing|e?ments?)|evaluator|"
    r"rubric|full marks|marked as|(?:in)?correct answer|true answer)\b"
    r"|\b(?:ignore|disregard|forget|override)\b.{0,60}\b(?:instruction|above|before|previous|prior|rule|reference|prompt)"
    r"|\b(?:system|assistant|developer|user)\s*(?:prompt|message|:)"
    r"|\b(?:new|following|previous|prior|earlier|these|your|all|different) instructions?\b|\binstructions?\s*:"
    r"|\breference\s*(?:answer|solution|text|says|states|:)|\bmatch(?:es|ing)? the reference\b"
    r"|<\s*/?\s*(?:answer|question|reference|system|text)|<\||\[\[|\b10\s*/\s*10\b|[\"'](?:case|score|verdict)[\"']\s*:"
    r"|评分|打分|得分|满分|分数|裁判|评委|评判|忽略|无视|参考答案|系统(?:提示|消息)|指令",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What every judge of a panel is told. `system_prompt` and `prompt_template` replace ours."""

    rubric: RubricName = "binary"
    system_prompt: str | None = None
    prompt_template: str | None = None
    """With {question}, {reference} (or {gold}) and {answer} (or {pred})."""

    def fingerprint(self) -> str:
        """Short hash of all that a judge is told beside the case."""
        parts = (self.rubric, self.system, self.template, _rubric_text(self.rubric, 2), text_of("judge_form"))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    @property
    def system(self) -> str:
        return text_of("judge_system").strip() if self.system_prompt is None else self.system_prompt

    @property
    def template(self) -> str:
        return text_of("judge_case") if self.prompt_template is None else self.prompt_template


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One reply to be judged: an `Askable`. `repeat` tells apart how often the same judge is asked."""

    trial: Trial
    digest: str
    """Of the very reply that is judged."""
    question: str
    reference: str
    answer: str
    code: str
    boundary: str
    n_facts: int
    contract: Contract
    repeat: int = 0
    max_tokens: int | None = None

    @property
    def suspicious(self) -> bool:
        """Whether the answer speaks of grades, of instructions, or to whoever reads it."""
        return _TO_THE_JUDGE.search(self.answer) is not None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text().encode(errors="replace")).hexdigest()

    @property
    def n_tokens(self) -> int:
        """About how many, on the high side; nobody counts a judge's prompts before they are sent."""
        return 64 + sum(len(message["content"].encode(errors="replace")) for message in self.messages()) // 3

    def messages(self) -> list[Message]:
        user = "\n\n".join((self._framed().strip(), self._rubric().strip(), self._form().strip()))
        system = self.contract.system
        messages = [Message(role="system", content=system)] if system else []
        return [*messages, Message(role="user", content=user)]

    def text(self) -> str:
        return "\n\n".join(message["content"] for message in self.messages())

    def token_ids(self) -> array[int]:
        raise NotImplementedError("Judges are asked in words.")

    def _framed(self) -> str:
        answer = self.answer
        if self.contract.prompt_template is not None:
            answer = f"<answer {self.boundary}>\n{answer}\n</answer {self.boundary}>"
        return _fill(
            self.contract.template,
            {
                "case": self.code,
                "boundary": self.boundary,
                "question": self.question,
                "reference": self.reference,
                "gold": self.reference,
                "answer": answer,
                "pred": answer,
            },
        )

    def _rubric(self) -> str:
        return _rubric_text(self.contract.rubric, self.n_facts)

    def _form(self) -> str:
        return text_of("judge_form").format(case=self.code)


def case_of(trial: Trial, reply: Reply, contract: Contract, *, seed: int, digest: str = "") -> Case | str:
    """The case of a reply, whose `digest` names it; or, in words, why no judge can be asked about it."""
    reference, n_facts = _reference(trial)
    answer = visible(reply.text).strip()
    if not reference:
        return "there is no reference to judge by"
    if len(answer) > LONGEST_ANSWER:
        return f"the answer has {len(answer):,} characters, more than a judge is sent"
    code, boundary = _marks(seed, trial.question, reference, answer)
    return Case(
        trial=trial,
        digest=digest,
        question=trial.question,
        reference=reference,
        answer=answer,
        code=code,
        boundary=boundary,
        n_facts=n_facts,
        contract=contract,
    )


def _reference(trial: Trial) -> tuple[str, int]:
    """What a right answer states, and how many facts that is: the needles that hold answers, else the answers alone."""
    telling = [needle for needle in trial.needles if any(answer in trial.answers for answer in needle.answers)]
    texts = [needle.text.strip() for needle in telling or trial.needles] or [answer.strip() for answer in trial.answers]
    texts = [text for text in texts if text]
    return "\n".join(texts), max(1, len(texts))


def _marks(seed: int, *texts: str) -> tuple[str, str]:
    """A short code and a long boundary, none of which stands in any of the texts."""
    whole = hashlib.sha256("\0".join(texts).encode(errors="replace")).hexdigest()
    for attempt in range(1_000):
        rng = Random(f"{seed}:judge:{whole}:{attempt}")
        code = "".join(rng.choice(_CODE_LETTERS) for _ in range(6))
        boundary = f"{rng.getrandbits(128):032x}"
        if not any(mark in text for text in texts for mark in (code, boundary)):
            return code, boundary
    raise AssertionError("unreachable")


def _rubric_text(rubric: RubricName, n_facts: int) -> str:
    if rubric == "binary" and n_facts > 1:
        grades = ", ".join(f"{part / n_facts:.2g}" for part in range(n_facts + 1))
        return text_of("rubric_facts").format(facts=n_facts, grades=grades)
    return text_of(f"rubric_{_RUBRIC_FILES[rubric]}")


_PLACE = re.compile(r"\{(case|boundary|question|reference|gold|answer|pred)\}")


def _fill(template: str, values: Mapping[str, str]) -> str:
    """`template` with its places filled, all at once: what is filled in is not looked at again."""
    return _PLACE.sub(lambda place: values[place[1]], template)


@cache
def text_of(name: str) -> str:
    """One of the texts in `prompts/`."""
    return (_PROMPTS / f"{name}.txt").read_text(encoding="utf-8")
