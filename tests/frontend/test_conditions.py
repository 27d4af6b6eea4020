"""Comparisons, `and`, `or`, `not` and conditional expressions: each operand once, and only where Python reaches it."""

from __future__ import annotations

import operator

import pytest
import torch
from language_cases import reported

import warpjit
from warpjit import T

# ---- comparisons ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ("int32", "uint32", "int64", "float32", "float16"))
def test_comparisons(name, device, run):
    @warpjit.jit
    def kernel(x, y, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        out[0, i] = x[i] == y[i]
        out[1, i] = x[i] != y[i]
        out[2, i] = x[i] < y[i]
        out[3, i] = x[i] <= y[i]
        out[4, i] = x[i] > y[i]
        out[5, i] = x[i] >= y[i]

    x = [k % 5 for k in range(32)]
    y = [k // 8 for k in range(32)]
    if name.startswith("float"):
        x[3] = y[3] = x[4] = float("nan")
    kind = getattr(torch, name)
    out = torch.zeros((6, 32), dtype=torch.bool, device=device)
    run(kernel, torch.tensor(x, dtype=kind, device=device), torch.tensor(y, dtype=kind, device=device), out)
    functions = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
    for row, function in zip(out.tolist(), functions, strict=True):
        assert row == [function(a, b) for a, b in zip(x, y, strict=True)]


def test_a_chain_evaluates_its_middle_once(device, run):
    @warpjit.jit
    def kernel(x, calls, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()

        def counted(value):
            calls[i] += 1
            return value

        out[0, i] = 3 < counted(x[i]) <= 20
        out[1, i] = 5 < x[i] < counted(x[i]) + 1 < 12

    x = torch.arange(32, dtype=torch.int32, device=device)
    calls = torch.zeros_like(x)
    out = torch.zeros((2, 32), dtype=torch.int32, device=device)
    run(kernel, x, calls, out)
    assert out[0].tolist() == [3 < v <= 20 for v in range(32)]
    assert out[1].tolist() == [5 < v < v + 1 < 12 for v in range(32)]
    assert calls.tolist() == [1 + (v > 5) for v in range(32)]


# ---- and, or, not, conditional expressions ----------------------------------------------------------------------


def test_the_right_side_of_and_and_or_is_reached_only_where_it_must_be(device, run):
    @warpjit.jit
    def kernel(x, divisor, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        n = x.shape[0]
        out[0, i] = i < n and x[i] > 2  # beyond n the load would be out of bounds
        out[1, i] = i >= n or x[i] > 2
        out[2, i] = divisor[i] != 0 and 10 // divisor[i] == 5
        out[3, i] = divisor[i] == 0 or 10 % divisor[i] == 0
        out[4, i] = not (i < n and x[i] > 2)
        d = divisor[i]
        out[5, i] = d > 0 and 10 // d == 2
        out[6, i] = 10 // d if d > 0 else -1
        out[7, i] = x[i] if i < n else -1

    x = torch.arange(8, dtype=torch.int32, device=device)
    divisor = (torch.arange(32, dtype=torch.int32) % 6).to(device)
    out = torch.zeros((8, 32), dtype=torch.int32, device=device)
    run(kernel, x, divisor, out)
    for i, got in enumerate(out.T.tolist()):
        d = i % 6
        inside = i < 8 and i > 2
        assert got == [
            inside, i >= 8 or i > 2, d != 0 and 10 // d == 5, d == 0 or 10 % d == 0, not inside, d > 0 and 10 // d == 2,
            10 // d if d > 0 else -1, i if i < 8 else -1,
        ]  # fmt: skip


def test_pure_conditions_and_choices_make_no_branch():
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        v = x[i]
        out[i] = (v * 2 if (v > 3 and v < 9) or v == 20 else v + 1) + (7 if i < 4 else 9)

    specs = [T.Tensor((32,), "int32")] * 2
    source = kernel.source(*specs)
    assert "if (" not in source
    assert source.count("?") == 2


def test_impure_arms_make_a_branch_and_run_alone(device, run):
    @warpjit.jit
    def kernel(x, y, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        out[i] = x[i] if i < 4 else y[i - 4]

    x = torch.arange(4, dtype=torch.int32, device=device)
    y = torch.arange(100, 128, dtype=torch.int32, device=device)
    out = torch.zeros(32, dtype=torch.int32, device=device)
    run(kernel, x, y, out)
    assert out.tolist() == [*range(4), *range(100, 128)]
    assert "if (" in kernel.source(x, y, out)


def test_a_choice_has_the_type_in_which_its_arms_meet(device, run):
    @warpjit.jit
    def kernel(x, f, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        v, r = x[i], f[i]
        wide = T.int64(v) if i < 40 else 2**40
        v = T.int32(wide)
        out[0, i] = v if i < 4 else r  # pure: both are there
        out[1, i] = x[i] if i < 4 else f[i]  # a branch
        out[2, i] = x[i] if i < 4 else 0.5
        out[3, i] = 1 if i < 4 else f[i]
        out[4, i] = (i < 2) if i < 4 else x[i]
        out[5, i] = 1 if i < 4 else 0.5
        out[6, i] = True if i < 4 else x[i]

    x = torch.arange(32, dtype=torch.int32, device=device)
    f = torch.arange(32, device=device) * 0.25
    out = torch.zeros((7, 32), device=device)
    run(kernel, x, f, out)
    for i, got in enumerate(out.T.tolist()):
        low = i < 4
        assert got == [
            i if low else i / 4, i if low else i / 4, i if low else 0.5, 1 if low else i / 4, i < 2 if low else i,
            1 if low else 0.5, 1 if low else i,
        ]  # fmt: skip


def test_what_a_guard_taught_is_forgotten_after_it(device, run):
    """The right side of `and` is computed everywhere when it is pure: it must not leave facts that hold only there."""

    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        i = T.cuda.thread_idx()
        inside = i < 10 and i + 5 < 12
        chosen = i + 7 if i < 8 else 0
        y = i + 5
        z = i + 7
        out[0, i] = y // 16
        out[1, i] = z // 16
        out[2, i] = inside + chosen

    out = torch.zeros((3, 64), dtype=torch.int32, device=device)
    run(kernel, out)
    for i, got in enumerate(out.T.tolist()):
        assert got == [(i + 5) // 16, (i + 7) // 16, (i + 5 < 12) + (i + 7 if i < 8 else 0)]


def test_operands_run_from_left_to_right(device, run):
    @warpjit.jit
    def kernel(order, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        count = T.alloc_local((1,), "int32")
        count[0] = 0

        def step(value):
            order[value] = count[0]
            count[0] += 1
            return value

        out[step(0)] = step(1) + step(2) * step(3)
        out[step(4)] += max(step(5), step(6))

    order = torch.full((7,), -1, dtype=torch.int32, device=device)
    out = torch.zeros(7, dtype=torch.int32, device=device)
    run(kernel, order, out)
    assert order.tolist() == [3, 0, 1, 2, 4, 5, 6]
    assert out.tolist() == [7, 0, 0, 0, 6, 0, 0]


def test_operators_of_what_has_no_number():
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        out[0] = x + 1  #: tensor
        out[0] = i + "a"  #: string
        out[0] = i + None  #: none
        out[0] = i in "12"  #: member
        out[0] = i**i  #: power
        out[0] = x[0] & 1  #: bits
        out[0] = 1.5 << i  #: shift

    assert reported(kernel, T.Tensor((4,), "float32"), T.Tensor((4,), "float32")) == [
        ("tensor", "add: expected a number but got the tensor x: read an element with an index"),
        ("string", "expected a number but got str 'a'"),
        ("none", "expected a number but got None"),
        ("member", "'in' of device values: expected a tuple of numbers but got str '12'"),
        ("power", "**: expected an exponent from 1 to 16, known while tracing, but got a scalar of type int32"),
        ("bits", "and is not defined for float32"),
        ("shift", "expected an integer to shift but got a scalar of type float32"),
    ]


def test_names_bound_inside_of_expressions(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        if (v := x[i]) > 3 and v % 2 == 0:
            out[0, i] = v
        else:
            out[0, i] = -v
        k = i
        while (k := k - 3) > 4:
            out[1, i] = k
        out[2, i] = (w := i * 2) + w + k
        if i < 20 and (u := x[i]) > 5:
            out[3, i] = 1
        u = i
        out[4, i] = u

    x = torch.arange(32, dtype=torch.int32, device=device)
    out = torch.zeros((5, 32), dtype=torch.int32, device=device)
    run(kernel, x, out)
    for i, got in enumerate(out.T.tolist()):
        steps = list(range(i - 3, 4, -3))
        k = i - 3 * (len(steps) + 1)
        assert got == [
            i if i > 3 and i % 2 == 0 else -i, steps[-1] if steps else 0, 4 * i + k, int(5 < i < 20), i
        ]  # fmt: skip
