"""mma.sync of 8-bit floats, e4m3 and e5m2 in any mix: D = A @ B.T + C in float32 or float16.

What sm_90 computes, where the compiler replaces the instruction, is in `matrix_fp8`.
"""

from __future__ import annotations

from itertools import product as combinations

import numpy as np

from warpjit.ir.dtypes import DType, float8_e4m3fn, float8_e5m2, float16, float32
from warpjit.ir.matrix_fp8 import fp8_fast, fp8_sum
from warpjit.isa.mma_shapes import Product, Shape, mma_row
from warpjit.isa.needs import since
from warpjit.isa.row import Array, Row

NOTES = (
    "on sm_90 and sm_100 the compiler replaces it by conversions to float16, two float16 matrix instructions and an "
    "addition, which the simulator computes; where the instruction exists (sm_89, sm_120) it may round otherwise"
)


def product_of(left: DType, right: DType, result: DType) -> Product:
    def product(A: Array, B: Array, C: Array, *, fast: bool = False) -> Array:
        summed = fp8_fast if fast else fp8_sum
        return summed(A.view(np.uint8), B.view(np.uint8), C.view(result.numpy), left, right, result).view(C.dtype)

    return product


_KINDS = (float8_e4m3fn, float8_e5m2)

ROWS: tuple[Row, ...] = tuple(
    mma_row(Shape(16, k), left, right, result, product_of(left, right, result), since(89), notes=NOTES)
    for k in (32, 16)
    for result in (float32, float16)
    for left, right in combinations(_KINDS, _KINDS)
)
