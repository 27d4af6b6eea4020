"""Scalar arithmetic against Python's integers and exact fractions, and the corner results that an H200 returned."""

from __future__ import annotations

import itertools
import math
import operator
import warnings
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from exact_floats import COMPUTING_FLOATS, FIELDS, bits_of, exact, is_nan, nearest, random_bits, typed

from warpjit.errors import TraceError
from warpjit.ir import numerics
from warpjit.ir.dtypes import DTYPES, dtype

Array = np.ndarray[Any, Any]
Operation = Callable[..., Any]

INTEGERS = tuple(name for name, each in DTYPES.items() if each.is_int and each.bits >= 8)
NAN = {"float16": 0x7FFF, "bfloat16": 0x7FFF, "float32": 0x7FFFFFFF, "float64": 0xFFF8000000000000}


def seeded(*names: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(" ".join(names).encode()))


def wrapped(value: int, name: str) -> int:
    kind = dtype(name)
    return (value - kind.min) % (1 << kind.bits) + kind.min


@pytest.fixture(autouse=True)
def no_numpy_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# Integers -----------------------------------------------------------------------------------------------------------


def truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


INTEGER_OPERATIONS: dict[str, tuple[Operation, Operation]] = {
    "add": (numerics.add, operator.add),
    "subtract": (numerics.subtract, operator.sub),
    "multiply": (numerics.multiply, operator.mul),
    "floor_quotient": (numerics.floor_quotient, operator.floordiv),
    "floor_remainder": (numerics.floor_remainder, operator.mod),
    "truncated_quotient": (numerics.truncated_quotient, truncated),
    "truncated_remainder": (numerics.truncated_remainder, lambda x, y: x - y * truncated(x, y)),
    "minimum": (numerics.minimum, min),
    "maximum": (numerics.maximum, max),
}
DIVISIONS = ("floor_quotient", "floor_remainder", "truncated_quotient", "truncated_remainder")


def integer_pairs(name: str) -> tuple[Array, Array]:
    """All pairs of 8-bit integers; of wider ones the edges against each other and random values of every size."""
    kind = dtype(name)
    if kind.bits == 8:
        every = np.arange(kind.min, kind.max + 1).astype(kind.numpy)
        return np.repeat(every, 256), np.tile(every, 256)
    rng = seeded(name)
    edges = np.array([kind.min, kind.min + 1, kind.max, kind.max - 1, 0, 1, 2, 3, 7, -1 % (kind.max + 1)], kind.numpy)
    x, y = (typed(random_bits(rng, name, 4000), name) for _ in range(2))
    return np.concatenate([np.repeat(edges, len(edges)), x]), np.concatenate([np.tile(edges, len(edges)), y])


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("operation", INTEGER_OPERATIONS)
def test_integers_wrap(operation: str, name: str) -> None:
    ours, meaning = INTEGER_OPERATIONS[operation]
    x, y = integer_pairs(name)
    got = ours(x, y)
    assert got.dtype == x.dtype
    all_ones = wrapped(-1, name)
    for left, right, result in zip(x.tolist(), y.tolist(), got.tolist(), strict=True):
        undefined = right == 0 and operation in DIVISIONS
        assert result == (all_ones if undefined else wrapped(meaning(left, right), name)), (left, right)


@pytest.mark.parametrize("name", INTEGERS)
def test_negate_and_absolute_wrap(name: str) -> None:
    x, _ = integer_pairs(name)
    assert numerics.negate(x).tolist() == [wrapped(-each, name) for each in x.tolist()]
    assert numerics.absolute(x).tolist() == [wrapped(abs(each), name) for each in x.tolist()]


@pytest.mark.parametrize("count_type", ["int32", "uint8", "int64"])
@pytest.mark.parametrize("name", INTEGERS)
def test_shifts_by_any_count(name: str, count_type: str) -> None:
    kind = dtype(name)
    counts = np.arange(70) if count_type == "uint8" else np.arange(-5, 70)
    x, _ = integer_pairs(name)
    values = x[:: len(x) // 60]
    left, right = np.repeat(values, len(counts)), np.tile(counts, len(values)).astype(count_type)
    up, down = numerics.shift_left(left, right), numerics.shift_right(left, right)
    assert up.dtype == down.dtype == kind.numpy
    for value, count, higher, lower in zip(left.tolist(), right.tolist(), up.tolist(), down.tolist(), strict=True):
        reach = count if 0 <= count < kind.bits else kind.bits
        assert higher == wrapped(value << reach, name)
        assert lower == value >> reach


# Floats -------------------------------------------------------------------------------------------------------------


def quotient(x: Fraction, y: Fraction) -> Fraction:
    return x / y


FLOAT_OPERATIONS: dict[str, tuple[Operation, Callable[[Fraction, Fraction], Fraction]]] = {
    "add": (numerics.add, operator.add),
    "subtract": (numerics.subtract, operator.sub),
    "multiply": (numerics.multiply, operator.mul),
    "divide": (numerics.divide, quotient),
}


@pytest.mark.parametrize("name", COMPUTING_FLOATS)
@pytest.mark.parametrize("operation", FLOAT_OPERATIONS)
def test_float_operations_round_once(operation: str, name: str) -> None:
    """Also those of 16-bit floats, which go through float32: it has bits enough that this cannot be seen."""
    ours, meaning = FLOAT_OPERATIONS[operation]
    rng = seeded(operation, name)
    x, y = random_bits(rng, name, 1200), random_bits(rng, name, 1200)
    x[:200] = y[:200] ^ rng.integers(0, 4, 200).astype(np.uint64)  # nearly cancelling
    got = ours(typed(x, name), typed(y, name))
    assert got.dtype == dtype(name).numpy
    for left, right, result in zip(x.tolist(), y.tolist(), bits_of(got), strict=True):
        a, b = exact(left, name), exact(right, name)
        if isinstance(a, Fraction) and isinstance(b, Fraction) and not (b == 0 and operation == "divide"):
            value = meaning(a, b)
            if value:
                assert result == nearest(value, name), (hex(left), hex(right), hex(result))
            else:
                assert exact(result, name) == 0


@pytest.mark.parametrize("name", COMPUTING_FLOATS)
def test_float_operations_at_infinity_zero_and_nan(name: str) -> None:
    inf, nan = math.inf, math.nan
    cases: list[tuple[Operation, float, float, float]] = [
        (numerics.add, inf, -inf, nan),
        (numerics.add, inf, 1.0, inf),
        (numerics.add, -0.0, -0.0, -0.0),
        (numerics.add, 1.0, -1.0, 0.0),
        (numerics.subtract, inf, inf, nan),
        (numerics.multiply, inf, 0.0, nan),
        (numerics.multiply, -0.0, 1.0, -0.0),
        (numerics.divide, 0.0, 0.0, nan),
        (numerics.divide, 1.0, -0.0, -inf),
        (numerics.divide, inf, inf, nan),
        (numerics.divide, 1.0, -inf, -0.0),
    ]
    for ours, x, y, wanted in cases:
        got = ours(*(np.array([each]).astype(dtype(name).numpy) for each in (x, y)))
        expected = NAN[name] if wanted != wanted else bits_of(np.array([wanted]).astype(dtype(name).numpy))[0]
        assert bits_of(got) == [expected], (ours.__name__, x, y)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "operation", [numerics.add, numerics.multiply, numerics.divide, numerics.minimum, numerics.maximum]
)
def test_narrow_nans_are_canonical(operation: Operation, name: str) -> None:
    fields = FIELDS[name]
    nans = np.array([fields.top | 1, fields.top | fields.sign | 5], np.uint64)
    values = typed(nans, name)
    assert bits_of(operation(values, values[::-1])) == [NAN[name]] * 2
    for sign_only in (numerics.negate, numerics.absolute):
        assert bits_of(sign_only(values)) == [NAN[name]] * 2


def test_double_nans_carry_the_operands_payload() -> None:
    quiet = 1 << 51
    nan = 0xFFF0000000000005
    values = typed(np.array([nan], np.uint64), "float64")
    one = np.array([1.0])
    for operation in (numerics.add, numerics.subtract, numerics.multiply, numerics.divide):
        assert bits_of(operation(values, one)) == bits_of(operation(one, values)) == [nan | quiet]
    for sign_only in (numerics.negate, numerics.absolute, numerics.sqrt):
        assert bits_of(sign_only(values)) == [nan | quiet]
    assert bits_of(numerics.fma(one, values, one)) == [nan | quiet]
    other = typed(np.array([0x7FF8000000000001], np.uint64), "float64")
    assert bits_of(numerics.fma(values, other, one)) == bits_of(other)
    assert bits_of(numerics.fma(values, one, other)) == bits_of(other)


@pytest.mark.parametrize("name", COMPUTING_FLOATS)
def test_minimum_and_maximum_order_everything(name: str) -> None:
    ordered = [-math.inf, -2.5, -(2.0**-14), -0.0, 0.0, 2.0**-14, 1.0, math.inf]
    values = np.array(ordered).astype(dtype(name).numpy)
    for i, j in itertools.product(range(len(ordered)), repeat=2):
        x, y = values[i : i + 1], values[j : j + 1]
        assert bits_of(numerics.minimum(x, y)) == bits_of(values[[min(i, j)]])
        assert bits_of(numerics.maximum(x, y)) == bits_of(values[[max(i, j)]])
    nan = np.full(len(values), math.nan).astype(values.dtype)
    for operation in (numerics.minimum, numerics.maximum):
        assert bits_of(operation(values, nan)) == bits_of(operation(nan, values)) == bits_of(values)


@pytest.mark.parametrize("name", COMPUTING_FLOATS)
def test_negate_and_absolute_touch_the_sign_only(name: str) -> None:
    fields = FIELDS[name]
    codes = random_bits(seeded(name), name, 500)
    codes = codes[[not is_nan(each, name) for each in codes.tolist()]]
    values = typed(codes, name)
    assert bits_of(numerics.negate(values)) == [each ^ fields.sign for each in codes.tolist()]
    assert bits_of(numerics.absolute(values)) == [each % fields.sign for each in codes.tolist()]


@pytest.mark.parametrize("name", COMPUTING_FLOATS)
def test_square_roots_round_once(name: str) -> None:
    codes = random_bits(seeded("sqrt", name), name, 800)
    for code, result in zip(codes.tolist(), bits_of(numerics.sqrt(typed(codes, name))), strict=True):
        value = exact(code, name)
        if isinstance(value, Fraction) and value > 0:
            # the root lies between the middles to the neighbouring floats
            below, root, above = (exact(result + step, name) for step in (-1, 0, 1))
            assert isinstance(below, Fraction) and isinstance(root, Fraction) and isinstance(above, Fraction)
            assert (below + root) ** 2 <= 4 * value <= (root + above) ** 2
        elif value == 0:
            assert result == code
        elif value != math.inf and not (name == "float64" and value != value):
            assert result == NAN[name]


def test_float_floor_division_is_pythons() -> None:
    rng = seeded("floor")
    x = np.concatenate([rng.standard_normal(2000) * 10.0 ** rng.integers(-3, 8, 2000), np.arange(-12.0, 13.0)])
    y = np.concatenate([rng.standard_normal(2000), np.resize([3.0, -3.0, 0.1, -0.1, math.inf], 25)])
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    assert bits_of(numerics.floor_quotient(x, y)) == bits_of(np.array([left // right for left, right in pairs]))
    assert bits_of(numerics.floor_remainder(x, y)) == bits_of(np.array([left % right for left, right in pairs]))


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_narrow_float_floor_division_is_torchs(name: str) -> None:
    rng = seeded("floor", name)
    kind = dtype(name).numpy
    x = (rng.standard_normal(4000) * 10.0 ** rng.integers(-2, 4, 4000)).astype(kind)
    y = np.where(rng.random(4000) < 0.02, 0.0, rng.standard_normal(4000)).astype(kind)
    wide = [torch.from_numpy(each.astype(np.float32)) for each in (x, y)]
    for ours, theirs in ((numerics.floor_quotient, torch.floor_divide), (numerics.floor_remainder, torch.remainder)):
        wanted = numerics.convert(numerics.canonical_nan(theirs(*wide).numpy()), dtype(name))
        nonzero = wanted != 0  # torch gives a zero remainder the dividend's sign, Python the divisor's
        got = ours(x, y)
        assert bits_of(got[nonzero]) == bits_of(wanted[nonzero])
        assert (got[~nonzero] == 0).all()


# Fused multiply-add -------------------------------------------------------------------------------------------------


def fused(a: int, b: int, c: int, name: str) -> int | None:
    """The exact model, None where a NaN or an infinity is in play."""
    values = [exact(each, name) for each in (a, b, c)]
    if not all(isinstance(each, Fraction) for each in values):
        return None
    x, y, z = (Fraction(each) for each in values)
    total = x * y + z
    sign = FIELDS[name].sign
    return nearest(total, name, negative_zero=x * y == z == 0 and bool((a ^ b) & sign) and bool(c & sign))


def fma_inputs(name: str, count: int) -> tuple[Array, Array, Array]:
    rng = seeded("fma", name)
    a, b, c = (random_bits(rng, name, count) for _ in range(3))
    # a third of the sums nearly cancel
    product = numerics.negate(numerics.multiply(typed(a, name), typed(b, name)))
    near = np.array(bits_of(product), np.uint64) + rng.integers(0, 3, count).astype(np.uint64)
    return a, b, np.where(rng.random(count) < 0.33, near & np.uint64((1 << dtype(name).bits) - 1), c)


@pytest.mark.parametrize("name", COMPUTING_FLOATS)
def test_fma_rounds_once(name: str) -> None:
    a, b, c = fma_inputs(name, 2500)
    got = numerics.fma(typed(a, name), typed(b, name), typed(c, name))
    assert got.dtype == dtype(name).numpy
    checked = 0
    for x, y, z, result in zip(a.tolist(), b.tolist(), c.tolist(), bits_of(got), strict=True):
        wanted = fused(x, y, z, name)
        checked += wanted is not None
        assert wanted in (None, result), [hex(each) for each in (x, y, z, result)]
    assert checked > 1500


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_fma_does_not_round_twice(name: str) -> None:
    """A tie of the result that only an addend below float64's last place (for float32, bfloat16) decides."""
    fields = FIELDS[name]
    one = fields.bias << fields.fraction
    after_one, one_and_half = one | 1, one | 1 << fields.fraction - 1
    tie = Fraction(3, 2) * (1 + Fraction(1, 1 << fields.fraction))
    results = set()
    for c in (1, 1 | fields.sign):  # the smallest subnormals
        operands = (typed(np.array([each], np.uint64), name) for each in (after_one, one_and_half, c))
        (result,) = bits_of(numerics.fma(*operands))
        assert result == nearest(tie + Fraction(exact(c, name)), name)
        results.add(result)
    assert len(results) == 2


def test_double_fma_at_the_ends_of_the_range() -> None:
    rng = seeded("ends")
    largest, tiny = 0x7FEFFFFFFFFFFFFF, 1
    edges = [0, tiny, 0x000FFFFFFFFFFFFF, 0x2B2ABCDEF0123456, 0x3FF0000000000001, largest]
    signed = [each | sign for each in edges for sign in (0, 1 << 63)]
    triples = np.array(list(itertools.product(signed, repeat=3)), np.uint64)
    low = rng.integers(0, 1 << 55, (800, 3), dtype=np.uint64) + np.uint64(0x1E00000000000000)  # products near 2**-1022
    triples = np.concatenate([triples, low])
    triples[-800:, 2] >>= rng.integers(0, 60, 800).astype(np.uint64)  # addends down to subnormals
    got = numerics.fma(*(typed(column, "float64") for column in triples.T))
    for (a, b, c), result in zip(triples.tolist(), bits_of(got), strict=True):
        assert result == fused(a, b, c, "float64"), [hex(each) for each in (a, b, c, result)]


@pytest.mark.parametrize("name", COMPUTING_FLOATS)
def test_fma_with_infinities(name: str) -> None:
    fields = FIELDS[name]
    inf, big, one = fields.top, fields.largest, fields.bias << fields.fraction
    cases = [
        (inf, one, one, inf),
        (inf, 0, one, NAN[name]),
        (inf, one, inf | fields.sign, NAN[name]),
        (big, big, inf | fields.sign, inf | fields.sign),
        (big, big, one, inf),
    ]
    for *operands, wanted in cases:
        got = numerics.fma(*(typed(np.array([each], np.uint64), name) for each in operands))
        assert bits_of(got) == [wanted]


# Operands -----------------------------------------------------------------------------------------------------------


def test_shapes_broadcast_and_scalars_stay_arrays() -> None:
    x = np.full((2, 3), 200, np.uint8)
    assert numerics.add(x, np.array([[100], [50]], np.uint8)).tolist() == [[44] * 3, [250] * 3]
    for name in ("int8", "float16", "float32", "float64"):
        zero_d = np.array(3).astype(dtype(name).numpy)
        for result in (
            numerics.add(zero_d, zero_d),
            numerics.floor_quotient(zero_d, zero_d),
            numerics.negate(zero_d),
            numerics.minimum(zero_d, zero_d),
        ):
            assert result.shape == () and result.dtype == zero_d.dtype
    half = np.ones((), np.float16)
    assert numerics.fma(half, half, half).shape == ()
    assert numerics.fma(np.ones((2, 1)), np.ones(3), np.ones(())).shape == (2, 3)


def test_wrong_operands_are_refused() -> None:
    with pytest.raises(TraceError, match="add: expected operands of one type but got float32, int32"):
        numerics.add(np.zeros(1, np.float32), np.zeros(1, np.int32))
    for name in ("bool", "float8_e5m2", "int4"):
        values = np.zeros(2, dtype(name).numpy)
        with pytest.raises(TraceError, match=f"{name} has no arithmetic"):
            numerics.multiply(values, values)
    with pytest.raises(TraceError, match="divide: expected floats but got int32"):
        numerics.divide(np.zeros(1, np.int32), np.zeros(1, np.int32))
    with pytest.raises(TraceError, match="truncated_quotient: expected integers but got float32"):
        numerics.truncated_quotient(np.zeros(1, np.float32), np.zeros(1, np.float32))
    with pytest.raises(TraceError, match="fma: float8_e5m2 has no arithmetic"):
        numerics.fma(*[np.zeros(1, dtype("float8_e5m2").numpy)] * 3)
