"""What all `mma.sync` rows have in common: shapes, operands with their layouts, and how the row is written.

The layouts follow from the shape alone. A register is a 32-bit word of neighbours in k (packed, low bits first), or one
float64. In words, lane l and register r hold (PTX manual, section "Matrix Fragments for mma.m16n8k16 with floating
point type" and its neighbours; with m = 8 there is one half of rows):

    A  row l // 4 + 8 * (r % 2), word l % 4 + 4 * (r // 2)      (m, words of k)
    B  row (n) l // 4, word l % 4 + 4 * r                       (8, words of k)
    D, C  row l // 4 + 8 * (r // 2), column 2 * (l % 4) + r % 2 (m, 8)
    D, C of float16  row l // 4 + 8 * r, word l % 4             (m, 4)

Here: nothing that depends on what the elements mean; that stands with the families, `mma_*.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from warpjit.ir.dtypes import DType, float64, uint32
from warpjit.isa.fragments import Gather
from warpjit.isa.row import Array, Asm, Kind, Mode, Needs, Operand, Participants, Row
from warpjit.layout import S, TileLayout, laneid
from warpjit.record import record

COLUMNS = 8
SECTION = "Multiply-and-Accumulate Instruction: mma"


@record
class Shape:
    """m x n x k of one instruction, in elements; n is 8."""

    m: int
    k: int

    def __str__(self) -> str:
        return f"m{self.m}n{COLUMNS}k{self.k}"


# ---- layouts, in registers ----------------------------------------------------------------------------


@lru_cache
def left_layout(rows: int, words: int) -> TileLayout:
    """16 or 8 rows of `words` registers along k: 4 of 8 rows at a time, the row half first."""
    halves = rows // 8
    return _compact(TileLayout(S[(halves, 8, words // 4, 4) : (1, 4 @ laneid, halves, 1 @ laneid)]))


@lru_cache
def right_layout(words: int) -> TileLayout:
    """8 rows (n) of `words` registers along k: 4 of 8 rows at a time."""
    return _compact(TileLayout(S[(8, words // 4, 4) : (4 @ laneid, 1, 1 @ laneid)]))


@lru_cache
def sums_layout(rows: int, packed: int = 1) -> TileLayout:
    """16 or 8 rows of 8 columns, or of 4 words of two columns: two neighbouring columns of a row in each lane."""
    beside = 2 // packed
    return _compact(TileLayout(S[(rows // 8, 8, 4, beside) : (beside, 4 @ laneid, 1 @ laneid, 1)]))


def _compact(layout: TileLayout) -> TileLayout:
    """Without the parts of extent 1."""
    return TileLayout.from_iters(it for it in layout.shard if it.extent > 1)


# ---- operands -----------------------------------------------------------------------------------------


def left_operand(rows: int, depth: int, element: DType) -> Operand:
    """A: `rows` rows of `depth` elements, as many as are stored."""
    word, words = _words(depth, element)
    return _fragment("A", Mode.READ, "MK", word, (rows, words), left_layout(rows, words), element)


def right_operand(depth: int, element: DType) -> Operand:
    """B: 8 rows (n) of `depth` elements."""
    word, words = _words(depth, element)
    return _fragment("B", Mode.READ, "NK", word, (COLUMNS, words), right_layout(words), element)


def sums_operand(name: str, mode: Mode, rows: int, element: DType) -> Operand:
    """D or C: `rows` rows of 8 columns; float16 is packed, two neighbouring columns in a register."""
    packed = max(32 // element.bits, 1)
    word = uint32 if packed > 1 else element
    return _fragment(name, mode, "MN", word, (rows, COLUMNS // packed), sums_layout(rows, packed), element)


def mma_operands(shape: Shape, left: DType, right: DType, result: DType) -> tuple[Operand, ...]:
    """D, A, B, C of D = A @ B.T + C."""
    return (
        sums_operand("D", Mode.WRITE, shape.m, result),
        left_operand(shape.m, shape.k, left),
        right_operand(shape.k, right),
        sums_operand("C", Mode.READ, shape.m, result),
    )


def _words(depth: int, element: DType) -> tuple[DType, int]:
    """The type of a register, and how many there are along k."""
    word = float64 if element == float64 else uint32
    return word, depth * element.bits // word.bits


def _fragment(
    name: str, mode: Mode, repeats: str, dtype: DType, shape: tuple[int, int], layout: TileLayout, element: DType
) -> Operand:
    return Operand(
        name,
        Kind.FRAGMENT,
        mode,
        dtype=dtype,
        element=None if element == dtype else element,
        shape=shape,
        layout=layout,
        repeats=tuple(repeats),
    )


# ---- rows ---------------------------------------------------------------------------------------------

Product = Callable[..., Array]
"""product(A, B, C, fast=False): registers as matrices, (*batch, rows, registers of a row), to those of D."""


def over_matrices(operands: tuple[Operand, ...], product: Product) -> Callable[..., Array]:
    """A row's meaning, over registers (*batch, 32, n), from what it is over matrices of registers."""
    d, a, b, c = (Gather.of(operand) for operand in operands)

    def meaning(A: Array, B: Array, C: Array, *, fast: bool = False) -> Array:
        return d.registers(product(a.matrix(A), b.matrix(B), c.matrix(C), fast=fast))

    return meaning


def mma_row(
    shape: Shape,
    left: DType,
    right: DType,
    result: DType,
    product: Product,
    needs: Needs,
    *,
    saturate: bool = False,
    ending: str = "",
    notes: str = "",
) -> Row:
    """The row of one dense `mma.sync`, D = A @ B.T + C; `ending` follows the types ("and.popc")."""
    types = ".".join(each.ptx for each in (result, left, right, result))
    parts = ("mma.sync.aligned", str(shape), "row.col", "satfinite" if saturate else "", types, ending)
    text = ".".join(part for part in parts if part)
    operands = mma_operands(shape, left, right, result)
    return Row(
        text=text,
        operands=operands,
        code=Asm(f"{text} {{D}}, {{A}}, {{B}}, {{C}};"),
        meaning=over_matrices(operands, product),
        needs=needs,
        participants=Participants.WARP,
        pure=True,
        tile=True,
        section=SECTION,
        notes=notes,
    )
