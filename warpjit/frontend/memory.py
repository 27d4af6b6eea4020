"""Element loads and stores, of memory and of registers. One element each: nothing is widened silently."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import (
    Index,
    address,
    address_at,
    alignment_at,
    axis_index,
    checked,
    element_offset,
    offset_multiple,
    register,
    static_int,
    wrong_rank,
)
from warpjit.frontend.builder import Builder
from warpjit.frontend.values import Pointer, Scalar, TensorValue, Value, is_number
from warpjit.frontend.views import reinterpret
from warpjit.frontend.words import refuse_number
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.facts import Uniformity
from warpjit.ir.nodes import Address, Const, GlobalBuffer, Local, Op, Registers, Slot
from warpjit.isa.memory import LOAD, STORE
from warpjit.isa.scalar import BITCAST, EXTRACT, INSERT, MOVE, PACK64, UNPACK64


def indices(tensor: TensorValue, items: tuple[Value, ...]) -> tuple[Index, ...]:
    """The items of a subscript as coordinates. TraceError: not integers, negative, wrong rank."""
    if len(items) != len(tensor.shape):
        raise wrong_rank(tensor, len(items))
    return tuple(axis_index(tensor, axis, item) for axis, item in enumerate(items))


def _uniformity(builder: Builder, place: Address) -> Uniformity:
    """Who reads the same element: those who agree on the address."""
    offset = place.offset
    if offset is None or isinstance(offset, Const):
        base = Uniformity.GRID
    else:
        base = builder.facts_of(offset).uniformity  # type: ignore[arg-type]
    return max(base, Uniformity.CTA if place.buffer.space == "shared" else Uniformity.GRID)


def load(builder: Builder, tensor: TensorValue, coordinates: tuple[Index, ...]) -> Scalar:
    """The value of one element, taken now."""
    if tensor.dtype is dtypes.mbarrier:
        raise TraceError(f"{tensor.name} holds mbarriers: give its address, {tensor.name}.ptr(i), to an instruction")
    if isinstance(tensor.base, Registers):
        read = _read_nibble if tensor.dtype in NIBBLES else _read
        return read(builder, tensor, register(tensor, coordinates))
    if tensor.dtype in NIBBLES:
        return _load_nibble(builder, tensor, coordinates)
    place = address(builder, tensor, coordinates)
    row = LOAD[tensor.space, tensor.dtype.name]
    facts = fact.of_type(tensor.dtype, _uniformity(builder, place))
    local = builder.local("v", tensor.dtype, facts)
    builder.issue(row, (local, place))
    return builder.scalar_of(local)


def store(builder: Builder, tensor: TensorValue, coordinates: tuple[Index, ...], value: Value) -> None:
    """`tensor[coordinates] = value`; the value is converted to the element type."""
    if tensor.dtype is dtypes.mbarrier:
        raise TraceError(f"{tensor.name} holds mbarriers: they change through mbarrier instructions only")
    if not isinstance(value, Scalar) and not is_number(value):
        raise TraceError(f"expected a number to store in {tensor.name} but got {arithmetic.describe(value)}")
    if tensor.dtype in NIBBLES and not isinstance(tensor.base, Registers):
        raise TraceError(
            f"expected whole bytes to be stored but {tensor.name} holds {tensor.dtype}: T.store a local tensor, or "
            "view the tensor as uint8"
        )
    if tensor.dtype in NIBBLES:
        _write_nibble(builder, tensor, register(tensor, coordinates), value)
        return
    refuse_number(tensor, value)
    scalar = arithmetic.typed(builder, value, tensor.dtype)
    if isinstance(tensor.base, Registers):
        _write(builder, tensor, register(tensor, coordinates), scalar)
        return
    if tensor.space == "constant":
        raise TraceError(f"expected a tensor that can be written, but {tensor.name} is a table of constants")
    place = address(builder, tensor, coordinates)
    builder.issue(STORE[tensor.space, tensor.dtype.name], (place, builder.atom(scalar)))


def pointer(builder: Builder, tensor: TensorValue, items: tuple[Value, ...]) -> Pointer:
    """`t.ptr(i, j)`: the address of an element; without indices that of the first."""
    if isinstance(tensor.base, Registers):
        raise TraceError(f"{tensor.name} is in registers: it has no address")
    coordinates = indices(tensor, items or (0,) * len(tensor.shape))
    if tensor.dtype in NIBBLES:
        *outer, last = coordinates
        if (last if isinstance(last, int) else last.facts.multiple) % 2:
            raise TraceError(
                f"expected the last index to be known to be even but {tensor.name} holds {tensor.dtype}, two a byte"
            )
        half: Index = last // 2 if isinstance(last, int) else arithmetic.binary(builder, "floordiv", last, 2)
        coordinates = (*outer, half)
        tensor = reinterpret(builder, tensor, dtypes.uint8)
    checked(tensor, coordinates, builder.block.dead)
    offset = element_offset(builder, tensor, coordinates)
    return Pointer(address_at(builder, tensor, coordinates, offset), tensor, alignment_at(builder, tensor, offset))


def moved(builder: Builder, op: str, left: Value, right: Value) -> Pointer:
    """`pointer + bytes`, `bytes + pointer` and `pointer - bytes`: which element it points to is not known any more."""
    place, by = (left, right) if isinstance(left, Pointer) else (right, left)
    if op not in ("add", "sub") or (op == "sub" and place is right) or isinstance(by, Pointer):
        raise TraceError(f"{op} of pointers: expected pointer + bytes or pointer - bytes")
    if isinstance(by, Scalar) and not by.dtype.is_int:
        raise TraceError(f"expected an integer, a number of bytes, beside a pointer but got {arithmetic.describe(by)}")
    old = place.address
    if not isinstance(by, Scalar):
        step = static_int(by, "the bytes beside a pointer")
        moved_to = replace(old, constant=old.constant + (step if op == "add" else -step), access=None)
        return replace(place, address=moved_to, align=math.gcd(place.align, step))
    wide = by.dtype.bits == 64 or (isinstance(old.buffer, GlobalBuffer) and old.buffer.wide)
    dtype = dtypes.int64 if wide or (old.offset is not None and old.offset.dtype.bits == 64) else dtypes.int32
    start: Value = builder.scalar_of(old.offset) if isinstance(old.offset, Local) else 0
    if isinstance(start, Scalar):
        start = arithmetic.convert(builder, start, dtype)
    total = arithmetic.binary(builder, op, start, arithmetic.convert(builder, by, dtype))
    return replace(
        place,
        address=Address(old.buffer, builder.atom(total), old.constant),
        align=math.gcd(place.align, offset_multiple(builder, by)),
    )


# ---- registers ------------------------------------------------------------------------------------------


def _slot(tensor: TensorValue, element: int) -> tuple[Slot, int]:
    """The word of an element, and the element's number in it."""
    assert isinstance(tensor.base, Registers)
    bit = element * tensor.dtype.bits
    word = tensor.base.word.bits
    return Slot(tensor.base, bit // word), bit % word // tensor.dtype.bits


def _take(builder: Builder, slot: Slot) -> Scalar:
    """The present value of a register: never shared with an earlier reading."""
    local = builder.local("r", slot.dtype, fact.of_type(slot.dtype))
    builder.emit(Op(MOVE[slot.dtype.name], (local, slot), control=builder.control, loc=builder.loc))
    return builder.scalar_of(local)


def _put(builder: Builder, slot: Slot, value: Scalar) -> None:
    word = bitcast(builder, value, slot.dtype)
    builder.issue(MOVE[slot.dtype.name], (slot, builder.atom(word)))


def bitcast(builder: Builder, value: Scalar, dtype: dtypes.DType) -> Scalar:
    """The same bits as another type of the same width."""
    if value.dtype == dtype:
        return value
    if value.dtype.bits != dtype.bits:
        raise TraceError(f"expected a type of {value.dtype.bits} bits, the width of {value.dtype}, but got {dtype}")
    row = BITCAST[dtype.name, value.dtype.name]
    return builder.operate(row, (builder.atom(value),), fact.of_type(dtype, value.uniformity), loops=value.loops)


def _read(builder: Builder, tensor: TensorValue, element: int) -> Scalar:
    slot, part = _slot(tensor, element)
    bits = tensor.dtype.bits
    if bits > slot.dtype.bits:  # two words make one element
        low, high = (
            bitcast(builder, _take(builder, Slot(slot.registers, slot.index + i)), dtypes.uint32) for i in (0, 1)
        )
        wide = builder.operate(PACK64, (builder.atom(low), builder.atom(high)), fact.of_type(dtypes.uint64))
        return bitcast(builder, wide, tensor.dtype)
    word = _take(builder, slot)
    if bits == slot.dtype.bits:
        return bitcast(builder, word, tensor.dtype)
    if slot.dtype.bits == 64:
        return _half(builder, tensor, word, part)
    whole = bitcast(builder, word, dtypes.uint32)
    piece = _extract(builder, whole, bits, part)
    return bitcast(builder, piece, tensor.dtype)


def _half(builder: Builder, tensor: TensorValue, word: Scalar, part: int) -> Scalar:
    """An element of at most 32 bits of a 64-bit word."""
    per_half = 32 // tensor.dtype.bits
    halves = _halves(builder, word)
    piece = halves[part // per_half]
    return bitcast(builder, _extract(builder, piece, tensor.dtype.bits, part % per_half), tensor.dtype)


def _halves(builder: Builder, word: Scalar) -> tuple[Scalar, Scalar]:
    low, high = (builder.local(name, dtypes.uint32, fact.of_type(dtypes.uint32)) for name in ("low", "high"))
    builder.issue(UNPACK64, (low, high, builder.atom(bitcast(builder, word, dtypes.uint64))))
    return builder.scalar_of(low), builder.scalar_of(high)


def _extract(builder: Builder, word: Scalar, bits: int, part: int) -> Scalar:
    if bits == 32:
        return word
    narrow = dtypes.dtype(f"uint{bits}")
    return builder.operate(EXTRACT[bits], (builder.atom(word), None), fact.of_type(narrow), params=(("index", part),))  # type: ignore[arg-type]


def half_of(builder: Builder, word: Scalar, dtype: dtypes.DType, part: int) -> Scalar:
    """Element `part`, of 16 bits, of a 32-bit word."""
    return bitcast(builder, _extract(builder, bitcast(builder, word, dtypes.uint32), 16, part), dtype)


def _write(builder: Builder, tensor: TensorValue, element: int, value: Scalar) -> None:
    slot, part = _slot(tensor, element)
    bits = tensor.dtype.bits
    if bits == slot.dtype.bits:
        _put(builder, slot, value)
    elif bits > slot.dtype.bits:
        for i, half in enumerate(_halves(builder, value)):
            _put(builder, Slot(slot.registers, slot.index + i), half)
    elif slot.dtype.bits == 64:
        per_half = 32 // bits
        halves = list(_halves(builder, _take(builder, slot)))
        halves[part // per_half] = _insert(builder, halves[part // per_half], value, bits, part % per_half)
        wide = builder.operate(PACK64, tuple(builder.atom(half) for half in halves), fact.of_type(dtypes.uint64))
        _put(builder, slot, wide)
    else:
        whole = bitcast(builder, _take(builder, slot), dtypes.uint32)
        _put(builder, slot, _insert(builder, whole, value, bits, part))


def _insert(builder: Builder, word: Scalar, value: Scalar, bits: int, part: int) -> Scalar:
    raw = bitcast(builder, value, dtypes.dtype(f"uint{bits}"))
    if bits == 32:
        return raw
    operands: Any = (builder.atom(word), builder.atom(raw), None)
    return builder.operate(INSERT[bits], operands, fact.of_type(dtypes.uint32), params=(("index", part),))


# ---- four-bit elements ------------------------------------------------------------------

NIBBLES = {dtypes.int4: dtypes.int8, dtypes.uint4: dtypes.uint8}
"""The type in which the value of a 4-bit element is read and written."""


def _load_nibble(builder: Builder, tensor: TensorValue, coordinates: tuple[Index, ...]) -> Scalar:
    """Half of a byte of memory: of two elements the one with the even index is the low half."""
    *outer, last = coordinates
    whole: Index = last // 2 if isinstance(last, int) else arithmetic.binary(builder, "floordiv", last, 2)
    part: Index = last % 2 if isinstance(last, int) else arithmetic.binary(builder, "mod", last, 2)
    octet = load(builder, reinterpret(builder, tensor, dtypes.uint8), (*outer, whole))
    word = arithmetic.convert(builder, octet, dtypes.int32)
    if tensor.dtype is dtypes.uint4:
        low = arithmetic.binary(builder, "shr", word, arithmetic.binary(builder, "mul", _whole(builder, part), 4))
        return arithmetic.convert(builder, arithmetic.binary(builder, "and", low, 15), dtypes.uint8)
    up = arithmetic.binary(builder, "sub", 28, arithmetic.binary(builder, "mul", _whole(builder, part), 4))
    top = arithmetic.binary(builder, "shl", word, up)
    return arithmetic.convert(builder, arithmetic.binary(builder, "shr", top, 28), dtypes.int8)


def _whole(builder: Builder, index: Index) -> Scalar:
    return arithmetic.literal(builder, index, dtypes.int32) if isinstance(index, int) else index


def _nibble_word(builder: Builder, tensor: TensorValue, element: int) -> tuple[Slot, int]:
    slot, part = _slot(tensor, element)
    if slot.dtype.bits != 32:
        raise TraceError(f"{tensor.name}: 4-bit elements of {slot.dtype.bits}-bit registers cannot be read one by one")
    return slot, part


def _read_nibble(builder: Builder, tensor: TensorValue, element: int) -> Scalar:
    slot, part = _nibble_word(builder, tensor, element)
    word = bitcast(builder, _take(builder, slot), dtypes.uint32)
    # Of the word's other elements nothing is computed: they may be unwritten.
    word = arithmetic.binary(builder, "and", word, 15 << 4 * part)
    word = bitcast(builder, word, dtypes.int32) if tensor.dtype is dtypes.int4 else word
    top = arithmetic.binary(builder, "shl", word, 28 - 4 * part) if part < 7 else word
    return arithmetic.convert(builder, arithmetic.binary(builder, "shr", top, 28), NIBBLES[tensor.dtype])


def _write_nibble(builder: Builder, tensor: TensorValue, element: int, value: Value) -> None:
    """Integers modulo 16; floats towards zero, saturating; a literal must fit."""
    slot, part = _nibble_word(builder, tensor, element)
    holder, low, high = NIBBLES[tensor.dtype], tensor.dtype.min, tensor.dtype.max
    if not isinstance(value, Scalar):
        number = arithmetic.literal(builder, value, holder)
        if not low <= value <= high:
            raise TraceError(f"expected {low} to {high} to store in {tensor.name} of {tensor.dtype} but got {value!r}")
    else:
        number = arithmetic.convert(builder, value, holder)
        if value.dtype.is_float:
            number = arithmetic.binary(builder, "max", arithmetic.binary(builder, "min", number, high), low)
    bits = arithmetic.binary(builder, "and", arithmetic.convert(builder, number, dtypes.uint32), 15)
    placed = arithmetic.binary(builder, "shl", bits, 4 * part) if part else bits
    word = bitcast(builder, _take(builder, slot), dtypes.uint32)
    kept = arithmetic.binary(builder, "and", word, 0xFFFFFFFF ^ (15 << 4 * part))
    _put(builder, slot, arithmetic.binary(builder, "or", kept, placed))
