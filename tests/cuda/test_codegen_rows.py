"""Every row of the instruction table, written with generic operands, is CUDA C++ that nvcc takes."""

from __future__ import annotations

import pytest
from hand_built import Hand, kernel, slots, tensor

from warpjit import config as config_module
from warpjit.cuda.codegen import emit
from warpjit.cuda.toolchain import compile_cubin
from warpjit.ir.dtypes import uint32
from warpjit.ir.nodes import Address, Atom, Fragment, Kernel, Local, OperandValue, SharedBuffer
from warpjit.isa.memory import LOAD
from warpjit.isa.row import Kind, Operand, Row
from warpjit.isa.table import rows
from warpjit.isa.target import Target
from warpjit.passes.plan import plan

pytestmark = pytest.mark.nvcc

DATA = tensor("data", "uint8", 0)
SHARED = SharedBuffer("shared", 4096, 128)


def _operand(
    hand: Hand, operand: Operand, offset: Local, params: dict[str, int]
) -> tuple[OperandValue, tuple[Atom, ...]]:
    """A value for the operand, and what the row writes of it."""
    of = operand.dtype or uint32
    if operand.kind is Kind.IMMEDIATE:
        params[operand.name] = operand.choices[-1] if operand.choices else 1
        return None, ()
    if operand.kind in (Kind.ADDRESS, Kind.BARRIER):
        return Address(SHARED if operand.space == "shared" else DATA, offset, 128), ()
    if operand.kind is Kind.SCALAR:
        local = hand.fresh(of) if not operand.reads else hand.load(Address(DATA, offset, 256), of.name)
        return local, (local,) if operand.writes else ()
    registers = slots(hand.registers(hand.fresh().name, of, operand.registers))
    for slot in registers if operand.reads else ():
        hand.op(LOAD["global", of.name], slot, Address(DATA, offset, 512))
    return Fragment((registers,)), registers if operand.writes else ()


def _use(hand: Hand, row: Row, offset: Local, optional: bool, predicate: Local | None) -> None:
    params: dict[str, int] = {}
    values: list[OperandValue] = []
    written: list[Atom] = []
    for operand in row.operands:
        if operand.optional and not optional:
            values.append(None)
            continue
        if operand.optional:
            params["has_" + operand.name] = 1
        value, writes = _operand(hand, operand, offset, params)
        values.append(value)
        written += writes
    hand.op(row, *values, params=tuple(params.items()), predicate=predicate)
    for atom in written:
        hand.store(Address(DATA, offset, 1024 + 16 * len(hand.nodes)), atom)


def all_rows(target: Target, predicated: bool) -> Kernel:
    """One kernel that issues every row of `target`, those with optional operands also with them."""
    hand = Hand()
    lane = hand.special("laneid")
    offset = hand.arith("mul", lane, 16)
    predicate = hand.compare("lt", lane, 7) if predicated else None
    for row in rows():
        if row.needs.holds(target):
            for optional in (False, True)[: 1 + any(operand.optional for operand in row.operands)]:
                _use(hand, row, offset, optional, predicate)
    return kernel("rows", (DATA,), hand, shared=(SHARED,))


@pytest.mark.parametrize("predicated", [False, True], ids=["plain", "predicated"])
@pytest.mark.parametrize("name", ["sm_75", "sm_90a"])
def test_every_row_compiles(name: str, predicated: bool) -> None:
    target = Target.parse(name)
    of = all_rows(target, predicated)
    text = emit(of, plan(of, target.max_shared))
    assert compile_cubin(text.text, target, config=config_module.read(), locate=text.place).cubin
