"""Operators over all pairs of edge values, of each type and of mixed types: Python's results, wrapped to the width.

What `test_python_meaning` leaves out: comparisons, operands of two types, literals on either side at the edges, counts
below zero, floor division and modulo of floats with infinities and zeros.
"""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
import torch
from both import run_both, unbuilt

from warpjit import T, warpjit
from warpjit.ir import numerics
from warpjit.ir.dtypes import dtype, promote

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
BUILT = ("int16", "int64")
"""Of the many kernels the one that is built for every target."""

ONE = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def edges(name: str) -> list[int]:
    kind = dtype(name)
    near = [
        kind.min,
        kind.min + 1,
        kind.max // 2,
        kind.max - 1,
        kind.max,
        *range(-3, 4),
        -100,
        100,
        -128,
        127,
        128,
        255,
    ]
    return sorted({n for n in near if kind.min <= n <= kind.max})


def wrapped(value: int, name: str) -> int:
    kind = dtype(name)
    value &= (1 << kind.bits) - 1
    return value - (1 << kind.bits) if kind.signed and value >> kind.bits - 1 else value


def column(values: list[int], name: str, device: str) -> torch.Tensor:
    return torch.from_numpy(np.array(values, dtype=object).astype(name)).to(device)


@warpjit
def mixed(X, Y, Truths, Numbers):
    """Comparisons, and + - * // % min max & | ^ of two types."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=X.shape[0] // 32, block=32))
    i = 32 * T.cuda.block_idx() + T.cuda.lane_id()
    x, y = X[i], Y[i]
    for k, value in enumerate((x == y, x != y, x < y, x <= y, x > y, x >= y, x < y < x, not x, bool(y))):
        Truths[k, i] = value
    safe = y if y != 0 else y + 1
    results = (x + y, x - y, x * y, x // safe, x % safe, min(x, y), max(x, y), x & y, x | y, x ^ y)
    for k, value in enumerate(results):
        Numbers[k, i] = value


def meet(a: str, b: str) -> str | None:
    try:
        return promote(dtype(a), dtype(b)).name
    except Exception:
        return None


@pytest.mark.parametrize("left", INTEGERS)
def test_integers_of_two_types(device, run, left):
    for right in INTEGERS:
        common = meet(left, right)
        if common is None:
            continue
        pairs = [(a, b) for a in edges(left) for b in edges(right)]
        pairs += pairs[: -len(pairs) % 32]
        truths = torch.zeros((9, len(pairs)), dtype=torch.bool, device=device)
        numbers = torch.zeros((10, len(pairs)), dtype=getattr(torch, common), device=device)
        x, y = (column([pair[side] for pair in pairs], name, device) for side, name in ((0, left), (1, right)))
        (run if (left, right) == BUILT else unbuilt)(mixed, x, y, truths, numbers)
        want = [[compare(a, b) for a, b in pairs] for compare in ONE]
        want += [[a < b < a for a, b in pairs], [not a for a, _ in pairs], [bool(b) for _, b in pairs]]
        assert truths.tolist() == want, (left, right)
        functions = (
            *(operator.add, operator.sub, operator.mul, lambda a, b: a // (b or 1), lambda a, b: a % (b or 1)),
            *(min, max, operator.and_, operator.or_, operator.xor),
        )
        for got, function in zip(numbers.tolist(), functions, strict=True):
            assert got == [wrapped(function(a, b), common) for a, b in pairs], (left, right, function)


@warpjit
def with_literals(X, Truths, Numbers, *, literals):
    """Each literal on the right and on the left."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    i = T.cuda.lane_id()
    x = X[i]
    for k, c in enumerate(literals):
        for n, value in enumerate((x == c, x < c, x >= c, c > x, c <= x)):
            Truths[k, n, i] = value
        safe = x if x != 0 else x + 1
        results = (x + c, c - x, x * c, c // safe, c % safe, min(x, c), max(c, x), x & c, c | x, c ^ x)
        for n, value in enumerate(results):
            Numbers[k, n, i] = value
        if c != 0:
            Numbers[k, 10, i] = x // c
            Numbers[k, 11, i] = x % c


@pytest.mark.parametrize("name", INTEGERS)
def test_literals_at_the_edges(device, run, name):
    x, literals = (
        (edges(name) * 4)[:32],
        tuple(n for n in edges(name) if n in (dtype(name).min, dtype(name).max, -1, 0, 3)),
    )
    truths = torch.zeros((len(literals), 5, 32), dtype=torch.bool, device=device)
    numbers = torch.zeros((len(literals), 12, 32), dtype=getattr(torch, name), device=device)
    (run if name == BUILT[0] else unbuilt)(with_literals, column(x, name, device), truths, numbers, literals=literals)
    for c, got, flags in zip(literals, numbers.tolist(), truths.tolist(), strict=True):
        assert flags == [[a == c for a in x], [a < c for a in x], [a >= c for a in x], [c > a for a in x],
                         [c <= a for a in x]]  # fmt: skip
        functions = (
            *(lambda a, c: a + c, lambda a, c: c - a, lambda a, c: a * c, lambda a, c: c // (a or 1)),
            *(lambda a, c: c % (a or 1), min, max, operator.and_, operator.or_, operator.xor),
            *(lambda a, c: a // c if c else 0, lambda a, c: a % c if c else 0),
        )
        for row, function in zip(got, functions, strict=True):
            assert row == [wrapped(function(a, c), name) for a in x], (name, c)


@warpjit
def shifted(X, Counts, Out):
    """By counts of another type, below zero and beyond the width."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=X.shape[0] // 32, block=32))
    i = 32 * T.cuda.block_idx() + T.cuda.lane_id()
    Out[0, i] = X[i] << Counts[i]
    Out[1, i] = X[i] >> Counts[i]


@pytest.mark.parametrize("count", ("int8", "uint8", "int64", "uint32"))
def test_shifts_by_counts_of_another_type(device, run, count):
    """A count outside of the width, also one below zero, moves every bit out."""
    for name in INTEGERS:
        bits, kind = dtype(name).bits, dtype(count)
        counts = [n for n in (0, 1, bits - 1, bits, bits + 1, 127, -1, -8, 256, 2**31 - 1) if kind.min <= n <= kind.max]
        pairs = [(a, b) for a in edges(name) for b in counts]
        pairs += pairs[: -len(pairs) % 32]
        out = torch.zeros((2, len(pairs)), dtype=getattr(torch, name), device=device)
        x, by = (column([pair[side] for pair in pairs], each, device) for side, each in ((0, name), (1, count)))
        (run if (name, count) == BUILT else unbuilt)(shifted, x, by, out)
        left = [wrapped(a << b, name) if 0 <= b < bits else 0 for a, b in pairs]
        right = [a >> (b if 0 <= b < bits else bits) for a, b in pairs]
        assert out.tolist() == [left, right], (name, count)


FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, -7.25, 1e-3, 6e4, -6e4, math.inf, -math.inf, math.nan, 0.1)


@warpjit(contract=False)
def of_floats(X, Y, Truths, Numbers):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=X.shape[0] // 32, block=32))
    i = 32 * T.cuda.block_idx() + T.cuda.lane_id()
    x, y = X[i], Y[i]
    for k, value in enumerate((x == y, x != y, x < y, x <= y, x > y, x >= y, not x, bool(y))):
        Truths[k, i] = value
    for k, value in enumerate((x // y, x % y, x / y, min(x, y), max(x, y), abs(x), -y, x * y)):
        Numbers[k, i] = value


@pytest.mark.parametrize("name", FLOATS)
def test_floats_with_infinities_and_zeros(device, run, name):
    kind = dtype(name)
    x, y = (grid.reshape(-1).astype(kind.numpy) for grid in np.meshgrid(NUMBERS, NUMBERS))
    given = [torch.from_numpy(side.view(np.uint8)).view(getattr(torch, name)).to(device) for side in (x, y)]
    truths = torch.zeros((8, len(x)), dtype=torch.bool, device=device)
    numbers = torch.zeros((8, len(x)), dtype=getattr(torch, name), device=device)
    run_both(run if name == "bfloat16" else unbuilt, of_floats, *given, truths, numbers)
    a, b = x.astype(np.float64), y.astype(np.float64)
    want = [compare(a, b) for compare in ONE] + [a == 0, b != 0]
    assert np.array_equal(truths.cpu().numpy(), np.stack(want))
    functions = (numerics.floor_quotient, numerics.floor_remainder, numerics.divide, numerics.minimum, numerics.maximum)
    expected = [function(x, y) for function in functions]
    expected += [numerics.absolute(x), numerics.negate(y), numerics.multiply(x, y)]
    for k, value in enumerate(expected):
        got = numbers[k].cpu().contiguous().view(torch.uint8).numpy()
        assert got.tobytes() == value.tobytes(), k
    finite = np.isfinite(a) & np.isfinite(b) & (b != 0)
    if name == "float64":  # Python's own
        pairs = list(zip(a[finite].tolist(), b[finite].tolist(), strict=True))
        assert numbers[0].cpu().numpy()[finite].tolist() == [p // q for p, q in pairs]
        assert numbers[1].cpu().numpy()[finite].tolist() == [p % q for p, q in pairs]
