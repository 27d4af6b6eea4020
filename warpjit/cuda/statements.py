"""The statements of the IR as C++, one handler for each node type, and the place in the user's program of each line.

Unrolling is left to the compiler, which makes addresses constants in short loops of static length and keeps several
loads in flight in others. The exception are loops that wait for other threads or copies, unless they are short: nvcc
and ptxas unroll them four times each where the length is known at run time only (16 copies of two barriers and a
load), and wholly where it is static (64 copies), which gains nothing, since no iteration can overlap the one before.
A kernel that wants its pipeline unrolled says so in the language, and the tracer expands it. Long bodies are left alone
by themselves: a GEMM's main loop of 16 or more mma has the same SASS with the mark and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from warpjit.cuda.issues import issue_statements
from warpjit.cuda.operands import Texts
from warpjit.cuda.scalars import c_type
from warpjit.errors import NOWHERE, InstructionError, Loc
from warpjit.ir.nodes import (
    Allocate,
    Assign,
    Assume,
    Break,
    Const,
    Continue,
    Declare,
    For,
    If,
    Local,
    Node,
    Op,
    Return,
    Slot,
    While,
)
from warpjit.ir.walk import every
from warpjit.isa.row import BarrierSync, Row, WaitGroup, WaitUntil

INDENT = "    "
REGISTERS_A_LINE = 16


class Statements:
    """The lines of one kernel's body under construction, each with its place."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.lines: list[tuple[str, Loc]] = []
        self.declared: list[set[str]] = [set()]  # the names of locals, block by block
        self.depth = 1

    def write(self, text: str, loc: Loc = NOWHERE) -> None:
        self.lines.append((text if text.startswith("#") else INDENT * self.depth + text, loc))

    def fresh(self, local: Local) -> bool:
        """Whether `local` has no declaration that reaches here; from now on it has one in this block."""
        for block in self.declared:
            if local.name in block:
                return False
        self.declared[-1].add(local.name)
        return True

    @contextmanager
    def block(self) -> Iterator[None]:
        """The inside of braces."""
        self.depth += 1
        self.declared.append(set())
        yield
        self.declared.pop()
        self.depth -= 1

    def nodes(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            _WRITE[type(node)](self, node)

    def body(self, nodes: tuple[Node, ...]) -> None:
        with self.block():
            self.nodes(nodes)


# ---- operations and declarations ---------------------------------------------------------------------


def _op(out: Statements, node: Op) -> None:
    if not isinstance(node.row, Row):
        raise InstructionError(f"{node.row.text} is not a row of the instruction table")
    try:
        statements = issue_statements(out.texts, node, node.row, out.fresh)
    except InstructionError as error:
        raise InstructionError.at(str(error), node.loc) from error
    for statement in statements:
        if statement:
            out.write(statement, node.loc)


def _declare(out: Statements, node: Declare) -> None:
    out.fresh(node.local)
    out.write(f"{c_type(node.local.dtype)} {out.texts.local(node.local)};", node.loc)


def _assign(out: Statements, node: Assign) -> None:
    defines = f"{c_type(node.local.dtype)} " if out.fresh(node.local) else ""
    out.write(f"{defines}{out.texts.local(node.local)} = {out.texts.atom(node.value)};", node.loc)


def _assume(out: Statements, node: Assume) -> None:
    if not isinstance(node.condition, Const):
        out.write(f"__builtin_assume({out.texts.atom(node.condition)});", node.loc)


def _allocate(out: Statements, node: Allocate) -> None:
    names = out.texts.registers(node.registers)
    for start in range(0, len(names), REGISTERS_A_LINE):
        some = ", ".join(names[start : start + REGISTERS_A_LINE])
        out.write(f"{c_type(node.registers.word)} {some};", node.loc)


# ---- control -----------------------------------------------------------------------------------------


def _for(out: Statements, node: For) -> None:
    name, stop = out.texts.local(node.variable), out.texts.atom(node.stop)
    first = f"{c_type(node.variable.dtype)} {name} = {out.texts.atom(node.start)}"
    if isinstance(node.stop, Slot) or node.stop in _assigned(node.body):
        # Python evaluates the end of a range once.
        kept = out.texts.namer.name("stop", f"{node.variable.name}_stop")
        first, stop = f"{first}, {kept} = {stop}", kept
    compare, step = ("<", f"{name} += {node.step}") if node.step > 0 else (">", f"{name} -= {-node.step}")
    if _waits(node.body) and not _is_short(node):
        out.write("#pragma unroll 1", node.loc)
    out.write(f"for ({first}; {name} {compare} {stop}; {step}) {{", node.loc)
    with out.block():
        out.fresh(node.variable)
        out.nodes(node.body)
    out.write("}", node.loc)


SHORT = 4
"""Iterations up to which the compiler may unroll a loop that waits."""


def _is_short(node: For) -> bool:
    if not (isinstance(node.start, Const) and isinstance(node.stop, Const)):
        return False
    return len(range(int(node.start.value), int(node.stop.value), node.step)) <= SHORT


def _while(out: Statements, node: While) -> None:
    out.write("for (;;) {", node.loc)
    with out.block():
        out.nodes(node.head)
        if not (isinstance(node.condition, Const) and node.condition.value):
            out.write(f"if (!{out.texts.atom(node.condition)}) break;", node.loc)
        out.nodes(node.body)
    out.write("}", node.loc)


def _if(out: Statements, node: If) -> None:
    out.write(f"if ({out.texts.atom(node.condition)}) {{", node.loc)
    out.body(node.then)
    if node.orelse:
        out.write("} else {", node.loc)
        out.body(node.orelse)
    out.write("}", node.loc)


def _leave(word: str) -> Callable[[Statements, Break | Continue | Return], None]:
    return lambda out, node: out.write(f"{word};", node.loc)


_WRITE: dict[type, Callable[[Statements, Any], None]] = {
    Op: _op,
    Declare: _declare,
    Assign: _assign,
    Assume: _assume,
    Allocate: _allocate,
    For: _for,
    While: _while,
    If: _if,
    Break: _leave("break"),
    Continue: _leave("continue"),
    Return: _leave("return"),
}


# ---- what a body does --------------------------------------------------------------------------------


def _assigned(nodes: tuple[Node, ...]) -> set[Local]:
    """The locals that the statements assign."""
    return {node.local for node in every(nodes) if isinstance(node, Assign)}


def _waits(nodes: tuple[Node, ...]) -> bool:
    """Whether a statement blocks until other threads have come or copies have arrived."""
    rows = (node.row for node in every(nodes) if isinstance(node, Op))
    return any(isinstance(row, Row) and isinstance(row.effect, BarrierSync | WaitGroup | WaitUntil) for row in rows)
