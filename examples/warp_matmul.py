"""Out = A @ B.T of one tile with a warp of 32 threads: ldmatrix brings fragments, mma.sync multiplies them.

Runs on the GPU if there is one (compiled), else in the simulator, from the same source.
"""

import torch

from warpjit import T, warpjit
from warpjit.layout import S, TileLayout, laneid

a_load_layout = TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])
b_load_layout = TileLayout(S[(2, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])
a_mma_layout = TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ laneid)])
b_mma_layout = TileLayout(S[(1, 1, 8, 2, 4) : (2, 2, 4 @ laneid, 1, 1 @ laneid)])
d_mma_layout = TileLayout(S[(1, 1, 2, 8, 4, 2) : (4, 4, 2, 4 @ laneid, 1 @ laneid, 1)])


@warpjit
def warp_matmul(
    A: T.Tensor((16, 16), "float16"),
    B: T.Tensor((8, 16), "float16"),
    Out: T.Tensor((16, 8), "float32"),
):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    a = T.alloc_shared((16, 16), "float16", layout="default", align=16)
    b = T.alloc_shared((8, 16), "float16", layout="default", align=16)
    for q in range(8):
        index = lane + 32 * q
        a[index // 16, index % 16] = A[index // 16, index % 16]
    for q in range(4):
        index = lane + 32 * q
        b[index // 16, index % 16] = B[index // 16, index % 16]
    T.cuda.cta_sync()
    a_words = a.view("uint32").rearrange(
        "(group row) (chunk word) -> (chunk group) row word", group=2, chunk=2, word=4
    )
    b_words = b.view("uint32").rearrange("row (chunk word) -> chunk row word", chunk=2)
    ar = T.alloc_local((4,), "uint32", layout="default")
    br = T.alloc_local((2,), "uint32", layout="default")
    dr = T.alloc_local((4,), "float32", layout="default")
    T.cuda.tile.apply(
        T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"],
        ar.view(4, 8, 4, layout=a_load_layout), a_words, scope="warp",
    )
    T.cuda.tile.apply(
        T.ptx["ldmatrix.sync.aligned.m8n8.x2.shared.b16"],
        br.view(2, 8, 4, layout=b_load_layout), b_words, scope="warp",
    )
    T.cuda.tile.apply(
        T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"],
        dr.view(1, 1, 16, 8, layout=d_mma_layout),
        ar.view(1, 1, 16, 8, layout=a_mma_layout),
        br.view(1, 1, 8, 8, layout=b_mma_layout),
        T.float32(0), scope="warp",
    )
    for r in range(4):
        Out[lane // 4 + 8 * (r // 2), 2 * (lane % 4) + r % 2] = dr[r]


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    a = torch.randn((16, 16), dtype=torch.float16, device=device)
    b = torch.randn((8, 16), dtype=torch.float16, device=device)
    out = torch.full((16, 8), float("nan"), dtype=torch.float32, device=device)

    warp_matmul(a, b, out)

    reference = a.float() @ b.float().T
    where = f"compiled, on {torch.cuda.get_device_name()}" if device == "cuda" else "in the simulator, on the CPU"
    print(f"Out = A @ B.T, {tuple(a.shape)} x {tuple(b.T.shape)}, float16 with float32 accumulation, {where}")
    print("Out[:2] =")
    for row, expected in zip(out[:2].tolist(), reference[:2].tolist(), strict=True):
        print("  warpjit  ", " ".join(f"{value:9.5f}" for value in row))
        print("  reference", " ".join(f"{value:9.5f}" for value in expected))
    error = (out - reference).abs().max().item()
    print(f"largest error against float32: {error:.2e} (allowed: 2e-4 + 2e-4 * |reference|)")
    torch.testing.assert_close(out, reference, rtol=2e-4, atol=2e-4)


if __name__ == "__main__":
    main()
