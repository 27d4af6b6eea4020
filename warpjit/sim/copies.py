"""Asynchronous copies under way: groups that a thread waits for, and flights that an mbarrier announces.

A group copy has moved its bytes when it is issued, but they count as pending until the issuing thread has waited for
the group. A flight moves its bytes only when it lands, which the machine lets happen as late as it can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.isa.row import Completion
from warpjit.layout.axis import LANES
from warpjit.sim.shadow import Touch

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class GroupCopy:
    """Bytes of shared memory that copies of one operation write (or read), by thread and group number."""

    touch: Touch
    number: Array
    writes: bool
    site: int
    order: int = 0


@dataclass(frozen=True, eq=False)
class Flight:
    """A copy of one thread on its way to shared memory.

    touch    the bytes that it writes, `octets` (k, width) what it brings
    barrier  where the mbarrier lies that is told, in the flat shared memory
    bytes    how many its tx-count falls by
    """

    row: int
    lane: int
    touch: Touch
    octets: Array
    barrier: int
    bytes: int
    site: int


@dataclass(frozen=True, eq=False)
class Arrival:
    """A thread's arrival at the mbarrier at `barrier`, after its copies of groups before the `order`-th."""

    row: int
    lane: int
    barrier: int
    order: int
    site: int


@dataclass
class Copies:
    """All copies under way. `committed`: how many groups each thread has closed, by kind of group (rows, 32)."""

    rows: int
    committed: dict[Completion, Array] = field(default_factory=dict)
    groups: dict[Completion, list[GroupCopy]] = field(default_factory=dict)
    flights: list[Flight | Arrival] = field(default_factory=list)
    issued: int = 0

    def closed(self, kind: Completion) -> Array:
        """How many groups of this kind each thread has closed."""
        if kind not in self.committed:
            self.committed[kind] = np.zeros((self.rows, LANES), np.int64)
        return self.committed[kind]

    def issue(self, kind: Completion, touch: Touch, writes: bool, site: int) -> None:
        """Copies begin, in each thread's open group."""
        number = self.closed(kind)[touch.row, touch.lane]
        self.groups.setdefault(kind, []).append(GroupCopy(touch, number, writes, site, self.issued))
        self.issued += 1

    def wait(self, kind: Completion, limit: Array) -> list[tuple[GroupCopy, Array]]:
        """The copies in groups below `limit` (rows, 32) of their threads, taken out: (copy, which of its accesses)."""
        return self._take(kind, lambda copy: copy.number < limit[copy.touch.row, copy.touch.lane])

    def before(self, kind: Completion, arrival: Arrival) -> list[tuple[GroupCopy, Array]]:
        """The copies that an arrival follows and that are still under way, taken out: as in `wait`."""

        def follows(copy: GroupCopy) -> Array:
            mine = (copy.touch.row == arrival.row) & (copy.touch.lane == arrival.lane)
            return np.asarray(mine & (copy.order < arrival.order))

        return self._take(kind, follows)

    def _take(self, kind: Completion, which: Callable[[GroupCopy], Array]) -> list[tuple[GroupCopy, Array]]:
        finished, left = [], []
        for copy in self.groups.get(kind, []):
            done = which(copy)
            if done.any():
                finished.append((copy, done))
            if not done.all():
                left.append(
                    copy
                    if not done.any()
                    else GroupCopy(_some(copy.touch, ~done), copy.number[~done], copy.writes, copy.site, copy.order)
                )
        self.groups[kind] = left
        return finished


def _some(touch: Touch, which: Array) -> Touch:
    numbers = np.flatnonzero(which)
    return Touch(
        touch.address[which],
        touch.width,
        touch.row[which],
        touch.lane[which],
        touch.issue[which],
        lambda k: touch.name(int(numbers[k])),
    )
