"""Mistakes that kernels of kinds nobody had thought of once brought to light, in views and fragments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import warpjit
from warpjit import T
from warpjit.layout import ComposeLayout, S, TileLayout, laneid

SWIZZLED = T.cuda.layout.mma_shared_layout("float16", 128, (8, 64))


@warpjit.warpjit
def swizzled_window(Out: T.Tensor((512,), "int32"), *, start):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    shared = T.alloc_shared((1024,), "int16", align=1024)
    for i in range(32):
        shared[lane + 32 * i] = T.int16(lane + 32 * i)
    T.cuda.cta_sync()
    view = shared[start : start + 512].view(8, 64, layout=SWIZZLED)
    for i in range(16):
        index = lane + 32 * i
        Out[index] = view[index // 64, index % 64]


def test_a_swizzled_view_of_a_window_has_its_own_swizzle(run: Callable[..., None], device: str) -> None:
    out = torch.zeros(512, dtype=torch.int32, device=device)
    run(swizzled_window, out, start=512)
    np.testing.assert_array_equal(out.cpu().numpy(), 512 + SWIZZLED.enumerate((8, 64))["m"].reshape(-1))


def test_a_swizzled_view_within_a_period_is_refused() -> None:
    with pytest.raises(warpjit.TraceError) as caught:
        swizzled_window(torch.zeros(512, dtype=torch.int32), start=64)
    (finding,) = caught.value.findings
    assert finding.message == (
        "view of shared: expected a start at a multiple of the swizzle's period, 512 elements, but got 64"
    )
    assert finding.loc.line == swizzled_window.function.__code__.co_firstlineno + 8


# Registers 0 to 3 of a fragment as the swizzle of four registers has them: it exchanges two pairs.
A_SWIZZLED = ComposeLayout(0, 1, 1, TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ laneid)]))
D = TileLayout(S[(1, 1, 2, 8, 4, 2) : (4, 4, 2, 4 @ laneid, 1 @ laneid, 1)])
B = TileLayout(S[(1, 1, 8, 2, 4) : (2, 2, 4 @ laneid, 1, 1 @ laneid)])


@warpjit.warpjit
def swizzled_registers(A: T.Tensor((16, 8), "uint32"), Out: T.Tensor((16, 8), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    a = T.alloc_local((8,), "uint32")
    b = T.alloc_local((2,), "uint32")
    d = T.alloc_local((4,), "float32")
    for i, place in enumerate((4, 5, 7, 6)):
        a[place] = A[lane // 4 + 8 * (i % 2), lane % 4 + 4 * (i // 2)]
    for i in range(2):
        b[i] = T.uint32(0x3C003C00)  # two ones
    T.cuda.tile.apply(
        T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"],
        d.view(1, 1, 16, 8, layout=D),
        a.sub[4:8].view(1, 1, 16, 8, layout=A_SWIZZLED),
        b.view(1, 1, 8, 8, layout=B),
        0.0,
        scope="warp",
    )
    for i in range(4):
        Out[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2] = d[i]


def test_a_swizzle_of_registers_keeps_its_start(run: Callable[..., None], device: str) -> None:
    a = torch.arange(256, device=device).reshape(16, 16).to(torch.float16)
    out = torch.zeros(16, 8, device=device)
    run(swizzled_registers, a.view(torch.uint32), out)
    assert out.tolist() == a.float().sum(1, keepdim=True).expand(16, 8).tolist()


@warpjit.warpjit
def column(A: T.Tensor(None, "int32"), Out: T.Tensor((8,), "int32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
    flat = A.rearrange("a b -> (a b)")
    for i in range(8):
        Out[i] = flat[i]


@pytest.mark.parametrize("axis", [0, 1])
def test_an_axis_of_one_element_merges_with_any_other(run: Callable[..., None], device: str, axis: int) -> None:
    whole = torch.arange(64, dtype=torch.int32, device=device).view(8, 8)
    part = whole[:, 2:3] if axis else whole.T[3:4]
    out = torch.zeros(8, dtype=torch.int32, device=device)
    run(column, part, out)
    assert out.tolist() == part.reshape(-1).tolist()
