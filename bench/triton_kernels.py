"""Triton's kernels (it reads its kernels' text from a file). Imported where Triton is measured, and nowhere else.

matmul  C = A @ W.T, in the plain way: one block of C a program, pointers, no tensor maps
dot     one 64 x 64 x 64 product: what the first call of a process costs
empty   nothing: what a launch costs
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def matmul(
    a_ptr,
    w_ptr,
    c_ptr,
    m,
    n,
    k,
    a_stride,
    w_stride,
    c_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    # Programs run through GROUP rows of blocks column by column, so that those at work share operands in the L2.
    blocks_m, blocks_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    program = tl.program_id(0)
    first = program // (GROUP * blocks_n) * GROUP
    rows = min(blocks_m - first, GROUP)
    block_m = first + program % (GROUP * blocks_n) % rows
    block_n = program % (GROUP * blocks_n) // rows

    # Rows beyond the edge wrap around: they are read, and not written.
    row = (block_m * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    column = (block_n * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    inner = tl.arange(0, BLOCK_K)
    a = a_ptr + row[:, None] * a_stride + inner[None, :]
    w = w_ptr + column[None, :] * w_stride + inner[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a_block = tl.load(a, mask=inner[None, :] < left, other=0.0)
        w_block = tl.load(w, mask=inner[:, None] < left, other=0.0)
        total = tl.dot(a_block, w_block, total)
        a += BLOCK_K
        w += BLOCK_K

    row = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c = c_ptr + row[:, None] * c_stride + column[None, :]
    tl.store(c, total.to(c_ptr.dtype.element_ty), mask=(row[:, None] < m) & (column[None, :] < n))


@triton.jit
def dot(a_ptr, b_ptr, c_ptr):
    row, column = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    a, b = tl.load(a_ptr + row * 64 + column), tl.load(b_ptr + row * 64 + column)
    tl.store(c_ptr + row * 64 + column, tl.dot(a, b))


@triton.jit
def empty(a, b, c, m, n):
    pass
