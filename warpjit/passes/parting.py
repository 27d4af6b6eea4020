"""Where the threads that must execute an operation together part: the line that an error shows beside its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpjit.errors import Note
from warpjit.ir.facts import Uniformity
from warpjit.ir.nodes import Break, Continue, For, If, Node, Op, Return, While
from warpjit.ir.walk import blocks

LEAVES = {
    Break: "some of its threads leave the loop here",
    Continue: "some of its threads begin the next iteration here",
    Return: "some of its threads return here",
}


def where_threads_part(body: Sequence[Node], op: Op, allowed: Uniformity) -> tuple[Note, ...]:
    """One note, or none where no single line is to blame. `allowed`: how far control flow may differ around `op`."""
    for node in reversed(_around(body, op)):
        if isinstance(node, If) and node.uniformity > allowed:
            return (Note("its threads part here", node.loc),)
        if isinstance(node, For | While) and node.control > allowed:
            return _first(node.body, (Break, Continue), allowed) or (
                Note("its threads run this loop a different number of times", node.loc),
            )
    return _first(body, (Return,), allowed)


def _around(body: Sequence[Node], op: Op) -> list[Node]:
    """The control statements around an operation, outermost first."""
    for node in body:
        for block in blocks(node):
            if any(each is op for each in block):
                return [node]
            inner = _around(block, op)
            if inner:
                return [node, *inner]
    return []


def _first(body: Sequence[Node], kinds: tuple[type, ...], allowed: Uniformity) -> tuple[Note, ...]:
    """The first jump of these kinds that not all threads take."""
    return next(((Note(LEAVES[type(node)], node.loc),) for node in _jumps(body, kinds, allowed, False)), ())


def _jumps(body: Sequence[Node], kinds: tuple[type, ...], allowed: Uniformity, parted: bool) -> Iterator[Node]:
    for node in body:
        if isinstance(node, kinds) and parted:
            yield node
        if isinstance(node, For | While) and Return not in kinds:
            continue  # its jumps are its own
        differs = isinstance(node, If) and node.uniformity > allowed
        differs = differs or (isinstance(node, For | While) and node.control > allowed)
        for block in blocks(node):
            yield from _jumps(block, kinds, allowed, parted or differs)
