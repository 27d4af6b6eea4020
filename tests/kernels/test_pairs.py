"""Two 16-bit floats in one register: each half is computed as a number of its type is, and words come and go."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest
import torch
from both import assert_same_bits

from warpjit import T, TraceError, warpjit
from warpjit.ir import dtypes, numerics

TYPES = {"float16x2": "float16", "bfloat16x2": "bfloat16"}
VALUES = (0.0, -0.0, 1.0, -1.0, 0.1, -2.75, 3.0, 1e-7, 6e-5, 65504.0, -65504.0, 3e38, torch.inf, -torch.inf, torch.nan)


def halves(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of VALUES in a 16-bit type, and zeros to a multiple of 64."""
    found = torch.tensor(list(itertools.product(VALUES, VALUES)), dtype=torch.float64).to(getattr(torch, name))
    found = torch.cat([found, torch.zeros((-len(found) % 64, 2), dtype=found.dtype)])
    return found[:, 0].contiguous(), found[:, 1].contiguous()


@warpjit
def computed(A, B, Out, Masks, *, pair):
    """Every operation on pairs of neighbours, and every comparison."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=A.shape[0] // 64, block=32))
    i = 32 * T.cuda.block_idx() + T.cuda.lane_id()
    a, b = A.view(pair)[i], B.view(pair)[i]
    out = Out.view(pair)
    results = (
        *(a + b, a - b, a * b, T.fma(a, b, a), min(a, b), T.max(a, b), T.min(a, b, nan=True), T.max(a, b, nan=True)),
        *(-a, abs(a), a + 2, 0.5 * a, a if i % 2 == 0 else b),
    )
    for k, result in enumerate(results):
        out[k, i] = result
    for k, mask in enumerate((a == b, a != b, a < b, a <= b, a > b, a >= b)):
        Masks[k, i] = mask


def bits(tensor: torch.Tensor) -> np.ndarray:
    return tensor.cpu().contiguous().view(torch.uint8).numpy()


@pytest.mark.parametrize("pair", TYPES)
def test_halves_are_computed_as_numbers_of_their_type(device, both, pair):
    a, b = halves(TYPES[pair])
    out = torch.zeros((13, len(a)), dtype=a.dtype, device=device)
    masks = torch.zeros((6, len(a) // 2), dtype=torch.uint32, device=device)
    both(computed, a.to(device), b.to(device), out, masks, pair=pair)
    x, y = (bits(each).view(dtypes.dtype(TYPES[pair]).numpy) for each in (a, b))
    two, half = np.full_like(x, 2), np.full_like(x, 0.5)
    expected = [
        *(numerics.add(x, y), numerics.subtract(x, y), numerics.multiply(x, y), numerics.fma(x, y, x)),
        *(numerics.minimum(x, y), numerics.maximum(x, y), numerics.minimum_nan(x, y), numerics.maximum_nan(x, y)),
        *(numerics.negate(x), numerics.absolute(x), numerics.add(x, two), numerics.multiply(half, x)),
        np.where(np.repeat(np.arange(len(x) // 2) % 2 == 0, 2), x, y),
    ]
    for k, want in enumerate(expected):
        assert bits(out[k]).tobytes() == want.tobytes(), k
    compared = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
    for k, compare in enumerate(compared):
        assert np.array_equal(bits(masks[k]).view(np.uint16) == 0xFFFF, compare(x.astype(float), y.astype(float))), k
        assert set(bits(masks[k]).view(np.uint16).tolist()) == {0, 0xFFFF}


@warpjit
def carried(A, Words, Sums, Totals, *, pair):
    """A (n, 32) float32: pairs of neighbouring rows made from it, carried by a loop, shuffled, reduced, kept."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    kinds = {"float16x2": T.float16x2, "bfloat16x2": T.bfloat16x2}
    make = kinds[pair]
    total = make(0)
    for k in range(A.shape[0] // 2):
        total = total + make(A[2 * k, lane], A[2 * k + 1, lane])
    kept = T.alloc_local((2,), pair)
    kept[0] = total
    kept[1] = make(total[1], total[0])
    Words[0, lane] = T.reinterpret(kept[0], "uint32")
    Words[1, lane] = T.reinterpret(kept[1], "uint32")
    words = kept.view("uint32")
    again = T.reinterpret(words[1], pair)
    Sums[0, lane] = again[0]
    Sums[1, lane] = T.float32(again[1])
    Sums[2, lane] = T.cuda.shuffle_xor(total, 1)[0]
    one = make(A[0, lane], 1.5)
    Sums[3, lane], Sums[4, lane] = one[0], one[1]
    other = make(1, T.int32(lane))
    Sums[5, lane], Sums[6, lane] = other[0], other[1]
    swapped = (T.bfloat16x2 if pair == "float16x2" else T.float16x2)(one)
    Sums[7, lane] = swapped[0]
    Sums[8, lane] = T.cuda.warp_sum(make(lane, 1))[0]
    Sums[9, lane] = T.cuda.warp_max(total)[1]
    place = Totals.view(pair)
    T.red_add(place, (0,), make(1, lane % 8))
    T.atomic_add(place, (1,), make(lane % 2, 2))


@pytest.mark.parametrize("pair", TYPES)
def test_pairs_are_scalars_of_32_bits(device, run, pair):
    kind = getattr(torch, TYPES[pair])
    a = torch.randn((8, 32), generator=torch.Generator().manual_seed(3))
    words = torch.zeros((2, 32), dtype=torch.uint32, device=device)
    sums = torch.zeros((10, 32), device=device)
    totals = torch.zeros(4, dtype=kind, device=device)
    run(carried, a.to(device), words, sums, totals, pair=pair)
    total = torch.zeros((2, 32), dtype=kind)
    for k in range(4):
        total = total + a[2 * k : 2 * k + 2].to(kind)
    assert_same_bits(total, words.cpu()[0].view(kind).view(32, 2).T.contiguous())
    assert_same_bits(total.flip(0), words.cpu()[1].view(kind).view(32, 2).T.contiguous())
    lane = torch.arange(32.0)
    swapped = torch.bfloat16 if kind == torch.float16 else torch.float16
    rows = [total[1], total[0], total[0][torch.arange(32) ^ 1], a[0].to(kind), torch.full((32,), 1.5)]
    rows += [torch.ones(32), lane, a[0].to(kind).to(swapped), torch.full((32,), 496.0)]
    rows += [total[1].max().expand(32)]
    assert_same_bits(torch.stack([row.float() for row in rows]), sums)
    assert totals.tolist() == [32, 112, 16, 64]


def refused(body) -> str:
    kernel = warpjit(body)
    with pytest.raises(TraceError) as caught:
        kernel(torch.zeros(64, dtype=torch.float16), torch.zeros(64))
    (finding,) = caught.value.findings
    return finding.message


ONE = T.cuda.LaunchConfig(grid=1, block=32)


def test_what_a_pair_is_not():
    def added(A, B):
        T.device_entry(launch=ONE)
        A.view("float16x2")[0] = A.view("float16x2")[0] + B[0]

    def stored(A, B):
        T.device_entry(launch=ONE)
        A.view("float16x2")[0] = B[0]

    def read(A, B):
        T.device_entry(launch=ONE)
        B[0] = A.view("float16x2")[0]

    def decided(A, B):
        T.device_entry(launch=ONE)
        if A.view("float16x2")[0]:
            B[0] = 1

    def third(A, B):
        T.device_entry(launch=ONE)
        B[0] = A.view("float16x2")[0][2]

    def divided(A, B):
        T.device_entry(launch=ONE)
        x = A.view("float16x2")[0]
        A.view("float16x2")[0] = x / x

    def three(A, B):
        T.device_entry(launch=ONE)
        A.view("float16x2")[0] = T.float16x2(1, 2, 3)

    assert [refused(body) for body in (added, stored, read, decided, third, divided, three)] == [
        "float16x2 and float32 have no common type: expected two float16x2, T.float16x2(x) of a number x",
        "expected a float16x2, for example T.float16x2(x, y), but got a float32",
        "a float16x2 is no float32: take a half, x[0] or x[1], or its bits, T.reinterpret(x, T.uint32)",
        "a float16x2 is neither true nor false: compare it, or a half of it, x[0] or x[1]",
        "a float16x2 has halves 0 and 1, but got index 2",
        "div is not defined for float16x2",
        "T.float16x2: expected one or two numbers but got 3",
    ]
