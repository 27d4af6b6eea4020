"""Address operands: from addresses to bytes and back, after checking that the access is allowed.

An access is checked against the shape of the tensor that it names (`Access`), against the bytes of its buffer, and
for alignment; then the shadow of shared memory checks it for races and pending copies. Bytes that are read carry
their marks; bytes that are written get the marks of what is stored, except in global memory, where storing a marked
value is a use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import Note
from warpjit.ir.nodes import Access, Address, Atom, Const, SharedBuffer
from warpjit.layout.axis import LANES
from warpjit.sim.groups import Turn
from warpjit.sim.marks import Mark, Taint, shaped
from warpjit.sim.memory import View, gather, scatter
from warpjit.sim.shadow import Touch
from warpjit.sim.state import State
from warpjit.sim.step import Bound, Spot, Step
from warpjit.sim.uses import report_use

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Located:
    """The accesses of one operand in one wave, k of them, all allowed.

    where    which (issue, warp, lane) access memory: ([issues,] n, 32)
    touch    the accesses, in the order of `where`'s true entries
    lengths  bytes of each access, where they differ (k,)
    view     the global tensor, None for shared memory
    """

    where: Array
    touch: Touch
    lengths: Array | None
    view: View | None

    @property
    def all(self) -> bool:
        return self.touch.row.size == self.where.size


def locate(
    state: State, step: Step, bound: Bound, spot: Spot, turn: Turn, lengths: Array | None, width: int
) -> Located:
    """The accesses of an operand. `lengths` (n, 32): bytes of each lane's access; none is made for 0.

    Raises SimulationError where one is out of bounds, misaligned, or its address is an unwritten value.
    """
    issues = len(spot.addresses)
    where = np.broadcast_to(turn.mask, (issues, turn.count, LANES))
    if bound.givers is not None:
        where = where & bound.givers
    if lengths is not None:
        where = where & (lengths > 0)
    offset = _offsets(state, step, spot, turn, where)
    _check_elements(state, step, spot, turn, where)
    state.findings.settle()
    if issues == 1 and bound.givers is None and lengths is None:
        position, lane = turn.places
        issue, picked = np.zeros_like(lane), offset[0, position, lane]
    else:
        issue, position, lane = np.nonzero(where)
        picked = offset[issue, position, lane]
    row = turn.rows[position]
    size = None if lengths is None else np.minimum(lengths[position, lane], width).astype(np.int64)
    name = _namer(state, bound, spot, turn, issue, position, lane, picked)
    touch = Touch(picked, width, row, lane, issue, name)
    buffer = spot.addresses[0].buffer
    if not isinstance(buffer, SharedBuffer):
        view = state.views[buffer.name]
        _check_bytes(state, step, touch, size, view.inside(picked, width if size is None else size), "the tensor")
        _check_alignment(state, step, bound, touch, picked + view.address)
        placed = picked + view.base
    else:
        view, region = None, state.regions[buffer.name]
        end = picked + (width if size is None else size)
        inside = (picked >= 0) & (end <= region.bytes)
        _check_bytes(state, step, touch, size, inside, f"shared memory of {region.bytes} bytes")
        _check_alignment(state, step, bound, touch, picked + region.offset)
        placed = picked + (region.offset + row // state.census.warps * state.stride)
    state.findings.settle()
    touch = Touch(placed, width, row, lane, issue, name)
    return Located(where if issues > 1 else where[0], touch, size, view)


def _offsets(state: State, step: Step, spot: Spot, turn: Turn, where: Array) -> Array:
    """Byte offsets into the buffer (issues, n, 32), int64."""
    shape = where.shape
    if spot.shared_offset:
        atoms = [spot.same]
    else:
        atoms = [address.offset for address in spot.addresses]
    parts = []
    for i, atom in enumerate(atoms):
        if atom is None:
            parts.append(np.zeros((1, 1), np.int64))
            continue
        parts.append(state.values.read(atom, turn.index).astype(np.int64))
        taint = state.values.taint(atom, turn.index)
        if taint is not None:
            users = np.asarray(where.any(axis=0) if len(atoms) == 1 else where[i])
            report_use(state, taint.mark, users, turn.rows, "in an address", step.loc)
    variable = parts[0][None] if len(parts) == 1 else np.stack([shaped(part, shape[1:]) for part in parts])
    return shaped(variable + spot.constants[:, None, None], shape)


# ---- checks -------------------------------------------------------------------------------------------


def _check_elements(state: State, step: Step, spot: Spot, turn: Turn, where: Array) -> None:
    """The coordinates of each access against the shape of its tensor."""
    known: dict[tuple[Atom, Atom], Array | None] = {}  # issues share most of their coordinates
    for i, address in enumerate(spot.addresses):
        access = address.access
        if access is None:
            continue
        wrong = []
        for pair in zip(access.coordinates, access.shape, strict=True):
            if pair not in known:
                known[pair] = _outside(state, turn, *pair)
            if (lanes := known[pair]) is not None:
                wrong.append(lanes)
        if not wrong:
            continue
        bad = np.logical_or.reduce(wrong) & where[i]
        if not bad.any():
            continue
        position, lane = np.nonzero(bad)
        state.findings.add(
            lambda k, access=access, position=position, lane=lane: (  # type: ignore[misc]
                f"out of bounds: {element(state, access, turn, int(position[k]), int(lane[k]))} "
                f"but {access.tensor} has shape {_tuple(state, access.shape, turn, int(position[k]), int(lane[k]))}"
            ),
            step.loc,
            turn.rows[position],
            lane,
        )


def _outside(state: State, turn: Turn, index: Atom, extent: Atom) -> Array | None:
    """The lanes (n, 32), active or not, in which a coordinate is not one of 0 ... extent - 1; None: in no lane."""
    if isinstance(index, Const) and isinstance(extent, Const):
        return None if 0 <= index.value < extent.value else np.ones((turn.count, LANES), bool)
    value, limit = state.values.read(index, turn.index), state.values.read(extent, turn.index)
    wrong = (value < 0) | (value >= limit)
    return np.broadcast_to(wrong, (turn.count, LANES)) if wrong.any() else None


def _value(state: State, atom: Any, turn: Turn, position: int, lane: int) -> int:
    values = state.values.read(atom, turn.index)
    return int(shaped(values, (turn.count, LANES))[position, lane])


def _tuple(state: State, atoms: tuple[Any, ...], turn: Turn, position: int, lane: int) -> str:
    return str(tuple(_value(state, atom, turn, position, lane) for atom in atoms))


def element(state: State, access: Access, turn: Turn, position: int, lane: int) -> str:
    """The element in words: "A[16, 3]"."""
    places = [str(_value(state, atom, turn, position, lane)) for atom in access.coordinates]
    return f"{access.tensor}[{', '.join(places)}]" if places else access.tensor


def _namer(
    state: State, bound: Bound, spot: Spot, turn: Turn, issue: Array, position: Array, lane: Array, offset: Array
) -> Any:
    def name(k: int) -> str:
        address: Address = spot.addresses[int(issue[k])]
        if address.access is not None:
            return element(state, address.access, turn, int(position[k]), int(lane[k]))
        return f"byte {int(offset[k])} of {address.buffer.name}"

    return name


def _check_bytes(state: State, step: Step, touch: Touch, size: Array | None, inside: Array, what: str) -> None:
    if inside.all():
        return
    bad = np.flatnonzero(~inside)

    def sentence(i: int) -> str:
        k = int(bad[i])
        length = touch.width if size is None else int(size[k])
        start = int(touch.address[k])
        return f"out of bounds: {touch.name(k)} is bytes {start} to {start + length - 1}, outside of {what}"

    state.findings.add(sentence, step.loc, touch.row[bad], touch.lane[bad])


def _check_alignment(state: State, step: Step, bound: Bound, touch: Touch, address: Array) -> None:
    align = bound.align
    if align <= 1 or not (address % align).any():
        return
    bad = np.flatnonzero(address % align)

    def sentence(i: int) -> str:
        k = int(bad[i])
        return (
            f"misaligned: {touch.name(k)} lies {int(address[k]) % align} bytes past a multiple of {align}, "
            f"which {step.row.text} needs"
        )

    state.findings.add(sentence, step.loc, touch.row[bad], touch.lane[bad])


# ---- bytes --------------------------------------------------------------------------------------------


def fetch(state: State, step: Step, located: Located, *, updates: bool = False) -> tuple[Array, Taint | None]:
    """The bytes at the addresses, uint8 ([issues,] n, 32, width), 0 where there is no access, and their marks.

    With `updates` they are read atomically: `deposit` checks and remembers that.
    """
    memory = state.shared if located.view is None else located.view.storage.data
    found = _gathered(memory, located)
    if located.view is not None:
        return _spread(located, found), None
    touch = located.touch if located.lengths is None else located.touch.bytewise(located.lengths)
    _check_objects(state, step, touch)
    if not updates:
        state.shadow.read(touch, step.site, state.findings)
    state.findings.settle()
    marks = _gathered(state.shadow.mark, located)
    if not marks.any():
        return _spread(located, found), None
    loaded = _loaded_marks(state, step, marks, located)
    return _spread(located, found), Taint(
        _spread(located, loaded), np.where(_spread(located, marks) != 0, 255, 0).astype("u1")
    )


def _loaded_marks(state: State, step: Step, marks: Array, located: Located) -> Array:
    """A mark of bytes that nothing wrote says where they were loaded; other marks stay."""
    result = marks.copy()
    for number in np.unique(marks[marks != 0]).tolist():
        note = state.marks.note(number)
        if not note.loc.frames:
            sentence = note.message.replace(
                "nothing has written these bytes of", "loaded from bytes that nothing has written, of"
            )
            result[marks == number] = state.marks.number(Mark(sentence, step.loc))
    return result


def deposit(
    state: State, step: Step, located: Located, octets: Array, taint: Taint | None, *, updates: bool = False
) -> None:
    """Store the bytes ([issues,] n, 32, width) at the addresses; with `updates` atomically."""
    touch = located.touch
    octets = shaped(octets, (*located.where.shape, touch.width))[located.where]
    if located.view is None:
        flat = touch if located.lengths is None else touch.bytewise(located.lengths)
        _check_objects(state, step, flat)
        access = state.shadow.update if updates else state.shadow.write
        access(flat, step.site, state.findings)
        state.findings.settle()
        marks: Any = np.uint16(0) if taint is None else taint.mark[located.where]
        put(state.shadow.mark, located, np.broadcast_to(marks, octets.shape))
    elif taint is not None:
        _check_stored(state, step, located, taint)
    put(state.shared if located.view is None else located.view.storage.data, located, octets)
    if located.view is not None and touch.address.size:
        storage = located.view.storage
        storage.low = min(storage.low, int(touch.address.min()))
        storage.high = max(storage.high, int(touch.address.max()) + touch.width)
    state.changes += 1


def _check_stored(state: State, step: Step, located: Located, taint: Taint) -> None:
    marks = taint.mark[located.where].max(axis=-1)
    bad = np.flatnonzero(marks)
    state.findings.add(
        lambda i: f"use of an unwritten value: it is stored to {located.touch.name(int(bad[i]))} in global memory",
        step.loc,
        located.touch.row[bad],
        located.touch.lane[bad],
        lambda i: (state.marks.note(int(marks[bad[i]])),),
    )
    state.findings.settle()


def _check_objects(state: State, step: Step, touch: Touch) -> None:
    """An mbarrier is opaque: only mbarrier instructions may touch its bytes."""
    if state.objects is None:
        return
    bad = np.flatnonzero(gather(state.objects, touch.address, touch.width).any(axis=1))
    state.findings.add(
        lambda i: (
            f"mbarrier misuse: {touch.name(int(bad[i]))} lies in an initialised mbarrier, "
            f"which {step.row.text} may not touch"
        ),
        step.loc,
        touch.row[bad],
        touch.lane[bad],
        (Note("only mbarrier instructions may read or write it until mbarrier.inval"),),
    )
    state.findings.settle()


def _gathered(memory: Array, located: Located) -> Array:
    """(k, width) entries; 0 past the length of an access."""
    touch = located.touch
    if located.lengths is None:
        return (
            gather(memory, touch.address, touch.width) if touch.row.size else np.zeros((0, touch.width), memory.dtype)
        )
    inner = np.arange(touch.width) < located.lengths[:, None]
    found = np.zeros((touch.row.size, touch.width), memory.dtype)
    found[inner] = memory[(touch.address[:, None] + np.arange(touch.width))[inner]]
    return found


def put(memory: Array, located: Located, values: Array) -> None:
    """Store (k, width) entries, up to the length of each access."""
    touch = located.touch
    if located.lengths is None:
        scatter(memory, touch.address, touch.width, values)
    else:
        inner = np.arange(touch.width) < located.lengths[:, None]
        memory[(touch.address[:, None] + np.arange(touch.width))[inner]] = values[inner]


def _spread(located: Located, entries: Array) -> Array:
    """(k, width) to ([issues,] n, 32, width), 0 elsewhere."""
    shape = (*located.where.shape, entries.shape[-1])
    if located.all:
        return entries.reshape(shape)
    result = np.zeros(shape, entries.dtype)
    result[located.where] = entries
    return result
