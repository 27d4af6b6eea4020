"""Where a coordinate lands: coordinates -> a value for each axis.

A `Plan` says how the coordinates of one shape split over the iters of one layout; it is made once for both. A
coordinate may be any object with the operators of `Coordinate`: such objects are only combined, never compared or
converted, and no operation is spent on what is statically trivial. Bounds are the caller's.
"""

from __future__ import annotations

from math import prod
from typing import Any, Protocol

from warpjit.layout.iters import Iters, Shape, fuse, regroup
from warpjit.record import record


class Coordinate(Protocol):
    """What a coordinate must be able to do; an int can, and so can an expression or a numpy array of ints."""

    def __add__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __floordiv__(self, other: Any, /) -> Any: ...
    def __mod__(self, other: Any, /) -> Any: ...


@record
class Part:
    """Adds `index // divisor % modulus * stride` to an axis; a modulus of 0 means that the index needs no wrapping."""

    divisor: int
    modulus: int
    stride: int
    axis: str


@record
class Block:
    """Neighbouring dims that split over the iters together: index = sum of coordinate * weight."""

    dims: tuple[tuple[int, int], ...]
    parts: tuple[Part, ...]


Plan = tuple[Block, ...]


def plan(shard: Iters, shape: Shape) -> Plan:
    """How coordinates in `shape` split over `shard`, which has the same size.

    Each dim is split on its own where the iters allow it, and is linearised with its right neighbours otherwise.
    """
    iters = fuse(shard)
    groups = [[dim] for dim in range(len(shape))]
    while True:
        runs = regroup(iters, [prod(shape[dim] for dim in group) for group in groups])
        stuck = len(runs)
        if stuck == len(groups):
            break
        groups[stuck] += groups.pop(stuck + 1)
    blocks = (_block(group, fuse(run), shape) for group, run in zip(groups, runs, strict=True))
    return tuple(block for block in blocks if block.parts)


def _block(dims: list[int], run: Iters, shape: Shape) -> Block:
    weighted: list[tuple[int, int]] = []
    weight = 1
    for dim in reversed(dims):
        if shape[dim] > 1:
            weighted.append((dim, weight))
        weight *= shape[dim]
    parts: list[Part] = []
    divisor = 1
    for position, it in reversed(tuple(enumerate(run))):
        if it.stride:
            parts.append(Part(divisor, it.extent if position else 0, it.stride, it.axis.name))
        divisor *= it.extent
    return Block(tuple(reversed(weighted)), tuple(reversed(parts)))


def evaluate(blocks: Plan, base: dict[str, int], coords: tuple[Any, ...]) -> dict[str, Any]:
    """`base` (the offset of every axis that is to appear) plus what the coordinates add. `base` is not changed."""
    known: dict[str, Any] = dict(base)
    open_terms: dict[str, Any] = {}
    for block in blocks:
        constant = 0
        index: Any = None
        for dim, weight in block.dims:
            coord = coords[dim]
            if type(coord) is int:
                constant += coord * weight
            else:
                term = coord if weight == 1 else coord * weight
                index = term if index is None else index + term
        if index is None:
            _add_static(known, block.parts, constant)
        else:
            _add_open(known, open_terms, block.parts, index, constant)
    for axis, term in open_terms.items():
        known[axis] = term + known[axis] if known[axis] else term
    return known


def _add_static(known: dict[str, Any], parts: tuple[Part, ...], index: int) -> None:
    for part in parts:
        step = index // part.divisor
        known[part.axis] += (step % part.modulus if part.modulus else step) * part.stride


def _add_open(
    known: dict[str, Any], open_terms: dict[str, Any], parts: tuple[Part, ...], index: Any, constant: int
) -> None:
    if constant and len(parts) == 1 and parts[0].divisor == 1 and not parts[0].modulus:
        # A linear block: the constant goes to the other constants instead of into the expression.
        known[parts[0].axis] += constant * parts[0].stride
    elif constant:
        index = index + constant
    for part in parts:
        term = index if part.divisor == 1 else index // part.divisor
        term = term % part.modulus if part.modulus else term
        term = term if part.stride == 1 else term * part.stride
        axis = part.axis
        open_terms[axis] = open_terms[axis] + term if axis in open_terms else term
