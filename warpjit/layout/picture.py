"""Pictures of layouts: who holds each element, or in which bank of shared memory it lies.

    print(layout.draw((16, 16)))                              # text
    layout.draw((16, 16), color="register").save("a.svg")     # SVG
    layout.draw((16, 16))                                     # in a notebook: the SVG

How a picture is written is in `picture_svg` and `picture_text`. Pictures of operands are in `isa.picture`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import product
from math import log, prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from warpjit.errors import LayoutError
from warpjit.layout.axis import LANES
from warpjit.layout.elements import UNIT_BITS, ElementType, element_bits
from warpjit.layout.iters import Shape, as_shape, size_of
from warpjit.layout.picture_parts import Box, Panel, quad_shade, step_shade
from warpjit.layout.picture_svg import svg
from warpjit.layout.picture_text import text

if TYPE_CHECKING:
    from warpjit.layout.compose import Layout

Ints = NDArray[np.int64]

LARGEST = 16384
"""Elements of the largest picture."""
NOTEBOOK = 4096
"""Elements of the largest picture that a notebook shows unasked."""
WORD_BITS, BANKS = 32, 32
"""Shared memory has 32 banks of 4 bytes (CUDA C++ Programming Guide, "Shared Memory")."""


@dataclass(frozen=True)
class Picture:
    """A picture, in every form. `str()` is the text; a notebook shows the SVG.

    title    above the picture
    caption  lines below the title: what labels and colours mean
    panels   matrices of labelled boxes
    """

    title: str
    caption: tuple[str, ...]
    panels: tuple[Panel, ...]

    def svg(self) -> str:
        """A self-contained SVG document; the mouse over a box shows all about it."""
        return svg(self.title, self.caption, self.panels)

    def text(self, width: int = 120, color: bool = False) -> str:
        """Lines for a terminal of `width` characters; `color` with escape sequences (24-bit colours)."""
        return text(self.title, self.caption, self.panels, width, color)

    def save(self, path: str | Path) -> None:
        """Write the SVG, or to a path that ends in ".txt" the text."""
        where = Path(path)
        where.write_text(self.text() if where.suffix == ".txt" else self.svg(), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg()}</div>'

    def __str__(self) -> str:
        return self.text()


def draw_layout(
    self: Layout, shape: Sequence[int] | None = None, *, color: str | None = None, dtype: ElementType | None = None
) -> Picture:
    """A layout's picture: see `Drawn.draw`."""
    sizes = default_shape(self) if shape is None else as_shape(shape, "draw: shape")
    bits = _bits(self) if dtype is None else element_bits(dtype)
    return picture(self, sizes, bits=bits, color=color, title=repr(self))


def layout_html(self: Layout) -> str:
    """What a notebook shows of a layout: its source, and a picture if it is not too large."""
    source = f"<code>{escape(repr(self))}</code>"
    if self.size() > NOTEBOOK:
        return source
    shown = picture(self, default_shape(self), bits=_bits(self), color=None, title="")
    return source + shown._repr_html_()


def picture(
    layout: Layout,
    shape: Shape,
    *,
    bits: int,
    color: str | None,
    title: str,
    about: str = "",
    axes: Sequence[str] = (),
    register_bits: int = WORD_BITS,
) -> Picture:
    """The picture of a layout whose elements have `bits` bits; `axes` are the names of the dims of `shape`.

    Raises LayoutError as `draw_layout` does.
    """
    if prod(shape) > LARGEST:
        raise LayoutError(
            f"draw: expected at most {LARGEST} elements but got shape {shape}: draw a slice, or a part of the shape"
        )
    full = (*(1 for _ in range(2 - len(shape))), *shape)
    values = layout.enumerate(shape)
    if axes:  # an operand has registers, even if it is but one
        values.setdefault("m", np.zeros(shape, np.int64))
    places = _Places({axis: value.reshape(full) for axis, value in values.items()}, full, bits, register_bits)
    chosen = color or ("bank" if places.in_memory else "lane")
    known = places.colors()
    if chosen not in known:
        raise LayoutError(f"draw: expected color {' or '.join(map(repr, known))} but got {color!r}")
    names = axes or (*(f"axis {dim}" for dim in range(len(shape) - 2)), "row", "column")
    copies = size_of(layout.replica)
    notes = [places.legend(chosen)]
    if axes:
        notes[0] += f"; rows: {names[-2]}, columns: {names[-1]}"
    if copies > 1:
        notes.append(f"each element has {copies} copies: the first is shown")
    return Picture(title, (*((about,) if about else ()), *notes), _panels(places, full, known[chosen], names))


def default_shape(layout: Layout) -> Shape:
    """Rows and columns: the split of the iters that is nearest to a square; memory in one row gets rows of 32."""
    extents = layout.extents
    splits = [(prod(extents[:cut]), prod(extents[cut:])) for cut in range(len(extents) + 1)]
    rows, columns = min(splits, key=lambda split: abs(log(split[0] / split[1])))
    size = rows * columns
    if min(rows, columns) == 1 and size > BANKS and size % BANKS == 0:
        return size // BANKS, BANKS
    return rows, columns


def _bits(layout: Layout) -> int:
    """Elements whose swizzle moves units of 16 bytes; 32 bits where there is none."""
    together = getattr(layout, "per_element", None)
    return WORD_BITS if together is None else max(UNIT_BITS >> together, 1)


# ---- what boxes say ------------------------------------------------------------------------------------

_OWNERS = {
    **{name: name for name in ("bx", "by", "bz", "cbx", "cby", "cbz")},
    **{"wgid": "G", "warpid": "W", "wid_in_wg": "W", "tx": "T", "tid_in_wg": "T", "laneid": "T"},
}
"""Prefix of each thread axis, from the outermost to the innermost."""
_WORDS = {"wgid": "warpgroup", "warpid": "warp", "wid_in_wg": "warp", "tx": "thread", "tid_in_wg": "thread"} | {
    "laneid": "lane",
    "TLane": "tensor memory lane",
    "TCol": "column",
}


@dataclass(frozen=True, eq=False)
class _Places:
    """Where the elements of a shape are: arrays of that shape by axis."""

    values: dict[str, Ints]
    shape: Shape
    bits: int
    register_bits: int

    @property
    def in_memory(self) -> bool:
        """Whether there are no owners: m counts elements in memory, not in a lane's registers."""
        return set(self.values) <= {"m"}

    @property
    def owners(self) -> tuple[str, ...]:
        return tuple(axis for axis in (*_OWNERS, "TLane") if axis in self.values)

    @property
    def packed(self) -> int:
        """Elements in a box at most: of one register, or of one bank's word."""
        return max((WORD_BITS if self.in_memory else self.register_bits) // self.bits, 1)

    def of(self, axis: str) -> Ints:
        return self.values.get(axis, np.zeros(self.shape, np.int64))

    def register(self) -> Ints:
        return self.of("m") // self.packed

    def byte(self) -> Ints:
        """Of the first element of a box: its byte, rounded down to the word where several share one."""
        start = self.of("m") * self.bits // 8
        return start // (WORD_BITS // 8) * (WORD_BITS // 8) if self.packed > 1 else start

    def bank(self) -> Ints:
        return self.byte() // (WORD_BITS // 8) % BANKS

    def lane(self) -> Ints:
        total = self.of("laneid") + self.of("tx") + self.of("tid_in_wg") + self.of("TLane")
        return total % LANES

    def warp(self) -> Ints:
        threads = (self.of("tx") + self.of("tid_in_wg")) // LANES
        return self.of("warpid") + self.of("wid_in_wg") + 4 * self.of("wgid") + threads

    def colors(self) -> dict[str, Ints]:
        """The shades of every way to colour."""
        if self.in_memory:
            return {"bank": quad_shade(self.bank())}
        ways = {"lane": quad_shade(self.lane()), "register": step_shade(self.register())}
        if self.warp().any() or {"warpid", "wid_in_wg"} & set(self.values):
            ways["warp"] = step_shade(self.warp())
        return ways

    def parts(self) -> list[_Part]:
        """What a box's label says."""
        if self.in_memory:
            return [_Part("B", "bank", self.bank(), 0), _Part("+", "byte", self.byte(), 1, short=False)]
        found = [_Part(_OWNERS.get(axis, "L"), _WORDS.get(axis, axis), self.of(axis), 0) for axis in self.owners]
        if "TCol" in self.values:
            found.append(_Part("C", "column", self.of("TCol"), 1))
        if "m" in self.values:
            found.append(_Part("R", "register", self.register(), 1))
        return found

    def legend(self, color: str) -> str:
        named = ", ".join(f"{part.prefix} {part.word}" for part in self.parts())
        return f"{named}; coloured by {color}"


@dataclass(frozen=True, eq=False)
class _Part:
    """One number of a box's label, for all elements.

    line   of the label in which it stands
    short  whether the label of one line has it too
    """

    prefix: str
    word: str
    values: Ints
    line: int
    short: bool = True


def _panels(places: _Places, shape: Shape, shades: Ints, names: Sequence[str]) -> tuple[Panel, ...]:
    """A panel for each coordinate of the dims before the last two."""
    parts = places.parts()
    panels = []
    for outer in product(*(range(size) for size in shape[:-2])):
        own = [replace(part, values=part.values[outer]) for part in parts]
        title = ", ".join(f"{name} {index}" for name, index in zip(names, outer, strict=False))
        boxes = tuple(_boxes(own, shades[outer], places.packed > 1, names))
        panels.append(Panel(title, shape[-2], shape[-1], boxes))
    return tuple(panels)


def _boxes(parts: Sequence[_Part], shades: Ints, merged: bool, names: Sequence[str]) -> Iterator[Box]:
    """Row by row; with `merged`, neighbours with the same label are one box."""
    first = np.ones(shades.shape, np.bool_)
    if merged:
        first[:, 1:] = np.any([part.values[:, 1:] != part.values[:, :-1] for part in parts], axis=0)
    for row in range(shades.shape[0]):
        starts = np.flatnonzero(first[row]).tolist()
        for column, end in zip(starts, [*starts[1:], shades.shape[1]], strict=True):
            numbers = [int(part.values[row, column]) for part in parts]
            place = _position(names, row, column, end - 1)
            said = ", ".join(f"{part.word} {number}" for part, number in zip(parts, numbers, strict=True))
            lines, short = _label(parts, numbers)
            yield Box(row, column, end - column, lines, short, int(shades[row, column]), f"{place}: {said}")


def _label(parts: Sequence[_Part], numbers: Sequence[int]) -> tuple[tuple[str, ...], str]:
    """("W1T20", "R2") and "1.20:2"."""
    lines: dict[int, str] = {}
    short: dict[int, list[str]] = {}
    for part, number in zip(parts, numbers, strict=True):
        lines[part.line] = lines.get(part.line, "") + f"{part.prefix}{number}"
        if part.short:
            short.setdefault(part.line, []).append(str(number))
    return tuple(lines.values()), ":".join(".".join(each) for each in short.values())


def _position(names: Sequence[str], row: int, first: int, last: int) -> str:
    *_, rows, columns = ("row", *names)
    return f"{rows} {row}, {columns} {first}" + (f" to {last}" if last > first else "")
