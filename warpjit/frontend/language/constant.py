"""Tables of constants: `T.constant`."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpjit.errors import TraceError
from warpjit.frontend.language.types import as_dtype
from warpjit.ir.dtypes import DType, mbarrier
from warpjit.record import record

MAX_BYTES = 64 * 1024
"""Of constant memory (CUDA C++ Programming Guide, "Compute Capabilities")."""


@record
class Constant:
    """What `T.constant` gives: bytes of elements, row-major. It never changes, so a kernel can capture it."""

    data: bytes
    dtype: DType
    shape: tuple[int, ...]


def constant(values: Any, dtype: Any = "float32") -> Any:
    """A table of numbers that is part of the kernel: in it a tensor that is read by elements, `TABLE[i]`.

    values  a number, a nested tuple or list, or a numpy array; copied. Outside of the kernel, or in it of static values
    dtype   type of the elements, to which the values are rounded

    Tables lie in constant memory, 64 KiB for a kernel: an element that all lanes of a warp read is as fast as a
    register, others come one after the other. Another table is another kernel.
    Raises TraceError: values that are no numbers, do not fit the type, or are none or too many.
    """
    of = as_dtype(dtype)
    if of is mbarrier or of.bits < 8:
        raise TraceError(f"T.constant: dtype: expected a type of 8 to 64 bits but got {of}")
    array = _array(values)
    if array.dtype == object:
        raise TraceError(f"T.constant: values: expected {_wanted(array)}")
    if (array.dtype.kind not in "biuf" or array.dtype.itemsize > 8) and array.dtype != of.numpy:
        raise TraceError(f"T.constant: values: expected numbers of up to 64 bits but got an array of {array.dtype}")
    if not 0 < array.size * of.bytes <= MAX_BYTES:
        raise TraceError(f"T.constant: values: expected 1 to {MAX_BYTES} bytes but got {array.size * of.bytes}")
    if of.is_int and (array.dtype.kind not in "biu" or not of.min <= int(array.min()) <= int(array.max()) <= of.max):
        raise TraceError(
            f"T.constant: values: expected integers from {of.min} to {of.max} but got {array.min()} to {array.max()}"
        )
    from warpjit.ir.conversion import rounded  # noqa: PLC0415  most kernels do without

    stored = rounded(array, of) if of.is_float else array.astype(of.numpy)
    return Constant(np.ascontiguousarray(stored).tobytes(), of, array.shape or (1,))


def _array(values: Any) -> Any:
    """The values as they are: numpy has no type of its own for 0 beside 2**63, and would make floats of them."""
    if _masked(values):
        raise TraceError("T.constant: values: expected a number in each place but got an array with a mask")
    try:
        array = np.asarray(values)
        if array.size and array.dtype == np.float64 and not isinstance(values, np.ndarray):
            given = np.asarray(values, dtype=object)
            if all(isinstance(each, int) for each in given.flat) and 0 <= min(given.flat):
                return given.astype(np.uint64)
    except (ValueError, TypeError, RuntimeError):  # rows of several lengths, a tensor of a GPU
        raise TraceError("T.constant: values: expected numbers, or rows of one length, in the CPU's memory") from None
    return array


def _masked(values: Any) -> bool:
    """Whether a part of the values is an array of `numpy.ma`, whose mask numpy itself would leave out."""
    if isinstance(values, tuple | list):
        return any(map(_masked, values))
    return isinstance(values, np.ndarray) and hasattr(values, "mask")


def _wanted(array: Any) -> str:
    """What is wrong with an array of Python's objects: one that is no number, or numbers that no type holds."""
    strange = [each for each in array.flat if not isinstance(each, int | float | np.number | np.bool_)]
    if strange:
        return f"numbers but got a {type(strange[0]).__name__}"
    return "numbers of one type of up to 64 bits but got an array of Python's objects"


__all__ = ["constant"]
