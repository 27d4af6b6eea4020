"""Which arrays an operation takes: all of one data type that computes.

The checks guard warpjit's own callers; a user meets a wrong type while the kernel is traced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warpjit.errors import TraceError
from warpjit.ir.dtypes import DType, dtype_of

Array = np.ndarray[Any, Any]


def computing_type(operation: str, *operands: Array) -> DType:
    """The one data type of `operands`: an integer of 8 bits or more or a float of 16 or more. Else TraceError."""
    first, *others = (np.asarray(each) for each in operands)
    kind = dtype_of(first)
    if any(each.dtype != first.dtype for each in others):
        names = sorted({dtype_of(np.asarray(each)).name for each in operands})
        raise TraceError(f"{operation}: expected operands of one type but got {', '.join(names)}")
    if not (kind.is_int or kind.is_float) or kind.bits < 8 or (kind.is_float and kind.bits < 16):
        raise TraceError(f"{operation}: {kind} has no arithmetic: convert it first, for example to float32 or int32")
    return kind


def float_type(operation: str, *operands: Array) -> DType:
    """As `computing_type`, floats only."""
    kind = computing_type(operation, *operands)
    if not kind.is_float:
        raise TraceError(f"{operation}: expected floats but got {kind}")
    return kind


def integer_type(operation: str, *operands: Array) -> DType:
    """As `computing_type`, integers only."""
    kind = computing_type(operation, *operands)
    if not kind.is_int:
        raise TraceError(f"{operation}: expected integers but got {kind}")
    return kind
