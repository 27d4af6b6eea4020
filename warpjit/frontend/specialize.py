"""From the arguments of a call, or from specs, to what a kernel is specialised on.

Everything that a kernel was promised (sizes, multiples, alignment, packing) is checked here, before anything is
traced or launched. Tensors are met by duck typing: no torch is imported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from warpjit.errors import ArgumentError, WarpjitError
from warpjit.frontend.captures import check_captured
from warpjit.frontend.kinds import (
    BASE_ALIGNMENT,
    NARROW_BYTES,
    ConstantKind,
    Kind,
    ScalarKind,
    Specialization,
    Stride,
    TensorKind,
    TupleKind,
    packed_classes,
    shape_text,
    stride_classes,
    stride_holds,
    typed,
)
from warpjit.frontend.language.types import Dynamic, ScalarType, Tensor, as_dtype
from warpjit.frontend.signature import Parameter, ParameterKind, Signature
from warpjit.ir import dtypes
from warpjit.ir.dtypes import DType

__all__ = [
    "ConstantKind",
    "Kind",
    "ScalarKind",
    "Specialization",
    "Stride",
    "TensorKind",
    "TupleKind",
    "specialize",
]

MAX_SIZE = (1 << 31) - 1
ANYTHING = Tensor()


@dataclass
class Call:
    """What the arguments of one call share.

    specs   descriptions may stand for arguments, and tensors need no memory
    known   named sizes and runtime sizes: the value and where it was first met
    """

    specs: bool = False
    known: dict[str, tuple[int, str]] = field(default_factory=dict)

    def check(self, name: str, value: int, where: str) -> None:
        """ArgumentError: the name had another value before."""
        first, place = self.known.setdefault(name, (value, where))
        if first != value:
            raise ArgumentError(f"{where}: expected size {name} = {first}, as in {place}, but got {value}")


def specialize(
    signature: Signature, args: Sequence[Any], named: Mapping[str, Any], *, specs: bool = False
) -> tuple[Specialization, list[Any]]:
    """The specialisation of a call, and its runtime arguments, flattened. ArgumentError on bad input.

    With `specs`, `T.Tensor(...)`, scalar types and tensors without memory may stand for arguments, and what the
    annotations describe need not be given.
    """
    call = Call(specs)
    kinds: list[tuple[str, Kind]] = []
    runtime: list[Any] = []
    for parameter, value in zip(signature.parameters, signature.bind(args, named, specs=specs), strict=True):
        kind = _kind(parameter, parameter.name, value, call)
        kinds.append((parameter.name, kind))
        flatten(kind, value, runtime)
    return Specialization(tuple(kinds)), runtime


def flatten(kind: Kind, value: Any, runtime: list[Any]) -> None:
    """Append the arguments that exist at run time, in the order of `Specialization.leaves`."""
    if isinstance(kind, TupleKind):
        for item, part in zip(kind.items, value, strict=True):
            flatten(item, part, runtime)
    elif not isinstance(kind, ConstantKind):
        runtime.append(value)


def _kind(parameter: Parameter, name: str, value: Any, call: Call) -> Kind:
    """The kind of one argument, or of a spec for one."""
    if parameter.owner:
        check_owner(name, value)
    if parameter.kind is ParameterKind.CONSTANT:
        return constant_kind(name, value)
    if is_tensor(value) and parameter.kind is not ParameterKind.SCALAR:
        return tensor_kind(name, value, parameter.tensor or ANYTHING, call)
    if isinstance(value, Tensor | ScalarType):
        return _spec(parameter, name, value, call)
    if parameter.kind is ParameterKind.SCALAR:
        return scalar_kind(name, value, parameter.dtype)
    if value is None:
        return constant_kind(name, None)
    if parameter.kind is ParameterKind.TENSOR:
        raise ArgumentError(f"{name}: expected a tensor but got {brief(value)}{_advice(value)}")
    if isinstance(value, tuple):
        inner = Parameter(name, ParameterKind.ANY)
        return TupleKind(tuple(_kind(inner, f"{name}[{i}]", item, call) for i, item in enumerate(value)))
    if isinstance(value, bool | int | float | np.generic):
        return scalar_kind(name, value, None)
    raise ArgumentError(
        f"{name}: expected a tensor, a number, a tuple of these or None but got {brief(value)}"
        f"{_advice(value) or '; compile-time constants stand after *, or are annotated T.constexpr'}"
    )


def brief(value: Any) -> str:
    """A value as messages show it: tensors and arrays by their type, what is too long to print by its length."""
    if is_tensor(value):
        return "a tensor"
    if isinstance(value, np.ndarray):
        return "a numpy array"
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an int of {value.bit_length()} bits"
    return f"a {type(value).__name__}" if hasattr(value, "shape") and np.ndim(value) else repr(value)


def _advice(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "; torch.from_numpy makes a tensor of it"
    return "; pass a tuple" if isinstance(value, list) else ""


# ---- specs ----------------------------------------------------------------------------------------------------


def _spec(parameter: Parameter, name: str, spec: Tensor | ScalarType, call: Call) -> Kind:
    if not call.specs:
        raise ArgumentError(
            f"{name}: expected an argument but got the description {spec!r}: give it to warpjit.compile, or to the "
            "kernel's source, ptx, cubin, sass or resources"
        )
    if isinstance(spec, Tensor):
        if parameter.kind is ParameterKind.SCALAR:
            raise ArgumentError(f"{name}: expected T.{parameter.dtype} but got {spec!r}")
        return _spec_kind(name, spec, parameter.tensor or ANYTHING, call)
    if parameter.kind is ParameterKind.TENSOR or parameter.dtype not in (None, spec.dtype):
        wanted = "a tensor" if parameter.kind is ParameterKind.TENSOR else f"T.{parameter.dtype}"
        raise ArgumentError(f"{name}: expected {wanted} but got {spec!r}")
    if not spec.dtype.passed:
        raise ArgumentError(f"{name}: a number of a call cannot be a {spec.dtype}")
    return ScalarKind(spec.dtype)


def _spec_kind(name: str, spec: Tensor, annotated: Tensor, call: Call) -> TensorKind:
    """The kind that a spec and the annotation describe together: packed, 16-byte aligned, offsets in 32 bits."""
    dtype = spec.dtype or annotated.dtype
    shape = spec.shape if spec.shape is not None else annotated.shape
    if shape is None or dtype is None:
        raise ArgumentError(f"{name}: a spec needs a shape and a data type but got {spec!r}")
    _check_dtype(name, dtype, annotated)
    kept, names = _sizes(name, shape, annotated, call)
    align = max(BASE_ALIGNMENT, spec.align or 1, annotated.align or 1)
    reach = math.prod(item for item in kept if isinstance(item, int)) * dtype.bytes
    noalias = spec.noalias or annotated.noalias
    return TensorKind(dtype, kept, packed_classes(kept), align, reach < NARROW_BYTES, noalias, names)


# ---- tensors --------------------------------------------------------------------------------------------------


def is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "stride")


def tensor_kind(name: str, value: Any, annotated: Tensor, call: Call) -> TensorKind:
    """The kind of a torch tensor, checked against its annotation. ArgumentError names the argument."""
    dtype, shape, strides, pointer = facts_of(name, value, call)
    _check_dtype(name, dtype, annotated)
    kept, names = _sizes(name, shape, annotated, call)
    if annotated.layout == "default":
        _check_packed(name, shape, strides, dtype)
    classes = stride_classes(kept, shape, strides, dtype.bits)
    align = _alignment(name, pointer, annotated, dtype)
    return TensorKind(dtype, kept, classes, align, is_narrow(shape, strides, dtype), annotated.noalias, names)


def facts_of(name: str, value: Any, call: Call) -> tuple[DType, tuple[int, ...], tuple[int, ...], int]:
    """Data type, shape, strides (in elements) and address of a tensor.

    ArgumentError: a type that the language lacks, no strides (sparse), values that are negated when read, no memory.
    """
    dtype = _DTYPES.get(value.dtype) or _tensor_dtype(name, value)
    nowhere = value.device.type == "meta" or (call.specs and hasattr(value, "fake_mode"))
    try:
        shape = tuple(value.shape)
        strides = tuple(value.stride())
        pointer = 0 if nowhere else value.data_ptr()
    except RuntimeError as error:
        raise ArgumentError(f"{name}: expected a dense tensor in memory, but {error}") from None
    if pointer == 0 and not nowhere and 0 not in shape:
        raise ArgumentError(f"{name}: expected a tensor in memory but got a {type(value).__name__} without any")
    if value.is_neg():
        raise ArgumentError(f"{name}: the tensor is a view that negates its memory: call .resolve_neg() on it")
    return dtype, shape, strides, pointer


_DTYPES: dict[Any, DType] = {}
"""By torch's types, filled as they are met."""


def _tensor_dtype(name: str, value: Any) -> DType:
    try:
        return _DTYPES.setdefault(value.dtype, as_dtype(value.dtype))
    except WarpjitError:
        raise ArgumentError(f"{name}: {value.dtype} is not a data type of the language") from None


def _check_dtype(name: str, dtype: DType, annotated: Tensor) -> None:
    if annotated.dtype is not None and dtype != annotated.dtype:
        raise ArgumentError(f"{name}: expected a tensor of {annotated.dtype} but got {dtype}")


def _sizes(
    name: str, shape: Sequence[int | str | Dynamic], annotated: Tensor, call: Call
) -> tuple[tuple[int | Dynamic, ...], tuple[tuple[int, str], ...]]:
    """The sizes as the kernel is specialised on them, and which of them have names."""
    wanted = annotated.shape if annotated.shape is not None else shape
    if len(shape) != len(wanted):
        raise ArgumentError(
            f"{name}: expected {len(wanted)} axes, shape {shape_text(wanted)}, but got shape {shape_text(shape)}"
        )
    kept: list[int | Dynamic] = []
    names: list[tuple[int, str]] = []
    for axis, (size, item) in enumerate(zip(shape, wanted, strict=True)):
        where = f"{name}.shape[{axis}]"
        if isinstance(item, str):
            names.append((axis, item))
        if isinstance(size, str):
            size = _named(where, size, call)
        if isinstance(item, int) and size != item:
            raise ArgumentError(f"{name}: expected shape {shape_text(wanted)} but got {shape_text(shape)}")
        if isinstance(size, int):
            _check_size(where, item, size, call)
        elif isinstance(item, str):
            raise ArgumentError(f"{where}: the size {item!r} is static: expected an int but got {size!r}")
        kept.append(item if isinstance(item, Dynamic) else size)
    return tuple(kept), tuple(names)


def _named(where: str, name: str, call: Call) -> int:
    """The value of a named size in a spec: that of an argument before it."""
    if name not in call.known:
        raise ArgumentError(f"{where}: the size {name!r} is static and has no value: give it as an int")
    return call.known[name][0]


def _check_size(where: str, item: int | str | Dynamic, size: int, call: Call) -> None:
    if isinstance(item, str):
        call.check(item, size, where)
    elif isinstance(item, Dynamic):
        check_dynamic(where, item, size, call)


def check_dynamic(where: str, item: Dynamic, size: int, call: Call) -> None:
    """ArgumentError: a runtime size breaks its promise, differs from another of its name, or is too large."""
    call.check(item.name, size, where)
    if size % item.multiple_of:
        raise ArgumentError(f"{where}: expected {item.name} to be a multiple of {item.multiple_of} but got {size}")
    if size > MAX_SIZE:
        raise ArgumentError(f"{where}: expected {item.name} to be below 2**31 but got {size}")


def _check_packed(name: str, shape: Sequence[int], strides: Sequence[int], dtype: DType) -> None:
    if all(stride_holds(Stride.PACKED, shape, strides, axis, dtype.bits) for axis in range(len(shape))):
        return
    packed = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    raise ArgumentError(
        f'{name}: layout="default" needs packed rows: expected strides {packed} of shape {tuple(shape)} but got '
        f"{tuple(strides)}"
    )


def _alignment(name: str, pointer: int, annotated: Tensor, dtype: DType) -> int:
    if annotated.align is not None:
        check_alignment(name, pointer, annotated.align)
    check_alignment(name, pointer, dtype.bytes)
    least = BASE_ALIGNMENT if pointer % BASE_ALIGNMENT == 0 else dtype.bytes
    return max(least, annotated.align or 1)


def check_alignment(name: str, pointer: int, align: int) -> None:
    """ArgumentError: the tensor begins at an address that is not a multiple of `align` bytes."""
    if pointer % align:
        raise ArgumentError(
            f"{name}: expected an address that is a multiple of {align} bytes but got one {pointer % align} bytes "
            f"beyond"
        )


def is_narrow(shape: Sequence[int], strides: Sequence[int], dtype: DType) -> bool:
    """Whether every offset in a tensor, and every product of its sizes, fits 32 bits."""
    if 0 in shape:
        return math.prod(max(size, 1) for size in shape) * dtype.bytes < NARROW_BYTES
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return (reach + 1) * dtype.bytes < NARROW_BYTES


# ---- numbers --------------------------------------------------------------------------------------------------


def constant_kind(name: str, value: Any) -> ConstantKind:
    """The kind of a compile-time constant; a numpy number is Python's. ArgumentError: it could change unnoticed."""
    if isinstance(value, np.generic):
        value = value.item()
    try:
        check_captured(name, value)
        hash(value)
    except (WarpjitError, TypeError):
        raise ArgumentError(
            f"{name}: expected a compile-time constant (hashable, and nothing in it can change) but got {brief(value)}"
            f"{_advice(value)}"
        ) from None
    return ConstantKind(typed(value), value)


def check_owner(name: str, value: Any) -> None:
    """ArgumentError: the object that a kernel is a method of could change, or holds a tensor."""
    kind = type(value)
    frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if not (frozen or isinstance(value, Enum | type) or (isinstance(value, tuple) and hasattr(kind, "_fields"))):
        raise ArgumentError(
            f"{name}: expected an object that cannot change (of a frozen dataclass, an enum or a named tuple), since "
            f"it is a compile-time constant of the kernel, but got a {kind.__name__}: write @dataclass(frozen=True) "
            "above its class, or pass what the kernel needs as arguments"
        )
    try:
        check_captured(name, value)
    except WarpjitError as error:
        raise ArgumentError(str(error)) from None


def scalar_kind(name: str, value: Any, dtype: DType | None) -> ScalarKind:
    """The kind of a number: the annotated type, numpy's own, or by Python's type (int32, float32, bool)."""
    if dtype is None and isinstance(value, np.generic):
        dtype = dtypes.DTYPES.get(str(value.dtype))
        if dtype is None:
            raise ArgumentError(f"{name}: {value.dtype} is not a data type of the language")
    elif dtype is None:
        dtype = dtypes.bool_ if isinstance(value, bool) else dtypes.int32 if isinstance(value, int) else dtypes.float32
    check_scalar(name, value, dtype)
    return ScalarKind(dtype)


OVERFLOWS = {"float16": 65520.0, "bfloat16": 2.0**128 - 2.0**119, "float32": 2.0**128 - 2.0**103}
"""Where numbers begin to round to infinity: half a unit beyond the largest finite one."""


def check_scalar(name: str, value: Any, dtype: DType) -> None:
    """ArgumentError: not a number, or one that its type does not hold."""
    if not dtype.passed:
        raise ArgumentError(f"{name}: a number of a call cannot be a {dtype}: pass another, which the kernel converts")
    if is_tensor(value) or isinstance(value, np.ndarray):
        raise ArgumentError(f"{name}: expected a number ({dtype}) but got {brief(value)}: pass .item() of it")
    if dtype.is_bool:
        if not isinstance(value, bool | np.bool_):
            raise ArgumentError(f"{name}: expected a bool but got {value!r}")
    elif dtype.is_int:
        _check_integer(name, value, dtype)
    elif not hasattr(value, "__float__") or isinstance(value, np.datetime64 | np.timedelta64):
        raise ArgumentError(f"{name}: expected a number ({dtype}) but got {value!r}")
    elif _is_too_large(value, dtype):
        raise ArgumentError(f"{name}: {brief(value)} is too large for {dtype}")


def _is_too_large(value: Any, dtype: DType) -> bool:
    """Whether a finite number would become an infinity."""
    try:
        return OVERFLOWS.get(dtype.name, math.inf) <= abs(float(value)) < math.inf
    except OverflowError:  # an integer that no float holds
        return True


def _check_integer(name: str, value: Any, dtype: DType) -> None:
    try:
        number = int(value.__index__())
    except AttributeError:
        raise ArgumentError(f"{name}: expected an integer ({dtype}) but got {value!r}") from None
    if not dtype.min <= number <= dtype.max:
        hint = f": annotate {name} as T.int64" if dtype == dtypes.int32 else ""
        raise ArgumentError(f"{name}: {brief(number)} does not fit {dtype} ({dtype.min} to {dtype.max}){hint}")
