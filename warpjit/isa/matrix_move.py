"""ldmatrix, stmatrix and movmatrix: 8 x 8 matrices of 16-bit elements in shared memory and fragments.

Both sides are (num, 8, 4): matrix, row, 32-bit word of the row. Word (mat, row, word) is register `mat` of lane
4 * row + word; with .trans each matrix is transposed between memory and registers. The 16 bytes of row (mat, row) lie
at the address that lane 8 * mat + row gives; lanes beyond repeat the addresses of those before (PTX manual, sections
"Warp Level Matrix Load Instruction: ldmatrix" and "Warp Level Matrix Store Instruction: stmatrix").

movmatrix transposes one such matrix in place: its word (row, word) is the register of lane 4 * row + word (section
"Warp Level Matrix Transpose Instruction: movmatrix").

Left out: 8-bit elements and the shapes that only newer targets have, which are in `matrix_move_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpjit.ir.dtypes import uint16, uint32
from warpjit.isa.needs import since
from warpjit.isa.row import Array, Asm, Kind, Mode, Operand, Participants, Row
from warpjit.layout import S, TileLayout, laneid
from warpjit.layout.axis import LANES

NUMS = (1, 2, 4)


def _fragment(name: str, mode: Mode, num: int) -> Operand:
    layout = TileLayout(S[(num, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])
    return Operand(name, Kind.FRAGMENT, mode, dtype=uint32, shape=(num, 8, 4), layout=layout, element=uint16)


def _rows(name: str, mode: Mode, num: int, trans: str) -> Operand:
    layout = TileLayout(S[(num, 8) : (8 @ laneid, 1 @ laneid)])
    return Operand(
        name,
        Kind.ADDRESS,
        mode,
        dtype=uint32,
        shape=(num, 8, 4),
        layout=layout,
        space="shared",
        bytes=16,
        align=16,
        transposed=bool(trans),
    )


def _transposed(matrices: Array) -> Array:
    """(..., num, 8, 4) words: each matrix of 8 x 8 halves transposed."""
    halves = np.ascontiguousarray(matrices).view(uint16.numpy)
    return np.ascontiguousarray(halves.swapaxes(-1, -2)).view(uint32.numpy)


def _loaded(num: int, trans: bool) -> Callable[..., Array]:
    """Bytes (*batch, 32, 16) that the lanes address to registers (*batch, 32, num)."""

    def meaning(octets: Array) -> Array:
        words = np.ascontiguousarray(octets[..., : 8 * num, :]).view(uint32.numpy)
        matrices = words.reshape(*octets.shape[:-2], num, 8, 4)
        if trans:
            matrices = _transposed(matrices)
        return np.ascontiguousarray(np.moveaxis(matrices.reshape(*octets.shape[:-2], num, LANES), -2, -1))

    return meaning


def _stored(num: int, trans: bool) -> Callable[..., Array]:
    """Registers (*batch, 32, num) to the bytes (*batch, 32, 16) of the rows that the lanes address."""
    lanes = np.arange(LANES)
    source = 8 * (lanes // 8 % num) + lanes % 8  # lanes beyond the rows repeat them

    def meaning(registers: Array) -> Array:
        matrices = np.moveaxis(registers, -1, -2).reshape(*registers.shape[:-2], num, 8, 4)
        if trans:
            matrices = _transposed(matrices)
        rows = np.ascontiguousarray(matrices.reshape(*registers.shape[:-2], 8 * num, 4)[..., source, :])
        return rows.view(np.uint8)

    return meaning


def _load_row(num: int, trans: str, space: str) -> Row:
    text = f"ldmatrix.sync.aligned.m8n8.x{num}{trans}.{space}.b16"
    return Row(
        text=text,
        operands=(_fragment("d", Mode.WRITE, num), _rows("src", Mode.READ, num, trans)),
        code=Asm(f"{text} {{d}}, [{{src}}];"),
        meaning=_loaded(num, bool(trans)),
        needs=since(75),
        participants=Participants.WARP,
        memory=True,
        tile=True,
        section="Warp Level Matrix Load Instruction: ldmatrix",
    )


def _store_row(num: int, trans: str, space: str) -> Row:
    text = f"stmatrix.sync.aligned.m8n8.x{num}{trans}.{space}.b16"
    return Row(
        text=text,
        operands=(_rows("dst", Mode.WRITE, num, trans), _fragment("a", Mode.READ, num)),
        code=Asm(f"{text} [{{dst}}], {{a}};"),
        meaning=_stored(num, bool(trans)),
        needs=since(90),
        participants=Participants.WARP,
        memory=True,
        tile=True,
        section="Warp Level Matrix Store Instruction: stmatrix",
    )


def _turned(registers: Array) -> Array:
    """Registers (*batch, 32, 1) of a matrix to those of its transpose."""
    matrices = registers.reshape(*registers.shape[:-2], 8, 4)
    return _transposed(matrices).reshape(registers.shape)


def _turn_row() -> Row:
    layout = TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)])
    text = "movmatrix.sync.aligned.m8n8.trans.b16"

    def matrix(name: str, mode: Mode) -> Operand:
        return Operand(name, Kind.FRAGMENT, mode, dtype=uint32, shape=(8, 4), layout=layout, element=uint16)

    return Row(
        text=text,
        operands=(matrix("d", Mode.WRITE), matrix("a", Mode.READ)),
        code=Asm(f"{text} {{d[0]}}, {{a[0]}};"),
        meaning=_turned,
        needs=since(75),
        participants=Participants.WARP,
        pure=True,
        moves=True,
        tile=True,
        section="Warp Level Matrix Transpose Instruction: movmatrix",
    )


ROWS: tuple[Row, ...] = (
    *(
        make(num, trans, space)
        for make in (_load_row, _store_row)
        for num in NUMS
        for trans in ("", ".trans")
        for space in ("shared", "shared::cta")
    ),
    _turn_row(),
)
