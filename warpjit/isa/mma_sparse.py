"""mma.sp: D = A @ B.T + C where half of every row of A is zero and not stored.

`A` holds the stored half, in the layout that dense rows of that length have; `E` says where each stored element stood
(its bits: `sparse_metadata`), `selector` which lanes of a quad hold them. The register of every lane is an operand, so
one register of `E` can serve as many instructions as there are selectors. What is computed is the dense product of
the stored elements with the elements of B that they meet; the others do not exist (a NaN among them has no effect).

`mma.sp` and `mma.sp::ordered_metadata` differ in that the latter demands rising places in each group.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product as combinations

from warpjit.ir.dtypes import (
    DType,
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    int4,
    int8,
    int32,
    tf32,
    uint4,
    uint8,
    uint32,
)
from warpjit.isa import mma_floats, mma_fp8, mma_integers
from warpjit.isa.fragments import Gather
from warpjit.isa.mma_shapes import Product, left_operand, right_operand, sums_operand
from warpjit.isa.needs import since
from warpjit.isa.row import Array, Asm, Fields, Kind, Mode, Needs, Operand, Participants, Row
from warpjit.isa.sparse_metadata import QUAD, QUADS, STORED_ROWS, Metadata, chosen
from warpjit.layout import S, TileLayout, laneid
from warpjit.record import record

SECTION = "Multiply-and-Accumulate Instruction: mma.sp / mma.sp::ordered_metadata"
ORDERED = "sp::ordered_metadata"
VARIANTS = ("sp", ORDERED)
SINCE_80 = since(80)
BY_BYTES = "on sm_90 and later the compiler replaces it by two 8-bit matrix instructions, with the same results"
PLAIN_NOTE = "ptxas advises mma.sp::ordered_metadata, since this form may be much slower on later targets"


@cache
def quad_operand(name: str, repeats: str, fields: Fields | None = None) -> Operand:
    """One register a lane, shape (quad, lane of the quad): metadata, or scales."""
    layout = TileLayout(S[(QUADS, QUAD) : (4 @ laneid, 1 @ laneid)])
    return Operand(
        name,
        Kind.FRAGMENT,
        dtype=uint32,
        shape=(QUADS, QUAD),
        layout=layout,
        repeats=tuple(repeats),
        names=("quad", "word"),
        fields=fields,
    )


@cache
def sparse_operands(k: int, left: DType, right: DType, result: DType, metadata: Metadata) -> tuple[Operand, ...]:
    """D, A, B, C, E and the selector."""
    return (
        sums_operand("D", Mode.WRITE, STORED_ROWS, result),
        left_operand(STORED_ROWS, k // 2, left),
        right_operand(k, right),
        sums_operand("C", Mode.READ, STORED_ROWS, result),
        quad_operand("E", "MK", metadata.fields),
        Operand("selector", Kind.IMMEDIATE, choices=metadata.selectors),
    )


def over_chosen(operands: tuple[Operand, ...], product: Product, metadata: Metadata) -> Callable[..., Array]:
    """A row's meaning, over registers, from that of the dense product of what is stored."""
    d, a, b, c, e = (Gather.of(operand) for operand in operands[:5])

    def meaning(A: Array, B: Array, C: Array, E: Array, *, selector: int, fast: bool = False) -> Array:
        codes = metadata.codes(e.matrix(E), selector)
        metadata.check(codes)
        met = chosen(b.matrix(B), metadata.places(codes), metadata)
        # Every row of A meets a B of its own: 16 products of one row.
        rows = product(a.matrix(A)[..., None, :], met, c.matrix(C)[..., None, :], fast=fast)
        return d.registers(rows[..., 0, :])

    return meaning


def sparse_row(
    variant: str,
    k: int,
    left: DType,
    right: DType,
    result: DType,
    product: Product,
    needs: Needs = SINCE_80,
    *,
    saturate: bool = False,
    notes: str = "",
) -> Row:
    """The row of m16n8k`k`, k counting what is not stored as well."""
    types = ".".join(each.ptx for each in (result, left, right, result))
    finite = ".satfinite" if saturate else ""
    text = f"mma.{variant}.sync.aligned.m16n8k{k}.row.col{finite}.{types}"
    metadata = Metadata.of(left, k // 2 * left.bits // 32, ordered=variant == ORDERED)
    operands = sparse_operands(k, left, right, result, metadata)
    said = [notes] if notes else []
    return Row(
        text=text,
        operands=operands,
        code=Asm(f"{text} {{D}}, {{A}}, {{B}}, {{C}}, {{E[0]}}, {{selector}};"),
        meaning=over_chosen(operands, product, metadata),
        needs=needs,
        participants=Participants.WARP,
        pure=True,
        tile=True,
        section=SECTION,
        notes="; ".join(said + [PLAIN_NOTE] * (variant != ORDERED)),
    )


# ---- families -----------------------------------------------------------------------------------------


@record
class Family:
    """Instructions that differ in k only: `inputs` of A and B, `result` of C and D."""

    inputs: DType
    result: DType
    depths: tuple[int, ...]


FLOATS = (
    Family(float16, float32, (32, 16)),
    Family(float16, float16, (32, 16)),
    Family(bfloat16, float32, (32, 16)),
    Family(tf32, float32, (16, 8)),
)


def _float_rows(variant: str) -> tuple[Row, ...]:
    return tuple(
        sparse_row(variant, k, each.inputs, each.inputs, each.result, mma_floats.product_of(each.inputs, each.result))
        for each in FLOATS
        for k in each.depths
    )


def _integer_rows(variant: str, signed: DType, unsigned: DType, depths: tuple[int, ...], notes: str) -> tuple[Row, ...]:
    kinds = (signed, unsigned)
    return tuple(
        sparse_row(
            variant,
            k,
            left,
            right,
            int32,
            mma_integers.product_of(left, right, saturate),
            saturate=saturate,
            notes=notes,
        )
        for k in depths
        for left, right, saturate in combinations(kinds, kinds, (False, True))
    )


def _fp8_rows(variant: str) -> tuple[Row, ...]:
    kinds = (float8_e4m3fn, float8_e5m2)
    return tuple(
        sparse_row(
            variant,
            64,
            left,
            right,
            float32,
            mma_fp8.product_of(left, right, float32),
            since(89),
            notes=mma_fp8.NOTES,
        )
        for left, right in combinations(kinds, kinds)
    )


ROWS: tuple[Row, ...] = tuple(
    row
    for variant in VARIANTS
    for row in (
        *_float_rows(variant),
        *_integer_rows(variant, int8, uint8, (64, 32), ""),
        *_integer_rows(variant, int4, uint4, (128, 64), BY_BYTES),
        *_fp8_rows(variant),
    )
)
