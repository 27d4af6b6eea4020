"""Atomic operations on elements of global and shared tensors.

    old = T.atomic_add(counts, bin, 1)
    T.red_add(sums, (row, column), x)

`index` is an integer or a tuple of them, as in `t[index]`; the value becomes an element's type. Names with `atomic_`
return what was there before, those with `red_` nothing, and cost less. All are relaxed: they order no other access, so
publishing data takes a barrier, or a fence such as `T.ptx["fence.acq_rel.gpu"]()`, besides. `scope` says between which
threads of the machine the operation is atomic: "cta", "gpu" or "sys" (with the host and other GPUs); for shared memory
it plays no part.

In which order threads come to an element is not defined on the device, so sums of floats may differ in their last bits
from run to run. The simulator takes warps in order, and in a warp lanes in order. Float sums round to nearest even;
subnormal numbers are kept, but of float32 in global memory become 0.

In shared memory the simulator's search for races takes atomic operations to be in order with each other, but not with
loads and stores of other warps.
"""

# The bodies never run (see `core`). PTX manual, sections "atom" and "red".

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from warpjit.frontend.language.intrinsic import intrinsic

if TYPE_CHECKING:
    from warpjit.frontend.language import AtomicScope, Integer, Number, Tensor

E = TypeVar("E")


@intrinsic()
def atomic_add(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> E:
    """Adds to an element, and returns what it was: int32, uint32, int64, uint64 (they wrap), float16 to float64, pairs.

    bfloat16 and bfloat16x2 need sm_90 or later. The halves of a pair are atomic each by itself.
    """


@intrinsic()
def atomic_min(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> E:
    """The smaller of an element and `value` stays; returns what it was: integers of 32 and 64 bits."""


@intrinsic()
def atomic_max(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> E:
    """The larger of an element and `value` stays; returns what it was: integers of 32 and 64 bits."""


@intrinsic()
def atomic_and(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> E:
    """An element & `value`; returns what it was: integers of 32 and 64 bits."""


@intrinsic()
def atomic_or(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> E:
    """An element | `value`; returns what it was: integers of 32 and 64 bits."""


@intrinsic()
def atomic_xor(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> E:
    """An element ^ `value`; returns what it was: integers of 32 and 64 bits."""


@intrinsic()
def atomic_exchange(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> E:
    """Puts `value` into an element, and returns what it was: integers and floats of 32 and 64 bits."""


@intrinsic()
def atomic_cas(
    tensor: Tensor[E],
    index: Integer | tuple[Integer, ...],
    expected: Number,
    value: Number,
    *,
    scope: AtomicScope = "gpu",
) -> E:
    """Puts `value` into an element that is `expected`, bit by bit; returns what it was: 16, 32 and 64 bits."""


@intrinsic()
def red_add(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number | Tensor[E], *, scope: AtomicScope = "gpu"
) -> None:
    """`T.atomic_add` without a result.

    With a local tensor of one axis as `value`, its elements go to `index` and what follows it in the last axis, two or
    four in one instruction (float32, float16x2 and bfloat16x2 in global memory, an even number of them, sm_90 or
    later). Each element is atomic by itself. The elements must be contiguous, and begin at a multiple of 8 bytes, or of
    16 where their number is a multiple of 4, by what is known (see `T.load`).
    """


@intrinsic()
def red_min(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> None:
    """`T.atomic_min` without a result."""


@intrinsic()
def red_max(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> None:
    """`T.atomic_max` without a result."""


@intrinsic()
def red_and(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> None:
    """`T.atomic_and` without a result."""


@intrinsic()
def red_or(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> None:
    """`T.atomic_or` without a result."""


@intrinsic()
def red_xor(
    tensor: Tensor[E], index: Integer | tuple[Integer, ...], value: Number, *, scope: AtomicScope = "gpu"
) -> None:
    """`T.atomic_xor` without a result."""


__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xor",
    "red_add",
    "red_and",
    "red_max",
    "red_min",
    "red_or",
    "red_xor",
]
