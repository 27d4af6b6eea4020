"""Static numbers as scalars of a type, and values in the words of an error."""

from __future__ import annotations

import functools
import math

import numpy as np

from warpjit.errors import TraceError
from warpjit.frontend.builder import Builder
from warpjit.frontend.values import Scalar, TensorValue, Text, Value, constant, is_number
from warpjit.ir import dtypes
from warpjit.ir.conversion import rounded
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Const
from warpjit.isa.scalar import BITCAST


def literal(builder: Builder, value: int | float | bool, dtype: DType) -> Scalar:
    """A static number as a constant of `dtype`, of a pair as both halves. TraceError: it does not fit."""
    if dtype.is_pair:
        return pair_literal(builder, value, value, dtype)
    if dtype.is_int:
        if isinstance(value, float) and not value.is_integer():
            raise TraceError(f"the literal {value!r} is not an integer: it cannot become {dtype}")
        whole = int(value)
        if not dtype.min <= whole <= dtype.max:
            raise TraceError(f"the literal {whole} does not fit {dtype} ({dtype.min} to {dtype.max})")
        return constant(dtype, whole)
    if dtype.is_bool:
        if value not in (0, 1):
            raise TraceError(f"the literal {value!r} is not a bool")
        return Scalar(dtype, Facts(int(value), int(value), int(value), Uniformity.STATIC), Const(bool(value), dtype))
    number = rounded_once(value, dtype)
    if not math.isfinite(number) and not math.isnan(value) and (math.isnan(number) or not math.isinf(value)):
        raise TraceError(f"the literal {value!r} is too large for {dtype}")
    return Scalar(dtype, Facts(uniformity=Uniformity.STATIC), Const(number, dtype))


def rounded_once(value: int | float, dtype: DType) -> float:
    """A static number as a float type holds it: rounded from its exact value, as the device converts."""
    return _rounded(value, math.copysign(1.0, value), dtype)


@functools.lru_cache(maxsize=4096, typed=True)
def _rounded(value: int | float, sign: float, dtype: DType) -> float:
    """`rounded_once`; the sign tells 0.0 from -0.0, which are equal."""
    exact = np.asarray(value, dtype=np.float64)
    if isinstance(value, int) and dtypes.int64.min <= value <= dtypes.uint64.max:
        exact = np.asarray(value, dtype=np.int64 if value < 0 else np.uint64)
    return float(rounded(exact, dtype))


def pair_literal(builder: Builder, low: int | float, high: int | float, dtype: DType) -> Scalar:
    """Two static numbers as a pair: its word, read as one. TraceError: one does not fit."""
    word = 0
    for part, value in enumerate((low, high)):
        rounded = literal(builder, value, dtype.element).static
        bits = np.asarray(rounded, np.float64).astype(dtype.element.numpy).view(np.uint16)
        word |= int(bits) << 16 * part
    facts = Facts(uniformity=Uniformity.GRID)
    return builder.operate(BITCAST[dtype.name, "uint32"], (Const(word, dtypes.uint32),), facts)


def natural(builder: Builder, value: Value) -> Scalar:
    """A scalar, or a static number in the type that it has by itself: int32, float32, bool."""
    if isinstance(value, Scalar):
        return value
    for kind, dtype in ((bool, dtypes.bool_), (int, dtypes.int32), (float, dtypes.float32)):
        if isinstance(value, kind):
            return literal(builder, value, dtype)
    raise TraceError(f"expected a number but got {describe(value)}")


def describe(value: Value) -> str:
    """A value in an error's sentence."""
    if isinstance(value, Scalar):
        return f"a scalar of type {value.dtype}"
    if isinstance(value, TensorValue):
        return f"the tensor {value.name}"
    if isinstance(value, Text):
        return "an f-string of device values"
    if value is None:
        return "None"
    if isinstance(value, np.generic):
        return f"numpy's {value!r}: make it Python's, int(x) or float(x)"
    for kind in (list, dict):  # also those that the kernel made
        if isinstance(value, kind):
            return kind.__name__
    return f"{type(value).__name__} {value!r}" if is_number(value) or isinstance(value, str) else type(value).__name__
