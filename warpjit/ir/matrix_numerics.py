"""Matrix products with the bits of sm_90: what `mma.sync` computes for f16, bf16 and tf32 operands.

The rules were fitted on one H200 (sm_90a code of CUDA 13.0) and then met 8.2 million fresh results without a
mismatch; the PTX manual leaves them open. One instruction is one sum:

* All products of the instruction and c are added in one step, in no order and without rounding inside.
* A product's exponent is the sum of its factors' exponents, not normalised; a subnormal has the lowest normal
  exponent. E is the largest exponent among the terms that are not zero, and at least -133.
* Each term is cut toward zero to a multiple of 2**(E - 25). The cut terms add exactly.
* A float32 result is the sum cut toward zero, a float16 result the sum to nearest even, subnormals kept; a zero
  is +0; what reaches 2**128 (float16: 65520) is infinity.
* A NaN operand, infinity times zero, or infinities of both signs give the canonical NaN.
* tf32 operands are float32 whose low 13 bits are never looked at.

Here: `mma_sum`, that step vectorised, and `mma_fast`, one float32 product for whoever trades the bits for speed.
Not here: wgmma; 8-bit floats (`matrix_fp8`), float64 (`matrix_double`) and integers (`matrix_integers`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from warpjit.errors import TraceError
from warpjit.ir.dtypes import DType, bfloat16, float16, float32
from warpjit.ir.nans import FORMATS, FloatFormat, canonical_nan
from warpjit.ir.rounding import float64_to_float32_toward_zero, round_float
from warpjit.record import record

Array = np.ndarray[Any, Any]

KEPT_FRACTION_BITS = 25
LOWEST_SUM_EXPONENT = -133
# The exponent of a zero: whatever is added to it stays below every exponent that counts, and within int16.
_ABSENT = -8192
# Results worked on at once: some arrays of 8 bytes each that stay in a core's second cache.
_RESULTS_AT_ONCE = 1 << 14


@record
class _OperandType:
    """How the bits of a matrix operand are read.

    word    the unsigned numpy type of one stored element
    format  the fields; for tf32 those that float32 lays out, since the bits stand where float32 has them
    unread  low bits that the hardware ignores
    """

    word: type[Any]
    format: FloatFormat
    unread: int = 0

    def doubles(self, bits: Array) -> Array:
        """The values of bit patterns, exactly, as float64."""
        if self.word is np.uint32:
            return bits.view(np.float32).astype(np.float64)
        if self.format is FORMATS[float16]:
            return bits.view(np.float16).astype(np.float64)
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


_OPERANDS: dict[str, _OperandType] = {
    "f16": _OperandType(np.uint16, FORMATS[float16]),
    "bf16": _OperandType(np.uint16, FORMATS[bfloat16]),
    "tf32": _OperandType(np.uint32, FORMATS[float32], unread=13),
    "f32": _OperandType(np.uint32, FORMATS[float32]),
}
_FACTORS = ("f16", "bf16", "tf32")
_RESULTS = {"f16": float16, "f32": float32}


@record
class _Terms:
    """An operand taken apart: parallel arrays.

    finite     float64 values, 0 in place of infinities and NaN
    exponents  int16, `_ABSENT` for zeros
    everything float64 values with infinities and NaN, or None where all are finite
    """

    finite: Array
    exponents: Array
    everything: Array | None

    def at(self, *index: Any) -> _Terms:
        everything = None if self.everything is None else self.everything[index]
        return _Terms(self.finite[index], self.exponents[index], everything)

    def all_values(self) -> Array:
        return self.finite if self.everything is None else self.everything


def mma_sum(a: Array, b: Array, c: Array, a_type: str | DType, b_type: str | DType, d_type: str | DType) -> Array:
    """One matrix instruction on many matrices: d = a @ b.T + c with the hardware's bits.

    a       (*batch, M, K) and b (*batch, N, K): typed arrays or bit patterns (uint16; uint32 for tf32)
    c       (*batch, M, N): float32, or float16 where d is float16; typed or bit patterns
    a_type  b_type: "f16" | "bf16" | "tf32" or a DType; d_type, also that of c: "f32" | "f16" or a DType
    Returns (*batch, M, N) of float32 or float16. The batches broadcast. K is the whole instruction's: a longer
    product is a chain of calls. Raises TraceError for other types.
    """
    result_type = _result_type(d_type)
    terms = (_taken_apart(a, _factor(a_type)), _taken_apart(b, _factor(b_type)), _taken_apart(c, result_type.ptx))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    (rows, depth), columns, count = a.shape[-2:], b.shape[-2], int(np.prod(batch, dtype=np.int64))
    if b.shape[-1] != depth or c.shape[-2:] != (rows, columns):
        raise TraceError(f"shapes {a.shape}, {b.shape} and {c.shape} are no (M, K), (N, K) and (M, N)")
    flat_a, flat_b, flat_c = (_flattened(each, (*batch, *each.finite.shape[-2:]), count) for each in terms)
    result = np.empty((count, rows, columns), result_type.numpy)
    if count > columns:
        # numpy is fast along the last axis only: let it be the longest there is.
        for matrices, block in _batch_last(flat_a, flat_b, flat_c, result_type):
            result[matrices] = np.moveaxis(block, -1, 0)
    else:
        for matrix_rows, block in _columns_last(flat_a, flat_b, flat_c, result_type):
            result[matrix_rows] = block
    return result.reshape(*batch, rows, columns)


def mma_fast(a: Array, b: Array, c: Array, a_type: str | DType, b_type: str | DType, d_type: str | DType) -> Array:
    """As `mma_sum`, in one float32 product: rounding differs from the hardware's, and K may be of any length."""
    result_type = _result_type(d_type)
    left, right = (_doubles(each, _factor(kind)).astype(np.float32) for each, kind in ((a, a_type), (b, b_type)))
    with np.errstate(all="ignore"):
        total = left @ np.swapaxes(right, -1, -2) + _doubles(c, result_type.ptx).astype(np.float32)
        return canonical_nan(round_float(total, result_type))


def _factor(kind: str | DType) -> str:
    name = kind.ptx if isinstance(kind, DType) else kind
    if name not in _FACTORS:
        raise TraceError(f"expected an operand type among {', '.join(_FACTORS)} but got {name}")
    return name


def _result_type(kind: str | DType) -> DType:
    name = kind.ptx if isinstance(kind, DType) else kind
    if name not in _RESULTS:
        raise TraceError(f"expected a result type among {', '.join(_RESULTS)} but got {name}")
    return _RESULTS[name]


def _bits(array: Array, kind: _OperandType) -> Array:
    if array.dtype.itemsize != np.dtype(kind.word).itemsize:
        raise TraceError(f"expected elements of {np.dtype(kind.word).itemsize} bytes but got {array.dtype}")
    bits: Array = np.ascontiguousarray(array).view(kind.word)
    return bits >> kind.word(kind.unread) << kind.word(kind.unread) if kind.unread else bits


def _doubles(array: Array, name: str) -> Array:
    return _OPERANDS[name].doubles(_bits(array, _OPERANDS[name]))


def _taken_apart(array: Array, name: str) -> _Terms:
    kind, layout = _OPERANDS[name], _OPERANDS[name].format
    bits = _bits(array, kind)
    with np.errstate(all="ignore"):
        values = kind.doubles(bits)
    top = (1 << layout.exponent) - 1
    field = (bits >> kind.word(layout.fraction)).astype(np.int16) & np.int16(top)
    exponents = np.maximum(field, np.int16(1)) - np.int16(layout.bias)
    exponents[values == 0] = _ABSENT
    infinite = field == top
    if not infinite.any():
        return _Terms(values, exponents, None)
    exponents[infinite] = _ABSENT
    return _Terms(np.where(infinite, 0.0, values), exponents, values)


def _flattened(terms: _Terms, shape: tuple[int, ...], count: int) -> _Terms:
    def flat(array: Array) -> Array:
        return np.broadcast_to(array, shape).reshape(count, *shape[-2:])

    everything = None if terms.everything is None else flat(terms.everything)
    return _Terms(flat(terms.finite), flat(terms.exponents), everything)


def _transposed(terms: _Terms, axes: tuple[int, ...]) -> _Terms:
    def turned(array: Array) -> Array:
        return np.ascontiguousarray(array.transpose(axes))

    everything = None if terms.everything is None else turned(terms.everything)
    return _Terms(turned(terms.finite), turned(terms.exponents), everything)


def _batch_last(a: _Terms, b: _Terms, c: _Terms, result_type: DType) -> Iterator[tuple[slice, Array]]:
    """Blocks (M, N, batch) of the result, with the slice of the batch that each is."""
    count, rows, columns = c.finite.shape
    step = max(_RESULTS_AT_ONCE // (rows * columns), 1)
    for start in range(0, count, step):
        where = slice(start, start + step)
        left, right = (_transposed(each.at(where), (2, 1, 0)) for each in (a, b))
        addend = _transposed(c.at(where), (1, 2, 0))
        yield where, _one_sum(left.at(slice(None), slice(None), None), right.at(slice(None), None), addend, result_type)


def _columns_last(a: _Terms, b: _Terms, c: _Terms, result_type: DType) -> Iterator[tuple[tuple[int, slice], Array]]:
    """Blocks (rows, N) of the result, with the matrix and the slice of its rows that each is."""
    count, rows, columns = c.finite.shape
    step = max(_RESULTS_AT_ONCE // columns, 1)
    for matrix in range(count):
        right = _transposed(b.at(matrix), (1, 0)).at(slice(None), None)
        for start in range(0, rows, step):
            where = (matrix, slice(start, start + step))
            left = _transposed(a.at(*where), (1, 0)).at(slice(None), slice(None), None)
            yield where, _one_sum(left, right, c.at(*where), result_type)


def _one_sum(a: _Terms, b: _Terms, c: _Terms, result_type: DType) -> Array:
    """d for terms a and b of shapes (K, ...) that broadcast to c's shape (...)."""
    exponent = np.maximum(c.exponents, np.int16(LOWEST_SUM_EXPONENT))
    product_exponent = np.empty_like(exponent)
    for a_exponent, b_exponent in zip(a.exponents, b.exponents, strict=True):
        np.add(a_exponent, b_exponent, out=product_exponent)
        np.maximum(exponent, product_exponent, out=exponent)
    # 2**(25 - E), so that a cut term is an integer: all of these are exact in float64, whose exponents reach far
    # beyond 2**256 and 2**-298, the largest and the smallest product, times 2**158 and 2**-230, the scale's ends.
    scale = (1023 + KEPT_FRACTION_BITS - exponent.astype(np.int64) << 52).view(np.float64)
    total = np.trunc(c.finite * scale)
    term = np.empty_like(total)
    for a_value, b_value in zip(a.finite, b.finite, strict=True):
        np.multiply(a_value, b_value, out=term)
        np.multiply(term, scale, out=term)
        np.trunc(term, out=term)
        np.add(total, term, out=total)
    with np.errstate(all="ignore"):
        exact = total / scale
        result = exact.astype(np.float16) if result_type == float16 else float64_to_float32_toward_zero(exact)
        result += 0  # -0 becomes +0
        if a.everything is None and b.everything is None and c.everything is None:
            return result
        return _with_specials(result, a, b, c)


def _with_specials(result: Array, a: _Terms, b: _Terms, c: _Terms) -> Array:
    """`result` with NaN and infinities where the terms have them: IEEE 754's sum in float64, which cannot overflow."""
    total = c.all_values().copy()
    for a_value, b_value in zip(a.all_values(), b.all_values(), strict=True):
        total += a_value * b_value
    special = canonical_nan(total.astype(result.dtype))
    return np.where(np.isfinite(total), result, special)
