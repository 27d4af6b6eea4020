"""A tiled product in the language, from asynchronous copies to the store: right, quick, and its barriers are needed."""

from __future__ import annotations

import pytest
import torch

from warpjit import T, warpjit
from warpjit.errors import SimulationError
from warpjit.layout import S, TileLayout, laneid

M, N, K, BM, BN, BK, STAGES = 128, 128, 128, 64, 128, 32, 2
MMA = T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]
LOAD = T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"]
COPY = T.ptx["cp.async.cg.shared.global"]
a_shared = T.cuda.layout.mma_shared_layout("float16", 64, (STAGES * BM, BK))
b_shared = T.cuda.layout.mma_shared_layout("float16", 64, (STAGES * BN, BK))
a_load = TileLayout(S[(2, 2, 4, 8, 4) : (8, 4, 1, 4 @ laneid, 1 @ laneid)])
b_load = TileLayout(S[(8, 1, 4, 8, 4) : (4, 4, 1, 4 @ laneid, 1 @ laneid)])
a_mma = TileLayout(S[(2, 2, 2, 8, 2, 4) : (8, 4, 1, 4 @ laneid, 2, 1 @ laneid)])
b_mma = TileLayout(S[(8, 2, 8, 2, 4) : (4, 2, 4 @ laneid, 1, 1 @ laneid)])
d_mma = TileLayout(S[(2, 8, 2, 8, 4, 2) : (32, 4, 2, 4 @ laneid, 1 @ laneid, 1)])


@warpjit
def gemm(
    A: T.Tensor((M, K), "float16"),
    B: T.Tensor((N, K), "float16"),
    C: T.Tensor((M, N), "float32"),
    *,
    before: T.constexpr = True,
    after: T.constexpr = True,
    waits: T.constexpr = True,
):
    """C = A @ B.T: four warps of 32 x 64; `before` and `after`: barriers before and after a stage is read."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=(M // BM, N // BN), block=128))
    lane, warp, thread = T.cuda.lane_id(), T.cuda.warp_id(), T.cuda.thread_idx()
    row, column = T.cuda.block_idx("x") * BM, T.cuda.block_idx("y") * BN
    wm, wn = warp % 2 * 32, warp // 2 * 64
    a = T.alloc_shared((STAGES * BM, BK), "float16", layout=a_shared)
    b = T.alloc_shared((STAGES * BN, BK), "float16", layout=b_shared)
    acc = T.alloc_local((2, 8, 4), "float32")
    for x in T.unroll(64):
        acc[x // 32, x // 4 % 8, x % 4] = 0.0
    ar, br = T.alloc_local((2, 2, 4), "uint32"), T.alloc_local((8, 2, 2), "uint32")

    def load(stage, k):
        for i in T.unroll(BM * BK // 8 // 128):
            r, q = (thread + i * 128) // 4, (thread + i * 128) % 4 * 8
            COPY(a.ptr(stage * BM + r, q), A.ptr(row + r, k * BK + q), 16)
        for i in T.unroll(BN * BK // 8 // 128):
            r, q = (thread + i * 128) // 4, (thread + i * 128) % 4 * 8
            COPY(b.ptr(stage * BN + r, q), B.ptr(column + r, k * BK + q), 16)
        T.ptx["cp.async.commit_group"]()

    load(0, 0)
    for k in range(K // BK):
        if k + 1 < K // BK:
            load((k + 1) % 2, k + 1)
        else:
            T.ptx["cp.async.commit_group"]()
        if waits:
            T.ptx["cp.async.wait_group"](1)
        if before:
            T.cuda.cta_sync()
        sa, sb = k % 2 * BM + wm, k % 2 * BN + wn
        a_words = a.view("uint32").sub[sa : sa + 32, 0 : BK // 2]
        b_words = b.view("uint32").sub[sb : sb + 64, 0 : BK // 2]
        T.cuda.tile.apply(
            LOAD,
            ar.view(2, 2, 4, 8, 4, layout=a_load),
            a_words.rearrange("(m g row) (k c word) -> m k (c g) row word", g=2, row=8, c=2, word=4),
        )
        T.cuda.tile.apply(
            LOAD,
            br.view(8, 1, 4, 8, 4, layout=b_load),
            b_words.rearrange("(n row) (k c word) -> n k c row word", row=8, c=4, word=4),
        )
        d = acc.view(2, 8, 16, 8, layout=d_mma)
        T.cuda.tile.apply(MMA, d, ar.view(2, 2, 16, 8, layout=a_mma), br.view(8, 2, 8, 8, layout=b_mma), d)
        if after:
            T.cuda.cta_sync()
    for x in T.unroll(64):
        i, j, r = x // 32, x // 4 % 8, x % 4
        C[row + wm + i * 16 + lane // 4 + 8 * (r // 2), column + wn + j * 8 + 2 * (lane % 4) + r % 2] = acc[i, j, r]


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(M, K).half(), torch.randn(N, K).half(), torch.full((M, N), 7.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_product_is_right(seed):
    a, b, c = inputs()
    report = gemm.simulate(a, b, c, seed=seed)
    torch.testing.assert_close(c, a.float() @ b.float().T, rtol=1e-5, atol=1e-4)
    assert report.issued[MMA.text] == M * N * K // (16 * 8 * 16)
    assert report.ctas == 2
    if seed == 0:
        assert report.steps < 1200  # all warps of all CTAs go together


def test_seeds_do_not_change_a_bit():
    results = []
    for seed in (0, 1, 2):
        a, b, c = inputs()
        gemm.simulate(a, b, c, seed=seed)
        results.append(c)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("before", "race: the read of "),
        ("after", "race: the write of "),
        ("waits", "use of a pending copy: "),
    ],
)
def test_what_is_missing_is_found(missing, message, seed):
    a, b, c = inputs()
    with pytest.raises(SimulationError) as caught:
        gemm.simulate(a, b, c, seed=seed, **{missing: False})
    assert caught.value.findings[0].message.startswith(message)
    assert (c == 7.0).all()
