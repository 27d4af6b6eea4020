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
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from warpjit.ir.nodes import (
    Address,
    Allocate,
    Assign,
    Assume,
    Atom,
    Break,
    Const,
    Continue,
    Declare,
    For,
    Fragment,
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
from warpjit.ir.walk import blocks, with_blocks
from warpjit.isa.pairing import paired, row_of
from warpjit.record import changed

Key: TypeAlias = str | tuple[str, int]
"""A scalar that can be written: a local by its name, or one register (name of the registers, index)."""


def prune(kernel: Kernel, *, accesses: bool = True) -> Kernel:
    """`kernel` without what has no effect. Takes time in proportion to its size; pruning twice changes nothing.

    Without `accesses` the coordinates that addresses carry go too: for a back end that finds nothing.
    """
    body = _Marks(kernel, _KEYS if accesses else _BARE_KEYS).sweep(kernel.body)
    return replace(kernel, body=body if accesses else _bare_block(body))


# ---- what nodes read and write ------------------------------------------------------------------------

Keys: TypeAlias = dict[type[Any], Callable[[Any], Iterable[Key]]]
"""By the type of an operand: what it names."""


def _of_atoms(values: Iterable[Atom]) -> list[Key]:
    return [key for atom in values for key in _KEYS[type(atom)](atom)]


def _of_fragment(value: Fragment) -> list[Key]:
    return _of_atoms(atom for issue in value.items for atom in issue)


def _of_offset(value: Address) -> Iterable[Key]:
    return _KEYS[type(value.offset)](value.offset)


def _of_address(value: Address) -> Iterable[Key]:
    """Its offset, and the coordinates and extents that it carries for findings."""
    if value.access is None:
        return _of_offset(value)
    return [*_of_offset(value), *_of_atoms(value.access.coordinates), *_of_atoms(value.access.shape)]


_KEYS: Keys = {
    Const: lambda value: (),
    Local: lambda value: (value.name,),
    Slot: lambda value: ((value.registers.name, value.index),),
    Fragment: _of_fragment,
    Address: _of_address,
    Tile: lambda value: [key for address in value.addresses for key in _of_address(address)],
    type(None): lambda value: (),
}
_BARE_KEYS: Keys = {
    **_KEYS,
    Address: _of_offset,
    Tile: lambda value: [key for address in value.addresses for key in _of_offset(address)],
}
_PLACES = (Address, Tile)
"""Of these the address is read, whatever happens to the memory there."""


def _of_op(op: Op, keys: Keys) -> tuple[list[Key], list[Key]]:
    """What an operation reads, and what it writes."""
    reads = [] if op.predicate is None else list(keys[type(op.predicate)](op.predicate))
    writes: list[Key] = []
    for operand, value in paired(op):
        kind = type(value)
        if kind is Const or value is None:
            continue
        found = keys[kind](value)
        if operand.reads or kind in _PLACES:
            reads += found
        if operand.writes and kind not in _PLACES:
            writes += found
    return reads, writes


_READS: dict[type[Any], Callable[[Any], tuple[Atom, ...]]] = {
    Assign: lambda node: (node.value,),
    Assume: lambda node: (node.condition,),
    For: lambda node: (node.start, node.stop),
    While: lambda node: (node.condition,),
    If: lambda node: (node.condition,),
}
_WRITES: dict[type[Any], Callable[[Any], tuple[Atom, ...]]] = {
    Assign: lambda node: (node.local,),
    For: lambda node: (node.variable,),
}


def _nothing(node: Node) -> tuple[Atom, ...]:
    return ()


def _named(node: Node, keys: Keys) -> tuple[list[Key], list[Key]]:
    """What `node` itself reads, and what it writes: not the statements in it."""
    if isinstance(node, Op):
        return _of_op(node, keys)
    kind = type(node)
    return _of_atoms(_READS.get(kind, _nothing)(node)), _of_atoms(_WRITES.get(kind, _nothing)(node))


# ---- addresses without coordinates --------------------------------------------------------------------


def _bare_block(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(_bare(node) for node in nodes)


def _bare(node: Node) -> Node:
    """The node with addresses that do not say which element they mean."""
    if not isinstance(node, Op):
        return with_blocks(node, _bare_block)
    if not any(isinstance(value, _PLACES) for value in node.operands):
        return node
    return changed(node, operands=tuple(_bare_operand(value) for value in node.operands))


def _bare_operand(value: OperandValue) -> OperandValue:
    if isinstance(value, Address):
        return Address(value.buffer, value.offset, value.constant)
    if isinstance(value, Tile):
        return Tile(tuple(Address(each.buffer, each.offset, each.constant) for each in value.addresses))
    return value


# ---- mark and sweep -----------------------------------------------------------------------------------

_ROOTS = (Assume, Return, While)
_JUMPS = (Break, Continue)
_LOOPS = (For, While)


def _is_root(node: Node) -> bool:
    """Whether `node` has an effect by itself. A jump has one if its loop does."""
    return not row_of(node).pure if isinstance(node, Op) else isinstance(node, _ROOTS)


@dataclass(slots=True)
class _Mark:
    """A node, and what is kept with it: the statements around it, and the jumps out of a loop."""

    reads: list[Key]
    writes: list[Key]
    others: list[_Mark] = field(default_factory=list)
    kept: bool = False


class _Marks:
    """Which nodes are kept, by identity: the same object may stand in several places."""

    def __init__(self, kernel: Kernel, keys: Keys):
        self.keys = keys
        self.marks: dict[int, _Mark] = {}
        self.definitions: dict[Key, list[_Mark]] = defaultdict(list)
        self.needed: set[Key] = set()
        self.queue: list[_Mark] = []
        self._index(kernel.body, None, None)
        while self.queue:
            self._follow(self.queue.pop())
        touched = self.needed.union(*[mark.writes for mark in self.marks.values() if mark.kept])
        self.touched = {key if isinstance(key, str) else key[0] for key in touched}

    def _index(self, nodes: Iterable[Node], parent: _Mark | None, loop: _Mark | None) -> None:
        for node in nodes:
            mark = self.marks.get(id(node)) or self._new(node)
            if parent is not None:
                mark.others.append(parent)
            if isinstance(node, _JUMPS) and loop is not None:
                loop.others.append(mark)
            for block in blocks(node):
                self._index(block, mark, mark if isinstance(node, _LOOPS) else loop)

    def _new(self, node: Node) -> _Mark:
        mark = self.marks[id(node)] = _Mark(*_named(node, self.keys))
        for key in mark.writes:
            self.definitions[key].append(mark)
        if _is_root(node):
            self._keep(mark)
        return mark

    def _keep(self, mark: _Mark) -> None:
        if not mark.kept:
            mark.kept = True
            self.queue.append(mark)

    def _follow(self, mark: _Mark) -> None:
        """Keep what a kept node depends on."""
        for key in mark.reads:
            if key not in self.needed:
                self.needed.add(key)
                for definition in self.definitions.get(key, ()):
                    self._keep(definition)
        for other in mark.others:
            self._keep(other)

    def sweep(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(with_blocks(node, self.sweep) for node in nodes if self._stays(node))

    def _stays(self, node: Node) -> bool:
        if isinstance(node, Declare):
            return node.local.name in self.touched
        if isinstance(node, Allocate):
            return node.registers.name in self.touched
        return self.marks[id(node)].kept
