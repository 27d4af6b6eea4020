"""The text of a kernel: every statement and operand once, and nothing that differs printed alike."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace

import pytest

from warpjit.errors import Frame, Loc
from warpjit.ir.dtypes import bfloat16, bool_, float32, int32, int64, uint32
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import (
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
    GlobalBuffer,
    If,
    Kernel,
    Launch,
    Local,
    Node,
    Op,
    Parameter,
    PlanExpr,
    Registers,
    Return,
    SharedBuffer,
    Slot,
    Tile,
    While,
)
from warpjit.ir.printer import show, show_expression, show_nodes


@dataclass(frozen=True)
class Named:
    """A row as the IR sees it."""

    text: str


INDEX, N, X, P = Local("i", int32), Local("n", int32), Local("x", float32), Local("p", bool_)
A = GlobalBuffer("A", bfloat16, 0, 16)
S = SharedBuffer("tile", 4096, 128)
ACC = Registers("acc", uint32, 8)
ZERO, ONE = Const(0, int32), Const(1, int32)


def slots(first: int, last: int) -> tuple[Slot, ...]:
    return tuple(Slot(ACC, index) for index in range(first, last))


def kernel() -> Kernel:
    loop: tuple[Node, ...] = (
        Op(Named("load.global.bf16"), (X, Address(A, INDEX, -4))),
        Op(
            Named("mma"),
            (Fragment((slots(0, 4), slots(4, 8))), Tile((Address(S), Address(S, INDEX, 16))), None),
            params=(("n", 2),),
            issues=2,
            predicate=P,
            control=Uniformity.WARP,
            scope="warp",
        ),
        If(P, (Break(),), (Continue(),), Uniformity.WARP),
        If(P, (Return(),)),
    )
    body: tuple[Node, ...] = (
        Declare(X),
        Assign(X, Const(-0.0, float32)),
        Allocate(ACC),
        For(INDEX, ZERO, N, 2, loop),
        While((Op(Named("add.s32"), (INDEX, INDEX, ONE)),), P, (Assume(P),), Uniformity.LANE),
        Op(Named("bar.sync"), ()),
    )
    return Kernel(
        name="k",
        parameters=(Parameter(A, ("arg", 0)), Parameter(N, ("//", ("+", ("size", 0, 1), 15), 16))),
        shared=(S,),
        body=body,
        launch=Launch((("size", 0, 0), 1, 1), (128, 1, 1)),
        facts={"n": Facts(0, None, 4, Uniformity.GRID)},
    )


EXPECTED = """\
kernel k
    launch grid=(size(0, 0), 1, 1) block=(128, 1, 1)
    param A: bfloat16 * = arg(0), align 16
    param n: int32 = (size(0, 1) + 15) // 16
    shared tile: 4096 bytes, align 128
    declare x: float32
    x = -0.0
    allocate acc: uint32[8]
    for i: int32 in range(0, n, 2):
        load.global.bf16 x, [A + i - 4]
        @p mma acc[0:4] | acc[4:8], [tile] | [tile + i + 16], _; n=2; issues=2; scope=warp; control=warp
        if p:  # warp
            break
        else:
            continue
        if p:  # lane
            return
    while:  # lane
        add.s32 i, i, 1
        leave unless p
        assume p
    bar.sync
"""


def test_a_kernel_with_everything_in_it() -> None:
    assert show(kernel()) == EXPECTED


def test_facts_on_request() -> None:
    assert show(kernel(), facts=True) == EXPECTED + "    known n: 0.., multiple of 4, the same for the whole grid\n"


def test_statements_alone() -> None:
    assert show_nodes(kernel().body[:2]) == "declare x: float32\nx = -0.0"
    assert show_nodes(kernel().body) == textwrap.dedent("\n".join(EXPECTED.splitlines()[5:]))


def test_places_in_the_source_are_not_shown() -> None:
    where = Loc((Frame("k.py", "k", 3, 0, 5, "def k():"),))
    assert show(replace(kernel(), loc=where)) == EXPECTED


def test_what_a_launch_may_add() -> None:
    launch = Launch((1, 1, 1), (32, 1, 1), (2, 1, 1), max_registers=128, min_blocks_per_sm=2)
    text = show(replace(kernel(), launch=launch, contract=False, strict=True))
    assert text.splitlines()[1].strip() == (
        "launch grid=(1, 1, 1) block=(32, 1, 1) cluster=(2, 1, 1) max_registers=128 min_blocks_per_sm=2 "
        "contract=False strict=True"
    )


def test_what_a_buffer_may_add() -> None:
    parameters = (Parameter(replace(A, wide=True), ("arg", 0)), Parameter(replace(A, noalias=True), ("arg", 0)))
    lines = show(replace(kernel(), parameters=parameters)).splitlines()
    assert [line.partition("align ")[2] for line in lines[2:4]] == ["16, wide", "16, noalias"]


@pytest.mark.parametrize(
    ("fragment", "text"),
    [
        ((slots(2, 5),), "acc[2:5]"),
        ((slots(2, 3),), "{acc[2]}"),
        ((slots(0, 2)[::-1],), "{acc[1], acc[0]}"),
        (((Slot(ACC, 0), Slot(replace(ACC, name="b"), 1)),), "{acc[0], b[1]}"),
        (((ONE, X),), "{1, x}"),
        (((),), "{}"),
    ],
)
def test_registers(fragment: tuple[tuple[Slot, ...], ...], text: str) -> None:
    assert show_nodes([Op(Named("op"), (Fragment(fragment),))]) == f"op {text}"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (1, "1"),
        (True, "True"),
        (1.0, "1.0"),
        (("stride", 2, 1), "stride(2, 1)"),
        (("-", ("arg", 0)), "- arg(0)"),
        (("-", 1, ("-", 2, 3)), "1 - (2 - 3)"),
        (("not", ("<", 1, 2)), "not (1 < 2)"),
        (("min", ("+", 1, 2), 3), "min((1 + 2), 3)"),
        (("select", ("arg", 0), 1, ("select", ("arg", 1), 2, 3)), "1 if arg(0) else (2 if arg(1) else 3)"),
    ],
)
def test_expressions(expression: PlanExpr, text: str) -> None:
    assert show_expression(expression) == text


def test_what_differs_is_shown() -> None:
    op = Op(Named("op"), (INDEX, N))
    others = [
        replace(op, row=Named("other")),
        replace(op, operands=(INDEX, Const(1, int32))),
        replace(op, operands=(INDEX, Const(True, bool_))),
        replace(op, operands=(INDEX, Const(1.0, float32))),
        replace(op, operands=(INDEX, None)),
        replace(op, params=(("a", 1),)),
        replace(op, issues=3),
        replace(op, predicate=P),
        replace(op, scope="cta"),
        replace(op, control=Uniformity.CTA),
        Assign(INDEX, N),
        Declare(INDEX),
        Declare(Local("i", int64)),
        For(INDEX, N, N, 1, ()),
        For(INDEX, N, N, 2, ()),
        For(Local("i", int64), N, N, 2, ()),
        For(INDEX, N, N, 1, (Break(),)),
        If(P, ()),
        If(P, (), (), Uniformity.CTA),
        Allocate(ACC),
        Allocate(replace(ACC, count=4)),
    ]
    assert len({show_nodes([node]) for node in [op, *others]}) == len(others) + 1
