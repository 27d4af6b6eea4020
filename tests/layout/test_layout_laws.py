"""The laws of the algebra on random layouts, against enumeration by loops."""

from __future__ import annotations

import pickle
from itertools import product
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st
from layout_cases import (
    AXES,
    any_shape,
    as_place,
    compose_layouts,
    coordinates,
    layouts,
    places,
    regroupings,
    sets,
    tile_layouts,
)

import warpjit.layout as names
from warpjit.errors import LayoutError
from warpjit.layout import ComposeLayout, Layout, TileLayout, laneid, m, warpid

few = settings(max_examples=40, deadline=None)
more = settings(max_examples=80, deadline=None)


@few
@given(st.data(), layouts())
def test_apply_agrees_for_linear_iter_and_shape_coordinates(data: st.DataObject, layout: Layout) -> None:
    shape = data.draw(any_shape(layout.size()))
    for linear, copies in enumerate(places(layout)):
        first = copies[0]
        assert first == as_place(layout.apply(linear))
        assert first == as_place(layout.apply(*coordinates(linear, shape), shape=shape))
        if len(layout.extents) != 1:
            assert first == as_place(layout.apply(*coordinates(linear, layout.extents)))


@few
@given(layouts())
def test_enumerate_lists_the_first_copies(layout: Layout) -> None:
    values = layout.enumerate()
    assert list(layout.apply(0)) == list(values)
    listed = [as_place({axis: array[k] for axis, array in values.items()}) for k in range(layout.size())]
    assert [copies[0] for copies in places(layout)] == listed


@few
@given(layouts())
def test_enumerate_replicas_lists_every_copy(layout: Layout) -> None:
    values = layout.enumerate_replicas()
    count = prod(it.extent for it in layout.replica)
    listed = [
        [as_place({axis: array[c, k] for axis, array in values.items()}) for c in range(count)]
        for k in range(layout.size())
    ]
    assert places(layout) == listed


@few
@given(tile_layouts())
def test_span_is_one_more_than_the_largest_value(layout: TileLayout) -> None:
    found = [place for copies in places(layout) for place in copies]
    for position, axis in enumerate(AXES):
        assert 1 + max(place[position] for place in found) == layout.span(axis)
    assert layout.span("m") == layout.span()
    assert len(places(layout)) == layout.size()


@few
@given(compose_layouts())
def test_span_of_a_swizzle_covers_what_the_swizzle_reaches(layout: ComposeLayout) -> None:
    reached = 1 + max(place[0] for copies in places(layout) for place in copies)
    assert max(reached, layout.tile_layout.span("m")) == layout.span("m") == layout.span()


@more
@given(layouts())
def test_canonicalize_keeps_the_map_and_is_idempotent(layout: Layout) -> None:
    short = layout.canonicalize()
    assert sets(layout) == sets(short)
    assert short == short.canonicalize()
    assert all(it.extent > 1 for it in (*short.shard, *short.replica))
    assert len(short.shard) <= len(layout.shard)


@more
@given(st.data(), layouts())
def test_group_keeps_the_map_and_gives_each_dim_its_run(data: st.DataObject, layout: Layout) -> None:
    shape = data.draw(regroupings(layout))
    grouped, seps = layout.group(shape)
    assert places(layout) == places(grouped)
    assert (0, len(grouped.shard)) == (seps[0], seps[-1])
    runs = [grouped.extents[seps[dim] : seps[dim + 1]] for dim in range(len(shape))]
    assert list(shape) == [prod(run) for run in runs]


@few
@given(st.data(), layouts())
def test_permute_dims_reorders_the_coordinates(data: st.DataObject, layout: Layout) -> None:
    perm = data.draw(st.permutations(range(len(layout.shard))))
    moved = layout.permute_dims(perm)
    before = dict(zip(product(*map(range, layout.extents)), places(layout), strict=True))
    for coords, copies in zip(product(*map(range, moved.extents)), places(moved), strict=True):
        original = tuple(coords[perm.index(k)] for k in range(len(perm)))
        assert before[original] == copies


@few
@given(st.data(), layouts())
def test_permute_by_groups_reorders_the_dims_of_a_shape(data: st.DataObject, layout: Layout) -> None:
    shape = data.draw(regroupings(layout))
    perm = data.draw(st.permutations(range(len(shape))))
    moved = (lambda pair: pair[0].permute_by_groups(pair[1], perm))(layout.group(shape))
    before = dict(zip(product(*map(range, shape)), places(layout), strict=True))
    for coords, copies in zip(product(*(range(shape[k]) for k in perm)), places(moved), strict=True):
        assert before[tuple(coords[perm.index(k)] for k in range(len(perm)))] == copies


@few
@given(st.data(), tile_layouts(4, 24), tile_layouts(3, 6))
def test_tile_copies_the_inner_layout_over_the_grid(data: st.DataObject, inner: TileLayout, outer: TileLayout) -> None:
    inner_shape = data.draw(regroupings(inner).filter(lambda shape: len(shape) <= 3))
    outer_shape = (*(1 for _ in inner_shape[1:]), outer.size())
    tiled = inner.tile(outer, outer_shape, inner_shape)
    width = [inner.span(axis) - inner.offset.get(axis, 0) for axis in AXES]
    at, grid = sets(inner), sets(outer)
    whole = [a * b for a, b in zip(outer_shape, inner_shape, strict=True)]
    for coords, found in zip(product(*map(range, whole)), sets(tiled), strict=True):
        inside = linear([c % n for c, n in zip(coords, inner_shape, strict=True)], inner_shape)
        outside = coords[-1] // inner_shape[-1]
        assert {
            tuple(x + y * w for x, y, w in zip(place, step, width, strict=True))
            for place in at[inside]
            for step in grid[outside]
        } == found


def linear(coords: list[int], shape: tuple[int, ...]) -> int:
    index = 0
    for coord, size in zip(coords, shape, strict=True):
        index = index * size + coord
    return index


@few
@given(st.data(), layouts())
def test_tile_to_is_a_row_major_grid_of_whole_tiles(data: st.DataObject, layout: Layout) -> None:
    shape = data.draw(regroupings(layout).filter(lambda shape: len(shape) <= 3))
    counts = [data.draw(st.integers(1, 2)) for _ in shape]
    target = tuple(count * size for count, size in zip(counts, shape, strict=True))
    tiled = layout.tile_to(target, shape)
    tile = layout.tile_layout if isinstance(layout, ComposeLayout) else layout
    wide = tile.span("m") - tile.offset.get(m, 0)
    for coords in product(*map(range, target)):
        inside = [c % n for c, n in zip(coords, shape, strict=True)]
        number = linear([c // n for c, n in zip(coords, shape, strict=True)], tuple(counts))
        expected = tile.apply(*inside, shape=shape) if shape else tile.apply(0)
        expected["m"] = expected.get("m", 0) + number * wide
        if isinstance(layout, ComposeLayout):
            expected["m"] = layout.swizzle(expected["m"])
        assert as_place(expected) == as_place(tiled.apply(*coords, shape=target))


@more
@given(st.sampled_from([1, 2, 4]), layouts())
def test_unpack_makes_neighbours_and_pack_undoes_it(n: int, layout: Layout) -> None:
    narrow = layout.unpack(n)
    expected = [
        [(place[0] * n + part, *place[1:]) for place in copies] for copies in places(layout) for part in range(n)
    ]
    assert expected == places(narrow)
    assert places(layout) == places(narrow.pack(n))


@more
@given(st.sampled_from([2, 3, 4]), layouts())
def test_pack_is_refused_or_joins_neighbours(n: int, layout: Layout) -> None:
    try:
        packed = layout.pack(n)
    except LayoutError:
        return
    wide, narrow = places(packed), places(layout)
    assert len(narrow) == n * len(wide)
    for k, copies in enumerate(narrow):
        assert [(place[0] * n + k % n, *place[1:]) for place in wide[k // n]] == copies


@few
@given(st.data(), layouts())
def test_slice_along_the_iters_is_the_box(data: st.DataObject, layout: Layout) -> None:
    starts = [data.draw(st.integers(0, size - 1)) for size in layout.extents]
    box = [data.draw(st.integers(1, size - start)) for size, start in zip(layout.extents, starts, strict=True)]
    part = layout.slice(starts, box)
    whole = dict(zip(product(*map(range, layout.extents)), places(layout), strict=True))
    assert tuple(box) == part.extents
    for coords, copies in zip(product(*map(range, box)), places(part), strict=True):
        assert whole[tuple(c + s for c, s in zip(coords, starts, strict=True))] == copies


@more
@given(st.data(), layouts())
def test_slice_of_a_dim_is_refused_exactly_where_it_is_no_whole_steps(data: st.DataObject, layout: Layout) -> None:
    size = layout.size()
    start = data.draw(st.integers(0, size - 1))
    count = data.draw(st.integers(1, size - start))
    try:
        part = layout.slice((start,), (count,), shape=(size,))
    except LayoutError:
        assert not whole_steps(layout.canonicalize().extents, start, count)
    else:
        assert places(layout)[start : start + count] == places(part)
        assert count == size or whole_steps(layout.canonicalize().extents, start, count)


def whole_steps(extents: tuple[int, ...], start: int, count: int) -> bool:
    """Whether the box is a sub-grid: one coordinate on leading iters, a range on the next, everything on the rest."""
    corners = [coordinates(k, extents) for k in range(start, start + count)]
    seen = [sorted({corner[k] for corner in corners}) for k in range(len(extents))]
    ranges = [k for k, values in enumerate(seen) if len(values) > 1]
    return len(corners) == prod(len(values) for values in seen) and all(
        len(seen[k]) == extents[k] for k in range(ranges[0] + 1 if ranges else len(extents), len(extents))
    )


@more
@given(st.data(), layouts(), layouts())
def test_equivalent_compares_the_maps(data: st.DataObject, one: Layout, two: Layout) -> None:
    grouped, _ = one.group(data.draw(regroupings(one)))
    for other in (one, grouped, one.canonicalize(), two):
        assert (sets(one) == sets(other)) == one.equivalent(other) == other.equivalent(one)


@more
@given(layouts())
def test_is_trivial_is_the_identity(layout: Layout) -> None:
    identity = [[(k, 0, 0)] for k in range(layout.size())]
    copies = prod(it.extent for it in layout.replica) > 1
    assert (places(layout) == identity and not copies) == layout.is_trivial()


@more
@given(tile_layouts())
def test_is_contiguous_is_the_identity_from_some_start(layout: TileLayout) -> None:
    start = dict(layout.offset_terms).get(m, 0)
    line = [[(start + k, 0, 0)] for k in range(layout.size())]
    assert (places(layout) == line) == layout.is_contiguous()


@more
@given(layouts(), st.sets(st.sampled_from(AXES)))
def test_is_bijective_fills_the_box(layout: Layout, axes: set[names.Axis]) -> None:
    box = product(*(range(layout.span(axis) if axis in axes else 1) for axis in AXES))
    found = sorted(place for copies in places(layout) for place in copies)
    copies = prod(it.extent for it in layout.replica) > 1
    assert (found == list(box) and not copies) == layout.is_bijective(axes)


@more
@given(layouts())
def test_overlaps_finds_shared_places(layout: Layout) -> None:
    found = [place for copies in places(layout) for place in copies]
    assert (len(set(found)) < len(found)) == layout.overlaps()


@more
@given(layouts())
def test_repr_is_source_and_layouts_are_values(layout: Layout) -> None:
    again = eval(repr(layout), dict(vars(names)))
    assert layout == again
    assert hash(layout) == hash(again)
    assert repr(layout) == repr(again)
    layout.enumerate()
    assert layout == pickle.loads(pickle.dumps(layout))


@few
@given(tile_layouts())
def test_from_iters_takes_a_layout_apart(layout: TileLayout) -> None:
    assert layout == TileLayout.from_iters(layout.shard, layout.replica, layout.offset)
    offset = {axis.name: layout.offset.get(axis, 0) for axis in (warpid, laneid, m)}
    assert layout == TileLayout.from_iters(layout.shard, layout.replica, offset)
