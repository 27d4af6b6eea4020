"""`T.ptx["<full PTX text>"]`: the instruction table as users reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpjit.isa.row import Row


class PtxNames:
    """`T.ptx[text]` is the row of the instruction called `text`, in the words of the PTX manual.

    Modifiers may stand in any order. InstructionError: a wrong modifier, answered by those that are legal there.
    In a kernel a row is used through `T.cuda.tile.apply`, or called with scalars and pointers (the raw form).
    """

    def __getitem__(self, text: str) -> Row:
        from warpjit.isa.table import lookup  # noqa: PLC0415  names of the language do without

        return lookup(text)

    def __repr__(self) -> str:
        return "T.ptx"


ptx = PtxNames()
