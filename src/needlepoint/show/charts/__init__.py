"""Charts: one Vega-Lite spec each, from a report. PNG, SVG and the page draw the same spec."""

from ..labels import Lang
from .collection import heatmap_specs
from .heatmap import heatmap_spec
from .render import png, png_of_svg, svg
from .theme import ChartLook, Theme, config

__all__ = ["ChartLook", "Lang", "Theme", "config", "heatmap_spec", "heatmap_specs", "png", "png_of_svg", "svg"]
