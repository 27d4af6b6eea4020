"""What operations on layouts refuse."""

from catalogue import Case, Topic

from warpjit.errors import LayoutError

TOPIC = Topic(
    "Layouts",
    "Operations on layouts",
    (
        Case("TileLayout(S[8, 4]).apply(8, 0)",
             "TileLayout(S[(8, 4) : (4, 1)]): coordinate of dim 0: expected 0 to 7 but got 8"),
        Case("TileLayout(S[8, 4]).apply(1.0)",
             "TileLayout(S[(8, 4) : (4, 1)]): coordinate of dim 0: expected an int but got 1.0"),
        Case("TileLayout(S[8, 4]).apply(1, 2, 3)",
             "TileLayout(S[(8, 4) : (4, 1)]): expected 2 coordinates (one for each iter), or 1 (the linear index), "
             "but got 3"),
        Case("TileLayout(S[8, 4]).apply(1, shape=(2, 16))",
             "TileLayout(S[(8, 4) : (4, 1)]): expected 2 coordinates for shape (2, 16) but got 1"),
        Case("TileLayout(S[8, 4]).apply(1, 2, shape=(2, 8))",
             "TileLayout(S[(8, 4) : (4, 1)]): shape: expected one of 32 elements but got (2, 8), which has 16"),
        Case("TileLayout(S[(4, 6) : (10, 1)]).group((6, 4))",
             "TileLayout(S[(4, 6) : (10, 1)]): group: dim 0 (6) of shape (6, 4) ends inside an iter"),
        Case("TileLayout(S[8]).group((4, 4))",
             "TileLayout(S[8 : 1]): shape: expected one of 8 elements but got (4, 4), which has 16"),
        Case("TileLayout(S[8]).group((4, 0))", "shape (4, 0): dim 1: expected at least 1 but got 0"),
        Case("TileLayout(S[8]).group((4, 2.0))", "shape (4, 2.0): dim 1: expected an int but got 2.0"),
        Case("TileLayout(S[4, 2]).permute_dims((0, 0))",
             "TileLayout(S[(4, 2) : (2, 1)]): permute_dims: perm: expected each of 0 to 1 once but got (0, 0)"),
        Case("TileLayout(S[4, 2]).permute_by_groups((0, 1), (0,))",
             "TileLayout(S[(4, 2) : (2, 1)]): permute_by_groups: seps: expected 0, …, 2 but got (0, 1)"),
        Case("TileLayout(S[4, 2]).tile(TileLayout(S[2]), (2,), (4, 2))",
             "TileLayout(S[(4, 2) : (2, 1)]): tile: expected shapes of one rank but got (2,) and (4, 2)"),
        Case("TileLayout(S[4]).tile(S[2], (2,), (4,))",
             "TileLayout(S[4 : 1]): tile: outer: expected a TileLayout but got S[2 : 1]"),
        Case("TileLayout(S[8, 4]).tile_to((12, 8), (8, 4))",
             "TileLayout(S[(8, 4) : (4, 1)]): tile_to: dim 0: expected a multiple of the tile's 8 but got 12"),
        Case("TileLayout(S[8, 4]).tile_to((8,), (8, 4))",
             "TileLayout(S[(8, 4) : (4, 1)]): tile_to: expected shapes of one rank but got (8,) and (8, 4)"),
        Case("TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)]).pack(2)",
             "TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)]): pack: expected each 2 successive elements to be "
             "neighbours on m"),
        Case("TileLayout(S[(4, 4) : (5, 1)]).pack(2)",
             "TileLayout(S[(4, 4) : (5, 1)]): pack: stride of extent 4 on m: expected a multiple of 2 but got 5"),
        Case("TileLayout(S[4] + R[2:3]).pack(2)",
             "TileLayout(S[4 : 1] + R[2 : 3]): pack: stride of extent 2 on m: expected a multiple of 2 but got 3"),
        Case("TileLayout(S[4] + 3).pack(2)",
             "TileLayout(S[4 : 1] + 3): pack: offset on m: expected a multiple of 2 but got 3"),
        Case("TileLayout(S[4]).pack(0)", "pack: n: expected at least 1 but got 0"),
        Case("TileLayout(S[8, 4]).slice((0, 2), (8, 4))",
             "TileLayout(S[(8, 4) : (4, 1)]): slice: elements 2 to 5 of dim 1 (4) lie outside of shape (8, 4)"),
        Case("TileLayout(S[(2, 8) : (1, 4)]).slice((4,), (8,), (16,))",
             "TileLayout(S[(2, 8) : (1, 4)]): slice: elements 4 to 11 of dim 0 (16) are not whole steps of its iters"),
        Case("TileLayout(S[8, 4]).slice((0,), (8, 4))",
             "TileLayout(S[(8, 4) : (4, 1)]): slice: expected starts, extents and shape of one rank but got (0,), "
             "(8, 4) and (8, 4)"),
        Case("TileLayout(S[8]).slice((0.0,), (8,))",
             "TileLayout(S[8 : 1]): slice: starts: expected an int but got 0.0"),
        Case("TileLayout(S[8, 4]).compose(TileLayout(S[4] + R[2:1]))",
             "TileLayout(S[(8, 4) : (4, 1)]): compose: expected a layout on m alone, without replicas, but got "
             "TileLayout(S[4 : 1] + R[2 : 1])"),
        Case("TileLayout(S[(8, 4) : (4 @ laneid, 1)]).compose(TileLayout(S[4:10]))",
             "TileLayout(S[(8, 4) : (4 @ laneid, 1)]): compose: no iters have the map with TileLayout(S[4 : 10]): "
             "its element 1 is element 10 of the layout, which does not lie where the elements before it lead"),
        Case("TileLayout(S[8]).compose(TileLayout(S[4:10]))",
             "TileLayout(S[8 : 1]): compose: element 1 of TileLayout(S[4 : 10]) is 10, but the layout has 8 elements"),
        Case("TileLayout(S[4] + R[2 : 1 @ laneid]).inverse([m, laneid])",
             "TileLayout(S[4 : 1] + R[2 : 1 @ laneid]): inverse: not a bijection onto m < 4, laneid < 2: element 0 "
             "has 2 copies, the first at m = 0, laneid = 0: replicas have no inverse"),
        Case("TileLayout(S[(2, 2) : (1, 1)]).inverse([m])",
             "TileLayout(S[(2, 2) : (1, 1)]): inverse: not a bijection onto m < 3: elements 1 and 2 are both at m = 1"),
        Case("TileLayout(S[4:2]).inverse([m])",
             "TileLayout(S[4 : 2]): inverse: not a bijection onto m < 7: no element is at m = 1"),
        Case("TileLayout(S[(4, 2) : (1 @ laneid, 1)]).inverse([m])",
             "TileLayout(S[(4, 2) : (1 @ laneid, 1)]): inverse: not a bijection onto m < 2: element 2 is at laneid = "
             "1, beyond the box's last, 0"),
        Case("TileLayout(S[(32, 4, 8) : (1 @ laneid, 1 @ warpid, 1 @ layout.tid_in_wg)]).check_well_formed()",
             "TileLayout(S[(32, 4, 8) : (1 @ laneid, 1 @ warpid, 1 @ tid_in_wg)]): laneid and tid_in_wg both count "
             "threads, but laneid counts them in a warp and tid_in_wg in a warpgroup\n"
             "TileLayout(S[(32, 4, 8) : (1 @ laneid, 1 @ warpid, 1 @ tid_in_wg)]): tid_in_wg counts threads in a "
             "warpgroup and warpid counts warps in a cta: no axis connects the warpgroup to the warp"),
        Case("TileLayout(S[(32, 4) : (1 @ laneid, 1 @ layout.cbx)]).check_well_formed()",
             "TileLayout(S[(32, 4) : (1 @ laneid, 1 @ cbx)]): laneid counts threads in a warp and cbx counts CTAs in "
             "a cluster: no axis connects the warp to the cta"),
        Case("TileLayout(S[64 : 1 @ laneid]).check_well_formed()",
             "TileLayout(S[64 : 1 @ laneid]): laneid: expected at most 31 but got 63"),
    ),
    frame="",
    error=LayoutError,
)  # fmt: skip
