"""Matrix products of integers of 8, 4 and 1 bit: exact sums in int32, as `mma.sync` computes them.

PTX manual, section "Multiply-and-Accumulate Instruction: mma": the sum wraps modulo 2**32; with .satfinite the exact
final sum is clamped to int32. Products of single bits are `and` or `xor`, counted. That the order cannot be seen, and
that saturation looks at the final sum only, was checked on one H200.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warpjit.errors import TraceError
from warpjit.ir.dtypes import DType, int4, int8, int32, uint1, uint4, uint8
from warpjit.ir.words import unpack

Array = np.ndarray[Any, Any]


def _table(element: DType) -> Array:
    """float32 (256, n): the values of the elements that a byte holds, low bits first."""
    octets = np.arange(256, dtype=np.uint8)
    if element == uint1:
        return np.unpackbits(octets[:, None], axis=-1, bitorder="little").astype(np.float32)
    return unpack(octets, element).astype(np.float32)


_TABLES = {element.ptx: _table(element) for element in (int8, uint8, int4, uint4, uint1)}


def integer_sum(
    a: Array, b: Array, c: Array, a_type: str | DType, b_type: str | DType, *, saturate: bool = False
) -> Array:
    """d = a @ b.T + c, modulo 2**32, or clamped to int32 with `saturate`.

    a       (*batch, M, words) and b (*batch, N, words) of unsigned integers: elements packed along K, low bits first
    c       (*batch, M, N) int32, and so the result; batches broadcast
    a_type  b_type: "s8" | "u8" | "s4" | "u4" | "b1" (bits count as 0 and 1) or a DType. Raises TraceError for others.
    """
    total = _product(_elements(a, a_type), _elements(b, b_type)) + c.astype(np.int64)
    if saturate:
        total = total.clip(int32.min, int32.max)
    return total.astype(np.int32)


def bit_sum(a: Array, b: Array, c: Array, operation: str) -> Array:
    """d = c + the number of bits set in a `operation` b, "and" or "xor", over K; shapes as for `integer_sum`."""
    left, right = _elements(a, uint1), _elements(b, uint1)
    both = _product(left, right)
    if operation == "xor":
        # Each bit is counted once where it stands, and taken away twice where it stands in both.
        ones = [each.sum(-1).astype(np.int64) for each in (left, right)]
        both = ones[0][..., :, None] + ones[1][..., None, :] - 2 * both
    return np.asarray(both + c).astype(np.int32)


def _elements(words: Array, kind: str | DType) -> Array:
    """(..., words) to float32 (..., K)."""
    name = kind.ptx if isinstance(kind, DType) else kind
    if name not in _TABLES:
        raise TraceError(f"expected an operand type among {', '.join(_TABLES)} but got {name}")
    octets = np.ascontiguousarray(words).view(np.uint8)
    values = _TABLES[name][octets]
    return values.reshape(*octets.shape[:-1], -1)


def _product(left: Array, right: Array) -> Array:
    """int64, exact: an instruction's sums, at most 32 * 255**2, are whole numbers below 2**24, which float32 holds."""
    return np.asarray(left @ right.swapaxes(-1, -2)).astype(np.int64)
