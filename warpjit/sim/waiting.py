"""Warps that wait: at a barrier of their CTA, or until a condition holds; and what is said when none can go on.

Parked groups are kept whole and split when some of their warps may continue. Which group runs next is `machine`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import Finding, Note, SimulationError
from warpjit.isa.row import BarrierArrive, Kind, WaitUntil
from warpjit.layout.axis import LANES
from warpjit.sim import barriers, execute
from warpjit.sim.findings import lane_ranges
from warpjit.sim.groups import Group, Turn
from warpjit.sim.state import State
from warpjit.sim.step import Step

Array: TypeAlias = npt.NDArray[Any]
_BARRIERS = 16
_IDS = 1 << 16  # barrier ids are small; a key is CTA * _IDS + id


@dataclass
class AtBarrier:
    """A group at a barrier: the key of each warp's barrier, and how many threads it waits for (0: the whole CTA)."""

    group: Group
    step: Step
    keys: Array
    counts: Array

    @property
    def rows(self) -> Array:
        return self.group.rows


@dataclass
class Arrived:
    """Warps that have come to a barrier and went on: as in `AtBarrier`, with what was ordered before."""

    rows: Array
    step: Step
    keys: Array
    counts: Array
    clocks: Array


@dataclass
class AtCondition:
    """A group whose condition did not hold when memory had changed `seen` times."""

    group: Group
    step: Step
    seen: int


class Waiting:
    """All parked groups of one batch."""

    def __init__(self, state: State):
        self.state = state
        self.at_barriers: list[AtBarrier] = []
        self.arrived: list[Arrived] = []
        self.at_conditions: list[AtCondition] = []

    def __bool__(self) -> bool:
        return bool(self.at_barriers or self.at_conditions)

    # ---- barriers ------------------------------------------------------------------------------------

    def arrive(self, group: Group, step: Step, turn: Turn) -> list[Group]:
        """Warps come to a barrier. Returns the groups that may go on."""
        present = self.state.present[group.rows]
        self._check_whole(step, turn, present)
        running = np.asarray(turn.mask.any(axis=1))
        waiting, passing = group.split(running)
        go = [] if passing is None else [passing]
        if passing is not None:
            passing.pc = step.site + 1
        if waiting is None:
            return go
        self._check_agreed(step, waiting)
        keys = waiting.rows // self.state.census.warps * _IDS + self._scalar(step, "id", waiting, 0)
        counts = self._scalar(step, "count", waiting, 0)
        if isinstance(step.row.effect, BarrierArrive):
            clocks = self.state.clocks
            self.arrived.append(Arrived(waiting.rows, step, keys, counts, clocks.table[waiting.rows]))
            clocks.advance(waiting.rows)
            waiting.pc = step.site + 1
            return [*go, waiting, *self.release()]
        self.at_barriers.append(AtBarrier(waiting, step, keys, counts))
        return go + self.release()

    def _check_agreed(self, step: Step, group: Group) -> None:
        """The lanes of a warp name one barrier, from 0 to 15, and one number of threads."""
        for name, legal in (
            ("id", range(_BARRIERS)),
            ("count", range(LANES, LANES * self.state.census.warps + 1, LANES)),
        ):
            bound = step.find(name)
            if bound is None:
                continue
            values = self.state.values.read(bound.atoms[0][0], self.state.index(group.rows))
            values = np.broadcast_to(values, (len(group.rows), LANES))
            agreed = np.take_along_axis(values, np.argmax(group.mask, axis=1)[:, None], axis=1)
            bad = np.flatnonzero(((values != agreed) & group.mask).any(axis=1) | ~np.isin(agreed[:, 0], legal))
            if bad.size:
                given = values[bad[0]][group.mask[bad[0]]]
                got = str(given.min()) if given.min() == given.max() else f"{given.min()} to {given.max()}"
                last = f" in steps of {legal.step}" if legal.step > 1 else ""
                sentence = (
                    f"{step.row.text}: expected one {name} for the whole warp, from {legal[0]} to {legal[-1]}{last}, "
                    f"but got {got}"
                )
                self.state.findings.add_warps(sentence, step.loc, group.rows[bad])
        self.state.findings.settle()

    def _scalar(self, step: Step, name: str, group: Group, default: int) -> Array:
        """An operand that all lanes of a warp agree on."""
        bound = step.find(name)
        if bound is None:
            return np.full(len(group.rows), step.op.param(name, default), np.int64)
        index = self.state.index(group.rows)
        values = np.broadcast_to(self.state.values.read(bound.atoms[0][0], index), (len(group.rows), LANES))
        return np.asarray(values[np.arange(len(group.rows)), np.argmax(group.mask, axis=1)].astype(np.int64))

    def _check_whole(self, step: Step, turn: Turn, present: Array) -> None:
        """A barrier is for whole warps: every lane that has not returned comes to it."""
        absent = present & ~turn.mask & turn.mask.any(axis=1, keepdims=True)
        bad = np.flatnonzero(absent.any(axis=1))
        if bad.size:
            here, away = lane_ranges(turn.mask[bad[0]]), lane_ranges(absent[bad[0]])
            sentence = f"divergent barrier: {step.row.text} is reached by {here} of the warp, but not by {away}"
            self.state.findings.add_warps(sentence, step.loc, turn.rows[bad])
            self.state.findings.settle()

    def release(self) -> list[Group]:
        """The groups whose barriers are complete."""
        come: list[AtBarrier | Arrived] = [*self.at_barriers, *self.arrived]
        if not come:
            return []
        warps = self.state.census.warps
        keys = np.concatenate([each.keys for each in come])
        counts = np.concatenate([each.counts for each in come])
        rows = np.concatenate([each.rows for each in come])
        known, inverse, arrived = np.unique(keys, return_inverse=True, return_counts=True)
        wanted = np.zeros(known.size, np.int64)
        np.maximum.at(wanted, inverse, counts)
        self._check_counts(rows, counts, wanted[inverse])
        alive = self.state.present.any(axis=1).reshape(-1, warps).sum(axis=1)
        needed = np.where(wanted > 0, -(-wanted // LANES), alive[known // _IDS])
        complete = arrived >= needed
        if not complete.any():
            return []
        self._check_places(known[complete & (wanted == 0)])
        waits = np.arange(rows.size) < sum(len(each.keys) for each in self.at_barriers)
        done = complete[inverse]
        free = known[complete]
        self.state.clocks.meet(rows[done & waits], keys[done & waits], self._published(free))
        return self._released(set(free.tolist()))

    def _published(self, keys: Array) -> dict[int, Array]:
        """What warps that went on had done before they came to the barriers `keys`, which are complete."""
        found: dict[int, Array] = {}
        left = []
        for each in self.arrived:
            over = np.isin(each.keys, keys)
            for key, clock in zip(each.keys[over].tolist(), each.clocks[over], strict=True):
                known = found.setdefault(key, np.zeros_like(clock))
                size = max(known.size, clock.size)
                found[key] = np.maximum(*(np.pad(part, (0, size - part.size)) for part in (known, clock)))
            if not over.all():
                kept = ~over
                left.append(Arrived(each.rows[kept], each.step, each.keys[kept], each.counts[kept], each.clocks[kept]))
        self.arrived = left
        return found

    def _released(self, keys: set[int]) -> list[Group]:
        go, left = [], []
        for each in self.at_barriers:
            free = np.isin(each.keys, list(keys))
            passing, waiting = each.group.split(free)
            if passing is not None:
                passing.pc = each.step.site + 1
                go.append(passing)
            if waiting is not None:
                left.append(AtBarrier(waiting, each.step, each.keys[~free], each.counts[~free]))
        self.at_barriers = left
        return go

    def _check_counts(self, rows: Array, counts: Array, wanted: Array) -> None:
        bad = np.flatnonzero(counts != wanted)
        if bad.size:
            one = int(bad[0])
            come: list[AtBarrier | Arrived] = [*self.at_barriers, *self.arrived]
            step = next(each.step for each in come if rows[one] in each.rows)
            theirs = f"{int(counts[one])} threads" if counts[one] else "the whole CTA"
            sentence = (
                f"divergent barrier: it waits for {theirs}, other warps at the same barrier for {int(wanted[one])}"
            )
            self.state.findings.add_warps(sentence, step.loc, rows[bad])
            self.state.findings.settle()

    def _check_places(self, keys: Array) -> None:
        """The whole CTA meets at one statement."""
        for key in keys.tolist():
            here = [each for each in self.at_barriers if key in each.keys]
            first = here[0]
            others = [each for each in here if each.step.site != first.step.site]
            if not others:
                continue
            row = first.group.rows[first.keys == key]
            other = others[0].group.rows[others[0].keys == key]
            sentence = "divergent barrier: warps of one CTA wait for each other at different barriers"
            note = Note(f"{self.state.census.name(int(other[0]))} waits here", others[0].step.loc)
            self.state.findings.add_warps(sentence, first.step.loc, row, (note,))
        self.state.findings.settle()

    # ---- conditions ----------------------------------------------------------------------------------

    def attempt(self, group: Group, step: Step, turn: Turn) -> list[Group]:
        """Warps for which the condition holds in every active lane go on; the others are parked."""
        effect = step.row.effect
        assert isinstance(effect, WaitUntil)
        places = execute.locate_all(self.state, step, step.waves[0], turn)
        inputs = []
        for i in step.reads:
            bound = step.bound[i]
            if bound.operand.kind is Kind.BARRIER:
                barriers.check_initialised(self.state, step, places[i].touch)
            inputs.append(execute.read_operand(self.state, step, bound, step.waves[0].picks[i], places.get(i), turn)[0])
        ready = np.broadcast_to(effect.ready(*inputs), turn.mask.shape) | ~turn.mask
        passing, waiting = group.split(np.asarray(ready.all(axis=1)))
        if waiting is not None:
            self.at_conditions.append(AtCondition(waiting, step, self.state.changes))
        if passing is None:
            return []
        for i, located in places.items():
            if step.bound[i].operand.kind is Kind.BARRIER:
                barriers.acquire(self.state, located.touch, np.isin(located.touch.row, passing.rows))
        passing.pc = step.site + 1
        return [passing]

    def wake(self) -> list[Group]:
        """Try the conditions again whose memory may have changed."""
        stale = [each for each in self.at_conditions if each.seen != self.state.changes]
        if not stale:
            return []
        self.at_conditions = [each for each in self.at_conditions if each.seen == self.state.changes]
        go = []
        for each in stale:
            turn = execute.turn_of(self.state, each.step, each.group)
            go += self.attempt(each.group, each.step, turn)
        return go

    # ---- deadlock ------------------------------------------------------------------------------------

    def deadlock(self) -> SimulationError:
        """No warp can go on: who waits, for what, and where (one CTA is shown)."""
        parked = [(each.group, each.step) for each in self.at_barriers]
        parked += [(each.group, each.step) for each in self.at_conditions]
        warps = self.state.census.warps
        stuck = {int(row) // warps for group, _ in parked for row in group.rows}
        cta = min(stuck)
        notes: list[Note] = []
        for group, step in parked:
            for position in np.flatnonzero(group.rows // warps == cta).tolist():
                row = int(group.rows[position])
                notes.append(
                    Note(f"warp {self.state.census.warp(row)} waits {self._what(group, step, position)}", step.loc)
                )
        notes.sort(key=lambda note: note.message)
        returned = [w for w in range(warps) if not self.state.present[cta * warps + w].any()]
        if returned:
            notes.append(Note(f"warps that have returned: {', '.join(map(str, returned))}"))
        name = self.state.census.ctas[cta]
        others = f" (and in {len(stuck) - 1} more CTAs)" if len(stuck) > 1 else ""
        loc = next(step.loc for group, step in parked if (group.rows // warps == cta).any())
        finding = Finding(f"deadlock: no warp can go on in CTA {name}{others}", loc, tuple(notes))
        return SimulationError(finding.render(), [finding])

    def _what(self, group: Group, step: Step, position: int) -> str:
        """What one warp of a parked group waits for."""
        each = next((each for each in self.at_barriers if each.group is group), None)
        if each is None:
            return f"at {step.row.text} in {lane_ranges(group.mask[position])}, whose condition never becomes true"
        key, count = int(each.keys[position]), int(each.counts[position])
        come: list[AtBarrier | Arrived] = [*self.at_barriers, *self.arrived]
        arrived = Counter(int(k) for other in come for k in other.keys)[key]
        wanted = f"{count} threads" if count else "all warps of the CTA"
        said = "1 warp has come" if arrived == 1 else f"{arrived} warps have come"
        return f"at barrier {key % _IDS} ({step.row.text}) for {wanted}; {said}"
