"""Findings about uses of unwritten values."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import Loc
from warpjit.ir.nodes import Atom
from warpjit.sim.marks import shaped
from warpjit.sim.state import State

Array: TypeAlias = npt.NDArray[Any]


def report_use(state: State, mark: Array, where: Array, rows: Array, how: str, loc: Loc) -> None:
    """A finding for the lanes `where` (n, 32) of the warps `rows` in which the value is marked."""
    bad = (shaped(mark, where.shape) != 0) & where
    if not bad.any():
        return
    position, lane = np.nonzero(bad)
    numbers = shaped(mark, where.shape)[position, lane]
    state.findings.add(
        f"use of an unwritten value {how}",
        loc,
        rows[position],
        lane,
        lambda i: (state.marks.note(int(numbers[i])),),
    )


def used(state: State, atom: Atom, rows: Array, mask: Array, how: str, loc: Loc) -> Array:
    """The values of an atom (n, 32) that the lanes `mask` use. Raises SimulationError where they are unwritten."""
    index = state.index(rows)
    taint = state.values.taint(atom, index)
    if taint is not None:
        report_use(state, taint.mark, mask, rows, how, loc)
        state.findings.settle()
    return shaped(state.values.read(atom, index), mask.shape)
