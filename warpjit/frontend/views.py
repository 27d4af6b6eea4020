"""Other windows onto the same memory or registers: `view`, `rearrange`, `permute`, slices, `storage`.

Nothing here moves data or writes a statement, but for the arithmetic of runtime starts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import Index, Symbol, bounds, offset_multiple, shown, static_int, tile_of
from warpjit.frontend.builder import Builder
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.ir import dtypes
from warpjit.ir.dtypes import DType
from warpjit.ir.nodes import GlobalBuffer, Registers, SharedBuffer
from warpjit.layout import ComposeLayout, S, TileLayout, m

# ---- view -----------------------------------------------------------------------------------------------


def reinterpret(builder: Builder, tensor: TensorValue, dtype: DType) -> TensorValue:
    """`view(dtype)`: the same bytes in elements of another width; the last axis shrinks or grows."""
    old, new = tensor.dtype.bits, dtype.bits
    if not tensor.shape:
        raise TraceError(f"{tensor.name} has no axes: it cannot be viewed as {dtype}")
    if old == new:
        return tensor.with_(dtype=dtype)
    if max(old, new) % min(old, new):
        raise TraceError(f"{tensor.name} of {tensor.dtype} cannot be viewed as {dtype}: one width must divide the other")
    ratio = max(old, new) // min(old, new)
    *outer, last = tensor.shape
    if new < old:
        extent: Index = last * ratio if isinstance(last, int) else arithmetic.binary(builder, "mul", last, ratio)
        return _scaled(builder, tensor, dtype, (*outer, extent), ratio)
    multiple = last if isinstance(last, int) else last.facts.multiple
    if multiple % ratio:
        raise TraceError(f"the last axis of {tensor.name}, shape {shown(tensor.shape)}, is not a multiple of {ratio}: view({dtype})")
    extent = last // ratio if isinstance(last, int) else arithmetic.binary(builder, "floordiv", last, ratio)
    return _packed(builder, tensor, dtype, (*outer, extent), ratio)


def _scaled(builder: Builder, tensor: TensorValue, dtype: DType, shape: tuple[Index, ...], ratio: int) -> TensorValue:
    layout = tensor.layout.unpack(ratio) if tensor.layout is not None else None
    strides = None
    if tensor.strides is not None:
        if tensor.strides[-1] != 1:
            raise TraceError(f"the last axis of {tensor.name} has no unit stride: view({dtype})")
        strides = (*(_times(builder, stride, ratio) for stride in tensor.strides[:-1]), 1)
    offset = _times(builder, tensor.offset, ratio)
    return tensor.with_(dtype=dtype, shape=shape, layout=layout, strides=strides, offset=offset)


def _packed(builder: Builder, tensor: TensorValue, dtype: DType, shape: tuple[Index, ...], ratio: int) -> TensorValue:
    layout = tensor.layout.pack(ratio) if tensor.layout is not None else None
    strides = None
    if tensor.strides is not None:
        if tensor.strides[-1] != 1:
            raise TraceError(f"the last axis of {tensor.name} has no unit stride: view({dtype})")
        strides = (*(_over(builder, stride, ratio, "a stride") for stride in tensor.strides[:-1]), 1)
    offset = _over(builder, tensor.offset, ratio, "the offset")
    return tensor.with_(dtype=dtype, shape=shape, layout=layout, strides=strides, offset=offset)


def _times(builder: Builder, value: Index, factor: int) -> Index:
    return value * factor if isinstance(value, int) else arithmetic.binary(builder, "mul", value, factor)


def _over(builder: Builder, value: Index, divisor: int, what: str) -> Index:
    multiple = value if isinstance(value, int) else offset_multiple(builder, value)
    if multiple % divisor:
        raise TraceError(f"view: {what} is not known to be a multiple of {divisor} elements")
    return value // divisor if isinstance(value, int) else arithmetic.binary(builder, "floordiv", value, divisor)


def reshape(builder: Builder, tensor: TensorValue, shape: Sequence[Value], layout: Any = None) -> TensorValue:
    """`view(*shape, layout=)`: the same elements under other coordinates; with `layout`, registers or memory placed anew."""
    if layout is not None:
        return _placed(tensor, tuple(static_int(extent, "an extent of view") for extent in shape), layout)
    count = _static_count(tensor)
    sizes = _with_unknown(tensor, shape, count)
    if math.prod(sizes) != count:
        raise TraceError(f"view{sizes} has {math.prod(sizes)} elements, but {tensor.name}, shape {shown(tensor.shape)}, has {count}")
    if tensor.layout is not None:
        return tensor.with_(shape=sizes)
    assert tensor.strides is not None
    dims = _regroup(tensor, sizes)
    return tensor.with_(shape=sizes, strides=tuple(dims))


def _static_count(tensor: TensorValue) -> int:
    if not tensor.static_shape:
        raise TraceError(f"view of {tensor.name}, shape {shown(tensor.shape)}: its sizes must be known while tracing; use rearrange")
    return math.prod(int(extent) for extent in tensor.shape if not isinstance(extent, Scalar))


def _with_unknown(tensor: TensorValue, shape: Sequence[Value], count: int) -> tuple[int, ...]:
    sizes = [static_int(extent, "an extent of view") for extent in shape]
    unknown = [index for index, size in enumerate(sizes) if size == -1]
    if len(unknown) > 1 or any(size < -1 or size == 0 and count for size in sizes):
        raise TraceError(f"view{tuple(sizes)}: extents must be positive, one of them may be -1")
    if unknown:
        rest = -math.prod(sizes)
        if not rest or count % rest:
            raise TraceError(f"view{tuple(sizes)}: {count} elements of {tensor.name} are not a multiple of {rest}")
        sizes[unknown[0]] = count // rest
    return tuple(sizes)


def _regroup(tensor: TensorValue, sizes: tuple[int, ...]) -> list[Index]:
    """Strides of static axes split or fused into `sizes`."""
    assert tensor.strides is not None
    if not all(isinstance(stride, int) for stride in tensor.strides):
        raise TraceError(f"view of {tensor.name}: its strides must be known while tracing; use rearrange to split axes")
    extents = tuple(int(e) for e in tensor.shape if not isinstance(e, Scalar))
    strides = tuple(int(s) for s in tensor.strides if not isinstance(s, Scalar))
    grouped, seps = TileLayout(S[extents:strides]).canonicalize().group(sizes)
    result: list[Index] = []
    for axis in range(len(sizes)):
        iters = [it for it in grouped.shard[seps[axis] : seps[axis + 1]] if it.extent > 1]
        if len(iters) > 1:
            raise TraceError(f"view{sizes} of {tensor.name}: axis {axis} would need more than one stride")
        result.append(iters[0].stride if iters else 0)
    return result


def _placed(tensor: TensorValue, shape: tuple[int, ...], layout: Any) -> TensorValue:
    if layout == "default":
        layout = TileLayout(S[shape])
    if not isinstance(layout, TileLayout | ComposeLayout):
        raise TraceError(f"view(layout=): expected a layout but got {layout!r}")
    if layout.size() != math.prod(shape):
        raise TraceError(f"view{shape}: {layout!r} places {layout.size()} elements, but the shape has {math.prod(shape)}")
    layout.check_well_formed()
    if tensor.layout is None or not tensor.layout.is_contiguous():
        raise TraceError(f"view(layout=) of {tensor.name}: it must be contiguous for a new layout to place its elements")
    room, what = _room(tensor)
    start = static_int(tensor.offset, "the offset of a view") + tile_of(tensor.layout).offset.get(m, 0)
    if start + layout.span("m") > start + room:
        raise TraceError(
            f"view(layout={layout!r}) of {tensor.name} reaches {what} {layout.span('m') - 1}, but there are {room}"
        )
    return tensor.with_(shape=shape, layout=layout, offset=start)


def _room(tensor: TensorValue) -> tuple[int, str]:
    """How many elements a contiguous tensor has for a new layout: registers of a lane, or elements of memory."""
    assert tensor.layout is not None
    return tile_of(tensor.layout).size("m"), "register" if isinstance(tensor.base, Registers) else "element"


def storage(tensor: TensorValue) -> TensorValue:
    """`t.storage`: the bytes under a shared or local tensor, as uint8."""
    if isinstance(tensor.base, GlobalBuffer):
        raise TraceError(f"{tensor.name} is a parameter: only shared and local tensors have .storage")
    count = tensor.base.bytes if isinstance(tensor.base, SharedBuffer) else tensor.base.count * tensor.base.word.bytes
    return TensorValue(f"{tensor.name}.storage", dtypes.uint8, (count,), tensor.base, TileLayout(S[count]), align=tensor.align)


# ---- rearrange --------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"\s*(\(|\)|->|[A-Za-z_]\w*|\d+)")


@dataclass(frozen=True)
class Pattern:
    """`lhs -> rhs` of a rearrangement: groups of names, "1" for a unit axis."""

    left: tuple[tuple[str, ...], ...]
    right: tuple[tuple[str, ...], ...]


def parse(pattern: Any) -> Pattern:
    """Raises TraceError: not of the form "a (b c) -> c (a b)"."""
    if not isinstance(pattern, str) or pattern.count("->") != 1:
        raise TraceError(f'rearrange: expected a pattern like "a (b c) -> b a c" but got {pattern!r}')
    left, right = (_groups(side, pattern) for side in pattern.split("->"))
    for side in (left, right):
        names = [name for group in side for name in group if name != "1"]
        for name in names:
            if name.isdigit():
                raise TraceError(f"rearrange {pattern!r}: give the axis of size {name} a name, and its size as {'name'}={name}")
            if names.count(name) > 1:
                raise TraceError(f"rearrange {pattern!r}: {name!r} stands twice on one side")
    sides = [sorted(name for group in side for name in group if name != "1") for side in (left, right)]
    if sides[0] != sides[1]:
        odd = sorted(set(sides[0]) ^ set(sides[1]))
        raise TraceError(f"rearrange {pattern!r}: {', '.join(odd)} must stand on both sides")
    return Pattern(left, right)


def _groups(side: str, pattern: str) -> tuple[tuple[str, ...], ...]:
    groups: list[tuple[str, ...]] = []
    open_group: list[str] | None = None
    position = 0
    side = side.rstrip()
    while position < len(side):
        match = _TOKEN.match(side, position)
        token = match.group(1) if match else ""
        if match is None or token == "(" and open_group is not None or token == ")" and open_group is None:
            raise TraceError(f"rearrange {pattern!r}: unexpected {side[position:].strip()[:1]!r}")
        position = match.end()
        if token == "(":
            open_group = []
        elif token == ")":
            groups.append(tuple(open_group or ()))
            open_group = None
        elif open_group is not None:
            open_group.append(token)
        else:
            groups.append((token,))
    if open_group is not None:
        raise TraceError(f"rearrange {pattern!r}: a '(' is not closed")
    return tuple(groups)


def rearrange(builder: Builder, tensor: TensorValue, pattern: Any, sizes: Mapping[str, Value]) -> TensorValue:
    """`t.rearrange("(a b) c -> a c b", a=2)`: axes split, permuted and merged over the same bytes."""
    parsed = parse(pattern)
    if len(parsed.left) != len(tensor.shape):
        raise TraceError(f"rearrange {pattern!r} has {len(parsed.left)} axes, but {tensor.name} has shape {shown(tensor.shape)}")
    names = [name for group in parsed.left for name in group]
    known = {name: static_int(size, f"the size of {name!r}") for name, size in sizes.items()}
    for name in known:
        if name not in names:
            raise TraceError(f"rearrange {pattern!r}: no axis is called {name!r}")
    extents: dict[str, Index] = dict(known)
    split: list[list[tuple[str, Index]]] = []
    for axis, group in enumerate(parsed.left):
        split.append(_split_axis(builder, tensor, pattern, axis, group, extents))
    if tensor.layout is not None:
        return _rearranged_layout(tensor, parsed, split, extents)
    return _rearranged_strides(builder, tensor, parsed, split, extents)


def _split_axis(
    builder: Builder, tensor: TensorValue, pattern: str, axis: int, group: tuple[str, ...], extents: dict[str, Index]
) -> list[tuple[str, Index]]:
    whole = tensor.shape[axis]
    unknown = [name for name in group if name != "1" and name not in extents]
    if len(unknown) > 1:
        raise TraceError(f"rearrange {pattern!r}: give the size of {' or '.join(unknown)}")
    parts = 1
    for name in group:
        if name != "1" and name in extents:
            parts *= static_int(extents[name], f"the size of {name!r}")
    multiple = whole if isinstance(whole, int) else whole.facts.multiple
    if parts < 1 or multiple % parts or not unknown and not (isinstance(whole, int) and whole == parts):
        raise TraceError(
            f"rearrange {pattern!r}: axis {axis} of {tensor.name}, shape {shown(tensor.shape)}, does not split into "
            f"({' '.join(group)}) with {', '.join(f'{n}={extents[n]}' for n in group if n in extents) or 'these names'}"
        )
    if unknown:
        extents[unknown[0]] = whole // parts if isinstance(whole, int) else arithmetic.binary(builder, "floordiv", whole, parts)
    return [(name, 1 if name == "1" else extents[name]) for name in group]


def _order(parsed: Pattern) -> list[str]:
    return [name for group in parsed.right for name in group if name != "1"]


def _rearranged_layout(
    tensor: TensorValue, parsed: Pattern, split: list[list[tuple[str, Index]]], extents: dict[str, Index]
) -> TensorValue:
    assert tensor.layout is not None
    pieces = [piece for group in split for piece in group if piece[0] != "1"]
    layout, seps = tensor.layout.group([static_int(extent, "an extent") for _, extent in pieces])
    position = {name: index for index, (name, _) in enumerate(pieces)}
    moved = layout.permute_by_groups(seps, [position[name] for name in _order(parsed)])
    shape = tuple(
        math.prod(static_int(extents[name], "an extent") for name in group if name != "1") for group in parsed.right
    )
    return tensor.with_(layout=moved, shape=shape)


def _rearranged_strides(
    builder: Builder, tensor: TensorValue, parsed: Pattern, split: list[list[tuple[str, Index]]], extents: dict[str, Index]
) -> TensorValue:
    assert tensor.strides is not None
    strides: dict[str, Index] = {}
    for group, stride in zip(split, tensor.strides, strict=True):
        step: Index = stride
        for name, extent in reversed(group):
            strides[name] = step
            step = _multiply(builder, step, extent)
    shape: list[Index] = []
    result: list[Index] = []
    for group in parsed.right:
        extent, stride = _merged(builder, tensor, [name for name in group if name != "1"], extents, strides)
        shape.append(extent)
        result.append(stride)
    return tensor.with_(shape=tuple(shape), strides=tuple(result))


def _merged(
    builder: Builder, tensor: TensorValue, names: list[str], extents: dict[str, Index], strides: dict[str, Index]
) -> tuple[Index, Index]:
    if not names:
        return 1, 0
    extent, stride = extents[names[-1]], strides[names[-1]]
    for name in reversed(names[:-1]):
        if not _same(_multiply(builder, stride, extent), strides[name]):
            raise TraceError(f"rearrange: ({' '.join(names)}) of {tensor.name} is not evenly strided: it cannot be one axis")
        extent = _multiply(builder, extent, extents[name])
    return extent, stride


def _multiply(builder: Builder, a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return arithmetic.binary(builder, "mul", a, b)


def _same(a: Index, b: Index) -> bool:
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return a.linear is not None and b.linear is not None and not a.linear.plus(b.linear, -1).terms
    return not isinstance(a, Scalar) and a == b


def permute(tensor: TensorValue, dims: Sequence[Value]) -> TensorValue:
    """`t.permute(1, 0)`: axis i of the result is axis dims[i]."""
    order = [static_int(dim, "an axis of permute") for dim in dims]
    if sorted(order) != list(range(len(tensor.shape))):
        raise TraceError(f"permute{tuple(order)}: expected each axis of {tensor.name}, shape {shown(tensor.shape)}, once")
    shape = tuple(tensor.shape[dim] for dim in order)
    if tensor.layout is None:
        assert tensor.strides is not None
        return tensor.with_(shape=shape, strides=tuple(tensor.strides[dim] for dim in order))
    layout, seps = tensor.layout.group([static_int(extent, "an extent") for extent in tensor.shape])
    return tensor.with_(shape=shape, layout=layout.permute_by_groups(seps, order))


# ---- slices -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """What a subscript keeps of one axis: `extent` elements from `start`; `drop`: one element, the axis goes."""

    start: Index
    extent: Index
    drop: bool = False


def boxes(builder: Builder, tensor: TensorValue, items: Sequence[Value]) -> list[Box]:
    """The subscript's items, one for each axis (missing ones keep all)."""
    if len(items) > len(tensor.shape):
        raise TraceError(f"{tensor.name} has shape {shown(tensor.shape)}, but got {len(items)} indices")
    padded = [*items, *[slice(None)] * (len(tensor.shape) - len(items))]
    return [_box(builder, tensor, axis, item) for axis, item in enumerate(padded)]


def _box(builder: Builder, tensor: TensorValue, axis: int, item: Value) -> Box:
    extent = tensor.shape[axis]
    if not isinstance(item, slice):
        return Box(_index(item, tensor, axis), 1, drop=True)
    if item.step not in (None, 1):
        raise TraceError(f"{tensor.name}: a slice with a step is not supported; split the axis with rearrange")
    start: Index = 0 if item.start is None else _index(item.start, tensor, axis)
    stop: Index = extent if item.stop is None else _index(item.stop, tensor, axis)
    if item.start is None and item.stop is None:
        return Box(0, extent)
    length = _difference(builder, stop, start, tensor, axis)
    low, high = bounds(start)
    top = bounds(extent)[1]
    if length <= 0 or low is not None and top is not None and low + length > top or high is not None and high < 0:
        raise TraceError(f"the slice of axis {axis} ({length} elements from {low}) leaves {tensor.name}, shape {shown(tensor.shape)}")
    return Box(start, length)


def _index(value: Value, tensor: TensorValue, axis: int) -> Index:
    if isinstance(value, Scalar):
        if not value.dtype.is_int:
            raise TraceError(f"the index of axis {axis} of {tensor.name} is a {value.dtype}: expected an integer")
        return value
    index = static_int(value, f"the index of axis {axis} of {tensor.name}")
    if index < 0:
        raise TraceError(f"index {index} of axis {axis} of {tensor.name} is negative: indices count from the start")
    return index


def _difference(builder: Builder, stop: Index, start: Index, tensor: TensorValue, axis: int) -> int:
    if isinstance(stop, int) and isinstance(start, int):
        return stop - start
    length = arithmetic.binary(builder, "sub", stop, start)
    if length.linear is not None and not length.linear.terms:
        return length.linear.constant
    raise TraceError(f"the slice of axis {axis} of {tensor.name}: its length must be known while tracing (stop = start + a constant)")


def subtensor(builder: Builder, tensor: TensorValue, items: Sequence[Value]) -> TensorValue:
    """`t.sub[...]` and `t[a:b, …]`: a box of the tensor. Starts may be runtime values, extents are static."""
    kept = boxes(builder, tensor, items)
    if isinstance(tensor.base, Registers):
        kept = [Box(_static_start(box.start, tensor), box.extent, box.drop) for box in kept]
    if tensor.layout is None:
        return _strided_box(builder, tensor, kept)
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
    iters = [it for it in grouped.canonicalize().shard] if len(sizes) == 1 else list(grouped.shard[seps[axis] : seps[axis + 1]])
    iters = [it for it in TileLayout.from_iters(iters).canonicalize().shard if it.extent > 1]
    if any(it.axis.kind == "thread" for it in iters):
        raise TraceError(f"{tensor.name}: a runtime start on axis {axis} would choose among threads")
    start = [0] * len(sizes)
    extents = list(sizes)
    extents[axis] = extent
    if len(iters) <= 1:
        stride = iters[0].stride if iters else 0
        return layout.slice(start, extents, shape=sizes), arithmetic.binary(builder, "mul", box.start, stride)
    if size % extent or offset_multiple(builder, box.start) % extent:
        raise TraceError(
            f"{tensor.name}: the start of the slice of axis {axis} must be known to be a multiple of its length {extent}, "
            f"since the layout of this axis has several strides"
        )
    blocks = arithmetic.binary(builder, "floordiv", box.start, extent)
    split = [*sizes[:axis], size // extent, extent, *sizes[axis + 1 :]]
    where: list[Any] = [0] * len(split)
    where[axis] = Symbol(builder, blocks)
    moved = tile_of(layout).apply(*where, shape=split)["m"].scalar
    origin = tile_of(layout).offset.get(m, 0)
    return layout.slice(start, extents, shape=sizes), arithmetic.binary(builder, "sub", moved, origin)


def _strided_box(builder: Builder, tensor: TensorValue, kept: list[Box]) -> TensorValue:
    assert tensor.strides is not None
    offset: Index = tensor.offset
    wide = isinstance(tensor.base, GlobalBuffer) and tensor.base.wide
    for box, stride in zip(kept, tensor.strides, strict=True):
        if box.start == 0 or stride == 0:
            continue
        step = _step(builder, box.start, stride, wide)
        offset = step if offset == 0 else offset + step if isinstance(offset, int) and isinstance(step, int) else arithmetic.binary(builder, "add", offset, step)
    shape = tuple(box.extent for box in kept if not box.drop)
    strides = tuple(stride for box, stride in zip(kept, tensor.strides, strict=True) if not box.drop)
    return tensor.with_(shape=shape, strides=strides, offset=offset)


def _step(builder: Builder, start: Index, stride: Index, wide: bool) -> Index:
    if isinstance(start, int) and isinstance(stride, int):
        return start * stride
    target = dtypes.int64 if wide else dtypes.int32
    a, b = (arithmetic.convert(builder, x, target) if isinstance(x, Scalar) else x for x in (start, stride))
    return arithmetic.binary(builder, "mul", a, b)

