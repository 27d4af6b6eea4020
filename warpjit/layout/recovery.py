"""From a map back to a layout: given where every element lies, the iters that put it there, if there are any.

Used where an operation's result is known element by element (`compose`). Whether and where the map is not one of
iters is part of the answer. Swizzles are not found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from warpjit.errors import LayoutError
from warpjit.layout.axis import Axis, m
from warpjit.layout.enumeration import Values
from warpjit.layout.iters import Iter, Iters, fuse
from warpjit.record import record

if TYPE_CHECKING:
    from warpjit.layout.compose import Layout


@record
class Recovered:
    """The shortest iters with the map, and where its first element is."""

    iters: Iters
    origin: tuple[tuple[Axis, int], ...]


@record
class Departure:
    """There are no such iters: `element` is the first that does not lie where those before it lead."""

    element: int


def recover(values: Mapping[str, Values]) -> Recovered | Departure:
    """The iters of a map: of one-dimensional arrays of equal size (at least 1), one for each axis.

    Iters that fuse are one, so from the innermost outwards there is no choice: an iter goes on as long as its steps do.
    """
    axes = [Axis.get(name) for name in values]
    places = np.stack(list(values.values()), axis=-1) if axes else np.zeros((1, 0), np.int64)
    origin = tuple(zip(axes, (int(value) for value in places[0]), strict=True))
    rest = places - places[0]
    iters: list[Iter] = []
    weight = 1
    while len(rest) > 1:
        step = rest[1]
        moved = np.flatnonzero(step)
        if len(moved) > 1 or (step < 0).any():
            return Departure(weight)
        line = np.arange(len(rest))[:, None] * step
        away = np.flatnonzero((rest != line).any(axis=1))
        extent = int(away[0]) if away.size else len(rest)
        if len(rest) % extent:
            return Departure(extent * weight)
        steps = rest.reshape(-1, extent, rest.shape[-1])
        wrong = np.argwhere((steps != steps[:, :1] + line[:extent]).any(axis=-1))
        if wrong.size:
            return Departure(int(wrong[0] @ (extent, 1)) * weight)
        iters.insert(0, Iter(extent, int(step[moved[0]]), axes[moved[0]]) if moved.size else Iter(extent, 0))
        rest = steps[:, 0]
        weight *= extent
    return Recovered(tuple(iters), origin)


def composed(outer: Layout, inner: Layout) -> Recovered:
    """The iters of x -> outer(inner(x)), replicas left aside; LayoutError as `TileLayout.compose` says."""
    index = _named_elements(outer, inner)
    values = {name: value[index] for name, value in outer.enumerate().items()}
    found = recover(values or {m.name: np.zeros(index.size, np.int64)})
    if isinstance(found, Departure):
        raise LayoutError(
            f"{outer}: compose: no iters have the map with {inner}: its element {found.element} is element "
            f"{index[found.element]} of the layout, which does not lie where the elements before it lead"
        )
    return found


def is_index(layout: Layout, size: int) -> bool:
    """Whether every element names, on m, one element of `size`."""
    return all(axis is m for axis in layout.axes) and not fuse(layout.replica) and layout.span() <= size


def _named_elements(outer: Layout, inner: Layout) -> Values:
    """The element of `outer` that each element of `inner` names on m (LayoutError where there is none)."""
    if any(axis is not m for axis in inner.axes) or fuse(inner.replica):
        raise LayoutError(f"{outer}: compose: expected a layout on m alone, without replicas, but got {inner}")
    index = inner.enumerate().get(m.name, np.zeros(inner.size(), np.int64))
    beyond = np.flatnonzero(index >= outer.size())
    if beyond.size:
        raise LayoutError(
            f"{outer}: compose: element {beyond[0]} of {inner} is {index[beyond[0]]}, but the layout has "
            f"{outer.size()} elements"
        )
    return index
