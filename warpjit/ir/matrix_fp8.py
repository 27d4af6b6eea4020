"""Matrix products of 8-bit floats with the bits of `mma.sync` on sm_90, which has no instruction for them.

The compiler (CUDA 13.0, sm_90a) replaces it, and this is what it computes; found on one H200, and met by 1.3 million
fresh results without a mismatch; the PTX manual leaves it open. Both operands become float16, exactly; then

    r = +0 and the products of the elements with k % 4 in {0, 1}, in one sum as `matrix_numerics` describes it
    r = r and the products of the elements with k % 4 in {2, 3}, in one sum
    d = c + r, an IEEE addition to nearest even

all in the type of the result. So float16 sums may overflow on the way, and c is added last. In a sparse product k
counts the stored elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warpjit.errors import TraceError
from warpjit.ir.dtypes import DType, float8_e4m3fn, float8_e5m2, float16, float32
from warpjit.ir.matrix_numerics import mma_fast, mma_sum
from warpjit.ir.nans import canonical_nan

Array = np.ndarray[Any, Any]

_HALVES = {
    each.ptx: np.arange(256, dtype=np.uint8).view(each.numpy).astype(np.float16)
    for each in (float8_e4m3fn, float8_e5m2)
}
"""float16 (256): the value of each code; every one has an exact float16."""
_RESULTS = {"f16": float16, "f32": float32}


def fp8_sum(a: Array, b: Array, c: Array, a_type: str | DType, b_type: str | DType, d_type: str | DType) -> Array:
    """d = a @ b.T + c of one instruction.

    a       (*batch, M, K) and b (*batch, N, K) of codes (uint8) or 8-bit floats; K a multiple of 4
    c       (*batch, M, N) of float32 or float16 as d, typed or bit patterns; batches broadcast
    a_type  b_type: "e4m3" | "e5m2" or a DType; d_type: "f32" | "f16" or a DType. Raises TraceError for others.
    Returns (*batch, M, N) of float32 or float16.
    """
    result = _result(d_type)
    left, right = _halves(a, a_type), _halves(b, b_type)
    partial = np.zeros(c.shape, result.numpy)
    late = np.arange(left.shape[-1]) % 4 >= 2
    for chosen in (~late, late):
        partial = mma_sum(left[..., chosen], right[..., chosen], partial, float16, float16, result)
    with np.errstate(all="ignore"):
        return canonical_nan(np.ascontiguousarray(c).view(result.numpy) + partial)


def fp8_fast(a: Array, b: Array, c: Array, a_type: str | DType, b_type: str | DType, d_type: str | DType) -> Array:
    """As `fp8_sum`, in one float32 product, which rounds otherwise."""
    return mma_fast(_halves(a, a_type), _halves(b, b_type), c, float16, float16, _result(d_type))


def _halves(codes: Array, kind: str | DType) -> Array:
    name = kind.ptx if isinstance(kind, DType) else kind
    if name not in _HALVES:
        raise TraceError(f"expected an operand type among {', '.join(_HALVES)} but got {name}")
    return _HALVES[name][np.ascontiguousarray(codes).view(np.uint8)]


def _result(kind: str | DType) -> DType:
    name = kind.ptx if isinstance(kind, DType) else kind
    if name not in _RESULTS:
        raise TraceError(f"expected a result type among {', '.join(_RESULTS)} but got {name}")
    return _RESULTS[name]
