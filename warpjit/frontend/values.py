"""What an expression of the language can be while it is traced.

Static values are plain Python objects and have no class here. `Scalar` is a value that the device (or, in the
host part, the launch plan) will hold; `TensorValue` a typed window onto memory or registers. Poison stands for
what an error left without a value, so that one mistake is reported once.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import ItemsView, KeysView, ValuesView
from dataclasses import field, fields, is_dataclass
from typing import Any, TypeAlias

from warpjit.errors import NOWHERE, Loc
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity, of_constant
from warpjit.ir.nodes import Address, Atom, Buffer, Const, Local, PlanExpr, Registers
from warpjit.isa.row import Operand
from warpjit.layout import ComposeLayout, TileLayout
from warpjit.record import changed, record

NO_LOOPS: frozenset[int] = frozenset()


@record
class Linear:
    """An integer as constant + Σ coefficient · local, over locals that never change while the sum is in use."""

    terms: tuple[tuple[Local, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(local: Local) -> Linear:
        return Linear(((local, 1),))

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """self + factor · other"""
        constant = self.constant + factor * other.constant
        if not other.terms:
            return Linear(self.terms, constant)
        if not self.terms and factor == 1:
            return Linear(other.terms, constant)
        sums = {term[0].name: term for term in self.terms}
        for local, coefficient in other.terms:
            known = sums.get(local.name)
            sums[local.name] = local, factor * coefficient + (0 if known is None else known[1])
        return Linear(tuple([term for term in sums.values() if term[1]]), constant)

    def times(self, factor: int) -> Linear:
        if factor == 0:
            return Linear()
        return Linear(tuple((local, coefficient * factor) for local, coefficient in self.terms), self.constant * factor)

    @property
    def key(self) -> tuple[tuple[str, int], ...]:
        """The terms, by the names of their locals, without their order and without the constant."""
        return tuple(sorted([(local.name, coefficient) for local, coefficient in self.terms]))


@record
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


@functools.lru_cache(maxsize=4096, typed=True)
def constant(dtype: DType, value: int) -> Scalar:
    """A static integer as a value of `dtype`, which the caller knows to hold it."""
    return Scalar(dtype, of_constant(value), Const(value, dtype), Linear((), value))


@record
class TensorValue:
    """A window onto a buffer or registers: element (i, j, …) lies at `offset` + place(i, j, …), in elements of `dtype`.

    Two forms of place: `layout` (static; the axis m is the memory or register axis, other axes own threads) or
    `strides` (a global tensor with runtime sizes or strides). `swizzled` layouts take offset + m through the swizzle.
    align   bytes that the buffer's base is known to be a multiple of
    words   the operand whose register words these are, in a fragment that nobody gave a type: numbers are no such words
    """

    name: str
    dtype: DType
    shape: tuple[int | Scalar, ...]
    base: Buffer | Registers
    layout: TileLayout | ComposeLayout | None = None
    strides: tuple[int | Scalar, ...] | None = None
    offset: int | Scalar = 0
    align: int = 1
    words: Operand | None = field(default=None, compare=False)
    loc: Loc = field(default=NOWHERE, compare=False)

    @property
    def space(self) -> str:
        return "local" if isinstance(self.base, Registers) else self.base.space

    @property
    def static_shape(self) -> bool:
        return all(isinstance(extent, int) for extent in self.shape)

    def with_(self, **changes: Any) -> TensorValue:
        return changed(self, **changes)


@record
class Pointer:
    """The address of an element: what the raw form of an instruction takes."""

    address: Address
    tensor: TensorValue
    align: int


@record
class Storage:
    """The bytes under a tensor; a view of it is the one way to reuse shared memory."""

    tensor: TensorValue


@record
class Method:
    """`value.name` before it is called."""

    owner: Any
    name: str


class KernelObject:
    """Of the classes of objects that a kernel makes: their attributes are assigned like names (see `objects`)."""


@record
class TextPiece:
    """A device value in a text: `flags`, width and precision of C's format with its %, and a letter that was given."""

    scalar: Scalar
    flags: str = "%"
    type: str = ""


@record
class Text:
    """An f-string in which values stand that the device computes."""

    pieces: tuple[str | TextPiece, ...]


@record
class Poison:
    """What an expression with an error gives."""


@record
class Unbound:
    """A name that some path leaves without a value; reading it is an error."""

    name: str
    loc: Loc


Value: TypeAlias = Any
"""A static Python object, or one of the classes above."""

POISON = Poison()

# Asked for at every operation: a union would be made anew each time.
_KERNEL_VALUES = (Scalar, TensorValue, Pointer, Storage, Method, Text, TextPiece, Poison, KernelObject)
_PLAIN = frozenset((int, float, bool, str, type(None)))
_SEQUENCES = (tuple, list)
_NUMBERS = (int, float)
_VIEWS = (KeysView, ValuesView, ItemsView)


def is_kernel_value(value: Value) -> bool:
    """Whether a value exists on the device only (also inside tuples)."""
    if type(value) in _PLAIN:
        return False
    if isinstance(value, _SEQUENCES):
        return any(is_kernel_value(item) for item in value)
    if isinstance(value, dict):
        return any(is_kernel_value(item) for item in value.values())
    if isinstance(value, _KERNEL_VALUES):
        return True
    if isinstance(value, _VIEWS):
        return any(is_kernel_value(item) for item in value)
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
