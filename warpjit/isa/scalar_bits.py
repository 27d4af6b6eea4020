"""Bit logic, and the same bits under another type or in a wider word.

    LOGIC[(op, dtype name)]      and, or, xor, not of integers and bool
    BITCAST[(to, from)]          reinterpretation, equal widths
    EXTRACT[bits], INSERT[bits]  one 8- or 16-bit element, number `index` (immediate), of a 32-bit word
    PACK64, UNPACK64             two 32-bit words, low first, and a 64-bit one
    PACK32                       a 32-bit word of two 16-bit ones, low first

Conversions of values stand in `scalar_convert`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpjit.ir import numerics
from warpjit.ir.dtypes import DType, dtype, uint32, uint64
from warpjit.isa.needs import EVERYWHERE
from warpjit.isa.row import Array, Asm, Code, Cxx, Row
from warpjit.isa.scalar_text import BOOL, C_TYPES, INTEGERS, STORED, immediate, plain, result, value

_LOGIC: dict[str, tuple[str, Callable[..., Any]]] = {
    "and": ("&", np.bitwise_and),
    "or": ("|", np.bitwise_or),
    "xor": ("^", np.bitwise_xor),
}


def _logic(operation: str, of: DType) -> Row:
    sign, meaning = _LOGIC[operation]
    return Row(
        text=f"{operation}.{of.ptx}",
        operands=(result("d", of), value("a", of), value("b", of)),
        code=Cxx(f"{{d}} = ({C_TYPES[of.name]})({{a}} {sign} {{b}});"),
        meaning=plain(meaning),
        needs=EVERYWHERE,
        pure=True,
        moves=True,
        section="Logic and Shift Instructions",
    )


def _not(of: DType) -> Row:
    return Row(
        text=f"not.{of.ptx}",
        operands=(result("d", of), value("a", of)),
        code=Cxx("{d} = !{a};" if of is BOOL else f"{{d}} = ({C_TYPES[of.name]})~{{a}};"),
        meaning=plain(np.bitwise_not),
        needs=EVERYWHERE,
        pure=True,
        moves=True,
        section="Logic and Shift Instructions: not",
    )


LOGIC: dict[tuple[str, str], Row] = {
    **{(operation, of.name): _logic(operation, of) for operation in _LOGIC for of in (*INTEGERS, BOOL)},
    **{("not", of.name): _not(of) for of in (*INTEGERS, BOOL)},
}


# ---- reinterpretation --------------------------------------------------------------------------------


def _bitcast_code(to: DType, of: DType) -> Code:
    if to is BOOL:
        return Cxx("{d} = {a} != 0;")
    register_is_float = {each: each.is_float and each.bits >= 32 for each in (to, of)}
    if register_is_float[to] != register_is_float[of]:
        return Asm(f"mov.b{to.bits} {{d}}, {{a}};")
    return Cxx(f"{{d}} = ({C_TYPES[to.name]}){{a}};")


BITCAST: dict[tuple[str, str], Row] = {
    (to.name, of.name): Row(
        text=f"bitcast.{to.ptx}.{of.ptx}",
        operands=(result("d", to), value("a", of)),
        code=_bitcast_code(to, of),
        meaning=plain(lambda array, to=to: numerics.bitcast(array, to)),
        needs=EVERYWHERE,
        pure=True,
        moves=True,
        section="Data Movement and Conversion Instructions: mov",
    )
    for to in STORED
    for of in STORED
    if to.bits == of.bits
}


# ---- elements of words -------------------------------------------------------------------------------


def _extracted(element: DType) -> Callable[..., Array]:
    def meaning(word: Array, *, index: int) -> Array:
        return np.asarray(numerics.unpack(word, element)[..., index])

    return meaning


def _inserted(element: DType) -> Callable[..., Array]:
    def meaning(word: Array, a: Array, *, index: int) -> Array:
        elements = numerics.unpack(word, element).copy()
        elements[..., index] = a
        return numerics.pack(elements, uint32)

    return meaning


_ELEMENTS = {bits: dtype(f"uint{bits}") for bits in (8, 16)}

EXTRACT: dict[int, Row] = {
    bits: Row(
        text=f"extract.b{bits}",
        operands=(result("d", element), value("a", uint32), immediate("index", *range(32 // bits))),
        code=Cxx(f"{{d}} = ({C_TYPES[element.name]})({{a}} >> ({bits} * {{index}}));"),
        meaning=_extracted(element),
        needs=EVERYWHERE,
        pure=True,
        moves=True,
        section="Data Movement and Conversion Instructions: mov",
    )
    for bits, element in _ELEMENTS.items()
}
"""d = element `index` of the word a, counted from the low bits."""

INSERT: dict[int, Row] = {
    bits: Row(
        text=f"insert.b{bits}",
        operands=(
            result("d", uint32),
            value("a", uint32),
            value("b", element),
            immediate("index", *range(32 // bits)),
        ),
        code=Cxx(
            f"{{d}} = ({{a}} & ~({(1 << bits) - 1:#x}u << ({bits} * {{index}}))) | "
            f"((unsigned int){{b}} << ({bits} * {{index}}));"
        ),
        meaning=_inserted(element),
        needs=EVERYWHERE,
        pure=True,
        moves=True,
        section="Data Movement and Conversion Instructions: mov",
    )
    for bits, element in _ELEMENTS.items()
}
"""d = the word a with its element `index` replaced by b."""


def _packed(word: DType) -> Callable[..., Array]:
    return plain(lambda low, high: numerics.pack(np.stack(np.broadcast_arrays(low, high), axis=-1), word))


def _unpacked(word: Array) -> tuple[Array, Array]:
    words = numerics.unpack(word, uint32)
    return words[..., 0], words[..., 1]


PACK32 = Row(
    text="pack.b32",
    operands=(result("d", uint32), value("low", _ELEMENTS[16]), value("high", _ELEMENTS[16])),
    code=Asm("mov.b32 {d}, {{{low}, {high}}};"),
    meaning=_packed(uint32),
    needs=EVERYWHERE,
    pure=True,
    moves=True,
    section="Data Movement and Conversion Instructions: mov",
)

PACK64 = Row(
    text="pack.b64",
    operands=(result("d", uint64), value("low", uint32), value("high", uint32)),
    code=Asm("mov.b64 {d}, {{{low}, {high}}};"),
    meaning=_packed(uint64),
    needs=EVERYWHERE,
    pure=True,
    moves=True,
    section="Data Movement and Conversion Instructions: mov",
)

UNPACK64 = Row(
    text="unpack.b64",
    operands=(result("low", uint32), result("high", uint32), value("a", uint64)),
    code=Asm("mov.b64 {{{low}, {high}}}, {a};"),
    meaning=plain(_unpacked),
    needs=EVERYWHERE,
    pure=True,
    moves=True,
    section="Data Movement and Conversion Instructions: mov",
)
