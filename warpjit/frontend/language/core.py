"""The names directly under `T` that are calls: entry, memory, scalar functions."""

# The bodies never run; the names of arguments are part of the language.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from warpjit.frontend.language.cuda import KernelAttributes, LaunchConfig
from warpjit.frontend.language.intrinsic import intrinsic


@intrinsic()
def device_entry(*, launch: LaunchConfig, attributes: KernelAttributes | None = None) -> None:
    """Ends the host part of a kernel and begins the part that every thread runs.

    launch      grid (may be runtime), block and cluster (static): `T.cuda.LaunchConfig(grid=, block=, cluster=)`
    attributes  `T.cuda.KernelAttributes(max_registers=, min_blocks_per_sm=)`

    What stands before it are host expressions: + - * // %, min, max, `T.cdiv`, comparisons and conditional
    expressions of sizes, scalar arguments and constants. Their values may be used in the body.
    Raises TraceError: called twice, or never; a block of more than 1,024 threads; a size that is not positive.
    """


@intrinsic()
def alloc_shared(shape: Any, dtype: Any = "float32", *, layout: Any = "default", align: int | None = None) -> Any:
    """A tensor in the CTA's shared memory, unwritten.

    shape   ints
    dtype   element type, or "mbarrier" for barriers
    layout  "default" (dense row-major) or a layout without thread axes; swizzled ones from
            `T.cuda.layout.mma_shared_layout`
    align   bytes, a power of two; omitted: 16, or the swizzle's period
    """


@intrinsic()
def alloc_local(shape: Any, dtype: Any = "float32", *, layout: Any = "default") -> Any:
    """A tensor in the registers of each thread, unwritten. Elements narrower than 32 bits are packed into words.

    Register indices must be static (a loop over them is expanded): registers never land in local memory.
    """


@intrinsic()
def assume(condition: Any) -> None:
    """A promise: `condition` holds here. What follows may build on it; the simulator checks it."""


@intrinsic()
def unroll(*range_or_iterable: Any) -> Iterable[Any]:
    """`for i in T.unroll(4)`, `T.unroll(start, stop, step)` or `T.unroll(iterable)`: expanded, `i` is static."""


@intrinsic()
def cdiv(a: Any, b: Any) -> Any:
    """⌈a / b⌉ of integers, b > 0."""


@intrinsic()
def min(a: Any, b: Any) -> Any:
    """The smaller. Floats: of a number and a NaN the number (PTX `min`)."""


@intrinsic()
def max(a: Any, b: Any) -> Any:
    """The larger. Floats: of a number and a NaN the number (PTX `max`)."""


@intrinsic()
def abs(a: Any) -> Any:
    """The magnitude; of the smallest signed integer itself."""


@intrinsic()
def fma(a: Any, b: Any, c: Any) -> Any:
    """a · b + c of floats, rounded once."""


@intrinsic()
def sqrt(a: Any) -> Any:
    """The square root of a float, to nearest even."""


@intrinsic()
def cast(value: Any, dtype: Any) -> Any:
    """`value` converted to `dtype`: `T.cast(x, "float16")` is `T.float16(x)`."""


@intrinsic()
def reinterpret(value: Any, dtype: Any) -> Any:
    """The bits of a scalar as a type of the same width."""
