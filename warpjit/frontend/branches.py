"""`if`, conditional expressions, `and` and `or`.

A static condition is resolved by Python and the other arm is not traced. A device condition makes an `If`; names
that an arm assigns and that are read later are carried out of it. Where an arm of an expression is pure, both
are computed and one is selected: no branch.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from warpjit.errors import Loc, TraceError
from warpjit.frontend import arithmetic, merge, planned
from warpjit.frontend.builder import Builder
from warpjit.frontend.merge import RESULT, Bound
from warpjit.frontend.objects import Picture
from warpjit.frontend.structure import Pair, alike, mapped, pairs, parts, rebuilt
from warpjit.frontend.tracer import STATEMENTS, Reject, Tracer
from warpjit.frontend.values import POISON, Scalar, Unbound, Value
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Assign, Declare, If, Local, Op
from warpjit.record import changed, record

Arm = Callable[[], None]


@record
class Join:
    """A number that two arms give different values: the local that carries it, and what each arm assigns."""

    local: Local
    values: tuple[Scalar, Scalar]


class Path:
    """One arm after it was traced: its statements, its names, what objects hold, and whether it ended early.

    `before` are the objects that both arms know: what an arm makes is its own.
    """

    def __init__(
        self,
        tracer: Tracer,
        refined: tuple[tuple[Local, Facts], ...],
        uniformity: Uniformity,
        before: list[Picture],
        body: Arm,
        live: Sequence[str],
    ):
        builder = tracer.builder
        scope = tracer.scope
        saved_names, saved_bound, control = dict(scope.names), dict(scope.bound), builder.control
        builder.open(refined)
        builder.control = max(control, uniformity)
        body()
        self.ended = tracer.terminated
        self.names, self.bound = scope.names, scope.bound
        for name in live:  # with what the arm's condition says of them
            value = self.names.get(name)
            if isinstance(value, Scalar):
                self.names[name] = tracer.fresh(value)
        self.block = builder.blocks.pop()
        scope.names, scope.bound = saved_names, saved_bound
        self.objects = [Picture(each.made, each.made.fields, dict(each.made.bound)) for each in before]
        tracer.objects.restore(before)
        tracer.terminated, builder.control = False, control

    def at(self, name: str, place: Loc) -> Bound:
        return Bound(self.names.get(name, Unbound(name, place)), self.bound.get(name, place))


def branch(tracer: Tracer, condition: Scalar, then: Arm, orelse: Arm, live: Sequence[str]) -> None:
    """An `If` on the device; `live` are the names that an arm may bind and that are read later."""
    builder, loc = tracer.builder, tracer.builder.loc
    atom = builder.atom(condition)
    before = tracer.objects.picture()
    paths = [
        Path(tracer, refined, condition.uniformity, before, arm, live)
        for refined, arm in zip(condition.refines, (then, orelse), strict=True)
    ]
    open_paths = [path for path in paths if not path.ended]
    if len(open_paths) < 2:
        _one_way(tracer, If(atom, (), (), condition.uniformity, loc=loc), condition, paths)
        return
    meeting = Meeting(tracer, loc, condition.uniformity)
    for name in live:
        meeting.name(name, paths)
    meeting.objects(paths)
    builder.loc = loc
    for join in meeting.joins:
        builder.emit(Declare(join.local, loc=loc))
    arms = []
    for arm, path in enumerate(paths):
        builder.blocks.append(path.block)
        merge.assign_all(tracer, [(join.local, join.values[arm]) for join in meeting.joins])
        arms.append(builder.close())
    builder.emit(If(atom, arms[0], arms[1], condition.uniformity, loc=loc))
    builder.control = max(builder.control, tracer.returned)


def _one_way(tracer: Tracer, node: If, condition: Scalar, paths: list[Path]) -> None:
    """An `If` of which one arm leaves: what follows belongs to the other arm, whose statements stand after the `If`."""
    builder = tracer.builder
    arms = [tuple(path.block.nodes) if path.ended else () for path in paths]
    builder.emit(changed(node, then=arms[0], orelse=arms[1]))
    builder.control = max(builder.control, condition.uniformity, tracer.returned)
    tracer.terminated = True
    for path in paths:
        if not path.ended:
            for statement in path.block.nodes:
                builder.emit(statement)
            builder.adopt(path.block)
            tracer.scope.names, tracer.scope.bound = path.names, path.bound
            tracer.objects.restore(path.objects)
            tracer.terminated = False


@dataclass
class Meeting:
    """Where two arms come together: gives names and attributes their values after the branch."""

    tracer: Tracer
    loc: Loc
    uniformity: Uniformity
    joins: list[Join] = field(default_factory=list)

    def name(self, name: str, paths: Sequence[Path]) -> None:
        scope, (first, second) = self.tracer.scope, [path.at(name, self.loc) for path in paths]
        if name == RESULT and isinstance(first.value, Unbound) != isinstance(second.value, Unbound):
            # It is read only where it is known to have a value: on the other path anything will do.
            first, second = (
                merge.or_zero(self.tracer, bound, other) for bound, other in ((first, second), (second, first))
            )
        same = merge.same(forgetful(first.value), forgetful(second.value))
        scope.names[name] = self.value(name, first, second)
        scope.bound[name] = first.loc if same else self.loc

    def objects(self, paths: Sequence[Path]) -> None:
        """The attributes of the objects that were there before the branch: those that an arm assigned."""
        for first, second in zip(paths[0].objects, paths[1].objects, strict=True):
            now = first.made.fields
            for name in {**first.fields, **second.fields}:
                if name in now and all(arm.fields.get(name) is now[name] for arm in (first, second)):
                    continue
                values = [
                    Bound(arm.fields.get(name, Unbound(name, self.loc)), arm.bound.get(name, self.loc))
                    for arm in (first, second)
                ]
                if merge.unbound(values):
                    raise Reject(first.made.late(name, values[0].loc if name in first.fields else values[1].loc))
                first.made.set(name, self.value(first.made.label(name), *values))
                if values[0].loc != values[1].loc:
                    first.made.bound[name] = self.loc

    def value(self, key: str, first: Bound, second: Bound) -> Value:
        """The value after the branch of what the arms left as `first` and `second`."""
        if merge.poisoned((first, second)):
            return POISON
        if merge.same(forgetful(first.value), forgetful(second.value)):
            return forgetful(first.value)
        if merge.unbound((first, second)):
            return Unbound(key, self.loc)
        if alike(first.value, second.value):
            inside = zip(parts(first.value) or (), parts(second.value) or (), strict=True)
            new = [self.value(key + end, Bound(a, first.loc), Bound(b, second.loc)) for (end, a), (_, b) in inside]
            return rebuilt(first.value, new)
        return self._number(key, first, second)

    def _number(self, key: str, first: Bound, second: Bound) -> Scalar:
        builder = self.tracer.builder
        dtype = merge.meeting_type(self.tracer, key, (first, second), self.loc)
        a, b = (merge.lift(self.tracer, bound.value, dtype) for bound in (first, second))
        local = builder.local(merge.hint(key), dtype, a.facts.join(b.facts).at(self.uniformity), a.loops | b.loops)
        self.joins.append(Join(local, (a, b)))
        return builder.scalar_of(local)


def forgetful(value: Value) -> Value:
    """A value without what only one path knows of its scalars."""
    if isinstance(value, Scalar) and (isinstance(value.atom, Local) or value.atom is None):
        return changed(value, facts=fact.of_type(value.dtype, value.uniformity), refines=((), ()))
    return value if parts(value) is None else mapped("", value, lambda key, part: forgetful(part))


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
        before = tracer.objects.picture()
        self.value = run()
        self._check_objects(before)
        self.block = builder.blocks.pop()
        builder.control = control
        for name, value in scope.names.items():
            if names.get(name, POISON) is not value:  # a walrus that may not have been reached
                scope.names[name] = Unbound(name, builder.loc)

    @staticmethod
    def _check_objects(before: Sequence[Picture]) -> None:
        for picture in before:
            for name in picture.changes():
                raise TraceError(
                    f"{picture.made.label(name)} is assigned in a part of an expression that may not be evaluated: "
                    "write an if statement"
                )

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
    meeting = [part for part in pairs("", *values) if not (part.key and merge.same(part.a, part.b))]
    if any(merge.number_type(value) is None for part in meeting for value in (part.a, part.b)):
        if merge.same(*values):
            return values[0]
        raise TraceError("a conditional expression on a runtime condition can only choose between numbers")
    if all(side.pure(builder) for side in sides):
        for side in sides:
            side.splice(builder)
        chosen = [arithmetic.select(builder, condition, part.a, part.b) for part in meeting]
    else:
        chosen = _branch_values(tracer, condition, sides, meeting)
    found = {part.key: value for part, value in zip(meeting, chosen, strict=True)}
    return mapped("", values[0], lambda key, leaf: found.get(key, leaf))


def _branch_values(tracer: Tracer, condition: Scalar, sides: list[Side], meeting: Sequence[Pair]) -> list[Scalar]:
    """An `If` that gives a local a value in each arm, for each pair of values."""
    builder, loc = tracer.builder, tracer.builder.loc
    joins = []
    for part in meeting:
        dtype = arithmetic.meeting_type(part.a, part.b)
        a, b = (_lifted(builder, side, value, dtype) for side, value in zip(sides, (part.a, part.b), strict=True))
        facts = a.facts.join(b.facts).at(condition.uniformity)
        joins.append(Join(builder.local("c", dtype, facts, a.loops | b.loops), (a, b)))
    atom = builder.atom(condition)
    for join in joins:
        builder.emit(Declare(join.local, loc=loc))
    arms = []
    for arm, side in enumerate(sides):
        builder.blocks.append(side.block)
        for join in joins:
            builder.emit(Assign(join.local, builder.atom(join.values[arm]), loc=loc))
        arms.append(builder.close())
    builder.emit(If(atom, arms[0], arms[1], condition.uniformity, loc=loc))
    return [builder.scalar_of(join.local) for join in joins]


def _lifted(builder: Builder, side: Side, value: Value, dtype: DType) -> Scalar:
    """A number of one arm as a value of `dtype`, computed in the arm."""
    builder.blocks.append(side.block)
    scalar = arithmetic.typed(builder, value, dtype)
    builder.atom(scalar)
    builder.blocks.pop()
    return scalar


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
    (result,) = _branch_values(tracer, left, sides, [Pair("", *(each.value for each in sides))])
    true, false = (
        (left.refines[0] + side.value.refines[0], ()) if op == "and" else ((), left.refines[1] + side.value.refines[1])
    )
    return Scalar(result.dtype, result.facts, result.atom, None, result.loops, refines=(true, false))


STATEMENTS[ast.If] = if_statement
