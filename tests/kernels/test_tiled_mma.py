"""mma.sync over tiles of instructions: every tiling, depth, type and form of C, bit for bit.

The expected bits are the chain of one-sum products that the hardware computes, K innermost; on the GPU the device
must give them as well. Inputs are normal, spread over many exponents, special (NaN, infinities, zeros of both signs,
subnormals) and nearly cancelling.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from both import assert_same_bits

from warpjit import T, warpjit
from warpjit.ir.matrix_numerics import mma_sum

TILINGS = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 1, 3), (2, 2, 1), (2, 1, 3), (4, 2, 2), (4, 2, 3)]
FORMS = ["literal", "scalar", "tensor", "in place"]
NUMPY = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
BATCH = 2


@warpjit
def products(A, B, C, D, value: T.float32, *, tiling, depth, kind, form):
    """D[b] = A[b] @ B[b].T + C for each of two batches: one warp, fragments read and written element by element."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    M, N, K = tiling
    lane = T.cuda.lane_id()
    instruction = T.ptx[f"mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32"]
    words = depth // 2
    a = T.cuda.fragments(instruction, "A", M=M, K=K, batch=(BATCH,))
    b = T.cuda.fragments(instruction, "B", N=N, K=K, batch=(BATCH,))
    c = T.cuda.fragments(instruction, "C", M=M, N=N, batch=(BATCH,))
    d = T.cuda.fragments(instruction, "D", M=M, N=N, batch=(BATCH,)) if form != "in place" else c
    aw, bw = A.view("uint32"), B.view("uint32")
    ar, br, cr = registers_of(a), registers_of(b), registers_of(c)
    a_count, b_count = words // 2, words // 4
    for batch in T.unroll(BATCH):
        for m in T.unroll(M):
            for k in T.unroll(K):
                for r in T.unroll(a_count):
                    row, word = lane // 4 + 8 * (r % 2), lane % 4 + 4 * (r // 2)
                    ar[((batch * M + m) * K + k) * a_count + r] = aw[batch, 16 * m + row, words * k + word]
        for n in T.unroll(N):
            for k in T.unroll(K):
                for r in T.unroll(b_count):
                    word = lane % 4 + 4 * r
                    br[((batch * N + n) * K + k) * b_count + r] = bw[batch, 8 * n + lane // 4, words * k + word]
        for m in T.unroll(M):
            for n in T.unroll(N):
                for r in T.unroll(4):
                    row, column = lane // 4 + 8 * (r // 2), 2 * (lane % 4) + r % 2
                    cr[((batch * M + m) * N + n) * 4 + r] = C[batch, 16 * m + row, 8 * n + column]
    if form == "literal":
        T.cuda.tile.apply(instruction, d, a, b, 0.5, scope="warp")
    elif form == "scalar":
        T.cuda.tile.apply(instruction, d, a, b, value, scope="warp")
    else:
        T.cuda.tile.apply(instruction, d, a, b, c, scope="warp")
    dr = registers_of(d)
    for batch in T.unroll(BATCH):
        for m in T.unroll(M):
            for n in T.unroll(N):
                for r in T.unroll(4):
                    row, column = lane // 4 + 8 * (r // 2), 2 * (lane % 4) + r % 2
                    D[batch, 16 * m + row, 8 * n + column] = dr[((batch * M + m) * N + n) * 4 + r]


def registers_of(fragment):
    """A fragment's registers in one row, by number."""
    return fragment.storage.view("uint32" if fragment.dtype == T.uint32 else "float32")


def inputs(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, style: str) -> np.ndarray:
    normal = rng.standard_normal(shape)
    if style == "spread":
        normal = normal * 2.0 ** rng.integers(-12, 12, shape)
    if style == "bits":
        return rng.integers(0, 1 << 16, shape, dtype=np.uint16).view(dtype)
    values = normal.astype(np.float32).astype(dtype)
    if style == "special":
        specials = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 65504.0], np.float32).astype(dtype)
        chosen = rng.random(shape) < 0.04
        values[chosen] = specials[rng.integers(0, len(specials), int(chosen.sum()))]
    if style == "cancelling":
        half = shape[-1] // 2
        values[..., half:] = values[..., :half]
    return values


def expected(a: np.ndarray, b: np.ndarray, c: np.ndarray, tiling: tuple[int, int, int], depth: int, kind: str):
    """The chain over K of one instruction's sum for each 16 x 8 tile."""
    result = c
    for k in range(tiling[2]):
        part = slice(depth * k, depth * (k + 1))
        result = mma_sum(a[..., part], b[..., part], result, kind, kind, "f32")
    return result


def tensor(array: np.ndarray, device: str) -> torch.Tensor:
    if array.dtype == NUMPY["bfloat16"]:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16).to(device)
    return torch.from_numpy(array.copy()).to(device)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("tiling", TILINGS, ids=lambda t: "x".join(map(str, t)))
def test_every_tiling_gives_the_hardware_bits(device, run, tiling, depth, dtype, form):
    rng = np.random.default_rng([*tiling, depth, FORMS.index(form)])
    M, N, K = tiling
    kind = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    for style in ("normal", "spread", "special", "cancelling", "bits"):
        a = inputs(rng, (BATCH, 16 * M, depth * K), NUMPY[dtype], style)
        b = inputs(rng, (BATCH, 8 * N, depth * K), NUMPY[dtype], style)
        if style == "cancelling":
            b[..., b.shape[-1] // 2 :] = -b[..., b.shape[-1] // 2 :]
        c = inputs(rng, (BATCH, 16 * M, 8 * N), np.dtype(np.float32), style if style != "bits" else "spread")
        c = {"literal": np.full_like(c, 0.5), "scalar": np.full_like(c, -1.25)}.get(form, c)
        given = [tensor(x, device) for x in (a, b, c)]
        out = torch.full((BATCH, 16 * M, 8 * N), float("nan"), device=device)
        run(products, *given, out, -1.25, tiling=tiling, depth=depth, kind=kind, form=form)
        assert_same_bits(torch.from_numpy(expected(a, b, c, tiling, depth, kind)), out)
