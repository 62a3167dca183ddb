"""How charts look: colours of ink and paper by style name, so that one spec is drawn light or dark. Pure.

Marks of a spec name a style and no colour; `config` says what the styles are. A page swaps `spec["config"]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..colours import Scale
from ..labels import Lang

Theme = Literal["light", "dark"]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
LATIN = "Liberation Sans, Arial, Helvetica, sans-serif"
CHINESE = (
    "Noto Sans CJK SC, Noto Sans SC, Source Han Sans SC, PingFang SC, Hiragino Sans GB, Microsoft YaHei, "
    "WenQuanYi Micro Hei, WenQuanYi Zen Hei, Droid Sans Fallback, SimHei, " + LATIN
)
"""Chinese first: what draws the pictures takes one font for a whole text, and Chinese fonts hold Latin letters too."""

SERIES = ("#2c4fa3", "#d9822b", "#3f9e8f", "#b0568f", "#7a7a7a", "#8b6f3d")
"""Colours of lines, told apart by hue and lightness under the three common colour blindnesses."""

_INKS: Mapping[Theme, Mapping[str, str]] = {
    "light": {
        "ink": "#1d1d1f",
        "soft": "#5c5f66",
        "faint": "#d9dade",
        "paper": "#ffffff",
        "hatch": "#8e9199",
        "broken": "#f3f3f5",
    },
    "dark": {
        "ink": "#ececf0",
        "soft": "#a9adb6",
        "faint": "#3a3d44",
        "paper": "#17181b",
        "hatch": "#7d818b",
        "broken": "#222429",
    },
}
_DARK_SERIES = ("#8aa6f0", "#f0a860", "#6fcbbb", "#dd92c2", "#b5b5b5", "#c9ab74")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLook:
    """What a user may choose of a chart. `title` stands for the model's name, or for both of two."""

    lang: Lang = "en"
    scale: Scale = "default"
    theme: Theme = "light"
    numbers: bool = False
    title: str | None = None


def series_colours(theme: Theme = "light") -> tuple[str, ...]:
    return SERIES if theme == "light" else _DARK_SERIES


def has_chinese(text: str) -> bool:
    """Whether a text needs a font with Chinese, Japanese or Korean characters."""
    return any(
        "\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7ff" or "\uf900" <= char <= "\uffef" for char in text
    )


def config(theme: Theme = "light", *, chinese: bool = False) -> dict[str, Any]:
    """The Vega-Lite config of a chart."""
    inks = _INKS[theme]
    ink, soft, faint, paper, hatch, broken = inks.values()
    return {
        "font": CHINESE if chinese else LATIN,
        "background": paper,
        "padding": {"left": 16, "top": 14, "right": 18, "bottom": 14},
        "view": {"stroke": None},
        "range": {"category": list(series_colours(theme))},
        "title": {
            "anchor": "start",
            "frame": "group",
            "color": ink,
            "fontSize": 15,
            "fontWeight": "bold",
            "subtitleColor": soft,
            "subtitleFontSize": 11.5,
            "subtitleLineHeight": 16,
            "subtitlePadding": 5,
            "lineHeight": 19,
            "offset": 14,
        },
        "axis": {
            "labelColor": ink,
            "titleColor": soft,
            "titleFontWeight": "normal",
            "titleFontSize": 11.5,
            "titlePadding": 9,
            "labelFontSize": 11,
            "labelPadding": 4,
            "domainColor": hatch,
            "tickColor": hatch,
            "gridColor": faint,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": soft,
            "titleFontWeight": "normal",
            "titleFontSize": 11.5,
            "labelFontSize": 11,
            "gradientStrokeColor": None,
            "offset": 16,
        },
        "header": {"labelColor": ink, "titleColor": soft},
        "style": {
            "cell": {"stroke": None},
            "square": {"stroke": paper, "strokeWidth": 1},
            "broken": {"color": broken, "stroke": paper, "strokeWidth": 1},
            "hatch": {"color": hatch, "strokeWidth": 1.1, "opacity": 1, "filled": False},
            "corner": {"color": hatch, "strokeWidth": 1.1, "opacity": 0.8, "filled": False},
            "effective": {"color": ink, "strokeWidth": 1.5, "strokeDash": [5, 3]},
            "level": {"color": soft, "strokeWidth": 1, "strokeDash": [2, 3]},
            "effective-label": {"color": ink, "fontSize": 11, "fontWeight": "bold"},
            "level-label": {"color": soft, "fontSize": 10.5},
            "note": {"color": soft, "fontSize": 10.5, "align": "left", "baseline": "middle"},
            "outline": {"color": ink, "strokeWidth": 1.6, "filled": False},
        },
    }
