"""The pictures of the page `isa.md`, drawn by the package."""

from __future__ import annotations

from warpjit import isa
from warpjit.layout import mma_shared_layout


def operand() -> str:
    """A of m16n8k16, coloured by lane."""
    return isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").draw("A").svg()


def swizzle() -> str:
    """Eight rows of 64 float16 in shared memory, with the swizzle of 128 bytes: coloured by bank."""
    return mma_shared_layout("float16", 128, (8, 64)).draw((8, 64)).svg()
