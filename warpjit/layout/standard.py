"""The shared-memory layouts that TMA and wgmma read: 32-, 64- and 128-byte swizzle atoms, tiled over a shape.

Modes and atoms: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and "Swizzling Modes". An atom is
8 rows of 32, 64 or 128 bytes; 16-byte units are XORed with the row. Descriptors are not built here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from warpjit.errors import LayoutError
from warpjit.layout.compose import ComposeLayout, Layout
from warpjit.layout.elements import UNIT_BITS, ElementType, element_bits
from warpjit.layout.iters import Iter, Shape, as_shape, size_of
from warpjit.layout.notation import S
from warpjit.layout.tile import TileLayout

ATOM_ROWS = 8


class SwizzleMode(IntEnum):
    """The swizzle of a shared-memory operand. `SwizzleMode(128)` and the other byte counts are accepted."""

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of the atom: 16, 32, 64 or 128."""
        return 16 << self.value

    @classmethod
    def _missing_(cls, value: object) -> SwizzleMode | None:
        return {32: cls.B32, 64: cls.B64, 128: cls.B128}.get(value) if isinstance(value, int) else None


def mma_atom_shape(dtype: ElementType, mode: SwizzleMode | int) -> tuple[int, int]:
    """(rows, columns) of the atom, in elements: 8 rows of 16 (no swizzle), 32, 64 or 128 bytes."""
    return ATOM_ROWS, swizzle_mode(mode).row_bytes * 8 // element_bits(dtype)


def mma_atom_layout(dtype: ElementType, mode: SwizzleMode | int) -> Layout:
    """One atom: row-major rows, swizzled unless the mode is NONE."""
    return _swizzled(TileLayout(S[mma_atom_shape(dtype, mode)]), dtype, swizzle_mode(mode))


def mma_shared_layout(dtype: ElementType, mode: SwizzleMode | int, shape: Sequence[int]) -> Layout:
    """The atom tiled over the last two dims (down the rows first, then over the columns), leading dims outermost.

    dtype  bits, name or dtype of an element; mode  a `SwizzleMode`, 0 to 3, or 32, 64, 128 (bytes)

    Without swizzle, rows of 16-byte units (M x 16 bytes) follow one another; row-major if they do not divide a row.
    Raises LayoutError for a shape of rank < 2, or one that the atom does not divide.
    """
    sizes = as_shape(shape, "mma_shared_layout: shape")
    if len(sizes) < 2:
        raise LayoutError(f"mma_shared_layout: shape: expected rows and columns but got {sizes}")
    kind = swizzle_mode(mode)
    rows, columns = mma_atom_shape(dtype, kind)
    if kind is SwizzleMode.NONE:
        return TileLayout(S[sizes]) if sizes[-1] % columns else _stacked(sizes, columns)
    for name, size, part in (("rows", sizes[-2], rows), ("columns", sizes[-1], columns)):
        if size % part:
            raise LayoutError(
                f"mma_shared_layout: shape: expected a multiple of {part} {name} but got {sizes}: the atom of a "
                f"{kind.row_bytes}-byte swizzle is {rows} x {columns} elements of {element_bits(dtype)} bits"
            )
    return _swizzled(_stacked(sizes, columns), dtype, kind)


def swizzle_mode(mode: SwizzleMode | int) -> SwizzleMode:
    """The mode for 0 to 3 or 32, 64, 128 bytes; LayoutError for anything else."""
    try:
        if not isinstance(mode, bool):
            return SwizzleMode(mode)
    except ValueError:
        pass
    raise LayoutError(f"mode: expected a SwizzleMode, 0 to 3, or 32, 64 or 128 (bytes) but got {mode!r}")


def _stacked(sizes: Shape, columns: int) -> TileLayout:
    """Panels of `columns` columns, each row-major, one after another; leading dims outermost."""
    *leading, rows, width = sizes
    iters = [Iter(rows, columns)]
    if width != columns:
        iters.append(Iter(width // columns, rows * columns))
    iters.append(Iter(columns, 1))
    for size in reversed(leading):
        iters.insert(0, Iter(size, size_of(iters)))
    return TileLayout.from_iters(iters)


def _swizzled(tile: TileLayout, dtype: ElementType, mode: SwizzleMode) -> Layout:
    if mode is SwizzleMode.NONE:
        return tile
    together = (UNIT_BITS // element_bits(dtype)).bit_length() - 1
    return ComposeLayout(together, mode.value, 3, tile)
