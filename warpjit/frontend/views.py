"""Other windows onto the same memory or registers: `view` in its two forms, and `storage`.

Nothing here moves data. Axes are rearranged in `rearrange`, cut in `slices`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import Index, offset_multiple, placing, shown, static_int, tile_of
from warpjit.frontend.builder import Builder
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.ir import dtypes
from warpjit.ir.dtypes import DType
from warpjit.ir.nodes import ConstantBuffer, GlobalBuffer, Registers, SharedBuffer
from warpjit.layout import ComposeLayout, S, TileLayout, m

# ---- view -----------------------------------------------------------------------------------------------


def reinterpret(builder: Builder, tensor: TensorValue, dtype: DType) -> TensorValue:
    """`view(dtype)`: the same bytes in elements of another width; the last axis shrinks or grows."""
    old, new = tensor.dtype.bits, dtype.bits
    if not tensor.shape:
        raise TraceError(f"view({dtype}) of {tensor.name}: expected at least one axis but got a single element")
    if old == new:
        return tensor.with_(dtype=dtype, words=None)
    ratio = max(old, new) // min(old, new)
    *outer, last = tensor.shape
    if new < old:
        extent: Index = last * ratio if isinstance(last, int) else arithmetic.binary(builder, "mul", last, ratio)
        return _scaled(builder, tensor, dtype, (*outer, extent), ratio)
    multiple = last if isinstance(last, int) else last.facts.multiple
    if multiple % ratio:
        raise TraceError(
            f"view({dtype}) of {tensor.name}: expected a last axis that is a multiple of {ratio} but got shape "
            f"{shown(tensor.shape)}"
        )
    extent = last // ratio if isinstance(last, int) else arithmetic.binary(builder, "floordiv", last, ratio)
    return _packed(builder, tensor, dtype, (*outer, extent), ratio)


def _need_neighbours(tensor: TensorValue, dtype: DType) -> None:
    assert tensor.strides is not None
    if tensor.strides[-1] != 1:
        raise TraceError(f"view({dtype}) of {tensor.name}: expected a last axis of stride 1")


def _scaled(builder: Builder, tensor: TensorValue, dtype: DType, shape: tuple[Index, ...], ratio: int) -> TensorValue:
    layout = tensor.layout.unpack(ratio) if tensor.layout is not None else None
    strides = None
    if tensor.strides is not None:
        _need_neighbours(tensor, dtype)
        strides = (*(_times(builder, stride, ratio) for stride in tensor.strides[:-1]), 1)
    offset = _times(builder, tensor.offset, ratio)
    return tensor.with_(dtype=dtype, shape=shape, layout=layout, strides=strides, offset=offset, words=None)


def _packed(builder: Builder, tensor: TensorValue, dtype: DType, shape: tuple[Index, ...], ratio: int) -> TensorValue:
    layout = tensor.layout.pack(ratio) if tensor.layout is not None else None
    strides = None
    if tensor.strides is not None:
        _need_neighbours(tensor, dtype)
        strides = (*(_over(builder, stride, ratio, "a stride") for stride in tensor.strides[:-1]), 1)
    offset = _over(builder, tensor.offset, ratio, "the offset")
    return tensor.with_(dtype=dtype, shape=shape, layout=layout, strides=strides, offset=offset, words=None)


def _times(builder: Builder, value: Index, factor: int) -> Index:
    return value * factor if isinstance(value, int) else arithmetic.binary(builder, "mul", value, factor)


def _over(builder: Builder, value: Index, divisor: int, what: str) -> Index:
    multiple = value if isinstance(value, int) else offset_multiple(builder, value)
    if multiple % divisor:
        raise TraceError(f"view: expected {what} to be known to be a multiple of {divisor} elements")
    return value // divisor if isinstance(value, int) else arithmetic.binary(builder, "floordiv", value, divisor)


def reshape(builder: Builder, tensor: TensorValue, shape: Sequence[Value], layout: Any = None) -> TensorValue:
    """`view(*shape, layout=)`: the same elements under other coordinates, or placed anew by `layout`."""
    if layout is not None:
        return _placed(tensor, tuple(static_int(extent, "an extent of view") for extent in shape), layout)
    count = _static_count(tensor)
    sizes = _with_unknown(tensor, shape, count)
    if math.prod(sizes) != count:
        raise TraceError(
            f"view of {tensor.name}: expected a shape of {count} elements, as {shown(tensor.shape)} has, but got "
            f"{sizes}, of {math.prod(sizes)}"
        )
    if tensor.layout is not None:
        return tensor.with_(shape=sizes)
    assert tensor.strides is not None
    dims = _regroup(tensor, sizes)
    return tensor.with_(shape=sizes, strides=tuple(dims))


def _static_count(tensor: TensorValue) -> int:
    if not tensor.static_shape:
        raise TraceError(
            f"view of {tensor.name}: expected sizes known while tracing but got shape {shown(tensor.shape)}: use "
            f"rearrange"
        )
    return math.prod(int(extent) for extent in tensor.shape if not isinstance(extent, Scalar))


def _with_unknown(tensor: TensorValue, shape: Sequence[Value], count: int) -> tuple[int, ...]:
    sizes = [static_int(extent, "an extent of view") for extent in shape]
    unknown = [index for index, size in enumerate(sizes) if size == -1]
    if len(unknown) > 1 or any(size < -1 or (size == 0 and count) for size in sizes):
        raise TraceError(
            f"view of {tensor.name}: expected positive extents, or one -1 among them, but got {tuple(sizes)}"
        )
    if unknown:
        rest = -math.prod(sizes)
        if not rest or count % rest:
            raise TraceError(
                f"view of {tensor.name}: expected extents that divide its {count} elements but got {tuple(sizes)}"
            )
        sizes[unknown[0]] = count // rest
    return tuple(sizes)


def _regroup(tensor: TensorValue, sizes: tuple[int, ...]) -> list[Index]:
    """Strides of static axes split or fused into `sizes`."""
    assert tensor.strides is not None
    if not all(isinstance(stride, int) for stride in tensor.strides):
        raise TraceError(f"view of {tensor.name}: expected strides known while tracing: use rearrange to split axes")
    extents = tuple(int(e) for e in tensor.shape if not isinstance(e, Scalar))
    strides = tuple(int(s) for s in tensor.strides if not isinstance(s, Scalar))
    grouped, seps = TileLayout(S[extents:strides]).canonicalize().group(sizes)
    result: list[Index] = []
    for axis in range(len(sizes)):
        iters = [it for it in grouped.shard[seps[axis] : seps[axis + 1]] if it.extent > 1]
        if len(iters) > 1:
            raise TraceError(
                f"view of {tensor.name}: expected axes of one stride each but got {sizes}, whose axis {axis} needs more"
            )
        result.append(iters[0].stride if iters else 0)
    return result


def _placed(tensor: TensorValue, shape: tuple[int, ...], layout: Any) -> TensorValue:
    layout = placing(layout, shape, "view")
    if tensor.layout is None or not tensor.layout.is_contiguous():
        raise TraceError(f"view of {tensor.name}: expected a contiguous tensor, for a new layout to place its elements")
    room, what = _room(tensor)
    start = static_int(tensor.offset, "the offset of a view") + tile_of(tensor.layout).offset.get(m, 0)
    if isinstance(layout, ComposeLayout) and start % layout.period:
        raise TraceError(
            f"view of {tensor.name}: expected a start at a multiple of the swizzle's period, {layout.period} elements, "
            f"but got {start}"
        )
    if start + layout.span("m") > start + room:
        raise TraceError(
            f"view of {tensor.name}: layout: expected one within its {room} {what}s but got {layout!r}, which spans "
            f"{layout.span('m')}"
        )
    return tensor.with_(shape=shape, layout=layout, offset=start)


def _room(tensor: TensorValue) -> tuple[int, str]:
    """How many elements a contiguous tensor has for a new layout: registers of a lane, or elements of memory."""
    assert tensor.layout is not None
    return tile_of(tensor.layout).size("m"), "register" if isinstance(tensor.base, Registers) else "element"


def storage(tensor: TensorValue) -> TensorValue:
    """`t.storage`: the bytes under a shared or local tensor, as uint8."""
    if isinstance(tensor.base, GlobalBuffer):
        raise TraceError(f"storage: expected a shared or local tensor, but {tensor.name} is a parameter")
    if isinstance(tensor.base, ConstantBuffer):
        raise TraceError(f"storage: expected a shared or local tensor, but {tensor.name} is a table of constants")
    count = tensor.base.bytes if isinstance(tensor.base, SharedBuffer) else tensor.base.count * tensor.base.word.bytes
    return TensorValue(
        f"{tensor.name}.storage", dtypes.uint8, (count,), tensor.base, TileLayout(S[count]), align=tensor.align
    )
