"""A judge's model, asked for JSON by its server where the server can do that, and in plain words where it can't.

The first request that is refused because of the asked form settles it: from then on the form is left out, and what
comes back is read as strictly as before.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from ..types import Askable, Endpoint, Failure, Model, Reply, Sampling

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"case": {"type": "string"}, "reason": {"type": "string"}, "score": {"type": "number"}},
    "required": ["case", "reason", "score"],
    "additionalProperties": False,
}
_FORMS = ("response_format", "json_schema", "grammar", "guided_json", "structured_outputs")
_ABOUT_FORM = re.compile(
    r"response_?format|json_?schema|json_?object|structured|guided|grammar|schema|unsupported|not permitted"
    r"|unknown (?:field|parameter|argument)|extra (?:fields|inputs)",
    re.IGNORECASE,
)


class StructuredModel:
    """A `Model` around another one, which adds the form of a verdict to each request as long as it is taken."""

    def __init__(self, model: Model, *, native: bool) -> None:
        """`native`: the engine in this process, which takes the schema itself."""
        self._model = model
        self._native = native
        self.takes_form: bool | None = None
        """Whether it does; None as long as nobody knows."""

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def wave(self) -> int:
        return self._model.wave

    async def connect(self) -> Endpoint:
        return await self._model.connect()

    async def close(self) -> None:
        await self._model.close()

    async def ask(self, prompts: Sequence[Askable], sampling: Sampling) -> AsyncIterator[Reply]:
        """One reply for each prompt. A refusal of the form is no attempt: the prompt is asked once more without."""
        for number in range(len(prompts)):
            some = prompts[number : number + 1]
            with_form = self._with_form(sampling)
            if self.takes_form is False or with_form is None:
                reply = await self._one(some, sampling)
            else:
                reply = await self._one(some, with_form)
                if reply.error is None:
                    self.takes_form = True
                elif _may_be_the_form(reply.error):
                    plain = await self._one(some, sampling)
                    if plain.error is None or not _may_be_the_form(plain.error):
                        self.takes_form, reply = False, plain
            yield reply

    async def _one(self, prompts: Sequence[Askable], sampling: Sampling) -> Reply:
        async with aclosing(self._model.ask(prompts, sampling)) as replies:  # type: ignore[type-var]
            async for reply in replies:
                return reply
        raise RuntimeError(f"{self.name} gave no reply")

    def _with_form(self, sampling: Sampling) -> Sampling | None:
        """The sampling with the form added; None where the user has said something of forms already."""
        extra = sampling.options.get("extra_body")
        if any(name in sampling.options or (isinstance(extra, Mapping) and name in extra) for name in _FORMS):
            return None
        schema = {"name": "verdict", "strict": True, "schema": dict(SCHEMA)}
        form: dict[str, object] = (
            {"json_schema": dict(SCHEMA)}
            if self._native
            else {"response_format": {"type": "json_schema", "json_schema": schema}}
        )
        return replace(sampling, options={**sampling.options, **form})


def _may_be_the_form(failure: Failure) -> bool:
    return failure.kind == "bad_request" or (
        failure.kind in ("server", "bad_answer") and _ABOUT_FORM.search(failure.message) is not None
    )
