"""Reductions by a function of the kernel, and scans, over the lanes of a warp and the warps of a CTA.

    T.cuda.warp_reduce  T.cuda.cta_reduce  T.cuda.warp_scan  T.cuda.cta_scan

What is combined is a number or a tuple of them, and the function takes two and gives one. It is always called with
what lower lanes hold on its left, so it must be associative but need not commute, and all lanes compute the same bits
from the same operands. Reductions that have a name (sum, max, min) are in `reductions`.
"""

from __future__ import annotations

from collections.abc import Callable

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.addresses import address
from warpjit.frontend.calls import INTRINSICS, call
from warpjit.frontend.intrinsics import lane_id, warp_id
from warpjit.frontend.literals import describe, literal
from warpjit.frontend.raw import raw
from warpjit.frontend.reductions import combined, operand, scratch_of
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, TensorValue, Value, is_number
from warpjit.frontend.warp import found_above, number, segment, shuffled
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.facts import Uniformity
from warpjit.isa.memory import STORE
from warpjit.isa.scalar import MOVE
from warpjit.isa.table import lookup
from warpjit.layout.axis import LANES
from warpjit.record import record

Parts = tuple[Scalar, ...]
"""The numbers that are combined together: one, or a tuple's."""


@record
class Combination:
    """How two groups of numbers become one. `function` None: their sums. `single`: the group is one number."""

    tracer: Tracer
    what: str
    function: Value
    single: bool

    def __call__(self, low: Parts, high: Parts) -> Parts:
        """Of what lower lanes hold, and what higher ones do."""
        if self.function is None:
            return tuple(
                combined(self.tracer, "add", a, b, fact.of_type(a.dtype, max(a.uniformity, b.uniformity)))
                for a, b in zip(low, high, strict=True)
            )
        result = call(self.tracer, self.function, [self._shown(low), self._shown(high)], {})
        values = (result,) if self.single else result
        if isinstance(result, tuple | list) == self.single or len(values) != len(low):
            wanted = "one number" if self.single else f"a tuple of {len(low)}"
            raise TraceError(f"{self.what}: expected op to give {wanted} but got {describe(result)}")
        return tuple(self._part(value, part.dtype) for value, part in zip(values, low, strict=True))

    def _shown(self, parts: Parts) -> Value:
        return parts[0] if self.single else parts

    def _part(self, value: Value, dtype: dtypes.DType) -> Scalar:
        if is_number(value):
            return literal(self.tracer.builder, value, dtype)
        if not isinstance(value, Scalar) or value.dtype != dtype:
            raise TraceError(f"{self.what}: expected op to give {dtype}, as x, but got {describe(value)}")
        return value

    def given(self, parts: Parts) -> Value:
        """The result as the caller gave x: a number, or a tuple."""
        return self._shown(parts)

    def choose(self, condition: Scalar, a: Parts, b: Parts) -> Parts:
        builder = self.tracer.builder
        return tuple(arithmetic.select(builder, condition, x, y) for x, y in zip(a, b, strict=True))


def _combination(tracer: Tracer, what: str, x: Value, op: Value) -> tuple[Combination, Parts]:
    """How `x` is combined, and the numbers of `x`. TraceError: no numbers, or no function."""
    tracer.require_device(what)
    if op is not None and not callable(op) and not hasattr(op, "node"):
        raise TraceError(f"{what}: expected op to be a function of two arguments but got {describe(op)}")
    single = not isinstance(x, tuple | list)
    values = (x,) if single else tuple(x)
    if not values:
        raise TraceError(f"{what}: expected a number or a tuple of numbers but got an empty tuple")
    take = operand if op is None else number
    return Combination(tracer, what, op, single), tuple(take(tracer, what, value) for value in values)


# ---- over a warp -----------------------------------------------------------------------------------------


def _shuffled(combination: Combination, parts: Parts, distance: int) -> Parts:
    tracer = combination.tracer
    count = literal(tracer.builder, distance, dtypes.int32)
    return tuple(shuffled(tracer, "bfly", part, count, LANES, Uniformity.LANE) for part in parts)


def _reduced(combination: Combination, parts: Parts, width: int) -> Parts:
    """Neighbours first, then what is 2, 4, 8 and 16 lanes away: the operands' order is that of the lanes."""
    builder, distance = combination.tracer.builder, 1
    lane = lane_id(combination.tracer)
    while distance < width:
        other = _shuffled(combination, parts, distance)
        bit = arithmetic.binary(builder, "and", lane, distance)
        upper = arithmetic.compare(builder, "ne", bit, 0)
        low, high = (combination.choose(upper, *each) for each in ((other, parts), (parts, other)))
        parts, distance = combination(low, high), 2 * distance
    if width < LANES:
        return parts
    return tuple(
        builder.operate(MOVE[part.dtype.name], (builder.atom(part),), fact.of_type(part.dtype, Uniformity.WARP))
        for part in parts
    )


def warp_reduce(tracer: Tracer, x: Value, op: Value, width: Value = LANES) -> Value:
    what = "T.cuda.warp_reduce"
    combination, parts = _combination(tracer, what, x, _function(what, op))
    return combination.given(_reduced(combination, parts, segment(what, width)))


def _function(what: str, op: Value) -> Value:
    if op is None:
        raise TraceError(f"{what}: expected op to be a function of two arguments but got None")
    return op


def _above(combination: Combination, parts: Parts, distance: int) -> tuple[Parts, Scalar]:
    """What the lane `distance` below this one holds, and whether there is that lane."""
    moved = [found_above(combination.tracer, part, distance, LANES) for part in parts]
    return tuple(value for value, _ in moved), moved[0][1]


def _scanned(combination: Combination, parts: Parts) -> Parts:
    """Each lane combined with all below it."""
    distance = 1
    while distance < LANES:
        below, found = _above(combination, parts, distance)
        parts, distance = combination.choose(found, combination(below, parts), parts), 2 * distance
    return parts


def _initial(combination: Combination, parts: Parts, exclusive: Value, initial: Value) -> Parts | None:
    """What the first thread of an exclusive scan gets; None: the scan is inclusive."""
    what = combination.what
    if not isinstance(exclusive, bool):
        raise TraceError(f"{what}: expected exclusive to be True or False but got {describe(exclusive)}")
    if not exclusive:
        if initial is not None:
            raise TraceError(f"{what}: initial is what the first thread of an exclusive scan gets: give exclusive=True")
        return None
    if initial is None and combination.function is not None:
        raise TraceError(f"{what}: expected initial, what the first thread gets, beside exclusive=True and op")
    values = (0,) * len(parts) if initial is None else (initial,) if combination.single else initial
    if not isinstance(values, tuple | list) or len(values) != len(parts):
        raise TraceError(f"{what}: expected initial to be like x but got {describe(initial)}")
    builder = combination.tracer.builder
    for value in values:
        if not is_number(value) and not isinstance(value, Scalar):
            raise TraceError(f"{what}: expected initial to be like x but got {describe(value)}")
    return tuple(arithmetic.typed(builder, value, part.dtype) for value, part in zip(values, parts, strict=True))


def warp_scan(tracer: Tracer, x: Value, op: Value = None, *, exclusive: Value = False, initial: Value = None) -> Value:
    combination, parts = _combination(tracer, "T.cuda.warp_scan", x, op)
    first = _initial(combination, parts, exclusive, initial)
    total = _scanned(combination, parts)
    if first is None:
        return combination.given(total)
    below, found = _above(combination, total, 1)
    return combination.given(combination.choose(found, below, first))


# ---- over a CTA ------------------------------------------------------------------------------------------


def _places(combination: Combination, parts: Parts, scratch: Value, warps: int) -> tuple[TensorValue, ...]:
    """The scratch tensor of each number."""
    given = (scratch,) if combination.single else scratch
    if not isinstance(given, tuple | list) or len(given) != len(parts):
        raise TraceError(
            f"{combination.what}: expected scratch to be a tuple of {len(parts)} shared tensors, one for each number "
            f"of x, but got {describe(scratch)}"
        )
    return tuple(scratch_of(combination.what, place, part, warps) for place, part in zip(given, parts, strict=True))


def _published(combination: Combination, parts: Parts, places: tuple[TensorValue, ...], lane: int) -> None:
    """What `lane` of each warp holds goes to the warp's element, and the CTA meets."""
    tracer = combination.tracer
    builder = tracer.builder
    chosen = builder.atom(arithmetic.compare(builder, "eq", lane_id(tracer), lane))
    for part, place in zip(parts, places, strict=True):
        target = address(builder, place, (warp_id(tracer),))
        builder.issue(STORE["shared", part.dtype.name], (target, builder.atom(part)), predicate=chosen)
    raw(tracer, lookup("bar.sync"), [0], {})


def _warps(tracer: Tracer) -> int:
    assert tracer.launch is not None
    return -(-tracer.launch.threads // LANES)


def cta_reduce(tracer: Tracer, x: Value, op: Value, scratch: Value) -> Value:
    what = "T.cuda.cta_reduce"
    combination, parts = _combination(tracer, what, x, _function(what, op))
    warps = _warps(tracer)
    places = _places(combination, parts, scratch, warps)
    _published(combination, _reduced(combination, parts, LANES), places, 0)
    total = _read(combination, places, 0)
    for index in range(1, warps):
        total = combination(total, _read(combination, places, index))
    raw(tracer, lookup("bar.sync"), [0], {})
    return combination.given(total)


def _read(combination: Combination, places: tuple[TensorValue, ...], index: int) -> Parts:
    return tuple(memory.load(combination.tracer.builder, place, (index,)) for place in places)


def cta_scan(
    tracer: Tracer, x: Value, scratch: Value, op: Value = None, *, exclusive: Value = False, initial: Value = None
) -> Value:
    combination, parts = _combination(tracer, "T.cuda.cta_scan", x, op)
    builder, warps = tracer.builder, _warps(tracer)
    first = _initial(combination, parts, exclusive, initial)
    places = _places(combination, parts, scratch, warps)
    total = _scanned(combination, parts)
    _published(combination, total, places, LANES - 1)
    own, warp = total, warp_id(tracer)
    found = None
    if first is not None:
        own, found = _above(combination, total, 1)
    before = _read(combination, places, 0)
    for index in range(1, warps - 1):
        later = arithmetic.compare(builder, "gt", warp, index)
        before = combination.choose(later, combination(before, _read(combination, places, index)), before)
    raw(tracer, lookup("bar.sync"), [0], {})
    later = arithmetic.compare(builder, "gt", warp, 0)
    result = combination.choose(later, combination(before, own), own)
    if first is not None and found is not None:
        result = combination.choose(found, result, combination.choose(later, before, first))
    return combination.given(result)


HANDLERS: dict[str, Callable[..., Value]] = {
    "T.cuda.warp_reduce": warp_reduce,
    "T.cuda.warp_scan": warp_scan,
    "T.cuda.cta_reduce": cta_reduce,
    "T.cuda.cta_scan": cta_scan,
}
INTRINSICS.update(HANDLERS)
