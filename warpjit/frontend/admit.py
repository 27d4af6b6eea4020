"""Whether the arguments of a call may be given where a specialisation was compiled for.

An argument fits when everything that was compiled in is true of it; it may be better (more aligned, packed where
strides are free). `specialize` is for calls that are free to compile anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warpjit.errors import ArgumentError
from warpjit.frontend.kinds import (
    ConstantKind,
    Kind,
    ScalarKind,
    Specialization,
    TensorKind,
    TupleKind,
    shape_text,
    stride_holds,
)
from warpjit.frontend.language.types import Dynamic
from warpjit.frontend.specialize import (
    Call,
    brief,
    check_alignment,
    check_dynamic,
    check_scalar,
    constant_kind,
    facts_of,
    is_narrow,
    is_tensor,
)


def admit(compiled: Specialization, values: Sequence[Any]) -> list[Any]:
    """The runtime arguments among `values` (one for each parameter), flattened.

    ArgumentError names the argument that does not fit, and what was compiled for.
    """
    call = Call()
    runtime: list[Any] = []
    for (name, kind), value in zip(compiled.kinds, values, strict=True):
        _admit(name, kind, value, call, runtime)
    return runtime


def _admit(name: str, kind: Kind, value: Any, call: Call, runtime: list[Any]) -> None:
    if isinstance(kind, TupleKind):
        if not isinstance(value, tuple) or len(value) != len(kind.items):
            raise ArgumentError(f"{name}: expected a tuple of {len(kind.items)} but got {brief(value)}")
        for index, (item, part) in enumerate(zip(kind.items, value, strict=True)):
            _admit(f"{name}[{index}]", item, part, call, runtime)
        return
    if isinstance(kind, ConstantKind):
        if constant_kind(name, value) != kind:
            raise ArgumentError(f"{name}: compiled for {kind}, but got {brief(value)}")
        return
    if isinstance(kind, ScalarKind):
        check_scalar(name, value, kind.dtype)
    else:
        _admit_tensor(name, kind, value, call)
    runtime.append(value)


def _admit_tensor(name: str, kind: TensorKind, value: Any, call: Call) -> None:
    if not is_tensor(value):
        raise ArgumentError(f"{name}: compiled for {kind}, but got {brief(value)}")
    dtype, shape, strides, pointer = facts_of(name, value, call)
    if dtype != kind.dtype:
        raise ArgumentError(f"{name}: compiled for a tensor of {kind.dtype}, but got {dtype}")
    if len(shape) != len(kind.shape) or any(
        isinstance(item, int) and item != size for item, size in zip(kind.shape, shape, strict=True)
    ):
        raise ArgumentError(f"{name}: compiled for shape {shape_text(kind.shape)}, but got {shape_text(shape)}")
    for axis, item in enumerate(kind.shape):
        if isinstance(item, Dynamic):
            check_dynamic(f"{name}.shape[{axis}]", item, shape[axis], call)
        if not stride_holds(kind.strides[axis], shape, strides, axis, dtype.bits):
            raise ArgumentError(f"{name}: compiled for {kind}, but got strides {strides} of shape {shape}")
    check_alignment(name, pointer, max(kind.align, dtype.bytes))
    if kind.narrow and not is_narrow(shape, strides, dtype):
        raise ArgumentError(f"{name}: compiled for a tensor of less than 2**31 bytes, but this one spans more")
