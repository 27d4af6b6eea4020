"""Conversions that round in a stated direction: `ROUNDED[(to, from, rounding)]`, where `CONVERT` rounds in another.

    rounding   "nearest" (ties to even), "zero", "down", "up": PTX's .rn .rz .rm .rp, to integers .rni .rzi .rmi .rpi
    names      of types, target first

Floats to integers in all four, saturating; numbers to float16, float32 and float64 in all four, to bfloat16 to nearest
and toward zero (PTX manual, section "Data Movement and Conversion Instructions: cvt"). `CONVERT` has one of them,
"nearest" of floats and "zero" of integers; conversions that are exact do not round, and have one row there.
"""

from __future__ import annotations

from collections.abc import Callable

from warpjit.ir import conversion
from warpjit.ir.dtypes import DType, float16, float64
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import Array, Asm, Row
from warpjit.isa.scalar_text import FLOATS, HALVES, INTEGERS, is_bfloat, plain, result, value, widen_text

LETTERS = {"nearest": "n", "zero": "z", "down": "m", "up": "p"}
"""The last letter of each direction's modifier."""

_FRACTION = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
"""Bits of a float's significand."""


def is_exact(to: DType, of: DType) -> bool:
    """Whether a float type holds every value of another type."""
    if of.is_bool:
        return True
    if of.is_int:
        return of.bits - of.signed <= _FRACTION[to.name] and not (to == float16 and of.bits > 8)
    wider = _FRACTION.get(of.name, 4) <= _FRACTION[to.name]
    return wider and not (to == float16 and of in FLOATS and of != float16)


def _to_integer(to: DType, of: DType, letter: str) -> Asm:
    if of in HALVES:
        body = f"cvt.r{letter}i.{to.ptx}.f32 {{d}}, x;"
        return Asm(f"{{{{ .reg .f32 x; {widen_text(of, 'x', '{a}')} {body} }}}}")
    return Asm(f"cvt.r{letter}i.{to.ptx}.{of.ptx} {{d}}, {{a}};")


def _to_float(to: DType, of: DType, letter: str) -> Asm:
    if is_bfloat(to):
        return _to_bfloat(of)
    if is_bfloat(of):
        body = f"cvt.r{letter}.{to.ptx}.f32 {{d}}, x;"
        return Asm(f"{{{{ .reg .f32 x; {widen_text(of, 'x', '{a}')} {body} }}}}")
    return Asm(f"cvt.r{letter}.{to.ptx}.{_source(of)} {{d}}, {{a}};")


def _source(of: DType) -> str:
    """The suffix of an operand: one of 8 bits stands for a 32-bit register."""
    return f"{of.ptx[0]}32" if of.bits == 8 else of.ptx


def _to_bfloat(of: DType) -> Asm:
    """Toward zero. Of a float64 the upper half of the float32 below it, which also carries NaNs as `CONVERT` does."""
    if of == float64:
        return Asm(
            "{{ .reg .f32 x; .reg .b32 w; .reg .b16 z; cvt.rz.f32.f64 x, {a}; mov.b32 w, x; mov.b32 {{z, {d}}}, w; }}"
        )
    if of.is_int:
        return Asm(f"{{{{ .reg .f32 x; cvt.rz.f32.{_source(of)} x, {{a}}; cvt.rz.bf16.f32 {{d}}, x; }}}}")
    if of in HALVES:
        return Asm(f"{{{{ .reg .f32 x; {widen_text(of, 'x', '{a}')} cvt.rz.bf16.f32 {{d}}, x; }}}}")
    return Asm("cvt.rz.bf16.f32 {d}, {a};")


def _meaning(to: DType, rounding: str) -> Callable[..., Array]:
    return plain(lambda array: conversion.convert(array, to, rounding))


def _row(to: DType, of: DType, rounding: str) -> Row:
    code = (_to_integer if to.is_int else _to_float)(to, of, LETTERS[rounding])
    return Row(
        text=f"convert.r{LETTERS[rounding]}{'i' if to.is_int else ''}.{to.ptx}.{of.ptx}",
        operands=(result("d", to), value("a", of)),
        code=code,
        meaning=_meaning(to, rounding),
        needs=since(80) if is_bfloat(to) and of != float64 else EVERYWHERE,
        pure=True,
        section="Data Movement and Conversion Instructions: cvt",
    )


def _directions(to: DType) -> tuple[str, ...]:
    if to.is_int:
        return ("nearest", "down", "up")
    return ("zero",) if is_bfloat(to) else ("zero", "down", "up")


ROUNDED: dict[tuple[str, str, str], Row] = {
    (to.name, of.name, rounding): _row(to, of, rounding)
    for to in (*INTEGERS, *FLOATS)
    for of in (FLOATS if to.is_int else (*FLOATS, *INTEGERS))
    if to.is_int or not is_exact(to, of)
    for rounding in _directions(to)
}
