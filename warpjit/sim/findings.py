"""What the simulator finds wrong, collected per operation and raised together.

A finding names the Python line, the CTA, the warp and the lane, and counts the other threads that do the same. How
the error looks is `warpjit.errors`; what counts as wrong is decided where the machine meets it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import Finding, Loc, Note, SimulationError
from warpjit.layout.axis import LANES

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Census:
    """Which warp of which CTA each row of the machine is."""

    ctas: tuple[tuple[int, int, int], ...]
    warps: int

    @property
    def rows(self) -> int:
        return len(self.ctas) * self.warps

    def warp(self, row: int) -> int:
        return row % self.warps

    def cta(self, row: int) -> tuple[int, int, int]:
        return self.ctas[row // self.warps]

    def name(self, row: int, lane: int | None = None) -> str:
        """The place of a row, or of one of its lanes, at the end of a sentence."""
        place = f"CTA {self.cta(row)}, warp {self.warp(row)}"
        return place if lane is None else f"{place}, lane {lane}"


class Findings:
    """The findings of the operation under way. `settle` raises them."""

    def __init__(self, census: Census):
        self.census = census
        self._found: list[Finding] = []

    def add(
        self,
        sentence: Callable[[int], str] | str,
        loc: Loc,
        rows: Array,
        lanes: Array,
        notes: Callable[[int], Sequence[Note]] | Sequence[Note] = (),
    ) -> None:
        """One finding about the threads (rows[i], lanes[i]); `sentence` and `notes` are asked for the first one's i."""
        if not len(rows):
            return
        threads = rows.astype(np.int64) * LANES + lanes
        first = int(np.argmin(threads))
        others = int(np.unique(threads).size) - 1
        said = sentence(first) if callable(sentence) else sentence
        more = f" (and {others} more thread{'s' if others > 1 else ''})" if others else ""
        where = self.census.name(int(rows[first]), int(lanes[first]))
        told = notes(first) if callable(notes) else notes
        self._found.append(Finding(f"{said}; {where}{more}", loc, tuple(told)))

    def add_warps(self, sentence: str, loc: Loc, rows: Array, notes: Sequence[Note] = ()) -> None:
        """One finding about whole warps."""
        others = len(rows) - 1
        more = f" (and {others} more warp{'s' if others > 1 else ''})" if others else ""
        self._found.append(Finding(f"{sentence}; {self.census.name(int(rows.min()))}{more}", loc, tuple(notes)))

    def settle(self) -> None:
        """Raise SimulationError with all that was found, if anything was."""
        if self._found:
            raise SimulationError.collect(self._found)


def lane_ranges(mask: Array) -> str:
    """Lanes of one warp in words: "lane 5", "lanes 0-15", "lanes 0-3, 8"."""
    lanes = np.flatnonzero(mask)
    if not lanes.size:
        return "no lane"
    breaks = np.flatnonzero(np.diff(lanes) != 1)
    starts = lanes[np.r_[0, breaks + 1]]
    ends = lanes[np.r_[breaks, lanes.size - 1]]
    parts = [str(a) if a == b else f"{a}-{b}" for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    return f"lane{'s' if lanes.size > 1 else ''} {', '.join(parts)}"
