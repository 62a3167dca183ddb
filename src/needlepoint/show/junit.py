"""A comparison as JUnit XML, which CI systems show as tests: a suite for each comparison, a case for each bar. Pure.

Without a bar nothing can fail, so the cases are marked as skipped, and still carry what was found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from ..learn.change import Comparison
from ..learn.gate import Gate, Shortfall
from .verdict import details, flip_place, most_telling, verdict
from .visible import visible, visible_line

_WITHOUT_GATE = ("accuracy", "coverage")
_MOST_FLIPS = 20
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(comparisons: Sequence[tuple[Comparison, Sequence[Shortfall]]], *, gate: Gate | None = None) -> str:
    """The whole file."""
    root = Xml.Element("testsuites", name="needlepoint compare")
    failures = 0
    for found, shortfalls in comparisons:
        root.append(_suite(found, {short.bar: short for short in shortfalls}, gate))
        failures += len({short.bar for short in shortfalls})
    n = len(_bars(gate)) * len(comparisons)
    root.attrib |= {"tests": str(n), "failures": str(failures), "errors": "0"}
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(found: Comparison, missed: dict[str, Shortfall], gate: Gate | None) -> Xml.Element:
    name = f"{found.other} against {found.one}"
    suite = Xml.Element(
        "testsuite",
        name=_legal(visible_line(name)),
        tests=str(len(_bars(gate))),
        failures=str(len(missed)),
        errors="0",
        skipped=str(len(_bars(gate)) if gate is None else 0),
        time="0",
    )
    properties = Xml.SubElement(suite, "properties")
    for key, value in _numbers(found).items():
        Xml.SubElement(properties, "property", name=key, value=value)
    classname = "needlepoint.compare." + re.sub(r"[^\w-]+", "-", visible_line(found.other)).strip("-")
    for bar in _bars(gate):
        case = Xml.SubElement(suite, "testcase", name=bar, classname=classname, time="0")
        if bar in missed:
            failure = Xml.SubElement(case, "failure", message=_legal(visible_line(missed[bar].says)), type=bar)
            failure.text = _legal("\n".join([verdict(found), *details(found), *_flips(found, bar)]))
        elif gate is None:
            Xml.SubElement(case, "skipped", message="no bar was set: --fail-if-worse sets one")
    out = Xml.SubElement(suite, "system-out")
    out.text = _legal("\n".join([verdict(found), *details(found)]))
    return suite


def _bars(gate: Gate | None) -> tuple[str, ...]:
    return _WITHOUT_GATE if gate is None else gate.bars


def _numbers(found: Comparison) -> dict[str, str]:
    whole = found.whole
    told: dict[str, str] = {"lost_trials": str(found.coverage.lost)}
    if whole is not None:
        told |= {
            "questions": str(whole.n),
            "score_a": f"{whole.one:.6f}",
            "score_b": f"{whole.other:.6f}",
            "difference": f"{whole.difference:.6f}",
            "interval_low": f"{whole.interval[0]:.6f}",
            "interval_high": f"{whole.interval[1]:.6f}",
            "p_value": f"{found.p_value:.6g}",
        }
    if found.logprob_margin is not None:
        change = found.logprob_margin
        told |= {
            "margin_questions": str(change.whole.n),
            "margin_a_nats": f"{change.whole.one:.6f}",
            "margin_b_nats": f"{change.whole.other:.6f}",
            "margin_difference_nats": f"{change.difference:.6f}",
            "margin_interval_low": f"{change.interval[0]:.6f}",
            "margin_interval_high": f"{change.interval[1]:.6f}",
            "margin_p_value": f"{change.p_value:.6g}",
        }
    return told


def _flips(found: Comparison, bar: str) -> list[str]:
    if bar != "accuracy":
        return []
    lines = [""]
    for flip in most_telling(found, _MOST_FLIPS):
        lines.append(f"{'lost' if flip.change < 0 else 'gained'}: {flip_place(flip)}")
        for name, side in (("A", flip.one), ("B", flip.other)):
            lines.append(f"  {name} {side.outcome}: {visible_line(side.answer)}")
    return lines


def _legal(text: str) -> str:
    """Without what XML 1.0 cannot hold at all."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", visible(text))
