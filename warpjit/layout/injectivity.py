"""Whether iters send different elements to different places, and whether they fill a box.

Each iter moves along one axis, so both questions split by axis. Swizzles are the business of `compose`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from warpjit.layout.axis import Axis
from warpjit.layout.enumeration import axis_values
from warpjit.layout.iters import Iter, Iters, size_of


def overlap(iters: Iters) -> bool:
    """Whether two different elements lie at the same place."""
    return any(_axis_overlaps(run, axis) for axis, run in _by_axis(iters).items())


def fill_box(iters: Iters, box: Mapping[Axis, int]) -> bool:
    """Whether the elements hit every place of the box [0, n) of every axis exactly once, and no other.

    Progressions fill an interval without overlap only as a chain: strides 1, e0, e0 * e1, ... in some order.
    """
    runs = _by_axis(iters)
    if any(axis not in box for axis in runs):
        return False
    for axis, extent in box.items():
        reach = 1
        for it in runs.get(axis, ()):
            if it.stride != reach:
                return False
            reach *= it.extent
        if reach != extent:
            return False
    return True


def _by_axis(iters: Iters) -> dict[Axis, Iters]:
    """The iters that have more than one step, by axis, smallest stride first."""
    runs: dict[Axis, list[Iter]] = {}
    for it in iters:
        if it.extent > 1:
            runs.setdefault(it.axis, []).append(it)
    return {axis: tuple(sorted(run, key=lambda it: it.stride)) for axis, run in runs.items()}


def _axis_overlaps(run: Iters, axis: Axis) -> bool:
    reach = 0
    for it in run:
        if it.stride <= reach:
            return it.stride == 0 or np.unique(axis_values(run, axis)).size < size_of(run)
        reach += it.last
    return False
