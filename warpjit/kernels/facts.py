"""What of a tensor decides how a kernel of this folder takes it; hashable, so that what follows from it is remembered.

How a product takes its matrices is `products`'s, and what rows need is `rows`'s.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from warpjit.errors import ArgumentError
from warpjit.frontend.specialize import brief

ELEMENTS = ("torch.float16", "torch.bfloat16")
RESULTS = (*ELEMENTS, "torch.float32")


class Facts(NamedTuple):
    """What of a tensor decides how it is multiplied."""

    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    aligned: bool

    @classmethod
    def of(cls, name: str, x: Any) -> Facts:
        """ArgumentError: no tensor, or one without strides or memory of its own (sparse, inside of a vmap)."""
        if not hasattr(x, "data_ptr"):
            raise ArgumentError(f"{name}: expected a tensor but got {brief(x)}")
        try:
            return cls(x.dtype, x.shape, x.stride(), x.element_size(), x.data_ptr() % 16 == 0)
        except RuntimeError as error:
            raise ArgumentError(f"{name}: expected a dense tensor in memory, but {error}") from None

    @property
    def transposed(self) -> Facts:
        swap = (*range(len(self.shape) - 2), -1, -2)
        shape, strides = (tuple(each[i] for i in swap) for each in (self.shape, self.strides))
        return self._replace(shape=shape, strides=strides)

    def expanded(self, batch: tuple[int, ...]) -> Facts:
        """As a matrix for each batch."""
        lead = len(batch) - (len(self.shape) - 2)
        return self._replace(shape=(*batch, *self.shape[-2:]), strides=(*(0,) * lead, *self.strides))

    @property
    def packed(self) -> bool:
        steps = zip(self.shape, self.strides, range(len(self.shape)), strict=True)
        return all(n == 1 or stride == math.prod(self.shape[axis + 1 :]) for n, stride, axis in steps)

    @property
    def overlaps(self) -> bool:
        """Whether two elements may be one place in memory."""
        reach = 0
        for step, extent in sorted((step, extent) for extent, step in zip(self.shape, self.strides, strict=True)):
            if extent > 1 and step <= reach:
                return 0 not in self.shape
            reach += step * (extent - 1)
        return False

    def check_apart(self, name: str) -> None:
        """ArgumentError: two elements are one place in memory, so that they cannot be written."""
        if self.overlaps:
            raise ArgumentError(
                f"{name}: expected a place in memory for each element but got shape {tuple(self.shape)} with strides "
                f"{tuple(self.strides)}"
            )

    @property
    def width(self) -> int:
        """Bytes of the widest access along the rows that the kernel can prove to be aligned."""
        outer = zip(self.shape[:-1], self.strides[:-1], strict=True)
        steps = [self.shape[-1], *(stride for extent, stride in outer if extent > 1)]
        if self.aligned and all(step * self.size % 16 == 0 for step in steps):
            return 16
        return 4 if self.aligned and self.packed and self.shape[-1] * self.size % 4 == 0 else self.size


# ---- memory that two tensors share ----------------------------------------------------------------------------


def check_disjoint(out: Any, *, itself: bool = False, **inputs: Any) -> None:
    """ArgumentError: a result that lies where an input does, which a kernel would write while it reads it.

    inputs  by their names; what is no tensor lies nowhere
    itself  whether the first may be the result: the same elements at the same places
    """
    for name, each in inputs.items():
        if hasattr(each, "data_ptr") and not _apart(out, each) and not (itself and _same(out, each)):
            wanted = f"{name} itself, or memory" if itself else "memory"
            raise ArgumentError(f"out: expected {wanted} apart from {name}'s, but they overlap")
        itself = False


def _same(x: Any, y: Any) -> bool:
    steps = zip(x.shape, x.stride(), y.stride(), strict=False)
    whole = (x.data_ptr(), x.dtype, x.shape) == (y.data_ptr(), y.dtype, y.shape)
    return whole and all(extent <= 1 or own == other for extent, own, other in steps)


def _apart(x: Any, y: Any) -> bool:
    """Whether no byte is of both: they lie one after the other, or between each other as columns of a matrix do."""
    own, other = x.data_ptr(), y.data_ptr()
    lower, begin, end = (x, own, other) if own < other else (y, other, own)
    if begin + (lower.nbytes if lower.is_contiguous() else _span(lower, 0)[1]) <= end:
        return True  # nearly always, and asked at each call
    if x.numel() == 0 or y.numel() == 0:
        return True
    periods = {
        step * each.element_size()
        for each in (x, y)
        for n, step in zip(each.shape, each.stride(), strict=True)
        if n > 1
    }
    for period in sorted(periods - {0}):
        (own, first), (other, second) = _span(x, period), _span(y, period)
        if first <= (other - own) % period and second <= (own - other) % period:
            return True
    return False


def _span(x: Any, period: int) -> tuple[int, int]:
    """The address of the first byte, and how many there are up to the last; of bytes `period` apart, one counts."""
    size = x.element_size()
    steps = (
        step * size * (n - 1) for n, step in zip(x.shape, x.stride(), strict=True) if not period or step * size % period
    )
    return x.data_ptr(), sum(steps) + size
