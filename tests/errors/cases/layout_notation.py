"""What the notation of layouts refuses."""

from catalogue import Case, Topic

from warpjit.errors import LayoutError

TOPIC = Topic(
    "Layouts",
    "The notation",
    (
        Case("S[(8, 6) : 1]", "S[(8, 6) : 1]: expected as many extents as strides but got 2 and 1"),
        Case("R[8 : (1, 2 @ laneid)]", "R[8 : (1, 2 @ laneid)]: expected as many extents as strides but got 1 and 2"),
        Case("S[8, -4]", "S[(8, -4)]: extent at position 1: expected at least 1 but got -4"),
        Case("S[8, 2.5]", "S[(8, 2.5)]: extent at position 1: expected an int but got 2.5"),
        Case("S[True:1]", "S[True : 1]: extent at position 0: expected an int but got True"),
        Case("S[(2, 4), 8]", "S[((2, 4), 8)]: extent at position 0: expected an int but got (2, 4)"),
        Case("S[(8, 4) : (-1, 1)]", "S[(8, 4) : (-1, 1)]: stride at position 0: expected 0 or more but got -1"),
        Case("S[8 : 1.5]", "S[8 : 1.5]: stride at position 0: expected an int but got 1.5"),
        Case('S[8 : (1.5, "m")]', "S[8 : (1.5, 'm')]: stride at position 0: expected an int but got 1.5"),
        Case("S[8 : 5 @ laneid + 2]",
             "S[8 : 5 @ laneid + 2]: stride at position 0: expected an int but got 5 @ laneid + 2"),
        Case("S[8:1, 4:1]",
             "S[8 : 1, 4 : 1]: expected all extents before the colon and all strides after it, as in S[(8, 4) : (4, "
             "1)]"),
        Case("S[8:1:2]", "S[8 : 1 : 2]: expected extents : strides, with one colon"),
        Case("S[(8, 4) :]",
             "S[(8, 4) :]: expected extents and strides around the colon; leave the colon out for row-major"),
        Case('S[8:"landid"]',
             "S[8 : 'landid']: expected an axis but got 'landid'; the axes are m, bx, by, bz, cbx, cby, cbz, tx, "
             'warpid, laneid, wgid, tid_in_wg, wid_in_wg, TLane, TCol; did you mean "laneid"?'),
        Case('layout.Axis.get("q")',
             "expected an axis but got 'q'; the axes are m, bx, by, bz, cbx, cby, cbz, tx, warpid, laneid, wgid, "
             "tid_in_wg, wid_in_wg, TLane, TCol"),
        Case("2.5 @ laneid", "value @ laneid: expected an int but got 2.5"),
        Case("TileLayout(S[4] + -3)", "offset on m: expected 0 or more but got -3"),
        Case('TileLayout.from_iters(offset={"m": 1.5})', "offset on m: expected an int but got 1.5"),
        Case("TileLayout((4, 4))", "TileLayout: expected the notation, S[...] + R[...] + offset, but got (4, 4)"),
        Case("layout.Iter(0, 1, m)", "Iter(extent=0, stride=1, axis=m): extent: expected at least 1 but got 0"),
        Case('layout.Iter(2, -1, "laneid")',
             "Iter(extent=2, stride=-1, axis=laneid): stride: expected 0 or more but got -1"),
        Case("layout.Iter(2.0, 1)", "Iter(extent=2.0, stride=1, axis=m): extent: expected an int but got 2.0"),
    ),
    frame="",
    error=LayoutError,
)  # fmt: skip
