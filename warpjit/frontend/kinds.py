"""What a kernel is specialised on: the compile-time half of its arguments, as hashable values that enter keys.

How an argument is turned into its kind, and what is checked then, is `specialize`'s; whether another argument may be
given where a kind was compiled for is `admit`'s.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, fields, is_dataclass
from enum import Enum
from types import FunctionType
from typing import Any, TypeAlias

from warpjit.frontend.language.types import Dynamic
from warpjit.ir.dtypes import DType
from warpjit.record import record

BASE_ALIGNMENT = 16
"""Bytes; whether a tensor's base has this alignment is one bit of its key."""
NARROW_BYTES = 1 << 31
"""A tensor that spans fewer bytes is reached by 32-bit offsets; one bit of its key."""


class Stride(Enum):
    """What is known of one stride."""

    ANY = "any"  # the size is 1: it does not matter
    ZERO = "zero"
    ONE = "one"
    PACKED = "packed"  # the product of the sizes to its right
    FREE = "free"  # a hidden argument
    FREE16 = "free16"  # a hidden argument, a multiple of 16 bytes


@record
class TensorKind:
    """A tensor: static sizes are ints, runtime ones the `Dynamic` that stands for them.

    align   bytes of which the base is a multiple
    narrow  all offsets fit 32 bits
    names   string sizes of the annotation, by axis
    """

    dtype: DType
    shape: tuple[int | Dynamic, ...]
    strides: tuple[Stride, ...]
    align: int
    narrow: bool
    noalias: bool = False
    names: tuple[tuple[int, str], ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        strides = ", ".join(stride.value for stride in self.strides)
        width = "" if self.narrow else ", of 2**31 bytes or more"
        return (
            f"a tensor of {self.dtype}, shape {shape_text(self.shape)}, strides ({strides}), "
            f"aligned to {self.align} bytes{width}"
        )


@record
class ScalarKind:
    """A runtime scalar."""

    dtype: DType

    def __str__(self) -> str:
        return f"a number of type {self.dtype}"


@record
class ConstantKind:
    """A compile-time constant. Values compare with their types, floats by their bits: 1, True and 1.0 differ."""

    key: Any
    value: Any = field(compare=False)

    def __str__(self) -> str:
        return f"the constant {self.value!r}"


@record
class TupleKind:
    items: tuple[Kind, ...]

    def __str__(self) -> str:
        return f"({', '.join(str(item) for item in self.items)})"


Kind: TypeAlias = TensorKind | ScalarKind | ConstantKind | TupleKind


@record
class Specialization:
    """The kinds of all parameters, in the signature's order: what a kernel is traced for."""

    kinds: tuple[tuple[str, Kind], ...]

    @property
    def parameters(self) -> tuple[Kind, ...]:
        """The kinds without their names."""
        return tuple(kind for _, kind in self.kinds)

    def leaves(self) -> Iterator[Kind]:
        """The kinds that take a runtime argument, flattened; their position is the argument's index."""
        for _, kind in self.kinds:
            yield from _leaves(kind)

    def leaf_names(self) -> tuple[str, ...]:
        """What messages call each runtime argument."""
        return tuple(label for name, kind in self.kinds for label in _labels(name, kind))


def _leaves(kind: Kind) -> Iterator[Kind]:
    if isinstance(kind, TupleKind):
        for item in kind.items:
            yield from _leaves(item)
    elif not isinstance(kind, ConstantKind):
        yield kind


def _labels(name: str, kind: Kind) -> Iterator[str]:
    if isinstance(kind, TupleKind):
        for index, item in enumerate(kind.items):
            yield from _labels(f"{name}[{index}]", item)
    elif not isinstance(kind, ConstantKind):
        yield name


def shape_text(shape: Sequence[int | str | Dynamic]) -> str:
    """A shape as messages show it: runtime and named sizes by their names."""
    items = [item.name if isinstance(item, Dynamic) else str(item) for item in shape]
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


# ---- constants ------------------------------------------------------------------------------------------------


def typed(value: Any) -> Any:
    """A key of a hashable value that tells types, signs of zero and the bits of a NaN apart, also deep inside."""
    kind = type(value)
    if isinstance(value, float):
        return (kind, struct.pack("<d", value))
    if isinstance(value, tuple):
        return (kind, tuple(typed(item) for item in value))
    if isinstance(value, FunctionType):
        return (kind, _function_key(value))
    if isinstance(value, frozenset):
        return (kind, frozenset(typed(item) for item in value))
    if is_dataclass(value) and not isinstance(value, type) and kind.__module__.partition(".")[0] != "warpjit":
        return (kind, tuple(typed(getattr(value, item.name)) for item in fields(value)))
    return (kind, value)


def _function_key(function: FunctionType) -> Any:
    """Two functions made at one place, a lambda in a loop for instance, are one constant while all that they hold is
    equal. What cannot be compared that way makes a function its own key."""
    held = (function.__defaults__, tuple((function.__kwdefaults__ or {}).items()))
    cells = function.__closure__ or ()
    try:
        inside = tuple(cell.cell_contents for cell in cells)
        if any(isinstance(each, FunctionType) for each in inside):
            return function
        key = (function.__code__, id(function.__globals__), typed(held), typed(inside))
        hash(key)
    except (ValueError, TypeError):  # an empty cell, something unhashable
        return function
    return key


# ---- strides --------------------------------------------------------------------------------------------------


_HOLDS: dict[Stride, Callable[[int, int, int], bool]] = {
    Stride.ANY: lambda stride, product, bits: False,
    Stride.ZERO: lambda stride, product, bits: stride == 0,
    Stride.ONE: lambda stride, product, bits: stride == 1,
    Stride.PACKED: lambda stride, product, bits: stride == product,
    Stride.FREE: lambda stride, product, bits: True,
    Stride.FREE16: lambda stride, product, bits: stride * bits % (8 * BASE_ALIGNMENT) == 0,
}
"""Whether a class is true of a stride, given the product of the sizes to its right and the bits of an element."""


def stride_holds(known: Stride, shape: Sequence[int], strides: Sequence[int], axis: int, bits: int) -> bool:
    """Whether `known` is true of a tensor of elements of `bits`. Of a size of 1 or less, and where there are no
    elements, every stride is what one likes: it is never multiplied by anything but 0."""
    if shape[axis] <= 1 or 0 in shape:
        return known is not Stride.ANY or shape[axis] <= 1
    return _HOLDS[known](strides[axis], math.prod(shape[axis + 1 :]), bits)


def packed_classes(kept: Sequence[int | Dynamic]) -> tuple[Stride, ...]:
    """The classes of a packed row-major tensor with these sizes.

    A runtime size is never looked at: one program serves 1 as well as any other value of it.
    """
    classes: list[Stride] = []
    one = True  # whether the product of the sizes to the right is 1 whatever the call
    for item in reversed(kept):
        classes.append(Stride.ANY if item in (0, 1) else Stride.ONE if one else Stride.PACKED)
        one = one and item == 1
    return tuple(reversed(classes))


def stride_classes(
    kept: Sequence[int | Dynamic], shape: Sequence[int], strides: Sequence[int], bits: int
) -> tuple[Stride, ...]:
    """The class of each stride: the packed one where it holds, else the most special that does."""
    packed = packed_classes(kept)
    if 0 in shape:
        return packed
    product = 1
    classes: list[Stride] = []
    for axis in range(len(shape) - 1, -1, -1):
        size, stride = shape[axis], strides[axis]
        if size <= 1 or stride == product:
            classes.append(packed[axis])
        elif stride <= 1:
            classes.append(Stride.ONE if stride else Stride.ZERO)
        else:
            classes.append(Stride.FREE if stride * bits % (8 * BASE_ALIGNMENT) else Stride.FREE16)
        product *= size
    return tuple(reversed(classes))
