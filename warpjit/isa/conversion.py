"""`convert(source, target)`: what moves the elements of a fragment from one layout to another, as data and in words.

The plan counts 32-bit registers and their parts (low bits first), and is the same for all warps. Nothing is executed
here: kernels apply a plan in `frontend.conversions`. The order of preference: in place, registers renamed, parts of
registers put together within each lane, `movmatrix`, shuffles, shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from warpjit.errors import LayoutError
from warpjit.ir.dtypes import DType
from warpjit.ir.dtypes import dtype as dtype_named
from warpjit.isa.operands import operand_layout, operand_shape
from warpjit.isa.places import Ints
from warpjit.isa.row import Row
from warpjit.isa.table import as_row
from warpjit.layout import ComposeLayout, Layout, TileLayout
from warpjit.layout.axis import LANES
from warpjit.record import record

WORD = 32
_IN_PLACE = "every element is in place as it stands"


@record
class Rename:
    """Register r of the target is register `registers[r]` of the source, in all lanes: no instruction."""

    registers: tuple[int, ...]


@record
class Repack:
    """Register r of the target is put together within its lane.

    words  of each register, of each of its parts: (register, part) of the source
    """

    words: tuple[tuple[tuple[int, int], ...], ...]


@record
class MoveMatrix:
    """Register r of the target is `movmatrix` of register `registers[r]` of the source."""

    registers: tuple[int, ...]


@record
class Shuffle:
    """One `shfl.sync.idx.b32`: lane l reads `register` of the source from lane `lanes[l]`."""

    register: int
    lanes: tuple[int, ...]


@record
class Exchange:
    """Registers of other lanes, and what each register of the target is made of.

    words  of each register, of each of the 32 lanes, of each part: (index of the shuffle, part of what it reads)
    """

    shuffles: tuple[Shuffle, ...]
    words: tuple[tuple[tuple[tuple[int, int], ...], ...], ...]


@record
class ThroughMemory:
    """Elements leave their warp, or move in a way that no shuffle has: through `bytes` of shared memory."""

    bytes: int


Step: TypeAlias = Rename | Repack | MoveMatrix | Exchange | ThroughMemory


@record
class Conversion:
    """How elements get from one layout to another.

    dtype     the type whose elements the layouts count
    step      what moves them; None: they are in place as they stand
    sentence  the same in words
    """

    source: Layout
    target: Layout
    dtype: DType
    step: Step | None
    sentence: str

    @property
    def in_place(self) -> bool:
        """Whether every element is already where the target has it."""
        return self.step is None

    @property
    def free(self) -> bool:
        """Whether no instruction is needed: in place, or registers under other names."""
        return self.step is None or isinstance(self.step, Rename)


def convert(source: Layout, target: Layout, dtype: DType | str = "uint32") -> Conversion:
    """What moves element x of a fragment from where `source` has it to where `target` has it, for every x.

    Both have lanes and registers (and warps, if need be); m counts elements of `dtype`. The target must hold one
    element in every place of its registers, unless it is the source. Raises LayoutError: sizes differ, replicas, other
    owners, a target with gaps, lanes beyond the 32 of a warp, or what is no layout.
    """
    for layout in (source, target):
        if not isinstance(layout, TileLayout | ComposeLayout):
            raise LayoutError(f"convert: expected a layout but got {layout!r}")
    return _convert(source, target, dtype_named(dtype))


def matrix_layout(
    instruction: Row | str, operand: str, *, M: int = 1, N: int = 1, K: int = 1, element: bool = True
) -> Layout:
    """An operand's own layout over the matrix (rows, columns) that its repeats make up: what `convert` compares.

    element  in the elements that registers pack; otherwise in registers. Raises InstructionError as `operand_layout`.
    """
    row = as_row(instruction)
    layout = operand_layout(row, operand, M=M, N=N, K=K, element=element)
    shape = operand_shape(row, operand, M=M, N=N, K=K, element=element)
    if len(shape) != 4:
        raise LayoutError(f"{row.text}: operand {operand} of shape {shape} is no matrix of atoms")
    grouped, seps = layout.group(shape)
    return grouped.permute_by_groups(seps, (0, 2, 1, 3)).canonicalize()


# ---- who comes from where --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Map:
    """Of each lane and place of the target (arrays (32, registers, parts)) the source's lane, register and part."""

    lane: Ints
    register: Ints
    part: Ints

    @property
    def packed(self) -> int:
        return int(self.lane.shape[2])

    @property
    def whole(self) -> bool:
        """Whether each register is one of the source, its parts in order."""
        parts = np.arange(self.packed)
        return bool((self.part == parts).all() and (self.register == self.register[:, :, :1]).all())

    @property
    def uniform(self) -> bool:
        """Whether all lanes take the same registers and parts."""
        return bool((self.register == self.register[:1]).all() and (self.part == self.part[:1]).all())


@lru_cache(maxsize=1024)
def _convert(source: Layout, target: Layout, dtype: DType) -> Conversion:
    if source.size() != target.size():
        raise LayoutError(f"convert: {source} has {source.size()} elements, but {target} has {target.size()}")
    wide = max(dtype.bits // WORD, 1)
    here, there = source.unpack(wide), target.unpack(wide)
    packed = max(WORD // dtype.bits, 1)
    for layout in (here, there):
        _check(layout)
    if here.equivalent(there):
        return Conversion(source, target, dtype, None, _IN_PLACE)
    if _leaves_warp(here, there):
        through = ThroughMemory(-(-target.size() * dtype.bits // 8))
        return Conversion(source, target, dtype, through, _memory_text(through))
    found = _map_of(here, there, packed)
    chosen = next(step for step in (find(found) for find in _FINDERS) if step is not None)
    if isinstance(chosen, Rename) and chosen.registers == tuple(range(len(chosen.registers))):
        return Conversion(source, target, dtype, None, _IN_PLACE)
    return Conversion(source, target, dtype, chosen, _TEXTS[type(chosen)](chosen))


def _check(layout: Layout) -> None:
    others = [axis.name for axis in layout.axes if axis.name not in ("laneid", "m", "warpid", "wid_in_wg")]
    if others or any(it.extent > 1 for it in layout.replica):
        raise LayoutError(f"convert: expected lanes, registers and warps, once each, but the layout is {layout}")
    if layout.span("laneid") > LANES:
        raise LayoutError(f"convert: {layout} has lanes up to {layout.span('laneid') - 1}, but a warp has {LANES}")


def _leaves_warp(source: Layout, target: Layout) -> bool:
    here, there = source.enumerate(), target.enumerate()
    zero = np.zeros(source.size(), np.int64)
    return any((here.get(axis, zero) != there.get(axis, zero)).any() for axis in ("warpid", "wid_in_wg"))


def _map_of(source: Layout, target: Layout, packed: int) -> _Map:
    here, there = source.enumerate(), target.enumerate()
    zero = np.zeros(source.size(), np.int64)
    count = -(-target.span("m") // packed)
    warp = sum(there.get(axis, zero) for axis in ("warpid", "wid_in_wg"))
    first = warp == 0
    origin = np.full((LANES, count * packed), -1)
    lane, place = there.get("laneid", zero)[first], there.get("m", zero)[first]
    origin[lane, place] = np.flatnonzero(first)
    if (origin < 0).any() or len(lane) != origin.size:
        empty = np.argwhere(origin < 0)
        where = f"lane {empty[0][0]}, place {empty[0][1]} holds none" if len(empty) else "some hold two"
        raise LayoutError(f"convert: expected one element in every lane and place of {target}, but {where}")
    from_lane, from_place = here.get("laneid", zero)[origin], here.get("m", zero)[origin]
    shape = (LANES, count, packed)
    return _Map(from_lane.reshape(shape), (from_place // packed).reshape(shape), (from_place % packed).reshape(shape))


# ---- what moves them -------------------------------------------------------------------------------------


def _in_lane(found: _Map) -> Step | None:
    if not found.uniform or (found.lane != np.arange(LANES)[:, None, None]).any():
        return None
    if found.whole:
        return Rename(tuple(int(each) for each in found.register[0, :, 0]))
    return Repack(
        tuple(
            tuple((int(a), int(b)) for a, b in zip(*both, strict=True))
            for both in zip(found.register[0], found.part[0], strict=True)
        )
    )


def _move_matrix(found: _Map) -> Step | None:
    """Part p of lane 4 r + c is column 2 c + p of row r, which was row 2 c + p of column r."""
    row, column = np.divmod(np.arange(LANES), 4)
    across = 2 * column[:, None, None] + np.arange(found.packed)
    if found.packed != 2 or (found.lane != 4 * across + row[:, None, None] // 2).any():
        return None
    if (found.part != row[:, None, None] % 2).any() or (found.register != found.register[:1, :, :1]).any():
        return None
    return MoveMatrix(tuple(int(each) for each in found.register[0, :, 0]))


def _shuffles(found: _Map) -> Step | None:
    numbers: dict[Shuffle, int] = {}
    words = []
    for register in range(found.lane.shape[1]):
        parts = []
        for part in range(found.packed):
            lanes = tuple(int(lane) for lane in found.lane[:, register, part])
            made = [Shuffle(int(each), lanes) for each in found.register[:, register, part]]
            index = [numbers.setdefault(shuffle, len(numbers)) for shuffle in made]
            parts.append([(k, int(p)) for k, p in zip(index, found.part[:, register, part], strict=True)])
        words.append(tuple(zip(*parts, strict=True)))
    return Exchange(tuple(numbers), tuple(words))


_FINDERS: Sequence[Callable[[_Map], Step | None]] = (_in_lane, _move_matrix, _shuffles)


# ---- in words --------------------------------------------------------------------------------------------


def _rename_text(step: Rename) -> str:
    return f"the registers are in place under other names: {', '.join(map(str, step.registers))}"


def _repack_text(step: Repack) -> str:
    moved = sum(any(part != (parts[0][0], k) for k, part in enumerate(parts)) for parts in step.words)
    return f"every element is in its lane: {moved} of {len(step.words)} registers are put together from parts of others"


def _matrix_text(step: MoveMatrix) -> str:
    return f"the 8 x 8 blocks are transposed: {len(step.registers)} movmatrix"


def _exchange_text(step: Exchange) -> str:
    first = step.shuffles[0]
    lanes = ", ".join(map(str, first.lanes[:8]))
    return (
        f"{len(step.shuffles)} shuffles (shfl.sync.idx.b32) make {len(step.words)} registers: in the first the lanes "
        f"read register {first.register} of lanes {lanes}, …"
    )


def _memory_text(step: ThroughMemory) -> str:
    return (
        f"elements leave their warp: store them to {step.bytes} bytes of shared memory, and load them after a barrier"
    )


_TEXTS: dict[type, Callable[..., str]] = {
    Rename: _rename_text,
    Repack: _repack_text,
    MoveMatrix: _matrix_text,
    Exchange: _exchange_text,
    ThroughMemory: _memory_text,
}
