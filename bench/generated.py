"""The generated product with the reference's tiles: what `gemm` pins, and what `trace` traces.

The one place that knows how `warpjit.kernels.matmul` names its kernel and tiles. Imported where it is measured.
"""

from __future__ import annotations

import torch

from warpjit import Kernel, warpjit
from warpjit.frontend.kinds import Specialization
from warpjit.kernels.matmul import Case, Tile, gemm

TILE = Tile(m=128, n=256, k=64, warp_m=64, warp_n=64, stages=4)
"""8 warps."""
CASE = Case(TILE, multiples=(TILE.m, TILE.n, TILE.k), turned=(False, False), widths=(16, 16, 16), batched=())


def pinned(a: torch.Tensor, w: torch.Tensor, out: torch.Tensor) -> None:
    """out = a @ w.T for a (M, K), w (N, K), out (M, N), which the tiles divide."""
    gemm(a[None], w[None], out[None], (), case=CASE, epilogue=None)


def untraced() -> tuple[Kernel, Specialization]:
    """The kernel anew, and what it is traced for: a product of bfloat16."""
    kernel = warpjit(gemm.function)
    a, w, out = (torch.empty((1, 4096, 4096), dtype=torch.bfloat16, device="meta") for _ in range(3))
    return kernel, kernel.specialization((a, w, out, ()), {"case": CASE, "epilogue": None})
