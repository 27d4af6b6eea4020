"""Why a layout does not fit an operand, as data: one element that shows it, and what would fit.

`proof` and `tile_proof` raise `Misplaced`, `fixes` finds the nearest fix, `fitting` gives both outside of kernels.
"""

from __future__ import annotations

from typing import TypeAlias

from warpjit.errors import InstructionError
from warpjit.layout import Layout
from warpjit.record import record


@record
class Place:
    """Where an element is in registers.

    part  its number within the register, low bits first; 0 where a register holds one element
    warp  the warp within the scope that executes the instruction
    """

    lane: int
    register: int
    part: int = 0
    warp: int = 0


@record
class MemoryPlace:
    """Where an element of a tile is in memory: bytes from the layout's origin."""

    byte: float


AnyPlace: TypeAlias = Place | MemoryPlace


@record
class Counterexample:
    """One element that shows that a layout does not fit.

    element  its coordinates in the view
    found    where the layout puts it; registers are counted from the layout's 0
    wanted   where the instruction reads or writes it; registers are those of one issue of the instruction
    witness  None: lane, part or warp (or byte) are others. Otherwise an element that the instruction takes from the
             same register of its own, while the layout has it in another register than this one
    """

    element: tuple[int, ...]
    found: AnyPlace
    wanted: AnyPlace
    witness: tuple[int, ...] | None = None


@record
class Fix:
    """What would make a refused layout fit.

    kind       "registers": every element is in its lane, in another register or part of one
               "k": with the same permutation of k for A and B the operand is in place
               "trans": it holds the transposes of the 8 x 8 blocks, or the tile is contiguous the other way
               "layout": the instruction's own layout
    sentence   the same in words
    layout     a layout that fits: of the view with k permuted, of the tile turned, or the instruction's own
    registers  kind "registers": of each register of the instruction, issue by issue, the (register, part) of the layout
               that each of its parts is, low bits first
    k          kind "k": position k of the instruction stands for this k of the matrices, in elements
    """

    kind: str
    sentence: str
    layout: Layout | None = None
    registers: tuple[tuple[tuple[int, int], ...], ...] = ()
    k: tuple[int, ...] = ()


class Misplaced(InstructionError):
    """A layout does not fit an operand: with the element that shows it, and the nearest fix."""

    def __init__(self, message: str, counterexample: Counterexample, fix: Fix | None):
        super().__init__(message)
        self.counterexample = counterexample
        self.fix = fix
