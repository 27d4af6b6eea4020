"""What pruning drops and what it keeps, by example and by running random kernels before and after."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpjit.ir.dtypes import bool_, int32, uint32
from warpjit.ir.nodes import (
    Access,
    Address,
    Allocate,
    Assign,
    Assume,
    Break,
    Const,
    Continue,
    Declare,
    For,
    Fragment,
    If,
    Kernel,
    Launch,
    Local,
    Node,
    Op,
    Registers,
    Return,
    SharedBuffer,
    Slot,
    Tile,
    While,
)
from warpjit.ir.printer import show_nodes
from warpjit.isa.row import Cxx, Kind, Mode, Needs, Operand, Row
from warpjit.passes.prune import prune

NEEDS = Needs("everywhere", lambda target: True)


def row(text: str, *operands: Operand, pure: bool = False) -> Row:
    code = Cxx(" ".join("{" + operand.name + "}" for operand in operands))
    return Row(text, operands, code, None, NEEDS, pure=pure)


def scalar(name: str, mode: Mode = Mode.READ, optional: bool = False) -> Operand:
    return Operand(name, Kind.SCALAR, mode, dtype=int32, optional=optional)


def place(name: str, mode: Mode = Mode.READ) -> Operand:
    return Operand(name, Kind.ADDRESS, mode, dtype=int32, space="shared", bytes=4)


ADD = row("add", scalar("d", Mode.WRITE), scalar("a"), scalar("b"), pure=True)
KEEP = row("keep", scalar("a"), Operand("n", Kind.IMMEDIATE), scalar("b", optional=True))
READ = row("read", scalar("d", Mode.WRITE), place("src"))
WRITE = row("write", place("dst", Mode.WRITE), scalar("a"))
BUMP = row("bump", scalar("d", Mode.UPDATE), pure=True)

W, X, Y, Z = (Local(name, int32) for name in "wxyz")
P = Local("p", bool_)
R = Registers("r", uint32, 4)
ONE, TWO = Const(1, int32), Const(2, int32)
SHARED = SharedBuffer("s", 64, 16)


def add(d: Any, a: Any, b: Any = ONE, **fields: Any) -> Op:
    return Op(ADD, (d, a, b), **fields)


def keep(a: Any, b: Any = None) -> Op:
    return Op(KEEP, (a, None, b), (("n", 1),))


def kernel(*body: Node) -> Kernel:
    return Kernel("k", (), (SHARED,), body, Launch((1, 1, 1), (32, 1, 1)))


def pruned(*body: Node) -> tuple[Node, ...]:
    once = prune(kernel(*body))
    assert prune(once) == once
    return once.body


GONE: list[tuple[Node, ...]] = [
    (add(X, ONE),),
    (add(X, ONE), add(Y, X), add(Z, X, Y)),
    (Declare(X), Assign(X, ONE)),
    (Declare(X), Assign(X, ONE), For(Y, ONE, TWO, 1, (add(Z, X), Assign(X, Z)))),
    (If(P, (add(X, ONE),), (If(P, ()),)),),
    (For(Y, ONE, TWO, 1, (If(P, (Break(),)), Continue())),),
    (Allocate(R), add(Slot(R, 0), ONE), add(X, Slot(R, 0))),
    (add(X, ONE), Op(BUMP, (X,))),
]


@pytest.mark.parametrize("body", GONE, ids=range(len(GONE)))
def test_what_is_never_used_is_gone(body: tuple[Node, ...]) -> None:
    assert pruned(*body) == ()


KEPT: list[tuple[Node, ...]] = [
    (add(X, ONE), keep(X)),
    (add(X, ONE), keep(ONE, X)),
    (add(X, ONE), add(Y, X), keep(Y)),
    (add(X, ONE), Op(BUMP, (X,)), keep(X)),
    (Op(READ, (X, Address(SHARED))),),
    (add(X, ONE), Op(READ, (Y, Address(SHARED, X)))),
    (add(X, ONE), Op(WRITE, (Address(SHARED, X), ONE))),
    (add(X, ONE), Op(WRITE, (Tile((Address(SHARED), Address(SHARED, X))), ONE))),
    (add(X, ONE), Op(WRITE, (Address(SHARED, None, 4, Access("t", (X,), (ONE,))), ONE))),
    (add(P, ONE), Op(WRITE, (Address(SHARED), ONE), predicate=P)),
    (add(P, ONE), Assume(P)),
    (Declare(X), Assign(X, ONE), For(Y, ONE, TWO, 1, (add(Z, X), Assign(X, Z))), keep(X)),
    (add(X, ONE), For(Y, ONE, X, 1, (keep(Y),))),
    (add(P, ONE), If(P, (), (keep(ONE),))),
    (add(P, ONE), If(P, (Return(),)), keep(ONE)),
    (add(P, ONE), For(Y, ONE, TWO, 1, (If(P, (Break(),)), keep(ONE)))),
    (add(P, ONE), For(Y, ONE, TWO, 1, (If(P, (Continue(),)), keep(ONE)))),
    (add(P, ONE), While((), P, ())),
    (While((add(P, ONE),), P, (If(P, (Break(),)),)),),
    (Allocate(R), add(Slot(R, 0), ONE), keep(Slot(R, 0))),
    (Allocate(R), Op(READ, (Slot(R, 1), Address(SHARED)))),
    (Allocate(R), add(Slot(R, 3), ONE), keep(Fragment(((ONE, Slot(R, 3)),)))),
]


@pytest.mark.parametrize("body", KEPT, ids=range(len(KEPT)))
def test_what_has_an_effect_is_kept_with_what_it_reads(body: tuple[Node, ...]) -> None:
    assert pruned(*body) == body


def test_only_the_registers_that_are_read_keep_their_values() -> None:
    first, second = add(Slot(R, 0), ONE), add(Slot(R, 1), ONE)
    assert pruned(Allocate(R), first, second, keep(Slot(R, 1))) == (Allocate(R), second, keep(Slot(R, 1)))


def test_an_unused_result_of_an_effect_keeps_its_declaration() -> None:
    body = (Declare(X), Op(READ, (X, Address(SHARED))))
    assert pruned(*body) == body


def test_dead_parts_of_live_statements_go() -> None:
    loop = For(Y, ONE, TWO, 1, (add(X, Y), If(P, (add(Z, Y),), (keep(Y),))))
    assert pruned(loop) == (For(Y, ONE, TWO, 1, (If(P, (), (keep(Y),)),)),)


def test_a_jump_of_an_inner_loop_that_goes_goes_with_it() -> None:
    inner = For(Z, ONE, TWO, 1, (Break(),))
    assert pruned(For(Y, ONE, TWO, 1, (inner, keep(Y)))) == (For(Y, ONE, TWO, 1, (keep(Y),)),)


def test_one_object_in_two_places() -> None:
    shared = add(X, ONE)
    body = (If(P, (shared,)), If(P, (), (shared,)), keep(X))
    assert pruned(*body) == body


def test_the_rest_of_the_kernel_stays() -> None:
    before = kernel(add(X, ONE))
    after = prune(before)
    assert (after.shared, after.launch, after.parameters, after.name) == ((SHARED,), before.launch, (), "k")


def test_a_long_chain_goes_at_once() -> None:
    locals_ = [Local(f"t{n}", int32) for n in range(20_000)]
    chain = [add(locals_[n + 1], locals_[n]) for n in range(len(locals_) - 1)]
    assert pruned(*chain) == ()
    assert len(pruned(*chain, keep(locals_[-1]))) == len(chain) + 1


# ---- against execution --------------------------------------------------------------------------------


class Leave(Exception):
    """A jump."""


class Machine:
    """Runs a kernel of the rows above for one thread; `trace` is what can be observed."""

    def __init__(self) -> None:
        self.values: dict[Any, int] = {}
        self.trace: list[Any] = []
        self.fuel = 40

    def get(self, atom: Any) -> int:
        return int(atom.value) if isinstance(atom, Const) else self.values.get(atom, 0)

    def run(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            getattr(self, type(node).__name__.lower())(node)

    def op(self, node: Op) -> None:
        if node.row is ADD:
            d, a, b = node.operands
            self.values[d] = (self.get(a) * 3 + self.get(b)) % 7
        elif node.row is BUMP:
            self.values[node.operands[0]] = self.get(node.operands[0]) + 1
        else:
            self.trace.append(self.get(node.operands[0]))

    def assign(self, node: Assign) -> None:
        self.values[node.local] = self.get(node.value)

    def assume(self, node: Assume) -> None:
        self.trace.append(("assume", self.get(node.condition)))

    def if_(self, node: If) -> None:
        self.run(node.then if self.get(node.condition) % 2 else node.orelse)

    def declare(self, node: Declare) -> None:
        pass

    def break_(self, node: Node) -> None:
        raise Leave("break")

    def continue_(self, node: Node) -> None:
        raise Leave("continue")

    def return_(self, node: Node) -> None:
        raise Leave("return")

    def iteration(self, body: tuple[Node, ...]) -> bool:
        """Whether the loop goes on."""
        try:
            self.run(body)
        except Leave as jump:
            if jump.args[0] == "return":
                raise
            return jump.args[0] == "continue"
        return True

    def for_(self, node: For) -> None:
        for value in range(self.get(node.start), self.get(node.stop), node.step):
            self.values[node.variable] = value
            if not self.iteration(node.body):
                break

    def while_(self, node: While) -> None:
        while True:
            self.fuel -= 1
            if self.fuel < 0:
                raise Leave("return")
            self.run(node.head)
            if not self.get(node.condition) % 2 or not self.iteration(node.body):
                break


for statement in ("if", "break", "continue", "return", "for", "while"):
    setattr(Machine, statement, getattr(Machine, statement + "_"))


def observed(nodes: tuple[Node, ...]) -> list[Any]:
    machine = Machine()
    try:
        machine.run(nodes)
    except Leave:
        machine.trace.append("left")
    return machine.trace


LOCALS = st.sampled_from([W, X, Y, Z])
ATOMS = st.one_of(LOCALS, st.sampled_from([ONE, TWO, Const(5, int32)]))


def bodies(depth: int, loop: bool) -> st.SearchStrategy[tuple[Node, ...]]:
    simple: list[st.SearchStrategy[Node]] = [
        st.builds(add, LOCALS, ATOMS, ATOMS),
        st.builds(add, LOCALS, ATOMS, ATOMS),
        st.builds(lambda local: Op(BUMP, (local,)), LOCALS),
        st.builds(keep, ATOMS),
        st.builds(Assign, LOCALS, ATOMS),
        st.builds(Assume, ATOMS),
        st.just(Return()),
    ]
    if loop:
        simple += [st.just(Break()), st.just(Continue())]
    if depth:
        counters = st.sampled_from([Local("i", int32), Local("j", int32)])
        inner, looped = bodies(depth - 1, loop), bodies(depth - 1, True)
        simple += [
            st.builds(If, ATOMS, inner, inner),
            st.builds(For, counters, ATOMS, ATOMS, st.sampled_from([1, 2, -1]), looped),
            st.builds(While, bodies(0, False), ATOMS, looped),
        ]
    return st.lists(st.one_of(simple), max_size=5 if depth else 3).map(tuple)


@settings(max_examples=300, deadline=None)
@given(bodies(2, False))
def test_a_pruned_kernel_does_the_same(body: tuple[Node, ...]) -> None:
    after = prune(kernel(*body)).body
    assert observed(after) == observed(body), show_nodes(body)
    assert prune(kernel(*after)).body == after
