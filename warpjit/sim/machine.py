"""The machine: groups of warps walk through the flat code, one instruction for all their warps at once.

A group splits where warps go different ways and one of the ways may block; groups at the same place are merged. With
seed 0 the group furthest behind runs first, so that warps come together again soon; another seed picks at random.
A step is one operation (`ir.nodes.Op`) for one group. Blocking is `waiting`, what an operation does is `execute`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import Finding, SimulationError
from warpjit.ir.nodes import Allocate, Assign, Assume, Atom, Const, Declare, Local
from warpjit.isa.row import BarrierSync, Participants, WaitUntil
from warpjit.sim import barriers, execute
from warpjit.sim.accesses import report_use
from warpjit.sim.findings import LANES
from warpjit.sim.groups import Group, IfFrame, LoopFrame, merge
from warpjit.sim.linear import (
    Branch,
    Else,
    EndIf,
    Execute,
    Exit,
    ForTest,
    Instruction,
    Leave,
    LoopEnter,
    LoopExit,
    LoopNext,
    WhileTest,
)
from warpjit.sim.state import State, Turn
from warpjit.sim.step import Step
from warpjit.sim.waiting import Waiting

Array: TypeAlias = npt.NDArray[Any]
Groups: TypeAlias = "list[Group] | None"

_SPINS = 20_000  # turns of loops that only test mbarriers, or read memory, while nothing changes: a deadlock
_POLLS = 200_000


class Machine:
    """Runs a batch of CTAs. `steps` are the prepared operations by their place in the code."""

    def __init__(self, state: State, code: Sequence[Instruction], steps: dict[int, Step], seed: int):
        self.state, self.code, self.prepared = state, code, steps
        self.random = np.random.default_rng(seed) if seed else None
        self.waiting = Waiting(state)
        self.ready: list[Group] = []
        self.steps = 0
        self.issued: Counter[str] = Counter()
        self._quiet = (0, 0, 0)  # changes, tests, turns since

    def run(self) -> None:
        """Until every warp has returned. Raises SimulationError at the first operation that does something wrong."""
        rows = np.arange(self.state.census.rows)
        self.ready = self._scattered(Group(rows, self.state.present.copy()))
        while True:
            if self.waiting.at_conditions:
                self._resume(self.waiting.wake())
            if not self.ready:
                if self.state.copies.flights:
                    self._land()
                    continue
                if self.waiting:
                    raise self.waiting.deadlock()
                return
            self._advance(self._pick())

    # ---- scheduling --------------------------------------------------------------------------------

    def _scattered(self, group: Group) -> list[Group]:
        """With a seed, warps start apart."""
        if self.random is None or len(group.rows) == 1:
            return [group]
        side = self.random.integers(0, 4, len(group.rows))
        return [group.take(side == k) for k in range(4) if (side == k).any()]

    def _resume(self, groups: Sequence[Group]) -> None:
        for group in groups:
            self.ready += self._scattered(group)

    def _pick(self) -> Group:
        """The next group, merged with the others at its place and taken out of `ready`."""
        if self.state.copies.flights and min(group.turns for group in self.ready) > 0:
            self._land()
        if self.random is not None:
            group = self.ready[int(self.random.integers(len(self.ready)))]
            if self.random.integers(2):
                self.ready = [each for each in self.ready if each is not group]
                return group
        else:
            group = min(self.ready, key=lambda each: (each.turns, each.pc))
        same = [each for each in self.ready if each.pc == group.pc]
        self.ready = [each for each in self.ready if each.pc != group.pc]
        return merge(same)

    def _land(self) -> None:
        flights = self.state.copies.flights
        which = 0 if self.random is None else int(self.random.integers(len(flights)))
        barriers.land(self.state, flights.pop(which))

    def _advance(self, group: Group) -> None:
        """Run a group until others have to catch up with it, it splits, waits, or is done."""
        others = {each.pc for each in self.ready}
        limit = min((each.pc for each in self.ready if each.turns <= group.turns), default=len(self.code))
        if self.random is not None:
            limit = len(self.code)
        budget = len(self.code) if self.random is None else int(self.random.integers(1, 20))
        alone = not others and not self.waiting.at_conditions
        while True:
            instruction = self.code[group.pc]
            turns = group.turns
            parts = _HANDLERS[type(instruction)](self, group, instruction)
            if parts is not None:
                self._resume(parts) if isinstance(instruction, Execute) else self.ready.extend(parts)
                return
            budget -= 1
            spun = group.turns != turns and not (alone and not self.state.copies.flights)
            if spun or group.pc >= limit or group.pc in others or (budget <= 0 and self.random is not None):
                self.ready.append(group)
                return

    def _spin(self, group: Group, loop: LoopNext) -> None:
        """Count turns of a loop that reads what others may change."""
        group.turns += 1
        changes, tests, turns = self._quiet
        if changes != self.state.changes:
            self._quiet = (self.state.changes, self.state.tests, 0)
            return
        self._quiet = (changes, tests, turns + 1)
        if turns > (_SPINS if self.state.tests > tests else _POLLS) * (len(self.ready) + 1) and loop.variable is None:
            place = self.state.census.name(int(group.rows[0]))
            loc = getattr(self.code[group.pc], "loc", None) or next(
                step.loc for site, step in sorted(self.prepared.items()) if site >= loop.test
            )
            raise SimulationError.collect(
                [Finding(f"deadlock: a loop spins for ever on memory that no warp changes; {place}", loc)]
            )

    # ---- values ------------------------------------------------------------------------------------

    def _index(self, group: Group) -> Any:
        return group.index(self.state.census.rows)

    def _condition(self, group: Group, atom: Atom, loc: Any, how: str) -> Array:
        """The truth of an atom in each lane (n, 32); using an unwritten one is a finding."""
        index = self._index(group)
        taint = self.state.values.taint(atom, index)
        if taint is not None:
            bad = np.broadcast_to(taint.mark, group.mask.shape)
            position, lane = np.nonzero((bad != 0) & group.mask)
            numbers = bad[position, lane]
            self.state.findings.add(
                f"use of an unwritten value {how}",
                loc,
                group.rows[position],
                lane,
                lambda i: (self.state.marks.note(int(numbers[i])),),
            )
            self.state.findings.settle()
        return np.broadcast_to(self.state.values.read(atom, index).astype(bool), group.mask.shape)

    def _assign(self, group: Group, local: Local, value: Array, atom: Atom | None) -> None:
        index = self._index(group)
        taint = None if atom is None else self.state.values.taint(atom, index)
        where = None if group.mask.all() else group.mask
        values = np.broadcast_to(value, group.mask.shape)
        self.state.values.write(local, index, values, where, taint)

    # ---- statements --------------------------------------------------------------------------------

    def execute(self, group: Group, instruction: Execute) -> Groups:
        step = self.prepared[group.pc]
        turn = execute.turn_of(self.state, step, group.rows, self._index(group), group.mask)
        self.steps += 1
        self.issued[step.row.text] += step.op.issues * int(turn.mask.any(axis=1).sum())
        effect = step.row.effect
        if isinstance(effect, BarrierSync) and step.row.participants is not Participants.WARP:
            go = self.waiting.arrive(group, step, turn)
        elif isinstance(effect, WaitUntil):
            go = self.waiting.attempt(group, step, turn)
        else:
            execute.run(self.state, step, turn)
            group.pc += 1
            return None
        for each in go:
            each.pc = max(each.pc, step.site + 1) if each.pc == step.site else each.pc
        return go

    def declare(self, group: Group, node: Declare) -> Groups:
        self.state.values.declare(node.local, self._index(group), group.mask, node.loc)
        group.pc += 1
        return None

    def assign(self, group: Group, node: Assign) -> Groups:
        self._assign(group, node.local, self.state.values.read(node.value, self._index(group)), node.value)
        group.pc += 1
        return None

    def assume(self, group: Group, node: Assume) -> Groups:
        holds = self._condition(group, node.condition, node.loc, "in an assumption")
        position, lane = np.nonzero(~holds & group.mask)
        self.state.findings.add("T.assume: the condition is false here", node.loc, group.rows[position], lane)
        self.state.findings.settle()
        group.pc += 1
        return None

    def allocate(self, group: Group, node: Allocate) -> Groups:
        self.state.values.allocate(node.registers, self._index(group), group.mask, node.loc)
        group.pc += 1
        return None

    # ---- branches ----------------------------------------------------------------------------------

    def branch(self, group: Group, node: Branch) -> Groups:
        holds = self._condition(group, node.condition, node.loc, "in a condition")
        if node.splits:
            kind = (group.mask & holds).any(axis=1) * 2 + (group.mask & ~holds).any(axis=1)
            if (kind != kind[0]).any():
                return [self._enter(group.take(kind == k), holds[kind == k], node) for k in np.unique(kind).tolist()]
        self._enter(group, holds, node)
        return None

    def _enter(self, group: Group, holds: Array, node: Branch) -> Group:
        """Into the first arm that somebody takes."""
        first, other = group.mask & holds, group.mask & ~holds
        nobody = np.zeros_like(first)
        if first.any():
            group.push(IfFrame(other, nobody))
            group.mask, group.pc = first, group.pc + 1
        else:
            group.push(IfFrame(nobody, nobody))
            group.mask, group.pc = other, node.otherwise + 1
        return group

    def otherwise(self, group: Group, node: Else) -> Groups:
        frame = group.frames[-1]
        assert isinstance(frame, IfFrame)
        group.replace_top(IfFrame(np.zeros_like(group.mask), group.mask))
        group.mask = frame.other
        group.pc = group.pc + 1 if frame.other.any() else node.end
        return None

    def end_if(self, group: Group, node: EndIf) -> Groups:
        frame = group.pop()
        assert isinstance(frame, IfFrame)
        group.mask = group.mask | frame.done
        return self._go_on(group, node)

    def _go_on(self, group: Group, node: EndIf | LoopExit) -> Groups:
        """Past a join; warps with no lane left go to the next join outside."""
        alive = group.mask.any(axis=1)
        if alive.all() or (alive.any() and not node.splits):
            group.pc += 1
            return None
        if not alive.any():
            group.pc = node.escape
            return None
        stay, leave = group.split(alive)
        assert stay is not None and leave is not None
        stay.pc, leave.pc = group.pc + 1, node.escape
        return [stay, leave]

    # ---- loops -------------------------------------------------------------------------------------

    def loop_enter(self, group: Group, node: LoopEnter) -> Groups:
        if node.variable is not None and node.start is not None:
            index = self._index(group)
            self._assign(group, node.variable, self.state.values.read(node.start, index), node.start)
        nobody = np.zeros_like(group.mask)
        group.push(LoopFrame(nobody, nobody))
        group.pc += 1
        return None

    def for_test(self, group: Group, node: ForTest) -> Groups:
        index = self._index(group)
        for atom in (node.variable, node.stop):
            taint = self.state.values.taint(atom, index)
            if taint is not None:
                turn = Turn(group.rows, index, group.mask, False)
                self._report_bound(node, taint.mark, turn)
        value, stop = self.state.values.read(node.variable, index), self.state.values.read(node.stop, index)
        return self._test(group, value < stop if node.step > 0 else value > stop, node)

    def _report_bound(self, node: ForTest, mark: Array, turn: Turn) -> None:
        bad = np.broadcast_to(mark, turn.mask.shape)
        position, lane = np.nonzero((bad != 0) & turn.mask)
        numbers = bad[position, lane]
        self.state.findings.add(
            "use of an unwritten value as a loop's bound",
            node.loc,
            turn.rows[position],
            lane,
            lambda i: (self.state.marks.note(int(numbers[i])),),
        )
        self.state.findings.settle()

    def while_test(self, group: Group, node: WhileTest) -> Groups:
        return self._test(group, self._condition(group, node.condition, node.loc, "in a loop's condition"), node)

    def _test(self, group: Group, holds: Array, node: ForTest | WhileTest) -> Groups:
        frame = group.frames[-1]
        assert isinstance(frame, LoopFrame)
        stay = group.mask & holds
        group.replace_top(LoopFrame(frame.exited | (group.mask & ~holds), frame.continued))
        group.mask = stay
        alive = stay.any(axis=1)
        if alive.all() or (alive.any() and not node.splits):
            group.pc += 1
            return None
        if not alive.any():
            group.pc = node.exit
            return None
        inside, outside = group.split(alive)
        assert inside is not None and outside is not None
        inside.pc, outside.pc = group.pc + 1, node.exit
        return [inside, outside]

    def loop_next(self, group: Group, node: LoopNext) -> Groups:
        frame = group.frames[-1]
        assert isinstance(frame, LoopFrame)
        group.mask = group.mask | frame.continued
        group.replace_top(LoopFrame(frame.exited, np.zeros_like(group.mask)))
        if node.variable is not None:
            value = self.state.values.read(node.variable, self._index(group))
            self._assign(group, node.variable, value + value.dtype.type(node.step), None)
        if node.polls:
            self._spin(group, node)
        group.pc = node.test
        return None

    def loop_exit(self, group: Group, node: LoopExit) -> Groups:
        frame = group.pop()
        assert isinstance(frame, LoopFrame)
        group.mask, group.turns = frame.exited, 0
        return self._go_on(group, node)

    def leave(self, group: Group, node: Leave) -> Groups:
        nobody = np.zeros_like(group.mask)
        if node.how == "Return":
            self._returned(group)
        else:
            place = group.innermost_loop()
            frame = group.frames[place]
            assert isinstance(frame, LoopFrame)
            if node.how == "Break":
                changed = LoopFrame(frame.exited | group.mask, frame.continued)
            else:
                changed = LoopFrame(frame.exited, frame.continued | group.mask)
            group.frames = (*group.frames[:place], changed, *group.frames[place + 1 :])
        group.mask = nobody
        group.pc += 1
        return None

    def _returned(self, group: Group) -> None:
        """Lanes leave the kernel, which may complete a barrier."""
        self.state.present[group.rows] &= ~group.mask
        self._resume(self.waiting.release())

    def exit(self, group: Group, node: Exit) -> Groups:
        self._returned(group)
        return []


_HANDLERS: dict[type, Callable[[Machine, Group, Any], Groups]] = {
    Execute: Machine.execute,
    Declare: Machine.declare,
    Assign: Machine.assign,
    Assume: Machine.assume,
    Allocate: Machine.allocate,
    Branch: Machine.branch,
    Else: Machine.otherwise,
    EndIf: Machine.end_if,
    LoopEnter: Machine.loop_enter,
    ForTest: Machine.for_test,
    WhileTest: Machine.while_test,
    LoopNext: Machine.loop_next,
    LoopExit: Machine.loop_exit,
    Leave: Machine.leave,
    Exit: Machine.exit,
}
