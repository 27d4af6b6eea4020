"""The generated product with the reference's tiles: what `gemm` pins, and what `trace` traces.

The one place that knows how `warpjit.kernels` names the kernel and its tiles. Imported where it is measured.
"""

from __future__ import annotations

import torch

from warpjit import Kernel
from warpjit.frontend.kinds import Specialization
from warpjit.kernels.gemm import Case, Tile, gemm
from warpjit.kernels.matmul import matmul

TILE = Tile(m=128, n=256, k=64, warp_m=64, warp_n=64, stages=4)
"""8 warps."""
SIZE = 4096


def pinned(a: torch.Tensor, w: torch.Tensor, out: torch.Tensor) -> None:
    """out = a @ w.T for a (M, K), w (N, K), out (M, N), by these tiles whatever the size."""
    matmul(a, w.t(), out=out, tile=TILE)


def untraced() -> tuple[Kernel, Specialization]:
    """The kernel anew, and what it is traced for: a product of bfloat16 that the tiles divide."""
    case = Case(TILE, (TILE.m, TILE.n, TILE.k), (False, False), (16, 16, 16), False, ())
    # Without its cache: each call decorates the function anew.
    kernel: Kernel = gemm.__wrapped__(case)
    a, w, out = (torch.empty((SIZE, SIZE), dtype=torch.bfloat16, device="meta") for _ in range(3))
    return kernel, kernel.specialization((a, w, out, ()), {"epilogue": None})
