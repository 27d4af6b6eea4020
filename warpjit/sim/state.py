"""Everything that a batch of CTAs holds while it runs, in one place for the parts of the machine to share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import Loc
from warpjit.layout.axis import LANES
from warpjit.sim.clocks import Clocks
from warpjit.sim.copies import Copies
from warpjit.sim.findings import Census, Findings
from warpjit.sim.groups import Group, Turn
from warpjit.sim.marks import Mark, MarkTable
from warpjit.sim.memory import View
from warpjit.sim.shadow import SharedShadow
from warpjit.sim.values import Index, Values

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Region:
    """A shared allocation: where it lies in the arena."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True)
class Shape:
    """The extents of a launch: threads of a CTA, CTAs of a cluster, CTAs of the grid."""

    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    grid: tuple[int, int, int]

    @property
    def threads(self) -> int:
        """Of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]


class State:
    """The state of the CTAs of a census.

    values    locals and registers      shared    bytes of shared memory, `stride` for each CTA
    views     global tensors by name    regions   shared allocations by name
    present   lanes that exist and have not returned (rows, 32)
    """

    def __init__(
        self,
        census: Census,
        views: dict[str, View],
        regions: Sequence[Region],
        shared_bytes: int,
        locs: Sequence[Loc],
        shape: Shape,
    ):
        self.census = census
        self.views = views
        self.regions = {region.name: region for region in regions}
        self.shape = shape
        self.locs = locs
        self.marks = MarkTable()
        self.findings = Findings(census)
        self.values = Values(census.rows, self.marks)
        self.stride = -(-max(shared_bytes, 1) // 128) * 128
        self.shared = np.zeros(len(census.ctas) * self.stride, np.uint8)
        self.clocks = Clocks.of(census.rows, census.warps)
        self.shadow = SharedShadow(census, self.stride, self.marks, self.clocks, locs)
        self.copies = Copies(census.rows)
        self.printed: dict[int, list[str]] = {}  # by warp: what it wrote, see `printing`
        exists = np.arange(census.warps * LANES).reshape(census.warps, LANES) < shape.threads
        self.present = np.tile(exists, (len(census.ctas), 1))
        self.objects: Array | None = None  # bytes of shared memory that are part of an mbarrier
        self.transitions: dict[Any, Any] = {}  # of mbarriers, see `barriers`
        self.changes = 0  # grows whenever memory changes: what a waiting warp may have waited for
        self.tests = 0  # grows with every test of an mbarrier that does not block
        self._mark_unwritten(regions)

    def index(self, rows: Array) -> Index:
        """What selects these warps from arrays over all of them."""
        return slice(None) if len(rows) == self.census.rows else rows

    def turn(self, group: Group) -> Turn:
        """The warps of a group and its active lanes: the same, operation after operation, so the group keeps it."""
        kept = group.turn
        if kept is None or kept.mask is not group.mask or kept.rows is not group.rows:
            kept = group.turn = Turn.of(group.rows, self.index(group.rows), group.mask)
        return kept

    def _mark_unwritten(self, regions: Sequence[Region]) -> None:
        marks = self.shadow.mark.reshape(len(self.census.ctas), self.stride)
        for region in regions:
            number = self.marks.number(Mark(f"nothing has written these bytes of shared `{region.name}`"))
            marks[:, region.offset : region.offset + region.bytes] = number
