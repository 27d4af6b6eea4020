"""Layouts as arrays: the values of every axis for all elements at once, with numpy.

For proofs and comparisons; arrays are int64, elements are in row-major order. Nothing here knows how a layout is
written or changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from warpjit.layout.axis import Axis
from warpjit.layout.iters import Iters, size_of

Values: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


def axis_values(iters: Iters, axis: Axis, start: int = 0) -> Values:
    """What `iters` put on one axis, from `start` on, for all elements: shape (size,)."""
    extents = tuple(it.extent for it in iters)
    grid = np.full((1,) * len(iters), start, dtype=np.int64)
    for position, it in enumerate(iters):
        if it.axis is axis and it.stride:
            steps = np.arange(it.extent, dtype=np.int64) * it.stride
            grid = grid + steps.reshape([-1 if k == position else 1 for k in range(len(iters))])
    return np.broadcast_to(grid, extents).reshape(-1)


def copies(base: Mapping[str, Values], axes: Sequence[Axis], replica: Iters) -> dict[str, Values]:
    """All copies of all elements: shape (copies, *elements) for each axis, the first copy at the base."""
    count = size_of(replica)
    elements = next(iter(base.values())).shape if base else ()
    result = {}
    for axis in axes:
        shifts = axis_values(replica, axis).reshape(count, *(1 for _ in elements))
        result[axis.name] = shifts + base.get(axis.name, np.zeros(elements, np.int64))
    return result


def same_places(left: Mapping[str, Values], right: Mapping[str, Values], size: int) -> bool:
    """Whether two maps (copies, size) send each element to the same set of places; an absent axis is 0."""
    axes = sorted({*left, *right})
    first, second = _places(left, axes, size), _places(right, axes, size)
    if np.array_equal(first, second):
        return True
    return all(
        {tuple(place) for place in first[:, element].tolist()}
        == {tuple(place) for place in second[:, element].tolist()}
        for element in range(size)
    )


def _places(values: Mapping[str, Values], axes: Sequence[str], size: int) -> Values:
    """Shape (copies, size, axes)."""
    origin = np.zeros_like(next(iter(values.values()))) if values else np.zeros((1, size), np.int64)
    return np.stack([values.get(axis, origin) for axis in axes], axis=-1) if axes else origin[..., None]


def fills_box(values: Mapping[str, Values], box: Mapping[str, int]) -> bool:
    """Whether one-dimensional values hit each place of the box [0, n) of every axis exactly once, and no other."""
    places = np.zeros(next(iter(values.values())).size if values else 1, dtype=np.int64)
    if places.size != prod(box.values()):
        return False
    for axis, array in values.items():
        limit = box.get(axis, 1)
        if array.min() < 0 or array.max() >= limit:
            return False
        places = places * limit + array
    return bool(np.unique(places).size == places.size)
