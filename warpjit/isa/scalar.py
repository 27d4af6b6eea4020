"""Every scalar row, reachable by operation and type.

    ARITHMETIC[(operation, dtype)]   add sub mul div floordiv mod min max neg abs sqrt fma shl shr and or xor not
    COMPARE[(operation, dtype)]      eq ne lt le gt ge
    SELECT[dtype], MOVE[dtype]
    CONVERT[(to, from)], BITCAST[(to, from)]; CONVERT_PAIR[(to, from)] of two floats to the halves of a word
    EXTRACT[bits], INSERT[bits], PACK64, UNPACK64
    SPECIAL[register]

Types are given by name. The rows are made in the `scalar_*` files; memory is in `memory`.
"""

from __future__ import annotations

from warpjit.isa.row import Row
from warpjit.isa.scalar_arithmetic import ARITHMETIC as _ARITHMETIC
from warpjit.isa.scalar_bits import BITCAST, EXTRACT, INSERT, LOGIC, PACK64, UNPACK64
from warpjit.isa.scalar_compare import COMPARE, MOVE, SELECT
from warpjit.isa.scalar_convert import CONVERT, CONVERT_PAIR
from warpjit.isa.scalar_special import SPECIAL

ARITHMETIC: dict[tuple[str, str], Row] = {**_ARITHMETIC, **LOGIC}

ROWS: tuple[Row, ...] = (
    *ARITHMETIC.values(),
    *COMPARE.values(),
    *SELECT.values(),
    *MOVE.values(),
    *CONVERT.values(),
    *CONVERT_PAIR.values(),
    *BITCAST.values(),
    *EXTRACT.values(),
    *INSERT.values(),
    PACK64,
    UNPACK64,
    *SPECIAL.values(),
)

__all__ = [
    "ARITHMETIC",
    "BITCAST",
    "COMPARE",
    "CONVERT",
    "CONVERT_PAIR",
    "EXTRACT",
    "INSERT",
    "MOVE",
    "PACK64",
    "ROWS",
    "SELECT",
    "SPECIAL",
    "UNPACK64",
]
