"""The tree of statements as flat code: a list of small instructions with jump targets.

A join (`Else`, `EndIf`, `LoopNext`, `LoopExit`, `Exit`) is where lanes that left a block come together again; `escape`
is the next join outside, for warps none of whose lanes go on. `splits` says that warps which leave early must not be
carried along with the others, because what follows may block. How the instructions run is `machine`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from warpjit.errors import NOWHERE, Loc
from warpjit.ir.nodes import (
    Allocate,
    Assign,
    Assume,
    Atom,
    Break,
    Continue,
    Declare,
    For,
    If,
    Kernel,
    Local,
    Node,
    Op,
    Return,
    While,
)
from warpjit.ir.walk import children
from warpjit.isa.row import BarrierSync, Participants, Row, WaitUntil


@dataclass
class Execute:
    """One operation. `blocks`: warps may have to wait at it."""

    op: Op
    blocks: bool


@dataclass
class Branch:
    """Lanes where `condition` holds go on, the others to `otherwise` (after the `Else` there)."""

    condition: Atom
    splits: bool
    loc: Loc
    otherwise: int = 0


@dataclass
class Else:
    """The end of the first arm; `end` is the `EndIf`."""

    end: int = 0


@dataclass
class EndIf:
    splits: bool
    escape: int = 0


@dataclass
class LoopEnter:
    """`variable` = `start` for a `For`; nothing for a `While`."""

    variable: Local | None = None
    start: Atom | None = None
    loc: Loc = NOWHERE


@dataclass
class ForTest:
    variable: Local
    stop: Atom
    step: int
    splits: bool
    loc: Loc
    exit: int = 0


@dataclass
class WhileTest:
    condition: Atom
    splits: bool
    loc: Loc
    exit: int = 0


@dataclass
class LoopNext:
    """The end of the body: steps the variable, goes back to the test."""

    variable: Local | None
    step: int
    test: int
    polls: bool  # the loop reads what other warps may change
    loc: Loc = NOWHERE


@dataclass
class LoopExit:
    splits: bool
    escape: int = 0


@dataclass
class Leave:
    """Break, Continue or Return of the active lanes."""

    how: str
    loc: Loc


@dataclass
class Exit:
    """The end of the kernel."""


Simple: TypeAlias = Declare | Assign | Assume | Allocate
Instruction: TypeAlias = (
    Execute | Branch | Else | EndIf | LoopEnter | ForTest | WhileTest | LoopNext | LoopExit | Leave | Exit | Simple
)


def blocks(node: Node) -> bool:
    """Whether a warp may have to wait for another inside this statement. A `while` that reads memory may spin."""
    if isinstance(node, While) and polls(node):
        return True
    if isinstance(node, Op):
        row = node.row
        assert isinstance(row, Row)
        return isinstance(row.effect, WaitUntil) or (
            isinstance(row.effect, BarrierSync) and row.participants is not Participants.WARP
        )
    return any(blocks(child) for child in children(node))


def returns(node: Node) -> bool:
    """Whether lanes may leave the kernel inside this statement."""
    return isinstance(node, Return) or any(returns(child) for child in children(node))


def polls(node: Node) -> bool:
    """Whether this statement reads an mbarrier, or memory, that other warps may change while it spins."""
    if isinstance(node, Op):
        row = node.row
        assert isinstance(row, Row)
        return any(operand.space and operand.reads for operand in row.operands)
    return any(polls(child) for child in children(node))


@dataclass
class Program:
    """Flat code; the last instruction is the `Exit`."""

    code: list[Instruction] = field(default_factory=list)


def linearise(kernel: Kernel) -> Program:
    """The kernel's body as flat code."""
    writer = _Writer(Program(), any(blocks(node) for node in kernel.body))
    ends: list[EndIf | LoopExit] = []
    writer.block(kernel.body, writer.kernel_blocks, ends)
    writer.program.code.append(Exit())
    writer.settle(ends, len(writer.program.code) - 1)
    return writer.program


@dataclass
class _Writer:
    """`ends` collects the joins of a block, whose escape is the end of that block; `waits`: the loop around may
    block."""

    program: Program
    kernel_blocks: bool

    def settle(self, ends: list[EndIf | LoopExit], escape: int) -> None:
        for end in ends:
            end.escape = escape

    def emit(self, instruction: Instruction) -> int:
        self.program.code.append(instruction)
        return len(self.program.code) - 1

    def block(self, body: tuple[Node, ...], waits: bool, ends: list[EndIf | LoopExit]) -> None:
        for node in body:
            if isinstance(node, If):
                self._if(node, waits, ends)
            elif isinstance(node, For | While):
                self._loop(node, ends)
            elif isinstance(node, Break | Continue | Return):
                self.emit(Leave(type(node).__name__, node.loc))
                return  # what follows in this block is never reached
            else:
                self.emit(Execute(node, blocks(node)) if isinstance(node, Op) else node)

    def _if(self, node: If, waits: bool, ends: list[EndIf | LoopExit]) -> None:
        branch = Branch(node.condition, blocks(node), node.loc)
        self.emit(branch)
        inner: list[EndIf | LoopExit] = []
        self.block(node.then, waits, inner)
        middle = Else()
        branch.otherwise = self.emit(middle)
        self.settle(inner, branch.otherwise)
        inner = []
        self.block(node.orelse, waits, inner)
        end = EndIf(waits or (returns(node) and self.kernel_blocks))
        middle.end = self.emit(end)
        self.settle(inner, middle.end)
        ends.append(end)

    def _loop(self, node: For | While, ends: list[EndIf | LoopExit]) -> None:
        waits = blocks(node)
        inner: list[EndIf | LoopExit] = []
        if isinstance(node, For):
            self.emit(LoopEnter(node.variable, node.start, node.loc))
            test: ForTest | WhileTest = ForTest(node.variable, node.stop, node.step, waits, node.loc)
            back = self.emit(test)
            step = LoopNext(node.variable, node.step, back, polls(node), node.loc)
        else:
            self.emit(LoopEnter())
            back = len(self.program.code)
            self.block(node.head, waits, inner)
            test = WhileTest(node.condition, waits, node.loc)
            self.emit(test)
            step = LoopNext(None, 0, back, polls(node), node.loc)
        self.block(node.body, waits, inner)
        self.settle(inner, self.emit(step))
        out = LoopExit(returns(node) and self.kernel_blocks)
        test.exit = self.emit(out)
        ends.append(out)
