"""mma.sync of float64: D = A @ B.T + C. Its registers hold one element each.

What the instruction computes, bit for bit, is `matrix_double.double_sum`.
"""

from __future__ import annotations

from warpjit.ir.dtypes import float64
from warpjit.ir.matrix_double import double_fast, double_sum
from warpjit.isa.mma_shapes import Shape, mma_row
from warpjit.isa.needs import since
from warpjit.isa.row import Array, Row


def _product(A: Array, B: Array, C: Array, *, fast: bool = False) -> Array:
    return (double_fast if fast else double_sum)(A, B, C)


ROWS: tuple[Row, ...] = (
    mma_row(Shape(8, 4), float64, float64, float64, _product, since(80)),
    *(mma_row(Shape(16, k), float64, float64, float64, _product, since(90)) for k in (4, 8, 16)),
)
