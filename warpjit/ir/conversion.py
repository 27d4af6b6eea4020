"""Conversion of values between any two data types, as `cvt` on the device does it.

Sources: PTX manual, section "Data Movement and Conversion Instructions: cvt" (rounding, saturation, NaN to integer),
met bit for bit by an H200 for every pair of 16- to 64-bit floats and 8- to 64-bit integers. Bit reinterpretation is
in `words`; arithmetic in `arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpjit.errors import TraceError
from warpjit.ir.dtypes import DType, bfloat16, bool_, dtype_of, float32, float64, int8, uint8
from warpjit.ir.nans import canonical_nan, carry_nan
from warpjit.ir.rounding import round_float

Array = np.ndarray[Any, Any]


def convert(values: Array, target: DType, rounding: str = "") -> Array:
    """`values` (any shape, any data type) converted to `target`; the same array where the type is the same.

    rounding   "nearest" (ties to even), "zero", "down" or "up", of conversions to floats of 16 bits and more and from
               floats to integers; "": as follows

    float to float    to nearest even, once; 8-bit floats saturate; NaN as `nans.carry_nan` says
    float to int      toward zero, saturating; NaN gives 0, but from float64 or to 64 bits the word with only its
                      top bit set
    int to float      to nearest even, once
    int to int        wraps to the low bits
    to bool           value != 0 (NaN is true); from bool: 0 or 1

    Raises TraceError for mbarrier.
    """
    values = np.asarray(values)
    source = dtype_of(values)
    if target == source:
        return values
    handler = _HANDLERS.get((source.kind, target.kind))
    if handler is None:
        raise TraceError(f"there is no conversion from {source} to {target}")
    with np.errstate(all="ignore"):
        if not rounding:
            return handler(values, target)
        if target.is_int:
            return _float_to_int(values, target, _WHOLE[rounding])
        return _directed(values, handler(values, target), rounding)


def rounded(values: Array, target: DType) -> Array:
    """Numbers as a float type holds them: as `convert`, but what 8 bits do not hold is NaN or infinite."""
    near = convert(values, target)
    if target.bits > 8:
        return near
    with np.errstate(all="ignore"):
        plain = np.asarray(values).astype(target.numpy)
    return np.where(np.isfinite(plain), near, plain)


def _directed(values: Array, near: Array, rounding: str) -> Array:
    """`near`, the floats nearest to `values`, moved to the neighbour on the other side where that is asked for."""
    if rounding == "nearest":
        return near
    # 64 bits of significand: every number of every type, exactly.
    exact, found = (
        (widened(each) if each.dtype.itemsize == 2 and dtype_of(each).is_float else each).astype(np.longdouble)
        for each in (values, near)
    )
    over, under = np.abs(found) > np.abs(exact), np.abs(found) < np.abs(exact)
    below = exact < 0 if rounding == "down" else exact > 0
    outward = np.zeros_like(over) if rounding == "zero" else under & below
    inward = over & ~below if rounding != "zero" else over
    word = dtype_of(near).unsigned_word.numpy.type
    # One step in the bit pattern is one step away from zero, also across the exponents' borders and to infinity.
    return np.asarray(near.view(word) + outward.astype(word) - inward.astype(word)).view(near.dtype)


def _float_to_float(values: Array, target: DType) -> Array:
    source = dtype_of(values)
    if source.bits == 8:
        # Hardware widens 8-bit floats to float16 only (cvt.rn.f16x2.e4m3x2); all else goes on from there.
        return convert(canonical_nan(values.astype(np.float16)), target)
    if (source, target) == (bfloat16, float32):
        return widened(values)
    working = values if source.bits >= 32 else widened(values)
    converted = working.astype(np.float64) if target == float64 else round_float(working, target)
    return carry_nan(values, converted)


def widened(values: Array) -> Array:
    """16-bit floats as float32, exactly; NaNs are some NaN (of bfloat16 the one with the same bits)."""
    if values.dtype == np.float16:
        return values.astype(np.float32)
    return np.asarray(values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _float_to_int(values: Array, target: DType, whole_of: Callable[[Array], Array] = np.trunc) -> Array:
    whole = np.asarray(whole_of(values.astype(np.float64)))
    unknown = np.isnan(whole)
    if target.bits == 64:
        integers = _saturated_64(whole, target)
    else:
        integers = np.asarray(np.clip(whole, target.min, target.max))
        integers[unknown] = 0
        integers = integers.astype(np.int64)
    if unknown.any() and (target.bits == 64 or dtype_of(values) == float64):
        integers[unknown] = target.min or 1 << target.bits - 1
    return _narrow(integers, target)


def _saturated_64(whole: Array, target: DType) -> Array:
    """Whole float64 values as int64 or uint64, saturated; NaN gives 0."""
    # Both borders are powers of two (or zero), so float64 compares with them exactly.
    inside = (whole >= float(target.min)) & (whole < float(target.max + 1))
    integers = np.asarray(np.where(inside, whole, 0.0)).astype(target.numpy)
    integers[whole < float(target.min)] = target.min
    integers[whole >= float(target.max + 1)] = target.max
    return integers


def _int_to_float(values: Array, target: DType) -> Array:
    if values.dtype.itemsize < 8:
        return round_float(_plain(values).astype(np.float64), target)
    if target == float64:
        return values.astype(np.float64)
    return round_float(_int64_to_float64_odd(values), target)


def _int64_to_float64_odd(values: Array) -> Array:
    """64-bit integers as float64 rounded to odd: of what does not fit 53 bits, the last place says "inexact"."""
    integer = values.dtype.type
    coarse = values >> integer(11)
    inexact = (values & integer(0x7FF)) != 0
    odd = (coarse | inexact) << integer(11)
    wide = (values >= 1 << 53) if values.dtype == np.uint64 else ((values >= 1 << 53) | (values <= -(1 << 53)))
    return np.where(wide, odd, values).astype(np.float64)


def _int_to_int(values: Array, target: DType) -> Array:
    return _narrow(_plain(values), target)


def _to_bool(values: Array, target: DType) -> Array:
    return np.asarray(values != values.dtype.type(0)).astype(bool_.numpy)


def _from_bool(values: Array, target: DType) -> Array:
    return convert(values.astype(np.uint8), target)


def _plain(values: Array) -> Array:
    """Integers as a type that numpy itself computes with: 4-bit ones become 8-bit ones."""
    source = dtype_of(values)
    if source.bits > 4:
        return values
    return values.astype(int8.numpy if source.signed else uint8.numpy)


def _narrow(values: Array, target: DType) -> Array:
    """Integers cut to the low bits of `target`, which keeps them where they already fit."""
    if target.bits > 4:
        return values.astype(target.numpy)
    nibble = values.astype(np.uint8) & np.uint8(0xF)
    if target.signed:
        return ((nibble ^ np.uint8(8)).astype(np.int8) - np.int8(8)).astype(target.numpy)
    return nibble.astype(target.numpy)


_WHOLE: dict[str, Callable[[Array], Array]] = {"nearest": np.rint, "zero": np.trunc, "down": np.floor, "up": np.ceil}

_HANDLERS: dict[tuple[str, str], Callable[[Array, DType], Array]] = {
    ("float", "float"): _float_to_float,
    **{("float", kind): _float_to_int for kind in ("int", "uint")},
    **{(kind, "float"): _int_to_float for kind in ("int", "uint")},
    **{(source, kind): _int_to_int for source in ("int", "uint") for kind in ("int", "uint")},
    **{(kind, "bool"): _to_bool for kind in ("float", "int", "uint")},
    **{("bool", kind): _from_bool for kind in ("float", "int", "uint")},
}
