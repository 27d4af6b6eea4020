"""Fragments that were given no type: their registers are the operand's words, uint32, and a number is no such word.

Elsewhere a store converts numbers to the element type, which the user has named. Here nobody has: 1.5 would become the
word 1, which holds no 1.5. Whoever names the type, `dtype=` or `view(dtype)`, is believed.
"""

from __future__ import annotations

import math

from warpjit.errors import TraceError
from warpjit.frontend.literals import describe
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.ir import dtypes
from warpjit.isa.row import Operand


def refuse_number(tensor: TensorValue, value: Value) -> None:
    """TraceError: a float, or an integer of an element's width, would be stored in place of a word."""
    operand = tensor.words
    if operand is None or _is_word(operand, value):
        return
    raise TraceError(
        f"{tensor.name}: expected {_held(operand)}, since the fragment's type was not named, but got "
        f"{describe(value)}, which would be converted to {operand.dtype}: {_advice(operand, value)}"
    )


def refuse_cast(tensor: TensorValue) -> None:
    """TraceError: a cast would take words for numbers."""
    operand = tensor.words
    if operand is not None and operand.element is not None:
        raise TraceError(
            f"cast: expected numbers, but each register of {tensor.name}, a fragment whose type was not named, is "
            f'{_held(operand)}: view it first, .view("{_number(operand)}")'
        )


def _is_word(operand: Operand, value: Value) -> bool:
    """Whether storing a number converts nothing. A zero has the same bits in every type."""
    if not isinstance(value, Scalar):
        return not isinstance(value, float) or (value == 0 and math.copysign(1, value) > 0)
    assert operand.dtype is not None
    narrow = operand.packed > 1 and value.dtype.is_int and value.dtype.bits < operand.dtype.bits
    return not value.dtype.is_float and not narrow


def _held(operand: Operand) -> str:
    if operand.element is None:
        return f"a word ({operand.dtype}) of operand {operand.name}"
    elements = f"{operand.packed} {operand.element}" if operand.packed > 1 else f"one {operand.element}"
    return f"a word ({operand.dtype}) of {elements}"


def _number(operand: Operand) -> str:
    """The type in which an element is read and written as a number."""
    return "float32" if operand.element == dtypes.tf32 else str(operand.element)


def _advice(operand: Operand, value: Value) -> str:
    if operand.element is None:
        return "store an integer, T.cast(x, T.uint32)"
    fits = isinstance(value, Scalar) and operand.element.kind == "uint" and value.dtype.bits == operand.element.bits
    dtype = str(value.dtype) if fits else _number(operand)
    bits = f"T.{operand.element}x2(x, y)" if operand.element in (dtypes.float16, dtypes.bfloat16) else "x"
    return f'make it with dtype="{dtype}" to store elements, or store the word\'s bits, T.reinterpret({bits}, T.uint32)'
