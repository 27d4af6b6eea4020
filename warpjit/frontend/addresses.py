"""From coordinates of a tensor to a byte address, a pointer's alignment, or a register.

An address is a sum: what the whole CTA shares, what differs from lane to lane, and a constant. A swizzle is
applied to the part of the sum that lies within its period only: what is a multiple of the period stays outside.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.builder import Builder
from warpjit.frontend.swizzles import swizzled
from warpjit.frontend.values import Linear, Scalar, TensorValue, Value
from warpjit.ir import dtypes
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Access, Address, Atom, Const, GlobalBuffer, Local, Registers
from warpjit.layout import ComposeLayout, S, TileLayout, m
from warpjit.record import changed, record

Index = int | Scalar


class NeedsStatic(Exception):
    """A value must be static, but derives from device loops over static ranges: expanding one of them helps."""

    def __init__(self, loops: frozenset[int], message: str):
        super().__init__(message)
        self.loops = loops


@record
class Symbol:
    """A coordinate with Python's operators, for layouts to combine."""

    builder: Builder
    scalar: Scalar

    def _do(self, op: str, other: Any) -> Symbol:
        right = other.scalar if isinstance(other, Symbol) else other
        return Symbol(self.builder, arithmetic.binary(self.builder, op, self.scalar, right))

    def __add__(self, other: Any) -> Symbol:
        return self._do("add", other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Symbol:
        return self._do("mul", other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Symbol:
        return self._do("floordiv", other)

    def __mod__(self, other: Any) -> Symbol:
        return self._do("mod", other)


def tile_of(layout: TileLayout | ComposeLayout) -> TileLayout:
    """The part of a layout before its swizzle."""
    return layout.tile_layout if isinstance(layout, ComposeLayout) else layout


# ---- coordinates --------------------------------------------------------------------------------------


def checked(tensor: TensorValue, coordinates: tuple[Index, ...], dead: bool = False) -> tuple[Index, ...]:
    """The coordinates, after refusing what cannot lie inside: static ints, ranges that are all outside."""
    # An empty argument: a kernel for any size must trace for it, and then make no access. Nor does dead code.
    if 0 in tensor.shape or dead:
        return coordinates
    for axis, (index, extent) in enumerate(zip(coordinates, tensor.shape, strict=True)):
        low, high = bounds(index)
        top = bounds(extent)[1]
        if (high is not None and high < 0) or (low is not None and top is not None and low >= top):
            got = low if low == high else f"{low} to {high}"
            raise TraceError(
                f"index {axis} of {tensor.name}: expected one within shape {shown(tensor.shape)} but got {got}"
            )
    return coordinates


def wrong_rank(tensor: TensorValue, count: int, most: str = "") -> TraceError:
    """The refusal of that many indices."""
    rank = len(tensor.shape)
    indices = f"{most}{rank} {'index' if rank == 1 else 'indices'}"
    return TraceError(
        f"{tensor.name}: expected {indices}, one for each axis of shape {shown(tensor.shape)}, but got {count}"
    )


def axis_index(tensor: TensorValue, axis: int, value: Value) -> Index:
    """What stands for one axis in a subscript. TraceError: not an integer, or negative."""
    what = f"index {axis} of {tensor.name}"
    if isinstance(value, Scalar):
        if not value.dtype.is_int:
            raise TraceError(f"{what}: expected an integer but got {arithmetic.describe(value)}")
        return value
    index = static_int(value, what)
    if index < 0:
        raise TraceError(f"{what}: expected 0 or more, for indices count from the start, but got {index}")
    return index


def placing(layout: Any, shape: tuple[int, ...], what: str) -> TileLayout | ComposeLayout:
    """The layout that is to place the elements of a shape. TraceError: it is none, or places another number of them."""
    if isinstance(layout, str) and layout == "default":
        return TileLayout(S[shape])
    if not isinstance(layout, TileLayout | ComposeLayout):
        raise TraceError(f'{what}: layout: expected "default" or a layout but got {arithmetic.describe(layout)}')
    count = math.prod(shape)
    if layout.size() != count:
        raise TraceError(
            f"{what}: layout: expected one of the {count} elements of shape {shape} but got {layout!r}, of "
            f"{layout.size()}"
        )
    layout.check_well_formed()
    return layout


def bounds(value: Index) -> tuple[int | None, int | None]:
    if isinstance(value, Scalar):
        return value.facts.lo, value.facts.hi
    return value, value


def multiple_of(value: Index) -> int:
    """What an index or size is known to be a multiple of (0 of 0)."""
    return value.facts.multiple if isinstance(value, Scalar) else abs(value)


def shown(shape: tuple[Index, ...]) -> str:
    """A shape in a sentence; a runtime size by the name of its local."""
    names = [str(getattr(x.atom, "name", "?")) if isinstance(x, Scalar) else str(x) for x in shape]
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _inside(index: Scalar, extent: Index) -> Scalar:
    """The index as an access that happens knows it: within its axis."""
    top = bounds(extent)[1]
    facts = index.facts.meet(Facts(0, None if top is None else top - 1))
    return Scalar(index.dtype, facts, index.atom, index.linear, index.loops)


# ---- memory -------------------------------------------------------------------------------------------


def element_offset(builder: Builder, tensor: TensorValue, coordinates: tuple[Index, ...]) -> Index:
    """Where an element of a memory tensor lies, in elements from the buffer's start, before the swizzle."""
    inside = tuple(
        _inside(index, extent) if isinstance(index, Scalar) else index
        for index, extent in zip(coordinates, tensor.shape, strict=True)
    )
    if tensor.layout is None:
        return _strided(builder, tensor, inside)
    shape = tuple(int(extent) for extent in tensor.shape if not isinstance(extent, Scalar))
    inside = tuple(reaching(builder, tensor, index) for index in inside)
    symbols = [Symbol(builder, index) if isinstance(index, Scalar) else index for index in inside]
    tile = tile_of(tensor.layout)
    place: Any = tile.apply(*symbols, shape=shape).get("m", 0) if shape else tile.offset.get(m, 0)
    start = reaching(builder, tensor, tensor.offset)
    return add(builder, start, place.scalar if isinstance(place, Symbol) else place)


def add(builder: Builder, a: Index, b: Index) -> Index:
    """The sum, without a statement where one of them is nothing."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0:
        return b
    return a if b == 0 else arithmetic.binary(builder, "add", a, b)


def _strided(builder: Builder, tensor: TensorValue, coordinates: tuple[Index, ...]) -> Index:
    assert tensor.strides is not None
    wide = isinstance(tensor.base, GlobalBuffer) and tensor.base.wide
    total: Index = reaching(builder, tensor, tensor.offset)
    for index, stride in zip(coordinates, tensor.strides, strict=True):
        if isinstance(index, int) and isinstance(stride, int):
            total = add(builder, total, index * stride)
        elif index != 0 and stride != 0:
            total = add(
                builder, total, arithmetic.binary(builder, "mul", _as(builder, index, wide), _as(builder, stride, wide))
            )
    return total


def reaching(builder: Builder, tensor: TensorValue, index: Index) -> Index:
    """An index or offset in a type in which no offset of the tensor wraps: int64 where it may span 2**31 bytes."""
    wide = isinstance(tensor.base, GlobalBuffer) and tensor.base.wide
    return arithmetic.convert(builder, index, dtypes.int64) if wide and isinstance(index, Scalar) else index


def _as(builder: Builder, value: Index, wide: bool) -> Index:
    if not isinstance(value, Scalar):
        return value
    return arithmetic.convert(builder, present(builder, value), dtypes.int64 if wide else dtypes.int32)


def present(builder: Builder, value: Scalar) -> Scalar:
    """A size or stride that a tensor keeps, with what is known of it here: an `if` or `T.assume` may have said more."""
    if not isinstance(value.atom, Local):
        return value
    return changed(value, facts=value.facts.meet(builder.facts_of(value.atom)))


def address(builder: Builder, tensor: TensorValue, coordinates: tuple[Index, ...]) -> Address:
    """The byte address of an element of a memory tensor."""
    checked(tensor, coordinates, builder.block.dead)
    return address_at(builder, tensor, coordinates, element_offset(builder, tensor, coordinates))


def address_at(builder: Builder, tensor: TensorValue, coordinates: tuple[Index, ...], offset: Index) -> Address:
    """`address` of an element that is known to lie at `offset` before the swizzle."""
    assert not isinstance(tensor.base, Registers)
    if isinstance(tensor.layout, ComposeLayout):
        offset = swizzled(builder, tensor.layout, offset)
    access = Access(
        tensor.name, tuple(atom(builder, c) for c in coordinates), tuple(atom(builder, e) for e in tensor.shape)
    )
    if isinstance(offset, int):
        return Address(tensor.base, None, offset * tensor.dtype.bytes, access)
    return _bytes(builder, tensor, offset, access)


def _bytes(builder: Builder, tensor: TensorValue, offset: Scalar, access: Access) -> Address:
    """Elements to bytes, the constant apart."""
    assert not isinstance(tensor.base, Registers)
    assert offset.linear is not None
    size = tensor.dtype.bytes
    bound = max(abs(x) if x is not None else math.inf for x in (offset.facts.lo, offset.facts.hi)) * size
    narrow = bound < 1 << 31 or (isinstance(tensor.base, GlobalBuffer) and not tensor.base.wide)
    dtype = dtypes.int32 if narrow and offset.dtype.bits == 32 else dtypes.int64
    linear = _constant_apart(builder, offset, size) if dtype == dtypes.int32 else offset.linear
    moving, apart = Linear(linear.terms).times(size), linear.constant * size
    if dtype == dtypes.int32 and abs(apart) >= 1 << 31:
        # The sum wraps to the offset, what moves does not wrap to a part of it: the constant stays inside.
        moving, apart = moving.plus(Linear((), (apart + (1 << 31)) % (1 << 32) - (1 << 31))), 0
    atom_ = builder.materialize(dtype, moving, "offset") if moving.terms else None
    return Address(tensor.base, atom_, apart, access)


def _constant_apart(builder: Builder, offset: Scalar, size: int) -> Linear:
    """An offset of 32 bits as a sum whose constant is apart: accesses that are constants apart share what moves.

    The bytes of an access that happens lie from 0 to 2**31; without a constant that is not negative they still fit, so
    the sum may be one that equals the offset modulo 2**32 only.
    """
    assert offset.linear is not None
    whole = builder.modular(offset.linear)
    return whole if 0 < whole.constant * size < 1 << 31 else offset.linear


def atom(builder: Builder, value: Index) -> Atom:
    """An index or extent as an operand: an int is an int32, where it fits."""
    if isinstance(value, Scalar):
        return builder.atom(value)
    return Const(value, dtypes.int32 if value <= dtypes.int32.max else dtypes.int64)


def alignment(builder: Builder, tensor: TensorValue, coordinates: tuple[Index, ...]) -> int:
    """Bytes that the address of an element is sure to be a multiple of."""
    return alignment_at(builder, tensor, element_offset(builder, tensor, coordinates))


def alignment_at(builder: Builder, tensor: TensorValue, offset: Index) -> int:
    """`alignment` of an element that is known to lie at `offset` before the swizzle."""
    multiple = abs(offset) if isinstance(offset, int) else offset_multiple(builder, offset)
    if isinstance(tensor.layout, ComposeLayout):
        multiple = math.gcd(multiple, 1 << tensor.layout.per_element)
    return math.gcd(multiple * tensor.dtype.bytes, tensor.align)


def start_alignment(builder: Builder, tensor: TensorValue) -> int:
    """Bytes that the address of the tensor's first element is known to be a multiple of; a swizzle must not be cut."""
    size = tensor.dtype.bytes
    offset = tensor.offset
    multiple = offset if isinstance(offset, int) else offset_multiple(builder, offset)
    if isinstance(tensor.layout, ComposeLayout):
        period = tensor.layout.period
        kept = math.gcd(multiple, period) if multiple else period
        return math.gcd(min(kept, 1 << tensor.layout.per_element) * size, tensor.align)
    return math.gcd(multiple * size, tensor.align)


def offset_multiple(builder: Builder, offset: Scalar) -> int:
    assert offset.linear is not None
    return (
        math.lcm(builder.linear_facts(offset.linear).multiple, offset.facts.multiple)
        if offset.linear.terms
        else abs(offset.linear.constant)
    )


# ---- registers ----------------------------------------------------------------------------------------


def register(tensor: TensorValue, coordinates: tuple[Index, ...]) -> int:
    """The static element number, in the registers of a lane, of an element of a local tensor."""
    checked(tensor, coordinates)
    layout = tensor.layout
    assert layout is not None
    owners = _owners(layout)
    if owners:
        raise TraceError(
            f"{tensor.name} is spread over lanes ({', '.join(owners)}): an element of it is not one of this thread's "
            "registers. Index the local tensor that it is a view of"
        )
    place = tuple([static_int(index, f"the register index of {tensor.name}") for index in coordinates])
    shape = tuple([static_int(extent, "an extent") for extent in tensor.shape])
    if not shape:
        return static_int(tensor.offset, "an offset")
    return _element(layout, shape, place) + static_int(tensor.offset, "an offset")


@lru_cache(maxsize=4096)
def _owners(layout: TileLayout | ComposeLayout) -> tuple[str, ...]:
    """The axes of a layout along which threads own elements."""
    return tuple(axis.name for axis in layout.axes if axis.kind == "thread")


@lru_cache(maxsize=4096)
def _element(layout: TileLayout | ComposeLayout, shape: tuple[int, ...], place: tuple[int, ...]) -> int:
    """Where a static place of a shape lies on the memory axis: copies of a loop over registers ask again and again."""
    return int(layout.apply(*place, shape=shape).get("m", 0))


def static_int(value: Any, what: str) -> int:
    """An int known while tracing. NeedsStatic: it would be, were a loop expanded. TraceError: it never is."""
    if isinstance(value, Scalar):
        if isinstance(value.static, int):
            return int(value.static)
        if value.loops:
            raise NeedsStatic(value.loops, f"{what} must be known while tracing")
        known = f" ({value.uniformity.phrase})" if value.uniformity is not Uniformity.STATIC else ""
        raise TraceError(f"{what} must be known while tracing, but it is computed on the device{known}")
    if isinstance(value, bool) or not isinstance(value, int):
        try:
            return value.__index__()
        except (AttributeError, TypeError):  # arrays of several elements have the method, and refuse
            raise TraceError(f"{what}: expected an int but got {arithmetic.describe(value)}") from None
    return value
