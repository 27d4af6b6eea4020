"""A picture as text for a terminal: one line a row of elements, plain or coloured by escape sequences.

Panels stand side by side while there is room. Columns that do not fit the width follow in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil, gcd

from warpjit.layout.picture_parts import SHADES, Box, Panel

GAP = 2
"""Spaces between panels."""


def text(title: str, caption: Sequence[str], panels: Sequence[Panel], width: int, color: bool) -> str:
    """The whole picture, in lines of `width` characters if the labels are not longer."""
    lines = [line for line in (title, *caption) if line]
    for group in _groups([_block(panel, width, color) for panel in panels], width):
        lines += ["", *_side_by_side(group)]
    return "\n".join(line.rstrip() for line in lines).lstrip("\n") + "\n"


@dataclass(frozen=True)
class _Block:
    """Lines with the characters that each shows: escape sequences do not count."""

    lines: tuple[tuple[str, int], ...]

    @property
    def width(self) -> int:
        return max(shown for _, shown in self.lines)


def _groups(blocks: Sequence[_Block], width: int) -> Iterator[list[_Block]]:
    """Runs of panels that fit side by side."""
    group: list[_Block] = []
    for block in blocks:
        if group and sum(each.width + GAP for each in group) + block.width > width:
            yield group
            group = []
        group.append(block)
    yield group


def _side_by_side(blocks: Sequence[_Block]) -> Iterator[str]:
    for lines in zip_longest(*(block.lines for block in blocks), fillvalue=("", 0)):
        yield "".join(
            line + " " * (block.width - shown + GAP) for block, (line, shown) in zip(blocks, lines, strict=True)
        )


def _block(panel: Panel, width: int, color: bool) -> _Block:
    margin = len(str(panel.rows - 1)) + 2
    grid = _grid(panel, width - margin)
    rows: list[list[tuple[Box, str]]] = [[] for _ in range(panel.rows)]
    for box, label in zip(panel.boxes, grid.labels, strict=True):
        rows[box.row].append((box, label))
    lines = [(panel.title, len(panel.title))] if panel.title else []
    columns = _columns(panel, grid, width - margin)
    for start in range(0, panel.columns, columns):
        inside = [[cell for cell in row if start <= cell[0].column < start + columns] for row in rows]
        if start:
            lines.append(("", 0))
        head = " " * margin + "".join(f"{box.column:>{grid.field(box) - 1}} " for box, _ in inside[0])
        lines.append((head, len(head)))
        for number, row in enumerate(inside):
            cells = "".join(_cell(label, grid.field(box), box.shade, color) for box, label in row)
            lines.append((f"{number:>{margin - 2}}  {cells}", margin + sum(grid.field(box) for box, _ in row)))
    return _Block(tuple(lines))


@dataclass(frozen=True)
class _Grid:
    """How boxes become characters: `grain` elements, of which all boxes are multiples, take `unit` characters."""

    labels: list[str]
    grain: int
    unit: int

    def field(self, box: Box) -> int:
        """Characters of a box, with the space after it."""
        return box.width // self.grain * self.unit


def _grid(panel: Panel, width: int) -> _Grid:
    """With the long labels if a whole row of them fits, else with the short ones."""
    grain = gcd(panel.columns, *(box.width for box in panel.boxes), *(box.column for box in panel.boxes))
    found = []
    for labels in ([" ".join(box.lines) for box in panel.boxes], [box.short for box in panel.boxes]):
        needs = (
            ((max(len(label), len(str(box.column))) + 1), box.width // grain)
            for box, label in zip(panel.boxes, labels, strict=True)
        )
        found.append(_Grid(labels, grain, max(ceil(need / grains) for need, grains in needs)))
    long, short = found
    fits = long.unit * (panel.columns // grain) <= width
    return long if fits or long.unit == short.unit else short


def _columns(panel: Panel, grid: _Grid, room: int) -> int:
    """How many columns stand side by side: as many as there is room for, in equal blocks where that is possible."""
    grain = grid.grain
    most = max(room // grid.unit, 1) * grain
    equal = [columns for columns in range(grain, most + 1, grain) if panel.columns % columns == 0]
    return min(equal[-1] if equal and 2 * equal[-1] > most else most, panel.columns)


def _cell(label: str, field: int, shade: int, color: bool) -> str:
    shown = f"{label:>{field - 1}}"
    if not color:
        return shown + " "
    red, green, blue = (int(SHADES[shade][at : at + 2], 16) for at in (1, 3, 5))
    return f"\x1b[48;2;{red};{green};{blue}m\x1b[30m{shown}\x1b[0m "
