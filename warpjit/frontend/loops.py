"""`for` and `while`.

A `for` over `range` is a loop on the device; what it carries is in `carried`. A range known while tracing is expanded
instead when a value that derives from its variable must be static; `T.unroll` and any other static iterable are
always expanded.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import NeedsStatic, static_int
from warpjit.frontend.builder import Builder
from warpjit.frontend.carried import leave, settle
from warpjit.frontend.liveness import Liveness
from warpjit.frontend.targets import assign
from warpjit.frontend.tracer import STATEMENTS, ExpandedFrame, LoopFrame, Tracer
from warpjit.frontend.values import Linear, Scalar, Value
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.facts import Facts
from warpjit.ir.nodes import Atom, Break, Const, Continue, For, If, Node, While

MAX_EXPANDED = 4096


@dataclass(frozen=True)
class Range:
    """The arguments of `range`: ints or integer scalars; the step is static and not zero."""

    start: int | Scalar
    stop: int | Scalar
    step: int

    @property
    def static(self) -> range | None:
        if isinstance(self.start, int) and isinstance(self.stop, int):
            return range(self.start, self.stop, self.step)
        return None


@dataclass(frozen=True)
class Unrolled:
    """`T.unroll(...)`: what it iterates over."""

    items: Sequence[Value]


def runtime_range(tracer: Tracer, args: Sequence[Value]) -> Range | range:
    """`range(...)` with at least one device value."""
    values = [value if isinstance(value, Scalar) else static_int(value, "an argument of range") for value in args]
    if not 1 <= len(values) <= 3:
        raise TraceError(f"range takes one to three integers but got {len(values)}")
    for value in values:
        if isinstance(value, Scalar) and not value.dtype.is_int:
            raise TraceError(f"range takes integers but got a {value.dtype}")
    start, stop = (0, values[0]) if len(values) == 1 else (values[0], values[1])
    step = static_int(values[2], "the step of a range") if len(values) == 3 else 1
    if step == 0:
        raise TraceError("range: the step must not be zero")
    return Range(start, stop, step)


# ---- statements -----------------------------------------------------------------------------------------------


def for_statement(tracer: Tracer, node: ast.For) -> None:
    if node.orelse:
        raise TraceError("for … else is not part of the language")
    items = tracer.evaluate(node.iter)
    if isinstance(items, Unrolled):
        expand(tracer, node, items.items)
    elif isinstance(items, range) and not tracer.builder.host:
        _static_range(tracer, node, Range(items.start, items.stop, items.step))
    elif isinstance(items, Range):
        tracer.require_device("a loop over a runtime range")
        device_for(tracer, node, items)
    else:
        expand(tracer, node, _iterable(items))


def _iterable(items: Value) -> Sequence[Value]:
    if isinstance(items, Scalar) or not isinstance(items, Iterable):
        raise TraceError(
            f"{arithmetic.describe(items)} cannot be iterated over: expected range(...), T.unroll(...) or a tuple"
        )
    return tuple(items)


def _static_range(tracer: Tracer, node: ast.For, items: Range) -> None:
    """A device loop, unless a value that derives from the variable must be static."""
    known = items.static
    assert known is not None
    if id(node) in tracer.expanded:
        expand(tracer, node, known)
        return
    state = tracer.save()
    tracer.attempts.add(id(node))
    try:
        device_for(tracer, node, items)
        return
    except NeedsStatic as need:
        if id(node) not in need.loops:
            raise
    finally:
        tracer.attempts.discard(id(node))
    tracer.restore(state)
    tracer.expanded.add(id(node))
    expand(tracer, node, known)


def expand(tracer: Tracer, node: ast.For, items: Sequence[Value]) -> None:
    """One copy of the body for each item."""
    frame = ExpandedFrame(tracer.scope, len(tracer.builder.blocks))
    around = len(tracer.loop_frames)
    tracer.loop_frames.append(frame)
    try:
        for item in items:
            assign(tracer, node.target, item)
            before = len(tracer.builder.block.nodes)
            tracer.execute(node.body)
            frame.nodes += len(tracer.builder.block.nodes) - before
            if frame.nodes > MAX_EXPANDED:
                raise TraceError(
                    f"this loop was expanded to more than {MAX_EXPANDED:,} statements: make its range or its "
                    "body smaller, "
                    "or index registers with values that do not derive from its variable"
                )
            if tracer.terminated and frame.exit is None:
                break  # a return, or a jump of a loop around this one
            tracer.terminated = False
            if frame.exit == "break":
                break
            frame.exit = None
    finally:
        del tracer.loop_frames[around:]


def while_statement(tracer: Tracer, node: ast.While) -> None:
    if node.orelse:
        raise TraceError("while … else is not part of the language")
    tracer.require_device("a while loop")
    settle(tracer, node, lambda frame: _while_body(tracer, node, frame))


# ---- for --------------------------------------------------------------------------------------------------------


def device_for(tracer: Tracer, node: ast.For, items: Range) -> None:
    if not isinstance(node.target, ast.Name):
        raise TraceError("the variable of a loop over range must be a name")
    loc = tracer.builder.loc
    counted = _count(tracer, items)

    def body(frame: LoopFrame) -> None:
        tracer.builder.loc = loc
        _for_body(tracer, node, items, counted, frame)

    settle(tracer, node, body)


@dataclass(frozen=True)
class Counted:
    """How the loop runs: its own variable from start to stop by step; `scale`: the user's is start + scale · it."""

    start: Scalar
    stop: Scalar
    step: int
    origin: Scalar | None = None
    scale: int = 1


def _count(tracer: Tracer, items: Range) -> Counted:
    """A loop whose variable cannot overflow: the user's own, or else a counter of iterations."""
    builder = tracer.builder
    start, stop = (
        arithmetic.common(builder, items.start, items.stop)
        if items.static is None
        else (
            arithmetic.natural(builder, items.start),
            arithmetic.natural(builder, items.stop),
        )
    )
    last = start.dtype.max if items.step > 0 else start.dtype.min
    end = stop.facts.hi if items.step > 0 else stop.facts.lo
    if end is not None and (end + items.step - 1 <= last if items.step > 0 else end + items.step + 1 >= last):
        return Counted(start, stop, items.step)
    zero = builder.integer(dtypes.int64, Linear())
    if start.dtype.bits == 64:
        return Counted(zero, _wide_trips(builder, start, stop, items.step), 1, start, items.step)
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
    return Counted(zero, trips, 1, start, items.step)


def _wide_trips(builder: Builder, start: Scalar, stop: Scalar, step: int) -> Scalar:
    """The iterations of a range of 64-bit integers: their difference may need all 64 bits."""
    low, high = (start, stop) if step > 0 else (stop, start)
    first, last = (arithmetic.convert(builder, value, dtypes.uint64) for value in (low, high))
    before_last = arithmetic.binary(builder, "sub", arithmetic.binary(builder, "sub", last, first), 1)
    trips = arithmetic.binary(builder, "add", arithmetic.binary(builder, "floordiv", before_last, abs(step)), 1)
    some = arithmetic.compare(builder, "lt", low, high)
    return arithmetic.select(builder, some, arithmetic.convert(builder, trips, dtypes.int64), 0)


def _variable_facts(counted: Counted) -> Facts:
    start, stop, step = counted.start.facts, counted.stop.facts, counted.step
    multiple = fact.add(start, fact.of_constant(step)).multiple
    uniformity = max(start.uniformity, stop.uniformity)
    if step > 0:
        hi = None if stop.hi is None else stop.hi - 1
        if start.constant is not None and stop.constant is not None and stop.constant > start.constant:
            hi = range(start.constant, stop.constant, step)[-1]
        return Facts(start.lo, hi, multiple, uniformity)
    return Facts(None if stop.lo is None else stop.lo + 1, start.hi, multiple, uniformity)


def _runs(counted: Counted) -> bool:
    """Whether the first iteration is sure to happen."""
    start, stop = counted.start.facts, counted.stop.facts
    if counted.step > 0:
        return start.hi is not None and stop.lo is not None and start.hi < stop.lo
    return start.lo is not None and stop.hi is not None and start.lo > stop.hi


def _for_body(tracer: Tracer, node: ast.For, items: Range, counted: Counted, frame: LoopFrame) -> None:
    builder = tracer.builder
    assert isinstance(node.target, ast.Name)
    name = node.target.id
    facts = _variable_facts(counted)
    outer = builder.control
    frame.control = max(frame.control, facts.uniformity)
    frame.runs = _runs(counted)
    loops = counted.start.loops | counted.stop.loops
    if items.static is not None:
        loops |= {id(node)}
    start, stop = builder.atom(counted.start), builder.atom(counted.stop)
    variable = builder.local(name, counted.start.dtype, facts, loops)
    builder.open()
    builder.control = frame.control
    value = builder.scalar_of(variable)
    if counted.origin is not None:
        offset = arithmetic.binary(builder, "mul", value, counted.scale)
        wide = arithmetic.binary(builder, "add", arithmetic.convert(builder, counted.origin, dtypes.int64), offset)
        value = arithmetic.convert(builder, wide, counted.origin.dtype)
    tracer.scope.names[name] = value
    tracer.scope.bound[name] = builder.loc
    nodes = _iteration(tracer, node.body, frame)
    builder.control = outer
    builder.emit(For(variable, start, stop, counted.step, nodes, frame.control, loc=builder.loc))


def _iteration(tracer: Tracer, body: Sequence[ast.stmt], frame: LoopFrame) -> tuple[Node, ...]:
    """The statements of one iteration, in the block that is open."""
    loc = tracer.builder.loc
    tracer.execute(body)
    tracer.builder.loc = loc
    if not tracer.terminated:
        leave(tracer, frame, frame.edges)
    tracer.terminated = False
    return tracer.builder.close()


def _while_body(tracer: Tracer, node: ast.While, frame: LoopFrame) -> None:
    builder, loc = tracer.builder, tracer.scope.loc(node)
    builder.loc = loc
    outer = builder.control
    builder.open()
    builder.control = frame.control
    test = tracer.condition(node.test)
    builder.loc = loc
    if not isinstance(test, Scalar) and not test:
        builder.close()
        builder.control = outer
        return
    condition = arithmetic.truth(builder, test)
    frame.leaves = max(frame.leaves, condition.uniformity)
    frame.control = max(frame.control, condition.uniformity)
    frame.endless = not isinstance(test, Scalar)
    atom = Const(True, dtypes.bool_) if frame.endless else builder.atom(condition)
    head: tuple[Node, ...] = ()
    if Liveness.assigned([node.test]):
        _leave_where_false(tracer, condition, atom, frame)
        atom = Const(True, dtypes.bool_)
        nodes = _iteration(tracer, node.body, frame)
    else:
        head = tuple(builder.block.nodes)
        builder.open(condition.refines[0])
        builder.control = frame.control
        nodes = _iteration(tracer, node.body, frame)
        builder.blocks.pop()
    builder.control = outer
    builder.emit(While(head, atom, nodes, frame.control, loc=loc))
    frame.after = () if frame.breaks else condition.refines[1]


def _leave_where_false(tracer: Tracer, condition: Scalar, atom: Atom, frame: LoopFrame) -> None:
    """A condition that binds names: a `break` where it is false, since what it bound is read after the loop too."""
    builder = tracer.builder
    control = builder.control = frame.control
    builder.open(condition.refines[1])
    leave(tracer, frame, frame.breaks)
    builder.emit(Break(loc=builder.loc))
    builder.emit(If(atom, (), builder.close(), condition.uniformity, loc=builder.loc))
    builder.control = control
    builder.refine(condition.refines[0])
    frame.endless = True


# ---- leaving ----------------------------------------------------------------------------------------------------


def _jump(kind: str) -> Callable[[Tracer, ast.stmt], None]:
    def run(tracer: Tracer, node: ast.stmt) -> None:
        if not tracer.loop_frames:
            raise TraceError(f"{kind} outside of a loop")
        frame = tracer.loop_frames[-1]
        if isinstance(frame, ExpandedFrame):
            if len(tracer.builder.blocks) != frame.depth:
                raise TraceError(f"{kind} under a runtime condition in an expanded loop: write it as a loop over range")
            frame.exit = kind
        else:
            leave(tracer, frame, frame.breaks if kind == "break" else frame.edges)
            frame.leaves = max(frame.leaves, tracer.builder.control)
            tracer.builder.emit((Break if kind == "break" else Continue)(loc=tracer.builder.loc))
        tracer.terminated = True

    return run


STATEMENTS[ast.For] = for_statement
STATEMENTS[ast.While] = while_statement
STATEMENTS[ast.Break] = _jump("break")
STATEMENTS[ast.Continue] = _jump("continue")
