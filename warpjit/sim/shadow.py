"""What is known of every byte of shared memory besides its value.

For each byte: a mark if it is unwritten or was copied from something bad; whether an asynchronous copy is still under
way there; the last write (agent, moment, site) and every warp's last read (moment, site). Two accesses of different
warps are ordered if the later one's clock knows the earlier one's moment; which came first in this run does not
matter. A site is the place of an operation in the flat code. Accesses of one warp count as ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import Loc, Note
from warpjit.sim.clocks import Clocks
from warpjit.sim.findings import Census, Findings
from warpjit.sim.marks import MarkTable
from warpjit.sim.memory import gather, scatter

Array: TypeAlias = npt.NDArray[Any]
_SITE_BITS = 20  # a stamp is moment << 20 | site; kernels have far fewer operations than a million
_SITES = (1 << _SITE_BITS) - 1


@dataclass(frozen=True)
class Touch:
    """Accesses of active lanes to one buffer, k of them.

    address  in the flat array of the space (k,); `width` bytes each
    row, lane, issue   who does it, and in which issue of the operation (k,)
    name     the k-th access in words: "a[3, 4]"
    """

    address: Array
    width: int
    row: Array
    lane: Array
    issue: Array
    name: Callable[[int], str]

    def bytewise(self, lengths: Array) -> Touch:
        """The same with `lengths[k]` bytes in place of `width`, one byte an access."""
        which = np.repeat(np.arange(lengths.size), lengths)
        inner = np.arange(which.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Touch(
            self.address[which] + inner,
            1,
            self.row[which],
            self.lane[which],
            self.issue[which],
            lambda k: self.name(int(which[k])),
        )


@dataclass(frozen=True)
class Pending:
    """An asynchronous copy that is not known to be complete: it "writes" or "reads" the bytes."""

    writes: bool
    loc: Loc
    wait: str


class SharedShadow:
    """The shadow of `size` bytes for each CTA of the census."""

    def __init__(self, census: Census, size: int, marks: MarkTable, clocks: Clocks, locs: Sequence[Loc]):
        count = len(census.ctas) * size
        self.census, self.size, self.marks, self.clocks, self.locs = census, size, marks, clocks, locs
        self.mark = np.zeros(count, np.uint16)
        self.pending = np.zeros(count, np.uint16)
        self.copies: list[Pending] = [Pending(False, Loc(), "")]
        self.writer = np.full(count, -1, np.int16)
        self.written = np.zeros(count, np.int64)
        self.stored: tuple[Array, Array] | None = None  # writer and written of what was no atomic update, if any was
        self.reads = np.zeros((count, census.warps), np.int64)

    # ---- accesses ------------------------------------------------------------------------------------

    def read(self, touch: Touch, site: int, findings: Findings) -> None:
        """Check and remember reads."""
        self._check_pending(touch, site, findings, reading=True)
        self._check_last_write(touch, site, findings, "read")
        self._remember_reads(touch, site)

    def write(self, touch: Touch, site: int, findings: Findings) -> None:
        """Check and remember writes. The marks are the caller's to set."""
        self._check_pending(touch, site, findings, reading=False)
        self._check_last_write(touch, site, findings, "write")
        self._check_reads(touch, site, findings)
        self._remember_writes(touch, site)
        self._check_each_other(touch, site, findings)

    def update(self, touch: Touch, site: int, findings: Findings) -> None:
        """Check and remember atomic accesses, which do not race with each other."""
        self._check_pending(touch, site, findings, reading=False)
        if self.stored is None:
            self.stored = self.writer.copy(), self.written.copy()
        self._check_last_write(touch, site, findings, "update", self.stored)
        self._check_reads(touch, site, findings, atomically=True)
        stamp = self.clocks.now(touch.row) << _SITE_BITS | site
        scatter(self.writer, touch.address, touch.width, (touch.row % self.census.warps)[:, None])
        scatter(self.written, touch.address, touch.width, stamp[:, None])

    def begin_copy(self, touch: Touch, pending: Pending) -> None:
        """An asynchronous copy is under way on these bytes."""
        if pending not in self.copies:
            self.copies.append(pending)
        scatter(self.pending, touch.address, touch.width, self.copies.index(pending))

    def end_copy(self, address: Array, width: int, row: Array, site: int, writes: bool) -> None:
        """The issuing warp has waited for its copy: from now on the bytes count as written by it."""
        scatter(self.pending, address, width, 0)
        if writes:
            self._remember(address, width, row % self.census.warps, self.clocks.now(row) << _SITE_BITS | site)

    def land(self, address: Array, width: int, agent: int, moment: Array, site: int) -> None:
        """A copy has arrived that an mbarrier announces: written by `agent` at `moment` (k,)."""
        scatter(self.pending, address, width, 0)
        self._remember(address, width, np.full(moment.shape, agent), moment << _SITE_BITS | site)

    # ---- memory of accesses --------------------------------------------------------------------------

    def _remember_reads(self, touch: Touch, site: int) -> None:
        stamp = self.clocks.now(touch.row) << _SITE_BITS | site
        warp = touch.row % self.census.warps
        width = touch.width
        if width == 1:
            self.reads[touch.address, warp] = stamp
        else:
            self.reads[touch.address[:, None] + np.arange(width), warp[:, None]] = stamp[:, None]

    def _remember_writes(self, touch: Touch, site: int) -> None:
        stamp = self.clocks.now(touch.row) << _SITE_BITS | site
        self._remember(touch.address, touch.width, touch.row % self.census.warps, stamp)

    def _remember(self, address: Array, width: int, writer: Array, stamp: Array) -> None:
        """Bytes were written, not atomically."""
        for writers, stamps in ((self.writer, self.written), *([self.stored] if self.stored else [])):
            scatter(writers, address, width, writer[:, None])
            scatter(stamps, address, width, stamp[:, None])

    # ---- checks --------------------------------------------------------------------------------------

    def _check_pending(self, touch: Touch, site: int, findings: Findings, reading: bool) -> None:
        pending = gather(self.pending, touch.address, touch.width)
        if not pending.any():
            return
        harmful = np.array([copy.writes or not reading for copy in self.copies])
        harmful[0] = False
        first = np.max(np.where(harmful[pending], pending, 0), axis=1)
        bad = np.flatnonzero(first)
        copies = [self.copies[number] for number in first[bad].tolist()]
        what = "read" if reading else "overwritten"
        findings.add(
            lambda i: f"use of a pending copy: {touch.name(int(bad[i]))} is {what} before {copies[i].wait}",
            self.locs[site],
            touch.row[bad],
            touch.lane[bad],
            lambda i: (Note("the asynchronous copy is issued here", copies[i].loc),),
        )

    def _check_last_write(
        self, touch: Touch, site: int, findings: Findings, what: str, last: tuple[Array, Array] | None = None
    ) -> None:
        """Against the last write of each byte, or against `last`: the writers, and their moments with their sites."""
        writers, stamps = last or (self.writer, self.written)
        writer = gather(writers, touch.address, touch.width)
        other = (writer >= 0) & (writer != (touch.row % self.census.warps)[:, None])
        if not other.any():
            return
        written = gather(stamps, touch.address, touch.width)
        known = self.clocks.table[touch.row[:, None], np.maximum(writer, 0)]
        racing = other & (written >> _SITE_BITS > known)
        if racing.any():
            self._report(touch, site, findings, racing, writer, written, (what, "write"))

    def _check_reads(self, touch: Touch, site: int, findings: Findings, atomically: bool = False) -> None:
        reads = gather(self.reads, touch.address, touch.width)
        known = self.clocks.table[touch.row, : self.census.warps] << _SITE_BITS | _SITES
        known[np.arange(touch.row.size), touch.row % self.census.warps] = np.iinfo(np.int64).max
        racing = reads > known[:, None, :]
        if racing.any():
            reader = np.argmax(racing, axis=2)
            stamp = np.take_along_axis(reads, reader[..., None], axis=2)[..., 0]
            what = "update" if atomically else "write"
            self._report(touch, site, findings, np.asarray(racing.any(axis=2)), reader, stamp, (what, "read"))

    def _check_each_other(self, touch: Touch, site: int, findings: Findings) -> None:
        """Two warps may write one byte in the same step: then the byte does not hold the writer that it should."""
        warp = (touch.row % self.census.warps)[:, None]
        winner = gather(self.writer, touch.address, touch.width)
        lost = winner != warp
        if lost.any():
            written = gather(self.written, touch.address, touch.width)
            self._report(touch, site, findings, lost, winner, written, ("write", "write"))

    def _report(
        self,
        touch: Touch,
        site: int,
        findings: Findings,
        racing: Array,
        other: Array,
        stamp: Array,
        kinds: tuple[str, str],
    ) -> None:
        bad = np.flatnonzero(racing.any(axis=1))
        byte = np.argmax(racing[bad], axis=1)
        others, sites = other[bad, byte], stamp[bad, byte] & _SITES

        def agent(i: int) -> str:
            number = int(others[i])
            return f"warp {number}" if number < self.census.warps else "an asynchronous copy"

        def sentence(i: int) -> str:
            place = touch.name(int(bad[i]))
            wait = (
                "without a barrier between"
                if int(others[i]) < self.census.warps
                else "without waiting for its mbarrier"
            )
            return f"race: the {kinds[0]} of {place} and a {kinds[1]} of the same bytes by {agent(i)}, {wait}"

        findings.add(
            sentence,
            self.locs[site],
            touch.row[bad],
            touch.lane[bad],
            lambda i: (Note(f"the {kinds[1]} by {agent(i)}", self.locs[int(sites[i])]),),
        )
