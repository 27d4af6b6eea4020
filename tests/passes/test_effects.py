"""Which tensors a kernel reads and writes."""

from __future__ import annotations

from typing import Any

import pytest

from warpjit import T, warpjit
from warpjit.kernel import resolve_target

ENTRY = T.cuda.LaunchConfig(grid=1, block=32)


@warpjit
def copies(X: T.Tensor((32,), "float32"), Out: T.Tensor((32,), "float32"), Unused: T.Tensor((32,), "float32")):
    T.device_entry(launch=ENTRY)
    Out[T.cuda.lane_id()] = X[T.cuda.lane_id()]


@warpjit
def in_branches(X: T.Tensor((32,), "float32"), Out: T.Tensor((32,), "float32"), n: T.int32):
    T.device_entry(launch=ENTRY)
    for k in T.range(n):
        if k > 3:
            Out[k] = X[k] + Out[k]


@warpjit
def counts(Out: T.Tensor((4,), "int32")):
    T.device_entry(launch=ENTRY)
    T.red_add(Out, 0, 1)


@warpjit
def by_window(X: T.Tensor((32,), "float32"), Out: T.Tensor((32,), "float32")):
    T.device_entry(launch=ENTRY)
    lane = T.cuda.lane_id()
    T.asm("st.global.f32 [%0], %1;", outs=Out[lane : lane + 1], ins=X[lane])


@warpjit
def by_pointer(X: T.Tensor((32,), "float32")):
    T.device_entry(launch=ENTRY)
    T.asm("red.global.add.f32 [%0], 0f3f800000;", ins=X.ptr(0))


@warpjit
def through_shared(X: T.Tensor((32, 4), "float32"), Out: T.Tensor((32, 4), "float32")):
    T.device_entry(launch=ENTRY)
    tile = T.alloc_shared((32, 4), "float32", align=16)
    T.copy(tile, X, scope="warp")
    T.cuda.cta_sync()
    T.copy(Out, tile, scope="warp")


@pytest.mark.parametrize(
    ("kernel", "reads", "writes"),
    [
        (copies, {0}, {1}),
        (in_branches, {0, 1}, {1}),
        (counts, {0}, {0}),
        (by_window, {0}, {1}),
        (by_pointer, {0}, {0}),
        (through_shared, {0}, {1}),
    ],
    ids=lambda each: each.function.__name__ if hasattr(each, "function") else None,
)
def test_reads_and_writes(kernel: Any, reads: set[int], writes: set[int]) -> None:
    plan = kernel.program(kernel.specialization((), {}), resolve_target("sm_90a")).plan
    assert (set(plan.reads), set(plan.writes)) == (reads, writes)
