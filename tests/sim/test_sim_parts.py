"""The parts of the simulator by themselves: waves, memory, groups, masks in words; and rows with effects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sim_kernels import Hand, const, memory

from warpjit.ir.dtypes import float32, uint32
from warpjit.ir.nodes import Fragment, Op, Registers, Slot
from warpjit.isa.scalar import MOVE
from warpjit.isa.table import lookup
from warpjit.sim.findings import lane_ranges
from warpjit.sim.groups import Group, IfFrame, merge
from warpjit.sim.memory import GlobalMemory, gather, scatter, views_of
from warpjit.sim.step import prepare

MMA = lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")


def product(row, m: int, n: int, k: int) -> tuple[Op, dict[str, Registers]]:
    """D = A B + D with m * n * k issues, k innermost."""
    counts = {"D": m * n * 4, "A": m * k * 4, "B": n * k * 2}
    words = {"D": float32, "A": uint32, "B": uint32}
    registers = {name: Registers(name, words[name], count) for name, count in counts.items()}

    def items(name: str, count: int, place) -> Fragment:
        issues = [(i, j, q) for i in range(m) for j in range(n) for q in range(k)]
        return Fragment(
            tuple(tuple(Slot(registers[name], place(*issue) * count + r) for r in range(count)) for issue in issues)
        )

    d = items("D", 4, lambda i, j, q: i * n + j)
    a, b = items("A", 4, lambda i, j, q: i * k + q), items("B", 2, lambda i, j, q: j * k + q)
    return Op(row, (d, a, b, d), issues=m * n * k, scope="warp"), registers


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (2, 3, 4), (4, 1, 2)])
def test_issues_of_a_product_are_scheduled_by_k(m, n, k):
    step = prepare(product(MMA, m, n, k)[0], 0, fast=False)
    assert [len(wave.issues) for wave in step.waves] == [m * n] * k
    for q, wave in enumerate(step.waves):
        assert all(issue % k == q for issue in wave.issues)


def test_a_wave_may_overwrite_what_it_reads_but_not_what_it_reads_later():
    r = Registers("r", uint32, 4)

    def chain(*pairs: tuple[int, int]) -> list[tuple[int, ...]]:
        d = Fragment(tuple((Slot(r, to),) for to, _ in pairs))
        a = Fragment(tuple((Slot(r, of),) for _, of in pairs))
        return [wave.issues for wave in prepare(Op(MOVE["uint32"], (d, a), issues=len(pairs)), 0, False).waves]

    assert chain((0, 1), (1, 2), (2, 3)) == [(0, 1, 2)]  # each overwrites what the one before has read
    assert chain((1, 0), (2, 1), (3, 2)) == [(0,), (1,), (2,)]  # each reads what the one before has written
    assert chain((0, 1), (0, 2)) == [(0,), (1,)]  # the second value stays


def test_a_batched_product_is_one_call_a_wave_and_equals_single_instructions():
    calls = []

    def counting(*arrays: np.ndarray) -> np.ndarray:
        calls.append(arrays[0].shape[:-2])
        return MMA.meaning(*arrays)

    m, n, k = 2, 3, 4
    h = Hand(block=(64, 1, 1))
    tensors = {"A": h.tensor("A", (64, m * k * 4), "uint32"), "B": h.tensor("B", (64, n * k * 2), "uint32")}
    out = h.tensor("Out", (64, m * n * 4), "float32")
    op, registers = product(replace(MMA, meaning=counting), m, n, k)
    thread = h.thread()
    for name in registers:
        h.registers(name, registers[name].word.name, registers[name].count)
    for name, tensor in tensors.items():
        for i in range(registers[name].count):
            h.op(MOVE["uint32"], Slot(registers[name], i), h.load(tensor, thread, i))
    for i in range(m * n * 4):
        h.op(MOVE["float32"], Slot(registers["D"], i), const(0.5, float32))
    h.emit(op)
    for i in range(m * n * 4):
        h.store(out, Slot(registers["D"], i), thread, i)
    rng = np.random.default_rng(0)
    a, b = (
        rng.standard_normal((64, 2 * registers[name].count)).astype(np.float16).view(np.uint32) for name in ("A", "B")
    )
    result = np.zeros((64, m * n * 4), np.float32)
    h.run(a, b, result)
    assert calls == [(m * n, 2)] * k
    for i in range(m):
        for j in range(n):
            d = np.full((2, 32, 4), 0.5, np.float32)
            for q in range(k):
                left = a.reshape(2, 32, m * k, 4)[:, :, i * k + q]
                d = MMA.meaning(left, b.reshape(2, 32, n * k, 2)[:, :, j * k + q], d)
            np.testing.assert_array_equal(result.reshape(2, 32, m * n, 4)[:, :, i * n + j], d)


def test_the_word_fast_goes_to_meanings_that_know_it():
    seen = []

    def meaning(a: np.ndarray, *, fast: bool = False) -> np.ndarray:
        seen.append(fast)
        return a

    row = replace(MOVE["uint32"], meaning=meaning)
    for numerics in ("exact", "fast"):
        h = Hand()
        h.value(row, const(1, uint32))
        h.value(MOVE["uint32"], const(1, uint32))
        h.run(numerics=numerics)
    assert seen == [False, True]


# ---- memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("aligned", [True, False])
def test_gather_and_scatter(width, aligned):
    data = np.arange(100, dtype=np.uint8)
    address = np.array([0, 3, 1, 5]) * width + (0 if aligned else 1)
    expected = np.array([[a + i for i in range(width)] for a in address.tolist()])
    np.testing.assert_array_equal(gather(data, address, width), expected)
    scatter(data, address, width, 200 + np.arange(4)[:, None] % 55)
    for k, a in enumerate(address.tolist()):
        assert (data[a : a + width] == 200 + k).all()
    assert (np.delete(data, expected.ravel()) < 200).all()


def test_storages_that_overlap_are_one_copy():
    data = np.arange(64, dtype=np.uint8)
    tensors = {
        "A": GlobalMemory(data[:40], 8, ((8, 40),)),
        "B": GlobalMemory(data[32:], 0, ((0, 16), (24, 32))),
        "C": memory(np.zeros(4, np.int32)),
    }
    views, storages = views_of(tensors, frozenset("B"))
    assert len(storages) == 2
    assert views["A"].storage is views["B"].storage is not views["C"].storage
    assert views["C"].storage.data.base is not None  # read only: no copy
    shared = views["A"].storage
    shared.data[views["B"].base + 1] = 200
    shared.low, shared.high = views["B"].base + 1, views["B"].base + 2
    assert data[33] == 33
    shared.commit()
    assert data[33] == 200
    assert views["A"].inside(np.array([-1, 0, 31, 32]), 1).tolist() == [False, True, True, False]
    assert views["B"].inside(np.array([0, 15, 16, 24, 31]), 1).tolist() == [True, True, False, True, True]
    assert views["B"].inside(np.array([12, 13, 24, 29]), 4).tolist() == [True, False, True, False]


def test_a_tensor_inside_of_a_storage():
    h = Hand()
    out = h.tensor("Out", (8,))
    lane = h.lane()
    h.store(out, lane, lane, predicate=h.compare("lt", lane, 8))
    data = np.full(20, -1, np.int32)
    raw = GlobalMemory(data.view(np.uint8), 16, ((16, 48),))
    h.run(raw)
    np.testing.assert_array_equal(data, [-1] * 4 + list(range(8)) + [-1] * 8)
    h.store(out, lane, lane)
    assert "out of bounds: Out[8]" in h.fails(raw).findings[0].message


# ---- groups and words ---------------------------------------------------------------------------------


def test_groups_split_and_merge():
    rng = np.random.default_rng(3)
    masks = [rng.integers(0, 2, (6, 32)).astype(bool) for _ in range(3)]
    group = Group(np.arange(6), masks[0], 7, (IfFrame(masks[1], masks[2]),))
    odd, even = group.split(np.arange(6) % 2 == 1)
    assert odd.rows.tolist() == [1, 3, 5]
    again = merge([odd, even])
    assert (again.rows.tolist(), again.pc) == (list(range(6)), 7)
    np.testing.assert_array_equal(again.mask, masks[0])
    np.testing.assert_array_equal(again.frames[0].other, masks[1])
    np.testing.assert_array_equal(again.frames[0].done, masks[2])
    assert group.split(np.ones(6, bool)) == (group, None)


@pytest.mark.parametrize(
    ("lanes", "words"),
    [
        ((), "no lane"),
        ((5,), "lane 5"),
        (range(32), "lanes 0-31"),
        ((0, 1, 2, 9), "lanes 0-2, 9"),
        ((1, 3), "lanes 1, 3"),
    ],
)
def test_lanes_in_words(lanes, words):
    mask = np.zeros(32, bool)
    mask[list(lanes)] = True
    assert lane_ranges(mask) == words


def test_one_lane_is_elected():
    h = Hand(block=(64, 1, 1))
    out = h.tensor("Out", (64,))
    with h.if_(h.compare("ge", h.lane(), 3)):
        with h.if_(h.value("elect.sync", const(0xFFFFFFF8, uint32))):
            h.store(out, 1, h.thread())
    result = np.zeros(64, np.int32)
    h.run(result)
    assert np.flatnonzero(result).tolist() == [3, 35]
