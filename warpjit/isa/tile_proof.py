"""Proofs that a tile in memory has the rows that a matrix instruction reads or writes, by enumeration.

A row of ldmatrix is 16 contiguous bytes at a multiple of 16; the rows themselves may lie anywhere: padded,
interleaved, swizzled. `prove_tile` looks at every element of the view. Registers are proven in `proof`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import InstructionError, LayoutError
from warpjit.isa.refusal import Counterexample, Fix, MemoryPlace, Misplaced
from warpjit.isa.row import Kind, Operand, Row
from warpjit.layout import Layout

Ints = npt.NDArray[np.int64]
Blocks: TypeAlias = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, eq=False)
class TilePlacement:
    """Where the rows of a tile are.

    rows     (issues, rows of the atom): the byte offset of each row from the layout's origin
    repeats  extents of the axes before the atom; issues are their coordinates in row-major order
    """

    rows: Ints
    repeats: tuple[int, ...]


def prove_tile(
    row: Row, operand_name: str, layout: Layout, shape: tuple[int, ...], element_bits: int, base_align: int
) -> TilePlacement:
    """The rows of an address operand that a view of memory stands for, after proving that they are legal.

    layout        of the view, on m only, in elements
    shape         (*group, *batch, *atom); the atom's last axis counts elements, so it is longer for narrow ones
    element_bits  width of the view's elements, at most 32
    base_align    bytes of which the address of the layout's origin is known to be a multiple

    Raises InstructionError: a shape that does not fit, owners or replicas, a base or row that is not aligned, a row
    that is not contiguous, rows that overlap where the instruction writes. Source: PTX manual, sections "ldmatrix"
    and "stmatrix" (row addresses).
    """
    return _prove_tile(row, operand_name, layout, tuple(shape), element_bits, base_align)


@lru_cache(maxsize=4096)
def _prove_tile(
    row: Row, name: str, layout: Layout, shape: tuple[int, ...], element_bits: int, base_align: int
) -> TilePlacement:
    operand = row.operand(name)
    atom = _atom(row, operand, element_bits)
    _check_declared(row, operand, layout, shape, atom)
    _check_base(row, operand, base_align)
    repeats = shape[: len(shape) - len(atom)]
    zero = np.zeros(shape, np.int64)
    places = layout.enumerate(shape).get("m", zero).reshape(prod(repeats), prod(atom[:-1]), atom[-1])
    where = np.moveaxis(np.indices(shape), 0, -1).reshape(*places.shape, len(shape))
    try:
        return TilePlacement(_row_offsets(row, operand, where, places, element_bits), repeats)
    except Misplaced as refusal:
        fix = _other_form(row, operand, layout, shape, element_bits)
        if fix is None:
            raise
        raise Misplaced(f"{refusal}; {fix.sentence}", refusal.counterexample, fix) from None


def _other_form(row: Row, operand: Operand, layout: Layout, shape: tuple[int, ...], element_bits: int) -> Fix | None:
    """The form with, or without, .trans, where each matrix of the tile is contiguous the other way."""
    if element_bits != 16 or shape[-1] != shape[-2]:
        return None
    try:
        grouped, seps = layout.group(shape)
    except LayoutError:
        return None
    turned = grouped.permute_by_groups(seps, [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2])
    places = turned.enumerate(shape)["m"].reshape(-1, prod(operand.shape[:-1]), shape[-1])
    where = np.moveaxis(np.indices(shape), 0, -1).reshape(*places.shape, len(shape))
    try:
        _row_offsets(row, operand, where, places, element_bits)
    except InstructionError:
        return None
    other = row.text.replace(".trans", "") if operand.transposed else row.text.replace(".shared", ".trans.shared", 1)
    return Fix("trans", f"the tile is contiguous the other way: exchange its last two axes, and use {other}", turned)


def prove_blocks(
    row: Row, operand_name: str, layout: Layout, shape: tuple[int, int], blocks: Blocks, base_align: int
) -> None:
    """That the 8 x 8 blocks of a matrix of 16-bit elements in memory have the rows that the instruction moves.

    shape       (rows, columns) of the matrix
    blocks      of each issue the blocks in the instruction's order, as (block row, block column)
    base_align  as in `prove_tile`, which says what is refused

    With an operand that is transposed a row of memory is a column of the matrix.
    """
    _prove_blocks(row, operand_name, layout, shape, blocks, base_align)


@lru_cache(maxsize=4096)
def _prove_blocks(row: Row, name: str, layout: Layout, shape: tuple[int, int], blocks: Blocks, base_align: int) -> None:
    operand = row.operand(name)
    _check_owners(row, operand, layout)
    _check_base(row, operand, base_align)
    zero = np.zeros(shape, np.int64)
    flat = layout.enumerate(shape).get("m", zero).reshape(shape)
    first = 8 * np.asarray(blocks, np.int64)[:, :, None, None, :]
    steps = np.moveaxis(np.indices((8, 8)), 0, -1)
    where = first + (steps[..., ::-1] if operand.transposed else steps)
    where = where.reshape(len(blocks), -1, 8, 2)
    _row_offsets(row, operand, where, flat[where[..., 0], where[..., 1]], 16)


def _check_base(row: Row, operand: Operand, base_align: int) -> None:
    if base_align % operand.align:
        raise _refused(
            row,
            operand,
            f"the address of the tile is known to be a multiple of {base_align} bytes only, but must be one of "
            f"{operand.align}: give the allocation align={operand.align}, or start the slice at a multiple of it",
        )


def _refused(row: Row, operand: Operand, sentence: str) -> InstructionError:
    return InstructionError(f"{row.text}: operand {operand.name}: {sentence}")


def _misplaced(row: Row, operand: Operand, sentence: str, example: Counterexample) -> Misplaced:
    return Misplaced(str(_refused(row, operand, sentence)), example, None)


def _atom(row: Row, operand: Operand, element_bits: int) -> tuple[int, ...]:
    """The atom in the view's elements."""
    if operand.kind is not Kind.ADDRESS or not operand.shape or operand.dtype is None:
        raise _refused(row, operand, f"no tile can stand for an operand of kind {operand.kind.value}")
    *rows, words = operand.shape
    if operand.dtype.bits % element_bits:
        raise _refused(
            row, operand, f"a tile of {element_bits}-bit elements does not fill {operand.dtype.bits}-bit words"
        )
    return (*rows, words * operand.dtype.bits // element_bits)


def _check_declared(row: Row, operand: Operand, layout: Layout, shape: tuple[int, ...], atom: tuple[int, ...]) -> None:
    if len(shape) < len(atom) or shape[len(shape) - len(atom) :] != atom:
        expected = ", ".join(("*batch", *map(str, atom)))
        raise _refused(row, operand, f"expected a tile of shape ({expected}), but got {shape}")
    if layout.size() != prod(shape):
        raise _refused(
            row, operand, f"the layout {layout!r} has {layout.size()} elements, but the shape {shape} has {prod(shape)}"
        )
    _check_owners(row, operand, layout)


def _check_owners(row: Row, operand: Operand, layout: Layout) -> None:
    owners = [axis.name for axis in layout.axes if axis.name != "m"]
    if owners or any(it.extent > 1 for it in layout.replica):
        raise _refused(row, operand, f"a tile in memory has neither owners nor replicas, but the layout is {layout!r}")


def _row_offsets(row: Row, operand: Operand, where: Ints, places: Ints, element_bits: int) -> Ints:
    """Byte offsets (issues, rows), after checking that each row is contiguous and aligned, and written once.

    places  (issues, rows, elements): where each element lies; `where` (…, axes) which element of the tile it is
    """
    steps = places - places[..., :1]
    wrong = steps != np.arange(places.shape[-1])
    if wrong.any():
        issue, line, element = (int(each) for each in np.argwhere(wrong)[0])
        start = _coordinates(where, issue, line, 0)
        here = _coordinates(where, issue, line, element)
        first, found = (int(places[issue, line, k]) * element_bits / 8 for k in (0, element))
        raise _misplaced(
            row,
            operand,
            f"the {operand.bytes} bytes of a row must be contiguous, but element {here} is "
            f"{steps[issue, line, element]} elements after {start} instead of {element}",
            Counterexample(here, MemoryPlace(found), MemoryPlace(first + element * element_bits / 8), start),
        )
    bits = places[..., 0] * element_bits
    wrong = bits % (8 * operand.align) != 0
    if wrong.any():
        issue, line = (int(each) for each in np.argwhere(wrong)[0])
        here, byte = _coordinates(where, issue, line, 0), float(bits[issue, line]) / 8
        raise _misplaced(
            row,
            operand,
            f"every row must start at a multiple of {operand.align} bytes, but the row at {here} starts {byte:g} bytes "
            "after the origin",
            Counterexample(here, MemoryPlace(byte), MemoryPlace(byte // operand.align * operand.align)),
        )
    offsets = np.ascontiguousarray(bits // 8)
    if operand.writes:
        _check_apart(row, operand, offsets, where)
    offsets.flags.writeable = False
    return offsets


def _check_apart(row: Row, operand: Operand, offsets: Ints, where: Ints) -> None:
    """Rows are aligned to their size, so they overlap only where they are equal."""
    for issue, lines in enumerate(offsets):
        values, counts = np.unique(lines, return_counts=True)
        if (counts > 1).any():
            first, second = np.flatnonzero(lines == values[counts > 1][0])[:2]
            byte = int(values[counts > 1][0])
            one, two = (_coordinates(where, issue, int(line), 0) for line in (first, second))
            raise _misplaced(
                row,
                operand,
                f"rows {first} and {second} of issue {issue} are both written at byte {byte}",
                Counterexample(two, MemoryPlace(byte), MemoryPlace(byte + operand.bytes), one),
            )


def _coordinates(where: Ints, *element: int) -> tuple[int, ...]:
    return tuple(int(each) for each in where[element])
