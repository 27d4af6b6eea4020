"""Loops, branches and jumps run as Python runs them."""

# ruff: noqa: B007, F821 (kernels that are wrong on purpose)

from __future__ import annotations

import torch
from language_cases import ints, kinds, reported

import warpjit
from warpjit import T

INT_MAX, INT_MIN = 2**31 - 1, -(2**31)


# ---- while ------------------------------------------------------------------------------------------------------


def test_while(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        n = x[lane]
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        out[0, lane] = steps
        a, b = x[lane], 12
        while b:
            a, b = b, a % b
        out[1, lane] = a
        k = 0
        while True:
            k += 3
            if k > lane:
                break
            if k % 2 == 0:
                continue
            k += 1
        out[2, lane] = k
        while False:
            out[2, lane] = -1

    def steps(n):
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    def gcd(a, b):
        return gcd(b, a % b) if b else a

    def last(lane):
        k = 0
        while True:
            k += 3
            if k > lane:
                return k
            if k % 2:
                k += 1

    x = torch.arange(1, 33, dtype=torch.int32, device=device)
    out = ints(device, 3, 32)
    run(kernel, x, out)
    assert out.T.tolist() == [[steps(v), gcd(v, 12), last(v - 1)] for v in range(1, 33)]


def test_the_condition_of_while_short_circuits_and_loads_each_time(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        while i < x.shape[0] and x[i] == 0:
            i += 1
        out[T.cuda.lane_id()] = i

    x = torch.tensor([0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0], dtype=torch.int32, device=device)
    out = ints(device)
    run(kernel, x, out)
    values = x.tolist()
    assert out.tolist() == [next((k for k in range(i, 12) if values[k]), max(i, 12)) for i in range(32)]


# ---- if ---------------------------------------------------------------------------------------------------------


def test_if_elif_else(device, run):
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        kind = 0
        if lane < 4:
            kind = 1
            out[1, lane] = 10
        elif lane < 8:
            kind = 2
            if lane == 5:
                kind = 20
        elif lane == 9:
            pass
        else:
            kind = lane
            out[1, lane] = 40
        out[0, lane] = kind
        if lane % 16:
            out[1, lane] = 7

    def expected(lane):
        first = 1 if lane < 4 else 20 if lane == 5 else 2 if lane < 8 else 0 if lane == 9 else lane
        second = 10 if lane < 4 else -12345 if lane < 8 or lane == 9 else 40
        return [first, 7 if lane % 16 else second]

    out = ints(device, 2, 32)
    run(kernel, out)
    assert out.T.tolist() == [expected(lane) for lane in range(32)]


def test_an_early_return_ends_the_lane(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=32))
        i = T.cuda.block_idx() * 32 + T.cuda.lane_id()
        if i >= n:
            return
        out[i] = i
        for k in range(4):
            if k == 2:
                if i % 2 == 1:
                    return
            out[i] += 100
        out[i] += 1000
        return

    out = ints(device, 64)
    run(kernel, 41, out)
    assert out.tolist() == [(i + (200 if i % 2 else 1400) if i < 41 else -12345) for i in range(64)]


def test_what_follows_a_jump_is_not_traced(device, run):
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        for _ in range(3):
            out[T.cuda.lane_id()] = 1
            break
            no_such_name()
        return
        no_such_name()

    out = ints(device)
    run(kernel, out)
    assert out.tolist() == [1] * 32


# ---- expanded loops -------------------------------------------------------------------------------------------


def test_unrolled_loops_jump_under_static_conditions(device, run):
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        n = 0
        for i in T.unroll(1, 20, 3):
            if i == 7:
                continue
            if i > 13:
                break
            out[n] = i
            n = n + 1
        out[n] = i
        for a, b in T.unroll(((1, 2), (3, 4))):
            out[n + a] = b
        for a, (b, *c) in (("x", (5, 6, 7)),):
            out[10] = b + len(c) + len(a)

    out = ints(device, 11)
    run(kernel, out)
    assert out.tolist() == [1, 4, 10, 13, 16, 2, -12345, 4, -12345, -12345, 8]
    assert kinds(kernel, out) == []


def test_a_register_index_expands_its_loop(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        r = T.alloc_local((4, 2), "float32")
        for i in range(4):
            for j in range(2):
                r[i, j] = x[lane] * (2 * i + j)
        for k in range(8):
            out[k, lane] = 1.0  # nothing here needs k
        for i in range(3, -1, -1):
            if i == 1:
                continue
            for j in range(2):
                out[2 * i + j, lane] = r[i, j]

    x = torch.arange(32, dtype=torch.float32, device=device)
    out = torch.zeros(8, 32, device=device)
    run(kernel, x, out)
    for k in range(8):
        assert out[k].tolist() == [1.0] * 32 if k // 2 == 1 else out[k].tolist() == (x * k).tolist()
    assert kinds(kernel, x, out) == ["Allocate", "For"]


def test_only_the_loop_that_must_is_expanded(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        r = T.alloc_local((4,), "int32")
        for i in range(4):
            r[i] = 0
        for k in range(n):
            for i in range(4):
                r[i] += k * i
        for i in range(4):
            out[i] = r[i]

    out = ints(device, 4)
    run(kernel, 5, out)
    assert out.tolist() == [0, 10, 20, 30]
    assert kinds(kernel, 5, out) == ["Allocate", "For"]


def test_an_expanded_loop_that_is_too_long_is_named():
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        for i in T.unroll(5000):  #: long
            out[i] = i
        r = T.alloc_local((8,), "int32")
        for j in range(4097):  #: registers
            r[j % 8] = 1

    sentence = (
        "this loop was expanded to more than 4,096 statements: make its range or its body smaller, or index registers "
        "with values that do not derive from its variable"
    )
    assert reported(kernel, torch.empty(5000, dtype=torch.int32)) == [("long", sentence), ("registers", sentence)]


def test_a_register_index_that_stays_a_device_value_is_an_error():
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        r = T.alloc_local((8,), "int32")
        for j in range(n):
            r[j] = 1  #: loop
        out[0] = r[T.cuda.lane_id()]  #: lane

    first, second = reported(kernel, 3, torch.empty(8, dtype=torch.int32))
    assert first[0] == "loop" and second[0] == "lane"
    assert first[1] == second[1].replace("lane", "j") or "known while tracing" in first[1]


# ---- what is refused ------------------------------------------------------------------------------------------


def test_loops_that_are_refused():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        for i in range(n):  #: for_else
            out[0] = i
        else:
            out[0] = 1
        while out[0] > 0:  #: while_else
            out[0] = 0
        else:
            out[0] = 1
        for i in range(0, 10, 0):  #: zero
            out[0] = i
        for i in range(0, 10, n):  #: step
            out[0] = i
        for i in range(0, n, 0):  #: runtime_zero
            out[0] = i
        for i in range(1.5):  #: floats
            out[0] = i
        for i in range(x[0]):  #: runtime_float
            out[0] = i
        for i in n:  #: scalar
            out[0] = i
        for i in 5:  #: number
            out[0] = i
        for i, j in range(n):  #: pair
            out[0] = i
        for i in T.unroll(n):  #: unrolled
            out[0] = i
        for i in T.unroll(8):
            if n == 1:
                break  #: jump

    assert reported(kernel, 3, torch.empty(4), torch.empty(4, dtype=torch.int32)) == [
        ("for_else", "for … else is not part of the language"),
        ("while_else", "while … else is not part of the language"),
        ("zero", "ValueError: range() arg 3 must not be zero"),
        (
            "step",
            "the step of a range must be known while tracing, but it is computed on the device (the same for the whole "
            "grid)",
        ),
        ("runtime_zero", "range: step: expected an int other than 0 but got 0"),
        ("floats", "TypeError: 'float' object cannot be interpreted as an integer"),
        ("runtime_float", "range: expected integers but got a scalar of type float32"),
        ("scalar", "a scalar of type int32 cannot be iterated over: expected range(...), T.unroll(...) or a tuple"),
        ("number", "int 5 cannot be iterated over: expected range(...), T.unroll(...) or a tuple"),
        ("pair", "expected a name as the variable of a loop over range"),
        (
            "unrolled",
            "an argument of T.unroll must be known while tracing, but it is computed on the device (the same for the "
            "whole grid)",
        ),
        ("jump", "break under a runtime condition in an expanded loop: write it as a loop over range"),
    ]


def test_a_device_loop_stands_after_the_entry():
    @warpjit.jit
    def kernel(n: T.int32, out):
        for _ in range(n):  #: loop
            pass
        if n > 3:  #: branch
            pass
        while n > 3:  #: while_loop
            pass
        total = 0
        for i in range(3):
            total += i
        T.device_entry(launch=T.cuda.LaunchConfig(grid=total, block=32))

    assert reported(kernel, 3, torch.empty(4)) == [
        ("loop", "a loop over a runtime range stands before T.device_entry: only host expressions can stand there"),
        ("branch", "a branch on a runtime value stands before T.device_entry: only host expressions can stand there"),
        ("while_loop", "a while loop stands before T.device_entry: only host expressions can stand there"),
    ]
