"""mma.sync over tiles of instructions: every tiling, depth, type and form of C, bit for bit.

The expected bits are the chain of one-sum products that the hardware computes, K innermost; on the GPU the device must
give them as well. Inputs reach every rule of that sum: many exponents, NaN, infinities, subnormals, zeros of both
signs, cancellation, any bit pattern. Registers are filled and read lane by lane; which elements a lane holds stands
here once more, as the manual's formulas.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import torch
from both import assert_same_bits
from mma_model import INPUTS, make

from warpjit import T, warpjit
from warpjit.ir.matrix_numerics import mma_sum
from warpjit.layout import S, TileLayout, laneid

TILINGS = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 1, 3), (2, 2, 1), (2, 1, 3), (4, 2, 2), (4, 2, 3)]
FORMS = ("literal", "scalar", "tensor", "in place")
VALUE = {"literal": 0.5, "scalar": -1.25}
LANE, WORD = np.arange(32)[:, None], np.arange(4)[None, :]


def opcode(depth: int, kind: str) -> str:
    return f"mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32"


@warpjit
def products(A, B, C, Out, value: T.float32, *, tiling, depth, kind):
    """Out[form] = A @ B.T + C for the four forms of C; a CTA for each set of inputs. Tensors hold registers by lane."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=A.shape[0], block=32))
    M, N, K = tiling
    case, lane = T.cuda.block_idx(), T.cuda.lane_id()
    mma = T.ptx[opcode(depth, kind)]
    a = loaded(T.cuda.fragments(mma, "A", M=M, K=K), A, case, lane)
    b = loaded(T.cuda.fragments(mma, "B", N=N, K=K), B, case, lane)
    for index, form in enumerate(FORMS):
        d = T.cuda.fragments(mma, "D", M=M, N=N)
        if form == "in place":
            c = loaded(d, C, case, lane)
        elif form == "tensor":
            c = loaded(T.cuda.fragments(mma, "C", M=M, N=N), C, case, lane)
        else:
            c = 0.5 if form == "literal" else value
        T.cuda.tile.apply(mma, d, a, b, c, scope="warp")
        registers = d.storage.view("float32")
        for r in T.unroll(Out.shape[3]):
            Out[case, index, lane, r] = registers[r]


def loaded(fragment, source, case, lane):
    """The fragment, with each lane's registers from `source`."""
    registers = fragment.storage.view(str(fragment.dtype).removeprefix("T."))
    for r in T.unroll(source.shape[2]):
        registers[r] = source[case, lane, r]
    return fragment


# ---- what a lane holds (PTX manual, "Matrix Fragments for mma.m16n8k16") ------------------------------------------


def left_registers(a: np.ndarray, depth: int) -> np.ndarray:
    """(…, 16 M, depth K) codes to (…, 32, M K depth / 4) words: row l // 4 + 8 (r % 2), word l % 4 + 4 (r // 2)."""
    words = np.ascontiguousarray(a).view(np.uint32)
    r = np.arange(depth // 4)[None, :]
    return registers(words, 16, depth // 2, LANE // 4 + 8 * (r % 2), LANE % 4 + 4 * (r // 2))


def right_registers(b: np.ndarray, depth: int) -> np.ndarray:
    """(…, 8 N, depth K) codes to (…, 32, N K depth / 8) words: row l // 4, word l % 4 + 4 r."""
    words = np.ascontiguousarray(b).view(np.uint32)
    r = np.arange(depth // 8)[None, :]
    return registers(words, 8, depth // 2, LANE // 4 + 0 * r, LANE % 4 + 4 * r)


def sum_registers(c: np.ndarray) -> np.ndarray:
    """(…, 16 M, 8 N) to (…, 32, 4 M N): row l // 4 + 8 (r // 2), column 2 (l % 4) + r % 2."""
    return registers(c, 16, 8, LANE // 4 + 8 * (WORD // 2), 2 * (LANE % 4) + WORD % 2)


def registers(words: np.ndarray, rows: int, columns: int, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """The registers of each lane, tile by tile in row-major order."""
    tiles = [
        words[..., down + row, right + column]
        for down in range(0, words.shape[-2], rows)
        for right in range(0, words.shape[-1], columns)
    ]
    return np.concatenate(tiles, axis=-1)


def chained(a: np.ndarray, b: np.ndarray, c: np.ndarray, depth: int, kind: str) -> np.ndarray:
    """One instruction's sum after the other along K, for all tiles at once."""
    result = c
    for k in range(0, a.shape[-1], depth):
        result = mma_sum(a[..., k : k + depth], b[..., k : k + depth], result, kind, kind, "f32")
    return result


def tensor(array: np.ndarray, device: str) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def inputs(kind: str, rows: int, columns: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and C of every kind of input, as codes and float32."""
    made = [make(name, kind, "f32", (2, rows, columns, length)) for name in INPUTS]
    a, b, c = (np.concatenate(each) for each in zip(*made, strict=True))
    return a, b, c.view(np.float32)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("tiling", TILINGS, ids=lambda t: "x".join(map(str, t)))
def test_every_tiling_gives_the_hardware_bits(device, run, tiling, depth, kind):
    M, N, K = tiling
    a, b, c = inputs(kind, 16 * M, 8 * N, depth * K)
    given = [tensor(x, device) for x in (left_registers(a, depth), right_registers(b, depth), sum_registers(c))]
    out = torch.full((len(a), len(FORMS), 32, 4 * M * N), float("nan"), device=device)
    run(products, *given, out, VALUE["scalar"], tiling=tiling, depth=depth, kind=kind)
    for index, form in enumerate(FORMS):
        start = np.full_like(c, VALUE[form]) if form in VALUE else c
        expected = sum_registers(chained(a, b, start, depth, kind))
        assert_same_bits(torch.from_numpy(expected), out[:, index])


@warpjit
def batched(A, B, Out, *, batch, shared):
    """Out[b, m] = Σ over k of A[b, m, k] @ B[b, k].T with batch axes in front; `shared`: every batch has one A."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    mma = T.ptx[opcode(8, "f16")]
    a = loaded(T.cuda.fragments(mma, "A", M=2, K=2, batch=() if shared else batch), A, 0, lane)
    if shared:
        strides = (0,) * len(batch) + (4, 2, 1, 4 @ laneid, 1 @ laneid)
        layout = TileLayout(S[(*batch, 2, 2, 2, 8, 4) : strides])
        a = a.storage.view("uint32").view(*batch, 2, 2, 16, 4, layout=layout)
    b = loaded(T.cuda.fragments(mma, "B", K=2, batch=batch), B, 0, lane)
    d = T.cuda.fragments(mma, "D", M=2, batch=batch)
    T.cuda.tile.apply(mma, d, a, b, 0.0)
    registers = d.storage.view("float32")
    for r in T.unroll(Out.shape[1]):
        Out[lane, r] = registers[r]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("batch", [(3,), (2, 2)])
def test_batch_axes_lead(device, run, batch, shared):
    rng = np.random.default_rng(zlib.crc32(repr((batch, shared)).encode()))
    count = int(np.prod(batch))
    a = rng.standard_normal((1 if shared else count, 32, 16)).astype(np.float16).view(np.uint16)
    b = rng.standard_normal((count, 8, 16)).astype(np.float16).view(np.uint16)
    given = [np.concatenate(list(x), axis=-1)[None] for x in (left_registers(a, 8), right_registers(b, 8))]
    out = torch.full((32, count * 2 * 4), float("nan"), device=device)
    run(batched, *(tensor(x, device) for x in given), out, batch=batch, shared=shared)
    expected = sum_registers(chained(a, b, np.zeros((count, 32, 8), np.float32), 8, "f16"))
    assert_same_bits(torch.from_numpy(np.concatenate(list(expected), axis=-1)), out)
