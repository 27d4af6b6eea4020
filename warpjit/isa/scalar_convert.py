"""Conversions of values: `CONVERT[(to, from)]`, any two of the types that compute.

The meaning is `numerics.convert`: floats round once to nearest even, float to integer goes toward zero and saturates,
integers keep their low bits, bool is "not zero". The code is C++ where the language defines the same result, and
inline PTX where it does not (C++ leaves out-of-range float to integer undefined) or where there is no C type.
Bit reinterpretation stands in `scalar_bits`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpjit.ir import numerics
from warpjit.ir.dtypes import DType, float32, uint16, uint32
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import Array, Asm, Code, Cxx, Needs, Row
from warpjit.isa.scalar_text import (
    BOOL,
    C_TYPES,
    HALVES,
    VALUES,
    is_bfloat,
    narrow_text,
    plain,
    result,
    value,
    widen_text,
)


def _cast(to: DType, of: DType) -> Code:
    return Cxx(f"{{d}} = ({C_TYPES[to.name]}){{a}};")


def _to_bool(to: DType, of: DType) -> Code:
    if of in HALVES:
        return Cxx("{d} = ({a} & 0x7FFF) != 0;")
    return Cxx("{d} = {a} != 0;")


def _via_float(to: DType, of: DType) -> Code:
    """Between the 16-bit floats, and to or from float32."""
    if to in HALVES and of in HALVES:
        return Asm(f"{{{{ .reg .f32 x; {widen_text(of, 'x', '{a}')} {narrow_text(to, '{d}', 'x')} }}}}")
    return Asm(widen_text(of, "{d}", "{a}") if of in HALVES else narrow_text(to, "{d}", "{a}"))


def _half_to_double(to: DType, of: DType) -> Code:
    if not is_bfloat(of):
        return Asm("cvt.f64.f16 {d}, {a};")
    return Asm(f"{{{{ .reg .f32 x; {widen_text(of, 'x', '{a}')} cvt.f64.f32 {{d}}, x; }}}}")


def _double_to_half(to: DType, of: DType) -> Code:
    if not is_bfloat(to):
        return Asm("cvt.rn.f16.f64 {d}, {a};")
    # Rounded to odd in float32 first: the last bit says "inexact", so that the second rounding is the only one.
    # A NaN keeps its upper payload bits.
    return Asm(
        "{{ .reg .f32 x; .reg .f64 y; .reg .b32 k, w; .reg .b16 n, z; .reg .pred p, q; cvt.rz.f32.f64 x, {a}; "
        "cvt.f64.f32 y, x; setp.ne.f64 p, y, {a}; selp.b32 k, 1, 0, p; mov.b32 w, x; or.b32 w, w, k; "
        "mov.b32 {{z, n}}, w; mov.b32 x, w; cvt.rn.bf16.f32 z, x; setp.nan.f64 q, {a}, {a}; "
        "selp.b16 {d}, n, z, q; }}"
    )


def _int_to_half(to: DType, of: DType) -> Code:
    """16-bit floats of integers, rounded once."""
    if not is_bfloat(to):
        # An 8-bit operand stands for a 32-bit register.
        return Asm(f"cvt.rn.f16.{of.ptx[0]}{max(of.bits, 32) if of.bits == 8 else of.bits} {{d}}, {{a}};")
    if of.bits < 32:
        kind = f"{of.ptx[0]}{32 if of.bits == 8 else 16}"
        return Asm(f"{{{{ .reg .f32 x; cvt.rn.f32.{kind} x, {{a}}; cvt.rn.bf16.f32 {{d}}, x; }}}}")
    # Rounded to odd in float32 first. Rounding toward zero never leaves the integer's range, so the way back is exact.
    kind, word = of.ptx, f"b{of.bits}"
    return Asm(
        f"{{{{ .reg .f32 x; .reg .{word} y; .reg .b32 k, w; .reg .pred p; cvt.rz.f32.{kind} x, {{a}}; "
        f"cvt.rzi.{kind}.f32 y, x; setp.ne.{kind} p, y, {{a}}; selp.b32 k, 1, 0, p; mov.b32 w, x; or.b32 w, w, k; "
        "mov.b32 x, w; cvt.rn.bf16.f32 {d}, x; }}"
    )


def _float_to_int(to: DType, of: DType) -> Code:
    """Toward zero, saturating at the target's range."""
    if of in HALVES:
        body = f"cvt.rzi.{to.ptx}.f32 {{d}}, x;"
        return Asm(f"{{{{ .reg .f32 x; {widen_text(of, 'x', '{a}')} {body} }}}}")
    return Asm(f"cvt.rzi.{to.ptx}.{of.ptx} {{d}}, {{a}};")


def _code(to: DType, of: DType) -> Code:
    return _handler(to, of)(to, of)


def _handler(to: DType, of: DType) -> Callable[[DType, DType], Code]:
    if to is BOOL:
        return _to_bool
    if of.is_float:
        return _float_to_int if to.is_int else _FLOATS[(to in HALVES, of in HALVES, to.bits == 64, of.bits == 64)]
    return _int_to_half if to in HALVES and of is not BOOL else _bool_to_half if to in HALVES else _cast


def _bool_to_half(to: DType, of: DType) -> Code:
    one = "0x3F80" if is_bfloat(to) else "0x3C00"
    return Cxx(f"{{d}} = (unsigned short)({{a}} ? {one} : 0);")


# (to 16 bits, from 16 bits, to 64 bits, from 64 bits)
_FLOATS: dict[tuple[bool, bool, bool, bool], Callable[[DType, DType], Code]] = {
    (True, True, False, False): _via_float,
    (True, False, False, False): _via_float,
    (False, True, False, False): _via_float,
    (False, True, True, False): _half_to_double,
    (True, False, False, True): _double_to_half,
    (False, False, True, False): _cast,
    (False, False, False, True): _cast,
}


def _needs(to: DType, of: DType) -> Needs:
    return since(80) if is_bfloat(to) and of is not BOOL else EVERYWHERE


def _row(to: DType, of: DType) -> Row:
    same = to is of
    return Row(
        text=f"convert.{to.ptx}.{of.ptx}",
        operands=(result("d", to), value("a", of)),
        code=Cxx("{d} = {a};") if same else _code(to, of),
        meaning=plain(lambda array: numerics.convert(array, to)),
        needs=EVERYWHERE if same else _needs(to, of),
        pure=True,
        section="Data Movement and Conversion Instructions: cvt",
    )


CONVERT: dict[tuple[str, str], Row] = {(to.name, of.name): _row(to, of) for to in VALUES for of in VALUES}
"""d = a converted, by the names of both types, target first."""


def _pair_row(to: DType, of: DType) -> Row:
    text = f"cvt.rn.{to.ptx}x2.{of.ptx}"
    return Row(
        text=text,
        operands=(result("d", uint32), value("a", of), value("b", of)),
        code=Asm(f"{text} {{d}}, {{a}}, {{b}};"),
        meaning=plain(lambda high, low: _packed_pair(numerics.convert(high, to), numerics.convert(low, to))),
        needs=since(80),
        pure=True,
        section="Data Movement and Conversion Instructions: cvt",
    )


def _packed_pair(high: Array, low: Array) -> Array:
    """16-bit floats to words (…), `low` in the low half."""
    halves = (np.asarray(numerics.bitcast(each, uint16)).astype(np.uint32) for each in (high, low))
    upper, lower = halves
    return (upper << 16) | lower


CONVERT_PAIR: dict[tuple[str, str], Row] = {(to.name, float32.name): _pair_row(to, float32) for to in HALVES}
"""d = both operands converted, the second in the low half. By the names of the types, target first."""
