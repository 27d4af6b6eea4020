"""Everything that gives a scalar operation its meaning, under one name: what the simulator computes with.

    convert                                     conversion between data types
    bitcast, pack, unpack                       the same bits under another type
    add ... shift_right                         arithmetic
    fma                                         fused multiply-add
    canonical_nan                               the NaN that operations return

Matrix instructions are in `matrix_numerics` and other files named `matrix_*`; approximate functions belong to the
instruction rows that name them.
"""

from __future__ import annotations

from warpjit.ir.arithmetic import (
    absolute,
    add,
    divide,
    floor_quotient,
    floor_remainder,
    maximum,
    maximum_nan,
    minimum,
    minimum_nan,
    multiply,
    negate,
    shift_left,
    shift_right,
    sqrt,
    subtract,
    truncated_quotient,
    truncated_remainder,
)
from warpjit.ir.conversion import convert
from warpjit.ir.fma import fma
from warpjit.ir.nans import canonical_nan
from warpjit.ir.words import bitcast, pack, unpack

__all__ = [
    "absolute",
    "add",
    "bitcast",
    "canonical_nan",
    "convert",
    "divide",
    "floor_quotient",
    "floor_remainder",
    "fma",
    "maximum",
    "maximum_nan",
    "minimum",
    "minimum_nan",
    "multiply",
    "negate",
    "pack",
    "shift_left",
    "shift_right",
    "sqrt",
    "subtract",
    "truncated_quotient",
    "truncated_remainder",
    "unpack",
]
