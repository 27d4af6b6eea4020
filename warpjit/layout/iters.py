"""The iter, the atom of a layout, and the algebra of tuples of iters.

A tuple of iters splits a linear index row-major over the extents (the first iter is the most significant) and adds
`component * stride` to each iter's axis. Nothing here knows of offsets, replicas or swizzles: see `tile`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TypeAlias

from warpjit.errors import LayoutError
from warpjit.layout.axis import Axis, as_count, as_int, m, term_text
from warpjit.record import record


@record
class Iter:
    """`extent` steps of `stride` along `axis` (an `Axis` or its name).

    Raises LayoutError unless extent and stride are ints, extent >= 1 and stride >= 0.
    """

    extent: int
    stride: int
    axis: Axis = m

    def __post_init__(self) -> None:
        if type(self.extent) is int and type(self.stride) is int and type(self.axis) is Axis:
            if self.extent > 0 and self.stride >= 0:
                return
        object.__setattr__(self, "axis", Axis.get(self.axis))
        object.__setattr__(self, "extent", as_count(self.extent, f"{self!r}: extent"))
        object.__setattr__(self, "stride", as_int(self.stride, f"{self!r}: stride"))
        if self.stride < 0:
            raise LayoutError(f"{self!r}: stride: expected 0 or more but got {self.stride}")

    @property
    def last(self) -> int:
        """How far the last step lies from the first."""
        return (self.extent - 1) * self.stride

    def scaled(self, factor: int) -> Iter:
        """The same iter with `factor` times the stride."""
        return self if factor == 1 else Iter(self.extent, self.stride * factor, self.axis)


Iters: TypeAlias = tuple[Iter, ...]
Shape: TypeAlias = tuple[int, ...]


def as_shape(shape: Sequence[int] | int, what: str) -> Shape:
    """A shape as a tuple of positive ints (an int is a shape of one dim). `what` names it in the LayoutError."""
    sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    for dim, size in enumerate(sizes):
        if type(size) is not int or size < 1:
            as_count(size, f"{what} {sizes}: dim {dim}")
    return tuple(int(size) for size in sizes)


def size_of(iters: Iterable[Iter]) -> int:
    """The number of elements."""
    return prod(it.extent for it in iters)


def fuse(iters: Iterable[Iter]) -> Iters:
    """The unique shortest tuple with the same map: no unit iters, and no neighbours that are one iter.

    Iters of stride 0 move nothing, so they are put on `m`, and one rule fuses them all.
    """
    fused: list[Iter] = []
    for it in iters:
        if it.extent == 1:
            continue
        if it.stride == 0 and it.axis is not m:
            it = Iter(it.extent, 0, m)
        outer = fused[-1] if fused else None
        if outer is not None and outer.axis is it.axis and outer.stride == it.extent * it.stride:
            fused[-1] = Iter(outer.extent * it.extent, it.stride, it.axis)
        else:
            fused.append(it)
    return tuple(fused)


def regroup(iters: Sequence[Iter], shape: Sequence[int]) -> list[Iters]:
    """Splits iters so that each dim of `shape` (of the same size) owns a run of them.

    Returns the runs of the leading dims that fit: fewer runs than dims means that the next dim ends inside an iter.
    A unit dim takes a unit iter where one is next; unit iters at the end go to the last dim.
    """
    rest = list(reversed(iters))
    runs: list[Iters] = []
    for size in shape:
        run = [rest.pop()] if size == 1 and rest and rest[-1].extent == 1 else []
        while size > 1:
            it = rest.pop()
            if size % it.extent == 0:
                run.append(it)
                size //= it.extent
            elif it.extent % size == 0:
                inner = it.extent // size
                run.append(Iter(size, it.stride * inner, it.axis))
                rest.append(Iter(inner, it.stride, it.axis))
                size = 1
            else:
                return runs
        runs.append(tuple(run))
    if runs and rest:
        runs[-1] += tuple(reversed(rest))
    return runs


@record
class Cut:
    """A part of a run of iters: what is left of the iters, and where it starts on each axis."""

    iters: Iters
    origin: tuple[tuple[Axis, int], ...]


def cut(run: Iters, start: int, extent: int) -> Cut | None:
    """The elements [start, start + extent) of a run; None where they are not whole steps of the iters."""
    if extent == size_of(run):
        return Cut(run, ())
    iters = fuse(run)
    origin: list[tuple[Axis, int]] = []
    while True:
        head, tail = iters[0], iters[1:]
        block = size_of(tail)
        first = start // block
        origin.append((head.axis, first * head.stride))
        if tail and first == (start + extent - 1) // block:
            iters, start = tail, start % block
            continue
        if start % block or extent % block:
            return None
        return Cut((Iter(extent // block, head.stride, head.axis), *tail), tuple(origin))


def iters_text(letter: str, iters: Sequence[Iter]) -> str:
    """The iters in the notation, with the strides spelled out: `S[(8, 4) : (4 @ laneid, 1)]`."""
    if not iters:
        return f"{letter}[()]"
    extents = [str(it.extent) for it in iters]
    strides = [term_text(it.stride, it.axis) for it in iters]
    if len(iters) == 1:
        return f"{letter}[{extents[0]} : {strides[0]}]"
    return f"{letter}[({', '.join(extents)}) : ({', '.join(strides)})]"
