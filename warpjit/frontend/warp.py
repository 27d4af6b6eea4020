"""What the lanes of a warp tell each other: shuffles, votes and matches under `T.cuda`.

Values that are no 32-bit words travel as words: 64 bits as two, 8 and 16 bits in the low bits of one. All lanes take
part (the mask of members names all), so these names stand in control flow that a whole warp shares; what knows that is
`passes.verify`, from the rows. Sums over warps are in `reductions`.
"""

from __future__ import annotations

from collections.abc import Callable

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.addresses import static_int
from warpjit.frontend.builder import Builder
from warpjit.frontend.calls import INTRINSICS
from warpjit.frontend.literals import describe
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, Value, is_number
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Const
from warpjit.isa.row import Row
from warpjit.isa.scalar import PACK64, UNPACK64
from warpjit.isa.warp import (
    ALL_LANES,
    MATCH_ALL,
    MATCH_ANY,
    SHUFFLE,
    SHUFFLE_FOUND,
    VOTE,
    shuffle_control,
)
from warpjit.layout.axis import LANES

MEMBERS = Const(ALL_LANES, dtypes.uint32)
WIDTHS = (2, 4, 8, 16, 32)


# ---- arguments -----------------------------------------------------------------------------------------


def number(tracer: Tracer, what: str, x: Value) -> Scalar:
    """A number of the device, or a static one in its own type. TraceError otherwise."""
    tracer.require_device(what)
    if not isinstance(x, Scalar) and not is_number(x):
        raise TraceError(f"{what}: expected a number but got {describe(x)}")
    return tracer.scalar(x)


def segment(what: str, width: Value) -> int:
    """The lanes of a segment. TraceError: not one of `WIDTHS`."""
    lanes = static_int(width, f"{what}: width")
    if lanes not in WIDTHS:
        raise TraceError(f"{what}: expected width to be 2, 4, 8, 16 or 32 but got {lanes}")
    return lanes


def _count(tracer: Tracer, what: str, name: str, value: Value, width: int) -> Scalar:
    """A lane, or a number of lanes: an int32, of which the instruction reads five bits."""
    builder = tracer.builder
    if isinstance(value, Scalar) and value.static is None:
        if not value.dtype.is_int:
            raise TraceError(f"{what}: expected {name} to be an integer but got {describe(value)}")
        return arithmetic.convert(builder, value, dtypes.int32)
    if isinstance(value, bool | float):
        raise TraceError(f"{what}: expected {name} to be an integer but got {describe(value)}")
    static = static_int(value, f"{what}: {name}")
    if not 0 <= static < width:
        raise TraceError(f"{what}: expected {name} to be 0 to {width - 1} but got {static}")
    return arithmetic.literal(builder, static, dtypes.int32)


# ---- words ---------------------------------------------------------------------------------------------


def to_words(builder: Builder, x: Scalar) -> list[Scalar]:
    """The bits of a value as one 32-bit word, or two of which the first is the lower."""
    if x.dtype.bits == 64:
        whole = memory.bitcast(builder, x, dtypes.uint64)
        halves = [
            builder.local(name, dtypes.uint32, fact.of_type(dtypes.uint32, x.uniformity)) for name in ("lo", "hi")
        ]
        builder.issue(UNPACK64, (*halves, builder.atom(whole)))
        return [builder.scalar_of(half) for half in halves]
    if x.dtype.bits == 32:
        return [memory.bitcast(builder, x, dtypes.uint32)]
    narrow = x if x.dtype.is_bool else memory.bitcast(builder, x, x.dtype.unsigned_word)
    return [arithmetic.convert(builder, narrow, dtypes.uint32)]


def from_words(builder: Builder, words: list[Scalar], dtype: dtypes.DType) -> Scalar:
    """The value with these bits, as `to_words` gives them."""
    if dtype.bits == 64:
        shared = max(word.uniformity for word in words)
        whole = builder.operate(
            PACK64, tuple(builder.atom(word) for word in words), fact.of_type(dtypes.uint64, shared)
        )
        return memory.bitcast(builder, whole, dtype)
    if dtype.bits == 32:
        return memory.bitcast(builder, words[0], dtype)
    if dtype.is_bool:
        return arithmetic.convert(builder, words[0], dtype)
    return memory.bitcast(builder, arithmetic.convert(builder, words[0], dtype.unsigned_word), dtype)


# ---- shuffles ------------------------------------------------------------------------------------------


def shuffled(tracer: Tracer, mode: str, x: Scalar, count: Scalar, width: int, uniformity: Uniformity) -> Scalar:
    """The value that another lane holds."""
    builder = tracer.builder
    control = Const(shuffle_control(mode, width), dtypes.uint32)
    moved = [
        builder.operate(
            SHUFFLE[mode],
            (builder.atom(word), builder.atom(count), control, MEMBERS),
            fact.of_type(dtypes.uint32, uniformity),
            loops=x.loops | count.loops,
        )
        for word in to_words(builder, x)
    ]
    return from_words(builder, moved, x.dtype)


def found_above(tracer: Tracer, x: Scalar, lanes: int, width: int) -> tuple[Scalar, Scalar]:
    """The value of the lane that is `lanes` below this one, and whether the segment has that lane."""
    builder = tracer.builder
    operands = (Const(lanes, dtypes.int32), Const(shuffle_control("up", width), dtypes.uint32), MEMBERS)
    words = []
    for word in to_words(builder, x):
        moved = builder.local("moved", dtypes.uint32, fact.of_type(dtypes.uint32))
        found = builder.local("found", dtypes.bool_, fact.of_type(dtypes.bool_))
        builder.issue(SHUFFLE_FOUND["up"], (moved, found, builder.atom(word), *operands), scope="warp")
        words.append(builder.scalar_of(moved))
    return from_words(builder, words, x.dtype), builder.scalar_of(found)


def _shuffle(mode: str, name: str, counted: str) -> Callable[..., Scalar]:
    what = f"T.cuda.{name}"

    def run(tracer: Tracer, x: Value, count: Value, *, width: Value = LANES) -> Scalar:
        scalar, lanes = number(tracer, what, x), segment(what, width)
        asked = _count(tracer, what, counted, count, lanes)
        uniformity = Uniformity.LANE
        if mode == "idx" and lanes == LANES and asked.uniformity <= Uniformity.WARP:
            uniformity = Uniformity.WARP
        return shuffled(tracer, mode, scalar, asked, lanes, min(uniformity, _kept(scalar)))

    return run


def _kept(x: Scalar) -> Uniformity:
    """Whoever held the same still does; the result is a value of the device, though."""
    return max(x.uniformity, Uniformity.GRID) if x.uniformity <= Uniformity.WARP else Uniformity.LANE


# ---- votes and matches ---------------------------------------------------------------------------------


def _vote(mode: str) -> Callable[..., Scalar]:
    what, row = f"T.cuda.{mode}", VOTE[mode]

    def run(tracer: Tracer, condition: Value) -> Scalar:
        number(tracer, what, condition)
        truth = arithmetic.truth(tracer.builder, condition)
        result = row.operands[0].dtype
        assert result is not None
        facts = fact.of_type(result, min(_kept(truth), Uniformity.WARP))
        return tracer.builder.operate(row, (tracer.builder.atom(truth), MEMBERS), facts, loops=truth.loops)

    return run


def _to_match(tracer: Tracer, what: str, x: Value, rows: dict[int, Row]) -> tuple[Row, Scalar]:
    scalar = number(tracer, what, x)
    if scalar.dtype.bits == 64:
        return rows[64], memory.bitcast(tracer.builder, scalar, dtypes.uint64)
    (word,) = to_words(tracer.builder, scalar)
    return rows[32], word


def match_any(tracer: Tracer, x: Value) -> Scalar:
    row, word = _to_match(tracer, "T.cuda.match_any", x, MATCH_ANY)
    facts = Facts(1, ALL_LANES, 1, _kept(word))
    return tracer.builder.operate(row, (tracer.builder.atom(word), MEMBERS), facts, loops=word.loops)


def match_all(tracer: Tracer, x: Value) -> Scalar:
    builder = tracer.builder
    row, word = _to_match(tracer, "T.cuda.match_all", x, MATCH_ALL)
    agreed = [
        builder.local(name, dtype, fact.of_type(dtype, Uniformity.WARP))
        for name, dtype in (("alike", dtypes.uint32), ("agreed", dtypes.bool_))
    ]
    builder.issue(row, (*agreed, builder.atom(word), MEMBERS), scope="warp")
    return builder.scalar_of(agreed[1])


INTRINSICS.update(
    {
        "T.cuda.shuffle": _shuffle("idx", "shuffle", "lane"),
        "T.cuda.shuffle_up": _shuffle("up", "shuffle_up", "n"),
        "T.cuda.shuffle_down": _shuffle("down", "shuffle_down", "n"),
        "T.cuda.shuffle_xor": _shuffle("bfly", "shuffle_xor", "n"),
        "T.cuda.all": _vote("all"),
        "T.cuda.any": _vote("any"),
        "T.cuda.ballot": _vote("ballot"),
        "T.cuda.match_any": match_any,
        "T.cuda.match_all": match_all,
    }
)
