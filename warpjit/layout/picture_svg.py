"""A picture as SVG: one self-contained text, no style sheet, no script, and fonts that every viewer has.

Every box is a `<g>` of its rectangle, the lines of its label, and a tooltip. Its size follows from the longest label,
with room for the widest of the usual monospaced fonts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil

from warpjit.layout.picture_parts import SHADES, Box, Panel

FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
ADVANCE = 0.62
"""Width of a character, in units of the font size: at most 0.602 in the usual fonts."""
GAP = 16
SHEET = 1100
"""Pixels that panels side by side may take together."""
TICKS_FROM = 6
"""Pixels of an element from which on its bounds are marked."""
SMALL_FROM = 24
"""Boxes in a row or column from which on they are drawn small."""


@dataclass(frozen=True)
class _Scale:
    """Pixels: `unit` an element's width, `height` a box's; `font` of labels, `numbers` of row and column numbers."""

    font: int
    numbers: int
    unit: int
    height: int

    @property
    def line(self) -> float:
        return self.font * 1.18

    def margin(self, panel: Panel) -> int:
        """Room for the row numbers."""
        return ceil(len(str(panel.rows - 1)) * self.numbers * ADVANCE) + 7

    def head(self, panel: Panel) -> int:
        """Room for the title and the column numbers."""
        return self.numbers + 6 + (self.numbers + 6 if panel.title else 0)

    def size(self, panel: Panel) -> tuple[int, int]:
        """Width and height of a panel with its numbers."""
        title = ceil(len(panel.title) * self.numbers * ADVANCE)
        width = max(self.margin(panel) + panel.columns * self.unit, title)
        return width, self.head(panel) + panel.rows * self.height


def svg(title: str, caption: Sequence[str], panels: Sequence[Panel]) -> str:
    """The whole picture; panels stand side by side while there is room."""
    scale = _scale(panels)
    places, width, height = _places(scale, panels)
    lines = [(title, 13, "bold"), *((line, 11, "normal") for line in caption)]
    wide = max(width, *(ceil(len(text) * size * (ADVANCE + 0.02)) for text, size, _ in lines)) + 2 * GAP
    y, parts = GAP, []
    for text, size, weight in lines:
        y += size
        parts.append(f'<text x="{GAP}" y="{y}" font-size="{size}" font-weight="{weight}">{escape(text)}</text>')
        y += 5
    y += 6
    for panel, (left, top) in zip(panels, places, strict=True):
        parts += _panel(scale, panel, GAP + left, y + top)
    tall = y + height + GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{tall}" viewBox="0 0 {wide} {tall}" '
            f'role="img" font-family="{FONTS}" fill="#000">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{wide}" height="{tall}" fill="#fff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _scale(panels: Sequence[Panel]) -> _Scale:
    """The smallest boxes that hold their labels."""
    boxes = [box for panel in panels for box in panel.boxes]
    columns = max(panel.columns / min(box.width for box in panel.boxes) for panel in panels)
    small = max(columns, *(panel.rows for panel in panels)) > SMALL_FROM
    font, numbers, padding = (8, 8, 4) if small else (11, 10, 8)
    labels = {(max(map(len, box.lines), default=0), box.width, len(box.lines)) for box in boxes}
    unit = max(ceil((longest * font * ADVANCE + padding) / width) for longest, width, _ in labels)
    # Where boxes hold one or two elements, each has room for its number; boxes of many leave each some pixels.
    widest = max(width for _, width, _ in labels)
    least = max(_number_width(numbers, panel) for panel in panels) if widest <= 2 else TICKS_FROM if widest <= 8 else 3
    unit = max(unit, least)
    height = ceil(max(lines for _, _, lines in labels) * font * 1.18 + padding)
    return _Scale(font, numbers, unit, max(height, 14))


def _number_width(font: int, panel: Panel) -> int:
    """Pixels that a column number needs."""
    return ceil(len(str(panel.columns - 1)) * font * ADVANCE) + 3


def _places(scale: _Scale, panels: Sequence[Panel]) -> tuple[list[tuple[int, int]], int, int]:
    """Where each panel stands, and the size of all."""
    places, left, top, width, below = [], 0, 0, 0, 0
    for panel in panels:
        own_width, own_height = scale.size(panel)
        if left and left + own_width > SHEET:
            left, top = 0, below + GAP
        places.append((left, top))
        width, below = max(width, left + own_width), max(below, top + own_height)
        left += own_width + GAP
    return places, width, below


def _panel(scale: _Scale, panel: Panel, left: int, top: int) -> list[str]:
    x, y = left + scale.margin(panel), top + scale.head(panel)
    parts = [f'<g font-size="{scale.numbers}" fill="#444">']
    if panel.title:
        parts.append(f'<text x="{left}" y="{top + scale.numbers}" font-weight="bold">{escape(panel.title)}</text>')
    step = _number_step(scale, panel)
    anchor, shift = ("middle", scale.unit / 2) if step == 1 else ("start", 1)
    for column in range(0, panel.columns, step):
        parts.append(
            f'<text x="{x + column * scale.unit + shift:g}" y="{y - 4}" text-anchor="{anchor}">{column}</text>'
        )
    for row in range(panel.rows):
        base = y + (row + 0.5) * scale.height + 0.36 * scale.numbers
        parts.append(f'<text x="{x - 4}" y="{base:.1f}" text-anchor="end">{row}</text>')
    parts.append("</g>")
    parts.append(f'<g font-size="{scale.font}" text-anchor="middle" stroke-width=".6">')
    parts += (_box(scale, box, x, y) for box in panel.boxes)
    parts.append("</g>")
    ticks = "".join(_ticks(scale, box, x, y) for box in panel.boxes if box.width > 1)
    if ticks:
        parts.append(f'<path d="{ticks}" stroke="#555" stroke-width=".6" fill="none"/>')
    return parts


def _number_step(scale: _Scale, panel: Panel) -> int:
    """Every how many columns there is room for a number."""
    step = 1
    while step * scale.unit < _number_width(scale.numbers, panel):
        step *= 2
    return step


def _box(scale: _Scale, box: Box, left: int, top: int) -> str:
    x, y = left + box.column * scale.unit, top + box.row * scale.height
    width = box.width * scale.unit
    first = y + scale.height / 2 - (len(box.lines) - 1) * scale.line / 2 + 0.36 * scale.font
    label = "".join(
        f'<text x="{x + width / 2:g}" y="{first + index * scale.line:.1f}">{escape(line)}</text>'
        for index, line in enumerate(box.lines)
    )
    return (
        f"<g><title>{escape(box.tip)}</title>"
        f'<rect x="{x}" y="{y}" width="{width}" height="{scale.height}" fill="{SHADES[box.shade]}" stroke="#555"/>'
        f"{label}</g>"
    )


def _ticks(scale: _Scale, box: Box, left: int, top: int) -> str:
    """Marks at a box's lower edge between the elements that it holds, where they are not too narrow."""
    if scale.unit < TICKS_FROM:
        return ""
    y = top + (box.row + 1) * scale.height
    return "".join(f"M{left + (box.column + part) * scale.unit} {y}v-3" for part in range(1, box.width))
