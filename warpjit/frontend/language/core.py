"""The names directly under `T` that are calls: entry, memory, scalar functions."""

# The bodies never run. The names of arguments are part of the language; the annotations, names of the stub
# (`__init__.pyi`), are what it is made from.

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from warpjit.frontend.language.cuda import KernelAttributes, LaunchConfig
from warpjit.frontend.language.intrinsic import intrinsic

if TYPE_CHECKING:
    from warpjit.frontend.language import (
        DTypeOf,
        Flag,
        Integer,
        Layout,
        Number,
        Promoted,
        Rounding,
        ScopeName,
        Shape,
        Tensor,
    )

E = TypeVar("E")


@intrinsic()
def device_entry(*, launch: LaunchConfig, attributes: KernelAttributes | None = None) -> None:
    """Ends the host part of a kernel and begins the part that every thread runs.

    launch      grid (may be runtime), block and cluster (static): `T.cuda.LaunchConfig(grid=, block=, cluster=)`
    attributes  `T.cuda.KernelAttributes(max_registers=, min_blocks_per_sm=)`

    What stands before it are host expressions: + - * // %, min, max, `T.cdiv`, comparisons and conditional
    expressions of sizes, scalar arguments and constants. Their values may be used in the body.
    Raises TraceError: called twice, or never, or inside a loop, a branch or a helper; a block of more than 1,024
    threads; a size that is not positive; a static grid that does not divide into clusters.
    Raises ArgumentError at a call: another grid that does not, is negative, or is larger than the hardware takes.
    """


@intrinsic()
def alloc_shared(
    shape: Shape, dtype: DTypeOf[E] = "float32", *, layout: Layout | str = "default", align: int | None = None
) -> Tensor[E]:
    """A tensor in the CTA's shared memory, unwritten.

    shape   ints, in elements
    dtype   element type, or "mbarrier" for barriers (8 bytes each; used through instructions only)
    layout  "default" (dense row-major) or a layout without thread axes; swizzled ones from
            `T.cuda.layout.mma_shared_layout`
    align   bytes, a power of two; omitted: 16, or the swizzle's period

    Raises TraceError: a size that is not a static positive int, a layout of another size or with lanes or warps in it.
    Raises TargetError: all shared tensors together are larger than the target's shared memory.
    """


@intrinsic()
def alloc_local(shape: Shape, dtype: DTypeOf[E] = "float32", *, layout: Layout | str = "default") -> Tensor[E]:
    """A tensor in the registers of each thread, unwritten. Elements narrower than 32 bits are packed into words.

    shape   ints, in elements
    dtype   element type
    layout  "default": each thread has all elements, row-major; or a layout with lane axes: a fragment, of which each
            lane has the registers that the layout's axis `m` spans

    Register indices must be static (a loop over them is expanded): registers never land in local memory.
    Raises TraceError: a size that is not a static positive int, more than 255 registers.
    """


@intrinsic()
def load(
    tensor: Tensor[E], *, width: int | None = None, where: Number | None = None, cache: str | None = None
) -> Tensor[E]:
    """A tile of global or shared memory, read into registers of this thread in accesses of several bytes.

    tensor  a window of static shape; its last axis is read chunk by chunk
    width   bytes of one access: 1, 2, 4, 8 or 16, at least an element and a divisor of the last axis; omitted: the
            widest for which alignment is proven. A chunk must be contiguous, and begin at a multiple of `width` bytes
            by what is known of sizes, strides and starts (`T.dynamic("N", multiple_of=8)`, `T.assume(n % 8 == 0)`)
    where   a bool; lanes in which it is false read nothing and get zeros, whatever the address
    cache   how caches treat a global access, in the words of PTX: an operator ("ca", "cg", "cs", "lu", "cv"), a
            priority ("L1::evict_first", "L1::evict_last", "L1::evict_unchanged", "L1::no_allocate"), "nc" with or
            without one of these (only "ca", "cg", "cs" of the operators), and, but with operators, how much the L2
            prefetches: "nc.L1::no_allocate.L2::128B". Omitted: the compiler's choice. A tensor read with "nc" must not
            change while the kernel runs: it is refused where the kernel writes it, or another tensor that may share
            memory with it, which `noalias=True` in the annotation of one of them excludes

    Returns a local tensor of the window's shape and type, row-major, for every type: 16 bytes of float16 are 8
    elements, or by `.view("float16x2")` 4 pairs. It is indexed like any tensor.
    Raises TraceError: no window of global or shared memory, a width that is not legal, a chunk that is not contiguous
    or not known to be aligned (with what would have to be divisible).
    """


@intrinsic()
def store(
    tensor: Tensor[E],
    value: Tensor[E],
    *,
    width: int | None = None,
    where: Number | None = None,
    cache: str | None = None,
) -> None:
    """Registers of this thread, written to a tile of global or shared memory in accesses of several bytes.

    tensor  a window of static shape
    value   a local tensor of the same shape and type: this thread's elements, row-major
    width   bytes of one access, as in `T.load`
    where   a bool; lanes in which it is false write nothing, whatever the address
    cache   how caches treat a global access: an operator ("wb", "cg", "cs", "wt") or a priority, as in `T.load`

    Raises TraceError: as `T.load`; `value` is of another shape or type, spread over lanes, or in another order.
    """


@intrinsic()
def copy(
    dst: Tensor[E],
    src: Tensor[E],
    *,
    scope: ScopeName = "cta",
    width: int | None = None,
    valid: tuple[Integer | None, ...] | None = None,
    cache: str | tuple[str | None, str | None] | None = None,
) -> None:
    """Copies a tile of global or shared memory to another, through registers; the threads of `scope` share the work.

    dst, src  windows of one static shape and type, of any rank
    scope     who copies together: "thread", "warp", "warpgroup" or "cta". Chunks are dealt out in row-major order, one
              a thread and round; the number of threads need not divide that of chunks
    width     bytes of one access, as in `T.load`, for both sides
    valid     for each axis how many elements exist, an integer or None for all. Elements beyond become zeros in a
              shared `dst`, and are not written to a global one; of `src` they are not read. The last axis' must be
              known to be a multiple of the elements of a chunk (with `width` omitted, chunks shrink to suit it)
    cache     how caches treat the load of a global `src`, else the store, as in `T.load` and `T.store`; or a pair, one
              for each

    A thread loads up to 64 registers before it stores the first. No barrier is added: put `T.cuda.cta_sync()` before
    others read `dst`.
    Raises TraceError: as `T.load`; tiles of different shapes or types, a block that does not divide into the scope,
    control flow in which the threads of the scope part, more than 4,096 chunks for a thread.
    """


@intrinsic()
def prefetch(tensor: Tensor[Any], *, level: str = "L2", where: Number | None = None) -> None:
    """Asks the caches for the lines of a window of a global tensor: one hint for each 128 bytes of its last axis.

    tensor  a window of static shape, contiguous along its last axis; it may reach beyond the tensor
    level   "L1", "L2", or "L2::evict_last", "L2::evict_normal" (sm_80 or later)
    where   a bool; lanes in which it is false do nothing

    Nothing waits for it, and no result depends on it. Raises TraceError: as `T.load`.
    """


@intrinsic()
def assume(condition: Number) -> None:
    """A promise: `condition` holds here. What follows may build on it; the simulator checks it.

    Raises TraceError: the condition is known while tracing, and false. Raises SimulationError where it does not hold.
    """


@intrinsic()
def unroll(*range_or_iterable: Any) -> Iterable[Any]:
    """`for i in T.unroll(4)`, `T.unroll(start, stop, step)` or `T.unroll(iterable)`: expanded, `i` is static.

    Raises TraceError: a bound that is not static; more than 4,096 expanded statements.
    """


@intrinsic()
def range(*start_stop_step: Integer, unroll: int | None = None) -> Iterable[Any]:
    """`for k in T.range(n)`, `T.range(start, stop, step)`: a loop on the device, never expanded; the step is static.

    unroll  how often the body stands in the loop, 1 to 64; the items are then pairs `k, u`, of which `u` is static:
            the number of the iteration, from the start, modulo `unroll` (`for k, u in T.range(n, unroll=4)`). Where the
            number of iterations is not known to be a multiple, each copy but the first is guarded

    Raises TraceError: no integers, a step of 0, a step or `unroll` that is not static.
    """


@intrinsic()
def cdiv(a: Integer, b: Integer) -> Promoted:
    """⌈a / b⌉ of integers, b > 0. Raises TraceError: b is known not to be positive."""


@intrinsic()
def min(a: Number, b: Number, *, nan: Flag = False) -> Promoted:
    """The smaller, in the type in which `a` and `b` meet; of zeros -0.

    Floats: of a number and a NaN the number (PTX `min`), of two NaNs a NaN; with `nan` a NaN where one of them is
    (PTX `min.NaN`; of float64 by selection). The builtin `min` is this without `nan`.
    """


@intrinsic()
def max(a: Number, b: Number, *, nan: Flag = False) -> Promoted:
    """The larger, in the type in which `a` and `b` meet; of zeros +0. NaNs as in `T.min` (PTX `max`, `max.NaN`)."""


@intrinsic()
def abs(a: Number) -> Promoted:
    """The magnitude, in the type of `a`; of the smallest signed integer itself."""


@intrinsic()
def fma(a: Number, b: Number, c: Number) -> Promoted:
    """a · b + c of floats, rounded once, in the type in which the device values among them meet.

    Raises TraceError: none of the three is a device value, or they do not meet in a float type.
    """


@intrinsic()
def sqrt(a: Number) -> Promoted:
    """The square root of a float, to nearest even; of a negative number NaN. Raises TraceError: not a float."""


@intrinsic()
def cast(value: Number, dtype: DTypeOf[E], *, rounding: Rounding | None = None, saturate: Flag | None = None) -> E:
    """`value` converted to `dtype`: `T.cast(x, "float16")` is `T.float16(x)`.

    rounding  "nearest" (ties to even), "zero", "down" or "up" (PTX `cvt`: .rn .rz .rm .rp, .rni .rzi .rmi .rpi).
              Omitted: to floats "nearest", floats to integers "zero". To bfloat16 "nearest" and "zero" exist, to 8-bit
              floats "nearest"; conversions that are exact take any
    saturate  True: what the type does not hold becomes its largest or smallest number, infinities its largest finite
              ones; NaN stays NaN. False: integers keep their low bits, floats become infinite, or NaN in float8_e4m3fn.
              Omitted: True for floats to integers, which always saturate, and to 8-bit floats; False for the rest

    NaN as an integer is 0, but from float64 or to 64 bits the word of which only the top bit is set.
    Raises TraceError: a direction that a conversion does not have; integers to integers with `rounding`; floats to
    integers with `saturate=False`; either of the two to bool or for pairs.
    """


@intrinsic()
def reinterpret(value: Number, dtype: DTypeOf[E]) -> E:
    """The bits of a scalar as a type of the same width; a byte as bool is whether it is not 0.

    Raises TraceError: the widths differ.
    """
