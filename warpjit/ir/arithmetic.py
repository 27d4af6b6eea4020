"""Scalar arithmetic with the device's results, over arrays of one data type.

Integers wrap at their width. 16-bit floats compute in float32 and are rounded once an operation; float32 and float64
are IEEE 754 to nearest even with subnormals (PTX manual, section "Floating Point Instructions": add, sub, mul,
div.rn, sqrt.rn without .ftz). NaN results are those of `nans`. An H200 gave the same bits for all of it.

Operands are arrays of the same data type that broadcast together; the result has that type. bool, 8-bit floats and
4-bit integers do not compute: TraceError. fma is in `fma`; comparisons and bit operations are numpy's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warpjit.ir.conversion import widened
from warpjit.ir.dtypes import dtype_of
from warpjit.ir.nans import canonical_nan, is_nan, quiet, settle_nan
from warpjit.ir.operands import computing_type, float_type, integer_type
from warpjit.ir.rounding import round_float

Array = np.ndarray[Any, Any]
Operation = Callable[..., Array]


def add(x: Array, y: Array) -> Array:
    """x + y."""
    return _arithmetic(np.add, x, y)


def subtract(x: Array, y: Array) -> Array:
    """x - y."""
    return _arithmetic(np.subtract, x, y)


def multiply(x: Array, y: Array) -> Array:
    """x * y; of integers the low half."""
    return _arithmetic(np.multiply, x, y)


def divide(x: Array, y: Array) -> Array:
    """x / y of floats."""
    float_type("divide", x, y)
    return _float(np.divide, (x, y))


def sqrt(x: Array) -> Array:
    """The square root of floats; NaN below zero."""
    float_type("sqrt", x)
    return _float(np.sqrt, (x,))


def negate(x: Array) -> Array:
    """-x: the smallest integer stays itself; a NaN keeps its sign (and becomes canonical below 64 bits)."""
    return _sign_operation(np.negative, x)


def absolute(x: Array) -> Array:
    """|x|: the smallest integer stays itself; a NaN keeps its sign (and becomes canonical below 64 bits)."""
    if computing_type("absolute", x).kind == "uint":
        return np.asarray(x)
    return _sign_operation(np.absolute, x)


def minimum(x: Array, y: Array) -> Array:
    """The smaller; a NaN loses to a number, and -0 is below +0 (PTX manual, section "min")."""
    return _extremum(x, y, np.less, np.bitwise_or)


def maximum(x: Array, y: Array) -> Array:
    """The larger; a NaN loses to a number, and +0 is above -0 (PTX manual, section "max")."""
    return _extremum(x, y, np.greater, np.bitwise_and)


def minimum_nan(x: Array, y: Array) -> Array:
    """The smaller of floats, NaN where one is: of float64 the first NaN as it is (PTX manual, section "min": .NaN)."""
    return _with_nan(minimum(x, y), x, y)


def maximum_nan(x: Array, y: Array) -> Array:
    """The larger of floats, NaN where one is: of float64 the first NaN as it is (PTX manual, section "max": .NaN)."""
    return _with_nan(maximum(x, y), x, y)


def truncated_quotient(x: Array, y: Array) -> Array:
    """Integer x / y toward zero, as C and PTX `div`; all ones where y is zero, as on an H200."""
    integer_type("truncated_quotient", x, y)
    return _by_zero_ones(_truncated_quotient(x, _nonzero(y)), y)


def truncated_remainder(x: Array, y: Array) -> Array:
    """Integer x - y * (x / y toward zero), as C and PTX `rem`; all ones where y is zero."""
    integer_type("truncated_remainder", x, y)
    return _by_zero_ones(_truncated_remainder(x, _nonzero(y)), y)


def floor_quotient(x: Array, y: Array) -> Array:
    """Python's x // y.

    Integers: rounded down, wrapping for the smallest by -1; all ones where y is zero. Floats: r = fmod(x, y), exact;
    d = (x - r) / y, less 1 where r is not zero and has not y's sign; then f = floor(d), plus 1 where d - f > 0.5; a
    zero d gives a zero with the sign of x / y; x / y where y is zero. Every step rounded, in float32 for 16-bit
    floats, whose result is rounded once more.
    """
    if computing_type("floor_quotient", x, y).is_float:
        return _float(_float_floor_quotient, (x, y))
    quotient = _truncated_quotient(x, _nonzero(y))
    down = _rounds_away(_truncated_remainder(x, _nonzero(y)), y)
    return _by_zero_ones(_wrapping(np.subtract, quotient, down.astype(quotient.dtype)), y)


def floor_remainder(x: Array, y: Array) -> Array:
    """Python's x % y, which has the sign of y.

    Integers: all ones where y is zero. Floats: r = fmod(x, y), exact; y is added where r is not zero and has the
    other sign; a zero takes the sign of y; NaN where y is zero.
    """
    if computing_type("floor_remainder", x, y).is_float:
        return _float(_float_floor_remainder, (x, y))
    remainder = _truncated_remainder(x, _nonzero(y))
    moved = np.where(_rounds_away(remainder, y), _wrapping(np.add, remainder, y), remainder)
    return _by_zero_ones(moved, y)


def shift_left(x: Array, count: Array) -> Array:
    """x << count of integers; a count of the width or more, or below zero, gives 0 (PTX manual, section "shl")."""
    return _shift(np.left_shift, x, count, beyond=np.zeros_like(x))


def shift_right(x: Array, count: Array) -> Array:
    """x >> count of integers, arithmetic for signed ones.

    A count of the width or more, or below zero, gives 0 or, signed, the sign everywhere (PTX manual, section "shr").
    """
    x = np.asarray(x)
    signs = np.where(x < 0, x.dtype.type(-1), x.dtype.type(0)) if dtype_of(x).signed else np.zeros_like(x)
    return _shift(np.right_shift, x, count, beyond=signs)


def _arithmetic(operation: Operation, x: Array, y: Array) -> Array:
    if computing_type(operation.__name__, x, y).is_float:
        return _float(operation, (x, y))
    return _wrapping(operation, x, y)


def _wrapping(operation: Operation, *operands: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(operation(*operands))


def _float(operation: Operation, operands: Sequence[Array], nan_order: Sequence[Array] | None = None) -> Array:
    """`operation` in float32 for 16-bit floats and in the type itself for others, then the device's NaNs.

    `nan_order`: which float64 NaN operand goes before which; by default the first, as nvcc's code for + - * / on an
    H200 (hand-written `add.f64` and others gave the last: ptxas chooses).
    """
    kind = dtype_of(np.asarray(operands[0]))
    with np.errstate(all="ignore"):
        if kind.bits == 16:
            result = np.asarray(operation(*(widened(np.asarray(each)) for each in operands)))
            return canonical_nan(round_float(result, kind))
        result = np.asarray(operation(*operands))
        return settle_nan(result, operands if nan_order is None else nan_order)


def _sign_operation(operation: Operation, x: Array) -> Array:
    x = np.asarray(x)
    kind = computing_type(operation.__name__, x)
    if kind.is_float and kind.bits < 64:
        return _float(operation, (x,))
    with np.errstate(all="ignore"):
        result = np.asarray(operation(x))
        return np.asarray(np.where(np.isnan(x), quiet(x), result)) if kind.is_float else result


def _extremum(x: Array, y: Array, precedes: Operation, of_zeros: Operation) -> Array:
    kind = computing_type("minimum or maximum", x, y)
    if kind.is_int:
        return np.asarray(np.where(precedes(x, y), x, y))

    def choose(left: Array, right: Array) -> Array:
        word = np.uint64 if left.dtype == np.float64 else np.uint32
        tied = of_zeros(np.asarray(left).view(word), np.asarray(right).view(word)).view(left.dtype)
        ordered = np.where(precedes(left, right), left, np.where(left == right, tied, right))
        return np.asarray(np.where(np.isnan(right), left, ordered))

    return _float(choose, (x, y), nan_order=(y, x))


def _with_nan(result: Array, x: Array, y: Array) -> Array:
    """`result` with the NaN of an operand in its place; of types below 64 bits the canonical one."""
    float_type("minimum or maximum with NaN", x, y)
    kept = np.where(is_nan(x), x, np.where(is_nan(y), y, result))
    return kept if kept.dtype == np.float64 else canonical_nan(kept)


def _shift(operation: Operation, x: Array, count: Array, beyond: Array) -> Array:
    bits = integer_type("shift", x).bits
    count = np.asarray(count)
    inside = (count >= 0) & (count < bits)
    safe = np.where(inside, count, count.dtype.type(0)).astype(np.asarray(x).dtype)
    return np.asarray(np.where(inside, operation(x, safe), beyond))


def _nonzero(y: Array) -> Array:
    return np.where(np.asarray(y) == 0, np.asarray(y).dtype.type(1), y)


def _by_zero_ones(result: Array, y: Array) -> Array:
    ones = np.bitwise_not(np.zeros((), result.dtype))
    return np.asarray(np.where(np.asarray(y) == 0, ones, result))


def _truncated_quotient(x: Array, y: Array) -> Array:
    floored = _wrapping(np.floor_divide, x, y)
    inexact_negative = (_wrapping(np.multiply, floored, y) != x) & ((x < 0) != (y < 0))
    return _wrapping(np.add, floored, inexact_negative.astype(floored.dtype))


def _truncated_remainder(x: Array, y: Array) -> Array:
    return _wrapping(np.fmod, x, y)


def _rounds_away(remainder: Array, y: Array) -> Array:
    """Where the floored quotient is one below the truncated one."""
    return np.asarray((remainder != 0) & ((remainder < 0) != (y < 0)))


def _float_floor_remainder(x: Array, y: Array) -> Array:
    remainder = np.fmod(x, y)
    moved = np.where(_rounds_away(remainder, y), remainder + y, remainder)
    return np.asarray(np.where(remainder == 0, np.copysign(remainder, y), moved))


def _float_floor_quotient(x: Array, y: Array) -> Array:
    remainder = np.fmod(x, y)
    near = (x - remainder) / y
    one = near.dtype.type(1)
    near = np.where(_rounds_away(remainder, y), near - one, near)
    floored = np.floor(near)
    whole = np.where(near - floored > 0.5, floored + one, floored)
    signed = np.where(near == 0, np.copysign(near.dtype.type(0), x / y), whole)
    return np.asarray(np.where(y == 0, x / y, signed))
