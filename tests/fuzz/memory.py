"""Tensors of the oracle: elements in a list, and windows onto them. Outside, or unwritten: `Invalid`."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from .numbers import Invalid, Number, cast
from .types import FLOATS

Index = tuple[Any, ...]


def natural(value: Any, kind: str) -> Any:
    """A Python or numpy value as a `Number` holds it."""
    if kind in FLOATS:
        return np.float64(value) if kind == "float64" else np.float32(value)
    return bool(value) if kind == "bool" else int(value)


class Cells:
    """Elements of one type: `cells[start + sum(index * stride)]`."""

    def __init__(self, cells: list[Any], kind: str, shape: tuple[int, ...], start: int = 0, strides: Any = None):
        self.cells, self.kind, self.shape, self.start = cells, kind, shape, start
        self.strides = strides or tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))

    @staticmethod
    def unwritten(shape: Any, kind: str) -> Cells:
        sizes = tuple(operator.index(each) for each in (shape if isinstance(shape, tuple) else (shape,)))
        return Cells([None] * math.prod(sizes), kind, sizes)

    def place(self, index: Any) -> int:
        items = index if isinstance(index, tuple) else (index,)
        place = self.start
        for item, size, stride in zip(items, self.shape, self.strides, strict=True):
            number = operator.index(item)
            if not 0 <= number < size:
                raise Invalid(f"index {number} of {size}")
            place += number * stride
        return place

    def __getitem__(self, index: Any) -> Any:
        items = index if isinstance(index, tuple) else (index,)
        if any(isinstance(item, slice) for item in items):
            return self._window(items)
        value = self.cells[self.place(items)]
        if value is None:
            raise Invalid("an element that nobody wrote")
        return Number(value, self.kind)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.cells[self.place(index)] = cast(value, self.kind).value

    def _window(self, items: Index) -> Cells:
        start, shape, strides = self.start, [], []
        for item, size, stride in zip(items, self.shape, self.strides, strict=True):
            if not isinstance(item, slice):
                start += operator.index(item) * stride
                continue
            first, last = operator.index(item.start or 0), size if item.stop is None else operator.index(item.stop)
            if not 0 <= first <= last <= size:
                raise Invalid("a window that reaches outside")
            start += first * stride
            shape.append(last - first)
            strides.append(stride)
        return Cells(self.cells, self.kind, tuple(shape), start, tuple(strides))

    def view(self, *shape: int) -> Cells:
        """Other axes, row-major."""
        items = list(self)
        if -1 in shape:
            shape = tuple(len(items) // -math.prod(shape) if size == -1 else size for size in shape)
        if math.prod(shape) != len(items) or self.strides != Cells([], self.kind, self.shape).strides:
            raise Invalid("a view of another size, or of elements that do not follow each other")
        return Cells(self.cells, self.kind, shape, self.start)

    def permute(self, *axes: int) -> Cells:
        shape, strides = (tuple(values[axis] for axis in axes) for values in (self.shape, self.strides))
        return Cells(self.cells, self.kind, shape, self.start, strides)

    def rearrange(self, pattern: str, *, a: int) -> Cells:
        """The one pattern that programs use."""
        if pattern != "(a b) -> b a":
            raise Invalid(f"rearrange {pattern}")
        return self.view(a, self.shape[0] // a).permute(1, 0)

    @property
    def sub(self) -> Sub:
        return Sub(self)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """All indices, row-major."""
        return itertools.product(*(range(size) for size in self.shape))

    def fill(self, value: Any) -> None:
        """Every element of a local tensor."""
        self.cells[:] = [cast(value, self.kind).value] * len(self.cells)

    def atomic(self, function: Any, index: Any, value: Any) -> Number:
        """Put `function(element, value)` into an element; returns what was there."""
        old = self[index]
        self[index] = function(old, cast(value, self.kind))
        return old


class Sub:
    """`t.sub[...]`: a window also where there is no slice; missing axes are whole."""

    def __init__(self, cells: Cells):
        self.cells = cells

    def __getitem__(self, index: Any) -> Cells:
        items = index if isinstance(index, tuple) else (index,)
        items += (slice(None),) * (len(self.cells.shape) - len(items))
        return self.cells._window(items)


def load(window: Cells, *, where: Any = True) -> Cells:
    """A copy in registers; zeros where `where` is false."""
    found = Cells.unwritten(window.shape, window.kind)
    for index in window:
        found[index] = window[index] if where else cast(0, window.kind)
    return found


def store(window: Cells, value: Cells, *, where: Any = True) -> None:
    if where:
        for index in window:
            window[index] = value[index]
