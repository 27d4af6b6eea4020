"""Rounding of floats to narrower floats, once: to nearest even, to odd, or toward zero.

The way to round twice without harm is rounding to odd: an inexact intermediate takes the neighbour whose last bit
is 1, which keeps "not exactly here" visible to the final rounding as long as the intermediate has two bits more
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
NaN payloads are left to `nans`; integers to `conversion`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpjit.ir.dtypes import DType, bfloat16, float8_e4m3fn, float8_e5m2, float16, float32, float64, tf32

Array = np.ndarray[Any, Any]

_WORDS = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64}


def toward_odd(rounded: Array, error: Array) -> Array:
    """The round-to-odd result of an exact value `rounded + error`, `rounded` being that value to nearest.

    `rounded`: float32 or float64; `error`: any float type, of which only the sign matters and whether it is zero. An
    error that is NaN, as infinities leave it, changes nothing.
    """
    inexact = np.abs(error) > 0
    # One step down in the bit pattern is one step toward zero, also across the exponents' borders.
    overshot = inexact & ((error < 0) != np.signbit(rounded))
    return np.asarray((rounded.view(_WORDS[rounded.dtype]) - overshot) | inexact).view(rounded.dtype)


def exact_sum_to_odd(x: Array, y: Array) -> Array:
    """x + y in float64, rounded to odd. Finite sums only need |x|, |y| < 2**1022 (Knuth's TwoSum)."""
    total = x + y
    virtual = np.asarray(total - x)
    error = np.asarray(total - virtual)
    # In place: fresh large arrays cost more than the arithmetic.
    np.subtract(x, error, out=error)
    np.subtract(y, virtual, out=virtual)
    error += virtual
    return toward_odd(total, error)


def float64_to_float32_odd(values: Array) -> Array:
    """float64 to float32, rounded to odd; finite values beyond float32's give its largest, whose last bit is 1."""
    near = values.astype(np.float32)
    return toward_odd(near, values - near.astype(np.float64))


def float64_to_float32_toward_zero(values: Array) -> Array:
    """float64 to float32, cut toward zero, but infinity from 2**128 on."""
    near = values.astype(np.float32)
    overshot = (np.abs(near.astype(np.float64)) > np.abs(values)) & (np.abs(values) < 2.0**128)
    return (near.view(np.uint32) - overshot).view(np.float32)


def round_float(values: Array, target: DType) -> Array:
    """float32 or float64 `values` to a float type no wider, rounded once to nearest even.

    float8 results saturate at the largest finite value, as `cvt.rn.satfinite` does (the one form the PTX manual
    has, section "cvt"); others overflow to infinity. NaN becomes some NaN. Floating-point warnings are silenced.
    """
    with np.errstate(all="ignore"):
        return _ROUND[target](values)


def _to_bfloat16(values: Array) -> Array:
    single = _single(values)
    bits = single.view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    nearest = np.where(np.isnan(single), np.uint32(0x7FFF0000), nearest)
    return np.asarray(nearest >> np.uint32(16)).astype(np.uint16).view(bfloat16.numpy)


def _to_float8(largest: float, target: DType) -> Callable[[Array], Array]:
    return lambda values: np.clip(_single(values), -largest, largest).astype(target.numpy)


def _single(values: Array) -> Array:
    """`values` as float32 that a further rounding, to 8 bits or to bfloat16, treats alike."""
    return values if values.dtype == np.float32 else float64_to_float32_odd(values)


_ROUND: dict[DType, Callable[[Array], Array]] = {
    float64: lambda values: values.astype(np.float64),
    float32: lambda values: values.astype(np.float32),
    tf32: lambda values: values.astype(np.float32),  # the bits that a product does not look at may be there
    float16: lambda values: values.astype(np.float16),
    bfloat16: _to_bfloat16,
    float8_e4m3fn: _to_float8(448.0, float8_e4m3fn),
    float8_e5m2: _to_float8(57344.0, float8_e5m2),
}
