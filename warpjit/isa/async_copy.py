"""Asynchronous copies from global to shared memory: cp.async and the one-dimensional cp.async.bulk.

    cp.async.{ca,cg}.shared.global      operands dst, src, size (immediate: 4, 8, 16; cg only 16), src_size (optional:
                                        bytes that are read, the rest of dst becomes 0)
    cp.async.commit_group, wait_group, wait_all
    cp.async.mbarrier.arrive...         operand bar: arrives when the thread's copies so far are done; without .noinc
                                        the phase first gets one more arrival to wait for
    cp.async.bulk...                    operands dst, src, size (multiple of 16), bar: one thread copies `size` bytes,
                                        which are subtracted from the tx-count of bar when they have come

Sections of the manual: "Data Movement and Conversion Instructions: Asynchronous copy". Left out: tensor maps,
multicast, cache hints, and copies from shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from warpjit.ir.dtypes import int32, uint8
from warpjit.isa import mbarrier_state
from warpjit.isa.barriers import barrier_operand
from warpjit.isa.needs import since
from warpjit.isa.row import (
    Array,
    ArriveWhenCopied,
    Asm,
    Commit,
    CompleteBytes,
    Completion,
    Kind,
    Mode,
    Operand,
    Row,
    WaitGroup,
)
from warpjit.isa.scalar_text import immediate, plain, value

_SECTION = "Data Movement and Conversion Instructions: "
_SIZES = {"ca": (4, 8, 16), "cg": (16,)}


def _copied(src: Array, src_size: Array | None, *, size: int, **params: int) -> Array:
    """Bytes (*batch, 32, size), those from `src_size` on zero."""
    if src_size is None:
        return src
    return np.where(np.arange(size) < np.asarray(src_size)[..., None], src, np.uint8(0))


def _address(name: str, mode: Mode, space: str, align: int, proxy: str) -> Operand:
    return Operand(name, Kind.ADDRESS, mode, dtype=uint8, space=space, align=align, proxy=proxy, busy="completion")


def _copy(cache: str, shared: str, prefetch: str) -> Row:
    text = f"cp.async.{cache}.{shared}.global{prefetch}"

    def code(params: Mapping[str, int]) -> Asm:
        return Asm(f"{text} [{{dst}}], [{{src}}], {{size}}{', {src_size}' if params.get('has_src_size') else ''};")

    align = min(_SIZES[cache])
    return Row(
        text=text,
        operands=(
            _address("dst", Mode.WRITE, "shared", align, "generic"),
            _address("src", Mode.READ, "global", align, "generic"),
            immediate("size", *_SIZES[cache]),
            Operand("src_size", Kind.SCALAR, dtype=int32, optional=True),
        ),
        code=code,
        meaning=_copied,
        needs=since(80),
        completion=Completion.CP_ASYNC_GROUP,
        memory=True,
        tile=True,
        section=_SECTION + "cp.async",
    )


COPIES = tuple(
    _copy(cache, shared, prefetch)
    for cache in _SIZES
    for shared in ("shared", "shared::cta")
    for prefetch in ("", ".L2::64B", ".L2::128B", ".L2::256B")
)

COMMIT_GROUP = Row(
    text="cp.async.commit_group",
    operands=(),
    code=Asm("cp.async.commit_group;"),
    meaning=None,
    needs=since(80),
    effect=Commit(Completion.CP_ASYNC_GROUP),
    memory=True,
    section=_SECTION + "cp.async.commit_group",
)

WAIT_GROUP = Row(
    text="cp.async.wait_group",
    operands=(immediate("n"),),
    code=Asm("cp.async.wait_group {n};"),
    meaning=None,
    needs=since(80),
    effect=WaitGroup(Completion.CP_ASYNC_GROUP),
    memory=True,
    section=_SECTION + "cp.async.wait_group, cp.async.wait_all",
)

WAIT_ALL = Row(
    text="cp.async.wait_all",
    operands=(),
    code=Asm("cp.async.wait_all;"),
    meaning=None,
    needs=since(80),
    effect=WaitGroup(Completion.CP_ASYNC_GROUP, all_groups=True),
    memory=True,
    section=_SECTION + "cp.async.wait_group, cp.async.wait_all",
)


def _arrive(noinc: str, shared: str) -> Row:
    text = f"cp.async.mbarrier.arrive{noinc}.{shared}.b64"
    return Row(
        text=text,
        operands=(barrier_operand("bar", Mode.UPDATE),),
        code=Asm(f"{text} [{{bar}}];"),
        meaning=plain(mbarrier_state.kept if noinc else mbarrier_state.expect_arrival),
        needs=since(80),
        effect=ArriveWhenCopied(),
        memory=True,
        section=_SECTION + "cp.async.mbarrier.arrive",
    )


ARRIVALS = tuple(_arrive(noinc, shared) for noinc in ("", ".noinc") for shared in ("shared", "shared::cta"))


def _bulk(shared: str) -> Row:
    text = f"cp.async.bulk.{shared}.global.mbarrier::complete_tx::bytes"
    return Row(
        text=text,
        operands=(
            _address("dst", Mode.WRITE, "shared", 16, "async"),
            _address("src", Mode.READ, "global", 16, "async"),
            value("size", int32),
            barrier_operand("bar", Mode.READ),
        ),
        code=Asm(f"{text} [{{dst}}], [{{src}}], {{size}}, [{{bar}}];"),
        meaning=lambda src, size, bar, **params: src,
        needs=since(90),
        completion=Completion.MBARRIER_BYTES,
        effect=CompleteBytes(),
        memory=True,
        tile=True,
        section=_SECTION + "cp.async.bulk",
        notes="size is a multiple of 16; .shared::cluster with an address of this CTA copies to this CTA",
    )


BULK = tuple(_bulk(shared) for shared in ("shared::cluster", "shared::cta"))

ROWS: tuple[Row, ...] = (*COPIES, COMMIT_GROUP, WAIT_GROUP, WAIT_ALL, *ARRIVALS, *BULK)
