"""Operations of the lanes of a warp together, and of the warps of a CTA.

All 32 lanes take part, so each name stands in control flow that a whole warp shares (`cta_...`: the whole CTA), in a
block of whole warps; elsewhere it is refused. They move values between registers and order no memory: that is
`T.cuda.warp_sync()`. Narrower and wider values than 32 bits are moved as words. Raises TraceError: not a number, an
argument that is out of range, a type that the operation does not have.
"""

# The bodies never run (see `core`). PTX manual: "shfl.sync", "vote.sync", "match.sync", "redux.sync".

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warpjit.frontend.language.intrinsic import intrinsic

if TYPE_CHECKING:
    from warpjit.frontend.language import Flag, Integer, Number, S, Tensor, X, bool, uint32


@intrinsic("T.cuda.")
def shuffle(x: S, lane: Integer, *, width: int = 32) -> S:
    """What `x` is in lane `lane` (taken modulo `width`) of this lane's segment of `width` lanes.

    width   2, 4, 8, 16 or 32. With 32 and a `lane` that is the same for the whole warp, so is the result
    """


@intrinsic("T.cuda.")
def shuffle_up(x: S, n: Integer, *, width: int = 32) -> S:
    """What `x` is `n` lanes below this one; the first n lanes of each segment keep their own. `n` is 0 to width - 1."""


@intrinsic("T.cuda.")
def shuffle_down(x: S, n: Integer, *, width: int = 32) -> S:
    """What `x` is `n` lanes above this one; the last n lanes of each segment keep their own. `n` is 0 to width - 1."""


@intrinsic("T.cuda.")
def shuffle_xor(x: S, n: Integer, *, width: int = 32) -> S:
    """What `x` is in lane `lane ^ n`. `n` is 0 to width - 1."""


@intrinsic("T.cuda.")
def all(condition: Number) -> bool:
    """Whether the condition holds in every lane of the warp; the same for the whole warp."""


@intrinsic("T.cuda.")
def any(condition: Number) -> bool:
    """Whether the condition holds in a lane of the warp; the same for the whole warp."""


@intrinsic("T.cuda.")
def ballot(condition: Number) -> uint32:
    """The lanes in which the condition holds, one bit each (lane 0 the lowest); the same for the whole warp."""


@intrinsic("T.cuda.")
def match_any(x: Number) -> uint32:
    """The lanes that hold the same bits as this one, one bit each."""


@intrinsic("T.cuda.")
def match_all(x: Number) -> bool:
    """Whether all lanes hold the same bits; the same for the whole warp."""


@intrinsic("T.cuda.")
def warp_sum(x: S, width: int = 32) -> S:
    """The sum over each segment of `width` lanes, in every lane: of floats, and of integers of 32 and 64 bits.

    Lanes are added in pairs at distances width / 2, ..., 2, 1, so that all have the same bits; integers wrap. 32-bit
    integers of a whole warp take one `redux.sync` from sm_80 on. With width 32 the result is the same for the whole
    warp, also to control flow. Floats are added as they are: no product before becomes part of a fused multiply-add.
    """


@intrinsic("T.cuda.")
def warp_max(x: S, width: int = 32, *, nan: Flag = False) -> S:
    """The largest in each segment of `width` lanes, in every lane; NaNs as in `T.max`. Types as `warp_sum`."""


@intrinsic("T.cuda.")
def warp_min(x: S, width: int = 32, *, nan: Flag = False) -> S:
    """The smallest in each segment of `width` lanes, in every lane; NaNs as in `T.min`. Types as `warp_sum`."""


@intrinsic("T.cuda.")
def warp_reduce(x: X, op: Callable[[X, X], X], width: int = 32) -> X:
    """All of a segment of `width` lanes combined by a function of the kernel, in every lane.

    x   a number, or a tuple of numbers that are combined together, such as (maximum, sum)
    op  takes two of what x is and gives one, of the same types; a helper or a lambda, which is inlined five times

    Neighbours are combined first, then lanes 2, 4, 8 and 16 apart; `op` always has what lower lanes hold on its left.
    It must be associative and need not commute, and all lanes get the same bits: with width 32 the result is the same
    for the whole warp, also to control flow.
    Raises TraceError: `op` gives another number of values, or other types.
    """


@intrinsic("T.cuda.")
def warp_scan(x: X, op: Callable[[X, X], X] | None = None, *, exclusive: Flag = False, initial: Any | None = None) -> X:
    """The sum over this lane and those below it, or what `op` makes of them; with `exclusive` over those below it.

    x, op    as in `warp_reduce`; without `op` sums, of the types of `warp_sum`
    initial  what lane 0 of an exclusive scan gets, like x; it is not combined with anything. Omitted: 0 of sums

    Lanes combine with what stands 1, 2, 4, 8 and 16 below, so sums of floats are rounded in that order.
    """


@intrinsic("T.cuda.")
def cta_sum(x: S, scratch: Tensor[S]) -> S:
    """The sum over all threads of the CTA, the same for the whole CTA.

    scratch  a shared tensor with one axis of at least one element a warp, of x's type

    Each warp's sum (as `warp_sum`) goes to `scratch`, then `T.cuda.cta_sync()`, then every thread adds them, warp 0
    first, then `T.cuda.cta_sync()` again: `scratch` is free afterwards. Before the call it must not be in use by
    other warps.
    """


@intrinsic("T.cuda.")
def cta_max(x: S, scratch: Tensor[S], *, nan: Flag = False) -> S:
    """The largest over all threads of the CTA, by the steps of `cta_sum`; NaNs as in `T.max`."""


@intrinsic("T.cuda.")
def cta_min(x: S, scratch: Tensor[S], *, nan: Flag = False) -> S:
    """The smallest over all threads of the CTA, by the steps of `cta_sum`; NaNs as in `T.min`."""


@intrinsic("T.cuda.")
def cta_reduce(x: X, op: Callable[[X, X], X], scratch: Tensor[Any] | tuple[Tensor[Any], ...]) -> X:
    """All threads of the CTA combined by a function of the kernel, the same for the whole CTA.

    x, op    as in `warp_reduce`
    scratch  as in `cta_sum`; of a tuple x a tuple, one for each number

    By the steps of `cta_sum`; lower warps stand on the left of `op`.
    """


@intrinsic("T.cuda.")
def cta_scan(
    x: X,
    scratch: Tensor[Any] | tuple[Tensor[Any], ...],
    op: Callable[[X, X], X] | None = None,
    *,
    exclusive: Flag = False,
    initial: Any | None = None,
) -> X:
    """The sum over this thread and those before it in the CTA, or what `op` makes of them; see `warp_scan`.

    scratch  as in `cta_reduce`

    Threads are in the order of their warps and lanes. Each warp's total goes to `scratch`, then `T.cuda.cta_sync()`,
    then every thread combines the totals of the warps before its own, warp 0 first, with its place in its warp, then
    `T.cuda.cta_sync()` again.
    """


__all__ = [
    "all",
    "any",
    "ballot",
    "cta_max",
    "cta_min",
    "cta_reduce",
    "cta_scan",
    "cta_sum",
    "match_all",
    "match_any",
    "shuffle",
    "shuffle_down",
    "shuffle_up",
    "shuffle_xor",
    "warp_max",
    "warp_min",
    "warp_reduce",
    "warp_scan",
    "warp_sum",
]
