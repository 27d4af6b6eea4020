"""`ldmatrix` and `stmatrix` on (fragment, matrix in shared memory), in elements.

The fragment's layout says which 8 x 8 block each of its registers holds; that gives the order in which the blocks are
asked for. What does not come as such blocks is refused with the form that would. The form in which the tile's axes are
the instruction's own is in `tiles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import InstructionError, TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import Index, add, address, start_alignment
from warpjit.frontend.builder import Builder
from warpjit.frontend.fragments import halves_of, lane, matrix, sizes
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import TensorValue, Value
from warpjit.ir.nodes import Address, Fragment, OperandValue, Registers, Slot, Tile
from warpjit.isa.operands import Group
from warpjit.isa.row import Kind, Operand, Row
from warpjit.isa.tile_proof import Blocks, prove_blocks
from warpjit.layout import ComposeLayout
from warpjit.record import record

Ints = npt.NDArray[np.int64]
Steps: TypeAlias = tuple[tuple[int, int], ...]
BLOCK = 8  # rows and columns of a matrix of the instruction


@record
class Move:
    """The operands of a matrix move: the fragment's, and the memory's."""

    row: Row
    registers: Operand
    memory: Operand

    @property
    def count(self) -> int:
        """Blocks, and registers, of one issue."""
        return self.registers.registers

    def refused(self, sentence: str) -> TraceError:
        return TraceError(f"{self.row.text}: {sentence}")


def move_of(row: Row, operands: Sequence[Value]) -> Move | None:
    """The move, where the row is one of 8 x 8 blocks and the operand in memory is a matrix of two axes."""
    if [each.kind for each in row.operands if each.kind is not Kind.FRAGMENT] != [Kind.ADDRESS] or len(operands) != 2:
        return None
    memory = next(each for each in row.operands if each.kind is Kind.ADDRESS)
    registers = next(each for each in row.operands if each.kind is Kind.FRAGMENT)
    tile = operands[row.operands.index(memory)]
    if registers.layout is None or not isinstance(tile, TensorValue) or len(tile.shape) != 2:
        return None
    return Move(row, registers, memory)


def apply_matrix(tracer: Tracer, move: Move, operands: Sequence[Value], group: Group) -> None:
    """As many issues as the fragment has registers for."""
    if group.extents:
        raise move.refused(f'a matrix of two axes belongs to one warp: expected scope="warp" but got {group.scope!r}')
    by_name = dict(zip((each.name for each in move.row.operands), operands, strict=True))
    fragment, tile = by_name[move.registers.name], by_name[move.memory.name]
    _check(move, fragment, tile)
    builder = tracer.builder
    whole = matrix(builder, fragment, move.row.text)
    blocks, registers = _blocks(move, fragment, whole)
    if _shape_in_halves(whole) != sizes(tile):
        raise move.refused(
            f"the fragment {fragment.name} is a matrix of {_shape_in_halves(whole)} 16-bit elements, but {tile.name} "
            f"has shape {sizes(tile)}"
        )
    assert tile.layout is not None and isinstance(fragment.base, Registers)
    _prove(move, builder, tile, blocks)
    slots = tuple(tuple(Slot(fragment.base, register) for register in issue) for issue in registers)
    addresses = Tile(_addresses(builder, move, tile, blocks))
    values: dict[str, OperandValue] = {move.registers.name: Fragment(slots), move.memory.name: addresses}
    builder.issue(move.row, tuple(values[each.name] for each in move.row.operands), issues=len(blocks), scope="warp")


def _check(move: Move, fragment: Value, tile: TensorValue) -> None:
    if not isinstance(fragment, TensorValue) or not isinstance(fragment.base, Registers):
        raise move.refused(
            f"operand {move.registers.name}: expected a tensor in registers but got {arithmetic.describe(fragment)}"
        )
    if tile.space != move.memory.space:
        raise move.refused(
            f"operand {move.memory.name}: expected a {move.memory.space} tensor, but {tile.name} is {tile.space}"
        )
    if tile.dtype.bits != 16:
        raise move.refused(
            f"operand {move.memory.name}: expected a matrix of 16-bit elements, but {tile.name} holds {tile.dtype}"
        )
    if tile.layout is None:
        raise move.refused(f"operand {move.memory.name}: the layout of {tile.name} must be known while tracing")
    if fragment.base.word.bits != 32 or fragment.dtype.bits not in (16, 32):
        raise move.refused(
            f"operand {move.registers.name}: expected registers of 16-bit elements or of their 32-bit words, but "
            f"{fragment.name} holds {fragment.dtype}"
        )


def _shape_in_halves(whole: TensorValue) -> tuple[int, ...]:
    rows, columns = sizes(whole)
    return rows, columns * whole.dtype.bits // 16


# ---- blocks ---------------------------------------------------------------------------------------------------


def _blocks(move: Move, fragment: TensorValue, whole: TensorValue) -> tuple[Blocks, tuple[tuple[int, ...], ...]]:
    """Of each issue the blocks that its registers hold, as (block row, block column), in their order; the registers."""
    rows, columns = _shape_in_halves(whole)
    if rows % BLOCK or columns % BLOCK:
        raise move.refused(f"a fragment of {rows} x {columns} elements does not fall into blocks of 8 x 8")
    lanes, places = halves_of(whole)
    i, j = np.indices((rows, columns))
    _check_lanes(move, fragment, lanes, 4 * (i % BLOCK) + j % BLOCK // 2, j % 2, places)
    registers = places[::BLOCK, ::BLOCK] // 2  # of every element of a block: its digits are all lanes' and halves'
    order = np.argsort(registers, axis=None, kind="stable")
    slots = [int(register) for register in registers.ravel()[order]]
    _check_written_once(move, whole, slots)
    found = [(int(k) // registers.shape[1], int(k) % registers.shape[1]) for k in order]
    count = move.count
    if len(found) % count:
        raise move.refused(
            f"it moves {count} blocks of 8 x 8 at a time, but {whole.name} has {len(found)}: use a form with .x"
            f"{'2' if len(found) % 2 == 0 else '1'}"
        )
    issues = [slice(k, k + count) for k in range(0, len(found), count)]
    return tuple(tuple(found[issue]) for issue in issues), tuple(tuple(slots[issue]) for issue in issues)


def _check_written_once(move: Move, whole: TensorValue, slots: Sequence[int]) -> None:
    twice = next((a for a, b in pairwise(slots) if a == b), None)
    if move.registers.writes and twice is not None:
        raise move.refused(f"register {twice} of {whole.name} would be written twice: two blocks of 8 x 8 share it")


def _check_lanes(move: Move, fragment: TensorValue, lanes: Ints, own: Ints, half: Ints, places: Ints) -> None:
    """Each element in the lane and half to which the instruction moves it."""
    wrong = (lanes != own) | (places % 2 != half)
    if not wrong.any():
        return
    r, c = (int(each) for each in np.argwhere(wrong)[0])
    rows, columns = np.indices(lanes.shape)
    turned = np.array_equal(lanes, 4 * (columns % BLOCK) + rows % BLOCK // 2)
    other = "without" if move.memory.transposed else "with"
    how = "permute(1, 0) both"
    if len(fragment.shape) == 4:
        how = f"permute(1, 0, 3, 2) {fragment.name}, permute(1, 0) the tile"
    advice = f"; it holds the transpose: {how}, and use the form {other} .trans" if turned else ""
    raise move.refused(
        f"element ({r}, {c}) of {fragment.name} is in lane {lanes[r, c]}, half {places[r, c] % 2} of register "
        f"{places[r, c] // 2}, but the instruction moves it to lane {own[r, c]}, half {half[r, c]}{advice}"
    )


def _prove(move: Move, builder: Builder, tile: TensorValue, blocks: Blocks) -> None:
    """The memory has the rows that are asked for. The error says where the other form, with or without .trans, fits."""
    rows, columns = sizes(tile)
    assert tile.layout is not None
    together = 1 << tile.layout.per_element if isinstance(tile.layout, ComposeLayout) else BLOCK
    if together < BLOCK:
        raise move.refused(
            f"operand {move.memory.name}: the 8 elements of a row must be contiguous, but the swizzle of {tile.name} "
            f"keeps only {together} together"
        )
    try:
        prove_blocks(move.row, move.memory.name, tile.layout, (rows, columns), blocks, start_alignment(builder, tile))
    except InstructionError as error:
        places = tile.layout.enumerate((rows, columns))["m"].reshape(rows, columns)
        along = places[1, 0] if not move.memory.transposed else places[0, 1]
        other = "without" if move.memory.transposed else "with"
        advice = f"; {tile.name} is contiguous the other way: use the form {other} .trans"
        raise InstructionError(f"{error}{advice if along - places[0, 0] == 1 else ''}") from None


# ---- addresses ------------------------------------------------------------------------------------------------


def _addresses(builder: Builder, move: Move, tile: TensorValue, blocks: Blocks) -> tuple[Address, ...]:
    """Of each issue the memory row that this lane names: where the blocks lie alike, only a constant differs."""
    rows: dict[Steps, tuple[Index, ...]] = {}
    addresses = []
    for issue in blocks:
        steps = _steps(move, issue)
        if steps not in rows:
            rows[steps] = _row_of_lane(builder, move, steps)
        where = (add(builder, row, BLOCK * first) for row, first in zip(rows[steps], issue[0], strict=True))
        addresses.append(address(builder, tile, tuple(where)))
    return tuple(addresses)


def _steps(move: Move, issue: tuple[tuple[int, int], ...]) -> Steps:
    """How far the blocks of an issue are from its first."""
    base = issue[0]
    steps = tuple((block[0] - base[0], block[1] - base[1]) for block in issue)
    for index, step in enumerate(steps):
        parts = [steps[bit] for bit in (1, 2) if index & bit]
        if step != (sum(part[0] for part in parts), sum(part[1] for part in parts)):
            raise move.refused(f"the blocks of one issue, {issue}, do not form a box of twice 2: use the form with .x2")
    return steps


def _row_of_lane(builder: Builder, move: Move, steps: Steps) -> tuple[Index, ...]:
    """How far the memory row that this lane names, row lane % 8 of block lane // 8, begins from the first block."""
    here = lane(builder)
    result: list[Index] = []
    for axis in (0, 1):
        along = axis == (1 if move.memory.transposed else 0)
        total: Index = arithmetic.binary(builder, "mod", here, BLOCK) if along else 0
        for bit in (1, 2):
            if bit < len(steps) and steps[bit][axis]:
                digit = arithmetic.binary(builder, "mod", arithmetic.binary(builder, "floordiv", here, BLOCK * bit), 2)
                total = add(builder, arithmetic.binary(builder, "mul", digit, BLOCK * steps[bit][axis]), total)
        result.append(total)
    return tuple(result)
