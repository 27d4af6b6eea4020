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
        rounded(lambda a: np.sqrt(np.abs(a)), x), None if name == "float64" else fused(x, y, z), rounded(np.add, rounded(np.multiply, x, y), z),
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


# ---- promotion ------------------------------------------------------------------------------------------------

TYPES = ("bool", *WIDTHS, "float16", "bfloat16", "float32", "float64")


@warpjit.jit
def type_of_sum(a, b, *, expected):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    assert_type((a[0] + b[0]).dtype, expected)


def assert_type(found, expected):
    if repr(found) != expected:
        raise AssertionError(f"{found} is not {expected}")


@pytest.mark.parametrize("left", TYPES)
def test_operands_meet_in_torchs_type(left):
    for right in TYPES:
        unsigned = [name for name in (left, right) if name in ("uint16", "uint32", "uint64")]
        signed = [name for name in (left, right) if name.startswith("int")]
        tensors = [T.Tensor((1,), left), T.Tensor((1,), right)]
        if unsigned and signed:
            with pytest.raises(warpjit.TraceError, match=f"{left} and {right} have no common type: cast one of them"):
                type_of_sum.source(*tensors, expected="")
            continue
        if left == right == "bool":
            expected = "int32"
        elif unsigned and right.startswith("uint") and left.startswith("uint"):
            expected = max(left, right, key=lambda name: int(name[4:]))
        elif "bool" in (left, right) or unsigned:
            expected = left if right == "bool" or left.startswith(("f", "bf")) else right
        else:
            expected = str(torch.promote_types(getattr(torch, left), getattr(torch, right))).removeprefix("torch.")
        type_of_sum.source(*tensors, expected=f"T.{expected}")


def test_the_error_of_mixed_signs_names_casts():
    @warpjit.jit
    def kernel(a, b, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        out[0] = a[0] + b[0]  #: here
        out[0] = a[0] < b[0]  #: less
        out[0] = T.int64(a[0]) + b[0]

    specs = T.Tensor((1,), "uint32"), T.Tensor((1,), "int32"), T.Tensor((1,), "int64")
    sentence = (
        "uint32 and int32 have no common type: cast one of them, for example the uint32 operand with T.int64(...) or "
        "the int32 operand with T.uint32(...)"
    )
    assert reported(kernel, *specs) == [("here", sentence), ("less", sentence)]


def test_literals_take_the_other_sides_type_and_must_fit():
    @warpjit.jit
    def kernel(a, b, h, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        assert_type((a[0] + 1).dtype, "T.uint8")
        assert_type((b[0] + 1).dtype, "T.int64")
        assert_type((h[0] + 1).dtype, "T.float16")
        assert_type((h[0] * 0.1).dtype, "T.float16")
        assert_type((a[0] + 1.5).dtype, "T.float32")
        assert_type((b[0] / 2).dtype, "T.float32")
        out[0] = a[0] + 256  #: large
        out[0] = a[0] - -1  #: negative
        out[0] = h[0] + 1e6  #: half
        out[0] = a[0] < 300  #: compared

    specs = T.Tensor((1,), "uint8"), T.Tensor((1,), "int64"), T.Tensor((1,), "float16"), T.Tensor((1,), "float32")
    assert reported(kernel, *specs) == [
        ("large", "the literal 256 does not fit uint8 (0 to 255)"),
        ("negative", "the literal -1 does not fit uint8 (0 to 255)"),
        ("half", "the literal 1000000.0 is too large for float16"),
        ("compared", "the literal 300 does not fit uint8 (0 to 255)"),
    ]


def test_bools_in_arithmetic_are_ints(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        low, odd = i < 16, i % 2 == 1
        out[0, i] = low + odd
        out[1, i] = low * 3 - odd
        out[2, i] = low & odd
        out[3, i] = low ^ odd
        out[4, i] = (low | odd) == True  # noqa: E712
        out[5, i] = -low
        out[6, i] = ~odd
        out[7, i] = low << 2
        out[8, i] = x[i] * low
        out[9, i] = not low
        out[10, i] = low < odd

    out = torch.zeros((11, 32), dtype=torch.int32, device=device)
    run(kernel, torch.arange(32, device=device, dtype=torch.int32), out)
    expected = []
    for i in range(32):
        low, odd = i < 16, i % 2 == 1
        expected.append([low + odd, low * 3 - odd, low & odd, low ^ odd, low | odd, -low, ~int(odd), low << 2, i * low,
                         not low, low < odd])  # fmt: skip
    assert out.T.tolist() == [[int(v) for v in row] for row in expected]


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
        out[i] = (v * 2 if v > 3 and v < 9 or v == 20 else v + 1) + (7 if i < 4 else 9)

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
        out[0] = i in (1, 2)  #: member
        out[0] = i ** i  #: power
        out[0] = x[0] & 1  #: bits
        out[0] = 1.5 << i  #: shift

    assert reported(kernel, T.Tensor((4,), "float32"), T.Tensor((4,), "float32")) == [
        ("tensor", "add of a tensor: operations work on elements, read them with an index"),
        ("string", "expected a number but got str 'a'"),
        ("none", "expected a number but got None"),
        ("member", "'in' of a device value: only == != < <= > >= compare scalars"),
        ("power", "** of a device value needs an exponent from 1 to 16 that is known while tracing"),
        ("bits", "and is not defined for float32"),
        ("shift", "expected an integer to shift but got a scalar of type float32"),
    ]
