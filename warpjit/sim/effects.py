"""What instructions do besides computing: special registers, election, groups of copies, lanes that must be there.

One handler for each effect of a row that needs no waiting. What blocks is `waiting`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.isa.row import Check, Commit, Elect, Print, Special, WaitGroup
from warpjit.layout.axis import LANES
from warpjit.sim.findings import lane_ranges
from warpjit.sim.groups import Turn
from warpjit.sim.marks import shaped
from warpjit.sim.printing import check, print_lines
from warpjit.sim.state import State
from warpjit.sim.step import Step

Array: TypeAlias = npt.NDArray[Any]


# ---- special registers --------------------------------------------------------------------------------


def _thread(state: State, turn: Turn) -> Array:
    """The linear thread index (n, 32)."""
    warp = turn.rows % state.census.warps
    return np.asarray(warp[:, None] * LANES + np.arange(LANES))


def _cta(state: State, turn: Turn) -> Array:
    """The CTA's coordinates (n, 3)."""
    return np.asarray(np.array(state.census.ctas)[turn.rows // state.census.warps])


def _axis(state: State, turn: Turn, of: str, axis: int) -> Array:
    """One coordinate of a register with three."""
    x, y, _ = state.shape.block
    thread, cta = _thread(state, turn), _cta(state, turn)[:, axis : axis + 1]
    extent, cluster = state.shape.grid[axis], state.shape.cluster[axis]
    values: dict[str, Callable[[], Any]] = {
        "tid": lambda: (thread % x, thread // x % y, thread // (x * y))[axis],
        "ntid": lambda: state.shape.block[axis],
        "ctaid": lambda: cta,
        "nctaid": lambda: extent,
        "cluster_ctaid": lambda: cta % cluster,
        "cluster_nctaid": lambda: cluster,
        "clusterid": lambda: cta // cluster,
        "nclusterid": lambda: -(-extent // cluster),
    }
    return np.asarray(values[of]())


def _rank_in_cluster(state: State, turn: Turn) -> Array:
    x, y, z = (_axis(state, turn, "cluster_ctaid", axis) for axis in range(3))
    width, height, _ = state.shape.cluster
    return np.asarray(x + width * (y + height * z))


_WHOLE: dict[str, Callable[[State, Turn], Any]] = {
    "laneid": lambda state, turn: np.arange(LANES),
    "tid": _thread,
    "warp": lambda state, turn: (turn.rows % state.census.warps)[:, None],
    "warpid": lambda state, turn: (turn.rows % state.census.warps)[:, None],
    "activemask": lambda state, turn: (turn.mask << np.arange(LANES)).sum(axis=1, keepdims=True),
    "nwarpid": lambda state, turn: state.census.warps,
    "cluster_ctarank": _rank_in_cluster,
    "cluster_nctarank": lambda state, turn: int(np.prod(state.shape.cluster)),
    "lanemask_eq": lambda state, turn: 1 << np.arange(LANES),
    "lanemask_lt": lambda state, turn: (1 << np.arange(LANES)) - 1,
    "lanemask_le": lambda state, turn: (2 << np.arange(LANES)) - 1,
    "lanemask_gt": lambda state, turn: 0xFFFFFFFF ^ ((2 << np.arange(LANES)) - 1),
    "lanemask_ge": lambda state, turn: 0xFFFFFFFF ^ ((1 << np.arange(LANES)) - 1),
}


def special(state: State, step: Step, turn: Turn, effect: Special) -> list[Array]:
    """The values of a special register (n, 32)."""
    name, _, letter = effect.register.partition(".")
    found = _axis(state, turn, name, "xyz".index(letter)) if letter else _WHOLE[name](state, turn)
    operand = step.bound[step.writes[0]].operand
    dtype = np.dtype(np.int32) if operand.dtype is None else operand.dtype.numpy
    return [shaped(np.asarray(found).astype(dtype), (turn.count, LANES))]


def elect(state: State, step: Step, turn: Turn, effect: Elect) -> list[Array]:
    """True in the lowest active lane; a result that is no bool is that lane's number."""
    leader = np.argmax(turn.mask, axis=1)[:, None]
    results = []
    for i in step.writes:
        dtype = step.bound[i].operand.dtype
        chosen = np.arange(LANES) == leader
        wants_lane = dtype is not None and not dtype.is_bool
        results.append(shaped(leader.astype(dtype.numpy), chosen.shape) if wants_lane and dtype else chosen)
    return results


# ---- groups of copies ---------------------------------------------------------------------------------


def commit(state: State, step: Step, turn: Turn, effect: Commit) -> list[Array]:
    """Each active thread closes its group."""
    state.copies.closed(effect.group)[turn.rows] += turn.mask
    return []


def wait_group(state: State, step: Step, turn: Turn, effect: WaitGroup) -> list[Array]:
    """The active threads' groups, all but the latest n, are complete: their bytes count as written now.

    cp.async.wait_all also waits for copies that are in no group yet.
    """
    limit = np.full((state.census.rows, LANES), -1, np.int64)
    closed = state.copies.closed(effect.group)[turn.rows]
    latest = closed + 1 if effect.all_groups else closed - step.number("n", 0)
    limit[turn.rows] = np.where(turn.mask, latest, -1)
    for copy, done in state.copies.wait(effect.group, limit):
        state.shadow.end_copy(copy.touch.address[done], copy.touch.width, copy.touch.row[done], copy.site, copy.writes)
    return []


HANDLERS: dict[type, Callable[[State, Step, Turn, Any], list[Array]]] = {
    Special: special,
    Elect: elect,
    Commit: commit,
    WaitGroup: wait_group,
    Print: print_lines,
    Check: check,
}


# ---- lanes that must be there -------------------------------------------------------------------------


def check_participants(state: State, step: Step, turn: Turn) -> None:
    """A collective needs all lanes of its warp, or those that its membermask names."""
    running = turn.mask.any(axis=1, keepdims=True)
    needed = np.ones((turn.count, LANES), bool)
    mask = step.find("membermask")
    if mask is not None:
        words = shaped(state.values.read(mask.atoms[0][0], turn.index), (turn.count, LANES))
        chosen = words[np.arange(turn.count), np.argmax(turn.mask, axis=1)].astype(np.int64)
        needed = (chosen[:, None] >> np.arange(LANES) & 1).astype(bool)
        _report_outsiders(state, step, turn, turn.mask & ~needed & running)
    if isinstance(step.row.effect, Special):
        needed = needed & state.present[turn.rows]
    missing = needed & ~turn.mask & running
    bad = np.flatnonzero(missing.any(axis=1))
    if bad.size:
        _report_missing(state, step, turn, missing, bad)
    state.findings.settle()


def _report_outsiders(state: State, step: Step, turn: Turn, outside: Array) -> None:
    position, lane = np.nonzero(outside)
    sentence = f"missing lanes: {step.row.text} is executed by a lane that its membermask does not name"
    state.findings.add(sentence, step.loc, turn.rows[position], lane)


def _report_missing(state: State, step: Step, turn: Turn, missing: Array, bad: Array) -> None:
    first = int(bad[0])
    row = int(turn.rows[first])
    threads = state.shape.threads
    lanes = missing[first]
    born = np.arange(LANES) + state.census.warp(row) * LANES < threads
    if (lanes & ~born).any():
        lanes, (one, many) = lanes & ~born, ("does not exist", "do not exist")
        why = f": a block of {threads} threads fills its last warp in part"
    elif (lanes & ~state.present[row]).any():
        lanes, (one, many), why = lanes & ~state.present[row], ("has returned", "have returned"), " from the kernel"
    else:
        (one, many), why = ("is not active", "are not active"), " here"
    verb = one if lanes.sum() == 1 else many
    wants = "the lanes of its membermask" if step.find("membermask") is not None else "all 32 lanes of the warp"
    sentence = f"missing lanes: {step.row.text} needs {wants}, but {lane_ranges(lanes)} {verb}{why}"
    state.findings.add_warps(sentence, step.loc, turn.rows[bad])
