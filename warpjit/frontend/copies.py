"""`T.cuda.tile.apply` of copies: cp.async and its bulk form on chunks of tiles.

Both tensors have the same shape. The threads of the scope share the chunks of the last axis among them; in scope
"thread" each thread copies the whole tile that it names. A chunk is contiguous and aligned on both sides, by proof.
Operands that are no tiles are given by name: `size=`, `src_size=`, `mbar=`. What a warp does together is in `tiles`,
single pointers in `raw`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import groupby

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import (
    Index,
    address_at,
    alignment_at,
    checked,
    element_offset,
    multiple_of,
    shown,
    static_int,
)
from warpjit.frontend.builder import Builder
from warpjit.frontend.chunks import check_contiguous, misaligned
from warpjit.frontend.raw import RAW, immediate
from warpjit.frontend.sharing import exists, limits, shared_out
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.ir.dtypes import int32
from warpjit.ir.nodes import Atom, OperandValue, Tile
from warpjit.isa.row import Kind, Operand, Row
from warpjit.layout import ComposeLayout
from warpjit.record import record

BARRIER_KEYWORD = "mbar"
SOURCE_SIZE = "src_size"
"""The operand that says how many bytes of a chunk are read; the rest becomes 0."""


@record
class Copy:
    """One `tile.apply`: both tiles have `shape` and fall into chunks of `elements` elements, `bytes` bytes."""

    row: Row
    tensors: tuple[TensorValue, ...]
    shape: tuple[int, ...]
    elements: int
    bytes: int

    def refused(self, sentence: str) -> TraceError:
        return TraceError(f"{self.row.text}: {sentence}")


@record
class Part:
    """One copy of this thread: its chunk, who has it, and how many of its bytes are read (None: all)."""

    start: tuple[Index, ...]
    predicate: Atom | None
    src_size: Atom | None


def copies_chunks(row: Row) -> bool:
    """Whether the row copies as many bytes between two addresses as it is told."""
    return len(_tiles(row)) == 2


def _tiles(row: Row) -> list[Operand]:
    return [each for each in row.operands if each.kind is Kind.ADDRESS and not each.bytes]


def apply_copy(tracer: Tracer, row: Row, operands: tuple[Value, ...], scope: Value, given: dict[str, Value]) -> None:
    """One copy for each chunk of this thread, in row-major order. `given`: `pred`, `valid`, other operands by name."""
    tiles = _tiles(row)
    if len(operands) != len(tiles):
        names = ", ".join(operand.name for operand in tiles)
        raise TraceError(f"{row.text}: expected {len(tiles)} tensors ({names}) but got {len(operands)}")
    named = _named(row, dict(given))
    pred, valid = named.pop("pred", None), named.pop("valid", None)
    tensors = tuple(_tensor(row, operand, value) for operand, value in zip(tiles, operands, strict=True))
    copy = _copy(row, tensors, named)
    parts = _parts(tracer, copy, scope, pred, valid, named)
    for operand, tensor in zip(tiles, tensors, strict=True):
        check_contiguous(f"{row.text}: operand {operand.name}", tensor, copy.shape, copy.elements)
    others = {
        each.name: RAW[each.kind](tracer, row, each, named[each.name], 0)
        for each in row.operands
        if each not in tiles and each.kind is not Kind.IMMEDIATE and each.name in named
    }
    for alike in _alike(parts):
        values: list[OperandValue] = []
        for operand in row.operands:
            if operand in tiles:
                values.append(_addresses(tracer, copy, operand, tensors[tiles.index(operand)], alike))
            elif operand.name == SOURCE_SIZE and alike[0].src_size is not None:
                values.append(alike[0].src_size)
            else:
                values.append(others.get(operand.name))
        params = tuple((each.name, copy.bytes) for each in row.operands if each.kind is Kind.IMMEDIATE)
        tracer.builder.issue(row, tuple(values), params=params, issues=len(alike), predicate=alike[0].predicate)


def _parts(tracer: Tracer, copy: Copy, scope: Value, pred: Value, valid: Value, named: dict[str, Value]) -> list[Part]:
    """This thread's chunks, with what they depend on."""
    builder = tracer.builder
    bounds = limits(tracer, copy.row.text, valid, copy.shape)
    bounds = (*bounds[:-1], _within(builder, copy, bounds[-1]))
    if valid is not None and SOURCE_SIZE in named:
        raise copy.refused("expected valid= or src_size= but got both")
    read = named.get(SOURCE_SIZE)
    if isinstance(read, int) and not 0 <= read <= copy.bytes:
        raise copy.refused(f"operand {SOURCE_SIZE}: expected 0 to {copy.bytes} but got {read}")
    chosen = None if pred is None else arithmetic.truth(builder, pred)
    parts = []
    for chunk in shared_out(tracer, copy.row.text, "thread" if scope is None else scope, copy.shape, copy.elements):
        conditions = [each for each in (chunk.mine, chosen) if each is not None]
        predicate = None
        if conditions:
            predicate = builder.atom(reduce(partial(arithmetic.join_conditions, builder, "and"), conditions))
        size = None if valid is None else _source_size(builder, copy, chunk.start, bounds)
        parts.append(Part(chunk.start, predicate, size))
    return parts


def _cuts_chunks(copy: Copy, limit: Index | None) -> bool:
    """Whether a limit of the last axis may leave a part of a chunk."""
    return limit is not None and multiple_of(limit) % copy.elements != 0


def _within(builder: Builder, copy: Copy, limit: Index | None) -> Index | None:
    """A limit of the last axis that parts are counted from, as an int32 from which no difference wraps."""
    if not isinstance(limit, Scalar) or not _cuts_chunks(copy, limit):
        return limit
    low = limit.facts.lo
    if limit.dtype.bits <= 32 and low is not None and low > copy.shape[-1] - (1 << 31):
        return limit
    some = arithmetic.binary(builder, "min", arithmetic.binary(builder, "max", limit, 0), copy.shape[-1])
    return arithmetic.convert(builder, some, int32)


def _source_size(builder: Builder, copy: Copy, start: tuple[Index, ...], bounds: Sequence[Index | None]) -> Atom | None:
    """How many bytes of the chunk exist."""
    last = bounds[-1]
    whole = not _cuts_chunks(copy, last)
    outer = exists(builder, start, (*bounds[:-1], last if whole else None), copy.shape)
    size: Value = copy.bytes
    if not whole:
        left = arithmetic.binary(builder, "sub", arithmetic.natural(builder, last), start[-1])
        some = arithmetic.binary(builder, "max", arithmetic.binary(builder, "min", left, copy.elements), 0)
        size = arithmetic.binary(builder, "mul", some, copy.bytes // copy.elements)
    if outer is None:
        return None if whole else builder.atom(size)
    return builder.atom(arithmetic.select(builder, outer, size, 0))


def _alike(parts: list[Part]) -> list[list[Part]]:
    """Neighbours that depend on the same: one operation."""
    return [list(group) for _, group in groupby(parts, lambda part: (part.predicate, part.src_size))]


def _named(row: Row, given: dict[str, Value]) -> dict[str, Value]:
    """Parameters by the operands' names."""
    others = [each for each in row.operands if each not in _tiles(row)]
    keyword = {each.name: BARRIER_KEYWORD if each.kind is Kind.BARRIER else each.name for each in others}
    known = {*keyword.values(), "pred", *(["valid"] if SOURCE_SIZE in keyword.values() else [])}
    for name in given:
        if name not in known:
            raise TraceError(f"{row.text} takes no {name}=; it takes {', '.join(f'{each}=' for each in sorted(known))}")
    named = {each.name: given[keyword[each.name]] for each in others if given.get(keyword[each.name]) is not None}
    for each in others:
        if each.name not in named and not each.optional and each.name != "size":
            raise TraceError(f"{row.text}: expected {keyword[each.name]}=")
    return named | {name: given[name] for name in ("pred", "valid") if name in given}


def _tensor(row: Row, operand: Operand, value: Value) -> TensorValue:
    what = f"{row.text}: operand {operand.name}"
    if not isinstance(value, TensorValue):
        raise TraceError(f"{what}: expected a tensor but got {arithmetic.describe(value)}")
    if value.space != operand.space:
        raise TraceError(f"{what}: expected a {operand.space} tensor, but {value.name} is {value.space}")
    if value.dtype.bits < 8:
        raise TraceError(
            f"{what}: expected elements of a byte or more but {value.name} holds {value.dtype}: view it as uint8"
        )
    return value


def _copy(row: Row, tensors: tuple[TensorValue, ...], named: dict[str, Value]) -> Copy:
    """The chunks of both tensors; without `size` a chunk is the whole last axis. `named["size"]` is set."""
    dst, src = tensors
    if dst.dtype != src.dtype or len(dst.shape) != len(src.shape) or not dst.shape:
        raise _unlike(row, dst, src)
    shape = tuple(static_int(extent, f"an extent of {tensor.name}") for tensor in tensors for extent in tensor.shape)
    rank = len(dst.shape)
    if shape[:rank] != shape[rank:]:
        raise _unlike(row, dst, src)
    whole = shape[rank - 1] * dst.dtype.bytes
    size_operand = row.operand("size")
    size = static_int(named.get("size", whole), f"{row.text}: operand size")
    if size_operand.kind is Kind.IMMEDIATE:
        size = immediate(row, size_operand, size)
    step = max(dst.dtype.bytes, *(each.align for each in _tiles(row)))
    if size_operand.kind is not Kind.IMMEDIATE and (size < 1 or size % step):
        raise TraceError(f"{row.text}: operand size: expected a positive multiple of {step} bytes but got {size}")
    if whole % size or size % dst.dtype.bytes:
        raise TraceError(
            f"{row.text}: operand size: expected a divisor of the {whole} bytes of the last axis but got {size}"
        )
    named["size"] = size
    return Copy(row, tensors, shape[:rank], size // dst.dtype.bytes, size)


def _unlike(row: Row, dst: TensorValue, src: TensorValue) -> TraceError:
    return TraceError(
        f"{row.text}: expected tiles of one type and shape but got {_described(dst)} and {_described(src)}"
    )


def _described(tensor: TensorValue) -> str:
    return f"{tensor.name} of {tensor.dtype}, shape {shown(tensor.shape)}"


def _addresses(tracer: Tracer, copy: Copy, operand: Operand, tensor: TensorValue, parts: Sequence[Part]) -> Tile:
    """Where each chunk begins, after proving that it is aligned."""
    whole = copy.row.operand("size").kind is Kind.IMMEDIATE or isinstance(tensor.layout, ComposeLayout)
    need = max(operand.align, copy.bytes if whole else 0)  # a swizzle keeps together what begins at such a multiple
    addresses = []
    for part in parts:
        offset = element_offset(tracer.builder, tensor, part.start)
        known = alignment_at(tracer.builder, tensor, offset)
        if known % need:
            static = all(isinstance(index, int) for index in part.start)
            chunk = f"the chunk at {part.start}" if static else "a chunk"
            raise misaligned(f"{copy.row.text}: operand {operand.name}", tensor, chunk, need, known)
        checked(tensor, part.start, tracer.builder.block.dead)
        addresses.append(address_at(tracer.builder, tensor, part.start, offset))
    return Tile(tuple(addresses))
