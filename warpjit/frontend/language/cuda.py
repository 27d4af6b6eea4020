"""The names under `T.cuda`: the launch, who a thread is, barriers, tiles of instructions; those of `warp`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpjit.frontend.language.intrinsic import Namespace, intrinsic
from warpjit.frontend.language.warp import (
    all,
    any,
    ballot,
    cta_max,
    cta_min,
    cta_reduce,
    cta_scan,
    cta_sum,
    match_all,
    match_any,
    shuffle,
    shuffle_down,
    shuffle_up,
    shuffle_xor,
    warp_max,
    warp_min,
    warp_reduce,
    warp_scan,
    warp_sum,
)
from warpjit.layout import ComposeLayout, SwizzleMode, TileLayout, mma_shared_layout

if TYPE_CHECKING:
    from warpjit.frontend.language import (
        AxisName,
        Extents,
        Flag,
        Instruction,
        Integer,
        Number,
        Operand,
        Pointer,
        ScopeName,
        Tensor,
        bool,
        int32,
    )


@dataclass(frozen=True, kw_only=True)
class LaunchConfig:
    """How many CTAs of how many threads. Each of one to three sizes, x first.

    grid     CTAs: ints or host expressions; a zero makes the call do nothing
    block    threads of a CTA: ints, at most 1,024 in all
    cluster  CTAs of a cluster: ints, at most 16 in all, of which the grid is a multiple (sm_90 or later)
    """

    grid: Extents
    block: int | tuple[int, ...]
    cluster: int | tuple[int, ...] = 1


@dataclass(frozen=True, kw_only=True)
class KernelAttributes:
    """What the compiler is told about registers: at most one of the two.

    max_registers       registers of a thread, 16 to 255
    min_blocks_per_sm   CTAs that must fit on a multiprocessor together, 1 to 32
    """

    max_registers: int | None = None
    min_blocks_per_sm: int | None = None


@intrinsic("T.cuda.")
def lane_id() -> int32:
    """This thread's lane in its warp, 0 to 31 (int32)."""


@intrinsic("T.cuda.")
def warp_id() -> int32:
    """This warp's index in its CTA (int32), the same for all its lanes."""


@intrinsic("T.cuda.")
def thread_idx(axis: AxisName = "x") -> int32:
    """This thread's index in its CTA along `axis` "x", "y" or "z" (int32)."""


@intrinsic("T.cuda.")
def block_idx(axis: AxisName = "x") -> int32:
    """This CTA's index in the grid along `axis` (int32)."""


@intrinsic("T.cuda.")
def block_dim(axis: AxisName = "x") -> int:
    """Threads of a CTA along `axis`: static."""


@intrinsic("T.cuda.")
def grid_dim(axis: AxisName = "x") -> int32:
    """CTAs of the grid along `axis` (int32)."""


@intrinsic("T.cuda.")
def cta_sync() -> None:
    """Waits for all threads of the CTA; what they wrote to memory before is seen after (`bar.sync 0`)."""


@intrinsic("T.cuda.")
def warp_sync() -> None:
    """Waits for all lanes of the warp; what they wrote to memory before is seen after (`bar.warp.sync`)."""


@intrinsic("T.cuda.")
def named_barrier_sync(id: Integer, threads: Integer) -> None:
    """Waits until `threads` threads, whole warps, have come to barrier `id` of the CTA (`bar.sync id, threads`).

    id       0 to 15; barrier 0 is that of `T.cuda.cta_sync`
    threads  a multiple of 32: those that wait, and those that arrive

    What was written before by those who came is seen after.
    """


@intrinsic("T.cuda.")
def named_barrier_arrive(id: Integer, threads: Integer) -> None:
    """Comes to barrier `id` and goes on: those who wait for it see what this warp wrote before (`bar.arrive`).

    `id` and `threads` are as in `T.cuda.named_barrier_sync`, and the same for all who take part.
    """


@intrinsic("T.cuda.")
def fence(scope: str = "cta", *, sc: Flag = False) -> None:
    """Orders this thread's accesses to memory before it against those after it, as `scope` sees them (`fence`).

    scope  "cta", "cluster" (sm_90 or later), "gpu" or "sys"
    sc     sequentially consistent (`fence.sc`), which also orders fences among themselves; False: `fence.acq_rel`

    The simulator runs atomic operations and fences one after the other, so it does nothing there.
    """


@intrinsic("T.cuda.")
def mbarrier_wait(barrier: Pointer, parity: Number) -> None:
    """Waits until the phase of `barrier` (a pointer) with this parity (0 or 1) has completed.

    A fresh barrier is in phase 0: waiting for parity 1 returns at once, for parity 0 after the first completion.
    """


@intrinsic("T.cuda.")
def elect_sync() -> bool:
    """True in exactly one lane of the warp (`elect.sync`, sm_90 or later)."""


@intrinsic("T.cuda.tile.")
def apply(
    instruction: Instruction,
    *operands: Operand,
    scope: ScopeName | None = None,
    pred: Number | None = None,
    valid: tuple[Integer | None, ...] | None = None,
    **parameters: Operand,
) -> None:
    """Executes one native instruction for each repeat coordinate of the operands.

    instruction  `T.ptx["..."]`
    operands     destination first; tensors whose axes are (*group, *repeat, *atom). Repeat axes may be left out
                 where all are 1. `mma` takes D, A, B, C; C is a number, a float32 scalar, a tensor, or D itself.
    scope        the threads that take part: "thread", "warp", "warpgroup" (a leading axis of 4 warps in each
                 operand) or "cta" (a leading axis of the CTA's warps); omitted: the instruction's own
    pred         a bool: lanes where it is false do nothing (instructions of single threads only)

    Copies (`cp.async`, `cp.async.bulk`) are made by single threads: dst and src are tiles of one type and shape, which
    each thread copies in chunks along the last axis, contiguous and aligned on both sides. By name: `size=` bytes of
    a chunk (omitted: the whole last axis), `src_size=` bytes that are read of each chunk (the rest becomes 0), `mbar=`
    the mbarrier of a bulk copy.

    The instructions are issued in batch, M, N, K order, K innermost. No barrier, staging or conversion is added.
    Raises TraceError with a counterexample where an operand's layout is not what the instruction reads.
    """


@intrinsic("T.cuda.")
def has(instruction: Instruction | str) -> bool:
    """Whether the target that the kernel is made for has the instruction: static, so that an `if` on it is resolved."""


@intrinsic("T.cuda.")
def fragments(
    instruction: Instruction | str,
    operand: str,
    *,
    M: int = 1,
    N: int = 1,
    K: int = 1,
    batch: tuple[int, ...] = (),
    dtype: type[Any] | str | None = None,
    fill: Number | None = None,
) -> Tensor[Any]:
    """Registers that hold `operand` ("A", "D", ...) of the instruction for so many repeats, in its own layout.

    dtype  omitted: the operand's register words, of which the shape is (*batch, repeats…, *atom). A type: any as wide
           as a register, or that of the elements which a register packs (float16, int8, int4, …): the last axis is as
           many times as long. "element": the type of the packed elements, whatever the instruction. A word is no
           number: storing a float, or an integer of an element's size, where no type was named is refused
    fill   the number that every element is set to, also where registers pack several

    `t.view(dtype)` changes between the forms; both are the same registers and make the same code.
    Raises TraceError for a type that is neither.
    """


@intrinsic("T.cuda.")
def convert(fragment: Tensor[Any], instruction: Instruction | str, operand: str) -> Tensor[Any]:
    """The fragment's matrix as `operand` of the instruction: `as_operand` where it is in place, otherwise moved there.

    What moves it is as in `t.convert(layout)`, to the instruction's own layout. Raises TraceError as `as_operand` for
    types and sizes, and for elements that would leave their warp.
    """


tile = Namespace(apply=apply)
layout = Namespace(mma_shared_layout=mma_shared_layout, SwizzleMode=SwizzleMode)

__all__ = [
    "ComposeLayout",
    "KernelAttributes",
    "LaunchConfig",
    "TileLayout",
    "all",
    "any",
    "apply",
    "ballot",
    "block_dim",
    "block_idx",
    "convert",
    "cta_max",
    "cta_min",
    "cta_reduce",
    "cta_scan",
    "cta_sum",
    "cta_sync",
    "elect_sync",
    "fence",
    "fragments",
    "grid_dim",
    "has",
    "lane_id",
    "layout",
    "match_all",
    "match_any",
    "mbarrier_wait",
    "named_barrier_arrive",
    "named_barrier_sync",
    "shuffle",
    "shuffle_down",
    "shuffle_up",
    "shuffle_xor",
    "thread_idx",
    "tile",
    "warp_id",
    "warp_max",
    "warp_min",
    "warp_reduce",
    "warp_scan",
    "warp_sum",
    "warp_sync",
]
