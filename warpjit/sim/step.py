"""An operation made ready to run: its operands sorted by kind, its issues scheduled into waves.

Issues of one wave are independent, so they are one batched call of the row's meaning. An issue comes in a later wave
than one whose result it reads or overwrites; it may share a wave with one that reads what it overwrites, since a wave
reads all before it writes. How operands are read and written is `registers` and `accesses`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import Loc
from warpjit.ir.nodes import Address, Atom, Const, Fragment, Op, OperandValue, Registers, Slot, Tile
from warpjit.isa.pairing import paired
from warpjit.isa.row import CompleteBytes, Kind, Mode, Operand, Row
from warpjit.layout.axis import LANES
from warpjit.record import record

Array: TypeAlias = npt.NDArray[Any]


@record
class Pick:
    """Where a scalar or fragment operand finds its values in the issues of one wave.

    atoms      by issue and register
    fragment   whether a register axis is wanted
    issues     how many there are, of `count` registers each
    only       the atom, where there is but one place
    same       the atom that stands in every place, if it is one
    registers  what all atoms are slots of, if so, at the places `slots` (issues * registers, or a slice)
    """

    atoms: tuple[tuple[Atom, ...], ...]
    fragment: bool
    issues: int
    count: int
    only: Atom | None = None
    same: Atom | None = None
    registers: Registers | None = None
    slots: Array | slice | None = None

    @classmethod
    def of(cls, atoms: tuple[tuple[Atom, ...], ...], fragment: bool) -> Pick:
        first, issues, count = atoms[0][0], len(atoms), len(atoms[0])
        if issues == count == 1:
            return cls(atoms, fragment, 1, 1, only=first, same=first)
        flat = [atom for issue in atoms for atom in issue]
        if flat.count(first) == len(flat):
            return cls(atoms, fragment, issues, count, same=first)
        slots = [atom for atom in flat if isinstance(atom, Slot)]
        if len(slots) == len(flat) and all(slot.registers == slots[0].registers for slot in slots):
            index = [slot.index for slot in slots]
            dense = index == list(range(index[0], index[0] + len(index)))
            place = slice(index[0], index[-1] + 1) if dense else np.array(index)
            return cls(atoms, fragment, issues, count, registers=slots[0].registers, slots=place)
        return cls(atoms, fragment, issues, count)


@dataclass(frozen=True)
class Spot:
    """The addresses that an operand gives in the issues of one wave; all lie in one buffer.

    same       the one offset of all issues (None: it is 0), where `shared_offset` says that there is one
    constants  what is added to it, of each issue
    """

    addresses: tuple[Address, ...]
    same: Atom | None
    constants: Array
    shared_offset: bool

    @classmethod
    def of(cls, addresses: tuple[Address, ...]) -> Spot:
        offsets = {address.offset for address in addresses}
        constants = np.array([address.constant for address in addresses], np.int64)
        same = next(iter(offsets)) if len(offsets) == 1 else None
        return cls(addresses, same, constants, len(offsets) == 1)


@dataclass
class Bound:
    """An operand of the row with what the operation gives for it.

    width    bytes at each address; 0 where a scalar says it
    givers   lanes whose address counts (None: all)
    """

    operand: Operand
    value: OperandValue
    atoms: tuple[tuple[Atom, ...], ...] = ()
    addresses: tuple[Address, ...] = ()
    width: int = 0
    align: int = 1
    givers: Array | None = None

    @property
    def is_place(self) -> bool:
        return bool(self.addresses)

    def keys(self, issue: int) -> set[object]:
        """What an issue touches outside of memory."""
        return {atom for atom in self.atoms[issue] if not isinstance(atom, Const)} if self.atoms else set()


@dataclass
class Wave:
    """`picks[i]` belongs to `Step.bound[i]`; None for what is left out."""

    issues: tuple[int, ...]
    picks: list[Pick | Spot | None]


@dataclass
class Step:
    """An operation at one place (`site`) of the flat code.

    bound     its operands without immediates
    reads     positions in `bound` of the meaning's inputs, in order; `writes` of its results
    keywords  what the meaning is called with
    located   whether it has operands that are addresses
    moves     whether it only moves bits
    divisor   the position of an integer divisor
    updates   whether it changes memory atomically; `arrives`: an mbarrier
    """

    op: Op
    row: Row
    site: int
    bound: list[Bound]
    reads: list[int]
    writes: list[int]
    keywords: dict[str, Any]
    waves: list[Wave] = field(default_factory=list)
    located: bool = False
    moves: bool = False
    divisor: int | None = None
    updates: bool = False
    arrives: bool = False

    @property
    def loc(self) -> Loc:
        return self.op.loc

    def find(self, name: str) -> Bound | None:
        """The operand of this name, if the operation gives it."""
        for bound in self.bound:
            if bound.operand.name == name and bound.value is not None:
                return bound
        return None

    def number(self, name: str, default: int) -> int:
        """An immediate, which may also stand as a literal operand."""
        bound = self.find(name)
        if bound is not None and isinstance(bound.value, Const):
            return int(bound.value.value)
        return self.op.param(name, default)


def prepare(op: Op, site: int, fast: bool) -> Step:
    """Make an operation ready to run."""
    row = op.row
    assert isinstance(row, Row)
    params = dict(op.params)
    bound = [
        _bind(operand, value, op.issues, params) for operand, value in paired(op) if operand.kind is not Kind.IMMEDIATE
    ]
    reads = [i for i, each in enumerate(bound) if each.operand.reads]
    writes = [i for i, each in enumerate(bound) if each.operand.writes]
    step = Step(op, row, site, bound, reads, writes, _keywords(row.meaning, params, fast))
    places = [each for each in bound if each.is_place]
    step.located = bool(places)
    if places:
        step.updates = any(each.operand.mode is Mode.UPDATE for each in places)
        step.arrives = any(each.operand.kind is Kind.BARRIER and each.operand.mode is Mode.UPDATE for each in places)
    loads = any(each.operand.kind is Kind.ADDRESS for each in places)
    step.moves = row.moves or (loads and not step.updates)
    if row.divisor:
        step.divisor = next((i for i in reads if bound[i].operand.name == row.divisor), None)
    one_by_one = step.updates or isinstance(row.effect, CompleteBytes)
    step.waves = [_wave(bound, issues) for issues in _schedule(op.issues, bound, one_by_one)]
    return step


def _bind(operand: Operand, value: OperandValue, issues: int, params: dict[str, int]) -> Bound:
    if value is None:
        return Bound(operand, None)
    if isinstance(value, Fragment):
        return Bound(operand, value, atoms=value.items)
    if isinstance(value, (Address, Tile)):
        addresses = value.addresses if isinstance(value, Tile) else (value,) * issues
        width = 8 if operand.kind is Kind.BARRIER else operand.bytes or params.get("size", 0)
        align = max(operand.align, 8 if operand.kind is Kind.BARRIER else params.get("size", 1))
        return Bound(operand, value, addresses=addresses, width=width, align=align, givers=_givers(operand))
    count = max(operand.registers, 1)
    return Bound(operand, value, atoms=((value,) * count,) * issues)


def _givers(operand: Operand) -> Array | None:
    """The lanes that give an address, by the operand's layout."""
    if operand.layout is None:
        return None
    lanes = operand.layout.enumerate().get("laneid")
    mask = np.zeros(LANES, bool)
    mask[0 if lanes is None else lanes.ravel()] = True
    return None if mask.all() else mask


def _keywords(meaning: Callable[..., Any] | None, params: dict[str, int], fast: bool) -> dict[str, Any]:
    """The params that the meaning takes, and fast=True if it knows the word."""
    if meaning is None:
        return {}
    takes_all, named = _names(meaning)
    chosen: dict[str, Any] = {name: value for name, value in params.items() if takes_all or name in named}
    if fast and "fast" in named:
        chosen["fast"] = True
    return chosen


@functools.lru_cache(maxsize=4096)
def _names(meaning: Callable[..., Any]) -> tuple[bool, frozenset[str]]:
    """Whether a row's meaning takes any keyword, and the names of those that it has: asked at every operation."""
    parameters = inspect.signature(meaning).parameters
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    named = (name for name, each in parameters.items() if each.kind is not inspect.Parameter.POSITIONAL_ONLY)
    return takes_all, frozenset(named)


# ---- waves --------------------------------------------------------------------------------------------


def _schedule(issues: int, bound: list[Bound], one_by_one: bool) -> list[tuple[int, ...]]:
    """The issues of each wave."""
    if one_by_one or issues == 1:
        return [(issue,) for issue in range(issues)]
    reading = [each for each in bound if each.operand.reads]
    writing = [each for each in bound if each.operand.writes]
    written: dict[object, int] = {}  # key -> the wave that writes it last
    read: dict[object, int] = {}  # key -> the last wave that reads it
    waves: list[list[int]] = []
    for issue in range(issues):
        inputs: set[object] = set().union(*(each.keys(issue) for each in reading))
        outputs: set[object] = set().union(*(each.keys(issue) for each in writing))
        level = max((written[key] + 1 for key in inputs | outputs if key in written), default=0)
        level = max([level, *(read[key] for key in outputs if key in read)])
        while level < len(waves) and not _same_buffers(bound, waves[level][0], issue):
            level += 1
        if level == len(waves):
            waves.append([])
        waves[level].append(issue)
        written.update(dict.fromkeys(outputs, level))
        read.update({key: max(level, read.get(key, 0)) for key in inputs})
    return [tuple(wave) for wave in waves]


def _same_buffers(bound: list[Bound], one: int, other: int) -> bool:
    return all(each.addresses[one].buffer == each.addresses[other].buffer for each in bound if each.addresses)


def _wave(bound: list[Bound], issues: tuple[int, ...]) -> Wave:
    picks: list[Pick | Spot | None] = []
    for each in bound:
        if each.addresses:
            picks.append(Spot.of(tuple(each.addresses[issue] for issue in issues)))
        elif each.atoms:
            atoms = tuple(each.atoms[issue] for issue in issues)
            picks.append(Pick.of(atoms, each.operand.kind is Kind.FRAGMENT))
        else:
            picks.append(None)
    return Wave(issues, picks)
