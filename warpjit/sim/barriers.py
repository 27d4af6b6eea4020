"""mbarrier objects in shared memory: their states, what arrivals publish, and the copies that they announce.

What a state means is `warpjit.isa.mbarrier_state`. Waiting for a phase is `waiting`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.isa import mbarrier_state
from warpjit.isa.row import Completion, Kind, Mode
from warpjit.layout.axis import LANES
from warpjit.sim.accesses import Located
from warpjit.sim.copies import Arrival, Flight
from warpjit.sim.groups import Turn
from warpjit.sim.memory import gather, scatter
from warpjit.sim.shadow import Pending, Touch
from warpjit.sim.state import State
from warpjit.sim.step import Step

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


def initialise(state: State, step: Step, located: Located, result: Array) -> None:
    """New objects begin here: an ordinary write."""
    touch = located.touch
    new = np.broadcast_to(result, located.where.shape)[located.where].astype(np.uint64)
    _check_states(state, step, touch, new)
    state.shadow.write(touch, step.site, state.findings)
    state.findings.settle()
    for row, byte in zip(touch.row.tolist(), (touch.address % state.stride).tolist(), strict=True):
        state.clocks.forget(row // state.census.warps, byte)
    _put(state, touch.address, new)


@dataclass(frozen=True)
class Transition:
    """What one lane does to one object: its new state, the other results, and what that means."""

    state: int
    results: tuple[Any, ...]
    fails: bool
    arrives: bool
    turns: bool


def advance(state: State, step: Step, located: Located, inputs: list[Array | None]) -> list[Array]:
    """Lanes change the states of objects one after the other, in the order of warps and lanes: arrivals and the like.

    inputs  the meaning's arrays (n, 32); None where the object's state or nothing stands
    Returns the other results (n, 32), in the order of the row.
    """
    touch = located.touch
    state.shadow.update(touch, step.site, state.findings)
    state.findings.settle()
    known = dict(zip(touch.address.tolist(), stored(state, touch.address).tolist(), strict=True))
    others = [None if each is None else each[located.where].tolist() for each in inputs]
    published: set[tuple[int, int]] = set()
    done: list[Transition] = []
    for k, (row, address) in enumerate(zip(touch.row.tolist(), touch.address.tolist(), strict=True)):
        given = tuple(None if each is None else each[k] for each in others)
        after = _after(state, step, known[address], given)
        done.append(after)
        if after.fails:
            error = mbarrier_state.error_of(after.state)
            sentence = f"mbarrier misuse: {touch.name(k)} {error}"
            state.findings.add(sentence, step.loc, touch.row[k : k + 1], touch.lane[k : k + 1])
            state.findings.settle()
        known[address] = after.state
        byte = address % state.stride
        if after.arrives and (row, address) not in published:
            state.clocks.publish(row, byte)
            published.add((row, address))
        if after.turns:
            state.clocks.complete(row // state.census.warps, byte)
            published = {each for each in published if each[1] != address}
    _put(state, np.array(list(known)), np.array(list(known.values()), np.uint64))
    return [_laid_out(located, [each.results[i] for each in done]) for i in range(len(step.writes) - 1)]


def _laid_out(located: Located, values: list[Any]) -> Array:
    """One value an access as an array (n, 32)."""
    array = np.array(values)
    result = np.zeros(located.where.shape, array.dtype)
    result[located.where] = array
    return result


def _after(state: State, step: Step, old: int, given: tuple[Any, ...]) -> Transition:
    """One lane's change of one object. The same few happen over and over, so they are remembered."""
    key = (step.site, old, given)
    found = state.transitions.get(key)
    if found is None:
        assert step.row.meaning is not None
        arrays = [None if each is None else np.full((1, LANES), each) for each in given]
        arrays[_barrier_of(step, step.reads)] = np.full((1, LANES), old, np.uint64)
        returned = step.row.meaning(*arrays, **step.keywords)
        results = list(returned) if isinstance(returned, tuple) else [returned]
        new = np.asarray(results.pop(_barrier_of(step, step.writes))).ravel()[:1].astype(np.uint64)
        others = tuple(np.asarray(each).ravel()[0] for each in results)
        before, after = mbarrier_state.fields(np.array([old], np.uint64)), mbarrier_state.fields(new)
        turns = bool(before.phase[0] != after.phase[0]) and bool(after.initialised[0])
        arrives = turns or bool(before.pending[0] > after.pending[0])
        found = Transition(int(new[0]), others, bool(after.failed[0]), arrives, turns)
        state.transitions[key] = found
    return found


def _barrier_of(step: Step, positions: list[int]) -> int:
    """Which of these operands is the mbarrier."""
    return next(n for n, i in enumerate(positions) if step.bound[i].operand.kind is Kind.BARRIER)


def _check_states(state: State, step: Step, touch: Touch, states: Array) -> None:
    """A finding where a state is an error. Raises SimulationError."""
    _refuse(state, step, touch, states, mbarrier_state.fields(states).failed)


def check_initialised(state: State, step: Step, touch: Touch) -> None:
    """A finding where an object is waited for that is none. Raises SimulationError."""
    states = stored(state, touch.address)
    held = mbarrier_state.fields(states)
    _refuse(state, step, touch, states, held.failed | ~held.initialised)


def _refuse(state: State, step: Step, touch: Touch, states: Array, wrong: Array) -> None:
    bad = np.flatnonzero(wrong)
    state.findings.add(
        lambda i: f"mbarrier misuse: {touch.name(int(bad[i]))} {mbarrier_state.error_of(int(states[bad[i]]))}",
        step.loc,
        touch.row[bad],
        touch.lane[bad],
    )
    state.findings.settle()


def _put(state: State, address: Array, new: Array) -> None:
    scatter(state.shared, address, BYTES, np.ascontiguousarray(new)[:, None].view(np.uint8))
    scatter(state.shadow.mark, address, BYTES, 0)
    if state.objects is None:
        state.objects = np.zeros(state.shared.size, bool)
    scatter(state.objects, address, BYTES, mbarrier_state.fields(new).initialised[:, None])
    state.changes += 1


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


def arrive_later(state: State, step: Step, places: dict[int, Located]) -> None:
    """Threads will arrive at mbarriers when the copies of groups are done that they have issued so far."""
    (located,) = places.values()
    touch = located.touch
    for row, lane, address in zip(touch.row.tolist(), touch.lane.tolist(), touch.address.tolist(), strict=True):
        state.copies.flights.append(Arrival(row, lane, address, state.copies.issued, step.site))


def land(state: State, flight: Flight | Arrival) -> None:
    """A copy is done: its bytes are there, and the mbarrier is told."""
    if isinstance(flight, Arrival):
        _land_arrival(state, flight)
    else:
        _land_copy(state, flight)


def _land_arrival(state: State, flight: Arrival) -> None:
    cta, byte = flight.row // state.census.warps, flight.barrier % state.stride
    agent = state.clocks.agent(byte)
    moment = state.clocks.copied(cta, byte)
    for copy, done in state.copies.before(Completion.CP_ASYNC_GROUP, flight):
        moments = np.full(int(done.sum()), moment)
        state.shadow.land(copy.touch.address[done], copy.touch.width, agent, moments, copy.site)
    place = np.array([flight.barrier])
    _told(state, cta, byte, place, mbarrier_state.arrive(stored(state, place)))


def _told(state: State, cta: int, byte: int, place: Array, new: Array) -> None:
    """An mbarrier has a new state, which may be a phase later."""
    old = stored(state, place)
    _put(state, place, new)
    if mbarrier_state.fields(old).phase != mbarrier_state.fields(new).phase:
        state.clocks.complete(cta, byte)


def _land_copy(state: State, flight: Flight) -> None:
    cta, byte = flight.row // state.census.warps, flight.barrier % state.stride
    agent = state.clocks.agent(byte)
    moment = state.clocks.copied(cta, byte)
    scatter(state.shared, flight.touch.address, 1, flight.octets)
    scatter(state.shadow.mark, flight.touch.address, 1, 0)
    state.shadow.land(flight.touch.address, 1, agent, np.full(flight.bytes, moment), flight.site)
    place = np.array([flight.barrier])
    _told(state, cta, byte, place, mbarrier_state.complete_tx(stored(state, place), flight.bytes))
