"""Proofs that an operand's registers lie where an instruction reads or writes them, by enumeration.

`prove` compares every element of a view with the instruction's own layout: the lane that owns it must be the
instruction's, and each of the instruction's registers must be one and the same slot in all lanes. The answer is the
slots, issue by issue. What does not fit raises InstructionError (`Misplaced`) with one element that shows it, the
nearest fix, and the layout that would fit. Addresses of tiles in memory are proven in `tile_proof`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DType
from warpjit.isa.fixes import Question, nearest
from warpjit.isa.operands import Group, accepts, fragment_operand, operand_layout
from warpjit.isa.places import OWNERS, Atom, Held, Ints, first_of, held, slots_of
from warpjit.isa.refusal import Counterexample, Fix, Misplaced, Place
from warpjit.isa.row import Operand, Row
from warpjit.layout import Layout
from warpjit.record import record


@dataclass(frozen=True, eq=False)
class Placement:
    """Where an operand is.

    slots    (issues, registers): the slot of the allocation that is register r of the instruction in issue i
    repeats  extents of the batch and repeat axes; issues are their coordinates in row-major order
    """

    slots: Ints
    repeats: tuple[int, ...]


@record
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

    def misplaced(self, sentence: str, example: Counterexample, fix: Fix | None = None) -> Misplaced:
        """The layout is wrong: with the nearest fix, and the layout that would fit."""
        own = self.fitting()
        last = f"The instruction's own layout for shape {self.shape} is {own!r}"
        known = f"{sentence}. {fix.sentence}" if fix is not None else sentence
        message = str(self.refused(f"{known}. {last}"))
        return Misplaced(message, example, fix or Fix("layout", last, layout=own))

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
    extents = (prod(group.extents), view.issues, prod(view.atom))
    places = held(layout, shape, extents, view.packed, group)
    atom = Atom.of(view.operand, view.packed)
    found = _wrong_owner(view, places, atom) or _wrong_register(view, places, atom)
    if found is not None:
        question = Question(view.operand, layout, shape, view.repeats, view.packed, places, atom)
        raise view.misplaced(found.sentence, found.example, nearest(question))
    _check_other_owners(view, extents)
    slots = slots_of(places, atom, view.operand.registers)
    _check_slots(view, slots, registers, atom)
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


# ---- owners and registers ----------------------------------------------------------------------------


@record
class _Wrong:
    """One element that shows that a view does not fit, in words and as data."""

    sentence: str
    example: Counterexample


def _place(places: Held, where: tuple[int, int, int]) -> Place:
    return Place(
        int(places.lane[where]), int(places.word[where]), int(places.part[where]), warp=int(places.warp[where])
    )


def _own_place(atom: Atom, where: tuple[int, int, int]) -> Place:
    group, _, element = where
    return Place(int(atom.lane[element]), int(atom.register[element]), int(atom.part[element]), warp=group)


def _wrong_owner(view: _View, places: Held, atom: Atom) -> _Wrong | None:
    """The lane of every element must be the instruction's, its warp the group's coordinate."""
    wrong = places.lane != atom.lane
    if wrong.any():
        where = _first(wrong)
        found, wanted = _place(places, where), _own_place(atom, where)
        verb = "writes" if view.operand.writes else "reads"
        return _Wrong(
            f"element {view.coordinates(where)} is in lane {found.lane}, register {found.register} of the view, but "
            f"the instruction {verb} it in lane {wanted.lane}, register {wanted.register}",
            Counterexample(view.coordinates(where), found, wanted),
        )
    wrong = places.warp != np.arange(places.warp.shape[0])[:, None, None]
    if wrong.any():
        where = _first(wrong)
        whose = f"of the {view.group.scope}" if view.group.extents else "(a single warp executes the instruction)"
        found = _place(places, where)
        return _Wrong(
            f"element {view.coordinates(where)} is in warp {found.warp} of the view, but belongs to warp {where[0]} "
            f"{whose}",
            Counterexample(view.coordinates(where), found, _own_place(atom, where)),
        )
    return None


def _wrong_register(view: _View, places: Held, atom: Atom) -> _Wrong | None:
    """Every element is its number within the register, and each register is the same one in all lanes."""
    wrong = places.part != atom.part
    if wrong.any():
        where = _first(wrong)
        found, wanted = _place(places, where), _own_place(atom, where)
        return _Wrong(
            f"element {view.coordinates(where)} is element {found.register * view.packed + found.part} of its lane's "
            f"registers, so number {found.part} within its register, but the instruction wants it as number "
            f"{wanted.part}",
            Counterexample(view.coordinates(where), found, wanted),
        )
    slots = slots_of(places, atom, view.operand.registers)
    wrong = places.word != slots[None][:, :, atom.register]
    if not wrong.any():
        return None
    where = _first(wrong)
    issue = where[1]
    found, wanted = _place(places, where), _own_place(atom, where)
    first = int(first_of(atom, view.operand.registers)[wanted.register])
    witness = view.coordinates((0, issue, first))
    return _Wrong(
        f"element {view.coordinates(where)} is in register {found.register} of lane {found.lane}, and element "
        f"{witness} in register {slots[issue, wanted.register]} of lane {atom.lane[first]}, but the instruction takes "
        f"both from one register (its number {wanted.register}), the same in all lanes",
        Counterexample(view.coordinates(where), found, wanted, witness),
    )


def _check_other_owners(view: _View, extents: tuple[int, int, int]) -> None:
    """On every axis that does not count lanes or warps of the group, everything is at 0."""
    for name, values in view.layout.enumerate(view.shape).items():
        if name not in OWNERS and values.any():
            where = _first(values.reshape(extents) != 0)
            raise view.refused(
                f"element {view.coordinates(where)} is at {name} = {values.reshape(extents)[where]}, but one "
                f"{view.group.scope} executes the instruction. The instruction's own layout for shape {view.shape} is "
                f"{view.fitting()!r}"
            )


# ---- slots -------------------------------------------------------------------------------------------


def _check_slots(view: _View, slots: Ints, registers: int, atom: Atom) -> None:
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
        first = first_of(atom, view.operand.registers)
        element, other = (view.coordinates((0, int(issue), int(first[number]))) for issue, number in ((j, s), (i, r)))
        found = Place(int(atom.lane[first[s]]), int(twice))
        example = Counterexample(element, found, _own_place(atom, (0, int(j), int(first[s]))), other)
        raise view.misplaced(
            f"register {twice} would be written twice: as register {r} of issue {i} and as register {s} of issue {j}",
            example,
        )


def _first(wrong: npt.NDArray[np.bool_]) -> tuple[int, int, int]:
    group, issue, element = np.argwhere(wrong)[0]
    return int(group), int(issue), int(element)
