"""mma.sync of integers of 8 and 4 bits, and of single bits: D = A @ B.T + C in int32.

Signed and unsigned operands mix. With .satfinite the sum is clamped, else it wraps. Single bits are combined by `and`
or `xor`, and counted. What the instructions compute is in `matrix_integers`.
"""

from __future__ import annotations

from itertools import product as combinations

from warpjit.ir.dtypes import DType, int4, int8, int32, uint1, uint4, uint8
from warpjit.ir.matrix_integers import bit_sum, integer_sum
from warpjit.isa.mma_shapes import Product, Shape, mma_row
from warpjit.isa.needs import since
from warpjit.isa.row import Array, Row

# The same bits in each width: 128 of a row in the first and second, 256 in the third. m8n8 came with sm_75.
_SHAPES_BY_BITS: dict[int, tuple[tuple[Shape, int], ...]] = {
    bits: (
        (Shape(8, 128 // bits), 75),
        (Shape(16, 128 // bits), 80),
        (Shape(16, 256 // bits), 80),
    )
    for bits in (8, 4, 1)
}
_REPLACED = {4: "on sm_90 and later the compiler replaces it by two 8-bit matrix instructions, with the same results"}


def product_of(left: DType, right: DType, saturate: bool) -> Product:
    def product(A: Array, B: Array, C: Array, *, fast: bool = False) -> Array:
        return integer_sum(A, B, C, left, right, saturate=saturate)  # exact is fast enough

    return product


def _bits(operation: str) -> Product:
    def product(A: Array, B: Array, C: Array, *, fast: bool = False) -> Array:
        return bit_sum(A, B, C, operation)

    return product


def _integer_rows(signed: DType, unsigned: DType) -> tuple[Row, ...]:
    kinds = (signed, unsigned)
    return tuple(
        mma_row(
            shape,
            left,
            right,
            int32,
            product_of(left, right, saturate),
            since(arch),
            saturate=saturate,
            notes=_REPLACED.get(signed.bits, ""),
        )
        for shape, arch in _SHAPES_BY_BITS[signed.bits]
        for left, right, saturate in combinations(kinds, kinds, (False, True))
    )


def _bit_rows(operation: str, first: int, notes: str = "") -> tuple[Row, ...]:
    """`first`: the architecture that the operation came with."""
    return tuple(
        mma_row(
            shape,
            uint1,
            uint1,
            int32,
            _bits(operation),
            since(max(first, arch)),
            ending=f"{operation}.popc",
            notes=notes,
        )
        for shape, arch in _SHAPES_BY_BITS[1]
    )


ROWS: tuple[Row, ...] = (
    *_integer_rows(int8, uint8),
    *_integer_rows(int4, uint4),
    *_bit_rows("and", 80, "on sm_100 and later the compiler replaces it by 8-bit ones, with the same results"),
    *_bit_rows(
        "xor",
        75,
        "on sm_90 the compiler replaces it by two `and` instructions, on sm_100 and later by 8-bit ones, with the same "
        "results",
    ),
)
