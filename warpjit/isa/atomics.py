"""Atomic operations on global and shared memory: `ATOM[Form(space, scope, operation, type)]`; `RED` has no result.

    RED_VECTOR[VectorForm(scope, type, count)]   sums of neighbouring elements of global memory, sm_90 or later: 2 or 4
                                                 float32 (or pairs), each atomic by itself

    operation   add min max inc dec and or xor exch cas (`RED` has no exch and no cas)
    type        PTX's: s32 u32 s64 u64 f16 bf16 f16x2 bf16x2 f32 f64 b16 b32 b64
    scope       "" (PTX's default, the same as .relaxed.gpu), or .relaxed.cta, .relaxed.gpu, .relaxed.sys: between which
                threads the operation is atomic. Shared memory has "" only: no thread outside of the CTA reaches it

All are relaxed: they order no other access. Publishing data takes a fence or a barrier besides. The order in which
threads come to one address is not defined on the device, so sums of floats may differ from run to run; the simulator
takes warps in order, lanes in order. Float sums are rounded to nearest even; subnormal numbers are kept, but by `f32`
on global memory, which takes and leaves zeros of their sign instead (PTX manual, section "atom").

Left out: acquire and release forms, clusters, vectors with a result, vectors of 16-bit elements, 128 bits, cache hints.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from warpjit.ir import numerics
from warpjit.ir.dtypes import DTYPES, DType, bfloat16, float16, uint32
from warpjit.isa.memory import SPACES
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import Array, Asm, Kind, Mode, Operand, Row
from warpjit.isa.scalar_text import result, value
from warpjit.record import record

_SECTION = "Parallel Synchronization and Communication Instructions: "

Change = Callable[..., Array]
"""What is in memory afterwards, from what was there and the operands."""


# ---- what they compute -----------------------------------------------------------------------------------


def _in_halves(element: DType) -> Change:
    """The sum of words of two 16-bit floats, each half by itself."""

    def change(old: Array, b: Array) -> Array:
        return numerics.pack(numerics.add(numerics.unpack(old, element), numerics.unpack(b, element)), uint32)

    return change


def _flushed(x: Array) -> Array:
    return np.asarray(np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x))


def _flushing_add(old: Array, b: Array) -> Array:
    return _flushed(numerics.add(_flushed(old), _flushed(b)))


def _increment(old: Array, b: Array) -> Array:
    return np.where(old >= b, np.uint32(0), old + np.uint32(1))


def _decrement(old: Array, b: Array) -> Array:
    return np.where((old == 0) | (old > b), b, old - np.uint32(1))


def _plain(ufunc: np.ufunc) -> Change:
    return lambda old, b: np.asarray(ufunc(old, b))


_CHANGES: dict[str, Change] = {
    "add": numerics.add,
    "min": _plain(np.minimum),
    "max": _plain(np.maximum),
    "inc": _increment,
    "dec": _decrement,
    "and": _plain(np.bitwise_and),
    "or": _plain(np.bitwise_or),
    "xor": _plain(np.bitwise_xor),
    "exch": lambda old, b: b,
    "cas": lambda old, b, c: np.asarray(np.where(old == b, c, old)),
}


def _change(operation: str, ptx: str, space: str) -> Change:
    if ptx in _PAIRS:
        return _in_halves(_PAIRS[ptx])
    if (operation, ptx, space) == ("add", "f32", "global"):
        return _flushing_add
    return _CHANGES[operation]


# ---- types -----------------------------------------------------------------------------------------------

_PAIRS = {"f16x2": float16, "bf16x2": bfloat16}
_BITS = {f"b{bits}": DTYPES[f"uint{bits}"] for bits in (16, 32, 64)}
REGISTERS: dict[str, DType] = {
    **{each.ptx: each for each in DTYPES.values() if each.ptx in ("s32", "u32", "s64", "u64")},
    **{each.ptx: each for each in DTYPES.values() if each.ptx in ("f16", "bf16", "f32", "f64")},
    **dict.fromkeys(_PAIRS, uint32),
    **_BITS,
}
"""What one operand of each PTX type is."""

_INTEGERS = ("s32", "u32", "s64", "u64")
TYPES: dict[str, tuple[str, ...]] = {
    "add": ("s32", "u32", "u64", "f16", "bf16", "f16x2", "bf16x2", "f32", "f64"),
    "min": _INTEGERS,
    "max": _INTEGERS,
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64"),
    "cas": ("b16", "b32", "b64"),
}
"""The types of each operation."""

SCOPES = ("", ".relaxed.cta", ".relaxed.gpu", ".relaxed.sys")


@record
class Form:
    """One atomic instruction, with or without a result."""

    space: str
    scope: str
    operation: str
    ptx: str

    def text(self, name: str) -> str:
        rounding = ".noftz" if self.ptx in ("f16", "bf16", "f16x2", "bf16x2") else ""
        return f"{name}{self.scope}.{self.space}.{self.operation}{rounding}.{self.ptx}"


def _meaning(form: Form, returns: bool) -> Callable[..., tuple[Array, Array] | Array]:
    of, change = REGISTERS[form.ptx], _change(form.operation, form.ptx, form.space)

    def meaning(octets: Array, *values: Array) -> tuple[Array, Array] | Array:
        old = np.ascontiguousarray(octets).view(of.numpy)[..., 0]
        new = np.ascontiguousarray(np.broadcast_to(change(old, *values), old.shape).astype(of.numpy, copy=False))
        stored = new[..., None].view(np.uint8)
        return (old, stored) if returns else stored

    return meaning


@cache
def _operands(space: str, of: DType, names: str) -> tuple[Operand, ...]:
    """Operands of these names, shared by all rows that have the same."""
    kinds = {
        "a": lambda: Operand("a", Kind.ADDRESS, Mode.UPDATE, dtype=of, space=space, bytes=of.bytes, align=of.bytes),
        "d": lambda: result("d", of),
    }
    return tuple(kinds[name]() if name in kinds else value(name, of) for name in names)


def _row(form: Form, returns: bool) -> Row:
    text = form.text("atom" if returns else "red")
    inputs = "{b}, {c}" if form.operation == "cas" else "{b}"
    names = ("d" if returns else "") + ("abc" if form.operation == "cas" else "ab")
    return Row(
        text=text,
        operands=_operands(form.space, REGISTERS[form.ptx], names),
        code=Asm(f"{text} {'{d}, ' if returns else ''}[{{a}}], {inputs};"),
        meaning=_meaning(form, returns),
        needs=since(90) if form.ptx in ("bf16", "bf16x2") else EVERYWHERE,
        memory=True,
        section=_SECTION + ("atom" if returns else "red"),
        notes="subnormal numbers become 0" if _change(form.operation, form.ptx, form.space) is _flushing_add else "",
    )


FORMS: tuple[Form, ...] = tuple(
    Form(space, scope, operation, ptx)
    for space in SPACES
    for scope in (SCOPES if space == "global" else SCOPES[:1])
    for operation, types in TYPES.items()
    for ptx in types
)

ATOM: dict[Form, Row] = {form: _row(form, returns=True) for form in FORMS}
"""d = what was in memory before."""

RED: dict[Form, Row] = {form: _row(form, returns=False) for form in FORMS if form.operation not in ("exch", "cas")}


# ---- several elements --------------------------------------------------------------------------------------

VECTORS = {"f32": (2, 4), "f16x2": (2, 4), "bf16x2": (2, 4)}
"""How many elements of each type one instruction adds to (PTX manual, section "red": `.vec_32_bit`)."""


@record
class VectorForm:
    """Sums of `count` neighbours at one address, a multiple of their size."""

    scope: str
    ptx: str
    count: int

    @property
    def text(self) -> str:
        return f"red{self.scope}.global.add{'' if self.ptx == 'f32' else '.noftz'}.v{self.count}.{self.ptx}"


def _vector_meaning(form: VectorForm) -> Callable[..., Array]:
    of, change = REGISTERS[form.ptx], _change("add", form.ptx, "global")

    def meaning(octets: Array, *values: Array) -> Array:
        old = np.ascontiguousarray(octets).view(of.numpy)
        new = np.stack([change(old[..., part], value) for part, value in enumerate(values)], axis=-1)
        return np.ascontiguousarray(new.astype(of.numpy, copy=False)).view(np.uint8)

    return meaning


def _vector_row(form: VectorForm) -> Row:
    of, names = REGISTERS[form.ptx], [f"b{part}" for part in range(form.count)]
    size = form.count * of.bytes
    listed = ", ".join("{" + name + "}" for name in names)
    return Row(
        text=form.text,
        operands=(
            Operand("a", Kind.ADDRESS, Mode.UPDATE, space="global", bytes=size, align=size),
            *(value(name, of) for name in names),
        ),
        code=Asm(f"{form.text} [{{a}}], {{{{{listed}}}}};"),
        meaning=_vector_meaning(form),
        needs=since(90),
        memory=True,
        section=_SECTION + "red",
        notes="subnormal numbers become 0" if form.ptx == "f32" else "",
    )


RED_VECTOR: dict[VectorForm, Row] = {
    form: _vector_row(form)
    for form in (
        VectorForm(scope, ptx, count) for scope in SCOPES for ptx, counts in VECTORS.items() for count in counts
    )
}

ROWS: tuple[Row, ...] = (*ATOM.values(), *RED.values(), *RED_VECTOR.values())
