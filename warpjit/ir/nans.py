"""Which NaN a float operation returns on the device.

Measured on one H200 (sm_90): every result of 32 or 16 bits is the canonical NaN (sign 0, all other bits 1), for
add, sub, mul, div.rn, sqrt.rn, fma.rn, min, max, neg, abs and for conversions from float32 and float16. A float64
result carries the payload and sign of a NaN operand, quieted; a float64 NaN that no operand brought is
0xFFF8000000000000. Conversions that touch float64 carry the upper payload bits. The PTX manual leaves payloads
open (section "Floating-Point Instructions"), so programs must not depend on them; they are modelled so that
simulator and device can be compared bit for bit.

Not here: which operations yield a NaN, which is IEEE 754's matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpjit.ir.dtypes import DType, bfloat16, dtype_of, float8_e4m3fn, float8_e5m2, float16, float32, float64
from warpjit.record import record

Array = np.ndarray[Any, Any]


@record
class FloatFormat:
    """The fields of a float: `exponent` and `fraction` bits under one sign bit, and the canonical NaN's bits."""

    exponent: int
    fraction: int
    canonical_nan: int

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def exponent_mask(self) -> int:
        """The exponent field's bits in place, which are infinity's where the format has one."""
        return (1 << self.exponent) - 1 << self.fraction

    @property
    def sign_bit(self) -> int:
        return 1 << self.exponent + self.fraction

    @property
    def quiet_bit(self) -> int:
        """The fraction's top bit."""
        return 1 << self.fraction - 1


FORMATS: dict[DType, FloatFormat] = {
    float8_e4m3fn: FloatFormat(4, 3, 0x7F),
    float8_e5m2: FloatFormat(5, 2, 0x7F),
    float16: FloatFormat(5, 10, 0x7FFF),
    bfloat16: FloatFormat(8, 7, 0x7FFF),
    float32: FloatFormat(8, 23, 0x7FFFFFFF),
    float64: FloatFormat(11, 52, 0xFFF8000000000000),
}


def is_nan(values: Array) -> Array:
    """Where `values` (any float type) are NaN; ml_dtypes' own answer is slow and warns of signalling ones."""
    if values.dtype.itemsize > 2:
        return np.isnan(values)
    kind = dtype_of(values)
    layout = FORMATS[kind]
    # The canonical NaN is the largest magnitude; only e4m3fn has no infinity below its one NaN.
    last_number = layout.canonical_nan - 1 if kind == float8_e4m3fn else layout.exponent_mask
    word = kind.unsigned_word.numpy.type
    return np.asarray(values.view(word) & word(layout.sign_bit - 1) > word(last_number))


def canonical_nan(values: Array) -> Array:
    """`values` (any float type) with every NaN replaced by the type's canonical NaN; float64's is the made NaN.

    Returns `values` itself where it holds no NaN.
    """
    nan = is_nan(values)
    if not nan.any():
        return values
    kind = dtype_of(values)
    bits = np.array(values, order="C").view(kind.unsigned_word.numpy)
    bits[nan] = FORMATS[kind].canonical_nan
    return bits.view(values.dtype)


def settle_nan(result: Array, operands: Sequence[Array]) -> Array:
    """`result` with the NaNs that the device gives for an operation on `operands` (same shape or broadcastable).

    For float64 the first operand in the sequence that is a NaN lends sign and payload; other types: canonical.
    """
    settled = canonical_nan(result)
    if settled is result or result.dtype != np.float64:
        return settled
    for operand in reversed(operands):
        lent = quiet(np.broadcast_to(operand, result.shape))
        settled = np.where(np.isnan(result) & np.isnan(lent), lent, settled)
    return settled


def quiet(values: Array) -> Array:
    """float64 `values` with every NaN made quiet, sign and payload kept."""
    bits = np.ascontiguousarray(values).view(np.uint64).reshape(values.shape)
    quieted = np.where(np.isnan(values), bits | np.uint64(FORMATS[float64].quiet_bit), bits)
    return np.asarray(quieted).view(np.float64)


def carry_nan(values: Array, converted: Array) -> Array:
    """`converted` with the NaNs of `values` as a conversion between float types carries them.

    Between float64 and a type of 16 bits or more: sign, quiet bit, upper payload bits. bfloat16 to float32: all
    bits, not quieted (the conversion is a shift). Every other pair: canonical.
    """
    nan = is_nan(values)
    if not nan.any():
        return converted
    source, target = dtype_of(values), dtype_of(converted)
    carried = canonical_nan(converted).view(target.unsigned_word.numpy).copy()
    if target.bits > 8 and (float64 in (source, target) or (source, target) == (bfloat16, float32)):
        bits = np.ascontiguousarray(values).view(source.unsigned_word.numpy).reshape(values.shape)[nan]
        moved = _move_fields(bits.astype(np.uint64), FORMATS[source], FORMATS[target])
        if float64 in (source, target):
            moved |= np.uint64(FORMATS[target].quiet_bit)
        carried[nan] = moved.astype(carried.dtype)
    return carried.view(converted.dtype)


def _move_fields(bits: Array, source: FloatFormat, target: FloatFormat) -> Array:
    """NaN bit patterns (uint64) of one format with sign and upper fraction bits placed in another."""
    negative = bits & np.uint64(source.sign_bit) != 0
    fraction = bits & np.uint64((1 << source.fraction) - 1)
    shift = target.fraction - source.fraction
    moved = fraction << np.uint64(shift) if shift >= 0 else fraction >> np.uint64(-shift)
    return moved | np.uint64(target.exponent_mask) | np.where(negative, np.uint64(target.sign_bit), np.uint64(0))
