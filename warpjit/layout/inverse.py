"""The way back: from places (lane and register, or memory) to the element that lies there.

`inverse_iters` turns iters that fill a box around; `no_inverse` is the refusal, with a counterexample, of a map that
does not. Swizzles are turned around in `compose`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from warpjit.errors import LayoutError
from warpjit.layout.axis import Axis, m
from warpjit.layout.enumeration import Values
from warpjit.layout.iters import Iter, Iters, size_of

if TYPE_CHECKING:
    from warpjit.layout.compose import Layout


def inverse_iters(shard: Iters, box: Mapping[Axis, int]) -> Iters:
    """Iters over the places of a box, its axes in order, that lead to the element's row-major index on m.

    The shard fills the box (`injectivity.fill_box`), so the iters of one axis are the digits of the place on it.
    """
    weights: dict[Axis, list[Iter]] = {axis: [] for axis in box}
    weight = size_of(shard)
    digits: list[tuple[Iter, int]] = []
    for it in shard:
        weight //= it.extent
        if it.extent > 1:
            digits.append((it, weight))
    for it, index in sorted(digits, key=lambda digit: -digit[0].stride):
        weights[it.axis].append(Iter(it.extent, index, m))
    return tuple(it for run in weights.values() for it in run)


def no_inverse(layout: Layout, box: Mapping[Axis, int]) -> LayoutError:
    """The refusal of a layout that does not fill the box."""
    places = ", ".join(f"{axis.name} < {extent}" for axis, extent in box.items())
    problem = _counterexample(layout.enumerate_replicas(), box, layout.size())
    return LayoutError(f"{layout}: inverse: not a bijection onto {places or 'one place'}: {problem}")


def _counterexample(copies: Mapping[str, Values], box: Mapping[Axis, int], size: int) -> str:
    """What is wrong with a map (arrays (copies, size)) onto the places of a box."""
    names = list(dict.fromkeys([axis.name for axis in box] + list(copies)))
    limits = {axis.name: extent for axis, extent in box.items()}
    zero = np.zeros((1, size), np.int64)
    arrays = np.broadcast_arrays(*(copies.get(name, zero) for name in names)) if names else []
    count = arrays[0].shape[0] if arrays else 1
    found = np.zeros((count, size), np.int64)
    for name, values in zip(names, arrays, strict=True):
        beyond = values >= limits.get(name, 1)
        if beyond.any():
            copy, element = np.argwhere(beyond)[0]
            last = limits.get(name, 1) - 1
            return f"element {element} is at {name} = {values[copy, element]}, beyond the box's last, {last}"
        found = found * limits.get(name, 1) + values
    if count > 1:
        first = _shown(names, limits, int(found[0, 0]))
        return f"element 0 has {count} copies, the first at {first}: replicas have no inverse"
    held = np.full(prod(limits.values()), -1)
    held[found[0]] = np.arange(size)
    twice = np.flatnonzero(held[found[0]] != np.arange(size))
    if twice.size:
        shared = int(found[0, twice[0]])
        return f"elements {twice[0]} and {held[shared]} are both at {_shown(names, limits, shared)}"
    return f"no element is at {_shown(names, limits, int(np.flatnonzero(held < 0)[0]))}"


def _shown(names: list[str], limits: Mapping[str, int], place: int) -> str:
    if not names:
        return "the only place"
    where = np.unravel_index(place, [limits.get(name, 1) for name in names])
    return ", ".join(f"{name} = {int(value)}" for name, value in zip(names, where, strict=True))
