"""Instructions on the bits of words: `COUNT[(name, bits)]`, `LOP3`, `PERMUTE[mode]`, `FUNNEL[(direction, mode)]`, ...

    COUNT     popc, clz, brev of 32 and 64 bits
    LOP3      any function of three bits, bit by bit: bit 4 * a + 2 * b + c of the table `lut`
    PERMUTE   four of the eight bytes of two words: "" by a selector of four digits, or one of PTX's fixed patterns
    FUNNEL    32 bits of a 64-bit word (b the upper half, a the lower), shifted; counts wrap at 32 or stop there
    EXTRACT_FIELD[type], INSERT_FIELD[bits]   bfe, bfi; position and length are the low byte of their operands
    ADD_ROUNDED[dtype name]   add.rn: a sum that the compiler never makes part of a fused multiply-add

Sections of the PTX manual: "Integer Arithmetic Instructions", "Logic and Shift Instructions", and "Data Movement and
Conversion Instructions: prmt". Logic of single words is in `scalar_bits`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpjit.ir import numerics
from warpjit.ir.dtypes import DTYPES, DType, dtype, float32, float64, int32, uint32
from warpjit.isa.needs import EVERYWHERE
from warpjit.isa.row import Array, Asm, Operand, Row
from warpjit.isa.scalar_text import immediate, plain, result, value

_INTEGER = "Integer Arithmetic Instructions: "
_LOGIC = "Logic and Shift Instructions: "


def _row(text: str, section: str, meaning: Callable[..., Array], *operands: Operand, moves: bool = False) -> Row:
    """A row whose code is its text with the operands in order."""
    listed = ", ".join("{" + operand.name + "}" for operand in operands)
    return Row(
        text=text,
        operands=operands,
        code=Asm(f"{text} {listed};"),
        meaning=meaning,
        needs=EVERYWHERE,
        pure=True,
        moves=moves,
        section=section,
    )


# ---- one word --------------------------------------------------------------------------------------------


def _places(words: Array) -> Array:
    """The bits of each word (..., bits), the lowest first."""
    octets = np.ascontiguousarray(words)[..., None].view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little")


def _words(places: Array, like: Array) -> Array:
    octets = np.packbits(places, axis=-1, bitorder="little")
    return np.asarray(np.ascontiguousarray(octets).view(like.dtype)[..., 0])


def _population(a: Array) -> Array:
    return np.asarray(_places(a).sum(-1, dtype=np.int32))


def _leading_zeros(a: Array) -> Array:
    down = _places(a)[..., ::-1]
    return np.asarray(np.where(down.any(-1), down.argmax(-1), down.shape[-1]), np.int32)


def _reversed(a: Array) -> Array:
    return _words(_places(a)[..., ::-1], a)


_COUNTS = {"popc": (_population, _INTEGER), "clz": (_leading_zeros, _INTEGER), "brev": (_reversed, _INTEGER)}


def _count(name: str, bits: int) -> Row:
    function, section = _COUNTS[name]
    word = dtype(f"uint{bits}")
    given = word if name == "brev" else int32
    text, operands = f"{name}.b{bits}", (result("d", given), value("a", word))
    return _row(text, section + name, plain(function), *operands, moves=name == "brev")


COUNT: dict[tuple[str, int], Row] = {(name, bits): _count(name, bits) for name in _COUNTS for bits in (32, 64)}


# ---- several words ---------------------------------------------------------------------------------------


def _lop3(a: Array, b: Array, c: Array, *, lut: int) -> Array:
    given = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), np.uint32)
    for case in range(8):
        if lut >> case & 1:
            given = given | ((a if case & 4 else ~a) & (b if case & 2 else ~b) & (c if case & 1 else ~c))
    return given


# To 64 bits and back, which costs no instruction: ptxas (13.0) crashes, or loses the instruction, where a lop3 is only
# compared with 0 for a branch.
_LOP3 = (
    "{{ .reg .b32 word; .reg .b64 wide; lop3.b32 word, {a}, {b}, {c}, {lut}; "
    "cvt.u64.u32 wide, word; cvt.u32.u64 {d}, wide; }}"
)

LOP3 = Row(
    text="lop3.b32",
    operands=(result("d", uint32), *(value(name, uint32) for name in "abc"), immediate("lut", *range(256))),
    code=Asm(_LOP3),
    meaning=_lop3,
    needs=EVERYWHERE,
    pure=True,
    moves=True,
    section=_LOGIC + "lop3",
)

_PATTERNS: dict[str, tuple[tuple[int, ...], ...]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}
"""Of the bytes b7 ... b4 (of b) and b3 ... b0 (of a), which become bytes 0 to 3, by the low two bits of c."""


def _permuted(mode: str) -> Callable[..., Array]:
    def meaning(a: Array, b: Array, c: Array) -> Array:
        a, b, c = np.broadcast_arrays(a, b, c)
        octets = np.ascontiguousarray(np.stack([a, b], axis=-1)).view(np.uint8)
        if mode:
            return _words_of(np.take_along_axis(octets, np.array(_PATTERNS[mode])[c & 3], axis=-1))
        digits = np.stack([c >> np.uint32(4 * byte) & np.uint32(15) for byte in range(4)], axis=-1)
        chosen = np.take_along_axis(octets, (digits & 7).astype(np.int64), axis=-1)
        signs = np.where(chosen >= 128, np.uint8(255), np.uint8(0))
        return _words_of(np.where(digits >= 8, signs, chosen).astype(np.uint8))

    return meaning


def _words_of(octets: Array) -> Array:
    return np.ascontiguousarray(octets).view(np.uint32)[..., 0]


PERMUTE: dict[str, Row] = {
    mode: _row(
        "prmt.b32" + (f".{mode}" if mode else ""),
        "Data Movement and Conversion Instructions: prmt",
        _permuted(mode),
        result("d", uint32),
        *(value(name, uint32) for name in "abc"),
        moves=True,
    )
    for mode in ("", *_PATTERNS)
}
"""Digits of the selector: 0 to 7 a byte of {b, a}, with 8 added its sign in all eight bits."""


def _funnelled(direction: str, mode: str) -> Callable[..., Array]:
    def meaning(a: Array, b: Array, c: Array) -> Array:
        wide = b.astype(np.uint64) << np.uint64(32) | a
        count = (c & np.uint32(31) if mode == "wrap" else np.minimum(c, np.uint32(32))).astype(np.uint64)
        moved = wide << count >> np.uint64(32) if direction == "l" else wide >> count
        return np.asarray(moved & np.uint64(0xFFFFFFFF)).astype(np.uint32)

    return meaning


FUNNEL: dict[tuple[str, str], Row] = {
    (direction, mode): _row(
        f"shf.{direction}.{mode}.b32",
        _LOGIC + "shf",
        _funnelled(direction, mode),
        result("d", uint32),
        *(value(name, uint32) for name in "abc"),
        moves=True,
    )
    for direction in "lr"
    for mode in ("wrap", "clamp")
}


# ---- fields ----------------------------------------------------------------------------------------------


def _extracted(a: Array, b: Array, c: Array) -> Array:
    """Bits b ... b + c - 1 of a, the rest 0; of signed types the sign (of a, where the field goes beyond it)."""
    bits = 8 * a.dtype.itemsize
    start, length = (np.asarray(x).astype(np.int64) & 255 for x in (b, c))
    places = _places(a).astype(bool)
    last = np.minimum(start + length - 1, bits - 1)
    shape = np.broadcast_shapes(a.shape, start.shape, length.shape)
    places = np.broadcast_to(places, (*shape, bits))
    sign = np.take_along_axis(places, np.broadcast_to(np.maximum(last, 0), shape)[..., None], -1)
    sign = sign & (a.dtype.kind == "i") & np.broadcast_to(length > 0, shape)[..., None]
    index = start[..., None] + np.arange(bits)
    inside = (np.arange(bits) < length[..., None]) & (index < bits)
    found = np.take_along_axis(places, np.broadcast_to(np.minimum(index, bits - 1), (*shape, bits)), -1)
    return _words(np.where(inside, found, sign), a)


def _inserted(a: Array, b: Array, c: Array, d: Array) -> Array:
    """b with its bits c ... c + d - 1 replaced by the low bits of a."""
    bits = 8 * a.dtype.itemsize
    start, length = (np.asarray(x).astype(np.int64)[..., None] & 255 for x in (c, d))
    place = np.arange(bits)
    inside = (place >= start) & (place < start + length)
    source = np.clip(place - start, 0, bits - 1)
    shape = np.broadcast_shapes(inside.shape, (*a.shape, bits), (*b.shape, bits))
    field = np.take_along_axis(np.broadcast_to(_places(a), shape), np.broadcast_to(source, shape), -1)
    return _words(np.where(inside, field, _places(b)), a)


EXTRACT_FIELD: dict[str, Row] = {
    each.name: _row(
        f"bfe.{each.ptx}",
        _INTEGER + "bfe",
        plain(_extracted),
        result("d", each),
        value("a", each),
        value("b", uint32),
        value("c", uint32),
    )
    for each in (DTYPES[name] for name in ("uint32", "int32", "uint64", "int64"))
}

INSERT_FIELD: dict[int, Row] = {
    bits: Row(
        text=f"bfi.b{bits}",
        operands=(
            result("f", dtype(f"uint{bits}")),
            value("a", dtype(f"uint{bits}")),
            value("b", dtype(f"uint{bits}")),
            value("c", uint32),
            value("d", uint32),
        ),
        code=Asm(f"bfi.b{bits} {{f}}, {{a}}, {{b}}, {{c}}, {{d}};"),
        meaning=plain(_inserted),
        needs=EVERYWHERE,
        pure=True,
        section=_INTEGER + "bfi",
    )
    for bits in (32, 64)
}


# ---- sums ------------------------------------------------------------------------------------------------


def _rounded_sum(of: DType) -> Row:
    operands = (result("d", of), value("a", of), value("b", of))
    return _row(f"add.rn.{of.ptx}", "Floating Point Instructions: add", plain(numerics.add), *operands)


ADD_ROUNDED: dict[str, Row] = {of.name: _rounded_sum(of) for of in (float32, float64)}

ROWS: tuple[Row, ...] = (
    *COUNT.values(),
    LOP3,
    *PERMUTE.values(),
    *FUNNEL.values(),
    *EXTRACT_FIELD.values(),
    *INSERT_FIELD.values(),
    *ADD_ROUNDED.values(),
)
