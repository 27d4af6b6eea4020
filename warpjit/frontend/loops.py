"""`for` and `while`.

A `for` over `range` is a loop on the device; what it carries is in `carried`, how it counts in `ranges`. A range known
while tracing is expanded instead when a value that derives from its variable must be static; `T.range` never is,
`T.unroll` and any other static iterable always are. How loops are left early is in `jumps`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence

from warpjit.errors import Loc, TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import NeedsStatic
from warpjit.frontend.branches import branch
from warpjit.frontend.carried import leave, settle
from warpjit.frontend.containers import python
from warpjit.frontend.liveness import Liveness, returns
from warpjit.frontend.merge import RESULT, RETURNED
from warpjit.frontend.ranges import Counted, Range, count
from warpjit.frontend.targets import assign
from warpjit.frontend.tracer import STATEMENTS, ExpandedFrame, LoopFrame, Tracer
from warpjit.frontend.values import Scalar, Value
from warpjit.ir import dtypes
from warpjit.ir.nodes import Break, Const, For, If, Local, Node, While
from warpjit.record import record

MAX_EXPANDED = 4096
END = object()


@record
class Unrolled:
    """`T.unroll(...)`: what it iterates over."""

    items: Sequence[Value]


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
        tracer.require_device("T.range" if items.device else "a loop over a runtime range")
        device_for(tracer, node, items)
    else:
        expand(tracer, node, iterable(items))


def iterable(items: Value) -> Iterable[Value]:
    """What a loop over a static iterable goes through. TraceError: it is none."""
    if isinstance(items, Scalar) or not isinstance(items, Iterable):
        raise TraceError(
            f"{arithmetic.describe(items)} cannot be iterated over: expected range(...), T.unroll(...) or a tuple"
        )
    return items


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


def expand(tracer: Tracer, node: ast.For, items: Iterable[Value]) -> None:
    """One copy of the body for each item. Once a helper may have returned in one, the next are under a condition.

    Items are taken one by one: a body that appends to the list it goes through sees what it appended.
    """
    scope, around = tracer.scope, len(tracer.loop_frames)
    depth = len(tracer.builder.blocks)
    frame = ExpandedFrame(scope, depth, depth)
    leaves = scope.inlined and returns([node]) and tracer.device_loop() is None
    flow = scope.liveness
    tracer.loop_frames.append(frame)
    iterator, loc = iter(items), tracer.builder.loc
    try:
        while (item := _next(tracer, iterator, loc)) is not END:
            returned = scope.names.get(RETURNED) if leaves else None
            if isinstance(returned, Scalar):
                names = sorted(flow.assigned([node]) & (flow.live_after(node) | flow.exposed(node)))
                again = functools.partial(_copy, tracer, node, frame, item)
                branch(tracer, returned, _nothing, again, [*names, RESULT, RETURNED])
            else:
                _copy(tracer, node, frame, item)
            if tracer.terminated or frame.exit == "break":
                break  # its own break; or a return, or a jump of a loop around this one
    finally:
        del tracer.loop_frames[around:]


def _next(tracer: Tracer, iterator: Iterator[Value], loc: Loc) -> Value:
    """The next item, or `END`; where Python has none to give, the error is the loop's."""
    tracer.builder.loc = loc
    return python(next, iterator, END)


def _copy(tracer: Tracer, node: ast.For, frame: ExpandedFrame, item: Value) -> None:
    """The body once; what ends only this copy is over then."""
    frame.depth = len(tracer.builder.blocks)
    assign(tracer, node.target, item)
    before = len(tracer.builder.block.nodes)
    tracer.execute(node.body)
    frame.nodes += len(tracer.builder.block.nodes) - before
    if frame.nodes > MAX_EXPANDED:
        raise TraceError(
            f"this loop was expanded to more than {MAX_EXPANDED:,} statements: make its range or its body smaller, or "
            "index registers with values that do not derive from its variable"
        )
    if frame.exit is not None:
        tracer.terminated = False
    if frame.exit == "continue":
        frame.exit = None


def _nothing() -> None:
    return


def while_statement(tracer: Tracer, node: ast.While) -> None:
    if node.orelse:
        raise TraceError("while … else is not part of the language")
    tracer.require_device("a while loop")
    settle(tracer, node, lambda frame: _while_body(tracer, node, frame))


# ---- for --------------------------------------------------------------------------------------------------------


def device_for(tracer: Tracer, node: ast.For, items: Range) -> None:
    if items.unroll is None and not isinstance(node.target, ast.Name):
        pairs = ": T.range gives pairs with unroll= only" if items.device else ""
        raise TraceError(f"expected a name as the variable of a loop over range{pairs}")
    loc = tracer.builder.loc
    counted = count(tracer.builder, items)

    def body(frame: LoopFrame) -> None:
        tracer.builder.loc = loc
        _for_body(tracer, node, items, counted, frame)

    settle(tracer, node, body)


def _for_body(tracer: Tracer, node: ast.For, items: Range, counted: Counted, frame: LoopFrame) -> None:
    builder = tracer.builder
    facts = counted.facts(builder)
    outer = builder.control
    frame.control = max(frame.control, facts.uniformity)
    frame.runs = counted.runs()
    loops = counted.start.loops | counted.stop.loops
    if items.static is not None and not items.device:
        loops |= {id(node)}
    start, stop = builder.atom(counted.start), builder.atom(counted.stop)
    hint = node.target.id if isinstance(node.target, ast.Name) else "i"
    variable = builder.local(hint, counted.start.dtype, facts, loops)
    builder.open()
    builder.block.dead |= facts.empty
    builder.block.loop = id(node) if items.static is not None and not items.device else 0
    builder.control = frame.control
    if items.unroll is None:
        tracer.scope.names[hint] = counted.users(builder, builder.scalar_of(variable))
        tracer.scope.bound[hint] = builder.loc
        nodes = _iteration(tracer, node.body, frame)
    else:
        nodes = _copies(tracer, node, counted, variable, frame)
    builder.control = outer
    builder.emit(For(variable, start, stop, counted.stride, nodes, frame.control, loc=builder.loc))


def _copies(tracer: Tracer, node: ast.For, counted: Counted, variable: Local, frame: LoopFrame) -> tuple[Node, ...]:
    """The body as often as it is to stand in one iteration; where the range may end between two copies, a `break`."""
    builder, loc, around = tracer.builder, tracer.builder.loc, len(tracer.loop_frames)
    whole = counted.whole(builder)
    for copy in range(counted.copies):
        builder.loc = loc
        item = counted.item(builder, builder.scalar_of(variable), copy)
        if copy and not whole:
            inside = arithmetic.compare(builder, "lt" if counted.step > 0 else "gt", item, counted.stop)
            _leave_where_false(tracer, inside, frame)
        depth = len(builder.blocks)
        part = ExpandedFrame(tracer.scope, depth, depth, frame)
        tracer.loop_frames.append(part)
        try:
            assign(tracer, node.target, (counted.users(builder, tracer.fresh(item)), copy))
            tracer.execute(node.body)
        finally:
            del tracer.loop_frames[around:]
        if tracer.terminated and part.exit is None:
            break  # a jump out of the loop
        tracer.terminated = False
    return _end_of_iteration(tracer, frame, loc)


def _iteration(tracer: Tracer, body: Sequence[ast.stmt], frame: LoopFrame) -> tuple[Node, ...]:
    """The statements of one iteration, in the block that is open."""
    loc = tracer.builder.loc
    tracer.execute(body)
    return _end_of_iteration(tracer, frame, loc)


def _end_of_iteration(tracer: Tracer, frame: LoopFrame, loc: Loc) -> tuple[Node, ...]:
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
    if Liveness.assigned([node.test]):  # what it bound is read after the loop too
        frame.endless = True
        _leave_where_false(tracer, condition, frame)
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


def _leave_where_false(tracer: Tracer, condition: Scalar, frame: LoopFrame) -> None:
    """A `break` where the condition is false."""
    builder = tracer.builder
    control, atom = builder.control, builder.atom(condition)
    builder.open(condition.refines[1])
    leave(tracer, frame, frame.breaks)
    builder.emit(Break(loc=builder.loc))
    builder.emit(If(atom, (), builder.close(), condition.uniformity, loc=builder.loc))
    builder.control = control
    builder.refine(condition.refines[0])


STATEMENTS[ast.For] = for_statement
STATEMENTS[ast.While] = while_statement
