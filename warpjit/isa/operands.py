"""The shapes and layouts that operands of matrix instructions have, for any repeats: what a row's atom grows into.

A view's axes are (*group, *batch, *repeats, *atom). `Group` says which warps execute an operation together; batch and
repeat axes are unrolled; the atom is the instruction's. Whether a given layout fits is decided in `proof`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DType
from warpjit.isa.row import Kind, Operand, Row
from warpjit.layout import Axis, Iter, TileLayout, m, warpid, wid_in_wg
from warpjit.record import record


@record
class Group:
    """The warps that execute one operation together, each on its own part of every operand.

    scope  "warp": one, no group axis; "warpgroup": four, one axis on wid_in_wg; "cta": all `warps`, one on warpid
    """

    scope: str = "warp"
    warps: int = 1

    def __post_init__(self) -> None:
        if self.scope not in _GROUP_AXES:
            known = ", ".join(map(repr, _GROUP_AXES))
            raise InstructionError(f"scope {self.scope!r} does not hold whole warps; the scopes are {known}")

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of the group axes."""
        return {"warp": (), "warpgroup": (4,), "cta": (self.warps,)}[self.scope]

    @property
    def iters(self) -> tuple[Iter, ...]:
        """The group axes of a layout."""
        axis = _GROUP_AXES[self.scope]
        return () if axis is None else tuple(Iter(extent, 1, axis) for extent in self.extents)


_GROUP_AXES: dict[str, Axis | None] = {"warp": None, "warpgroup": wid_in_wg, "cta": warpid}

ONE_WARP = Group()


def fragment_operand(row: Row, name: str) -> Operand:
    """The operand, which must be a fragment. Raises InstructionError."""
    operand = row.operand(name)
    if operand.kind is not Kind.FRAGMENT:
        raise InstructionError(f"{row.text}: operand {name} is of kind {operand.kind.value}, not a fragment")
    return operand


def operand_shape(
    row: Row,
    name: str,
    *,
    M: int = 1,
    N: int = 1,
    K: int = 1,
    batch: Sequence[int] = (),
    element: bool = False,
    group: Group = ONE_WARP,
) -> tuple[int, ...]:
    """(*group, *batch, *repeats, *atom), in registers, or in elements where registers pack several.

    M, N, K count instructions; those that are no axis of the operand do not matter. Raises InstructionError for
    another operand than a fragment, or extents below 1.
    """
    operand = fragment_operand(row, name)
    packed = operand.packed if element else 1
    *rows, last = operand.shape
    return (*group.extents, *batch, *_repeats(row, operand, {"M": M, "N": N, "K": K}, batch), *rows, last * packed)


def operand_layout(
    row: Row,
    name: str,
    *,
    M: int = 1,
    N: int = 1,
    K: int = 1,
    batch: Sequence[int] = (),
    element: bool = False,
    group: Group = ONE_WARP,
) -> TileLayout:
    """The instruction's own layout for `operand_shape` of the same arguments.

    Registers are numbered issue by issue, in the order of the repeat axes. With `element` the axis m counts elements.
    Raises InstructionError as `operand_shape` does.
    """
    operand = fragment_operand(row, name)
    assert operand.layout is not None
    extents = (*batch, *_repeats(row, operand, {"M": M, "N": N, "K": K}, batch))
    strides = [operand.registers * prod(extents[index + 1 :]) for index in range(len(extents))]
    issues = tuple(Iter(extent, stride, m) for extent, stride in zip(extents, strides, strict=True))
    layout = TileLayout.from_iters((*group.iters, *issues, *operand.layout.shard))
    return layout.unpack(operand.packed) if element else layout


def _repeats(row: Row, operand: Operand, counts: Mapping[str, int], batch: Sequence[int]) -> tuple[int, ...]:
    extents = tuple(counts[name] for name in operand.repeats)
    if any(type(extent) is not int or extent < 1 for extent in (*extents, *batch)):
        named = ", ".join(f"{name}={counts[name]}" for name in operand.repeats)
        raise InstructionError(f"{row.text}: operand {operand.name}: repeats are at least 1, but got {named}, {batch=}")
    return extents


def accepts(operand: Operand, dtype: DType) -> bool:
    """Whether a view of this type may stand for the operand: whole registers, or the elements that they pack."""
    assert operand.dtype is not None
    if dtype.bits == operand.dtype.bits:
        return True
    element = operand.element
    return element is not None and dtype.bits == element.bits and (element.kind == "uint" or dtype == element)
