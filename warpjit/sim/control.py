"""Control flow: what branches, loops, joins and exits do to the lanes of a group.

A handler changes the group in place and returns None, or returns the groups that it splits into. Handlers of what may
block, or let others go on, are in `machine`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.ir.nodes import Allocate, Assign, Assume, Atom, Declare, Local
from warpjit.sim.groups import Group, IfFrame, LoopFrame
from warpjit.sim.linear import Branch, Else, EndIf, ForTest, Leave, LoopEnter, LoopExit, LoopNext, WhileTest
from warpjit.sim.state import State
from warpjit.sim.uses import used

Array: TypeAlias = npt.NDArray[Any]
Groups: TypeAlias = list[Group] | None


# ---- statements without operations --------------------------------------------------------------------


def _store(state: State, group: Group, local: Local, values: Array, atom: Atom | None) -> None:
    """Give a local its values in the active lanes, with the marks of the atom that they come from."""
    turn = state.turn(group)
    taint = None if atom is None else state.values.taint(atom, turn.index)
    state.values.write(local, turn.index, values, turn.where, taint)


def declare(state: State, group: Group, node: Declare) -> Groups:
    state.values.declare(node.local, state.index(group.rows), group.mask, node.loc)
    group.pc += 1
    return None


def assign(state: State, group: Group, node: Assign) -> Groups:
    _store(state, group, node.local, state.values.read(node.value, state.index(group.rows)), node.value)
    group.pc += 1
    return None


def assume(state: State, group: Group, node: Assume) -> Groups:
    holds = used(state, node.condition, group.rows, group.mask, "in an assumption", node.loc).astype(bool)
    position, lane = np.nonzero(~holds & group.mask)
    state.findings.add("T.assume: the condition is false here", node.loc, group.rows[position], lane)
    state.findings.settle()
    group.pc += 1
    return None


def allocate(state: State, group: Group, node: Allocate) -> Groups:
    state.values.allocate(node.registers, state.index(group.rows), group.mask, node.loc)
    group.pc += 1
    return None


# ---- branches -----------------------------------------------------------------------------------------


def branch(state: State, group: Group, node: Branch) -> Groups:
    holds = used(state, node.condition, group.rows, group.mask, "in a condition", node.loc).astype(bool)
    if node.splits:
        kind = (group.mask & holds).any(axis=1) * 2 + (group.mask & ~holds).any(axis=1).astype(np.int64)
        if (kind != kind[0]).any():
            return [_enter(group.take(kind == k), holds[kind == k], node) for k in np.unique(kind).tolist()]
    _enter(group, holds, node)
    return None


def _enter(group: Group, holds: Array, node: Branch) -> Group:
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


def otherwise(state: State, group: Group, node: Else) -> Groups:
    frame = group.frames[-1]
    assert isinstance(frame, IfFrame)
    group.replace_top(IfFrame(np.zeros_like(group.mask), group.mask))
    group.mask = frame.other
    group.pc = group.pc + 1 if frame.other.any() else node.end
    return None


def end_if(state: State, group: Group, node: EndIf) -> Groups:
    frame = group.pop()
    assert isinstance(frame, IfFrame)
    group.mask = group.mask | frame.done
    return _parted(group, node.splits, node.escape)


def _parted(group: Group, splits: bool, away: int) -> Groups:
    """Onwards; warps with no lane left go to `away`, if they may not be carried along or if there are no others."""
    alive = np.asarray(group.mask.any(axis=1))
    if alive.all() or (alive.any() and not splits):
        group.pc += 1
        return None
    if not alive.any():
        group.pc = away
        return None
    stay, leave = group.take(alive), group.take(~alive)
    stay.pc, leave.pc = group.pc + 1, away
    return [stay, leave]


# ---- loops --------------------------------------------------------------------------------------------


def loop_enter(state: State, group: Group, node: LoopEnter) -> Groups:
    if node.variable is not None and node.start is not None:
        _store(state, group, node.variable, state.values.read(node.start, state.index(group.rows)), node.start)
    nobody = np.zeros_like(group.mask)
    group.push(LoopFrame(nobody, nobody))
    group.pc += 1
    return None


def for_test(state: State, group: Group, node: ForTest) -> Groups:
    value, stop = (
        used(state, atom, group.rows, group.mask, "as a loop's bound", node.loc) for atom in (node.variable, node.stop)
    )
    return _test(group, value < stop if node.step > 0 else value > stop, node)


def while_test(state: State, group: Group, node: WhileTest) -> Groups:
    holds = used(state, node.condition, group.rows, group.mask, "in a loop's condition", node.loc)
    return _test(group, holds.astype(bool), node)


def _test(group: Group, holds: Array, node: ForTest | WhileTest) -> Groups:
    frame = group.frames[-1]
    assert isinstance(frame, LoopFrame)
    group.replace_top(LoopFrame(frame.exited | (group.mask & ~holds), frame.continued))
    group.mask = group.mask & holds
    return _parted(group, node.splits, node.exit)


def loop_next(state: State, group: Group, node: LoopNext) -> Groups:
    frame = group.frames[-1]
    assert isinstance(frame, LoopFrame)
    group.mask = group.mask | frame.continued
    group.replace_top(LoopFrame(frame.exited, np.zeros_like(group.mask)))
    if node.variable is not None:
        value = state.values.read(node.variable, state.index(group.rows))
        _store(state, group, node.variable, value + np.array(node.step).astype(value.dtype), None)
    group.pc = node.test
    return None


def loop_exit(state: State, group: Group, node: LoopExit) -> Groups:
    frame = group.pop()
    assert isinstance(frame, LoopFrame)
    group.mask, group.turns = frame.exited, 0
    return _parted(group, node.splits, node.escape)


def leave_loop(group: Group, node: Leave) -> None:
    """A break or continue of the active lanes."""
    place = group.innermost_loop()
    frame = group.frames[place]
    assert isinstance(frame, LoopFrame)
    if node.how == "Break":
        changed = LoopFrame(frame.exited | group.mask, frame.continued)
    else:
        changed = LoopFrame(frame.exited, frame.continued | group.mask)
    group.frames = (*group.frames[:place], changed, *group.frames[place + 1 :])


HANDLERS: dict[type, Callable[[State, Group, Any], Groups]] = {
    Declare: declare,
    Assign: assign,
    Assume: assume,
    Allocate: allocate,
    Branch: branch,
    Else: otherwise,
    EndIf: end_if,
    LoopEnter: loop_enter,
    ForTest: for_test,
    WhileTest: while_test,
    LoopNext: loop_next,
    LoopExit: loop_exit,
}
