"""The calculator: which lane, register and bits hold an element of an operand, and what a register holds.

    where("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "A", 5, 9)        element -> Place(lane=20, …)
    holds("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "A", 20, 2)       lane, register -> its elements
    giver("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "src", 1, 3)               row of a tile -> lane with its address
    given("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "src", 11)                 lane -> row of the tile
    listed(target="sm_90a", dtype="bf16")                                        the instructions there are

Instructions are texts or rows; elements are counted in the operand's own type (float16, not 32-bit words). The answers
are the rows' own layouts, which kernels are proven against. Needs no GPU, no compiler, and not torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DTYPES, DType, tf32, uint1
from warpjit.isa import table
from warpjit.isa.operands import fragment_operand
from warpjit.isa.row import Fields, Kind, Operand, Row
from warpjit.isa.target import Target
from warpjit.layout import TileLayout
from warpjit.layout.axis import LANES
from warpjit.record import record

Ints = npt.NDArray[np.int64]


@record
class Place:
    """Where one element of a fragment is, or what is at one place.

    lane      of the warp, 0 to 31
    register  of the operand in that lane, in the order in which the instruction's text lists them
    bits      (lowest, highest) bit of the register that the element takes, both included
    element   its coordinates, named by `Operand.held.names`; of sparse metadata the row and group that it is of
    selector  of sparse metadata: with which selector the instruction reads it there
    others    further places that hold the same element: of sparse metadata those of the other selectors
    """

    lane: int
    register: int
    bits: tuple[int, int]
    element: tuple[int, ...]
    selector: int | None = None
    others: tuple[Place, ...] = ()


@record
class RowAddress:
    """The lane that gives the address of a row of a tile in memory, and the bytes that are moved there.

    row    its coordinates, named by `Operand.axes` without the last
    bytes  how many are moved at that address
    """

    lane: int
    row: tuple[int, ...]
    bytes: int


def where(instr: Row | str, operand: str, /, *coordinates: int, **named: int) -> Place:
    """The lane, register and bits that hold an element of a fragment.

    coordinates  in elements of the operand's own type: all in order, or all by name (k=9, n=3), as
                 `Operand.held.names` has them; of sparse metadata (E of mma.sp) the row and the group's number in it

    Raises InstructionError: unknown instruction or operand, an operand that is no fragment, coordinates outside.
    """
    row = table.as_row(instr)
    fragment = fragment_operand(row, operand)
    held = fragment.held
    element = _element(row, fragment, held.names, held.shape, coordinates, named)
    found = _map(fragment)
    places = [found.place(copy, element) for copy in range(len(found.lane))]
    return replace(places[0], others=tuple(places[1:]))


def holds(instr: Row | str, operand: str, lane: int, register: int) -> tuple[Place, ...]:
    """The elements in one register of one lane, from the lowest bits up: the inverse of `where`.

    Raises InstructionError: unknown instruction or operand, an operand that is no fragment, a lane or register that
    does not exist.
    """
    row = table.as_row(instr)
    fragment = fragment_operand(row, operand)
    found = _map(fragment)
    _check_in(row, fragment, "lane", lane, LANES)
    _check_in(row, fragment, "register", register, fragment.registers)
    here = np.argwhere((found.lane == lane) & (found.register == register)).tolist()
    places = (found.place(copy, tuple(element)) for copy, *element in here)
    return tuple(sorted(places, key=lambda place: place.bits))


def giver(instr: Row | str, operand: str, /, *coordinates: int, **named: int) -> RowAddress:
    """The lane that gives the address of a row of an address operand (`src` of ldmatrix), by the row's coordinates.

    Raises InstructionError: unknown instruction or operand, an operand without rows, coordinates outside.
    """
    row = table.as_row(instr)
    operand_, layout = _tile_operand(row, operand)
    names, shape = operand_.axes[:-1], operand_.shape[:-1]
    element = _element(row, operand_, names, shape, coordinates, named)
    lane = layout.apply(*element, shape=shape).get("laneid", 0)
    return RowAddress(lane, element, operand_.bytes)


def given(instr: Row | str, operand: str, lane: int) -> tuple[RowAddress, ...]:
    """The rows of an address operand whose address this lane gives: none, where the lane's address is not used.

    Raises InstructionError: unknown instruction or operand, an operand without rows, a lane that does not exist.
    """
    row = table.as_row(instr)
    operand_, layout = _tile_operand(row, operand)
    _check_in(row, operand_, "lane", lane, LANES)
    shape = operand_.shape[:-1]
    lanes = layout.enumerate(shape).get("laneid", np.zeros(shape, np.int64))
    found = np.argwhere(lanes == lane).tolist()
    return tuple(RowAddress(lane, tuple(each), operand_.bytes) for each in found)


def has_rows(operand: Operand) -> bool:
    """Whether this is an address operand with a row for several lanes, which `giver` and `given` answer for."""
    return operand.kind is Kind.ADDRESS and operand.layout is not None


def listed(target: Target | str | None = None, dtype: DType | str | None = None) -> tuple[Row, ...]:
    """Every instruction that one writes by its text, or those that a target has, with an operand of a type.

    target  "sm_90a" or a Target
    dtype   the manual's name ("bf16", "s8") or torch's ("bfloat16", "int8"): of an operand's elements, or in the text

    Raises TargetError and InstructionError for names that are unknown.
    """
    wanted = Target.parse(target) if isinstance(target, str) else target
    kind = None if dtype is None else _type_named(dtype)
    return tuple(
        row
        for row in _written()
        if (wanted is None or row.needs.holds(wanted)) and (kind is None or kind in _types(row))
    )


# ---- parts -------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _written() -> tuple[Row, ...]:
    """All rows but those that operators, subscripts and names of the language stand for."""
    implied = table.family("scalar") | table.family("memory")
    return tuple(row for row in table.rows() if row.text not in implied)


_TYPE = re.compile(r"(?:[bfsu]|bf|tf)\d+|u?e\d+m\d+")
"""A type among the modifiers of an instruction's text."""

_TORCH_NAMES = {each.name: each.ptx for each in (*DTYPES.values(), tf32, uint1)}


@lru_cache(maxsize=4096)
def _types(row: Row) -> frozenset[str]:
    """The manual's names of the types of its operands' elements, and of those that its text speaks of."""
    elements = (operand.element or operand.dtype for operand in row.operands)
    said = (each for each in row.text.split(".") if _TYPE.fullmatch(each))
    return frozenset({*said, *(each.ptx for each in elements if each is not None)})


def _type_named(name: DType | str) -> str:
    """The manual's name of a type that tensors or instructions have."""
    asked = name.name if isinstance(name, DType) else name
    wanted = _TORCH_NAMES.get(asked, asked)
    known = frozenset(_TORCH_NAMES.values()).union(*map(_types, _written()))
    if wanted not in known:
        shown = ", ".join(sorted(known))
        raise InstructionError(f"expected a data type such as bf16 but got {asked!r}; the types are {shown}")
    return wanted


@dataclass(frozen=True, eq=False)
class _Map:
    """Lane, register and lowest bit of all that a fragment's registers hold: arrays (copies, *shape)."""

    held: Fields
    lane: Ints
    register: Ints
    bit: Ints

    def place(self, copy: int, element: tuple[int, ...]) -> Place:
        where = (copy, *element)
        bit = int(self.bit[where])
        selector = copy if self.held.selector else None
        return Place(
            int(self.lane[where]), int(self.register[where]), (bit, bit + self.held.bits - 1), element, selector
        )


def _map(operand: Operand) -> _Map:
    assert operand.dtype is not None
    return _mapped(operand.held, operand.dtype.bits)


@lru_cache(maxsize=256)
def _mapped(held: Fields, register_bits: int) -> _Map:
    places = held.layout.enumerate_replicas(held.shape)
    zero = np.zeros((1, *held.shape), np.int64)
    lane, place = np.broadcast_arrays(places.get("laneid", zero), places.get("m", zero))
    register, bit = np.divmod(place * held.bits, register_bits)
    return _Map(held, lane, register, bit)


def _tile_operand(row: Row, name: str) -> tuple[Operand, TileLayout]:
    operand = row.operand(name)
    if operand.kind is not Kind.ADDRESS or operand.layout is None:
        raise InstructionError(
            f"{row.text}: operand {name} is of kind {operand.kind.value} and has no rows that lanes give addresses of"
        )
    return operand, operand.layout


def _element(
    row: Row,
    operand: Operand,
    names: Sequence[str],
    shape: Sequence[int],
    coordinates: Sequence[int],
    named: Mapping[str, int],
) -> tuple[int, ...]:
    """The coordinates in order, after checking them."""
    ranges = ", ".join(f"{name} in 0 to {size - 1}" for name, size in zip(names, shape, strict=True))
    given = tuple(named[name] for name in names if name in named) if named else tuple(coordinates)
    fits = len(given) == len(names) and not (coordinates and named) and set(named) <= set(names)
    if not fits or not all(_is_below(each, size) for each, size in zip(given, shape, strict=True)):
        got = ", ".join([*map(str, coordinates), *(f"{name}={value}" for name, value in named.items())]) or "nothing"
        raise InstructionError(f"{row.text}: operand {operand.name}: expected {ranges} but got {got}")
    return tuple(int(each) for each in given)


def _check_in(row: Row, operand: Operand, what: str, value: int, count: int) -> None:
    if not _is_below(value, count):
        raise InstructionError(
            f"{row.text}: operand {operand.name}: expected a {what} in 0 to {count - 1} but got {value}"
        )


def _is_below(value: object, count: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= int(value) < count
