"""Two 16-bit floats in one register: `T.float16x2(a, b)`, `T.bfloat16x2(a, b)`, and the halves `x[0]`, `x[1]`.

What operators do with pairs is `arithmetic`'s and the rows'; loads and stores of them are those of any 32-bit type.
"""

from __future__ import annotations

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.addresses import static_int
from warpjit.frontend.builder import Builder
from warpjit.frontend.literals import describe, literal, pair_literal
from warpjit.frontend.values import Scalar, Value, is_number
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.isa.scalar import CONVERT_PAIR, PACK32


def make(builder: Builder, dtype: DType, *values: Value) -> Scalar:
    """`T.float16x2(low, high)`; of one number both halves; of a pair its halves converted. Two float32 take one cvt."""
    if len(values) == 1 and isinstance(values[0], Scalar) and values[0].dtype.is_pair:
        pair = values[0]
        return pair if pair.dtype == dtype else make(builder, dtype, half(builder, pair, 0), half(builder, pair, 1))
    if len(values) not in (1, 2):
        raise TraceError(f"T.{dtype}: expected one or two numbers but got {len(values)}")
    for value in values:
        if not is_number(value) and not (isinstance(value, Scalar) and not value.dtype.is_pair):
            raise TraceError(f"T.{dtype}: expected numbers but got {describe(value)}")
    low, high = values[0], values[-1]
    if is_number(low) and is_number(high):
        return pair_literal(builder, low, high, dtype)
    if all(is_number(each) or each.dtype == dtypes.float32 for each in (low, high)):
        return _converted(builder, dtype, low, high)
    return _packed(builder, dtype, low, high)


def _converted(builder: Builder, dtype: DType, low: Value, high: Value) -> Scalar:
    """One conversion of two float32. A literal is rounded to a half first, so that it is rounded once."""
    parts = [
        each if isinstance(each, Scalar) else literal(builder, _rounded(builder, each, dtype), dtypes.float32)
        for each in (high, low)
    ]
    facts = fact.of_type(dtypes.uint32, max(part.uniformity for part in parts))
    loops = parts[0].loops | parts[1].loops
    row = CONVERT_PAIR[dtype.element.name, "float32"]
    word = builder.operate(row, tuple(builder.atom(part) for part in parts), facts, loops=loops)
    return memory.bitcast(builder, word, dtype)


def _rounded(builder: Builder, value: int | float, dtype: DType) -> float:
    constant = literal(builder, value, dtype.element).static
    assert constant is not None
    return float(constant)


def _packed(builder: Builder, dtype: DType, low: Value, high: Value) -> Scalar:
    parts = [arithmetic.typed(builder, each, dtype.element) for each in (low, high)]
    words = [memory.bitcast(builder, part, dtypes.uint16) for part in parts]
    facts = fact.of_type(dtypes.uint32, max(part.uniformity for part in parts))
    loops = parts[0].loops | parts[1].loops
    word = builder.operate(PACK32, tuple(builder.atom(each) for each in words), facts, loops=loops)
    return memory.bitcast(builder, word, dtype)


def half(builder: Builder, pair: Scalar, index: Value) -> Scalar:
    """`x[0]`, the low half, and `x[1]`, the high one. TraceError for any other index."""
    part = static_int(index, f"the index of a {pair.dtype}")
    if part not in (0, 1):
        raise TraceError(f"a {pair.dtype} has halves 0 and 1, but got index {part}")
    return memory.half_of(builder, pair, pair.dtype.element, part)
