"""What a tensor spread over the lanes of a warp offers: `fill`, `regs`, `each`, `as_operand`. (`casts` has `cast`.)

A fragment of four axes (row repeats, column repeats, rows, columns), as `T.cuda.fragments` gives it, is the matrix of
(row repeats · rows, column repeats · columns); one of two axes is a matrix as it is. Nothing here moves a value from
lane to lane. What loads and stores whole fragments is in `matrices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.addresses import Index, add, static_int
from warpjit.frontend.builder import Builder
from warpjit.frontend.lookup import instruction_row
from warpjit.frontend.rearrange import rearrange
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Registers
from warpjit.isa.operands import ONE_WARP, accepts, fragment_operand
from warpjit.isa.proof import prove
from warpjit.isa.row import Operand, Row
from warpjit.layout import Axis, ComposeLayout, Iter, TileLayout, laneid, m, warpid, wid_in_wg
from warpjit.layout.axis import LANES
from warpjit.record import record


def lane(builder: Builder) -> Scalar:
    """This thread's lane."""
    return builder.special("laneid", "lane", Facts(0, LANES - 1, 1, Uniformity.LANE))


def sizes(tensor: TensorValue) -> tuple[int, ...]:
    return tuple(static_int(extent, "an extent") for extent in tensor.shape)


WARPS = (laneid, warpid, wid_in_wg)


def in_registers(tensor: TensorValue, what: str, owners: Sequence[Axis] = (laneid,)) -> TileLayout:
    """The layout of a local tensor whose threads are lanes, or other `owners`. TraceError for anything else."""
    if not isinstance(tensor.base, Registers):
        raise TraceError(f"{what}: expected a tensor in registers, but {tensor.name} is in {tensor.space} memory")
    layout = tensor.layout
    assert layout is not None
    others = set(layout.axes) - {m, *owners}
    if isinstance(layout, ComposeLayout) or others or any(it.extent > 1 for it in layout.replica):
        alone = "lanes alone (laneid)" if len(owners) == 1 else "lanes and warps alone"
        raise TraceError(
            f"{what}: expected registers placed by {alone}, once each, but the layout of {tensor.name} is {layout!r}"
        )
    return layout


def matrix(builder: Builder, tensor: TensorValue, what: str) -> TensorValue:
    """The fragment as a matrix (rows, columns)."""
    if len(tensor.shape) == 2:
        return tensor
    if len(tensor.shape) == 4:
        return rearrange(builder, tensor, "i j row column -> (i row) (j column)", {})
    raise TraceError(
        f"{what}: expected a fragment of 4 axes (row repeats, column repeats, rows, columns) or a matrix of 2, but "
        f"{tensor.name} has shape {sizes(tensor)}: rearrange it"
    )


# ---- registers ----------------------------------------------------------------------------------------------


def regs(builder: Builder, tensor: TensorValue) -> TensorValue:
    """`t.regs`: this lane's registers, in order, as a tensor of one axis. A window's may have gaps between them."""
    layout = in_registers(tensor, "regs", WARPS)
    iters = _register_iters(tensor, layout)
    start = static_int(tensor.offset, "an offset") + layout.offset.get(m, 0)
    own = TileLayout.from_iters(iters or (Iter(1, 1, m),)).canonicalize()
    return tensor.with_(shape=(own.size(),), layout=own, offset=start)


def _register_iters(tensor: TensorValue, layout: TileLayout) -> tuple[Iter, ...]:
    """The steps among this lane's registers, the longest first: in their order registers count upwards."""
    steps = sorted((it for it in layout.shard if it.axis == m and it.extent > 1), key=lambda it: it.stride)
    reach = 0
    for it in steps:
        if it.stride <= reach:
            raise TraceError(
                f"regs: expected each register of {tensor.name} to hold one element, and its strides to nest, but its "
                f"layout is {layout!r}"
            )
        reach += it.last
    return tuple(reversed(steps))


def fill(builder: Builder, tensor: TensorValue, value: Value) -> None:
    """`t.fill(x)`: every register becomes x."""
    mine = regs(builder, tensor)
    for index in range(sizes(mine)[0]):
        memory.store(builder, mine, (index,), value)


def dense(tensor: TensorValue, layout: TileLayout) -> TileLayout:
    """The layout with its registers counted from 0, without gaps."""
    steps: dict[int, int] = {}
    count = 1
    for it in reversed(_register_iters(tensor, layout)):
        steps[it.stride] = count
        count *= it.extent
    shard = [Iter(it.extent, steps[it.stride], m) if it.axis == m and it.extent > 1 else it for it in layout.shard]
    offset: dict[Axis | str, int] = {axis: value for axis, value in layout.offset.items() if axis != m}
    return TileLayout.from_iters(shard, layout.replica, offset)


# ---- who holds what -------------------------------------------------------------------------------------------


def each(builder: Builder, tensor: TensorValue) -> tuple[tuple[Index, ...], ...]:
    """`t.each()`: (register, row, column) of each register of this lane."""
    in_registers(tensor, "each")
    whole = matrix(builder, tensor, "each") if len(tensor.shape) == 4 else tensor
    assert isinstance(whole.layout, TileLayout)
    axes = [_axis_digits(whole.layout, sizes(whole), axis) for axis in range(len(whole.shape))]
    _check_inverse(tensor, whole.layout, sizes(whole), axes)
    here = lane(builder)
    from_lane = [_of_lane(builder, digits, here) for digits in axes]
    result = []
    for register, place in enumerate(_register_places(tensor, whole.layout)):
        where = (add(builder, part, _of_register(digits, place)) for part, digits in zip(from_lane, axes, strict=True))
        result.append((register, *where))
    return tuple(result)


@record
class Digit:
    """A part of a coordinate: `weight` · ((lane or register // stride) % extent)."""

    it: Iter
    weight: int


def _axis_digits(layout: TileLayout, shape: Sequence[int], axis: int) -> list[Digit]:
    grouped, seps = layout.group(shape)
    digits: list[Digit] = []
    weight = 1
    for it in reversed(grouped.shard[seps[axis] : seps[axis + 1]]):
        if it.extent > 1:
            digits.append(Digit(it, weight))
        weight *= it.extent
    return digits


def _register_places(tensor: TensorValue, layout: TileLayout) -> list[int]:
    """How far each register of this lane is from the first."""
    own = TileLayout.from_iters(_register_iters(tensor, layout))
    return [int(place) for place in own.enumerate().get("m", np.zeros(1, np.int64))]


def _of_register(digits: Sequence[Digit], place: int) -> int:
    return sum(each.weight * (place // each.it.stride % each.it.extent) for each in digits if each.it.axis == m)


def _of_lane(builder: Builder, digits: Sequence[Digit], here: Scalar) -> Index:
    total: Index = 0
    for digit in digits:
        if digit.it.axis == laneid:
            part = arithmetic.binary(builder, "floordiv", here, digit.it.stride)
            if digit.it.extent * digit.it.stride < LANES:
                part = arithmetic.binary(builder, "mod", part, digit.it.extent)
            total = add(builder, arithmetic.binary(builder, "mul", part, digit.weight), total)
    return total


def _check_inverse(tensor: TensorValue, layout: TileLayout, shape: Sequence[int], axes: list[list[Digit]]) -> None:
    """The digits are the inverse of the layout where every lane and register holds exactly one element."""
    places = layout.enumerate(shape)
    zero = np.zeros(tuple(shape), np.int64)
    lanes, registers = places.get("laneid", zero), places.get("m", zero) - layout.offset.get(m, 0)
    where = np.indices(tuple(shape))
    owners = LANES if any(it.extent > 1 and it.axis == laneid for it in layout.shard) else 1
    whole = prod(shape) == owners * len(_register_places(tensor, layout)) and not layout.offset.get(laneid, 0)
    for axis, digits in enumerate(axes):
        found = np.zeros(tuple(shape), np.int64)
        for digit in digits:
            source = lanes if digit.it.axis == laneid else registers
            found += digit.weight * (source // max(digit.it.stride, 1) % digit.it.extent)
        whole = whole and np.array_equal(found, where[axis])
    if not whole:
        raise TraceError(
            f"each: expected every lane and register to hold one element, but the layout of {tensor.name} is {layout!r}"
        )


# ---- as an operand ----------------------------------------------------------------------------------------------


@record
class OperandView:
    """A fragment cut into the atoms of an operand; `counts` names its repeats."""

    row: Row
    operand: Operand
    view: TensorValue
    counts: dict[str, int]

    @property
    def element(self) -> bool:
        """Whether the view's elements are those that registers pack."""
        assert self.operand.dtype is not None
        return self.view.dtype.bits < self.operand.dtype.bits


def as_operand(builder: Builder, tensor: TensorValue, instruction: Value, operand: Value) -> TensorValue:
    """`t.as_operand(instruction, "A")`: the same registers under the operand's axes, proven to be in place."""
    cut = operand_view(builder, tensor, instruction, operand, "as_operand")
    prove_view(cut)
    return cut.view


def prove_view(cut: OperandView) -> None:
    """Raises InstructionError where the registers are not in place."""
    view = cut.view
    assert isinstance(view.base, Registers)
    prove(cut.row, cut.operand.name, placed_layout(view), sizes(view), view.dtype, view.base.count, ONE_WARP)


def operand_view(builder: Builder, tensor: TensorValue, instruction: Value, operand: Value, what: str) -> OperandView:
    """The fragment's matrix cut into the operand's atoms: nothing is known of where the elements are."""
    row = instruction_row(what, instruction)
    wanted = fragment_operand(row, operand)
    in_registers(tensor, what)
    if not accepts(wanted, tensor.dtype):
        raise TraceError(
            f"{what}: operand {operand} of {row.text}: expected {wanted.element or wanted.dtype}, but {tensor.name} "
            f"holds {tensor.dtype}"
        )
    assert wanted.dtype is not None and isinstance(tensor.base, Registers)
    if tensor.base.word.bits != wanted.dtype.bits:
        raise TraceError(
            f"{what}: operand {operand} of {row.text}: expected {wanted.dtype.bits}-bit registers, but {tensor.name} "
            f"has {tensor.base.word.bits}-bit ones"
        )
    whole = matrix(builder, tensor, what)
    packed = wanted.packed if tensor.dtype.bits < wanted.dtype.bits else 1
    rows, columns = wanted.shape[0], prod(wanted.shape[1:]) * packed
    for extent, atom, axis in zip(sizes(whole), (rows, columns), ("rows", "columns"), strict=True):
        if extent % atom:
            raise TraceError(
                f"{what}: operand {operand} of {row.text}: expected a multiple of {atom} {axis}, but {tensor.name} "
                f"has {extent}"
            )
    view = rearrange(builder, whole, "(i row) (j column) -> i j row column", {"row": rows, "column": columns})
    return OperandView(row, wanted, view, dict(zip(wanted.repeats, sizes(view), strict=False)))


def placed_layout(tensor: TensorValue) -> TileLayout:
    """The layout of a tensor in registers, counted from the first of its allocation."""
    layout = tensor.layout
    assert isinstance(layout, TileLayout)
    offset: dict[Axis | str, int] = dict(layout.offset.items())
    offset[m] = layout.offset.get(m, 0) + static_int(tensor.offset, "an offset")
    return TileLayout.from_iters(layout.shard, layout.replica, offset)


def halves_of(tensor: TensorValue) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(lanes, places) of the 16-bit elements of a matrix in registers: who holds each, and where in its registers."""
    layout = in_registers(tensor, "a matrix of 8 x 8 blocks")
    rows, columns = sizes(tensor)
    packed = tensor.dtype.bits // 16
    shape = (rows, columns * packed)
    places = layout.unpack(packed).enumerate(shape)
    zero = np.zeros(shape, np.int64)
    start = static_int(tensor.offset, "an offset") * packed
    return places.get("laneid", zero).reshape(shape), places.get("m", zero).reshape(shape) + start
