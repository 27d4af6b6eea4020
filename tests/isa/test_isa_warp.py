"""Warp rows: what they compute, lane by lane as the manual says it, and which targets have the float reductions."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from isa_emission import assemble, compile_ptx, kernel

from warpjit.isa import warp
from warpjit.isa.row import Array, Participants
from warpjit.isa.table import lookup
from warpjit.isa.target import Target

ALL = np.full((1, 32), 0xFFFFFFFF, np.uint32)


def words(count: int, seed: int, top: int = 2**32) -> Array:
    return np.random.default_rng(seed).integers(0, top, (count, 32), dtype=np.uint64).astype(np.uint32)


def shuffled(mode: str, a: list[int], b: list[int], c: list[int]) -> list[tuple[int, bool]]:
    """The loop of the manual's section "shfl.sync"."""
    results = []
    for lane in range(32):
        asked, clamp, mask = b[lane] & 31, c[lane] & 31, c[lane] >> 8 & 31
        most, least = lane & mask | clamp & ~mask, lane & mask
        j = {"up": lane - asked, "down": lane + asked, "bfly": lane ^ asked, "idx": least | asked & ~mask}[mode]
        found = j >= most if mode == "up" else j <= most
        results.append((a[j if found else lane], found))
    return results


@pytest.mark.parametrize("mode", warp.MODES)
def test_shuffles(mode: str) -> None:
    a, b = words(64, 1), words(64, 2)
    c = words(64, 3)
    for row, width in enumerate((2, 4, 8, 16, 32)):
        c[row] = warp.shuffle_control(mode, width)
    moved, found = warp.SHUFFLE_FOUND[mode].meaning(a, b, c, ALL)
    assert (warp.SHUFFLE[mode].meaning(a, b, c, ALL) == moved).all()
    for index in range(64):
        want = shuffled(mode, a[index].tolist(), b[index].tolist(), c[index].tolist())
        assert list(zip(moved[index].tolist(), found[index].tolist(), strict=True)) == want


def test_votes() -> None:
    a = np.stack([np.zeros(32, bool), np.ones(32, bool), np.arange(32) == 31, np.arange(32) != 7])
    every, some, alike = (warp.VOTE[mode].meaning(a, ALL) for mode in ("all", "any", "uni"))
    assert every[:, 0].tolist() == [False, True, False, False] and (every == every[:, :1]).all()
    assert some[:, 0].tolist() == [False, True, True, True]
    assert alike[:, 0].tolist() == [True, True, False, False]
    ballot = warp.VOTE["ballot"].meaning(a, ALL)
    assert ballot.dtype == np.uint32 and ballot[:, 5].tolist() == [0, 0xFFFFFFFF, 1 << 31, 0xFFFFFF7F]
    low = np.full((1, 32), 0xFFFF, np.uint32)
    assert warp.VOTE["ballot"].meaning(a, low)[:, 0].tolist() == [0, 0xFFFF, 0, 0xFF7F]
    assert warp.VOTE["all"].meaning(np.arange(32)[None] < 16, low).all()


@pytest.mark.parametrize("bits", [32, 64])
def test_matches(bits: int) -> None:
    a = words(20, 4, top=5).astype(f"u{bits // 8}") << np.array(bits - 4, f"u{bits // 8}")
    a[3] = a[3, 0]
    masks = warp.MATCH_ANY[bits].meaning(a, ALL)
    alike, agreed = warp.MATCH_ALL[bits].meaning(a, ALL)
    for index in range(20):
        values = a[index].tolist()
        assert masks[index].tolist() == [sum(1 << j for j in range(32) if values[j] == x) for x in values]
        whole = len(set(values)) == 1
        assert set(alike[index].tolist()) == {0xFFFFFFFF if whole else 0} and set(agreed[index].tolist()) == {whole}
    assert agreed[3].all() and not agreed[4].any()


FOLDS = {
    "add": sum,
    "min": min,
    "max": max,
    "and": lambda values: reduce(int.__and__, values),
    "or": lambda values: reduce(int.__or__, values),
    "xor": lambda values: reduce(int.__xor__, values),
}


@pytest.mark.parametrize("key", list(warp.REDUX), ids=":".join)
def test_reductions(key: tuple[str, str]) -> None:
    operation, name = key
    a = words(50, 5).view(name)
    got = warp.REDUX[key].meaning(a, ALL)
    assert got.dtype == a.dtype and (got == got[:, :1]).all()
    want = [FOLDS[operation](values) & 0xFFFFFFFF for values in a.tolist()]
    assert got[:, 0].astype(np.int64).tolist() == np.array(want, np.uint32).view(name).tolist()
    part = warp.REDUX[key].meaning(a, np.full((1, 32), 0x0000FF00, np.uint32))
    some = [FOLDS[operation](values) & 0xFFFFFFFF for values in a[:, 8:16].tolist()]
    assert part[:, 0].astype(np.int64).tolist() == np.array(some, np.uint32).view(name).tolist()


def test_float_reductions() -> None:
    a = np.linspace(-3, 5, 32, dtype=np.float32)[None].repeat(3, 0)
    a[1, 4] = np.nan
    a[2] = np.nan
    low, high = (lookup(f"redux.sync.{mode}.f32").meaning(a, ALL)[:, 0] for mode in ("min", "max"))
    assert low[:2].tolist() == [-3, -3] and high[:2].tolist() == [5, 5] and np.isnan([low[2], high[2]]).all()
    assert np.isnan(lookup("redux.sync.max.NaN.f32").meaning(a, ALL)[:, 0]).tolist() == [False, True, True]
    assert lookup("redux.sync.max.abs.f32").meaning(-a, ALL)[0, 0] == 5
    zeros = np.where(np.arange(32) == 9, 0.0, -0.0).astype(np.float32)[None]
    assert not np.signbit(lookup("redux.sync.max.f32").meaning(zeros, ALL)).any()


@pytest.mark.nvcc
def test_where_float_reductions_exist(tmp_path: Path) -> None:
    text = "".join(kernel(row, f"k{index}", {}) for index, row in enumerate(warp.FLOAT_REDUX))
    ptx = compile_ptx(text, "sm_100a", tmp_path)
    written = ptx.read_text()
    for name in ("sm_89", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103f", "sm_110a", "sm_120a"):
        ptx.write_text(written.replace(".target sm_100a", f".target {name}"))
        said = assemble(ptx, name, tmp_path / "k.cubin")
        admitted = warp.FLOAT_REDUX[0].needs.holds(Target.parse(name))
        assert said.count("'redux.f32' not supported") == (0 if admitted else len(warp.FLOAT_REDUX)), (name, said)


def test_what_the_rows_say() -> None:
    uniform = {row.text for row in warp.ROWS if row.uniform}
    assert "vote.sync.ballot.b32" in uniform and "redux.sync.add.s32" in uniform
    assert "match.any.sync.b32" not in uniform and "shfl.sync.idx.b32" not in uniform
    for row in warp.ROWS:
        if row is not warp.ACTIVE_MASK:
            assert row.volatile and row.participants is Participants.WARP and row.operands[-1].name == "membermask"
