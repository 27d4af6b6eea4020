"""What the scalar rows are written with: C types, operands, and 16-bit floats widened and narrowed.

C variables inside a template begin with `wj__`: two underscores in a row stand in no name that generated code gives to
an operand. PTX registers stand in a scope of their own. Which operations exist is said in the other `scalar_*` files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpjit.ir.dtypes import DTYPES, DType, bfloat16, mbarrier
from warpjit.isa.row import Asm, Cxx, Kind, Mode, Operand

INTEGERS = tuple(each for each in DTYPES.values() if each.is_int and each.bits >= 8)
WIDE_FLOATS = tuple(DTYPES[name] for name in ("float32", "float64"))
HALVES = tuple(DTYPES[name] for name in ("float16", "bfloat16"))
FLOATS = HALVES + WIDE_FLOATS
BOOL = DTYPES["bool"]
VALUES = (*FLOATS, *INTEGERS, BOOL)
"""Every type that computes."""
STORED = tuple(each for each in DTYPES.values() if each.bits >= 8 and each is not mbarrier)
"""Every type that one address, register or C variable can hold; `VALUES`, the 8-bit floats and the pairs."""
PAIRS = tuple(each for each in DTYPES.values() if each.is_pair)
"""Two 16-bit floats in one word."""

C_TYPES: dict[str, str] = {
    **dict.fromkeys(("float16", "bfloat16", "uint16"), "unsigned short"),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "uint8"), "unsigned char"),
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    **dict.fromkeys(("float16x2", "bfloat16x2", "uint32"), "unsigned int"),
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}
"""The C type of a local of each data type; floats of 8 and 16 bits, and pairs, are held as their bits."""


def unsigned_c(dtype: DType) -> str:
    """The unsigned type in which integers of `dtype` compute without undefined behaviour (never promoted to int)."""
    return "unsigned long long" if dtype.bits == 64 else "unsigned int"


def value(name: str, dtype: DType) -> Operand:
    """A scalar that is read."""
    return Operand(name, Kind.SCALAR, dtype=dtype)


def result(name: str, dtype: DType) -> Operand:
    """A scalar that is written."""
    return Operand(name, Kind.SCALAR, Mode.WRITE, dtype=dtype)


def immediate(name: str, *choices: int) -> Operand:
    """A number in the instruction's text."""
    return Operand(name, Kind.IMMEDIATE, choices=choices)


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as a meaning: the flags that only the code reads are dropped."""
    return lambda *arrays, **params: function(*arrays)


# ---- 16-bit floats -----------------------------------------------------------------------------------

# bfloat16 is the upper half of a float32, so widening is a move (and works on every target).
_WIDEN = {"float16": "cvt.f32.f16 {to}, {of};", "bfloat16": "mov.b32 {to}, {{{{0, {of}}}}};"}
_NARROW = {"float16": "cvt.rn.f16.f32 {to}, {of};", "bfloat16": "cvt.rn.bf16.f32 {to}, {of};"}


def widened_asm(dtype: DType, body: str, *names: str) -> Asm:
    """PTX over the 16-bit operands `names`, which `body` finds as float32 registers `x_<name>`; its result is `x_d`."""
    registers = ", ".join(f"x_{name}" for name in ("d", *names))
    widen = " ".join(_WIDEN[dtype.name].format(to=f"x_{name}", of="{" + name + "}") for name in names)
    narrow = _NARROW[dtype.name].format(to="{d}", of="x_d")
    return Asm(f"{{{{ .reg .f32 {registers}; {widen} {body} {narrow} }}}}")


def widened_cxx(dtype: DType, statements: str, *names: str, narrows: bool = True) -> Cxx:
    """C++ over the float operands `names`, which `statements` find as variables `wj__<name>` of float (or double).

    With `narrows` the statements leave their result in `wj__d`; otherwise they write `{d}` themselves.
    """
    if dtype not in HALVES:
        c_type = C_TYPES[dtype.name]
        opened = " ".join(f"const {c_type} wj__{name} = {{{name}}};" for name in names)
        close = f"{c_type} wj__d; {statements} {{d}} = wj__d;" if narrows else statements
        return Cxx(f"{{{{ {opened} {close} }}}}")
    opened = " ".join(f"float wj__{name}; {_widen_statement(dtype, name)}" for name in names)
    narrow = f'asm("{_NARROW[dtype.name].format(to="%0", of="%1")}" : "=h"({{d}}) : "f"(wj__d));'
    close = f"float wj__d; {statements} {narrow}" if narrows else statements
    return Cxx(f"{{{{ {opened} {close} }}}}")


def _widen_statement(dtype: DType, name: str) -> str:
    return f'asm("{_WIDEN[dtype.name].format(to="%0", of="%1")}" : "=f"(wj__{name}) : "h"({{{name}}}));'


def narrow_text(dtype: DType, to: str, of: str) -> str:
    """The PTX instruction that rounds a float32 register to a 16-bit one."""
    return _NARROW[dtype.name].format(to=to, of=of)


def widen_text(dtype: DType, to: str, of: str) -> str:
    """The PTX instruction (as a template) that widens a 16-bit float to a float32 register."""
    return _WIDEN[dtype.name].format(to=to, of=of)


def is_bfloat(dtype: DType) -> bool:
    return dtype is bfloat16
