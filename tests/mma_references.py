"""What one result of a dense mma.sync is, in Python's integers and fractions, one at a time. No tests here.

Floats of 16 bits and tf32 are `mma_model`'s; here are 8-bit floats (sm_90's two sums and an addition), float64 (a chain
of fused multiply-adds) and integers. Operands are codes: integers whose low bits are the element.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction

from mma_model import LAYOUTS, NAN, ONE, Number, encoded, modelled, read

Codes = Sequence[int]
Result = Callable[[Codes, Codes, int], int]
"""(row of A, row of B, c) to d, all codes."""


def floats(operand: str, result: str) -> Result:
    """f16, bf16 and tf32."""

    def of(a: Codes, b: Codes, c: int) -> int:
        rows = [[read(code, LAYOUTS[operand]) for code in codes] for codes in (a, b)]
        return modelled(rows[0], rows[1], read(c, LAYOUTS[result]), result)

    return of


# ---- 8-bit floats -----------------------------------------------------------------------------------------


@functools.cache
def half(code: int, kind: str) -> int:
    """The float16 code of an 8-bit float."""
    sign, magnitude = code >> 7, code & 0x7F
    fraction_bits, bias = {"e4m3": (3, 7), "e5m2": (2, 15)}[kind]
    exponent, fraction = magnitude >> fraction_bits, magnitude & (1 << fraction_bits) - 1
    if kind == "e4m3" and magnitude == 0x7F:
        return NAN["f16"]
    if kind == "e5m2" and exponent == 31:
        return NAN["f16"] if fraction else sign << 15 | 0x7C00
    significand = fraction + (1 << fraction_bits if exponent else 0)
    value = math.ldexp(significand, max(exponent, 1) - bias - fraction_bits)
    (found,) = struct.unpack("<H", struct.pack("<e", -value if sign else value))
    return int(found)


def added(x: Number, y: Number, result: str) -> int:
    """IEEE addition to nearest even. (Never -0 + -0 here: a sum of the instruction is no -0.)"""
    layout = LAYOUTS[result]
    signs = {each.negative for each in (x, y) if each.kind == "infinite"}
    if "nan" in (x.kind, y.kind) or len(signs) == 2:
        return NAN[result]
    if signs:
        return layout.infinity | (layout.sign if True in signs else 0)
    total = 0
    for each in (x, y):
        fixed = each.magnitude << ONE + each.exponent - each.places
        total += -fixed if each.negative else fixed
    return encoded(total, layout, nearest=True)


def small_floats(left: str, right: str, result: str) -> Result:
    """e4m3 and e5m2."""

    def of(a: Codes, b: Codes, c: int) -> int:
        rows = [[half(code, kind) for code in codes] for codes, kind in ((a, left), (b, right))]
        partial = 0
        for late in (False, True):
            chosen = [[codes[k] for k in range(len(codes)) if (k % 4 >= 2) == late] for codes in rows]
            partial = floats("f16", result)(*chosen, partial)
        return added(read(c, LAYOUTS[result]), read(partial, LAYOUTS[result]), result)

    return of


# ---- float64 ----------------------------------------------------------------------------------------------

QUIET, MADE = 1 << 51, 0xFFF8 << 48


def double(code: int) -> float:
    (value,) = struct.unpack("<d", code.to_bytes(8, "little"))
    return float(value)


def code_of(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def doubles(a: Codes, b: Codes, c: int) -> int:
    """x = c, then a[k] * b[k] + x. Of several NaN, b's goes before x before a's."""
    total = c
    for x, y in zip(a, b, strict=True):
        total = fused(x, y, total)
    return total


def fused(a: int, b: int, c: int) -> int:
    """One fused multiply-add of codes."""
    nan = [code for code in (b, c, a) if math.isnan(double(code))]
    if nan:
        return nan[0] | QUIET
    x, y, z = (double(code) for code in (a, b, c))
    if math.isinf(x) or math.isinf(y):
        if x == 0 or y == 0:
            return MADE
        product = math.copysign(math.inf, x) * math.copysign(1.0, y)
        return MADE if math.isinf(z) and z != product else code_of(product)
    if math.isinf(z):
        return c
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        # Of zeros of both signs, and of what cancels: +0.
        negative = math.copysign(1.0, x) * math.copysign(1.0, y) < 0 and math.copysign(1.0, z) < 0
        return code_of(-0.0 if negative and z == 0 else 0.0)
    sign = 1.0 if exact > 0 else -1.0
    try:
        return code_of(math.copysign(exact.numerator / exact.denominator, sign))
    except OverflowError:
        return code_of(math.copysign(math.inf, sign))


# ---- integers ---------------------------------------------------------------------------------------------


def integer(code: int, kind: str) -> int:
    """The number that a code of "s8", "u4", … is."""
    bits = int(kind[1:])
    return code - (1 << bits) if kind[0] == "s" and code >> bits - 1 else code


def integers(left: str, right: str, saturate: bool) -> Result:
    """s8, u8, s4 and u4: the code of an int32."""

    def of(a: Codes, b: Codes, c: int) -> int:
        total = integer(c, "s32") + sum(integer(x, left) * integer(y, right) for x, y in zip(a, b, strict=True))
        if saturate:
            total = min(max(total, -(2**31)), 2**31 - 1)
        return total % 2**32

    return of


def counted(operation: str) -> Result:
    """Single bits, `and` or `xor`."""

    def of(a: Codes, b: Codes, c: int) -> int:
        pairs = list(zip(a, b, strict=True))
        ones = sum((x & y) if operation == "and" else (x ^ y) for x, y in pairs)
        return (c + ones) % 2**32

    return of
