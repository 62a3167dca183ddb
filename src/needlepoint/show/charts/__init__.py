"""Charts: one Vega-Lite spec each, from a report. PNG, SVG and whoever else draws take the same spec."""

from ..labels import Lang
from .collection import CHARTS, FILES, Spec, heatmap_specs, specs_of, specs_of_several
from .curves import accuracy_spec, position_spec
from .difference import difference_spec
from .fonts import chinese_font
from .heatmap import heatmap_spec
from .margin import margin_spec
from .multiples import accuracy_of_runs_spec, multiples_spec, overview_spec
from .needles import recall_spec
from .outcomes import outcomes_spec
from .pace import latency_spec, tokens_spec
from .render import png, png_of_svg, svg
from .theme import ChartLook, Theme, config

__all__ = [
    "CHARTS",
    "FILES",
    "ChartLook",
    "Lang",
    "Spec",
    "Theme",
    "accuracy_of_runs_spec",
    "accuracy_spec",
    "chinese_font",
    "config",
    "difference_spec",
    "heatmap_spec",
    "heatmap_specs",
    "latency_spec",
    "margin_spec",
    "multiples_spec",
    "outcomes_spec",
    "overview_spec",
    "png",
    "png_of_svg",
    "position_spec",
    "recall_spec",
    "specs_of",
    "specs_of_several",
    "svg",
    "tokens_spec",
]
