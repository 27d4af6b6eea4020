"""What copies that a scope's threads share refuse, with the whole sentence; and what then makes them legal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from warpjit import T, TraceError, warpjit
from warpjit.layout import ComposeLayout, S, TileLayout

CG, CA = "cp.async.cg.shared.global", "cp.async.ca.shared.global"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
TWO_WARPS = T.cuda.LaunchConfig(grid=1, block=64)
M, K = T.dynamic("M"), T.dynamic("K")
ALIGNED = T.dynamic("K", multiple_of=8)
A = torch.empty(16, 64, dtype=torch.float16)


def share(source, tile, **given):
    """By all threads of the CTA, 16 bytes a chunk, unless told otherwise."""
    T.cuda.tile.apply(T.ptx[CG], tile, source, scope="cta", size=16, **given)


def refused(body: Callable[..., Any], *args: Any) -> list[str]:
    """The sentences of every finding, in order."""
    with pytest.raises(TraceError) as caught:
        warpjit(body).source(*args, target="sm_90a")
    return [each.message for each in caught.value.findings]


def copies(body: Callable[..., Any], *args: Any) -> int:
    return warpjit(body).source(*args, target="sm_90a").count("cp.async.cg.shared.global [")


# ---- alignment --------------------------------------------------------------------------------------------------


def needs(which: str, tensor: str, chunk: str, known: int, elements: int = 8) -> str:
    return (
        f"{CG}: operand {which}: {chunk} of {tensor} must begin at a multiple of 16 bytes, but it is known to begin at "
        f"a multiple of {known} only: align the tensor, or make its strides and the starts of slices multiples of "
        f"{elements} elements of float16"
    )


def test_rows_of_any_length_and_what_helps():
    def any_length(a: T.Tensor((M, K), "float16")):
        T.device_entry(launch=TWO_WARPS)
        share(a[0:16, 0:64], T.alloc_shared((16, 64), "float16"))

    def promised(a: T.Tensor((M, ALIGNED), "float16")):
        T.device_entry(launch=TWO_WARPS)
        share(a[0:16, 0:64], T.alloc_shared((16, 64), "float16"))

    def assumed(a: T.Tensor((M, K), "float16"), row: T.int32):
        T.device_entry(launch=TWO_WARPS)
        tile = T.alloc_shared((16, 64), "float16")
        if K % 8 == 0:
            share(a[0:16, 0:64], tile)
        T.assume(K % 8 == 0)
        share(a[0:16, 0:64], tile)
        share(a[row : row + 16, 0:64], tile)
        T.ptx[CG](tile.ptr(0, 0), a.ptr(row, 8), 16)
        T.ptx[CG](tile.ptr(0, 0), a[row : row + 16].ptr(1, 8), 16)

    assert refused(any_length, A) == [needs("src", "a", "a chunk", 2)]
    assert copies(promised, A) == 2
    assert copies(assumed, A, 3) == 2 + 2 + 2 + 1 + 1


def test_starts_and_what_helps():
    def anywhere(a: T.Tensor((M, ALIGNED), "float16"), start: T.int32):
        T.device_entry(launch=TWO_WARPS)
        tile = T.alloc_shared((16, 32), "float16")
        share(a[0:16, start : start + 32], tile)
        share(a[start : start + 16, 4 * start : 4 * start + 32], tile)

    def assumed(a: T.Tensor((M, ALIGNED), "float16"), start: T.int32):
        T.device_entry(launch=TWO_WARPS)
        tile = T.alloc_shared((16, 32), "float16")
        share(a[0:16, 8 * start : 8 * start + 32], tile)
        T.assume(start % 8 == 0)
        share(a[0:16, start : start + 32], tile)
        if start % 16 == 8:
            share(a[0:16, start : start + 32], tile)

    assert refused(anywhere, A, 3) == [needs("src", "a", "a chunk", 2), needs("src", "a", "a chunk", 8)]
    assert copies(assumed, A, 8) == 3


def test_bases_and_tiles():
    def kernel(a, b):
        T.device_entry(launch=TWO_WARPS)
        tile = T.alloc_shared((4, 16), "float16")
        padded = T.alloc_shared((4, 20), "float16")
        narrow = T.alloc_shared((4, 16), "float16", align=2)
        share(a, tile)
        share(b, padded[:, 0:16])
        share(b, narrow)
        share(b[:, 4:12], tile[:, 0:8])
        T.cuda.tile.apply(T.ptx[CG], tile.sub[0, 0:8], b[0, 1:9], size=16)

    moved = torch.empty(65, dtype=torch.float16)[1:].view(4, 16)
    assert refused(kernel, moved, torch.empty(4, 16, dtype=torch.float16)) == [
        needs("src", "a", "a chunk", 2),
        needs("dst", "padded", "a chunk", 8),
        needs("dst", "narrow", "a chunk", 2),
        needs("src", "b", "a chunk", 8),
        needs("src", "b", "the chunk at (0,)", 2),
    ]


# ---- chunks -----------------------------------------------------------------------------------------------------


def test_chunks_that_are_none():
    def kernel(a, n: T.int32):
        T.device_entry(launch=TWO_WARPS)
        tile = T.alloc_shared((16, 64), "float16")
        T.cuda.tile.apply(T.ptx[CA], tile, a, size=3)
        T.cuda.tile.apply(T.ptx[CG], tile, a, size=n)
        T.cuda.tile.apply(T.ptx[CG], tile[:, 0:12], a[:, 0:12], size=16)
        T.cuda.tile.apply(T.ptx[CG], tile, a)
        bar = T.alloc_shared((1,), "mbarrier")
        T.cuda.tile.apply(T.ptx[BULK], tile, a, size=0, mbar=bar.ptr())
        T.cuda.tile.apply(T.ptx[BULK], tile, a, size=-16, mbar=bar.ptr())
        T.cuda.tile.apply(T.ptx[CG], tile.view("int4"), a.view("int4"), size=16)
        turned = T.alloc_shared((16, 64), "float16", layout=TileLayout(S[(16, 64) : (1, 16)]))
        share(a, turned)
        share(a.permute(1, 0), turned.permute(1, 0))
        swizzled = T.alloc_shared((16, 32), "float16", layout=ComposeLayout(4, 1, 4, TileLayout(S[(16, 32)])))
        T.cuda.tile.apply(T.ptx[BULK], swizzled[:, 8:24], a[:, 8:24], size=32, mbar=bar.ptr())
        T.cuda.tile.apply(T.ptx[BULK], swizzled, a[:, 0:32], size=32, mbar=bar.ptr())

    lies = "a chunk must be contiguous, but element 1 of the chunk at (0, 0) of"
    assert refused(kernel, A, 16) == [
        f"{CA}: operand size: expected 4 or 8 or 16 but got 3",
        f"{CG}: operand size must be known while tracing, but it is computed on the device (the same for the whole "
        "grid)",
        f"{CG}: operand size: expected a divisor of the 24 bytes of the last axis but got 16",
        f"{CG}: operand size: expected 16 but got 128",
        f"{BULK}: operand size: expected a positive multiple of 16 bytes but got 0",
        f"{BULK}: operand size: expected a positive multiple of 16 bytes but got -16",
        f"{CG}: operand dst: expected elements of a byte or more but tile holds int4: view it as uint8",
        f"{CG}: operand dst: {lies} turned lies 16 elements after its first",
        f"{CG}: operand src: {lies} a lies 64 elements after its first",
        f"{BULK}: operand dst: the chunk at (0, 0) of swizzled must begin at a multiple of 32 bytes, but it is known "
        "to begin at a multiple of 16 only: align the tensor, or make its strides and the starts of slices multiples "
        "of 16 elements of float16",
    ]


# ---- scopes -----------------------------------------------------------------------------------------------------


def test_threads_that_are_no_scope():
    def kernel(a, n: T.int32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=(5, 9)))
        tile = T.alloc_shared((16, 64), "float16")
        T.cuda.tile.apply(T.ptx[CG], tile, a, size=16, scope="warp")
        T.cuda.tile.apply(T.ptx[CG], tile, a, size=16, scope="warpgroup")
        T.cuda.tile.apply(T.ptx[CG], tile, a, size=16, scope=32)
        if T.cuda.thread_idx() < n:
            share(a, tile)
            T.cuda.tile.apply(T.ptx[CG], tile, a, size=16)
        for _i in range(T.cuda.thread_idx("y")):
            share(a, tile)

    together = "must be executed by the whole CTA together (scope 'cta'), but it stands under control flow that is"
    assert refused(kernel, A, 16) == [
        f"{CG}: scope 'warp' needs a block of a multiple of 32 threads, but it has 45",
        f"{CG}: scope 'warpgroup' needs a block of a multiple of 128 threads, but it has 45",
        f"{CG}: expected scope 'thread', 'warp', 'warpgroup', 'cta' but got 32",
        f"{CG} {together} different from lane to lane: not all of its threads get there",
        f"{CG} {together} different from lane to lane: not all of its threads get there",
    ]


# ---- limits -----------------------------------------------------------------------------------------------------


def test_limits_that_are_none():
    def kernel(a, n: T.int32, u: T.uint32, x: T.float32):
        T.device_entry(launch=TWO_WARPS)
        tile = T.alloc_shared((16, 64), "float16")
        share(a, tile, valid=n)
        share(a, tile, valid=(n,))
        share(a, tile, valid=(x, None))
        share(a, tile, valid=(None, True))
        share(a, tile, valid=("n", None))
        share(a, tile, valid=(u, None))
        share(a, tile, valid=(n, None), src_size=4)
        share(a, tile, src_size=17)
        share(a, tile, src_size=-1)
        share(a, tile, valid=(n, None), extra=None)
        bar = T.alloc_shared((1,), "mbarrier")
        T.cuda.tile.apply(T.ptx[BULK], tile, a, valid=(n, None), mbar=bar.ptr())
        share(a, tile, valid=None, pred=None, src_size=None)

    assert refused(kernel, A, 16, 5, 1.0) == [
        f"{CG}: expected valid= to have an entry (None: all exist) for each axis of (16, 64)",
        f"{CG}: expected valid= to have an entry (None: all exist) for each axis of (16, 64)",
        f"{CG}: valid[0]: expected an integer or None but got a scalar of type float32",
        f"{CG}: valid[1]: expected an integer or None but got bool True",
        f"{CG}: valid[0]: expected an integer or None but got str 'n'",
        f"{CG}: valid[0]: expected a signed integer but got a scalar of type uint32: write T.int32(...) or "
        "T.int64(...)",
        f"{CG}: expected valid= or src_size= but got both",
        f"{CG}: operand src_size: expected 0 to 16 but got 17",
        f"{CG}: operand src_size: expected 0 to 16 but got -1",
        f"{CG} takes no extra=; it takes pred=, size=, src_size=, valid=",
        f"{BULK} takes no valid=; it takes mbar=, pred=, size=",
    ]
