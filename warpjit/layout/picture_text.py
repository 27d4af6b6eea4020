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
    labels, unit = _labels(panel, width - margin)
    rows: list[list[tuple[Box, str]]] = [[] for _ in range(panel.rows)]
    for box, label in zip(panel.boxes, labels, strict=True):
        rows[box.row].append((box, label))
    lines = [(panel.title, len(panel.title))] if panel.title else []
    columns = _columns(panel, (width - margin) // unit)
    for start in range(0, panel.columns, columns):
        inside = [[cell for cell in row if start <= cell[0].column < start + columns] for row in rows]
        if start:
            lines.append(("", 0))
        head = " " * margin + "".join(f"{box.column:>{unit * box.width - 1}} " for box, _ in inside[0])
        lines.append((head, len(head)))
        for number, row in enumerate(inside):
            cells = "".join(_cell(box, label, unit, color) for box, label in row)
            lines.append((f"{number:>{margin - 2}}  {cells}", margin + unit * sum(box.width for box, _ in row)))
    return _Block(tuple(lines))


def _columns(panel: Panel, room: int) -> int:
    """How many columns stand side by side: as many as there is room for, in equal blocks where that is possible."""
    grain = gcd(panel.columns, *(box.width for box in panel.boxes), *(box.column for box in panel.boxes))
    most = max(room // grain, 1) * grain
    equal = [columns for columns in range(grain, most + 1, grain) if panel.columns % columns == 0]
    return min(equal[-1] if equal and 2 * equal[-1] > most else most, panel.columns)


def _labels(panel: Panel, width: int) -> tuple[list[str], int]:
    """The long labels if a whole row of them fits, else the short ones; and the characters an element takes."""
    for labels in ([" ".join(box.lines) for box in panel.boxes], [box.short for box in panel.boxes]):
        unit = max(
            ceil((max(len(label), len(str(box.column))) + 1) / box.width)
            for box, label in zip(panel.boxes, labels, strict=True)
        )
        if unit * panel.columns <= width:
            break
    return labels, unit


def _cell(box: Box, label: str, unit: int, color: bool) -> str:
    shown = f"{label:>{unit * box.width - 1}}"
    if not color:
        return shown + " "
    red, green, blue = (int(SHADES[box.shade][at : at + 2], 16) for at in (1, 3, 5))
    return f"\x1b[48;2;{red};{green};{blue}m\x1b[30m{shown}\x1b[0m "
