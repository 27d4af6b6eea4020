"""Comparisons, selection and moves: `COMPARE[(operation, dtype name)]`, `SELECT[dtype name]`, `MOVE[dtype name]`.

Comparisons give a bool; a NaN is unequal to everything and neither less nor greater (Python's meaning, PTX `setp`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpjit.ir.dtypes import DType
from warpjit.isa.needs import EVERYWHERE
from warpjit.isa.row import Array, Code, Cxx, Row
from warpjit.isa.scalar_text import BOOL, HALVES, STORED, VALUES, plain, result, value, widened_cxx

_OPERATIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "eq": ("==", np.equal),
    "ne": ("!=", np.not_equal),
    "lt": ("<", np.less),
    "le": ("<=", np.less_equal),
    "gt": (">", np.greater),
    "ge": (">=", np.greater_equal),
}


def _compared(compare: Callable[..., Any]) -> Callable[..., Array]:
    def meaning(a: Array, b: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return np.asarray(compare(a, b))

    return plain(meaning)


def _code(sign: str, dtype: DType) -> Code:
    if dtype in HALVES:
        return widened_cxx(dtype, f"{{d}} = wj__a {sign} wj__b;", "a", "b", narrows=False)
    return Cxx(f"{{d}} = {{a}} {sign} {{b}};")


COMPARE: dict[tuple[str, str], Row] = {
    (operation, dtype.name): Row(
        text=f"set.{operation}.{dtype.ptx}",
        operands=(result("d", BOOL), value("a", dtype), value("b", dtype)),
        code=_code(sign, dtype),
        meaning=_compared(compare),
        needs=EVERYWHERE,
        pure=True,
        section="Comparison and Selection Instructions: setp",
    )
    for operation, (sign, compare) in _OPERATIONS.items()
    for dtype in VALUES
}

SELECT: dict[str, Row] = {
    dtype.name: Row(
        text=f"select.{dtype.ptx}",
        operands=(result("d", dtype), value("condition", BOOL), value("a", dtype), value("b", dtype)),
        code=Cxx("{d} = {condition} ? {a} : {b};"),
        meaning=plain(np.where),
        needs=EVERYWHERE,
        pure=True,
        moves=True,
        section="Comparison and Selection Instructions: selp",
    )
    for dtype in STORED
}
"""d = a where the condition holds, else b; both are evaluated already."""

MOVE: dict[str, Row] = {
    dtype.name: Row(
        text=f"move.{dtype.ptx}",
        operands=(result("d", dtype), value("a", dtype)),
        code=Cxx("{d} = {a};"),
        meaning=plain(np.array),
        needs=EVERYWHERE,
        pure=True,
        moves=True,
        section="Data Movement and Conversion Instructions: mov",
    )
    for dtype in STORED
}
