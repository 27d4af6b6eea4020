"""Drops what a kernel computes and never uses.

Kept are: operations that are not pure, assumptions, returns, `while` loops (which may not end), and whatever these
read, with the control statements around all of it. What is gone: unused pure operations, carried locals that are only
assigned, registers that nothing touches, `if` and `for` that are left empty. Order plays no part: a local that any kept
statement reads keeps all its definitions. Parameters and shared buffers stay as they are. The coordinates that an
address carries for findings count as read: the simulator reads them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

from warpjit.ir.nodes import (
    Address,
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
    OperandValue,
    Return,
    Slot,
    Tile,
    While,
)
from warpjit.ir.walk import atoms, blocks, with_blocks
from warpjit.isa.pairing import paired, row_of

Key: TypeAlias = tuple[str, int]
"""A scalar that can be written: a local (name, -1), or one register (name of the registers, index)."""


def prune(kernel: Kernel, *, accesses: bool = True) -> Kernel:
    """`kernel` without what has no effect. Takes time in proportion to its size; pruning twice changes nothing.

    Without `accesses` the coordinates that addresses carry go too: for a back end that finds nothing.
    """
    if not accesses:
        kernel = replace(kernel, body=_bare_block(kernel.body))
    marks = _Marks(kernel)
    body = marks.sweep(kernel.body)
    return replace(kernel, body=body)


# ---- what nodes read and write ------------------------------------------------------------------------


# Asked for at every node and scalar: a union would be made anew each time.
_WRITABLE = (Local, Slot)
_PLACES = (Address, Tile)
_ROOTS = (Assume, Return, While)
_JUMPS = (Break, Continue)
_LOOPS = (For, While)


def _keys(atoms: Iterable[Atom | None]) -> list[Key]:
    return [
        (atom.name, -1) if isinstance(atom, Local) else (atom.registers.name, atom.index)
        for atom in atoms
        if isinstance(atom, _WRITABLE)
    ]


def _op_reads(op: Op) -> list[Key]:
    found = _keys([op.predicate])
    for operand, value in paired(op):
        if operand.reads or isinstance(value, _PLACES):
            found += _keys(atoms(value))
    return found


def _op_writes(op: Op) -> list[Key]:
    found: list[Key] = []
    for operand, value in paired(op):
        if operand.writes and not isinstance(value, _PLACES):
            found += _keys(atoms(value))
    return found


_READS: dict[type[Any], Callable[[Any], Iterable[Key]]] = {
    Op: _op_reads,
    Assign: lambda node: _keys([node.value]),
    Assume: lambda node: _keys([node.condition]),
    For: lambda node: _keys([node.start, node.stop]),
    While: lambda node: _keys([node.condition]),
    If: lambda node: _keys([node.condition]),
}


def reads(node: Node) -> Iterable[Key]:
    """What `node` itself reads, not the statements in it."""
    return _READS.get(type(node), lambda _: ())(node)


def writes(node: Node) -> Iterable[Key]:
    """What `node` itself writes."""
    if isinstance(node, Assign):
        return _keys([node.local])
    if isinstance(node, For):
        return _keys([node.variable])
    return _op_writes(node) if isinstance(node, Op) else ()


def _bare_block(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(_bare(node) for node in nodes)


def _bare(node: Node) -> Node:
    """The node with addresses that do not say which element they mean."""
    if not isinstance(node, Op):
        return with_blocks(node, _bare_block)
    if not any(isinstance(value, _PLACES) for value in node.operands):
        return node
    return replace(node, operands=tuple(_bare_operand(value) for value in node.operands))


def _bare_operand(value: OperandValue) -> OperandValue:
    if isinstance(value, Address):
        return Address(value.buffer, value.offset, value.constant)
    if isinstance(value, Tile):
        return Tile(tuple(Address(each.buffer, each.offset, each.constant) for each in value.addresses))
    return value


def _is_root(node: Node) -> bool:
    """Whether `node` has an effect by itself. A jump has one if its loop does."""
    return isinstance(node, _ROOTS) or (isinstance(node, Op) and not row_of(node).pure)


# ---- mark and sweep -----------------------------------------------------------------------------------


class _Marks:
    """Which nodes are kept, by identity: the same object may stand in several places."""

    def __init__(self, kernel: Kernel):
        self.around: dict[int, list[Node]] = defaultdict(list)
        self.definitions: dict[Key, list[Node]] = defaultdict(list)
        self.written: dict[int, Iterable[Key]] = {}
        self.jumps: dict[int, list[Node]] = defaultdict(list)
        self.kept: set[int] = set()
        self.needed: set[Key] = set()
        self.touched: set[str] = set()
        self.queue: list[Node] = []
        self._index(kernel.body, None, None)
        while self.queue:
            self._follow(self.queue.pop())

    def _index(self, nodes: Iterable[Node], parent: Node | None, loop: Node | None) -> None:
        for node in nodes:
            if parent is not None:
                self.around[id(node)].append(parent)
            written = self.written[id(node)] = writes(node)
            for key in written:
                self.definitions[key].append(node)
            if isinstance(node, _JUMPS) and loop is not None:
                self.jumps[id(loop)].append(node)
            if _is_root(node):
                self._keep(node)
            for block in blocks(node):
                self._index(block, node, node if isinstance(node, _LOOPS) else loop)

    def _keep(self, node: Node) -> None:
        if id(node) not in self.kept:
            self.kept.add(id(node))
            self.queue.append(node)

    def _follow(self, node: Node) -> None:
        """Keep what a kept node depends on."""
        new = set(reads(node)) - self.needed
        self.needed |= new
        for key in new:
            for definition in self.definitions[key]:
                self._keep(definition)
        self.touched.update(name for name, _ in chain(new, self.written[id(node)]))
        for other in (*self.around[id(node)], *self.jumps[id(node)]):
            self._keep(other)

    def sweep(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(with_blocks(node, self.sweep) for node in nodes if self._stays(node))

    def _stays(self, node: Node) -> bool:
        if isinstance(node, Declare):
            return node.local.name in self.touched
        if isinstance(node, Allocate):
            return node.registers.name in self.touched
        return id(node) in self.kept
