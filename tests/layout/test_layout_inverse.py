"""`compose` and `inverse` on random layouts, against enumeration by loops; what they give and refuse by example."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from layout_cases import AXES, as_place, chained_iters, layouts, loose_iters, places

from warpjit.errors import LayoutError
from warpjit.layout import ComposeLayout, Iter, Layout, R, S, TileLayout, laneid, m, mma_shared_layout, warpid

more = settings(max_examples=100, deadline=None)
A = TileLayout(S[(2, 8, 2, 4) : (1, 4 @ laneid, 2, 1 @ laneid)])


@st.composite
def indices(draw: st.DrawFn, size: int) -> TileLayout:
    """Layouts on m that name elements of a layout of that size."""
    factors = [n for n in range(2, size + 1) if size % n == 0]
    kept = [n for n in factors if draw(st.booleans())]
    iters, left = [], size
    for n in kept:
        if left % n == 0:
            left //= n
            iters.append(Iter(n, left, m))
    order = draw(st.permutations(range(len(iters))))
    loose = tuple(Iter(it.extent, draw(st.integers(0, 3)), m) for it in draw(loose_iters(3, 12)))
    chosen = draw(st.sampled_from([tuple(iters[k] for k in order), loose]))
    tile = TileLayout.from_iters(chosen)
    room = size - tile.span("m")
    assume(room >= 0)
    return TileLayout.from_iters(chosen, offset={m: draw(st.integers(0, room))})


def expressible(wanted: list[tuple[int, ...]]) -> bool:
    """Whether some iters have this map, tried from the innermost iter outwards with every divisor."""
    if len(wanted) == 1:
        return True
    step = [b - a for a, b in zip(wanted[0], wanted[1], strict=True)]
    if min(step) < 0 or sum(map(bool, step)) > 1:
        return False
    for extent in range(2, len(wanted) + 1):
        if len(wanted) % extent:
            continue
        runs = [wanted[k : k + extent] for k in range(0, len(wanted), extent)]
        straight = all(
            place == tuple(a + k * d for a, d in zip(run[0], step, strict=True))
            for run in runs
            for k, place in enumerate(run)
        )
        if straight and expressible([run[0] for run in runs]):
            return True
    return False


@more
@given(st.data(), layouts())
def test_compose_is_one_map_after_the_other(data: st.DataObject, outer: Layout) -> None:
    inner = data.draw(indices(outer.size()))
    index = [copies[0][0] for copies in places(inner)]
    try:
        composed = outer.compose(inner)
    except LayoutError:
        tile = outer.tile_layout if isinstance(outer, ComposeLayout) else outer
        assert not expressible([places(tile)[k][0] for k in index])
    else:
        found = places(outer)
        assert places(composed) == [found[k] for k in index]


@more
@given(st.data(), layouts())
def test_inverse_leads_back_or_shows_why_not(data: st.DataObject, layout: Layout) -> None:
    named = data.draw(st.permutations(AXES).flatmap(lambda order: st.integers(0, 3).map(lambda n: tuple(order[:n]))))
    box = {axis: data.draw(st.sampled_from([layout.span(axis), layout.size(axis)])) for axis in named}
    whole = list(itertools.product(*(range(box.get(axis, 1)) for axis in AXES)))
    found = [place for copies in places(layout) for place in copies]
    bijection = sorted(found) == whole and len(found) == layout.size()
    if bijection and isinstance(layout, ComposeLayout):
        assume(not layout.swizzle.moves_below(layout.tile_layout.span(m)))
    if not bijection:
        with pytest.raises(LayoutError, match="not a bijection onto"):
            layout.inverse(box)
        return
    inverse = layout.inverse(box)
    back = dict(zip(found, range(layout.size()), strict=True))
    for coordinates in itertools.product(*(range(extent) for extent in box.values())):
        place = dict(zip((axis.name for axis in box), coordinates, strict=True))
        index = inverse.apply(*coordinates, shape=tuple(box.values())).get("m", 0) if box else 0
        assert index == back[as_place(place)]


@more
@given(st.lists(chained_iters(4, 48), min_size=1, max_size=1), st.permutations(AXES))
def test_inverse_of_what_fills_its_box_composes_to_the_identity(runs: list, order: list) -> None:
    layout = TileLayout.from_iters(runs[0])
    box = {axis: layout.size(axis) for axis in order}
    inverse = layout.inverse(box)
    assert inverse.is_bijective({"m": layout.size()})
    again = layout.compose(inverse).enumerate(tuple(box.values()))
    for coordinates in itertools.product(*(range(extent) for extent in box.values())):
        assert as_place({name: values[coordinates] for name, values in again.items()}) == tuple(
            dict(zip(box, coordinates, strict=True)).get(axis, 0) for axis in AXES
        )


SWIZZLED = [
    mma_shared_layout("float16", 3, (16, 128)),
    mma_shared_layout("float16", 1, (64, 32)).permute_dims((1, 0, 2)),
    mma_shared_layout("float32", 2, (8, 16)),
    mma_shared_layout("int8", 3, (2, 8, 256)),
    ComposeLayout(0, 1, 1, TileLayout(S[(2, 4) : (1, 2)])),
    ComposeLayout(0, 1, 1, TileLayout(S[(2, 2, 2) : (1, 2, 4)]), swizzle_inner=False),
    ComposeLayout(0, 2, 3, TileLayout(S[(32, 2) : (1, 1 @ warpid)])),
]


@pytest.mark.parametrize("layout", SWIZZLED, ids=str)
def test_inverse_of_swizzles(layout: ComposeLayout) -> None:
    box = {"m": layout.size("m"), **({"warpid": 2} if layout.size("warpid") > 1 else {})}
    inverse = layout.inverse(box)
    assert isinstance(inverse, ComposeLayout)
    found = inverse.enumerate(tuple(box.values()))["m"]
    for element in range(layout.size()):
        place = layout.apply(element)
        assert found[tuple(place.get(axis, 0) for axis in box)] == element


def test_an_inverse_says_what_a_register_holds() -> None:
    inverse = A.inverse(("laneid", "m"))
    assert inverse == TileLayout(S[(8, 4, 2, 2) : (8, 1, 4, 64)])
    assert {"m": 8 * 9 + 5} == inverse.apply(5, 3, shape=(32, 4))
    assert A.inverse(("m", "laneid")) == TileLayout(S[(2, 2, 8, 4) : (4, 64, 8, 1)])
    assert TileLayout(S[()]).inverse(()) == TileLayout(S[()])


def test_compose_by_example() -> None:
    columns = TileLayout(S[(8, 16) : (1, 8)])
    assert A.compose(columns) == TileLayout(S[(2, 4, 2, 8) : (2, 1 @ laneid, 1, 4 @ laneid)])
    assert A.compose(TileLayout(S[4:32] + 1)) == TileLayout(S[(2, 2) : (1, 16 @ laneid)] + 1 @ laneid)
    assert TileLayout(S[4] + R[2 : 1 @ warpid]).compose(TileLayout(S[2:2])) == TileLayout(S[2:2] + R[2 : 1 @ warpid])
    swizzled = ComposeLayout(3, 3, 3, TileLayout(S[(8, 64) : (64, 1)]))
    assert TileLayout(S[512]).compose(swizzled) is swizzled
    transposed = ComposeLayout(3, 3, 3, TileLayout(S[(64, 8) : (1, 64)]))
    assert swizzled.compose(TileLayout(S[(64, 8) : (1, 64)])) == transposed


REFUSALS: list[tuple[Callable[[], object], str]] = [
    (lambda: A.inverse("laneid"), "onto laneid < 32: element 4 is at m = 2, beyond the box's last, 0"),
    (lambda: A.inverse({"laneid": 32, "m": 8}), "onto laneid < 32, m < 8: no element is at laneid = 0, m = 4"),
    (lambda: TileLayout(S[(4, 2) : (1, 2)]).inverse("m"), "elements 1 and 4 are both at m = 2"),
    (lambda: TileLayout(S[4] + R[2:4]).inverse("m"), "element 0 has 2 copies, the first at m = 0"),
    (lambda: TileLayout(S[6] + 2).inverse("m"), "no element is at m = 0"),
    (lambda: TileLayout(S[6]).inverse(()), "onto one place: element 1 is at m = 1, beyond the box's last, 0"),
    (
        lambda: ComposeLayout(0, 2, 2, TileLayout(S[(2, 4, 2) : (1, 4, 2)])).inverse("m"),
        "inverse: no swizzle after TileLayout(S[(4, 2, 2) : (2, 1, 8)]) is the same as the swizzle before it",
    ),
    (lambda: A.compose(TileLayout(S[128:2])), "element 64 of TileLayout(S[128 : 2]) is 128, but the layout has 128"),
    (lambda: A.compose(A), f"expected a layout on m alone, without replicas, but got {A}"),
    (lambda: A.compose(TileLayout(S[2] + R[2:4])), "without replicas, but got TileLayout(S[2 : 1] + R[2 : 4])"),
    (
        lambda: TileLayout(S[(4, 4) : (1 @ laneid, 1)]).compose(TileLayout(S[(2, 3) : (5, 3)])),
        "no iters have the map with TileLayout(S[(2, 3) : (5, 3)]): its element 3 is element 5 of the layout",
    ),
    (
        lambda: SWIZZLED[0].compose(SWIZZLED[0]),
        "no iters have the map with",
    ),
]


@pytest.mark.parametrize(("refused", "sentence"), REFUSALS, ids=[sentence for _, sentence in REFUSALS])
def test_refusals(refused: Callable[[], object], sentence: str) -> None:
    with pytest.raises(LayoutError) as caught:
        refused()
    assert sentence in str(caught.value)
