"""The values of a batch of warps: every local an array (warps, 32), every `Registers` an array (warps, 32, count).

Each has shadow marks beside it, allocated when first needed. Registers hold unsigned words; how an operand reads them
is `registers`. Nothing here knows instructions or control flow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import Loc
from warpjit.ir.nodes import Const, Local, Registers, Slot
from warpjit.layout.axis import LANES
from warpjit.sim.marks import Mark, MarkTable, Taint, all_bits, word_type

Array: TypeAlias = npt.NDArray[Any]
Index: TypeAlias = slice | Array


@dataclass
class Cell:
    """The values of one local or of one `Registers`, with marks if any value is bad."""

    data: Array
    mark: Array | None = None
    bits: Array | None = None

    def taint(self, index: Any) -> Taint | None:
        if self.mark is None or self.bits is None:
            return None
        return Taint(self.mark[index], self.bits[index])

    def begin_marks(self) -> tuple[Array, Array]:
        """The mark arrays, made if there are none."""
        if self.mark is None or self.bits is None:
            self.mark = np.zeros(self.data.shape, np.uint16)
            self.bits = np.zeros(self.data.shape, word_type(self.data.dtype))
        return self.mark, self.bits

    def tidy(self) -> None:
        """Forget the mark arrays once nothing is marked any more."""
        if self.mark is not None and not self.mark.any():
            self.mark = self.bits = None


class Values:
    """All locals and registers of `rows` warps."""

    def __init__(self, rows: int, marks: MarkTable):
        self.rows = rows
        self.marks = marks
        self.locals: dict[str, Cell] = {}
        self.registers: dict[str, Cell] = {}
        self._constants: dict[int, tuple[Const, Array]] = {}
        self._kept: dict[tuple[int, int], tuple[object, Array]] = {}

    # ---- reading -----------------------------------------------------------------------------------

    def constant(self, const: Const) -> Array:
        """A literal as an array (1, 1)."""
        found = self._constants.get(id(const))
        if found is None:
            array = np.full((1, 1), const.value).astype(const.dtype.numpy)
            found = self._constants[id(const)] = const, array  # kept beside it, so that its id stays its own
        return found[1]

    def kept(self, of: object, n: int, make: Callable[[], Array]) -> Array:
        """What never changes: literals as an operand of an operation takes them, in `n` warps."""
        found = self._kept.get((id(of), n))
        if found is None:
            found = self._kept[id(of), n] = of, make()
        return found[1]

    def local(self, local: Local) -> Cell:
        """The cell of a local. One that nothing has written yet is unwritten in every lane."""
        cell = self.locals.get(local.name)
        if cell is None:
            cell = self.locals[local.name] = Cell(np.zeros((self.rows, LANES), local.dtype.numpy))
            mark, bits = cell.begin_marks()
            mark[:] = self.marks.number(Mark(f"`{local.name}` has no value here"))
            bits[:] = all_bits(cell.data.dtype)
        return cell

    def register(self, registers: Registers) -> Cell:
        """The cell of registers. Without an allocation before it they are unwritten in every lane."""
        cell = self.registers.get(registers.name)
        if cell is None:
            word = word_type(registers.word.numpy)
            cell = self.registers[registers.name] = Cell(np.zeros((self.rows, LANES, registers.count), word))
            mark, bits = cell.begin_marks()
            mark[:] = self.marks.number(Mark(f"the registers of `{registers.name}` are not allocated here"))
            bits[:] = all_bits(cell.data.dtype)
        return cell

    def read(self, atom: Const | Local | Slot, index: Index) -> Array:
        """The values of an atom in the rows `index`: (n, 32), or (1, 1) for a literal."""
        if isinstance(atom, Local):
            return self.local(atom).data[index]
        if isinstance(atom, Const):
            return self.constant(atom)
        words = self.register(atom.registers).data[index][..., atom.index]
        return words.view(atom.dtype.numpy)

    def taint(self, atom: Const | Local | Slot, index: Index) -> Taint | None:
        if isinstance(atom, Local):
            return self.local(atom).taint(index)
        if isinstance(atom, Const):
            return None
        found = self.register(atom.registers).taint(index)
        return None if found is None else Taint(found.mark[..., atom.index], found.bits[..., atom.index])

    # ---- writing -----------------------------------------------------------------------------------

    def give(self, local: Local, value: Any) -> None:
        """The same value in every thread: a parameter of the kernel."""
        self.locals[local.name] = Cell(np.full((self.rows, LANES), np.asarray(value).astype(local.dtype.numpy)))

    def write(self, local: Local, index: Index, values: Array, where: Array | None, taint: Taint | None) -> None:
        """Store values (n, 32) in the rows `index`, in the lanes `where` (None: all of them)."""
        cell = self.locals.get(local.name)
        if cell is None:
            cell = self.locals[local.name] = Cell(np.zeros((self.rows, LANES), local.dtype.numpy))
        store(cell.data, index, values, where)
        mark_cell(cell, index, where, taint)

    def declare(self, local: Local, index: Index, where: Array, loc: Loc) -> None:
        """A local comes into being without a value."""
        cell = self.local(local)
        mark, bits = cell.begin_marks()
        store(
            mark,
            index,
            np.uint16(self.marks.number(Mark(f"`{local.name}` comes into being without a value", loc))),
            where,
        )
        store(bits, index, all_bits(cell.data.dtype), where)

    def allocate(self, registers: Registers, index: Index, where: Array, loc: Loc) -> None:
        """Registers come into being, unwritten."""
        cell = self.register(registers)
        mark, bits = cell.begin_marks()
        number = np.uint16(
            self.marks.number(Mark(f"the registers of `{registers.name}` are allocated, unwritten", loc))
        )
        store(mark, index, number, where[..., None])
        store(bits, index, all_bits(cell.data.dtype), where[..., None])


def store(target: Array, index: Index, values: Any, where: Array | None) -> None:
    """target[index] = values where `where` holds."""
    if where is None:
        target[index] = values
    elif isinstance(index, slice):
        np.copyto(target[index], values, where=where, casting="unsafe")
    else:
        target[index] = np.where(where, values, target[index])


def mark_cell(cell: Cell, index: Index, where: Array | None, taint: Taint | None) -> None:
    """The marks of what was just stored."""
    if taint is None:
        if cell.mark is not None and cell.bits is not None:
            store(cell.mark, index, np.uint16(0), where)
            store(cell.bits, index, cell.bits.dtype.type(0), where)
            cell.tidy()
        return
    mark, bits = cell.begin_marks()
    store(mark, index, taint.mark, where)
    store(bits, index, taint.bits, where)
