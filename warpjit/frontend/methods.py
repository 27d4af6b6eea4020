"""The attributes and methods of tensors, pointers and scalars in a kernel: one entry each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import casts, conversions, fragments, memory, rearrange, views
from warpjit.frontend.builder import Builder
from warpjit.frontend.language.types import SCALAR_TYPES, ScalarType, as_dtype
from warpjit.frontend.values import Pointer, Scalar, TensorValue, Value
from warpjit.ir.dtypes import DType


def _is_dtype(value: Value) -> bool:
    return isinstance(value, str | DType | ScalarType) or str(value).startswith("torch.")


def _view(builder: Builder, tensor: TensorValue, *shape: Value, layout: Any = None) -> TensorValue:
    """`view(dtype)` or `view(*shape, layout=)`."""
    if not shape:
        raise TraceError("view: expected a dtype, or a shape")
    if _is_dtype(shape[0]):
        if len(shape) > 1 or layout is not None:
            raise TraceError(
                "view: expected a dtype alone, or a shape with or without a layout, but got both: call it twice"
            )
        return views.reinterpret(builder, tensor, as_dtype(shape[0]))
    return views.reshape(builder, tensor, shape, layout)


def _rearrange(builder: Builder, tensor: TensorValue, pattern: Any, /, **sizes: Value) -> TensorValue:
    return rearrange.rearrange(builder, tensor, pattern, sizes)


def _permute(builder: Builder, tensor: TensorValue, *dims: Value) -> TensorValue:
    return rearrange.permute(tensor, dims)


def _ptr(builder: Builder, tensor: TensorValue, *items: Value) -> Pointer:
    return memory.pointer(builder, tensor, items)


METHODS: dict[type, dict[str, Callable[..., Value]]] = {
    TensorValue: {
        "view": _view,
        "rearrange": _rearrange,
        "permute": _permute,
        "ptr": _ptr,
        "fill": fragments.fill,
        "cast": casts.cast,
        "each": fragments.each,
        "as_operand": fragments.as_operand,
        "convert": conversions.convert,
    },
}

ATTRIBUTES: dict[type, dict[str, Callable[[Builder, Any], Value]]] = {
    TensorValue: {
        "shape": lambda builder, tensor: tensor.shape,
        "dtype": lambda builder, tensor: SCALAR_TYPES.get(tensor.dtype.name, tensor.dtype),
        "layout": lambda builder, tensor: tensor.layout,
        "ndim": lambda builder, tensor: len(tensor.shape),
        "storage": lambda builder, tensor: views.storage(tensor),
        "regs": fragments.regs,
    },
    Scalar: {"dtype": lambda builder, scalar: SCALAR_TYPES.get(scalar.dtype.name, scalar.dtype)},
}
