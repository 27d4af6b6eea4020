"""How the threads of a scope share a tile: which chunks each of them moves, and which of those exist.

A chunk is some consecutive elements of the last axis. Chunks are dealt out in row-major order, one to each thread and
round, so that neighbouring threads move neighbouring bytes. Nothing is moved here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import Index, bounds
from warpjit.frontend.builder import Builder
from warpjit.frontend.intrinsics import lane_id, thread_idx, warp_id
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, Value
from warpjit.ir.facts import Uniformity
from warpjit.layout.axis import LANES
from warpjit.record import record

SCOPES = ("thread", "warp", "warpgroup", "cta")

# Who shares a tile must get there together: how far the control flow may differ, and who that is in words.
TOGETHER = {
    "thread": (Uniformity.LANE, "each thread"),
    "warp": (Uniformity.WARP, "a whole warp"),
    "warpgroup": (Uniformity.WARPGROUP, "a whole warpgroup"),
    "cta": (Uniformity.CTA, "the whole CTA"),
}


@record
class Chunk:
    """One chunk of this thread: where it starts, and whether this thread has it (None: every thread of the scope)."""

    start: tuple[Index, ...]
    mine: Scalar | None


def threads_of(tracer: Tracer, what: str, scope: Value) -> tuple[Index, int]:
    """This thread's number in its scope, and how many threads the scope has."""
    assert tracer.launch is not None
    if scope not in SCOPES:
        raise TraceError(f"{what}: expected scope {', '.join(map(repr, SCOPES))} but got {scope!r}")
    threads = tracer.launch.threads
    size = {"thread": 1, "warp": LANES, "warpgroup": 4 * LANES, "cta": threads}[str(scope)]
    if threads % size:
        raise TraceError(f"{what}: scope {scope!r} needs a block of a multiple of {size} threads, but it has {threads}")
    widest, who = TOGETHER[str(scope)]
    if tracer.builder.control > widest:
        raise TraceError(
            f"{what} must be executed by {who} together (scope {scope!r}), but it stands under control flow that is "
            f"{tracer.builder.control.phrase}: not all of its threads get there"
        )
    if scope == "thread":
        return 0, 1
    if scope == "warp":
        return lane_id(tracer), size
    if tracer.launch.block == (threads, 1, 1):
        number = thread_idx(tracer)
    else:
        warp = arithmetic.binary(tracer.builder, "mul", warp_id(tracer), LANES)
        number = arithmetic.binary(tracer.builder, "add", warp, lane_id(tracer))
    return (number if size == threads else arithmetic.binary(tracer.builder, "mod", number, size)), size


def shared_out(tracer: Tracer, what: str, scope: Value, shape: Sequence[int], elements: int) -> list[Chunk]:
    """This thread's chunks of a tile of `shape`, each of `elements` elements of the last axis."""
    builder = tracer.builder
    number, threads = threads_of(tracer, what, scope)
    counts = (*shape[:-1], shape[-1] // elements)
    total = math.prod(counts)
    chunks = []
    for first in range(0, total, threads):
        index = first if isinstance(number, int) else arithmetic.binary(builder, "add", number, first)
        mine = None
        if isinstance(index, Scalar) and first + threads > total:
            mine = arithmetic.compare(builder, "lt", index, total)
        *outer, last = _digits(builder, index, counts)
        start = last * elements if isinstance(last, int) else arithmetic.binary(builder, "mul", last, elements)
        chunks.append(Chunk((*outer, start), mine))
    return chunks


def _digits(builder: Builder, index: Index, counts: Sequence[int]) -> list[Index]:
    """The coordinates of number `index` of a row-major box, of which the first is not reduced: it is in range."""
    digits: list[Index] = []
    for count in reversed(counts[1:]):
        if isinstance(index, int):
            index, digit = divmod(index, count)
            digits.append(digit)
        else:
            digits.append(arithmetic.binary(builder, "mod", index, count))
            index = arithmetic.binary(builder, "floordiv", index, count)
    return [index, *reversed(digits)]


def limits(tracer: Tracer, what: str, valid: Value, shape: Sequence[int]) -> tuple[Index | None, ...]:
    """`valid=`: how many elements of each axis exist; None, for the whole or an axis: all of them."""
    if valid is None:
        return (None,) * len(shape)
    if not isinstance(valid, tuple | list) or len(valid) != len(shape):
        raise TraceError(f"{what}: expected valid= to have an entry (None: all exist) for each axis of {tuple(shape)}")
    found: list[Index | None] = []
    for axis, limit in enumerate(valid):
        known = limit is None or (isinstance(limit, int) and not isinstance(limit, bool))
        if not known and not (isinstance(limit, Scalar) and limit.dtype.is_int):
            raise TraceError(f"{what}: valid[{axis}]: expected an integer or None but got {arithmetic.describe(limit)}")
        if isinstance(limit, Scalar) and limit.dtype.kind == "uint" and limit.dtype.bits > 8:
            raise TraceError(
                f"{what}: valid[{axis}]: expected a signed integer but got {arithmetic.describe(limit)}: write "
                "T.int32(...) or T.int64(...)"
            )
        found.append(limit)
    return tuple(found)


def exists(
    builder: Builder, coordinate: Sequence[Index], limits: Sequence[Index | None], spans: Sequence[int]
) -> Scalar | None:
    """Whether an element exists: every coordinate below its limit. None: it does for sure. `spans`: the axes' sizes."""
    conditions = [
        arithmetic.compare(builder, "lt", arithmetic.natural(builder, index), limit)
        for index, limit, span in zip(coordinate, limits, spans, strict=True)
        if limit is not None and not _surely_below(index, limit, span)
    ]
    if not conditions:
        return None
    total = conditions[0]
    for condition in conditions[1:]:
        total = arithmetic.join_conditions(builder, "and", total, condition)
    return total


def _surely_below(index: Index, limit: Index, span: int) -> bool:
    top, least = bounds(index)[1], bounds(limit)[0]
    return least is not None and min(span - 1 if top is None else top, span - 1) < least
