"""What `range` and `T.range` iterate over, and how a device loop counts it without an overflow.

A loop counts in the user's own variable where that, with the last step taken, is known to stay in its type; elsewhere
it counts iterations in 64 bits. How a body is traced is `loops`'.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import static_int
from warpjit.frontend.builder import Builder
from warpjit.frontend.values import Linear, Scalar, Value
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.facts import Facts
from warpjit.record import record


@record
class Range:
    """The arguments of `range`: ints or integer scalars; the step is static and not zero.

    device   `T.range`: a device loop whatever is known of it, never expanded
    unroll   how often the body stands in the loop; None: once, and the items are numbers instead of pairs
    """

    start: int | Scalar
    stop: int | Scalar
    step: int
    device: bool = False
    unroll: int | None = None

    @property
    def static(self) -> range | None:
        if isinstance(self.start, int) and isinstance(self.stop, int):
            return range(self.start, self.stop, self.step)
        return None

    @property
    def copies(self) -> int:
        return self.unroll or 1


def runtime_range(args: Sequence[Value], what: str = "range") -> Range:
    """The arguments of `range(...)` or `T.range(...)` as integers. TraceError: they are none."""
    values = [value if isinstance(value, Scalar) else static_int(value, f"an argument of {what}") for value in args]
    if not 1 <= len(values) <= 3:
        raise TraceError(f"{what}: expected one to three integers but got {len(values)}")
    for value in values:
        if isinstance(value, Scalar) and not value.dtype.is_int:
            raise TraceError(f"{what}: expected integers but got a scalar of type {value.dtype}")
    start, stop = (0, values[0]) if len(values) == 1 else (values[0], values[1])
    step = static_int(values[2], f"the step of a {what}") if len(values) == 3 else 1
    if step == 0:
        raise TraceError(f"{what}: step: expected an int other than 0 but got 0")
    return Range(start, stop, step)


# ---- counting ---------------------------------------------------------------------------------------------------


@record
class Counted:
    """How the loop runs: its own variable from start to stop, by step once for each copy of the body.

    origin, scale   where set, the user's variable is origin + scale · the loop's own
    """

    start: Scalar
    stop: Scalar
    step: int
    copies: int
    origin: Scalar | None = None
    scale: int = 1

    @property
    def stride(self) -> int:
        """From one iteration of the loop to the next."""
        return self.step * self.copies

    def runs(self) -> bool:
        """Whether the first iteration is sure to happen."""
        start, stop = self.start.facts, self.stop.facts
        if self.step > 0:
            return start.hi is not None and stop.lo is not None and start.hi < stop.lo
        return start.lo is not None and stop.hi is not None and start.lo > stop.hi

    def whole(self, builder: Builder) -> bool:
        """Whether the iterations are sure to divide into those of all copies: no copy needs a guard."""
        return self.copies == 1 or self._exact(builder)

    def _exact(self, builder: Builder) -> bool:
        """Whether the last iteration is sure to end at `stop`."""
        assert self.start.linear is not None and self.stop.linear is not None
        span = builder.linear_facts(self.stop.linear.plus(self.start.linear, -1))
        return span.multiple % self.stride == 0

    def facts(self, builder: Builder) -> Facts:
        """What is known of the loop's own variable."""
        start, stop, step = self.start.facts, self.stop.facts, self.stride
        multiple = fact.add(start, fact.of_constant(step)).multiple
        uniformity = max(start.uniformity, stop.uniformity)
        last = step if self._exact(builder) else self.step // abs(self.step)
        if step > 0:
            hi = None if stop.hi is None else stop.hi - last
            if start.constant is not None and stop.constant is not None and stop.constant > start.constant:
                hi = range(start.constant, stop.constant, step)[-1]
            return Facts(start.lo, hi, multiple, uniformity)
        return Facts(None if stop.lo is None else stop.lo - last, start.hi, multiple, uniformity)

    def item(self, builder: Builder, variable: Scalar, copy: int) -> Scalar:
        """The loop's own variable in a copy of the body."""
        if copy == 0:
            return variable
        assert variable.linear is not None
        return builder.integer(variable.dtype, variable.linear.plus(Linear((), copy * self.step)))

    def users(self, builder: Builder, item: Scalar) -> Scalar:
        """The user's variable, from the loop's own."""
        if self.origin is None:
            return item
        offset = arithmetic.binary(builder, "mul", item, self.scale)
        wide = arithmetic.binary(builder, "add", arithmetic.convert(builder, self.origin, dtypes.int64), offset)
        return arithmetic.convert(builder, wide, self.origin.dtype)


def count(builder: Builder, items: Range) -> Counted:
    """A loop whose variable cannot overflow: the user's own, or else a counter of iterations."""
    start, stop = (
        arithmetic.common(builder, items.start, items.stop)
        if items.static is None
        else (
            arithmetic.natural(builder, items.start),
            arithmetic.natural(builder, items.stop),
        )
    )
    stride = items.step * items.copies
    last = start.dtype.max if stride > 0 else start.dtype.min
    end = stop.facts.hi if stride > 0 else stop.facts.lo
    if end is not None and (end + stride - 1 <= last if stride > 0 else end + stride + 1 >= last):
        return Counted(start, stop, items.step, items.copies)
    zero = builder.integer(dtypes.int64, Linear())
    if start.dtype.bits == 64:
        trips = _wide_trips(builder, start, stop, items.step)
        return Counted(zero, trips, 1, items.copies, start, items.step)
    wide = [arithmetic.convert(builder, value, dtypes.int64) for value in (start, stop)]
    span = arithmetic.binary(builder, "sub", wide[1], wide[0])
    trips = arithmetic.binary(
        builder,
        "max",
        arithmetic.ceiling_division(builder, span, items.step)
        if items.step > 0
        else arithmetic.ceiling_division(builder, arithmetic.binary(builder, "sub", 0, span), -items.step),
        0,
    )
    return Counted(zero, trips, 1, items.copies, start, items.step)


def _wide_trips(builder: Builder, start: Scalar, stop: Scalar, step: int) -> Scalar:
    """The iterations of a range of 64-bit integers: their difference may need all 64 bits."""
    low, high = (start, stop) if step > 0 else (stop, start)
    first, last = (arithmetic.convert(builder, value, dtypes.uint64) for value in (low, high))
    before_last = arithmetic.binary(builder, "sub", arithmetic.binary(builder, "sub", last, first), 1)
    trips = arithmetic.binary(builder, "add", arithmetic.binary(builder, "floordiv", before_last, abs(step)), 1)
    some = arithmetic.compare(builder, "lt", low, high)
    return arithmetic.select(builder, some, arithmetic.convert(builder, trips, dtypes.int64), 0)
