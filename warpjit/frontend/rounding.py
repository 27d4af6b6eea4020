"""`T.cast(x, dtype, rounding=, saturate=)`: conversions that say how they round and what becomes of what is too large.

Without the two words a conversion is `arithmetic.convert`'s. Directions are rows; saturation is composed of rows that
are there already, in the types of the value or of the result, so that both back ends have it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.builder import Builder
from warpjit.frontend.literals import describe, literal
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, Value, is_number
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.isa.scalar import CONVERT, ROUNDED
from warpjit.isa.scalar_float8 import TYPES as FLOAT8_TYPES
from warpjit.isa.scalar_rounded import LETTERS, is_exact

LARGEST = {
    "float16": 65504.0,
    "bfloat16": (2 - 2.0**-7) * 2.0**127,
    "float32": (2 - 2.0**-23) * 2.0**127,
    "float64": (2 - 2.0**-52) * 2.0**1023,
}
"""The largest finite number of each type."""

_BEYOND = {"float8_e4m3fn": ("gt", 464.0), "float8_e5m2": ("ge", 61440.0)}
"""Which magnitudes round to no number of an 8-bit float: the middle between its largest and what would come next, which
is rounded to the even one of the two."""


def cast(tracer: Tracer, value: Value, dtype: DType, rounding: Value, saturate: Value) -> Scalar:
    """The value in another type, rounded and saturated as is said. TraceError: what no conversion does."""
    tracer.require_device("T.cast with rounding= or saturate=")
    if rounding is not None and (not isinstance(rounding, str) or rounding not in LETTERS):
        raise TraceError(
            f'T.cast: expected rounding to be "nearest", "zero", "down" or "up" but got {describe(rounding)}'
        )
    if saturate is not None and not isinstance(saturate, bool):
        raise TraceError(f"T.cast: expected saturate to be True, False or None but got {describe(saturate)}")
    if not is_number(value) and not isinstance(value, Scalar):
        raise TraceError(f"T.cast: expected a number but got {describe(value)}")
    builder = tracer.builder
    scalar = value if isinstance(value, Scalar) else _exact(builder, value)
    if scalar.dtype.is_pair or dtype.is_pair or dtype.is_bool:
        raise TraceError(f"T.cast: expected no rounding= and no saturate= for {scalar.dtype} to {dtype}")
    if scalar.dtype in FLOAT8_TYPES:
        scalar = arithmetic.convert(builder, scalar, dtypes.float16)
    return _HANDLERS[_kind(dtype)](builder, scalar, dtype, rounding, saturate)


def _exact(builder: Builder, value: int | float) -> Scalar:
    """A number known while tracing, in the widest type of its kind."""
    if isinstance(value, float):
        return literal(builder, value, dtypes.float64)
    return literal(builder, int(value), dtypes.int64 if value <= dtypes.int64.max else dtypes.uint64)


def _kind(dtype: DType) -> str:
    return "int" if dtype.is_int else "float8" if dtype in FLOAT8_TYPES else "float"


def _issue(builder: Builder, scalar: Scalar, dtype: DType, rounding: str | None) -> Scalar:
    """One conversion, also of a number that is known."""
    natural = "zero" if dtype.is_int else "nearest"
    if rounding is None or rounding == natural:
        row = CONVERT[dtype.name, scalar.dtype.name]
    else:
        found = ROUNDED.get((dtype.name, scalar.dtype.name, rounding))
        if found is None:
            legal = [natural, *(way for to, of, way in ROUNDED if (to, of) == (dtype.name, scalar.dtype.name))]
            names = " or ".join(f'"{each}"' for each in legal)
            raise TraceError(f'T.cast: {scalar.dtype} to {dtype} rounds {names} but got rounding="{rounding}"')
        row = found
    facts = fact.of_type(dtype, scalar.uniformity)
    return builder.operate(row, (builder.atom(scalar),), facts, loops=scalar.loops)


# ---- to integers -----------------------------------------------------------------------------------------


def _to_int(builder: Builder, scalar: Scalar, dtype: DType, rounding: str | None, saturate: bool | None) -> Scalar:
    if scalar.dtype.is_float:
        if saturate is False:
            raise TraceError(f"T.cast: {scalar.dtype} to {dtype} always saturates: expected no saturate=False")
        return _issue(builder, scalar, dtype, rounding)
    if rounding is not None:
        raise TraceError(f"T.cast: {scalar.dtype} to {dtype} does not round: expected no rounding=")
    if saturate and scalar.dtype.is_int:
        if scalar.dtype.min < dtype.min:
            scalar = arithmetic.binary(builder, "max", scalar, dtype.min)
        if scalar.dtype.max > dtype.max:
            scalar = arithmetic.binary(builder, "min", scalar, dtype.max)
    return arithmetic.convert(builder, scalar, dtype)


# ---- to floats -------------------------------------------------------------------------------------------


def _to_float(builder: Builder, scalar: Scalar, dtype: DType, rounding: str | None, saturate: bool | None) -> Scalar:
    direction = None if is_exact(dtype, scalar.dtype) else rounding
    result = _issue(builder, scalar, dtype, direction)
    if not saturate:
        return result
    largest = LARGEST[dtype.name]
    return arithmetic.extreme(builder, "max", arithmetic.extreme(builder, "min", result, largest, True), -largest, True)


def _to_float8(builder: Builder, scalar: Scalar, dtype: DType, rounding: str | None, saturate: bool | None) -> Scalar:
    if rounding not in (None, "nearest"):
        raise TraceError(f'T.cast: {scalar.dtype} to {dtype} rounds "nearest" but got rounding="{rounding}"')
    if saturate is not False:
        return arithmetic.convert(builder, scalar, dtype)
    if not scalar.dtype.is_float:
        wide = dtypes.float32 if scalar.dtype.is_bool or scalar.dtype.bits <= 16 else dtypes.float64
        scalar = arithmetic.convert(builder, scalar, wide)
    inside = arithmetic.convert(builder, scalar, dtype)
    compare, border = _BEYOND[dtype.name]
    beyond = arithmetic.compare(builder, compare, arithmetic.unary(builder, "abs", scalar), border)
    outside = literal(builder, math.nan, dtype)
    if dtype == dtypes.float8_e5m2:
        positive = arithmetic.compare(builder, "gt", scalar, 0)
        outside = arithmetic.select(
            builder, positive, literal(builder, math.inf, dtype), literal(builder, -math.inf, dtype)
        )
    return arithmetic.select(builder, beyond, outside, inside)


Handler = Callable[[Builder, Scalar, DType, str | None, bool | None], Scalar]
_HANDLERS: dict[str, Handler] = {"int": _to_int, "float": _to_float, "float8": _to_float8}
