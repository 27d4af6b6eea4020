"""Random layouts, and the slow and plain meaning of a layout that the laws are checked against.

`places` follows the definition with loops over Python ints and shares no code with the package beyond reading fields.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

from hypothesis import strategies as st

from warpjit.layout import ComposeLayout, Iter, Layout, TileLayout, laneid, m, warpid

AXES = (m, laneid, warpid)
Place = tuple[int, ...]


def places(layout: Layout) -> list[list[Place]]:
    """For each element in row-major order: its copies as (m, laneid, warpid), the first copy first."""
    tile = layout.tile_layout if isinstance(layout, ComposeLayout) else layout
    result = []
    for index in itertools.product(*(range(it.extent) for it in tile.shard)):
        copies = []
        for copy in itertools.product(*(range(it.extent) for it in tile.replica)):
            place = {axis: dict(tile.offset_terms).get(axis, 0) for axis in AXES}
            for step, it in zip((*index, *copy), (*tile.shard, *tile.replica), strict=True):
                place[it.axis] += step * it.stride
            if isinstance(layout, ComposeLayout):
                place[m] = swizzled(layout, place[m])
            copies.append(tuple(place[axis] for axis in AXES))
        result.append(copies)
    return result


def swizzled(layout: ComposeLayout, x: int) -> int:
    """The swizzle, word for word from its definition on the bits above `per_element`."""
    high, low = divmod(x, 2**layout.per_element)
    mask = 2**layout.swizzle_len - 1
    if layout.swizzle_inner:
        high ^= (high >> layout.atom_len) & mask
    else:
        high ^= (high & mask) << layout.atom_len
    return high * 2**layout.per_element + low


def sets(layout: Layout) -> list[set[Place]]:
    """The set of places of each element."""
    return [set(copies) for copies in places(layout)]


def as_place(values: dict[str, int]) -> Place:
    """What `apply` returns, with absent axes at 0."""
    return tuple(int(values.get(axis.name, 0)) for axis in AXES)


def coordinates(linear: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The row-major coordinates of an element."""
    coords: list[int] = []
    for size in reversed(shape):
        coords.insert(0, linear % size)
        linear //= size
    return tuple(coords)


@st.composite
def extents(draw: st.DrawFn, max_rank: int = 6, max_size: int = 128) -> tuple[int, ...]:
    """Up to `max_rank` small extents with a small product."""
    sizes: list[int] = []
    for _ in range(draw(st.integers(0, max_rank))):
        sizes.append(draw(st.sampled_from([n for n in (1, 2, 3, 4, 6) if n * prod(sizes) <= max_size])))
    return tuple(sizes)


@st.composite
def loose_iters(draw: st.DrawFn, max_rank: int, max_size: int) -> tuple[Iter, ...]:
    """Any strides, 0 and overlapping ones among them."""
    sizes = draw(extents(max_rank, max_size))
    return tuple(Iter(size, draw(st.integers(0, 8)), draw(st.sampled_from(AXES))) for size in sizes)


@st.composite
def chained_iters(draw: st.DrawFn, max_rank: int, max_size: int) -> tuple[Iter, ...]:
    """Strides that fill their axes without gaps, in any order: what operands look like."""
    sizes = draw(extents(max_rank, max_size))
    reach = dict.fromkeys(AXES, 1)
    iters: list[Iter] = []
    for size in sizes:
        axis = draw(st.sampled_from(AXES))
        iters.insert(0, Iter(size, reach[axis], axis))
        reach[axis] *= size
    order = draw(st.one_of(st.just(list(range(len(iters)))), st.permutations(range(len(iters)))))
    return tuple(iters[k] for k in order)


@st.composite
def tile_layouts(draw: st.DrawFn, max_rank: int = 6, max_size: int = 128) -> TileLayout:
    """Layouts with replicas and offsets, both often absent."""
    shard = draw(st.one_of(loose_iters(max_rank, max_size), chained_iters(max_rank, max_size)))
    replica = draw(st.one_of(st.just(()), loose_iters(2, 6)))
    offset = draw(st.one_of(st.just({}), st.dictionaries(st.sampled_from(AXES), st.integers(0, 8), max_size=3)))
    return TileLayout.from_iters(shard, replica, offset)


@st.composite
def compose_layouts(draw: st.DrawFn) -> ComposeLayout:
    """Swizzles over any tile."""
    keep, bits = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    tile = draw(tile_layouts())
    return ComposeLayout(keep, bits, bits + draw(st.integers(0, 2)), tile, draw(st.booleans()))


def layouts() -> st.SearchStrategy[Layout]:
    """Either kind."""
    return st.one_of(tile_layouts(), compose_layouts())


@st.composite
def regroupings(draw: st.DrawFn, layout: Layout) -> tuple[int, ...]:
    """A shape whose dims are whole iters, or whole parts of iters."""
    factors: list[int] = []
    for it in layout.shard:
        parts = [(it.extent,), *((n, it.extent // n) for n in range(2, it.extent) if it.extent % n == 0)]
        factors += draw(st.sampled_from(parts))
    dims = [1]
    for factor in factors:
        if draw(st.booleans()):
            dims.append(factor)
        else:
            dims[-1] *= factor
    return tuple(dims)


@st.composite
def any_shape(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """Any shape of that size, whether iters split along it or not."""
    dims: list[int] = []
    while size > 1 and len(dims) < 4:
        dims.append(draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0])))
        size //= dims[-1]
    return (*dims, size)
