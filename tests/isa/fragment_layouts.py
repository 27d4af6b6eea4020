"""Layouts for tests of proofs and conversions: mutations that must not fit, rewritings that must, and plain loops.

Nothing here uses the package's proofs; elements are looked up one at a time with `apply`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any

from warpjit.ir.dtypes import DType
from warpjit.isa.row import Kind, Operand, Row
from warpjit.isa.table import rows
from warpjit.layout import ComposeLayout, Iter, Layout, TileLayout, laneid, m, tx


@cache
def places(layout: Layout, shape: tuple[int, ...]) -> dict[tuple[int, ...], dict[str, Any]]:
    """Where each element is, looked up one at a time."""
    return {element: layout.apply(*element, shape=shape) for element in itertools.product(*map(range, shape))}


@dataclass(frozen=True)
class Case:
    """A layout for one atom of an operand, in elements of `dtype`."""

    row: Row
    operand: Operand
    dtype: DType
    layout: Layout
    what: str = "own"

    @property
    def packed(self) -> int:
        assert self.operand.dtype is not None
        return self.operand.dtype.bits // self.dtype.bits

    @cached_property
    def shape(self) -> tuple[int, ...]:
        *outer, last = self.operand.shape
        return (*outer, last * self.packed)

    @cached_property
    def _places(self) -> dict[tuple[int, ...], dict[str, Any]]:
        """Those that were looked up."""
        return {}

    @cached_property
    def _own_places(self) -> dict[tuple[int, ...], dict[str, Any]]:
        assert self.operand.layout is not None
        return places(self.operand.layout, self.operand.shape)

    def where(self, element: tuple[int, ...]) -> tuple[int, int, int]:
        """(lane, register, part) by the case's layout."""
        if element not in self._places:
            self._places[element] = self.layout.apply(*element, shape=self.shape)
        place = self._places[element]
        lane = place.get("laneid", 0) + place.get("tx", 0) % 32
        return (lane, *divmod(place.get("m", 0), self.packed))

    def wanted(self, element: tuple[int, ...]) -> tuple[int, int, int]:
        """(lane, register, part) by the instruction's layout."""
        *outer, last = element
        place = self._own_places[*outer, last // self.packed]
        return place.get("laneid", 0), place.get("m", 0), last % self.packed

    def elements(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(range, self.shape))

    def in_place(self) -> bool:
        """The rule of the proof, one element at a time."""
        register: dict[int, int] = {}
        for element in self.elements():
            lane, word, part = self.where(element)
            own_lane, own_word, own_part = self.wanted(element)
            if (lane, part) != (own_lane, own_part) or register.setdefault(own_word, word) != word:
                return False
        return not self.operand.writes or len(set(register.values())) == len(register)

    def __str__(self) -> str:
        return f"{self.row.text} {self.operand.name} {self.dtype} {self.what}"


def own_cases() -> list[Case]:
    """The instructions' own layouts in words and in elements, each map of a family once."""
    found: dict[object, Case] = {}
    for row in rows():
        for operand in row.operands:
            if operand.kind is not Kind.FRAGMENT or operand.layout is None or operand.dtype is None:
                continue
            family = row.text.split(".")[0]
            narrow = [operand.element] if operand.element and operand.element.bits < operand.dtype.bits else []
            for dtype in (operand.dtype, *narrow):
                packed = operand.dtype.bits // dtype.bits
                case = Case(row, operand, dtype, operand.layout.unpack(packed))
                found.setdefault((family, operand.name in "DC", operand.writes, case.layout, dtype.bits), case)
    return list(found.values())


def mutated(case: Case) -> Iterator[Case]:
    """Layouts of the same size that look like mistakes: strides exchanged, lanes moved, registers shared, swizzles."""
    iters = case.layout.shard

    def made(what: str, shard: list[Iter], **offset: int) -> Case:
        layout = TileLayout.from_iters(shard, offset=dict(offset.items()))
        return Case(case.row, case.operand, case.dtype, layout, what)

    for i, j in itertools.combinations(range(len(iters)), 2):
        shard = list(iters)
        shard[i] = Iter(iters[i].extent, iters[j].stride, iters[j].axis)
        shard[j] = Iter(iters[j].extent, iters[i].stride, iters[i].axis)
        yield made(f"strides {i} and {j}", shard)
        shard = list(iters)
        shard[i], shard[j] = shard[j], shard[i]
        yield made(f"iters {i} and {j}", shard)
    for i, it in enumerate(iters):
        shard = list(iters)
        shard[i] = Iter(it.extent, 0, it.axis)
        yield made(f"stride {i} is 0", shard)
        shard[i] = Iter(it.extent, 2 * it.stride, it.axis)
        yield made(f"stride {i} is double", shard)
    yield made("a lane further", list(iters), laneid=1)
    yield made("half a register further", list(iters), m=1)
    if case.layout.size("m") > 2:
        layout = ComposeLayout(0, 1, 1, case.layout)
        yield Case(case.row, case.operand, case.dtype, layout, "swizzled registers")


@cache
def refused(own: Case) -> list[Case]:
    """The mutations that do not fit, by the rule in loops; each map once."""
    found: dict[object, Case] = {}
    for case in mutated(own):
        if not case.in_place():
            found.setdefault(case.layout, case)
    return list(found.values())


def rewritten(case: Case) -> Iterator[Case]:
    """Other layouts that fit: the same map written otherwise, and other registers, the same in all lanes."""
    layout = case.layout
    assert isinstance(layout, TileLayout)

    def made(what: str, other: Layout) -> Case:
        return Case(case.row, case.operand, case.dtype, other, what)

    yield made("canonical", layout.canonicalize())
    bits = [2] * (prod(layout.extents).bit_length() - 1)
    yield made("in bits", layout.group(bits)[0])
    yield made("with unit iters", TileLayout.from_iters([Iter(1, 7, m), *layout.shard, Iter(1, 3, laneid)]))
    yield made(
        "lanes as threads",
        TileLayout.from_iters(Iter(it.extent, it.stride, tx) if it.axis is laneid else it for it in layout.shard),
    )
    yield made("composed", layout.compose(TileLayout.from_iters([Iter(layout.size(), 1, m)])))
    yield made("a trivial swizzle", ComposeLayout(0, 0, 3, layout))
    yield made("turned twice", _turned_twice(layout))
    whole = layout.tile(TileLayout.from_iters([Iter(3, 1, m)]), (3, *(1 for _ in case.shape[1:])), case.shape)
    starts, shape = [case.shape[0], *(0 for _ in case.shape[1:])], (3 * case.shape[0], *case.shape[1:])
    yield made("the second of three", whole.slice(starts, case.shape, shape))
    registers = [it.stride for it in layout.shard if it.axis is m and it.stride >= case.packed]
    spread = {stride: case.packed * 3**k for k, stride in enumerate(sorted(registers))}
    yield made(
        "registers apart",
        TileLayout.from_iters(
            Iter(it.extent, spread[it.stride], m) if it.axis is m and it.stride in spread and it.extent == 2 else it
            for it in layout.shard
        )
        if all(it.extent == 2 for it in layout.shard if it.stride in spread and it.axis is m)
        else layout,
    )
    largest = max(registers, default=0)
    yield made("registers backwards", ComposeLayout(*_flipped(case, largest), layout) if largest else layout)


def _flipped(case: Case, largest: int) -> tuple[int, int, int]:
    """A swizzle of whole registers: the lowest bit of the register is exchanged where the highest is set."""
    low, high = case.packed.bit_length() - 1, largest.bit_length() - 1
    return (low, 1, high - low) if high > low else (low, 0, 0)


def _turned_twice(layout: TileLayout) -> TileLayout:
    axes = tuple(dict.fromkeys(it.axis for it in layout.shard if it.extent > 1))
    box = {axis: layout.size(axis) for axis in axes}
    back = layout.inverse(box).inverse({"m": layout.size()})
    linear = TileLayout.from_iters(_row_major(box))
    again = linear.compose(back)
    assert isinstance(again, TileLayout)
    return again


def _row_major(box: dict[object, int]) -> list[Iter]:
    return [Iter(extent, 1, axis) for axis, extent in box.items()]  # type: ignore[arg-type]
