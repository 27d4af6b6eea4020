"""Packing: n neighbouring elements become one, and the way back, over iters and offsets.

A view of a tensor as a wider or narrower type is this. Swizzles are the business of `compose`.
"""

from __future__ import annotations

from warpjit.errors import LayoutError
from warpjit.layout.axis import Axis
from warpjit.layout.iters import Iter, Iters


def is_packable(shard: Iters, n: int, axis: Axis) -> bool:
    """Whether the last n elements of every n are neighbours on `axis`, as the iters are written."""
    return bool(shard) and shard[-1].axis is axis and shard[-1].stride == 1 and shard[-1].extent % n == 0


def packed_shard(shard: Iters, n: int, axis: Axis) -> Iters:
    """The iters over packed elements; `shard` is packable. Raises LayoutError where n does not divide a stride."""
    *others, last = shard
    return (*divided(tuple(others), n, axis), Iter(last.extent // n, 1, axis))


def divided(iters: Iters, n: int, axis: Axis) -> Iters:
    """The iters with strides on `axis` counted in units of n elements (LayoutError where one is no multiple)."""
    for it in iters:
        if it.axis is axis and it.stride % n:
            raise LayoutError(f"stride of extent {it.extent} on {axis}: expected a multiple of {n} but got {it.stride}")
    return tuple(Iter(it.extent, it.stride // n, axis) if it.axis is axis else it for it in iters)


def divided_offset(terms: tuple[tuple[Axis, int], ...], n: int, axis: Axis) -> tuple[tuple[Axis, int], ...]:
    """The offset with its value on `axis` counted in units of n elements (LayoutError where it is no multiple)."""
    for name, value in terms:
        if name is axis and value % n:
            raise LayoutError(f"offset on {axis}: expected a multiple of {n} but got {value}")
    return tuple((name, value // n if name is axis else value) for name, value in terms)


def multiplied(iters: Iters, n: int, axis: Axis) -> Iters:
    """The iters with strides on `axis` counted in elements n times as small."""
    return tuple(it.scaled(n) if it.axis is axis else it for it in iters)


def unpacked_shard(shard: Iters, n: int, axis: Axis) -> Iters:
    """The iters over elements n times as small; a last iter of neighbours is lengthened."""
    *others, last = multiplied(shard, n, axis) or (Iter(1, n, axis),)
    if last.axis is axis and last.stride == n:
        return (*others, Iter(last.extent * n, 1, axis))
    return (*others, last, Iter(n, 1, axis))
