"""`rearrange` and `permute`: axes of a tensor split, reordered and merged over the same bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import Index, shown, static_int
from warpjit.frontend.builder import Builder
from warpjit.frontend.values import Linear, Scalar, TensorValue, Value
from warpjit.record import record

_TOKEN = re.compile(r"\s*(\(|\)|->|[A-Za-z_]\w*|\d+)")


@record
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
                raise TraceError(
                    f"rearrange {pattern!r}: expected a name but got {name}: give the axis a name, and name={name}"
                )
            if names.count(name) > 1:
                raise TraceError(f"rearrange {pattern!r}: expected {name!r} once on each side but got it twice")
    sides = [sorted(name for group in side for name in group if name != "1") for side in (left, right)]
    if sides[0] != sides[1]:
        odd = sorted(set(sides[0]) ^ set(sides[1]))
        raise TraceError(f"rearrange {pattern!r}: expected {', '.join(odd)} on both sides")
    return Pattern(left, right)


def _groups(side: str, pattern: str) -> tuple[tuple[str, ...], ...]:
    groups: list[tuple[str, ...]] = []
    open_group: list[str] | None = None
    position = 0
    side = side.rstrip()
    while position < len(side):
        match = _TOKEN.match(side, position)
        token = match.group(1) if match else ""
        if match is None or (token == "(" and open_group is not None) or (token == ")" and open_group is None):
            raise TraceError(
                f"rearrange {pattern!r}: expected names and balanced brackets but got {side[position:].strip()[:1]!r}"
            )
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
        raise TraceError(f"rearrange {pattern!r}: expected a ')' for each '('")
    return tuple(groups)


def rearrange(builder: Builder, tensor: TensorValue, pattern: Any, sizes: Mapping[str, Value]) -> TensorValue:
    """`t.rearrange("(a b) c -> a c b", a=2)`: axes split, permuted and merged over the same bytes."""
    parsed = parse(pattern)
    if len(parsed.left) != len(tensor.shape):
        raise TraceError(
            f"rearrange {pattern!r}: expected {len(tensor.shape)} axes on the left, as {tensor.name} has, but got "
            f"{len(parsed.left)}"
        )
    names = [name for group in parsed.left for name in group]
    known = {name: static_int(size, f"the size of {name!r}") for name, size in sizes.items()}
    for name in known:
        if name not in names:
            raise TraceError(f"rearrange {pattern!r}: expected sizes of its names but got one of {name!r}")
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
        raise TraceError(f"rearrange {pattern!r}: expected the size of {' or '.join(unknown)}")
    parts = 1
    for name in group:
        if name != "1" and name in extents:
            parts *= static_int(extents[name], f"the size of {name!r}")
    multiple = whole if isinstance(whole, int) else whole.facts.multiple
    if parts < 1 or multiple % parts or (not unknown and not (isinstance(whole, int) and whole == parts)):
        raise TraceError(
            f"rearrange {pattern!r}: axis {axis} of {tensor.name}, shape {shown(tensor.shape)}, does not split into "
            f"({' '.join(group)}) with {', '.join(f'{n}={extents[n]}' for n in group if n in extents) or 'these names'}"
        )
    if unknown:
        extents[unknown[0]] = (
            whole // parts if isinstance(whole, int) else arithmetic.binary(builder, "floordiv", whole, parts)
        )
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
    builder: Builder,
    tensor: TensorValue,
    parsed: Pattern,
    split: list[list[tuple[str, Index]]],
    extents: dict[str, Index],
) -> TensorValue:
    assert tensor.strides is not None
    strides: dict[str, Index] = {}
    for pieces, stride in zip(split, tensor.strides, strict=True):
        step: Index = stride
        for name, extent in reversed(pieces):
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
    names = [name for name in names if extents[name] != 1]  # the stride of a single element is never taken
    if not names:
        return 1, 0
    extent, stride = extents[names[-1]], strides[names[-1]]
    for name in reversed(names[:-1]):
        if not _same(_multiply(builder, stride, extent), strides[name]):
            raise TraceError(
                f"rearrange of {tensor.name}: expected ({' '.join(names)}) to be evenly strided, to be one axis"
            )
        extent = _multiply(builder, extent, extents[name])
    return extent, stride


def _multiply(builder: Builder, a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return arithmetic.binary(builder, "mul", a, b)


def _same(a: Index, b: Index) -> bool:
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return a.linear is not None and b.linear is not None and a.linear.plus(b.linear, -1) == Linear()
    return not isinstance(a, Scalar) and a == b


def permute(tensor: TensorValue, dims: Sequence[Value]) -> TensorValue:
    """`t.permute(1, 0)`: axis i of the result is axis dims[i]."""
    order = [static_int(dim, "an axis of permute") for dim in dims]
    if sorted(order) != list(range(len(tensor.shape))):
        raise TraceError(
            f"permute: expected each axis of {tensor.name}, shape {shown(tensor.shape)}, once but got {tuple(order)}"
        )
    shape = tuple(tensor.shape[dim] for dim in order)
    if tensor.layout is None:
        assert tensor.strides is not None
        return tensor.with_(shape=shape, strides=tuple(tensor.strides[dim] for dim in order))
    layout, seps = tensor.layout.group([static_int(extent, "an extent") for extent in tensor.shape])
    return tensor.with_(shape=shape, layout=layout.permute_by_groups(seps, order))
