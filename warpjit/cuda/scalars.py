"""Scalars in generated CUDA C++: how types, literals and reinterpretations of bits are written.

The 16-bit and 8-bit floats have no C++ type without a header: they are held as their bits. Which instruction takes
which type is the row's affair; how values convert is too (nothing here changes a value).
"""

from __future__ import annotations

import math
import struct

import numpy as np

from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DType, float32, float64, int32, uint32
from warpjit.ir.nodes import Const
from warpjit.isa import scalar_text

C_TYPES = {**scalar_text.C_TYPES, "mbarrier": "unsigned long long"}
"""The C++ type that holds a value of each data type."""

_BITCASTS = {
    ("int32", "float32"): "__int_as_float",
    ("uint32", "float32"): "__uint_as_float",
    ("int64", "float64"): "__longlong_as_double",
    ("uint64", "float64"): "__longlong_as_double",
    ("float32", "int32"): "__float_as_int",
    ("float32", "uint32"): "__float_as_uint",
    ("float64", "int64"): "__double_as_longlong",
    ("float64", "uint64"): "__double_as_longlong",
}
"""Built-in functions of the compiler that only rename bits: no instruction in SASS (CUDA Math API, "Type Casting
Intrinsics")."""


_FLOAT_LETTERS = {"float32": "f", "float64": "d"}
_LETTERS = {8: "r", 16: "h", 32: "r", 64: "l"}


def c_type(dtype: DType) -> str:
    """The C++ type that holds a `dtype`. Raises `InstructionError` for types that only exist packed (int4, uint4)."""
    found = C_TYPES.get(dtype.name)
    if found is None:
        raise InstructionError(f"a single {dtype} has no type in CUDA C++: it only exists packed in a wider word")
    return found


def constraint(dtype: DType) -> str:
    """The letter of an inline-PTX operand (Inline PTX Assembly in CUDA, "Constraints").

    There is none for 8 bits: those, and bool, go through a 32-bit word.
    """
    return _FLOAT_LETTERS.get(dtype.name) or _LETTERS[dtype.bits]


def asm_dtype(dtype: DType) -> DType:
    """The type of the variable that carries a `dtype` into or out of inline PTX: 32-bit words for bool and 8 bits."""
    if dtype.bits != 8:
        return dtype
    return int32 if dtype.kind == "int" else uint32


def recast(text: str, have: DType, want: DType) -> str:
    """An expression of type `want` with the bits of `text`, an operand of a C++ cast, of type `have`.

    bool and the 8-bit types also go from and to 32-bit words (`asm_dtype`). Raises `InstructionError` where bits
    would be lost, added or converted.
    """
    if have is want or c_type(have) == c_type(want):
        return text
    between = _BITCASTS.get((have.name, want.name))
    if between is not None:
        return f"{between}({text})"
    if {have, want} & {float32, float64} or (have.bits != want.bits and {have.bits, want.bits} != {8, 32}):
        raise InstructionError(f"expected a {want.bits}-bit {want} but got {text}, a {have.bits}-bit {have}")
    return f"({text} != 0)" if want.is_bool else f"({c_type(want)}){text}"


def literal(const: Const) -> str:
    """The constant, exactly: what it is read back as has the same bits. Negative numbers stand in parentheses."""
    dtype, value = const.dtype, const.value
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_float:
        return _float_literal(float(value), dtype)
    return _int_literal(int(value), dtype)


def _int_literal(value: int, dtype: DType) -> str:
    suffix = ("u" if dtype.kind != "int" else "") + ("ll" if dtype.bits == 64 else "")
    if value == dtype.min and dtype.kind == "int" and dtype.bits >= 32:
        # -2147483648 is the negation of a number that has no int.
        return f"({value + 1}{suffix} - 1)"
    text = f"{value}{suffix}" if dtype.bits >= 32 else f"({c_type(dtype)}){value}"
    return f"({text})" if value < 0 else text


def _float_literal(value: float, dtype: DType) -> str:
    if dtype not in (float32, float64):
        bits = int(np.asarray(value).astype(dtype.numpy).view(f"u{dtype.bytes}"))
        return f"({c_type(dtype)}){bits:#0{2 * dtype.bytes + 2}x}"
    if not math.isfinite(value):
        return _special_literal(value, dtype)
    text = _float32_digits(value) if dtype == float32 else repr(value)
    text += "" if "e" in text or "." in text else ".0"
    suffix = "f" if dtype == float32 else ""
    return f"({text}{suffix})" if text.startswith("-") else text + suffix


def _float32_digits(value: float) -> str:
    """The shortest decimals that a compiler reads back as this float32, also if it rounds to a double on the way."""
    shortest = str(np.float32(value))
    return shortest if np.float32(float(shortest)) == np.float32(value) else f"{value:.9g}"


def _special_literal(value: float, dtype: DType) -> str:
    """Infinities and NaN (sign and payload kept), for which C++ has no literal."""
    if dtype == float64:
        return f"__longlong_as_double({struct.unpack('<Q', struct.pack('<d', value))[0]:#018x})"
    with np.errstate(over="ignore"):
        return f"__int_as_float({int(np.float32(value).view(np.uint32)):#010x})"
