"""Walking the IR: the statements inside a statement, its operands, and the scalars inside an operand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from warpjit.ir.nodes import (
    Address,
    Assign,
    Assume,
    Atom,
    Const,
    ConstantBuffer,
    Declare,
    For,
    Fragment,
    If,
    Local,
    Node,
    Op,
    OperandValue,
    Slot,
    Tile,
    While,
)
from warpjit.record import changed

BLOCKS: dict[type[Any], tuple[str, ...]] = {For: ("body",), While: ("head", "body"), If: ("then", "orelse")}
"""The fields of control statements that hold statements, in the order in which they run."""


def blocks(node: Node) -> tuple[tuple[Node, ...], ...]:
    """The blocks of statements inside `node`."""
    fields = BLOCKS.get(type(node))
    return () if fields is None else tuple(getattr(node, field) for field in fields)


def children(node: Node) -> tuple[Node, ...]:
    """The statements directly inside `node`."""
    return tuple(child for block in blocks(node) for child in block)


def every(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """These statements and those inside them, in order."""
    for node in nodes:
        yield node
        for block in blocks(node):
            yield from every(block)


def with_blocks(node: Node, change: Callable[[tuple[Node, ...]], tuple[Node, ...]]) -> Node:
    """`node` with each of its blocks changed."""
    fields = BLOCKS.get(type(node))
    if fields is None:
        return node
    return changed(node, **{field: change(getattr(node, field)) for field in fields})


def constants(nodes: tuple[Node, ...]) -> tuple[ConstantBuffer, ...]:
    """The tables that the statements read, in the order of their first use."""
    found: dict[str, ConstantBuffer] = {}
    for node in every(nodes):
        for value in operands(node):
            for place in addresses(value):
                if isinstance(place.buffer, ConstantBuffer):
                    found.setdefault(place.buffer.name, place.buffer)
    return tuple(found.values())


def operands(node: Node) -> tuple[OperandValue, ...]:
    """What `node` itself reads and writes, not the statements in it. (An allocation's registers are no operand.)"""
    handler = _OPERANDS.get(type(node))
    return () if handler is None else handler(node)


_OPERANDS: dict[type[Any], Callable[[Any], tuple[OperandValue, ...]]] = {
    Op: lambda node: (*node.operands, node.predicate),
    Declare: lambda node: (node.local,),
    Assign: lambda node: (node.local, node.value),
    Assume: lambda node: (node.condition,),
    For: lambda node: (node.variable, node.start, node.stop),
    While: lambda node: (node.condition,),
    If: lambda node: (node.condition,),
}


def addresses(value: OperandValue) -> tuple[Address, ...]:
    """The places in memory that an operand names: one for all issues, or one for each; none where it is no memory."""
    if isinstance(value, Tile):
        return value.addresses
    return (value,) if isinstance(value, Address) else ()


def atoms(value: OperandValue) -> Iterable[Atom]:
    """The scalars of an operand; of an address also the coordinates that it carries for findings."""
    return _ATOMS[type(value)](value)


def _itself(value: Atom) -> tuple[Atom, ...]:
    return (value,)


def _of_address(value: Address) -> tuple[Atom, ...]:
    offset = () if value.offset is None else (value.offset,)
    return offset if value.access is None else (*offset, *value.access.coordinates, *value.access.shape)


_ATOMS: dict[type[Any], Callable[[Any], Iterable[Atom]]] = {
    Const: _itself,
    Local: _itself,
    Slot: _itself,
    Fragment: lambda value: chain.from_iterable(value.items),
    Address: _of_address,
    Tile: lambda value: chain.from_iterable(map(_of_address, value.addresses)),
    type(None): lambda value: (),
}
