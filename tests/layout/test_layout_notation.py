"""The notation: every form it has, what it prints, and the sentence for each mistake."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from warpjit.layout import Axis, R, S, Spec, TileLayout, laneid, m, tx, warpid

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
