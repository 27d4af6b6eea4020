"""Between the registers of a warp and the matrix that they hold, by a layout: index arrays for rows' meanings.

Proofs about layouts are in `proof`; the layouts themselves stand in the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warpjit.isa.row import Array, Operand

LANES = 32


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
        places = operand.layout.enumerate(operand.shape)
        zero = np.zeros(operand.shape, np.int64)
        lane, register = places.get("laneid", zero), places.get("m", zero)
        element = np.zeros((LANES, operand.registers), np.int64)
        element[lane, register] = np.arange(lane.size).reshape(operand.shape)
        return cls(lane, register, element)

    def matrix(self, registers: Array) -> Array:
        """(*batch, 32, registers) to (*batch, *atom)."""
        return np.ascontiguousarray(registers[..., self.lane, self.register])

    def registers(self, matrix: Array) -> Array:
        """(*batch, *atom) to (*batch, 32, registers)."""
        batch = matrix.shape[: matrix.ndim - self.lane.ndim]
        return np.ascontiguousarray(matrix.reshape(*batch, -1)[..., self.element])
