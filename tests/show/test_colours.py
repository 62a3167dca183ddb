"""The scale keeps its promises: order by lightness for every eye, ends kept for exact ends."""

from __future__ import annotations

from itertools import pairwise

import pytest

from needlepoint.show.colours import ANCHORS, INDEXED, Scale, block_style, colour, indexed, ink

# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB
EYES = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
STEPS = [i / 40 for i in range(41)]


def rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


def cube(index: int) -> str:
    """The colour of a number from 16 to 231 of the 256, as xterm fixed it."""
    levels = (0, 95, 135, 175, 215, 255)
    red, green, blue = (index - 16) // 36, (index - 16) // 6 % 6, (index - 16) % 6
    return f"#{levels[red]:02x}{levels[green]:02x}{levels[blue]:02x}"


def lightness(colour: str, eye: str) -> float:
    """OKLab L (Ottosson 2020) as the eye sees it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb(colour)]
    r, g, b = (max(0.0, sum(m * part for m, part in zip(row, linear, strict=True))) for row in EYES[eye])
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    middle = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return 0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short


@pytest.mark.parametrize("eye", EYES)
def test_lightness_falls_at_every_step_for_every_eye(eye: str) -> None:
    seen = [lightness(colour(step), eye) for step in STEPS]
    assert all(a > b for a, b in pairwise(seen))
    assert seen[0] - seen[-1] > 0.35


@pytest.mark.parametrize("eye", EYES)
def test_the_256_colours_keep_the_order_for_every_eye(eye: str) -> None:
    seen = [lightness(cube(index), eye) for index in INDEXED["default"]]
    assert all(a > b for a, b in pairwise(seen))


def test_the_dark_end_is_seen_on_black_and_the_light_end_on_white() -> None:
    assert lightness(colour(1.0), "normal") > 0.4
    assert lightness(colour(0.0), "normal") < 0.9


@pytest.mark.parametrize("scale", ANCHORS)
def test_ends_are_anchors_and_what_is_outside_takes_the_nearer(scale: Scale) -> None:
    assert colour(0.0, scale) == colour(-1.0, scale) == ANCHORS[scale][0]
    assert colour(1.0, scale) == colour(2.0, scale) == ANCHORS[scale][-1]
    assert [indexed(score, scale) for score in (0.0, 1.0)] == [INDEXED[scale][0], INDEXED[scale][-1]]
    assert not {indexed(score, scale) for score in (0.001, 0.5, 0.999)} & {INDEXED[scale][0], INDEXED[scale][-1]}


@pytest.mark.parametrize("scale", ANCHORS)
def test_numbers_on_blocks_can_be_read(scale: Scale) -> None:
    def luminance(of: str) -> float:
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb(of)]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for step in STEPS:
        low, high = sorted(luminance(of) for of in (colour(step, scale), ink(colour(step, scale))))
        assert (high + 0.05) / (low + 0.05) > 4.5
        assert block_style(step, "truecolor", scale).endswith(f" on {colour(step, scale)}")
