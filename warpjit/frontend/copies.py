"""`T.cuda.tile.apply` of copies that single threads make: cp.async and its bulk form on chunks of tiles.

Both tensors have the same shape; each thread copies the whole tile that it names, chunk by chunk along the last axis.
A chunk is contiguous and aligned on both sides, by proof. Operands that are no tiles are given by name: `size=`,
`src_size=`, `mbar=`. What a warp does together is in `tiles`, single pointers in `raw`.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import Index, address, alignment, shown, static_int
from warpjit.frontend.chunks import check_contiguous, chunk_starts, misaligned
from warpjit.frontend.raw import RAW, immediate
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import TensorValue, Value
from warpjit.ir.nodes import Address, OperandValue, Tile
from warpjit.isa.row import Kind, Operand, Row

BARRIER_KEYWORD = "mbar"


@dataclass(frozen=True)
class Chunks:
    """How the tiles of one `tile.apply` fall into chunks: `shape` of both, `elements` of `bytes` bytes a chunk."""

    row: Row
    shape: tuple[int, ...]
    elements: int
    bytes: int

    @property
    def starts(self) -> list[tuple[int, ...]]:
        """Coordinates of the first element of each chunk."""
        return chunk_starts(self.shape, self.elements)


def copies_chunks(row: Row) -> bool:
    """Whether the row copies as many bytes between two addresses as it is told."""
    return len(_tiles(row)) == 2


def _tiles(row: Row) -> list[Operand]:
    return [each for each in row.operands if each.kind is Kind.ADDRESS and not each.bytes]


def apply_copy(tracer: Tracer, row: Row, operands: tuple[Value, ...], scope: Value, given: dict[str, Value]) -> None:
    """One copy for each chunk, in row-major order. `given`: `pred` and the row's other operands, by name."""
    if scope not in (None, "thread"):
        raise TraceError(f'{row.text} is executed by single threads: expected scope="thread" but got {scope!r}')
    tiles = _tiles(row)
    if len(operands) != len(tiles):
        names = ", ".join(operand.name for operand in tiles)
        raise TraceError(f"{row.text} takes {len(tiles)} tensors ({names}) but got {len(operands)} operands")
    named = _named(row, dict(given))
    pred = named.pop("pred", None)
    tensors = [_tensor(row, operand, value) for operand, value in zip(tiles, operands, strict=True)]
    chunks = _chunks(row, tensors, named)
    values: list[OperandValue] = []
    for operand in row.operands:
        if operand in tiles:
            values.append(Tile(tuple(_addresses(tracer, chunks, operand, tensors[tiles.index(operand)]))))
        elif operand.kind is Kind.IMMEDIATE or operand.name not in named:
            values.append(None)
        else:
            values.append(RAW[operand.kind](tracer, row, operand, named[operand.name], 0))
    params = tuple((each.name, chunks.bytes) for each in row.operands if each.kind is Kind.IMMEDIATE)
    predicate = None if pred is None else tracer.builder.atom(arithmetic.truth(tracer.builder, pred))
    tracer.builder.issue(row, tuple(values), params=params, issues=len(chunks.starts), predicate=predicate)


def _named(row: Row, given: dict[str, Value]) -> dict[str, Value]:
    """Parameters by the operands' names."""
    others = [each for each in row.operands if each not in _tiles(row)]
    keyword = {each.name: BARRIER_KEYWORD if each.kind is Kind.BARRIER else each.name for each in others}
    known = {*keyword.values(), "pred"}
    for name in given:
        if name not in known:
            raise TraceError(f"{row.text} takes no {name}=; it takes {', '.join(f'{each}=' for each in sorted(known))}")
    named = {each.name: given[keyword[each.name]] for each in others if keyword[each.name] in given}
    for each in others:
        if each.name not in named and not each.optional and each.name != "size":
            raise TraceError(f"{row.text} needs {keyword[each.name]}=")
    return named | ({"pred": given["pred"]} if "pred" in given else {})


def _tensor(row: Row, operand: Operand, value: Value) -> TensorValue:
    what = f"{row.text}: operand {operand.name}"
    if not isinstance(value, TensorValue):
        raise TraceError(f"{what}: expected a tensor but got {arithmetic.describe(value)}")
    if value.space != operand.space:
        raise TraceError(f"{what}: expected a {operand.space} tensor, but {value.name} is {value.space}")
    return value


def _chunks(row: Row, tensors: list[TensorValue], named: dict[str, Value]) -> Chunks:
    """The chunks of both tensors; without `size` a chunk is the whole last axis. `named["size"]` is set."""
    dst, src = tensors
    if dst.dtype != src.dtype or len(dst.shape) != len(src.shape) or not dst.shape:
        raise TraceError(f"{row.text}: {_described(dst)} and {_described(src)} are no tiles of one type and shape")
    shape = tuple(static_int(extent, f"an extent of {tensor.name}") for tensor in tensors for extent in tensor.shape)
    rank = len(dst.shape)
    if shape[:rank] != shape[rank:]:
        raise TraceError(f"{row.text}: {_described(dst)} and {_described(src)} are no tiles of one type and shape")
    whole = shape[rank - 1] * dst.dtype.bytes
    size_operand = row.operand("size")
    size = static_int(named.get("size", whole), f"{row.text}: operand size")
    if size_operand.kind is Kind.IMMEDIATE:
        size = immediate(row, size_operand, size)
    step = max(dst.dtype.bytes, *(each.align for each in _tiles(row)))
    if size_operand.kind is not Kind.IMMEDIATE and size % step:
        raise TraceError(f"{row.text}: operand size: expected a multiple of {step} bytes but got {size}")
    if size < 1 or whole % size or size % dst.dtype.bytes:
        raise TraceError(f"{row.text}: operand size: the last axis of {whole} bytes is no multiple of {size} bytes")
    named["size"] = size
    return Chunks(row, shape[:rank], size // dst.dtype.bytes, size)


def _described(tensor: TensorValue) -> str:
    return f"{tensor.name} of {tensor.dtype}, shape {shown(tensor.shape)},"


def _addresses(tracer: Tracer, chunks: Chunks, operand: Operand, tensor: TensorValue) -> list[Address]:
    """Where each chunk begins, after proving that it is contiguous and aligned."""
    what = f"{chunks.row.text}: operand {operand.name}"
    check_contiguous(what, tensor, chunks.shape, chunks.elements)
    need = max(operand.align, chunks.bytes if chunks.row.operand("size").kind is Kind.IMMEDIATE else 0)
    addresses = []
    for start in chunks.starts:
        where: tuple[Index, ...] = start
        known = alignment(tracer.builder, tensor, where)
        if known % need:
            raise misaligned(what, tensor, f"the chunk at {start}", need, known)
        addresses.append(address(tracer.builder, tensor, where))
    return addresses
