"""Is there a font with Chinese characters for pictures? vl-convert brings only Latin ones and takes the system's."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path

FONTS = "NEEDLEPOINT_FONTS"
"""Folders with more fonts, between colons (semicolons on Windows)."""
_CHINESE = re.compile(
    r"cjk|sourcehan|source-han|noto(?:sans|serif)(?:sc|tc|hk)|wqy|wenquanyi|droidsansfallback|pingfang|hiragino"
    r"|heiti|songti|stheiti|msyh|simhei|simsun|deng|uming|ukai|fandol|lxgw|sarasa|arialuni",
    re.IGNORECASE,
)
_ENDINGS = {".ttf", ".ttc", ".otf", ".otc"}


@cache
def chinese_font() -> Path | None:
    """The file of one such font, or None; looked for once."""
    for folder in (*own_folders(), *_system_folders()):
        if (found := _find(folder)) is not None:
            return found
    return None


def own_folders() -> list[Path]:
    """What the user named."""
    return [Path(part).expanduser() for part in os.environ.get(FONTS, "").split(os.pathsep) if part]


def _system_folders() -> list[Path]:
    """Where vl-convert looks by itself."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 (Path.home raises where there is none)
    if sys.platform == "darwin":
        return [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"]
    if sys.platform == "win32":
        return [Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "Fonts"]
    return [Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), home / ".fonts", home / ".local/share/fonts"]


def _find(folder: Path) -> Path | None:
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if _CHINESE.search(name) and Path(name).suffix.lower() in _ENDINGS:
                return Path(parent) / name
    return None
