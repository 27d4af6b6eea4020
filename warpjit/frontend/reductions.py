"""Sums and extremes over the lanes of a warp, and over the warps of a CTA: names of `T.cuda` that expand.

A warp's lanes combine in pairs at distances 16, 8, 4, 2, 1 (`shuffle_xor`), which leaves the same bits in every lane:
each step adds the same two numbers on both sides. 32-bit integers take `redux.sync` where the target has it. Float sums
are never made part of a fused multiply-add, so that this holds and the simulator's bits are the device's.
"""

from __future__ import annotations

from collections.abc import Callable

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.addresses import address
from warpjit.frontend.calls import INTRINSICS
from warpjit.frontend.intrinsics import lane_id, warp_id
from warpjit.frontend.literals import describe
from warpjit.frontend.raw import raw
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.frontend.warp import MEMBERS, number, segment, shuffled
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.facts import Facts, Uniformity
from warpjit.isa.memory import STORE
from warpjit.isa.scalar import ARITHMETIC
from warpjit.isa.scalar_words import ADD_ROUNDED
from warpjit.isa.table import lookup
from warpjit.isa.warp import REDUX
from warpjit.layout.axis import LANES

PAIRS = ("float16x2", "bfloat16x2")
TYPES = ("int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64", *PAIRS)
OPERATIONS = {"sum": "add", "max": "max", "min": "min"}


def operand(tracer: Tracer, what: str, x: Value) -> Scalar:
    scalar = number(tracer, what, x)
    if scalar.dtype.name not in TYPES:
        raise TraceError(
            f"{what}: expected a float, or an integer of 32 or 64 bits, but got {describe(x)}: convert it first"
        )
    return scalar


def combined(tracer: Tracer, op: str, a: Scalar, b: Scalar, facts: Facts) -> Scalar:
    """One step; of floats a sum that stays a sum."""
    builder = tracer.builder
    row = ADD_ROUNDED.get(a.dtype.name) if op == "add" else None
    row = row or ARITHMETIC[op, a.dtype.name]
    return builder.operate(row, (builder.atom(a), builder.atom(b)), facts, loops=a.loops | b.loops)


def _bounds(op: str, x: Scalar, lanes: int, uniformity: Uniformity) -> Facts:
    """What is known of `x` combined over lanes."""
    known = x.facts
    if not x.dtype.is_int or known.lo is None or known.hi is None:
        return fact.of_type(x.dtype, uniformity)
    factor = lanes if op == "add" else 1
    facts = Facts(known.lo * factor, known.hi * factor, known.multiple, uniformity)
    return facts if facts.fits(x.dtype) else fact.of_type(x.dtype, uniformity)


def reduce_lanes(tracer: Tracer, op: str, x: Scalar, width: int) -> Scalar:
    """`x` combined over segments of `width` lanes, in every lane."""
    builder = tracer.builder
    row = REDUX.get((op, x.dtype.name)) if width == LANES else None
    if row is not None and row.needs.holds(tracer.settings.target):
        facts = _bounds(op, x, width, Uniformity.WARP)
        return builder.operate(row, (builder.atom(x), MEMBERS), facts, loops=x.loops)
    total, distance = x, width // 2
    while distance:
        count = arithmetic.literal(builder, distance, dtypes.int32)
        other = shuffled(tracer, "bfly", total, count, LANES, Uniformity.LANE)
        whole = distance == 1 and width == LANES
        facts = _bounds(op, x, width // distance, Uniformity.WARP if whole else Uniformity.LANE)
        total, distance = combined(tracer, op, total, other, facts), distance // 2
    return total


def _operation(what: str, op: str, x: Scalar, nan: Value) -> str:
    """The operation's name in the table: `nan` asks for NaN where an operand is one, which integers never are."""
    if not isinstance(nan, bool):
        raise TraceError(f"{what}: expected nan to be True or False but got {describe(nan)}")
    return f"{op}_nan" if nan and not x.dtype.is_int else op


def _over_warp(name: str) -> Callable[..., Scalar]:
    what, op = f"T.cuda.warp_{name}", OPERATIONS[name]

    def run(tracer: Tracer, x: Value, width: Value = LANES, *, nan: Value = False) -> Scalar:
        value = operand(tracer, what, x)
        return reduce_lanes(tracer, _operation(what, op, value, nan), value, segment(what, width))

    return run


# ---- over a CTA ----------------------------------------------------------------------------------------


def scratch_of(what: str, scratch: Value, x: Scalar, warps: int) -> TensorValue:
    if not isinstance(scratch, TensorValue) or scratch.space != "shared":
        raise TraceError(f"{what}: expected scratch to be a shared tensor but got {describe(scratch)}")
    if scratch.dtype != x.dtype:
        raise TraceError(f"{what}: expected scratch to hold {x.dtype}, as x, but {scratch.name} holds {scratch.dtype}")
    extent = scratch.shape[0]
    if len(scratch.shape) != 1 or not isinstance(extent, int) or extent < warps:
        raise TraceError(
            f"{what}: expected scratch to have one axis of at least {warps} elements, one a warp, but {scratch.name} "
            f"has shape {scratch.shape}"
        )
    return scratch


def _over_cta(name: str) -> Callable[..., Scalar]:
    what = f"T.cuda.cta_{name}"

    def run(tracer: Tracer, x: Value, scratch: Value, *, nan: Value = False) -> Scalar:
        builder, value = tracer.builder, operand(tracer, what, x)
        op = _operation(what, OPERATIONS[name], value, nan)
        assert tracer.launch is not None
        warps = -(-tracer.launch.threads // LANES)
        place = scratch_of(what, scratch, value, warps)
        part = reduce_lanes(tracer, op, value, LANES)
        first = arithmetic.compare(builder, "eq", lane_id(tracer), 0)
        row = STORE["shared", value.dtype.name]
        target = address(builder, place, (warp_id(tracer),))
        builder.issue(row, (target, builder.atom(part)), predicate=builder.atom(first))
        raw(tracer, lookup("bar.sync"), [0], {})
        total = memory.load(builder, place, (0,))
        for index in range(1, warps):
            facts = _bounds(op, value, LANES * (index + 1), Uniformity.CTA)
            total = combined(tracer, op, total, memory.load(builder, place, (index,)), facts)
        raw(tracer, lookup("bar.sync"), [0], {})
        return total

    return run


INTRINSICS.update(
    {
        **{f"T.cuda.warp_{name}": _over_warp(name) for name in OPERATIONS},
        **{f"T.cuda.cta_{name}": _over_cta(name) for name in OPERATIONS},
    }
)
