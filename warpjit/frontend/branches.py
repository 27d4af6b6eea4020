"""`if`, conditional expressions, `and` and `or`.

A static condition is resolved by Python and the other arm is not traced. A device condition makes an `If`; names
that an arm assigns and that are read later are carried out of it. Where an arm of an expression is pure, both
are computed and one is selected: no branch.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from warpjit.errors import Loc, TraceError
from warpjit.frontend import arithmetic, merge, planned
from warpjit.frontend.builder import Builder
from warpjit.frontend.merge import Bound
from warpjit.frontend.tracer import STATEMENTS, Tracer
from warpjit.frontend.values import POISON, Scalar, Unbound, Value, is_number
from warpjit.ir import facts as fact
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Assign, Declare, If, Local, Node, Op

Arm = Callable[[], None]


class Path:
    """One arm after it was traced: its statements, its names, and whether it ended early."""

    def __init__(self, tracer: Tracer, condition: Scalar, truth: bool, body: Arm, live: Sequence[str]):
        builder = tracer.builder
        scope = tracer.scope
        saved_names, saved_bound, control = dict(scope.names), dict(scope.bound), builder.control
        builder.open(condition.refines[0 if truth else 1])
        builder.control = max(control, condition.uniformity)
        body()
        self.ended = tracer.terminated
        self.names, self.bound = scope.names, scope.bound
        for name in live:  # with what the arm's condition says of them
            value = self.names.get(name)
            if isinstance(value, Scalar):
                self.names[name] = tracer.fresh(value)
        self.block = builder.blocks.pop()
        scope.names, scope.bound = saved_names, saved_bound
        tracer.terminated, builder.control = False, control

    def at(self, name: str, place: Loc) -> Bound:
        return Bound(self.names.get(name, Unbound(name, place)), self.bound.get(name, place))


def branch(tracer: Tracer, condition: Scalar, then: Arm, orelse: Arm, live: Sequence[str]) -> None:
    """An `If` on the device; `live` are the names that an arm may bind and that are read later."""
    builder, loc = tracer.builder, tracer.builder.loc
    atom = builder.atom(condition)
    paths = [Path(tracer, condition, True, then, live), Path(tracer, condition, False, orelse, live)]
    open_paths = [path for path in paths if not path.ended]
    if len(open_paths) < 2:
        _one_way(tracer, If(atom, (), (), condition.uniformity, loc=loc), condition, paths)
        return
    carried: list[tuple[str, Local]] = []
    for name in live:
        local = _meet(tracer, name, paths, loc, condition.uniformity)
        if local is not None:
            carried.append((name, local))
    builder.loc = loc
    for _, local in carried:
        builder.emit(Declare(local, loc=loc))
    arms = [_finish(tracer, path, carried) for path in paths]
    builder.emit(If(atom, arms[0], arms[1], condition.uniformity, loc=loc))
    for name, local in carried:
        tracer.scope.names[name] = builder.scalar_of(local)
        tracer.scope.bound[name] = loc
    builder.control = max(builder.control, tracer.returned)


def _one_way(tracer: Tracer, node: If, condition: Scalar, paths: list[Path]) -> None:
    """An `If` of which one arm leaves: what follows belongs to the other arm, whose statements stand after the `If`."""
    builder = tracer.builder
    arms = [tuple(path.block.nodes) if path.ended else () for path in paths]
    builder.emit(replace(node, then=arms[0], orelse=arms[1]))
    builder.control = max(builder.control, condition.uniformity, tracer.returned)
    tracer.terminated = True
    for path in paths:
        if not path.ended:
            for statement in path.block.nodes:
                builder.emit(statement)
            builder.adopt(path.block)
            tracer.scope.names, tracer.scope.bound = path.names, path.bound
            tracer.terminated = False


def _meet(tracer: Tracer, name: str, paths: list[Path], loc: Loc, uniformity: Uniformity) -> Local | None:
    """Give `name` its value after the branch; the local that carries it, where paths differ."""
    values = [path.at(name, loc) for path in paths]
    scope = tracer.scope
    if merge.poisoned(values):
        scope.names[name] = POISON
        return None
    if merge.same(*(forgetful(bound.value) for bound in values)):
        scope.names[name], scope.bound[name] = forgetful(values[0].value), values[0].loc
        return None
    if merge.unbound(values):
        scope.names[name] = Unbound(name, loc)
        return None
    dtype = merge.meeting_type(tracer, name, values, loc)
    scalars = [merge.lift(tracer, bound.value, dtype) for bound in values]
    facts = scalars[0].facts.join(scalars[1].facts).at(uniformity)
    return tracer.builder.local(name, dtype, facts, scalars[0].loops | scalars[1].loops)


def forgetful(value: Value) -> Value:
    """A scalar that is in a local, without what only one path knows of it."""
    if isinstance(value, Scalar) and isinstance(value.atom, Local):
        return replace(value, facts=fact.of_type(value.dtype, value.uniformity), refines=((), ()))
    return value


def _finish(tracer: Tracer, path: Path, carried: list[tuple[str, Local]]) -> tuple[Node, ...]:
    """The arm's statements, with the carried names assigned where it ends."""
    builder = tracer.builder
    builder.blocks.append(path.block)
    pairs = [(local, merge.lift(tracer, path.names[name], local.dtype)) for name, local in carried]
    merge.assign_all(tracer, pairs)
    return builder.close()


def if_statement(tracer: Tracer, node: ast.If) -> None:
    test = tracer.condition(node.test)
    if not isinstance(test, Scalar):
        tracer.execute(node.body if test else node.orelse)
        return
    _device_if(tracer, node, test, node.body, node.orelse, tracer.scope.liveness.live_after(node))


def _device_if(
    tracer: Tracer,
    node: ast.If,
    test: Scalar,
    body: Sequence[ast.stmt],
    orelse: Sequence[ast.stmt],
    live: frozenset[str],
) -> None:
    tracer.require_device("a branch on a runtime value")
    condition = arithmetic.truth(tracer.builder, test)
    names = sorted(tracer.scope.liveness.assigned([*body, *orelse]) & live)
    branch(tracer, condition, lambda: tracer.execute(body), lambda: tracer.execute(orelse), names)


# ---- expressions --------------------------------------------------------------------------------------------


class Side:
    """One arm of an expression after it was evaluated in a block of its own, where `refined` held."""

    def __init__(
        self, tracer: Tracer, refined: tuple[tuple[Local, Facts], ...], uniformity: Uniformity, run: Callable[[], Value]
    ):
        builder, scope = tracer.builder, tracer.scope.owner
        control, names = builder.control, dict(scope.names)
        builder.open(refined)
        builder.control = max(control, uniformity)
        self.refined = bool(refined)
        self.value = run()
        self.block = builder.blocks.pop()
        builder.control = control
        for name, value in scope.names.items():
            if names.get(name, POISON) is not value:  # a walrus that may not have been reached
                scope.names[name] = Unbound(name, builder.loc)

    def pure(self, builder: Builder) -> bool:
        """Whether it may run where its test does not hold: no effect, no load, no division by what may be zero."""
        if not all(isinstance(node, Op) and node.row.pure for node in self.block.nodes):  # type: ignore[attr-defined]
            return False
        own = {node.operands[0] for node in self.block.nodes} if self.refined else set()  # type: ignore[union-attr]
        return all(atom not in own and builder.never_zero(atom) for atom in self.block.divisors)

    def splice(self, builder: Builder) -> None:
        """What the arm computed, computed here unconditionally: nothing that only `refined` proved is kept."""
        for node in self.block.nodes:
            assert isinstance(node, Op)
            builder.emit(builder.unproven(node) if self.refined else node)
        builder.block.divisors += self.block.divisors
        if not self.refined:
            builder.block.computed.update(self.block.computed)


def choose(tracer: Tracer, test: Scalar, body: Callable[[], Value], orelse: Callable[[], Value]) -> Value:
    """`body if test else orelse` with a condition on the device (or of the launch plan)."""
    builder, loc = tracer.builder, tracer.builder.loc
    condition = arithmetic.truth(builder, test)
    if builder.host:
        return arithmetic.select(builder, condition, body(), orelse())
    sides = [
        Side(tracer, refined, condition.uniformity, run)
        for refined, run in zip(condition.refines, (body, orelse), strict=True)
    ]
    builder.loc = loc
    values = [side.value for side in sides]
    if not all(isinstance(value, Scalar) or is_number(value) for value in values):
        if merge.same(*values):
            return values[0]
        raise TraceError("a conditional expression on a runtime condition can only choose between numbers")
    if all(side.pure(builder) for side in sides):
        for side in sides:
            side.splice(builder)
        return arithmetic.select(builder, condition, *values)
    return _branch_value(tracer, condition, sides)


def _branch_value(tracer: Tracer, condition: Scalar, sides: list[Side]) -> Scalar:
    """An `If` that gives one local a value in each arm."""
    builder, loc = tracer.builder, tracer.builder.loc
    dtype = arithmetic.meeting_type(*(side.value for side in sides))
    scalars: list[Scalar] = []
    for side in sides:
        builder.blocks.append(side.block)
        value = side.value
        scalars.append(
            arithmetic.convert(builder, value, dtype)
            if isinstance(value, Scalar)
            else arithmetic.literal(builder, value, dtype)
        )
        builder.atom(scalars[-1])
        builder.blocks.pop()
    facts = scalars[0].facts.join(scalars[1].facts).at(condition.uniformity)
    local = builder.local("c", dtype, facts, scalars[0].loops | scalars[1].loops)
    atom = builder.atom(condition)
    builder.emit(Declare(local, loc=loc))
    arms = []
    for side, scalar in zip(sides, scalars, strict=True):
        builder.blocks.append(side.block)
        builder.emit(Assign(local, builder.atom(scalar), loc=loc))
        arms.append(builder.close())
    builder.emit(If(atom, arms[0], arms[1], condition.uniformity, loc=loc))
    return builder.scalar_of(local)


def short_circuit(tracer: Tracer, op: str, operands: Sequence[Callable[[], Value]]) -> Value:
    """`a and b and …`: an operand is evaluated only where those before it leave the result open."""
    first = operands[0]()
    if len(operands) == 1:
        return first
    if not isinstance(tracer.decisive(first), Scalar):
        settled = not first if op == "and" else bool(first)
        return first if settled else short_circuit(tracer, op, operands[1:])
    builder, loc = tracer.builder, tracer.builder.loc
    left = arithmetic.truth(builder, first)
    if builder.host:
        right = arithmetic.truth(builder, short_circuit(tracer, op, operands[1:]))
        return planned.join(builder, op, left, right)
    refined = left.refines[0 if op == "and" else 1]
    side = Side(
        tracer, refined, left.uniformity, lambda: arithmetic.truth(builder, short_circuit(tracer, op, operands[1:]))
    )
    builder.loc = loc
    if side.pure(builder):
        side.splice(builder)
        return arithmetic.join_conditions(builder, op, left, side.value)
    constant = Side(tracer, (), left.uniformity, lambda: op == "or")
    sides = [side, constant] if op == "and" else [constant, side]
    result = _branch_value(tracer, left, sides)
    true, false = (
        (left.refines[0] + side.value.refines[0], ()) if op == "and" else ((), left.refines[1] + side.value.refines[1])
    )
    return Scalar(result.dtype, result.facts, result.atom, None, result.loops, refines=(true, false))


STATEMENTS[ast.If] = if_statement
