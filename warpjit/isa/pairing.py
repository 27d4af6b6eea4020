"""An operation's operands beside the row's: which value stands for which operand."""

from __future__ import annotations

from collections.abc import Iterator

from warpjit.errors import InstructionError
from warpjit.ir.nodes import Op, OperandValue
from warpjit.isa.row import Operand, Row


def row_of(op: Op) -> Row:
    """The row that an operation names."""
    assert isinstance(op.row, Row), op.row.text
    return op.row


def paired(op: Op) -> Iterator[tuple[Operand, OperandValue]]:
    """Every operand of the row with its value, in the row's order.

    Each operand has a place: None for an immediate (it stands in `Op.params`) and for an optional one left out.
    InstructionError: the operation has another number of places.
    """
    row = row_of(op)
    if len(op.operands) != len(row.operands):
        raise InstructionError(f"{row.text} takes {len(row.operands)} operands but got {len(op.operands)}")
    return zip(row.operands, op.operands, strict=True)
