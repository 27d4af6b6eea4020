"""Scalar and fragment operands: from locals and registers to the arrays that a meaning takes, and back.

Arrays have the issues of the wave as a leading axis where there are several: scalars ([issues,] n, 32), fragments
([issues,] n, 32, registers).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.ir.dtypes import DType
from warpjit.ir.nodes import Const, Local, Slot
from warpjit.layout.axis import LANES
from warpjit.sim.marks import Taint, shaped, words_of
from warpjit.sim.step import Pick
from warpjit.sim.values import Cell, Index, Values, store

Array: TypeAlias = npt.NDArray[Any]


def read(values: Values, pick: Pick, index: Index, n: int, dtype: DType | None) -> Array:
    """The values of an operand in the `n` warps `index`, as `dtype`."""
    if pick.registers is not None:
        found = _slots(pick, values.register(pick.registers).data[index], n)
        return typed(found.view(pick.registers.word.numpy), dtype)
    same = pick.same
    if isinstance(same, Const):
        return values.kept(pick, n, lambda: _everywhere(pick, typed(values.constant(same), dtype), n))
    if same is not None:
        return _everywhere(pick, typed(values.read(same, index), dtype), n)
    parts = [shaped(typed(values.read(atom, index), dtype), (n, LANES)) for issue in pick.atoms for atom in issue]
    return _stacked(pick, parts)


def taint(values: Values, pick: Pick, index: Index, n: int) -> Taint | None:
    """The marks of the same values; None if none of them can be marked."""
    if pick.registers is not None:
        found = values.register(pick.registers).taint(index)
        return None if found is None else Taint(_slots(pick, found.mark, n), _slots(pick, found.bits, n))
    if pick.same is not None:
        one = values.taint(pick.same, index)
        return None if one is None else Taint(_everywhere(pick, one.mark, n), _everywhere(pick, one.bits, n))
    parts = [values.taint(atom, index) for issue in pick.atoms for atom in issue]
    known = next((part for part in parts if part is not None), None)
    if known is None:
        return None
    clean = Taint(np.zeros_like(known.mark), np.zeros_like(known.bits))
    whole = [part or clean for part in parts]
    return Taint(_stacked(pick, [part.mark for part in whole]), _stacked(pick, [part.bits for part in whole]))


def write(
    values: Values, pick: Pick, index: Index, result: Array, where: Array | None, marks: Taint | None, n: int
) -> None:
    """Store a result in the lanes `where` (n, 32); None: in all of them, or in those that are not active as well."""
    if isinstance(pick.only, Local):
        told = None if marks is None else Taint(_single(pick, marks.mark), _single(pick, marks.bits))
        values.write(pick.only, index, typed(_single(pick, np.asarray(result)), pick.only.dtype), where, told)
        return
    shape = (pick.issues, n, LANES, pick.count)
    arrays = [_full(pick, part, shape) for part in ([result] if marks is None else [result, marks.mark, marks.bits])]
    if pick.registers is not None:
        cell = values.register(pick.registers)
        parts = [np.moveaxis(part, 0, 2).reshape(n, LANES, -1) for part in arrays]
        _write_slots(cell, pick.slots, index, parts, where)
        return
    for i, issue in enumerate(pick.atoms):
        for r, atom in enumerate(issue):
            one = [part[i, :, :, r] for part in arrays]
            told = None if marks is None else Taint(one[1], one[2])
            if isinstance(atom, Local):
                values.write(atom, index, typed(one[0], atom.dtype), where, told)
            elif isinstance(atom, Slot):
                place = slice(atom.index, atom.index + 1)
                _write_slots(values.register(atom.registers), place, index, [part[..., None] for part in one], where)


def _single(pick: Pick, result: Array) -> Array:
    """A result of one register without the axis of registers."""
    return result[..., 0] if pick.fragment else result


def typed(array: Array, dtype: DType | None) -> Array:
    """The same bits as `dtype` where the widths agree, the same value where they do not."""
    if dtype is None or array.dtype == dtype.numpy:
        return array
    if array.dtype.itemsize == dtype.numpy.itemsize and not dtype.is_bool and array.dtype != np.bool_:
        return array.view(dtype.numpy)
    return array.astype(dtype.numpy)


def _slots(pick: Pick, cell: Array, n: int) -> Array:
    """(n, 32, count) of a cell to the operand's shape."""
    found = cell[..., pick.slots].reshape(n, LANES, pick.issues, pick.count)
    return _trimmed(pick, found.transpose(2, 0, 1, 3))


def _trimmed(pick: Pick, found: Array) -> Array:
    if not pick.fragment:
        found = found[..., 0]
    return found[0] if pick.issues == 1 else found


def _everywhere(pick: Pick, value: Array, n: int) -> Array:
    shape: tuple[int, ...] = (n, LANES)
    if pick.fragment:
        value, shape = value[..., None], (n, LANES, pick.count)
    return shaped(value, shape if pick.issues == 1 else (pick.issues, *shape))


def _stacked(pick: Pick, parts: list[Array]) -> Array:
    n = parts[0].shape[0]
    found = np.stack(parts, axis=-1).reshape(n, LANES, pick.issues, pick.count).transpose(2, 0, 1, 3)
    return _trimmed(pick, found)


def _full(pick: Pick, result: Array, shape: tuple[int, ...]) -> Array:
    """A result with all four axes: issues, warps, lanes, registers."""
    result = np.asarray(result)
    if not pick.fragment:
        result = result[..., None]
    return shaped(result, shape)


def _write_slots(cell: Cell, slots: Any, index: Index, parts: list[Array], where: Array | None) -> None:
    """Store (n, 32, slots) into registers, and the marks behind them if there are any."""
    words = words_of(parts[0]).astype(cell.data.dtype, copy=False)
    mask = None if where is None else where[..., None]
    data = cell.data
    if isinstance(index, slice) and isinstance(slots, slice):
        store(data[..., slots], index, words, mask)
    else:
        _store_scattered(data, index, slots, words, mask)
    if len(parts) == 1 and cell.mark is None:
        return
    mark, bits = cell.begin_marks()
    told = parts[1:] or [np.zeros(1, np.uint16), np.zeros(1, bits.dtype)]
    for target, part in zip((mark, bits), told, strict=True):
        _store_scattered(target, index, slots, part, mask)
    cell.tidy()


def _store_scattered(target: Array, index: Index, slots: Any, values: Array, mask: Array | None) -> None:
    part = target[index]
    part[..., slots] = values if mask is None else np.where(mask, values, part[..., slots])
    if not isinstance(index, slice):
        target[index] = part
