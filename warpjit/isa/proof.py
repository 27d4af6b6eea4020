"""Proofs that an operand's registers lie where an instruction reads or writes them, by enumeration.

`prove` compares every element of a view with the instruction's own layout: the lane that owns it must be the
instruction's, and each of the instruction's registers must be one and the same slot in all lanes. The answer is the
slots, issue by issue. What does not fit raises InstructionError with one element that shows it, and with the layout
that would fit. Addresses of tiles in memory are proven in `tile_proof`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DType
from warpjit.isa.operands import Group, accepts, fragment_operand, operand_layout
from warpjit.isa.row import Operand, Row
from warpjit.layout import Layout

Ints = npt.NDArray[np.int64]
LANES = 32


@dataclass(frozen=True, eq=False)
class Placement:
    """Where an operand is.

    slots    (issues, registers): the slot of the allocation that is register r of the instruction in issue i
    repeats  extents of the batch and repeat axes; issues are their coordinates in row-major order
    """

    slots: Ints
    repeats: tuple[int, ...]


@dataclass(frozen=True)
class _View:
    """What is to be proven, and the words for it."""

    row: Row
    operand: Operand
    layout: Layout
    shape: tuple[int, ...]
    dtype: DType
    group: Group

    @property
    def packed(self) -> int:
        """View elements in one register."""
        assert self.operand.dtype is not None
        return self.operand.dtype.bits // self.dtype.bits

    @property
    def atom(self) -> tuple[int, ...]:
        *rows, last = self.operand.shape
        return (*rows, last * self.packed)

    @property
    def repeats(self) -> tuple[int, ...]:
        """Batch and repeat extents; repeat axes that are left out are 1."""
        own = self.shape[len(self.group.extents) : len(self.shape) - len(self.atom)]
        return own or (1,) * len(self.operand.repeats)

    @property
    def issues(self) -> int:
        return prod(self.repeats)

    def refused(self, sentence: str) -> InstructionError:
        return InstructionError(f"{self.row.text}: operand {self.operand.name}: {sentence}")

    def misplaced(self, sentence: str) -> InstructionError:
        """The layout is wrong: with the layout that would fit."""
        return self.refused(f"{sentence}. The instruction's own layout for shape {self.shape} is {self.fitting()!r}")

    def fitting(self) -> Layout:
        """The instruction's own layout for this shape."""
        count = len(self.operand.repeats)
        repeats, batch = self.repeats[len(self.repeats) - count :], self.repeats[: len(self.repeats) - count]
        counts = dict(zip(self.operand.repeats, repeats, strict=True))
        element = self.packed > 1
        name = self.operand.name
        return operand_layout(self.row, name, batch=batch, element=element, group=self.group, **counts)

    def coordinates(self, where: tuple[int, int, int]) -> tuple[int, ...]:
        """Coordinates in the view of (group, issue, element of the atom)."""
        linear = np.ravel_multi_index(where, (prod(self.group.extents), self.issues, prod(self.atom)))
        return tuple(int(each) for each in np.unravel_index(linear, self.shape))


def prove(
    row: Row,
    operand_name: str,
    layout: Layout,
    shape: tuple[int, ...],
    dtype: DType,
    registers: int,
    group: Group,
) -> Placement:
    """The slots of a fragment operand that a view declares, after proving that the view is right.

    layout     of the view: owners on thread axes; on m the register, in elements of `dtype`
    shape      (*group, *batch, *repeats, *atom); the repeat axes may be missing where there is no batch and all are 1
    dtype      any type as wide as a register, or the element that registers pack (last atom axis as much longer)
    registers  slots of the allocation, in registers of the instruction's width
    group      the warps that execute together

    Raises InstructionError for an operand that is no fragment, a type or shape that does not fit, replicas, an owner
    or register that is not the instruction's, slots beyond the allocation, and a written slot that stands twice.
    Source: the fragment layouts of the PTX manual, section "Warp Level Matrix Instructions", as the rows state them.
    """
    return _prove(row, operand_name, layout, tuple(shape), dtype, registers, group)


@lru_cache(maxsize=4096)
def _prove(
    row: Row, name: str, layout: Layout, shape: tuple[int, ...], dtype: DType, registers: int, group: Group
) -> Placement:
    view = _View(row, fragment_operand(row, name), layout, shape, dtype, group)
    _check_declared(view)
    places = layout.enumerate(shape)
    extents = (prod(group.extents), view.issues, prod(view.atom))
    values = {axis: value.reshape(extents) for axis, value in places.items()}
    zero = np.zeros(extents, np.int64)
    _check_owners(view, values, zero)
    slots = _slots(view, values.get("m", zero))
    _check_slots(view, slots, registers)
    slots.flags.writeable = False
    return Placement(slots, view.repeats)


# ---- type and shape ----------------------------------------------------------------------------------


def _check_declared(view: _View) -> None:
    operand, dtype = view.operand, view.dtype
    assert operand.dtype is not None
    if not accepts(operand, dtype):
        element = f", or {operand.element} elements" if operand.element is not None else ""
        raise view.refused(f"expected {operand.dtype.bits}-bit registers{element}, but got a view of {dtype}")
    if any(it.extent > 1 for it in view.layout.replica):
        raise view.refused(f"the layout {view.layout!r} has replicas: each element must have one owner")
    leading, atom, extents = len(view.shape) - len(view.atom), view.atom, view.group.extents
    extra = leading - len(extents)
    fits = leading >= 0 and view.shape[leading:] == atom and view.shape[: len(extents)] == extents
    if not fits or 0 < extra < len(operand.repeats) or extra < 0:
        raise view.refused(f"expected a view of shape {_expected(view)}, but got {view.shape}")
    if view.layout.size() != prod(view.shape):
        raise view.refused(
            f"the layout {view.layout!r} has {view.layout.size()} elements, but the shape {view.shape} has "
            f"{prod(view.shape)}"
        )


def _expected(view: _View) -> str:
    names = (*map(str, view.group.extents), "*batch", *view.operand.repeats, *map(str, view.atom))
    return f"({', '.join(names)})"


# ---- owners ------------------------------------------------------------------------------------------


def _check_owners(view: _View, values: dict[str, Ints], zero: Ints) -> None:
    """The lane of every element must be the instruction's, its warp the group's coordinate, all else 0."""
    expected = _instruction(view)
    lane, warp = _lane(values, zero), _warp(view.group, values, zero)
    wrong = lane != expected.lane
    if wrong.any():
        where = _first(wrong)
        element = expected.register[where[2]] if view.operand.registers > 1 else 0
        slot = values.get("m", zero)[where] // view.packed
        verb = "writes" if view.operand.writes else "reads"
        raise view.misplaced(
            f"element {view.coordinates(where)} is in lane {lane[where]}, register {slot} of the view, but the "
            f"instruction {verb} it in lane {expected.lane[where[2]]}, register {element}"
        )
    wanted = np.arange(lane.shape[0])[:, None, None]
    if (warp != wanted).any():
        where = _first(warp != wanted)
        whose = f"of the {view.group.scope}" if view.group.extents else "(a single warp executes the instruction)"
        raise view.misplaced(
            f"element {view.coordinates(where)} is in warp {warp[where]} of the view, but belongs to warp {where[0]} "
            f"{whose}"
        )
    for axis in view.layout.axes:
        if axis.name not in _UNDERSTOOD and (values[axis.name] != 0).any():
            where = _first(values[axis.name] != 0)
            raise view.misplaced(
                f"element {view.coordinates(where)} is at {axis.name} = {values[axis.name][where]}, but one "
                f"{view.group.scope} executes the instruction"
            )


_UNDERSTOOD = ("m", "laneid", "tx", "tid_in_wg", "warpid", "wid_in_wg", "wgid")


def _lane(values: dict[str, Ints], zero: Ints) -> Ints:
    lane = values.get("laneid", zero)
    for axis in ("tx", "tid_in_wg"):
        if axis in values:
            lane = lane + values[axis] % LANES
    return lane


def _warp(group: Group, values: dict[str, Ints], zero: Ints) -> Ints:
    """The warp in the group; axes that count threads or warpgroups are converted."""
    in_warpgroup = values.get("wid_in_wg", zero) + values.get("tid_in_wg", zero) // LANES
    in_cta = values.get("warpid", zero) + values.get("tx", zero) // LANES + 4 * values.get("wgid", zero)
    total = in_cta + in_warpgroup
    return total % 4 if group.scope == "warpgroup" else total


# ---- registers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Instruction:
    """Lane, register and place within the register of each element of the view's atom (1-d arrays)."""

    lane: Ints
    register: Ints
    part: Ints


def _instruction(view: _View) -> _Instruction:
    operand = view.operand
    assert operand.layout is not None
    own = operand.layout.enumerate(operand.shape)
    zero = np.zeros(operand.shape, np.int64)
    lane, register = (np.repeat(own.get(axis, zero).reshape(-1), view.packed) for axis in ("laneid", "m"))
    return _Instruction(lane, register, np.arange(lane.size) % view.packed)


def _slots(view: _View, place: Ints) -> Ints:
    """(issues, registers), after checking that all lanes agree. `place` counts elements of the view."""
    expected = _instruction(view)
    word, part = place // view.packed, place % view.packed
    wrong = part != expected.part
    if wrong.any():
        where = _first(wrong)
        raise view.misplaced(
            f"element {view.coordinates(where)} is element {place[where]} of its lane's registers, so number "
            f"{part[where]} within its register, but the instruction wants it as number {expected.part[where[2]]}"
        )
    first = np.zeros(view.operand.registers, np.int64)
    first[expected.register[::-1]] = np.arange(expected.register.size)[::-1]
    slots = word[0][:, first]
    wrong = word != slots[None][:, :, expected.register]
    if wrong.any():
        where = _first(wrong)
        _, issue, element = where
        register = expected.register[element]
        witness = view.coordinates((0, issue, int(first[register])))
        raise view.misplaced(
            f"element {view.coordinates(where)} is in register {word[where]} of lane {expected.lane[element]}, and "
            f"element {witness} in register {slots[issue, register]} of lane {expected.lane[first[register]]}, but the "
            f"instruction takes both from one register (its number {register}), the same in all lanes"
        )
    return np.ascontiguousarray(slots)


def _check_slots(view: _View, slots: Ints, registers: int) -> None:
    if slots.size and slots.max() >= registers:
        issue, register = np.argwhere(slots >= registers)[0]
        raise view.refused(
            f"register {register} of issue {issue} is slot {slots[issue, register]} of the view, but the allocation "
            f"has {registers} registers"
        )
    if not view.operand.writes:
        return
    values, counts = np.unique(slots, return_counts=True)
    if (counts > 1).any():
        twice = values[counts > 1][0]
        (i, r), (j, s) = np.argwhere(slots == twice)[:2]
        raise view.misplaced(
            f"register {twice} would be written twice: as register {r} of issue {i} and as register {s} of issue {j}"
        )


def _first(wrong: npt.NDArray[np.bool_]) -> tuple[int, int, int]:
    group, issue, element = np.argwhere(wrong)[0]
    return int(group), int(issue), int(element)
