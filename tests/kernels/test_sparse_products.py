"""Products of a sparse and a dense matrix by `T.cuda.tile.apply`, with repeats along all axes, and by the raw form."""

from __future__ import annotations

import pytest
import torch

from warpjit import T, warpjit
from warpjit.errors import SimulationError, TraceError
from warpjit.isa import sparse

TEXT = "mma.sp::ordered_metadata.sync.aligned."
F16 = TEXT + "m16n8k32.row.col.f32.f16.f16.f32"
BF16 = TEXT + "m16n8k16.row.col.f32.bf16.bf16.f32"
TF32 = TEXT + "m16n8k16.row.col.f32.tf32.tf32.f32"
S8 = TEXT + "m16n8k64.row.col.s32.s8.s8.s32"
E4M3 = TEXT + "m16n8k64.row.col.f32.e4m3.e4m3.f32"
M, N, K = 2, 2, 3
"""Instructions along each axis."""


@warpjit
def product(A, Meta, B, Out, *, text, selector):
    """Out (16 M, 8 N) = A @ B.T: A (16 M, words) stored, Meta (M, K, 32), B (8 N, words), in 32-bit words."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    mma = T.ptx[text]
    a, b = T.cuda.fragments(mma, "A", M=M, K=K), T.cuda.fragments(mma, "B", N=N, K=K)
    e, d = T.cuda.fragments(mma, "E", M=M, K=K), T.cuda.fragments(mma, "D", M=M, N=N)
    left, right = a.storage.view("uint32"), b.storage.view("uint32")
    for i in T.unroll(M * K):
        count = A.shape[1] // (4 * K) * 2
        for r in T.unroll(count):
            row = 16 * (i // K) + lane // 4 + 8 * (r % 2)
            left[count * i + r] = A[row, 2 * count * (i % K) + lane % 4 + 4 * (r // 2)]
        e.storage.view("uint32")[i] = Meta[i // K, i % K, lane]
    for i in T.unroll(N * K):
        count = B.shape[1] // (4 * K)
        for r in T.unroll(count):
            right[count * i + r] = B[8 * (i // K) + lane // 4, 4 * count * (i % K) + lane % 4 + 4 * r]
    T.cuda.tile.apply(mma, d, a, b, T.cast(0, Out.dtype), e, selector)
    sums = d.storage.view(Out.dtype)
    for i in T.unroll(M * N):
        for r in T.unroll(4):
            Out[16 * (i // N) + lane // 4 + 8 * (r // 2), 8 * (i % N) + 2 * (lane % 4) + r % 2] = sums[4 * i + r]


CASES = [(F16, "float16", 1), (BF16, "bfloat16", 3), (TF32, "float32", 0), (S8, "int8", 0), (E4M3, "float8_e4m3fn", 0)]


@pytest.mark.parametrize(("text", "kind", "selector"), CASES, ids=[case[1] for case in CASES])
def test_products_with_repeats(text: str, kind: str, selector: int, device: str, both) -> None:
    dtype = getattr(torch, kind)
    depth = K * int(text.split("n8k")[1].split(".")[0])
    torch.manual_seed(1)
    dense = sparse.prune(torch.randint(-3, 4, (16 * M, depth)).to(dtype), text)
    right = torch.randint(-3, 4, (8 * N, depth)).to(dtype)
    packed = sparse.pack(dense, text)
    exact = dense.double() @ right.double().T if dtype.is_floating_point else (dense.long() @ right.long().T).double()
    out = torch.zeros(16 * M, 8 * N, dtype=torch.int32 if kind == "int8" else torch.float32)
    words = [each.view(torch.int32).view(torch.uint32).to(device) for each in (packed.values, right)]
    meta, out = packed.metadata.to(device), out.to(device)
    both(product, words[0], meta, words[1], out, text=text, selector=selector)
    assert (out.cpu().double() == exact).all()


def test_metadata_whose_effect_is_undefined_is_found() -> None:
    words = torch.zeros(16 * M, K * 8, dtype=torch.uint32), torch.zeros(8 * N, K * 16, dtype=torch.uint32)
    meta, out = torch.zeros(M, K, 32, dtype=torch.uint32), torch.zeros(16 * M, 8 * N)
    with pytest.raises(SimulationError) as caught:
        product(words[0], meta, words[1], out, text=F16, selector=0)
    assert "metadata of row 0, group 0: expected two different places, the lower one first" in str(caught.value)
    assert "T.cuda.tile.apply(mma, d, a, b" in str(caught.value)


def test_the_selector_must_be_one_of_the_instructions() -> None:
    specs = [T.Tensor((16 * M, K * 8), "uint32"), T.Tensor((M, K, 32), "uint32"), T.Tensor((8 * N, K * 16), "uint32")]
    out = T.Tensor((16 * M, 8 * N), "float32")
    with pytest.raises(TraceError, match="operand selector: expected 0 or 1 but got 2"):
        product.source(*specs, out, text=F16, selector=2)


@warpjit
def by_name(Out: T.Tensor((32,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    mma = T.ptx[F16]
    a, b = T.cuda.fragments(mma, "A", fill=0), T.cuda.fragments(mma, "B", fill=0)
    e, d = T.cuda.fragments(mma, "E", fill=0x44444444), T.cuda.fragments(mma, "D")
    T.cuda.tile.apply(mma, d, a, b, 1.5, e, selector=1)
    Out[T.cuda.lane_id()] = d.regs[0]


def test_the_selector_may_be_given_by_name(device: str) -> None:
    out = torch.zeros(32, device=device)
    by_name(out)
    assert (out == 1.5).all()
