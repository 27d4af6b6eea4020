"""The notation: every form it has, what it prints, and the sentence for each mistake."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from warpjit.errors import LayoutError, WarpjitError
from warpjit.layout import Axis, Iter, R, S, Spec, TileLayout, laneid, m, tx, warpid

FORMS: list[tuple[Spec, str]] = [
    (S[(8, 6) : (8, 1)], "S[(8, 6) : (8, 1)]"),
    (S[[8, 6] : [8, 1]], "S[(8, 6) : (8, 1)]"),
    (S[8:1], "S[8 : 1]"),
    (S[(8,) : (1,)], "S[8 : 1]"),
    (S[8, 6], "S[(8, 6) : (6, 1)]"),
    (S[(8, 6)], "S[(8, 6) : (6, 1)]"),
    (S[[2, 3, 4]], "S[(2, 3, 4) : (12, 4, 1)]"),
    (S[7], "S[7 : 1]"),
    (S[()], "S[()]"),
    (S[() : ()], "S[()]"),
    (S[(8, 4) : (4 @ laneid, "laneid")], "S[(8, 4) : (4 @ laneid, 1 @ laneid)]"),
    (S[(8, 4) : (laneid, "m")], "S[(8, 4) : (1 @ laneid, 1)]"),
    (S[(8, 4) : ((4, "laneid"), (2, warpid))], "S[(8, 4) : (4 @ laneid, 2 @ warpid)]"),
    (S[8 : (4, "laneid")], "S[8 : 4 @ laneid]"),
    (S[8:"warpid"], "S[8 : 1 @ warpid]"),
    (S[4 : 0 @ laneid], "S[4 : 0 @ laneid]"),
    (S[np.int64(4) : np.int32(2)], "S[4 : 2]"),
    (R[2 : 4 @ warpid], "S[()] + R[2 : 4 @ warpid]"),
    (S[8:1] + R[2 : 4 @ warpid], "S[8 : 1] + R[2 : 4 @ warpid]"),
    (R[2 : 4 @ warpid] + S[8:1], "S[8 : 1] + R[2 : 4 @ warpid]"),
    (S[8:1] + R[2:8] + R[3 : 1 @ laneid], "S[8 : 1] + R[(2, 3) : (8, 1 @ laneid)]"),
    (S[8:1] + 3, "S[8 : 1] + 3"),
    (3 + S[8:1], "S[8 : 1] + 3"),
    (5 @ laneid + S[8:1], "S[8 : 1] + 5 @ laneid"),
    (S[8:1] + 5 @ laneid + 3 + 2 @ laneid, "S[8 : 1] + 3 + 7 @ laneid"),
    (S[8:1] + (1 @ laneid + 2 @ warpid + 7), "S[8 : 1] + 7 + 2 @ warpid + 1 @ laneid"),
    (7 + 1 @ laneid + S[8:1], "S[8 : 1] + 7 + 1 @ laneid"),
    (S[8:1] + 0 @ laneid, "S[8 : 1]"),
]


@pytest.mark.parametrize(("spec", "text"), FORMS, ids=[text for _, text in FORMS])
def test_forms(spec: Spec, text: str) -> None:
    assert f"TileLayout({text})" == repr(TileLayout(spec))


def test_a_spec_and_an_offset_print_as_they_are_written() -> None:
    assert (
        repr(S[(8, 4) : (4 @ laneid, 1)] + R[2:4] + 5 @ warpid) == "S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4] + 5 @ warpid"
    )
    assert repr(5 @ laneid + 2) == "5 @ laneid + 2"
    assert (repr(S), repr(R), repr(laneid)) == ("S", "R", "laneid")


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (
        lambda: S[(8, 6) : (1,)],
        "S[(8, 6) : (1,)]: extent 6 (position 1) has no stride; expected as many extents as strides, but got 2 and 1",
    ),
    (
        lambda: S[(8, 6) : 1],
        "S[(8, 6) : 1]: extent 6 (position 1) has no stride; expected as many extents as strides, but got 2 and 1",
    ),
    (
        lambda: R[8 : (1, 2 @ laneid)],
        "R[8 : (1, 2 @ laneid)]: stride 2 @ laneid (position 1) has no extent; "
        "expected as many extents as strides, but got 1 and 2",
    ),
    (lambda: S[(8, 0) : (1, 1)], "S[(8, 0) : (1, 1)]: extent 0 (position 1) is not positive"),
    (lambda: S[8, -4], "S[(8, -4)]: extent -4 (position 1) is not positive"),
    (lambda: S[8, 2.5], "S[(8, 2.5)]: extent 2.5 (position 1) is not an int"),
    (lambda: S[True:1], "S[True : 1]: extent True (position 0) is not an int"),
    (lambda: S[(2, 4), 8], "S[((2, 4), 8)]: extent (2, 4) (position 0) is not an int"),
    (lambda: S[(8, 4) : (-1, 1)], "S[(8, 4) : (-1, 1)]: stride -1 of extent 8 (position 0) is negative"),
    (lambda: S[8 : -1 @ laneid], "S[8 : -1 @ laneid]: stride -1 of extent 8 (position 0) is negative"),
    (lambda: S[8:1.5], "S[8 : 1.5]: stride 1.5 of extent 8 (position 0) is not an int"),
    (lambda: S[8 : (1.5, "m")], "S[8 : (1.5, 'm')]: stride 1.5 of extent 8 (position 0) is not an int"),
    (
        lambda: S[8 : 5 @ laneid + 2],
        "S[8 : 5 @ laneid + 2]: stride 5 @ laneid + 2 of extent 8 (position 0) is not an int",
    ),
    (
        lambda: S[8:1, 4:1],
        "S[8 : 1, 4 : 1]: write all extents before the colon and all strides after it, as in S[(8, 4) : (4, 1)]",
    ),
    (lambda: S[8:1:2], "S[8 : 1 : 2]: write extents : strides, with one colon"),
    (
        lambda: S[(8, 4) :],
        "S[(8, 4) :]: extents and strides stand on both sides of the colon; leave the colon out for row-major",
    ),
    (
        lambda: S[8:"landid"],
        "S[8 : 'landid']: 'landid' is not an axis; the axes are m, bx, by, bz, cbx, cby, cbz, tx, warpid, laneid, "
        'wgid, tid_in_wg, wid_in_wg, TLane, TCol; did you mean "laneid"?',
    ),
    (
        lambda: Axis.get("q"),
        "'q' is not an axis; the axes are m, bx, by, bz, cbx, cby, cbz, tx, warpid, laneid, "
        "wgid, tid_in_wg, wid_in_wg, TLane, TCol",
    ),
    (lambda: 2.5 @ laneid, "2.5 @ laneid: the value is not an int"),
    (lambda: TileLayout(S[4] + -3), "the offset -3 on m is negative"),
    (lambda: TileLayout.from_iters(offset={"m": 1.5}), "offset 1.5 @ m is not an int"),
    (lambda: TileLayout((4, 4)), "TileLayout takes the notation S[...], R[...] and offsets, but got (4, 4)"),
    (lambda: Iter(0, 1, m), "Iter(extent=0, stride=1, axis=m): the extent 0 is not positive"),
    (lambda: Iter(2, -1, "laneid"), "Iter(extent=2, stride=-1, axis=laneid): the stride -1 is negative"),
    (lambda: Iter(2.0, 1), "Iter(extent=2.0, stride=1, axis=m): the extent 2.0 is not an int"),
]


@pytest.mark.parametrize(("mistake", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_mistakes(mistake: Callable[[], object], sentence: str) -> None:
    with pytest.raises(LayoutError) as caught:
        mistake()
    assert sentence == str(caught.value)
    assert isinstance(caught.value, (WarpjitError, ValueError))


@pytest.mark.parametrize("mistake", [lambda: S[4] + "laneid", lambda: S[4] + 1.5, lambda: 5 @ laneid + 1.5])
def test_only_offsets_and_specs_are_added(mistake: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        mistake()


def test_axes_are_one_object_each() -> None:
    assert Axis.get("laneid") is laneid is Axis.get(laneid)
    assert copy.deepcopy(laneid) is laneid is pickle.loads(pickle.dumps(laneid))
    assert ("thread", "warp", "thread", 32) == (laneid.kind, laneid.outer, laneid.inner, laneid.extent)
    assert ("memory", None, None, None) == (m.kind, m.outer, m.inner, m.extent)
    assert ("cta", "thread", 1024) == (tx.outer, tx.inner, tx.extent)


def test_equality_is_structural() -> None:
    assert TileLayout(S[8, 6]) == TileLayout(S[(8, 6) : (6, 1)])
    assert TileLayout(S[8, 6]) != TileLayout(S[48])
    assert TileLayout(S[8, 6]).equivalent(TileLayout(S[48]))
    assert not TileLayout(S[8:1]).equivalent(TileLayout(S[8 : 1 @ laneid]))
    assert 1 == len({TileLayout(S[8, 6]), TileLayout(S[(8, 6) : (6, 1)])})


def test_a_layout_cannot_be_changed() -> None:
    layout = TileLayout(S[8] + 3)
    with pytest.raises(AttributeError):
        layout.shard = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        layout.offset[m] = 4  # type: ignore[index]
