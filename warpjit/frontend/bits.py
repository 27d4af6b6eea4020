"""Bits of words: `T.popc`, `T.clz`, `T.brev`, `T.lop3`, `T.prmt` and funnel shifts.

Each is one row of `isa.scalar_words`; words are 32- (of the first three also 64-) bit integers, signed or not.
"""

from __future__ import annotations

from collections.abc import Callable

from warpjit.errors import TraceError
from warpjit.frontend import memory
from warpjit.frontend.addresses import static_int
from warpjit.frontend.calls import INTRINSICS
from warpjit.frontend.literals import describe, literal
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, Value
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Const
from warpjit.isa.row import Row
from warpjit.isa.scalar_words import COUNT, FUNNEL, LOP3, PERMUTE

# ---- one word ------------------------------------------------------------------------------------------


def _count(name: str) -> Callable[[Tracer, Value], Scalar]:
    what = f"T.{name}"

    def run(tracer: Tracer, a: Value) -> Scalar:
        tracer.require_device(what)
        scalar = tracer.scalar(a) if isinstance(a, int) and not isinstance(a, bool) else a
        if not isinstance(scalar, Scalar) or not scalar.dtype.is_int or scalar.dtype.bits not in (32, 64):
            raise TraceError(f"{what}: expected an integer of 32 or 64 bits but got {describe(a)}")
        bits, builder = scalar.dtype.bits, tracer.builder
        word = memory.bitcast(builder, scalar, dtypes.dtype(f"uint{bits}"))
        shared = max(scalar.uniformity, Uniformity.GRID)
        if name == "brev":
            reversed_ = builder.operate(
                COUNT[name, bits], (builder.atom(word),), fact.of_type(word.dtype, shared), loops=scalar.loops
            )
            return memory.bitcast(builder, reversed_, scalar.dtype)
        return builder.operate(COUNT[name, bits], (builder.atom(word),), Facts(0, bits, 1, shared), loops=scalar.loops)

    return run


# ---- several words -------------------------------------------------------------------------------------


def _word(tracer: Tracer, what: str, name: str, value: Value) -> Scalar:
    """A 32-bit integer as its bits."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not -(1 << 31) <= value < 1 << 32:
            raise TraceError(f"{what}: expected {name} to fit 32 bits but got {value}")
        return literal(tracer.builder, value & 0xFFFFFFFF, dtypes.uint32)
    if not isinstance(value, Scalar) or not value.dtype.is_int or value.dtype.bits != 32:
        raise TraceError(f"{what}: expected {name} to be an integer of 32 bits but got {describe(value)}")
    return memory.bitcast(tracer.builder, value, dtypes.uint32)


def _result(value: Value) -> DType:
    return value.dtype if isinstance(value, Scalar) else dtypes.uint32


def _computed(tracer: Tracer, row: Row, words: list[Scalar], dtype: DType, **params: int) -> Scalar:
    builder = tracer.builder
    shared = max(Uniformity.GRID, *(word.uniformity for word in words))
    loops = frozenset[int]().union(*(word.loops for word in words))
    places: tuple[None, ...] = (None,) * len(params)
    operands = (*(builder.atom(word) for word in words), *places)
    given = tuple(params.items())
    found = builder.operate(row, operands, fact.of_type(dtypes.uint32, shared), params=given, loops=loops)  # type: ignore[arg-type]
    return memory.bitcast(builder, found, dtype)


def lop3(tracer: Tracer, a: Value, b: Value, c: Value, table: Value) -> Scalar:
    tracer.require_device("T.lop3")
    words = [_word(tracer, "T.lop3", name, value) for name, value in (("a", a), ("b", b), ("c", c))]
    lut = static_int(table, "T.lop3: table")
    if not 0 <= lut <= 255:
        raise TraceError(f"T.lop3: expected table to be 0 to 255 but got {lut}")
    words, lut = _apart(tracer, words, lut)
    return _computed(tracer, LOP3, words, _result(a), lut=lut)


def _apart(tracer: Tracer, words: list[Scalar], lut: int) -> tuple[list[Scalar], int]:
    """The same function with 0 in place of a word that stands there before, which the table then does without.

    ptxas (13.0) gets a function of one word twice wrong where it becomes part of a longer chain: it puts RZ in place of
    the second, and leaves the table as it was.
    """
    words = list(words)
    for second, first in ((2, 1), (2, 0), (1, 0)):
        if words[second].atom == words[first].atom and words[second].atom != Const(0, dtypes.uint32):
            here, there = 4 >> second, 4 >> first
            lut = sum((lut >> (i | here if i & there else i & ~here) & 1) << i for i in range(8))
            words[second] = literal(tracer.builder, 0, dtypes.uint32)
    return words, lut


def prmt(tracer: Tracer, a: Value, b: Value, selector: Value) -> Scalar:
    tracer.require_device("T.prmt")
    words = [_word(tracer, "T.prmt", name, value) for name, value in (("a", a), ("b", b), ("selector", selector))]
    return _computed(tracer, PERMUTE[""], words, _result(a))


def _funnel(direction: str, name: str) -> Callable[..., Scalar]:
    what = f"T.{name}"

    def run(tracer: Tracer, low: Value, high: Value, n: Value, *, clamp: Value = False) -> Scalar:
        tracer.require_device(what)
        if not isinstance(clamp, bool):
            raise TraceError(f"{what}: expected clamp to be True or False but got {describe(clamp)}")
        words = [_word(tracer, what, key, value) for key, value in (("low", low), ("high", high), ("n", n))]
        return _computed(tracer, FUNNEL[direction, "clamp" if clamp else "wrap"], words, _result(low))

    return run


INTRINSICS.update(
    {
        **{f"T.{name}": _count(name) for name in ("popc", "clz", "brev")},
        "T.lop3": lop3,
        "T.prmt": prmt,
        "T.funnel_shift_left": _funnel("l", "funnel_shift_left"),
        "T.funnel_shift_right": _funnel("r", "funnel_shift_right"),
    }
)
