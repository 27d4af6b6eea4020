"""ldmatrix and stmatrix in every form, on plain and swizzled tiles: each register is where the manual's formula says.

Each of the 48 kernels moves all matrices of every warp's rows, once for each scope (warp, warpgroup, cta) and each type
(float16 as 32-bit words, bfloat16 as elements). The other way is plain loads and stores, of four elements.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from both import assert_same_bits

from warpjit import T, warpjit
from warpjit.layout import S, SwizzleMode, TileLayout, laneid, mma_shared_layout, warpid, wid_in_wg

SCOPES = ("warp", "warpgroup", "cta")
WARPS, ROWS, COLUMNS = 8, 16, 64  # of each warp's tile
FOURS = COLUMNS // 4
MATRICES = ROWS * COLUMNS // 64
LAUNCH = T.cuda.LaunchConfig(grid=1, block=32 * WARPS)


def shared_tile(dtype, mode):
    """The tiles of all warps, one below the other."""
    shape = (WARPS * ROWS, COLUMNS)
    return T.alloc_shared(shape, dtype, layout=mma_shared_layout(dtype, mode, shape) if mode else "default")


def matrices(tile, num, scope):
    """(*group, issues, num, row, word or element): the 8 x 8 matrices, those of a chunk of 8 columns together."""
    words = tile.view("uint32") if str(tile.dtype) == "T.float16" else tile
    order = "(warp group row) (chunk word) -> warp (chunk group) row word"
    every = words.rearrange(order, warp=WARPS, row=8, chunk=COLUMNS // 8)
    atom = (MATRICES // num, num, 8, every.shape[3])
    if scope == "cta":
        return every.view(WARPS, *atom)
    if scope == "warpgroup":
        return every.view(WARPS // 4, 4, *atom).sub[T.cuda.warp_id() // 4]
    return every.sub[T.cuda.warp_id()].view(*atom)


def fragments(registers, num, scope):
    """The same axes over registers: matrix i of issue j is register num · j + i."""
    group = {"warp": (), "warpgroup": (4,), "cta": (WARPS,)}[scope]
    axis = {"warp": (), "warpgroup": (1 @ wid_in_wg,), "cta": (1 @ warpid,)}[scope]
    if str(registers.dtype) == "T.uint32":
        layout = TileLayout(S[(*group, MATRICES // num, num, 8, 4) : (*axis, num, 1, 4 @ laneid, 1 @ laneid)])
        return registers.view(*group, MATRICES // num, num, 8, 4, layout=layout)
    strides = (*axis, 2 * num, 2, 4 @ laneid, 1 @ laneid, 1)
    layout = TileLayout(S[(*group, MATRICES // num, num, 8, 4, 2) : strides])
    return registers.view(*group, MATRICES // num, num, 8, 8, layout=layout)


@warpjit
def load_matrices(half, brain, Out, *, opcode, mode, num):
    """Out[type, scope, warp, lane, register] = what ldmatrix reads."""
    T.device_entry(launch=LAUNCH)
    thread, warp, lane = T.cuda.thread_idx(), T.cuda.warp_id(), T.cuda.lane_id()
    for kind, source in enumerate((half, brain)):
        tile = shared_tile(source.dtype, mode)
        fours, given = tile.view("uint64"), source.view("uint64")
        for q in range(WARPS * ROWS * FOURS // (32 * WARPS)):
            index = thread + 32 * WARPS * q
            fours[index // FOURS, index % FOURS] = given[index // FOURS, index % FOURS]
        T.cuda.cta_sync()
        for index, scope in enumerate(SCOPES):
            registers = T.alloc_local((MATRICES,), "uint32")
            view = registers if kind == 0 else registers.view("bfloat16")
            T.cuda.tile.apply(T.ptx[opcode], fragments(view, num, scope), matrices(tile, num, scope), scope=scope)
            for r in range(MATRICES):
                Out[kind, index, warp, lane, r] = registers[r]


@warpjit
def store_matrices(In, half, brain, *, opcode, mode, num):
    """stmatrix of In[warp, lane, register] into a tile, which is then written to half[scope] and brain[scope]."""
    T.device_entry(launch=LAUNCH)
    thread, warp, lane = T.cuda.thread_idx(), T.cuda.warp_id(), T.cuda.lane_id()
    registers = T.alloc_local((MATRICES,), "uint32")
    for r in range(MATRICES):
        registers[r] = In[warp, lane, r]
    for kind, target in enumerate((half, brain)):
        view = registers if kind == 0 else registers.view("bfloat16")
        for index, scope in enumerate(SCOPES):
            tile = shared_tile(target.dtype, mode)
            T.cuda.tile.apply(T.ptx[opcode], matrices(tile, num, scope), fragments(view, num, scope), scope=scope)
            T.cuda.cta_sync()
            fours, taken = tile.view("uint64"), target.view("uint64")
            for q in range(WARPS * ROWS * FOURS // (32 * WARPS)):
                place = thread + 32 * WARPS * q
                taken[index, place // FOURS, place % FOURS] = fours[place // FOURS, place % FOURS]


def lane_map(tile: torch.Tensor, trans: bool) -> torch.Tensor:
    """(WARPS, 32, MATRICES) words of a (WARPS · ROWS, COLUMNS) tile: register i of lane l holds row l // 4, columns
    2 (l % 4) and the next, of matrix i, which .trans transposes (PTX manual, ldmatrix). Low half first."""
    codes = tile.contiguous().cpu().view(torch.int16).numpy().view(np.uint16).astype(np.uint32)
    words = np.empty((WARPS, 32, MATRICES), np.uint32)
    for warp in range(WARPS):
        for i in range(MATRICES):
            chunk, group = divmod(i, ROWS // 8)
            top = ROWS * warp + 8 * group
            matrix = codes[top : top + 8, 8 * chunk : 8 * chunk + 8]
            pairs = (matrix.T if trans else matrix).reshape(32, 2)
            words[warp, :, i] = pairs[:, 0] | pairs[:, 1] << 16
    return torch.from_numpy(words.view(np.int32))


def codes(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    """Any bit pattern at all: nothing may look at the values."""
    return torch.randint(-(2**15), 2**15, shape, dtype=torch.int16).view(dtype).to(device)


@pytest.mark.parametrize("mode", [0, 32, 64, 128])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("num", [1, 2, 4])
def test_ldmatrix_reads_what_the_manual_says(device, run, num, trans, mode):
    opcode = f"ldmatrix.sync.aligned.m8n8.x{num}{trans}.shared.b16"
    tiles = [codes((WARPS * ROWS, COLUMNS), dtype, device) for dtype in (torch.float16, torch.bfloat16)]
    out = torch.full((2, len(SCOPES), WARPS, 32, MATRICES), -1, dtype=torch.int32, device=device)
    run(load_matrices, *tiles, out, opcode=opcode, mode=SwizzleMode(mode), num=num)
    for kind, tile in enumerate(tiles):
        for scope in range(len(SCOPES)):
            assert_same_bits(lane_map(tile, bool(trans)), out[kind, scope])


@pytest.mark.parametrize("mode", [0, 32, 64, 128])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("num", [1, 2, 4])
def test_stmatrix_writes_what_the_manual_says(device, run, num, trans, mode):
    opcode = f"stmatrix.sync.aligned.m8n8.x{num}{trans}.shared.b16"
    words = torch.randint(-(2**31), 2**31 - 1, (WARPS, 32, MATRICES), dtype=torch.int32).to(device)
    shape = (len(SCOPES), WARPS * ROWS, COLUMNS)
    outs = [torch.full(shape, float("nan"), dtype=d, device=device) for d in (torch.float16, torch.bfloat16)]
    run(store_matrices, words, *outs, opcode=opcode, mode=SwizzleMode(mode), num=num)
    for out in outs:
        for tile in out:
            assert_same_bits(words, lane_map(tile, bool(trans)))
