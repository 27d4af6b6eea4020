"""The metadata of 2:4 sparse matrices: which elements of each row are stored, as bits of the lanes' registers.

A row is stored in *units*: 16 bits for float16, bfloat16 and tf32 (two units an element), 8 bits for bytes, 8-bit
floats and pairs of 4-bit integers. Of four neighbouring units two are stored, and two bits say for each of them where
it stood, low bits first. So tf32 keeps one element of two (codes 0b0100 and 0b1110), and 4-bit integers keep two pairs
of four (PTX manual, section "Sparse matrix storage").

Four lanes, a quad, hold the bits of rows i and i + 8, where i is the quad's number; of them as many as are needed,
from the one that the selector names (sections "Matrix Fragments for sparse mma.m16n8k16 with .f16 and .bf16 types" and
its neighbours). In words of quad i, with n the words that a quad needs:

    16-bit units  n = bits of a row / 16: word c has bits 16 c … of row i in its low half, of row i + 8 in its high half
    8-bit units   n = bits of a row / 16: word 2 c + r has bits 32 c … of row i + 8 r

Numpy arrays only; functions for tensors are in `sparse`.
"""

from __future__ import annotations

import numpy as np

from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DType
from warpjit.isa.row import Array, Fields
from warpjit.layout import R, S, TileLayout, laneid
from warpjit.record import record

STORED_ROWS, QUADS, QUAD = 16, 8, 4
GROUP, KEPT = 4, 2
"""Of GROUP neighbouring units KEPT are stored."""


@record
class Metadata:
    """The metadata operand of one instruction.

    unit     bits of a unit
    stored   units of a row that are stored
    whole    units that are stored only together: 2 for tf32, whose elements are two units
    ordered  the codes of a group must rise, as `::ordered_metadata` demands
    """

    unit: int
    stored: int
    whole: int = 1
    ordered: bool = True

    @classmethod
    def of(cls, element: DType, words: int, ordered: bool = True) -> Metadata:
        """Of rows of which `words` 32-bit words are stored."""
        unit = 16 if element.bits >= 16 else 8
        return cls(unit, 32 * words // unit, 2 if element.bits == 32 else 1, ordered)

    @property
    def words(self) -> int:
        """Words that a quad needs."""
        return 2 * self.stored // 16

    @property
    def selectors(self) -> tuple[int, ...]:
        """What the selector may be: which lanes of a quad hold the metadata."""
        return tuple(range(QUAD // self.words))

    @property
    def fields(self) -> Fields:
        """Where the bits of each row and group are, as the header says; the copies are those of the selectors."""
        if self.unit == 16:
            shard = S[(2, QUADS, self.words, 4) : (4, QUAD @ laneid, 1 @ laneid, 1)]
        else:
            shard = S[(2, QUADS, self.words // 2, 8) : (1 @ laneid, QUAD @ laneid, 2 @ laneid, 1)]
        layout = TileLayout(shard + R[len(self.selectors) : self.words @ laneid])
        return Fields(("m", "group"), (STORED_ROWS, self.stored // KEPT), layout, 2 * KEPT, "selector")

    @property
    def _field(self) -> type[np.unsignedinteger]:
        return np.uint16 if self.unit == 16 else np.uint32

    def codes(self, words: Array, selector: int) -> Array:
        """(*batch, 8, 4) words of the quads' lanes to the codes (*batch, 16, stored), 0 … 3."""
        own = words[..., selector * self.words : (selector + 1) * self.words]
        field = self._field
        fields = np.ascontiguousarray(own).view(field).reshape(*words.shape[:-2], QUADS, -1, 2)
        rows = np.moveaxis(fields, -1, -3).reshape(*words.shape[:-2], STORED_ROWS, -1)
        shifts = np.arange(0, rows.dtype.itemsize * 8, 2, dtype=field)
        return (rows[..., None] >> shifts & field(3)).reshape(*words.shape[:-2], STORED_ROWS, self.stored)

    def packed(self, codes: Array) -> Array:
        """The inverse of `codes`; the words stand once for every selector, so that any of them will do."""
        field = self._field
        batch = codes.shape[:-2]
        apart = codes.astype(field).reshape(*batch, STORED_ROWS, -1, np.dtype(field).itemsize * 4)
        shifts = np.arange(0, np.dtype(field).itemsize * 8, 2, dtype=field)
        rows = np.bitwise_or.reduce(apart << shifts, axis=-1).reshape(*batch, 2, QUADS, -1)
        own = np.ascontiguousarray(np.moveaxis(rows, -3, -1)).reshape(*batch, QUADS, -1).view(np.uint32)
        return np.tile(own, len(self.selectors))

    def check(self, codes: Array) -> None:
        """InstructionError for codes whose effect the manual leaves undefined, naming the first row and group."""
        groups = codes.reshape(*codes.shape[:-1], -1, KEPT).astype(np.int8)
        first, second = groups[..., 0], groups[..., 1]
        wrong = first == second
        if self.ordered:
            wrong |= first > second
        if self.whole == 2:
            wrong |= (first % 2 != 0) | (second != first + 1)
        if wrong.any():
            where = np.argwhere(wrong)[0]
            row, group = int(where[-2]), int(where[-1])
            bits = int(first[tuple(where)]) | int(second[tuple(where)]) << 2
            rising = ", the lower one first" if self.ordered else ""
            legal = "0b0100 or 0b1110" if self.whole == 2 else f"two different places{rising},"
            raise InstructionError(
                f"metadata of row {row}, group {group}: expected {legal} but got {bits:#06b}, whose effect is undefined"
            )

    def places(self, codes: Array) -> Array:
        """Where each stored unit stands in the whole row: (*batch, 16, 2 * stored) units, of which these are stored."""
        return GROUP * (np.arange(self.stored) // KEPT) + codes


def chosen(matrix: Array, places: Array, metadata: Metadata) -> Array:
    """For each row of A, the units of B's rows that it multiplies.

    matrix  (*batch, 8, words) uint32: B, all of k
    places  (*batch, 16, stored)
    Returns (*batch, 16, 8, words / 2) uint32: for each row of A its own B.
    """
    units = matrix.view(np.uint16 if metadata.unit == 16 else np.uint8)
    *batch, rows, stored = places.shape
    columns = units.shape[-2]
    every = np.broadcast_to(units[..., None, :, :], (*batch, rows, columns, units.shape[-1]))
    index = np.broadcast_to(places[..., :, None, :], (*batch, rows, columns, stored))
    return np.ascontiguousarray(np.take_along_axis(every, index, axis=-1)).view(np.uint32)
