"""The walk over a kernel's syntax: evaluates expressions, executes statements, collects what is wrong.

This file holds the walk itself. What a kind of node means stands in the handler tables of `expressions`,
`statements`, `branches`, `loops` and `calls`; what a name of the language does in `intrinsics` and
`instructions`. A statement with an error is given up, its names are poisoned, and the walk goes on, so that one
run reports all mistakes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from warpjit.errors import Finding, Loc, Note, TraceError, WarpjitError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import NeedsStatic
from warpjit.frontend.builder import Builder, Mark
from warpjit.frontend.captures import Capture
from warpjit.frontend.language.constant import Constant
from warpjit.frontend.objects import Objects, Picture
from warpjit.frontend.refused import refusal
from warpjit.frontend.scope import Scope
from warpjit.frontend.values import POISON, Pointer, Poison, Scalar, TensorValue, Value
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import ConstantBuffer, Launch, Local, PlanExpr, SharedBuffer
from warpjit.isa.target import Target
from warpjit.layout import S, TileLayout
from warpjit.record import record


class Reject(Exception):
    """A finding that ends the statement it is in."""

    def __init__(self, finding: Finding):
        super().__init__(finding.message)
        self.finding = finding


class Poisoned(Exception):
    """An expression needs a value that an earlier error left without one: nothing new to report."""


@dataclass(frozen=True)
class Settings:
    """What a trace is for, besides its function and arguments."""

    target: Target
    contract: bool = True
    strict: bool = False
    unverified: bool = False
    debug: bool = False
    max_registers: int | None = None


@dataclass
class Edge:
    """Where control leaves the straight path of a loop body: the carried values there."""

    values: dict[str, Scalar]
    uniformity: Uniformity


@dataclass(eq=False)
class LoopFrame:
    """A device loop being traced."""

    scope: Scope
    carried: dict[str, Any]
    holders: Sequence[Any] = ()
    varying: set[str] = field(default_factory=set)
    assumed: Any = None
    edges: list[Edge] = field(default_factory=list)
    breaks: list[Edge] = field(default_factory=list)
    control: Uniformity = Uniformity.GRID
    leaves: Uniformity = Uniformity.GRID
    runs: bool = False  # the first iteration is sure to happen
    endless: bool = False  # it ends by `break` only
    after: tuple[tuple[Local, Facts], ...] = ()


@dataclass(eq=False)
class ExpandedFrame:
    """A loop being expanded: how deep its statements lie, how many it has given, and what ended an iteration.

    depth  blocks around the copy that is traced
    base   blocks around the loop
    loop   of copies of a body inside of a device loop: that loop
    """

    scope: Scope
    depth: int
    base: int = 0
    loop: LoopFrame | None = None
    nodes: int = 0
    exit: str | None = None


@record
class State:
    """All that an attempt may change, to go back to."""

    mark: Mark
    depth: int
    names: dict[str, Value]
    bound: dict[str, Loc]
    scope: Scope
    control: Uniformity
    objects: list[Picture]
    findings: int
    shared: int
    terminated: bool
    loops: int
    printed: int
    forget: Callable[[], None]


ExpressionHandler: TypeAlias = "Callable[[Tracer, Any], Value]"
StatementHandler: TypeAlias = "Callable[[Tracer, Any], None]"


class Tracer:
    """One trace of one kernel."""

    def __init__(self, scope: Scope, settings: Settings, captures: dict[tuple[int, str], Capture]):
        self.builder = Builder()
        self.scope = scope
        self.settings = settings
        self.captures = captures
        self.objects = Objects()
        self.findings: list[Finding] = []
        self.failures = 0  # statements that were given up, also those whose mistake is known already
        self.shared: list[SharedBuffer] = []
        self.launch: Launch | None = None
        self.sizes: dict[str, Scalar | int] = {}
        self.loop_frames: list[LoopFrame | ExpandedFrame] = []
        self.expanded: set[int] = set()
        self.attempts: set[int] = set()
        self.draft = False  # what is traced is for the facts of carried names only, and will be dropped
        self.sketched = 0  # operations on tiles that drafts have left out
        self.thresholds = Thresholds()
        self.terminated = False
        self.returned = Uniformity.GRID
        self.hint = ""
        self.tables: dict[Constant, TensorValue] = {}
        self.printed: list[str] = []  # by `T.static_print`, in attempts that stand
        self.hidden = False  # Python was asked for something that depends on what no capture shows

    # ---- walking -----------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Value:
        """The value of an expression."""
        kind, outer = type(node), self.builder.loc
        handler = EXPRESSIONS.get(kind)
        if kind not in LEAVES:
            self.builder.loc = self.scope.loc(node)
        try:
            if handler is None:
                raise TraceError(refusal(node))
            value = handler(self, node)
        except WarpjitError as error:
            raise self.reject(error, node) from error
        finally:
            self.builder.loc = outer
        if isinstance(value, Poison):
            raise Poisoned
        return self.table(value) if isinstance(value, Constant) else value

    def table(self, constant: Constant) -> TensorValue:
        """A table of constants as a tensor of the kernel."""
        found = self.tables.get(constant)
        if found is None:
            name = self.builder.unique("table")
            self.builder.reserved.add(name)  # it outlives the attempt that asks for it first
            buffer = ConstantBuffer(name, constant.dtype, constant.data)
            layout = TileLayout(S[constant.shape])
            found = TensorValue(name, constant.dtype, constant.shape, buffer, layout, align=16, loc=self.builder.loc)
            self.tables[constant] = found
        return found

    def condition(self, node: ast.expr) -> Value:
        """The value of an expression that stands as a condition: numbers may stand for `!= 0`."""
        handler = CONDITIONS.get(type(node))
        value = handler(self, node) if handler is not None else self.evaluate(node)
        return self.decisive(value)

    def decisive(self, value: Value) -> Value:
        """A value whose truth is asked for."""
        if isinstance(value, TensorValue | Pointer):
            raise TraceError(f"{arithmetic.describe(value)} is neither true nor false: compare an element")
        if not isinstance(value, Scalar):
            try:
                bool(value)
            except Exception as error:  # arrays of several elements, and whatever else a class says
                raise TraceError(f"{type(error).__name__}: {error}") from error
        return value

    def execute(self, statements: Sequence[ast.stmt]) -> None:
        """A block of statements, up to one that ends it (break, continue, return)."""
        for index, statement in enumerate(statements):
            if self.terminated:
                return
            splitter = SPLITTERS.get(type(statement))
            if splitter is not None and splitter(self, statement, statements[index + 1 :]):
                return
            self.step(statement)

    def step(self, statement: ast.stmt) -> None:
        """One statement; its errors are collected."""
        handler = STATEMENTS.get(type(statement))
        self.builder.loc = self.scope.loc(statement)
        depth, control = len(self.builder.blocks), self.builder.control
        try:
            if handler is None:
                raise TraceError(refusal(statement))
            handler(self, statement)
        except (Reject, Poisoned, WarpjitError, NeedsStatic) as error:
            self.give_up(error, statement, depth)
            self.builder.control = control

    def give_up(self, error: Exception, statement: ast.stmt, depth: int) -> None:
        """Collect what ended a statement. NeedsStatic goes on to the loop that can be expanded, if there is one."""
        if isinstance(error, NeedsStatic):
            if error.loops & self.attempts:
                raise error
            self.fail(
                Finding(f"{error}, but it changes from iteration to iteration", self.builder.loc), statement, depth
            )
        elif isinstance(error, Reject):
            self.fail(error.finding, statement, depth)
        elif isinstance(error, WarpjitError):
            self.fail(self.reject(error, statement).finding, statement, depth)
        elif isinstance(error, Poisoned):
            self.fail(None, statement, depth)
        else:
            raise error

    def reject(self, error: WarpjitError, node: ast.AST, notes: Iterable[Note] = ()) -> Reject:
        """The error as a finding at `node`."""
        return Reject(Finding(str(error), self.scope.loc(node), tuple(notes)))

    def fail(self, finding: Finding | None, statement: ast.stmt, depth: int) -> None:
        """Note what is wrong, and poison the names that the statement would have bound."""
        del self.builder.blocks[depth:]
        self.failures += 1
        if finding is not None and finding not in self.findings:
            self.findings.append(finding)
        for name in self.scope.liveness.assigned([statement]):
            self.scope.names[name] = POISON

    # ---- names -------------------------------------------------------------------------------------

    def read(self, name: str) -> Value:
        value = self.scope.lookup(name)
        return self.fresh(value) if isinstance(value, Scalar) else value

    def fresh(self, scalar: Scalar) -> Scalar:
        """The scalar with what has been learnt about it since."""
        if scalar.linear is None:
            return scalar
        facts = self.builder.linear_facts(scalar.linear).meet(scalar.facts)
        if isinstance(scalar.atom, Local):
            facts = facts.meet(self.builder.facts_of(scalar.atom))
        if facts == scalar.facts:
            return scalar
        return Scalar(scalar.dtype, facts, scalar.atom, scalar.linear, scalar.loops, scalar.plan, scalar.refines)

    def bind(self, name: str, value: Value, scope: Scope | None = None) -> None:
        """`name = value`: a scalar's value is taken now, under the name. `scope`: another one than the present."""
        value = self.held(value, name)
        scope = scope or self.scope
        scope.names[name] = value
        scope.bound[name] = self.builder.loc

    def held(self, value: Value, name: str) -> Value:
        """A value as it is now: a scalar after the statements that compute it."""
        if not isinstance(value, Scalar) or value.atom is not None or self.builder.host:
            return value
        atom = self.builder.atom(value, name)
        return Scalar(value.dtype, value.facts, atom, value.linear, value.loops, value.plan, value.refines)

    # ---- attempts ----------------------------------------------------------------------------------

    def save(self) -> State:
        return State(
            self.builder.mark(),
            len(self.builder.blocks),
            dict(self.scope.names),
            dict(self.scope.bound),
            self.scope,
            self.builder.control,
            self.objects.picture(),
            len(self.findings),
            len(self.shared),
            self.terminated,
            len(self.loop_frames),
            len(self.printed),
            self.assumed.mark() if self.assumed is not None else lambda: None,
        )

    def restore(self, state: State) -> None:
        """Forget an attempt."""
        self.builder.rewind(state.mark, state.depth)
        self.scope = state.scope
        self.scope.names = dict(state.names)
        self.scope.bound = dict(state.bound)
        self.builder.control = state.control
        self.objects.restore(state.objects, forget=True)
        del self.findings[state.findings :]
        del self.shared[state.shared :]
        del self.loop_frames[state.loops :]
        del self.printed[state.printed :]
        self.terminated = state.terminated
        state.forget()

    def sketches(self) -> bool:
        """Whether an operation on tiles is to be left out. It says nothing of scalars, and is most of the work."""
        self.sketched += self.draft
        return self.draft

    @property
    def assumed(self) -> Any:
        """What the attempts of the device loop around this place have come to; None outside of loops."""
        return next((frame.assumed for frame in reversed(self.loop_frames) if isinstance(frame, LoopFrame)), None)

    def device_loop(self) -> LoopFrame | None:
        """The innermost loop of the device in the function that is traced."""
        frames = (frame for frame in reversed(self.loop_frames) if frame.scope is self.scope)
        return next((frame for frame in frames if isinstance(frame, LoopFrame)), None)

    # ---- small services ----------------------------------------------------------------------------

    def scalar(self, value: Value) -> Scalar:
        return arithmetic.natural(self.builder, value)

    def plan(self, value: Value) -> PlanExpr:
        return arithmetic.plan_of(value)

    def require_device(self, what: str) -> None:
        if self.builder.host:
            raise TraceError(f"{what} stands before T.device_entry: only host expressions can stand there")


@dataclass
class Thresholds:
    """Numbers with which values are compared: where a bound that moves may come to rest.

    of_local   by the name of a local, the numbers with which it is compared
    of_any     numbers with which anything is compared, and their neighbours
    """

    of_local: dict[str, set[int]] = field(default_factory=dict)
    of_any: set[int] = field(default_factory=set)

    def note(self, value: Scalar, number: int) -> None:
        """`value` is compared with `number`."""
        self.of_any.update((number - 1, number, number + 1))
        if value.linear is not None and len(value.linear.terms) == 1:
            local, coefficient = value.linear.terms[0]
            if coefficient == 1:
                self.of_local.setdefault(local.name, set()).add(number - value.linear.constant)

    def above(self, name: str, bound: int) -> int | None:
        """The next number that the upper bound of a local may come to rest at: x < n lets x + 1 become n."""
        own = [x for number in self.of_local.get(name, ()) for x in (number, number + 1) if x >= bound]
        return min(own or [x for x in self.of_any if x >= bound], default=None)

    def below(self, name: str, bound: int) -> int | None:
        own = [x for number in self.of_local.get(name, ()) for x in (number, number - 1) if x <= bound]
        return max(own or [x for x in self.of_any if x <= bound], default=None)


def widen(name: str, old: Facts, new: Facts, thresholds: Thresholds) -> Facts:
    """A weaker assumption of a local that covers both: a moved bound goes on to the next threshold."""
    joined = old.join(new)
    lo, hi = joined.lo, joined.hi
    if lo is not None and old.lo is not None and lo < old.lo:
        lo = thresholds.below(name, lo)
    if hi is not None and old.hi is not None and hi > old.hi:
        hi = thresholds.above(name, hi)
    return Facts(lo, hi, joined.multiple, joined.uniformity)


LEAVES = (ast.Name, ast.Constant)
"""Expressions that write no statement, so that nothing needs their place unless they are wrong."""
EXPRESSIONS: dict[type[ast.expr], ExpressionHandler] = {}
CONDITIONS: dict[type[ast.expr], ExpressionHandler] = {}
STATEMENTS: dict[type[ast.stmt], StatementHandler] = {}
SPLITTERS: dict[type[ast.stmt], Callable[[Tracer, Any, Sequence[ast.stmt]], bool]] = {}
"""Statements that may take over the rest of their block; they return whether they did."""
