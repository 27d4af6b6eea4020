"""Sparse matrices as tensors: pruned, packed into what `mma.sp` reads, and unpacked.

Of each group of four neighbours in a row two are stored; of two one for tf32; of four pairs two for 4-bit integers,
which come as bytes that hold two (low bits first). Metadata is made for one instruction, whose shape says how: one word
for each lane and each 16 rows and k columns, so that a kernel's lane `l` loads `metadata[i, j, l]` into the register of
operand `E`. The words stand for every selector that the instruction has.

How the bits lie in a word is in `sparse_metadata`. torch is imported where it is used: the tables do without.
"""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any

import numpy as np

from warpjit.errors import ArgumentError, InstructionError
from warpjit.ir.dtypes import DType
from warpjit.isa.row import Array, Row
from warpjit.isa.sparse_metadata import STORED_ROWS, Metadata
from warpjit.isa.table import as_row
from warpjit.layout.axis import LANES
from warpjit.record import record

if TYPE_CHECKING:
    import torch


@record
class Packed:
    """A sparse matrix (M, K) for one instruction, M rows of K columns.

    values    (M, K / 2), of the matrix's type (4-bit integers: (M, K / 4) bytes): what is stored, row-major
    metadata  (M / 16, K / k, 32) uint32: the word of each lane for the operand E
    """

    values: torch.Tensor
    metadata: torch.Tensor


@record
class _Form:
    """How matrices for an instruction are stored, in items: elements, or bytes of two 4-bit integers.

    kept, of  of so many neighbouring items so many are stored
    depth     items of a row of one instruction, stored or not
    """

    element: DType
    metadata: Metadata
    kept: int
    of: int
    depth: int


def prune(dense: torch.Tensor, instruction: Row | str) -> torch.Tensor:
    """The matrix with the smallest elements of each group set to zero, so that `pack` takes it.

    dense        (M, K) of the type that the instruction has for A; 4-bit integers as bytes (M, K / 2), whose pairs are
                 kept by the sum of their magnitudes. A NaN counts as infinite; of equal ones the first are kept
    instruction  a row of mma.sp, or its text
    Returns a new tensor. Raises ArgumentError: another type, or a size that is no multiple of the instruction's.
    """
    form = _form(instruction)
    rows, columns = _checked("dense", dense, form)
    sizes = _magnitudes(dense, form.element).reshape(rows, columns // form.of, form.of)
    order = sizes.argsort(dim=-1, descending=True, stable=True)
    bits = _bits(dense).clone().reshape(sizes.shape)
    bits.scatter_(-1, order[..., form.kept :], 0)
    return bits.reshape(dense.shape).view(dense.dtype)


def pack(dense: torch.Tensor, instruction: Row | str) -> Packed:
    """What of a sparse matrix is stored, and the metadata that says where it stood.

    dense, instruction  as for `prune`; zeros of either sign need no storing
    Raises ArgumentError: as `prune`, or a group with too many elements that are not zero (named by row and group).
    """
    form = _form(instruction)
    rows, columns = _checked("dense", dense, form)
    groups = _present(dense).reshape(rows, columns // form.of, form.of)
    _check_groups(groups, form)
    places = (~groups).argsort(dim=-1, stable=True)[..., : form.kept].sort(dim=-1).values
    values = _bits(dense).reshape(groups.shape).gather(-1, places).reshape(rows, columns // 2).view(dense.dtype)
    units = _as_units(places.cpu().numpy().astype(np.uint8), form).reshape(rows, -1)
    stored = form.metadata.stored
    codes = units.reshape(rows // STORED_ROWS, STORED_ROWS, columns // form.depth, stored).swapaxes(1, 2)
    words = form.metadata.packed(codes).reshape(*codes.shape[:2], LANES)
    return Packed(values, _tensor_of_words(words, dense))


def unpack(packed: Packed, instruction: Row | str) -> torch.Tensor:
    """The dense matrix (M, K), zeros where nothing was stored: the inverse of `pack`.

    Raises ArgumentError: types or sizes that do not fit, or metadata whose effect is undefined.
    """
    if not isinstance(packed, Packed):
        raise ArgumentError(f"packed: expected what pack(dense, instruction) gives but got {_said(packed)}")
    form = _form(instruction)
    rows, stored = _checked("values", packed.values, form, whole=2)
    tiles = (rows // STORED_ROWS, 2 * stored // form.depth)
    words = packed.metadata
    shape = (*tiles, LANES)
    if not _is_tensor(words) or tuple(words.shape) != shape or str(words.dtype) not in ("torch.uint32", "torch.int32"):
        raise ArgumentError(f"metadata: expected uint32 of shape {shape} but got {_said(words)}")
    _check_dense("metadata", words)
    codes = form.metadata.codes(_words_of(words).reshape(*tiles, 8, 4), 0)
    try:
        form.metadata.check(codes)
    except InstructionError as undefined:
        raise ArgumentError(str(undefined)) from None
    step = form.metadata.whole  # units of an item
    units = codes.swapaxes(1, 2).reshape(rows, -1, form.kept * step)[..., ::step] // step
    bits = _bits(packed.values).reshape(rows, -1, form.kept)
    dense = bits.new_zeros(rows, bits.shape[1], form.of)
    dense.scatter_(-1, _like(units.astype(np.int64), bits), bits)
    return dense.reshape(rows, 2 * stored).view(packed.values.dtype)


# ---- instructions -------------------------------------------------------------------------------------


def _form(instruction: Row | str) -> _Form:
    row = as_row(instruction)
    names = [operand.name for operand in row.operands]
    if "E" not in names:
        raise ArgumentError(f"instruction: expected a sparse one, mma.sp, but got {row.text}")
    operand = row.operand("A")
    element = operand.element or operand.dtype
    assert element is not None
    metadata = Metadata.of(element, operand.shape[-1])
    kept, of = (1, 2) if element.bits == 32 else (2, 4)
    return _Form(element, metadata, kept, of, 2 * metadata.stored // metadata.whole)


def _as_units(places: Array, form: _Form) -> Array:
    """Places of items in their groups to places of units in theirs: an item of tf32 is two units."""
    if form.metadata.whole == 1:
        return places
    return np.stack([2 * places, 2 * places + 1], axis=-1)


# ---- tensors ------------------------------------------------------------------------------------------


def _torch_type(element: DType) -> torch.dtype:
    import torch  # noqa: PLC0415  heavy

    name = {"tf32": "float32", "int4": "uint8", "uint4": "uint8"}.get(element.name, element.name)
    found = getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found


def _checked(name: str, matrix: torch.Tensor, form: _Form, whole: int = 1) -> tuple[int, int]:
    """Rows and items of a row; `whole`: how many items of the dense matrix each stands for."""
    expected = _torch_type(form.element)
    if not _is_tensor(matrix) or matrix.dtype != expected or matrix.ndim != 2:
        shown = f"{form.element} packed as bytes" if form.element.bits < 8 else str(form.element)
        raise ArgumentError(f"{name}: expected a matrix of {expected} ({shown}) but got {_said(matrix)}")
    _check_dense(name, matrix)
    rows, columns = matrix.shape
    depth = form.depth // whole
    if rows % STORED_ROWS or columns % depth or not rows * columns:
        raise ArgumentError(
            f"{name}: expected a multiple of {STORED_ROWS} rows and of {depth} columns but got shape {(rows, columns)}"
        )
    return rows, columns


def _is_tensor(value: Any) -> bool:
    import torch  # noqa: PLC0415  heavy

    return isinstance(value, torch.Tensor)


def _said(value: Any) -> str:
    return f"{value.dtype} of shape {tuple(value.shape)}" if _is_tensor(value) else reprlib.repr(value)


def _check_dense(name: str, tensor: torch.Tensor) -> None:
    if tensor.is_meta or str(tensor.layout) != "torch.strided":
        raise ArgumentError(f"{name}: expected a dense tensor in memory but got {tensor.layout} on {tensor.device}")


def _check_groups(groups: torch.Tensor, form: _Form) -> None:
    counts = groups.sum(dim=-1)
    wrong = (counts > form.kept).nonzero()
    if len(wrong):
        row, group = (int(each) for each in wrong[0])
        what = "pairs of elements" if form.element.bits < 8 else "elements"
        raise ArgumentError(
            f"dense: expected at most {form.kept} of {form.of} {what} of a group that are not zero, but row {row}, "
            f"group {group} has {int(counts[row, group])}: prune(dense, instruction) keeps the largest"
        )


def _bits(matrix: torch.Tensor) -> torch.Tensor:
    """The elements as integers of their width."""
    import torch  # noqa: PLC0415  heavy

    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
    return matrix.contiguous().view(words[matrix.element_size()])


def _present(matrix: torch.Tensor) -> torch.Tensor:
    """Where an element is not zero; NaN is not."""
    return matrix.float() != 0 if matrix.dtype.is_floating_point else matrix != 0


def _magnitudes(matrix: torch.Tensor, element: DType) -> torch.Tensor:
    """What decides which elements stay: absolute values, of a pair of 4-bit integers their sum."""
    if element.is_float:
        return matrix.float().abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    if element.bits == 8:
        return matrix.int().abs()
    halves = [matrix.int() & 15, matrix.int() >> 4]
    return sum((((each + 8 & 15) - 8).abs() if element.signed else each) for each in halves)  # type: ignore[return-value]


def _tensor_of_words(words: Array, like: torch.Tensor) -> torch.Tensor:
    import torch  # noqa: PLC0415  heavy

    return torch.from_numpy(np.ascontiguousarray(words).view(np.int32)).view(torch.uint32).to(like.device)


def _words_of(words: torch.Tensor) -> Array:
    import torch  # noqa: PLC0415  heavy

    found: Array = words.contiguous().view(torch.int32).cpu().numpy().view(np.uint32)
    return found


def _like(array: Array, like: torch.Tensor) -> torch.Tensor:
    import torch  # noqa: PLC0415  heavy

    return torch.from_numpy(np.ascontiguousarray(array)).to(like.device)
