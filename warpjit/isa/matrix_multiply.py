"""mma.sync: D = A @ B.T + C of one warp.

A family is a line of `FAMILIES`; the operands' layouts follow from the shape alone (PTX manual, section "Matrix
Fragments for mma.m16n8k16 with floating point type" and its neighbours). In 32-bit words, lane l and register r:

    A  row l // 4 + 8 * (r % 2), word l % 4 + 4 * (r // 2)      (16, k / 2)
    B  row (n) l // 4, word l % 4 + 4 * r                       (8, k / 2)
    D, C  row l // 4 + 8 * (r // 2), column 2 * (l % 4) + r % 2 (16, 8)

What the instruction computes, bit for bit, is `matrix_numerics.mma_sum`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warpjit.ir.dtypes import DType, bfloat16, float16, float32, uint32
from warpjit.ir.matrix_numerics import mma_fast, mma_sum
from warpjit.isa.fragments import Gather
from warpjit.isa.needs import since
from warpjit.isa.row import Array, Asm, Kind, Mode, Needs, Operand, Participants, Row
from warpjit.layout import S, TileLayout, laneid


@dataclass(frozen=True)
class Family:
    """mma.sync instructions that differ in k only: `inputs` of A and B, `result` of C and D, where they exist."""

    inputs: DType
    result: DType
    depths: tuple[tuple[int, Needs], ...]


FAMILIES = (
    # The manual gives m16n8k8 of f16 to sm_75, all others to sm_80.
    Family(float16, float32, ((16, since(80)), (8, since(75)))),
    Family(bfloat16, float32, ((16, since(80)), (8, since(80)))),
)


def accumulator_layout() -> TileLayout:
    """16 x 8 words: two rows 8 apart, two columns side by side."""
    return TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])


def left_layout(words: int) -> TileLayout:
    """16 rows of `words` 32-bit words: 4 words of 8 rows a register, the row half first."""
    return TileLayout(S[(2, 8, words // 4, 4) : (1, 4 @ laneid, 2, 1 @ laneid)])


def right_layout(words: int) -> TileLayout:
    """8 rows of `words` 32-bit words: 4 words of 8 rows a register."""
    return TileLayout(S[(8, words // 4, 4) : (4 @ laneid, 1, 1 @ laneid)])


def _operands(inputs: DType, result: DType, words: int) -> tuple[Operand, ...]:
    def matrix(name: str, mode: Mode, repeats: str, layout: TileLayout, packed: bool) -> Operand:
        return Operand(
            name,
            Kind.FRAGMENT,
            mode,
            dtype=uint32 if packed else result,
            shape=(layout.size() // words, words) if packed else (16, 8),
            layout=layout,
            repeats=tuple(repeats),
            element=inputs if packed else None,
        )

    return (
        matrix("D", Mode.WRITE, "MN", accumulator_layout(), packed=False),
        matrix("A", Mode.READ, "MK", left_layout(words), packed=True),
        matrix("B", Mode.READ, "NK", right_layout(words), packed=True),
        matrix("C", Mode.READ, "MN", accumulator_layout(), packed=False),
    )


def _meaning(operands: tuple[Operand, ...], inputs: DType, result: DType) -> Callable[..., Array]:
    """Registers (*batch, 32, n) of A, B and C to those of D."""
    d, a, b, c = (Gather.of(operand) for operand in operands)

    def meaning(A: Array, B: Array, C: Array, *, fast: bool = False) -> Array:
        left, right = (gather.matrix(array).view(np.uint16) for gather, array in ((a, A), (b, B)))
        product = mma_fast if fast else mma_sum
        return d.registers(product(left, right, c.matrix(C), inputs, inputs, result))

    return meaning


def _row(family: Family, k: int, needs: Needs) -> Row:
    inputs, result = family.inputs, family.result
    text = f"mma.sync.aligned.m16n8k{k}.row.col.{result.ptx}.{inputs.ptx}.{inputs.ptx}.{result.ptx}"
    operands = _operands(inputs, result, k * inputs.bits // 32)
    return Row(
        text=text,
        operands=operands,
        code=Asm(f"{text} {{D}}, {{A}}, {{B}}, {{C}};"),
        meaning=_meaning(operands, inputs, result),
        needs=needs,
        participants=Participants.WARP,
        pure=True,
        tile=True,
        section="Multiply-and-Accumulate Instruction: mma",
    )


ROWS: tuple[Row, ...] = tuple(_row(family, k, needs) for family in FAMILIES for k, needs in family.depths)
