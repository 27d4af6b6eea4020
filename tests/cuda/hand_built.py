"""Kernels written as IR by hand, for tests of the emitter that need no tracer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from warpjit.errors import NOWHERE, Loc
from warpjit.ir.dtypes import DType, dtype, float32, int32, uint32
from warpjit.ir.nodes import (
    Address,
    Allocate,
    Atom,
    Const,
    Fragment,
    GlobalBuffer,
    Kernel,
    Launch,
    Local,
    Node,
    Op,
    OperandValue,
    Parameter,
    Registers,
    SharedBuffer,
    Slot,
    Tile,
)
from warpjit.isa.memory import LOAD, STORE
from warpjit.isa.row import Row
from warpjit.isa.scalar import ARITHMETIC, COMPARE, SPECIAL
from warpjit.isa.table import lookup


def const(value: int | float | bool, of: DType = int32) -> Const:
    return Const(value, of)


@dataclass
class Hand:
    """Statements under construction; every operation gets a fresh local."""

    nodes: list[Node] = field(default_factory=list)
    count: list[int] = field(default_factory=lambda: [0])
    loc: Loc = NOWHERE

    def inner(self) -> Hand:
        """A block inside this one."""
        return Hand(count=self.count, loc=self.loc)

    def fresh(self, of: DType = int32, hint: str = "t") -> Local:
        self.count[0] += 1
        return Local(f"{hint}{self.count[0]}", of)

    def op(self, row: Row, *operands: OperandValue, **fields: Any) -> None:
        self.nodes.append(Op(row, operands, loc=self.loc, **fields))

    def value(self, row: Row, *operands: Atom | Address, hint: str = "t", **fields: Any) -> Local:
        of = row.operands[0].dtype
        assert of is not None
        local = self.fresh(of, hint)
        self.op(row, local, *operands, **fields)
        return local

    def arith(self, operation: str, a: Atom, b: Atom | int, hint: str = "t") -> Local:
        """Of numbers that are not negative and results that fit."""
        b = const(b, a.dtype) if isinstance(b, int) else b
        flags = (("nowrap", 1), ("nonnegative", 1), ("bounded", 1))
        return self.value(ARITHMETIC[operation, a.dtype.name], a, b, hint=hint, params=flags)

    def compare(self, operation: str, a: Atom, b: Atom | int) -> Local:
        b = const(b, a.dtype) if isinstance(b, int) else b
        return self.value(COMPARE[operation, a.dtype.name], a, b, hint="c")

    def load(self, address: Address, of: str) -> Local:
        return self.value(LOAD[address.buffer.space, of], address)

    def store(self, address: Address, value: Atom) -> None:
        self.op(STORE[address.buffer.space, value.dtype.name], address, value)

    def special(self, register: str, **params: int) -> Local:
        return self.value(SPECIAL[register], hint=register.replace(".", "_"), params=tuple(params.items()))

    def registers(self, name: str, of: DType, count: int) -> Registers:
        registers = Registers(name, of, count)
        self.nodes.append(Allocate(registers, loc=self.loc))
        return registers


def slots(registers: Registers, *indices: int) -> tuple[Slot, ...]:
    return tuple(Slot(registers, index) for index in indices or range(registers.count))


def tensor(name: str, of: str, index: int, **fields: Any) -> GlobalBuffer:
    return GlobalBuffer(name, dtype(of), index, 16, **fields)


def kernel(
    name: str,
    targets: tuple[GlobalBuffer | Local, ...],
    body: Hand,
    *,
    shared: tuple[SharedBuffer, ...] = (),
    launch: Launch | None = None,
) -> Kernel:
    parameters = tuple(Parameter(target, ("arg", index)) for index, target in enumerate(targets))
    return Kernel(name, parameters, shared, tuple(body.nodes), launch or Launch((1, 1, 1), (32, 1, 1)))


# ---- the seed ----------------------------------------------------------------------------------------

LDMATRIX_X4 = lookup("ldmatrix.sync.aligned.m8n8.x4.shared.b16")
LDMATRIX_X2 = lookup("ldmatrix.sync.aligned.m8n8.x2.shared.b16")
MMA = lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")


def seed() -> Kernel:
    """Out = A @ B.T for one 16 x 8 tile, as the language's founding document has it."""
    left, right, out = tensor("A", "float16", 0), tensor("B", "float16", 1), tensor("Out", "float32", 2)
    a, b = SharedBuffer("a", 512, 16), SharedBuffer("b", 256, 16)
    hand = Hand()
    lane = hand.special("laneid")
    twice = hand.arith("shl", lane, 1)
    for source, target, count in ((left, a, 8), (right, b, 4)):
        for q in range(count):
            hand.store(Address(target, twice, 64 * q), hand.load(Address(source, twice, 64 * q), "float16"))
    hand.op(lookup("bar.sync"), const(0), None)
    row = hand.arith("mod", lane, 16)
    chunk = hand.arith("floordiv", lane, 16)
    a_offset = hand.arith("add", hand.arith("mul", row, 32), hand.arith("mul", chunk, 16))
    b_chunk = hand.arith("mod", hand.arith("floordiv", lane, 8), 2)
    b_row = hand.arith("mod", lane, 8)
    b_offset = hand.arith("add", hand.arith("mul", b_row, 32), hand.arith("mul", b_chunk, 16))
    ar, br = hand.registers("ar", uint32, 4), hand.registers("br", uint32, 2)
    dr = hand.registers("dr", float32, 4)
    hand.op(LDMATRIX_X4, Fragment((slots(ar),)), Tile((Address(a, a_offset),)))
    hand.op(LDMATRIX_X2, Fragment((slots(br),)), Tile((Address(b, b_offset),)))
    zero = Fragment(((const(0.0, float32),) * 4,))
    hand.op(MMA, Fragment((slots(dr),)), Fragment((slots(ar),)), Fragment((slots(br),)), zero)
    out_row, column = hand.arith("floordiv", lane, 4), hand.arith("mod", lane, 4)
    offset = hand.arith("add", hand.arith("mul", out_row, 32), hand.arith("mul", column, 8))
    for r in range(4):
        hand.store(Address(out, offset, 256 * (r // 2) + 4 * (r % 2)), Slot(dr, r))
    return kernel("warp_matmul", (left, right, out), hand, shared=(a, b))
