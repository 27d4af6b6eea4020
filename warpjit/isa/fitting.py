"""`fits(instruction, operand, layout)`: whether a layout is what an instruction reads, outside of kernels.

The answer is data: the registers where it fits, otherwise one element that shows that it does not, and the nearest
fix. Kernels ask the same proofs (`proof`, `tile_proof`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from warpjit.errors import InstructionError, LayoutError
from warpjit.ir.dtypes import DType
from warpjit.ir.dtypes import dtype as dtype_named
from warpjit.isa.operands import Group, fragment_operand
from warpjit.isa.proof import prove
from warpjit.isa.refusal import Counterexample, Fix, Misplaced
from warpjit.isa.row import Kind, Operand, Row
from warpjit.isa.table import as_row
from warpjit.isa.tile_proof import prove_tile
from warpjit.layout import ComposeLayout, Layout, TileLayout
from warpjit.record import record

ENOUGH = 1 << 30
"""More registers than a layout can name: outside of kernels there is no allocation to leave."""


@record
class Fit:
    """Whether a layout fits an operand.

    sentence        the answer in words
    slots           where it fits, fragments: of each issue the register of the layout that each of the instruction's is
    rows            where it fits, tiles in memory: of each issue the byte at which each row begins
    counterexample  where it does not: one element that shows it (None: size, shape or type are wrong already)
    fix             what would make it fit (None: nothing is near)
    """

    ok: bool
    sentence: str
    slots: tuple[tuple[int, ...], ...] = ()
    rows: tuple[tuple[int, ...], ...] = ()
    counterexample: Counterexample | None = None
    fix: Fix | None = None

    def __bool__(self) -> bool:
        return self.ok


def fits(
    instruction: Row | str,
    operand: str,
    layout: Layout,
    *,
    shape: Sequence[int] | None = None,
    dtype: DType | str | None = None,
    scope: str = "warp",
    warps: int = 1,
) -> Fit:
    """Whether elements placed by `layout` are where the instruction reads (or writes) those of the operand.

    instruction  its row, or its full PTX text
    operand      "A", "D", "src", …: a fragment, or an address that a tile in memory can stand for
    layout       fragments: owners on thread axes, on m the register, counted in elements of `dtype`; tiles: m alone
    shape        in elements of `dtype`: (*batch, *repeats, *atom), or the matrix that repeats make up, (rows, columns);
                 omitted: one atom
    dtype        any type as wide as a register, or the elements that registers pack; omitted: what the sizes say
    scope        "warp"; "warpgroup" or "cta" (of `warps` warps): with a leading axis of warps

    Raises InstructionError for an unknown instruction or operand, or one that is neither, LayoutError for what is no
    layout; what does not fit is an answer, not an error.
    """
    row = as_row(instruction)
    if not isinstance(layout, TileLayout | ComposeLayout):
        raise LayoutError(f"fits: expected a layout but got {layout!r}")
    chosen = row.operand(operand)
    given = None if dtype is None else dtype_named(dtype)
    if chosen.kind is Kind.ADDRESS:
        return _tile_fits(row, chosen, layout, shape, given)
    fragment_operand(row, operand)
    return _fragment_fits(row, chosen, layout, shape, given, Group(scope, warps))


# ---- fragments -------------------------------------------------------------------------------------------


def _fragment_fits(
    row: Row, operand: Operand, layout: Layout, shape: Sequence[int] | None, dtype: DType | None, group: Group
) -> Fit:
    what = f"{row.text}: operand {operand.name}"
    chosen = _type_of(row, operand, layout, shape, dtype, group)
    if chosen is None:
        words, packed = prod(operand.shape) * prod(group.extents), operand.packed
        many = f", or {words * packed} {operand.element}" if packed > 1 else ""
        return Fit(False, f"{what} has {words} registers{many}, but the layout has {layout.size()}: give the shape")
    sizes = tuple(shape) if shape is not None else _atom_shape(operand, chosen, group)
    view = _Atoms.of(operand, sizes, chosen, group)
    try:
        placed = view.layout_of(layout) if view is not None else layout
        placement = prove(row, operand.name, placed, view.shape if view else sizes, chosen, ENOUGH, group)
    except Misplaced as refusal:
        example = refusal.counterexample
        if view is not None:
            example = view.in_matrix(example)
        return Fit(False, str(refusal), counterexample=example, fix=refusal.fix)
    except (InstructionError, LayoutError) as refusal:
        return Fit(False, str(refusal))
    slots = tuple(tuple(int(slot) for slot in issue) for issue in placement.slots)
    return Fit(True, f"{what} is in place: {_slots_text(slots)}", slots=slots)


def _slots_text(slots: tuple[tuple[int, ...], ...]) -> str:
    plural = "register is" if len(slots[0]) == 1 else "registers are"
    first = f"its {plural} {', '.join(map(str, slots[0]))} of the layout"
    return first if len(slots) == 1 else f"in the first of {len(slots)} issues {first}"


def _type_of(
    row: Row, operand: Operand, layout: Layout, shape: Sequence[int] | None, dtype: DType | None, group: Group
) -> DType | None:
    """The type of the layout's elements: as given, or words or elements by what fills the atom."""
    if dtype is not None:
        return dtype
    words, elements = operand.dtype, operand.element or operand.dtype
    size = layout.size() if shape is None else shape[-1] if len(shape) >= len(operand.shape) else 0
    for each in (words, elements):
        assert each is not None
        atom = _atom_shape(operand, each, group)
        if (shape is None and size == prod(atom)) or (shape is not None and size == atom[-1]):
            return each
    if shape is None or len(operand.shape) != 2 or len(shape) != 2:
        return None
    return elements  # a matrix is in elements where that is not said otherwise


def _atom_shape(operand: Operand, dtype: DType, group: Group) -> tuple[int, ...]:
    assert operand.dtype is not None
    *rows, last = operand.shape
    return (*group.extents, *rows, last * max(operand.dtype.bits // dtype.bits, 1))


@record
class _Atoms:
    """A matrix cut into the operand's atoms: `shape` is (row repeats, column repeats, rows, columns)."""

    shape: tuple[int, int, int, int]

    @classmethod
    def of(cls, operand: Operand, sizes: tuple[int, ...], dtype: DType, group: Group) -> _Atoms | None:
        """None where the shape is not that of a matrix of several atoms."""
        if len(sizes) != 2 or len(operand.shape) != 2 or len(operand.repeats) != 2 or group.extents:
            return None
        rows, columns = _atom_shape(operand, dtype, group)
        if sizes[0] % rows or sizes[1] % columns or sizes == (rows, columns):
            return None
        return cls((sizes[0] // rows, sizes[1] // columns, rows, columns))

    def layout_of(self, matrix: Layout) -> Layout:
        """The layout over the atoms of that of the matrix. LayoutError where an iter does not split."""
        i, j, rows, columns = self.shape
        grouped, seps = matrix.group((i, rows, j, columns))
        return grouped.permute_by_groups(seps, (0, 2, 1, 3))

    def in_matrix(self, example: Counterexample) -> Counterexample:
        """With the coordinates of the matrix."""
        _, _, rows, columns = self.shape

        def flat(where: tuple[int, ...]) -> tuple[int, int]:
            return where[0] * rows + where[2], where[1] * columns + where[3]

        witness = None if example.witness is None else flat(example.witness)
        return replace(example, element=flat(example.element), witness=witness)


# ---- tiles -----------------------------------------------------------------------------------------------


def _tile_fits(row: Row, operand: Operand, layout: Layout, shape: Sequence[int] | None, dtype: DType | None) -> Fit:
    if operand.dtype is None or not operand.shape:
        raise InstructionError(f"{row.text}: operand {operand.name} is an address for which no tile can stand")
    bits = dtype.bits if dtype is not None else 0
    for width in (operand.dtype.bits, 16, 8):
        atom = (*operand.shape[:-1], operand.shape[-1] * operand.dtype.bits // width)
        size = prod(atom) if shape is None else atom[-1]
        if not bits and (layout.size() if shape is None else tuple(shape)[-1]) == size:
            bits = width
    bits = bits or operand.dtype.bits
    sizes = tuple(shape or (*operand.shape[:-1], operand.shape[-1] * operand.dtype.bits // bits))
    try:
        placement = prove_tile(row, operand.name, layout, sizes, bits, operand.align)
    except Misplaced as refusal:
        return Fit(False, str(refusal), counterexample=refusal.counterexample, fix=refusal.fix)
    except InstructionError as refusal:
        return Fit(False, str(refusal))
    rows = tuple(tuple(int(byte) for byte in issue) for issue in placement.rows)
    return Fit(True, f"{row.text}: operand {operand.name} is in place: its rows are whole and aligned", rows=rows)
