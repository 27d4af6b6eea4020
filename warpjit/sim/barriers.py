"""mbarrier objects in shared memory: their states, what arrivals publish, and the copies that they announce.

What a state means is `warpjit.isa.mbarrier_state`. Waiting for a phase is `waiting`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.isa import mbarrier_state
from warpjit.isa.row import Kind, Mode
from warpjit.sim.accesses import Located
from warpjit.sim.copies import Flight
from warpjit.sim.memory import gather, scatter
from warpjit.sim.shadow import Pending, Touch
from warpjit.sim.state import State, Turn
from warpjit.sim.step import Bound, Step

Array: TypeAlias = npt.NDArray[Any]
BYTES = 8


def states(state: State, step: Step, located: Located) -> Array:
    """The objects' states, uint64 ([issues,] n, 32), 0 where there is no access. Counts as an atomic access."""
    state.shadow.update(located.touch, step.site, state.findings)
    state.findings.settle()
    found = np.zeros(located.where.shape, np.uint64)
    found[located.where] = stored(state, located.touch.address)
    return found


def stored(state: State, address: Array) -> Array:
    """The states at flat addresses (k,) of shared memory."""
    if not address.size:
        return np.zeros(0, np.uint64)
    return np.ascontiguousarray(gather(state.shared, address, BYTES)).view(np.uint64)[:, 0]


def change(state: State, step: Step, bound: Bound, located: Located, result: Array) -> None:
    """Give the objects new states: initialise them, or count an arrival."""
    touch = located.touch
    new = np.broadcast_to(result, located.where.shape)[located.where].astype(np.uint64)
    old = stored(state, touch.address)
    check_states(state, step, touch, new)
    if bound.operand.mode is Mode.WRITE:
        state.shadow.write(touch, step.site, state.findings)
        state.findings.settle()
        for row, byte in _places(state, touch):
            state.clocks.forget(row // state.census.warps, byte)
    _put(state, touch.address, new)
    if bound.operand.mode is not Mode.WRITE:
        _publish(state, touch, old, new)


def check_states(state: State, step: Step, touch: Touch, states: Array) -> None:
    """A finding where a state is an error. Raises SimulationError."""
    bad = np.flatnonzero(mbarrier_state.fields(states).failed)
    state.findings.add(
        lambda i: f"mbarrier misuse: {touch.name(int(bad[i]))} {mbarrier_state.error_of(int(states[bad[i]]))}",
        step.loc,
        touch.row[bad],
        touch.lane[bad],
    )
    state.findings.settle()


def check_initialised(state: State, step: Step, touch: Touch) -> None:
    """A finding where an object is waited for that is none. Raises SimulationError."""
    found = [mbarrier_state.error_of(int(each)) for each in stored(state, touch.address)]
    bad = np.array([i for i, error in enumerate(found) if error], np.int64)
    state.findings.add(
        lambda i: f"mbarrier misuse: {touch.name(int(bad[i]))} {found[bad[i]]}",
        step.loc,
        touch.row[bad],
        touch.lane[bad],
    )
    state.findings.settle()


def _places(state: State, touch: Touch) -> list[tuple[int, int]]:
    """The warp, and the byte of its CTA's shared memory, of each access."""
    return list(zip(touch.row.tolist(), (touch.address % state.stride).tolist(), strict=True))


def _put(state: State, address: Array, new: Array) -> None:
    scatter(state.shared, address, BYTES, np.ascontiguousarray(new)[:, None].view(np.uint8))
    scatter(state.shadow.mark, address, BYTES, 0)
    if state.objects is None:
        state.objects = np.zeros(state.shared.size, bool)
    scatter(state.objects, address, BYTES, mbarrier_state.fields(new).initialised[:, None])
    state.changes += 1


def _publish(state: State, touch: Touch, old: Array, new: Array) -> None:
    """An arrival publishes what its warp has done; the last one of a phase releases it to those who wait."""
    before, after = mbarrier_state.fields(old), mbarrier_state.fields(new)
    turned = before.phase != after.phase
    arrived = turned | (before.pending != after.pending)
    for (row, byte), arrives, turns in zip(_places(state, touch), arrived.tolist(), turned.tolist(), strict=True):
        if arrives:
            state.clocks.publish(row, byte)
        if turns:
            state.clocks.complete(row // state.census.warps, byte)


def observe(state: State, step: Step, places: dict[int, Located], results: list[Array], turn: Turn) -> None:
    """A test of an mbarrier that finds its phase complete acquires what was published."""
    for i, located in places.items():
        operand = step.bound[i].operand
        if operand.kind is Kind.BARRIER and operand.mode is Mode.READ and results:
            check_initialised(state, step, located.touch)
            passed = np.broadcast_to(results[0], located.where.shape)[located.where].astype(bool)
            acquire(state, located.touch, passed)
            state.tests += 1


def acquire(state: State, touch: Touch, passed: Array) -> None:
    """The warps of the accesses that `passed` have seen their mbarriers' phases complete."""
    state.clocks.acquire(touch.row[passed], touch.address[passed] % state.stride)


# ---- copies that an mbarrier announces ----------------------------------------------------------------


def take_off(state: State, step: Step, places: dict[int, Located], results: list[Array], turn: Turn) -> None:
    """A copy begins, whose arrival will be told to an mbarrier. Its bytes are pending from now on."""
    bar = next(places[i] for i in places if step.bound[i].operand.kind is Kind.BARRIER)
    check_initialised(state, step, bar.touch)
    barrier_of = dict(
        zip(zip(bar.touch.row.tolist(), bar.touch.lane.tolist(), strict=True), bar.touch.address.tolist(), strict=True)
    )
    for i, result in zip(step.writes, results, strict=True):
        located = places[i]
        touch = located.touch if located.lengths is None else located.touch.bytewise(located.lengths)
        state.shadow.write(touch, step.site, state.findings)
        state.findings.settle()
        pending = Pending(
            True, step.loc, "the copy has completed a phase of its mbarrier and this warp has waited for it"
        )
        state.shadow.begin_copy(touch, pending)
        octets = np.broadcast_to(result, (*located.where.shape, located.touch.width))[located.where]
        for k in range(located.touch.row.size):
            _fly(state, step, located, k, octets[k], barrier_of)


def _fly(
    state: State, step: Step, located: Located, k: int, octets: Array, barrier_of: dict[tuple[int, int], int]
) -> None:
    row, lane = int(located.touch.row[k]), int(located.touch.lane[k])
    length = located.touch.width if located.lengths is None else int(located.lengths[k])
    address = int(located.touch.address[k]) + np.arange(length)
    touch = Touch(
        address,
        1,
        np.full(length, row),
        np.full(length, lane),
        np.zeros(length, np.int64),
        lambda _: located.touch.name(k),
    )
    state.copies.flights.append(
        Flight(row, lane, touch, octets[:length, None], barrier_of[row, lane], length, step.site)
    )


def land(state: State, flight: Flight) -> None:
    """The bytes arrive and the mbarrier is told."""
    cta, byte = flight.row // state.census.warps, flight.barrier % state.stride
    agent = state.clocks.agent(byte)
    moment = state.clocks.copied(cta, byte)
    scatter(state.shared, flight.touch.address, 1, flight.octets)
    scatter(state.shadow.mark, flight.touch.address, 1, 0)
    state.shadow.land(flight.touch.address, 1, agent, np.full(flight.bytes, moment), flight.site)
    place = np.array([flight.barrier])
    old = stored(state, place)
    new = mbarrier_state.complete_tx(old, flight.bytes)
    _put(state, place, new)
    if mbarrier_state.fields(old).phase != mbarrier_state.fields(new).phase:
        state.clocks.complete(cta, byte)
