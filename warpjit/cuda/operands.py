"""What the operands of an operation are in CUDA C++: names, literals, addresses and numbers.

One handler for each `Kind` binds an operand's value for one issue. How the bound operands meet the row's template
(constraints, temporaries, predicates) is in `issues`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from warpjit.cuda.names import ARENA, ARENA_ADDRESS, Namer
from warpjit.cuda.scalars import c_type, literal
from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DType, uint64
from warpjit.ir.nodes import (
    Address,
    Atom,
    Buffer,
    Const,
    Fragment,
    GlobalBuffer,
    Local,
    Op,
    OperandValue,
    Registers,
    SharedBuffer,
    Slot,
    Tile,
)
from warpjit.isa.pairing import paired
from warpjit.isa.row import Kind, Operand, Row
from warpjit.record import record


class SharedPlan(Protocol):
    """Where the shared buffers of a kernel lie in the CTA's arena."""

    @property
    def shared_bytes(self) -> int: ...

    def shared_offset(self, name: str) -> int: ...


# ---- names of values ---------------------------------------------------------------------------------


class Texts:
    """How the values of one kernel are written."""

    def __init__(self) -> None:
        self.namer = Namer()
        self._locals: dict[str, str] = {}
        self._registers: dict[str, tuple[str, ...]] = {}

    def local(self, local: Local) -> str:
        found = self._locals.get(local.name)
        if found is None:
            found = self._locals[local.name] = self.namer.name("local", local.name)
        return found

    def registers(self, registers: Registers) -> tuple[str, ...]:
        """The scalar variables that the registers are: no array, so that none can land in local memory."""
        found = self._registers.get(registers.name)
        if found is None:
            endings = tuple(f"_{index}" for index in range(registers.count))
            prefix = self.namer.group("registers", registers.name, endings)
            found = self._registers[registers.name] = tuple(prefix + ending for ending in endings)
        return found

    def buffer(self, buffer: Buffer) -> str:
        return self.namer.name("buffer", buffer.name)

    def temporary(self, index: int) -> str:
        """A variable of one issue."""
        return self.namer.name("temporary", f"bits{index}")

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, Local):
            return self.local(atom)
        if isinstance(atom, Slot):
            return self.registers(atom.registers)[atom.index]
        return literal(atom)

    def pointer(self, address: Address) -> str:
        """The address as a C++ pointer to bytes."""
        base = ARENA if isinstance(address.buffer, SharedBuffer) else self.buffer(address.buffer)
        offset = "" if address.offset is None else f" + {self.atom(address.offset)}"
        return base + offset + self._constant(address)

    def address(self, address: Address) -> str:
        """The address as inline PTX takes it: a 32-bit integer in the shared window, a pointer into global memory."""
        if isinstance(address.buffer, GlobalBuffer):
            return self.pointer(address)
        offset = ""
        if address.offset is not None:
            narrow = "(unsigned int)" if address.offset.dtype.bits > 32 else ""
            offset = f" + {narrow}{self.atom(address.offset)}"
        return ARENA_ADDRESS + offset + self._constant(address)

    def _constant(self, address: Address) -> str:
        """The constant part, last and in one piece: it becomes the immediate of the access."""
        constant = address.constant
        sign = "-" if constant < 0 else "+"
        if isinstance(address.buffer, SharedBuffer):
            name = self.buffer(address.buffer)
            return f" + ({name} {sign} {abs(constant)})" if constant else f" + {name}"
        return f" {sign} {abs(constant)}" if constant else ""


# ---- operands of one issue ---------------------------------------------------------------------------


@record
class Words:
    """Registers or one scalar. `dtypes` are the types in which the row takes them."""

    operand: Operand
    atoms: tuple[Atom, ...]
    dtypes: tuple[DType, ...]

    @property
    def braced(self) -> bool:
        """Whether PTX wants a vector."""
        return self.operand.kind is Kind.FRAGMENT


@record
class Place:
    """A place in memory; `dtype` is what a C++ statement loads from it or stores to it."""

    operand: Operand
    address: Address
    dtype: DType | None


@record
class Number:
    """An immediate."""

    value: int


Bound: TypeAlias = Words | Place | Number


def bind(op: Op, row: Row, issue: int) -> dict[str, Bound]:
    """The operands of one issue by name: those that are there, and every other parameter as a number."""
    bound: dict[str, Bound] = {name: Number(value) for name, value in op.params}
    for operand, value in paired(op):
        if value is not None:
            bound[operand.name] = _BIND[operand.kind](operand, value, issue)
    return bound


_ATOM = (Const, Local, Slot)


def _mismatch(operand: Operand, value: OperandValue) -> InstructionError:
    return InstructionError(f"operand {operand.name!r} is of kind {operand.kind.value} but got {value!r}")


def _bind_fragment(operand: Operand, value: OperandValue, issue: int) -> Bound:
    if isinstance(value, Fragment):
        atoms = value.items[issue]
    elif isinstance(value, _ATOM):
        atoms = (value,) * operand.registers
    else:
        raise _mismatch(operand, value)
    return Words(operand, atoms, tuple(_register_dtype(operand, atom) for atom in atoms))


def _register_dtype(operand: Operand, atom: Atom) -> DType:
    """The type of one register: the operand's, if that is as wide (several narrow elements share a register)."""
    return operand.dtype if operand.dtype is not None and operand.dtype.bits == atom.dtype.bits else atom.dtype


def _bind_scalar(operand: Operand, value: OperandValue, issue: int) -> Bound:
    if not isinstance(value, _ATOM):
        raise _mismatch(operand, value)
    return Words(operand, (value,), (operand.dtype or value.dtype,))


def _bind_place(operand: Operand, value: OperandValue, issue: int) -> Bound:
    if isinstance(value, Tile):
        value = value.addresses[issue]
    if not isinstance(value, Address):
        raise _mismatch(operand, value)
    return Place(operand, value, uint64 if operand.kind is Kind.BARRIER else operand.dtype)


def _bind_immediate(operand: Operand, value: OperandValue, issue: int) -> Bound:
    if not isinstance(value, Const):
        raise _mismatch(operand, value)
    return Number(int(value.value))


_BIND: dict[Kind, Callable[[Operand, OperandValue, int], Bound]] = {
    Kind.FRAGMENT: _bind_fragment,
    Kind.SCALAR: _bind_scalar,
    Kind.IMMEDIATE: _bind_immediate,
    Kind.ADDRESS: _bind_place,
    Kind.BARRIER: _bind_place,
}


def lvalue(texts: Texts, place: Place) -> str:
    """The place as a C++ lvalue of its element's type. Raises `InstructionError` if the row gives it no type."""
    if place.dtype is None:
        raise InstructionError(f"operand {place.operand.name!r} has no dtype, so C++ cannot access memory through it")
    return f"*({c_type(place.dtype)}*)({texts.pointer(place.address)})"
