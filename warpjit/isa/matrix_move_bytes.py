"""ldmatrix and stmatrix of matrices of bytes, and ldmatrix of 6- and 4-bit elements, each to a byte of its own.

In memory a row is 16 bytes at one address; row i of all rows lies at the address that lane i gives, lanes beyond repeat
those of before (PTX manual, sections "Warp-level matrix load instruction: ldmatrix" and "Warp-level matrix store
instruction: stmatrix"). In registers, 4 bytes each, low first, with matrix `mat` and lane l:

    ldmatrix m8n16 (8 rows of 16)            register mat: row l // 4, elements 4 * (l % 4) … + 3
    ldmatrix m16n16 .trans (16 rows of 16)   register 2 * mat + h: rows 4 * (l % 4) … + 3 of column l // 4 + 8 * h
    stmatrix m16n8 .trans (8 rows of 16)     register mat: of columns l // 4 and l // 4 + 8 rows 2 * (l % 4) and + 1

`b8x16.b6x16_p32` and `b8x16.b4x16_p64` read rows of 16 elements of 6 or 4 bits, packed low first and followed by 32 or
64 bits that are not looked at; each element becomes the low bits of a byte. Never compared with a device.

Left out: forms on whole matrices of two axes, which `T.cuda.tile.apply` offers for 16-bit elements.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpjit.ir.dtypes import uint8, uint32
from warpjit.isa.fragments import Gather
from warpjit.isa.needs import families
from warpjit.isa.row import Array, Asm, Kind, Mode, Operand, Participants, Row
from warpjit.layout import S, TileLayout, laneid
from warpjit.layout.axis import LANES
from warpjit.record import record

ROW_BYTES = 16
NEEDS = families(100, 110, 120)
SPACES = ("shared", "shared::cta")


@record
class Form:
    """One shape of matrix.

    name    in the instruction's text
    rows    of a matrix in memory
    nums    how many matrices an instruction may move
    trans   whether a register holds parts of columns
    """

    name: str
    rows: int
    nums: tuple[int, ...]
    trans: bool


ROWS_OF_16 = Form("m8n16", 8, (1, 2, 4), trans=False)
SQUARE = Form("m16n16", 16, (1, 2), trans=True)
STORED = Form("m16n8", 8, (1, 2, 4), trans=True)


# ---- operands -----------------------------------------------------------------------------------------


def _fragment(name: str, mode: Mode, form: Form, num: int) -> Operand:
    """Words (num, row, word of the row) as they stand in registers: of rows, or with .trans of columns.

    A word of STORED has parts of two columns, so that its bytes are no neighbours in a matrix.
    """
    halves = 2 if form is SQUARE else 1
    layout = TileLayout(S[(num, halves, 8, 4) : (halves, 1, 4 @ laneid, 1 @ laneid)])
    element = None if form is STORED else uint8
    return Operand(name, Kind.FRAGMENT, mode, dtype=uint32, shape=(num, 8 * halves, 4), layout=layout, element=element)


def _memory(name: str, mode: Mode, form: Form, num: int) -> Operand:
    layout = TileLayout(S[(num, form.rows) : (form.rows @ laneid, 1 @ laneid)])
    return Operand(
        name,
        Kind.ADDRESS,
        mode,
        dtype=uint32,
        shape=(num, form.rows, ROW_BYTES // 4),
        layout=layout,
        space="shared",
        bytes=ROW_BYTES,
        align=ROW_BYTES,
        transposed=form.trans,
    )


# ---- meanings -----------------------------------------------------------------------------------------


def _as_they_are(rows: Array) -> Array:
    return rows


def _from_bits(bits: int) -> Callable[[Array], Array]:
    """Rows (…, 16) of bytes to (…, 16) elements of `bits` bits, each in a byte."""

    def unpacked(rows: Array) -> Array:
        flat = np.unpackbits(rows, axis=-1, bitorder="little")[..., : ROW_BYTES * bits]
        apart = flat.reshape(*rows.shape[:-1], ROW_BYTES, bits)
        return np.packbits(apart, axis=-1, bitorder="little")[..., 0]

    return unpacked


FORMATS: dict[str, Callable[[Array], Array]] = {
    "b8": _as_they_are,
    "b8x16.b6x16_p32": _from_bits(6),
    "b8x16.b4x16_p64": _from_bits(4),
}


def _loaded(operand: Operand, form: Form, unpacked: Callable[[Array], Array]) -> Callable[..., Array]:
    """Bytes (*batch, 32, 16) that the lanes address to registers."""
    gather, num = Gather.of(operand), operand.shape[0]

    def meaning(octets: Array) -> Array:
        rows = unpacked(octets[..., : num * form.rows, :]).reshape(*octets.shape[:-2], num, form.rows, ROW_BYTES)
        lines = np.ascontiguousarray(rows.swapaxes(-1, -2) if form.trans else rows)
        return gather.registers(lines.view(np.uint32))

    return meaning


def _stored(operand: Operand) -> Callable[..., Array]:
    """Registers (*batch, 32, num) to the bytes (*batch, 32, 16) of the rows that the lanes address."""
    gather, num = Gather.of(operand), operand.shape[0]
    source = np.arange(LANES) % (num * STORED.rows)

    def meaning(registers: Array) -> Array:
        words = gather.matrix(registers)
        # Axes: matrix, column in its half, pair of rows, half, row of the pair.
        octets = words.view(np.uint8).reshape(*words.shape[:-1], 4, 2, 2)
        rows = np.moveaxis(octets, -4, -1).swapaxes(-2, -3)
        return np.ascontiguousarray(rows.reshape(*registers.shape[:-2], -1, ROW_BYTES)[..., source, :])

    return meaning


# ---- rows ---------------------------------------------------------------------------------------------


def _load_row(form: Form, num: int, space: str, kind: str) -> Row:
    trans = ".trans" if form.trans else ""
    text = f"ldmatrix.sync.aligned.{form.name}.x{num}{trans}.{space}.{kind}"
    fragment = _fragment("d", Mode.WRITE, form, num)
    return Row(
        text=text,
        operands=(fragment, _memory("src", Mode.READ, form, num)),
        code=Asm(f"{text} {{d}}, [{{src}}];"),
        meaning=_loaded(fragment, form, FORMATS[kind]),
        needs=NEEDS,
        participants=Participants.WARP,
        memory=True,
        section="Warp Level Matrix Load Instruction: ldmatrix",
        unverified=True,
    )


def _store_row(num: int, space: str) -> Row:
    text = f"stmatrix.sync.aligned.m16n8.x{num}.trans.{space}.b8"
    fragment = _fragment("a", Mode.READ, STORED, num)
    return Row(
        text=text,
        operands=(_memory("dst", Mode.WRITE, STORED, num), fragment),
        code=Asm(f"{text} [{{dst}}], {{a}};"),
        meaning=_stored(fragment),
        needs=NEEDS,
        participants=Participants.WARP,
        memory=True,
        section="Warp Level Matrix Store Instruction: stmatrix",
        unverified=True,
    )


ROWS: tuple[Row, ...] = (
    *(
        _load_row(form, num, space, kind)
        for form, kinds in ((ROWS_OF_16, tuple(FORMATS)[1:]), (SQUARE, tuple(FORMATS)))
        for num in form.nums
        for space in SPACES
        for kind in kinds
    ),
    *(_store_row(num, space) for num in STORED.nums for space in SPACES),
)
