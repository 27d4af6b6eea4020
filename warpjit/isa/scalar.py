"""Every scalar row, reachable by operation and type.

    ARITHMETIC[(operation, dtype)]   add sub mul div floordiv mod min max neg abs sqrt fma shl shr and or xor not, and
                                     of floats min_nan max_nan, which give NaN where an operand is one
    COMPARE[(operation, dtype)]      eq ne lt le gt ge
    SELECT[dtype], MOVE[dtype]
    CONVERT[(to, from)], BITCAST[(to, from)]; CONVERT_PAIR[(to, from)] of two floats to the halves of a word;
    FLOAT8_PAIR[(to, from)] of two 8-bit floats; ROUNDED[(to, from, rounding)] in the directions that CONVERT has not
    EXTRACT[bits], INSERT[bits], PACK32, PACK64, UNPACK64
    SPECIAL[register]
    MATH[(function, dtype)]          exp exp2 log log2 sin cos tanh erf rsqrt rcp floor ceil round trunc
    APPROXIMATE[(function, dtype)]   the fast ones of up to 32 bits

Types are given by name. The rows are made in the `scalar_*` files; memory is in `memory`. `ROWS` are those that have no
name in the language's `T.ptx` table: fast functions that are one instruction of PTX stand in `scalar_math.ROWS`.
"""

from __future__ import annotations

from warpjit.isa import scalar_packed
from warpjit.isa.row import Row
from warpjit.isa.scalar_arithmetic import ARITHMETIC as _ARITHMETIC
from warpjit.isa.scalar_bits import BITCAST, EXTRACT, INSERT, LOGIC, PACK32, PACK64, UNPACK64
from warpjit.isa.scalar_compare import COMPARE as _COMPARE
from warpjit.isa.scalar_compare import MOVE, SELECT
from warpjit.isa.scalar_convert import CONVERT as _CONVERT
from warpjit.isa.scalar_convert import CONVERT_PAIR
from warpjit.isa.scalar_float8 import FLOAT8, FLOAT8_PAIR
from warpjit.isa.scalar_float8 import ROWS as _FLOAT8_ROWS
from warpjit.isa.scalar_math import APPROXIMATE, MATH
from warpjit.isa.scalar_math import ROWS as _NAMED
from warpjit.isa.scalar_rounded import ROUNDED
from warpjit.isa.scalar_special import SPECIAL

ARITHMETIC: dict[tuple[str, str], Row] = {**_ARITHMETIC, **LOGIC, **scalar_packed.ARITHMETIC}
COMPARE: dict[tuple[str, str], Row] = {**_COMPARE, **scalar_packed.COMPARE}

CONVERT: dict[tuple[str, str], Row] = {**_CONVERT, **FLOAT8}

ROWS: tuple[Row, ...] = (
    *ARITHMETIC.values(),
    *COMPARE.values(),
    *SELECT.values(),
    *MOVE.values(),
    *CONVERT.values(),
    *CONVERT_PAIR.values(),
    *ROUNDED.values(),
    *FLOAT8_PAIR.values(),
    *_FLOAT8_ROWS,
    *scalar_packed.ROWS,
    *BITCAST.values(),
    *EXTRACT.values(),
    *INSERT.values(),
    PACK32,
    PACK64,
    UNPACK64,
    *SPECIAL.values(),
    *MATH.values(),
    *(row for row in APPROXIMATE.values() if row not in _NAMED),
)

__all__ = [
    "APPROXIMATE",
    "ARITHMETIC",
    "BITCAST",
    "COMPARE",
    "CONVERT",
    "CONVERT_PAIR",
    "EXTRACT",
    "FLOAT8_PAIR",
    "INSERT",
    "MATH",
    "MOVE",
    "PACK32",
    "PACK64",
    "ROUNDED",
    "ROWS",
    "SELECT",
    "SPECIAL",
    "UNPACK64",
]
