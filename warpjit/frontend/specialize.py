"""From the arguments of a call, or from specs, to what a kernel is specialised on.

A `Kind` is the compile-time half of an argument: a hashable value that enters the key. Everything that a kernel
was promised (sizes, multiples, alignment, packing) is checked here, before anything is traced or launched.
Tensors are met by duck typing: no torch is imported.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from warpjit.errors import ArgumentError
from warpjit.frontend.language.types import Dynamic, ScalarType, Tensor, as_dtype
from warpjit.frontend.scope import check_captured
from warpjit.frontend.signature import Parameter, ParameterKind, Signature
from warpjit.ir import dtypes
from warpjit.ir.dtypes import DType

NARROW_BYTES = 1 << 31
BASE_ALIGNMENT = 16


class Stride(Enum):
    """What is known of one stride."""

    ANY = "any"  # the size is 1: it does not matter
    ZERO = "zero"
    ONE = "one"
    PACKED = "packed"  # the product of the sizes to its right
    FREE = "free"  # a hidden argument
    FREE16 = "free16"  # a hidden argument, a multiple of 16 bytes


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class ScalarKind:
    """A runtime scalar."""

    dtype: DType


@dataclass(frozen=True)
class ConstantKind:
    """A compile-time constant. Numbers compare with their type, floats by their bits: 1, True and 1.0 differ."""

    tag: str
    key: Any
    value: Any = field(compare=False)

    @classmethod
    def of(cls, name: str, value: Any) -> ConstantKind:
        try:
            check_captured(name, value)
            hash(value)
        except Exception as error:
            raise ArgumentError(
                f"{name}: expected a compile-time constant (a hashable value) but got {value!r}: {error}"
            ) from None
        return cls(type(value).__qualname__, _typed(value), value)


def _typed(value: Any) -> Any:
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, tuple):
        return tuple((type(item).__qualname__, _typed(item)) for item in value)
    return value


@dataclass(frozen=True)
class TupleKind:
    items: tuple[Kind, ...]


Kind: TypeAlias = TensorKind | ScalarKind | ConstantKind | TupleKind


@dataclass(frozen=True)
class Specialization:
    """The kinds of all parameters, in the signature's order: what a kernel is traced for."""

    kinds: tuple[tuple[str, Kind], ...]

    def leaves(self) -> Iterator[Kind]:
        """The kinds that take a runtime argument, flattened; their position is the argument's index."""
        for _, kind in self.kinds:
            yield from _leaves(kind)


def _leaves(kind: Kind) -> Iterator[Kind]:
    if isinstance(kind, TupleKind):
        for item in kind.items:
            yield from _leaves(item)
    elif not isinstance(kind, ConstantKind):
        yield kind


class Sizes:
    """Named sizes of one call: the same name must have the same value."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[int, str]] = {}

    def check(self, name: str, value: int, where: str) -> None:
        known = self.known.setdefault(name, (value, where))
        if known[0] != value:
            raise ArgumentError(f"{where}: expected size {name} = {known[0]}, as in {known[1]}, but got {value}")


# ---- tensors ------------------------------------------------------------------------------------------------


def is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "stride")


def tensor_kind(name: str, value: Any, spec: Tensor, sizes: Sizes) -> TensorKind:
    """The kind of a torch tensor, checked against its annotation. ArgumentError names the argument."""
    try:
        dtype = as_dtype(value.dtype)
    except Exception:
        raise ArgumentError(f"{name}: {value.dtype} is not a data type of the language") from None
    if spec.dtype is not None and dtype != spec.dtype:
        raise ArgumentError(f"{name}: expected a tensor of {spec.dtype} but got {dtype}")
    shape, strides = tuple(value.shape), tuple(value.stride())
    kept, names = _sizes(name, shape, spec, sizes)
    classes = tuple(
        _stride_class(shape, strides, axis, dtype, spec.layout == "default", name) for axis in range(len(shape))
    )
    pointer = 0 if value.device.type == "meta" else value.data_ptr()
    align = _alignment(name, pointer, spec, dtype)
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if 0 not in shape else 0
    return TensorKind(dtype, kept, classes, align, (reach + 1) * dtype.bytes < NARROW_BYTES, spec.noalias, names)


def _sizes(
    name: str, shape: tuple[int, ...], spec: Tensor, sizes: Sizes
) -> tuple[tuple[int | Dynamic, ...], tuple[tuple[int, str], ...]]:
    if spec.shape is None:
        return shape, ()
    if len(shape) != len(spec.shape):
        raise ArgumentError(
            f"{name}: expected {len(spec.shape)} axes, shape {_shape_text(spec)}, but got shape {shape}"
        )
    kept: list[int | Dynamic] = []
    names: list[tuple[int, str]] = []
    for axis, (size, wanted) in enumerate(zip(shape, spec.shape, strict=True)):
        where = f"{name}.shape[{axis}]"
        if isinstance(wanted, int) and size != wanted:
            raise ArgumentError(f"{name}: expected shape {_shape_text(spec)} but got {shape}")
        if isinstance(wanted, Dynamic):
            sizes.check(wanted.name, size, where)
            if size % wanted.multiple_of:
                raise ArgumentError(f"{where}: expected a multiple of {wanted.multiple_of} but got {size}")
            if size >= 1 << 31:
                raise ArgumentError(f"{where}: a runtime size must be below 2**31 but got {size}")
        if isinstance(wanted, str):
            sizes.check(wanted, size, where)
            names.append((axis, wanted))
        kept.append(wanted if isinstance(wanted, Dynamic) else size)
    return tuple(kept), tuple(names)


def _shape_text(spec: Tensor) -> str:
    items = [item.name if isinstance(item, Dynamic) else str(item) for item in spec.shape or ()]
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _stride_class(
    shape: tuple[int, ...], strides: tuple[int, ...], axis: int, dtype: DType, packed: bool, name: str
) -> Stride:
    product = 1
    for size in shape[axis + 1 :]:
        product *= size
    if shape[axis] <= 1:
        return Stride.PACKED if packed else Stride.ANY
    stride = strides[axis]
    if stride == product and (axis == len(shape) - 1 or product != 1):
        return Stride.PACKED
    if packed and stride != product:
        raise ArgumentError(
            f'{name}: layout="default" demands packed rows, strides of shape {shape}, but got strides {strides}'
        )
    if stride in (0, 1):
        return Stride.ZERO if stride == 0 else Stride.ONE
    return Stride.FREE16 if stride * dtype.bits % (8 * 16) == 0 else Stride.FREE


def _alignment(name: str, pointer: int, spec: Tensor, dtype: DType) -> int:
    if spec.align is not None and pointer % spec.align:
        raise ArgumentError(
            f"{name}: expected an address that is a multiple of {spec.align} bytes, but it is {pointer:#x}"
        )
    if pointer % dtype.bytes:
        raise ArgumentError(f"{name}: the address {pointer:#x} is not a multiple of the element's {dtype.bytes} bytes")
    least = BASE_ALIGNMENT if pointer % BASE_ALIGNMENT == 0 else dtype.bytes
    return max(least, spec.align or 1)


def spec_kind(name: str, spec: Tensor, sizes: Sizes) -> TensorKind:
    """The kind that a spec describes: packed, 16-byte aligned, offsets in 32 bits."""
    if spec.shape is None or spec.dtype is None:
        raise ArgumentError(f"{name}: a spec needs a shape and a dtype, but got {spec!r}")
    kept: list[int | Dynamic] = []
    for axis, item in enumerate(spec.shape):
        if isinstance(item, str):
            raise ArgumentError(
                f"{name}: the size {item!r} is static and has no value: give shape[{axis}] as an int or T.dynamic"
            )
        kept.append(item)
        if isinstance(item, Dynamic):
            continue
    strides = tuple(Stride.ANY if item == 1 and spec.layout is None else Stride.PACKED for item in kept)
    return TensorKind(spec.dtype, tuple(kept), strides, max(BASE_ALIGNMENT, spec.align or 1), True, spec.noalias)


# ---- arguments ------------------------------------------------------------------------------------------------


def scalar_kind(name: str, value: Any, dtype: DType | None) -> ScalarKind:
    """The kind of a number. ArgumentError: it does not fit its type."""
    own = getattr(value, "dtype", None)
    if dtype is None and own is not None:
        dtype = as_dtype(str(own) if not str(own).startswith("torch.") else own)
    if dtype is None:
        dtype = dtypes.bool_ if isinstance(value, bool) else dtypes.int32 if isinstance(value, int) else dtypes.float32
    check_scalar(name, value, dtype)
    return ScalarKind(dtype)


def check_scalar(name: str, value: Any, dtype: DType) -> None:
    if dtype.is_int:
        try:
            number = value.__index__()
        except AttributeError:
            raise ArgumentError(f"{name}: expected an integer ({dtype}) but got {value!r}") from None
        if not dtype.min <= number <= dtype.max:
            hint = f"; annotate {name} as T.int64" if dtype.bits < 64 else ""
            raise ArgumentError(f"{name}: {number} does not fit {dtype} ({dtype.min} to {dtype.max}){hint}")
    elif dtype.is_bool and value not in (True, False):
        raise ArgumentError(f"{name}: expected a bool but got {value!r}")
    elif dtype.is_float and not hasattr(value, "__float__"):
        raise ArgumentError(f"{name}: expected a number ({dtype}) but got {value!r}")


def argument_kind(parameter: Parameter, name: str, value: Any, sizes: Sizes) -> Kind:
    """The kind of one argument of a call, or of a spec for one."""
    if parameter.kind is ParameterKind.CONSTANT:
        return ConstantKind.of(name, value)
    if isinstance(value, Tensor):
        return spec_kind(name, _merged(name, parameter.tensor, value), sizes)
    if isinstance(value, ScalarType):
        if parameter.dtype is not None and parameter.dtype != value.dtype:
            raise ArgumentError(f"{name}: expected T.{parameter.dtype} but got {value!r}")
        return ScalarKind(value.dtype)
    if parameter.kind is ParameterKind.TENSOR:
        if value is None:
            return ConstantKind.of(name, None)
        if not is_tensor(value):
            raise ArgumentError(f"{name}: expected a tensor but got {type(value).__name__}")
        return tensor_kind(name, value, parameter.tensor or Tensor(), sizes)
    if parameter.kind is ParameterKind.SCALAR:
        return scalar_kind(name, value, parameter.dtype)
    return _kind_by_value(parameter, name, value, sizes)


def _merged(name: str, annotated: Tensor | None, spec: Tensor) -> Tensor:
    """A spec for a parameter that has an annotation too: the annotation's promises hold as well."""
    if annotated is None:
        return spec
    if annotated.dtype is not None and spec.dtype not in (None, annotated.dtype):
        raise ArgumentError(f"{name}: expected a tensor of {annotated.dtype} but got {spec.dtype}")
    return Tensor(
        spec.shape
        if annotated.shape is None
        else tuple(
            item if not isinstance(item, str) or spec.shape is None else spec.shape[axis]
            for axis, item in enumerate(annotated.shape)
        ),
        annotated.dtype or spec.dtype,
        annotated.layout or spec.layout,
        annotated.align or spec.align,
        noalias=annotated.noalias or spec.noalias,
    )


def _kind_by_value(parameter: Parameter, name: str, value: Any, sizes: Sizes) -> Kind:
    if is_tensor(value):
        return tensor_kind(name, value, Tensor(), sizes)
    if value is None:
        return ConstantKind.of(name, None)
    if isinstance(value, tuple):
        return TupleKind(tuple(_kind_by_value(parameter, f"{name}[{i}]", item, sizes) for i, item in enumerate(value)))
    if isinstance(value, bool | int | float) or (hasattr(value, "dtype") and getattr(value, "shape", None) == ()):
        return scalar_kind(name, value, None)
    raise ArgumentError(
        f"{name}: expected a tensor, a number, a tuple of these or None, but got {type(value).__name__}; compile-time "
        "constants come after * in the parameter list, or are annotated T.constexpr"
    )


def specialize(
    signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Specialization, list[Any]]:
    """The specialisation of a call, and its runtime arguments, flattened. ArgumentError on bad input."""
    try:
        bound = signature.python.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{error}; the parameters are {signature.python}") from None
    bound.apply_defaults()
    sizes = Sizes()
    kinds: list[tuple[str, Kind]] = []
    runtime: list[Any] = []
    for parameter in signature.parameters:
        value = bound.arguments[parameter.name]
        kind = argument_kind(parameter, parameter.name, value, sizes)
        kinds.append((parameter.name, kind))
        _flatten(kind, value, runtime)
    return Specialization(tuple(kinds)), runtime


def _flatten(kind: Kind, value: Any, runtime: list[Any]) -> None:
    if isinstance(kind, TupleKind):
        for item, part in zip(kind.items, value, strict=True):
            _flatten(item, part, runtime)
    elif not isinstance(kind, ConstantKind):
        runtime.append(value)
