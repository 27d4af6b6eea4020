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
from warpjit.frontend.liveness import continues, returns
from warpjit.frontend.tracer import SPLITTERS, STATEMENTS, ExpandedFrame, LoopFrame, Tracer
from warpjit.frontend.values import Scalar
from warpjit.ir.nodes import Break, Continue, Return

RESULT = "return value"


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
        if any(isinstance(frame, LoopFrame) and frame.scope is scope for frame in tracer.loop_frames):
            raise TraceError(
                "return inside a loop of a helper that runs on the device: assign a name and break instead"
            )
        scope.result = value
        scope.names[RESULT] = value
        scope.bound[RESULT] = tracer.builder.loc
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


# ---- if statements that jump --------------------------------------------------------------------------------------


def split(tracer: Tracer, node: ast.If, rest: Sequence[ast.stmt]) -> bool:
    """Take over an `if` with a jump under a device condition, together with the statements after it."""
    frame = tracer.loop_frames[-1] if tracer.loop_frames else None
    ends_copy = isinstance(frame, ExpandedFrame) and frame.scope is tracer.scope and continues([node])
    ends_helper = tracer.scope.inlined and returns([node])
    if not (ends_copy or ends_helper):
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
        _split_copy(tracer, frame, test, node, rest)
    elif any(frame.scope is tracer.scope for frame in tracer.loop_frames):
        problem = TraceError(
            "return under a runtime condition inside a loop of a helper: assign a name and break instead"
        )
        tracer.give_up(problem, node, depth)
    else:
        _split_helper(tracer, test, node, rest)
    return True


def _split_copy(tracer: Tracer, frame: ExpandedFrame, test: Scalar, node: ast.If, rest: Sequence[ast.stmt]) -> None:
    """In a copy of a loop's body, `continue` leads to where the copy ends."""
    flow = tracer.scope.liveness
    names = flow.assigned([node, *rest]) & flow.live_after(rest[-1] if rest else node)

    def arm(body: Sequence[ast.stmt]) -> Arm:
        def run() -> None:
            tracer.execute([*body, *rest])
            if frame.exit == "continue":
                frame.exit, tracer.terminated = None, False

        return run

    branch(tracer, test, arm(node.body), arm(node.orelse), sorted(names))
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


STATEMENTS[ast.Break] = _jump("break")
STATEMENTS[ast.Continue] = _jump("continue")
STATEMENTS[ast.Return] = _return
SPLITTERS[ast.If] = split
