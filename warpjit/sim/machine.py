"""The machine: groups of warps walk through the flat code, one instruction for all their warps at once.

A group splits where warps go different ways and one of the ways may block; groups at the same place are merged. With
seed 0 the group furthest behind runs first, so that warps come together again soon; another seed picks at random.
A step is one operation (`ir.nodes.Op`) for one group. Blocking is `waiting`, what an operation does is `execute`, what
control flow does to lanes is `control`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import Finding, SimulationError
from warpjit.isa.row import WaitUntil
from warpjit.sim import barriers, control, execute
from warpjit.sim.control import Groups
from warpjit.sim.groups import Group, merge
from warpjit.sim.linear import Execute, Exit, Instruction, Leave, LoopNext
from warpjit.sim.state import State
from warpjit.sim.step import Step
from warpjit.sim.waiting import Waiting

Array: TypeAlias = npt.NDArray[Any]

_PARTS = 4  # a seed runs the warps of a group in this many parts
_STRIDE = 20  # and lets a part run this many instructions at most before another has its turn

# Turns of a loop, with nothing in memory changing, after which it is taken to spin for ever: fewer for a loop that
# tests mbarriers than for one that reads memory, which may be searching a large table.
_TESTS, _READS = 20_000, 200_000


class Machine:
    """Runs a batch of CTAs. `prepared` are the operations by their place in the code; `batch` is its number."""

    def __init__(
        self, state: State, code: Sequence[Instruction], prepared: Mapping[int, Step], seed: int, batch: int = 0
    ):
        self.state, self.code, self.prepared = state, code, prepared
        self.random = np.random.default_rng([abs(seed), seed < 0, batch]) if seed else None
        self.waiting = Waiting(state)
        self.ready: list[Group] = []
        self.steps = 0
        self.issued: Counter[str] = Counter()
        self._quiet = Quiet(0, 0)

    def run(self) -> None:
        """Until every warp has returned. Raises SimulationError at the first operation that does something wrong."""
        with np.errstate(all="ignore"):  # what a GPU computes silently
            self._run()

    def _run(self) -> None:
        rows = np.arange(self.state.census.rows)
        self._resume([Group(rows, self.state.present.copy())])
        while True:
            if self.waiting.at_conditions:
                self._resume(self.waiting.wake())
            if self.ready:
                self._advance(self._pick())
            elif self.state.copies.flights:
                self._land()
            elif self.waiting:
                raise self.waiting.deadlock()
            else:
                return

    # ---- scheduling --------------------------------------------------------------------------------

    def _resume(self, groups: Sequence[Group]) -> None:
        """Groups that may run now; with a seed their warps go apart."""
        for group in groups:
            if self.random is None or len(group.rows) == 1:
                self.ready.append(group)
                continue
            part = self.random.integers(0, _PARTS, len(group.rows))
            self.ready += [group.take(part == k) for k in np.unique(part).tolist()]

    def _pick(self) -> Group:
        """The next group, merged with the others at its place and taken out of `ready`."""
        if self.state.copies.flights and min(group.turns for group in self.ready) > 0:
            self._land()
        if self.random is None:
            group = min(self.ready, key=lambda each: (each.turns, each.pc))
        else:
            group = self.ready[int(self.random.integers(len(self.ready)))]
            if self.random.integers(2):
                self.ready = [each for each in self.ready if each is not group]
                return group
        same = [each for each in self.ready if each.pc == group.pc]
        self.ready = [each for each in self.ready if each.pc != group.pc]
        return merge(same)

    def _land(self) -> None:
        """One copy arrives: as late as possible, the first one first or with a seed any."""
        flights = self.state.copies.flights
        which = 0 if self.random is None else int(self.random.integers(len(flights)))
        barriers.land(self.state, flights.pop(which))

    def _advance(self, group: Group) -> None:
        """Run a group until others have to catch up with it, it splits, waits, or is done."""
        others = {each.pc for each in self.ready}
        limit = min((each.pc for each in self.ready if each.turns <= group.turns), default=len(self.code))
        alone = not (others or self.waiting.at_conditions or self.state.copies.flights)
        left = len(self.code)
        if self.random is not None:
            limit, left = len(self.code), int(self.random.integers(1, _STRIDE))
        while True:
            instruction = self.code[group.pc]
            turns = group.turns
            parts = self._do(group, instruction)
            if parts is not None:
                if isinstance(instruction, Execute):
                    self._resume(parts)
                else:
                    self.ready += parts
                return
            left -= 1
            spun = group.turns > turns and not alone
            tired = left <= 0 and self.random is not None
            if spun or tired or group.pc >= limit or group.pc in others:
                self.ready.append(group)
                return

    # ---- instructions ------------------------------------------------------------------------------

    def _do(self, group: Group, instruction: Instruction) -> Groups:
        kind = type(instruction)
        if kind in _HANDLERS:
            return _HANDLERS[kind](self, group, instruction)
        return control.HANDLERS[kind](self.state, group, instruction)

    def execute(self, group: Group, instruction: Execute) -> Groups:
        step = self.prepared[group.pc]
        turn = execute.turn_of(self.state, step, group)
        self.steps += 1
        self.issued[step.row.text] += step.op.issues * turn.running
        if instruction.blocks:
            waits = isinstance(step.row.effect, WaitUntil)
            return (self.waiting.attempt if waits else self.waiting.arrive)(group, step, turn)
        execute.run(self.state, step, turn)
        group.pc += 1
        return None

    def loop_next(self, group: Group, node: LoopNext) -> Groups:
        if node.polls:
            group.turns += 1
            self._quiet = self._quiet.after(self.state)
            if node.variable is None and self._quiet.turns > self._quiet.limit(self.state) * (len(self.ready) + 1):
                name = self.state.census.name(int(group.rows[0]))
                finding = Finding(
                    f"deadlock: this loop spins for ever on memory that no warp changes; {name}", node.loc
                )
                raise SimulationError(finding.render(), [finding])
        return control.loop_next(self.state, group, node)

    def leave(self, group: Group, node: Leave) -> Groups:
        if node.how == "Return":
            self._returned(group)
        else:
            control.leave_loop(group, node)
        group.mask = np.zeros_like(group.mask)
        group.pc += 1
        return None

    def exit(self, group: Group, node: Exit) -> Groups:
        self._returned(group)
        return []

    def _returned(self, group: Group) -> None:
        """Lanes leave the kernel, which may complete a barrier."""
        self.state.present[group.rows] &= ~group.mask
        self._resume(self.waiting.release())


class Quiet:
    """How many turns of loops have passed since memory last changed."""

    def __init__(self, changes: int, tests: int, turns: int = 0):
        self.changes, self.tests, self.turns = changes, tests, turns

    def after(self, state: State) -> Quiet:
        """One more turn."""
        if self.changes != state.changes:
            return Quiet(state.changes, state.tests)
        self.turns += 1
        return self

    def limit(self, state: State) -> int:
        return _TESTS if state.tests > self.tests else _READS


_HANDLERS: dict[type, Callable[[Machine, Group, Any], Groups]] = {
    Execute: Machine.execute,
    LoopNext: Machine.loop_next,
    Leave: Machine.leave,
    Exit: Machine.exit,
}
