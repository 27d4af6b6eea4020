"""A group: warps at the same instruction, with the lanes that are active and the lanes that wait further out.

Control is structured, so the frames that a group has open follow from its place in the code alone, and any two groups
at one place can be merged. Masks are never changed in place: groups may share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Turn:
    """One operation of one group: its warps, and the lanes for which it happens.

    index    what selects the warps from arrays over all of them
    full     whether it happens for every lane
    count    the number of warps; `running`: of those in which it happens
    """

    rows: Array
    index: slice | Array
    mask: Array
    full: bool
    count: int
    running: int

    @classmethod
    def of(cls, rows: Array, index: slice | Array, mask: Array) -> Turn:
        full, count = bool(mask.all()), len(rows)
        return cls(rows, index, mask, full, count, count if full else int(np.count_nonzero(mask.any(axis=1))))

    @property
    def where(self) -> Array | None:
        return None if self.full else self.mask

    @cached_property
    def places(self) -> tuple[Array, Array]:
        """The position of the warp and the lane, of each lane for which it happens."""
        position, lane = np.nonzero(self.mask)
        return position, lane


@dataclass(frozen=True)
class IfFrame:
    """Lanes that still have to take the other arm, and lanes that have finished one."""

    other: Array
    done: Array


@dataclass(frozen=True)
class LoopFrame:
    """Lanes that have left the loop, and lanes that are done with this iteration."""

    exited: Array
    continued: Array


Frame: TypeAlias = IfFrame | LoopFrame


def _parts(frame: Frame) -> tuple[Array, Array]:
    return (frame.other, frame.done) if isinstance(frame, IfFrame) else (frame.exited, frame.continued)


@dataclass
class Group:
    """rows   sorted numbers of warps (n,)
    mask   active lanes (n, 32)
    pc     the next instruction
    frames open control statements, outermost first
    turns  loop iterations run in a row, for fairness among groups that spin
    turn   the last turn of all that is active, see `State.turn`
    """

    rows: Array
    mask: Array
    pc: int = 0
    frames: tuple[Frame, ...] = ()
    turns: int = field(default=0, compare=False)
    turn: Turn | None = field(default=None, compare=False)

    def take(self, which: Array) -> Group:
        """The warps where `which` (n,) holds, as a group of their own."""
        frames = tuple(type(frame)(*(part[which] for part in _parts(frame))) for frame in self.frames)
        return Group(self.rows[which], self.mask[which], self.pc, frames, self.turns)

    def split(self, which: Array) -> tuple[Group | None, Group | None]:
        """The warps where `which` holds and the others; None for no warp."""
        if which.all():
            return self, None
        if not which.any():
            return None, self
        return self.take(which), self.take(~which)

    # ---- frames ------------------------------------------------------------------------------------

    def push(self, frame: Frame) -> None:
        self.frames = (*self.frames, frame)

    def pop(self) -> Frame:
        *rest, top = self.frames
        self.frames = tuple(rest)
        return top

    def replace_top(self, frame: Frame) -> None:
        self.frames = (*self.frames[:-1], frame)

    def innermost_loop(self) -> int:
        """The position of the loop that a break leaves."""
        return max(i for i, frame in enumerate(self.frames) if isinstance(frame, LoopFrame))


def merge(groups: Sequence[Group]) -> Group:
    """Groups at one place in the code as one."""
    if len(groups) == 1:
        return groups[0]
    rows = np.concatenate([group.rows for group in groups])
    order = np.argsort(rows)

    def joined(parts: list[Array]) -> Array:
        return np.concatenate(parts)[order]

    frames = tuple(
        type(same[0])(*(joined([_parts(frame)[k] for frame in same]) for k in range(2)))
        for same in zip(*(group.frames for group in groups), strict=True)
    )
    mask = joined([group.mask for group in groups])
    return Group(rows[order], mask, groups[0].pc, frames, max(group.turns for group in groups))
