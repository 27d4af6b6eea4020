"""Every row of the instruction table, written with generic operands, is CUDA C++ that nvcc takes."""

from __future__ import annotations

import pytest
from hand_built import Hand, kernel, slots, tensor

from warpjit import config as config_module
from warpjit.cuda.codegen import emit
from warpjit.cuda.prelude import FUNCTIONS, prelude
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
ROWS_A_KERNEL = 16
"""The compiler takes four times as long for one kernel of all rows."""


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


def uses(target: Target) -> list[tuple[Row, bool]]:
    """Every row of `target`, those with optional operands also with them."""
    admitted = [row for row in rows() if row.needs.holds(target)]
    return [
        (row, optional)
        for row in admitted
        for optional in (False, True)[: 1 + any(operand.optional for operand in row.operands)]
    ]


def issuing(name: str, chosen: list[tuple[Row, bool]], predicated: bool) -> Kernel:
    """One kernel that issues these rows."""
    hand = Hand()
    lane = hand.special("laneid")
    offset = hand.arith("mul", lane, 16)
    predicate = hand.compare("lt", lane, 7) if predicated else None
    for row, optional in chosen:
        _use(hand, row, offset, optional, predicate)
    return kernel(name, (DATA,), hand, shared=(SHARED,))


@pytest.mark.parametrize("predicated", [False, True], ids=["plain", "predicated"])
@pytest.mark.parametrize("name", ["sm_75", "sm_90a"])
def test_every_row_compiles(name: str, predicated: bool) -> None:
    target = Target.parse(name)
    chosen = uses(target)
    assert len(chosen) > 1000
    whole = prelude(FUNCTIONS)
    for start in range(0, len(chosen), ROWS_A_KERNEL):
        of = issuing(f"rows_{start}", chosen[start : start + ROWS_A_KERNEL], predicated)
        whole += emit(of, plan(of, target.max_shared)).text
    assert compile_cubin(whole, target, config=config_module.read()).cubin
