"""Walking the IR: the statements inside a statement, and the scalars inside an operand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from warpjit.ir.nodes import Address, Atom, Const, For, Fragment, If, Local, Node, OperandValue, Slot, Tile, While

BLOCKS: dict[type[Any], tuple[str, ...]] = {For: ("body",), While: ("head", "body"), If: ("then", "orelse")}
"""The fields of control statements that hold statements, in the order in which they run."""


def blocks(node: Node) -> tuple[tuple[Node, ...], ...]:
    """The blocks of statements inside `node`."""
    return tuple(getattr(node, field) for field in BLOCKS.get(type(node), ()))


def children(node: Node) -> tuple[Node, ...]:
    """The statements directly inside `node`."""
    return tuple(child for block in blocks(node) for child in block)


def every(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """These statements and those inside them, in order."""
    for node in nodes:
        yield node
        yield from every(children(node))


def with_blocks(node: Node, change: Callable[[tuple[Node, ...]], tuple[Node, ...]]) -> Node:
    """`node` with each of its blocks changed."""
    fields: dict[str, Any] = {field: change(getattr(node, field)) for field in BLOCKS.get(type(node), ())}
    return replace(node, **fields) if fields else node


def atoms(value: OperandValue) -> Iterator[Atom]:
    """The scalars of an operand; of an address also the coordinates that it carries for findings."""
    if isinstance(value, Const | Local | Slot):
        yield value
    elif isinstance(value, Fragment):
        for issue in value.items:
            yield from issue
    elif isinstance(value, Tile):
        for address in value.addresses:
            yield from atoms(address)
    elif isinstance(value, Address):
        yield from atoms(value.offset)
        if value.access is not None:
            yield from value.access.coordinates + value.access.shape
