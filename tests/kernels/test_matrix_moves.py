"""ldmatrix and stmatrix in every form, for every swizzle and scope: what one writes the other reads, and where each
register goes is the manual's formula."""

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits

from warpjit import T, warpjit
from warpjit.layout import S, SwizzleMode, TileLayout, laneid, mma_shared_layout, warpid, wid_in_wg

WARPS = {"warp": 1, "warpgroup": 4, "cta": 2}
MODES = (SwizzleMode.NONE, SwizzleMode.B32, SwizzleMode.B64, SwizzleMode.B128)


def columns(mode: SwizzleMode) -> int:
    """16-bit columns of a swizzle's atom; without one four chunks of eight."""
    return max(mode.row_bytes // 2, 32) if mode else 32


def shared_tile(shape, dtype, mode):
    """A shared tensor (warps * 32, columns) under a swizzle, or in rows."""
    layout = mma_shared_layout(dtype, mode, shape) if mode else "default"
    return T.alloc_shared(shape, dtype, layout=layout)


def matrices(tile, warps: int, num: int, scope: str):
    """The first `num` 8 x 8 matrices of each warp's 32 rows: chunk 0 of row groups 0 to num - 1."""
    words = tile.view("uint32")
    split = words.rearrange("(warp group row) (chunk word) -> warp chunk group row word", warp=warps, row=8, word=4)
    box = split.sub[:, 1, 0:num, :, :] if scope != "warp" else split.sub[0, 1, 0:num, :, :]
    return box


@warpjit
def load_matrices(A, Out, *, dtype, mode, num, trans, scope, warps):
    """Out[warp, lane, register] = what ldmatrix gives."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32 * warps))
    rows, width = A.shape
    thread = T.cuda.thread_idx()
    tile = shared_tile((rows, width), dtype, mode)
    for q in range(rows * width // (32 * warps)):
        index = thread + 32 * warps * q
        tile[index // width, index % width] = A[index // width, index % width]
    T.cuda.cta_sync()
    instruction = T.ptx[f"ldmatrix.sync.aligned.m8n8.x{num}{'.trans' if trans else ''}.shared.b16"]
    registers = T.alloc_local((num,), "uint32")
    group = {"warp": (), "warpgroup": (4,), "cta": (warps,)}[scope]
    view = registers.view(*group, num, 8, 4, layout=fragment_layout(scope, warps, num))
    T.cuda.tile.apply(instruction, view, matrices(tile, warps, num, scope), scope=scope)
    for r in range(num):
        Out[T.cuda.warp_id(), T.cuda.lane_id(), r] = registers[r]


@warpjit
def store_matrices(In, Out, *, dtype, mode, num, trans, scope, warps):
    """stmatrix of In[warp, lane, register] into a tile of zeros, which is then written to Out."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32 * warps))
    rows, width = Out.shape
    thread = T.cuda.thread_idx()
    tile = shared_tile((rows, width), dtype, mode)
    for q in range(rows * width // (32 * warps)):
        index = thread + 32 * warps * q
        tile[index // width, index % width] = 0.0
    T.cuda.cta_sync()
    registers = T.alloc_local((num,), "uint32")
    for r in range(num):
        registers[r] = In[T.cuda.warp_id(), T.cuda.lane_id(), r]
    instruction = T.ptx[f"stmatrix.sync.aligned.m8n8.x{num}{'.trans' if trans else ''}.shared.b16"]
    group = {"warp": (), "warpgroup": (4,), "cta": (warps,)}[scope]
    view = registers.view(*group, num, 8, 4, layout=fragment_layout(scope, warps, num))
    T.cuda.tile.apply(instruction, matrices(tile, warps, num, scope), view, scope=scope)
    T.cuda.cta_sync()
    for q in range(rows * width // (32 * warps)):
        index = thread + 32 * warps * q
        Out[index // width, index % width] = tile[index // width, index % width]


def fragment_layout(scope: str, warps: int, num: int):
    atom = S[(num, 8, 4) : (1, 4 @ laneid, 1 @ laneid)]
    if scope == "warp":
        return TileLayout(atom)
    axis, extent = (wid_in_wg, 4) if scope == "warpgroup" else (warpid, warps)
    return TileLayout(S[(extent, num, 8, 4) : (1 @ axis, 1, 4 @ laneid, 1 @ laneid)])


def fragments_of(tile: torch.Tensor, warps: int, num: int, trans: bool) -> torch.Tensor:
    """(warps, 32, num) words: register `i` of lane l is row l // 4, columns 2 (l % 4) and the next, of matrix i
    (PTX manual, ldmatrix), which is transposed first for .trans. Matrix i is rows 8 i …, columns 8 to 15."""
    words = torch.empty((warps, 32, num), dtype=torch.int32)
    raw = tile.cpu().view(torch.int16).to(torch.int32) & 0xFFFF
    for warp in range(warps):
        for i in range(num):
            matrix = raw[32 * warp + 8 * i : 32 * warp + 8 * i + 8, 8:16]
            matrix = matrix.T if trans else matrix
            for lane in range(32):
                low, high = matrix[lane // 4, 2 * (lane % 4)], matrix[lane // 4, 2 * (lane % 4) + 1]
                words[warp, lane, i] = low | (high << 16)
    return words


CASES = [(num, trans, mode) for num in (1, 2, 4) for trans in (False, True) for mode in MODES]


@pytest.mark.parametrize("scope", ["warp", "warpgroup", "cta"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_ldmatrix_reads_what_the_manual_says(device, run, dtype, scope):
    warps = WARPS[scope]
    for num, trans, mode in CASES:
        tile = torch.randn(32 * warps, columns(mode)).to(getattr(torch, dtype)).to(device)
        out = torch.full((warps, 32, num), -1, dtype=torch.int32, device=device)
        run(load_matrices, tile, out, dtype=dtype, mode=mode, num=num, trans=trans, scope=scope, warps=warps)
        assert_same_bits(fragments_of(tile, warps, num, trans), out)


@pytest.mark.parametrize("scope", ["warp", "warpgroup", "cta"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_stmatrix_writes_what_ldmatrix_reads(device, run, dtype, scope):
    warps = WARPS[scope]
    for num, trans, mode in CASES:
        words = torch.randint(-(2**31), 2**31 - 1, (warps, 32, num), dtype=torch.int32).to(device)
        out = torch.full((32 * warps, columns(mode)), float("nan"), dtype=getattr(torch, dtype), device=device)
        run(store_matrices, words, out, dtype=dtype, mode=mode, num=num, trans=trans, scope=scope, warps=warps)
        assert_same_bits(words.cpu(), fragments_of(out, warps, num, trans))
        outside = out.cpu().clone().view(torch.int16)
        for warp in range(warps):
            outside[32 * warp : 32 * warp + 8 * num, 8:16] = 0
        assert not outside.any()
