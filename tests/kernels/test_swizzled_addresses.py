"""Where elements of swizzled tensors lie, for indices of every kind: the bytes are looked at through `storage`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from both import assert_same_bits

from warpjit import T, warpjit
from warpjit.layout import ComposeLayout, S, TileLayout, mma_shared_layout

SHAPE = (3, 32, 64)


@warpjit
def boxes(Out, stage: T.int32, row: T.int32, column: T.int32, *, layout, how):
    """Numbers the elements of an 8 x 16 box of a stage, through a slice or through indices, and dumps the memory."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    ring = T.alloc_shared(SHAPE, "int16", layout=layout)
    flat, out = ring.storage.view("int64"), Out.view("int64")  # four elements at once
    for i in range(flat.shape[0] // 32):
        flat[32 * i + lane] = -1
    T.cuda.warp_sync()
    for i in range(4):
        r, c = lane // 4, 4 * (lane % 4) + i
        if how == "slices":
            ring.sub[stage].sub[row : row + 8, column : column + 16][r, c] = T.int16(16 * r + c)
        elif how == "aligned slices":
            ring.sub[stage].sub[8 * row : 8 * row + 8, 16 * column : 16 * column + 16][r, c] = T.int16(16 * r + c)
        elif how == "indices":
            ring[stage, row + r, column + c] = T.int16(16 * r + c)
        else:
            ring[stage, (row + r) % 32, (column + c - 64) % 64] = T.int16(16 * r + c)
    T.cuda.warp_sync()
    for i in range(flat.shape[0] // 32):
        out[32 * i + lane] = flat[32 * i + lane]


LAYOUTS = {
    "32 bytes": mma_shared_layout(16, 32, SHAPE),
    "64 bytes": mma_shared_layout(16, 64, SHAPE),
    "128 bytes": mma_shared_layout(16, 128, SHAPE),
    "other way": ComposeLayout(2, 2, 4, TileLayout(S[SHAPE]), swizzle_inner=False),
    "single elements": ComposeLayout(0, 3, 5, TileLayout(S[SHAPE])),
    "padded rows": ComposeLayout(3, 3, 3, TileLayout(S[SHAPE : (32 * 72, 72, 1)])),
}
HOW = {"slices": (2, 5, 7), "aligned slices": (1, 3, 2), "indices": (2, 17, 9), "wrapping": (0, 30, 60)}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", LAYOUTS)
def test_elements_lie_where_the_layout_says(device, run, name, how):
    layout, (stage, row, column) = LAYOUTS[name], HOW[how]
    if how == "slices" and name in ("32 bytes", "64 bytes"):
        column = 0  # a start that is no multiple of the length would need one stride over all columns
        how = "indices"
    out = torch.full((layout.span("m"),), 7, dtype=torch.int16, device=device)
    run(boxes, out, stage, row, column, layout=layout, how=how)
    scale = (8, 16) if how == "aligned slices" else (1, 1)
    r, c = np.divmod(np.arange(128), 16)
    places = layout.enumerate(SHAPE)["m"]
    expected = np.full(layout.span("m"), -1, np.int16)
    expected[places[stage, (row * scale[0] + r) % 32, (column * scale[1] + c) % 64]] = np.arange(128)
    assert_same_bits(torch.from_numpy(expected), out)


def test_a_chunk_costs_one_xor():
    """The lane's part is swizzled once; each chunk of a row is one XOR away, each group of rows a constant."""

    @warpjit
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        tile = T.alloc_shared((64, 64), "float16", layout=mma_shared_layout(16, 128, (64, 64)))
        rows = tile.view("uint32").rearrange("(g m row) (c word) -> g c m row word", m=4, row=8, word=4)
        registers = T.alloc_local((64,), "uint32")
        layout = TileLayout.from_iters(T.cuda.fragments(LOAD, "d", batch=(2, 8)).layout.shard)
        T.cuda.tile.apply(LOAD, registers.view(2, 8, 4, 8, 4, layout=layout), rows)
        for i in T.unroll(64):
            Out[i] = registers[i]

    text = kernel.source(torch.empty(64, dtype=torch.uint32, device="meta"))
    assert text.count("ldmatrix") == 16
    assert text.count(" ^ ") == 1 + 7
    assert text.count(" & ") == 1


LOAD = T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"]
