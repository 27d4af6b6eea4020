"""mma.sync of float16, bfloat16 and tf32: D = A @ B.T + C, where C and D are float32, or float16 with float16 inputs.

What the instruction computes, bit for bit, is `matrix_numerics.mma_sum`. A tf32 operand is a float32 in a 32-bit
register of which the low 13 bits are not looked at.
"""

from __future__ import annotations

from warpjit.ir.dtypes import DType, bfloat16, float16, float32, tf32
from warpjit.ir.matrix_numerics import mma_fast, mma_sum
from warpjit.isa.mma_shapes import Product, Shape, mma_row
from warpjit.isa.needs import since
from warpjit.isa.row import Array, Needs, Row
from warpjit.record import record


@record
class Family:
    """Instructions that differ in k only: `inputs` of A and B, `result` of C and D, where they exist."""

    inputs: DType
    result: DType
    depths: tuple[tuple[int, Needs], ...]


FAMILIES = (
    # The manual gives m16n8k8 of f16 to sm_75, all others to sm_80.
    Family(float16, float32, ((16, since(80)), (8, since(75)))),
    Family(bfloat16, float32, ((16, since(80)), (8, since(80)))),
    Family(float16, float16, ((16, since(80)), (8, since(75)))),
    Family(tf32, float32, ((8, since(80)), (4, since(80)))),
)


def product_of(inputs: DType, result: DType) -> Product:
    bits = inputs.unsigned_word.numpy

    def product(A: Array, B: Array, C: Array, *, fast: bool = False) -> Array:
        summed = mma_fast if fast else mma_sum
        sums = summed(A.view(bits), B.view(bits), C.view(result.numpy), inputs, inputs, result)
        return sums.view(C.dtype)

    return product


ROWS: tuple[Row, ...] = tuple(
    mma_row(Shape(16, k), family.inputs, family.inputs, family.result, product_of(family.inputs, family.result), needs)
    for family in FAMILIES
    for k, needs in family.depths
)
