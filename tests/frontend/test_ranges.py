"""`for … in range(...)` in all its forms."""

from __future__ import annotations

import pytest
import torch
from language_cases import ints

import warpjit
from warpjit import T

INT_MAX, INT_MIN = 2**31 - 1, -(2**31)


# ---- for over range -------------------------------------------------------------------------------------------


@warpjit.jit
def runtime_range(start: T.int32, stop: T.int32, seen, last, *, step):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
    n = 0
    i = -77
    for i in range(start, stop, step):
        seen[n] = i
        n += 1
    last[0] = i
    last[1] = n


RANGES = [
    (0, 5, 1), (2, 9, 3), (5, 5, 1), (6, 5, 1), (5, 0, -1), (10, -3, -4), (0, 5, -1), (-3, 3, 2), (7, 8, 100),
    (INT_MAX - 3, INT_MAX, 1), (INT_MAX - 7, INT_MAX, 5), (INT_MIN + 3, INT_MIN, -1), (INT_MIN + 9, INT_MIN, -7),
    (INT_MIN, INT_MAX, 2**30), (INT_MAX, INT_MIN, -(2**30)), (INT_MIN, INT_MIN + 2, 1), (INT_MAX, INT_MAX - 2, -1),
]  # fmt: skip


@pytest.mark.parametrize(("start", "stop", "step"), RANGES)
def test_range_with_runtime_bounds(start, stop, step, device, run):
    expected = list(range(start, stop, step))
    seen, last = ints(device, 8), ints(device, 2)
    run(runtime_range, start, stop, seen, last, step=step)
    assert seen.tolist() == expected + [-12345] * (8 - len(expected))
    assert last.tolist() == [expected[-1] if expected else -77, len(expected)]


@warpjit.jit
def static_range(seen, last, *, start, stop, step):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
    n = 0
    i = -77
    for i in range(start, stop, step):
        seen[n] = i
        n += 1
    last[0] = i
    last[1] = n


@pytest.mark.parametrize(("start", "stop", "step"), RANGES)
def test_range_with_static_bounds(start, stop, step, device, run):
    expected = list(range(start, stop, step))
    seen, last = ints(device, 8), ints(device, 2)
    run(static_range, seen, last, start=start, stop=stop, step=step)
    assert seen.tolist() == expected + [-12345] * (8 - len(expected))
    assert last.tolist() == [expected[-1] if expected else -77, len(expected)]


def test_one_argument_and_other_widths(device, run):
    @warpjit.jit
    def kernel(n: T.int32, wide: T.int64, small, out, longs):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        total = 0
        for i in range(n):
            total += i
        out[0] = total
        big = T.int64(0)
        for j in range(wide, wide + 3):
            big += j
        longs[0] = big
        count = 0
        for k in range(small[0], small[1]):
            count += 1
            longs[1] = k
        out[1] = count
        for m in range(n, 2 * n, 2):
            out[2] = m

    out = ints(device, 3)
    longs = torch.zeros(2, dtype=torch.int64, device=device)
    small = torch.tensor([250, 255], dtype=torch.uint8, device=device)
    run(kernel, 10, 2**40, small, out, longs)
    assert out.tolist() == [45, 5, 18]
    assert longs.tolist() == [3 * 2**40 + 3, 254]


def test_the_loop_variable_may_be_assigned_in_the_body(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        for i in range(n):
            out[2 * i] = i
            i = i * 2
            out[i + 1] = i
        for j in range(4):
            j += 10
        out[14] = j

    out = ints(device, 16)
    run(kernel, 7, out)
    expected = [-12345] * 16
    for i in range(7):
        expected[2 * i], expected[2 * i + 1] = i, 2 * i
    expected[14] = 13
    assert out.tolist() == expected


def test_bounds_are_evaluated_once(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        count = 0
        limit = n
        for i in range(count, limit):
            limit = limit + 10
            count += i
        out[0] = count
        out[1] = limit

    out = ints(device, 2)
    run(kernel, 4, out)
    assert out.tolist() == [6, 44]


def test_nested_loops_with_breaks_and_continues(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        total = 0
        last = -1
        for i in range(n):
            if i == 2:
                continue
            for j in range(i, n):
                if j == lane % 5 + 3:
                    break
                if (i + j) % 3 == 0:
                    continue
                total += i * 10 + j
                last = j
            if total > 200:
                break
        out[0, lane] = total
        out[1, lane] = last

    def expected(n, lane):
        total, last = 0, -1
        for i in range(n):
            if i == 2:
                continue
            for j in range(i, n):
                if j == lane % 5 + 3:
                    break
                if (i + j) % 3 == 0:
                    continue
                total += i * 10 + j
                last = j
            if total > 200:
                break
        return [total, last]

    out = ints(device, 2, 32)
    run(kernel, 9, out)
    assert out.T.tolist() == [expected(9, lane) for lane in range(32)]


def test_uniform_jumps_keep_barriers_legal(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        s = T.alloc_shared((64,), "int32")
        t = T.cuda.thread_idx()
        s[t] = t
        for i in range(n):
            if i == 5:
                break
            if i % 2 == 1:
                continue
            T.cuda.cta_sync()
            v = s[63 - t]
            T.cuda.cta_sync()
            s[t] = v + 1
        out[t] = s[t]

    out = ints(device, 64)
    run(kernel, 9, out)
    values = list(range(64))
    for _ in (0, 2, 4):
        values = [values[63 - t] + 1 for t in range(64)]
    assert out.tolist() == values
