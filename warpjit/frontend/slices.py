"""Slices: boxes of a tensor, with runtime starts and static extents.

Nothing is moved; the only statements written are the arithmetic of runtime starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import (
    Index,
    Symbol,
    axis_index,
    bounds,
    offset_multiple,
    present,
    reaching,
    shown,
    static_int,
    tile_of,
    wrong_rank,
)
from warpjit.frontend.builder import Builder
from warpjit.frontend.values import Linear, Scalar, TensorValue, Value
from warpjit.ir import dtypes
from warpjit.ir.nodes import GlobalBuffer, Registers
from warpjit.layout import ComposeLayout, TileLayout, m
from warpjit.record import record


@record
class Box:
    """What a subscript keeps of one axis: `extent` elements from `start`; `drop`: one element, the axis goes."""

    start: Index
    extent: Index
    drop: bool = False


def boxes(builder: Builder, tensor: TensorValue, items: Sequence[Value]) -> list[Box]:
    """The subscript's items, one for each axis (missing ones keep all)."""
    if len(items) > len(tensor.shape):
        raise wrong_rank(tensor, len(items), "at most ")
    padded = [*items, *[slice(None)] * (len(tensor.shape) - len(items))]
    return [_box(builder, tensor, axis, item) for axis, item in enumerate(padded)]


def _box(builder: Builder, tensor: TensorValue, axis: int, item: Value) -> Box:
    extent = tensor.shape[axis]
    if not isinstance(item, slice):
        return Box(axis_index(tensor, axis, item), 1, drop=True)
    if item.step not in (None, 1):
        raise TraceError(f"{tensor.name}: expected a slice without a step: split the axis with rearrange")
    start: Index = 0 if item.start is None else axis_index(tensor, axis, item.start)
    stop: Index = extent if item.stop is None else axis_index(tensor, axis, item.stop)
    if item.start is None and item.stop is None:
        return Box(0, extent)
    length = _difference(builder, stop, start, tensor, axis)
    low, high = bounds(start)
    top = bounds(extent)[1]
    # A window of a parameter that the device places may reach past its end, where copies that are told fill or skip.
    placed = isinstance(start, Scalar) and isinstance(tensor.base, GlobalBuffer)
    leaves = low is not None and top is not None and low + (0 if placed else length) > top
    if length <= 0:
        raise TraceError(f"{tensor.name}: expected a slice of at least one element of axis {axis} but got {length}")
    if leaves or (high is not None and high < 0):
        raise TraceError(
            f"the slice of axis {axis} of {tensor.name}: expected it within shape {shown(tensor.shape)} but got "
            f"{length} elements from {low}"
        )
    return Box(start, length)


def _difference(builder: Builder, stop: Index, start: Index, tensor: TensorValue, axis: int) -> int:
    if isinstance(stop, int) and isinstance(start, int):
        return stop - start
    length = arithmetic.binary(builder, "sub", stop, start)
    linear = None if length.linear is None else builder.modular(length.linear)
    if linear is not None and not linear.terms:
        return linear.constant
    raise TraceError(
        f"the slice of axis {axis} of {tensor.name}: expected a length known while tracing (stop = start + a constant)"
    )


def subtensor(builder: Builder, tensor: TensorValue, items: Sequence[Value]) -> TensorValue:
    """`t.sub[...]` and `t[a:b, …]`: a box of the tensor. Starts may be runtime values, extents are static."""
    kept = boxes(builder, tensor, items)
    if isinstance(tensor.base, Registers):
        kept = [Box(_static_start(box.start, tensor), box.extent, box.drop) for box in kept]
    if tensor.layout is None:
        return _strided_box(builder, tensor, kept)
    kept = [Box(reaching(builder, tensor, box.start), box.extent, box.drop) for box in kept]
    offset = tensor.offset
    layout, sizes = tensor.layout, [static_int(extent, "an extent") for extent in tensor.shape]
    for axis, box in enumerate(kept):
        if isinstance(box.start, Scalar):
            layout, moved = _runtime_start(builder, tensor, layout, sizes, axis, box)
            offset = moved if offset == 0 else arithmetic.binary(builder, "add", offset, moved)
            sizes[axis] = static_int(box.extent, "an extent")
    starts = [0 if isinstance(box.start, Scalar) else box.start for box in kept]
    extents = [static_int(box.extent, "an extent") for box in kept]
    if extents != sizes:
        layout = layout.slice(starts, extents, shape=sizes)
    shape = tuple(extent for extent, box in zip(extents, kept, strict=True) if not box.drop)
    return tensor.with_(layout=layout, shape=shape, offset=offset)


def _static_start(start: Index, tensor: TensorValue) -> int:
    return static_int(start, f"the start of a slice of {tensor.name}, which is in registers,")


def _runtime_start(
    builder: Builder, tensor: TensorValue, layout: TileLayout | ComposeLayout, sizes: list[int], axis: int, box: Box
) -> tuple[TileLayout | ComposeLayout, Scalar]:
    """The layout of a box that begins at 0 of `axis`, and how far its runtime start moves it (before the swizzle)."""
    assert isinstance(box.start, Scalar)
    size, extent = sizes[axis], static_int(box.extent, "an extent")
    grouped, seps = tile_of(layout).group(sizes)
    iters = list(grouped.canonicalize().shard) if len(sizes) == 1 else list(grouped.shard[seps[axis] : seps[axis + 1]])
    iters = [it for it in TileLayout.from_iters(iters).canonicalize().shard if it.extent > 1]
    start = [0] * len(sizes)
    extents = list(sizes)
    extents[axis] = extent
    if len(iters) <= 1:
        stride = iters[0].stride if iters else 0
        return layout.slice(start, extents, shape=sizes), arithmetic.binary(builder, "mul", box.start, stride)
    if size % extent or offset_multiple(builder, box.start) % extent:
        raise TraceError(
            f"{tensor.name}: the start of the slice of axis {axis} must be known to be a multiple of its length "
            f"{extent}, since the layout of this axis has several strides"
        )
    blocks = arithmetic.binary(builder, "floordiv", box.start, extent)
    split = [*sizes[:axis], size // extent, extent, *sizes[axis + 1 :]]
    where: list[Any] = [0] * len(split)
    where[axis] = Symbol(builder, blocks)
    place = tile_of(layout).apply(*where, shape=split)["m"]
    moved = place.scalar if isinstance(place, Symbol) else place  # one block: the start can only be 0
    origin = tile_of(layout).offset.get(m, 0)
    if not isinstance(moved, Scalar):
        moved = builder.integer(dtypes.int32, Linear((), moved))
    return layout.slice(start, extents, shape=sizes), arithmetic.binary(builder, "sub", moved, origin)


def _strided_box(builder: Builder, tensor: TensorValue, kept: list[Box]) -> TensorValue:
    assert tensor.strides is not None
    offset: Index = tensor.offset
    wide = isinstance(tensor.base, GlobalBuffer) and tensor.base.wide
    for box, stride in zip(kept, tensor.strides, strict=True):
        if box.start == 0 or stride == 0:
            continue
        step = _step(builder, box.start, stride, wide)
        offset = (
            step
            if offset == 0
            else offset + step
            if isinstance(offset, int) and isinstance(step, int)
            else arithmetic.binary(builder, "add", offset, step)
        )
    shape = tuple(box.extent for box in kept if not box.drop)
    strides = tuple(stride for box, stride in zip(kept, tensor.strides, strict=True) if not box.drop)
    return tensor.with_(shape=shape, strides=strides, offset=offset)


def _step(builder: Builder, start: Index, stride: Index, wide: bool) -> Index:
    if isinstance(start, int) and isinstance(stride, int):
        return start * stride
    target = dtypes.int64 if wide else dtypes.int32
    a, b = (
        arithmetic.convert(builder, present(builder, x), target) if isinstance(x, Scalar) else x
        for x in (start, stride)
    )
    return arithmetic.binary(builder, "mul", a, b)
