"""Operations on worked layouts: the form of the result, and the sentence for each refusal."""

from __future__ import annotations

import pytest

from warpjit.errors import LayoutError
from warpjit.layout import ComposeLayout, Layout, R, S, TileLayout, laneid, m, tid_in_wg, tx, warpid, wgid, wid_in_wg

LANES = TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)])
SWIZZLED = ComposeLayout(3, 3, 3, TileLayout(S[(8, 64) : (64, 1)]))

RESULTS: list[tuple[Layout, Layout]] = [
    (TileLayout(S[(2, 1, 3, 4) : (12, 9, 4, 1)]).canonicalize(), TileLayout(S[24])),
    (TileLayout(S[(8, 4) : (4 @ laneid, 1)]).canonicalize(), TileLayout(S[(8, 4) : (4 @ laneid, 1)])),
    (LANES.canonicalize(), TileLayout(S[32 : 1 @ laneid])),
    (TileLayout(S[(2, 3, 8) : (0 @ laneid, 0, 1)]).canonicalize(), TileLayout(S[(6, 8) : (0, 1)])),
    (TileLayout(S[2] + R[(2, 2) : (4, 8)]).canonicalize(), TileLayout(S[2] + R[4:4])),
    (TileLayout(S[24]).group((2, 3, 4))[0], TileLayout(S[2, 3, 4])),
    (TileLayout(S[3, 2]).group((2, 3))[0], TileLayout(S[2, 3])),
    (TileLayout(S[4, 3, 2]).permute_dims((2, 0, 1)), TileLayout(S[(2, 4, 3) : (1, 6, 2)])),
    (TileLayout(S[4, 3, 2]).permute_by_groups((0, 2, 3), (1, 0)), TileLayout(S[(2, 4, 3) : (1, 6, 2)])),
    (
        LANES.tile(TileLayout(S[(2, 2) : (2, 1)]), (2, 2), (8, 4)),
        TileLayout(S[(2, 8, 2, 4) : (2, 4 @ laneid, 1, 1 @ laneid)]),
    ),
    (LANES.tile_to((16, 8), (8, 4)), TileLayout(S[(2, 8, 2, 4) : (2, 4 @ laneid, 1, 1 @ laneid)])),
    (
        TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)] + 3).tile(TileLayout(S[2:1] + 1 @ warpid), (2,), (64,)),
        TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)] + 3 + 1 @ warpid),
    ),
    (TileLayout(S[(8, 64) : (64, 1)] + 128).pack(2), TileLayout(S[(8, 32) : (32, 1)] + 64)),
    (TileLayout(S[(8, 2, 2) : (4, 2, 1)]).pack(4), TileLayout(S[8])),
    (TileLayout(S[(8, 4) : (4 @ laneid, 1)]).unpack(2), TileLayout(S[(8, 8) : (4 @ laneid, 1)])),
    (TileLayout(S[(4, 8) : (1, 1 @ laneid)]).unpack(2), TileLayout(S[(4, 8, 2) : (2, 1 @ laneid, 1)])),
    (TileLayout(S[8, 64]).slice((2, 16), (4, 8)), TileLayout(S[(4, 8) : (64, 1)] + 144)),
    (LANES.slice((3, 1), (1, 2)), TileLayout(S[(1, 2) : (4 @ laneid, 1 @ laneid)] + 13 @ laneid)),
    (
        TileLayout(S[(2, 8, 4) : (1, 4 @ laneid, 1 @ laneid)]).slice((8, 0), (8, 4), (16, 4)),
        TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)] + 1),
    ),
    (SWIZZLED.pack(2), ComposeLayout(2, 3, 3, TileLayout(S[(8, 32) : (32, 1)]))),
    (SWIZZLED.pack(2).unpack(2), SWIZZLED),
    (SWIZZLED.slice((0, 16), (8, 16)), ComposeLayout(3, 3, 3, TileLayout(S[(8, 16) : (64, 1)] + 16))),
    (SWIZZLED.group((8, 8, 8))[0], ComposeLayout(3, 3, 3, TileLayout(S[(8, 8, 8) : (64, 8, 1)]))),
    (SWIZZLED.permute_dims((1, 0)), ComposeLayout(3, 3, 3, TileLayout(S[(64, 8) : (1, 64)]))),
    (SWIZZLED.tile_to((16, 64), (8, 64)), ComposeLayout(3, 3, 3, TileLayout(S[(2, 8, 64) : (512, 64, 1)]))),
    (SWIZZLED.canonicalize(), ComposeLayout(3, 3, 3, TileLayout(S[512]))),
]


@pytest.mark.parametrize(("result", "expected"), RESULTS, ids=[str(expected) for _, expected in RESULTS])
def test_results(result: Layout, expected: Layout) -> None:
    assert expected == result


def test_group_says_which_iters_belong_to_a_dim() -> None:
    layout = TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ laneid)])
    assert (layout, (0, 1, 2, 4, 6)) == layout.group((1, 1, 16, 8))
    assert (layout, (0, 4, 6)) == layout.group((16, 8))
    assert (0, 0, 1, 1) == TileLayout(S[8]).group((1, 8, 1))[1]


def test_bijections_onto_given_boxes() -> None:
    fragment = TileLayout(S[(2, 8, 2, 4) : (1, 4 @ laneid, 2, 1 @ laneid)])
    assert fragment.is_bijective(("laneid", "m"))
    assert fragment.is_bijective({laneid: 32, m: 4})
    assert fragment.is_bijective({laneid: 32, m: 4, warpid: 1})
    assert not fragment.is_bijective({laneid: 32, m: 8})
    assert not fragment.is_bijective((laneid,))
    assert TileLayout(S[16 : 1 @ laneid]).is_bijective("laneid")
    assert not TileLayout(S[16 : 1 @ laneid]).is_bijective({"laneid": 32})
    assert SWIZZLED.is_bijective({"m": 512})
    assert not SWIZZLED.is_bijective({"m": 1024})


@pytest.mark.parametrize(
    ("layout", "shared"),
    [
        (TileLayout(S[(2, 2, 2) : (1, 2, 3)]), True),
        (TileLayout(S[(3, 2) : (2, 3)]), False),
        (TileLayout(S[(3, 2) : (2, 4)]), True),
        (TileLayout(S[(3, 2) : (2, 4 @ laneid)]), False),
        (TileLayout(S[(3, 2) : (2, 0)]), True),
        (TileLayout(S[4] + R[2:3]), True),
        (TileLayout(S[4] + R[2:4]), False),
    ],
)
def test_overlaps(layout: TileLayout, shared: bool) -> None:
    assert shared is layout.overlaps()


WELL_FORMED: list[tuple[TileLayout, object]] = [
    (TileLayout(S[8, 4]), None),
    (LANES, ("thread", "warp")),
    (TileLayout(S[(4, 32) : (1 @ warpid, 1 @ laneid)]), ("thread", "cta")),
    (TileLayout(S[(2, 4, 32) : (1 @ wgid, 1 @ wid_in_wg, 1 @ laneid)]), ("thread", "cta")),
    (TileLayout(S[(2, 128) : (1 @ wgid, 1 @ tid_in_wg)]), ("thread", "cta")),
    (TileLayout(S[256 : 1 @ tx]), ("thread", "cta")),
    (TileLayout(S[(2, 2, 64) : ("cbx", "cby", "tx")]), ("thread", "cluster")),
    (TileLayout(S[(70000, 64) : ("bx", "tx")]), ("thread", "kernel")),
]


@pytest.mark.parametrize(("layout", "scope"), WELL_FORMED)
def test_well_formed(layout: TileLayout, scope: object) -> None:
    layout.check_well_formed()
    assert scope == layout.get_scope()


ILL_FORMED: list[tuple[Layout, list[str]]] = [
    (
        TileLayout(S[(8, 4) : (1 @ laneid, 1 @ tx)]),
        [
            "laneid and tx both count threads, but laneid counts them in a warp and tx in a cta",
        ],
    ),
    (
        TileLayout(S[(32, 2) : (1 @ laneid, 1 @ wgid)]),
        [
            "laneid counts threads in a warp and wgid counts warpgroups in a cta: "
            "no axis connects the warp to the warpgroup",
        ],
    ),
    (
        TileLayout(S[(128, 4) : (1 @ tid_in_wg, 1 @ wid_in_wg)]),
        [
            "tid_in_wg counts threads in a warpgroup and wid_in_wg counts warps in a warpgroup: "
            "no axis connects the warpgroup to the warp",
        ],
    ),
    (TileLayout(S[64 : 1 @ laneid]), ["laneid: expected at most 31 but got 63"]),
    (TileLayout(S[16 : 1 @ laneid] + 17 @ laneid), ["laneid: expected at most 31 but got 32"]),
    (
        ComposeLayout(0, 1, 1, TileLayout(S[4] + R[5 : 1 @ wid_in_wg] + 600 @ warpid)),
        [
            "wid_in_wg and warpid both count warps, but wid_in_wg counts them in a warpgroup and warpid in a cta",
            "wid_in_wg: expected at most 3 but got 4",
            "warpid: expected at most 31 but got 600",
        ],
    ),
]


@pytest.mark.parametrize(("layout", "sentences"), ILL_FORMED)
def test_ill_formed(layout: Layout, sentences: list[str]) -> None:
    with pytest.raises(LayoutError) as caught:
        layout.check_well_formed()
    tile = layout.tile_layout if isinstance(layout, ComposeLayout) else layout
    assert [f"{tile}: {sentence}" for sentence in sentences] == [each.message for each in caught.value.findings]
