"""Chunks: consecutive elements of a tensor's last axis that one access moves. They must be contiguous and aligned.

Both are proven here, or refused with a sentence that begins with `what`: the instruction and operand, or the function
and argument. Which chunks there are, and who moves them, is said elsewhere (`copies`, `wide`, `sharing`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from warpjit.errors import TraceError
from warpjit.frontend.addresses import Index, alignment, offset_multiple, tile_of
from warpjit.frontend.builder import Builder
from warpjit.frontend.values import Scalar, TensorValue
from warpjit.layout import ComposeLayout


def chunk_starts(shape: Sequence[int], elements: int) -> list[tuple[int, ...]]:
    """Coordinates of the first element of each chunk of `elements` elements, in row-major order."""
    *outer, last = shape
    return list(itertools.product(*map(range, outer), range(0, last, elements)))


def check_contiguous(what: str, tensor: TensorValue, shape: tuple[int, ...], elements: int) -> None:
    """TraceError unless the elements of every chunk follow each other. `shape`: the tensor's, all static."""
    if elements == 1:
        return
    if tensor.layout is None:
        assert tensor.strides is not None
        stride = tensor.strides[-1]
        if isinstance(stride, Scalar) or stride != 1:
            step = "an unknown stride" if isinstance(stride, Scalar) else f"a stride of {stride}"
            raise TraceError(f"{what}: a chunk must be contiguous, but the last axis of {tensor.name} has {step}")
        return
    places = tile_of(tensor.layout).enumerate(shape)["m"].reshape(-1, elements)
    wrong = places - places[:, :1] != np.arange(elements)
    if wrong.any():
        chunk, element = (int(each) for each in np.argwhere(wrong)[0])
        raise TraceError(
            f"{what}: a chunk must be contiguous, but element {element} of the chunk at "
            f"{chunk_starts(shape, elements)[chunk]} of {tensor.name} lies "
            f"{int(places[chunk, element] - places[chunk, 0])} elements after its first",
        )
    together = 1 << tensor.layout.per_element if isinstance(tensor.layout, ComposeLayout) else elements
    if together % elements:
        raise TraceError(
            f"{what}: a chunk must be contiguous, but the swizzle of {tensor.name} keeps only {together} elements "
            f"together, not {elements}",
        )


def known_alignment(builder: Builder, tensor: TensorValue, shape: tuple[int, ...], elements: int) -> int:
    """Bytes that the address of every chunk is sure to be a multiple of."""
    multiple = math.gcd(_multiple(builder, tensor.offset), _places_multiple(builder, tensor, shape, elements))
    if isinstance(tensor.layout, ComposeLayout):
        multiple = math.gcd(multiple, 1 << tensor.layout.per_element)
    return math.gcd(multiple * tensor.dtype.bytes, tensor.align)


def _places_multiple(builder: Builder, tensor: TensorValue, shape: tuple[int, ...], elements: int) -> int:
    """What the chunks' distances from the tensor's offset, in elements, are multiples of (0: all are 0)."""
    if tensor.layout is not None:
        places = tile_of(tensor.layout).enumerate(shape)["m"][..., ::elements]
        return int(np.gcd.reduce(places, axis=None))
    assert tensor.strides is not None
    steps = [*[1] * (len(shape) - 1), elements]
    moving = [axis for axis, (extent, step) in enumerate(zip(shape, steps, strict=True)) if extent > step]
    return math.gcd(*(steps[axis] * _multiple(builder, tensor.strides[axis]) for axis in moving))


def _multiple(builder: Builder, value: Index) -> int:
    return value if isinstance(value, int) else offset_multiple(builder, value)


def check_aligned(
    what: str, builder: Builder, tensor: TensorValue, shape: tuple[int, ...], elements: int, need: int
) -> None:
    """TraceError unless every chunk begins at a multiple of `need` bytes, a power of two."""
    known = known_alignment(builder, tensor, shape, elements)
    if not known % need:
        return
    for start in chunk_starts(shape, elements):
        at_start = alignment(builder, tensor, start)
        if at_start % need:
            raise misaligned(what, tensor, f"the chunk at {start}", need, at_start)
    raise misaligned(what, tensor, "a chunk", need, known)


def misaligned(what: str, tensor: TensorValue, chunk: str, need: int, known: int) -> TraceError:
    """What is wrong with a chunk ("the chunk at (0, 8)") that is known to begin at a multiple of `known` bytes only."""
    return TraceError(
        f"{what}: {chunk} of {tensor.name} must begin at a multiple of {need} bytes, but it is known to "
        f"begin at a multiple of {known} only: align the tensor, or make its strides and the starts of slices "
        f"multiples of {max(need // tensor.dtype.bytes, 1)} elements of {tensor.dtype}"
    )
