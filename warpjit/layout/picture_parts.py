"""What a picture is made of: boxes in panels, and the colours that tell them apart.

Nothing here knows layouts, or how a picture is written: `picture_svg` and `picture_text` do that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Box:
    """Neighbouring elements of a row that share a place.

    row, column  of the first element in the panel
    width        how many elements it holds
    lines        its label, a line each: ("T20", "R2")
    short        the label in one line: "20:2"
    shade        index into `SHADES`
    tip          all about it, in words
    """

    row: int
    column: int
    width: int
    lines: tuple[str, ...]
    short: str
    shade: int
    tip: str


@dataclass(frozen=True)
class Panel:
    """A matrix of rows x columns elements, which its boxes fill row by row. `title` may be empty."""

    title: str
    rows: int
    columns: int
    boxes: tuple[Box, ...]


# Eight hues, each from light to dark: equal steps of lightness (91, 83, 75 and 66 % in OKLCH), so that the four tints
# of a hue differ in grey print as well, and black text stands on each of them with a contrast of at least 6.
_HUES = (
    ("#ffd8d8", "#feafb1", "#f8858b", "#e3636c"),
    ("#ffdbc1", "#fbb682", "#ed9449", "#d77500"),
    ("#ede5b3", "#d7c977", "#c1ae30", "#a69306"),
    ("#cbefc7", "#a0d999", "#76c26e", "#50aa48"),
    ("#b1f1ec", "#6bddd6", "#06c6be", "#00a8a2"),
    ("#c8e8fe", "#8bd1fe", "#43b8fa", "#029de0"),
    ("#dfe0fe", "#c1c0fe", "#a49ffe", "#8a81ef"),
    ("#fed4f4", "#f2ade3", "#e289cf", "#cc68b9"),
)
TINTS = len(_HUES[0])
SHADES: tuple[str, ...] = tuple(tint for hue in _HUES for tint in hue)
"""The 32 colours, "#rrggbb": hue by hue."""


def quad_shade(value: Ints) -> Ints:
    """Four neighbours share a hue: the four lanes of a row, the four banks of 16 bytes."""
    return value % len(SHADES)


def step_shade(value: Ints) -> Ints:
    """Neighbours differ in hue, every eighth in lightness, strong tints first: for numbers of which few are used."""
    order: Ints = np.array((1, 2, 0, 3))
    hues = len(_HUES)
    return value % hues * TINTS + order[value // hues % TINTS]
