"""Conversions of 8-bit floats (e4m3fn, e5m2), which are stored and converted and compute nothing.

    FLOAT8[(to, from)]            an 8-bit float from float16, float32 or float64, and float16 from an 8-bit float
    FLOAT8_PAIR[(to, from)]       two at once: two float32 to a uint16 of 8-bit floats, and that to a word of float16
    by_way_of(to, from)           the type through which any other conversion goes without a second rounding
    ROWS                          the instructions that PTX has, under its names

Narrowing rounds to nearest even and saturates: infinities and what is too large become the largest number of their
sign (448, 57344), NaN becomes 0x7F. That is `.satfinite`, the only form that the hardware has (PTX manual, section
"Data Movement and Conversion Instructions: cvt", sm_89 or later). Targets before sm_89 get the same bits by integer
arithmetic; the compiler drops the branch that its target does not take.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpjit.ir import numerics
from warpjit.ir.dtypes import DType, float8_e4m3fn, float8_e5m2, float16, float32, float64, uint16, uint32
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import Array, Asm, Cxx, Operand, Row
from warpjit.isa.scalar_text import plain, result, value
from warpjit.record import record

TYPES = (float8_e4m3fn, float8_e5m2)
_SECTION = "Data Movement and Conversion Instructions: cvt"


@record
class _Format:
    """What integer arithmetic needs to round a float32 to one of the types.

    largest, normal  bits of the largest number and of the smallest normal one, as float32
    magic            the float32 whose last place is the type's smallest subnormal: adding it rounds subnormals
    shift            fraction bits of float32 that are rounded away
    """

    largest: int
    normal: int
    magic: float
    shift: int

    @property
    def words(self) -> dict[str, str]:
        bias = (self.normal >> self.shift) - (1 << 23 - self.shift)
        return {
            "largest": f"{self.largest:#x}u",
            "normal": f"{self.normal:#x}u",
            "magic": f"{self.magic}f",
            "magic_bits": f"{int(np.float32(self.magic).view(np.uint32)):#x}u",
            "half": f"{(1 << self.shift - 1) - 1:#x}u",
            "shift": str(self.shift),
            "bias": f"{bias:#x}u",
        }


_FORMATS = {
    float8_e4m3fn: _Format(0x43E00000, 0x3C800000, 16384.0, 20),
    float8_e5m2: _Format(0x47600000, 0x38800000, 128.0, 21),
}

# wj__w: the bits of the 8-bit float nearest to the float32 `wj__{x}`.
_ROUNDED = (
    "const unsigned int wj__u = __float_as_uint(wj__{x}); unsigned int wj__m = wj__u & 0x7fffffffu; "
    "if (wj__m > 0x7f800000u) wj__m = 0x7fu; else {{{{ wj__m = wj__m < {largest} ? wj__m : {largest}; "
    "wj__m = wj__m < {normal} ? __float_as_uint(__uint_as_float(wj__m) + {magic}) - {magic_bits} "
    ": ((wj__m + {half} + (wj__m >> {shift} & 1u)) >> {shift}) - {bias}; wj__m |= wj__u >> 24 & 0x80u; }}}} "
)


def _rounded(to: DType, name: str, then: str) -> str:
    """A scope in which `wj__m` is the float32 variable `name` as an 8-bit float, and `then` uses it."""
    return "{{ " + _ROUNDED.format(x=name, **_FORMATS[to].words) + then + " }}"


def _either(hardware: str, software: str) -> str:
    return f"if (__CUDA_ARCH__ >= 890) {{{{ {hardware} }}}} else {{{{ {software} }}}}"


# ---- one ---------------------------------------------------------------------------------------------------


def _narrowing(to: DType, of: DType) -> Cxx:
    cvt = f"cvt.rn.satfinite.{to.ptx}x2"
    if of == float16:
        opened = 'float wj__a; asm("cvt.f32.f16 %0, %1;" : "=f"(wj__a) : "h"({a}));'
        hardware = f'asm("{cvt}.f16x2 %0, %1;" : "=h"(wj__h) : "r"((unsigned int){{a}})); wj__w = wj__h;'
    else:
        opened = "const float wj__a = {a};" if of == float32 else _DOUBLE_TO_ODD
        hardware = f'asm("{cvt}.f32 %0, %1, %2;" : "=h"(wj__h) : "f"(0.0f), "f"(wj__a)); wj__w = wj__h;'
    chosen = _either(f"unsigned short wj__h; {hardware}", _rounded(to, "a", "wj__w = wj__m;"))
    return Cxx(f"{{{{ {opened} unsigned int wj__w; {chosen} {{d}} = (unsigned char)wj__w; }}}}")


# float64 to float32, rounded to odd: the last bit says "inexact", so that the rounding that follows is the only one.
_DOUBLE_TO_ODD = (
    'float wj__a; asm("cvt.rz.f32.f64 %0, %1;" : "=f"(wj__a) : "d"({a})); '
    "if ((double)wj__a != {a}) wj__a = __uint_as_float(__float_as_uint(wj__a) | 1u);"
)


def _widened(of: DType, byte: str, to: str) -> str:
    """The bits of the 8-bit float `byte` (an unsigned int) as those of a float16 in the variable `to`."""
    if of == float8_e5m2:
        return f"{to} = (unsigned short)(({byte} & 0x7fu) > 0x7cu ? 0x7fffu : {byte} << 8);"
    # The exponent's bias is 8 less than float16's: the bits moved in place, times 2**8, which is exact.
    return (
        f"{to} = (unsigned short)(({byte} & 0x80u) << 8 | ({byte} & 0x7fu) << 7); "
        f'asm("mul.rn.f16 %0, %1, %2;" : "=h"({to}) : "h"({to}), "h"((unsigned short)0x5c00)); '
        f"if (({byte} & 0x7fu) == 0x7fu) {to} = 0x7fff;"
    )


def _widening(of: DType) -> Cxx:
    hardware = (
        f'unsigned int wj__w; asm("cvt.rn.f16x2.{of.ptx}x2 %0, %1;" : "=r"(wj__w) : "h"((unsigned short){{a}})); '
        "wj__h = (unsigned short)wj__w;"
    )
    software = f"const unsigned int wj__u = {{a}}; {_widened(of, 'wj__u', 'wj__h')}"
    return Cxx(f"{{{{ unsigned short wj__h; {_either(hardware, software)} {{d}} = wj__h; }}}}")


def _row(to: DType, of: DType, code: Cxx) -> Row:
    return Row(
        text=f"convert.{to.ptx}.{of.ptx}",
        operands=(result("d", to), value("a", of)),
        code=code,
        meaning=plain(lambda array: numerics.convert(array, to)),
        needs=EVERYWHERE,
        pure=True,
        section=_SECTION,
        notes="on targets before sm_89 by integer arithmetic",
    )


FLOAT8: dict[tuple[str, str], Row] = {
    **{(to.name, of.name): _row(to, of, _narrowing(to, of)) for to in TYPES for of in (float16, float32, float64)},
    **{("float16", of.name): _row(float16, of, _widening(of)) for of in TYPES},
}
"""d = a converted, by the names of both types, target first."""


def by_way_of(to: DType, of: DType) -> DType | None:
    """The type through which a conversion without a row goes, exactly but for its last step; None: there is none."""
    if of in TYPES:
        return float16
    if to not in TYPES:
        return None
    # Integers beyond 2**53 are rounded on the way, but all of them saturate.
    narrow = of.is_bool or of.bits <= 16
    return float32 if narrow else float64


# ---- two ---------------------------------------------------------------------------------------------------


def _packed(element: DType, word: DType) -> Callable[..., Array]:
    """A meaning: (high, low) converted to `element` in one word."""

    def meaning(high: Array, low: Array) -> Array:
        both = np.broadcast_arrays(numerics.convert(low, element), numerics.convert(high, element))
        return numerics.pack(np.stack(both, axis=-1), word)

    return plain(meaning)


def _repacked(to: DType, of: DType, word: DType) -> Callable[..., Array]:
    """A meaning: each element of a word converted."""
    return plain(lambda words: numerics.pack(numerics.convert(numerics.unpack(words, of), to), word))


def _pair_narrowing(to: DType) -> Row:
    hardware = f'asm("cvt.rn.satfinite.{to.ptx}x2.f32 %0, %1, %2;" : "=h"(wj__d) : "f"(wj__a), "f"(wj__b));'
    software = _rounded(to, "a", "wj__d = (unsigned short)(wj__m << 8);")
    software += " " + _rounded(to, "b", "wj__d = (unsigned short)(wj__d | wj__m);")
    return Row(
        text=f"convert.{to.ptx}x2.f32",
        operands=(result("d", uint16), value("a", float32), value("b", float32)),
        code=Cxx(
            "{{ const float wj__a = {a}, wj__b = {b}; unsigned short wj__d; "
            + _either(hardware, software)
            + " {d} = wj__d; }}"
        ),
        meaning=_packed(to, uint16),
        needs=EVERYWHERE,
        pure=True,
        section=_SECTION,
        notes="on targets before sm_89 by integer arithmetic",
    )


def _pair_widening(of: DType) -> Row:
    hardware = f'asm("cvt.rn.f16x2.{of.ptx}x2 %0, %1;" : "=r"(wj__d) : "h"(wj__a));'
    software = (
        "unsigned short wj__l, wj__h; const unsigned int wj__u = wj__a & 0xffu, wj__v = wj__a >> 8; "
        f"{_widened(of, 'wj__u', 'wj__l')} {_widened(of, 'wj__v', 'wj__h')} "
        "wj__d = (unsigned int)wj__h << 16 | wj__l;"
    )
    return Row(
        text=f"convert.f16x2.{of.ptx}x2",
        operands=(result("d", uint32), value("a", uint16)),
        code=Cxx(
            "{{ const unsigned short wj__a = {a}; unsigned int wj__d; "
            + _either(hardware, software)
            + " {d} = wj__d; }}"
        ),
        meaning=_repacked(float16, of, uint32),
        needs=EVERYWHERE,
        pure=True,
        section=_SECTION,
        notes="on targets before sm_89 by integer arithmetic",
    )


FLOAT8_PAIR: dict[tuple[str, str], Row] = {
    **{(to.name, "float32"): _pair_narrowing(to) for to in TYPES},
    **{("float16", of.name): _pair_widening(of) for of in TYPES},
}
"""d = two elements converted: of two float32 (the second in the low half), or of a uint16 that packs two."""


def _instruction(text: str, meaning: Callable[..., Array], *operands: Operand) -> Row:
    listed = ", ".join("{" + operand.name + "}" for operand in operands)
    return Row(
        text=text,
        operands=operands,
        code=Asm(f"{text} {listed};"),
        meaning=meaning,
        needs=since(89),
        pure=True,
        section=_SECTION,
    )


def _instructions(of: DType) -> tuple[Row, ...]:
    name, two = f"{of.ptx}x2", (value("a", float32), value("b", float32))
    byte_pair, word = result("d", uint16), result("d", uint32)
    return (
        _instruction(f"cvt.rn.satfinite.{name}.f32", _packed(of, uint16), byte_pair, *two),
        _instruction(f"cvt.rn.satfinite.{name}.f16x2", _repacked(of, float16, uint16), byte_pair, value("a", uint32)),
        _instruction(f"cvt.rn.f16x2.{name}", _repacked(float16, of, uint32), word, value("a", uint16)),
    )


ROWS: tuple[Row, ...] = tuple(row for of in TYPES for row in _instructions(of))
