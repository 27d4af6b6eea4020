"""`break`, `continue` and `return`, and the `if` statements around them.

A jump leaves its path; what the loop carries is assigned before it. Where the program has no jump to where a statement
leads (the next copy of an unrolled body, the end of an inlined helper), what follows an `if` around it is traced in
each arm that does not jump.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.branches import Arm, branch
from warpjit.frontend.carried import leave
from warpjit.frontend.liveness import continues, endless, returns
from warpjit.frontend.merge import RESULT, RETURNED
from warpjit.frontend.tracer import SPLITTERS, STATEMENTS, ExpandedFrame, LoopFrame, Tracer
from warpjit.frontend.values import Scalar
from warpjit.ir.nodes import Break, Continue, Return


def _jump(kind: str) -> Callable[[Tracer, ast.stmt], None]:
    def run(tracer: Tracer, node: ast.stmt) -> None:
        frame = tracer.loop_frames[-1]
        if isinstance(frame, LoopFrame):
            _leave_loop(tracer, frame, kind)
        elif kind == "break" and frame.loop is not None:
            _leave_loop(tracer, frame.loop, kind)
        elif kind == "break" and len(tracer.builder.blocks) != frame.depth:
            raise TraceError("break under a runtime condition in an expanded loop: write it as a loop over range")
        else:
            frame.exit = kind
        tracer.terminated = True

    return run


def _leave_loop(tracer: Tracer, frame: LoopFrame, kind: str) -> None:
    leave(tracer, frame, frame.breaks if kind == "break" else frame.edges)
    frame.leaves = max(frame.leaves, tracer.builder.control)
    tracer.builder.emit((Break if kind == "break" else Continue)(loc=tracer.builder.loc))


def _return(tracer: Tracer, node: ast.Return) -> None:
    scope = tracer.scope
    if scope.inlined:
        value = None if node.value is None else tracer.evaluate(node.value)
        scope.names[RESULT], scope.bound[RESULT] = value, tracer.builder.loc
        loop, copies = tracer.device_loop(), _copies_of(tracer)
        if loop is not None:
            scope.names[RETURNED] = True
            _leave_loop(tracer, loop, "break")
        elif copies and len(tracer.builder.blocks) != copies[0].base:
            scope.names[RETURNED] = True
            copies[-1].exit = "continue"
        scope.result = value
        tracer.terminated = True
        return
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        raise TraceError("a kernel returns nothing: write results into a tensor argument")
    tracer.require_device("return")
    tracer.returned = max(tracer.returned, tracer.builder.control)
    for frame in tracer.loop_frames:
        if isinstance(frame, LoopFrame):
            frame.leaves = max(frame.leaves, tracer.builder.control)
    tracer.builder.emit(Return(loc=tracer.builder.loc))
    tracer.terminated = True


def _copies_of(tracer: Tracer) -> list[ExpandedFrame]:
    """The expanded loops of the function that is traced."""
    return [each for each in tracer.loop_frames if each.scope is tracer.scope and isinstance(each, ExpandedFrame)]


# ---- if statements that jump --------------------------------------------------------------------------------------


def split(tracer: Tracer, node: ast.If, rest: Sequence[ast.stmt]) -> bool:
    """Take over an `if` with a jump under a device condition, together with the statements after it."""
    frame = tracer.loop_frames[-1] if tracer.loop_frames else None
    inside = frame is not None and frame.scope is tracer.scope
    leaves = tracer.scope.inlined and returns([node])
    ends_copy = (
        isinstance(frame, ExpandedFrame) and inside and (continues([node]) or (leaves and tracer.device_loop() is None))
    )
    if not ends_copy and (inside or not leaves):
        return False
    place = tracer.scope.loc(node)
    depth = len(tracer.builder.blocks)
    tracer.builder.loc = place
    try:
        test = tracer.condition(node.test)
        if isinstance(test, Scalar):
            test = arithmetic.truth(tracer.builder, test)
    except Exception as error:
        tracer.builder.loc = place
        tracer.give_up(error, node, depth)
        return True
    tracer.builder.loc = place
    if not isinstance(test, Scalar):
        tracer.execute([*(node.body if test else node.orelse), *rest])
    elif ends_copy:
        assert isinstance(frame, ExpandedFrame)
        _split_copy(tracer, frame, test, ([*node.body, *rest], [*node.orelse, *rest]), _ending(tracer, node, rest))
    else:
        _split_helper(tracer, test, node, rest)
    return True


def _ending(tracer: Tracer, node: ast.stmt, rest: Sequence[ast.stmt]) -> list[str]:
    """The names that a statement and those after it may bind, and that are read after them."""
    flow = tracer.scope.liveness
    names = flow.assigned([node, *rest]) & flow.live_after(rest[-1] if rest else node)
    return sorted(names) + ([RESULT, RETURNED] if tracer.scope.inlined and returns([node, *rest]) else [])


def _split_copy(
    tracer: Tracer,
    frame: ExpandedFrame,
    test: Scalar,
    arms: tuple[Sequence[ast.stmt], Sequence[ast.stmt]],
    names: Sequence[str],
) -> None:
    """In a copy of a loop's body, `continue` (and a `return`, which sets its flag) leads to where the copy ends."""

    def arm(statements: Sequence[ast.stmt]) -> Arm:
        def run() -> None:
            tracer.execute(statements)
            if frame.exit == "continue":
                frame.exit, tracer.terminated = None, False

        return run

    branch(tracer, test, arm(arms[0]), arm(arms[1]), names)
    if not tracer.terminated:  # both arms have run to the end of the copy
        frame.exit, tracer.terminated = "continue", True


def _split_helper(tracer: Tracer, test: Scalar, node: ast.If, rest: Sequence[ast.stmt]) -> None:
    """In a helper, what follows an `if` with a `return` belongs to the arms that go on."""

    def arm(body: Sequence[ast.stmt]) -> Arm:
        def run() -> None:
            tracer.execute([*body, *rest])
            if not tracer.terminated:
                tracer.scope.names[RESULT] = None
            tracer.terminated = False

        return run

    branch(tracer, test, arm(node.body), arm(node.orelse), [RESULT])
    tracer.scope.result = tracer.scope.names.get(RESULT)
    tracer.terminated = True


def split_loop(tracer: Tracer, node: ast.For | ast.While, rest: Sequence[ast.stmt]) -> bool:
    """Take over a loop of a helper with a `return` in it: what follows is for those who have not returned."""
    scope = tracer.scope
    if not scope.inlined or not returns([node]):
        return False
    scope.names[RETURNED], scope.bound[RETURNED] = False, scope.loc(node)
    tracer.step(node)
    returned = scope.names.get(RETURNED)
    if tracer.terminated or not isinstance(returned, Scalar):
        tracer.execute(rest)  # nothing, where a return has ended it while tracing
        return True
    tracer.builder.loc = scope.loc(node)
    outer, copies = tracer.device_loop(), _copies_of(tracer)
    if endless(node) and (outer is not None or not copies):
        _returned(tracer, outer)
        return True
    if outer is None and copies:
        _split_copy(tracer, copies[-1], returned, ([], rest), _ending(tracer, node, rest))
        return True
    if outer is None:
        _after_loop(tracer, returned, rest)
        return True

    def jump() -> None:
        _leave_loop(tracer, outer, "break")
        tracer.terminated = True

    branch(tracer, returned, jump, lambda: None, [])
    tracer.execute(rest)
    return True


def _returned(tracer: Tracer, outer: LoopFrame | None) -> None:
    """After a loop that ends by `return` only."""
    if outer is not None:
        _leave_loop(tracer, outer, "break")
    tracer.scope.result = tracer.scope.names.get(RESULT)
    tracer.terminated = True


def _after_loop(tracer: Tracer, returned: Scalar, rest: Sequence[ast.stmt]) -> None:
    def go_on() -> None:
        tracer.execute(rest)
        if not tracer.terminated:
            tracer.scope.names[RESULT] = None
        tracer.terminated = False

    branch(tracer, returned, lambda: None, go_on, [RESULT])
    tracer.scope.result = tracer.scope.names.get(RESULT)
    tracer.terminated = True


STATEMENTS[ast.Break] = _jump("break")
STATEMENTS[ast.Continue] = _jump("continue")
STATEMENTS[ast.Return] = _return
SPLITTERS[ast.If] = split
SPLITTERS[ast.For] = SPLITTERS[ast.While] = split_loop
