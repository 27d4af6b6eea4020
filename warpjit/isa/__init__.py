"""The instruction tables: one row an instruction, and the proofs that operands lie where an instruction wants them.

`row` says what a row is, `table` holds all rows, `proof` checks operands, `calculator` answers questions about them.
Needs neither torch nor a GPU. The functions below are loaded when they are first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpjit.isa.calculator import given, giver, holds, listed, where
    from warpjit.isa.conversion import convert, matrix_layout
    from warpjit.isa.fitting import fits
    from warpjit.isa.table import lookup

__all__ = ["convert", "fits", "given", "giver", "holds", "listed", "lookup", "matrix_layout", "where"]

_HOMES = {
    "convert": "warpjit.isa.conversion",
    "fits": "warpjit.isa.fitting",
    "given": "warpjit.isa.calculator",
    "giver": "warpjit.isa.calculator",
    "holds": "warpjit.isa.calculator",
    "listed": "warpjit.isa.calculator",
    "lookup": "warpjit.isa.table",
    "matrix_layout": "warpjit.isa.conversion",
    "where": "warpjit.isa.calculator",
}
"""The module of each name that is loaded late."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
