"""`T.range`: device loops that are never expanded, and bodies that stand several times in one."""

# ruff: noqa: B007 (kernels that are wrong on purpose)

from __future__ import annotations

import pytest
import torch
from language_cases import ints, kinds, reported, rows

import warpjit
from warpjit import T
from warpjit.ir.nodes import For
from warpjit.kernel import resolve_target

INT_MAX, INT_MIN = 2**31 - 1, -(2**31)


@warpjit.jit
def pairs(start: T.int32, stop: T.int32, seen, last, *, step, unroll):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
    n = 0
    i, u = -77, -1
    for i, u in T.range(start, stop, step, unroll=unroll):
        tens = (10, 20, 30, 40)[u]
        seen[n, 0] = i
        seen[n, 1] = u + tens
        n += 1
    last[0] = i
    last[1] = u
    last[2] = n


RANGES = [
    (0, 5, 1, 4), (2, 9, 3, 2), (5, 5, 1, 4), (6, 5, 1, 3), (5, 0, -1, 2), (10, -3, -4, 3), (0, 8, 1, 4), (0, 3, 1, 1),
    (INT_MAX - 3, INT_MAX, 1, 4), (INT_MAX - 7, INT_MAX, 5, 2), (INT_MIN + 9, INT_MIN, -7, 4),
]  # fmt: skip


@pytest.mark.parametrize(("start", "stop", "step", "unroll"), RANGES)
def test_the_items_are_those_of_range_with_their_number(start, stop, step, unroll, device, run):
    expected = list(range(start, stop, step))
    seen, last = ints(device, 9, 2), ints(device, 3)
    run(pairs, start, stop, seen, last, step=step, unroll=unroll)
    rows = [[i, n % unroll + 10 * (n % unroll + 1)] for n, i in enumerate(expected)]
    assert seen.tolist() == rows + [[-12345] * 2] * (9 - len(rows))
    count = len(expected)
    assert last.tolist() == ([expected[-1], (count - 1) % unroll, count] if expected else [-77, -1, 0])


@pytest.mark.parametrize("n", [0, 1, 2, 6, 7, 13])
def test_jumps_barriers_and_carried_names(n, device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        t = T.cuda.thread_idx()
        s = T.alloc_shared((4, 64), "int32")
        a, b, skipped = 0, 1, 0
        for k, u in T.range(n, unroll=4):
            s[u, t] = a + t
            T.cuda.cta_sync()
            if k % 5 == 3:
                skipped += 1
                continue
            if k == 11:
                if t < 40:
                    a = -a
                break
            a, b = b + s[u, 63 - t], a
            for j in range(u):
                if j == 2:
                    continue
                b += j
            if t % 2 == 0:
                if b % 3 == 0:
                    continue
                b -= 1
            b += 1000 * (u + 1)
        out[0, t], out[1, t], out[2, t] = a, b, skipped

    def expected(n):
        lanes = [[0, 1, 0] for _ in range(64)]
        for k in range(n):
            u = k % 4
            row = [lanes[t][0] + t for t in range(64)]
            if k % 5 == 3:
                for lane in lanes:
                    lane[2] += 1
                continue
            if k == 11:
                for lane in lanes[:40]:
                    lane[0] = -lane[0]
                break
            for t, lane in enumerate(lanes):
                a, b = lane[1] + row[63 - t], lane[0] + sum(j for j in range(u) if j != 2)
                done = t % 2 == 0 and b % 3 == 0
                b = b if done else b - (t % 2 == 0) + 1000 * (u + 1)
                lane[0], lane[1] = a, b
        return lanes

    out = ints(device, 3, 64)
    run(kernel, n, out)
    assert out.T.tolist() == expected(n)


def test_a_device_range_is_a_loop_and_its_body_stands_as_often_as_said():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        for k in T.range(8):
            out[k] = 1
        for k, u in T.range(8, unroll=4):
            out[k] = x[u]
        for k, u in T.range(n, unroll=4):
            out[k] = x[u]
        for k, u in T.range(n // 4 * 4, unroll=4):
            out[k] = x[u]

    some = torch.empty(64, dtype=torch.int32)
    assert kinds(kernel, 3, some, some) == ["For"] * 4
    body = kernel.program(kernel.specialization((3, some, some), {}), resolve_target("sm_90a")).kernel.body
    loops = [node for node in body if isinstance(node, For)]
    assert [loop.step for loop in loops] == [1, 4, 4, 4]
    guards = [sum(type(node).__name__ == "If" for node in loop.body) for loop in loops]
    assert guards == [0, 0, 3, 0]  # none where the length is known to be a multiple
    assert rows(kernel, 3, some, some).count("store.global.s32") == 1 + 3 * 4


def test_a_copy_of_the_body_knows_where_it_lies(device, run):
    """Of a static length the last copy stays inside of the tensor; of a runtime one its guard says so."""

    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        r = T.alloc_local((4,), "int32")
        for k, u in T.range(8, unroll=4):
            r[u] = k
            out[k] = r[u] + u
        for k, u in T.range(out.shape[0] - 8, unroll=3):
            out[8 + k] = 10 * k + u

    out = ints(device, 13)
    run(kernel, out)
    assert out.tolist() == [0, 2, 4, 6, 4, 6, 8, 10, 0, 11, 22, 30, 41]


def test_device_ranges_that_are_refused():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        r = T.alloc_local((4,), "int32")
        for k in T.range(4):
            r[k] = 0  #: register
        for k in T.range(n, unroll=n):  #: unroll
            out[k] = 1
        for k, u in T.range(n, unroll=0):  #: none
            out[k] = 1
        for k, u in T.range(0, n, n, unroll=2):  #: step
            out[k] = 1
        for k, u in T.range(0, n, 0):  #: zero
            out[k] = 1
        for k in T.range(x[0]):  #: floats
            out[k] = 1
        for k, u in T.range(n):  #: pair
            out[k] = u
        for k, u in T.range(n, unroll=2):
            u = n
            out[k] = r[u]  #: lost
        for k in T.unroll(T.range(4)):  #: unrolled
            out[k] = 1

    grid = "computed on the device (the same for the whole grid)"
    got = reported(kernel, 3, torch.empty(4), torch.empty(64, dtype=torch.int32))
    assert got == [
        (
            "register",
            "the register index of r must be known while tracing, but it is computed on the device",
        ),
        ("unroll", f"T.range: unroll must be known while tracing, but it is {grid}"),
        ("none", "T.range: unroll: expected 1 to 64 but got 0"),
        ("step", f"the step of a T.range must be known while tracing, but it is {grid}"),
        ("zero", "T.range: step: expected an int other than 0 but got 0"),
        ("floats", "T.range: expected integers but got a scalar of type float32"),
        ("pair", "expected a name as the variable of a loop over range: T.range gives pairs with unroll= only"),
        ("lost", f"the register index of r must be known while tracing, but it is {grid}"),
        ("unrolled", "an argument of T.unroll: expected an int but got Range"),
    ]


def test_a_device_range_stands_after_the_entry():
    @warpjit.jit
    def kernel(n: T.int32, out):
        for _ in T.range(4):  #: early
            pass
        T.device_entry(launch=T.cuda.LaunchConfig(grid=n, block=32))

    sentence = "T.range stands before T.device_entry: only host expressions can stand there"
    assert reported(kernel, 3, torch.empty(4)) == [("early", sentence)]
