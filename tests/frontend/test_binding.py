"""Binding: what assignment takes, what loops and branches carry, what is static and what is on the device."""

# ruff: noqa: F821, F841, RUF059 (kernels that are wrong on purpose)

from __future__ import annotations

import pytest
import torch
from language_cases import ints, kinds, reported, rows

import warpjit
from warpjit import T
from warpjit.layout import S, TileLayout

ONE = torch.empty(1, dtype=torch.int32)
FEW = torch.empty(64, dtype=torch.int32)


# ---- assignment -------------------------------------------------------------------------------------------------


def test_forms_of_assignment(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        a = b = x[i]
        c: T.int64 = 7
        d: T.float32 = a
        e: "a note" = 3  # noqa: F722
        f: T.int32
        (g, h), *k = (a + 1, b + 2), 5, 6, 7
        [m, *n, o] = [1, 2, 3, 4]
        *p, q = range(3)
        out[0, i] = a + b
        out[1, i] = T.int32((c << 33) >> 33)
        out[2, i] = T.int32(d / 2 * 2)
        out[3, i] = e + g + h
        out[4, i] = k[0] + k[1] * k[2] + len(k)
        out[5, i] = m + len(n) * 10 + o + len(p) + q
        f = i
        out[6, i], out[7, i] = f, -f
        a, b = b + 1, a + 2
        out[8, i] = a * 1000 + b

    x = torch.arange(100, 132, dtype=torch.int32, device=device)
    out = ints(device, 9, 32)
    run(kernel, x, out)
    for i, got in enumerate(out.T.tolist()):
        v = 100 + i
        assert got == [2 * v, 7, v, 3 + v + 1 + v + 2, 5 + 42 + 3, 1 + 20 + 4 + 2 + 2, i, -i, (v + 1) * 1000 + v + 2]


def test_a_scalar_is_taken_now_and_a_tensor_is_an_alias(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        before = x[i]
        alias = x
        alias[i] = before + 100
        out[0, i] = before
        out[1, i] = alias[i]
        n = before
        m = n
        n += 1
        out[2, i] = m
        out[3, i] = n

    x = torch.arange(32, dtype=torch.int32, device=device)
    out = ints(device, 4, 32)
    run(kernel, x, out)
    assert out.T.tolist() == [[i, i + 100, i, i + 1] for i in range(32)]


def test_augmented_assignment_evaluates_its_target_once(device, run):
    @warpjit.jit
    def kernel(x, calls, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        calls[i] = 0

        def slot():
            calls[i] += 1
            return i

        out[0, slot()] += x[i]
        out[1, slot()] -= x[i]
        out[2, slot()] *= 3
        out[3, slot()] //= 2
        out[4, slot()] %= 7
        out[5, slot()] <<= 2
        out[6, slot()] >>= 1
        out[7, slot()] &= 6
        out[8, slot()] |= 8
        out[9, slot()] ^= 5
        v = x[i]
        v **= 2
        v -= 1
        out[10, i] = v

    x = torch.arange(32, dtype=torch.int32, device=device)
    out = (torch.arange(32, dtype=torch.int32) - 9).repeat(11, 1).to(device)
    calls = ints(device)
    run(kernel, x, calls, out)
    assert calls.tolist() == [10] * 32
    for i, got in enumerate(out.T.tolist()):
        o = i - 9
        assert got == [o + i, o - i, o * 3, o // 2, o % 7, o << 2, o >> 1, o & 6, o | 8, o ^ 5, i * i - 1]


def test_an_augmented_element_reads_before_its_value_runs(device, run):
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()

        def overwrite():
            out[i] = 1000
            return 1

        out[i] += overwrite()

    out = torch.arange(32, dtype=torch.int32, device=device)
    run(kernel, out)
    assert out.tolist() == [i + 1 for i in range(32)]


def test_targets_that_are_refused():
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        a, b = 1, 2, 3  #: many
        a, *b, c = (1,)  #: few
        a, b = 5  #: number
        a, b = x  #: tensor
        x.shape = 3  #: attribute
        x.shape += 3  #: augmented
        out[0:4] = 1  #: part
        (1, 2)[0] = 3  #: item
        out[0] = "text"  #: text
        out[0] = x  #: whole
        out[-1] = 1  #: negative
        out[0, 0] = 1  #: rank
        out[1.5] = 1  #: float

    few = torch.empty(4, dtype=torch.int32)
    assert reported(kernel, few, few) == [
        ("many", "expected 2 values to unpack but got 3"),
        ("few", "expected at least 2 values to unpack but got 1"),
        ("number", "expected a tuple to unpack into 2 names but got int 5"),
        ("tensor", "expected a tuple to unpack into 2 names but got the tensor x"),
        ("attribute", "shape of the tensor x cannot be assigned: only attributes of objects that the kernel made can"),
        ("augmented", "shape of the tensor x cannot be assigned: only attributes of objects that the kernel made can"),
        ("part", "a slice of out cannot be assigned: store element by element, or use an instruction"),
        ("item", "expected a tensor whose element is assigned but got tuple"),
        ("text", "expected a number to store in out but got str 'text'"),
        ("whole", "expected a number to store in out but got the tensor x"),
        ("negative", "index 0 of out: expected 0 or more, for indices count from the start, but got -1"),
        ("rank", "out: expected 1 index, one for each axis of shape (4,), but got 2"),
        ("float", "index 0 of out: expected an int but got float 1.5"),
    ]


# ---- static and device --------------------------------------------------------------------------------------------


def test_a_static_if_does_not_trace_its_other_arm(device, run):
    @warpjit.jit
    def kernel(x, out, *, mode):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        if mode == "double" and x.shape[0] == 32:
            factor = 2
            layout = "a string may differ between static arms"
        elif mode == "half":
            factor = no_such_name
        else:
            factor = "also not traced".nothing
        if not layout:
            T.nothing_like_this()
        out[lane] = x[lane] * factor if factor < 3 else nonsense
        while mode == "never":
            nonsense()

    x = torch.arange(32, dtype=torch.int32, device=device)
    out = ints(device)
    run(kernel, x, out, mode="double")
    assert out.tolist() == [2 * i for i in range(32)]
    assert kinds(kernel, x, out, mode="double") == []


def test_static_values_are_computed_by_python():
    @warpjit.jit
    def kernel(out, *, n):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        size = (n + 7) // 8 * 2**3 - 1
        text = f"{size:>4}{'!' * 2}{n!r}"
        inside = 3 in (1, 2, 3) and "a" not in "xyz" and size is not None
        pieces = [1, 2, *(3, 4)]
        mixed = {"a": 1} if False else pieces[1:][0]
        out[0] = size + len(text) + inside + pieces[-1] + mixed + (0.5 + 1) * 2 + (7 @ TIMES)
        if text != "  15!!9" or n / 2 != 4.5 or ~n != -10 or -n % 4 != 3:
            out[0] = no_such_name

    class Times:
        def __rmatmul__(self, other):
            return other

    TIMES = Times()
    specs = (torch.empty(1),)
    assert rows(kernel, *specs, n=9) == ["store.global.f32"]
    assert f"{15 + 7 + 1 + 4 + 2 + 3.0 + 7:.1f}" in kernel.source(*specs, n=9)


def test_errors_of_python_on_static_values_are_the_programs():
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        a = (1, 2)[5]  #: index
        b = "a" + 1  #: types
        c = (1).nothing  #: attribute
        d = len(5)  #: call
        e = int("x")  #: value
        f = 5(3)  #: called
        out[0] = 1

    assert reported(kernel, ONE) == [
        ("index", "IndexError: tuple index out of range"),
        ("types", 'TypeError: can only concatenate str (not "int") to str'),
        ("attribute", "AttributeError: 'int' object has no attribute 'nothing'"),
        ("call", "TypeError: object of type 'int' has no len()"),
        ("value", "ValueError: invalid literal for int() with base 10: 'x'"),
        ("called", "int 5 cannot be called"),
    ]


def test_a_static_range_is_first_a_device_loop():
    @warpjit.jit
    def kernel(out, *, expand):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        r = T.alloc_local((4,), "int32")
        r[0] = 1
        for i in range(4):
            if expand:
                r[i] = 1
            out[i] = i
        out[4] = r[0]

    assert kinds(kernel, FEW, expand=False) == ["Allocate", "For"]
    assert kinds(kernel, FEW, expand=True) == ["Allocate"]
    assert rows(kernel, FEW, expand=True).count("store.global.s32") == 5


def test_a_name_assigned_where_the_other_arm_returns(device, run):
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        if lane >= n:
            return
        else:
            v = x[lane] * 2
            row = x.sub[lane : lane + 1]
            pair = (v, lane + 5)
            layout = TileLayout(S[4])
        out[0, lane] = v
        out[1, lane] = row[0]
        out[2, lane] = pair[0] + pair[1]
        out[3, lane] = layout.size()

    x = torch.arange(32, dtype=torch.int32, device=device)
    out = ints(device, 4, 32)
    run(kernel, 20, x, out)
    for lane, got in enumerate(out.T.tolist()):
        assert got == ([2 * lane, lane, 3 * lane + 5, 4] if lane < 20 else [-12345] * 4)


@pytest.mark.parametrize("value", (0, 3))
def test_a_branch_on_a_number_means_not_zero(value, device, run):
    @warpjit.jit
    def kernel(n: T.int32, f: T.float32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        out[0] = 1 if n else 2
        if not f:
            out[1] = 5
        if (n and f) or n > 7:
            out[2] = 6
        k = 0
        while n - k:
            k += 1
        out[3] = k

    out = ints(device, 4)
    run(kernel, value, float(value), out)
    assert out.tolist() == [1 if value else 2, -12345 if value else 5, 6 if value else -12345, value]


def test_and_of_numbers_is_refused_where_python_would_give_the_number():
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        out[0] = n or 5  #: value

    assert reported(kernel, 3, ONE) == [
        (
            "value",
            "or: expected bools but got a scalar of type int32: compare it, since 'or' gives a bool on the device",
        )
    ]
