"""What an expression of the language can be while it is traced.

Static values are plain Python objects and have no class here. `Scalar` is a value that the device (or, in the
host part, the launch plan) will hold; `TensorValue` a typed window onto memory or registers. Poison stands for
what an error left without a value, so that one mistake is reported once.
"""

from __future__ import annotations

import sys
from collections.abc import ItemsView, KeysView, ValuesView
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeAlias

from warpjit.errors import Loc
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity, of_constant
from warpjit.ir.nodes import Address, Atom, Buffer, Const, Local, PlanExpr, Registers
from warpjit.layout import ComposeLayout, TileLayout

NO_LOOPS: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Linear:
    """An integer as constant + Σ coefficient · local, over locals that never change while the sum is in use."""

    terms: tuple[tuple[Local, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(local: Local) -> Linear:
        return Linear(((local, 1),))

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """self + factor · other"""
        if not other.terms:
            return Linear(self.terms, self.constant + factor * other.constant)
        sums = dict(self.terms)
        for local, coefficient in other.terms:
            sums[local] = sums.get(local, 0) + factor * coefficient
        terms = tuple((local, coefficient) for local, coefficient in sums.items() if coefficient)
        return Linear(terms, self.constant + factor * other.constant)

    def times(self, factor: int) -> Linear:
        if factor == 0:
            return Linear()
        return Linear(tuple((local, coefficient * factor) for local, coefficient in self.terms), self.constant * factor)

    @property
    def key(self) -> frozenset[tuple[Local, int]]:
        """The terms without their order and without the constant."""
        return frozenset(self.terms)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number that the device holds.

    atom      where it is; None for an integer sum that no statement has computed yet
    linear    integers: the same as a sum of locals
    loops     the device loops over static ranges that it derives from: expanding one makes it static
    plan      in the host part: the launch plan's expression for it
    refines   a condition: what its truth, and its falsehood, says of locals
    """

    dtype: DType
    facts: Facts
    atom: Atom | None = None
    linear: Linear | None = None
    loops: frozenset[int] = NO_LOOPS
    plan: PlanExpr | None = None
    refines: tuple[tuple[tuple[Local, Facts], ...], tuple[tuple[Local, Facts], ...]] = field(
        default=((), ()), compare=False
    )

    @property
    def uniformity(self) -> Uniformity:
        return self.facts.uniformity

    @property
    def static(self) -> int | float | bool | None:
        """The value, where it is a literal of a stated type such as `T.int64(0)`."""
        return self.atom.value if isinstance(self.atom, Const) else None


def constant(dtype: DType, value: int) -> Scalar:
    """A static integer as a value of `dtype`, which the caller knows to hold it."""
    return Scalar(dtype, of_constant(value), Const(value, dtype), Linear((), value))


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A window onto a buffer or registers: element (i, j, …) lies at `offset` + place(i, j, …), in elements of `dtype`.

    Two forms of place: `layout` (static; the axis m is the memory or register axis, other axes own threads) or
    `strides` (a global tensor with runtime sizes or strides). `swizzled` layouts take offset + m through the swizzle.
    align   bytes that the buffer's base is known to be a multiple of
    """

    name: str
    dtype: DType
    shape: tuple[int | Scalar, ...]
    base: Buffer | Registers
    layout: TileLayout | ComposeLayout | None = None
    strides: tuple[int | Scalar, ...] | None = None
    offset: int | Scalar = 0
    align: int = 1
    loc: Loc = field(default_factory=Loc, compare=False)

    @property
    def space(self) -> str:
        return "local" if isinstance(self.base, Registers) else self.base.space

    @property
    def static_shape(self) -> bool:
        return all(isinstance(extent, int) for extent in self.shape)

    def with_(self, **changes: Any) -> TensorValue:
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of an element: what the raw form of an instruction takes."""

    address: Address
    tensor: TensorValue
    align: int


@dataclass(frozen=True, slots=True)
class Storage:
    """The bytes under a tensor; a view of it is the one way to reuse shared memory."""

    tensor: TensorValue


@dataclass(frozen=True, slots=True)
class Method:
    """`value.name` before it is called."""

    owner: Any
    name: str


class KernelObject:
    """Of the classes of objects that a kernel makes: their attributes are assigned like names (see `objects`)."""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A device value in a text: `flags`, width and precision of C's format with its %, and a letter that was given."""

    scalar: Scalar
    flags: str = "%"
    type: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """An f-string in which values stand that the device computes."""

    pieces: tuple[str | TextPiece, ...]


@dataclass(frozen=True, slots=True)
class Poison:
    """What an expression with an error gives."""


@dataclass(frozen=True, slots=True)
class Unbound:
    """A name that some path leaves without a value; reading it is an error."""

    name: str
    loc: Loc


Value: TypeAlias = Any
"""A static Python object, or one of the classes above."""

POISON = Poison()

# Asked for at every operation: a union would be made anew each time.
_KERNEL_VALUES = (Scalar, TensorValue, Pointer, Storage, Method, Text, TextPiece, Poison, KernelObject)
_NUMBERS = (int, float)
_VIEWS = (KeysView, ValuesView, ItemsView)


def is_kernel_value(value: Value) -> bool:
    """Whether a value exists on the device only (also inside tuples)."""
    if isinstance(value, tuple | list):
        return any(is_kernel_value(item) for item in value)
    if isinstance(value, dict):
        return any(is_kernel_value(item) for item in value.values())
    if isinstance(value, _VIEWS):
        return any(is_kernel_value(item) for item in value)
    if isinstance(value, _KERNEL_VALUES):
        return True
    names = bundle_fields(type(value))
    return names is not None and any(is_kernel_value(getattr(value, name, None)) for name in names)


def of_user(kind: type) -> bool:
    """Whether a class is neither Python's own nor one of the packages that kernels know."""
    package = kind.__module__.partition(".")[0]
    return package not in ("builtins", "warpjit", "torch", "numpy", "ml_dtypes") and (
        package == "__main__" or package not in sys.stdlib_module_names
    )


_BUNDLES: dict[type, tuple[str, ...] | None] = {}


def bundle_fields(kind: type) -> tuple[str, ...] | None:
    """The fields of a user's frozen dataclass, which may hold kernel values; None of any other class."""
    if kind not in _BUNDLES:
        frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
        _BUNDLES[kind] = tuple(item.name for item in fields(kind)) if frozen and of_user(kind) else None
    return _BUNDLES[kind]


def is_number(value: Value) -> bool:
    """A static number."""
    return isinstance(value, _NUMBERS)
