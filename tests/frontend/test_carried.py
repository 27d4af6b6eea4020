"""What loops and branches carry: which names, of which types, and what cannot be carried."""

# ruff: noqa: B007, F821, F841 (kernels that are wrong on purpose)

from __future__ import annotations

import torch
from language_cases import findings, ints, label, reported

import warpjit
from warpjit import T

FEW = torch.empty(64, dtype=torch.int32)


# ---- carried by loops ---------------------------------------------------------------------------------------------


def test_names_that_swap_and_fibonacci(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        a, b = 0, 1
        for _ in range(n):
            a, b = b, a + b
        out[0], out[1] = a, b
        p, q, r = 1, 2, 3
        for _ in range(n):
            p, q, r = q, r, p
        out[2], out[3], out[4] = p, q, r

    for n in (0, 1, 2, 10):
        out = ints(device, 5)
        run(kernel, n, out)
        a, b = 0, 1
        p, q, r = 1, 2, 3
        for _ in range(n):
            a, b = b, a + b
            p, q, r = q, r, p
        assert out.tolist() == [a, b, p, q, r]


def test_types_of_carried_names(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out, floats, longs):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        count, total, flag, wide, half = 0, 0.0, False, T.int64(1), T.float16(0)
        for i in range(n):
            count = count + 1
            total = total + i
            flag = not flag
            wide = wide * 1000
            half = half + 0.1
        assert_types((count, total, flag, wide, half))
        out[0], out[1], floats[0], floats[1], longs[0] = count, flag, total, half, wide

    def assert_types(values):
        names = (repr(values[0].dtype), repr(values[1].dtype), repr(values[2].dtype), repr(values[3].dtype))
        if names != ("T.int32", "T.float32", "T.bool", "T.int64"):
            raise AssertionError(names)

    out, floats = ints(device, 2), torch.zeros(2, device=device)
    longs = torch.zeros(1, dtype=torch.int64, device=device)
    run(kernel, 5, out, floats, longs)
    half = torch.zeros((), dtype=torch.float16)
    for _ in range(5):
        half = half + torch.tensor(0.1, dtype=torch.float16)
    assert out.tolist() == [5, 1]
    assert floats.tolist() == [10.0, half.item()]
    assert longs.tolist() == [10**15]


def test_a_name_bound_only_in_a_loop_that_is_sure_to_run(device, run):
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        for i in range(3):
            a = x[lane] + i
            f = a * 0.5
        out[0, lane] = a
        out[1, lane] = T.int32(f * 2)
        T.assume(n > 0)
        for j in range(n):
            b = x[lane] * j
            if b > 40:
                break
        out[2, lane] = b
        out[3, lane] = j

    def last(v, n):
        for j in range(n):
            b = v * j
            if b > 40:
                break
        return [b, j]

    x = torch.arange(32, dtype=torch.int32, device=device)
    out = ints(device, 4, 32)
    run(kernel, 6, x, out)
    assert out.T.tolist() == [[v + 2, v + 2, *last(v, 6)] for v in range(32)]


def test_a_name_bound_in_a_loop_that_ends_by_break_only(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        k = 0
        while True:
            v = x[k]
            if v >= lane:
                break
            k += 1
            if k == 6:
                w = -1
                break
            w = k
        out[0, lane] = v
        while (u := x[k]) > 3:
            k = k - 1
        out[1, lane] = u

    x = torch.tensor([2, 3, 5, 9, 17, 31, 40], dtype=torch.int32, device=device)
    out = ints(device, 2, 32)
    run(kernel, x, out)
    for lane, got in enumerate(out.T.tolist()):
        first = next(v for v in (2, 3, 5, 9, 17, 31, 40) if v >= lane)
        assert got == [first, min(first, 3)]


def test_a_name_that_an_iteration_may_or_may_not_assign_anew():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        b = 0
        for i in range(n):  #: loop
            out[i] = i < 3 and (b := x[i]) > 2
        out[0] = b

    assert reported(kernel, 3, FEW, FEW) == [
        ("loop", "b may have its old or a new value here: it is assigned on some paths only")
    ]


def test_a_name_that_may_have_no_value():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        for i in range(n):
            a = x[0]
        out[0] = a  #: loop
        out[0] = i  #: variable
        if n > 2:
            b = 1
        out[0] = b  #: arm
        for j in range(3):
            if x[j] == 1:
                continue
            c = 5
        out[0] = c  #: skipped
        out[0] = later  #: later
        later = 1
        out[0] = nowhere  #: nowhere
        while n > x[0]:
            d = 1
        out[0] = d  #: turned
        out[0] = 1 if n > 3 and (e := x[1]) > 2 else 0
        out[0] = e  #: walrus
        for _ in range(0):
            f = 1
        out[0] = f  #: never

    def may(name):
        return f"{name} may have no value here: it is assigned on some paths only"

    assert reported(kernel, 3, FEW, FEW) == [
        ("loop", may("a")), ("variable", may("i")), ("arm", may("b")), ("skipped", may("c")),
        ("later", "later is read before it is assigned"), ("nowhere", "the name nowhere is not defined"),
        ("turned", may("d")), ("walrus", may("e")), ("never", may("f")),
    ]  # fmt: skip


def test_what_is_no_number_cannot_be_carried():
    @warpjit.jit
    def kernel(n: T.int32, x, y, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        t = x  #: tensor
        for _ in range(n):  #: loop
            t[0] = 1
            t = y  #: other
        pair = (1, 2)  #: tuple
        if n > 1:  #: branch
            pair = (3, n, n)  #: changed
        out[0] = pair[0]
        for _ in range(n):  #: second
            name = "a"  #: string
        out[0] = len(name)
        v = 1 if n else x  #: chosen

    found = findings(kernel, 3, FEW, FEW, FEW)
    assert [(label(f.loc), f.message, [(label(n.loc), n.message) for n in f.notes]) for f in found] == [
        (
            "loop",
            "t would be carried by the control flow, but a tensor cannot be: only numbers can",
            [("tensor", "t is a tensor from here"), ("other", "and a tensor from here")],
        ),
        (
            "branch",
            "pair would change from a tuple of 3 to a tuple of 2",
            [("changed", "a tuple of 3 from here"), ("tuple", "a tuple of 2 from here")],
        ),
        (
            "second",
            "name would be carried by the control flow, but a string cannot be: only numbers can",
            [("string", "name is a string from here")],
        ),
        ("chosen", "a conditional expression on a runtime condition can only choose between numbers", []),
    ]


def test_a_carried_name_keeps_its_type():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        total = 0  #: whole
        for i in range(n):  #: loop
            total = total + x[i]  #: real
        out[0] = total
        v = T.int64(0)  #: wide
        if n > 3:  #: branch
            v = n  #: narrow
        out[0] = v
        flag = True  #: flag
        while flag:  #: turns
            flag = n - 1  #: number

    found = findings(kernel, 3, torch.empty(4), FEW)
    assert [(label(f.loc), f.message, [(label(n.loc), n.message) for n in f.notes]) for f in found] == [
        (
            "loop",
            "total would change its type from int32 to float32: convert one of them",
            [("whole", "int32 from here"), ("real", "float32 from here")],
        ),
        (
            "branch",
            "v would change its type from int32 to int64: convert one of them",
            [("narrow", "int32 from here"), ("wide", "int64 from here")],
        ),
        (
            "turns",
            "flag would change its type from bool to int32: convert one of them",
            [("flag", "bool from here"), ("number", "int32 from here")],
        ),
    ]


def test_names_that_are_not_carried_keep_their_binding_time(device, run):
    """Fresh in each iteration: a tensor, a tuple, and a static number that indexes registers."""

    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        r = T.alloc_local((4,), "int32")
        for i in T.unroll(4):
            r[i] = 10 * i
        for i in range(n):
            part = x.sub[4 * i : 4 * i + 4]
            which = 1
            which = which + 1
            pair = (part[3], r[which])
            out[i] = pair[0] + pair[1]
            pair = "gone"
        if n > 1:
            which = 3
            r[which] = 7
        out[2] = r[3]

    x = torch.arange(8, dtype=torch.int32, device=device)
    out = ints(device, 3)
    run(kernel, 2, x, out)
    assert out.tolist() == [23, 27, 7]


def test_a_literal_carried_next_to_a_device_value(device, run):
    @warpjit.jit
    def kernel(x, halves, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        v = halves[lane]
        if v > 8:
            v = 0
        best = -1
        for i in range(4):
            if x[i] > lane:
                best = i
                break
        flag = False
        for i in range(4):
            flag = flag or x[i] == lane
        mixed = 1 if lane > 3 else 0.5
        out[0, lane], out[1, lane], out[2, lane], out[3, lane] = v, best, flag, mixed * 2

    x = torch.tensor([3, 9, 11, 30], dtype=torch.int32, device=device)
    halves = torch.arange(32, dtype=torch.float16, device=device)
    out = torch.zeros((4, 32), device=device)
    run(kernel, x, halves, out)
    for lane, got in enumerate(out.T.tolist()):
        best = next((i for i, v in enumerate((3, 9, 11, 30)) if v > lane), -1)
        assert got == [0 if lane > 8 else lane, best, lane in (3, 9, 11, 30), 2 if lane > 3 else 1]


def test_a_long_chain_of_names_settles(device, run):
    """What is known of the last name reaches the first one after as many iterations as there are names."""

    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        a = b = c = d = e = f = g = h = i = j = k = m = 0
        for q in range(n):
            for _ in range(2):
                a, b, c, d, e, f = b, c, d, e, f, g
                g, h, i, j, k, m = h, i, j, k, m, lane + q
        out[0, lane] = a + 1000 * b
        out[1, lane] = g // 4

    names = [[0] * 12 for _ in range(32)]
    for q in range(7):
        for lane, line in enumerate(names):
            names[lane] = [*line[2:], lane + q, lane + q]
    out = ints(device, 2, 32)
    run(kernel, 7, out)
    assert out.T.tolist() == [[line[0] + 1000 * line[1], line[6] // 4] for line in names]


def test_copies_of_a_loop_of_different_types(device, run):
    """What was found out about one copy is not assumed of another."""

    @warpjit.jit
    def kernel(n: T.int32, x, f, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        r = T.alloc_local((2,), "float32")

        def last(values, times):
            T.assume(times > 0)
            for k in range(times):
                v = values[lane] * k
            return v

        for q in range(n):
            for i in range(2):
                r[i] = (last(x, n) if i == 0 else last(f, n)) + q
            out[0, lane], out[1, lane] = r[0], r[1]

    x = torch.arange(32, dtype=torch.int32, device=device)
    out = torch.zeros((2, 32), device=device)
    run(kernel, 3, x, x * 0.25, out)
    assert out.T.tolist() == [[2 * v + 2, 0.5 * v + 2] for v in range(32)]
