"""A product as it is really written: a ring of swizzled stages filled by tiles of cp.async, fragments loaded from a
runtime stage at a runtime depth, a result that goes through stmatrix. Its bits are those of the chain of instructions.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from both import assert_same_bits

from warpjit import SimulationError, T, warpjit
from warpjit.ir.matrix_numerics import mma_sum
from warpjit.layout import S, TileLayout, laneid

BM, BN, BK, STAGES = 32, 64, 64, 3
MMA = T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]
LOAD = T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"]
COPY = T.ptx["cp.async.cg.shared.global"]
STORE = T.ptx["stmatrix.sync.aligned.m8n8.x4.shared.b16"]
M, N, K = T.dynamic("M"), T.dynamic("N"), T.dynamic("K", multiple_of=BK)

# Two warps side by side, each 32 x 32: 2 x 4 instructions. A row of B's fragments is two n of one k.
b_load = TileLayout(S[(2, 2, 2, 8, 4) : (4, 2, 1, 4 @ laneid, 1 @ laneid)])


@warpjit
def product(
    A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float16"), *, fault=""
):
    """C = A @ B.T, rounded to float16; each CTA a tile of BM x BN."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=(T.cdiv(M, BM), T.cdiv(N, BN)), block=64))
    warp, lane, thread = T.cuda.warp_id(), T.cuda.lane_id(), T.cuda.thread_idx()
    row0, column0 = T.cuda.block_idx("x") * BM, T.cuda.block_idx("y") * BN
    a = T.alloc_shared(
        (STAGES, BM, BK), "float16", layout=T.cuda.layout.mma_shared_layout("float16", 128, (STAGES, BM, BK))
    )
    b = T.alloc_shared(
        (STAGES, BN, BK), "float16", layout=T.cuda.layout.mma_shared_layout("float16", 128, (STAGES, BN, BK))
    )
    tiles = K // BK

    def fetch(tile):
        if tile < tiles:
            stage, k = tile % STAGES, tile * BK + 8 * (thread % 8)
            for i in range(BM // 8):
                row = 8 * i + thread // 8
                copy_row(a.sub[stage, row], A, row0 + row, M, k)
            for i in range(BN // 8):
                row = 8 * i + thread // 8
                copy_row(b.sub[stage, row], B, column0 + row, N, k)
        T.ptx["cp.async.commit_group"]()

    def copy_row(target, source, row, rows, k):
        """One chunk of 16 bytes; rows beyond the matrix become zeros."""
        chunk = 8 * (thread % 8)
        inside = min(row, rows - 1)
        size = 16 if row < rows else 0
        T.cuda.tile.apply(COPY, target[chunk : chunk + 8], source[inside, k : k + 8], src_size=size)

    accumulator = T.cuda.fragments(MMA, "D", M=2, N=4, fill=0.0)
    for tile in range(STAGES - 1):
        fetch(tile)
    for tile in range(tiles):
        T.ptx["cp.async.wait_group"](STAGES - 1 if fault == "wait" else STAGES - 2)
        if fault != "barrier":
            T.cuda.cta_sync()
        stage = tile % STAGES
        for k in range(BK // 16):
            left = T.cuda.fragments(MMA, "A", M=2)
            right = T.alloc_local((8,), "uint32")
            a_words = a.sub[stage, :, 16 * k : 16 * k + 16].view("uint32")
            b_words = b.sub[stage, 32 * warp : 32 * warp + 32, 16 * k : 16 * k + 16].view("uint32")
            T.cuda.tile.apply(
                LOAD,
                left.storage.view("uint32").view(2, 4, 8, 4, layout=T.cuda.fragments(LOAD, "d", batch=(2,)).layout),
                a_words.rearrange("(m half row) (chunk word) -> m (chunk half) row word", half=2, row=8, chunk=2),
            )
            T.cuda.tile.apply(
                LOAD,
                right.view(2, 4, 8, 4, layout=b_load),
                b_words.rearrange("(pair n row) (chunk word) -> pair (n chunk) row word", n=2, row=8, chunk=2),
            )
            T.cuda.tile.apply(MMA, accumulator, left, right.view(4, 1, 8, 8, layout=b_fragment), accumulator)
        T.cuda.cta_sync()
        fetch(tile + STAGES - 1)
    write(accumulator, a.storage, C, row0, column0, warp, lane)


b_fragment = TileLayout(S[(4, 1, 8, 2, 4) : (2, 2, 4 @ laneid, 1, 1 @ laneid)])


def write(accumulator, storage, C, row0, column0, warp, lane):
    """Round, transpose through shared memory by stmatrix, and store what lies inside of C."""
    T.cuda.cta_sync()
    halves = T.alloc_local((32,), "float16")
    sums = accumulator.storage.view("float32")
    for i in range(32):
        halves[i] = T.float16(sums[i])
    box = storage.view("float16")[0 : 2 * 32 * 32].view(2, 32, 32)
    words = box.sub[warp].view("uint32")
    for m in T.unroll(2):
        T.cuda.tile.apply(
            STORE,
            words.sub[16 * m : 16 * m + 16].rearrange(
                "(half row) (pair n word) -> pair (n half) row word", half=2, pair=2, n=2
            ),
            halves.view("uint32").sub[8 * m : 8 * m + 8].view(2, 4, 8, 4, layout=d_rows),
        )
    T.cuda.warp_sync()
    for row in range(32):
        if row0 + row < M:
            if column0 + 32 * warp + lane < N:
                C[row0 + row, column0 + 32 * warp + lane] = box[warp, row, lane]


# Register 2 n + half of the packed sums: rows l // 4 + 8 half, columns 2 (l % 4) and the next of instruction n.
d_rows = TileLayout(S[(2, 2, 2, 8, 4) : (4, 2, 1, 4 @ laneid, 1 @ laneid)])


def expected(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    left, right = (x.cpu().view(torch.int16).numpy().view(np.uint16) for x in (a, b))
    result = np.zeros((len(left), len(right)), np.float32)
    for k in range(0, left.shape[1], 16):
        result = mma_sum(left[:, k : k + 16], right[:, k : k + 16], result, "f16", "f16", "f32")
    return torch.from_numpy(result.astype(np.float16))


@pytest.mark.parametrize("shape", [(32, 64, 64), (64, 64, 320), (45, 71, 192)])
def test_a_pipelined_product(device, run, shape):
    m, n, k = shape
    a, b = torch.randn(m, k).half().to(device), torch.randn(n, k).half().to(device)
    c = torch.full((m, n), float("nan"), dtype=torch.float16, device=device)
    run(product, a, b, c)
    assert_same_bits(expected(a, b), c)


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_of_warps(seed):
    a, b = torch.randn(32, 256).half(), torch.randn(64, 256).half()
    c = torch.full((32, 64), float("nan"), dtype=torch.float16)
    product.simulate(a, b, c, seed=seed)
    assert_same_bits(expected(a, b), c)


@pytest.mark.parametrize("fault", ["wait", "barrier"])
def test_a_stage_that_is_read_too_early(fault):
    c = torch.zeros(32, 64, dtype=torch.float16)
    with pytest.raises(SimulationError) as caught:
        product(torch.randn(32, 256).half(), torch.randn(64, 256).half(), c, fault=fault)
    finding = caught.value.findings[0]
    assert finding.message.startswith({"wait": "use of a pending copy: ", "barrier": "race: "}[fault])
    assert finding.loc.frames[-1].text.strip() == "T.cuda.tile.apply("
    assert not c.any()
