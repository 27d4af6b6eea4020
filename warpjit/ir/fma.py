"""Fused multiply-add: a * b + c with one rounding to nearest even, for every float type that computes.

float32 and 16-bit floats have exact products in float64, so a sum rounded to odd and one more rounding do it.
float64 uses error-free transformations (Dekker's product, and the sum of three numbers of Boldo and Melquiond,
"Emulation of FMA and correctly rounded sums", 2008) where exponents leave them room, and integers of any size for
the rest: very large, very small and subnormal operands. Source of the semantics: PTX manual, sections
"Floating Point Instructions: fma" and "Half Precision Floating Point Instructions: fma"; subnormals are kept.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from warpjit.ir.conversion import widened
from warpjit.ir.nans import canonical_nan, settle_nan
from warpjit.ir.operands import float_type
from warpjit.ir.rounding import exact_sum_to_odd, round_float

Array = np.ndarray[Any, Any]

# Beyond these, Dekker's splitting could overflow or an error term could become subnormal.
_FACTOR_RANGE = (2.0**-400, 2.0**400)
_ADDEND_RANGE = (2.0**-800, 2.0**960)
_SPLITTER = 2.0**27 + 1.0


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c rounded once; arrays of one float type of 16 bits or more that broadcast together, and so the result.

    NaN results are the device's (see `nans`); of several float64 NaN operands, b goes before c before a, as measured
    on an H200.
    """
    kind = float_type("fma", a, b, c)
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        if a.dtype == np.float64:
            return settle_nan(_fma_double(a, b, c), (b, c, a))
        wide_a, wide_b, wide_c = (_double(each) for each in (a, b, c))
        total = exact_sum_to_odd(wide_a * wide_b, wide_c)
        return canonical_nan(round_float(total, kind))


def _double(values: Array) -> Array:
    return (values if values.dtype == np.float32 else widened(values)).astype(np.float64)


def _fma_double(a: Array, b: Array, c: Array) -> Array:
    # Right where an operand is not finite or a factor is zero, which is where the rest does not apply; only a finite
    # product must not overflow against an infinite c.
    result = np.asarray(np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c))
    open_cases = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0)
    roomy = open_cases & _inside(a, _FACTOR_RANGE) & _inside(b, _FACTOR_RANGE)
    roomy &= _inside(c, _ADDEND_RANGE) | (c == 0)
    if roomy.all():
        return _fma_by_exact_parts(a, b, c)
    result[roomy] = _fma_by_exact_parts(a[roomy], b[roomy], c[roomy])
    rest = open_cases & ~roomy
    result[rest] = [_fma_by_integers(*each) for each in np.stack([a[rest], b[rest], c[rest]], axis=-1).tolist()]
    return result


def _inside(values: Array, limits: tuple[float, float]) -> Array:
    magnitude = np.abs(values)
    return (magnitude >= limits[0]) & (magnitude <= limits[1])


def _fma_by_exact_parts(a: Array, b: Array, c: Array) -> Array:
    high, low = _exact_product(a, b)
    middle, tail = _exact_sum(c, low)
    total, rest = _exact_sum(high, middle)
    return np.asarray(total + exact_sum_to_odd(tail, rest))


def _exact_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y and its rounding error."""
    total = x + y
    virtual = total - x
    return total, (x - (total - virtual)) + (y - virtual)


def _exact_product(x: Array, y: Array) -> tuple[Array, Array]:
    """x * y and its rounding error."""
    product = x * y
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, error


def _split(x: Array) -> tuple[Array, Array]:
    """x as a sum of two numbers of 26 bits."""
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def _fma_by_integers(a: float, b: float, c: float) -> float:
    """One result in integers of any size; a, b finite and not zero, c finite."""
    (a_whole, a_exp), (b_whole, b_exp), (c_whole, c_exp) = (_integer_and_exponent(each) for each in (a, b, c))
    product_exp = a_exp + b_exp
    exponent = min(product_exp, c_exp)
    total = (a_whole * b_whole << product_exp - exponent) + (c_whole << c_exp - exponent)
    if total == 0:
        return 0.0
    nearest = _nearest_double(abs(total), exponent)
    return nearest if total > 0 else -nearest


def _integer_and_exponent(x: float) -> tuple[int, int]:
    """x = integer * 2**exponent, exactly; a zero takes the exponent of no account, 0 * 2**2000."""
    if x == 0:
        return 0, 2000
    mantissa, exponent = math.frexp(x)
    return int(mantissa * 2.0**53), exponent - 53


def _nearest_double(magnitude: int, exponent: int) -> float:
    """magnitude * 2**exponent (magnitude > 0) to nearest even, subnormals included; infinity beyond the range."""
    excess = max(magnitude.bit_length() - 53, -1074 - exponent)
    if excess > 0:
        rest, half = magnitude & (1 << excess) - 1, 1 << excess - 1
        magnitude >>= excess
        magnitude += rest > half or (rest == half and magnitude & 1 == 1)
        exponent += excess
    if magnitude.bit_length() + exponent > 1024:
        return math.inf
    return math.ldexp(magnitude, exponent)
