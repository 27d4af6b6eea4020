"""Instructions that were never compared with a device: refused, unless the kernel allows them; and movmatrix."""

from __future__ import annotations

import pytest
import torch
from both import run_both

from warpjit import T, warpjit
from warpjit.errors import TraceError
from warpjit.layout import S, TileLayout, laneid

TURN = T.ptx["movmatrix.sync.aligned.m8n8.trans.b16"]
LOAD = T.ptx["ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8"]
MATRIX = TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)])


def load_bytes(A: T.Tensor((16, 16), "uint8"), Out: T.Tensor((32, 2), "uint32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    tile = T.alloc_shared((16, 16), "uint8")
    for i in range(8):
        tile[lane // 2, 8 * (lane % 2) + i] = A[lane // 2, 8 * (lane % 2) + i]
    T.cuda.cta_sync()
    words = T.alloc_local((2,), "uint32")
    LOAD(words, tile.ptr(lane % 16, 0))
    Out[lane, 0] = words[0]
    Out[lane, 1] = words[1]


def test_an_unverified_instruction_is_refused() -> None:
    with pytest.raises(TraceError) as caught:
        warpjit(load_bytes).source(target="sm_100a")
    (finding,) = caught.value.findings
    assert finding.message.startswith("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 is unverified:")
    assert "expected @warpjit(unverified=True)" in finding.message
    assert "LOAD(words, tile.ptr(lane % 16, 0))" in str(caught.value)


@pytest.mark.nvcc
def test_a_kernel_may_allow_it() -> None:
    kernel = warpjit(unverified=True)(load_bytes)
    assert LOAD.text in kernel.source(target="sm_120a")
    assert kernel.cubin(target="sm_100a")[:4] == b"\x7fELF"
    with pytest.raises(TraceError, match="needs sm_100f or sm_110f or sm_120f, or later in the family, but the target"):
        kernel.source(target="sm_90a")


def test_the_simulator_runs_it_for_a_target_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPJIT_TARGET", "sm_120a")
    octets = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    out = torch.zeros(32, 2, dtype=torch.uint32)
    warpjit(unverified=True)(load_bytes)(octets, out)
    got = out.view(torch.uint8).reshape(8, 4, 2, 4)  # column in its half, rows in fours, half, row
    assert (got == octets.reshape(4, 4, 2, 8).permute(3, 0, 2, 1)).all()


SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"


@warpjit(unverified=True)
def scaled(Out: T.Tensor((32, 2, 4), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    mma = T.ptx[SCALED]
    a, b = T.cuda.fragments(mma, "A", M=2, fill=0x38), T.cuda.fragments(mma, "B", fill=0x38)
    d = T.cuda.fragments(mma, "D", M=2)
    rows, columns = T.cuda.fragments(mma, "SFA", M=2, fill=0x7F807F7F), T.cuda.fragments(mma, "SFB", fill=0x7F7F7F82)
    T.cuda.tile.apply(mma, d, a, b, 1.0, rows, 2, 1, columns, 0, 3)
    sums = d.storage.view("float32")
    for i in T.unroll(8):
        Out[T.cuda.lane_id(), i // 4, i % 4] = sums[i]


@pytest.mark.nvcc
def test_a_product_with_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPJIT_TARGET", "sm_120a")
    out = torch.zeros(32, 2, 4)
    scaled(out)
    assert (out == 1 + 32 * 2 * 8).all()
    assert "{2, 1}" in scaled.source(target="sm_120f")
    assert scaled.cubin(target="sm_121a")[:4] == b"\x7fELF"


@warpjit
def turned(A: T.Tensor((8, 8), "float16"), Raw: T.Tensor((8, 8), "float16"), Tiled: T.Tensor((8, 8), "float16")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    words, raw, tiled = A.view("uint32"), Raw.view("uint32"), Tiled.view("uint32")
    a, d, e = T.alloc_local((1,), "uint32"), T.alloc_local((1,), "uint32"), T.alloc_local((1,), "uint32")
    a[0] = words[lane // 4, lane % 4]
    TURN(d, a)
    T.cuda.tile.apply(TURN, e.view(8, 4, layout=MATRIX), a.view(8, 4, layout=MATRIX))
    raw[lane // 4, lane % 4] = d[0]
    tiled[lane // 4, lane % 4] = e[0]


def check_turned(kernel, a, raw, tiled) -> None:
    kernel(a, raw, tiled)
    assert (raw == a.T).all() and (tiled == a.T).all()


def test_movmatrix_transposes_in_place(device: str) -> None:
    a = torch.randn(8, 8).half().to(device)
    run_both(check_turned, turned, a, torch.zeros_like(a), torch.zeros_like(a))
