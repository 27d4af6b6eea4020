"""What each warp knows of what the others have done: vector clocks.

Column a of warp w is the last moment of agent a that is ordered before w's present. Agents 0 ... warps - 1 are the
warps of the CTA; further ones stand for the asynchronous copies that one mbarrier announces. Only synchronisation
moves clocks; what is compared with them is kept in `shadow`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


@dataclass
class Phase:
    """What is published through one mbarrier: by arrivals of the phase under way, and of the phases completed."""

    gathering: Array
    released: Array


@dataclass
class Clocks:
    """The clocks of all warps (rows, agents). `warps` is the number of warps in a CTA."""

    warps: int
    table: Array
    barriers: dict[tuple[int, int], Phase] = field(default_factory=dict)  # by CTA number and byte
    agents: dict[int, int] = field(default_factory=dict)  # of copies: by the byte where their mbarrier lies

    @classmethod
    def of(cls, rows: int, warps: int) -> Clocks:
        table = np.zeros((rows, warps), np.int64)
        table[np.arange(rows), np.arange(rows) % warps] = 1
        return cls(warps, table)

    def now(self, rows: Array) -> Array:
        """Each warp's own present."""
        return self.table[rows, rows % self.warps]  # type: ignore[no-any-return]

    def advance(self, rows: Array) -> None:
        """Begin a new moment: what these warps do from now on is not yet published."""
        self.table[rows, rows % self.warps] += 1

    def meet(self, rows: Array, keys: Array, published: Mapping[int, Array]) -> None:
        """The warps of equal key have waited for each other, and for what is `published` under that key."""
        if not rows.size:
            return
        order = np.argsort(keys, kind="stable")
        rows, keys = rows[order], keys[order]
        starts = np.flatnonzero(np.r_[True, np.diff(keys) != 0])
        joint = np.maximum.reduceat(self.table[rows], starts, axis=0)
        for position, key in enumerate(keys[starts].tolist()):
            if key in published:
                past = published[key]
                np.maximum(joint[position, : past.size], past, out=joint[position, : past.size])
        self.table[rows] = np.repeat(joint, np.diff(np.r_[starts, rows.size]), axis=0)
        self.advance(rows)

    # ---- mbarriers -----------------------------------------------------------------------------------

    def phase(self, cta: int, byte: int) -> Phase:
        agents = self.table.shape[1]
        found = self.barriers.get((cta, byte))
        if found is None:
            found = self.barriers[cta, byte] = Phase(np.zeros(agents, np.int64), np.zeros(agents, np.int64))
        missing = agents - found.gathering.size
        if missing:
            found.gathering = np.pad(found.gathering, (0, missing))
            found.released = np.pad(found.released, (0, missing))
        return found

    def forget(self, cta: int, byte: int) -> None:
        """A new mbarrier object begins here."""
        self.barriers.pop((cta, byte), None)

    def publish(self, row: int, byte: int) -> None:
        """Warp `row` arrives at an mbarrier."""
        phase = self.phase(row // self.warps, byte)
        np.maximum(phase.gathering, self.table[row], out=phase.gathering)
        self.table[row, row % self.warps] += 1

    def complete(self, cta: int, byte: int) -> None:
        """The phase under way is complete."""
        phase = self.phase(cta, byte)
        np.maximum(phase.released, phase.gathering, out=phase.released)

    def acquire(self, rows: Array, bytes_: Array) -> None:
        """Warps have seen the last completed phase of an mbarrier."""
        for row, byte in set(zip(rows.tolist(), bytes_.tolist(), strict=True)):
            phase = self.phase(row // self.warps, byte)
            np.maximum(self.table[row], phase.released, out=self.table[row])

    def agent(self, byte: int) -> int:
        """The agent that stands for the copies which the mbarrier at `byte` announces."""
        found = self.agents.get(byte)
        if found is None:
            found = self.agents[byte] = self.table.shape[1]
            self.table = np.pad(self.table, ((0, 0), (0, 1)))
        return found

    def copied(self, cta: int, byte: int) -> int:
        """A copy announced by this mbarrier has landed: its moment, published with the phase under way."""
        agent = self.agent(byte)
        phase = self.phase(cta, byte)
        moment = int(max(phase.gathering[agent], phase.released[agent])) + 1
        phase.gathering[agent] = moment
        return moment
