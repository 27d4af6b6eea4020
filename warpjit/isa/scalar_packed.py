"""Arithmetic on two 16-bit floats in one register (f16x2, bf16x2), each half by itself.

    ARITHMETIC[(operation, pair)]   add sub mul fma min max min_nan max_nan neg abs
    COMPARE[(operation, pair)]      eq ne lt le gt ge: a mask, 0xFFFF in each half for which it holds
    ROWS                            further forms under PTX's names: .ftz, and bf16x2's own add, sub and mul

A half gives the same bits as the scalar operation of its type. Sections of the PTX manual: "Half Precision Floating
Point Instructions", "Half Precision Comparison Instructions: set". bfloat16 has add, sub, mul and set from sm_90 on;
the rows of the tables serve every target by fma (rounded once, zeros keep their signs) and by comparing as float32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpjit.ir import numerics
from warpjit.ir.dtypes import DType, bfloat16x2, float16x2, uint32
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import Array, Asm, Code, Cxx, Needs, Row
from warpjit.isa.scalar_text import PAIRS, plain, result, value

_SECTION = "Half Precision Floating Point Instructions: "

_MEANINGS: dict[str, Callable[..., Array]] = {
    "add": numerics.add,
    "sub": numerics.subtract,
    "mul": numerics.multiply,
    "fma": numerics.fma,
    "min": numerics.minimum,
    "max": numerics.maximum,
    "min_nan": numerics.minimum_nan,
    "max_nan": numerics.maximum_nan,
    "neg": numerics.negate,
    "abs": numerics.absolute,
}
_OPERANDS = {"neg": "a", "abs": "a", "fma": "abc"}
_ROUNDED = ("add", "sub", "mul", "fma")


def _by_halves(function: Callable[..., Array], pair: DType) -> Callable[..., Array]:
    """A meaning: `function` on the halves of words."""

    def meaning(*words: Array) -> Array:
        return numerics.pack(function(*(numerics.unpack(word, pair.element) for word in words)), uint32)

    return plain(meaning)


def _row(text: str, operation: str, pair: DType, code: Code, needs: Needs, meaning: Callable[..., Array]) -> Row:
    return Row(
        text=text,
        operands=(result("d", pair), *(value(name, pair) for name in _OPERANDS.get(operation, "ab"))),
        code=code,
        meaning=_by_halves(meaning, pair),
        needs=needs,
        pure=True,
        section=_SECTION + operation[:3],
    )


def _instruction(text: str, operation: str, pair: DType, needs: Needs, meaning: Callable[..., Array]) -> Row:
    """A row whose code is its text with the operands in order."""
    names = ("d", *_OPERANDS.get(operation, "ab"))
    code = Asm(f"{text} {', '.join('{' + name + '}' for name in names)};")
    return _row(text, operation, pair, code, needs, meaning)


# ---- arithmetic ------------------------------------------------------------------------------------------

_BF16_BY_FMA = {
    "add": "{{ .reg .b32 k; mov.b32 k, 0x3F803F80; fma.rn.bf16x2 {d}, {a}, k, {b}; }}",
    "sub": "{{ .reg .b32 k; mov.b32 k, 0xBF80BF80; fma.rn.bf16x2 {d}, {b}, k, {a}; }}",
    "mul": "{{ .reg .b32 k; mov.b32 k, 0x80008000; fma.rn.bf16x2 {d}, {a}, {b}, k; }}",
}
"""a * 1 + b, b * -1 + a, and a * b + -0."""


def _arithmetic(operation: str, pair: DType) -> Row:
    meaning = _MEANINGS[operation]
    if pair == bfloat16x2 and operation in _BF16_BY_FMA:
        return _row(f"{operation}.bf16x2", operation, pair, Asm(_BF16_BY_FMA[operation]), since(80), meaning)
    modifier = ".rn" if operation in _ROUNDED else ".NaN" if operation.endswith("_nan") else ""
    newer = pair == bfloat16x2 or operation[:3] in ("min", "max")
    text = f"{operation[:3]}{modifier}.{pair.ptx}"
    return _instruction(text, operation, pair, since(80) if newer else EVERYWHERE, meaning)


ARITHMETIC: dict[tuple[str, str], Row] = {
    (operation, pair.name): _arithmetic(operation, pair) for operation in _MEANINGS for pair in PAIRS
}


def _flushed(halves: Array) -> Array:
    """float16 with its subnormal numbers as zeros of their signs."""
    words = np.asarray(halves).view(np.uint16)
    return np.where(words & np.uint16(0x7C00), words, words & np.uint16(0x8000)).view(np.float16)


def _flushing(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *halves: _flushed(function(*map(_flushed, halves)))


# ---- comparisons -----------------------------------------------------------------------------------------

_COMPARISONS: dict[str, tuple[str, str, Callable[..., Array]]] = {
    "eq": ("eq", "==", np.equal),
    "ne": ("neu", "!=", np.not_equal),
    "lt": ("lt", "<", np.less),
    "le": ("le", "<=", np.less_equal),
    "gt": ("gt", ">", np.greater),
    "ge": ("ge", ">=", np.greater_equal),
}
"""PTX's and C++'s operators; a NaN is unequal to everything and neither less nor greater."""


def _mask(compare: Callable[..., Array], pair: DType) -> Callable[..., Array]:
    def meaning(a: Array, b: Array) -> Array:
        with np.errstate(invalid="ignore"):
            holds = compare(numerics.unpack(a, pair.element), numerics.unpack(b, pair.element))
        return numerics.pack(np.where(holds, np.uint16(0xFFFF), np.uint16(0)), uint32)

    return plain(meaning)


def _comparison(operation: str, pair: DType) -> Row:
    ptx, sign, compare = _COMPARISONS[operation]
    text = f"set.{ptx}.u32.{pair.ptx}"
    return Row(
        text=text,
        operands=(result("d", uint32), value("a", pair), value("b", pair)),
        code=Asm(f"{text} {{d}}, {{a}}, {{b}};") if pair == float16x2 else Cxx(_BF16_COMPARED.format(sign=sign)),
        meaning=_mask(compare, pair),
        needs=EVERYWHERE,
        pure=True,
        section="Half Precision Comparison Instructions: set",
        notes="" if pair == float16x2 else "compares as float32, so that targets before sm_90 have it",
    )


# bfloat16 is the upper half of a float32.
_BF16_COMPARED = (
    "{{d}} = (__uint_as_float({{a}} << 16) {sign} __uint_as_float({{b}} << 16) ? 0xffffu : 0u) | "
    "(__uint_as_float({{a}} & 0xffff0000u) {sign} __uint_as_float({{b}} & 0xffff0000u) ? 0xffff0000u : 0u);"
)

COMPARE: dict[tuple[str, str], Row] = {
    (operation, pair.name): _comparison(operation, pair) for operation in _COMPARISONS for pair in PAIRS
}

ROWS: tuple[Row, ...] = (
    *(
        _instruction(f"{operation}.rn.ftz.f16x2", operation, float16x2, EVERYWHERE, _flushing(_MEANINGS[operation]))
        for operation in _ROUNDED
    ),
    *(
        _instruction(f"{operation}.rn.bf16x2", operation, bfloat16x2, since(90), _MEANINGS[operation])
        for operation in _BF16_BY_FMA
    ),
)
