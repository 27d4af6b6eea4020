"""Operands for warp-matrix instructions, of every type: bit patterns that reach what such an instruction can do.

    normal        values as they come: standard normal, and small integers
    spread        exponents over 25 binades, and magnitudes of any length
    special       zeros of both signs, subnormals, largest and smallest numbers, infinities, NaNs; the ends of integers
    cancelling    the second half of k takes away what the first half adds, but for last places of some; integers: c
                  takes away all products but for a little
    all bits      any bit pattern
    tiny          floats only: sums about as small as the result's type can hold, and subnormal numbers

Matrices are arrays of codes, one an element in the low bits of an unsigned integer: A (count, m, k), B (count, n, k), C
(count, m, n). `registers` spreads them over lanes as the row's layouts say.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpjit.ir.dtypes import DType, float32, tf32
from warpjit.ir.nans import FORMATS, FloatFormat
from warpjit.ir.rounding import round_float
from warpjit.isa.fragments import Gather
from warpjit.isa.row import Operand, Row

Array = np.ndarray[Any, Any]
Random = np.random.Generator
Sizes = tuple[int, ...]

KINDS = ("normal", "spread", "special", "cancelling", "all bits")
"""What there is for every row."""
SPECIAL = 0.06
"""How often a special number stands in a place of `special`."""


def kinds(row: Row) -> tuple[str, ...]:
    """The kinds of inputs for a row."""
    return (*KINDS, "tiny") if element_of(row.operand("D")).is_float else KINDS


@dataclass(frozen=True)
class Matrices:
    """Codes of the operands of many products D = A @ B.T + C."""

    a: Array
    b: Array
    c: Array


def element_of(operand: Operand) -> DType:
    """The type of an element; tf32 for words that an instruction reads as tf32."""
    found = operand.element or operand.dtype
    assert found is not None
    return found


def matrices(row: Row, kind: str, count: int, seed: int = 0) -> Matrices:
    """`count` products' operands for a dense row; the same for the same arguments."""
    rng = np.random.default_rng(zlib.crc32(f"{row.text} {kind} {count} {seed}".encode()))
    shapes = [(count, *element_shape(row.operand(name))) for name in "ABC"]
    types = [element_of(row.operand(name)) for name in "ABC"]
    if kind == "tiny":
        return _tiny(rng, shapes, types)
    made = Matrices(*(_codes(rng, kind, shape, each) for shape, each in zip(shapes, types, strict=True)))
    if kind != "cancelling":
        return made
    return (_cancelling_floats if types[2].is_float else _cancelling_integers)(rng, made, *types)


def registers(row: Row, made: Matrices) -> tuple[Array, Array, Array]:
    """A, B and C as the lanes hold them: words (count, 32, registers), uint64 for float64 and else uint32."""
    spread = (_words(each, row.operand(name)) for name, each in zip("ABC", (made.a, made.b, made.c), strict=True))
    return tuple(Gather.of(row.operand(name)).registers(each) for name, each in zip("ABC", spread, strict=True))  # type: ignore[return-value]


def results(row: Row, words: Array) -> Array:
    """D's registers (count, 32, registers) as codes (count, m, n)."""
    operand = row.operand("D")
    matrix = Gather.of(operand).matrix(words)
    return matrix.view(_word(element_of(operand)))


# ---- elements ---------------------------------------------------------------------------------------------


def element_shape(operand: Operand) -> tuple[int, int]:
    """(rows, elements of a row)."""
    rows, words = operand.shape
    return rows, words * operand.packed


def _word(kind: DType) -> type[Any]:
    """The unsigned integer that holds one code."""
    return {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[max(kind.bits, 8)]


def _words(codes: Array, operand: Operand) -> Array:
    """Codes (…, elements) packed into registers (…, words)."""
    bits = element_of(operand).bits
    assert operand.dtype is not None
    if bits == 1:
        codes = np.packbits(codes, axis=-1, bitorder="little")
    elif bits == 4:
        codes = codes[..., 0::2] | codes[..., 1::2] << np.uint8(4)
    return np.ascontiguousarray(codes).view(np.uint64 if operand.dtype.bits == 64 else np.uint32)


def _codes(rng: Random, kind: str, shape: Sizes, element: DType) -> Array:
    word = _word(element)
    if kind == "all bits":
        return _bits(rng, shape, element.bits).astype(word)
    makers = _FLOATS if element.is_float else _INTEGERS
    return makers[kind](rng, shape, element).astype(word)


def _bits(rng: Random, shape: Sizes, count: int) -> Array:
    return rng.integers(0, 1 << 64, shape, dtype=np.uint64) >> np.uint64(64 - count)


# ---- floats -----------------------------------------------------------------------------------------------


def _format(element: DType) -> FloatFormat:
    return FORMATS[float32 if element == tf32 else element]


def _normal_floats(rng: Random, shape: Sizes, element: DType) -> Array:
    values = rng.standard_normal(shape)
    rounded = values.astype(np.float32) if element == tf32 else round_float(values, element)
    return rounded.view(_word(element))


def _spread_floats(rng: Random, shape: Sizes, element: DType) -> Array:
    """Random signs and fractions, exponents within 12 of that of 1, as far as they exist."""
    fields = _format(element)
    reach = min(12, fields.bias - 1)
    exponents = rng.integers(fields.bias - reach, fields.bias + reach + 1, shape).astype(np.uint64)
    return _bits(rng, shape, element.bits) & np.uint64(~fields.exponent_mask & (1 << element.bits) - 1) | (
        exponents << np.uint64(fields.fraction)
    )


def _special_floats(rng: Random, shape: Sizes, element: DType) -> Array:
    fields = _format(element)
    one, top = fields.bias << fields.fraction, fields.exponent_mask
    magnitudes = [0, 1, (1 << fields.fraction) - 1, 1 << fields.fraction, top - 1, top, top + 1, top | fields.quiet_bit]
    magnitudes += [fields.sign_bit - 1, one, one + 1]
    if element == tf32:  # its low bits are not looked at: a fraction below them is none
        magnitudes += [1 << 13, top - (1 << 13), top + (1 << 13)]
    chosen = np.array([each | sign for each in magnitudes for sign in (0, fields.sign_bit)], np.uint64)
    usual = _spread_floats(rng, shape, element)
    return np.where(rng.random(shape) < SPECIAL, rng.choice(chosen, shape), usual)


def _tiny(rng: Random, shapes: Sequence[Sizes], types: Sequence[DType]) -> Matrices:
    """Factors of about half the result's lowest exponent, as far as they exist, and c of the lowest."""
    lowest = 1 - _format(types[2]).bias
    near = (lowest // 2 - 23, lowest // 2 + 2)
    reach = (near, near, (lowest, lowest))
    return Matrices(*(_low(rng, *each) for each in zip(shapes, types, reach, strict=True)))


def _low(rng: Random, shape: Sizes, element: DType, reach: tuple[int, int]) -> Array:
    """Random signs and fractions, exponents in `reach`; where that reaches the type's lowest, half are subnormal."""
    fields = _format(element)
    low, high = (min(max(each + fields.bias, 1), 2 * fields.bias) for each in reach)
    exponents = rng.integers(low, high + 1, shape).astype(np.uint64)
    if low == 1:
        exponents[rng.random(shape) < 0.5] = 0
    fractions = _bits(rng, shape, element.bits) & np.uint64(~fields.exponent_mask & (1 << element.bits) - 1)
    return np.asarray(fractions | exponents << np.uint64(fields.fraction)).astype(_word(element))


def _cancelling_floats(rng: Random, made: Matrices, a_type: DType, b_type: DType, c_type: DType) -> Matrices:
    a, b, c = made.a.copy(), made.b.copy(), made.c.copy()
    half = a.shape[-1] // 2
    place = np.where(rng.random(b[..., half:].shape) < 0.2, 1 << (13 if b_type == tf32 else 0), 0)
    a[..., half:] = a[..., :half] ^ a.dtype.type(_format(a_type).sign_bit)
    b[..., half:] = b[..., :half] ^ place.astype(b.dtype)
    c[rng.random(c.shape) < 0.5] &= c.dtype.type(_format(c_type).sign_bit)
    return Matrices(a, b, c)


# ---- integers ---------------------------------------------------------------------------------------------


def _small_integers(rng: Random, shape: Sizes, element: DType) -> Array:
    values = np.rint(rng.standard_normal(shape) * 3).astype(np.int64)
    return _coded(values.clip(element.min, element.max), element)


def _spread_integers(rng: Random, shape: Sizes, element: DType) -> Array:
    """Every number of significant bits is as likely."""
    bits = _bits(rng, shape, element.bits)
    return _coded((bits >> rng.integers(0, element.bits, shape).astype(np.uint64)).astype(np.int64), element)


def _special_integers(rng: Random, shape: Sizes, element: DType) -> Array:
    """The ends, their neighbours and what is around zero; in some matrices the ends alone, which reach int32's ends."""
    near = [
        element.min,
        element.min,
        element.max,
        element.max,
        element.min + 1,
        element.max - 1,
        0,
        1,
        element.max // 2,
    ]
    codes = rng.choice(_coded(np.array(near), element), shape)
    ends = rng.choice(_coded(np.array([element.min, element.max]), element), (shape[0], *(1,) * (len(shape) - 1)))
    alone = rng.random((shape[0], *(1,) * (len(shape) - 1))) < 0.3
    return np.where(alone, np.broadcast_to(ends, shape), codes)


def _coded(values: Array, element: DType) -> Array:
    return values.astype(np.int64).view(np.uint64) & np.uint64((1 << element.bits) - 1)


def integer_values(codes: Array, element: DType) -> Array:
    """int64: the integers that codes stand for."""
    values = codes.astype(np.int64)
    return values - ((values >> element.bits - 1) << element.bits) if element.signed else values


def _cancelling_integers(rng: Random, made: Matrices, a_type: DType, b_type: DType, c_type: DType) -> Matrices:
    left, right = integer_values(made.a, a_type), integer_values(made.b, b_type)
    rest = integer_values(made.c, c_type) - left @ right.swapaxes(-1, -2)
    return Matrices(made.a, made.b, _coded(rest, c_type).astype(made.c.dtype))


Maker = Callable[[Random, Sizes, DType], Array]
_FLOATS: dict[str, Maker] = {
    "normal": _normal_floats,
    "spread": _spread_floats,
    "special": _special_floats,
    "cancelling": _spread_floats,
}
_INTEGERS: dict[str, Maker] = {
    "normal": _small_integers,
    "spread": _spread_integers,
    "special": _special_integers,
    "cancelling": _small_integers,
}
