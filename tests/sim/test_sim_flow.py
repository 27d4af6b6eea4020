"""Control flow: lanes and warps that go different ways, meet again, and give the same results for every seed."""

from __future__ import annotations

import numpy as np
import pytest
from sim_kernels import Hand, const

from warpjit.errors import ArgumentError
from warpjit.ir.dtypes import bool_, float32, int32, int64
from warpjit.ir.nodes import If, Local, Op
from warpjit.isa.scalar import SPECIAL

SEEDS = (0, 1, 7)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int32)


def agree(h: Hand, *shape: int, before: tuple = ()) -> np.ndarray:
    """The written tensor (the last argument), which is the same for every seed."""
    results = []
    for seed in SEEDS:
        out = zeros(*shape)
        h.run(*before, out, seed=seed)
        results.append(out)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    return results[0]


# ---- loops --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "stop", "step", "expected"),
    [(0, 5, 1, 10), (5, 0, -1, 15), (0, 0, 1, 0), (3, 3, -1, 0), (1, 8, 3, 12), (8, -1, -4, 12)],
)
def test_ranges(start, stop, step, expected):
    h = Hand()
    out = h.tensor("Out", (32,))
    total = h.variable("total", 0)
    with h.for_("i", stop, start, step) as i:
        h.assign(total, h.arith("add", total, i))
    h.store(out, total, h.lane())
    assert (agree(h, 32) == expected).all()


def test_lane_varying_trip_counts():
    h = Hand(block=(64, 1, 1))
    out = h.tensor("Out", (64,))
    thread = h.thread()
    total = h.variable("total", 0)
    with h.for_("i", thread) as i:
        h.assign(total, h.arith("add", total, i))
    h.store(out, total, thread)
    n = np.arange(64)
    np.testing.assert_array_equal(agree(h, 64), n * (n - 1) // 2)


def test_break_and_continue_in_some_lanes():
    h = Hand(block=(64, 1, 1))
    out = h.tensor("Out", (64,))
    thread = h.thread()
    total = h.variable("total", 0)
    with h.for_("i", 100) as i:
        with h.if_(h.compare("eq", i, thread)):
            h.break_()
        with h.if_(h.compare("eq", h.arith("mod", h.arith("add", i, thread), 3), 0)):
            h.continue_()
        h.assign(total, h.arith("add", total, i))
    h.store(out, total, thread)
    expected = [sum(i for i in range(t) if (i + t) % 3) for t in range(64)]
    np.testing.assert_array_equal(agree(h, 64), expected)


def test_nested_loops_with_breaks_of_both():
    h = Hand(block=(64, 1, 1))
    out = h.tensor("Out", (64,))
    thread = h.thread()
    count = h.variable("count", 0)
    with h.for_("i", 6) as i:
        with h.for_("j", 6) as j:
            with h.if_(h.compare("gt", h.arith("add", i, j), h.arith("mod", thread, 7))):
                h.break_()
            h.assign(count, h.arith("add", count, 1))
        with h.if_(h.compare("gt", count, h.arith("floordiv", thread, 4))):
            h.break_()
    h.store(out, count, thread)
    expected = []
    for t in range(64):
        c = 0
        for i in range(6):
            for j in range(6):
                if i + j > t % 7:
                    break
                c += 1
            if c > t // 4:
                break
        expected.append(c)
    np.testing.assert_array_equal(agree(h, 64), expected)


def test_a_loop_without_an_end_of_its_own():
    h = Hand()
    out = h.tensor("Out", (32,))
    lane = h.lane()
    n = h.variable("n", lane)
    steps = h.variable("steps", 0)
    with h.while_true():
        with h.if_(h.compare("le", n, 1)):
            h.break_()
        with h.if_(h.compare("eq", h.arith("mod", n, 2), 0)):
            h.assign(n, h.arith("floordiv", n, 2))
        with h.else_():
            h.assign(n, h.arith("add", h.arith("mul", n, 3), 1))
        h.assign(steps, h.arith("add", steps, 1))
    h.store(out, steps, lane)

    def collatz(n: int) -> int:
        count = 0
        while n > 1:
            n = 3 * n + 1 if n % 2 else n // 2
            count += 1
        return count

    np.testing.assert_array_equal(agree(h, 32), [collatz(n) for n in range(32)])


def test_a_barrier_in_a_loop_that_warps_leave_at_different_times():
    h = Hand(block=(128, 1, 1))
    out, s = h.tensor("Out", (128,)), h.alloc("s", (4,))
    warp, thread = h.warp(), h.thread()
    with h.for_("i", 4) as i:
        with h.if_(h.compare("lt", warp, i)):
            h.break_()
        with h.if_(h.compare("eq", h.lane(), 0)):
            h.store(s, i, warp)
        h.op("bar.sync", const(1), h.arith("mul", h.arith("sub", const(4), i), 32))
    h.sync()
    h.store(out, h.load(s, warp), thread)
    np.testing.assert_array_equal(agree(h, 128), np.repeat([0, 1, 2, 3], 32))


def test_a_warp_that_leaves_a_loop_and_returns_no_longer_holds_up_the_others():
    h = Hand(block=(64, 1, 1))
    out = h.tensor("Out", (64,))
    warp = h.warp()
    with h.for_("i", h.arith("add", warp, 2)):
        h.sync()
    h.store(out, 1, h.thread())
    assert (agree(h, 64) == 1).all()


# ---- branches -----------------------------------------------------------------------------------------


def test_arms_under_a_lane_mask():
    h = Hand()
    out = h.tensor("Out", (32,))
    lane = h.lane()
    x = h.variable("x", -1)
    with h.if_(h.compare("lt", lane, 20)):
        with h.if_(h.compare("lt", lane, 10)):
            h.assign(x, 1)
        with h.else_():
            h.assign(x, 2)
    with h.else_():
        with h.if_(h.compare("eq", lane, 31)):
            h.assign(x, 3)
    h.store(out, x, lane)
    np.testing.assert_array_equal(agree(h, 32), [1] * 10 + [2] * 10 + [-1] * 11 + [3])


def test_warps_that_split_and_meet_again_take_no_more_steps_than_they_must():
    def kernel(blocks: bool) -> Hand:
        h = Hand(block=(128, 1, 1))
        out = h.tensor("Out", (128,))
        warp = h.warp()
        x = h.variable("x", 0)
        with h.if_(h.compare("lt", warp, 2)):
            if blocks:
                h.op("bar.sync", const(1), const(64))
            h.assign(x, h.arith("add", warp, 10))
        with h.else_():
            if blocks:
                h.op("bar.sync", const(2), const(64))
            h.assign(x, h.arith("add", warp, 20))
        for _ in range(10):
            x = h.arith("add", x, 1)
        h.store(out, x, h.thread())
        return h

    for blocks in (False, True):
        h = kernel(blocks)
        np.testing.assert_array_equal(agree(h, 128), np.repeat([20, 21, 32, 33], 32))
        # One group before and after; the arms' 1 (or 2) operations once each, though different warps run them.
        operations = sum(1 for node in h.nodes if isinstance(node, Op)) + 2 * (1 + blocks)
        assert h.run(zeros(128)).steps == operations


def test_an_arm_that_nobody_takes_is_skipped():
    h = Hand()
    with h.if_(h.compare("lt", h.lane(), 0)):
        h.arith("floordiv", const(1), const(0))
    assert h.run().steps == 2


def test_lanes_and_warps_that_return_early():
    h = Hand(block=(96, 1, 1))
    out = h.tensor("Out", (96,))
    thread = h.thread()
    with h.for_("i", 3) as i:
        with h.if_(h.compare("eq", h.arith("mod", thread, 3), i)):
            h.store(out, h.arith("add", i, 1), thread)
            h.return_()
    h.store(out, 9, thread)
    np.testing.assert_array_equal(agree(h, 96), np.arange(96) % 3 + 1)


def test_a_returned_warp_in_a_kernel_that_blocks():
    h = Hand(block=(128, 1, 1))
    out, s = h.tensor("Out", (128,)), h.alloc("s", (128,))
    warp, thread = h.warp(), h.thread()
    with h.for_("i", 5) as i:
        with h.if_(h.compare("eq", warp, i)):
            h.return_()
        h.store(s, i, thread)
        h.sync()
        h.store(out, h.load(s, h.arith("sub", const(127), h.arith("mod", thread, 32))), thread)
        h.sync()
    result = agree(h, 128)
    np.testing.assert_array_equal(result, np.repeat([0, 0, 1, 2], 32))


# ---- the grid and its arguments -----------------------------------------------------------------------


def test_special_registers():
    h = Hand(block=(4, 3, 5), grid=(2, 3, 2))
    names = ["tid", "warp", "laneid", *(f"{of}.{axis}" for of in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz")]
    out = h.tensor("Out", (12, 60, len(names)))
    x, y, z = (h.special(f"ctaid.{axis}") for axis in "xyz")
    cta = h.arith("add", x, h.arith("mul", h.arith("add", y, h.arith("mul", z, 3)), 2))
    thread = h.thread()
    for column, name in enumerate(names):
        value = h.fresh(int32)
        h.op(SPECIAL[name], value)
        h.store(out, value, cta, thread, column)
    result = agree(h, 12, 60, len(names))
    for cta_number in range(12):
        for t in range(60):
            tid = (t % 4, t // 4 % 3, t // 12)
            place = (cta_number % 2, cta_number // 2 % 3, cta_number // 6)
            assert result[cta_number, t].tolist() == [t, t // 32, t % 32, *tid, 4, 3, 5, *place, 2, 3, 2]


def test_scalars_and_tensors_that_share_memory():
    h = Hand()
    a, b = h.tensor("A", (32,)), h.tensor("B", (32,))
    n, f = h.scalar("n"), h.scalar("f", float32)
    with h.if_(h.compare("lt", h.lane(), n)):
        h.store(b, h.arith("add", h.load(a, h.lane()), 100), h.lane())
    data = np.arange(40, dtype=np.int32)
    h.run(data[:32], data[8:], 4, np.float32(2.0))
    expected = np.arange(40)
    expected[8:12] = np.arange(100, 104)
    np.testing.assert_array_equal(data, expected)
    assert f.dtype == float32


def test_a_grid_in_several_batches(monkeypatch):
    monkeypatch.setattr("warpjit.sim.run.MOST_WARPS", 3)
    h = Hand(grid=(11, 1, 1))
    out = h.tensor("Out", (11, 32))
    h.store(out, h.special("ctaid.x"), h.special("ctaid.x"), h.lane())
    np.testing.assert_array_equal(agree(h, 11, 32), np.repeat(np.arange(11), 32).reshape(11, 32))
    report = h.run(zeros(11, 32))
    assert (report.ctas, report.warps) == (11, 11)
    assert report.steps == 4 * sum(isinstance(node, Op) for node in h.nodes)
    assert report.issued["store.global.s32"] == 11


def test_an_empty_grid_does_nothing():
    h = Hand(grid=(0, 1, 1))
    out = h.tensor("Out", (32,))
    h.store(out, 1, h.lane())
    result = zeros(32)
    assert h.run(result).steps == 0
    assert not result.any()


def test_a_grid_that_fails_late_changes_nothing(monkeypatch):
    monkeypatch.setattr("warpjit.sim.run.MOST_WARPS", 1)
    h = Hand(grid=(4, 1, 1))
    out = h.tensor("Out", (4, 32))
    cta = h.special("ctaid.x")
    h.store(out, 1, cta, h.lane())
    h.assume(h.compare("lt", cta, 3))
    assert "CTA (3, 0, 0)" in h.fails(zeros(4, 32)).findings[0].message


def test_wrong_arguments_are_refused():
    h = Hand()
    h.tensor("A", (32,))
    h.scalar("n")
    with pytest.raises(ArgumentError, match="expected 2 arguments, one a parameter, but got 1"):
        h.run(zeros(32))
    with pytest.raises(ArgumentError, match="A: expected a GlobalMemory but got int"):
        h.run(1, 2)
    with pytest.raises(ArgumentError, match="n: expected a scalar of type int32 but got GlobalMemory"):
        h.run(zeros(32), zeros(32))
    with pytest.raises(ArgumentError, match='expected "exact" or "fast"'):
        h.run(zeros(32), 1, numerics="quick")


def test_a_for_of_64_bits_and_a_literal_condition():
    h = Hand()
    out = h.tensor("Out", (32,), "int64")
    total = h.variable("total", const(1 << 40, int64))
    h.emit(If(const(True, bool_), (), ()))
    h.assign(total, h.arith("add", total, const(1, int64)))
    h.store(out, total, h.lane())
    result = np.zeros(32, np.int64)
    h.run(result)
    assert (result == (1 << 40) + 1).all()
    assert isinstance(total, Local)
