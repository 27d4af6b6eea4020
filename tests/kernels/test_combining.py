"""Reductions and scans by a function of the kernel: in the lanes' order, of numbers and of tuples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from refusals import refused

from warpjit import T, warpjit

THREADS = 128
ONE_CTA = T.cuda.LaunchConfig(grid=1, block=THREADS)


def follow(first, second):
    """The map x -> a * x + b, `first` and then `second`: associative, and not commutative. Integers wrap."""
    a, b = first
    c, d = second
    return a * c, b * c + d


@warpjit
def maps(A, B, Out):
    """Affine maps, composed over warps, segments and the CTA, and scanned."""
    T.device_entry(launch=ONE_CTA)
    i = T.cuda.thread_idx()
    x = A[i], B[i]
    scratch = T.alloc_shared((4,), "int32"), T.alloc_shared((4,), "int32")
    results = (
        *(T.cuda.warp_reduce(x, follow), T.cuda.warp_reduce(x, follow, 8), T.cuda.cta_reduce(x, follow, scratch)),
        *(T.cuda.warp_scan(x, follow), T.cuda.warp_scan(x, follow, exclusive=True, initial=(1, 7))),
        *(T.cuda.cta_scan(x, scratch, follow), T.cuda.cta_scan(x, scratch, follow, exclusive=True, initial=(1, 7))),
    )
    for k, (a, b) in enumerate(results):
        Out[k, 0, i] = a
        Out[k, 1, i] = b


def composed(pairs: np.ndarray) -> np.ndarray:
    """(n, 2): each prefix of maps, by exact arithmetic modulo 2**32."""

    def step(p, q):
        return (p[0] * q[0]) % 2**32, (p[1] * q[0] + q[1]) % 2**32

    return np.array(list(itertools.accumulate([(int(a) % 2**32, int(b) % 2**32) for a, b in pairs], step)), np.uint64)


def test_functions_that_do_not_commute(device, run):
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randint(-9, 9, (THREADS,), dtype=torch.int32, generator=generator) for _ in range(2))
    out = torch.zeros((7, 2, THREADS), dtype=torch.int32, device=device)
    run(maps, a.to(device), b.to(device), out)
    pairs = torch.stack([a, b], 1).numpy()

    def blocks(size):
        return [composed(pairs[start : start + size]) for start in range(0, THREADS, size)]

    def reduced(size):
        return np.concatenate([np.repeat(part[-1:], size, 0) for part in blocks(size)])

    def excluded(size):
        return np.concatenate([np.concatenate([[[1, 7]], part[:-1]]) for part in blocks(size)])

    expected = [reduced(32), reduced(8), reduced(THREADS), np.concatenate(blocks(32)), excluded(32)]
    expected += [np.concatenate(blocks(THREADS)), excluded(THREADS)]
    for k, (got, want) in enumerate(zip(out.cpu().numpy(), expected, strict=True)):
        assert np.array_equal(got.astype(np.uint32), want.T.astype(np.uint32)), k


@warpjit
def numbers(X, Y, Out, Found):
    """Sums by `cta_scan`, a product, and softmax's maximum and sum, which decide a branch of the whole warp."""
    T.device_entry(launch=ONE_CTA)
    i = T.cuda.thread_idx()
    ints, floats = T.alloc_shared((4,), "int64"), T.alloc_shared((4,), "float32")
    more = T.alloc_shared((5,), "float32")
    Out[0, i] = T.cuda.cta_scan(X[i], ints)
    Out[1, i] = T.cuda.cta_scan(X[i], ints, exclusive=True)
    Out[2, i] = T.cuda.cta_scan(X[i], ints, lambda a, b: max(a, b), exclusive=True, initial=-5)
    Out[3, i] = T.cuda.warp_reduce(X[i], lambda a, b: a if a > b else b)
    Found[0, i] = T.cuda.cta_scan(Y[i], floats)

    def merged(p, q):
        top = max(p[0], q[0])
        return top, p[1] * T.exp2(p[0] - top) + q[1] * T.exp2(q[0] - top)

    top, total = T.cuda.warp_reduce((Y[i], 1.0), merged)
    if top > 0:
        T.cuda.warp_sync()
    Found[1, i], Found[2, i] = top, total
    Found[3, i], Found[4, i] = T.cuda.cta_reduce((Y[i], T.float32(1)), merged, (floats, more))


def test_a_first_thread_gets_initial_to_the_sign_of_zero(device, run):
    @warpjit
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        Out[lane] = T.cuda.warp_scan(1.0, lambda a, b: a * b, exclusive=True, initial=-0.0)

    out = torch.ones(32, device=device)
    run(kernel, out)
    assert out.tolist() == [0.0] + [1.0] * 31 and out[0].signbit()


def test_sums_and_tuples(device, run):
    generator = torch.Generator().manual_seed(2)
    x = torch.randint(-(2**40), 2**40, (THREADS,), generator=generator)
    y = torch.randint(-8, 9, (THREADS,), generator=generator).float()
    out = torch.zeros((4, THREADS), dtype=torch.int64, device=device)
    found = torch.zeros((5, THREADS), device=device)
    run(numbers, x.to(device), y.to(device), out, found)
    got = out.cpu()
    assert torch.equal(got[0], x.cumsum(0))
    assert torch.equal(got[1], x.cumsum(0) - x)
    assert torch.equal(got[2], torch.cat([torch.tensor([-5]), x.cummax(0).values[:-1]]))
    assert torch.equal(got[3].view(4, 32), x.view(4, 32).max(1).values[:, None].expand(4, 32))
    floats, rows = found.cpu(), y.view(4, 32)
    assert torch.equal(floats[0], y.cumsum(0))
    top = rows.max(1).values[:, None]
    assert torch.equal(floats[1].view(4, 32), top.expand(4, 32))
    sums = torch.exp2(rows - top).sum(1, keepdim=True).expand(4, 32)
    torch.testing.assert_close(floats[2].view(4, 32), sums)
    assert torch.equal(floats[3], y.max().expand(THREADS))
    torch.testing.assert_close(floats[4], torch.exp2(y - y.max()).sum().expand(THREADS))
    assert all(torch.equal(part, part[:1].expand(32)) for row in floats[1:3] for part in row.view(4, 32))


@warpjit
def nans(X, Y, Z, H, Outs):
    """Extremes of each type over a warp and the CTA, without and with NaN."""
    T.device_entry(launch=ONE_CTA)
    i = T.cuda.thread_idx()
    for A, out in zip((X, Y, Z, H), Outs, strict=True):
        scratch = T.alloc_shared((4,), A.dtype)
        a = A[i]
        out[0, i] = T.cuda.warp_max(a)
        out[1, i] = T.cuda.warp_max(a, nan=True)
        out[2, i] = T.cuda.warp_min(a, 4, nan=True)
        out[3, i] = T.cuda.cta_min(a, scratch)
        out[4, i] = T.cuda.cta_min(a, scratch, nan=True)
        out[5, i] = T.cuda.cta_max(a, scratch, nan=True)
        other = A[THREADS - 1 - i]
        out[6, i] = T.min(a, other, nan=True)
        out[7, i] = T.max(a, other, nan=True)
        out[8, i] = T.max(a, 0.5, nan=True)
        out[9, i] = max(a, other)


def test_nan_wins_where_it_is_asked_for(device, run):
    kinds = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    x = torch.randn(THREADS, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    x[45], x[3], x[7], x[124] = torch.nan, -0.0, 0.0, 0.0  # 3 and 124 meet, 7 and 120
    inputs = [x.to(kind).to(device) for kind in kinds]
    outs = tuple(torch.zeros((10, THREADS), dtype=kind, device=device) for kind in kinds)
    run(nans, *inputs, outs)
    for a, out in zip((each.cpu() for each in inputs), outs, strict=True):
        got, warps, numbers = out.cpu(), a.view(4, 32), torch.nan_to_num(a.double(), nan=-9).to(a.dtype)
        expected = [
            numbers.view(4, 32).amax(1, keepdim=True).expand(4, 32).reshape(-1),
            warps.amax(1, keepdim=True).expand(4, 32).reshape(-1),
            a.view(32, 4).amin(1, keepdim=True).expand(32, 4).reshape(-1),
            torch.nan_to_num(a.double(), nan=9).amin().to(a.dtype).expand(THREADS),
            *(torch.full_like(a, torch.nan),) * 2,
            *(torch.minimum(a, a.flip(0)), torch.maximum(a, a.flip(0))),
            torch.maximum(a, torch.full_like(a, 0.5)),
            torch.fmax(a, a.flip(0)),
        ]
        torch.testing.assert_close(got, torch.stack(expected), rtol=0, atol=0, equal_nan=True)
        assert torch.signbit(got[6, [3, 124]]).all() and not torch.signbit(got[7, [3, 124]]).any()


def asked(expression):
    def body(Out):
        T.device_entry(launch=ONE_CTA)
        expression(T.cuda.lane_id(), T.alloc_shared((4,), "int32"))

    return body


PAIR = lambda p, q: (p[0] + q[0], p[1] + q[1])  # noqa: E731
WRONG = [
    (
        lambda lane, scratch: T.cuda.warp_reduce(lane, None),
        "T.cuda.warp_reduce: expected op to be a function of two arguments but got None",
    ),
    (
        lambda lane, scratch: T.cuda.warp_reduce(lane, lambda a, b: (a, b)),
        "T.cuda.warp_reduce: expected op to give one number but got tuple",
    ),
    (
        lambda lane, scratch: T.cuda.warp_reduce((lane, lane), lambda a, b: a[0] + b[0]),
        "T.cuda.warp_reduce: expected op to give a tuple of 2 but got a scalar of type int32",
    ),
    (
        lambda lane, scratch: T.cuda.warp_reduce(lane, lambda a, b: a * 0.5 + b),
        "T.cuda.warp_reduce: expected op to give int32, as x, but got a scalar of type float32",
    ),
    (
        lambda lane, scratch: T.cuda.warp_scan(lane, max, exclusive=True),
        "T.cuda.warp_scan: expected initial, what the first thread gets, beside exclusive=True and op",
    ),
    (
        lambda lane, scratch: T.cuda.warp_scan(lane, initial=1),
        "T.cuda.warp_scan: initial is what the first thread of an exclusive scan gets: give exclusive=True",
    ),
    (
        lambda lane, scratch: T.cuda.cta_reduce((lane, lane), PAIR, scratch),
        "T.cuda.cta_reduce: expected scratch to be a tuple of 2 shared tensors, one for each number of x, but got the "
        "tensor shared",
    ),
    (
        lambda lane, scratch: T.cuda.cta_scan(lane * 0.5, scratch),
        "T.cuda.cta_scan: expected scratch to hold float32, as x, but shared holds int32",
    ),
    (
        lambda lane, scratch: T.cuda.warp_max(lane * 0.5, nan=1),
        "T.cuda.warp_max: expected nan to be True or False but got int 1",
    ),
]


@pytest.mark.parametrize(("expression", "sentence"), WRONG, ids=range(len(WRONG)))
def test_wrong_arguments(expression, sentence):
    assert [message for message, _ in refused(asked(expression))] == [sentence]
