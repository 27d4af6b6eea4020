"""From what a kernel writes to the row of an instruction."""

from __future__ import annotations

from warpjit.errors import TraceError
from warpjit.frontend.literals import describe
from warpjit.frontend.values import Value
from warpjit.isa.row import Row
from warpjit.isa.table import lookup


def instruction_row(what: str, instruction: Value) -> Row:
    """The row of `T.ptx["..."]` or of a text. TraceError, which `what` begins: it is neither; InstructionError: there
    is no such instruction."""
    row = lookup(instruction) if isinstance(instruction, str) else instruction
    if not isinstance(row, Row):
        raise TraceError(f'{what}: expected an instruction, T.ptx["..."], but got {describe(instruction)}')
    return row
