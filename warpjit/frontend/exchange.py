"""`t.convert(layout, scratch=)` where elements leave their warp: through shared memory, which the kernel gives.

Every warp of the CTA stores what it holds, one element after another in row-major order, and loads what it is to hold.
Moves within a warp are `conversions`'.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory, views
from warpjit.frontend.addresses import Index, Symbol
from warpjit.frontend.builder import Builder
from warpjit.frontend.fragments import dense, lane, regs, sizes
from warpjit.frontend.registers import registers_tensor
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.ir import dtypes
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Const
from warpjit.isa.table import lookup
from warpjit.layout import Axis, TileLayout, laneid, m, warpid, wid_in_wg
from warpjit.layout.axis import LANES


def through(builder: Builder, tensor: TensorValue, layout: TileLayout, scratch: Value) -> TensorValue:
    """New registers with the same elements where `layout` has them; the CTA synchronises before and after the loads."""
    place = _checked(builder, tensor, scratch)
    result = registers_tensor(builder, sizes(tensor), tensor.dtype, layout, tensor.name).with_(words=tensor.words)
    source, target = regs(builder, tensor), regs(builder, result)
    for register, element in _elements(builder, tensor):
        memory.store(builder, place, (element,), memory.load(builder, source, (register,)))
    _synchronise(builder)
    for register, element in _elements(builder, result):
        memory.store(builder, target, (register,), memory.load(builder, place, (element,)))
    _synchronise(builder)
    return result


def _checked(builder: Builder, tensor: TensorValue, scratch: Value) -> TensorValue:
    """The scratch as one row of elements."""
    if not isinstance(scratch, TensorValue) or scratch.space != "shared":
        raise TraceError(f"convert: expected scratch to be a shared tensor but got {arithmetic.describe(scratch)}")
    count = prod(sizes(tensor))
    if scratch.dtype != tensor.dtype or prod(sizes(scratch)) != count:
        raise TraceError(
            f"convert: expected scratch to hold {count} {tensor.dtype}, as {tensor.name}, but {scratch.name}, shape "
            f"{sizes(scratch)}, holds {scratch.dtype}"
        )
    return views.reshape(builder, scratch, (count,))


def _elements(builder: Builder, tensor: TensorValue) -> Iterator[tuple[int, Index]]:
    """Each register of this thread, in order, and the number of the element in it."""
    layout = tensor.layout
    assert isinstance(layout, TileLayout)
    own = dense(tensor, layout)
    box: dict[Axis, int] = {**_warps(builder, tensor, own), laneid: LANES, m: sizes(regs(builder, tensor))[0]}
    inverse, shape = own.inverse(box), tuple(box.values())
    owners = [Symbol(builder, _warp(builder, shape[0])), Symbol(builder, lane(builder))]
    for register in range(box[m]):
        element = inverse.apply(*owners, register, shape=shape).get("m", 0)
        yield register, element.scalar if isinstance(element, Symbol) else element


def _warps(builder: Builder, tensor: TensorValue, layout: TileLayout) -> dict[Axis, int]:
    """The axis that counts the warps of the CTA, all of which take part."""
    warps = -(-prod(extent for _, extent in builder.thread_params) // LANES)
    axis = wid_in_wg if any(each is wid_in_wg for each in layout.axes) else warpid
    if layout.span(axis) != warps:
        raise TraceError(
            f"convert: expected the layouts to place elements in all {warps} warps of the CTA, since it synchronises, "
            f"but that of {tensor.name} is {layout!r}"
        )
    return {axis: warps}


def _warp(builder: Builder, warps: int) -> Scalar:
    return builder.special("warp", "warp", Facts(0, warps - 1, 1, Uniformity.WARP))


def _synchronise(builder: Builder) -> None:
    row = lookup("bar.sync")
    builder.issue(row, (Const(0, dtypes.int32), None), scope=row.participants.value)
