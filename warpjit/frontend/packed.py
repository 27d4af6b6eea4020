"""A register that holds one number as often as it packs elements: what fills a fragment, or stands for C.

Which elements a register packs is the row's matter; how single elements are read and written is in `memory`.
"""

from __future__ import annotations

import numpy as np

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.builder import Builder
from warpjit.frontend.registers import registers_tensor
from warpjit.frontend.values import Scalar
from warpjit.frontend.views import reinterpret
from warpjit.ir.dtypes import DType, float32, tf32
from warpjit.isa.row import Operand
from warpjit.layout import S, TileLayout


def register_of(builder: Builder, operand: Operand, value: Scalar | int | float) -> Scalar:
    """The register of a fragment all of whose elements are `value`, converted to the type of an element.

    TraceError: a literal does not fit, or a value of the kernel would have to become an element of less than a byte.
    """
    assert operand.dtype is not None
    element, count = operand.element, operand.packed
    if element is None:
        return arithmetic.typed(builder, value, operand.dtype)
    if isinstance(value, Scalar):
        return _repeated(builder, float32 if element == tf32 else element, count, value, operand.dtype)
    bits = _bits(builder, value, element)
    return arithmetic.literal(builder, sum(bits << element.bits * part for part in range(count)), operand.dtype)


def _bits(builder: Builder, value: int | float, element: DType) -> int:
    arithmetic.literal(builder, value, element)  # refuses what does not fit
    if element.is_float:
        rounded = np.asarray(value, np.float64).astype(element.numpy)
        return int(rounded.view(element.unsigned_word.numpy))
    return int(value) & (1 << element.bits) - 1


def _repeated(builder: Builder, element: DType, count: int, value: Scalar, register: DType) -> Scalar:
    if element.bits < 8:
        raise TraceError(f"expected a number known while tracing but got {value.dtype}: {element} is less than a byte")
    tensor = registers_tensor(builder, (count,), element, TileLayout(S[(count,) : (1,)]), "same")
    for index in range(count):
        memory.store(builder, tensor, (index,), value)
    return memory.load(builder, reinterpret(builder, tensor, register), (0,))
