"""Which tensors a kernel reads and which it writes: what whoever runs it on other data must keep or copy."""

from __future__ import annotations

from warpjit.ir.nodes import GlobalBuffer, Kernel, Op
from warpjit.ir.walk import addresses, every
from warpjit.isa.inline_asm import is_opaque
from warpjit.isa.pairing import paired, row_of
from warpjit.record import record


@record
class Effects:
    """The runtime arguments, by their index, whose memory a kernel may read, and may write."""

    reads: frozenset[int]
    writes: frozenset[int]


def effects(kernel: Kernel) -> Effects:
    """What `kernel` may do with the memory of its arguments, through each of them.

    Inline assembly that gets a pointer, not a window, may do both with it.
    """
    reads: set[int] = set()
    writes: set[int] = set()
    for node in every(kernel.body):
        if not isinstance(node, Op):
            continue
        for operand, value in paired(node):
            places = addresses(value)
            if not places:
                continue
            indices = {each.buffer.index for each in places if isinstance(each.buffer, GlobalBuffer)}
            opaque = is_opaque(row_of(node), operand)
            if operand.reads or opaque:
                reads |= indices
            if operand.writes or opaque:
                writes |= indices
    return Effects(frozenset(reads), frozenset(writes))
