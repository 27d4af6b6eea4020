"""Between the registers of a warp and the matrix that they hold, by a layout: index arrays for rows' meanings.

Proofs about layouts are in `proof`; the layouts themselves stand in the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from warpjit.isa.row import Array, Operand
from warpjit.layout import TileLayout
from warpjit.layout.axis import LANES


@dataclass(frozen=True, eq=False)
class Gather:
    """The lane and register of every element of an atom (arrays of the atom's shape), and the way back.

    element  for each lane and register (32, registers): the element that it holds, as a row-major index
    """

    lane: npt.NDArray[np.int64]
    register: npt.NDArray[np.int64]
    element: npt.NDArray[np.int64]

    @classmethod
    def of(cls, operand: Operand) -> Gather:
        """Of a fragment operand, whose layout is a bijection (the row has checked it)."""
        assert operand.layout is not None
        return _gather(operand.layout, operand.shape)

    def matrix(self, registers: Array) -> Array:
        """(*batch, 32, registers) to (*batch, *atom)."""
        return np.ascontiguousarray(registers[..., self.lane, self.register])

    def registers(self, matrix: Array) -> Array:
        """(*batch, *atom) to (*batch, 32, registers)."""
        batch = matrix.shape[: matrix.ndim - self.lane.ndim]
        return np.ascontiguousarray(matrix.reshape(*batch, -1)[..., self.element])


@lru_cache(maxsize=256)
def _gather(layout: TileLayout, shape: tuple[int, ...]) -> Gather:
    """Rows of a family share layouts, and all of them are made when the tables are imported."""
    places = layout.enumerate(shape)
    zero = np.zeros(shape, np.int64)
    lane, register = places.get("laneid", zero), places.get("m", zero)
    element = np.zeros((LANES, layout.span("m")), np.int64)
    element[lane, register] = np.arange(lane.size).reshape(shape)
    for array in (lane, register, element):
        array.flags.writeable = False
    return Gather(lane, register, element)
