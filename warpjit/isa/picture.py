"""Pictures of an instruction's operands: which lane and register hold each element, or which lane addresses a row.

How pictures are written is in `layout.picture`.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from warpjit.errors import InstructionError, LayoutError
from warpjit.layout.picture import Picture, picture
from warpjit.layout.picture_parts import Box, Panel, quad_shade

if TYPE_CHECKING:
    from warpjit.isa.row import Operand, Row


def draw_operand(self: Row, operand: str, *, color: str = "lane") -> Picture:
    """An operand's picture: see `Row.draw`."""
    found = self.operand(operand)
    if found.layout is None:
        raise InstructionError(
            f"{self.text}: operand {operand} is of kind {found.kind.value}: there is nothing to draw, for it is not "
            "spread over lanes"
        )
    if found.registers == 0:
        return _addresses(self, found)
    assert found.dtype is not None
    held = found.held
    try:
        return picture(
            held.layout,
            held.shape,
            bits=held.bits,
            register_bits=found.dtype.bits,
            color=color,
            title=self.text,
            about=describe(found),
            axes=held.names,
        )
    except LayoutError as error:
        raise InstructionError(f"{self.text}: operand {operand}: {error}") from None


def drawn_operands(row: Row) -> dict[str, list[str]]:
    """The operands that there are pictures of, each with those of the same layout and type (D with C)."""
    alike: dict[object, list[str]] = {}
    for operand in row.operands:
        if operand.layout is not None:
            key = (operand.kind, operand.layout, operand.shape, operand.dtype, operand.element)
            alike.setdefault(key, []).append(operand.name)
    return {first: others for first, *others in alike.values()}


def row_html(self: Row) -> str:
    """What a notebook shows of an instruction: pictures of its operands."""
    pictures = "".join(draw_operand(self, name)._repr_html_() for name in drawn_operands(self))
    return f"<code>{self!r}</code>{pictures}"


def describe(operand: Operand) -> str:
    """An operand in a line: "A: 16 x 16 float16, 4 registers a lane"."""
    registers = f"{operand.registers} register{'s' if operand.registers > 1 else ''} a lane"
    return f"{operand.name}: {content(operand)}, {registers}"


def content(operand: Operand) -> str:
    """What a fragment's registers hold: "16 x 16 float16", "16 x 8 groups of 4 bits"."""
    held = operand.held
    what = operand.element or operand.dtype if operand.fields is None else f"groups of {held.bits} bits"
    return f"{' x '.join(map(str, held.shape))} {what}"


def _addresses(row: Row, operand: Operand) -> Picture:
    """A box for each row of the tile: the lane that gives its address."""
    assert operand.layout is not None
    *outer, rows, _ = operand.shape
    lanes = operand.layout.enumerate((*outer, rows)).get("laneid", np.zeros((*outer, rows), np.int64))
    shades = quad_shade(lanes)
    panels = []
    for where in product(*(range(size) for size in outer)):
        boxes = tuple(
            Box(line, 0, operand.bytes, (f"T{lane}",), str(lane), shade, f"row {line}: lane {lane}")
            for line, (lane, shade) in enumerate(zip(lanes[where].tolist(), shades[where].tolist(), strict=True))
        )
        title = ", ".join(f"{name} {index}" for name, index in zip(operand.axes, where, strict=False))
        panels.append(Panel(title, rows, operand.bytes, boxes))
    about = f"{operand.name}: T, the lane that gives the address of a row of {operand.bytes} bytes; columns: bytes"
    return Picture(row.text, (about,), tuple(panels))
