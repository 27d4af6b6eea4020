"""Where the elements of a view are, and where an instruction has those of its atom: arrays for proofs and conversions.

Arrays of a view have the shape (group, issue, element of the atom), those of an atom (element,). Nothing is judged here
but `agree`; what is wrong with a view, in words, is in `proof`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from warpjit.isa.operands import Group
from warpjit.isa.row import Operand
from warpjit.layout import Layout
from warpjit.layout.axis import LANES

Ints = npt.NDArray[np.int64]
OWNERS = ("m", "laneid", "tx", "tid_in_wg", "warpid", "wid_in_wg", "wgid")
"""The axes from which lane, warp and register are taken."""


@dataclass(frozen=True, eq=False)
class Atom:
    """Lane, register and place within the register of each element of an operand's atom."""

    lane: Ints
    register: Ints
    part: Ints

    @classmethod
    def of(cls, operand: Operand, packed: int) -> Atom:
        """`packed` elements are in a register."""
        assert operand.layout is not None
        own = operand.layout.enumerate(operand.shape)
        zero = np.zeros(operand.shape, np.int64)
        lane, register = (np.repeat(own.get(axis, zero).reshape(-1), packed) for axis in ("laneid", "m"))
        return cls(lane, register, np.arange(lane.size) % packed)


@dataclass(frozen=True, eq=False)
class Held:
    """Where a view has its elements: warp of the group, lane, register, place within the register."""

    warp: Ints
    lane: Ints
    word: Ints
    part: Ints

    def taken(self, index: Ints) -> Held:
        """The same places, of the elements that `index` (issue, element) names among all of a group, row-major."""

        def moved(values: Ints) -> Ints:
            return values.reshape(values.shape[0], -1)[:, index]

        return replace(self, warp=moved(self.warp), lane=moved(self.lane), word=moved(self.word), part=moved(self.part))


def held(layout: Layout, shape: tuple[int, ...], extents: tuple[int, int, int], packed: int, group: Group) -> Held:
    """The places of a view of `shape`, as (group, issue, element)."""
    assert prod(extents) == prod(shape)
    values = {axis: value.reshape(extents) for axis, value in layout.enumerate(shape).items()}
    zero = np.zeros(extents, np.int64)
    place = values.get("m", zero)
    return Held(_warp(group, values, zero), _lane(values, zero), place // packed, place % packed)


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


def first_of(atom: Atom, registers: int) -> Ints:
    """Of each register of the instruction the first element that it holds."""
    first = np.zeros(registers, np.int64)
    first[atom.register[::-1]] = np.arange(atom.register.size)[::-1]
    return first


def slots_of(view: Held, atom: Atom, registers: int) -> Ints:
    """(issues, registers): the view's register of the first element of each."""
    return np.ascontiguousarray(view.word[0][:, first_of(atom, registers)])


def agree(view: Held, atom: Atom, registers: int) -> bool:
    """Whether every element is in its lane and part, and each register of the instruction one register in all lanes."""
    slots = slots_of(view, atom, registers)
    return bool(
        (view.lane == atom.lane).all()
        and (view.warp == np.arange(view.warp.shape[0])[:, None, None]).all()
        and (view.part == atom.part).all()
        and (view.word == slots[None][:, :, atom.register]).all()
    )
