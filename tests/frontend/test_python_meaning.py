"""Operators keep Python's meaning, at the width of their types."""

from __future__ import annotations

import itertools
import operator

import ml_dtypes
import numpy as np
import pytest
import torch
from language_cases import reported, rows

import warpjit
from warpjit import T

WIDTHS = {
    "int8": (8, True), "int16": (16, True), "int32": (32, True), "int64": (64, True),
    "uint8": (8, False), "uint16": (16, False), "uint32": (32, False), "uint64": (64, False),
}  # fmt: skip


def limits(name: str) -> tuple[int, int]:
    bits, signed = WIDTHS[name]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def wrapped(value: int, name: str) -> int:
    bits, signed = WIDTHS[name]
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> bits - 1 else value


def tensor(values, name: str, device: str) -> torch.Tensor:
    return torch.tensor(np.array(values, dtype=name), device=device)


def numbers(name: str) -> list[int]:
    low, high = limits(name)
    return [n for n in (low, low + 1, -7, -3, -1, 0, 1, 2, 3, 7, 100, high - 1, high) if low <= n <= high]


def add(a, b):
    return a + b


def subtract(a, b):
    return a - b


def multiply(a, b):
    return a * b


def floor_divide(a, b):
    return a // b


def modulo(a, b):
    return a % b


def both(a, b):
    return a & b


def either(a, b):
    return a | b


def one(a, b):
    return a ^ b


def smaller(a, b):
    return min(a, b)


def larger(a, b):
    return max(a, b)


INTEGER_OPERATIONS = (add, subtract, multiply, both, either, one, smaller, larger)
DIVISIONS = (floor_divide, modulo)


@warpjit.jit
def binary_operations(x, y, out, *, operations):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=x.shape[0] // 32, block=32))
    i = 32 * T.cuda.block_idx() + T.cuda.lane_id()
    for k, operation in enumerate(operations):
        out[k, i] = operation(x[i], y[i])


def padded(pairs: list) -> list:
    return pairs + pairs[:1] * (-len(pairs) % 32)


@pytest.mark.parametrize("name", WIDTHS)
def test_integer_arithmetic_wraps_at_its_width(name, device, run):
    pairs = padded(list(itertools.product(numbers(name), numbers(name))))
    x, y = ([pair[side] for pair in pairs] for side in (0, 1))
    out = tensor(np.zeros((len(INTEGER_OPERATIONS), len(pairs))), name, device)
    run(binary_operations, tensor(x, name, device), tensor(y, name, device), out, operations=INTEGER_OPERATIONS)
    for row, operation in zip(out.cpu().numpy(), INTEGER_OPERATIONS, strict=True):
        assert row.tolist() == [wrapped(operation(a, b), name) for a, b in pairs], operation.__name__


@pytest.mark.parametrize("name", WIDTHS)
def test_division_floors_for_every_sign(name, device, run):
    low = limits(name)[0]
    values = numbers(name)
    pairs = padded([(a, b) for a in values for b in values if b and not (a == low and b == -1)])
    x, y = ([pair[side] for pair in pairs] for side in (0, 1))
    out = tensor(np.zeros((2, len(pairs))), name, device)
    run(binary_operations, tensor(x, name, device), tensor(y, name, device), out, operations=DIVISIONS)
    for row, operation in zip(out.cpu().numpy(), DIVISIONS, strict=True):
        assert row.tolist() == [operation(a, b) for a, b in pairs], operation.__name__


@warpjit.jit
def division_by_constants(x, out, *, divisors):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    for k, d in enumerate(divisors):
        out[0, k, lane] = x[lane] // d
        out[1, k, lane] = x[lane] % d
        out[2, k, lane] = (lane - 16) // d
        out[3, k, lane] = (lane - 16) % d
        out[4, k, lane] = (8 * lane + x[lane] % 8 - 100) // d
        out[5, k, lane] = (8 * lane + x[lane] % 8 - 100) % d


def test_division_by_constants_floors(device, run):
    divisors = (1, -1, 2, -2, 3, -3, 4, 7, -7, 8, 16, -16, 32, 1000)
    x = [-(2**31) + 1, -(2**31) + 7, -1000, -33, -32, -31, -17, -16, -15, -9, -8, -7, -4, -3, -2, -1]
    x += [0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 1000, 2**31 - 1]
    out = torch.zeros((6, len(divisors), 32), dtype=torch.int32, device=device)
    run(division_by_constants, tensor(x, "int32", device), out, divisors=divisors)
    got = out.cpu().tolist()
    for k, d in enumerate(divisors):
        assert got[0][k] == [v // d for v in x]
        assert got[1][k] == [v % d for v in x]
        assert got[2][k] == [(lane - 16) // d for lane in range(32)]
        assert got[3][k] == [(lane - 16) % d for lane in range(32)]
        mixed = [8 * lane + v % 8 - 100 for lane, v in enumerate(x)]
        assert got[4][k] == [v // d for v in mixed]
        assert got[5][k] == [v % d for v in mixed]


def test_division_by_a_static_zero_is_an_error():
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        out[0] = T.cuda.lane_id() // 0  #: quotient
        out[1] = T.cuda.lane_id() % 0  #: rest
        out[2] = 1 // 0  #: python

    assert reported(kernel, T.Tensor((4,), "int32")) == [
        ("quotient", "division by zero"),
        ("rest", "division by zero"),
        ("python", "ZeroDivisionError: integer division or modulo by zero"),
    ]


# ---- shifts, unary --------------------------------------------------------------------------------------------


@warpjit.jit
def shifts(x, counts, out, *, static_counts):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    for k in range(counts.shape[0]):
        out[0, k, lane] = x[lane] << counts[k]
        out[1, k, lane] = x[lane] >> counts[k]
    for k, count in enumerate(static_counts):
        out[2, k, lane] = x[lane] << count
        out[3, k, lane] = x[lane] >> count


@pytest.mark.parametrize("name", WIDTHS)
def test_shifts_by_the_width_or_more(name, device, run):
    bits, _ = WIDTHS[name]
    counts = (0, 1, 3, bits - 2, bits - 1, bits, bits + 1, 100)
    x = (numbers(name) * 4)[:32]
    out = tensor(np.zeros((4, len(counts), 32)), name, device)
    run(shifts, tensor(x, name, device), tensor(counts, name, device), out, static_counts=counts)
    got = out.cpu().tolist()
    for k, count in enumerate(counts):
        left = [wrapped(v << count, name) for v in x]
        right = [v >> count for v in x]
        assert (got[0][k], got[1][k], got[2][k], got[3][k]) == (left, right, left, right), count


@warpjit.jit
def unary_operations(x, out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    out[0, lane] = -x[lane]
    out[1, lane] = +x[lane]
    out[2, lane] = ~x[lane]
    out[3, lane] = abs(x[lane])
    out[4, lane] = x[lane] ** 3


@pytest.mark.parametrize("name", WIDTHS)
def test_unary_operators_wrap(name, device, run):
    x = (numbers(name) * 4)[:32]
    out = tensor(np.zeros((5, 32)), name, device)
    run(unary_operations, tensor(x, name, device), out)
    functions = (operator.neg, operator.pos, operator.invert, abs, lambda v: v**3)
    for row, function in zip(out.cpu().tolist(), functions, strict=True):
        assert row == [wrapped(function(v), name) for v in x]


# ---- floats ---------------------------------------------------------------------------------------------------

FLOAT_NUMPY = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}
FLOAT_VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.75, 3.0, 0.1, -0.3, 7.0, 100.0, -33.3, 1e-4, 255.0, 1000.5]


@warpjit.jit(contract=False)
def float_operations(x, y, z, out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=x.shape[0] // 32, block=32))
    i = 32 * T.cuda.block_idx() + T.cuda.lane_id()
    out[0, i] = x[i] + y[i]
    out[1, i] = x[i] - y[i]
    out[2, i] = x[i] * y[i]
    out[3, i] = x[i] / y[i]
    out[4, i] = T.sqrt(abs(x[i]))
    out[5, i] = T.fma(x[i], y[i], z[i])
    out[6, i] = x[i] * y[i] + z[i]
    out[7, i] = -x[i]
    out[8, i] = x[i] // y[i]
    out[9, i] = x[i] % y[i]


def fused(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """One rounding of the exact sum: products of 16-bit floats are exact in float64, of float32 in long double."""
    wide = np.longdouble if x.dtype == np.float32 else np.float64
    with np.errstate(all="ignore"):
        return (x.astype(wide) * y.astype(wide) + z.astype(wide)).astype(x.dtype)


@pytest.mark.parametrize("name", FLOAT_NUMPY)
def test_floats_round_once_an_operation(name, device, run):
    kind = FLOAT_NUMPY[name]
    values = np.array(FLOAT_VALUES).astype(kind)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(values, values[values != 0]))
    x, y = (np.concatenate([side, np.ones(-len(side) % 32, kind)]) for side in (x, y))
    z = np.resize(values, len(x)).astype(kind)
    wide = np.float64 if name == "float64" else np.float32

    def torch_of(array):
        return torch.tensor(array.astype(np.float64), dtype=getattr(torch, name), device=device)

    out = torch.zeros((10, len(x)), dtype=getattr(torch, name), device=device)
    run(float_operations, torch_of(x), torch_of(y), torch_of(z), out)
    got = out.cpu().to(torch.float64).numpy()

    def rounded(function, *arrays):
        with np.errstate(all="ignore"):
            return function(*(array.astype(wide) for array in arrays)).astype(kind)

    expected = [
        rounded(np.add, x, y), rounded(np.subtract, x, y), rounded(np.multiply, x, y), rounded(np.divide, x, y),
        rounded(lambda a: np.sqrt(np.abs(a)), x), None if name == "float64" else fused(x, y, z),
        rounded(np.add, rounded(np.multiply, x, y), z),
        -x, rounded(np.floor_divide, x, y), rounded(np.mod, x, y),
    ]  # fmt: skip
    for row, want in zip(got, expected, strict=True):
        if want is not None:
            np.testing.assert_array_equal(row, want.astype(np.float64))
            np.testing.assert_array_equal(np.signbit(row), np.signbit(want.astype(np.float64)))


def test_a_16_bit_fma_is_one_row():
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        out[0] = T.fma(x[0], x[1], x[2])

    specs = [T.Tensor((4,), "float16")] * 2
    assert rows(kernel, *specs).count("fma.f16") == 1
    assert not any(text.startswith(("mul", "cvt")) for text in rows(kernel, *specs))
