"""Writes the IR while the tracer walks: blocks, names, the facts of locals, and equal pure operations shared.

A `Builder` knows nothing of Python's syntax. Blocks nest as the control flow does; what is known in a block
(refined facts, operations already computed) is forgotten with it. `mark` and `rewind` drop an attempt.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from warpjit.errors import NOWHERE, Loc
from warpjit.frontend.values import NO_LOOPS, Linear, Scalar, constant
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Atom, Const, Local, Node, Op, OperandValue, PlanExpr
from warpjit.isa.row import Row
from warpjit.isa.scalar import ARITHMETIC, CONVERT, SPECIAL
from warpjit.record import changed, record

# What a multiple or divisor is known by, for `x % d == 0` to say something of x.
Definition = tuple[Linear, int]

# Flags of rows by which facts about the operands shorten the code (see `isa.scalar_arithmetic`).
PROOFS = ("nowrap", "nonnegative", "bounded")


@dataclass
class Block:
    """One block under construction, and what holds inside it."""

    nodes: list[Node]
    computed: dict[tuple[Any, ...], Local]
    refined: dict[str, Facts]  # by the names of locals
    divisors: list[Atom] = field(default_factory=list)  # of integer divisions: what must not be zero to run it
    region: int = field(default_factory=itertools.count().__next__)  # tells blocks apart
    regions: set[int] = field(default_factory=set)  # its own, and those of blocks that became part of it
    loop: int = 0  # of the body of a device loop over a static range: which
    dead: bool = False  # what holds inside contradicts itself: it never runs, and may say what would be wrong

    def __post_init__(self) -> None:
        self.regions.add(self.region)


@record
class Mark:
    """A point to rewind to."""

    nodes: int
    computed: dict[tuple[Any, ...], Local]
    refined: dict[str, Facts]
    dead: bool
    names: dict[str, int]
    specials: int


class Builder:
    """The IR of one kernel under construction."""

    def __init__(self) -> None:
        self.blocks: list[Block] = [Block([], {}, {})]
        self.names: dict[str, int] = {}
        self.facts: dict[str, Facts] = {}  # by the names of locals, as are the next three
        self.loops: dict[str, frozenset[int]] = {}
        self.moduli: dict[str, Definition] = {}
        self.wrapped: dict[str, Linear] = {}  # what a local that may have wrapped equals modulo 2**bits
        self.control = Uniformity.GRID
        self.host = True  # before T.device_entry: values are expressions of the launch plan
        self.loc: Loc = NOWHERE
        self.prologue: list[Node] = []  # reads the `specials`, in their order
        self.reserved: set[str] = set()
        self.thread_params: tuple[tuple[str, int], ...] = ()  # the block's extents, for rows that count threads
        self.specials: dict[str, Scalar] = {}
        self.plans: dict[tuple[Any, ...], Local] = {}
        self.sources: dict[Local, PlanExpr] = {}
        self.widened: dict[PlanExpr | None, DType] = {}  # expressions that are int64 for their range only: their type

    # ---- blocks ------------------------------------------------------------------------------------

    @property
    def block(self) -> Block:
        return self.blocks[-1]

    def emit(self, node: Node) -> None:
        self.block.nodes.append(node)

    def open(self, refined: Iterable[tuple[Local, Facts]] = ()) -> None:
        """Begin a block in which `refined` holds."""
        outer = self.block
        self.blocks.append(Block([], dict(outer.computed), dict(outer.refined), dead=outer.dead))
        self.refine(refined)

    def close(self) -> tuple[Node, ...]:
        return tuple(self.blocks.pop().nodes)

    def adopt(self, inner: Block) -> None:
        """What holds in a block whose statements are now part of this one."""
        self.block.computed, self.block.refined = inner.computed, inner.refined
        self.block.divisors += inner.divisors
        self.block.regions |= inner.regions
        self.block.dead |= inner.dead

    def refine(self, refined: Iterable[tuple[Local, Facts]]) -> None:
        """From here to the end of the block, these facts hold as well."""
        for local, facts in refined:
            if facts.empty:
                self.block.dead = True
                continue
            known = self.facts_of(local)
            self.block.dead |= known.contradicts(facts)
            self.block.refined[local.name] = known.meet(facts)

    def mark(self) -> Mark:
        block = self.block
        known = dict(block.computed), dict(block.refined), block.dead
        return Mark(len(block.nodes), *known, dict(self.names), len(self.specials))

    def rewind(self, mark: Mark, depth: int) -> None:
        """Forget all that was written since `mark`, which was taken with `depth` open blocks."""
        del self.blocks[depth:]
        del self.block.nodes[mark.nodes :]
        self.block.computed = dict(mark.computed)
        self.block.refined, self.block.dead = dict(mark.refined), mark.dead
        self.names = dict(mark.names)
        for register in list(self.specials)[mark.specials :]:
            local = self.specials.pop(register).atom
            assert isinstance(local, Local)
            self.reserved.discard(local.name)
        del self.prologue[mark.specials :]

    # ---- locals ------------------------------------------------------------------------------------

    def unique(self, hint: str) -> str:
        """A name not yet used in the kernel, made from `hint`."""
        count = self.names.get(hint, 0)
        self.names[hint] = count + 1
        name = f"{hint}_{count}" if count else hint
        if name in self.reserved or (name in self.names if count else self._made(name)):
            return self.unique(hint)
        return name

    def _made(self, name: str) -> bool:
        """Whether `unique` may have made this name from another hint."""
        hint, _, number = name.rpartition("_")
        return number.isdecimal() and self.names.get(hint, 0) > int(number)

    def local(self, hint: str, dtype: DType, facts: Facts, loops: frozenset[int] = NO_LOOPS) -> Local:
        local = Local(self.unique(hint), dtype)
        self.facts[local.name] = facts
        self.loops[local.name] = loops
        self.moduli.pop(local.name, None)  # of a dropped attempt's local of this name
        self.wrapped.pop(local.name, None)
        return local

    def facts_of(self, local: Local) -> Facts:
        return self.blocks[-1].refined.get(local.name) or self.facts[local.name]

    def scalar_of(self, local: Local) -> Scalar:
        """A local as a value."""
        linear = Linear.of(local) if local.dtype.is_int else None
        return Scalar(local.dtype, self.facts_of(local), local, linear, self.loops.get(local.name, NO_LOOPS))

    def planned(self, expression: PlanExpr, dtype: DType, facts: Facts, hint: str) -> Scalar:
        """A value that the launch plan computes and the kernel takes as a parameter."""
        key = ("plan", dtype, expression)
        local = self.plans.get(key)
        if local is None:
            local = self.plans[key] = self.local(hint, dtype, facts)
            self.sources[local] = expression
        linear = Linear.of(local) if dtype.is_int else None
        return Scalar(dtype, self.facts_of(local), local, linear, plan=expression)

    # ---- operations --------------------------------------------------------------------------------

    def operate(
        self,
        row: Row,
        operands: tuple[Atom, ...],
        facts: Facts,
        *,
        hint: str = "t",
        params: tuple[tuple[str, int], ...] = (),
        loops: frozenset[int] = NO_LOOPS,
    ) -> Scalar:
        """The result of a row that computes one scalar. A pure one that is known already is not computed again."""
        key = (row.text, operands, params)
        known = self.block.computed.get(key) if row.pure else None
        if known is not None:
            return self.scalar_of(known)
        result = row.operands[0].dtype
        assert result is not None, row.text
        local = self.local(hint, result, facts, loops)
        self.emit(Op(row, (local, *operands), params, control=self.control, loc=self.loc))
        if row.pure:
            self.block.computed[key] = local
        return self.scalar_of(local)

    def issue(self, row: Row, operands: tuple[OperandValue, ...], **fields: Any) -> None:
        """An operation with whatever operands its row wants."""
        self.emit(Op(row, operands, control=self.control, loc=self.loc, **fields))

    def never_zero(self, atom: Atom) -> bool:
        """Whether an integer is known to differ from zero."""
        if isinstance(atom, Const):
            return atom.value != 0
        facts = self.facts_of(atom) if isinstance(atom, Local) else Facts()
        return (facts.lo is not None and facts.lo > 0) or (facts.hi is not None and facts.hi < 0)

    def unproven(self, op: Op) -> Op:
        """A pure operation without what was proven of its operands: it is to run where that need not hold."""
        result = op.operands[0]
        assert isinstance(result, Local)
        self.facts[result.name] = fact.of_type(result.dtype, self.facts[result.name].uniformity)
        return changed(op, params=tuple(param for param in op.params if param[0] not in PROOFS))

    def special(self, register: str, hint: str, facts: Facts) -> Scalar:
        """A special register, read once where the kernel begins: there all threads are together."""
        found = self.specials.get(register)
        if found is None:
            row = SPECIAL[register]
            local = Local(hint if hint not in self.names else self.unique(hint), dtypes.int32)
            self.names.setdefault(local.name, 1)
            self.reserved.add(local.name)
            self.facts[local.name] = facts
            self.prologue.append(Op(row, (local,), self.thread_params, loc=self.loc))
            found = self.specials[register] = self.scalar_of(local)
        return found

    # ---- integer sums ------------------------------------------------------------------------------

    def linear_facts(self, linear: Linear) -> Facts:
        if linear.constant == 0 and len(linear.terms) == 1:
            local, factor = linear.terms[0]
            facts = self.facts_of(local)
            if factor == 1 and facts.multiple:  # most sums are a local by itself
                return facts
        return fact.weighted_sum(linear.constant, [(self.facts_of(local), factor) for local, factor in linear.terms])

    def linear_loops(self, linear: Linear) -> frozenset[int]:
        found = NO_LOOPS
        for local, _ in linear.terms:
            found |= self.loops.get(local.name, NO_LOOPS)
        return found

    def modular(self, linear: Linear) -> Linear:
        """The sum with what is known of its terms modulo 2**bits put in: good for differences, not for bounds."""
        total = Linear((), linear.constant)
        for local, coefficient in linear.terms:
            total = total.plus(self.wrapped.get(local.name) or Linear.of(local), coefficient)
        return total

    def integer(self, dtype: DType, linear: Linear, known: Facts | None = None) -> Scalar:
        """The sum as a value of `dtype`, which the caller knows to hold it; no statement is written yet."""
        if not linear.terms:
            return constant(dtype, linear.constant)
        facts = self.linear_facts(linear)
        return self.valued(dtype, linear, facts if known is None else facts.meet(known))

    def valued(self, dtype: DType, linear: Linear, facts: Facts) -> Scalar:
        """`integer` for a caller who has worked out what is known of the sum."""
        only = facts.constant
        if only is not None:
            return Scalar(dtype, facts, Const(only, dtype), Linear((), only))
        return Scalar(dtype, facts, self._ready(dtype, linear), linear, self.linear_loops(linear))

    def _ready(self, dtype: DType, linear: Linear) -> Atom | None:
        """The atom that already holds the sum, if there is one."""
        if not linear.terms:
            return Const(linear.constant, dtype)
        (local, coefficient), *more = linear.terms
        if not more and coefficient == 1 and linear.constant == 0 and local.dtype == dtype:
            return local
        return self.block.computed.get((dtype, linear.key, linear.constant))

    def atom(self, scalar: Scalar, hint: str = "t") -> Atom:
        """Where the scalar is, after writing the statements that compute it if none has yet."""
        if scalar.atom is not None:
            return scalar.atom
        assert scalar.linear is not None
        return self.materialize(scalar.dtype, scalar.linear, hint)

    def materialize(self, dtype: DType, linear: Linear, hint: str = "t") -> Atom:
        """Compute a sum: uniform terms first, so that what all lanes share is computed apart from what differs."""
        ready = self._ready(dtype, linear)
        if ready is not None:
            return ready
        terms = sorted(linear.terms, key=lambda term: (self.facts_of(term[0]).uniformity, term[1] < 0))
        total: Scalar | None = None
        for index, (local, coefficient) in enumerate(terms):
            last = index == len(terms) - 1 and not linear.constant
            term, op = (local, abs(coefficient)), "add" if total is None or coefficient > 0 else "sub"
            value = self._product(
                dtype, term, hint if last and total is None else "t", coefficient < 0 and total is None
            )
            total = value if total is None else self._combine(op, total, value, hint if last else "t")
        assert total is not None
        if linear.constant:
            op = "add" if linear.constant > 0 else "sub"
            total = self._combine(op, total, constant(dtype, abs(linear.constant)), hint)
        assert isinstance(total.atom, Local)
        self.block.computed[dtype, linear.key, linear.constant] = total.atom
        return total.atom

    def _product(self, dtype: DType, term: tuple[Local, int], hint: str, negative: bool) -> Scalar:
        local, factor = term
        value = self.widen(local, dtype, hint)
        factor = -factor if negative else factor
        return value if factor == 1 else self._combine("mul", value, constant(dtype, factor), hint)

    def _combine(self, op: str, a: Scalar, b: Scalar, hint: str) -> Scalar:
        facts = fact.TRANSFER[op](a.facts, b.facts)
        fits = facts.fits(a.dtype)
        row = ARITHMETIC[op, a.dtype.name]
        assert a.atom is not None and b.atom is not None
        return self.operate(
            row,
            (a.atom, b.atom),
            facts if fits else fact.of_type(a.dtype, facts.uniformity),
            hint=hint,
            params=(("nowrap", 1),) if fits and a.dtype.signed else (),
            loops=a.loops | b.loops,
        )

    def widen(self, local: Local, dtype: DType, hint: str = "t") -> Scalar:
        """An integer local in another integer type that the caller knows to hold it."""
        value = self.scalar_of(local)
        if local.dtype == dtype:
            return value
        row = CONVERT[dtype.name, local.dtype.name]
        return self.operate(row, (local,), value.facts, hint=hint, loops=value.loops)
