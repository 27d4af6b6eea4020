"""What the tracer knows of scalars, seen through what it writes, accepts and refuses."""

from __future__ import annotations

import re

import pytest
import torch
from language_cases import findings, ints, label, ops, reported, rows

from warpjit import SimulationError, T, warpjit

FEW = torch.empty(64, dtype=torch.int32)
GRID = T.cuda.LaunchConfig(grid=1, block=32)


def params(kernel, text, *args, **constants):
    """The flags of each operation called `text`."""
    return [sorted(name for name, _ in op.params) for op in ops(kernel, *args, **constants) if op.row.text == text]


# ---- ranges, multiples --------------------------------------------------------------------------------------------


def test_division_needs_no_fix_up_where_signs_are_known():
    @warpjit
    def kernel(n: T.int32, out):
        T.device_entry(launch=GRID)
        lane = T.cuda.lane_id()
        out[0] = n // 7
        out[1] = n % 7
        out[2] = lane // 7
        out[3] = lane % 7
        if n >= 0:
            out[4] = n // 5
            out[5] = n % 5
        out[6] = (lane - 8) // 3  # (lane + 1) // 3 - 3

    assert params(kernel, "floordiv.s32", 1, FEW) == [[], *[["nonnegative"]] * 3]
    assert params(kernel, "mod.s32", 1, FEW) == [[], ["nonnegative"], ["nonnegative"]]
    text = kernel.source(1, FEW)
    assert "(unsigned int)lane / (unsigned int)7" in text and "n % 7 != 0" in text


def test_division_of_multiples_and_of_small_ranges_is_folded():
    @warpjit
    def kernel(n: T.int32, out):
        T.device_entry(launch=GRID)
        lane = T.cuda.lane_id()
        k = 16 * lane + 3
        out[0] = k // 16  # lane
        out[1] = k % 16  # 3
        out[2] = lane // 32  # 0
        out[3] = lane % 32  # lane
        out[4] = (lane - 32) // 32  # -1
        out[5] = (8 * lane + 256) // 4 % 2  # 0
        out[6] = min(lane, 100) + max(lane, -1) - 2 * lane  # 0
        out[7] = (lane << 3) >> 3  # lane
        out[8] = lane * 4 - lane - 3 * lane  # 0

    assert not [row for row in rows(kernel, 1, FEW) if re.match("floordiv|mod|min|max|shl|shr|sub", row)]
    text = kernel.source(1, FEW)
    for line in ("*(int*)(out + 4) = 3;", "*(int*)(out + 8) = 0;", "*(int*)(out + 12) = lane;",
                 "*(int*)(out + 16) = (-1);", "*(int*)(out + 20) = 0;", "*(int*)(out + 28) = lane;"):  # fmt: skip
        assert line in text


def test_folded_arithmetic_is_right(device, run):
    @warpjit
    def kernel(out):
        T.device_entry(launch=GRID)
        lane = T.cuda.lane_id()
        k = 12 * lane - 100
        out[0, lane] = k // 4
        out[1, lane] = k % 4
        out[2, lane] = k // 5
        out[3, lane] = k % 5
        out[4, lane] = (k + 96) // 12
        out[5, lane] = (k + 96) % 12
        out[6, lane] = (24 * lane + 7) // 8 % 3
        out[7, lane] = k // -4
        out[8, lane] = (lane * 6 + 5) // 6 * 6 + (lane * 6 + 5) % 6

    out = ints(device, 9, 32)
    run(kernel, out)
    for lane, got in enumerate(out.T.tolist()):
        k = 12 * lane - 100
        assert got == [k // 4, k % 4, k // 5, k % 5, (k + 96) // 12, (k + 96) % 12, (24 * lane + 7) // 8 % 3, k // -4,
                       lane * 6 + 5]  # fmt: skip


def test_arithmetic_that_may_wrap_is_unsigned_and_knows_nothing(device, run):
    @warpjit
    def kernel(n: T.int32, out):
        T.device_entry(launch=GRID)
        out[0] = n + 1
        out[1] = n * 3
        m = n + 1
        out[2] = m // 2
        if n > 0:
            out[3] = m // 2  # may be negative all the same
            out[4] = n - 1
        if m > 0:
            out[5] = n + 5 > 0

    assert params(kernel, "add.s32", 1, FEW) == [[], []] and params(kernel, "mul.s32", 1, FEW) == [[]]
    assert params(kernel, "sub.s32", 1, FEW) == [["nowrap"]]
    n = 2**31 - 1
    out = ints(device, 8)
    run(kernel, n, out)
    assert out.tolist()[:6] == [-(2**31), 3 * n - 2**32, -(2**30), -(2**30), n - 1, -12345]


def test_a_guard_bounds_what_it_guards():
    """Offsets, register indices and barriers follow from it: here a division is folded."""

    @warpjit
    def kernel(n: T.int32, out):
        T.device_entry(launch=GRID)
        i = T.cuda.lane_id() + 32 * T.cuda.block_idx()
        if 0 <= n and n < 8:
            out[0] = n // 8
        if i < 32:
            out[1] = i // 32
        else:
            out[2] = max(i, 32)
        if n == 5:
            out[3] = n % 4
        if not (n < 0 or n >= 16):
            out[4] = n // 16
        while n < 0:
            n = n + 1
        out[5] = n // 3
        if n > 100:
            return
        out[6] = n // 101

    text = kernel.source(1, FEW)
    for element, value in ((0, "0"), (1, "0"), (3, "1"), (4, "0"), (6, "0")):
        place = f"out + {4 * element}" if element else "out"
        assert f"*(int*)({place}) = {value};" in text
    assert params(kernel, "max.s32", 1, FEW) == []
    assert params(kernel, "floordiv.s32", 1, FEW) == [["nonnegative"]]


# ---- T.assume -----------------------------------------------------------------------------------------------------


def test_assume_teaches_ranges_and_multiples():
    @warpjit
    def kernel(n: T.int32, m: T.int32, out, *, told):
        T.device_entry(launch=GRID)
        if told:
            T.assume(n >= 0)
            T.assume(n < 1024 and m % 16 == 0)
        out[0] = n // 8
        out[1] = n // 1024
        out[2] = m % 4

    assert params(kernel, "floordiv.s32", 1, 2, FEW, told=False) == [[], []]
    assert params(kernel, "floordiv.s32", 1, 2, FEW, told=True) == [["nonnegative"]]
    assert "mod.s32" in rows(kernel, 1, 2, FEW, told=False)
    told = [op for op in ops(kernel, 1, 2, FEW, told=True) if op.row.text == "store.global.s32"]
    assert "*(int*)(out + 8) = 0;" in kernel.source(1, 2, FEW, told=True) and len(told) == 3


def test_alignment_is_proven_only_where_it_was_assumed():
    @warpjit
    def kernel(n: T.int32, x, *, told):
        T.device_entry(launch=GRID)
        s = T.alloc_shared((256,), "float32")
        if told:
            T.assume(n % 4 == 0)
        T.ptx["cp.async.cg.shared.global"](s.ptr(n), x.ptr(n), 16)  #: copy
        T.ptx["cp.async.wait_all"]()

    x = torch.empty(256)
    (found,) = reported(kernel, 4, x, told=False)
    assert found[0] == "copy" and "16" in found[1] and "align" in found[1]
    assert "cp.async.cg.shared.global" in kernel.source(4, x, told=True)


def test_the_simulator_finds_a_false_assumption():
    @warpjit
    def kernel(n: T.int32, out):
        T.device_entry(launch=GRID)
        T.assume(n + T.cuda.lane_id() < 40)  #: promise
        out[0] = n

    out = torch.zeros(1, dtype=torch.int32)
    kernel(8, out)
    assert out.item() == 8
    with pytest.raises(SimulationError) as caught:
        kernel(20, out)
    (finding,) = caught.value.findings
    assert label(finding.loc) == "promise" and "T.assume" in finding.message and "lane 20" in finding.message
    assert out.item() == 8


def test_assumptions_that_are_static_or_too_early():
    @warpjit
    def kernel(n: T.int32, out):
        T.assume(n > 3)  #: early
        T.device_entry(launch=GRID)
        T.assume(1 < 2)
        T.assume(out.shape[0] == 3)  #: static
        T.assume("text" + n)  #: text

    assert reported(kernel, 1, FEW) == [
        ("early", "T.assume stands before T.device_entry: only host expressions can stand there"),
        ("static", "T.assume: expected a condition that can hold but got False"),
        ("text", "expected a number but got str 'text'"),
    ]


# ---- carried names ------------------------------------------------------------------------------------------------


def test_a_ring_index_stays_in_its_ring(device, run):
    @warpjit
    def kernel(n: T.int32, x, out, *, stages):
        T.device_entry(launch=GRID)
        lane = T.cuda.lane_id()
        ring = T.alloc_shared((stages, 32), "int32")
        for s in range(stages):
            ring[s, lane] = 0
        stage, phase = 0, 0
        other = 0
        for i in range(n):
            ring[stage, lane] += x[i] * 10 + phase
            out[0, i] = stage // stages  # folded to 0: the index never leaves its range
            out[1, i] = other // stages
            out[5, i] = other
            stage += 1
            if stage == stages:
                stage = 0
                phase = phase ^ 1
            other = (other + 1) % stages
        for s in range(stages):
            out[2 + s, lane] = ring[s, lane]

    x = torch.arange(8, dtype=torch.int32, device=device)
    out = torch.zeros((6, 32), dtype=torch.int32, device=device)
    run(kernel, 8, x, out, stages=3)
    ring = [0, 0, 0]
    for i in range(8):
        ring[i % 3] += i * 10 + i // 3 % 2
    assert out[0].tolist() == out[1].tolist() == [0] * 32
    assert out[5, :8].tolist() == [i % 3 for i in range(8)]
    assert [row.tolist() for row in out[2:5]] == [[v] * 32 for v in ring]
    assert not any(row.startswith("floordiv") for row in rows(kernel, 8, x, out, stages=3))
    assert params(kernel, "mod.s32", 8, x, out, stages=3) == [["nonnegative"]]


def test_facts_of_carried_names_weaken_until_they_hold(device, run):
    @warpjit
    def kernel(n: T.int32, out):
        T.device_entry(launch=GRID)
        up, down, even, mixed = 0, 100, 0, 0
        for i in range(n):
            out[0, i] = up // 4
            out[1, i] = down // 4
            out[2, i] = even % 2
            out[3, i] = mixed // 8
            up = up + 3
            down = down - 7
            even = even + 4 if i % 2 == 0 else even + 6
            mixed = -up if up > 9 else down
        out[4, 0] = even % 2

    out = torch.zeros((5, 24), dtype=torch.int32, device=device)
    run(kernel, 24, out)
    up, down, mixed = 0, 100, 0
    for i, got in enumerate(out[:4].T.tolist()):
        assert got == [up // 4, down // 4, 0, mixed // 8], i
        up, down = up + 3, down - 7
        mixed = -up if up > 9 else down


def test_a_loop_variable_has_its_range():
    @warpjit
    def kernel(n: T.int32, out):
        T.device_entry(launch=GRID)
        for i in range(0, 32, 4):
            out[i] = i // 32 + i % 4
        for i in range(30, -1, -2):
            out[i] = i // 31 + i % 2
        for i in range(n):
            out[i] = i // 7
        for i in range(4):
            for j in range(i, 8):
                out[j] = j // 8

    flags = params(kernel, "floordiv.s32", 3, FEW)
    assert flags == [["nonnegative"]]
    assert params(kernel, "mod.s32", 3, FEW) == []


def test_register_bounds():
    @warpjit
    def kernel(out):
        T.device_entry(launch=GRID)
        r = T.alloc_local((4,), "float32")
        for i in range(5):
            r[i] = 0.0  #: fifth
        r[4] = 1.0  #: above
        r[2] = 1.0

    found = findings(kernel, FEW)
    assert [label(finding.loc) for finding in found] == ["fifth", "above"]
    assert all("(4,)" in finding.message and "4" in finding.message for finding in found)


def test_a_dropped_attempt_leaves_no_facts(device, run):
    """The first attempt's locals have the names of the second's: what was known of them must not stay."""

    @warpjit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=GRID)
        r = T.alloc_local((2,), "int32")
        r[0], r[1] = 3, 4
        for i in range(2):
            a = x[0] % 4
            if a == 0:
                out[0] = x[0] % 4
            r[i] += a
        c = x[2] + x[3]
        d = x[1] % 4
        if c == 0:
            out[1] = x[1] % 4
        out[2] = r[0] + r[1] + d

    x = torch.tensor([5, 6, -3, 3], dtype=torch.int32, device=device)
    out = ints(device, 3)
    run(kernel, 1, x, out)
    assert out.tolist() == [-12345, 2, 3 + 4 + 1 + 1 + 2]
