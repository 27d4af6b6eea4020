"""Runs one operation for one group: reads its operands, calls the row's meaning, writes the results.

The operation knows nothing of scheduling; what may have to wait is `waiting`. Unwritten inputs of an instruction that
only moves bits mark its result: the meaning is run with the unwritten bits all 0 and all 1, and what differs is
unwritten. For all other instructions they are a finding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import InstructionError
from warpjit.isa.row import ArriveWhenCopied, BarrierSync, CompleteBytes, Completion, Hint, Kind, Mode, Participants
from warpjit.layout.axis import LANES
from warpjit.sim import accesses, barriers, registers
from warpjit.sim.accesses import Located
from warpjit.sim.effects import HANDLERS, check_participants
from warpjit.sim.groups import Group, Turn
from warpjit.sim.marks import Taint, shaped, words_of
from warpjit.sim.shadow import Pending
from warpjit.sim.state import State
from warpjit.sim.step import Bound, Pick, Spot, Step, Wave
from warpjit.sim.uses import report_use, used

Array: TypeAlias = npt.NDArray[Any]

_WAITS = {
    Completion.CP_ASYNC_GROUP: "its thread has waited for it with cp.async.wait_group",
    Completion.BULK_GROUP: "its thread has waited for it with cp.async.bulk.wait_group",
    Completion.WGMMA_GROUP: "its warpgroup has waited for it with wgmma.wait_group",
    Completion.MBARRIER_BYTES: "its mbarrier has completed the phase",
}


def turn_of(state: State, step: Step, group: Group) -> Turn:
    """The lanes for which the operation happens: active ones whose predicate holds."""
    turn = state.turn(group)
    if step.op.predicate is not None:
        holds = used(state, step.op.predicate, turn.rows, turn.mask, "as a predicate", step.loc).astype(bool)
        turn = Turn.of(turn.rows, turn.index, turn.mask & holds)
    collective = step.row.participants is not Participants.THREAD
    if collective and (not isinstance(step.row.effect, BarrierSync) or step.row.participants is Participants.WARP):
        check_participants(state, step, turn)
    return turn


def run(state: State, step: Step, turn: Turn) -> None:
    """One operation, all its issues. Raises SimulationError with what it does wrong."""
    if not turn.running or isinstance(step.row.effect, Hint):
        return
    if step.op.predicate is not None:
        _begin_results(state, step)
    for wave in step.waves:
        if step.arrives:
            _arrive(state, step, wave, turn)
            if isinstance(step.row.effect, ArriveWhenCopied):
                barriers.arrive_later(state, step, locate_all(state, step, wave, turn))
        elif step.updates:
            _update(state, step, wave, turn)
        else:
            _issue(state, step, wave, turn)


def _begin_results(state: State, step: Step) -> None:
    """Lanes whose predicate does not hold keep what they had: at first nothing."""
    for i in step.writes:
        for issue in step.bound[i].atoms:
            for atom in issue:
                state.values.taint(atom, slice(0))


def _arrive(state: State, step: Step, wave: Wave, turn: Turn) -> None:
    """An instruction that gives an mbarrier a new state."""
    places = locate_all(state, step, wave, turn)
    inputs: list[Array | None] = []
    taints: list[Taint | None] = []
    for i in step.reads:
        scalar = i not in places
        pick = wave.picks[i]
        value, taint = read_operand(state, step, step.bound[i], pick, None, turn) if scalar else (None, None)
        inputs.append(value)
        taints.append(taint)
    _use(state, step, taints, turn)
    (located,) = places.values()
    results = barriers.advance(state, step, located, inputs)
    others = [i for i in step.writes if i not in places]
    for i, result in zip(others, results, strict=True):
        _write(state, step, step.bound[i], wave.picks[i], None, turn, result, None)


def _update(state: State, step: Step, wave: Wave, turn: Turn) -> None:
    """An instruction that changes memory atomically: lanes at one address follow each other, warps and lanes in order.

    Its meaning is run on lanes at different addresses at once, (k,) of them, so it must be elementwise.
    """
    places = locate_all(state, step, wave, turn)
    ((position, located),) = places.items()
    read = [read_operand(state, step, step.bound[i], wave.picks[i], places.get(i), turn) for i in step.reads]
    _use(state, step, [taint for _, taint in read], turn)
    inputs = [None if value is None else value[located.where] for value, _ in read]
    _, first, place = np.unique(located.touch.address, return_index=True, return_inverse=True)
    memory = np.asarray(inputs[step.reads.index(position)])[first]
    returned: dict[int, Array] = {}
    for lanes in _rounds(place):
        now = [
            memory[place[lanes]] if i == position else _part(x, lanes) for i, x in zip(step.reads, inputs, strict=True)
        ]
        assert step.row.meaning is not None
        for i, result in zip(step.writes, _call(step, step.row.meaning, now), strict=True):
            if i == position:
                memory[place[lanes]] = result
            else:
                returned.setdefault(i, np.zeros(place.size, result.dtype))[lanes] = result
    for i, result in (*returned.items(), (position, memory[place])):
        whole = np.zeros((*located.where.shape, *result.shape[1:]), result.dtype)
        whole[located.where] = result
        _write(state, step, step.bound[i], wave.picks[i], places.get(i), turn, whole, None)


def _part(values: Array | None, lanes: Array) -> Array | None:
    return None if values is None else values[lanes]


def _rounds(place: Array) -> list[Array]:
    """Accesses by their places: in each round one to each place, in the order in which they come."""
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    starts = np.flatnonzero(np.r_[True, np.diff(ordered) != 0])
    rank = np.arange(order.size) - np.repeat(starts, np.diff(np.r_[starts, order.size]))
    by_rank = order[np.argsort(rank, kind="stable")]
    return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])


def _issue(state: State, step: Step, wave: Wave, turn: Turn) -> None:
    """The issues of one wave."""
    places = locate_all(state, step, wave, turn) if step.located else {}
    inputs: list[Array | None] = []
    taints: list[Taint | None] = []
    tainted = False
    for i in step.reads:
        value, taint = read_operand(state, step, step.bound[i], wave.picks[i], places.get(i), turn)
        inputs.append(value)
        taints.append(taint)
        tainted = tainted or taint is not None
    if step.divisor is not None:
        _check_divisor(state, step, inputs, turn)
    marked = tainted and _use(state, step, taints, turn)
    results = _results(state, step, turn, inputs)
    marks = _moved_marks(state, step, turn, inputs, taints, results) if marked else [None] * len(results)
    if isinstance(step.row.effect, CompleteBytes):
        barriers.take_off(state, step, places, results, turn)
        return
    for i, result, mark in zip(step.writes, results, marks, strict=True):
        _write(state, step, step.bound[i], wave.picks[i], places.get(i), turn, result, mark)
    if places:
        barriers.observe(state, step, places, results, turn)
    if step.row.completion is not Completion.NONE:
        _begin_copies(state, step, places)


# ---- operands -----------------------------------------------------------------------------------------


def locate_all(state: State, step: Step, wave: Wave, turn: Turn) -> dict[int, Located]:
    """The accesses of every address operand."""
    places = {}
    for i, (bound, spot) in enumerate(zip(step.bound, wave.picks, strict=True)):
        if isinstance(spot, Spot):
            lengths = _lengths(state, step, bound, turn)
            width = bound.width
            if not width:
                width = int(np.max(lengths, initial=1, where=turn.mask)) if lengths is not None else 1
            places[i] = accesses.locate(state, step, bound, spot, turn, lengths, width)
    return places


def _lengths(state: State, step: Step, bound: Bound, turn: Turn) -> Array | None:
    """Bytes of each lane's access (n, 32), where a scalar says so: `size`, and for what is read `src_size`."""
    if bound.operand.kind is not Kind.ADDRESS:
        return None
    names = ([] if bound.width else ["size"]) + (["src_size"] if bound.operand.reads else [])
    found = [scalar for scalar in map(step.find, names) if scalar is not None]
    if not found:
        return None
    arrays = [state.values.read(scalar.atoms[0][0], turn.index) for scalar in found]
    return shaped(np.minimum.reduce(np.broadcast_arrays(*arrays)), (turn.count, LANES))


def read_operand(
    state: State, step: Step, bound: Bound, pick: Pick | Spot | None, located: Located | None, turn: Turn
) -> tuple[Array | None, Taint | None]:
    """The array of a reading operand, and its marks."""
    if isinstance(pick, Pick):
        value = registers.read(state.values, pick, turn.index, turn.count, bound.operand.dtype)
        return value, registers.taint(state.values, pick, turn.index, turn.count)
    if located is None:
        return None, None
    if bound.operand.kind is Kind.BARRIER:
        return barriers.states(state, step, located), None
    return accesses.fetch(state, step, located, updates=bound.operand.mode is Mode.UPDATE)


def _write(
    state: State,
    step: Step,
    bound: Bound,
    pick: Pick | Spot | None,
    located: Located | None,
    turn: Turn,
    result: Array,
    taint: Taint | None,
) -> None:
    if isinstance(pick, Pick):
        registers.write(state.values, pick, turn.index, result, turn.where, taint, turn.count)
    elif located is not None and bound.operand.kind is Kind.BARRIER:
        barriers.initialise(state, step, located, result)
    elif located is not None:
        accesses.deposit(state, step, located, result, taint, updates=bound.operand.mode is Mode.UPDATE)


def _results(state: State, step: Step, turn: Turn, inputs: list[Array | None]) -> list[Array]:
    handler = HANDLERS.get(type(step.row.effect))
    if handler is not None:
        return handler(state, step, turn, step.row.effect)
    if step.row.meaning is None:
        return []
    try:
        return _call(step, step.row.meaning, inputs)
    except InstructionError as undefined:  # the row cannot say what these inputs give
        state.findings.add_warps(f"{step.row.text}: {undefined}", step.loc, turn.rows)
        state.findings.settle()
        raise


def _call(step: Step, meaning: Callable[..., Any], inputs: list[Array | None]) -> list[Array]:
    results = meaning(*inputs, **step.keywords)
    return list(results) if isinstance(results, tuple) else [] if results is None else [results]


def _begin_copies(state: State, step: Step, places: dict[int, Located]) -> None:
    """Operands that stay busy after the instruction."""
    for i, located in places.items():
        operand = step.bound[i].operand
        if operand.busy == "completion" and located.view is None:
            touch = located.touch if located.lengths is None else located.touch.bytewise(located.lengths)
            kind = step.row.completion
            state.shadow.begin_copy(touch, Pending(operand.writes, step.loc, _WAITS[kind]))
            state.copies.issue(kind, touch, operand.writes, step.site)


# ---- checks -------------------------------------------------------------------------------------------


def _check_divisor(state: State, step: Step, inputs: list[Array | None], turn: Turn) -> None:
    assert step.divisor is not None
    divisor = inputs[step.reads.index(step.divisor)]
    assert divisor is not None
    zero = (divisor == 0) & turn.mask
    if zero.any():
        position, lane = np.nonzero(zero.reshape(-1, turn.count, LANES).any(axis=0))
        state.findings.add(f"integer division by zero in {step.row.text}", step.loc, turn.rows[position], lane)
        state.findings.settle()


def _use(
    state: State,
    step: Step,
    taints: list[Taint | None],
    turn: Turn,
) -> bool:
    """Whether a marked value is moved. Using one is a finding."""
    marked = False
    for i, taint in zip(step.reads, taints, strict=True):
        if taint is None:
            continue
        mark = taint.mark if step.bound[i].operand.kind is Kind.SCALAR else taint.mark.max(axis=-1)
        mark = mark.reshape(-1, turn.count, LANES).max(axis=0)
        if not ((mark != 0) & turn.mask).any():
            continue
        marked = True
        if not step.moves:
            how = f"as operand {step.bound[i].operand.name} of {step.row.text}"
            report_use(state, mark, turn.mask, turn.rows, how, step.loc)
    state.findings.settle()
    return marked


def _moved_marks(
    state: State,
    step: Step,
    turn: Turn,
    inputs: list[Array | None],
    taints: list[Taint | None],
    results: list[Array],
) -> list[Taint | None]:
    """The marks of the results of an instruction that moves bits."""
    assert step.row.meaning is not None
    low = _call(step, step.row.meaning, [_with_bits(x, t, False) for x, t in zip(inputs, taints, strict=True)])
    high = _call(step, step.row.meaning, [_with_bits(x, t, True) for x, t in zip(inputs, taints, strict=True)])
    number = np.zeros(1, np.uint16)
    for i, taint in zip(step.reads, taints, strict=True):
        if taint is not None:
            scalar = step.bound[i].operand.kind is Kind.SCALAR
            number = np.maximum(number, taint.mark if scalar else taint.mark.max(axis=-1))
    if step.row.participants is not Participants.THREAD:
        number = number.max(axis=-1, keepdims=True)
    marks: list[Taint | None] = []
    for i, one, other in zip(step.writes, low, high, strict=True):
        bits = words_of(one) ^ words_of(other)
        scalar = step.bound[i].operand.kind is Kind.SCALAR
        mark = np.where(bits != 0, number if scalar else number[..., None], np.uint16(0)).astype(np.uint16)
        marks.append(Taint(mark, bits) if mark.any() else None)
    return marks


def _with_bits(value: Array | None, taint: Taint | None, ones: bool) -> Array | None:
    """A value whose unwritten bits are all 1 or all 0."""
    if value is None or taint is None:
        return value
    words = words_of(value)
    changed = words | taint.bits if ones else words & ~taint.bits
    return changed if changed.dtype == value.dtype else np.ascontiguousarray(changed).view(value.dtype)
