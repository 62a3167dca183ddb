"""A spec as a picture: Vega-Lite in this process (vl-convert), no browser, no network, the same bytes each time."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from .fonts import own_folders

PNG_SCALE = 2


def svg(spec: Mapping[str, Any]) -> str:
    """The spec as SVG. Text stays text, in a stack of fonts."""
    vl_convert = _drawer()
    return _renumbered(vl_convert.vegalite_to_svg(dict(spec), allowed_base_urls=[]))


def png(spec: Mapping[str, Any]) -> bytes:
    """The spec as PNG, two pixels for each of the spec's."""
    return png_of_svg(svg(spec))


def png_of_svg(drawn: str) -> bytes:
    """A finished SVG as PNG: cheaper than a spec where both are wanted."""
    return _packed(_drawer().svg_to_png(drawn, scale=PNG_SCALE))


@cache
def _drawer() -> Any:
    import vl_convert

    for folder in own_folders():
        vl_convert.register_font_directory(str(folder))
    return vl_convert


def _renumbered(drawn: str) -> str:
    """Gradients and clips numbered from 0: Vega goes on counting from picture to picture."""
    numbers: dict[str, str] = {}

    def renumber(found: re.Match[str]) -> str:
        name = numbers.setdefault(found[2], f"{found[2].rstrip('0123456789')}{len(numbers)}")
        return f"{found[1]}{name}{found[3]}"

    return re.sub(r'((?:id="|url\(#))((?:gradient_|clip)\d+)(["\)])', renumber, drawn)


def _packed(png: bytes) -> bytes:
    """The same picture in a quarter of the bytes: what draws it hardly compresses."""
    head, body, place = png[:8], b"", 8
    before: list[bytes] = []
    after: list[bytes] = []
    while place < len(png):
        size, kind = struct.unpack(">I4s", png[place : place + 8])
        chunk = png[place : place + size + 12]
        if kind == b"IDAT":
            body += chunk[8:-4]
        else:
            (after if body else before).append(chunk)
        place += len(chunk)
    packed = zlib.compress(zlib.decompress(body), 7)
    sum_ = zlib.crc32(packed, zlib.crc32(b"IDAT"))
    return b"".join([head, *before, struct.pack(">I", len(packed)), b"IDAT", packed, struct.pack(">I", sum_), *after])
