"""The same bits under another type: reinterpretation, and several narrow elements in one wide word.

Elements are packed little end first, as registers and memory hold them (PTX manual, section "Packing and Unpacking
Vector Elements" of "mov": `mov.b32 %r, {lo, hi}`). Values change in `conversion`, never here. The host must be
little-endian, as every host of CUDA is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warpjit.errors import TraceError
from warpjit.ir.conversion import convert
from warpjit.ir.dtypes import DType, dtype_of, uint4

Array = np.ndarray[Any, Any]


def bitcast(values: Array, target: DType) -> Array:
    """`values` (any shape) with their bits read as `target`, which has the same width.

    A bool is the byte 0 or 1; a byte read as a bool is whether it is nonzero. The result may share memory with
    `values`. Raises TraceError where the widths differ.
    """
    values = np.asarray(values)
    source = dtype_of(values)
    if source.bits != target.bits:
        raise TraceError(f"{source} has {source.bits} bits and cannot be read as {target} of {target.bits} bits")
    if source == target:
        return values
    if source.bits == 4 or target.is_bool:
        return convert(bitcast(values, source.unsigned_word) if source.is_float else values, target)
    return values.view(target.numpy)


def pack(elements: Array, word: DType) -> Array:
    """Elements (..., n) packed along the last axis into words (...), element 0 in the low bits.

    n times the element's width must be the word's width. Raises TraceError otherwise.
    """
    elements = np.asarray(elements)
    source = dtype_of(elements)
    count = _elements_in(word, source)
    if elements.shape[-1:] != (count,):
        raise TraceError(f"a {word} holds {count} elements of {source} but got shape {elements.shape}")
    if source.bits == 4:
        nibbles = convert(elements, uint4).astype(np.uint8).reshape(*elements.shape[:-1], count // 2, 2)
        elements = nibbles[..., 0] | nibbles[..., 1] << np.uint8(4)
    return np.ascontiguousarray(elements).view(word.numpy)[..., 0]


def unpack(words: Array, element: DType) -> Array:
    """Words (...) of any type taken apart into elements (..., n), the low bits first.

    Raises TraceError where no whole number of elements fills a word.
    """
    words = np.asarray(words)
    _elements_in(dtype_of(words), element)
    parts = np.ascontiguousarray(words).reshape(*words.shape, 1)
    if element.bits > 4:
        return bitcast(parts.view(element.unsigned_word.numpy), element)
    octets = parts.view(np.uint8)
    nibbles = np.stack([octets & np.uint8(0xF), octets >> np.uint8(4)], axis=-1)
    return convert(nibbles.reshape(*octets.shape[:-1], -1), element)


def _elements_in(word: DType, element: DType) -> int:
    if word.bits < 8 or word.bits % element.bits or word.is_bool:
        raise TraceError(f"{element} of {element.bits} bits does not fill a {word} of {word.bits} bits")
    return word.bits // element.bits
